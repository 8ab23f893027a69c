"""Index one kind of document: which documents have a word, and how strongly. Pure.

The postings of a word are kept strongest first, so that a question reads only some of them. A posting is one
number: the strength (subtracted from the greatest, so that stronger comes first) and, in the lower bits, the
document's own number, which is a hash of its id. An index depends on its documents alone and not on the order
in which they came: after any changes it answers as one made afresh. A changed document costs its own words.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from itertools import accumulate, islice, pairwise
from math import log
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from zlib import adler32, crc32

from iii_directory.search.fields import BODY_WORD, SHOWN, STRONGEST, Document, vector_of, weigh
from iii_directory.search.meaning import Closeness, DocumentVectors
from iii_directory.search.words import form_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from iii_directory.search.meaning import Vector
    from iii_directory.search.words import Thesaurus

_NUMBER_BITS: Final = 48
_NUMBER: Final = (1 << _NUMBER_BITS) - 1
_FIELD_BITS: Final = 4
_FIELD: Final = (1 << _FIELD_BITS) - 1
# More new words than this are cheaper sorted together than inserted one by one.
_MANY_WORDS: Final = 64
_ENOUGH: Final = 100
_LAST_CHARACTER: Final = "\U0010ffff"

# What was read from a file stays where it was read to, until it changes.
Numbers: TypeAlias = "array[int] | memoryview[int]"


class _Entry(NamedTuple):
    """A document and its words, which are numbers here: half the size of references to strings."""

    document: Document
    words: Numbers
    """The place of each word, and in the lower bits its strongest field, see `fields.WeightedWords`."""
    strengths: Numbers
    pairs: Numbers


class Index:
    """Answers which documents have a word, and which mean about the same as a question."""

    def __init__(self, thesaurus: Thesaurus) -> None:
        self.thesaurus = thesaurus
        self.remembered: dict[tuple[str, bool], dict[str, float]] = {}
        """What may stand for the words that were asked for since the last change."""
        self.by_meaning = True
        """False while the vectors of many documents are still being made: then only words count."""
        self._entries: dict[int, _Entry] = {}
        self.numbers: dict[str, int] = {}
        """The documents' own numbers by their ids. Never change it."""
        self._words: dict[str, int] = {}
        """The place of each word in the next two lists; places of words that are gone are used again."""
        self._spelt: list[str] = []
        self._postings: list[Numbers] = []
        self._unused: list[int] = []
        self._sorted: list[str] = []
        self._unsorted: set[str] = set()
        self._forms: dict[str, list[str]] = {}
        self._named: dict[str, tuple[str, ...]] = {}
        """The ids by their last parts, in lower case."""
        self._vectors = DocumentVectors()
        self._without_vector: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, word: str) -> bool:
        """Return whether any document has exactly this word."""
        return word in self._words

    def put(self, document: Document, body: str = "") -> None:
        """Add a document, or replace the one with its id."""
        self.drop(document.id)
        self.remembered.clear()
        encoded = document.id.encode("utf-8", "surrogatepass")
        number = (crc32(encoded) << 16 | adler32(encoded) & 0xFFFF) & _NUMBER
        while number in self._entries:
            number = (number + 1) & _NUMBER
        weighed = weigh(document, body, self.thesaurus)
        words: list[int] = []
        for word, strength, field in zip(weighed.words, weighed.strengths, weighed.fields, strict=True):
            place = self._place_of(word)
            words.append(place << _FIELD_BITS | field)
            insort(self._changeable(place), (STRONGEST - strength) << _NUMBER_BITS | number)
        self._entries[number] = _Entry(document, array("I", words), weighed.strengths, weighed.pairs)
        self.numbers[document.id] = number
        self._without_vector[number] = None
        name = _last_part(document.id)
        self._named[name] = (*self._named.get(name, ()), document.id)

    def relabel(self, document: Document) -> None:
        """Replace what is known of a document whose words are the same, such as its source."""
        number = self.numbers[document.id]
        self._entries[number] = self._entries[number]._replace(document=document)

    def drop(self, document_id: str) -> None:
        """Remove a document, if it is here."""
        number = self.numbers.pop(document_id, None)
        if number is None:
            return
        self.remembered.clear()
        entry = self._entries.pop(number)
        if number in self._without_vector:
            del self._without_vector[number]
        else:
            self._vectors.drop(number)
        name = _last_part(document_id)
        others = tuple(one for one in self._named.pop(name) if one != document_id)
        if others:
            self._named[name] = others
        for packed, strength in zip(entry.words, entry.strengths, strict=True):
            place = packed >> _FIELD_BITS
            postings = self._changeable(place)
            del postings[bisect_left(postings, (STRONGEST - strength) << _NUMBER_BITS | number)]
            if not postings:
                self._forget(place)

    # Documents

    def document(self, number: int) -> Document:
        return self._entries[number].document

    def find(self, document_id: str) -> Document | None:
        number = self.numbers.get(document_id)
        return None if number is None else self._entries[number].document

    def called(self, name: str) -> str | None:
        """Return the id that is typed so, in any case, or the only one whose last part is."""
        if name in self.numbers:
            return name
        folded, last = name.casefold(), _last_part(name)
        named = self._named.get(last, ())
        found = [one for one in named if one.casefold() == folded] or (named if last == folded else ())
        return found[0] if len(found) == 1 else None

    # Scores

    def idf(self, word: str) -> float:
        """Return how much a word tells documents apart, in nats: BM25's inverse document frequency.

        Among three documents every word is in a third of them: a few count as if they were among a hundred.
        """
        count = self.count(word)
        return log(1 + (max(len(self._entries), _ENOUGH) - count + 0.5) / (count + 0.5))

    def scores(
        self, word: str, worth: float, limit: int, among: frozenset[int] | None = None
    ) -> dict[int, float]:
        """Return the documents that have a word most strongly, each with its part of ``worth``."""
        place = self._words.get(word)
        if place is None:
            return {}
        postings: Iterable[int] = self._postings[place]
        if among is None:
            postings = self._postings[place][:limit]
        else:
            postings = islice((one for one in postings if one & _NUMBER in among), limit)
        unit = worth / STRONGEST
        # One comprehension over whole numbers: most of the time that a question takes is spent here.
        return {p & _NUMBER: unit * (STRONGEST - (p >> _NUMBER_BITS)) for p in postings}

    def neighbour_score(self, number: int, pairs: Mapping[int, float]) -> float:
        """Return what a document gains by words that are neighbours in it, see `pair_hash`."""
        return sum(map(pairs.__getitem__, pairs.keys() & self._entries[number].pairs))

    def matching_words(self, number: int, words: Iterable[str]) -> dict[str, tuple[float, str]]:
        """Return which of some words a document has: how strongly, and its strongest field."""
        entry = self._entries[number]
        wanted = {self._words[word] for word in words if word in self._words}
        return {
            self._spelt[place]: (entry.strengths[at] / STRONGEST, SHOWN[packed & _FIELD & ~BODY_WORD])
            for at, packed in enumerate(entry.words)
            if (place := packed >> _FIELD_BITS) in wanted
        }

    # Meaning

    @property
    def unmade_vectors(self) -> int:
        """Return the number of documents whose vectors are not made yet."""
        return len(self._without_vector)

    def make_vectors(self, most: int | None = None) -> None:
        """Make vectors that are missing, of at most so many documents. The first call reads the table."""
        for number in list(islice(self._without_vector, most)):
            entry = self._entries[number]
            words = [self._spelt[packed >> _FIELD_BITS] for packed in entry.words]
            fields = [packed & _FIELD for packed in entry.words]
            self._vectors.put(number, vector_of(entry.document, words, fields))
            del self._without_vector[number]

    def closeness(self, vector: Vector) -> Closeness:
        """Return how close every document is in meaning to a vector."""
        if not self.by_meaning:
            return Closeness(array("f"), [], {})
        self.make_vectors()
        return self._vectors.closeness(vector)

    # Words

    def count(self, word: str) -> int:
        """Return how many documents have a word."""
        place = self._words.get(word)
        return 0 if place is None else len(self._postings[place])

    def forms_of(self, key: str) -> list[str]:
        """Return the words of this index with this key of their forms, in order."""
        found = self._forms.get(key, [])
        return sorted({*found, key} if key in self._words and form_key(key) == key else found)

    def words_from(self, start: str, limit: int) -> list[str]:
        """Return the first words of this index that start so, in order."""
        words = self.vocabulary()
        first = bisect_left(words, start)
        last = bisect_left(words, start + _LAST_CHARACTER, first, min(first + limit, len(words)))
        return words[first:last]

    def vocabulary(self) -> list[str]:
        """Return every word of this index, in order. Never change it."""
        if len(self._unsorted) > _MANY_WORDS:
            self._sorted = sorted(self._words)
        else:
            for word in self._unsorted:
                insort(self._sorted, word)
        self._unsorted.clear()
        return self._sorted

    def _place_of(self, word: str) -> int:
        """Return the place of a word, a new one if no document had it before."""
        place = self._words.get(word)
        if place is not None:
            return place
        if self._unused:
            place = self._unused.pop()
            self._spelt[place] = word
        else:
            place = len(self._spelt)
            self._spelt.append(word)
            self._postings.append(array("Q"))
        self._words[word] = place
        self._unsorted.add(word)
        if (key := form_key(word)) != word:
            self._forms.setdefault(key, []).append(word)
        return place

    def _changeable(self, place: int) -> array[int]:
        postings = self._postings[place]
        if not isinstance(postings, array):
            postings = self._postings[place] = array("Q", postings)
        return postings

    def _forget(self, place: int) -> None:
        word = self._spelt[place]
        del self._words[word]
        self._unused.append(place)
        if word in self._unsorted:
            self._unsorted.remove(word)
        else:
            del self._sorted[bisect_left(self._sorted, word)]
        if (key := form_key(word)) != word:
            self._forms[key].remove(word)
            if not self._forms[key]:
                del self._forms[key]

    # Keeping an index

    def blocks(self) -> list[bytes]:
        """Return all of the index but the documents as plain bytes, for `restored`."""
        self.make_vectors()
        words = self.vocabulary()
        places = {self._words[word]: at for at, word in enumerate(words)}
        entries = self._entries.values()
        keys = [key if (key := form_key(word)) != word else "" for word in words]
        postings = [self._postings[place] for place in places]
        renumbered = (
            places[packed >> _FIELD_BITS] << _FIELD_BITS | packed & _FIELD
            for entry in entries
            for packed in entry.words
        )
        return [
            "\n".join(words).encode("utf-8", "surrogatepass"),
            "\n".join(keys).encode("utf-8", "surrogatepass"),
            array("I", map(len, postings)).tobytes(),
            b"".join(postings),
            array("Q", self._entries).tobytes(),
            array("I", (len(entry.words) for entry in entries)).tobytes(),
            array("I", renumbered).tobytes(),
            b"".join(entry.strengths for entry in entries),
            array("I", (len(entry.pairs) for entry in entries)).tobytes(),
            b"".join(entry.pairs for entry in entries),
            *self._vectors.blocks(),
        ]

    @classmethod
    def restored(
        cls, thesaurus: Thesaurus, blocks: Sequence[memoryview], documents: Sequence[Document]
    ) -> Index:
        """Make an index of its blocks and its documents, which come in the order of the blocks.

        Raises:
            ValueError: the blocks do not belong together.
        """
        index = cls(thesaurus)
        words, keys = (str(block, "utf-8", "surrogatepass").split("\n") for block in blocks[:2])
        if blocks[0]:
            index._spelt, index._sorted = words, list(words)
            index._words = {word: place for place, word in enumerate(words)}
            for word, key in zip(words, keys, strict=True):
                if key:
                    index._forms.setdefault(key, []).append(word)
        index._postings = _cut(blocks[3].cast("Q"), blocks[2])
        rows = zip(
            documents,
            _cut(blocks[6].cast("I"), blocks[5]),
            _cut(blocks[7].cast("H"), blocks[5]),
            _cut(blocks[9].cast("I"), blocks[8]),
            strict=True,
        )
        index._entries = dict(zip(blocks[4].cast("Q"), map(_Entry._make, rows), strict=True))
        for number, entry in index._entries.items():
            document_id = entry.document.id
            index.numbers[document_id] = number
            name = _last_part(document_id)
            index._named[name] = (*index._named.get(name, ()), document_id)
        index._vectors = DocumentVectors(*blocks[10:])
        return index


def _cut(numbers: memoryview[int], lengths: memoryview) -> list[Numbers]:
    """Cut a block into pieces of so many numbers each, without copying it."""
    ends = [0, *accumulate(lengths.cast("I"))]
    if ends[-1] != len(numbers):
        raise ValueError("the lengths do not add up")
    return [numbers[start:end] for start, end in pairwise(ends)]


def _last_part(document_id: str) -> str:
    return document_id.replace("::", "/").rpartition("/")[2].casefold()
