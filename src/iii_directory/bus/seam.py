"""What handlers need of an engine: call, be called, tell subscribers.

There are two implementations: an engine elsewhere, over a socket, and the embedded engine in this process,
without one. Handlers run on the bus's event loop. What they raise reaches the caller as one
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
from iii_directory.wire import protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.bus.message_bus import MessageBus
    from iii_directory.wire.message_socket import FailureLog

    WorkerBus = MessageBus
    """What a whole worker needs of an engine, besides :class:`Bus`."""

log = logging.getLogger("iii_directory.worker")

Payload = dict[str, Any]
Handler = Callable[[Payload], Awaitable[object]]
Action = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The description of a function that an engine is given."""

    id: str
    description: str
    request: Payload
    response: Payload | None
    metadata: Payload | None = None
    long_fields: tuple[str, ...] = ()
    """The fields that are texts with limits of their own; every other string of a call is a name."""


class CallError(Exception):
    """A call that came back as an error, or not at all. ``code`` is the protocol's, or a worker's own."""

    def __init__(self, code: str, message: str, *, data: object = None, sent: bool = True) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        """What `errors.error_of` reads, where the worker sent it and the engine passed it on."""
        self.sent = sent
        """False when the call never left this process."""

    @property
    def may_be_done(self) -> bool:
        """Return whether the call may have been carried out: it was sent and not refused."""
        return self.sent and self.code in (
            protocol.TIMEOUT,
            protocol.CONNECTION_LOST,
            protocol.INVOCATION_STOPPED,
        )


class Subscription(NamedTuple):
    """A function that a worker bound to one of our trigger types."""

    id: str
    function_id: str
    metadata: Any
    namespace: str | None
    observes: bool = False
    """Whether the engine keeps its address and metadata, and it is told by its id."""


class Refusal(NamedTuple):
    """Why an engine refused a function: another worker has its id, or the engine says what is wrong."""

    owner_id: str
    """The connection that has it; empty if no connection has."""
    message: str | None


class TriggerOwner(Protocol):
    """Keeps the subscriptions of a trigger type. A subscription with a known id replaces the known one."""

    def subscribed(self, subscription: Subscription) -> None: ...

    def unsubscribed(self, subscription_id: str) -> None: ...


class Bus(Protocol):
    """What the handlers need of an engine; all of it is called on the bus's event loop."""

    def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Awaitable[Any]:
        """Call a function, by default in the worker's own namespace, and return its result to await.

        Awaiting raises `CallError` if the call failed or took longer than ``timeout_ms``.
        """
        ...

    async def tell(self, subscription: Subscription, event: Mapping[str, Any]) -> None:
        """Call the function of a subscription, without waiting for an answer."""
        ...


def is_forged(event: object) -> bool:
    """Return whether an event was sent by a worker: engines sign the calls of workers, and not their own."""
    return isinstance(event, dict) and protocol.CALLER in event


def is_embedded(health: object) -> bool:
    """Return whether an answer of ``engine::health::check`` is that of our own engine."""
    components = object_of(object_of(health).get("components"))
    return object_of(components.get("engine")).get("kind") == "embedded"


def own_namespace(chosen: str | None) -> str:
    """Return the namespace of a worker, by the SDK's rule."""
    return chosen or os.environ.get("III_NAMESPACE", "").strip() or protocol.DEFAULT_NAMESPACE


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
            failures.failed(f"{function.id} failed", text_of(payload.get(protocol.CALLER)))
            raise DirectoryError(INTERNAL, f"{function.id} failed unexpectedly") from None

    return run
