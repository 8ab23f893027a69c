"""A generated token: made once, readable by its owner alone, and found by our own commands."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.support.commands import Running, free_port, run, running, running_program, with_usual_port
from tests.support.engine import WAIT, EngineThread
from tests.wire.test_ownership import HANDSHAKE, UPGRADE, as_nobody, needs_kernel, needs_root

from iii_directory.bus.client import EngineUnreachableError, call_function
from iii_directory.cli.tokens import engine_token

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

TOKEN = "a-token-of-twenty-letters"
WITHHELD = "the token is not sent"


@pytest.fixture(autouse=True)
def _own_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What else runs on this machine is not seen, and does not see us."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))


def kept(folder: Path) -> str:
    """Return the token of a folder's directory after checking that only its owner can read it."""
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
        bridge.wait_for(".iii-directory/token")
        bridge.wait_for("MCP at")
        assert kept(tmp_path) not in bridge.output


@pytest.mark.parametrize(("told", "shown"), [(True, "x" * 40), (False, None)])
def test_a_generated_token_is_not_sent_to_an_address_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool, shown: str | None
) -> None:
    monkeypatch.delenv("III_TOKEN", raising=False)
    monkeypatch.setattr("iii_directory.cli.tokens.can_tell", lambda: told)
    file = tmp_path / ".iii-directory" / "token"
    file.parent.mkdir()
    file.touch(mode=0o600)
    file.write_text("x" * 40, encoding="ascii")

    assert engine_token("ws://127.0.0.1:1", tmp_path, named=True) == shown
    assert engine_token("ws://engine.example:1", tmp_path, named=True) is None


