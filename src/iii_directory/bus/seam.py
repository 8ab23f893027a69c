"""The engine as this worker sees it: call, be called, tell subscribers.

There are two behind the one seam: an engine elsewhere, over a socket, and the embedded engine in this very
process, without a socket. Handlers run on the bus's event loop. What they raise reaches the caller as one
sentence: a :class:`~iii_directory.errors.DirectoryError` as it is, anything else as an internal error that is
in the log.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from iii_directory.documents.payload_fields import check_names
from iii_directory.errors import INTERNAL, INVALID_FIELD, DirectoryError
from iii_directory.shapes import is_object, object_of, text_of
from iii_directory.wire.protocol import (
    CALLER,
    CONNECTION_LOST,
    DEFAULT_NAMESPACE,
    INVOCATION_STOPPED,
    TIMEOUT,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.wire.failure_log import FailureLog

log = logging.getLogger("iii_directory.worker")

Payload = dict[str, Any]
Handler = Callable[[Payload], Awaitable[object]]
Action = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function as an engine is told of it: what it is for, what it takes, what it answers."""

    id: str
    description: str
    request: Payload
    response: Payload | None
    metadata: Payload | None = None
    long_fields: tuple[str, ...] = ()
    """What it takes that is a text with a limit of its own; every other string of a call is a name."""


def listener(function_id: str, description: str) -> Function:
    """A function that only hears events: it answers nothing, and is nobody's to call."""
    return Function(
        id=function_id,
        description=description,
        request={"type": "object"},
        response=None,
        metadata={"internal": True},
    )


class CallError(Exception):
    """A call that came back as an error, or not at all. ``code`` is the protocol's, or a worker's own."""

    def __init__(self, code: str, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.code = code
        self.sent = sent
        """False when the call never left this process."""

    @property
    def may_be_done(self) -> bool:
        """Whether what was asked for may have happened all the same: it was sent, and nobody said no."""
        return self.sent and self.code in (TIMEOUT, CONNECTION_LOST, INVOCATION_STOPPED)


class Subscription(NamedTuple):
    """A function somebody bound to one of our trigger types."""

    id: str
    function_id: str
    metadata: Any
    namespace: str | None
    observes: bool = False
    """Whether the engine keeps its address and metadata, and it is told by its id."""


class Refusal(NamedTuple):
    """Why an engine did not take a function: somebody else has its id, or the engine says what is wrong."""

    owner_id: str
    """The connection that has it; empty when it is nobody's."""
    message: str | None


class TriggerOwner(Protocol):
    """Who keeps the subscriptions of a trigger type. The same id may come again; it replaces."""

    def subscribed(self, subscription: Subscription) -> None: ...

    def unsubscribed(self, subscription_id: str) -> None: ...


class Bus(Protocol):
    """What the handlers need of an engine; all of it is called on the bus's event loop."""

    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        """The function's result. Without a namespace the worker's own is meant.

        Raises:
            CallError: the call failed or took longer than ``timeout_ms``.
        """
        ...

    async def tell(self, subscription: Subscription, event: Mapping[str, Any]) -> None:
        """Call the function that somebody bound, without waiting for an answer."""
        ...


class WorkerBus(Bus, Protocol):
    """What a whole worker needs besides; all of it may be called from any thread."""

    @property
    def name(self) -> str:
        """What this worker is called on the engine."""
        ...

    @property
    def namespace(self) -> str:
        """Where the functions of this worker are."""
        ...

    @property
    def url(self) -> str:
        """The engine's address, as people know it."""
        ...

    def register_function(self, function: Function, handler: Handler) -> None: ...

    def register_listener(
        self,
        function_id: str,
        heard: Callable[[Payload], None],
        *,
        description: str,
        doubted: Callable[[Payload], None] | None = None,
        hears_workers: bool = False,
    ) -> None:
        """A function that takes events, which must be quick and not fail, and answers nothing.

        What a worker sends there in the engine's name is not heard, unless events of workers are wanted. An
        engine elsewhere may be too old to hand back what its bindings are marked with; then published data
        looks like its events, and ``doubted`` takes them: it may look, and believes nothing that it is told.
        """
        ...

    def register_trigger_type(
        self, type_id: str, owner: TriggerOwner, *, description: str, event_schema: Payload
    ) -> None:
        """Something that can be subscribed to: a trigger type, or where the engine has these, an observable
        function that stands for one. The owner is told of subscribers of either way alike.
        """
        ...

    def bind(self, trigger_type: str, function_id: str, config: Payload) -> None:
        """Bind one of our functions to a trigger type; replayed after every reconnect."""
        ...

    def on_connected(self, action: Action) -> None:
        """Run something on the bus's loop at the start if connected, and after every connect."""
        ...

    def on_lost(self, action: Callable[[], None]) -> None:
        """Run something on the bus's loop when the connection is gone; it may come again for one loss."""
        ...

    @property
    def refused(self) -> Mapping[str, Refusal]:
        """The functions that the engine did not take from this worker, by their ids; for the loop alone."""
        ...

    def on_refused(self, action: Callable[[], None]) -> None:
        """Run something on the bus's loop when a function is refused."""
        ...

    def offer_again(self, ids: Iterable[str]) -> None:
        """Register functions and trigger types once more, by their ids; on the bus's loop.

        What the engine refuses again is among the refused by the time that it answers a later call.
        """
        ...

    def start(self) -> None:
        """Watch the connection; call after everything is registered."""
        ...

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the bus's loop from another thread and wait for it."""
        ...

    def close(self) -> None:
        """Leave the engine; not to be called on the bus's loop."""
        ...


def is_forged(event: object) -> bool:
    """Whether an event was sent by a worker: engines sign the calls of workers, and not their own."""
    return isinstance(event, dict) and CALLER in event


def is_embedded(health: object) -> bool:
    """Whether an answer of ``engine::health::check`` is that of our own engine."""
    components = object_of(object_of(health).get("components"))
    return object_of(components.get("engine")).get("kind") == "embedded"


def own_namespace(chosen: str | None) -> str:
    """The namespace of a worker, by the SDK's rule."""
    return chosen or os.environ.get("III_NAMESPACE", "").strip() or DEFAULT_NAMESPACE


def guarded(function: Function, handler: Handler, failures: FailureLog) -> Callable[[Any], Awaitable[object]]:
    """Wrap a handler: refuse payloads that are not objects, and turn every failure into a sentence."""
    only_objects = function.request.get("type") == "object"
    names = tuple(object_of(function.request.get("properties")).keys() - set(function.long_fields))

    async def run(data: Any) -> object:
        if only_objects and data is not None and not is_object(data):
            raise DirectoryError(INVALID_FIELD, "the payload must be an object")
        payload = object_of(data)
        check_names(payload, names)
        try:
            return await handler(payload)
        except DirectoryError as error:
            # Its cause may name a path or an address.
            raise error from None
        except Exception:  # noqa: BLE001 (it is logged with its traceback)
            failures.failed(f"{function.id} failed", text_of(payload.get(CALLER)))
            raise DirectoryError(INTERNAL, f"{function.id} failed unexpectedly") from None

    return run
