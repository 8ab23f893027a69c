"""Calling a function from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import free_port, run
from tests.support.engine import EngineThread
from tests.support.terminal import on_a_terminal

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


def trigger(engine: EngineThread, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run("trigger", *arguments, "--url", engine.url)


def test_fields_are_json_where_they_can_be_and_text_where_not(engine: EngineThread) -> None:
    done = trigger(engine, "state::set", "scope=s", "key=7x", 'value={"a": [1, true]}')

    assert done.returncode == 0
    assert json.loads(done.stdout) == {"old_value": None, "new_value": {"a": [1, True]}}


def test_fields_are_laid_over_a_json_document(engine: EngineThread) -> None:
    done = trigger(engine, "state::set", "--payload", '{"scope": "s", "key": "a", "value": 1}', "value=2")

    assert json.loads(done.stdout)["new_value"] == 2
    assert done.stderr == ""


@pytest.mark.parametrize("words", [("--json", "{}"), ("--json={}",)], ids=" ".join)
def test_the_older_spelling_of_a_payload_works_with_a_hint(
    engine: EngineThread, words: tuple[str, ...]
) -> None:
    document = '{"scope": "s", "key": "a", "value": 1}'

    done = trigger(engine, "state::set", *(word.replace("{}", document) for word in words), "value=2")

    assert json.loads(done.stdout)["new_value"] == 2
    assert done.stderr == (
        "iii-directory: --json prints the whole reply now; a payload is given with --payload\n"
    )


def test_a_string_is_printed_as_text_and_as_json_when_asked(engine: EngineThread) -> None:
    trigger(engine, "state::set", "scope=s", "key=k", 'value="# Title\\n\\nText."')

    as_text = trigger(engine, "state::get", "scope=s", "key=k")
    as_json = trigger(engine, "state::get", "--json", "scope=s", "key=k")

    assert as_text.stdout == "# Title\n\nText.\n"
    assert json.loads(as_json.stdout) == "# Title\n\nText."


def test_a_string_does_nothing_to_a_terminal(engine: EngineThread, tmp_path: Path) -> None:
    trigger(engine, "state::set", "scope=s", "key=k", 'value="a\\u001b[2Jb"')

    drawn = on_a_terminal("trigger", "state::get", "scope=s", "key=k", "--url", engine.url, cwd=tmp_path)

    assert drawn == "a\\x1b[2Jb\n"


def test_the_function_and_the_payload_may_be_options(engine: EngineThread) -> None:
    done = trigger(engine, "--function-id=state::list", '--payload={"scope": "none"}')

    assert done.stdout == "[]\n"


def test_a_null_result_prints_nothing(engine: EngineThread) -> None:
    done = trigger(engine, "state::get", "scope=s", "key=none")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_remote_error_goes_to_stderr_with_exit_code_1(engine: EngineThread) -> None:
    done = trigger(engine, "no::such")

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "iii-directory: Function no::such not found in namespace default.\n"
    assert json.loads(trigger(engine, "no::such", "--json").stderr) == {
        "code": "function_not_found",
        "message": "Function no::such not found in namespace default.",
    }


def test_no_engine_is_said_with_the_address() -> None:
    url = f"ws://127.0.0.1:{free_port()}"

    done = run("trigger", "state::list", "scope=s", "--url", url)

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"iii-directory: no iii engine answers at {url}: Connection refused; start one: "
    )
    assert done.stderr.endswith("iii-directory up\n")


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ((), "which function?"),
        (("a::b", "nonsense"), "'nonsense' is not KEY=VALUE"),
        (("a::b", "--payload", "{"), "the payload is not JSON"),
        (("a::b", "--payload", "[1]", "a=1"), "need a payload that is an object"),
        (("a::b", "--url", "http://x"), "must start with ws://"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments: tuple[str, ...], fragment: str) -> None:
    done = run("trigger", *arguments)

    assert done.returncode == 2
    assert fragment in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_token_from_the_environment_is_sent_and_asked_for() -> None:
    with EngineThread(token="s3cret-of-sixteen-") as engine:
        without = run("trigger", "state::list", "scope=s", "--url", engine.url)
        given = run("trigger", "state::list", "scope=s", "--url", engine.url, III_TOKEN="s3cret-of-sixteen-")

    assert without.stderr == f"iii-directory: the engine at {engine.url} asks for a token: set III_TOKEN\n"
    assert given.stdout == "[]\n"


def test_a_function_that_never_answers_ends_with_the_timeout(engine: EngineThread) -> None:
    from tests.support.engine import RawClient

    with RawClient(engine.url, name="silent") as silent:
        silent.send(type="registerfunction", id="silent::wait")
        silent.result("engine::functions::info", {"function_id": "silent::wait"})

        done = trigger(engine, "silent::wait", "--timeout-ms", "200")

    assert done.returncode == 1
    assert "silent::wait did not answer within 0.2 s" in done.stderr


@pytest.mark.parametrize("url", ["ws://[", "ws://", "ws://127.0.0.1:99999", "ws://127.0.0.1:0", "wss://[::1"])
@pytest.mark.parametrize("command", [("skills", "list"), ("doctor",), ("trigger", "x::y")])
def test_an_invalid_address_is_refused_in_one_sentence(command: tuple[str, ...], url: str) -> None:
    done = run(*command, "--url", url)

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is not an engine's address" in done.stderr
