"""The structures under the snapshot, when they are large: any change gives what a fresh start would."""

from __future__ import annotations

import random

import pytest

from iii_directory.catalog.persistent import Claims, PagedMap, sorted_by_key

KEYS = [f"worker-{number // 20:03}/step-{number:04}" for number in range(3_000)]


@pytest.mark.parametrize("seed", range(5))
def test_pages_hold_what_a_dictionary_would_after_any_changes(seed: int) -> None:
    choose = random.Random(seed)
    plain: dict[str, int] = {}
    pages: PagedMap[int] = PagedMap()
    for step in range(300):
        count = choose.choice((1, 1, 1, 5, 400))
        edits = {key: choose.choice((None, step)) for key in choose.sample(KEYS, count)}
        before = (pages, dict(pages.items()))
        pages = pages.changed(edits)
        plain = {key: value for key, value in {**plain, **edits}.items() if value is not None}
        assert dict(before[0].items()) == before[1], "what it was derived from stays"
        assert len(pages) == len(plain)
        assert all(pages.get(key) == plain.get(key) for key in edits)
    assert dict(pages.items()) == plain
    assert sorted(pages) == sorted(plain)
    assert sorted(pages.values()) == sorted(plain.values())
    assert all(key in pages and pages[key] == value for key, value in plain.items())


@pytest.mark.parametrize("seed", range(5))
def test_a_long_documents_is_in_order_after_any_changes(seed: int) -> None:
    choose = random.Random(seed)
    plain = {key: 0 for key in KEYS if choose.random() < 0.5}
    documents = sorted_by_key(plain)
    for step in range(1, 150):
        documents.column(_row)
        edits = {key: choose.choice((None, step)) for key in choose.sample(KEYS, choose.choice((1, 3, 60)))}
        documents = documents.changed(edits)
        plain = {key: item for key, item in {**plain, **edits}.items() if item is not None}
        fresh = sorted_by_key(plain)
        assert (documents.keys, documents.items, len(documents)) == (fresh.keys, fresh.items, len(plain))
        assert documents.column(_row) == fresh.column(_row)
        prefix = choose.choice(KEYS)[: choose.randint(1, 16)]
        assert documents.below(prefix, _row) == [
            _row(key, plain[key]) for key in fresh.keys if key.startswith(prefix)
        ]


def test_a_documents_that_was_emptied_can_be_filled_again() -> None:
    documents = sorted_by_key({"a": 1}).changed({"a": None})

    assert (documents.keys, len(documents), documents.below("a", _row)) == ([], 0, [])
    assert documents.changed({"b": 2, "c": None}).keys == ["b"]


def test_a_row_is_made_once_for_as_long_as_its_document_stays() -> None:
    made: list[str] = []

    def row(key: str, _: int) -> str:
        made.append(key)
        return key

    documents = sorted_by_key(dict.fromkeys(KEYS, 0))
    documents.column(row)
    made.clear()
    changed = documents.changed({KEYS[1_500]: 1})

    assert changed.column(row) == KEYS
    assert made == [KEYS[1_500]]


def test_of_several_claims_the_best_wins_and_the_others_wait_in_order() -> None:
    claims: Claims[int] = Claims(lambda number: number)
    claims, moved = claims.changed([], [("k", 5), ("k", 3), ("k", 9)])
    assert (claims.winners["k"], claims.losers["k"], moved) == (3, (5, 9), {"k"})

    claims, moved = claims.changed([("k", 5)], [])
    assert (claims.winners["k"], claims.losers["k"], moved) == (3, (9,), set())

    claims, moved = claims.changed([("k", 3), ("k", 9)], [])
    assert ("k" in claims.winners, "k" in claims.losers, moved) == (False, False, {"k"})


def _row(key: str, item: int) -> tuple[str, int]:
    return key, item
