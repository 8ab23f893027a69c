"""Tool names: what every client takes, one for each function."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.mcp.exposure import OFFERED, TOOL_NAME, tool_names

IDS = st.text(alphabet="ab_-.:/ é\x00", min_size=1, max_size=90) | st.text(min_size=1)


def name_of(function_id: str, *others: str) -> str:
    return next(name for name, one in tool_names([function_id, *others]).items() if one == function_id)


@pytest.mark.parametrize(
    ("function_id", "name"),
    [
        ("skill::fetch", "skill__fetch"),
        ("directory::skills::get", "directory__skills__get"),
        ("directory::function-list", "directory__function-list"),
        ("publish", "publish"),
        ("A::b-C_d", "A__b-C_d"),
    ],
)
def test_a_plain_id_is_read_back_from_its_name(function_id: str, name: str) -> None:
    assert name_of(function_id) == name


@pytest.mark.parametrize("function_id", ["a.b", "a/b", "a b", "a__b", "a_::b", "a:b", "é", "x" * 65, ""])
def test_an_id_that_cannot_be_read_back_gets_a_hash(function_id: str) -> None:
    name = name_of(function_id)

    assert TOOL_NAME.fullmatch(name)
    assert len(name.rsplit("_", 1)[1]) == 8


def test_a_name_does_not_depend_on_the_other_functions() -> None:
    for function_id in ("a::b", "a__b", "a.b"):
        assert name_of(function_id) == name_of(function_id, "a::b", "a__b", "a.b", "a_b")


def test_ids_that_would_share_a_name_do_not() -> None:
    ids = ["a::b", "a__b", "a.b", "a_b", "a:_b", "a_:b"]

    assert sorted(tool_names(ids).values()) == sorted(ids)


def test_a_name_taken_on_purpose_makes_the_hash_longer() -> None:
    squatter = name_of("a.b").replace("__", "::")
    names = tool_names(["a.b", squatter])

    assert sorted(names.values()) == sorted(["a.b", squatter])
    assert len(name_of("a.b", squatter).rsplit("_", 1)[1]) == 9


@given(st.lists(IDS, max_size=12))
def test_every_function_has_one_name_that_every_client_takes(ids: list[str]) -> None:
    names = tool_names(ids)

    assert sorted(names.values()) == sorted(set(ids))
    assert all(TOOL_NAME.fullmatch(name) for name in names)


def test_our_own_names_leave_room_for_what_hosts_put_before_them() -> None:
    longest = max(map(len, tool_names(OFFERED)))

    assert len("mcp__iii-directory__") + longest <= 64
