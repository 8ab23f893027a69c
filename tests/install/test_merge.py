"""Two changes of one text, brought together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory import limits
from iii_directory.install.reports import merged

BASE = b"one\ntwo\nthree\nfour\nfive\n"
texts = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n"]), max_size=12).map(
    lambda lines: "".join(lines).encode()
)


def result(mine: bytes, theirs: bytes, base: bytes = BASE) -> tuple[bytes, int]:
    found = merged(base, mine, theirs)
    assert found is not None
    return found.content, found.conflicts


def test_changes_in_different_places_are_both_made() -> None:
    mine = BASE.replace(b"one", b"ONE")
    theirs = BASE.replace(b"five\n", b"five\nsix\n")

    assert result(mine, theirs) == (b"ONE\ntwo\nthree\nfour\nfive\nsix\n", 0)


def test_the_same_change_is_made_once() -> None:
    both = BASE.replace(b"three", b"3")

    assert result(both, both) == (both, 0)


def test_changes_of_the_same_lines_are_a_conflict_with_markers() -> None:
    content, conflicts = result(BASE.replace(b"three", b"mine"), BASE.replace(b"three", b"theirs"))

    assert conflicts == 1
    assert content == (b"one\ntwo\n<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> upstream\nfour\nfive\n")


def test_a_marker_stands_on_a_line_of_its_own_where_a_text_ends_without_one() -> None:
    content, conflicts = result(b"mine", b"theirs", b"base")

    assert (content, conflicts) == (b"<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> upstream\n", 1)


def test_a_carriage_return_is_part_of_its_line() -> None:
    base = b"one\r\ntwo\r\nthree\r\n"

    assert result(base.replace(b"one", b"1"), base.replace(b"three", b"3"), base) == (b"1\r\ntwo\r\n3\r\n", 0)


@pytest.mark.parametrize("odd", [b"\xff\xfe", b"a\0b", b"\n" * (limits.MAX_MERGE_LINES + 1)])
def test_a_file_that_is_not_text_or_too_long_is_not_merged(odd: bytes) -> None:
    assert merged(BASE, odd, BASE + b"x") is None


@given(texts, texts)
def test_a_side_that_changed_nothing_gives_way_to_the_other(base: bytes, changed: bytes) -> None:
    assert result(base, changed, base) == (changed, 0)
    assert result(changed, base, base) == (changed, 0)


@given(texts, texts, texts)
def test_which_side_is_whose_does_not_decide_whether_there_is_a_conflict(
    base: bytes, one: bytes, other: bytes
) -> None:
    here, there = merged(base, one, other), merged(base, other, one)
    assert here is not None
    assert there is not None
    assert here.conflicts == there.conflicts
    if not here.conflicts:
        assert here.content == there.content
