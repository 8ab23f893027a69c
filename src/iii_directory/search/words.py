"""Cut text of any script into words, and find what may stand for a word. Pure.

Case, accents and vowel points are folded away. Identifiers are taken apart (``putObject``, ``image_resize``)
and kept whole as well, so that ``re-render`` and ``rerender`` meet. Scripts that set no spaces are cut into
pairs of neighbouring characters; the last one stands alone too, so that every character begins some word.

Words that may stand for another are its other forms, a longer word, a slip and synonyms. Synonyms and the
shares of ordinary words come from data files of this package, read when first asked for. Softer alternatives
weigh less, and for each document the best alternative of a word counts, never the sum of them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from iii_directory.search.index import Index

# Han, kana, Hangul, Thai, Lao, Burmese, Khmer: words stand without spaces, or carry their particles.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003134f"
)
# Vowel signs that belong to the letter before them, in the scripts of India and Tibet.
_SIGNS: Final = "\u0900-\u0963\u0966-\u0dff\u0f00-\u0f03\u0f10-\u0fff"
# What folding takes away: accents, Hebrew points, Arabic vowels and the stroke that only stretches a word.
_MARKS: Final = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u0640\u064b-\u065f\u0670]"
)
_SAME: Final = str.maketrans("\u0649\u0629\u0131\u2019øØłŁ", "\u064a\u0647i'oOlL")

_NAMED: Final = re.compile(r"\bc\+\+|\b[cf]#|(?<!\w)\.net\b", re.IGNORECASE)
_NAMES: Final = {"c++": "cpp", "c#": "csharp", "f#": "fsharp", ".net": "dotnet"}
_ASCII_CHUNK: Final = re.compile(r"[A-Za-z0-9]+(?:['_-][A-Za-z0-9]+)*")
_PLAIN: Final = re.compile(r"[^\W_]+")
_HAS_SIGNS: Final = re.compile(f"[{_SIGNS}]")
_HUMP: Final = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_HUMPED: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
# Names of products keep together: GitHub is neither git nor a hub.
_BRAND: Final = re.compile(r"[A-Z][a-z]+(?:[A-Z]+|[A-Z][a-z]+)$")
_JOINTS: Final = re.compile(r"['_-]")
# What an apostrophe cuts off: it's, don't, we've, l'image, qu'une.
_CLITICS: Final = frozenset({"s", "t", "re", "ve", "ll", "d", "m", "l", "qu", "n", "c", "j"})
# A whole made of more parts than this, or longer, is a path or a sentence.
_MOST_PARTS: Final = 3
_LONGEST_WORD: Final = 40

_ENGLISH: Final = """
a about above after again all also am an and any are as at be because been before being below between both
but by can could did do does doing don done down during each either else etc every few for from further had
has have having he her here hers him his how i if in into is it its itself just let like lot many may me
might more most much must my no nor not now of off on once one only onto or other our ours out over own per
please quite rather really same shall she should so some such than that the their them then there these they
thing things this those through to together too under until up upon us use used uses using very via want
wants was we were what whatever when whenever where whether which while who whom whose why will with within
without would yes yet you your yours need needs help make makes
"""
# German, Spanish, French, Italian, Portuguese: the words of grammar that mean nothing in English.
_OTHERS: Final = """
der das und ist ein eine einen einem einer eines nicht mit auf fur von zu zum zur den dem des im ich wie
wird werden aus bei nach oder auch sich mir mein meine ihre el los las una uno de del en y que con para por
su sus mi mis es se como al lo le les un une et du dans pour sur avec est qui ce cette ces mon ma mes il gli
di della delle che nel sono o os um uma da dos em na
"""
_ADDRESSES: Final = "https http www com"
STOP_WORDS: Final = frozenset(f"{_ENGLISH} {_OTHERS} {_ADDRESSES}".split())
"""Words of grammar, folded."""


# Sets of so many characters take long to compile, and most directories have none of them.
@cache
def _compiled() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds chunks of text of any script, and characters of scripts without spaces."""
    letter = f"(?:(?![{_UNSPACED}])[^\\W_]|[{_SIGNS}])+"
    return re.compile(f"[{_UNSPACED}]+|{letter}(?:['_-]{letter})*"), re.compile(f"[{_UNSPACED}]")


def fold(text: str) -> str:
    """Remove accents and points but keep the case; compatible forms become the plain ones."""
    if text.isascii():
        return text
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare).translate(_SAME)


