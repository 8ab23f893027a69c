"""config.yaml: whatever is wrong with it is a warning and a default, never a failed start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import free_port, run, running

from iii_directory.config import Settings, load_settings
from iii_directory.limits import MAX_SETTING_MS
from iii_directory.text import has_unsafe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9)
)
BROKEN = {
    "a date that is none": "x: 2024-99-99\n",
    "a truth that is none": "x: !!bool x\n",
    "a number that is none": "x: !!int zz\n",
    "a decimal that is none": "x: !!float zz\n",
    "a time that is none": "x: !!timestamp zz\n",
    "a hexadecimal number without digits": "x: 0x_\n",
    "binary that is none": "x: !!binary é\n",
    "a hundred thousand lists": "[" * 100_000,
    "fifty thousand mappings": "{a: " * 50_000,
    "a number of 5,000 digits": "state_timeout_ms: " + "9" * 5000 + "\n",
    "a bomb of aliases": BOMB,
    "an object of Python": "x: !!python/object/apply:os.system [id]\n",
    "a tab": "\t",
    "a zero byte": "a: \0",
    "a picture": "\x89PNG",
    "a list": "- a\n",
    "a word": "hello",
    "a list as a key": "? [a]\n: b\n",
    "a time without end": "registry_cache_ttl_ms: 1" + "0" * 400 + "\n",
    "a negative time": "download_timeout_ms: -1\n",
    "a truth as a time": "state_timeout_ms: true\n",
    "a folder with a zero byte": 'skills_folder: "a\\0b"\n',
    "a folder of nobody": "skills_folder: ~nosuchuser/x\n",
    "a folder that is a number": "local_skills_folder: 3\n",
    "a registry without a host": "registry_url: http://\n",
    "a registry at a port that is none": "registry_url: http://127.0.0.1:99999\n",
    "a registry behind half a bracket": "registry_url: http://[\n",
    "a registry of another kind": "registry_url: ftp://x\n",
    "mirrors that are a list": "repo_mirrors: [a]\n",
    "a mirror to nowhere": "repo_mirrors: {'https://a/': ''}\n",
    "scopes that are a word": "scopes: skills\n",
    "a scope nobody has": "scopes: {skills: a, others: b}\n",
    "an empty scope": "scopes: {skills: ' '}\n",
    "a flag that is a number": "section_guard: 3\n",
    "a generation nobody has": "surfaces: [v9]\n",
    "generations that are a word": "surfaces: some\n",
    "an unknown key": "skils_folder: x\n",
    "a key that acts on a terminal": '"\\e[31mred": x\n',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_a_warning_and_defaults(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")

    settings, warnings = load_settings(path)

    assert settings == replace(Settings(), skills_folder=tmp_path.resolve() / "skills")
    assert warnings
    assert not any(has_unsafe(warning) for warning in warnings)


def test_a_file_that_cannot_be_read_is_a_warning_and_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe\xff")
    folder = tmp_path / "folder.yaml"
    folder.mkdir()

    assert load_settings(path)[1] == ["config.yaml cannot be read (it is not UTF-8); defaults are used"]
    assert load_settings(folder)[1] == ["folder.yaml cannot be read (Is a directory); defaults are used"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("skills list", 0),
        ("doctor", 1),
        ("search pdf", 0),
        ("config show", 0),
        ("config check", 1),
    ],
)
def test_a_file_that_is_a_link_to_itself_is_one_sentence_for_every_command(
    tmp_path: Path, command: str, code: int
) -> None:
    (tmp_path / "config.yaml").symlink_to("config.yaml")

    done = run(*command.split(), cwd=tmp_path)

    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == code
    assert "config.yaml cannot be read (Too many levels of symbolic links)" in done.stdout + done.stderr


VALUES: dict[str, tuple[str, Callable[[Settings], object], object]] = {
    "quoted flags": ("section_guard: 'off'\n", lambda found: found.section_guard, False),
    "scopes": (
        "scopes: {prompts: p}\n",
        lambda found: found.scopes,
        ("skills", "p"),
    ),
    "mirrors": ("repo_mirrors: {a: b}\n", lambda found: dict(found.repo_mirrors), {"a": "b"}),
    "all generations": ("surfaces: all\n", lambda found: len(found.surfaces), 4),
    "one generation": ("surfaces: [v0.4]\n", lambda found: found.surfaces, ("v0.4",)),
    "a day": (f"state_timeout_ms: {MAX_SETTING_MS}\n", lambda found: found.state_timeout_ms, MAX_SETTING_MS),
    "an address": ("registry_url: http://[::1]:80/\n", lambda found: found.registry_url, "http://[::1]:80"),
}


@pytest.mark.parametrize(("text", "read", "expected"), VALUES.values(), ids=VALUES)
def test_a_value_within_its_bounds_is_taken(
    tmp_path: Path, text: str, read: Callable[[Settings], object], expected: object
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")

    assert read(load_settings(path)[0]) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('x: !!bool x\n"\\e[31mkey": 1\n', "cannot be used: it uses YAML tags"),
        (None, "cannot be read (Too many levels of symbolic links)"),
    ],
    ids=["a tag", "a link to itself"],
)
def test_up_starts_beside_a_broken_file_and_says_what_is_wrong_with_it(
    tmp_path: Path, text: str | None, said: str
) -> None:
    path = tmp_path / "config.yaml"
    if text is None:
        path.symlink_to(path.name)
    else:
        path.write_text(text, encoding="utf-8")
    url = f"ws://127.0.0.1:{free_port()}"

    with running("up", "--url", url, "--in-memory", "--http-port", "0", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        assert up.stop() == 0

    assert f"config.yaml {said}" in up.output
    assert "Traceback" not in up.output


@pytest.mark.parametrize("level", ["nonsense", "", "10", "\x1b[31m"])
def test_an_invalid_log_level_is_a_warning(tmp_path: Path, level: str) -> None:
    port = str(free_port())

    with running("engine", "--port", port, "--in-memory", cwd=tmp_path, III_DIRECTORY_LOG=level) as engine:
        engine.wait_for("engine at")
        assert engine.stop() == 0

    assert "III_DIRECTORY_LOG" in engine.output
    assert not any(has_unsafe(line) for line in engine.lines)
