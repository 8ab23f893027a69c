"""Find out which workers are installed, to show their documents, hide others, and download missing ones.

Up to engine 0.22 ``worker::list`` says so; from 0.23 on the daemon of Compose does. Its namespace is the one
that the environment names, ours, or the one of a daemon that has this worker among its containers. The first
source that answers is asked until the next connect. Connected workers count as installed, too. If no source
answers, nothing is hidden.

The key of a container does not name its package. The project's file does: the file that the environment
names, else the one that the daemon names. If that file cannot be read or does not name the package, the key
is only shown: nothing is downloaded for it, and nothing is hidden, because its documents may have any name.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory import limits
from iii_directory.bus.seam import CallError, is_embedded
from iii_directory.bus.tasks import Tasks
from iii_directory.catalog.catalogue import InstalledSource
from iii_directory.config import read_document
from iii_directory.documents.ids import RESERVED_NAMESPACES
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_REMEMBERED_WORKERS, NAME_SECONDS
from iii_directory.registry.registry_messages import is_worker
from iii_directory.shapes import is_list, object_of, rows_of, text_of
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from iii_directory.bus.seam import Bus, Payload, WorkerBus
    from iii_directory.shapes import Json
    from iii_directory.worker.change_events import InstallEvents
    from iii_directory.worker.services import Services

INSTALLED_TIMEOUT_MS: Final = 5_000
COMPOSE: Final = "compose::status"
LIST: Final = "worker::list"
CONNECTED: Final = "engine::workers::list"
_DAEMON: Final = "compose"
# Workers of the engine that lost their prefix with 0.23: a bundle of either name belongs to both.
_RENAMED: Final = {name: f"iii-{name}" for name in ("http", "cron", "queue", "state", "pubsub")}


class InstalledQuery(NamedTuple):
    """One place to ask for the installed workers."""

    function_id: str
    namespace: str
    payload: Mapping[str, str]
    container: str | None = None
    """A container that the answer must list to count, if several daemons could be meant."""


class InstalledAnswer(NamedTuple):
    """What one answer says is installed."""

    packages: frozenset[str]
    others: frozenset[str] = frozenset()
    """Containers whose package is not known."""


class InstalledWorkers(InstalledSource):
    """Knows the names of the installed workers, and asks the engine again when they are outdated.

    Readers wait for the first answer, and for the first after `forget`; later answers are fetched in the
    background when they are older than ``ttl_seconds``.
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
        self._query: InstalledQuery | None = None
        self._asked_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._worth_waiting = True
        self.is_current = False
        self._expiry: asyncio.TimerHandle | None = None
        self.reported: frozenset[str] = frozenset()
        """The packages that a daemon reports as installed, without workers that are only connected."""
        self._met: dict[str, None] = {}
        self._naming = asyncio.Lock()
        self._changed = asyncio.Event()
        """Set when workers came, went or changed their names, and replaced by a new one."""
        self._unlisted: set[str] = set()
        """Ids of callers that the engine did not list when it was last asked."""

    @property
    def asked_of(self) -> str | None:
        """Return the function that listed everything installed; None if no function can."""
        return self._query.function_id if self._query is not None and self.are_all else None

    async def known(self) -> frozenset[str] | None:
        asking = self._task is not None and not self._task.done()
        if self._asked_at is None or (not asking and self._clock() - self._asked_at > self.ttl_seconds):
            self._worth_waiting = self._asked_at is None
            self._asked_at = self._clock()
            self._task = asyncio.get_running_loop().create_task(self._ask())
        if self._worth_waiting and self._task is not None and not self._task.done():
            await asyncio.shield(self._task)
        self._keep_current()
        return self.names

    def _keep_current(self) -> None:
        """Let readers use the last answer without asking this object, until it is out of date."""
        # While the answer was awaited, `forget` may have been called.
        if self._asked_at is None or self._task is None or not self._task.done():
            return
        self.is_current = True
        if self._expiry is not None:
            self._expiry.cancel()
        seconds = self.ttl_seconds - (self._clock() - self._asked_at)
        self._expiry = asyncio.get_running_loop().call_later(max(seconds, 0), self._expire)

    def _expire(self) -> None:
        self.is_current = False

    async def name_of(self, worker_id: str) -> str | None:
        """Return the name of a connected worker; None if the engine does not list the id, or lists no name.

        SDKs may send the name of a worker just after its first call, and engines do not list a worker before
        that, so a caller that is not listed is looked up again when the engine reports a change of workers.
        """
        name = (self.connected or {}).get(worker_id)
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
            if (self.connected or {}).get(worker_id) is None:
                self.forget()
                await self.known()
                while self._task is not None and not self._task.done():
                    # Another question replaced ours, and only the answer to the last one is taken.
                    await asyncio.shield(self._task)
            return (self.connected or {}).get(worker_id)

    def workers_changed(self) -> None:
        """Note that workers came, went or changed their names: the next reader asks again."""
        self._unlisted.clear()
        self._changed.set()
        self._changed = asyncio.Event()
        self.forget()

    def forget(self) -> None:
        """Let the next reader ask again."""
        self._asked_at = None
        self.is_current = False

    def forget_source(self) -> None:
        """Note that the engine may be another one: the function that answered before may be gone."""
        self._query = None
        self.forget()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._expiry is not None:
            self._expiry.cancel()

    async def _ask(self) -> None:
        rows = await _joined(self._bus)
        joined: dict[str, set[str]] = {}
        """The namespaces of the connected workers by their names."""
        for row in rows:
            if (name := text_of(row.get("name"))) is not None:
                joined.setdefault(name, set()).add(text_of(row.get("namespace")) or DEFAULT_NAMESPACE)
        connected = frozenset(joined)
        if connected:
            # An empty list means that the engine does not tell: this worker itself is connected.
            self._met |= dict.fromkeys(connected)
            while len(self._met) > MAX_REMEMBERED_WORKERS:
                del self._met[next(iter(self._met))]
            self.left = frozenset(self._met.keys() - connected)
        if self._task is asyncio.current_task():
            names = {text_of(row.get("id")): text_of(row.get("name")) for row in rows}
            by_id = {worker_id: name for worker_id, name in names.items() if worker_id} or None
            if by_id != self.connected:
                # One object for as long as nothing changes, which readers compare quickly.
                self.connected = by_id
        daemons = sorted(joined.get(_DAEMON, ()))
        all_queries = queries(self._bus.namespace, self._environment, self._bus.name, daemons)
        found, told, names = None, InstalledAnswer(frozenset()), None
        for query in all_queries if self._query is None else (self._query,):
            if (answer := await self._asked(query)) is not None:
                found, told = query, answer
                names = every_spelling(told.packages | told.others | connected)
                break
        # While a later question is on its way, this answer may be outdated.
        if self._task is asyncio.current_task():
            self._query, self.reported, self.names = found, told.packages, names
            self.are_all = found is not None and not told.others

    async def _asked(self, query: InstalledQuery) -> InstalledAnswer | None:
        try:
            answer = await self._bus.call(
                query.function_id, query.payload, timeout_ms=INSTALLED_TIMEOUT_MS, namespace=query.namespace
            )
        except CallError:
            return None
        if query.function_id == LIST:
            names = names_in(answer, "workers", "name")
            return None if names is None else InstalledAnswer(names)
        containers = names_in(answer, "containers", "container") or ()
        if query.container is not None and query.container not in containers:
            return None
        return composed(answer, await asyncio.to_thread(self._declared, answer))

    def _declared(self, answer: object) -> Json:
        """Return the containers as the project's file declares them; empty if it cannot be read."""
        path = Path(self._compose_file or text_of(object_of(answer).get("file")) or "")
        # The daemon may run in another folder, where a relative path means something else.
        if not self._compose_file and not path.is_absolute():
            return {}
        # Another worker could name a pipe that never ends.
        with suppress(OSError):
            if path.is_file():
                return object_of(read_document(path)[0].get("containers"))
        return {}


