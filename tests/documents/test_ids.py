"""The grammar of skill ids and prompt names, and what a path in the folder stands for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE, is_harmless, label

from iii_directory.documents.ids import (
    RESERVED_IDS,
    bare_id,
    check_new_skill_id,
    check_prompt_name,
    check_skill_id,
    namespace_of,
    path_to_id,
    prompt_name_problem,
    skill_id_problem,
)
from iii_directory.errors import DirectoryError

SEGMENTS = st.text("abcxyz019_-", min_size=1, max_size=8)
IDS = (
    st.lists(SEGMENTS, min_size=1, max_size=4)
    .map("/".join)
    .filter(lambda i: not i.startswith("fn/") and i != "fn")
)


@pytest.mark.parametrize(
    "skill_id",
    [
        "a",
        "iii-sandbox",
        "a/b/c",
        "0",
        "-",
        "_",
        "docs/fn-reference",
        "docs/fn",
        "fnx",
        "a" * 64,
        "prompts",
        "index",
    ],
)
def test_a_well_formed_id_is_accepted(skill_id: str) -> None:
    check_skill_id(skill_id)


@pytest.mark.parametrize(
    ("skill_id", "fragment"),
    [
        ("", "id must be non-empty"),
        ("   ", "id must be non-empty"),
        ("A", "lowercase"),
        ("a/B", "lowercase"),
        ("a b", "lowercase"),
        ("a.md", "lowercase"),
        ("a::b", "lowercase"),
        ("a\n", "lowercase"),
        ("\u00e4", "lowercase"),
        ("a" * 65, "too long"),
        ("a/" + "b" * 65, "too long"),
        ("a/" * 600 + "a", "too long"),
        ("fn", "reserved"),
        ("fn/a", "reserved"),
        ("/a", "empty segment"),
        ("a/", "empty segment"),
        ("a//b", "empty segment"),
    ],
)
def test_a_broken_id_is_refused_with_its_reason(skill_id: str, fragment: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D111 invalid_input: ") as caught:
        check_skill_id(skill_id)

    assert fragment in str(caught.value)


def test_an_id_of_exactly_the_longest_length_is_accepted() -> None:
    longest = "/".join(["a" * 64] * 15 + ["b" * 49])

    assert len(longest) == 1024
    assert skill_id_problem(longest) is None
    assert "too long" in str(skill_id_problem(longest + "b"))


@pytest.mark.parametrize("skill_id", sorted(RESERVED_IDS))
def test_an_id_behind_the_index_cannot_be_registered(skill_id: str) -> None:
    check_skill_id(skill_id)

    with pytest.raises(DirectoryError, match=r"D111.*reserved.*iii://"):
        check_new_skill_id(skill_id)


@pytest.mark.parametrize(
    "skill_id",
    ["index", "skills/index", "skills/x", "directory/skills/index", "con", "a/nul", "lpt1/x"],
)
def test_an_id_that_reads_as_the_index_or_that_windows_cannot_store_is_reserved(skill_id: str) -> None:
    with pytest.raises(DirectoryError, match=r"D111.*reserved"):
        check_new_skill_id(skill_id)


@pytest.mark.parametrize("skill_id", ["x/skills", "x/index", "directory", "directory/x", "console", "com10"])
def test_an_id_that_only_resembles_a_reserved_one_is_taken(skill_id: str) -> None:
    check_new_skill_id(skill_id)


@pytest.mark.parametrize("text", HOSTILE, ids=label)
def test_a_hostile_id_is_refused_in_one_harmless_line(text: str) -> None:
    with pytest.raises(DirectoryError) as caught:
        check_skill_id(text)

    sentence = str(caught.value)
    assert is_harmless(sentence)
    assert len(sentence) < 400


@pytest.mark.parametrize("text", [text for text in HOSTILE if text != "fn"], ids=label)
def test_a_hostile_prompt_name_is_refused_in_one_harmless_line(text: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D211") as caught:
        check_prompt_name(text)

    assert is_harmless(str(caught.value))


@pytest.mark.parametrize(
    ("name", "fragment"),
    [("", "name must be non-empty"), ("A", "lowercase"), ("a/b", "lowercase"), ("a" * 65, "too long")],
)
def test_a_broken_prompt_name_is_refused_with_its_reason(name: str, fragment: str) -> None:
    assert fragment in str(prompt_name_problem(name))


def test_a_well_formed_prompt_name_is_accepted() -> None:
    check_prompt_name("send-email_2")


@pytest.mark.parametrize(
    ("path", "skill_id"),
    [
        ("a.md", "a"),
        ("a/b.md", "a/b"),
        ("a/index.md", "a/index"),
        ("a/SKILL.md", "a/index"),
        ("a/SKILLS.md", "a/index"),
        ("SKILL.md", "index"),
        ("a/skill.md", "a/skill"),
        ("a/prompts.md", "a/prompts"),
        ("prompts.md", "prompts"),
        ("my-prompts/a.md", "my-prompts/a"),
        ("a/fn/b.md", "a/fn/b"),
    ],
)
def test_a_markdown_file_is_the_skill_of_its_path(path: str, skill_id: str) -> None:
    assert path_to_id(path) == (skill_id, False, None)


@pytest.mark.parametrize(
    ("path", "name"),
    [("prompts/a.md", "a"), ("x/prompts/a.md", "a"), ("x/prompts/deep/a.md", "a"), ("X y/prompts/a.md", "a")],
)
def test_a_markdown_file_below_a_folder_called_prompts_is_a_prompt(path: str, name: str) -> None:
    assert path_to_id(path) == (name, True, None)


@pytest.mark.parametrize(
    ("path", "fragment"),
    [
        (".a.md", "hidden"),
        (".git/a.md", "hidden"),
        ("a/.b/c.md", "hidden"),
        ("a/prompts/.b.md", "hidden"),
        ("a.txt", "not a .md file"),
        ("a.MD", "not a .md file"),
        ("a", "not a .md file"),
        ("a/prompts/b.txt", "not a .md file"),
        ("A.md", "lowercase"),
        ("a/Skill.md", "lowercase"),
        ("a b.md", "lowercase"),
        ("a.b.md", "lowercase"),
        ("fn.md", "reserved"),
        ("fn/a.md", "reserved"),
        ("x" * 65 + ".md", "too long"),
        ("a/" * 600 + "a.md", "too long"),
        ("MYSKILL.md", "lowercase"),
        ("a//b.md", "empty segment"),
    ],
)
def test_the_reason_is_given_for_a_path_that_is_not_a_document(path: str, fragment: str) -> None:
    assert fragment in str(path_to_id(path).problem)


@given(IDS)
def test_every_id_is_the_skill_of_its_own_file(skill_id: str) -> None:
    assert path_to_id(f"{skill_id}.md") == (skill_id, False, None)


@pytest.mark.parametrize("length", [1020, 1021, 1022, 1023, 1024])
def test_the_longest_overviews_are_found_too(length: int) -> None:
    folder = ("a" * 63 + "/") * 15 + "b" * (length - 960 - 6) + "/"

    for name in ("index", "SKILL", "SKILLS"):
        assert path_to_id(f"{folder}{name}.md") == (f"{folder}index", False, None)


def test_the_bare_id_drops_one_index_only() -> None:
    assert [bare_id(i) for i in ("a/index", "a/index/index", "index", "a")] == ["a", "a/index", "index", "a"]


def test_the_namespace_is_the_first_segment() -> None:
    assert [namespace_of(i) for i in ("a", "a/b/c")] == ["a", "a"]
