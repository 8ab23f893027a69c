"""An index of one kind of document: which of them say a word, and how strongly. Pure.

Postings of a word are kept strongest first, so that a question reads only so far. A posting is one number:
how strongly (turned round, so that stronger comes first) and, below that, the document's own number, which is
a hash of its id. Everything in here follows from the documents alone, not from the order in which they came:
after any sequence of changes an index answers as one made afresh. One changed document costs its own words.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from itertools import islice
from math import log
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import adler32, crc32

from iii_directory.search.fields import SHOWN, STRONGEST, weigh
from iii_directory.search.meaning import DocumentVectors
from iii_directory.search.words import form_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from iii_directory.search.alternatives import Alternative
    from iii_directory.search.fields import Document, Weighed
    from iii_directory.search.thesaurus import Thesaurus

_NUMBER_BITS: Final = 48
_NUMBER: Final = (1 << _NUMBER_BITS) - 1
# More new words than this are cheaper sorted together than inserted one by one.
_MANY_WORDS: Final = 64


Posting = int
"""How strongly a document says a word, turned round, and below that which document it is."""

_ENOUGH: Final = 100
_LAST_CHARACTER: Final = "\U0010ffff"


class _Entry(NamedTuple):
    document: Document
    weighed: Weighed


class Index:
    """Documents by their ids, ready to be asked."""

    def __init__(self, thesaurus: Thesaurus) -> None:
        self.thesaurus = thesaurus
        self.changes = 0
        """How often it was changed: while this stays, so does every answer."""
        self.remembered: dict[tuple[str, bool], list[Alternative]] = {}
        """What may stand for the words that were asked for since the last change."""
        self._entries: dict[int, _Entry] = {}
        self._numbers: dict[str, int] = {}
        self._postings: dict[str, array[int]] = {}
        self._sorted: list[str] = []
        self._unsorted: set[str] = set()
        self._forms: dict[str, list[str]] = {}
        self._named: dict[str, tuple[str, ...]] = {}
        self.vectors = DocumentVectors()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, word: str) -> bool:
        """Whether any document says exactly this word."""
        return word in self._postings

    def put(self, document: Document, body: str = "") -> None:
        """A document is new, or other than before."""
        self.drop(document.id)
        self._changed()
        number = self._numbers[document.id] = self._number_of(document.id)
        weighed, vector = weigh(document, body, self.thesaurus)
        self._entries[number] = _Entry(document, weighed)
        self.vectors.put(number, vector)
        for name in _names(document.id):
            self._named[name] = (*self._named.get(name, ()), document.id)
        for word, strength in zip(weighed.words, weighed.strengths, strict=True):
            postings = self._postings.get(word)
            if postings is None:
                self._postings[word] = array("Q", (_posting(number, strength),))
                self._learn(word)
            else:
                insort(postings, _posting(number, strength))

    def relabel(self, document: Document) -> None:
        """A document has another source than before, and the same words."""
        number = self._numbers[document.id]
        self._entries[number] = self._entries[number]._replace(document=document)

    def drop(self, document_id: str) -> None:
        """A document is no more, if it was."""
        number = self._numbers.pop(document_id, None)
        if number is None:
            return
        self._changed()
        weighed = self._entries.pop(number).weighed
        self.vectors.drop(number)
        for name in _names(document_id):
            others = tuple(one for one in self._named.pop(name) if one != document_id)
            if others:
                self._named[name] = others
        for word, strength in zip(weighed.words, weighed.strengths, strict=True):
            postings = self._postings[word]
            del postings[bisect_left(postings, _posting(number, strength))]
            if not postings:
                del self._postings[word]
                self._forget(word)

    def document(self, number: int) -> Document:
        return self._entries[number].document

    def find(self, document_id: str) -> Document | None:
        number = self._numbers.get(document_id)
        return None if number is None else self._entries[number].document

    def called(self, name: str) -> str | None:
        """The id that is typed so, in any case, or the only one whose last part is."""
        if name in self._numbers:
            return name
        named = self._named.get(name.casefold(), ())
        whole = [one for one in named if one.casefold() == name.casefold()]
        found = whole or named
        return found[0] if len(found) == 1 else None

    def documents(self) -> list[Document]:
        """Every document, in no order that means anything."""
        return [entry.document for entry in self._entries.values()]

    def ids(self) -> Sequence[str]:
        """Every id, in no order that means anything."""
        return list(self._numbers)

    def number(self, document_id: str) -> int:
        return self._numbers[document_id]

    def count(self, word: str) -> int:
        """How many documents say a word."""
        return len(self._postings.get(word, ()))

    def surprise(self, word: str) -> float:
        """How much it tells that a document says a word, in nats (BM25's idf).

        Among three documents every word is in a third of them: a few count as if they were among a hundred.
        """
        postings = self._postings.get(word)
        count = len(postings) if postings else 0
        return log(1 + (max(len(self._entries), _ENOUGH) - count + 0.5) / (count + 0.5))

    def scores(
        self, word: str, worth: float, limit: int, among: frozenset[int] | None = None
    ) -> dict[int, float]:
        """The documents that say a word most strongly, of all or only of some, and their parts of ``worth``.

        One comprehension over whole numbers: most of the time that a question takes is spent here.
        """
        postings: Iterable[Posting] = self._postings.get(word, ())[:limit]
        if among is not None:
            shown = (posting for posting in self._postings.get(word, ()) if posting & _NUMBER in among)
            postings = islice(shown, limit)
        unit = worth / STRONGEST
        return {p & _NUMBER: unit * (STRONGEST - (p >> _NUMBER_BITS)) for p in postings}

    def together(self, number: int, pairs: Mapping[int, float]) -> float:
        """What a document gains by words it has beside one another, see :func:`pair_hash`."""
        has = self._entries[number].weighed.pairs
        most = len(has)
        gained = 0.0
        for pair, added in pairs.items():
            at = bisect_left(has, pair)
            if at < most and has[at] == pair:
                gained += added
        return gained

    def heard(self, number: int, words: frozenset[str]) -> dict[str, float]:
        """How strongly a document says those of its words that somebody listens for."""
        weighed = self._entries[number].weighed
        said = zip(weighed.words, weighed.strengths, strict=True)
        return {word: strength / STRONGEST for word, strength in said if word in words}

    def loudest(self, number: int, word: str) -> str:
        """Where a document says a word of its own most loudly, as a caller sees it."""
        weighed = self._entries[number].weighed
        return SHOWN[weighed.loudest[bisect_left(weighed.words, word)]]

    # The words themselves

    def forms_of(self, key: str) -> list[str]:
        """The words of this index with this key of their forms, in order."""
        found = self._forms.get(key, [])
        return sorted({*found, key} if key in self._postings and form_key(key) == key else found)

    def words_from(self, start: str, limit: int) -> list[str]:
        """The first words of this index that start so, in order."""
        words = self.vocabulary()
        first = bisect_left(words, start)
        last = bisect_left(words, start + _LAST_CHARACTER, first, min(first + limit, len(words)))
        return words[first:last]

    def vocabulary(self) -> list[str]:
        """Every word of this index, in order. Never change it."""
        if len(self._unsorted) > _MANY_WORDS:
            self._sorted = sorted(self._postings)
        else:
            for word in self._unsorted:
                insort(self._sorted, word)
        self._unsorted.clear()
        return self._sorted

    def _changed(self) -> None:
        self.changes += 1
        self.remembered.clear()

    def _learn(self, word: str) -> None:
        self._unsorted.add(word)
        key = form_key(word)
        if key != word:
            self._forms.setdefault(key, []).append(word)

    def _forget(self, word: str) -> None:
        if word in self._unsorted:
            self._unsorted.remove(word)
        else:
            del self._sorted[bisect_left(self._sorted, word)]
        key = form_key(word)
        if key != word:
            self._forms[key].remove(word)
            if not self._forms[key]:
                del self._forms[key]

    def _number_of(self, document_id: str) -> int:
        """A number of its own for a document, the same in every index that holds the same documents."""
        encoded = document_id.encode("utf-8", "surrogatepass")
        number = (crc32(encoded) << 16 | adler32(encoded) & 0xFFFF) & _NUMBER
        while number in self._entries:
            number = (number + 1) & _NUMBER
        return number


def _names(document_id: str) -> set[str]:
    """What somebody may call a document: its id, or the last part of it."""
    last = document_id.replace("::", "/").rpartition("/")[2]
    return {document_id.casefold(), last.casefold()}


def _posting(number: int, strength: int) -> Posting:
    return (STRONGEST - strength) << _NUMBER_BITS | number
