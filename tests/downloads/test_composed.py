"""Engines from 0.23 on, where Compose says what is installed: what it adds shows, and is fetched once."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.downloads.stage import V1, event
from tests.registered.stage import until
from tests.support.commands import run
from tests.support.engine import WAIT, EngineThread, RawClient

from iii_directory.install.service import Installer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.downloads.stage import Depot

    from iii_directory.install.bundle import Bundle
    from iii_directory.install.reports import Installation


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    """In the words of 0.23; the workers that are connected stand for the containers."""
    with EngineThread(dialect="0.23") as running:
        yield running


def test_the_diagnostics_and_doctor_say_who_told_what_is_installed(start: Callable[..., Depot]) -> None:
    depot = start()
    assert depot.call("directory::diagnostics")["installed_by"] == "compose::status"
    done = run("doctor", "--url", depot.url, "--config", str(depot.write_config()))
    assert "which workers are installed is told by compose::status" in done.stderr


def test_a_worker_that_compose_adds_is_shown_with_the_next_read_after_the_news(
    start: Callable[..., Depot],
) -> None:
    depot = start(auto_download=True)
    depot.world.publish("db", "1.0.0", V1)
    with depot.visitor("db"):
        until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")
    until(lambda: depot.ids() == [], "they are hidden with their worker")
    with depot.visitor("db"):
        until(lambda: depot.ids() == ["db", "db/get"], "they are shown again")


def test_a_worker_that_compose_adds_is_fetched_once_and_told_of_once_though_ten_events_come(
    start: Callable[..., Depot], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go, fetched = threading.Event(), threading.Event(), list[str]()
    really = Installer._install

    def slowly(self: Installer, bundle: Bundle, *rest: Any, **options: Any) -> Installation:
        fetched.append(bundle.namespace)
        began.set()
        assert go.wait(WAIT)
        return really(self, bundle, *rest, **options)

    monkeypatch.setattr(Installer, "_install", slowly)
    depot = start(auto_download=True)
    for name in ("db", "last"):
        depot.world.publish(name, "1.0.0", V1)
    listeners = depot.listeners()
    with ExitStack() as opened:
        opened.enter_context(depot.visitor("db"))
        assert began.wait(WAIT)
        for number in range(10):
            opened.enter_context(RawClient(depot.url, name=f"passer-by-{number}"))
        go.set()
        until(lambda: depot.ids() == ["db", "db/get"], "the skills of db are there")
        depot.settle()
        depot.call("skills::download", worker="last")
    assert fetched == ["db", "last"]
    for listener in listeners.values():
        assert listener.take(2) == [event("db"), event("last")]
