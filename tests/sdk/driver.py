"""Drives the Python SDK by JSON lines: a command a line on stdin, answers and events on stdout.

A command is ``{"id", "do", "client", …}`` and is answered with ``{"id", "value"}`` or ``{"id", "error"}``.
Events are ``{"event": "called" | "bound" | "unbound" | "log", …}``. driver.mjs speaks the same for Node.
It runs on every SDK version, so it uses what all of them have.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import importlib
import json
import logging
import os
import queue
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from iii import InitOptions, InvocationError, RegistrationRejectedError, register_worker
from iii.helpers import create_channel
from iii.trigger import TriggerConfig, TriggerHandler

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
OUT = sys.stdout
# The one queue that may be given something while it is being given something: the SDK logs when
# a task of it is collected as garbage, which can be at any moment and in any thread.
LINES: queue.SimpleQueue[str] = queue.SimpleQueue()


def say(**line: Any) -> None:
    LINES.put(json.dumps(line) + "\n")


def write_lines() -> None:
    while True:
        OUT.write(LINES.get())
        OUT.flush()


class Client:
    """One connection to an engine, with what it registered."""

    def __init__(self, handle: str, url: str, name: str, **options: Any) -> None:
        self.handle = handle
        self.functions: dict[str, Any] = {}
        self.triggers: dict[str, Any] = {}
        self.bindings: dict[str, Bindings] = {}
        self.iii = register_worker(url, InitOptions(worker_name=name, otel={"enabled": False}, **options))

    def state(self) -> str:
        return self.iii.get_connection_state()

    def register(self, function: str, behaviour: str, **options: Any) -> None:
        behave = BEHAVIOURS[behaviour]

        # Without annotations, from which the SDK would make a schema.
        async def handler(data, metadata=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
            if behaviour in TELLING:
                say(event="called", client=self.handle, function=function, payload=data, metadata=metadata)
            return await behave(self, data, metadata)

        self.functions[function] = self.iii.register_function(function, handler, **options)

    def unregister(self, function: str) -> None:
        self.functions.pop(function).unregister()

    def bind(self, trigger: str, **fields: Any) -> None:
        self.triggers[trigger] = self.iii.register_trigger(fields)

    def unbind(self, trigger: str) -> None:
        self.triggers.pop(trigger).unregister()

    def own(self, type: str, description: str, *, refuses: str | None = None) -> None:  # noqa: A002
        self.bindings[type] = Bindings(self.handle, type, refuses)
        # Twice: 0.25 sends before it stores the handler, and loses a binding replayed in between.
        for _ in range(2):
            self.iii.register_trigger_type({"id": type, "description": description}, self.bindings[type])

    def disown(self, type: str) -> None:  # noqa: A002
        del self.bindings[type]
        self.iii.unregister_trigger_type({"id": type, "description": ""})

    def fire(self, type: str, payload: Any) -> int:  # noqa: A002
        bound = list(self.bindings[type].live.values())
        for one in bound:
            where = {"function_id": one.function_id, "namespace": one.namespace}
            what = {"payload": payload, "metadata": one.metadata, "action": {"type": "void"}}
            self.iii.trigger({**where, **what})
        return len(bound)

    def call(self, function: str, *, pad: int = 0, **request: Any) -> Any:
        if pad:
            request["payload"] = {"pad": "x" * pad}
        return self.iii.trigger({"function_id": function, **request})

    def stream_to(self, function: str, size: int) -> Any:
        """Write into a channel whose other end was handed to a function; what that made of it."""
        channel = create_channel(self.iii)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.call, function, payload={"reader": channel.reader_ref.model_dump()})
            asyncio.run(write_all(channel.writer, size))
            return answer.result()

    def stream_from(self, function: str, size: int) -> Any:
        """Read from a channel whose other end was handed to a function."""
        channel = create_channel(self.iii)
        with ThreadPoolExecutor(1) as pool:
            payload = {"writer": channel.writer_ref.model_dump(), "size": size}
            answer = pool.submit(self.call, function, payload=payload)
            received = asyncio.run(read_all(channel.reader))
            answer.result()
            return received

    def close(self) -> None:
        self.iii.shutdown()


class Bindings(TriggerHandler[Any]):
    """What is bound to a trigger type, by trigger id."""

    def __init__(self, client: str, trigger_type: str, refuses: str | None) -> None:
        self._client = client
        self._type = trigger_type
        self._refuses = refuses
        self.live: dict[str, TriggerConfig[Any]] = {}

    async def register_trigger(self, config: TriggerConfig[Any]) -> None:
        if self._refuses:
            raise ValueError(self._refuses)
        self.live[config.id] = config
        self._tell("bound", **config.model_dump())

    async def unregister_trigger(self, config: TriggerConfig[Any]) -> None:
        self.live.pop(config.id, None)
        self._tell("unbound", id=config.id)

    def _tell(self, event: str, **fields: Any) -> None:
        say(event=event, client=self._client, type=self._type, **fields)


async def write_all(writer: Any, size: int) -> None:
    await writer.send_message_async("a text")
    await writer.write(bytes(index % 251 for index in range(size)))
    await writer.close_async()


async def read_all(reader: Any) -> Json:
    texts: list[str] = []
    reader.on_message(texts.append)
    content = await reader.read_all()
    return {"texts": texts, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


async def echo(client: Client, data: Any, metadata: Any) -> Json:
    return {"payload": data, "metadata": metadata}


async def nothing(client: Client, data: Any, metadata: Any) -> None:
    return None


async def fail(client: Client, data: Any, metadata: Any) -> None:
    raise ValueError(data["message"])


async def hold(client: Client, data: Any, metadata: Any) -> None:
    await asyncio.Event().wait()


async def relay(client: Client, data: Any, metadata: Any) -> Json:
    request = {"function_id": data["to"], "payload": data["payload"]}
    return {"relayed": await client.iii.trigger_async(request)}


async def pad(client: Client, data: Any, metadata: Any) -> Json:
    return {"pad": "x" * data["size"]}


async def measure(client: Client, data: Any, metadata: Any) -> Json:
    return {"size": len(data["pad"])}


async def read(client: Client, data: Any, metadata: Any) -> Json:
    return await read_all(data["reader"])


async def write(client: Client, data: Any, metadata: Any) -> None:
    await write_all(data["writer"], data["size"])


BEHAVIOURS: dict[str, Callable[[Client, Any, Any], Any]] = {
    function.__name__: function for function in (echo, nothing, fail, hold, relay, pad, measure, read, write)
}
TELLING = {"echo", "nothing", "hold"}
"""The behaviours whose payloads are small and plain enough to be told of."""


class Driver:
    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def obey(self, command: Json) -> None:
        number = command.pop("id")
        try:
            say(id=number, value=self._do(**command))
        except InvocationError as error:
            say(id=number, error={"code": error.code, "message": error.message})
        except RegistrationRejectedError as error:
            say(id=number, error={"code": error.code, "message": str(error)})
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            say(id=number, error={"code": type(error).__name__, "message": str(error)})

    def _do(self, do: str, client: str, **arguments: Any) -> Any:
        if do == "connect":
            self._clients[client] = Client(client, **arguments)
            return None
        if do == "close":
            return self._clients.pop(client).close()
        return getattr(self._clients[client], do)(**arguments)


class Log(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(event="log", text=record.getMessage())


def become(user: int) -> None:
    """Go on as another user of this machine, once everything is read that they might not read."""
    # Its module is imported when it is used first.
    "localhost".encode("idna")
    # The SDK reads its own version from disk at every connect.
    sdk: Any = importlib.import_module("iii.iii")
    sdk.version = functools.cache(sdk.version)
    sdk.version("iii-sdk")
    os.setgid(user)
    os.setuid(user)


def main() -> None:
    sys.stdout = sys.stderr
    if "DRIVER_USER" in os.environ:
        become(int(os.environ["DRIVER_USER"]))
    warnings.simplefilter("ignore", DeprecationWarning)
    logging.getLogger("iii").addHandler(Log(logging.WARNING))
    threading.Thread(target=write_lines, daemon=True).start()
    driver = Driver()
    for line in sys.stdin:
        threading.Thread(target=driver.obey, args=(json.loads(line),), daemon=True).start()
    # A client turned away while connecting leaves a thread that cannot be stopped.
    os._exit(0)


if __name__ == "__main__":
    main()
