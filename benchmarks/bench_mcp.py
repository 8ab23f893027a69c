"""The MCP bridge: reading a resource, and the first answer of a bridge that was just started.

A read by a bridge that has joined an engine is held against the SDK's smallest server plus one trip through
the engine: the baseline alternates a read of a constant resource with a call, as the bridge does both for
each. All are asked by bare clients, which cost next to nothing themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import socket
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, cast
from urllib.parse import urlsplit

from benchmarks.harness import Measurement, goal, interleave, measure, repeat
from benchmarks.processes import engine, process
from iii_directory.engine.server import EngineServer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from multiprocessing.connection import Connection

    from iii_directory.bus.seam import WorkerBus

READS = 40
ROUNDS = 41
STARTS = 7
SKILLS = 1_000
BODY = "# Benchmark\n\n" + "All work and no play makes a document. " * 100
URI = "iii://bench"
VERSION = "2026-07-28"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "0"},
    },
}
TRIP = "bench::constant"
READY_SECONDS = 20


@goal("mcp.read-http", at_most=1.2)
def read_http() -> Measurement:
    """Read a resource over streamable HTTP."""
    with (
        _directory() as url,
        process(bridge_over_http, url) as bridge,
        process(constant_over_http) as constant,
    ):
        return _compared(url, HttpReader(bridge), HttpReader(constant))


@measure("mcp.read-stdio")
def read_stdio() -> Measurement:
    """Read a resource over stdio."""
    serve_constant = "from benchmarks.bench_mcp import constant_over_stdio as serve; serve()"
    with (
        _directory() as url,
        StdioReader("-m", "iii_directory", "mcp", "--url", url) as bridge,
        StdioReader("-c", serve_constant) as constant,
    ):
        return _compared(url, bridge, constant)


@measure("mcp.read-http-inside")
def read_http_inside() -> Measurement:
    """Read a resource over streamable HTTP in ``up``, against the first version of ``up``.

    In that version the bridge had joined the engine of its own process over a socket, through the SDK for
    workers, and HTTP was parsed in Python.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        process(up_with_bridge_inside, _with_document(folder)) as inside,
        process(up_as_it_was, folder) as joined,
    ):
        ours, theirs = HttpReader(inside), HttpReader(joined)
        return interleave(lambda: _reads(ours), lambda: _reads(theirs), rounds=ROUNDS)


@goal("mcp.initialize-stdio", at_most=0.5)
def initialize_stdio() -> Measurement:
    """Start a lone bridge and get its first answer, against a process that imports ``mcp`` and answers.

    Answering before the SDK is imported takes less than half; before that it took 1.4.
    """
    return _beside_smallest_server(_initializing)


def _initializing(*arguments: str) -> float:
    start = time.perf_counter()
    with StdioReader(*arguments) as server:
        answer = json.loads(server.ask(json.dumps(HELLO) + "\n"))
        taken = time.perf_counter() - start
        server.kill()
    if answer["result"]["serverInfo"]["name"] not in ("iii-directory", "constant"):
        raise AssertionError("that is not what was asked for")
    return taken


@goal("mcp.first-tools-stdio", at_most=1.6)
def first_tools_stdio() -> Measurement:
    """Start a lone bridge and get its tools, against a process that imports ``mcp`` and answers."""
    return _beside_smallest_server(_listing_tools)


def _beside_smallest_server(taken: Callable[..., float]) -> Measurement:
    """Compare a lone bridge in a folder with the SDK's smallest server, both started for each answer."""
    serve_constant = "from benchmarks.bench_mcp import constant_over_stdio as serve; serve()"
    with tempfile.TemporaryDirectory() as folder:
        skills = Path(folder) / "skills"
        skills.mkdir()
        _with_document(str(skills))
        ours = ("-m", "iii_directory", "mcp", "--skills-folder", str(skills))
        return interleave(lambda: taken(*ours), lambda: taken("-c", serve_constant), rounds=STARTS)


def _listing_tools(*arguments: str) -> float:
    start = time.perf_counter()
    with StdioReader(*arguments) as server:
        server.ask(json.dumps(HELLO) + "\n")
        initialized = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listing = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        answer = json.loads(server.ask(f"{initialized}\n{listing}\n"))
        taken = time.perf_counter() - start
        server.kill()
    if not answer["result"]["tools"]:
        raise AssertionError("that is not what was asked for")
    return taken


