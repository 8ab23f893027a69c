"""Compare texts by meaning with a table of word vectors. Pure.

``word_vectors.bin`` has 256 numbers of four bits for each of some ten thousand English words and pieces of
words (tools/word_vectors.py builds it, docs/design.md says how). The vector of a text is the sum over its
words. Vectors of documents are rows of one buffer, which a search scans as a whole.
"""

from __future__ import annotations

import re
from array import array
from functools import cache
from importlib.resources import files
from itertools import islice
from math import sqrt
from operator import mul
from struct import unpack_from
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import simsimd

if TYPE_CHECKING:
    from collections.abc import Iterable

DIMENSIONS: Final = 256
_ROW_BYTES: Final = DIMENSIONS // 2
_ZERO: Final = 8
"""What stands for 0 in four bits."""
# Sums are made in lanes of a large integer: sixteen numbers of four bits fit into one of eight.
_AT_ONCE: Final = 16
_LOW_NIBBLES: Final = int.from_bytes(b"\x0f" * _ROW_BYTES, "little")
_LOW_BYTES: Final = int.from_bytes(b"\xff\x00" * (_ROW_BYTES // 2), "little")
_MOST_WORDS: Final = 1024
_LONGEST_WORD: Final = 40
# A vector has this length, so that numbers of one byte hold it and the product of two equal ones stays below
# 2 ** 17. Then the cosines from about .26 to 1 are floats whose highest byte is 71, ordered by the next one.
_LENGTH: Final = 2**8.5 * 0.98
_SAME: Final = _LENGTH**2
_GREATEST: Final = 127
_CLOSE_BYTE: Final = 71
_LEVELS: Final = bytes(range(256))
_IS_CLOSE: Final = bytes(255 if byte == _CLOSE_BYTE else 0 for byte in range(256))

# Its types are those of numpy, which is not there.
_simsimd: Final = cast("Any", simsimd)
Vector: TypeAlias = "array[int]"
"""256 numbers of one byte, of a fixed length; or none for a text without a known word."""
_NOTHING: Final[Vector] = array("b")
_EMPTY: Final = memoryview(b"")


class WordVectors:
    """The table: a vector for each word, and for pieces of words that have none."""

    def __init__(self, data: bytes) -> None:
        (length,) = unpack_from("<I", data)
        words = data[4 : 4 + length].decode().split("\n")
        self._places = dict(zip(words, range(4 + length, len(data), _ROW_BYTES), strict=True))
        self._data = data

    def __contains__(self, word: str) -> bool:
        return word in self._places

    def vector(self, words: Iterable[str]) -> Vector:
        """Return the vector of a text from its words."""
        places = [place for word in words for place in self._pieces(word)]
        return _unit(self._sum(places[:_MOST_WORDS]))

    def _pieces(self, word: str) -> list[int]:
        """Return where the row of a word is, or the rows of its pieces, the longest first."""
        whole = self._places.get(word)
        if whole is not None:
            return [whole]
        if not word.isalpha() or len(word) > _LONGEST_WORD:
            return []  # the pieces of a number or of an id mean nothing
        found: list[int] = []
        start, mark = 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                place = self._places.get(mark + word[start:end])
                if place is not None:
                    found.append(place)
                    start, mark = end, "##"
                    break
            else:
                break
        return found

    def _sum(self, places: list[int]) -> list[int]:
        """Return the sum of rows, as integers around 0."""
        data = self._data
        lanes = [0, 0, 0, 0]
        rest = iter(places)
        while some := list(islice(rest, _AT_ONCE)):
            even = odd = 0
            for place in some:
                row = int.from_bytes(data[place : place + _ROW_BYTES], "little")
                even += row & _LOW_NIBBLES
                odd += row >> 4 & _LOW_NIBBLES
            lanes[0] += even & _LOW_BYTES
            lanes[1] += odd & _LOW_BYTES
            lanes[2] += even >> 8 & _LOW_BYTES
            lanes[3] += odd >> 8 & _LOW_BYTES
        sums = [0] * DIMENSIONS
        for at, lane in enumerate(lanes):
            sums[at::4] = array("H", lane.to_bytes(_ROW_BYTES, "little"))
        zero = _ZERO * len(places)
        return [value - zero for value in sums]


def _unit(numbers: Iterable[float]) -> Vector:
    numbers = list(numbers)
    length = sqrt(sum(map(mul, numbers, numbers)))
    if not length:
        return _NOTHING
    scale = _LENGTH / length
    whole = [round(number * scale) for number in numbers]
    if max(whole) > _GREATEST or min(whole) < -_GREATEST:
        whole = [max(-_GREATEST, min(_GREATEST, number)) for number in whole]
    return array("b", whole)


def blended(first: Vector, second: Vector, share: float) -> Vector:
    """Return the vector between two, the second with ``share`` of the weight of the first."""
    if not first or not second:
        return first or second
    return _unit([one + share * other for one, other in zip(first, second, strict=True)])


class DocumentVectors:
    """The vectors of documents by their numbers, as rows of one buffer."""

    def __init__(self, numbers: memoryview = _EMPTY, rows: memoryview = _EMPTY) -> None:
        self._numbers = list(numbers.cast("Q"))
        self._rows = bytearray(rows)
        if len(self._rows) != len(self._numbers) * DIMENSIONS:
            raise ValueError("a vector is missing, or one too many")
        self._places = {number: place for place, number in enumerate(self._numbers)}

    def blocks(self) -> tuple[bytes, bytes]:
        """Return the numbers of the documents and their vectors as plain bytes, for the constructor."""
        return array("Q", self._numbers).tobytes(), bytes(self._rows)

    def put(self, number: int, vector: Vector) -> None:
        """Keep the vector of a document that has none here."""
        if vector:
            self._places[number] = len(self._numbers)
            self._numbers.append(number)
            self._rows += vector.tobytes()

    def drop(self, number: int) -> None:
        """Forget the vector of a document; the last row takes its place."""
        place = self._places.pop(number, None)
        if place is None:
            return
        last = self._numbers.pop()
        if last != number:
            self._numbers[place] = last
            self._places[last] = place
            self._rows[place * DIMENSIONS : (place + 1) * DIMENSIONS] = self._rows[-DIMENSIONS:]
        del self._rows[-DIMENSIONS:]

    def closeness(self, vector: Vector) -> Closeness:
        """Return how close every document is to a vector."""
        products = array("f")
        if vector and self._numbers:
            asked = memoryview(vector).cast("B").cast("b", (1, DIMENSIONS))
            rows = memoryview(self._rows).cast("b", (len(self._numbers), DIMENSIONS))
            products.frombytes(memoryview(_simsimd.cdist(asked, rows, "dot", out_dtype="float32")).tobytes())
        return Closeness(products, self._numbers, self._places)


class Closeness:
    """How close documents are to one vector: cosines, from -1 to 1."""

    def __init__(self, products: array[float], numbers: list[int], places: dict[int, int]) -> None:
        self._products = products
        self._numbers = numbers
        self._places = places

    def __getitem__(self, number: int) -> float:
        place = self._places.get(number)
        return 0.0 if place is None or not self._products else self._products[place] / _SAME

    def closest(self, most: int, among: frozenset[int] | None = None) -> list[int]:
        """Return the numbers of the closest documents whose cosine is above about a quarter, best first.

        A loop over 100,000 floats takes too long. So the cosines are compared by one byte each, with
        operations on bytes: the second byte of a float where the first says that it is above a quarter.
        """
        raw = self._products.tobytes()
        close = int.from_bytes(raw[3::4].translate(_IS_CLOSE), "little")
        levels = (close & int.from_bytes(raw[2::4], "little")).to_bytes(len(self._products), "little")
        level = 1
        if among is None:
            # The highest level that enough documents reach: half of the levels are ruled out in each step.
            for step in (128, 64, 32, 16, 8, 4, 2, 1):
                higher = level + step
                if higher < len(_LEVELS) and len(levels.translate(None, _LEVELS[:higher])) >= most:
                    level = higher
        places = (match.start() for match in re.finditer(b"[%b-\xff]" % re.escape(bytes((level,))), levels))
        numbers = [(-self._products[place], self._numbers[place]) for place in places]
        ranked = sorted(one for one in numbers if among is None or one[1] in among)
        return [number for _, number in ranked[:most]]


@cache
def word_vectors() -> WordVectors:
    """Read the package's table; it is read once, when first asked for."""
    return WordVectors(files(__package__ or "").joinpath("word_vectors.bin").read_bytes())
