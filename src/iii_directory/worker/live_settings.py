"""Keep the settings current while the worker runs: from the file when it changes, and from the engine.

If the engine has ``configuration::register``, settings that open nothing of this machine can be set there,
and override the file. An invalid value changes nothing, and the diagnostics report it: the file's setting
stays as it was before, or an engine's invalid setting leaves the file's in force.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iii_directory import config
from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import Tasks
from iii_directory.disk.files import stamp_of
from iii_directory.documents.model import Finding
from iii_directory.limits import CONFIG_LOOK_SECONDS
from iii_directory.shapes import object_of
from iii_directory.text import quoted
from iii_directory.wire.protocol import CONNECTION_LOST, FUNCTION_NOT_FOUND, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from iii_directory.bus.seam import Payload, WorkerBus
    from iii_directory.catalog.diagnostics import Notes
    from iii_directory.config import Settings
    from iii_directory.disk.files import Stamp
    from iii_directory.worker.engine_view import EngineCalls

log = logging.getLogger("iii_directory.worker")
LISTENER: Final = "directory::__on_settings_changed"
_NOTES: Final = "settings "
_ON_ENGINE: Final = "configuration iii-directory"


class LiveSettings:
    """Keeps ``settings`` as the file and the engine have them; ``changed`` is called after each change.

    Belongs to the bus's event loop. Without a file (``path`` is None) the settings of the start count.
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
        self._of_file = replace(settings)
        """What would be in force without an engine's configuration."""
        self._at_start = replace(settings) if path is None else config.load_settings(path)[0]
        self._path = path
        self._bus = bus
        self._engine = engine
        self._notes = notes
        self._changed = changed
        self._of_engine: dict[str, Any] = {}
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
        """Offer the settings to the engine's configuration, if it has one, in the background."""
        self._tasks.start(self._register())

    def close(self) -> None:
        self._tasks.cancel()

    def reread(self) -> None:
        """Bring the settings in line with the file as it is now."""
        self._stamp = _stamp(self._path)
        if self._path is None:
            return
        correct = "correct it; iii-directory config check tells the same"
        document, problem = config.read_document(self._path)
        if problem is not None:
            self._note("file", self._path.name, [f"it {problem}; what was before is kept"], correct)
            return
        folder = config.real_path(self._path).parent
        found = config.reread_settings(self._of_file, self._at_start, document, folder)
        self._note("file", self._path.name, found.warnings, correct)
        waiting = [f"'{key}' was changed and takes effect at the next start" for key in found.waiting]
        self._note("waiting", self._path.name, waiting, "start the worker again")
        for name, value in found.hot.items():
            setattr(self._of_file, name, value)
        self._apply()

    # Inner workings

    def _apply(self) -> None:
        """Put the values of the file and the engine into force, and report which of the engine's differ."""
        overridden = [
            f"'{name}' is {json.dumps(value)} by the engine's configuration, which any worker can change; "
            f"config.yaml and the defaults say {json.dumps(usual)}"
            for name, value in self._of_engine.items()
            if value != (usual := getattr(self._of_file, name))
        ]
        unset = "nothing, if you set it there; else take it out with configuration::set"
        self._note("overridden", _ON_ENGINE, overridden, unset, urgent=False)
        hot = {setting.key: getattr(self._of_file, setting.key) for setting in config.SETTINGS if setting.hot}
        wanted = hot | self._of_engine
        changed = {name: value for name, value in wanted.items() if value != getattr(self._settings, name)}
        for name, value in changed.items():
            setattr(self._settings, name, value)
        if changed:
            log.info("settings changed: %s", ", ".join(sorted(changed)))
            self._changed()

    def _note(
        self, about: str, subject: str, reasons: Iterable[str], fix: str, *, urgent: bool = True
    ) -> None:
        self._notes.drop(f"{_NOTES}{about} ")
        for number, reason in enumerate(reasons):
            finding = Finding("settings", subject, reason, fix, urgent=urgent)
            self._notes.put(f"{_NOTES}{about} {number}", finding)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(CONFIG_LOOK_SECONDS)
            if _stamp(self._path) != self._stamp:
                self.reread()

    def _told(self, _event: Payload) -> None:
        # Any worker can send the event, so the configuration itself is asked.
        self._tasks.start(self._look_up())

    async def _register(self) -> None:
        entry = {
            "id": config.CONFIGURATION_ID,
            "name": config.CONFIGURATION_ID,
            "description": "Settings of the directory that apply at once; config.yaml has all of them.",
            "schema": config.remote_schema(),
        }
        try:
            await self._engine.call("configuration::register", entry)
        except CallError as error:
            # It has no configuration, or none for us.
            self._untold(error, ())
            return
        if not self._bound:
            self._bound = True
            wanted = {"configuration_id": config.CONFIGURATION_ID, "event_types": ["configuration:updated"]}
            self._bus.bind("configuration", LISTENER, wanted)
        await self._look_up()

    async def _look_up(self) -> None:
        asked = {"id": config.CONFIGURATION_ID}
        try:
            # Before anything was set, only the raw value can be read: null does not fit the schema.
            answer = await self._engine.call("configuration::get", {**asked, "raw": True})
            if object_of(answer).get("value") is not None:
                answer = await self._engine.call("configuration::get", asked)
        except CallError as error:
            unknown = error.code in (FUNCTION_NOT_FOUND, NOT_FOUND)
            reason = f"what is set there cannot be used: {quoted(str(error))}"
            self._untold(error, () if unknown else (reason,))
            return
        remote, alone = config.set_on_engine(answer)
        values, wrong, _ = config.read_values(remote)
        unusable = [f"'{key}' must be {expected}; it is not used" for key, expected in wrong.items()]
        self._note_on_engine(alone, unusable)
        self._of_engine = values
        self._apply()

    def _untold(self, error: CallError, reasons: Iterable[str]) -> None:
        """Drop the engine's settings, because this engine does not tell any."""
        log.debug("the configuration of the engine: %s", error)
        # A lost connection says nothing about the settings: the next engine is asked.
        if error.sent and error.code != CONNECTION_LOST:
            self._note_on_engine((), reasons)
            self._of_engine = {}
            self._apply()

    def _note_on_engine(self, alone: Iterable[str], unusable: Iterable[str]) -> None:
        here = "set it in config.yaml, or take it out of the engine's configuration"
        self._note("alone", _ON_ENGINE, alone, here)
        self._note("engine", _ON_ENGINE, unusable, "correct it in the engine's configuration, or take it out")


def _stamp(path: Path | None) -> Stamp | None:
    """Return the stamp of the file, or None without a file."""
    try:
        return None if path is None else stamp_of(path.stat())
    except OSError:
        return None
