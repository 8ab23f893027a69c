"""Put this worker together on a bus: catalogue, registrations, events, and what answers calls."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from dataclasses import replace
from hmac import compare_digest
from importlib import import_module
from typing import TYPE_CHECKING, Final

from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import Tasks
from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.diagnostics import Notes
from iii_directory.catalog.folder_source import layers_of
from iii_directory.catalog.origins import Levels
from iii_directory.catalog.registered import Seal
from iii_directory.catalog.registered_source import RegisteredSource
from iii_directory.disk.files import FolderAtStart
from iii_directory.disk.lock_files import is_at_rest
from iii_directory.documents.model import Finding
from iii_directory.documents.uris import INSTANCE, INSTANCE_FUNCTION, LOCAL, READ_ONLY, WRITING
from iii_directory.errors import DirectoryError
from iii_directory.text import counted, shown_url
from iii_directory.wire.protocol import DEFAULT_NAMESPACE
from iii_directory.worker.change_events import ChangeEvents, DiskEditEvents, InstallEvents
from iii_directory.worker.engine_view import EngineCalls, EngineView
from iii_directory.worker.installed_workers import AutoDownload, InstalledWorkers
from iii_directory.worker.live_settings import LISTENER as SETTINGS_LISTENER
from iii_directory.worker.live_settings import LiveSettings
from iii_directory.worker.registration_conflicts import RegistrationConflicts
from iii_directory.worker.registrations import FOLLOWER, Registrations, sealing_key
from iii_directory.worker.shared_state import HINT_LISTENER, TOPIC
from iii_directory.worker.surfaces import functions_of, trigger_types_of
from iii_directory.worker.usage import CallMetrics, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.bus.seam import Handler, Payload, WorkerBus
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.config import Settings
    from iii_directory.engine.server import EngineServer
    from iii_directory.worker.services import Services
    from iii_directory.worker.surfaces.declare import FunctionRow

log = logging.getLogger("iii_directory.worker")
NAME: Final = "iii-directory"
DESCRIPTION: Final = "Discovery: the skills, prompts, functions and published workers an agent can use."
SERVICES: Final = "iii_directory.worker.services"
WORKERS_CHANGED: Final = "directory::__on_workers_changed"
FUNCTIONS_CHANGED: Final = "directory::__on_functions_changed"
# Services are imported this long after a connect. By then a caller that waited for the start has its answer.
AFTER_START_SECONDS: Final = 0.5
_READY_POLL_SECONDS: Final = 0.02
_AWAY: Final = "engine"


class DirectoryWorker:
    """The worker on one engine. Its state lives on the bus's event loop."""

    def __init__(
        self, settings: Settings, bus: WorkerBus, config: Path | None = None, data: Path | None = None
    ) -> None:
        # A copy, because some settings change while the worker runs.
        settings = self.settings = replace(settings)
        self.bus = bus
        self.instance = secrets.token_hex(8)
        """Tells this directory from every other one, in its run file and in a function's metadata."""
        self.secret = secrets.token_hex(16)
        """Bridges of the same user know it, from this process or from the run file, and are told paths."""
        self.functions = functions_of(settings.surfaces)
        self._notes = Notes()
        self._registered = RegisteredSource(settings.state_timeout_ms / 1000, Seal(sealing_key(data)))
        self.installed = InstalledWorkers(bus, settings.registry_cache_ttl_ms / 1000, time.monotonic)
        self.catalogue = Catalogue(
            layers_of(settings),
            self._registered,
            self.installed,
            notes=self._notes,
            filter_unregistered=settings.filter_unregistered,
            show_paths=settings.show_paths is True,
            levels=Levels(settings.visibility),
        )
        calls = EngineCalls(bus, settings)
        self.engine = EngineView(calls)
        self._events = ChangeEvents(bus)
        self.registrations = Registrations(
            bus, self._events, self._registered, settings, follow=self._follow_state, namespace=bus.namespace
        )
        self.installs = InstallEvents(self.catalogue, self._notes, self._events)
        self.disk_edits = DiskEditEvents(self.catalogue, self._events, self._made_services)
        self._conflicts = RegistrationConflicts(
            bus,
            calls,
            self.catalogue,
            self._notes,
            self._events,
            frozenset((FUNCTIONS_CHANGED, WORKERS_CHANGED, FOLLOWER, HINT_LISTENER, SETTINGS_LISTENER)),
            self._learn,
        )
        # The older generations have no automatic downloads, and no function that the engine could call.
        wanted = settings.auto_download if "v0.8" in settings.surfaces else False
        self.auto_download = AutoDownload(bus, self._made_services, self.installs, self.installed, wanted)
        self._live = LiveSettings(settings, config, bus, calls, self._notes, changed=self._settings_changed)
        self.metrics = CallMetrics()
        self.usage = Usage(settings, self.catalogue, data)
        self._handlers = {
            row.id: self.metrics.measured(row.id, self._handler_of(row), self.usage) for row in self.functions
        }
        self._registered_rows: dict[str, FunctionRow] = {}
        """The functions as the engine was told of them."""
        # The skills folder of the start: installs refuse another folder that took its place.
        self._folder = FolderAtStart.of(settings.skills_folder)
        self._services: Services | None = None
        self._making_services = asyncio.Lock()
        self._latest_look: CatalogueView | None = None
        self._tasks = Tasks()

    @classmethod
    def join(
        cls,
        settings: Settings,
        url: str,
        *,
        token: str | None = None,
        namespace: str | None = None,
        config: Path | None = None,
        data: Path | None = None,
    ) -> DirectoryWorker:
        """Start a worker that reads its folder and then joins the engine as soon as that answers."""
        from iii_directory.bus.wire_bus import WireBus

        bus = WireBus(url, name=NAME, description=DESCRIPTION, namespace=namespace, token=token)
        return cls.run_on(bus, settings, config, data)

    @classmethod
    def run_on(
        cls, bus: WorkerBus, settings: Settings, config: Path | None = None, data: Path | None = None
    ) -> DirectoryWorker:
        """Start a worker that reads its folder and then registers on a bus; not on the bus's loop.

        The settings are followed in ``config``, the file they come from. ``data`` is the folder that keeps
        the key which seals registrations; without one, registrants are unknown after a restart.
        """
        worker = cls(settings, bus, config, data)
        try:
            worker._start()
        except BaseException:
            # The bus has a thread of its own.
            worker.stop()
            raise
        return worker

    def wait_ready(self, seconds: float) -> bool:
        """Wait until the engine answers calls of our functions; False if it does not in time."""
        return self.bus.run(self._answered(time.monotonic() + seconds))

    def stop(self) -> None:
        self.bus.run(self._close())
        self.bus.close()

    def reread_settings(self) -> None:
        """Read the configuration again at once; from any thread but the bus's own."""

        async def reread() -> None:
            self._live.reread()

        self.bus.run(reread())

    def summary(self) -> str:
        """Return in a few words what the worker offers."""
        snapshot = self.bus.run(self.catalogue.current()).snapshot
        return (
            f"{NAME}: {counted(len(self.functions), 'function')}, "
            f"{counted(len(snapshot.skills.items), 'document')}, "
            f"{counted(len(snapshot.prompts.items), 'prompt')}"
        )

    def may_know_paths(self, payload: Payload) -> bool:
        """Return whether a caller is a bridge of the same user, and the settings tell such callers paths."""
        return self.settings.show_paths == "auto" and self.is_our_bridge(payload)

    def is_our_bridge(self, payload: Payload) -> bool:
        """Return whether a caller shows the secret that only processes of the same user can read."""
        shown = payload.get(LOCAL)
        return isinstance(shown, str) and compare_digest(shown.encode(), self.secret.encode())

    # Functions, on the bus's loop

    def _handler_of(self, row: FunctionRow) -> Handler:
        reply, handler = row.reply, row.handler
        if reply is not None:

            async def replying(payload: Payload) -> object:
                return reply(await self.catalogue.current(), payload)

            return replying
        if handler is None:
            raise LookupError(f"{row.id} has neither a reply nor a handler")

        async def answering(payload: Payload) -> object:
            return await handler(self._services or await self._made_services())(payload)

        return answering

    def _register_functions(self) -> None:
        """Tell the engine of every function that it does not know yet as it is now."""
        for row in self.functions:
            told = self._with_settings(row)
            if self._registered_rows.get(row.id) != told:
                self._registered_rows[row.id] = told
                self.bus.register_function(told, self._handlers[row.id])

    def _with_settings(self, row: FunctionRow) -> FunctionRow:
        """Add what bridges must know to a function's metadata, such as whether it may write."""
        settings, metadata = self.settings, dict(row.metadata or {})
        if WRITING in metadata:
            metadata[WRITING] = settings.allow_writing
        if "mcp" in metadata:
            metadata["sections"] = settings.sections or READ_ONLY
        if row.id == "directory::mcp::index":
            metadata["public_index"] = settings.public_index
        if row.id == INSTANCE_FUNCTION:
            metadata |= {
                INSTANCE: self.instance,
                "mcp_tools": settings.mcp_tools,
                "mcp_calls": settings.mcp_calls,
            }
        return replace(row, metadata=metadata) if metadata else row

    async def _made_services(self) -> Services:
        """Return the services; the first caller has them imported in a thread, so that the loop goes on."""
        async with self._making_services:
            if self._services is None:
                module = await asyncio.to_thread(import_module, SERVICES)
                made: Services = module.Services(self, self._folder)
                if self._latest_look is not None:
                    made.document_indexes.follow(self._latest_look)
                self._services = made
            return self._services

    async def _make_services_later(self) -> None:
        await asyncio.sleep(AFTER_START_SECONDS)
        await self._made_services()

    # Starting and stopping

    def _start(self) -> None:
        self.bus.run(self._open())
        # Before the functions, so that early subscribers hear of the first call.
        for kind in trigger_types_of(self.settings.surfaces):
            self.bus.register_trigger_type(
                kind.id,
                self._events.owner_for(kind.id, *kind.topics),
                description=kind.description,
                event_schema=kind.event,
            )
        self._register_functions()
        self._register_listeners()
        self.bus.on_connected.append(self._connected)
        self.bus.on_lost.append(self._lost)
        self.bus.on_refused.append(self._conflicts.refused)
        self.bus.start()

    def _register_listeners(self) -> None:
        for listener, handler, what in (
            (FUNCTIONS_CHANGED, self._engine_changed, "events alone: functions came or went"),
            (WORKERS_CHANGED, self._workers_changed, "events alone: workers came or went"),
            (FOLLOWER, self.registrations.state_changed, "state trigger alone: registrations changed"),
        ):
            self.bus.register_listener(listener, handler, description=f"For the engine's {what}.")
        self.bus.bind("engine::functions-available", FUNCTIONS_CHANGED, {})
        self.bus.bind("engine::workers-available", WORKERS_CHANGED, {})
        self.bus.register_listener(
            HINT_LISTENER,
            self.registrations.written_elsewhere,
            description="For directories on other engines with the same state: they wrote registrations.",
            hears_workers=True,
        )
        self.bus.bind("subscribe", HINT_LISTENER, {"topic": TOPIC})
        self._follow_state()
        self._live.listen()

    def _follow_state(self) -> None:
        for scope in self.registrations.scopes:
            self.bus.bind("state", FOLLOWER, {"scope": scope})

    async def _open(self) -> None:
        if not is_at_rest(self.settings.skills_folder):
            # A crash interrupted an install: finish or undo it before the folder is read.
            try:
                await (await self._made_services()).installer.recover()
            except DirectoryError as error:
                finding = Finding(
                    "download",
                    "skills_folder",
                    f"what an interrupted download may have left could not be put right: {error.problem}",
                    "make the folder a directory that this worker may write to, and start it again",
                )
                self._notes.put("recover", finding)
        await self.catalogue.open(self._looked)
        self._live.open()

    async def _answered(self, deadline: float) -> bool:
        # Functions are registered last and all at once: when the last is known, all are.
        last = {"function_id": self.functions[-1].id, "namespace": self.bus.namespace}
        while time.monotonic() < deadline:
            try:
                await self.bus.call(
                    "engine::functions::info", last, timeout_ms=1_000, namespace=DEFAULT_NAMESPACE
                )
            except CallError:
                await asyncio.sleep(_READY_POLL_SECONDS)
            else:
                return True
        return False

    async def _close(self) -> None:
        await self._events.close()
        self._tasks.cancel()
        self.disk_edits.close()
        self.installed.close()
        self._live.close()
        self._conflicts.lost()
        self.registrations.close()
        self.auto_download.close()
        await self.usage.close()
        if self._services is not None:
            await self._services.close()
        self.catalogue.close()

    # What happens while the worker runs, on the bus's loop

    def _looked(self, look: CatalogueView, edited: set[str]) -> None:
        """Pass on a new view of the documents, and the paths that were edited since the last one."""
        self.installs.tell(look)
        self.disk_edits.looked(look, edited)
        self._latest_look = look
        if self._services is not None:
            self._services.document_indexes.follow(look)

    def _engine_changed(self, _event: object = None) -> None:
        """Mark the index of the engine's functions and workers as outdated."""
        if self._services is not None:
            self._services.engine_indexes.changed()

    def _settings_changed(self) -> None:
        now = self.settings
        self.catalogue.settings_changed(
            filter_unregistered=now.filter_unregistered,
            show_paths=now.show_paths is True,
            levels=Levels(now.visibility),
        )
        if self._services is not None:
            self._services.settings_changed()
        self.installed.ttl_seconds = now.registry_cache_ttl_ms / 1000
        self.installed.is_current = False
        self._register_functions()

    async def _connected(self) -> None:
        log.info("connected to the engine")
        self._notes.drop(_AWAY)
        self.installed.forget_source()
        self._engine_changed()
        # The functions are offered after this: the first answer knows what is registered.
        await asyncio.gather(self._learn(), self.auto_download.connected())
        self._conflicts.connected()
        self._live.connected()
        if self._services is None:
            self._tasks.start(self._make_services_later())

    async def _learn(self) -> None:
        """Load what is registered; it is known when this returns, unless the state takes too long."""
        await self.registrations.connected()
        await self._registered.ready()

    def _workers_changed(self, event: Payload) -> None:
        self.installed.workers_changed()
        self._engine_changed()
        self.auto_download.workers_changed()
        self._conflicts.workers_changed(event)

    def _lost(self) -> None:
        finding = Finding(
            "unavailable",
            "engine",
            f"the engine at {shown_url(self.bus.url)} is away; this worker cannot be called until it is back",
            "start the engine; this worker joins it by itself",
        )
        self._notes.put(_AWAY, finding, logged=True)
        self._conflicts.lost()
        self._events.forget_subscribers()
        self.registrations.connection_lost()


def bus_inside(engine: EngineServer, *, namespace: str | None = None) -> WorkerBus:
    """Return a bus for this worker in an engine of the same process; call it on the engine's loop."""
    from iii_directory.bus.message_bus import LocalBus

    return LocalBus(engine, name=NAME, description=DESCRIPTION, namespace=namespace)
