"""What this worker offers and another one has: said, tried again, and taken over when the other leaves.

An engine gives a function of a namespace to one worker and refuses it to the next. A trigger type it gives to
the last that provides it, and nobody has it once that one leaves: whoever is bound would hear nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import Tasks
from iii_directory.documents.model import Finding
from iii_directory.limits import LOOK_SECONDS, MAX_SUGGESTIONS, OFFER_PAUSE_SECONDS
from iii_directory.shapes import rows_of, text_of
from iii_directory.text import quoted
from iii_directory.worker.engine_rows import function_row

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from iii_directory.bus.seam import Payload, WorkerBus
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.notes import Notes
    from iii_directory.worker.engine_calls import EngineCalls
    from iii_directory.worker.events import Events

log = logging.getLogger("iii_directory.worker")
_NOTES: Final = "of others "
_STOP_ONE: Final = (
    "stop one of the two workers, or give this one a namespace of its own with III_NAMESPACE; what the other "
    "leaves behind is taken over"
)


class Offers:
    """The functions and trigger types of this worker, as the engine has them. Lives on the bus's loop.

    One round at a time looks what is missing and offers it again: when a function was refused, when a worker
    left, and now and then. ``learn`` is awaited before functions are taken over whose listeners were refused
    too: who answers for the other must know what it knew.
    """

    def __init__(
        self,
        bus: WorkerBus,
        engine: EngineCalls,
        catalogue: Catalogue,
        notes: Notes,
        events: Events,
        *,
        listeners: Iterable[str],
        learn: Callable[[], Awaitable[None]],
    ) -> None:
        self._bus = bus
        self._engine = engine
        self._catalogue = catalogue
        self._notes = notes
        self._events = events
        self._listeners = frozenset(listeners)
        self._learn = learn
        self._wanted = asyncio.Event()
        self._tasks = Tasks()
        self._refused: frozenset[str] = frozenset()
        """What the last round left refused."""

    def connected(self) -> None:
        """Begin to look after what is offered; a new connection begins with a round."""
        self.lost()
        self._wanted.set()
        self._tasks.start(self._look_after())

    def lost(self) -> None:
        self._tasks.cancel()
        self._refused = frozenset()
        self._notes.drop(_NOTES)

    def refused(self) -> None:
        """The engine refused a function just now."""
        self._wanted.set()

    def workers_changed(self, event: Payload) -> None:
        """A worker that left may have had what is ours."""
        if event.get("event") == "worker_disconnected":
            self._wanted.set()

    # Inner workings

    async def _look_after(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wanted.wait()
            # What comes together is one round; and whoever comes and goes all the time costs no more.
            await asyncio.sleep(OFFER_PAUSE_SECONDS)
            self._wanted.clear()
            await self._round()

    async def _round(self) -> None:
        missing, taken = await self._types_of_others()
        renewing = [self._events.types[type_id] for type_id in missing]
        for subscribers in renewing:
            subscribers.renew()
        hearing = self._listeners & self._bus.refused.keys()
        self._bus.offer_again((*missing, *hearing))
        # Its answer comes after whatever the engine says to these offers.
        await self._names()
        for subscribers in renewing:
            subscribers.renewed()
        if hearing - self._bus.refused.keys():
            await self._learn()
        withheld = self._withheld()
        given_up = await self._given_up(withheld)
        if given_up:
            await self._learn()
        self._bus.offer_again(self._bus.refused.keys() - self._listeners - (withheld - given_up))
        self._say(await self._names(), taken)
        await self._catalogue.look()

    def _withheld(self) -> frozenset[str]:
        """The refused functions of whoever hears our news in our place.

        If that one left at this moment, what it was told last would be missing from our answers: the next
        round gets the listeners, learns, and takes its functions then.
        """
        refusals = {key: refusal for key, refusal in self._bus.refused.items() if refusal.message is None}
        hearers = {refusals[key].owner_id for key in self._listeners & refusals.keys()}
        return frozenset(key for key, row in refusals.items() if row.owner_id in hearers) - self._listeners

    async def _given_up(self, withheld: frozenset[str]) -> frozenset[str]:
        """Those of them that nobody has any more, though whoever had them has not left.

        A refusal says who had a function then, and where an engine names no owners all seem to be one's.
        """
        if not withheld:
            return withheld
        try:
            rows = rows_of(
                await self._engine.call("engine::functions::list", {"include_internal": True}), "functions"
            )
        except CallError:
            return frozenset()
        here = self._bus.namespace
        held = {function_row(row)["function_id"] for row in rows if row.get("namespace", here) == here}
        # Asked after it: who is there now had not left when the functions were listed.
        owners = {"", *await self._names()}
        refused = self._bus.refused
        return frozenset(key for key in withheld - held if key in refused and refused[key].owner_id in owners)

    async def _types_of_others(self) -> tuple[list[str], dict[str, str]]:
        """The trigger types of ours that nobody provides, and who provides those that somebody else does."""
        try:
            rows = rows_of(await self._engine.call("engine::triggers::list", {}), "triggers")
        except CallError:
            return [], {}
        here = self._bus.namespace
        names = {row.get("id"): row.get("worker_name") for row in rows if row.get("namespace", here) == here}
        missing = [type_id for type_id in self._events.types if type_id not in names]
        owners = {type_id: text_of(names.get(type_id)) for type_id in self._events.types}
        return missing, {
            type_id: name for type_id, name in owners.items() if name not in (None, self._bus.name)
        }

    def _say(self, names: dict[str, str], taken: dict[str, str]) -> None:
        """Leave a note for all that others have, and a line for what they have no more."""
        still = self._bus.refused
        self._notes.drop(_NOTES)
        for function_id, refusal in still.items():
            finding = _refused(function_id, names.get(refusal.owner_id), refusal.message, self._bus.namespace)
            self._notes.put(f"{_NOTES}{function_id}", finding)
        for type_id, owner in taken.items():
            self._notes.put(f"{_NOTES}{type_id}", _taken(type_id, owner, self._bus.namespace))
        gained = sorted(self._refused - still.keys())
        if gained:
            log.warning("took over what another worker had: %s", _few(gained))
        self._refused = frozenset(still)

    async def _names(self) -> dict[str, str]:
        """The workers' names by the ids of their connections; nothing where the engine does not tell."""
        try:
            rows = rows_of(await self._engine.call("engine::workers::list", {}), "workers")
        except CallError:
            return {}
        return {str(row.get("id")): name for row in rows if (name := text_of(row.get("name")))}


def _few(ids: list[str]) -> str:
    more = len(ids) - MAX_SUGGESTIONS
    return ", ".join(ids[:MAX_SUGGESTIONS]) + (f" and {more} more" if more > 0 else "")


def _refused(function_id: str, owner: str | None, message: str | None, namespace: str) -> Finding:
    if message is not None:
        return Finding(
            "refused",
            function_id,
            f"the engine does not take this function: {message}",
            "see the engine's log",
        )
    who = f"the worker {quoted(owner)}" if owner else "another worker"
    reason = f"{who} has this function in the namespace {quoted(namespace)} and answers its calls"
    return Finding("refused", function_id, reason, _STOP_ONE)


def _taken(type_id: str, owner: str, namespace: str) -> Finding:
    reason = f"the worker {quoted(owner)} provides this trigger type in the namespace {quoted(namespace)}"
    return Finding("refused", type_id, f"{reason}: new subscribers hear of its changes alone", _STOP_ONE)
