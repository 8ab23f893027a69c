"""Events of the trigger types the engine provides itself. Pure.

Every subscriber is called for itself: one that is slow or gone holds nobody up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from iii_directory.limits import MAX_EVENT_DEPTH, MAX_NESTED_EVENTS
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.engine.bindings import Binding
    from iii_directory.engine.calls import Calls
    from iii_directory.engine.engine_state import EngineState
    from iii_directory.engine.triggers import Triggers
    from iii_directory.wire.json_text import Json

T = TypeVar("T")


class Cause:
    """Something that happened, and how many events came of events that came of it."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events = 0


class Events:
    """Fires the built-in types."""

    def __init__(self, engine_state: EngineState, calls: Calls, triggers: Triggers) -> None:
        self._engine_state = engine_state
        self._calls = calls
        self._triggers = triggers
        self._depth = 0
        self._cause = Cause()

    def fire(self, trigger_type: str, event: object, matches: Callable[[Json], bool] | None = None) -> None:
        """Tell every subscriber of a built-in type; one that is slow or gone holds nobody up."""
        self._fire(trigger_type, matches, lambda binding: self._deliver(binding, event))

    def fire_on_condition(self, trigger_type: str, event: object, matches: Callable[[Json], bool]) -> None:
        """Like :meth:`fire`, but a binding that names a condition function has it asked first."""
        self._fire(trigger_type, matches, lambda binding: self._ask_and_deliver(binding, event))

    def fire_bare(self, trigger_type: str, data: object, matches: Callable[[Json], bool]) -> None:
        """Like :meth:`fire`, for a type that does not deliver metadata."""
        self._fire(
            trigger_type,
            matches,
            lambda binding: self._calls.call(binding.function_id, data, namespace=binding.namespace),
        )

    def continued(self, action: Callable[[T], None]) -> Callable[[T], None]:
        """An action that is a part of what happens now, for later: its events are counted with these."""
        depth, cause = self._depth, self._cause

        def later(given: T) -> None:
            before = self._depth, self._cause
            self._depth, self._cause = depth, cause
            try:
                action(given)
            finally:
                self._depth, self._cause = before

        return later

    def _fire(
        self,
        trigger_type: str,
        matches: Callable[[Json], bool] | None,
        deliver: Callable[[Binding], None],
    ) -> None:
        # A built-in function that an event called causes events of its own, and these may call it again.
        if self._depth:
            self._cause.events += 1
        else:
            self._cause = Cause()
        if self._depth > MAX_EVENT_DEPTH or self._cause.events > MAX_NESTED_EVENTS:
            self._engine_state.log("warning", f"events of {trigger_type} cause each other and were stopped")
            return
        provider = (DEFAULT_NAMESPACE, trigger_type)
        bound = [b for b in self._triggers.live(trigger_type) if b.provider == provider]
        chosen = [b for b in bound if matches is None or matches(_config_of(b))]
        self._depth += 1
        try:
            for binding in chosen:
                deliver(binding)
        finally:
            self._depth -= 1

    def _deliver(self, binding: Binding, event: object) -> None:
        self._calls.call(binding.function_id, event, namespace=binding.namespace, metadata=binding.metadata)

    def _ask_and_deliver(self, binding: Binding, event: object) -> None:
        condition = _config_of(binding).get("condition_function_id")
        if not isinstance(condition, str):
            self._deliver(binding, event)
            return

        def answered(result: object, error: Json | None) -> None:
            # Only an explicit false or a failure holds the event back; and by now it may be unbound.
            if error is None and not _is_false(result) and self._triggers.bindings.get(binding.id) is binding:
                self._deliver(binding, event)

        self._calls.call(condition, event, namespace=binding.namespace, outcome=answered)


def _is_false(result: object) -> bool:
    return result is False or (type(result) is msgspec.Raw and bytes(result) == b"false")


def _config_of(binding: Binding) -> Json:
    """The config of a binding to a built-in type; null and non-objects count as empty."""
    return binding.config if isinstance(binding.config, dict) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
