"""Whatever others wrote, and wherever a command prints it: a terminal shows it and does nothing else."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import free_port, run, running, running_program
from tests.support.engine import EngineThread
from tests.support.folders import Folder
from tests.support.reader import OtherWorker, Reader
from tests.support.terminal import at_a_terminal, is_harmless

from iii_directory.text import has_unsafe

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

EVIL = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202eevil\u200b\U000e0041\u2066x\r\ny"
WORD = EVIL.replace("\r\n", "")
NOWHERE = "ws://127.0.0.1:1"
COMMANDS = Path(__file__).parents[2] / "src" / "iii_directory" / "cli"
# The modules that make text harmless, and those with nothing but our own words.
PRINTERS = {"output.py", "common.py", "command_help.py", "search.py"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An engine with a directory on which everything that can be hostile is."""
    home = tmp_path_factory.mktemp("hostile")
    with EngineThread() as engine, Reader(engine.url, home) as reader:
        fields = {"title": EVIL, "description": EVIL, "type": EVIL, "function_id": EVIL}
        head = "".join(f"{name}: {json.dumps(value)}\n" for name, value in fields.items())
        reader.skills.write(
            "a/SKILL.md", f"---\n{head}---\n# h {WORD}\n\n{EVIL} &#27;[31m\n\n```\n{EVIL}\n```\n"
        )
        reader.skills.write("a/prompts/p.md", f"---\ndescription: {json.dumps(EVIL)}\n---\nbody {EVIL}\n")
        reader.skills.write("a/broken.md", "---\na: [\x1b\n---\nx")
        reader.skills.path("a/link.md").symlink_to(f"/etc/{WORD}")
        reader.call("skills::register", id="r", skill=f"# {WORD}\n\n{EVIL}")
        with OtherWorker(engine.url, f"{WORD}w") as worker:
            worker.offer("ev::text", lambda _: EVIL)
            worker.offer("ev::object", lambda _: {EVIL: [EVIL]})
            worker.offer("ev::fails", failing)
            worker.offer(f"ev::{WORD}", lambda _: None)
            worker.call("prompts::register", name="rp", description=EVIL, function_id="ev::text")
            worker.call("state::set", scope="skills", key=WORD, value={"id": EVIL, "x": 1})
            yield engine.url


def failing(_: object) -> None:
    raise ValueError(EVIL)


ASKING = (
    ("trigger", "ev::object"),
    ("trigger", "ev::fails"),
    ("trigger", "ev::fails", "--json"),
    ("trigger", f"nosuch{WORD}"),
    ("trigger", "x", WORD),
    ("trigger", "directory::engine::functions::list", "search=ev::"),
    ("trigger", "directory::engine::workers::list"),
    ("skills", "list"),
    ("skills", "list", "--json"),
    ("skills", "show", "a", "--json"),
    ("skills", "show", WORD),
    ("skills", "index"),
    ("prompts", "list"),
    ("search", "evil"),
    ("search", WORD),
    ("doctor",),
    ("doctor", "--json"),
    ("status",),
)
BODIES = (("trigger", "ev::text"), ("skills", "show", "a"), ("skills", "show", "r"), ("prompts", "show", "p"))


