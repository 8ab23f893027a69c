"""A judge on the engine orders the best hits anew; without one, or when it fails, nothing changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.directory import Client, client, directory
from tests.support.engine import EngineThread

from iii_directory.bus.seam import CallError
from iii_directory.search.fields import Document
from iii_directory.search.finding import Finding, find
from iii_directory.search.index import Index
from iii_directory.search.thesaurus import thesaurus
from iii_directory.worker.judging import Judge, chosen, ordered, question, ranked_by

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

REQUEST = "send a message"


def finding() -> Finding:
    index = Index(thesaurus())
    index.put(Document("sms::send", description="Send a message to a phone."))
    index.put(Document("mail::send", description="Send a message by mail, with attachments and a subject."))
    index.put(Document("queue::send", description="Send a message to whoever listens to a topic here."))
    return find({"function": index}, REQUEST, limit=16)


def ids(one: Finding) -> list[str]:
    return [hit.document.id for section in one.sections for hit in section.hits]


class FakeBus:
    """An engine whose judge answers as it is told."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Mapping[str, Any]] = []

    async def call(self, function_id: str, payload: Mapping[str, Any], **_: Any) -> Any:
        assert function_id == "judge::evaluate"
        self.asked.append(payload)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def tell(self, *_: Any, **__: Any) -> None:
        raise AssertionError("nobody is told anything")


def verdict(**probabilities: float) -> dict[str, Any]:
    best = {"type": "choice", "choice": "1", "probabilities": probabilities, "confidence": 0.9}
    return {"status": "ok", "results": {"search": {"answers": {"best": best}}}}


def test_the_judge_puts_what_it_chose_first_and_leaves_the_rest_in_order() -> None:
    lexical = ids(finding())
    third = str(len(lexical))

    judged, taken = asyncio.run(ranked_by(Judge(FakeBus(verdict(**{third: 0.9, "1": 0.02}))), finding(), 5))

    assert taken
    assert ids(judged) == [lexical[-1], *lexical[:-1]]


@pytest.mark.parametrize(
    "answer",
    [
        CallError("function_not_found", "no such function"),
        CallError("TIMEOUT", "too slow"),
        {"status": "error", "code": "provider_unavailable"},
        "nonsense",
        {"results": {"search": {"answers": {"best": {"probabilities": {"1": "high"}}}}}},
    ],
)
def test_whatever_goes_wrong_the_order_of_the_words_stays(answer: Any) -> None:
    judged, taken = asyncio.run(ranked_by(Judge(FakeBus(answer)), finding(), 5))

    assert not taken
    assert ids(judged) == ids(finding())


def test_after_a_failure_the_judge_is_left_alone_for_a_while_but_not_after_a_timeout() -> None:
    now = 0.0
    missing, slow = FakeBus(CallError("function_not_found", "")), FakeBus(CallError("TIMEOUT", ""))
    absent, late = Judge(missing, lambda: now), Judge(slow, lambda: now)

    for _ in range(2):
        asyncio.run(ranked_by(absent, finding(), 5))
        asyncio.run(ranked_by(late, finding(), 5))
    assert (len(missing.asked), len(slow.asked)) == (1, 2)

    now = 31.0
    asyncio.run(ranked_by(absent, finding(), 5))
    assert len(missing.asked) == 2


def test_the_judge_sees_descriptions_and_no_ids() -> None:
    hits = finding().sections[0].hits

    asked = question(REQUEST, hits, 2000)

    assert "::" not in str(asked)
    assert asked["evaluations"][0]["state"] == {"request": REQUEST}


def test_an_option_that_is_no_better_than_chance_keeps_its_place() -> None:
    hits = finding().sections[0].hits

    assert ordered(hits, {hits[-1].document.id: 0.05}) == list(hits)
    assert chosen(verdict(none=1.0)) == {"none": 1.0}


# On an engine


@pytest.fixture
def caller(tmp_path: Path) -> Generator[Client]:
    for name, text in {
        "ink": "Draw with ink on paper.",
        "oil": "Draw with oil on canvas, for beginners.",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    with (
        EngineThread() as engine,
        directory(engine.url, tmp_path, search_judge=True),
        client(engine.url) as one,
    ):
        yield one


def skills(reply: dict[str, Any]) -> list[str]:
    (section,) = [s for s in reply["results"][0]["sections"] if s["kind"] == "skill"]
    return [hit["id"] for hit in section["hits"]]


def test_without_a_judge_a_search_is_lexical(caller: Client) -> None:
    assert caller.call("directory::search", query="draw", kinds=["skill"])["mode"] == "lexical"


def test_a_judge_on_the_engine_takes_part_in_a_search(caller: Client) -> None:
    async def evaluate(data: dict[str, Any]) -> dict[str, Any]:
        options: dict[str, str] = data["evaluations"][0]["questions"]["best"]["criteria"]
        return verdict(**{option: float("beginners" in text) for option, text in options.items()})

    caller.sdk.register_function("judge::evaluate", evaluate)

    reply = caller.call("directory::search", query="draw", kinds=["skill"], limit=1)

    assert reply["mode"] == "lexical+judge"
    assert skills(reply) == ["oil"]
