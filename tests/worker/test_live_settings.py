"""Settings that change while the worker runs: in the file, and in the engine's configuration."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.commands import free_port
from tests.support.directory import Client, client
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import until

from iii_directory.config import load_settings
from iii_directory.worker.directory_worker import DirectoryWorker

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

CREATE = {"id": "notes/page", "content": "# Page\n"}


class House:
    """A directory with a configuration file, and a caller."""

    def __init__(self, config: Path, caller: Client, worker: DirectoryWorker) -> None:
        self.config = config
        self.worker = worker
        self.call = caller.call
        self.failure = caller.failure

    def write(self, text: str) -> None:
        """As editors save: another file in the place of the old one."""
        fresh = self.config.with_name("config.new")
        fresh.write_text(text)
        fresh.rename(self.config)

    def findings(self) -> list[str]:
        return [reason for _, reason in self.named()]

    def named(self, words: str = "") -> list[tuple[str, str]]:
        """Subject and reason of each finding about settings whose reason has these words."""
        found = self.call("directory::diagnostics")["findings"]
        rows = [(row["subject"], row["reason"]) for row in found if row["kind"] == "settings"]
        return [(subject, reason) for subject, reason in rows if words in reason]

    def loosen_schema(self) -> None:
        """Register the directory's entry again with a schema that allows everything, as any worker can."""
        entry = {"id": "iii-directory", "name": "x", "description": "x", "schema": {}}
        self.call("configuration::register", entry)

    def told(self, function_id: str) -> dict[str, Any]:
        return self.call("engine::functions::info", function_id=function_id)["metadata"]

    def hides(self) -> bool:
        return self.worker.settings.filter_unregistered

    def configure(self, **value: Any) -> None:
        self.call("configuration::set", id="iii-directory", value=value)


@contextmanager
def started(engine: EngineThread, config: Path, *, inside: bool) -> Generator[House]:
    settings = load_settings(config)[0]
    if inside:
        worker = DirectoryWorker.run_on(engine.bus_inside(), settings, config)
    else:
        worker = DirectoryWorker.join(settings, engine.url, config=config)
    try:
        assert worker.wait_ready(WAIT)
        with client(engine.url) as caller:
            yield House(config, caller, worker)
    finally:
        worker.stop()


@pytest.fixture(params=["inside", "joined"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    config = tmp_path / "config.yaml"
    config.write_text("filter_unregistered: true\n")
    with EngineThread() as engine, started(engine, config, inside=request.param == "inside") as running:
        yield running


def test_a_hot_key_applies_at_once_and_bridges_are_told(house: House) -> None:
    assert house.failure("directory::skills::create", CREATE).message.startswith("D116 ")
    assert house.told("directory::skills::create") == {"allow_writing": False}

    house.write("allow_writing: true\nsections: all\n")

    until(lambda: house.told("directory::skills::create") == {"allow_writing": True}, "it may be written")
    assert house.call("directory::skills::create", CREATE)["id"] == "notes/page"
    assert house.told("skill::fetch")["sections"] == "all"
    house.write("")
    until(lambda: house.told("skill::fetch")["sections"] == "read-only", "defaults are back")
    assert house.failure("directory::skills::delete", id="notes/page").message.startswith("D116 ")


def test_other_keys_are_named_and_wait_for_the_next_start(house: House) -> None:
    house.write("surfaces: [v0.8]\nskills_folder: elsewhere\nallow_writing: true\n")

    until(lambda: len(house.findings()) == 2, "what waits is said")
    assert house.findings() == [
        "'skills_folder' was changed and takes effect at the next start",
        "'surfaces' was changed and takes effect at the next start",
    ]
    assert house.call("directory::skills::create", CREATE)["id"] == "notes/page"
    assert house.call("skills::list")["skills"]
    house.write("")
    until(lambda: house.findings() == [], "nothing waits any more")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("allow_writing: [\n", "it cannot be used"),
        ("- a list\n", "it is not a mapping"),
        (
            "allow_writing: maybe\nshow_paths: true\n",
            "'allow_writing' must be true or false; what was before",
        ),
        ("allow_writing: true\nallow_writting: true\n", "did you mean 'allow_writing'?"),
    ],
)
def test_a_broken_edit_keeps_what_was_and_is_a_finding(house: House, broken: str, said: str) -> None:
    house.write("allow_writing: true\n")
    until(lambda: house.worker.settings.allow_writing, "it may be written")

    house.write(broken)

    until(lambda: len(house.findings()) == 1, "the edit is a finding")
    assert said in house.findings()[0]
    assert house.call("directory::skills::create", CREATE)["id"] == "notes/page"
    assert house.worker.settings.show_paths == (True if "show_paths" in broken else "auto")
    house.write("allow_writing: true\n")
    until(lambda: house.findings() == [], "the finding goes with its cause")


def test_what_the_engine_configures_wins_over_the_file_until_it_is_taken_back(house: House) -> None:
    until(lambda: _is_registered(house), "the schema is registered")

    house.configure(filter_unregistered=False, state_timeout_ms=7000)

    until(lambda: not house.hides(), "the engine's value is in force")
    assert house.worker.settings.state_timeout_ms == 7000
    house.write("filter_unregistered: true\nallow_writing: true\n")
    until(lambda: house.worker.settings.allow_writing, "the file was read")
    assert not house.hides()
    house.configure()
    until(house.hides, "the file's value is in force again")


