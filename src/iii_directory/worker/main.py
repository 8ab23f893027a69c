"""This worker: the catalogue, the handlers and the surfaces, put together on a bus."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from iii_directory.bus.seam import CallError
from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.folder.layers import layers_of
from iii_directory.catalog.notes import Notes
from iii_directory.catalog.records import Seal
from iii_directory.catalog.registered_source import RegisteredSource
from iii_directory.catalog.visibility import Levels
from iii_directory.disk.locking import is_at_rest
from iii_directory.documents.model import Finding
from iii_directory.errors import DirectoryError
from iii_directory.text import shown_url
from iii_directory.wire.protocol import DEFAULT_NAMESPACE
from iii_directory.worker.engine_calls import EngineCalls
from iii_directory.worker.engine_view import EngineView
from iii_directory.worker.events import Events
from iii_directory.worker.folder_events import DiskEditEvents, InstallEvents
from iii_directory.worker.installed_workers import InstalledWorkers
from iii_directory.worker.live_settings import LISTENER as SETTINGS_LISTENER
from iii_directory.worker.live_settings import LiveSettings
from iii_directory.worker.own_functions import OwnFunctions
from iii_directory.worker.parts import Parts
from iii_directory.worker.registrants import sealing_key
from iii_directory.worker.registration_conflicts import RegistrationConflicts
from iii_directory.worker.registrations import FOLLOWER, Registrations
from iii_directory.worker.shared_state import HINT_LISTENER, TOPIC
from iii_directory.worker.surfaces import functions_of, trigger_types_of

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.bus.seam import Payload, WorkerBus
    from iii_directory.catalog.look import Look
    from iii_directory.config import Settings
    from iii_directory.engine.server import EngineServer

log = logging.getLogger("iii_directory.worker")
NAME: Final = "iii-directory"
DESCRIPTION: Final = "Discovery: the skills, prompts, functions and published workers an agent can use."
WORKERS_CHANGED: Final = "directory::__on_workers_changed"
FUNCTIONS_CHANGED: Final = "directory::__on_functions_changed"
_READY_POLL_SECONDS: Final = 0.02
_AWAY: Final = "engine"


class DirectoryWorker:
    """The worker on one engine. Its state lives on the bus's event loop."""

    def __init__(
        self, settings: Settings, bus: WorkerBus, config: Path | None = None, data: Path | None = None
    ) -> None:
        # A copy of its own: some of it changes while the worker runs.
        settings = self._settings = replace(settings)
        self._bus = bus
        self._registered = RegisteredSource(settings.state_timeout_ms / 1000, Seal(sealing_key(data)))
        self._installed = InstalledWorkers(bus, settings.registry_cache_ttl_ms / 1000, time.monotonic)
        self._notes = Notes()
        self._catalogue = Catalogue(
            layers_of(settings),
            self._registered,
            self._installed,
            notes=self._notes,
            filter_unregistered=settings.filter_unregistered,
            show_paths=settings.show_paths is True,
            levels=Levels(settings.visibility),
        )
        calls = EngineCalls(bus, settings)
        self._engine = EngineView(calls)
        self._events = Events(bus)
        self._registrations = Registrations(
            bus, self._events, self._registered, settings, follow=self._follow_state, namespace=bus.namespace
        )
        self._installs = InstallEvents(self._catalogue, self._notes, self._events)
        self._disk_edits = DiskEditEvents(self._catalogue, self._events, self._under_way)
        self._conflicts = RegistrationConflicts(
            bus,
            calls,
            self._catalogue,
            self._notes,
            self._events,
            listeners=(FUNCTIONS_CHANGED, WORKERS_CHANGED, FOLLOWER, HINT_LISTENER, SETTINGS_LISTENER),
            learn=self._learn,
        )
        self._functions = functions_of(settings.surfaces)
        self._parts = Parts(
            settings,
            bus,
            self._catalogue,
            self._notes,
            self._functions,
            engine=self._engine,
            installed=self._installed,
            registrations=self._registrations,
            installs=self._installs,
            disk_edits=self._disk_edits,
            data=data,
        )
        self.instance = secrets.token_hex(8)
        """Tells this directory from every other one, in its run file and in a function's metadata."""
        self.secret = secrets.token_hex(16)
        """Bridges of the same user know it, from this process or from the run file, and are told paths."""
        self._parts.secret = self.secret
        self._offered = OwnFunctions(bus, settings, self._functions, self.instance)
        self._live = LiveSettings(settings, config, bus, calls, self._notes, changed=self._settings_changed)

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
        """A worker that reads its folder and then joins the engine as soon as that answers."""
        from iii_directory.bus.wire_bus import WireBus

        bus = WireBus(url, name=NAME, description=DESCRIPTION, namespace=namespace, token=token)
        return cls.run_on(bus, settings, config, data)

    @classmethod
    def run_on(
        cls, bus: WorkerBus, settings: Settings, config: Path | None = None, data: Path | None = None
    ) -> DirectoryWorker:
        """A worker that reads its folder and then registers on a bus. Not to be called on the bus's loop.

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

    def _start(self) -> None:
        self._bus.run(self._open())
        # Before the functions, so that whoever subscribed early hears of the first call.
        for kind in trigger_types_of(self._settings.surfaces):
            self._bus.register_trigger_type(
                kind.id,
                self._events.owner_for(kind.id, *kind.topics),
                description=kind.description,
                event_schema=kind.event,
            )
        self._offered.answer_with(self._catalogue, self._parts)
        self._offered.offer()
        self._follow_functions()
        self._follow_engine()
        self._live.listen()
        self._bus.on_connected(self._connected)
        self._bus.on_lost(self._lost)
        self._bus.on_refused(self._conflicts.refused)
        self._bus.start()

    def wait_ready(self, seconds: float) -> bool:
        """Wait until the engine answers calls of our functions; False if it does not in time."""
        return self._bus.run(self._answered(time.monotonic() + seconds))

    def stop(self) -> None:
        self._bus.run(self._close())
        self._bus.close()

    def reread_settings(self) -> None:
        """Look at the configuration at once; from any thread but the bus's own."""

        async def reread() -> None:
            self._live.reread()

        self._bus.run(reread())

    def summary(self) -> str:
        """What it offers, in a few words."""
        snapshot = self._bus.run(self._catalogue.look()).snapshot
        return (
            f"{NAME}: {len(self._functions)} functions, "
            f"{len(snapshot.skills.items)} documents, {len(snapshot.prompts.items)} prompts"
        )

    # Inner workings, on the bus's loop

    def _settings_changed(self) -> None:
        """Whoever holds a value of its own goes by the new one; the others ask when they need it."""
        now = self._settings
        self._catalogue.settings_changed(
            filter_unregistered=now.filter_unregistered,
            show_paths=now.show_paths is True,
            levels=Levels(now.visibility),
        )
        self._parts.settings_changed()
        self._installed.ttl_seconds = now.registry_cache_ttl_ms / 1000
        self._offered.offer()

    def _follow_functions(self) -> None:
        self._bus.register_listener(
            FUNCTIONS_CHANGED,
            self._parts.engine_changed,
            description="For the engine's news of functions alone: tells search what came and went.",
        )
        self._bus.bind("engine::functions-available", FUNCTIONS_CHANGED, {})

    def _follow_engine(self) -> None:
        self._bus.register_listener(
            WORKERS_CHANGED,
            self._workers_changed,
            description="For the engine's news alone: workers came or went.",
        )
        self._bus.bind("engine::workers-available", WORKERS_CHANGED, {})
        self._bus.register_listener(
            FOLLOWER,
            self._registrations.state_changed,
            doubted=self._registrations.state_may_have_changed,
            description="For the engine's state trigger alone: tells this worker of registrations.",
        )
        self._bus.register_listener(
            HINT_LISTENER,
            self._registrations.written_elsewhere,
            description="For directories on other engines with the same state: tells what they wrote.",
            hears_workers=True,
        )
        self._bus.bind("subscribe", HINT_LISTENER, {"topic": TOPIC})
        self._follow_state()

    def _follow_state(self) -> None:
        for scope in self._registrations.scopes:
            self._bus.bind("state", FOLLOWER, {"scope": scope})

    async def _open(self) -> None:
        await self._recover()
        await self._catalogue.open(self._looked)
        self._live.open()

    async def _recover(self) -> None:
        """Put right what a crash left of an install, before anybody reads it."""
        if is_at_rest(self._settings.skills_folder):
            return
        try:
            await self._parts.installer.recover()
        except DirectoryError as error:
            self._notes.put("recover", _not_recovered(error))

    def _looked(self, look: Look) -> None:
        self._installs.tell(look)
        self._disk_edits.looked(look)
        self._parts.looked(look)

    def _under_way(self) -> set[str]:
        """The namespaces that somebody is installing into. Blocks."""
        return self._parts.edits.under_way()

    async def _connected(self) -> None:
        log.info("connected to the engine")
        self._notes.drop(_AWAY)
        self._installed.forget_way()
        self._engine.forget()
        self._parts.engine_changed()
        # The functions are offered after this: the first answer knows what is registered.
        await asyncio.gather(self._learn(), self._parts.automatic.connected())
        self._conflicts.connected()
        self._live.connected()
        self._parts.connected()

    async def _learn(self) -> None:
        """Load what is registered; it is known when this returns, unless the state takes too long."""
        await self._registrations.connected()
        await self._registered.ready()

    def _workers_changed(self, event: Payload) -> None:
        self._installed.workers_changed()
        self._parts.engine_changed()
        self._parts.automatic.workers_changed()
        self._conflicts.workers_changed(event)

    def _lost(self) -> None:
        self._notes.put(_AWAY, _engine_away(self._bus.url), logged=True)
        self._conflicts.lost()
        self._events.forget_subscribers()
        self._registrations.connection_lost()

    async def _answered(self, deadline: float) -> bool:
        last = {"function_id": self._functions[-1].id, "namespace": self._bus.namespace}
        while time.monotonic() < deadline:
            try:
                # The functions come last, and all at once.
                await self._bus.call(
                    "engine::functions::info", last, timeout_ms=1_000, namespace=DEFAULT_NAMESPACE
                )
            except CallError:
                await asyncio.sleep(_READY_POLL_SECONDS)
            else:
                return True
        return False

    async def _close(self) -> None:
        await self._events.close()
        self._disk_edits.close()
        self._installed.close()
        self._live.close()
        self._conflicts.lost()
        self._registrations.close()
        await self._parts.close()
        self._catalogue.close()


def bus_inside(engine: EngineServer, *, namespace: str | None = None) -> WorkerBus:
    """This worker's place in an engine of the same process; to be asked for on the engine's loop."""
    from iii_directory.bus.local_bus import LocalBus

    return LocalBus(engine, name=NAME, description=DESCRIPTION, namespace=namespace)


def _not_recovered(error: DirectoryError) -> Finding:
    return Finding(
        "download",
        "skills_folder",
        f"what an interrupted download may have left could not be put right: {error.problem}",
        "make the folder a directory that this worker may write to, and start it again",
    )


def _engine_away(url: str) -> Finding:
    return Finding(
        "unavailable",
        "engine",
        f"the engine at {shown_url(url)} is away; nobody can call this worker until it is back",
        "start the engine; this worker joins it by itself",
    )