@pytest.mark.parametrize("words", [*ASKING, *BODIES], ids=lambda words: ascii(" ".join(words)))
def test_a_command_on_a_terminal_shows_hostile_text_and_does_no_more(
    url: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert is_harmless(drawn(*words, cwd=tmp_path, engine=url))


@pytest.mark.parametrize("words", ASKING, ids=lambda words: ascii(" ".join(words)))
def test_a_command_in_a_pipe_prints_no_hostile_text_but_bodies(
    url: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert_harmless(run(*words, "--url", url, cwd=tmp_path))


def drawn(*words: str, cwd: Path, engine: str = NOWHERE) -> str:
    """Everything that a command sends to its terminal, errors too."""
    with at_a_terminal(*words, cwd=cwd, lines=1000, PAGER="cat", III_URL=engine) as terminal:
        terminal.end(30)
        # What the bar draws: cursor up, line cleared, cursor hidden and shown.
        raw = terminal.raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "")
    for own in ("\x1b[2K", "\x1b[1A", "\x1b[?25l", "\x1b[?25h"):
        raw = raw.replace(own, "")
    assert "Traceback" not in raw
    return raw


def assert_harmless(done: subprocess.CompletedProcess[str]) -> None:
    said = done.stdout + done.stderr
    assert not has_unsafe(said.replace("\n", "").replace("\t", "")), ascii(said)
    assert "Traceback" not in said


TYPED = (
    (WORD,),
    ("skills", WORD),
    ("skills", "add", WORD),
    ("skills", "add", f"https://127.0.0.1:1/{WORD}", "--skill", "x"),
    ("skills", "update", WORD),
    ("skills", "remove", WORD),
    ("skills", "list", "--url", f"ws://{WORD}"),
    ("skills", "list", "--config", WORD),
    ("up", "--url", WORD),
    ("registry", "add", WORD),
    ("mcp", "--print-config", "claude", "--expose", WORD),
    ("mcp", "--print-config", "codex", "--url", f"ws://127.0.0.1:1/{WORD}"),
)


@pytest.mark.parametrize("words", TYPED, ids=lambda words: ascii(" ".join(words)))
def test_what_was_typed_is_repeated_harmlessly(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "config.yaml").write_text("registry_url: http://127.0.0.1:1\n", encoding="utf-8")

    assert_harmless(run(*words, cwd=tmp_path, III_URL=NOWHERE))
    assert is_harmless(drawn(*words, cwd=tmp_path))


@pytest.mark.parametrize("command", ["update", "outdated", "verify", "diff", "restore", "list"])
def test_a_lock_file_that_was_tampered_with_is_told_of_harmlessly(tmp_path: Path, command: str) -> None:
    entry = {
        "source": {"kind": "registry", "worker": "good", "tag": EVIL},
        "resolved": EVIL,
        "installed_at": EVIL,
        "by": "call",
        "files": {"a.md": f"sha256:{EVIL}"},
    }
    Folder(tmp_path / "skills").write("good/SKILL.md", "# Good\n")
    lock = {"version": 1, "namespaces": {EVIL: entry, "good": entry, "odd": {"x": 1}}}
    (tmp_path / "skills" / "skills.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    (tmp_path / "config.yaml").write_text(
        f"registry_url: http://127.0.0.1:1\n{json.dumps(EVIL)}: 1\n", encoding="utf-8"
    )

    assert_harmless(run("skills", command, cwd=tmp_path, III_URL=NOWHERE))


def test_the_process_that_has_the_port_is_named_with_harmless_text(tmp_path: Path) -> None:
    holder = (
        "import socket, sys, time\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "open('/proc/self/comm', 'w').write('\\x1b]0;own\\x07\\x1b[2J')\n"
        "print('port', s.getsockname()[1], flush=True)\n"
        "time.sleep(60)\n"
    )
    with running_program(sys.executable, "-c", holder) as other:
        taken = other.wait_for("port ").split()[1]
        up = ("up", "--in-memory", "--port", str(free_port()), "--http-port", taken)
        with running(*up, cwd=tmp_path) as started:
            started.wait_for("Ctrl-C")
            assert "is in use by" in started.output
            assert not has_unsafe(started.output.replace("\n", ""))


def test_a_folder_with_a_hostile_name_is_served_and_named_harmlessly(tmp_path: Path) -> None:
    folder = tmp_path / WORD.replace("/", "")
    folder.mkdir()
    up = ("up", "--in-memory", "--port", str(free_port()), "--http-port", "0", "--skills-folder", str(folder))
    with running(*up, cwd=folder) as started:
        started.wait_for("Ctrl-C")

    assert "evil" in started.output
    assert not has_unsafe(started.output.replace("\n", ""))


def test_the_shell_is_offered_no_hostile_word(url: str, tmp_path: Path) -> None:
    done = run(
        cwd=tmp_path,
        III_URL=url,
        _III_DIRECTORY_COMPLETE="bash_complete",
        COMP_WORDS="iii-directory trigger ev::",
        COMP_CWORD="2",
    )

    assert "ev::text" in done.stdout
    assert_harmless(done)


def test_every_command_prints_through_what_makes_text_harmless() -> None:
    printing = {
        path.name
        for path in COMMANDS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "click.secho", "print")
    }

    assert printing <= PRINTERS
