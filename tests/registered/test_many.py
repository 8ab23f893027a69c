"""Ten thousand registrations at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import House, Listener, SdkClient
from tests.support.commands import free_port, running

from iii_directory.bus import tasks
from iii_directory.catalog import registered

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine import EngineThread

CLIENTS = 8
SOME = 50
IN_FLIGHT = 16


# In processes of their own, so that this one has only the clients to run.
ONE_PROCESS = (("up", "--port", "{port}", "--in-memory", "--http-port", "0"),)
TWO_PROCESSES = (
    ("engine", "--port", "{port}", "--in-memory"),
    ("serve", "--url", "ws://127.0.0.1:{port}"),
)


@pytest.mark.parametrize(
    ("commands", "each"),
    [
        pytest.param(ONE_PROCESS, 1250, id="inside-10000"),
        pytest.param(TWO_PROCESSES, 125, id="joined-1000"),
        pytest.param(TWO_PROCESSES, 1250, id="joined-10000", marks=pytest.mark.soak),
    ],
)
def test_the_registrations_of_eight_clients_at_once_are_all_there_once_and_told_once(
    tmp_path: Path, commands: tuple[tuple[str, ...], ...], each: int
) -> None:
    port = str(free_port())
    url = f"ws://127.0.0.1:{port}"
    with ExitStack() as opened:
        for words in commands:
            command = running(*(word.format(port=port) for word in words), cwd=tmp_path)
            opened.enter_context(command).wait_for("Ctrl-C")
        watcher = opened.enter_context(SdkClient(url))
        plain = Listener(watcher, "skills::on-change")
        twin = Listener(watcher, "directory::skills::on-change")
        register_at_once([opened.enter_context(SdkClient(url)) for _ in range(CLIENTS)], each)
        ids = {f"client-{number}/skill-{index}" for number in range(CLIENTS) for index in range(each)}
        rows = watcher.call("skills::list")["skills"]
        assert [row["id"] for row in rows if row["source"] == "registered"] == sorted(ids)
        stored = Counter(record["id"] for record in watcher.call("state::list", scope="skills"))
        assert stored == Counter(ids)
        for listener in (plain, twin):
            told = Counter((event["op"], event["id"]) for event in listener.take(len(ids)))
            assert told == Counter(("register", skill_id) for skill_id in ids)


def register_at_once(clients: list[SdkClient], each: int) -> None:
    working = [
        asyncio.run_coroutine_threadsafe(register(client, number, each), client.sdk._loop)
        for number, client in enumerate(clients)
    ]
    for work in working:
        work.result(100)


async def register(client: SdkClient, number: int, each: int) -> None:
    """Register this client's share, several at a time."""
    indexes = iter(range(each))

    async def one_after_the_other() -> None:
        for index in indexes:
            await client.sdk.trigger_async(
                {
                    "function_id": "skills::register",
                    "payload": {
                        "id": f"client-{number}/skill-{index}",
                        "skill": f"# Skill {index}\n\nText.\n",
                    },
                    "timeout_ms": 60_000,
                }
            )

    await asyncio.gather(*(one_after_the_other() for _ in range(IN_FLIGHT)))


def test_others_have_the_loop_between_one_record_of_a_listing_and_the_next(
    engine: EngineThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All records are listed again once a minute, and whenever a caller asks for it."""
    monkeypatch.setattr(tasks, "_TURN_SECONDS", 0.0)
    turns, seen_in, original = [0], list[int](), registered.decode

    def next_turn() -> None:
        turns[0] += 1
        engine.loop.call_soon(next_turn)

    def counted(*arguments: Any) -> Any:
        seen_in.append(turns[0])
        return original(*arguments)

    with SdkClient(engine.url) as client:
        for number in range(SOME):
            record = {"id": f"n{number}", "skill": "# x", "registered_at": "2026-01-01T00:00:00Z"}
            client.call("state::set", scope="skills", key=f"n{number}", value=record)
        monkeypatch.setattr(registered, "decode", counted)
        engine.on_loop(next_turn)

        house = House(engine.url, tmp_path / "skills", engine)
        assert len(house.skill_rows()) == SOME
        house.close()

    assert len(set(seen_in)) == len(seen_in) == SOME
