"""A bridge without an address serves the project it was started for, alone and beside others."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import permutations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from mcp.client.stdio import StdioServerParameters
from tests.mcp.stage import Session, session
from tests.support.commands import (
    COMMAND,
    environment,
    free_port,
    running,
    running_program,
    with_usual_port,
)
from tests.support.engine import WAIT, EngineThread
from tests.support.forking import forked_commands
from tests.support.reader import OtherWorker, Reader, until

from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from tests.support.commands import Running

    Program = Callable[..., tuple[str, ...]]
    """Gives the program and arguments of one of our commands."""


class Project:
    """A folder with one skill that names it; writing is allowed."""

    def __init__(self, place: Path, name: str) -> None:
        self.home = place / name
        self.name = name
        self.skills = self.home / "skills"
        (self.skills / f"only-{name}").mkdir(parents=True)
        text = f"---\nname: only-{name}\ndescription: The skill of {name}.\n---\n# Only {name}\n"
        (self.skills / f"only-{name}" / "SKILL.md").write_text(text, encoding="utf-8")
        (self.home / "config.yaml").write_text("allow_writing: true\n", encoding="utf-8")

    def bridge(self, *, folder: Path | None = None, make: Program | None = None) -> StdioServerParameters:
        """The bridge as a client starts it in the project."""
        make = make or partial(with_usual_port, free_port())
        program, *arguments = make("mcp", "--tools", "all")
        return StdioServerParameters(
            command=program,
            args=arguments,
            cwd=folder or self.home,
            # A client passes hardly any environment on: where a terminal has its run files is not known.
            env=environment(TMPDIR=str(self.home.parent), XDG_RUNTIME_DIR=""),
        )


class Window:
    """A client that never stops asking which skills there are, and writes one when it is told to."""

    def __init__(self, client: Session, project: Project, stack: ExitStack) -> None:
        self._client = client
        self._project = project
        self._stack = stack
        self._leaving = threading.Event()
        self._problems: list[str] = []
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        while not self._leaving.wait(0.05):
            try:
                seen = {uri for uri in self._client.uris() if uri.startswith("iii://only-")}
            except (MCPError, TimeoutError) as error:
                self._problems.append(f"{self._project.name} was refused: {error}")
                return
            if seen != {f"iii://only-{self._project.name}"}:
                self._problems.append(f"{self._project.name} saw {seen}")
                return

    def write(self, skill_id: str) -> None:
        result = self._client.ask("call_tool", "directory__skills__create", _skill(skill_id))
        if "whether it ran is not known" in result.content[0].text:
            # The directory left with the call; the caller is told so, and the next one is answered.
            self._client.call("directory__skills__create", **_skill(skill_id := f"{skill_id}-again"))
        assert list(self._project.skills.glob(f"{skill_id}*")), f"{skill_id} is not in {self._project.name}"

    def check(self) -> None:
        assert self._thread.is_alive(), self._problems

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join(WAIT)
        self._stack.close()
        assert not self._problems


def _skill(skill_id: str) -> dict[str, str]:
    return {"id": skill_id, "content": f"# {skill_id}\n\nWritten by a client.\n"}


@pytest.fixture(scope="module")
def usual_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The default port, which the directory of another project has."""
    port = free_port()
    project = Project(tmp_path_factory.mktemp("stranger"), "stranger")
    with running("up", "--port", str(port), "--http-port", "0", "--in-memory", cwd=project.home) as up:
        up.wait_for("Ctrl-C")
        yield port


@pytest.fixture(scope="module")
def forked(usual_port: int) -> Iterator[Program]:
    with forked_commands(usual_port) as program:
        yield program


@contextmanager
def directory_of(project: Project, make: Program | None = None, *options: str) -> Generator[Running]:
    """``up`` in a project, with the environment of a terminal."""
    make = make or partial(with_usual_port, free_port())
    ports = () if "--url" in options else ("--port", str(free_port()))
    command = make("up", *ports, "--http-port", "0", *options)
    with running_program(*command, cwd=project.home) as up:
        up.wait_for("Ctrl-C")
        yield up


WINDOWS = ("first 1", "first 2", "second 1")


class Round(NamedTuple):
    """The order in which windows, and perhaps a directory, start and leave."""

    starting: tuple[str, ...]
    leaving: tuple[str, ...]
    up_is_killed: bool = False


def _rounds() -> list[Round]:
    """Make a hundred rounds: every pair of orders without ``up``, and every order at least twice with it."""
    alone = [Round(starting, leaving) for starting, leaving in product(permutations(WINDOWS), repeat=2)]
    orders = list(permutations((*WINDOWS, "up")))
    chance = random.Random(24)
    with_up: list[Round] = []
    while len(with_up) < 100 - len(alone):
        leaving = chance.sample(orders, len(orders))
        with_up += [Round(*pair, chance.random() < 0.5) for pair in zip(orders, leaving, strict=True)]
    return [*alone, *with_up[: 100 - len(alone)]]


