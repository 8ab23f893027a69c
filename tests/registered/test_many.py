"""Ten thousand registrations at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.registered.stage import Listener, SdkClient
from tests.support.commands import free_port, running

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = 8
EACH = 1250
IN_FLIGHT = 16


# In processes of their own, so that this one has only the clients to run.
ONE_PROCESS = (("up", "--port", "{port}", "--in-memory", "--http-port", "0"),)
TWO_PROCESSES = (
    ("engine", "--port", "{port}", "--in-memory"),
    ("serve", "--url", "ws://127.0.0.1:{port}"),
)


@pytest.mark.parametrize("commands", [ONE_PROCESS, TWO_PROCESSES], ids=["inside", "joined"])
def test_ten_thousand_from_eight_clients_are_all_there_once_and_told_once(
    tmp_path: Path, commands: tuple[tuple[str, ...], ...]
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
        register_at_once([opened.enter_context(SdkClient(url)) for _ in range(CLIENTS)])
        ids = {f"client-{number}/skill-{index}" for number in range(CLIENTS) for index in range(EACH)}
        rows = watcher.call("skills::list")["skills"]
        assert [row["id"] for row in rows if row["source"] == "registered"] == sorted(ids)
        stored = Counter(record["id"] for record in watcher.call("state::list", scope="skills"))
        assert stored == Counter(ids)
        for listener in (plain, twin):
            told = Counter((event["op"], event["id"]) for event in listener.take(len(ids)))
            assert told == Counter(("register", skill_id) for skill_id in ids)


def register_at_once(clients: list[SdkClient]) -> None:
    working = [
        asyncio.run_coroutine_threadsafe(register(client, number), client.sdk._loop)
        for number, client in enumerate(clients)
    ]
    for work in working:
        work.result(100)


async def register(client: SdkClient, number: int) -> None:
    """Register this client's share, several at a time."""
    indexes = iter(range(EACH))

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
