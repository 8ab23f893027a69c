"""Which workers are installed, asked of whoever knows on this engine; the catalogue shows their namespaces.

Up to engine 0.22 that is ``worker::list``; from 0.23 on it is the daemon of Compose, in the namespace that
the environment names, in ours, or, for a daemon that has this worker among its containers and does not tell
it where it answers, in the one it is connected in. The first that answers is asked from then on, until the
connection is another one. Who is connected counts as installed, too. Where nobody can say, nothing is hidden.

A container's key is no package. Which package it is, the project's file says: the one that the environment
names, else the one that the daemon does. Where that cannot be read here, or does not say it, the key is the
name of a worker to be shown and no more: nothing is fetched for it, and nothing is hidden, because its
documents may have any name.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.bus.seam import CallError
from iii_directory.config import read_document
from iii_directory.limits import MAX_REMEMBERED_WORKERS, NAME_SECONDS
from iii_directory.shapes import is_list, object_of, rows_of, text_of
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iii_directory.bus.seam import Bus, WorkerBus
    from iii_directory.shapes import Json

INSTALLED_TIMEOUT_MS: Final = 5_000
COMPOSE: Final = "compose::status"
LIST: Final = "worker::list"
CONNECTED: Final = "engine::workers::list"
_DAEMON: Final = "compose"
# Workers of the engine that lost their prefix with 0.23: a bundle of either name belongs to both.
_RENAMED: Final = {name: f"iii-{name}" for name in ("http", "cron", "queue", "state", "pubsub")}


class Way(NamedTuple):
    """One place to ask for the installed workers."""

    function_id: str
    namespace: str
    payload: Mapping[str, str]
    container: str | None = None
    """What must be among the containers for the answer to count, where many daemons could be meant."""


class Told(NamedTuple):
    """What one answer says is installed."""

    packages: frozenset[str]
    others: frozenset[str] = frozenset()
    """Containers of which nobody says what package they are."""


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
        self._environment = environment
        self._compose_file = environment.get("III_COMPOSE_FILE")
        self._way: Way | None = None
        self._asked_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._worth_waiting = True
        self.names: frozenset[str] | None = None
        """Whose namespaces are shown, in every spelling; None when the engine cannot say."""
        self.are_all = False
        """Whether these are all, so that what is of nobody among them may be hidden."""
        self.reported: frozenset[str] = frozenset()
        """The packages that a daemon reports as installed; who merely connects is not among them."""
        self.left: frozenset[str] = frozenset()
        """Workers that were connected when the engine was asked before, and are no more."""
        self._met: dict[str, None] = {}
        self.connected: Mapping[str, str | None] | None = None
        """The names of the connected workers by their ids; None when the engine does not tell."""
        self._naming = asyncio.Lock()
        self._changed = asyncio.Event()
        """Set when workers came, went or changed their names, and replaced by a new one."""
        self._unlisted: set[str] = set()
        """Ids of callers that the engine did not list when it was last asked."""

    @property
    def asked_of(self) -> str | None:
        """The function that told all that is installed, or None when nobody can say."""
        return self._way.function_id if self._way is not None and self.are_all else None

    async def known(self) -> frozenset[str] | None:
        asking = self._task is not None and not self._task.done()
        if self._asked_at is None or (not asking and self._clock() - self._asked_at > self.ttl_seconds):
            self._worth_waiting = self._asked_at is None
            self._asked_at = self._clock()
            self._task = asyncio.get_running_loop().create_task(self._ask())
        if self._worth_waiting and self._task is not None and not self._task.done():
            await asyncio.shield(self._task)
        return self.names

    async def name_of(self, worker_id: str) -> str | None:
        """The name of a connected worker; None where the engine does not list the id, or lists no name.

        SDKs may send the name of a worker just after its first call, and engines do not list a worker before
        that, so a caller that is not listed is looked up again when the engine reports a change of workers.
        """
        name = self._listed_name(worker_id)
        if name is None and worker_id not in self._unlisted:
            with suppress(TimeoutError):
                async with asyncio.timeout(NAME_SECONDS):
                    while name is None:
                        changed = self._changed
                        name = await self._asked_name(worker_id)
                        if self.connected is None:
                            break
                        if name is None:
                            await changed.wait()
            if name is None and len(self._unlisted) < MAX_REMEMBERED_WORKERS:
                self._unlisted.add(worker_id)
        return name

    async def _asked_name(self, worker_id: str) -> str | None:
        # One at a time, so that many newcomers at once are found by one question.
        async with self._naming:
            name = self._listed_name(worker_id)
            if name is None:
                self.forget()
                await self.known()
                while self._task is not None and not self._task.done():
                    # Another question replaced ours, and only the answer to the last one is taken.
                    await asyncio.shield(self._task)
                name = self._listed_name(worker_id)
        return name

    def _listed_name(self, worker_id: str) -> str | None:
        return None if self.connected is None else self.connected.get(worker_id)

    def workers_changed(self) -> None:
        """Workers came, went or changed their names: the next reader asks anew."""
        self._unlisted.clear()
        self._changed.set()
        self._changed = asyncio.Event()
        self.forget()

    def forget(self) -> None:
        """The next reader asks anew."""
        self._asked_at = None

    def forget_way(self) -> None:
        """The engine is another one: whoever answered before may be gone."""
        self._way = None
        self.forget()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _ask(self) -> None:
        rows = await _joined(self._bus)
        joined = _homes(rows)
        connected = frozenset(joined)
        if connected:
            # An engine that does not tell has not lost everybody; and we are there ourselves.
            self._meet(connected)
        if self._task is asyncio.current_task():
            names = {text_of(row.get("id")): text_of(row.get("name")) for row in rows}
            by_id = {worker_id: name for worker_id, name in names.items() if worker_id} or None
            if by_id != self.connected:
                # One object for as long as nothing changes, which readers compare quickly.
                self.connected = by_id
        for way in self._ways_past(joined) if self._way is None else (self._way,):
            told = await self._asked(way)
            if told is not None:
                self._learned(way, told, every_spelling(told.packages | told.others | connected))
                return
        self._learned(None, Told(frozenset()), None)

    def _ways_past(self, joined: Mapping[str, frozenset[str]]) -> tuple[Way, ...]:
        daemons = sorted(joined.get(_DAEMON, ()))
        return ways(self._bus.namespace, self._environment, self._bus.name, daemons)

    def _meet(self, connected: frozenset[str]) -> None:
        self._met |= dict.fromkeys(connected)
        while len(self._met) > MAX_REMEMBERED_WORKERS:
            del self._met[next(iter(self._met))]
        self.left = frozenset(self._met.keys() - connected)

    def _learned(self, way: Way | None, told: Told, names: frozenset[str] | None) -> None:
        """Take an answer, unless a later question is on its way: what this one says may be older news."""
        if self._task is asyncio.current_task():
            self._way, self.reported, self.names = way, told.packages, names
            self.are_all = way is not None and not told.others

    async def _asked(self, way: Way) -> Told | None:
        try:
            answer = await self._bus.call(
                way.function_id, way.payload, timeout_ms=INSTALLED_TIMEOUT_MS, namespace=way.namespace
            )
        except CallError:
            return None
        if way.function_id == LIST:
            names = worker_names(answer)
            return None if names is None else Told(names)
        if way.container is not None and way.container not in (containers_of(answer) or ()):
            return None
        return composed(answer, await asyncio.to_thread(self._declared, answer))

    def _declared(self, answer: object) -> Json:
        """The containers as the project's file declares them; nothing where there is none to be read."""
        path = Path(self._compose_file or text_of(object_of(answer).get("file")) or "")
        # Where the daemon is, a relative path means something else.
        if (not self._compose_file and not path.is_absolute()) or not _is_regular(path):
            return {}
        return object_of(read_document(path)[0].get("containers"))


