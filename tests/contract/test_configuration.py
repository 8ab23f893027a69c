"""§10: configuration, and how the worker appears on an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.contract.requirements import requirement
from tests.support.directory import directory as running_directory

from iii_directory.config import Settings, load_settings

if TYPE_CHECKING:
    import pytest
    from tests.support.engine import EngineThread
    from tests.support.reader import Reader


@requirement("config.defaults")
def test_a_missing_file_means_defaults_without_a_word(tmp_path: Path) -> None:
    settings, warnings = load_settings(tmp_path / "config.yaml")

    assert settings == Settings(skills_folder=tmp_path / "skills")
    assert warnings == []
    assert settings.registry_url == "https://api.workers.iii.dev"
    assert (settings.download_timeout_ms, settings.registry_cache_ttl_ms) == (60_000, 60_000)
    assert settings.state_timeout_ms == 10_000
    assert settings.scopes == ("skills", "prompts")
    assert settings.filter_unregistered
    assert settings.section_guard
    assert settings.surfaces == ("v0.2", "v0.4", "v0.5", "v0.8")


@requirement("config.defaults", "config.unknown-keys")
def test_what_is_wrong_with_the_file_is_a_warning_and_the_default(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    wrong = {
        "not: [valid": "not valid YAML",
        "- a list": "not a mapping",
        "colour: red": "unknown key 'colour'",
        "state_timeout_ms: soon": "'state_timeout_ms'",
        "surfaces: [v9]": "'surfaces'",
        "section_guard: 7": "'section_guard'",
        "scopes: here": "'scopes'",
        "skills_folder: [a]": "'skills_folder'",
    }
    for text, named in wrong.items():
        path.write_text(text, encoding="utf-8")
        settings, warnings = load_settings(path)

        assert settings == Settings(skills_folder=tmp_path / "skills"), text
        assert len(warnings) == 1, text
        assert named in warnings[0], text


@requirement("config.folder")
def test_folders_are_taken_from_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "etc" / "config.yaml"
    path.parent.mkdir()
    for given, meant in {
        "docs": tmp_path / "etc" / "docs",
        "./docs": tmp_path / "etc" / "docs",
        "../docs": tmp_path / "docs",
        "~/docs": tmp_path / "home" / "docs",
        "/srv/docs": Path("/srv/docs"),
    }.items():
        path.write_text(f"skills_folder: {given}\nlocal_skills_folder: {given}\n", encoding="utf-8")
        settings, warnings = load_settings(path)

        assert settings.skills_folder == settings.local_skills_folder == meant
        assert warnings == []


@requirement("worker.name")
def test_the_worker_has_its_name_on_the_engine(directory: Reader) -> None:
    info = directory.call("engine::workers::info", name="iii-directory")

    assert info["worker"]["name"] == "iii-directory"
    assert info["worker"]["description"]


@requirement("worker.no-telemetry")
def test_the_worker_opens_one_connection_and_none_for_telemetry(engine: EngineThread, tmp_path: Path) -> None:
    with running_directory(engine.url, tmp_path):
        assert len(engine.server._peers) == 1