def units(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the parts of each unit of a text, folded and in lower case."""
    text = fold(text)
    if "#" in text or "+" in text or "." in text:
        text = _NAMED.sub(lambda found: _NAMES[found[0].lower()], text)
    for chunk in (_ASCII_CHUNK if text.isascii() else _compiled()[0]).findall(text):
        if is_pair(chunk):
            yield from ((chunk[at : at + 2],) for at in range(len(chunk)))
        else:
            yield _parts(chunk)


def words(text: str) -> list[str]:
    """Return every word of a text, words of grammar included; after the parts of a unit the whole."""
    found: list[str] = []
    for parts in units(text):
        found += parts
        if len(parts) > 1 and (joined := whole(parts)):
            found.append(joined)
    return found


def whole(parts: tuple[str, ...]) -> str:
    """Join the parts of a unit to one word, or return nothing where they are too many."""
    joined = "".join(parts)
    return joined if len(parts) <= _MOST_PARTS and len(joined) <= _LONGEST_WORD else ""


def content(found: Iterable[str]) -> list[str]:
    """Leave out words of grammar and single letters of the alphabet."""
    return [word for word in found if word not in STOP_WORDS and (len(word) > 1 or not word.isascii())]


def plain_words(text: str) -> list[str]:
    """Return the words of a long text, quickly: identifiers are not taken apart at their humps."""
    text = fold(text).lower()
    if text.isascii() or not (_compiled()[1].search(text) or _HAS_SIGNS.search(text)):
        return _PLAIN.findall(text)
    return [part for unit in units(text) for part in unit]


def is_pair(word: str) -> bool:
    """Return whether a word is of a script that sets no spaces, where words are pairs of characters."""
    return not word.isascii() and _compiled()[1].match(word) is not None


@lru_cache(maxsize=8192)
def form_key(word: str) -> str:
    """Return what the forms of a word have in common: ``resizes``, ``resizing``, ``resizer`` are ``resiz``.

    For English, and lightly: a key is never indexed, it only says which other words may stand for this one.
    """
    if not word.isascii():
        # In Arabic the article is written as a part of the word.
        article = next((one for one in _ARTICLES if word.startswith(one)), "")
        is_long = len(word) - len(article) >= _SHORTEST_STEM
        return word[len(article) :] if is_long and _ARABIC.match(word) else word
    if len(word) < _SHORTEST_FORM or not word.isalpha():
        return word
    stem = _without_ending(singular(word))
    return stem[:-1] if stem.endswith("e") and len(stem) > _SHORTEST_STEM else stem


_SHORTEST_FORM: Final = 4
_SHORTEST_STEM: Final = 3
# An ending, and how many letters must be left before it so that "station" does not become a form of "state".
_ENDINGS: Final = (("ations", 4), ("ation", 4), ("ments", 5), ("ment", 5), ("ings", 3), ("ing", 3), ("ed", 3))
_LONG_ENDINGS: Final = (("ion", 5), ("er", 5), ("or", 5), ("ly", 5))
_NO_FORMS: Final = frozenset(
    {"string", "thing", "spring", "during", "customer", "bring", "king", "ring", "sing"}
)
_VOWELS: Final = frozenset("aeiouy")


def singular(word: str) -> str:
    """Return a word without the ending of its plural."""
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > _SHORTEST_FORM:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1]


def _without_ending(word: str) -> str:
    if word in _NO_FORMS:
        return word
    for ending, left in _ENDINGS + _LONG_ENDINGS:
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) >= left and not _VOWELS.isdisjoint(stem):
            # "runn" of "running" is "run"; "call", "pass" and "buzz" end so by themselves.
            if len(stem) > _SHORTEST_STEM and stem[-1] == stem[-2] and stem[-1] not in "lszaeiou":
                stem = stem[:-1]
            return stem + ("at" if ending.startswith("ation") else "")
    return word


_ARABIC: Final = re.compile("[\u0621-\u064a]{3,}$")
_ARTICLES: Final = ("وال", "بال", "كال", "فال", "ال", "لل")


def _parts(chunk: str) -> tuple[str, ...]:
    pieces = [chunk]
    if not chunk.isalnum():
        clitic = "'" in chunk
        pieces = [p for p in _JOINTS.split(chunk) if not clitic or p.lower() not in _CLITICS] or [chunk[0]]
    if chunk.isascii() and _HUMPED.search(chunk) and not _BRAND.match(chunk):
        pieces = [hump for piece in pieces for hump in _HUMP.findall(piece)]
    return tuple(piece.casefold() for piece in pieces)


class Thesaurus(NamedTuple):
    """Words by the key of their forms, see :func:`~iii_directory.search.words.form_key`."""

    synonyms: dict[str, tuple[str, ...]]
    """Other words for a word, in the order of the file."""
    short: dict[str, tuple[str, ...]]
    """What a word is cut short to, or is short for."""
    shares: dict[str, float]
    """How much an ordinary word of English counts, by the word as well; one that is not here counts fully."""

    def knows(self, word: str) -> bool:
        """Return whether this is a word of English, as far as these files go."""
        key = form_key(word)
        return key in self.shares or key in self.synonyms or key in self.short

    def share_of(self, word: str) -> float:
        return self.shares.get(word) or self.shares.get(form_key(word), 1.0)


def parse_groups(lines: Iterable[Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return for each word the others of every group that it is in, by the key of its forms."""
    found: dict[str, dict[str, None]] = {}
    for group in map(tuple, lines):
        for word in group:
            others = found.setdefault(form_key(word), {})
            others.update(dict.fromkeys(other for other in group if form_key(other) != form_key(word)))
    return {key: tuple(others) for key, others in found.items()}


def parse_shares(lines: list[str]) -> dict[str, float]:
    """Read lines of words, each below the number that holds for them."""
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
    """Read the files of this package, when first asked."""
    lines = _lines("synonyms.txt")
    return Thesaurus(
        synonyms=parse_groups(line.split() for line in lines if "=" not in line),
        short=parse_groups(line.replace("=", " ").split() for line in lines if "=" in line),
        shares=parse_shares(_lines("common.txt")),
    )


def _lines(name: str) -> list[str]:
    text = files(__package__ or "").joinpath(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


FORM: Final = 0.7
NUMBER: Final = 0.9
LONGER: Final = 0.6
ONE_SLIP: Final = 0.8
TWO_SLIPS: Final = 0.64
SLIPS: Final = (ONE_SLIP, TWO_SLIPS)
SYNONYM: Final = 0.4

# A word may go on in as many words of the index; those that most documents have come first.
_CONTINUATIONS: Final = 4
_SYNONYMS: Final = 6
_SPELLINGS: Final = 3
# Shorter beginnings go on in too many words. An unknown word may be only the beginning of one.
_SHORTEST_KNOWN_START: Final = 5
_SHORTEST_START: Final = 3
_LONGEST_ENDING: Final = 3
_SHORTEST_MISSPELT: Final = 4
_SHORTEST_TWICE_MISSPELT: Final = 8
_LONGEST_MISSPELT: Final = 40


def alternatives(index: Index, word: str, *, maybe_misspelt: bool) -> dict[str, float]:
    """Return the words of the index that may stand for ``word`` with their weights, itself first.

    Never change the result: the index remembers it until the index changes.
    """
    asked = (word, maybe_misspelt)
    if asked in index.remembered:
        return index.remembered[asked]
    found: dict[str, float] = {word: 1.0} if word in index else {}
    for form in (word, *index.thesaurus.short.get(form_key(word), ())):
        for other in index.forms_of(form_key(form)):
            found.setdefault(other, NUMBER if singular(form) == singular(other) else FORM)
    spelt = {} if found or not maybe_misspelt else _spellings(index, word)
    for other in _continuations(index, word):
        found.setdefault(other, LONGER)
    found.update({other: weight for other, weight in spelt.items() if weight > found.get(other, 0.0)})
    for other in synonyms(index, word):
        found.setdefault(other, SYNONYM)
    if len(index.remembered) >= limits.MAX_REMEMBERED_WORDS:
        index.remembered.clear()
    index.remembered[asked] = dict(list(found.items())[: limits.MAX_ALTERNATIVES])
    return index.remembered[asked]


def _continuations(index: Index, word: str) -> list[str]:
    """Return longer words that start so; for an unknown word also those that only end otherwise."""
    shortest, endings = (_SHORTEST_KNOWN_START, 0) if word in index else (_SHORTEST_START, _LONGEST_ENDING)
    if len(word) < shortest and word.isascii():
        return []
    for ending in range(endings + 1):
        start = word[: len(word) - ending]
        if ending and len(start) < _SHORTEST_KNOWN_START:
            break
        found = index.words_from(start, limits.MAX_CONTINUATIONS)
        longer = [(-index.count(other), other) for other in found if other != start]
        if longer:
            return [other for _, other in sorted(longer)[:_CONTINUATIONS]]
    return []


def _spellings(index: Index, word: str) -> dict[str, float]:
    """Return words that differ by a slip, or of a long word by two; of the nearest, the commonest.

    Only words that start with its first letter, or its second where the first one was too much or swapped.
    """
    if len(word) < _SHORTEST_MISSPELT or len(word) > _LONGEST_MISSPELT or word.isdigit():
        return {}
    # Imported here because most searches have no misspelt word.
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    most = limits.MAX_SPELLING_CANDIDATES
    alike = [one for start in {word[0], word[1]} for one in index.words_from(start, most)]
    allowed = 2 if len(word) >= _SHORTEST_TWICE_MISSPELT else 1
    found = process.extract(word, alike, scorer=OSA.distance, score_cutoff=allowed, limit=None)
    near = {other: slips for other, slips, _ in found if slips == found[0][1]}
    ranked = sorted(near, key=lambda other: (-index.count(other), other))
    return {other: ONE_SLIP if near[other] == 1 else TWO_SLIPS for other in ranked[:_SPELLINGS]}


def synonyms(index: Index, word: str) -> list[str]:
    """Return words of the index that mean about the same."""
    found: dict[str, None] = {}
    for synonym in index.thesaurus.synonyms.get(form_key(word), ()):
        known = (synonym,) if synonym in index else index.forms_of(form_key(synonym))
        found.update(dict.fromkeys(known))
    return list(found)[:_SYNONYMS]
