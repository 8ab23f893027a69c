"""The settings while the worker runs: the file is read again when it changes, and the engine sets some.

Where the engine has ``configuration::register``, the keys that open nothing of this machine can be set there,
and win over the file's. A value that cannot be used changes nothing, and the diagnostics say so.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import Tasks
from iii_directory.config import SETTINGS, load_settings, read_document, remote_schema, reread_settings
from iii_directory.disk.stamps import stamp_of
from iii_directory.documents.model import Finding
from iii_directory.limits import CONFIG_LOOK_SECONDS
from iii_directory.shapes import object_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from iii_directory.bus.seam import Payload, WorkerBus
    from iii_directory.catalog.notes import Notes
    from iii_directory.config import Settings
    from iii_directory.disk.stamps import Stamp
    from iii_directory.shapes import Json
    from iii_directory.worker.engine_calls import EngineCalls

log = logging.getLogger("iii_directory.worker")
LISTENER: Final = "directory::__on_settings_changed"
CONFIGURATION_ID: Final = "iii-directory"
_NOTES: Final = "settings "
_ON_ENGINE: Final = "configuration iii-directory"
_REMOTE: Final = frozenset(setting.key for setting in SETTINGS if setting.remote)


class LiveSettings:
    """Keeps ``settings`` as the file and the engine have them; ``changed`` is called after each change.

    Lives on the bus's loop. Without a file (``path`` is None) what was given at the start stands for it.
    """

    def __init__(
        self,
        settings: Settings,
        path: Path | None,
        bus: WorkerBus,
        engine: EngineCalls,
        notes: Notes,
        *,
        changed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._at_start = replace(settings) if path is None else load_settings(path)[0]
        self._path = path
        self._bus = bus
        self._engine = engine
        self._notes = notes
        self._changed = changed
        self._remote: Json = {}
        self._bound = False
        self._stamp = _stamp(path)
        self._tasks = Tasks()

    def open(self) -> None:
        """Follow the file from now on."""
        if self._path is not None:
            self._tasks.start(self._follow())

    def listen(self) -> None:
        self._bus.register_listener(
            LISTENER,
            self._told,
            description="For the engine's news of its configuration alone: the settings are looked up again.",
        )

    def connected(self) -> None:
        """Offer the settings to the engine's configuration, if it has one; nobody waits for that."""
        self._tasks.start(self._register())

    def close(self) -> None:
        self._tasks.cancel()

    def reread(self) -> None:
        """Bring the settings in line with the file and the engine's configuration as they are now."""
        self._stamp = _stamp(self._path)
        document = self._document()
        if document is None:
            return
        base = Path.cwd() if self._path is None else self._path.resolve().parent
        found = reread_settings(self._settings, self._at_start, {**document, **self._remote}, base)
        hot = {key: value for key, value in found.hot.items() if self._path is not None or key in _REMOTE}
        self._note("file", found.warnings, "correct it; iii-directory config check tells the same")
        waiting = [f"'{key}' was changed and takes effect at the next start" for key in found.waiting]
        self._note("waiting", waiting if self._path is not None else (), "start the worker again")
        for name, value in hot.items():
            setattr(self._settings, name, value)
        if hot:
            log.info("settings changed: %s", ", ".join(sorted(hot)))
            self._changed()

    # Inner workings

    def _document(self) -> Json | None:
        """What the file says; None when it cannot be used, which changes nothing."""
        if self._path is None:
            return {key: getattr(self._at_start, key) for key in _REMOTE}
        document, problem = read_document(self._path)
        if problem is None:
            return object_of(document)
        reason = f"it {problem}; what was before is kept"
        self._note("file", [reason], "correct it; iii-directory config check tells the same")
        return None

    def _note(self, about: str, reasons: Iterable[str], fix: str) -> None:
        self._notes.drop(f"{_NOTES}{about} ")
        subject = _ON_ENGINE if self._path is None or about == "engine" else self._path.name
        for number, reason in enumerate(reasons):
            self._notes.put(f"{_NOTES}{about} {number}", Finding("settings", subject, reason, fix))

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(CONFIG_LOOK_SECONDS)
            if _stamp(self._path) != self._stamp:
                self.reread()

    def _told(self, _event: Payload) -> None:
        # Whoever sends the event, what counts is what the configuration says when it is asked.
        self._tasks.start(self._look_up())

    async def _register(self) -> None:
        entry = {
            "id": CONFIGURATION_ID,
            "name": CONFIGURATION_ID,
            "description": "Settings of the directory that apply at once; config.yaml has all of them.",
            "schema": remote_schema(),
        }
        if await self._call("configuration::register", entry) is None:
            return
        if not self._bound:
            self._bound = True
            config = {"configuration_id": CONFIGURATION_ID, "event_types": ["configuration:updated"]}
            self._bus.bind("configuration", LISTENER, config)
        await self._look_up()

    async def _look_up(self) -> None:
        answer = await self._call("configuration::get", {"id": CONFIGURATION_ID})
        if answer is None:
            return
        value = object_of(object_of(answer).get("value"))
        ours = [f"'{key}' can be set in config.yaml alone" for key in sorted(value.keys() - _REMOTE)]
        self._note("engine", ours, "set it in config.yaml, or take it out of the engine's configuration")
        remote = {key: value[key] for key in sorted(_REMOTE & value.keys()) if value[key] is not None}
        if remote != self._remote:
            self._remote = remote
            self.reread()

    async def _call(self, function_id: str, payload: Json) -> Any:
        """An answer, or None where the engine has no such function, or none to give."""
        try:
            return await self._engine.call(function_id, payload)
        except CallError as error:
            log.debug("%s: %s", function_id, error)
            return None


def _stamp(path: Path | None) -> Stamp | None:
    """The stamp of the file; None where there is none."""
    try:
        return None if path is None else stamp_of(path.stat())
    except OSError:
        return None
