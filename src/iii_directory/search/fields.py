"""What a document says, field by field, and how strongly it says each word. Pure.

How strongly depends on the document alone: a field is measured against the ordinary length of such a field
and not against the average of all documents, so that no document changes when another one does.

A word said twice in a description counts once: whoever repeats it a thousand times gains nothing. In a body
it counts up to five times, and a body gives no more than its strongest words.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from heapq import nsmallest
from itertools import pairwise
from sys import intern
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from iii_directory.limits import MAX_INDEXED_BODY_CHARS
from iii_directory.search.meaning import blended, word_vectors
from iii_directory.search.words import STOP_WORDS, content, form_key, plain_words, units, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.documents.provenance import Provenance
    from iii_directory.search.meaning import Vector
    from iii_directory.search.thesaurus import Thesaurus


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
    """The length of such a field, in distinct words, that counts for nothing and against nothing."""


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
"""What a caller is told where a word stands: as much as they can see."""
_SHOWN_AT: Final[Mapping[str, int]] = {
    name: SHOWN.index({"namespace": "name", "details": "description", "heading": "body"}.get(name, name))
    for name in FIELDS
}
SATURATION: Final = 1.2
"""BM25's k1: how soon more of the same adds little."""
BODY_WORDS: Final = 128
"""The strongest words of a body: as many found as much as all of them did."""
_BODY_SHARE: Final = 0.5
"""What the vector of a body counts beside that of the id, title and description."""
COUNTED_REPEATS: Final = 5
STRONGEST: Final = 0xFFFF
"""How strongly a word is said, as 16 bits: 0 not at all, this one as strongly as can be."""
# What calls itself internal is hardly what somebody looks for.
_INTERNAL: Final = re.compile(r"\W*internal\b", re.IGNORECASE)
_INTERNAL_SHARE: Final = 0.5

_SENTENCE: Final = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n\n")
_HEADING: Final = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)
_OTHERS: Final = re.compile(r"[\w-]+(?:::[\w-]+)+|[a-z]+://\S+")
_FENCE: Final = re.compile(r"^(?:```|~~~)", re.MULTILINE)


class Weighed(NamedTuple):
    """A document as an index takes it: its words, how strongly each is said, and who stands beside whom."""

    words: tuple[str, ...]
    """In order."""
    strengths: array[int]
    loudest: bytes
    """For each word the field that says it loudest, by its place in :data:`SHOWN`."""
    pairs: array[int]
    """Hashes of neighbouring words of its id, title and description, in order."""


def weigh(document: Document, body: str, thesaurus: Thesaurus) -> tuple[Weighed, Vector]:
    """Return how strongly a document says each of its words, and its vector."""
    said: dict[str, float] = {}
    loudest: dict[str, int] = {}
    for name, found in _loudest_first(short_fields(document)):
        distinct = dict.fromkeys(found, 1.0)
        _say(said, FIELDS[name], distinct, len(distinct))
        shown = _SHOWN_AT[name]
        for word in distinct:
            loudest.setdefault(word, shown)
    table = word_vectors()
    # A word counts once in each of these, so that nothing is gained by saying it again.
    shown = (document.id, document.title, own_words(document.description))
    vector = table.vector(word for text in shown for word in dict.fromkeys(_parts(text)))
    if body:
        strongest = _say_body(said, body[:MAX_INDEXED_BODY_CHARS], thesaurus)
        vector = blended(vector, table.vector(strongest), _BODY_SHARE)
    share = _INTERNAL_SHARE if _INTERNAL.match(document.description) else 1.0
    terms = sorted(said)
    strengths = array("H", (strength_of(said[term], share) for term in terms))
    fields = bytes(loudest.get(term, _SHOWN_AT["body"]) for term in terms)
    return Weighed(tuple(map(intern, terms)), strengths, fields, _pairs(document)), vector


def _parts(text: str) -> list[str]:
    return [part for unit in units(text) for part in unit]


def _loudest_first(fields: Mapping[str, list[str]]) -> list[tuple[str, list[str]]]:
    return sorted(fields.items(), key=lambda field: -FIELDS[field[0]].weight)


