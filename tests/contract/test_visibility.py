"""§3: which namespaces of the folder are shown."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from tests.contract.places import embedded_only
from tests.contract.requirements import requirement
from tests.support.reader import OtherWorker, Reader, until

from iii_directory.disk.install_record import content_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.engine import EngineThread


def record(directory: Reader, **namespaces: str) -> None:
    """A lock file that says how each namespace came here, with nothing edited since."""
    entries: dict[str, Any] = {}
    for name, by in namespaces.items():
        namespace = name.replace("_", "-")
        directory.skills.document(f"{namespace}/index.md", namespace)
        entries[namespace] = {
            "source": {"kind": "registry", "worker": namespace, "tag": "latest"},
            "resolved": "1.0.0",
            "installed_at": "2026-01-01T00:00:00Z",
            "by": by,
            "files": {
                "index.md": content_hash((directory.skills.root / namespace / "index.md").read_bytes())
            },
        }
    directory.skills.write("skills.lock.json", json.dumps({"version": 1, "namespaces": entries}))


@embedded_only
@requirement("visibility.installed", "visibility.always", "visibility.told")
def test_what_the_worker_fetched_by_itself_is_shown_while_its_worker_is_installed(
    start: Callable[..., Reader], engine_url: str
) -> None:
    with OtherWorker(engine_url, "mailer"):
        directory = start()
        record(directory, mailer="auto", absent="auto", iii="auto")

        assert directory.ids() == ["iii", "mailer"]
        assert "D110" in directory.miss("absent")
        assert "iii://absent" not in directory.read_uri("iii://skills")["text"]
        (result,) = directory.call("directory::search", query="absent", kinds=["skill"])["results"]
        assert "absent" not in [hit["id"] for section in result["sections"] for hit in section["hits"]]
        (finding,) = directory.findings("absent")
        assert finding["kind"] == "hidden"
        assert finding["fix"]
        assert directory.get("iii-directory")["title"] == "iii-directory"


@embedded_only
@requirement("visibility.installed")
def test_what_a_worker_brought_is_hidden_when_the_engine_told_that_it_left(
    start: Callable[..., Reader], engine_url: str
) -> None:
    directory = start()
    record(directory, mailer="auto")
    with OtherWorker(engine_url, "mailer"):
        until(lambda: directory.ids() == ["mailer"], "what mailer brought is shown")

    until(lambda: directory.ids() == [], "what mailer brought is hidden")


@embedded_only
@requirement("visibility.installed")
def test_a_worker_that_comes_later_shows_its_documents(start: Callable[..., Reader], engine_url: str) -> None:
    directory = start(registry_cache_ttl_ms=0)
    record(directory, mailer="auto")
    assert directory.ids() == []

    with OtherWorker(engine_url, "mailer"):
        until(lambda: directory.ids() == ["mailer"], "the documents of mailer are shown")


@embedded_only
@requirement("visibility.asked-for")
def test_what_was_asked_for_or_written_by_hand_is_shown(directory: Reader) -> None:
    record(directory, called="call", mixed="auto", absent="auto")
    directory.skills.document("handmade/index.md", "Handmade")
    directory.skills.document("mixed/notes.md", "Notes")

    assert directory.ids() == ["called", "handmade", "mixed", "mixed/notes"]


@requirement("visibility.off")
def test_without_the_filter_nothing_is_hidden(start: Callable[..., Reader]) -> None:
    directory = start(filter_unregistered=False)
    record(directory, absent="auto")

    assert directory.ids() == ["absent"]
    assert directory.findings() == []


@requirement("visibility.unreachable")
def test_nothing_is_hidden_when_the_engine_cannot_say_who_is_installed(
    engine: EngineThread, tmp_path: Path
) -> None:
    async def forget_worker_list() -> None:
        engine.server._router.engine_state.functions.pop(("default", "worker::list"))

    asyncio.run_coroutine_threadsafe(forget_worker_list(), engine.loop).result(10)
    with Reader(engine.url, tmp_path) as directory:
        record(directory, absent="auto")

        assert directory.ids() == ["absent"]
