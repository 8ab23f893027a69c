"""Settings: one table, whatever the file holds, and the commands that show it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.support.commands import run

from iii_directory.config import (
    SETTINGS,
    Settings,
    default_document,
    json_schema,
    load_settings,
    parse_settings,
    sample,
)

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