def strength_of(frequency: float, share: float = 1.0) -> int:
    return max(1, round(STRONGEST * share * frequency / (SATURATION + frequency)))


def short_fields(document: Document) -> dict[str, list[str]]:
    """The words of everything but the body, by field. An id keeps its words of grammar.

    What the first sentence said is not said again by the others, nor what the title said by a keyword.
    """
    namespace, name = split_id(document.id)
    lead, details = _lead(own_words(document.description))
    title, description = words(document.title), content(words(lead))
    return {
        "namespace": words(namespace),
        "name": words(name),
        "title": title,
        "keyword": _other(title, words(" ".join(document.keywords))),
        "description": description,
        "details": _other(description, content(words(details))),
        "argument": [word for argument in document.arguments for word in content(words(argument))],
    }


def own_words(description: str) -> str:
    """A description without ids of functions and addresses: they say what something else is called."""
    return _OTHERS.sub(" ", description) if ":" in description else description


def split_id(identifier: str) -> tuple[str, str]:
    """The namespace of an id and the rest; an id of one part is all name."""
    for mark in ("::", "/"):
        namespace, found, name = identifier.partition(mark)
        if found:
            return namespace, name
    return "", identifier


def pair_hash(left: str, right: str) -> int:
    """The same for every form of both words, in every process."""
    return crc32(f"{form_key(left)} {form_key(right)}".encode("utf-8", "surrogatepass"))


def pairs_of(text: str) -> set[int]:
    """The hashes of the words of a text that stand beside one another, words of grammar left out."""
    sequence = content(_parts(text))
    return {pair_hash(left, right) for left, right in pairwise(sequence)}


def body_words(body: str, thesaurus: Thesaurus) -> tuple[dict[str, float], int]:
    """The strongest words of a body with how often it says them, and of how many distinct words they are."""
    counted = Counter(plain_words(body))
    for word in [word for word in counted if word in STOP_WORDS or not _tells(word)]:
        del counted[word]
    shares = thesaurus.shares
    strength = {word: min(count, COUNTED_REPEATS) * shares.get(word, 1.0) for word, count in counted.items()}
    strongest = nsmallest(BODY_WORDS, counted, key=lambda word: (-strength[word], word))
    return {word: float(min(counted[word], COUNTED_REPEATS)) for word in strongest}, len(counted)


def headings(body: str) -> list[str]:
    """The words of a body's headings; what stands in fenced code is none."""
    outside = " \n".join(_FENCE.split(body)[::2])
    return [word for line in _HEADING.findall(outside) for word in content(words(line))]


def _other(said: Iterable[str], more: Iterable[str]) -> list[str]:
    known = set(said)
    return [word for word in more if word not in known]


def _say(said: dict[str, float], field: Field, counted: Mapping[str, float], length: int) -> None:
    diluted = field.weight / (1 - field.dilution + field.dilution * length / field.ordinary)
    for word, count in counted.items():
        said[word] = said.get(word, 0.0) + diluted * count


def _say_body(said: dict[str, float], body: str, thesaurus: Thesaurus) -> dict[str, float]:
    """Add the words of a body, and return the strongest of them with how often it says each."""
    found = headings(body)
    _say(said, FIELDS["heading"], dict.fromkeys(found, 1.0), len(set(found)))
    strongest, distinct = body_words(body, thesaurus)
    _say(said, FIELDS["body"], strongest, distinct)
    return strongest


def _lead(description: str) -> tuple[str, str]:
    """The first sentence of a description, and the rest."""
    lead, *rest = _SENTENCE.split(description, maxsplit=1)
    return lead, rest[0] if rest else ""


def _pairs(document: Document) -> array[int]:
    found: set[int] = set()
    for text in (document.id, document.title, own_words(document.description), *document.keywords):
        found |= pairs_of(text)
    return array("I", sorted(found))


def _tells(word: str) -> bool:
    return (1 if not word.isascii() else 2) <= len(word) <= _LONGEST_WORD and not word.isdigit()


_LONGEST_WORD: Final = 40
