"""Trace seven everyday requests and count how often each one crosses from one package to another.

``make walks`` starts ``iii-directory up`` and commands under a profiler hook, performs each request until it
has as few crossings as its goal, or ten times, because background work may fall into any single run.
``make walks ARGS=get`` also prints every call of that walk, by module and function.

A walk begins when the client sends its request and ends when it has the answer (of a registration: when the
subscriber has the event). What the server does later, such as updating an index, is not on the way.

Every change from one package to another is a crossing, with one rule: modules of plain values are not
counted, because every package uses them and they tell a reader nothing about the path of a request. These are
the top-level modules, the packages in ``VALUES``, and of ``wire`` the codec, which turns messages into bytes
for the engine and the bus alike. The sockets and the HTTP server of ``wire`` are counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from inspect import CO_OPTIMIZED
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator
    from types import FrameType

SOURCE: Final = str(Path(__file__).parents[1] / "src" / "iii_directory") + os.sep
VALUES: Final = frozenset(("documents", "disk", "config"))
CODEC: Final = frozenset(
    f"wire{os.sep}{name}.py" for name in ("codec", "framing", "json_text", "messages", "outbox", "protocol")
)
ROUNDS: Final = 10
PAUSE_SECONDS: Final = 0.5
WAIT_SECONDS: Final = 30.0
# The name of each walk and the most crossings it may have.
GOALS: Final = {
    "get": 8,
    "mcp read": 10,
    "edit then read": 10,
    "skills list": 8,
    "add from git": 12,
    "search": 12,
    "register to one subscriber": 18,
}


def trace(output: Path, arguments: list[str]) -> None:
    """Run the command line in this process and write the packages it went through to ``output``.

    SIGUSR1 starts a recording, SIGUSR2 writes it; without signals the whole run is recorded.
    """
    calls: list[str] = []

    def record(frame: FrameType, event: str, _: Any) -> None:
        # Only functions count: module and class bodies run when something is imported, not when it is used.
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(SOURCE):
            calls.append(f"{code.co_filename[len(SOURCE) :]}:{code.co_qualname}")

    def clear(*_: Any) -> None:
        calls.clear()

    def write(*_: Any) -> None:
        partial = output.with_suffix(".partial")
        partial.write_text(json.dumps(calls))
        partial.rename(output)

    signal.signal(signal.SIGUSR1, clear)
    signal.signal(signal.SIGUSR2, write)
    threading.setprofile(record)
    sys.argv = ["iii-directory", *arguments]
    sys.setprofile(record)
    try:
        runpy.run_module("iii_directory", run_name="__main__", alter_sys=True)
    finally:
        sys.setprofile(None)
        write()


def path_of(calls: list[str]) -> list[str]:
    """Reduce recorded calls to the packages in the order in which they were entered."""
    packages: list[str] = []
    for call in calls:
        file = call.partition(":")[0]
        package, _, module = file.partition(os.sep)
        counts = module and package not in VALUES and file not in CODEC
        if counts and (not packages or packages[-1] != package):
            packages.append(package)
    return packages


class TracedServer:
    """``iii-directory up`` under the hook, in a folder of its own."""

    def __init__(self, home: Path) -> None:
        self.output = home / "trace.json"
        self.skills = home / "skills"
        (self.skills / "coffee").mkdir(parents=True)
        (self.skills / "coffee" / "SKILL.md").write_text(
            "---\nname: coffee\ndescription: How to order coffee.\n---\n# Coffee\n"
        )
        ports = ("--port", str(_free_port()), "--http-port", str(_free_port()))
        self.url = f"ws://127.0.0.1:{ports[1]}"
        self.mcp = f"http://127.0.0.1:{ports[3]}/mcp"
        self._log = (home / "log").open("w+")
        self.process = subprocess.Popen(
            _command(self.output, "up", *ports),
            cwd=home,
            env=_environment(),
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        _until(lambda: "Ctrl-C stops" in (home / "log").read_text())

    def calls(self, act: Callable[[], object], most: int) -> list[str]:
        """Perform a request, again if it crosses more than ``most`` borders; return the shortest walk."""
        walks: list[list[str]] = []
        act()
        while len(walks) < ROUNDS and not any(len(path_of(calls)) - 1 <= most for calls in walks):
            time.sleep(PAUSE_SECONDS)
            self.process.send_signal(signal.SIGUSR1)
            act()
            self.process.send_signal(signal.SIGUSR2)
            _until(self.output.exists)
            walks.append(json.loads(self.output.read_text()))
            self.output.unlink()
        return min(walks, key=lambda calls: len(path_of(calls)))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)
        self._log.close()


def _command(output: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tools.walks", "--trace", str(output), *arguments]


def _environment() -> dict[str, str]:
    """Let the child find this package from another working directory."""
    return {**os.environ, "PYTHONPATH": f"{Path(__file__).parents[1]}:{SOURCE}..", "NO_COLOR": "1"}


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the traced process did not answer in time")
        time.sleep(0.05)


def _free_port() -> int:
    import socket

    with socket.socket() as attempt:
        attempt.bind(("127.0.0.1", 0))
        return attempt.getsockname()[1]


@contextlib.contextmanager
def _traced_server(home: Path) -> Generator[TracedServer]:
    server = TracedServer(home)
    try:
        yield server
    finally:
        server.close()


def _server_walks(home: Path, wanted: Collection[str]) -> dict[str, list[str]]:
    from tests.support.engine import RawClient

    with _traced_server(home) as server, RawClient(server.url) as client, RawClient(server.url) as hearer:
        client.announce("walker")
        hearer.announce("hearer")
        hearer.send(type="registerfunction", id="hearer::heard")
        hearer.send(
            type="registertrigger",
            id="t1",
            trigger_type="skills::on-change",
            function_id="hearer::heard",
            config={},
        )
        hearer.result("engine::functions::list", {})
        number = iter(range(1_000))

        def register() -> None:
            one = next(number)
            client.result(
                "skills::register", {"id": f"tea/{one}", "skill": f"# Tea {one}\n\nHow to make tea {one}.\n"}
            )
            hearer.receive_type("invokefunction")

        def edit() -> None:
            (server.skills / "coffee" / "SKILL.md").write_text(
                f"---\nname: coffee\ndescription: How to order coffee.\n---\n# Coffee {next(number)}\n"
            )
            client.result("directory::skills::get", {"id": "coffee"})

        with _mcp_session(server.mcp) as read:
            requests: dict[str, Callable[[], object]] = {
                "get": lambda: client.result("directory::skills::get", {"id": "coffee"}),
                "mcp read": lambda: read("iii://coffee"),
                "search": lambda: client.result("directory::search", {"query": "order coffee"}),
                "edit then read": edit,
                "register to one subscriber": register,
            }
            return {name: server.calls(act, GOALS[name]) for name, act in requests.items() if name in wanted}


@contextlib.contextmanager
def _mcp_session(url: str) -> Generator[Callable[[str], Any]]:
    """Open a session with the HTTP bridge and return the function that reads a resource in it."""
    import httpx2

    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    with httpx2.Client(headers=headers, timeout=WAIT_SECONDS) as http:

        def send(method: str, params: Any, **extra: Any) -> Any:
            answer = http.post(url, json={"jsonrpc": "2.0", "method": method, "params": params, **extra})
            answer.raise_for_status()
            return answer

        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "walks", "version": "1"},
        }
        first = send("initialize", hello, id=1)
        if session := first.headers.get("mcp-session-id"):
            http.headers["mcp-session-id"] = session
        send("notifications/initialized", {})
        yield lambda uri: send("resources/read", {"uri": uri}, id=2)


def _command_walks(home: Path, wanted: Collection[str]) -> dict[str, list[str]]:
    from tests.support.git import make_repo

    (home / "skills" / "coffee").mkdir(parents=True)
    (home / "skills" / "coffee" / "SKILL.md").write_text(
        "---\nname: coffee\ndescription: Coffee.\n---\n# Coffee\n"
    )
    (home / "config.yaml").write_text("allow_file_repos: true\n")
    make_repo(
        home / "repos" / "tea.git",
        {
            "SKILL.md": b"---\nname: tea\ndescription: Tea.\n---\n# Tea\n",
            "scripts/boil.py": b"print('boil')\n",
        },
    )
    commands = {
        "skills list": ("skills", "list"),
        "add from git": ("skills", "add", (home / "repos" / "tea.git").as_uri()),
    }
    return {name: _command_calls(home, *words) for name, words in commands.items() if name in wanted}


def _command_calls(home: Path, *arguments: str) -> list[str]:
    output = home / "trace.json"
    subprocess.run(
        _command(output, *arguments), cwd=home, env=_environment(), check=True, stdout=subprocess.DEVNULL
    )
    calls = json.loads(output.read_text())
    output.unlink()
    return calls


def walks(wanted: Collection[str]) -> dict[str, list[str]]:
    """Perform the wanted requests and return the calls of each."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        return _server_walks(Path(first), wanted) | _command_walks(Path(second), wanted)


def main(shown: list[str]) -> None:
    for name, calls in walks(GOALS).items():
        path = path_of(calls)
        print(f"{name:<28}{len(path) - 1:>4} crossings (at most {GOALS[name]})")
        print("    " + " > ".join(path))
        if name in shown:
            print("".join(f"        {call}\n" for call in calls))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trace"]:
        trace(Path(sys.argv[2]), sys.argv[3:])
    else:
        main(sys.argv[1:])
