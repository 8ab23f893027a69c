"""Which workers are installed, asked of whoever knows on this engine; the catalogue shows their namespaces.

Up to engine 0.22 that is ``worker::list``; from 0.23 on it is the daemon of Compose, in the namespace it was
started with or in ours. The first that answers is asked from then on, until the connection is another one.
Who is connected counts as installed, too. Where nobody can say, nothing is hidden.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.bus.seam import CallError
from iii_directory.config import read_document
from iii_directory.engine.protocol import DEFAULT_NAMESPACE
from iii_directory.limits import MAX_REMEMBERED_WORKERS
from iii_directory.shapes import is_list, object_of, rows_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.bus.seam import Bus, WorkerBus
    from iii_directory.shapes import Json

INSTALLED_TIMEOUT_MS: Final = 5_000
COMPOSE: Final = "compose::status"
LIST: Final = "worker::list"
CONNECTED: Final = "engine::workers::list"
# Workers of the engine that lost their prefix with 0.23: a bundle of either name belongs to both.
_RENAMED: Final = {name: f"iii-{name}" for name in ("http", "cron", "queue", "state", "pubsub")}


class Way(NamedTuple):
    """One place to ask for the installed workers."""

    function_id: str
    namespace: str
    payload: Mapping[str, str]


class InstalledWorkers:
    """The names of the installed workers, asked of the engine now and then.

    The first answer, and the first after `forget`, are waited for; later ones are fetched behind a reader's
    back when they grow old.
    """

    def __init__(
        self,
        bus: WorkerBus,
        ttl_seconds: float,
        clock: Callable[[], float],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._bus = bus
        self.ttl_seconds = ttl_seconds
        self._clock = clock
        self._ways = ways(bus.namespace, environment)
        self._compose_file = environment.get("III_COMPOSE_FILE")
        self._way: Way | None = None
        self._asked_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._worth_waiting = True
        self.names: frozenset[str] | None = None
        """Whose namespaces are shown, in every spelling; None when the engine cannot say."""
        self.reported: frozenset[str] = frozenset()
        """The packages that a daemon reports as installed; who merely connects is not among them."""
        self.left: frozenset[str] = frozenset()
        """Workers that were connected when the engine was asked before, and are no more."""
        self._met: dict[str, None] = {}

    @property
    def asked_of(self) -> str | None:
        """The function that answered, or None when nobody can say."""
        return None if self._way is None else self._way.function_id

    async def known(self) -> frozenset[str] | None:
        asking = self._task is not None and not self._task.done()
        if self._asked_at is None or (not asking and self._clock() - self._asked_at > self.ttl_seconds):
            self._worth_waiting = self._asked_at is None
            self._asked_at = self._clock()
            self._task = asyncio.get_running_loop().create_task(self._ask())
        if self._worth_waiting and self._task is not None and not self._task.done():
            await asyncio.shield(self._task)
        return self.names

    def forget(self) -> None:
        """The next reader asks anew: workers came or went."""
        self._asked_at = None

    def forget_way(self) -> None:
        """The engine is another one: whoever answered before may be gone."""
        self._way = None
        self.forget()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _ask(self) -> None:
        for way in self._ways if self._way is None else (self._way,):
            reported = await self._asked(way)
            if reported is not None:
                connected = await _connected(self._bus)
                self._meet(connected)
                self._learned(way, reported, every_spelling(reported | connected))
                return
        self._learned(None, frozenset(), None)

    def _meet(self, connected: frozenset[str]) -> None:
        self._met |= dict.fromkeys(connected)
        while len(self._met) > MAX_REMEMBERED_WORKERS:
            del self._met[next(iter(self._met))]
        self.left = frozenset(self._met.keys() - connected)

    def _learned(self, way: Way | None, reported: frozenset[str], names: frozenset[str] | None) -> None:
        """Take an answer, unless a later question is on its way: what this one says may be older news."""
        if self._task is asyncio.current_task():
            self._way, self.reported, self.names = way, reported, names

    async def _asked(self, way: Way) -> frozenset[str] | None:
        try:
            answer = await self._bus.call(
                way.function_id, way.payload, timeout_ms=INSTALLED_TIMEOUT_MS, namespace=way.namespace
            )
        except CallError:
            return None
        if way.function_id == LIST:
            return worker_names(answer)
        return composed_names(answer, await asyncio.to_thread(self._declared))

    def _declared(self) -> Json:
        """The containers as the project's file declares them; nothing where there is none to be read."""
        if self._compose_file is None:
            return {}
        document, _ = read_document(Path(self._compose_file))
        return object_of(document.get("containers"))


def ways(own_namespace: str, environment: Mapping[str, str]) -> tuple[Way, ...]:
    """Where to ask, in order. Pure but for what it is given."""
    file = environment.get("III_COMPOSE_FILE")
    payload = {"file": file} if file else {}
    daemon = environment.get("III_COMPOSE_NAMESPACE")
    homes = dict.fromkeys(home for home in (daemon, own_namespace) if home)
    return (*(Way(COMPOSE, home, payload) for home in homes), Way(LIST, DEFAULT_NAMESPACE, {}))


def worker_names(answer: object) -> frozenset[str] | None:
    """The names in an answer of ``worker::list``, or None if it has no such shape."""
    return _names_in(answer, "workers", "name")


def composed_names(answer: object, declared: Json) -> frozenset[str] | None:
    """The packages behind the containers of an answer of ``compose::status``, by what the file declares."""
    containers = _names_in(answer, "containers", "container")
    if containers is None:
        return None
    return frozenset(_package(name, object_of(declared.get(name)).get("worker")) for name in containers)


def every_spelling(names: frozenset[str]) -> frozenset[str]:
    """The names, and the other name of those that were renamed."""
    prefixed = {old for new, old in _RENAMED.items() if new in names}
    bare = {new for new, old in _RENAMED.items() if old in names}
    return names | prefixed | bare


def _package(container: str, worker: object) -> str:
    """``package://host/name`` and ``name@version`` name a package; a worker of a path is its container."""
    spec = text_of(worker) or ""
    if not spec or spec.startswith("path://"):
        return container
    return spec.rsplit("/", 1)[-1].partition("@")[0] or container


def _names_in(answer: object, rows: str, key: str) -> frozenset[str] | None:
    if not is_list(object_of(answer).get(rows)):
        return None
    return frozenset(name for row in rows_of(answer, rows) if (name := text_of(row.get(key))) is not None)


async def _connected(bus: Bus) -> frozenset[str]:
    """The workers that are connected; nobody where the engine does not tell us."""
    try:
        answer = await bus.call(CONNECTED, {}, timeout_ms=INSTALLED_TIMEOUT_MS, namespace=DEFAULT_NAMESPACE)
    except CallError:
        return frozenset()
    # What is part of the engine is nobody's worker.
    joined = [row for row in rows_of(answer, "workers") if row.get("runtime") != "engine"]
    return frozenset(name for row in joined if (name := text_of(row.get("name"))) is not None)
