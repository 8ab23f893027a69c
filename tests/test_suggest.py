"""Close names: the right ones, and none that is unrelated."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE, label

from iii_directory.text import Names, close_names

KNOWN = frozenset(
    [
        *(
            "iii-sandbox",
            "iii-sandbox/create",
            "iii-sandbox/filesystem/read",
            "iii-directory",
            "iii-state",
            "db",
        ),
        *(
            "agent-memory",
            "agent-memory/observe",
            "agent-memory/recall",
            "resend/email/send",
            "communication",
        ),
    ]
)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("iii-sanbox", "iii-sandbox"),
        ("iii-sandobx", "iii-sandbox"),
        ("iii-sandboxx", "iii-sandbox"),
        ("sanbox", "iii-sandbox"),
        ("iii-resend/email/send", "resend/email/send"),
        ("agent-memroy/observe", "agent-memory/observe"),
        ("agent_memory", "agent-memory"),
        ("agnt-memry", "agent-memory"),
        ("iii-sandbox/craete", "iii-sandbox/create"),
        ("sanbox/create", "iii-sandbox/create"),
        ("III-SANBOX", "iii-sandbox"),
        ("recall", "agent-memory/recall"),
        ("email/send", "resend/email/send"),
        ("iii-sandbox/missing", "iii-sandbox"),
        ("agent-memory/deep/below", "agent-memory"),
        ("memory", "agent-memory"),
    ],
)
def test_the_name_that_was_meant_comes_first(asked: str, first: str) -> None:
    assert close_names(asked, KNOWN)[0] == first


@pytest.mark.parametrize(
    "asked", ["zzzz", "kubernetes", "x", "", "cat", "db2x", "ii", "com-x", "munication", "a" * 500]
)
def test_nothing_unrelated_is_offered(asked: str) -> None:
    assert close_names(asked, KNOWN) == []


def test_at_most_three_names_are_offered_in_a_fixed_order() -> None:
    known = {f"skill-{number}" for number in range(100)}

    assert close_names("skill-x", known) == ["skill-0", "skill-1", "skill-2"]


@pytest.mark.parametrize("text", HOSTILE, ids=label)
def test_a_hostile_name_gets_only_known_names(text: str) -> None:
    assert set(close_names(text, KNOWN)) <= KNOWN


def _slow_distance(left: str, right: str) -> int:
    table = [[i + j for j in range(len(right) + 1)] for i in range(len(left) + 1)]
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (left[i - 1] != right[j - 1]),
            )
            if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@given(st.text("abc", min_size=4, max_size=16), st.frozensets(st.text("abc", min_size=4, max_size=16)))
def test_what_is_offered_by_its_letters_is_as_close_as_it_may_be(asked: str, known: frozenset[str]) -> None:
    allowed = max(1, min(len(asked) // 4, 3))
    by_letters = {name: _slow_distance(asked, name) for name in known if asked not in name}
    close = sorted((slips, name) for name, slips in by_letters.items() if slips <= allowed)

    offered = [name for name in close_names(asked, known) if asked not in name]

    assert offered == [name for _, name in close][: len(offered)]
    assert len(offered) == len(close) or len(close_names(asked, known)) == 3


def _slow_close_names(asked: str, known: frozenset[str]) -> list[str]:
    """The rule as it is promised: one slip, then a word's beginning, then some slips, then what is above."""
    slips = {name: _slow_distance(asked, name) for name in known} if 4 <= len(asked) <= 120 else {}
    stem = asked.removeprefix("iii-")
    other = stem if stem != asked else f"iii-{asked}"
    one = {name for name, count in slips.items() if count <= 1}
    if slips and 4 <= len(stem) <= 120:
        one |= {name for name in known if _slow_distance(other, name) <= 1}
    starts = [
        name
        for name in known
        if len(asked) >= 3 and any(f"{mark}{asked}" in f"/{name}" for mark in ("/", "_", "-"))
    ]
    allowed = max(1, min(len(asked) // 4, 3))
    some = [name for name, count in slips.items() if count <= allowed]
    above = [parent for parent in ("/".join(asked.split("/")[:n]) for n in range(1, 20)) if parent in known]
    in_order = [
        *sorted(one),
        *sorted(starts, key=lambda name: (len(name), name)),
        *sorted(some, key=lambda name: (slips[name], name)),
        *[parent for parent in above if parent != asked][-1:],
    ]
    return list(dict.fromkeys(in_order))[:3]


WORDS = st.lists(st.sampled_from(["ab", "ba", "abc", "cab", "iii-", "iii-ab", "/", "-", "_"]), max_size=6)
NAMES = WORDS.map("".join).filter(bool)


@given(NAMES, st.frozensets(NAMES, max_size=30))
def test_what_is_offered_is_what_comparing_with_every_name_offers(asked: str, known: frozenset[str]) -> None:
    expected = _slow_close_names(asked, known)

    assert close_names(asked, known) == expected
    assert close_names(asked, Names(known)) == expected


def test_one_slip_anywhere_in_any_name_is_always_found() -> None:
    rng = random.Random(7)
    for name in sorted(KNOWN - {"db"}):
        for at in range(len(name)):
            for slip in (
                name[:at] + name[at + 1 :],
                name[:at] + "q" + name[at:],
                name[:at] + "q" + name[at + 1 :],
            ):
                others = {"".join(rng.choices("stuvwxyz", k=12)) for _ in range(50)}
                assert name in close_names(slip, others | {name}), slip


@given(st.text(max_size=20), st.frozensets(st.text("abcdef-/", min_size=1, max_size=12), max_size=20))
def test_whatever_is_asked_only_known_names_come_back(asked: str, known: frozenset[str]) -> None:
    found = close_names(asked, known)

    assert set(found) <= known
    assert len(found) == len(set(found)) <= 3
