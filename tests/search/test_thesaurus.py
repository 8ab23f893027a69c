"""The files of words: short, general, and not written after the public cases."""

from __future__ import annotations

from importlib.resources import files
from itertools import pairwise

from tests.search.corpora import lines

from iii_directory.search.words import (
    STOP_WORDS,
    form_key,
    parse_groups,
    parse_shares,
    thesaurus,
    units,
    words,
)


def file_lines(name: str) -> list[str]:
    return files("iii_directory.search").joinpath(name).read_text(encoding="utf-8").splitlines()


def groups(name: str) -> list[list[str]]:
    """The words of each line; what explains or counts is left out."""
    said = (line for line in file_lines(name) if not line.startswith(("#", ".")))
    return [line.replace("=", " ").split() for line in said]


def public_requests() -> list[str]:
    rows = [*lines("qrels.jsonl"), *lines("jev_cases.jsonl")]
    return [request for row in rows for request in row["capabilities"]]


def test_there_are_at_most_two_hundred_lines_of_synonyms() -> None:
    assert len(file_lines("synonyms.txt")) <= 200


def test_no_line_of_synonyms_quotes_a_public_case() -> None:
    neighbours: set[tuple[str, str]] = set()
    for request in public_requests():
        neighbours.update(pairwise(part for unit in units(request) for part in unit))
    names = {row["function_id"] for row in lines("catalog.jsonl")}

    for group in groups("synonyms.txt"):
        assert not set(pairwise(group)) & neighbours
        assert not set(group) & {name for name in names if "::" in name}


def test_every_word_of_the_files_is_one_that_text_can_have() -> None:
    for word in (word for group in [*groups("synonyms.txt"), *groups("common.txt")] for word in group):
        assert words(word) == [word]
        assert word not in STOP_WORDS


def test_a_word_leads_to_the_others_of_its_groups_in_any_form() -> None:
    found = parse_groups([["image", "picture"], ["picture", "movie"], ["images", "photo"]])

    assert found[form_key("pictures")] == ("image", "movie")
    assert found[form_key("image")] == ("picture", "photo")


def test_ordinary_words_count_by_the_number_above_them() -> None:
    assert parse_shares([".3", "find get", ".5", "paper"]) == {"find": 0.3, "get": 0.3, "paper": 0.5}


def test_an_unlisted_word_counts_fully_and_is_not_known() -> None:
    assert thesaurus().share_of("kubernetes") == 1.0
    assert not thesaurus().knows("kuberntes")
    assert thesaurus().knows("pictures")
    assert thesaurus().share_of("finding") < 1.0