@goal("mcp.handover", at_most=2.0, unit="s")
def handover() -> Measurement:
    """Kill the directory that a bridge has joined, and read a resource of the folder."""
    with tempfile.TemporaryDirectory() as folder:
        skills = Path(folder) / "skills"
        skills.mkdir()
        _with_document(str(skills))
        return repeat(lambda: _handed_over(folder), rounds=STARTS)


def _handed_over(project: str) -> float:
    from tests.support.commands import free_port

    own = ("-m", "iii_directory")
    ports = ("--port", str(free_port()), "--http-port", "0")
    up = subprocess.Popen(
        [sys.executable, *own, "up", *ports],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        if not any("Ctrl-C" in line for line in up.stdout or ()):
            raise AssertionError("the directory did not start")
        with StdioReader(*own, "mcp", log=subprocess.PIPE, cwd=project) as bridge:
            bridge.read()
            bridge.wait_for_log("joined the directory")
            up.kill()
            start = time.perf_counter()
            bridge.read()
            taken = time.perf_counter() - start
            bridge.kill()
    finally:
        up.kill()
        up.communicate()
    return taken


@goal("mcp.skills-list", at_most=3.0)
def skills_list() -> Measurement:
    """List 1,000 skills on all pages, warm, against a server that answers constant pages of that size."""
    with (
        tempfile.TemporaryDirectory() as folder,
        process(up_with_bridge_inside, _with_skills(folder)) as inside,
    ):
        ours = SkillsReader(inside)
        pages = ours.pages()
        with process(constant_pages, pages) as constant:
            theirs = SkillsReader(constant)
            return interleave(lambda: _listing(ours), lambda: _listing(theirs), rounds=STARTS)


def _with_skills(folder: str) -> str:
    for number in range(SKILLS):
        place = Path(folder) / f"skill-{number}"
        place.mkdir()
        head = f"---\nname: skill-{number}\ndescription: Does number {number}. Use it for {number}.\n---\n"
        (place / "SKILL.md").write_text(f"{head}# Skill\n", encoding="utf-8")
        (place / "run.sh").write_text(f"echo {number}\n", encoding="utf-8")
    return folder


def _listing(reader: SkillsReader) -> float:
    start = time.perf_counter()
    found = sum(len(page["skills"]) for page in reader.pages())
    if found < SKILLS:
        raise AssertionError("that is not what was asked for")
    return time.perf_counter() - start


@contextlib.contextmanager
def _directory() -> Generator[str]:
    """Start an engine, the directory and a worker with a constant function, each in its own process."""
    with (
        tempfile.TemporaryDirectory() as folder,
        process(engine) as url,
        process(directory, url, _with_document(folder)),
        process(constant_worker, url),
    ):
        yield url


def _with_document(folder: str) -> str:
    (Path(folder) / "bench.md").write_text(BODY, encoding="utf-8")
    return folder


def _reads(reader: Reader) -> float:
    start = time.perf_counter()
    for _ in range(READS):
        reader.read()
    return time.perf_counter() - start


def _compared(url: str, bridge: Reader, constant: Reader) -> Measurement:
    from benchmarks.sdk_bus import SdkBus

    bus = SdkBus(url, name="bench-caller", description="")

    async def of_the_parts() -> float:
        start = time.perf_counter()
        for _ in range(READS):
            constant.read()
            await bus.call(TRIP, {"uri": URI}, timeout_ms=10_000)
        return time.perf_counter() - start

    try:
        return interleave(lambda: _reads(bridge), lambda: bus.run(of_the_parts()), rounds=ROUNDS)
    finally:
        bus.close()


# Bare clients


class Reader(Protocol):
    def read(self) -> None: ...


META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
}


def _request() -> str:
    params = {"uri": URI, "_meta": META}
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