def test_without_knowing_who_listens_a_token_goes_only_to_our_engine_or_a_named_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = f"ws://127.0.0.1:{free_port()}"
    monkeypatch.setenv("III_TOKEN", TOKEN)
    monkeypatch.setattr("iii_directory.cli.tokens.can_tell", lambda: False)
    monkeypatch.setattr("iii_directory.cli.tokens.DEFAULT_URL", usual)

    assert engine_token(usual, tmp_path, named=False) is None
    assert WITHHELD in capsys.readouterr().err
    assert engine_token(usual, tmp_path, named=True) == TOKEN
    with running("serve", "--url", usual, cwd=tmp_path) as worker:
        worker.wait_for("worker iii-directory for the engine")
        assert engine_token(usual, tmp_path, named=False) is None
    port = str(urlsplit(usual).port)
    with running("up", "--port", port, "--in-memory", "--http-port", "0", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        assert engine_token(usual, tmp_path, named=False) == TOKEN
    assert engine_token(usual, tmp_path, named=False) is None


# Where the system does not say who listens


def unsure(port: int, *arguments: str, cwd: Path, **env: str) -> AbstractContextManager[Running]:
    """Our command with a token on such a system, with another port as the usual one."""
    python, option, program, *words = with_usual_port(port, *arguments)
    blind = "import iii_directory.wire.ownership as kernel\nkernel.can_tell = lambda: False\n"
    return running_program(python, option, blind + program, *words, cwd=cwd, III_TOKEN=TOKEN, **env)


def said(port: int, *arguments: str, cwd: Path, code: int = 0, env: Mapping[str, str] | None = None) -> str:
    """What such a command says until its end."""
    with unsure(port, *arguments, cwd=cwd, **(env or {})) as done:
        done.process.wait(WAIT * 3)
    assert done.process.returncode == code, done.output
    return done.output


ASK = ("trigger", "engine::health::check")


@pytest.mark.parametrize("how", ["--url", "III_URL"])
def test_the_usual_address_is_sent_the_token_if_it_is_named(tmp_path: Path, how: str) -> None:
    with EngineThread(token=TOKEN) as engine:
        port = urlsplit(engine.url).port or 0
        words = ("--url", engine.url) if how == "--url" else ()
        env = {} if words else {how: engine.url}

        assert "healthy" in said(port, *ASK, *words, cwd=tmp_path, env=env)
        assert said(port, "status", *words, cwd=tmp_path, code=1, env=env).count("has no directory") == 1
        assert "asks for a token" not in said(port, "config", "show", *words, cwd=tmp_path, env=env)
        with unsure(port, "serve", *words, cwd=tmp_path, **env) as worker:
            worker.wait_for("connected to the engine")
            assert "iii-directory" in said(port, "skills", "list", *words, cwd=tmp_path, env=env)
        with unsure(port, "mcp", "--http", "--http-port", "0", *words, cwd=tmp_path, **env) as bridge:
            bridge.wait_for("connected to the engine")

    assert WITHHELD not in worker.output + bridge.output


def test_up_sends_the_token_to_an_engine_whose_port_is_named(tmp_path: Path) -> None:
    with EngineThread(token=TOKEN) as engine:
        port = urlsplit(engine.url).port or 0
        with unsure(port, "up", "--port", str(port), "--http-port", "0", cwd=tmp_path) as up:
            up.wait_for("Ctrl-C")
            up.wait_for("mcp ")

    assert f"{engine.url} (already there)" in up.output
    assert WITHHELD not in up.output


def test_an_unknown_listener_at_the_usual_address_gets_no_token_and_one_warning_says_so(
    tmp_path: Path,
) -> None:
    with EngineThread(token=TOKEN) as engine:
        port = urlsplit(engine.url).port or 0
        for words in (ASK, ("skills", "list"), ("up", "--in-memory")):
            output = said(port, *words, cwd=tmp_path, code=1)
            assert output.count(WITHHELD) == 1
            assert f"name it: --url {engine.url}" in output
            assert "asks for a token" in output


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_our_own_engine_is_sent_the_token_without_being_named(tmp_path: Path, host: str) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    port = free_port()
    with unsure(port, "engine", "--host", host, "--port", str(port), cwd=here) as engine:
        engine.wait_for("Ctrl-C")
        for place in (here, elsewhere):
            assert "healthy" in said(port, *ASK, cwd=place)
        with unsure(port, "serve", cwd=elsewhere) as worker:
            worker.wait_for("connected to the engine")
        with unsure(port, "up", "--http-port", "0", cwd=here) as up:
            up.wait_for("(already there)")

    assert WITHHELD not in worker.output + up.output


def test_a_token_that_was_made_for_our_own_engine_is_found_from_another_folder(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    url = f"ws://127.0.0.1:{(port := free_port())}"
    start = ("engine", "--host", "0.0.0.0", "--port", str(port), "--token", "auto")
    with running(*start, cwd=here) as engine:
        engine.wait_for("Ctrl-C")
        done = run(*ASK, "--url", url, cwd=elsewhere)

    assert done.returncode == 0, done.stderr


def test_a_printed_configuration_has_room_for_the_token_for_any_listener(tmp_path: Path) -> None:
    port = free_port()
    output = said(port, "mcp", "--print-config", "cursor", "--url", f"ws://127.0.0.1:{port}", cwd=tmp_path)

    entry = json.loads(output[output.index("{") :])["mcpServers"]["iii-directory"]
    assert entry["env"] == {"III_TOKEN": "<the engine's token>"}
    assert WITHHELD not in output


def test_tokens_are_not_mentioned_where_no_engine_listens(tmp_path: Path) -> None:
    port = free_port()
    with unsure(port, "up", "--in-memory", "--http-port", "0", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        up.stop()
    quick = (said(port, *ASK, cwd=tmp_path, code=1), said(port, "skills", "list", cwd=tmp_path))

    assert WITHHELD not in up.output + "".join(quick)


def test_the_tab_key_finds_functions_of_our_own_engine_and_says_nothing_else(tmp_path: Path) -> None:
    port = free_port()
    tab = {
        "_III_DIRECTORY_COMPLETE": "bash_complete",
        "COMP_WORDS": "iii-directory trigger state::ge",
        "COMP_CWORD": "2",
    }
    with EngineThread(port=port, token=TOKEN):
        assert said(port, cwd=tmp_path, env=tab).strip() == ""
    with unsure(port, "engine", "--in-memory", "--port", str(port), cwd=tmp_path) as engine:
        engine.wait_for("Ctrl-C")
        assert said(port, cwd=tmp_path, env=tab).strip() == "plain,state::get"


# Passwords in addresses

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