def _play(one: Round, place: Path, make: Program) -> None:
    """Start three windows on two projects, and perhaps a directory for one of them, and end them again."""
    first, second = Project(place, "first"), Project(place, "second")
    open_windows: dict[str, Window] = {}
    ups: list[Running] = []
    written = 0
    with ExitStack() as everything:
        for number, name in enumerate(one.starting):
            project = second if name.startswith("second") else first
            mine = everything.enter_context(ExitStack())
            if name == "up":
                ups.append(mine.enter_context(directory_of(first, make)))
            else:
                era = ("2025", "2026")[number % 2]
                client = mine.enter_context(session(project.bridge(make=make), era))
                open_windows[name] = Window(client, project, mine)
            written = _all_write(open_windows, written)
        for name in one.leaving:
            if name == "up":
                ups[0].kill() if one.up_is_killed else ups[0].stop()
            else:
                open_windows.pop(name).leave()
            written = _all_write(open_windows, written)
    for project, other in ((first, second), (second, first)):
        assert list(project.skills.glob(f"{project.name}-*"))
        assert not list(project.home.rglob(f"*{other.name}-*"))


def _all_write(windows: dict[str, Window], written: int) -> int:
    for name, window in windows.items():
        window.write(f"{name.replace(' ', '-')}-{written}")
        window.check()
    return written + 1


@pytest.mark.parametrize("number", range(100))
def test_windows_of_two_projects_see_and_write_their_own_folder_alone(
    number: int, tmp_path: Path, forked: Program
) -> None:
    _play(_rounds()[number], tmp_path, forked)


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_commands_that_import_while_others_leave_do_not_mix(
    killed: bool, tmp_path: Path, usual_port: int
) -> None:
    one = Round(("first 1", "up", "second 1", "first 2"), ("up", "first 1", "second 1", "first 2"), killed)
    _play(one, tmp_path, partial(with_usual_port, usual_port))


def test_a_lone_bridge_has_no_listening_socket_and_leaves_nothing_behind(tmp_path: Path) -> None:
    project = Project(tmp_path, "alone")
    before = sorted(project.home.rglob("*"))
    with session(project.bridge(), "2025") as client:
        assert client.uris()
        (bridge,) = [pid for pid in _children(os.getpid()) if _cwd(pid) == project.home]
        tree = [bridge, *_children(bridge)]

        assert not _listening() & {inode for pid in tree for inode in _sockets(pid)}
        with directory_of(project) as up:
            assert client.uris()
            assert up.stop() == 0
    left = [path for path in sorted(project.home.rglob("*")) if path not in before]
    assert not [path for path in left if ".iii-directory" not in path.parts]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_directory_that_leaves_an_engine_which_goes_on_is_survived(
    number: int, tmp_path: Path, forked: Program
) -> None:
    project = Project(tmp_path, "guest")
    with EngineThread() as engine, session(project.bridge(make=forked), "2026") as client:
        assert "iii://only-guest" in client.uris()
        with directory_of(project, forked, "--url", engine.url) as up, OtherWorker(engine.url) as other:
            other.call("skills::register", id="guest-of-engine", skill="# Guest\n\nIs registered.\n")
            until(lambda: "iii://guest-of-engine" in client.uris(), "the directory is joined")
            up.process.send_signal(number)
            while up.process.poll() is None:
                assert "iii://only-guest" in client.uris()
            assert "directory__skills__create" in client.tools()

        assert "iii://only-guest" in client.uris()
        assert "iii://guest-of-engine" not in client.uris()


def test_a_project_is_found_from_a_folder_below_it(tmp_path: Path) -> None:
    project = Project(tmp_path, "deep")
    below = project.home / "src" / "inner"
    below.mkdir(parents=True)
    # Older configurations have --up in them.
    bridge = project.bridge(folder=below)
    bridge.args.append("--up")
    with session(bridge, "2025") as client:
        assert "iii://only-deep" in client.uris()


def test_a_run_file_that_names_another_process_is_not_believed(tmp_path: Path) -> None:
    project = Project(tmp_path, "mine")
    with EngineThread() as engine, Reader(engine.url, tmp_path / "theirs") as theirs:
        theirs.skills.document("only-theirs.md", "Theirs")
        runs = project.home / ".iii-directory" / "runs"
        runs.mkdir(parents=True)
        said = {"pid": os.getpid(), "home": str(project.home), "url": engine.url, "embedded": True}
        said |= {"skills_folder": str(project.skills), "data": None, "mcp": None, "instance": "0" * 16}
        run_file = runs / f"{os.getpid()}.json"
        run_file.write_text(json.dumps(said), encoding="utf-8")
        run_file.chmod(0o600)
        with run_file.open() as held, session(project.bridge(), "2025") as client:
            fcntl.flock(held, fcntl.LOCK_EX)

            assert "iii://only-mine" in client.uris()
            assert "iii://only-theirs" not in client.uris()


def test_a_terminal_is_told_what_it_started(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with (
        os.fdopen(ours, "rb", buffering=0),
        os.fdopen(theirs, "rb") as terminal,
        subprocess.Popen(
            [COMMAND, "mcp"], cwd=tmp_path, stdin=terminal, stderr=subprocess.PIPE, env=environment()
        ) as started,
    ):
        assert started.stderr is not None
        line = started.stderr.readline()
        started.terminate()

    assert line == b"this is an MCP server; it waits for a client on stdin. Ctrl-C ends it.\n"


# What the kernel knows


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_children(int(child))]
    return found


def _cwd(pid: int) -> Path:
    return Path(os.readlink(f"/proc/{pid}/cwd"))


def _sockets(pid: int) -> Iterator[str]:
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(handle)
        if target.startswith("socket:"):
            yield target.removeprefix("socket:[").removesuffix("]")


def _listening() -> set[str]:
    listen = "0A"
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields: Any = line.split()
            if fields[3] == listen:
                found.add(fields[9])
    return found
