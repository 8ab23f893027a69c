"""Vectors of texts: sums over a table, compared with every vector of a buffer."""

from __future__ import annotations

import random
import re
import struct
from importlib.resources import files
from itertools import starmap
from math import sqrt
from operator import mul
from pathlib import Path

import pytest

from iii_directory.search.meaning import (
    DIMENSIONS,
    DocumentVectors,
    Vector,
    WordVectors,
    blended,
    word_vectors,
)
from iii_directory.search.words import words

ROOT = Path(__file__).parents[2]
ROWS = sorted(["send", "mail", "##s", "a", "picture", "resize"])
CHANCE = random.Random(7)
CODES = {word: [CHANCE.randint(1, 15) for _ in range(DIMENSIONS)] for word in ROWS}


def small_table() -> WordVectors:
    listed = "\n".join(ROWS).encode()
    rows = (bytes(low | high << 4 for low, high in zip(c[::2], c[1::2], strict=True)) for c in CODES.values())
    return WordVectors(struct.pack("<I", len(listed)) + listed + b"".join(rows))


def cosine(left: Vector | list[int], right: Vector | list[int]) -> float:
    lengths = sqrt(sum(x * x for x in left)) * sqrt(sum(x * x for x in right))
    return sum(map(mul, left, right)) / lengths


def vector_of(text: str) -> Vector:
    return word_vectors().vector(words(text))


def test_the_vector_of_a_text_is_the_sum_over_its_words_and_pieces_of_words() -> None:
    expected = [sum(CODES[row][at] - 8 for row in ("send", "mail", "##s")) for at in range(DIMENSIONS)]

    assert cosine(small_table().vector(["send", "mails", "unheard"]), expected) == pytest.approx(
        1.0, abs=1e-3
    )


def test_a_text_without_a_known_word_has_no_vector_and_is_close_to_nothing() -> None:
    vectors = DocumentVectors()
    vectors.put(1, small_table().vector(["mail"]))

    nothing = small_table().vector(["図", "xyz"])

    assert not nothing
    assert vectors.closeness(nothing).closest(5) == []
    assert vectors.closeness(nothing)[1] == 0.0


def test_the_closest_documents_are_those_a_plain_comparison_finds() -> None:
    table = small_table()
    vectors, known = DocumentVectors(), dict[int, Vector]()
    for number in range(3000):
        said = (CHANCE.choice(ROWS), CHANCE.choice(ROWS), "mail" + "s" * CHANCE.randint(1, 9))
        known[number] = table.vector(said)
        vectors.put(number, known[number])
    for number in range(0, 3000, 3):
        vectors.drop(number)
        del known[number]
    asked = table.vector(["send", "mails"])
    shown = frozenset(range(0, 3000, 2))

    closeness = vectors.closeness(asked)

    plain = {number: cosine(asked, vector) for number, vector in known.items()}
    assert all(closeness[number] == pytest.approx(value, abs=0.01) for number, value in plain.items())
    for among in (None, shown):
        found = closeness.closest(60, among)
        allowed = [number for number in plain if among is None or number in among]
        best = sorted((plain[number] for number in allowed), reverse=True)[:60]
        assert [plain[number] for number in found] == pytest.approx(best, abs=0.01)


def test_a_vector_between_two_is_nearer_to_the_heavier_one() -> None:
    table = small_table()
    left, right = table.vector(["send"]), table.vector(["picture"])

    between = blended(left, right, 0.5)

    assert cosine(between, left) > cosine(between, right) > cosine(left, right)
    assert blended(left, table.vector([]), 0.5) == left


@pytest.mark.parametrize(
    ("asked", "near", "far"),
    [
        ("shrink a photo", "resize an image", "list the tables of a database"),
        ("electronic letter", "send an email message", "delete a folder"),
        ("k8s", "kubernetes cluster", "spreadsheet"),
        ("speed up a slow program", "performance optimization", "write documentation"),
    ],
)
def test_texts_that_mean_alike_are_closer_than_others(asked: str, near: str, far: str) -> None:
    assert cosine(vector_of(asked), vector_of(near)) > cosine(vector_of(asked), vector_of(far)) + 0.1


def test_the_table_is_small_and_its_notice_names_everything_it_was_made_from() -> None:
    data = files("iii_directory.search")
    notice = " ".join(data.joinpath("NOTICE").read_text(encoding="utf-8").split())
    script = (ROOT / "tools" / "word_vectors.py").read_text(encoding="utf-8")
    sources = re.findall(r'"(@?[\w./-]+)(?:==|@)(\d[\w.]*)"', script)

    assert len(data.joinpath("word_vectors.bin").read_bytes()) <= 6_000_000
    assert len(sources) > 40
    assert [source for source in starmap("{} {}".format, sources) if source not in notice] == []
