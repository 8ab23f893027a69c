"""Documents of every kind, written by callers: accepted ones come back as sent, others leave nothing."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.support.engine import EngineThread, RawClient
from tests.support.memory import in_memory
from tests.support.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WINDOW: Final = 32
SEED: Final = int(os.environ.get("III_TEST_SEED", "15"))
WORDS: Final = (
    *("backup", "naïve", "日本語", "👩\u200d🔧", "e\u0301", "\u202eright", "tab\there", "nul\0"),
    *("line\u2028sep", "---", "\ufeff", "\x85", "{{name}}", "iii://fn/a/b", "<script>", "`code`"),
    *("$HOME", "\\", "'", '"', ":", "#"),
)
BREAKS: Final = ("\n", "\r\n", "\n\n", "\r", " ")
HEADS: Final = (
    "", "", "\ufeff", "---\ntitle: A title\n---\n", "---\r\ntitle: A title\r\n---\r\n", "---\n---\n",
    "---\nkeywords: [a, b]\nextra: {deep: [1, null]}\n---\n", "---\ntitle: a: b: c\n---\n", "---\ntitle: x\n",
    "---\ntitle: [\n---\n", "\n", "----\n", "---\ntype: how-to\nfunction_id: a::b\n---\n\n",
)  # fmt: skip


def document(chance: random.Random) -> str:
    words = (chance.choice(WORDS) + chance.choice(BREAKS) for _ in range(chance.choice((0, 1, 5, 40, 400))))
    return chance.choice(HEADS) + chance.choice(("# Heading\n", "", "text ")) + "".join(words)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Reader]:
    with (
        in_memory(tmp_path) as path,
        EngineThread() as engine,
        Reader(engine.url, path, engine, allow_writing=True) as reader,
    ):
        yield reader


@pytest.mark.parametrize("count", [320, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_created_document_is_got_byte_for_byte_or_was_refused_and_left_nothing(
    writer: Reader, count: int
) -> None:
    chance = random.Random(SEED)
    accepted = 0
    with RawClient(writer.url, name="author") as client:
        for start in range(0, count, WINDOW):
            sent = {
                f"n{number % 5}/d{number}": document(chance)
                for number in range(start, min(start + WINDOW, count))
            }
            created = replies(client, "create", [{"id": key, "content": text} for key, text in sent.items()])
            got = replies(client, "get", [{"id": key, "raw": True} for key in sent])
            for (key, text), made, found in zip(sent.items(), created, got, strict=True):
                if "error" in made:
                    assert made["error"]["message"].startswith("D113 "), (key, text)
                    assert "error" in found
                    continue
                accepted += 1
                assert found["result"]["raw"] == text
                assert found["result"]["sha256"] == made["result"]["sha256"]
            gone = replies(client, "delete", [{"id": key} for key in sent])
            assert ["error" in one for one in gone] == ["error" in one for one in created]
    assert count // 2 < accepted < count, f"both kinds of documents are tried (III_TEST_SEED={SEED})"
    assert list(writer.skills.root.iterdir()) == [writer.skills.root / "skills.lock.json"]


def test_a_folder_that_took_the_place_of_the_one_at_the_start_is_not_written_to(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (elsewhere / "skills").mkdir(parents=True)
    with EngineThread() as engine, Reader(engine.url, home, engine, allow_writing=True) as writer:
        home.rename(tmp_path / "away")
        home.symlink_to(elsewhere)

        said = writer.refusal("directory::skills::create", id="notes", content="# Notes\n")

    assert said.startswith("D340 install_error: the skills folder is another one than at the start")
    assert list((elsewhere / "skills").iterdir()) == []


def replies(client: RawClient, function: str, payloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each payload is answered, all of them in flight at once."""
    asked = [client.start_call(f"directory::skills::{function}", payload) for payload in payloads]
    found: dict[str, dict[str, Any]] = {}
    while len(found) < len(asked):
        reply = client.receive_type("invocationresult")
        found[reply["invocation_id"]] = reply
    return [found[call] for call in asked]
