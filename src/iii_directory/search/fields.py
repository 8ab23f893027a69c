"""Weigh the words of a document, field by field, and make its vector. Pure.

The weights depend on the document alone: a field is measured against the ordinary length of such a field and
not against the average of all documents, so that no document changes when another one does.

A word that stands twice in a description counts once, so repeating it gains nothing. In a body it counts up
to five times, and only the strongest words of a body count.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from heapq import nsmallest
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from iii_directory.limits import MAX_INDEXED_BODY_CHARS
from iii_directory.search.meaning import blended, word_vectors
from iii_directory.search.words import STOP_WORDS, content, form_key, plain_words, units, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.documents.model import Provenance
    from iii_directory.search.meaning import Vector
    from iii_directory.search.words import Thesaurus


class Document(NamedTuple):
    """What search knows of one thing that can be found, besides the words of its body."""

    id: str
    title: str = ""
    description: str = ""
    worker: str = ""
    keywords: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    provenance: Provenance | None = None
    """The source of a skill or a prompt."""
    switched_off: bool = False
    """Whether the operator keeps callers from a function."""


class Field(NamedTuple):
    weight: float
    dilution: float
    """How much of the length of a field counts against its words (BM25's b)."""
    ordinary: float
    """The length of such a field, in distinct words, that leaves the weight of its words as it is."""


# Weights and dilutions are those that measured best untuned on 375 questions over public collections; the
# lengths are what fields of public collections come to. docs/guide/finding.md has the whole table.
FIELDS: Final[Mapping[str, Field]] = {
    "namespace": Field(1.5, 0.0, 1),
    "name": Field(3.0, 0.2, 2),
    "title": Field(2.0, 0.3, 4),
    "keyword": Field(2.0, 0.3, 6),
    "description": Field(1.0, 0.4, 10),
    "details": Field(1.0, 0.5, 16),
    "heading": Field(0.5, 0.6, 20),
    "argument": Field(0.5, 0.5, 5),
    "body": Field(0.3, 0.75, 250),
}
SHOWN: Final = ("name", "title", "keyword", "description", "argument", "body")
"""The fields by their names in answers, which are those of what callers are shown."""
_SHOWN_AT: Final[Mapping[str, int]] = {
    name: SHOWN.index({"namespace": "name", "details": "description", "heading": "body"}.get(name, name))
    for name in FIELDS
}
BODY_WORD: Final = 8
"""Marks one of the strongest words of the body, beside the number of the strongest field."""
SATURATION: Final = 1.2
"""BM25's k1: how soon more of the same adds little."""
BODY_WORDS: Final = 128
"""The strongest words of a body that count; in measurements all of them found no more."""
_BODY_SHARE: Final = 0.5
"""What the vector of a body counts beside that of the id, title and description."""
COUNTED_REPEATS: Final = 5
STRONGEST: Final = 0xFFFF
"""The greatest weight of a word, as 16 bits."""
_LONGEST_WORD: Final = 40
# A function that calls itself internal is hardly ever what a caller looks for.
_INTERNAL: Final = re.compile(r"\W*internal\b", re.IGNORECASE)
_INTERNAL_SHARE: Final = 0.5

_SENTENCE: Final = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n\n")
_HEADING: Final = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)
# Ids of functions and addresses in a description are names of something else.
_OTHERS: Final = re.compile(r"[\w-]+(?:::[\w-]+)+|[a-z]+://\S+")
_FENCE: Final = re.compile(r"^(?:```|~~~)", re.MULTILINE)


class WeightedWords(NamedTuple):
    """The words of a document in order, with the weight of each, and which words are neighbours."""

    words: list[str]
    strengths: array[int]
    fields: bytes
    """For each word the place in `SHOWN` of its strongest field, with `BODY_WORD` added if it is one of the
    strongest of the body."""
    pairs: array[int]
    """Hashes of neighbouring words of its id, title, description and keywords, in order."""


