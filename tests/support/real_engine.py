"""Engines that a test starts and kills itself: the embedded one, and a real one where its program is named.

A real engine gets a free port and a folder of the test's own, so it shares nothing with any other; two of
them share their state, and their topics if the test wants, through a Redis.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest
from tests.support.commands import free_port, running_program
from tests.support.engine import EngineThread, RawClient, real_urls
from tests.support.reader import until

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.support.commands import Running

REAL_PROGRAM: Final = os.environ.get("III_ENGINE_PROGRAM")
"""The program of a real iii engine, for tests that start and kill one."""
_NEVER_MS: Final = 3_600_000
QUIET: Final = {
    "III_TELEMETRY_ENABLED": "false",
    "IIIWORKER_DISABLE_BUILTIN_DAEMONS": "1",
    "OTEL_ENABLED": "false",
}
"""The environment in which the tools of a real engine send no telemetry."""


def program_or_skip() -> str:
    """The real engine's program; without one the test is skipped, and says why."""
    if REAL_PROGRAM is None:
        pytest.skip("III_ENGINE_PROGRAM names no program of a real engine")
    return REAL_PROGRAM


class MortalEngine(Protocol):
    """An engine that can be killed, and comes back at its address without what it had only in memory."""

    @property
    def url(self) -> str: ...

    @property
    def writes(self) -> int:
        """How many it takes well within the minute after which what is missing is believed to be deleted."""
        ...

    def start(self) -> None: ...

    def kill(self) -> None: ...


class EmbeddedMortal:
    """The embedded engine, with all its state in memory."""

    writes = 1000

    def __init__(self) -> None:
        self._port = free_port()
        self._thread: EngineThread | None = None
        self.url = f"ws://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._thread = EngineThread(port=self._port).__enter__()

    def kill(self) -> None:
        running, self._thread = self._thread, None
        if running is not None:
            running.__exit__(None, None, None)


class RealMortal:
    """A real engine in a folder; it does not come to write its state down before it is killed.

    With a Redis the state is there, and topics too if they are ``shared``.
    """

    writes = 100

    def __init__(self, folder: Path, *, redis: str | None = None, shared_topics: bool = False) -> None:
        self._program = program_or_skip()
        self._folder = folder
        self._port = free_port()
        self._running: AbstractContextManager[Running] | None = None
        self.url = f"ws://127.0.0.1:{self._port}"
        real_urls.add(self.url)
        folder.mkdir(parents=True, exist_ok=True)
        kept: dict[str, Any] = {
            "store_method": "file_based",
            "file_path": "state",
            "save_interval_ms": _NEVER_MS,
        }
        shared: dict[str, Any] = {"name": "redis", "config": {"redis_url": redis}}
        state: dict[str, Any] = shared if redis else {"name": "kv", "config": kept}
        topics: dict[str, Any] = shared if redis and shared_topics else {"name": "local"}
        settings: dict[str, dict[str, Any]] = {
            "iii-worker-manager": {"host": "127.0.0.1", "port": self._port},
            "iii-telemetry": {"enabled": False},
            "configuration": {"adapter": {"name": "fs", "config": {"directory": "configuration"}}},
            "iii-observability": {"enabled": False, "logs_enabled": False, "metrics_enabled": False},
            "iii-state": {"adapter": state},
            "iii-pubsub": {"adapter": topics},
        }
        rows = [{"name": name, "config": config} for name, config in settings.items()]
        # JSON is YAML too.
        (folder / "config.yaml").write_text(json.dumps({"workers": rows}))

    def start(self) -> None:
        words = (self._program, "--no-update-check", "--config", "config.yaml")
        self._running = running_program(*words, cwd=self._folder, HOME=str(self._folder), **QUIET)
        output = self._running.__enter__()
        until(self._answers, f"the engine answers\n{output.output}")

    def kill(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.__exit__(None, None, None)

    def _answers(self) -> bool:
        """Whether it has a state and topics already, which it takes in after it began to listen."""
        try:
            with RawClient(self.url) as client:
                rows = client.result("engine::functions::list")["functions"]
        except OSError:
            return False
        return {"state::list", "publish"} <= {row["function_id"] for row in rows}


def redis_server(folder: Path) -> tuple[AbstractContextManager[Running], str]:
    """A Redis that keeps nothing, to be entered, and its address; without the program the test is skipped."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server on this machine")
    port = str(free_port())
    words = (program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
    return running_program(*words, cwd=folder), f"redis://127.0.0.1:{port}"
