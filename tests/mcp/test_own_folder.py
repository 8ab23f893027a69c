"""A bridge without an address serves the project it was started for, alone and beside others."""

from __future__ import annotations

import fcntl
import json
import os
import random
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from itertools import permutations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from mcp.client.stdio import StdioServerParameters
from tests.mcp.stage import Session, session
from tests.support.commands import COMMAND, environment, free_port, running, with_usual_port
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import Reader

from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.support.commands import Running


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

    def bridge(self, usual_port: int, *, folder: Path | None = None) -> StdioServerParameters:
        """The bridge as a client starts it in the project."""
        program, *arguments = with_usual_port(usual_port, "mcp", "--tools", "all")
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
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A directory of another project at the default port."""
    port = free_port()
    project = Project(tmp_path_factory.mktemp("stranger"), "stranger")
    with running("up", "--port", str(port), "--http-port", "0", "--in-memory", cwd=project.home) as up:
        up.wait_for("Ctrl-C")
        yield port


@contextmanager
def directory_of(project: Project) -> Generator[Running]:
    """``up`` in a project, with the environment of a terminal."""
    with running("up", "--port", str(free_port()), "--http-port", "0", cwd=project.home) as up:
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


def _covering() -> list[Round]:
    """Make rounds with every order of starting once, and every order of leaving once.

    Two windows of one project are alike, so an order in which they change places is the same order; which of
    them leaves first alternates.
    """
    chance = random.Random(24)
    rounds: list[Round] = []
    for names in (WINDOWS, (*WINDOWS, "up")):
        orders = [one for one in permutations(names) if one.index("first 1") < one.index("first 2")]
        for number, (starting, leaving) in enumerate(
            zip(orders, chance.sample(orders, len(orders)), strict=True)
        ):
            swapped = {"first 1": "first 2", "first 2": "first 1"} if number % 2 else {}
            order = tuple(swapped.get(name, name) for name in leaving)
            rounds.append(Round(starting, order, up_is_killed=number % 4 > 1))
    return rounds


def _play(one: Round, place: Path, usual_port: int) -> None:
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
                ups.append(mine.enter_context(directory_of(first)))
            else:
                era = ("2025", "2026")[number % 2]
                client = mine.enter_context(session(project.bridge(usual_port), era))
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


# Fifteen rounds run with every change, all hundred with `make soak`, which takes ten to twenty minutes.
@pytest.mark.parametrize("one", _covering(), ids=lambda one: ",".join(one.starting).replace(" ", ""))
def test_windows_of_two_projects_see_and_write_their_own_folder_alone(
    one: Round, tmp_path: Path, stranger: int
) -> None:
    _play(one, tmp_path, stranger)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(100))
def test_a_hundred_rounds_of_windows_do_not_mix(number: int, tmp_path: Path, stranger: int) -> None:
    _play(_rounds()[number], tmp_path, stranger)


def test_a_lone_bridge_has_no_listening_socket_and_leaves_nothing_behind(tmp_path: Path) -> None:
    project = Project(tmp_path, "alone")
    before = sorted(project.home.rglob("*"))
    with session(project.bridge(free_port()), "2025") as client:
        assert client.uris()
        (bridge,) = [pid for pid in _children(os.getpid()) if _cwd(pid) == project.home]
        tree = [bridge, *_children(bridge)]

        assert not _listening() & {inode for pid in tree for inode in _sockets(pid)}
        with directory_of(project) as up:
            assert client.uris()
            assert up.stop() == 0
    left = [path for path in sorted(project.home.rglob("*")) if path not in before]
    assert not [path for path in left if ".iii-directory" not in path.parts]


def test_a_project_is_found_from_a_folder_below_it(tmp_path: Path) -> None:
    project = Project(tmp_path, "deep")
    below = project.home / "src" / "inner"
    below.mkdir(parents=True)
    # Older configurations have --up in them.
    bridge = project.bridge(free_port(), folder=below)
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
        with run_file.open() as held, session(project.bridge(free_port()), "2025") as client:
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