def weigh(document: Document, body: str, thesaurus: Thesaurus) -> WeightedWords:
    """Weigh each word of a document."""
    weights: dict[str, float] = {}
    strongest_field: dict[str, int] = {}
    description = _without_names(document.description)
    for name, found in _short_fields(document, description).items():
        distinct = dict.fromkeys(found, 1.0)
        _add_field(weights, name, distinct, len(distinct))
        for word in distinct:
            strongest_field.setdefault(word, _SHOWN_AT[name])
    strongest: Mapping[str, float] = {}
    if body:
        body = body[:MAX_INDEXED_BODY_CHARS]
        # Every other piece between two fences is code, where "#" begins a comment.
        outside = " \n".join(_FENCE.split(body)[::2])
        headings = {word: 1.0 for line in _HEADING.findall(outside) for word in content(words(line))}
        _add_field(weights, "heading", headings, len(headings))
        strongest, distinct_words = _strongest(body, thesaurus)
        _add_field(weights, "body", strongest, distinct_words)
    share = _INTERNAL_SHARE if _INTERNAL.match(document.description) else 1.0
    terms = sorted(weights)
    scale = STRONGEST * share
    strengths = [max(1, round(scale * tf / (SATURATION + tf))) for tf in map(weights.__getitem__, terms)]
    in_body = _SHOWN_AT["body"]
    marks = (BODY_WORD if term in strongest else 0 for term in terms)
    fields = bytes(strongest_field.get(term, in_body) | mark for term, mark in zip(terms, marks, strict=True))
    pairs: set[int] = set()
    for text in (document.id, document.title, description, *document.keywords):
        sequence = content(part for unit in units(text) for part in unit)
        pairs.update(pair_hash(left, right) for left, right in pairwise(sequence))
    return WeightedWords(terms, array("H", strengths), fields, array("I", sorted(pairs)))


def vector_of(document: Document, words_of_it: Iterable[str], fields: Iterable[int]) -> Vector:
    """Make the vector of a document from what it shows and the strongest words of its body."""
    table = word_vectors()
    # A word counts once in each of these, so that nothing is gained by saying it again.
    shown = (document.id, document.title, _without_names(document.description))
    parts = (dict.fromkeys(part for unit in units(text) for part in unit) for text in shown)
    of_body = (word for word, field in zip(words_of_it, fields, strict=True) if field & BODY_WORD)
    return blended(table.vector(word for some in parts for word in some), table.vector(of_body), _BODY_SHARE)


def pair_hash(left: str, right: str) -> int:
    """Hash two neighbouring words; every form of either word gives the same number in every process."""
    return crc32(f"{form_key(left)} {form_key(right)}".encode("utf-8", "surrogatepass"))


def _short_fields(document: Document, description: str) -> dict[str, list[str]]:
    """Return the words of everything but the body by field, the strongest field first.

    An id keeps its words of grammar. A word of the first sentence does not count again in the others, nor one
    of the title in a keyword.
    """
    mark = "::" if "::" in document.id else "/"
    namespace, found, name = document.id.partition(mark)
    lead, *rest = _SENTENCE.split(description, maxsplit=1)
    title, first = words(document.title), content(words(lead))
    in_title, in_first = set(title), set(first)
    return {
        "name": words(name if found else namespace),
        "title": title,
        "keyword": [word for word in words(" ".join(document.keywords)) if word not in in_title],
        "namespace": words(namespace) if found else [],
        "description": first,
        "details": [word for word in content(words(" ".join(rest))) if word not in in_first],
        "argument": [word for argument in document.arguments for word in content(words(argument))],
    }


def _without_names(description: str) -> str:
    return _OTHERS.sub(" ", description) if ":" in description else description


def _strongest(body: str, thesaurus: Thesaurus) -> tuple[dict[str, float], int]:
    """Return the strongest words of a body with their counts, and how many distinct words it has."""
    counted = Counter(plain_words(body))
    for word in list(counted):
        too_short = len(word) < 2 and word.isascii()
        if word in STOP_WORDS or too_short or len(word) > _LONGEST_WORD or word.isdigit():
            del counted[word]
    shares = thesaurus.shares
    strength = {word: min(count, COUNTED_REPEATS) * shares.get(word, 1.0) for word, count in counted.items()}
    strongest = nsmallest(BODY_WORDS, counted, key=lambda word: (-strength[word], word))
    return {word: float(min(counted[word], COUNTED_REPEATS)) for word in strongest}, len(counted)


def _add_field(weights: dict[str, float], name: str, counted: Mapping[str, float], length: int) -> None:
    field = FIELDS[name]
    diluted = field.weight / (1 - field.dilution + field.dilution * length / field.ordinary)
    for word, count in counted.items():
        weights[word] = weights.get(word, 0.0) + diluted * count
