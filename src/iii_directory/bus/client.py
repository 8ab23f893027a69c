"""Call an engine once from a program that is not a worker: connect, call, leave. Quick to import."""

from __future__ import annotations

import json
import signal
import threading
import time
import uuid
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException
from websockets.sync.client import connect

from iii_directory.limits import MAX_MESSAGE_BYTES
from iii_directory.shapes import is_object, object_of
from iii_directory.text import shown_url
from iii_directory.wire.ownership import is_strangers
from iii_directory.wire.protocol import INVOCATION_RESULT, INVOKE_FUNCTION, WORKER_REGISTERED

if TYPE_CHECKING:
    from collections.abc import Generator

    from websockets.sync.client import ClientConnection


_PROBE_SECONDS: Final = 2.0


class EngineUnreachableError(Exception):
    """No engine answered; the text says at which address and why."""


class RemoteError(Exception):
    """The call came back as an error body."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(str(body.get("message", "")))
        self.body = body


def probe(url: str, *, token: str | None = None) -> bool:
    """Return whether an engine answers at the address within two seconds.

    Raises:
        EngineUnreachableError: something answers there, but it is not an engine or refuses us.
    """
    try:
        with _explained(url), _ended_by_ctrl_c(), _connected(url, token, _PROBE_SECONDS) as socket:
            return _received(socket, _PROBE_SECONDS).get("type") == WORKER_REGISTERED
    except (ConnectionRefusedError, TimeoutError):
        return False


def call_function(
    url: str,
    function_id: str,
    payload: object,
    *,
    timeout: float = 30.0,
    token: str | None = None,
    namespace: str | None = None,
) -> Any:
    """Make one call and return its result.

    Raises:
        EngineUnreachableError: nothing answered at the address, or not in time.
        RemoteError: the call failed on the other side.
    """
    call_id = str(uuid.uuid4())
    ids = {"invocation_id": call_id, "function_id": function_id}
    message = {"type": INVOKE_FUNCTION, **ids, "data": payload}
    if namespace is not None:
        message["namespace"] = namespace
    deadline = time.monotonic() + timeout
    try:
        with _explained(url), _connected(url, token, timeout) as socket:
            socket.send(json.dumps(message))
            reply: dict[str, Any] = {}
            while reply.get("type") != INVOCATION_RESULT or reply.get("invocation_id") != call_id:
                reply = _received(socket, max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        raise EngineUnreachableError(f"{function_id} did not answer within {timeout:g} s") from None
    except ConnectionRefusedError as error:
        raise EngineUnreachableError(f"no iii engine answers at {shown_url(url)}: {error.strerror}") from None
    if reply.get("error") is not None:
        raise RemoteError(object_of(reply["error"]))
    return reply.get("result")


@contextmanager
def _explained(url: str) -> Generator[None]:
    """Turn failures of a connection into a sentence, all but its refusal and timeouts."""
    shown = shown_url(url)
    try:
        yield
    except (ConnectionRefusedError, TimeoutError):
        raise
    except InvalidStatus as error:
        status = error.response.status_code
        problem = f"what listens at {shown} refused the connection (HTTP {status})"
        if status == HTTPStatus.UNAUTHORIZED:
            problem = f"the engine at {shown} asks for a token: set III_TOKEN"
        raise EngineUnreachableError(problem) from None
    except (OSError, InvalidURI) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise EngineUnreachableError(f"no iii engine answers at {shown}: {reason}") from None
    except (InvalidHandshake, ValueError) as error:
        raise EngineUnreachableError(f"what listens at {shown} is not an iii engine: {error}") from None
    except WebSocketException as error:
        raise EngineUnreachableError(f"the engine at {shown} went away: {error}") from None


@contextmanager
def _ended_by_ctrl_c() -> Generator[None]:
    """While a command waits for an engine, Ctrl-C ends it as a kill would.

    As an exception it could be lost for as long as the wait lasts: a signal that comes in the moment before
    the interpreter begins to wait for a lock is looked at when it has it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _connected(url: str, token: str | None, timeout: float) -> ClientConnection:
    check_listener(url, token)
    headers = {"Authorization": f"Bearer {token}"} if token else None
    return connect(
        url,
        additional_headers=headers,
        compression=None,
        open_timeout=timeout,
        close_timeout=1,
        max_size=MAX_MESSAGE_BYTES,
    )


def check_listener(url: str, token: str | None) -> None:
    """Refuse to send a secret to another user who listens in the place of an engine on this machine.

    Raises:
        EngineUnreachableError: what listens there belongs to another user, who is not root.
    """
    if (token or urlsplit(url).password) and is_strangers(url):
        raise EngineUnreachableError(
            f"what listens at {shown_url(url)} belongs to another user of this machine; "
            "the token was not sent there"
        )


def _received(socket: ClientConnection, timeout: float) -> dict[str, Any]:
    """Return the next message; ValueError if it is not a JSON object, which no engine sends."""
    message: object = json.loads(socket.recv(timeout))
    if not is_object(message):
        raise ValueError("it sent something else than a JSON object")
    return message
