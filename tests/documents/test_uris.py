"""``iii://`` addresses, what a fetch asks for, and the guard of sections."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE, is_harmless, label, outcome

from iii_directory.documents.uris import (
    GUARDED_PREFIXES,
    IndexUri,
    SectionUri,
    SkillUri,
    check_unguarded,
    fetch_uris,
    parse_uri,
)
from iii_directory.errors import DirectoryError


@pytest.mark.parametrize("uri", ["iii://skills", "iii://directory/skills"])
def test_the_two_addresses_of_the_index(uri: str) -> None:
    assert parse_uri(uri) == IndexUri()


@pytest.mark.parametrize(
    "skill_id", ["a", "resend/email/send", "skills/index", "directory/skills/list", "fnord"]
)
def test_an_address_leads_to_a_skill(skill_id: str) -> None:
    assert parse_uri(f"iii://{skill_id}") == SkillUri(skill_id)


@pytest.mark.parametrize(
    ("path", "function_id"),
    [("foo", "foo"), ("scope/foo", "scope::foo"), ("resend/email/send", "resend::email::send"), ("fn", "fn")],
)
def test_an_address_behind_fn_leads_to_a_function(path: str, function_id: str) -> None:
    assert parse_uri(f"iii://fn/{path}") == SectionUri(function_id)


@pytest.mark.parametrize(
    ("uri", "fragment"),
    [
        ("http://a", "iii://"),
        ("III://a", "iii://"),
        ("a", "iii://"),
        ("", "iii://"),
        ("iii://", "id must be non-empty"),
        ("iii://a/", "empty segment"),
        ("iii://a//b", "empty segment"),
        ("iii:///a", "empty segment"),
        ("iii://fn", "missing a function path"),
        ("iii://fn/", "missing a function path"),
        ("iii://fn/a//b", "empty segment"),
        ("iii://fn/a/", "empty segment"),
        ("iii://fn/a.b", "lowercase"),
        ("iii://fn/A", "lowercase"),
        ("iii://A", "lowercase"),
        ("iii://a%2fb", "lowercase"),
        ("iii://" + "a" * 65, "too long"),
        ("iii://fn/" + "a" * 65, "too long"),
        ("iii://" + "a/" * 600 + "a", "too long"),
    ],
)
def test_a_broken_address_is_refused_with_its_reason(uri: str, fragment: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D111") as caught:
        parse_uri(uri)

    assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "new"),
    [
        ("iii://x/worker::fn", "iii://fn/worker/fn"),
        ("iii://brain/brain::summarize", "iii://fn/brain/summarize"),
        ("iii://worker::fn", "iii://fn/worker/fn"),
        ("iii://a/b/worker::x::fn", "iii://fn/worker/x/fn"),
        ("iii://fn/worker::fn", "iii://fn/worker/fn"),
        ("iii://fn/a::b/c", "iii://fn/a/b/c"),
    ],
)
def test_a_link_of_the_first_generation_is_not_found_and_shows_the_new_form(uri: str, new: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D112") as caught:
        parse_uri(uri)

    assert "not found" in str(caught.value)
    assert re.search(rf"{new}(?![\w/])", str(caught.value))


def test_an_old_link_to_an_unreachable_function_shows_no_form() -> None:
    with pytest.raises(DirectoryError, match=r"not found: it names a function[.]"):
        parse_uri("iii://x/worker::Fn")


@pytest.mark.parametrize("text", HOSTILE, ids=label)
def test_a_hostile_address_is_refused_in_one_harmless_line(text: str) -> None:
    for uri in (text, f"iii://{text}", f"iii://fn/{text}"):
        found = outcome(lambda uri=uri: parse_uri(uri))
        if isinstance(found, DirectoryError):
            assert is_harmless(str(found))
        else:
            # Some are harmless behind fn: what comes out must still be a plain function id.
            assert isinstance(found, SectionUri)
            assert re.fullmatch(r"[a-z0-9_-]+(::[a-z0-9_-]+)*", found.function_id)


@pytest.mark.parametrize("text", HOSTILE, ids=label)
def test_a_hostile_string_in_a_fetch_is_refused_or_stays_an_address(text: str) -> None:
    found = outcome(lambda: fetch_uris(text, None))

    if isinstance(found, DirectoryError):
        assert is_harmless(str(found))
    else:
        assert [uri.startswith("iii://") for uri in found] == [True]


def test_a_bare_path_gets_its_scheme() -> None:
    assert fetch_uris(" agent-memory ", None) == ["iii://agent-memory"]
    assert fetch_uris(None, ["a/b", "iii://c"]) == ["iii://a/b", "iii://c"]


def test_uris_win_over_uri_and_keep_their_order() -> None:
    assert fetch_uris("x", ["b", " ", "a", ""]) == ["iii://b", "iii://a"]
    assert fetch_uris("x", []) == ["iii://x"]


@pytest.mark.parametrize(
    ("uri", "uris"), [(None, None), ("", []), (" ", None), ("x", [" ", ""]), (None, [""])]
)
def test_nothing_to_fetch_asks_for_an_address(uri: str | None, uris: list[str] | None) -> None:
    with pytest.raises(DirectoryError, match=r"^D111.*Provide uri"):
        fetch_uris(uri, uris)


def test_another_scheme_is_refused_before_anything_is_read() -> None:
    with pytest.raises(DirectoryError, match=r"iii://"):
        fetch_uris(None, ["iii://a", "https://example.com"])


@pytest.mark.parametrize("prefix", GUARDED_PREFIXES)
def test_an_internal_function_backs_neither_a_section_nor_a_prompt(prefix: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D120 forbidden: .*internal namespace.*section"):
        check_unguarded(f"{prefix}anything", "section")
    with pytest.raises(DirectoryError, match=r"internal namespace.*prompt"):
        check_unguarded(f" {prefix}anything", "prompt")


@pytest.mark.parametrize(
    "function_id", ["engineer::x", "mystate::get", "iii-sandbox::run", "skill::fetch", "state"]
)
def test_other_functions_are_not_guarded(function_id: str) -> None:
    check_unguarded(function_id, "section")


SEGMENTS = st.text("abcz09_-", min_size=1, max_size=6)


@given(st.lists(SEGMENTS, min_size=1, max_size=5))
def test_a_function_id_survives_the_way_through_its_address(segments: list[str]) -> None:
    assert parse_uri(f"iii://fn/{'/'.join(segments)}") == SectionUri("::".join(segments))


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_known_error(text: str) -> None:
    found = outcome(lambda: parse_uri(f"iii://{text}"))

    if isinstance(found, DirectoryError):
        assert found.code in {"D111", "D112"}
        assert is_harmless(str(found))