def queries(
    own_namespace: str, environment: Mapping[str, str], own_name: str = "", daemons: Sequence[str] = ()
) -> tuple[InstalledQuery, ...]:
    """Return the queries in order; ``daemons`` are namespaces of daemons that may have started us."""
    file = environment.get("III_COMPOSE_FILE")
    payload = {"file": file} if file else {}
    told = environment.get("III_COMPOSE_NAMESPACE")
    homes = dict.fromkeys(home for home in (told, own_namespace) if home)
    found = () if told else [home for home in daemons if home not in homes]
    return (
        *(InstalledQuery(COMPOSE, home, payload) for home in homes),
        *(InstalledQuery(COMPOSE, home, payload, own_name) for home in found),
        InstalledQuery(LIST, DEFAULT_NAMESPACE, {}),
    )


def composed(answer: object, declared: Json) -> InstalledAnswer | None:
    """Read an answer of ``compose::status``, with what the project's file declares.

    Daemons only give the key of a container; one without a file, such as the embedded engine's, gives in its
    row what a file would declare.
    """
    containers = names_in(answer, "containers", "container")
    if containers is None:
        return None
    rows = {name: row for row in rows_of(answer, "containers") if (name := text_of(row.get("container")))}
    specs = {name: object_of(declared.get(name)) or rows.get(name, {}) for name in containers}
    packages = {name: _package(name, spec.get("worker")) for name, spec in specs.items()}
    unknown = frozenset(name for name, package in packages.items() if package is None)
    return InstalledAnswer(frozenset(one for one in packages.values() if one is not None), unknown)


