"""What is known of words beforehand: which stand for one another, and how ordinary they are.

Both come from data files of this package, written by hand. They are read once, when first asked for.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from iii_directory.search.words import form_key

if TYPE_CHECKING:
    from collections.abc import Iterable


class Thesaurus(NamedTuple):
    """Words by the key of their forms, see :func:`~iii_directory.search.words.form_key`."""

    synonyms: dict[str, tuple[str, ...]]
    """Other words for a word, in the order of the file."""
    short: dict[str, tuple[str, ...]]
    """What a word is cut short to, or is short for."""
    shares: dict[str, float]
    """How much an ordinary word of English counts, by the word as well; one that is not here counts fully."""

    def synonyms_of(self, word: str) -> tuple[str, ...]:
        return self.synonyms.get(form_key(word), ())

    def short_of(self, word: str) -> tuple[str, ...]:
        return self.short.get(form_key(word), ())

    def knows(self, word: str) -> bool:
        """Whether this is a word of English, as far as these files go."""
        key = form_key(word)
        return key in self.shares or key in self.synonyms or key in self.short

    def share_of(self, word: str) -> float:
        return self.shares.get(word) or self.shares.get(form_key(word), 1.0)


def parse_groups(lines: Iterable[Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Groups of words: each leads to the others of every group it stands in."""
    found: dict[str, dict[str, None]] = {}
    for group in map(tuple, lines):
        for word in group:
            others = found.setdefault(form_key(word), {})
            others.update(dict.fromkeys(other for other in group if form_key(other) != form_key(word)))
    return {key: tuple(others) for key, others in found.items()}


def parse_shares(lines: list[str]) -> dict[str, float]:
    """Lines of words, each below the number that holds for them."""
    shares: dict[str, float] = {}
    share = 1.0
    for line in lines:
        if line.startswith("."):
            share = float(line)
        else:
            for word in line.split():
                shares[word] = share
                shares.setdefault(form_key(word), share)
    return shares


@cache
def thesaurus() -> Thesaurus:
    """The package's own."""
    lines = _lines("synonyms.txt")
    return Thesaurus(
        synonyms=parse_groups(line.split() for line in lines if "=" not in line),
        short=parse_groups(line.replace("=", " ").split() for line in lines if "=" in line),
        shares=parse_shares(_lines("common.txt")),
    )


def _lines(name: str) -> list[str]:
    text = files(__package__ or "").joinpath(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
