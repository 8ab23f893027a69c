"""The ranking once more, plainly and slowly, for the fast one to be compared with.

Shared with the product: how text is cut into words, the key of a word's forms and its singular, the table of
fields and the two files of words. Everything else is written down again and looks at every document and every
word each time: no postings, nothing kept from one question to the next.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise
from math import log
from zlib import adler32, crc32

from iii_directory.search.fields import FIELDS, Document
from iii_directory.search.words import (
    Thesaurus,
    content,
    form_key,
    plain_words,
    singular,
    thesaurus,
    units,
    words,
)

CONSIDERED = 60


class Model:
    """Documents with their bodies, and nothing computed from them beforehand."""

    def __init__(self, documents: dict[str, tuple[Document, str]], read: int, read_soft: int) -> None:
        self.thesaurus: Thesaurus = thesaurus()
        self.documents = documents
        self.read, self.read_soft = read, read_soft
        self.said = {one: self.strengths(document, body) for one, (document, body) in documents.items()}
        self.known = sorted({word for said in self.said.values() for word in said})

    def strengths(self, document: Document, body: str) -> dict[str, float]:
        mark = "::" if "::" in document.id else "/"
        head, found, tail = document.id.partition(mark)
        namespace, name = (head, tail) if found else ("", document.id)
        lead, rest = _first_sentence(_without_ids(document.description))
        fields = {
            "namespace": words(namespace),
            "name": words(name),
            "title": words(document.title),
            "keyword": words(" ".join(document.keywords)),
            "description": content(words(lead)),
            "details": content(words(rest)),
            "argument": content(words(" ".join(document.arguments))),
            "heading": self.headings(body),
        }
        fields["details"] = [word for word in fields["details"] if word not in fields["description"]]
        fields["keyword"] = [word for word in fields["keyword"] if word not in fields["title"]]
        total: defaultdict[str, float] = defaultdict(float)
        for field, said in fields.items():
            for word in set(said):
                total[word] += _share(field, len(set(said)))
        for word, count in self.strongest(body).items():
            total[word] += _share("body", len(self.counted(body))) * count
        half = 0.5 if re.match(r"\W*internal\b", document.description, re.IGNORECASE) else 1.0
        return {word: max(1, round(65535 * half * tf / (1.2 + tf))) / 65535 for word, tf in total.items()}

    def headings(self, body: str) -> list[str]:
        found: list[str] = []
        fenced = False
        for line in body.split("\n"):
            if line.startswith(("```", "~~~")):
                fenced = not fenced
            elif not fenced and (heading := re.match(r"#{1,6}[ \t]+(.+)$", line)):
                found += content(words(heading[1]))
        return found

    def counted(self, body: str) -> Counter[str]:
        telling = [
            word
            for word in content(plain_words(body))
            if len(word) <= 40 and not word.isdigit() and (len(word) > 1 or not word.isascii())
        ]
        return Counter(telling)

    def strongest(self, body: str) -> dict[str, int]:
        shares = self.thesaurus.shares
        ranked = sorted(
            self.counted(body).items(),
            key=lambda item: (-min(item[1], 5) * shares.get(item[0], 1.0), item[0]),
        )
        return {word: min(count, 5) for word, count in ranked[:128]}

    # A question

    def ask(self, text: str) -> list[tuple[str, float]]:
        """Every document that is considered, best first, with its score."""
        found = [part for unit in units(text.strip()) for part in unit]
        sequence = [w for w in content(found) if len(w) > 1] or content(found) or found
        asked = list(dict.fromkeys(sequence))
        scores: dict[str, float] = {}
        for word in asked:
            for document_id, score in self.word(word, text, sequence).items():
                scores[document_id] = scores.get(document_id, 0.0) + score
        best = sorted(scores, key=lambda one: (-scores[one], _number(one)))[:CONSIDERED]
        pairs = {
            (form_key(a), form_key(b)): 0.3 * min(self.told_form(a), self.told_form(b))
            for a, b in pairwise(sequence)
        }
        for one in best:
            scores[one] += sum(added for pair, added in pairs.items() if pair in self.pairs(one))
        return sorted(((one, scores[one]) for one in best), key=lambda item: (-item[1], item[0]))

    def word(self, word: str, text: str, sequence: list[str]) -> dict[str, float]:
        best: dict[str, float] = {}
        for other, weight in self.alternatives(word, text, sequence).items():
            told = self.told(other) if not self.count(word) else min(self.told(other), self.told(word))
            having = sorted(
                (one for one in self.said if other in self.said[one]),
                key=lambda one: (-self.said[one][other], _number(one)),
            )
            for one in having[: self.read if other == word else self.read_soft]:
                best[one] = max(best.get(one, 0.0), weight * told * self.said[one][other])
        return best

    def alternatives(self, word: str, text: str, sequence: list[str]) -> dict[str, float]:
        found: dict[str, float] = {word: 1.0} if word in self.known else {}
        for form in (word, *self.thesaurus.short.get(form_key(word), ())):
            for other in self.forms(form):
                found.setdefault(other, 0.9 if singular(other) == singular(form) else 0.7)
        spelt = {} if found or self.thesaurus.knows(word) else self.spellings(word)
        found |= {other: 0.6 for other in self.continuations(word) if other not in found}
        found |= {other: max(weight, found.get(other, 0.0)) for other, weight in spelt.items()}
        found |= {other: 0.4 for other in self.synonyms(word) if other not in found}
        found = dict(list(found.items())[:12])
        for whole, weight in self.written_together(word, text, sequence).items():
            if whole in self.known:
                found[whole] = max(found.get(whole, 0.0), weight)
            found |= {other: 0.4 for other in self.synonyms(whole) if other not in found}
        return found

    def written_together(self, word: str, text: str, sequence: list[str]) -> dict[str, float]:
        found = {"".join(unit): 1.0 for unit in units(text.strip()) if 1 < len(unit) <= 3 and word in unit}
        found = {whole: weight for whole, weight in found.items() if len(whole) <= 40}
        for left, right in pairwise(sequence):
            if word in (left, right):
                found.setdefault(left + right, 0.7)
        return found

    def forms(self, word: str) -> list[str]:
        return [other for other in self.known if form_key(other) == form_key(word)]

    def synonyms(self, word: str) -> list[str]:
        found: list[str] = []
        for synonym in self.thesaurus.synonyms.get(form_key(word), ()):
            found += [synonym] if synonym in self.known else self.forms(synonym)
        return list(dict.fromkeys(found))[:6]

    def continuations(self, word: str) -> list[str]:
        starts = [word]
        if word not in self.known:
            starts += [word[:-ending] for ending in (1, 2, 3) if len(word) - ending >= 5]
        if word.isascii() and len(word) < (5 if word in self.known else 3):
            return []
        for start in starts:
            longer = [other for other in self.known if other.startswith(start) and other != start]
            if longer:
                return sorted(longer, key=lambda other: (-self.count(other), other))[:4]
        return []

    def spellings(self, word: str) -> dict[str, float]:
        if not 4 <= len(word) <= 40 or word.isdigit():
            return {}
        alike = [other for other in self.known if other[0] in word[:2]]
        least = min((slips(word, other) for other in alike), default=9)
        if least > (2 if len(word) >= 8 else 1):
            return {}
        near = sorted((-self.count(other), other) for other in alike if slips(word, other) == least)
        return {other: 0.8 if least == 1 else 0.64 for _, other in near[:3]}

    def count(self, word: str) -> int:
        return sum(word in said for said in self.said.values())

    def told(self, word: str) -> float:
        count = self.count(word)
        return log(1 + (max(len(self.documents), 100) - count + 0.5) / (count + 0.5))

    def told_form(self, word: str) -> float:
        return min(map(self.told, [word, *self.forms(word)]))

    def pairs(self, document_id: str) -> set[tuple[str, str]]:
        document, _ = self.documents[document_id]
        found: set[tuple[str, str]] = set()
        for text in (document.id, document.title, _without_ids(document.description), *document.keywords):
            keys = [form_key(word) for word in content(part for unit in units(text) for part in unit)]
            found.update(pairwise(keys))
        return found


def slips(left: str, right: str) -> int:
    """Letters dropped, added, replaced or swapped with the next, by the whole table."""
    table = [
        [max(i, j) if not i or not j else 0 for j in range(len(right) + 1)] for i in range(len(left) + 1)
    ]
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            same = left[i - 1] == right[j - 1]
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (not same))
            if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


def _share(field: str, length: int) -> float:
    weight, dilution, ordinary = FIELDS[field]
    return weight / (1 - dilution + dilution * length / ordinary)


def _first_sentence(text: str) -> tuple[str, str]:
    end = re.search(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n\n", text)
    return (text[: end.start()], text[end.end() :]) if end else (text, "")


def _without_ids(text: str) -> str:
    return re.sub(r"[\w-]+(?:::[\w-]+)+|[a-z]+://\S+", " ", text)


def _number(document_id: str) -> int:
    """In which order equals are read."""
    encoded = document_id.encode("utf-8", "surrogatepass")
    return (crc32(encoded) << 16 | adler32(encoded) & 0xFFFF) & (2**48 - 1)