def every_spelling(names: frozenset[str]) -> frozenset[str]:
    """Return the names, with the other name of each renamed worker."""
    prefixed = {old for new, old in _RENAMED.items() if new in names}
    bare = {new for new, old in _RENAMED.items() if old in names}
    return names | prefixed | bare


def _package(container: str, worker: object) -> str | None:
    """Return the package of a worker: from ``package://host/name`` or ``name@version``, or of a path its key.

    None for other values, and for one with a variable that only Compose can fill in.
    """
    spec = text_of(worker) or ""
    if spec.startswith("path://"):
        return container
    name = spec.rsplit("/", 1)[-1].partition("@")[0]
    return name if name and set(name).isdisjoint("${}") else None


def names_in(answer: object, rows: str, key: str) -> frozenset[str] | None:
    """Return the names under a key of the rows of an answer, or None if it has no list of rows."""
    if not is_list(object_of(answer).get(rows)):
        return None
    return frozenset(name for row in rows_of(answer, rows) if (name := text_of(row.get(key))) is not None)


async def _joined(bus: Bus) -> list[Json]:
    """Return the rows of the connected workers; empty if the engine does not list them for us."""
    try:
        answer = await bus.call(CONNECTED, {}, timeout_ms=INSTALLED_TIMEOUT_MS, namespace=DEFAULT_NAMESPACE)
    except CallError:
        return []
    # A part of the engine is not a worker that connected.
    return [row for row in rows_of(answer, "workers") if row.get("runtime") != "engine"]


# Downloading their skills


log = logging.getLogger("iii_directory.worker")
ADDED: Final = "directory::__on_worker_added"
_HEALTH_TIMEOUT_MS: Final = 5_000


@dataclass(eq=False)
class AutoDownload:
    """Binds to the ``worker`` trigger type and catches up at every connect, if it is switched on.

    On the embedded engine no daemon says what is installed, so it is off there unless the settings say on:
    the registry must not learn the names of workers that are only connected.
    """

    _bus: WorkerBus
    _services: Callable[[], Awaitable[Services]]
    _installs: InstallEvents
    _installed: InstalledWorkers
    _wanted: bool | None
    _on: bool = False
    _bound: bool = False
    _catching_up: bool = False
    _turn: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, limits.PARALLEL_DOWNLOADS))
    _waiting: set[str] = field(default_factory=set[str])
    _tasks: Tasks = field(default_factory=Tasks)

    async def connected(self) -> None:
        """Find out whether to download on this engine; if so, fetch what installed workers lack."""
        self._on = self._wanted is True
        if self._wanted is None:
            try:
                health = await self._bus.call(
                    "engine::health::check", {}, timeout_ms=_HEALTH_TIMEOUT_MS, namespace=DEFAULT_NAMESPACE
                )
            except CallError:
                health = None
            self._on = not is_embedded(health)
        if not self._on:
            return
        if not self._bound:
            self._bound = True
            self._bus.bind("worker", ADDED, {"operations": ["add"], "stages": ["done"]})
        await self.catch_up()

    async def catch_up(self) -> None:
        """Fetch the missing skills of the workers that are installed now, if it is switched on."""
        self._catching_up = False
        if self._on:
            await self._installed.known()
            for name in sorted(self._installed.reported):
                self._fetch(name)

    def worker_added(self, event: Payload) -> None:
        """Fetch the skills of a worker that was added; any worker may call this function."""
        self._installed.forget()
        name = event.get("worker")
        done = event.get("operation", "add") == "add" and event.get("stage", "done") == "done"
        if self._on and done and isinstance(name, str):
            self._fetch(name)

    def workers_changed(self) -> None:
        """Fetch the skills of new workers, once for all events of a moment."""
        if self._on and not self._catching_up:
            self._catching_up = True
            self._tasks.start(self.catch_up())

    def close(self) -> None:
        """Stop; events that come after this start nothing."""
        self._on = False
        self._tasks.cancel()

    # Inner workings

    def _fetch(self, name: str) -> None:
        if name in self._waiting or name in RESERVED_NAMESPACES or not is_worker(name):
            return
        self._waiting.add(name)
        self._tasks.start(self._in_turn(name))

    async def _in_turn(self, name: str) -> None:
        async with self._turn:
            try:
                await self._try(name)
            except Exception:
                log.exception("fetching the skills of %s failed", name)
            finally:
                self._waiting.discard(name)

    async def _try(self, name: str) -> None:
        if await self._installed.known() is not None and name not in self._installed.reported:
            # Another worker than the daemon said so. The registry must not learn names of other workers.
            return
        try:
            done = await (await self._services()).installer.auto_download(name)
        except DirectoryError as error:
            self._installs.failed(name, error)
            return
        if done is None:
            self._installs.nothing_to_fetch(name)
            return
        kept = len(done.changes.kept)
        log.info("fetched the skills of %s%s", name, f", and kept {kept} that were edited" if kept else "")
        await self._installs.landed(done)
