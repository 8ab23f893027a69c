"""Clients that come, do a little of everything and go: what they leave behind does not add up."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import free_port, running
from tests.support.engine import RawClient

from iii_directory.limits import (
    KIB,
    MAX_REMEMBERED_DELETIONS,
    MAX_REMEMBERED_WORKERS,
    MAX_REMEMBERED_WRITES,
    MAX_SEEN_WORKERS,
    MIB,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What a heap may grow for no other reason than that its holes are filled otherwise.
ROOM_BYTES = 8 * MIB
SOAK_SECONDS = 600.0
MOST_REMEMBERED = max(
    MAX_REMEMBERED_DELETIONS, MAX_REMEMBERED_WORKERS, MAX_REMEMBERED_WRITES, MAX_SEEN_WORKERS
)


def test_memory_stays_flat_while_clients_come_and_go(tmp_path: Path) -> None:
    grown_by_clients(tmp_path, warm_up=60, more=range(60))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_memory_stays_flat_for_ten_minutes(tmp_path: Path) -> None:
    """From when everything that is remembered of those who left has reached its bound."""
    grown_by_clients(tmp_path, warm_up=MOST_REMEMBERED + 1_000, more=turns(SOAK_SECONDS))


def turns(seconds: float) -> Iterator[None]:
    """As many as fit into some time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield


def grown_by_clients(folder: Path, *, warm_up: int, more: Iterable[object]) -> None:
    port = str(free_port())
    with running("up", "--port", port, cwd=folder) as up:
        up.wait_for("Ctrl-C")
        url = f"ws://127.0.0.1:{port}"
        for number in range(warm_up):
            come_and_go(url, number)
        before, number = resident(up.process.pid), warm_up
        for _ in more:
            come_and_go(url, number)
            number += 1
        after = resident(up.process.pid)

    assert after < before + ROOM_BYTES, f"{number - warm_up} clients cost {(after - before) // KIB} KiB"


def come_and_go(url: str, number: int) -> None:
    """One client that offers, binds, calls, writes and listens, and leaves some of it behind."""
    name = f"worker-{number}"
    with RawClient(url, name=name) as client:
        client.send(type="registerfunction", id=f"{name}::f", request_format={"type": "object"})
        client.send(type="registertriggertype", id=f"{name}::type", description="a type of its own")
        config = {"scope": name}
        client.send(
            type="registertrigger", id=name, trigger_type="state", function_id=f"{name}::f", config=config
        )
        client.result("state::set", {"scope": name, "key": "k", "value": "x" * 100_000})
        client.result("skills::register", {"id": f"{name}/doc", "skill": f"# {name}\n\n{'words ' * 500}"})
        assert f"{name}/doc" in json.dumps(client.result("skills::list"))
        client.call("directory::skills::get", {"id": f"{name}/dok"})
        client.result("skills::unregister", {"id": f"{name}/doc"})
        client.result("state::delete", {"scope": name, "key": "k"})
        # It leaves with a call under way, and with a function and a binding that were not taken back.
        client.start_call("directory::skills::list")


def resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) * KIB
