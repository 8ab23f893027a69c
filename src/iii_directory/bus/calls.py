"""The calls that a worker has made and that have no answer yet: their ids, who waits, and how long."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from iii_directory.bus.seam import CallError
from iii_directory.bus.tasks import each_in_turns
from iii_directory.limits import LARGE_VALUE_BYTES
from iii_directory.shapes import items_of
from iii_directory.wire.json_text import (
    ABSENT,
    is_read_in_turns,
    items_of_list,
    read,
    takes_long,
    whole,
)
from iii_directory.wire.protocol import DESERIALIZATION_ERROR, TIMEOUT

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from iii_directory.bus.tasks import Tasks
    from iii_directory.wire.messages import InvocationResult


def new_id() -> str:
    """A random UUID of version 4 as text, made in a third of the time that the library's object takes."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class Calls:
    """The calls under way, by their ids. They belong to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tasks: Tasks) -> None:
        self._loop = loop
        self._tasks = tasks
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    async def make(self, function_id: str, say: Callable[[str], None], timeout_ms: float) -> Any:
        """Say a call by the id it is given, and wait for its answer.

        Raises:
            CallError: it was answered by an error, or not in time, or can no longer be.
        """
        call_id = new_id()
        answer = self._waiting[call_id] = self._loop.create_future()
        try:
            say(call_id)
            # What an engine in this process provides has answered by now, and nobody has to wait.
            if answer.done():
                return answer.result()
            deadline = self._loop.call_later(timeout_ms / 1000, _too_late, answer, function_id, timeout_ms)
            try:
                return await answer
            finally:
                deadline.cancel()
        finally:
            del self._waiting[call_id]

    def answered(self, message: InvocationResult) -> None:
        """Settle the call that an engine answers; the answer to one that timed out is dropped."""
        result = message.result
        if type(result) is msgspec.Raw and len(result) > LARGE_VALUE_BYTES:
            result = items_of_list(result) or result
        if is_read_in_turns(result):
            self._tasks.start(self._read_in_turns(message, items_of(result)))
        else:
            self._settle(message, result)

    def fail(self, code: str, problem: str) -> None:
        """None of the calls under way can be answered any more."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(CallError(code, problem))

    async def _read_in_turns(self, message: InvocationResult, items: list[Any]) -> None:
        """Read the values of a long list; one that takes too long to read by itself is null."""
        values: list[object] = []
        await each_in_turns(items, lambda item: values.append(None if takes_long(item) else read(item)))
        self._settle(message, values)

    def _settle(self, message: InvocationResult, result: object) -> None:
        answer = self._waiting.get(message.invocation_id)
        if answer is None or answer.done():
            return
        error = message.error
        if error is not None:
            answer.set_exception(CallError(str(error.get("code")), str(error.get("message"))))
            return
        try:
            answer.set_result(None if result is ABSENT else whole(result))
        except ValueError as problem:
            answer.set_exception(CallError(DESERIALIZATION_ERROR, f"the answer cannot be read: {problem}"))


def _too_late(answer: asyncio.Future[Any], function_id: str, timeout_ms: float) -> None:
    if not answer.done():
        answer.set_exception(CallError(TIMEOUT, f"{function_id} did not answer within {timeout_ms:.0f} ms"))
