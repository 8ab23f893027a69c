"""The published SDK behind the bus: how the directory joined engines before it spoke the protocol itself."""

from __future__ import annotations

import asyncio
import logging
import warnings
from typing import TYPE_CHECKING, Any, Final

from iii import InitOptions, InvocationError, RegistrationRejectedError
from iii.iii import III
from iii.iii_constants import ReconnectionConfig
from iii.trigger import TriggerHandler

from iii_directory.bus.client import EngineUnreachableError, check_listener
from iii_directory.bus.seam import (
    CallError,
    Function,
    Subscription,
    guarded,
    is_forged,
    own_namespace,
)
from iii_directory.bus.tasks import Tasks
from iii_directory.errors import DirectoryError
from iii_directory.text import shown_url
from iii_directory.wire.message_socket import FailureLog
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from iii_directory.bus.seam import Action, Handler, Payload, Refusal, TriggerOwner

log = logging.getLogger("iii_directory.worker")
_TAKE_OVER_SECONDS: Final = 2.0
# An engine lets a second worker of a name connect and refuses it a moment later.
_REFUSAL_SECONDS: Final = 0.5
_RECONNECT: Final = ReconnectionConfig(initial_delay_ms=250, max_delay_ms=5_000, backoff_multiplier=2.0)


class SdkBus:
    """The published SDK as a bus.

    It reconnects by itself, and replays what was registered.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str,
        description: str,
        namespace: str | None = None,
        token: str | None = None,
    ) -> None:
        _quiet_the_sdk()
        self.name = name
        self.url = shown_url(url)
        try:
            check_listener(url, token)
        except EngineUnreachableError as error:
            log.warning("%s", error)
            token = None
        # The SDK has no way to ask it for its answer.
        self.namespace = own_namespace(namespace)
        self._closing = False
        self._refused = False
        self.refused: dict[str, Refusal] = {}
        self._losses = 0
        self.on_connected: list[Action] = []
        self.on_lost: list[Callable[[], None]] = []
        self.on_refused: list[Callable[[], None]] = []
        """Not run: the SDK does not tell what the engine refused."""
        self._tasks = Tasks()
        self._client: Any = III(
            url,
            InitOptions(
                worker_name=name,
                worker_description=description,
                namespace=namespace,
                headers={"Authorization": f"Bearer {token}"} if token else None,
                enable_metrics_reporting=False,
                reconnection_config=_RECONNECT,
                otel={"enabled": False},
            ),
        )
        self._loop: asyncio.AbstractEventLoop = self._client._loop
        self._failures = FailureLog(log)

    # Registering, from any thread

    def register_function(self, function: Function, handler: Handler) -> None:
        run = guarded(function, handler, self._failures)
        # The SDK makes schemas out of annotations; ours are in the table of functions, or left out.
        run.__annotations__ = {}
        self._client.register_function(
            function.id,
            run,
            description=function.description,
            request_format=function.request,
            response_format=function.response,
            metadata=function.metadata,
        )

    def register_listener(
        self,
        function_id: str,
        heard: Callable[[Payload], None],
        *,
        description: str,
        doubted: Callable[[Payload], None] | None = None,  # noqa: ARG002 (no forgery is measured)
        hears_workers: bool = False,
    ) -> None:
        async def handler(event: Payload) -> None:
            if hears_workers or not is_forged(event):
                heard(event)

        hears = Function(
            id=function_id,
            description=description,
            request={"type": "object"},
            response=None,
            metadata={"internal": True},
        )
        self.register_function(hears, handler)

    def register_trigger_type(
        self, type_id: str, owner: TriggerOwner, *, description: str, event_schema: Payload
    ) -> None:
        wanted = {"id": type_id, "description": description, "call_request_format": event_schema}
        # Twice: the SDK sends its frame before it stores the handler, so a binding that the engine
        # replays at once can find no handler. The second time it does, and bindings replace by id.
        for _ in range(2):
            self._client.register_trigger_type(wanted, _OwnerAdapter(owner))

    def bind(self, trigger_type: str, function_id: str, config: Payload) -> None:
        self._client.register_trigger({"type": trigger_type, "function_id": function_id, "config": config})

    # Life

    def offer_again(self, ids: Iterable[str]) -> None:
        """Nothing is known to be refused."""

    def start(self) -> None:
        self._client.add_connection_state_listener(self._state_changed)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._closing = True
        self._client.shutdown()
        if not self._loop.is_running():
            self._loop.close()  # the SDK stops its loop and leaves it open

    # Bus

    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        request: Payload = {"function_id": function_id, "payload": dict(payload), "timeout_ms": timeout_ms}
        if namespace is not None:
            request["namespace"] = namespace
        try:
            return await self._client.trigger_async(request)
        except InvocationError as error:
            raise CallError(error.code, error.message) from None
        except RegistrationRejectedError as error:
            raise CallError(error.code, f"another worker called {self.name} is connected") from None

    async def tell(self, subscription: Subscription, event: Mapping[str, Any]) -> None:
        function_id = subscription.function_id
        request: Payload = {
            "function_id": function_id,
            "payload": dict(event),
            "action": {"type": "void"},
            "namespace": subscription.namespace or DEFAULT_NAMESPACE,
        }
        if subscription.metadata is not None:
            request["metadata"] = subscription.metadata
        try:
            await self._client.trigger_async(request)
        except InvocationError as error:
            log.warning("telling %s failed: %s", function_id, error.message)
        except RegistrationRejectedError:
            log.warning("telling %s failed: another worker is in this one's place", function_id)

    # Inner workings

    def _state_changed(self, state: str) -> None:
        self._loop.call_soon_threadsafe(self._follow, state)

    def _follow(self, state: str) -> None:
        if self._closing:
            return
        if state == "connected":
            self._tasks.start(self._joined(self._losses))
            return
        self._losses += 1
        for lost in self.on_lost:
            lost()
        if state == "failed":
            # The engine lets one worker of a name in; the SDK gives up on the second. We wait instead.
            if not self._refused:
                log.warning(
                    "another worker called %s is connected and owns the functions; waiting until it leaves",
                    self.name,
                )
            self._refused = True
            self._loop.call_later(_TAKE_OVER_SECONDS, lambda: self._tasks.start(self._try_again()))

    async def _joined(self, losses: int) -> None:
        if self._refused:
            await asyncio.sleep(_REFUSAL_SECONDS)
            if losses != self._losses:
                return
            self._refused = False
            log.warning("the other worker called %s has left; this one takes over", self.name)
        for action in self.on_connected:
            self._tasks.start(action())

    async def _try_again(self) -> None:
        if not self._closing:
            # The SDK takes a refusal for final, and every call would repeat it.
            self._client._fatal_error = None
            await self._client.connect_async()


class _OwnerAdapter(TriggerHandler[Any]):
    """A TriggerOwner in the SDK's clothes."""

    def __init__(self, owner: TriggerOwner) -> None:
        self._owner = owner

    async def register_trigger(self, config: Any) -> None:
        self._owner.subscribed(
            Subscription(config.id, config.function_id, config.metadata, getattr(config, "namespace", None))
        )

    async def unregister_trigger(self, config: Any) -> None:
        self._owner.unsubscribed(config.id)


class _SentencesOnly(logging.Filter):
    """Keeps our errors out of the SDK's log, and their traces off the wire.

    The SDK logs a handler's exception and then formats it into the answer; by then it has no trace left.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "deprecated" in message or "Worker registration rejected" in message:
            return False  # nothing can be done about the one, and the bus speaks of the other
        error = record.exc_info[1] if record.exc_info else None
        if not _has_sentence(error):
            return True
        while error is not None:
            error.__traceback__ = None
            error = error.__cause__ or error.__context__
        return False


def _has_sentence(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, DirectoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _quiet_the_sdk() -> None:
    # Engines before 0.25 know no other way to own or bind triggers than the one 0.25 deprecates.
    warnings.filterwarnings(
        "ignore", message=".*deprecated.*", category=DeprecationWarning, module="iii_directory"
    )
    logger = logging.getLogger("iii.iii")
    if not any(isinstance(known, _SentencesOnly) for known in logger.filters):
        logger.addFilter(_SentencesOnly())
