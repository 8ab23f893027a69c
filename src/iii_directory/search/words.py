"""Words out of text of any script, the way documents and questions are both read. Pure.

Case, accents and vowel points are folded away. Identifiers are taken apart (``putObject``, ``image_resize``)
and kept whole as well, so that ``re-render`` and ``rerender`` meet. Scripts that set no spaces are cut into
pairs of neighbouring characters; the last one stands alone too, so that every character begins some word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
_SAME: Final = str.maketrans(
    {
        "\u0649": "\u064a",
        "\u0629": "\u0647",
        "\u0131": "i",
        "\u2019": "'",
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
    }
)

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
# A whole made of more parts than this, or longer, is a path or a sentence and no word.
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
def _chunk() -> re.Pattern[str]:
    return re.compile(
        f"[{_UNSPACED}]+"
        f"|(?:(?![{_UNSPACED}])[^\\W_]|[{_SIGNS}])+(?:['_-](?:(?![{_UNSPACED}])[^\\W_]|[{_SIGNS}])+)*"
    )


@cache
def _is_unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


def fold(text: str) -> str:
    """``text`` without accents and points, its case kept; compatible forms become the plain ones."""
    if text.isascii():
        return text
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare).translate(_SAME)


def units(text: str) -> Iterator[tuple[str, ...]]:
    """What stands in a text, one after another: the parts of each unit, folded, in lower case."""
    text = fold(text)
    if "#" in text or "+" in text or "." in text:
        text = _NAMED.sub(lambda found: _NAMES[found[0].lower()], text)
    for chunk in (_ASCII_CHUNK if text.isascii() else _chunk()).findall(text):
        if not chunk.isascii() and _is_unspaced().match(chunk):
            yield from ((pair,) for pair in _pairs(chunk))
        else:
            yield _parts(chunk)


def words(text: str) -> list[str]:
    """Every word of a text in its order, words of grammar included; after the parts of a unit the whole."""
    found: list[str] = []
    for parts in units(text):
        found += parts
        if len(parts) > 1 and (joined := whole(parts)):
            found.append(joined)
    return found


def whole(parts: tuple[str, ...]) -> str:
    """The parts of a unit as one word, or nothing where they are too many to be one."""
    joined = "".join(parts)
    return joined if len(parts) <= _MOST_PARTS and len(joined) <= _LONGEST_WORD else ""


def content(found: Iterable[str]) -> list[str]:
    """The words that say something: no words of grammar, no single letters of the alphabet."""
    return [word for word in found if word not in STOP_WORDS and (len(word) > 1 or not word.isascii())]


def plain_words(text: str) -> list[str]:
    """The words of a long text, quickly: identifiers are not taken apart at their humps."""
    text = fold(text).lower()
    if text.isascii() or not (_is_unspaced().search(text) or _HAS_SIGNS.search(text)):
        return _PLAIN.findall(text)
    return [part for unit in units(text) for part in unit]


def is_pair(word: str) -> bool:
    """Whether a word is a pair of characters of a script that sets no spaces."""
    return not word.isascii() and _is_unspaced().match(word) is not None


@lru_cache(maxsize=8192)
def form_key(word: str) -> str:
    """What the forms of a word have in common: ``resizes``, ``resizing`` and ``resizer`` are ``resiz``.

    For English, and lightly: a key is never indexed, it only says which other words may stand for this one.
    """
    if not word.isascii():
        return _arabic_key(word)
    if len(word) < _SHORTEST_FORM or not word.isalpha():
        return word
    stem = _without_ending(_singular(word))
    return stem[:-1] if stem.endswith("e") and len(stem) > _SHORTEST_STEM else stem


_SHORTEST_FORM: Final = 4
_SHORTEST_STEM: Final = 3
# An ending, and how many letters must be left before it so that "station" is no form of "state".
_ENDINGS: Final = (("ations", 4), ("ation", 4), ("ments", 5), ("ment", 5), ("ings", 3), ("ing", 3), ("ed", 3))
_LONG_ENDINGS: Final = (("ion", 5), ("er", 5), ("or", 5), ("ly", 5))
_NO_FORMS: Final = frozenset(
    {"string", "thing", "spring", "during", "customer", "bring", "king", "ring", "sing"}
)
_VOWELS: Final = frozenset("aeiouy")


def _singular(word: str) -> str:
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
            return _undoubled(stem) + ("at" if ending.startswith("ation") else "")
    return word


def _undoubled(stem: str) -> str:
    """``runn`` of ``running`` is ``run``; ``call``, ``pass`` and ``buzz`` end so by themselves."""
    doubled = len(stem) > _SHORTEST_STEM and stem[-1] == stem[-2] and stem[-1] not in "lszaeiou"
    return stem[:-1] if doubled else stem


_ARABIC: Final = re.compile("[\u0621-\u064a]{3,}$")
_ARTICLES: Final = ("وال", "بال", "كال", "فال", "ال", "لل")


def _arabic_key(word: str) -> str:
    """An Arabic word without the article, which is written as a part of it."""
    if not _ARABIC.match(word):
        return word
    for article in _ARTICLES:
        if word.startswith(article) and len(word) - len(article) >= _SHORTEST_STEM:
            return word[len(article) :]
    return word


def _parts(chunk: str) -> tuple[str, ...]:
    pieces = [chunk]
    if not chunk.isalnum():
        clitic = "'" in chunk
        pieces = [p for p in _JOINTS.split(chunk) if not clitic or p.lower() not in _CLITICS] or [chunk[0]]
    if chunk.isascii() and _HUMPED.search(chunk) and not _BRAND.match(chunk):
        pieces = [hump for piece in pieces for hump in _HUMP.findall(piece)]
    return tuple(piece.casefold() for piece in pieces)


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run))]
