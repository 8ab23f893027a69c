"""Calls of the engine's own functions, which every part of this worker that asks the engine makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iii_directory.engine.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.bus.seam import Bus
    from iii_directory.config import Settings


class EngineCalls:
    """They are in the engine's default namespace, and may take as long as the settings say at that time."""

    def __init__(self, bus: Bus, settings: Settings) -> None:
        self._bus = bus
        self._settings = settings

    async def call(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        """The answer.

        Raises:
            CallError: the engine did not give one.
        """
        return await self._bus.call(
            function_id, payload, timeout_ms=self._settings.state_timeout_ms, namespace=DEFAULT_NAMESPACE
        )
