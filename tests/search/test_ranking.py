"""The fast ranking against the slow model, and an index that was changed against a fresh one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.corpora import index_of
from tests.search.slow_model import Model

from iii_directory.search import relevance
from iii_directory.search.fields import Document
from iii_directory.search.finding import find
from iii_directory.search.index import Index
from iii_directory.search.relevance import Match, by_words, groups_of
from iii_directory.search.search_request import parse_question
from iii_directory.search.words import thesaurus

# Few words, so that they meet: forms, slips, synonyms, parts of one another, and several scripts.
VOCABULARY = (
    "resize resizes resized resizing image images picture photo imge delete deleted remove file files folder "
    "repository repo screenshot screen shot screenshots email e-mail mail send sending GitHub putObject put "
    "object the of to kubernetes kubernets kuberentes translation translate größe 图片 图片处理 画像を縮小 "
    "الصور صور c++ rollback roll back undo x 7 internal"
)
WORDS = VOCABULARY.split()
TEXT = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
SENTENCES = st.lists(TEXT, max_size=3).map(". ".join)
IDS = st.builds(
    lambda parts, mark: mark.join(parts),
    st.lists(
        st.sampled_from(("image", "resize", "files", "putObject", "mail", "a", "send-mail")),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(("::", "/")),
)
BODIES = st.builds(lambda head, text, code: f"# {head}\n{text}\n```\n# {code}\n```\n", TEXT, SENTENCES, TEXT)
DOCUMENTS = st.builds(
    Document,
    id=IDS,
    title=TEXT,
    description=SENTENCES,
    keywords=st.lists(TEXT, max_size=2).map(tuple),
    arguments=st.lists(st.sampled_from(("path", "file_name", "imageSize")), max_size=2, unique=True).map(
        tuple
    ),
)
CORPORA = st.lists(st.tuples(DOCUMENTS, BODIES | st.just("")), max_size=8)


def by_id(rows: list[tuple[Document, str]]) -> dict[str, tuple[Document, str]]:
    return {document.id: (document, body) for document, body in rows}


def ranked(index: Index, request: str) -> list[Match]:
    question = parse_question(request)
    unknown = frozenset(w for w in question.words if w not in index and not index.thesaurus.knows(w))
    scores = by_words(index, question, groups_of(index, question, unknown))
    found = [Match(index.document(number).id, number, score, 0.0, 0) for number, score in scores.items()]
    return sorted(found, key=Match.place)


@settings(max_examples=300, deadline=None)
@given(rows=CORPORA, request=TEXT, cut=st.sampled_from([(400, 100), (2, 1)]))
def test_any_question_is_ranked_as_the_slow_model_ranks_it(
    rows: list[tuple[Document, str]], request: str, cut: tuple[int, int]
) -> None:
    corpus = by_id(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relevance, "MAX_READ_POSTINGS", cut[0])
        patch.setattr(relevance, "MAX_READ_SOFT_POSTINGS", cut[1])
        found = ranked(index_of(corpus.values()), request)

    expected = Model(corpus, *cut).ask(request)

    assert [match.id for match in found] == [document_id for document_id, _ in expected]
    assert [match.score for match in found] == pytest.approx([score for _, score in expected])


def everything(index: Index, request: str) -> Any:
    return ranked(index, request), find({"skill": index}, request), index.vocabulary(), len(index)


STEPS = st.lists(st.tuples(st.sampled_from(("put", "put", "drop", "ask")), DOCUMENTS, BODIES), max_size=12)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS, request=TEXT)
def test_after_any_changes_an_index_answers_as_a_fresh_one(
    steps: list[tuple[str, Document, str]], request: str
) -> None:
    index = Index(thesaurus())
    left: dict[str, tuple[Document, str]] = {}
    for step, document, body in steps:
        if step == "put":
            index.put(document, body)
            left[document.id] = (document, body)
        elif step == "drop":
            index.drop(document.id)
            left.pop(document.id, None)
        else:
            ranked(index, request)

    assert everything(index, request) == everything(index_of(left.values()), request)


def test_a_dropped_document_leaves_nothing_in_the_index() -> None:
    index = index_of(
        [(Document("image/resize", "Resizing images", "Resizes images."), "# Photos\nof people")]
    )

    index.drop("image/resize")

    assert len(index) == 0
    assert index.vocabulary() == []
    assert ranked(index, "resize an image") == []


def test_words_that_are_neighbours_in_both_come_before_the_same_words_apart() -> None:
    index = index_of(
        [
            (Document("a/one", description="a request to pull cables"), ""),
            (Document("a/two", description="cables for a pull request"), ""),
        ]
    )

    assert [match.id for match in ranked(index, "pull requests")] == ["a/two", "a/one"]


def test_equals_come_in_the_order_of_their_ids() -> None:
    rows = [(Document(f"{letter}/copy", description="Copies a file."), "") for letter in "dbca"]

    assert [match.id for match in ranked(index_of(rows), "file")] == ["a/copy", "b/copy", "c/copy", "d/copy"]