def ways(
    own_namespace: str, environment: Mapping[str, str], own_name: str = "", daemons: Sequence[str] = ()
) -> tuple[Way, ...]:
    """Where to ask, in order; ``daemons`` are namespaces of daemons that may have started this worker."""
    file = environment.get("III_COMPOSE_FILE")
    payload = {"file": file} if file else {}
    told = environment.get("III_COMPOSE_NAMESPACE")
    homes = dict.fromkeys(home for home in (told, own_namespace) if home)
    found = () if told else [home for home in daemons if home not in homes]
    return (
        *(Way(COMPOSE, home, payload) for home in homes),
        *(Way(COMPOSE, home, payload, own_name) for home in found),
        Way(LIST, DEFAULT_NAMESPACE, {}),
    )


def worker_names(answer: object) -> frozenset[str] | None:
    """The names in an answer of ``worker::list``, or None if it has no such shape."""
    return _names_in(answer, "workers", "name")


def composed(answer: object, declared: Json) -> Told | None:
    """What an answer of ``compose::status`` says, by what the file declares.

    Daemons say of a container no more than its key; one without a file, as the embedded engine's is, says in
    its row what a file would.
    """
    containers = containers_of(answer)
    if containers is None:
        return None
    rows = {name: row for row in rows_of(answer, "containers") if (name := text_of(row.get("container")))}
    specs = {name: object_of(declared.get(name)) or rows.get(name, {}) for name in containers}
    packages = {name: _package(name, spec.get("worker")) for name, spec in specs.items()}
    unknown = frozenset(name for name, package in packages.items() if package is None)
    return Told(frozenset(package for package in packages.values() if package is not None), unknown)


