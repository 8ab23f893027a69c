"""What may stand for a word of a question: the word, its other forms, a longer word, a slip, a synonym. Pure.

Softer alternatives weigh less. For each document the best alternative of a word counts, never their sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.limits import (
    MAX_ALTERNATIVES,
    MAX_CONTINUATIONS,
    MAX_REMEMBERED_WORDS,
    MAX_SPELLING_CANDIDATES,
)
from iii_directory.search.words import form_key

if TYPE_CHECKING:
    from iii_directory.search.index import Index

FORM: Final = 0.7
LONGER: Final = 0.6
ONE_SLIP: Final = 0.8
TWO_SLIPS: Final = 0.64
SLIPS: Final = (ONE_SLIP, TWO_SLIPS)
SYNONYM: Final = 0.4

# A word may go on in as many words of the index; those that most documents say come first.
_CONTINUATIONS: Final = 4
_SYNONYMS: Final = 6
_SPELLINGS: Final = 3
# Shorter beginnings go on in too many words. An unknown word may be what somebody has typed so far.
_SHORTEST_KNOWN_START: Final = 5
_SHORTEST_START: Final = 3
_LONGEST_ENDING: Final = 3
_SHORTEST_MISSPELT: Final = 4
_SHORTEST_TWICE_MISSPELT: Final = 8
_LONGEST_MISSPELT: Final = 40


class Alternative(NamedTuple):
    word: str
    weight: float


def alternatives(index: Index, word: str, *, maybe_misspelt: bool) -> list[Alternative]:
    """The words of the index that may stand for ``word``, itself first if it is there, at most so many."""
    asked = (word, maybe_misspelt)
    if asked not in index.remembered:
        if len(index.remembered) >= MAX_REMEMBERED_WORDS:
            index.remembered.clear()
        index.remembered[asked] = _alternatives(index, word, maybe_misspelt=maybe_misspelt)
    return index.remembered[asked]


def _alternatives(index: Index, word: str, *, maybe_misspelt: bool) -> list[Alternative]:
    found: dict[str, float] = {word: 1.0} if word in index else {}
    for form in (word, *index.thesaurus.short_of(word)):
        for other in index.forms_of(form_key(form)):
            found.setdefault(other, FORM)
    spelt = {} if found or not maybe_misspelt else spellings(index, word)
    for other in continuations(index, word):
        found.setdefault(other, LONGER)
    found.update({other: weight for other, weight in spelt.items() if weight > found.get(other, 0.0)})
    for other in synonyms(index, word):
        found.setdefault(other, SYNONYM)
    return [Alternative(other, weight) for other, weight in found.items()][:MAX_ALTERNATIVES]


def continuations(index: Index, word: str) -> list[str]:
    """Longer words that start so; of a word without any, those that only end otherwise, in any language."""
    if word in index:
        return _starting(index, word) if len(word) >= _SHORTEST_KNOWN_START or not word.isascii() else []
    if len(word) < _SHORTEST_START and word.isascii():
        return []
    for ending in range(_LONGEST_ENDING + 1):
        start = word[: len(word) - ending]
        if ending and len(start) < _SHORTEST_KNOWN_START:
            break
        if found := _starting(index, start):
            return found
    return []


def _starting(index: Index, start: str) -> list[str]:
    longer = [
        (-index.count(word), word) for word in index.words_from(start, MAX_CONTINUATIONS) if word != start
    ]
    return [word for _, word in sorted(longer)[:_CONTINUATIONS]]


def spellings(index: Index, word: str) -> dict[str, float]:
    """Words that differ by a slip, or of a long word by two; of the nearest those most documents say.

    Only words that start with its first letter, or its second where the first one was too much or swapped.
    """
    if len(word) < _SHORTEST_MISSPELT or len(word) > _LONGEST_MISSPELT or word.isdigit():
        return {}
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    alike = [w for start in {word[0], word[1]} for w in index.words_from(start, MAX_SPELLING_CANDIDATES)]
    allowed = 2 if len(word) >= _SHORTEST_TWICE_MISSPELT else 1
    found = process.extract(word, alike, scorer=OSA.distance, score_cutoff=allowed, limit=None)
    near = {other: slips for other, slips, _ in found if slips == found[0][1]}
    ranked = sorted(near, key=lambda other: (-index.count(other), other))
    return {other: ONE_SLIP if near[other] == 1 else TWO_SLIPS for other in ranked[:_SPELLINGS]}


def synonyms(index: Index, word: str) -> list[str]:
    """Words of the index that mean about the same."""
    found: dict[str, None] = {}
    for synonym in index.thesaurus.synonyms_of(word):
        known = (synonym,) if synonym in index else index.forms_of(form_key(synonym))
        found.update(dict.fromkeys(known))
    return list(found)[:_SYNONYMS]
