"""Call the engine's own functions, for every part of this worker that asks the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.bus.seam import CallError, Subscription
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.bus.seam import Bus
    from iii_directory.config import Settings


class EngineCalls:
    """Calls functions of the engine's default namespace, with the timeout of the current settings."""

    def __init__(self, bus: Bus, settings: Settings) -> None:
        self._bus = bus
        self._settings = settings

    async def call(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        """Return the answer.

        Raises:
            CallError: the engine did not give one.
        """
        return await self._bus.call(
            function_id, payload, timeout_ms=self._settings.state_timeout_ms, namespace=DEFAULT_NAMESPACE
        )

    async def find(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        """Return the answer, or None when the engine does not give one."""
        try:
            return await self.call(function_id, payload)
        except CallError:
            return None

    async def send(self, function_id: str, payload: Mapping[str, Any]) -> None:
        """Call a function that is not to answer."""
        await self._bus.tell(Subscription("", function_id, None, DEFAULT_NAMESPACE), payload)
