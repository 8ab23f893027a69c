"""A question as search reads it: the words that say something, and which of them stand together. Pure."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Final, NamedTuple

from iii_directory.limits import MAX_QUESTION_CHARS, MAX_QUESTION_WORDS
from iii_directory.search.words import content, units, whole

# The keys of a payload that was sent as a question say nothing about what is wanted.
_JSON_KEY: Final = re.compile(r'"[A-Za-z_][\w-]*"\s*:')


class Question(NamedTuple):
    text: str
    """As asked, without the spaces around it."""
    words: tuple[str, ...]
    """Each once, in their order."""
    neighbours: tuple[tuple[str, str], ...]
    """Words that stand beside one another, words of grammar left out."""
    joined: dict[str, tuple[tuple[str, bool], ...]]
    """What a word is part of when written together with its neighbour, and whether it is written so."""
    all_words: tuple[str, ...]
    """Words of grammar included, each twice at most; single characters are left out."""
    unread: bool
    """Whether the question goes on beyond what is read of one."""


def parse_question(text: str) -> Question:
    """Never fails: whatever is no word is passed over. One of nothing but grammar is taken literally."""
    asked = text.strip()
    read = asked[:MAX_QUESTION_CHARS]
    if read.startswith(("{", "[")):
        read = _JSON_KEY.sub(" ", read)
    found = list(units(read))
    parts = [part for unit in found for part in unit]
    sequence = _longer(content(parts)) or parts
    words = tuple(dict.fromkeys(sequence))
    return Question(
        text=asked,
        words=words[:MAX_QUESTION_WORDS],
        neighbours=tuple(dict.fromkeys(pairwise(sequence)))[:MAX_QUESTION_WORDS],
        joined=_joined(found, sequence),
        all_words=_twice_at_most(parts),
        unread=len(asked) > MAX_QUESTION_CHARS or len(words) > MAX_QUESTION_WORDS,
    )


def _twice_at_most(words: list[str]) -> tuple[str, ...]:
    counted = Counter(word for word in words if len(word) > 1)
    return tuple(word for word, count in counted.items() for _ in range(min(count, 2)))


def _longer(words: list[str]) -> list[str]:
    """Without single characters, unless there is nothing else: pairs of them say the same."""
    return [word for word in words if len(word) > 1] or words


def _joined(found: list[tuple[str, ...]], sequence: list[str]) -> dict[str, tuple[tuple[str, bool], ...]]:
    together: dict[str, dict[str, bool]] = {}
    for unit in found:
        if len(unit) > 1 and (one := whole(unit)):
            for part in unit:
                together.setdefault(part, {})[one] = True
    for left, right in pairwise(sequence[: MAX_QUESTION_WORDS + 1]):
        for part in (left, right):
            together.setdefault(part, {}).setdefault(left + right, False)
    return {part: tuple(wholes.items()) for part, wholes in together.items()}


# Where one wish ends and the next one begins.
_BETWEEN_PARTS: Final = re.compile(
    r"[.;:!?\n]+\s|\s[-\u2013\u2014]\s|,\s"
    r"|,?\s(?:and|then|also|so that|in order to|while|after that|finally)\s",
    re.IGNORECASE,
)
_LONG: Final = 8
_SHORTEST_PART: Final = 2
_MOST_PARTS: Final = 8


def parts_of(question: Question) -> list[Question]:
    """Return what a long question asks for one by one; nothing for a short one."""
    if len(question.words) < _LONG:
        return []
    pieces = _BETWEEN_PARTS.split(question.text[:MAX_QUESTION_CHARS])
    parts = [part for part in map(parse_question, pieces) if len(part.words) >= _SHORTEST_PART]
    return parts[:_MOST_PARTS] if len(parts) > 1 else []
