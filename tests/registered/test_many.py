"""Ten thousand registrations at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.registered.stage import Listener, SdkClient
from tests.support.commands import free_port, running

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = 8
EACH = 1250
IN_FLIGHT = 16


def test_ten_thousand_from_eight_clients_are_all_there_once_and_told_once(tmp_path: Path) -> None:
    port = free_port()
    url = f"ws://127.0.0.1:{port}"
    # In processes of their own, so that this one has only the clients to run.
    with running("up", "--port", str(port), "--in-memory", cwd=tmp_path) as up, ExitStack() as opened:
        up.wait_for("Ctrl-C")
        clients = [opened.enter_context(SdkClient(url)) for _ in range(CLIENTS)]
        watcher = opened.enter_context(SdkClient(url))
        plain, twin = (
            Listener(watcher, "skills::on-change"),
            Listener(watcher, "directory::skills::on-change"),
        )
        working = [
            asyncio.run_coroutine_threadsafe(register(client, number), client.sdk._loop)
            for number, client in enumerate(clients)
        ]
        for work in working:
            work.result(100)
        ids = {f"client-{number}/skill-{index}" for number in range(CLIENTS) for index in range(EACH)}
        listed = [
            row["id"] for row in watcher.call("skills::list")["skills"] if row["source"] == "registered"
        ]
        assert listed == sorted(ids)
        stored = Counter(record["id"] for record in watcher.call("state::list", scope="skills"))
        assert stored == Counter(ids)
        for listener in (plain, twin):
            told = Counter((event["op"], event["id"]) for event in listener.take(len(ids)))
            assert told == Counter(("register", skill_id) for skill_id in ids)


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
