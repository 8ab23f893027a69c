"""The MCP bridge: reading a resource, against the SDK's smallest server plus one trip through the engine.

Both sides are asked by bare clients, which cost next to nothing themselves. The baseline alternates a read of
a constant resource with a call through the engine, as the bridge does both for each read.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit

from benchmarks.harness import Measurement, goal, interleave
from benchmarks.processes import engine, process

if TYPE_CHECKING:
    from collections.abc import Generator
    from multiprocessing.connection import Connection

READS = 40
ROUNDS = 41
BODY = "# Benchmark\n\n" + "All work and no play makes a document. " * 100
URI = "iii://bench"
VERSION = "2026-07-28"
TRIP = "bench::constant"
READY_SECONDS = 20


@goal("mcp.read-http", at_most=1.2)
def read_http() -> Measurement:
    """Over streamable HTTP."""
    with (
        _directory() as url,
        process(bridge_over_http, url) as bridge,
        process(constant_over_http) as constant,
    ):
        return _compared(url, HttpReader(bridge), HttpReader(constant))


@goal("mcp.read-stdio", at_most=1.2)
def read_stdio() -> Measurement:
    """Over stdio."""
    serve_constant = "from benchmarks.bench_mcp import constant_over_stdio as serve; serve()"
    with (
        _directory() as url,
        StdioReader("-m", "iii_directory", "mcp", "--url", url) as bridge,
        StdioReader("-c", serve_constant) as constant,
    ):
        return _compared(url, bridge, constant)


@contextlib.contextmanager
def _directory() -> Generator[str]:
    """An engine with the directory and a constant function on it, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, process(engine) as url:
        (Path(folder) / "bench.md").write_text(BODY, encoding="utf-8")
        with process(directory, url, folder), process(constant_worker, url):
            yield url


def _compared(url: str, bridge: Reader, constant: Reader) -> Measurement:
    from iii_directory.bus.sdk_bus import SdkBus

    bus = SdkBus(url, name="bench-caller", description="")

    def of_the_bridge() -> float:
        start = time.perf_counter()
        for _ in range(READS):
            bridge.read()
        return time.perf_counter() - start

    async def of_the_parts() -> float:
        start = time.perf_counter()
        for _ in range(READS):
            constant.read()
            await bus.call(TRIP, {"uri": URI}, timeout_ms=10_000)
        return time.perf_counter() - start

    try:
        return interleave(of_the_bridge, lambda: bus.run(of_the_parts()), rounds=ROUNDS)
    finally:
        bus.close()


# Bare clients


class Reader(Protocol):
    def read(self) -> None: ...


def _request() -> str:
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
    }
    params = {"uri": URI, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params})


def _check(answer: str | bytes) -> None:
    if json.loads(answer)["result"]["contents"][0]["text"] != BODY:
        raise AssertionError("that is not what was asked for")


class HttpReader:
    """One kept connection."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._body = _request()
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": "resources/read",
            "Mcp-Name": URI,
        }

    def read(self) -> None:
        self._connection.request("POST", "/mcp", self._body, self._headers)
        _check(self._connection.getresponse().read())


class StdioReader:
    """A server started with pipes; a context manager."""

    def __init__(self, *arguments: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, *arguments], stdin=pipe, stdout=pipe, text=True)
        self._line = _request() + "\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def read(self) -> None:
        ask, hear = self._process.stdin, self._process.stdout
        if ask is None or hear is None:
            raise AssertionError("the server has no pipes")
        ask.write(self._line)
        ask.flush()
        _check(hear.readline())


# In processes of their own


def directory(report: Connection, url: str, folder: str) -> None:
    """The directory's worker."""
    from iii_directory.config import Settings
    from iii_directory.worker.main import DirectoryWorker

    worker = DirectoryWorker.started(Settings(skills_folder=Path(folder)), url)
    if worker.wait_ready(READY_SECONDS):
        report.send("ready")
    _for_ever()


def constant_worker(report: Connection, url: str) -> None:
    """A worker whose function answers what a read of the skill answers."""
    from iii_directory.bus.sdk_bus import SdkBus
    from iii_directory.bus.seam import Function

    bus = SdkBus(url, name="bench-constant", description="")
    answer = {"contents": [{"uri": URI, "mimeType": "text/markdown", "text": BODY}]}

    async def constant(_: dict[str, Any]) -> object:
        return answer

    bus.register_function(Function(id=TRIP, description="", request={}, response=None), constant)
    bus.start()
    bus.run(_until_callable(bus))
    report.send("ready")
    _for_ever()


async def _until_callable(bus: Any) -> None:
    from iii_directory.bus.seam import CallError

    while True:
        try:
            await bus.call(TRIP, {}, timeout_ms=1000)
        except CallError:
            await asyncio.sleep(0.01)
        else:
            return


def bridge_over_http(report: Connection, url: str) -> None:
    """The bridge."""
    from iii_directory.mcp.bridge import Bridge
    from iii_directory.mcp.listener import Listener

    listener = Listener("127.0.0.1", 0, None)
    Bridge(url).start_http(listener)
    report.send(listener.url)
    _for_ever()


def constant_over_http(report: Connection) -> None:
    """The SDK's server with one resource, served as its documentation does."""
    import uvicorn

    # The protocol is named, as where uvicorn listens by itself: asyncio then sends small packets at once.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    report.send(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    app = _constant_server().streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    asyncio.run(server.serve(sockets=[listener]))


def constant_over_stdio() -> None:
    """The same over stdio."""
    from mcp.server.stdio import stdio_server

    async def main() -> None:
        server = _constant_server()
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    asyncio.run(main())


def _constant_server() -> Any:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def read(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        content = types.TextResourceContents(uri=params.uri, mime_type="text/markdown", text=BODY)
        return types.ReadResourceResult(contents=[content])

    return Server("constant", on_read_resource=read)


def _for_ever() -> None:
    threading.Event().wait()