def test_a_value_of_the_engine_that_cannot_be_used_is_named_as_the_engine_s_and_the_file_s_counts(
    house: House,
) -> None:
    until(lambda: _is_registered(house), "the schema is registered")

    house.loosen_schema()
    house.configure(state_timeout_ms="soon", filter_unregistered=False)

    until(lambda: not house.hides(), "what can be used of it is in force")
    assert house.named("must be") == [
        (
            "configuration iii-directory",
            "'state_timeout_ms' must be a number of milliseconds from 1000 to 86400000; it is not used",
        )
    ]
    house.write("state_timeout_ms: 5000\n")
    until(lambda: house.worker.settings.state_timeout_ms == 5000, "the file's value is in force")
    assert len(house.named("must be")) == 1
    house.configure()
    until(lambda: house.findings() == [], "the finding goes with its cause")


def test_what_the_engine_cannot_tell_is_a_finding_and_the_file_counts(house: House) -> None:
    until(lambda: _is_registered(house), "the schema is registered")
    house.configure(filter_unregistered=False)
    until(lambda: not house.hides(), "the engine's value is in force")

    house.loosen_schema()
    house.configure(filter_unregistered=False, state_timeout_ms="${NOPE_X}")

    until(house.hides, "the file's value is in force")
    ((subject, reason),) = house.named()
    assert subject == "configuration iii-directory"
    assert reason.startswith("what is set there cannot be used: ")
    assert "NOPE_X" in reason
    house.configure(filter_unregistered=False)
    until(lambda: not house.hides(), "what the engine can tell counts again")
    assert house.named("cannot be used") == []


@pytest.mark.parametrize("broken", ["filter_unregistered: perhaps\n", "filter_unregistered: [\n"])
def test_a_broken_edit_is_named_beside_the_engine_s_value_which_goes_when_it_is_taken_back(
    house: House, broken: str
) -> None:
    until(lambda: _is_registered(house), "the schema is registered")
    house.configure(filter_unregistered=False)
    until(lambda: not house.hides(), "the engine's value is in force")

    house.write(broken)

    until(lambda: "config.yaml" in [subject for subject, _ in house.named()], "the edit is a finding")
    assert not house.hides()
    house.configure()
    until(house.hides, "what the file said before is in force again")


def test_nothing_of_an_earlier_engine_is_in_force_on_one_without_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("filter_unregistered: true\n")
    port = free_port()
    worker = DirectoryWorker.join(load_settings(config)[0], f"ws://127.0.0.1:{port}", config=config)
    try:
        with EngineThread(port=port) as first, client(first.url) as caller:
            assert worker.wait_ready(WAIT)
            house = House(config, caller, worker)
            until(lambda: _is_registered(house), "the schema is registered")
            house.configure(filter_unregistered=False)
            until(lambda: not house.hides(), "the engine's value is in force")
            assert len(house.findings()) == 1
        monkeypatch.setattr("iii_directory.engine.builtins.provide_configuration", lambda *_: None)
        with EngineThread(port=port) as second, client(second.url) as caller:
            until(house.hides, "the file's value is in force")
            assert worker.wait_ready(WAIT)
            assert House(config, caller, worker).findings() == []
    finally:
        worker.stop()


def test_what_opens_this_machine_cannot_be_configured_on_the_engine(house: House) -> None:
    until(lambda: _is_registered(house), "the schema is registered")

    closed = ("allow_writing", "allow_file_repos", "skills_folder", "section_guard", "repo_mirrors")
    for key in (*closed, "registry_url"):
        refusal = house.failure("configuration::set", id="iii-directory", value={key: True})
        assert "SCHEMA" in refusal.code.upper(), key
    assert not house.worker.settings.allow_writing


def test_no_worker_moves_the_registry_even_after_it_replaced_the_schema(house: House) -> None:
    house.write("registry_url: http://127.0.0.1:1\n")
    until(lambda: house.worker.settings.registry_url == "http://127.0.0.1:1", "the file was read")
    until(lambda: _is_registered(house), "the schema is registered")

    house.loosen_schema()
    house.configure(registry_url="http://127.0.0.1:2", state_timeout_ms=7000)

    until(lambda: house.worker.settings.state_timeout_ms == 7000, "the engine was asked")
    assert house.worker.settings.registry_url == "http://127.0.0.1:1"
    assert house.named("registry_url") == [
        ("configuration iii-directory", "'registry_url' can be set in config.yaml alone")
    ]


@pytest.mark.parametrize("key", ["state_timeout_ms", "download_timeout_ms"])
def test_a_deadline_so_short_that_everything_fails_is_refused(house: House, key: str) -> None:
    until(lambda: _is_registered(house), "the schema is registered")
    usual = getattr(house.worker.settings, key)

    assert "SCHEMA" in house.failure("configuration::set", id="iii-directory", value={key: 0}).code.upper()
    house.loosen_schema()
    house.configure(**{key: 999})

    until(lambda: len(house.named(key)) == 1, "the value is a finding")
    assert getattr(house.worker.settings, key) == usual
    house.write(f"{key}: 0\n")
    until(lambda: len(house.named(key)) == 2, "a value of the file is a finding too")


def test_a_setting_that_the_engine_overrides_is_a_finding_until_it_is_taken_back(house: House) -> None:
    until(lambda: _is_registered(house), "the schema is registered")

    house.configure(filter_unregistered=False, state_timeout_ms=10_000)

    until(lambda: not house.hides(), "the engine's value is in force")
    (said,) = house.findings()
    assert said.startswith("'filter_unregistered' is false by the engine's configuration")
    assert said.endswith("config.yaml and the defaults say true")
    house.write("filter_unregistered: false\n")
    until(lambda: house.findings() == [], "the file says the same now")


def test_a_worker_rereads_its_settings_when_it_is_told_to(house: House) -> None:
    house.write("show_paths: true\n")

    house.worker.reread_settings()

    assert house.worker.settings.show_paths


def _is_registered(house: House) -> bool:
    rows = house.call("configuration::list")["configurations"]
    return any(row["id"] == "iii-directory" and row["schema"] for row in rows)
