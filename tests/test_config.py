"""Settings: one table, whatever the file holds, and the commands that show it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.support.commands import free_port, run, running
from tests.support.directory import client
from tests.support.engine import EngineThread
from tests.support.reader import until

from iii_directory.config import (
    SETTINGS,
    Origin,
    Settings,
    default_document,
    in_force,
    json_schema,
    load_settings,
    parse_settings,
    sample,
    set_on_engine,
)
from iii_directory.limits import MAX_SETTING_MS

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = [
    "when: 2024-13-45",
    "a: !!bool x",
    "a: !!int zz",
    "a: !!float zz",
    "a: !!timestamp zz",
    "a: 0x_",
    f"a: {'9' * 5000}",
    "registry_cache_ttl_ms: 1" + "0" * 400,
    "[" * 100_000,
    "a: &x [*x]",
    "{" * 1000,
    "a: 1\na: 2",
    "? [a]\n: b",
    "state_timeout_ms: 1.5",
    "state_timeout_ms: -1",
    "state_timeout_ms: 999",
    "registry_url: https://host:99999",
    "registry_url: https://",
    "registry_url: 'http://['",
    "surfaces: {a: b}",
    "surfaces: [1]",
    "scopes: {skills: 1}",
    "roots: here",
    "roots: [1]",
    "configuration_env: [A-B]",
    "sections: some",
    "x" * 70_000,
    "\x00",
    "%YAML 9.9\n---\na: b",
]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_whatever_is_in_the_file_the_rest_has_defaults_and_a_warning_says_why(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")

    settings, warnings = load_settings(path)

    assert settings == Settings(skills_folder=tmp_path / "skills")
    assert len(warnings) == 1
    assert "\n" not in warnings[0]
    assert len(warnings[0]) < 300


def test_a_key_that_is_nearly_right_is_suggested(tmp_path: Path) -> None:
    _, warnings = parse_settings({"skill_folder": "x"}, tmp_path)

    assert warnings == ["unknown key 'skill_folder' is ignored (did you mean 'skills_folder'?)"]


def test_the_defaults_of_the_table_are_those_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / ".agents/skills").mkdir(parents=True)

    written, warnings = parse_settings(default_document(), tmp_path)
    silent, _ = parse_settings({}, tmp_path)

    assert warnings == []
    # What is written counts even where it is not there; and the kind of engine decides on downloads.
    assert replace(written, roots=silent.roots, auto_download=None) == silent
    assert silent.roots == (tmp_path / ".agents/skills",)


def test_the_schema_takes_the_defaults_and_refuses_what_the_reader_refuses() -> None:
    document: Any = default_document()
    validator = jsonschema.Draft202012Validator(json_schema())

    assert validator.is_valid(document)
    for wrong in ({"colour": 1}, {"state_timeout_ms": "soon"}, {"surfaces": ["v9"]}, {"sections": "some"}):
        assert not validator.is_valid(wrong), wrong


def test_the_file_to_start_from_changes_nothing_until_a_line_is_freed(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(sample(), encoding="utf-8")
    assert load_settings(path) == (Settings(skills_folder=tmp_path / "skills"), [])

    freed = "\n".join(
        line.removeprefix("# ") if ": " in line and line.count(" ") else line for line in sample().split("\n")
    )
    assert all(f"\n{setting.key}: " in freed for setting in SETTINGS)


def test_config_init_check_and_show_work_together(tmp_path: Path) -> None:
    assert run("config", "check", cwd=tmp_path).returncode == 1
    assert run("config", "init", cwd=tmp_path).returncode == 0
    assert run("config", "check", cwd=tmp_path).returncode == 0
    again = run("config", "init", cwd=tmp_path)
    assert again.returncode == 1
    assert "left as it is" in again.stderr

    (tmp_path / "config.yaml").write_text("show_paths: true\nskill_folder: x\n")

    shown = run("config", "show", "--json", cwd=tmp_path)
    rows = {row["key"]: row for row in json.loads(shown.stdout)["settings"]}
    assert rows["show_paths"] == {"key": "show_paths", "value": True, "from": "config.yaml"}
    assert rows["registry_url"]["from"] == "default"
    assert "did you mean 'skills_folder'" in shown.stderr
    assert run("config", "check", cwd=tmp_path).returncode == 1


def test_the_schema_can_be_printed_for_an_editor(tmp_path: Path) -> None:
    assert json.loads(run("config", "schema", cwd=tmp_path).stdout) == json_schema()


def shown(*options: str, cwd: Path) -> tuple[dict[str, tuple[Any, str]], str]:
    """The value of each setting and where it comes from, by ``config show``; and what is said beside it."""
    done = run("config", "show", "--json", *options, cwd=cwd)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["settings"]
    return {row["key"]: (row["value"], row["from"]) for row in rows}, done.stderr


def test_config_show_names_the_start_and_the_engine_where_these_have_the_last_word(tmp_path: Path) -> None:
    home, elsewhere, other = tmp_path / "home", tmp_path / "elsewhere", tmp_path / "other"
    for folder in (home, elsewhere, other):
        folder.mkdir()
    (home / "config.yaml").write_text("show_paths: true\nstate_timeout_ms: 5000\nregistry_url: http://a\n")
    url = f"ws://127.0.0.1:{free_port()}"
    on_engine = '{"state_timeout_ms": 7000, "filter_unregistered": false}'
    options = ("--in-memory", "--http-port", "0", "--skills-folder", str(elsewhere))
    with running("up", "--url", url, *options, cwd=home) as up:
        up.wait_for("Ctrl-C")
        assert shown(cwd=home)[1] == "", "what nobody has set is nothing to speak of"

        def is_set() -> bool:
            asked = ("configuration::set", "id=iii-directory", f"value={on_engine}")
            return run("trigger", *asked, "--url", url, cwd=home).returncode == 0

        until(is_set, "the directory has registered its settings")
        values, said = shown(cwd=home)
        engine = f"the engine at {url}"
        assert values["state_timeout_ms"] == (7000, engine)
        assert values["filter_unregistered"] == (False, engine)
        assert values["registry_url"] == ("http://a", "config.yaml")
        assert values["show_paths"] == (True, "config.yaml")
        assert values["sections"] == (None, "default")
        assert values["skills_folder"] == (str(elsewhere), f"the start of pid {up.process.pid}")
        assert said == ""
        examined = run("doctor", cwd=home).stdout
        assert "'state_timeout_ms' is 7000 by the engine's configuration" in examined
        assert "config.yaml and the defaults say 5000" in examined

        # In another folder it belongs to another directory, unless a caller asks for it.
        assert {origin for _, origin in shown(cwd=other)[0].values()} == {"default"}
        assert shown("--url", url, cwd=other)[0]["state_timeout_ms"] == (7000, engine)

    values, _ = shown(cwd=home)
    assert values["state_timeout_ms"] == (5000, "config.yaml")
    assert values["skills_folder"] == ("./skills", "default")


def test_config_show_tells_what_an_engine_sets_to_each_folder_with_a_directory_on_it(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for folder in (first, second, third):
        folder.mkdir()
    port = str(free_port())
    url = f"ws://127.0.0.1:{port}"
    with (
        running("engine", "--in-memory", "--port", port, cwd=tmp_path) as engine,
        running("serve", "--url", url, cwd=first) as one,
        running("serve", "--url", url, cwd=second, III_NAMESPACE="team") as other,
    ):
        engine.wait_for("Ctrl-C")
        for serving in (one, other):
            serving.wait_for("connected to the engine")
        asked = ("configuration::set", "id=iii-directory", 'value={"state_timeout_ms": 7000}', "--url", url)
        until(lambda: run("trigger", *asked, cwd=first).returncode == 0, "settings are registered")

        for home in (first, second):
            assert shown(cwd=home)[0]["state_timeout_ms"] == (7000, f"the engine at {url}")
        assert {origin for _, origin in shown(cwd=third)[0].values()} == {"default"}


def test_config_show_tells_what_a_directory_started_with_and_what_waits_for_the_next_start(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("surfaces: [v0.8]\nscopes: {skills: mine}\nconfiguration_env: [HOME]\n")
    url = f"ws://127.0.0.1:{free_port()}"
    with running("up", "--url", url, "--in-memory", "--http-port", "0", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        config.write_text(
            "surfaces: all\nconfiguration_env: [PATH]\nlocal_skills_folder: mine\nshow_paths: true\n"
            "skills_folder: ./skills\nauto_download: true\n"
        )

        values, _ = shown(cwd=tmp_path)
        start, later = (
            f"the start of pid {up.process.pid}",
            "what config.yaml says takes effect at the next start",
        )
        assert values["surfaces"] == (["v0.8"], f"{start}; {later}")
        assert values["scopes"] == ({"skills": "mine", "prompts": "prompts"}, f"{start}; {later}")
        assert values["configuration_env"] == (["HOME"], f"{start}; {later}")
        assert values["local_skills_folder"] == (None, f"default; {later}")
        assert values["auto_download"] == (False, f"default on the embedded engine; {later}")
        assert values["skills_folder"] == ("./skills", "config.yaml"), "in other words it is the same"
        assert values["show_paths"] == (True, "config.yaml")
        assert later in run("config", "show", cwd=tmp_path).stdout

    assert shown(cwd=tmp_path)[0]["surfaces"] == ("all", "config.yaml")


def test_config_show_tells_of_a_directory_whatever_it_was_started_with(tmp_path: Path) -> None:
    listed = ", ".join(f"A_VARIABLE_{number:0100}" for number in range(400))
    (tmp_path / "config.yaml").write_text(f"configuration_env: [{listed}]\n")
    url = f"ws://127.0.0.1:{free_port()}"
    folder = tmp_path / "elsewhere"
    options = ("--in-memory", "--http-port", "0", "--skills-folder", str(folder))
    with running("up", "--url", url, *options, cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")

        values, _ = shown(cwd=tmp_path)

    assert values["skills_folder"] == (str(folder), f"the start of pid {up.process.pid}")


def test_config_show_says_that_the_embedded_engine_has_nothing_downloaded_unless_the_file_asks_for_it(
    tmp_path: Path,
) -> None:
    with EngineThread() as engine:
        by_default, _ = shown("--url", engine.url, cwd=tmp_path)
        (tmp_path / "config.yaml").write_text("auto_download: true\n")
        asked_for, _ = shown("--url", engine.url, cwd=tmp_path)

    assert by_default["auto_download"] == (False, "default on the embedded engine")
    assert asked_for["auto_download"] == (True, "config.yaml")


def test_config_show_says_that_the_engine_it_was_told_to_ask_does_not_answer(tmp_path: Path) -> None:
    url = f"ws://127.0.0.1:{free_port()}"
    values, said = shown("--url", url, cwd=tmp_path)

    assert {origin for _, origin in values.values()} == {"default"}
    assert f"no iii engine answers at {url}" in said
    assert said.rstrip().endswith("what is set there is not shown")


def test_config_show_reads_nothing_of_an_engine_that_has_no_settings_of_ours(tmp_path: Path) -> None:
    with EngineThread() as engine:
        values, said = shown("--url", engine.url, cwd=tmp_path)

    del values["auto_download"]  # of which the kind of the engine decides
    assert {origin for _, origin in values.values()} == {"default"}
    assert said == ""


def test_config_show_says_what_the_engine_says_of_values_that_cannot_be_used(tmp_path: Path) -> None:
    with EngineThread() as engine, client(engine.url) as owner:
        entry = {"id": "iii-directory", "name": "x", "description": "x", "schema": {}}
        owner.call("configuration::register", {**entry, "initial_value": {"state_timeout_ms": "${NOWHERE}"}})
        values, said = shown("--url", engine.url, cwd=tmp_path)
        owner.call(
            "configuration::set", id="iii-directory", value={"state_timeout_ms": 7, "show_paths": True}
        )
        others, complained = shown("--url", engine.url, cwd=tmp_path)

    assert values["state_timeout_ms"][1] == others["state_timeout_ms"][1] == "default"
    assert "what is set on the engine cannot be used: " in said
    assert "NOWHERE" in said
    assert "'show_paths' can be set in config.yaml alone" in complained
    expected = f"a number of milliseconds from 1000 to {MAX_SETTING_MS}"
    assert f"the engine at {engine.url}: 'state_timeout_ms' must be {expected}" in complained


def test_a_value_that_cannot_be_used_leaves_what_was_before_it() -> None:
    file = Origin("config.yaml", {"state_timeout_ms": 5000, "show_paths": "perhaps"})
    engine = Origin("the engine", {"state_timeout_ms": "soon", "filter_unregistered": False})

    rows, problems = in_force((file, engine))

    found = {row.key: (row.value, row.origin) for row in rows}
    assert found["state_timeout_ms"] == (5000, "config.yaml")
    assert found["show_paths"] == ("auto", "default")
    assert found["filter_unregistered"] == (False, "the engine")
    assert problems == [
        f"the engine: 'state_timeout_ms' must be a number of milliseconds from 1000 to {MAX_SETTING_MS}",
        "config.yaml: 'show_paths' must be true or false",
    ]


def test_what_is_not_to_be_set_on_an_engine_is_named_and_not_taken() -> None:
    answer = {
        "id": "iii-directory",
        "value": {"registry_url": "http://b", "state_timeout_ms": 1, "filter_unregistered": None},
    }

    assert set_on_engine(answer) == (
        {"state_timeout_ms": 1},
        ["'registry_url' can be set in config.yaml alone"],
    )
    assert set_on_engine(None) == ({}, [])
