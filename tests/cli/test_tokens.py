"""A token that nobody chose: made once, kept for its owner alone, and found by our own commands."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from tests.access.test_ownership import HANDSHAKE, UPGRADE, as_nobody, needs_kernel, needs_root
from tests.support.commands import free_port, run, running

from iii_directory.bus.client import EngineUnreachableError, call_function
from iii_directory.cli.tokens import engine_token

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What else runs on this machine is not seen, and does not see us."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))


def kept(folder: Path) -> str:
    """The token of a folder's directory, which nobody else can read."""
    file = folder / ".iii-directory" / "token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    return file.read_text(encoding="ascii")


@pytest.mark.parametrize("command", [("up", "--http-port", "0"), ("engine",)], ids=" ".join)
def test_a_token_is_made_once_and_kept_for_its_owner_alone(tmp_path: Path, command: tuple[str, ...]) -> None:
    before, seen = os.umask(0o000), list[str]()
    try:
        for _ in range(2):
            with running(*command, "--token", "auto", "--port", str(free_port()), cwd=tmp_path) as started:
                started.wait_for("kept in .iii-directory/token")
                started.wait_for("Ctrl-C")
                seen.append(kept(tmp_path))
                assert seen[-1] not in started.output
    finally:
        os.umask(before)

    assert len(seen[0]) >= 40
    assert seen[0] == seen[1]


def test_our_own_commands_find_the_token_where_it_is_asked_of_everybody(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    url = f"ws://127.0.0.1:{(port := free_port())}"
    beyond = ("--host", "0.0.0.0", "--http-host", "0.0.0.0", "--http-port", "0")
    with running("up", *beyond, "--token", "auto", "--port", str(port), cwd=here) as up:
        up.wait_for("Ctrl-C")
        with pytest.raises(EngineUnreachableError, match="asks for a token"):
            call_function(url, "directory::skills::list", {})
        for place in (here, elsewhere):
            for words in (
                ("skills", "list"),
                ("trigger", "directory::skills::index"),
                ("status",),
                ("doctor",),
            ):
                done = run(*words, "--url", url, cwd=place)
                assert done.returncode == 0, done.stderr
        with running("mcp", "--http", "--http-port", "0", "--url", url, cwd=elsewhere) as bridge:
            bridge.wait_for("MCP at")
        assert call_function(url, "directory::skills::list", {}, token=kept(here))["skills"]


def test_a_worker_joins_an_engine_by_the_token_that_was_made_in_its_folder(tmp_path: Path) -> None:
    port = str(free_port())
    start = ("engine", "--host", "0.0.0.0", "--port", port, "--token", "auto")
    with running(*start, cwd=tmp_path) as engine:
        engine.wait_for("Ctrl-C")
        with running("serve", "--url", f"ws://127.0.0.1:{port}", cwd=tmp_path) as worker:
            worker.wait_for("connected to the engine")


@needs_root
@needs_kernel
def test_the_owner_needs_no_token_that_was_made_and_others_do(tmp_path: Path) -> None:
    port = str(free_port())
    with running("up", "--token", "auto", "--port", port, "--http-port", "0", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        http_port = up.wait_for("mcp ").rpartition(":")[2].partition("/")[0]
        token = f"Authorization: Bearer {kept(tmp_path)}"

        assert call_function(f"ws://127.0.0.1:{port}", "directory::skills::list", {})["skills"]
        for at, path, headers in ((port, "/", UPGRADE), (http_port, "/mcp", ("Accept: text/event-stream",))):
            assert as_nobody(HANDSHAKE, at, path, *headers) == "401"
            assert as_nobody(HANDSHAKE, at, path, *headers, token) != "401"


@pytest.mark.parametrize("harm", ["readable", "a link", "short"])
def test_a_file_that_others_may_have_read_or_written_is_not_used(tmp_path: Path, harm: str) -> None:
    data = tmp_path / ".iii-directory"
    data.mkdir(mode=0o700)
    planted = tmp_path / "planted" if harm == "a link" else data / "token"
    planted.write_text("x" if harm == "short" else "x" * 40, encoding="ascii")
    planted.chmod(0o644 if harm == "readable" else 0o600)
    if harm == "a link":
        (data / "token").symlink_to(planted)

    done = run("engine", "--token", "auto", "--port", "0", cwd=tmp_path)

    assert done.returncode == 1
    assert "the token" in done.stderr or "delete it, and a new token is made" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_kept_in_memory_keeps_no_token(tmp_path: Path) -> None:
    done = run("up", "--token", "auto", "--in-memory", cwd=tmp_path)

    assert done.returncode == 2
    assert "leave --in-memory out" in done.stderr


@pytest.mark.parametrize("words", [("--token", "short"), ("--token", "x" * 15, "--http-host", "0.0.0.0")])
def test_mcp_over_http_takes_no_token_that_can_be_guessed(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run("mcp", "--http", "--http-port", "0", *words, cwd=tmp_path)

    assert done.returncode == 1
    assert "a token has at least 16 characters" in done.stderr


def test_mcp_over_http_makes_a_token_of_its_own_folder(tmp_path: Path) -> None:
    with running("mcp", "--http", "--http-port", "0", "--token", "auto", cwd=tmp_path) as bridge:
        bridge.wait_for("token kept in .iii-directory/token")
        bridge.wait_for("MCP at")
        assert kept(tmp_path) not in bridge.output


@pytest.mark.parametrize(("told", "shown"), [(True, "x" * 40), (False, None)])
def test_a_token_that_was_made_goes_to_no_address_that_may_be_somebody_else_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool, shown: str | None
) -> None:
    monkeypatch.delenv("III_TOKEN", raising=False)
    monkeypatch.setattr("iii_directory.cli.tokens.can_tell", lambda: told)
    file = tmp_path / ".iii-directory" / "token"
    file.parent.mkdir()
    file.touch(mode=0o600)
    file.write_text("x" * 40, encoding="ascii")

    assert engine_token("ws://127.0.0.1:1", tmp_path) == shown
    assert engine_token("ws://engine.example:1", tmp_path) is None


PASSWORD = "hunter2-hunter2"


@pytest.mark.parametrize(
    "words",
    [
        ("skills", "list"),
        ("trigger", "a::b"),
        ("doctor",),
        ("status", "--json"),
        ("mcp", "--print-config", "claude"),
        ("mcp", "--print-config", "codex"),
        ("up", "--in-memory", "--http-port", "0"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("place", ["host.invalid:1", "127.0.0.1:1", "127.0.0.1:bad"])
def test_a_password_in_the_address_is_never_shown(tmp_path: Path, words: tuple[str, ...], place: str) -> None:
    if words[0] == "up" and "bad" not in place:
        pytest.skip("it would go on")
    done = run(*words, "--url", f"ws://me:{PASSWORD}@{place}", cwd=tmp_path)

    assert PASSWORD not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [("serve",), ("mcp", "--http", "--http-port", "0")], ids=" ".join)
def test_a_password_in_the_address_is_not_in_the_log_of_what_waits(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with running(*words, "--url", f"ws://me:{PASSWORD}@127.0.0.1:{free_port()}", cwd=tmp_path) as waiting:
        waiting.wait_for("waiting until one answers")
        waiting.wait_for("Ctrl-C")
        status = run("status", "--json", cwd=tmp_path)

    assert PASSWORD not in waiting.output
    assert PASSWORD not in status.stdout + status.stderr