class SkillsReader:
    """Asks for every page of the skills over one kept connection."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def pages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while not found or cursor is not None:
            params: dict[str, Any] = {"_meta": META} if cursor is None else {"_meta": META, "cursor": cursor}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": params})
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": VERSION,
                "Mcp-Method": "skills/list",
            }
            self._connection.request("POST", "/mcp", body, headers)
            page = json.loads(self._connection.getresponse().read())["result"]
            found.append(page)
            cursor = page.get("nextCursor")
        return found


class StdioReader:
    """A server started with pipes; a context manager."""

    def __init__(self, *arguments: str, log: int | None = None, cwd: str | None = None) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdin=pipe, stdout=pipe, stderr=log, text=True, cwd=cwd
        )
        self._line = _request() + "\n"

    def kill(self) -> None:
        self._process.kill()

    def wait_for_log(self, text: str) -> None:
        if not any(text in line for line in self._process.stderr or ()):
            raise AssertionError(f"{text!r} was not logged")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def read(self) -> None:
        _check(self.ask(self._line))

    def ask(self, line: str) -> str:
        ask, hear = self._process.stdin, self._process.stdout
        if ask is None or hear is None:
            raise AssertionError("the server has no pipes")
        ask.write(line)
        ask.flush()
        return hear.readline()


# In processes of their own


def directory(report: Connection, url: str, folder: str) -> None:
    """Run the directory's worker."""
    from iii_directory.config import Settings
    from iii_directory.worker.directory_worker import DirectoryWorker

    worker = DirectoryWorker.join(Settings(skills_folder=Path(folder)), url)
    if worker.wait_ready(READY_SECONDS):
        report.send("ready")
    _for_ever()


def constant_worker(report: Connection, url: str) -> None:
    """Run a worker whose function answers the same as a read of the skill."""
    from benchmarks.sdk_bus import SdkBus
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
    """Run the bridge over HTTP."""
    report.send(_serving(_joined(url)))
    _for_ever()


def up_with_bridge_inside(report: Connection, folder: str) -> None:
    """Run the engine with the directory and a bridge inside it."""
    from iii_directory.mcp.bridge import bus_inside

    asyncio.run(_up(report, folder, bus_inside))


def up_as_it_was(report: Connection, folder: str) -> None:
    """Run the engine with the directory inside it, and a bridge that has joined it over a socket."""
    # uvicorn takes its other parser where this one cannot be imported.
    sys.modules["httptools"] = cast("Any", None)
    asyncio.run(_up(report, folder, lambda server: _joined(server.url)))


async def _up(report: Connection, folder: str, bus_for: Callable[[EngineServer], WorkerBus]) -> None:
    from iii_directory.config import Settings
    from iii_directory.worker.directory_worker import DirectoryWorker, bus_inside

    logging.disable()
    server = EngineServer(port=0)
    bus = bus_inside(server)
    await server.start()
    await asyncio.to_thread(DirectoryWorker.run_on, bus, Settings(skills_folder=Path(folder)))
    report.send(await asyncio.to_thread(_serving, bus_for(server)))
    await asyncio.Future()


def _joined(url: str) -> WorkerBus:
    from benchmarks.sdk_bus import SdkBus

    return cast("Any", SdkBus(url, name="bench-bridge", description=""))


def _serving(bus: WorkerBus) -> str:
    """Start a bridge on a bus and return its address."""
    from iii_directory.mcp.bridge import Bridge
    from iii_directory.wire.http_server import Listener

    listener = Listener("127.0.0.1", 0, None)
    bus.run(Bridge.on(bus).start_http(listener))
    return listener.url


def constant_over_http(report: Connection) -> None:
    """Run the SDK's server with one resource, as its documentation does."""
    import uvicorn

    # The protocol is named, as where uvicorn listens by itself: asyncio then sends small packets at once.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    report.send(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    app = _constant_server().streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    asyncio.run(server.serve(sockets=[listener]))


def constant_pages(report: Connection, pages: list[dict[str, Any]]) -> None:
    """Run the SDK's server with constant pages of ``skills/list``, found by the cursor of the page before."""
    import mcp_types as types
    import uvicorn

    by_cursor = {None: pages[0]} | {page["nextCursor"]: later for page, later in pairwise(pages)}

    async def listed(_: Any, params: types.PaginatedRequestParams) -> dict[str, Any]:
        return by_cursor[params.cursor]

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    report.send(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    constant = _constant_server()
    constant.add_request_handler("skills/list", types.PaginatedRequestParams, listed)
    server = uvicorn.Server(
        uvicorn.Config(constant.streamable_http_app(), log_level="error", access_log=False)
    )
    asyncio.run(server.serve(sockets=[listener]))


def constant_over_stdio() -> None:
    """Run the SDK's server with one resource over stdio."""
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

    async def tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="constant", input_schema={"type": "object"})])

    return Server("constant", on_read_resource=read, on_list_tools=tools)


def _for_ever() -> None:
    threading.Event().wait()