def containers_of(answer: object) -> frozenset[str] | None:
    """The keys of the containers in an answer of ``compose::status``, or None if it has no such shape."""
    return _names_in(answer, "containers", "container")


def every_spelling(names: frozenset[str]) -> frozenset[str]:
    """The names, and the other name of those that were renamed."""
    prefixed = {old for new, old in _RENAMED.items() if new in names}
    bare = {new for new, old in _RENAMED.items() if old in names}
    return names | prefixed | bare


def _package(container: str, worker: object) -> str | None:
    """``package://host/name`` and ``name@version`` name a package; a worker of a path is its container.

    What is neither, or has a variable that Compose alone can fill in, names nothing.
    """
    spec = text_of(worker) or ""
    if spec.startswith("path://"):
        return container
    name = spec.rsplit("/", 1)[-1].partition("@")[0]
    return name if name and set(name).isdisjoint("${}") else None


def _is_regular(path: Path) -> bool:
    """Whether it is a file to be read; what another worker names may as well be a pipe that never ends."""
    try:
        return path.is_file()
    except OSError:
        return False


def _names_in(answer: object, rows: str, key: str) -> frozenset[str] | None:
    if not is_list(object_of(answer).get(rows)):
        return None
    return frozenset(name for row in rows_of(answer, rows) if (name := text_of(row.get(key))) is not None)


async def _joined(bus: Bus) -> list[Json]:
    """The rows of the workers that are connected; none where the engine does not list them for us."""
    try:
        answer = await bus.call(CONNECTED, {}, timeout_ms=INSTALLED_TIMEOUT_MS, namespace=DEFAULT_NAMESPACE)
    except CallError:
        return []
    # A part of the engine is not a worker that connected.
    return [row for row in rows_of(answer, "workers") if row.get("runtime") != "engine"]


def _homes(rows: Sequence[Json]) -> dict[str, frozenset[str]]:
    """The namespaces of the connected workers by their names."""
    homes: dict[str, set[str]] = {}
    for row in rows:
        if (name := text_of(row.get("name"))) is not None:
            homes.setdefault(name, set()).add(text_of(row.get("namespace")) or DEFAULT_NAMESPACE)
    return {name: frozenset(spaces) for name, spaces in homes.items()}
