"""Check a request to search, and read its question: the words that tell something. Pure."""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from iii_directory import limits
from iii_directory.documents.payload_fields import flag, optional_text, optional_texts
from iii_directory.errors import invalid_field
from iii_directory.search.words import content, units, whole
from iii_directory.shapes import is_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.search.fields import Document

    Payload = Mapping[str, Any]

Kind = Literal["skill", "prompt", "function", "trigger", "worker", "installable"]
KINDS: Final[tuple[Kind, ...]] = ("skill", "prompt", "function", "trigger", "worker", "installable")
Detail = Literal["ids", "brief", "full"]
DETAILS: Final[tuple[Detail, ...]] = ("ids", "brief", "full")
DEFAULT_HITS: Final = 5
DEFAULT_CHARS: Final = 4000
# One request answered with all defaults: what an agent can afford to ask on a mere suspicion.
_BRIEF_CHARS: Final = 1500


class SearchRequest(NamedTuple):
    """What a caller looks for, and how long the reply may be."""

    capabilities: Sequence[str]
    kinds: Sequence[Kind] = KINDS
    worker: str | None = None
    prefix: str | None = None
    limit: int = DEFAULT_HITS
    detail: Detail = "brief"
    budget: int = DEFAULT_CHARS
    """For the whole reply, in bytes."""
    asks_registry: bool = False
    """Whether published workers were asked for by name, so that their list may be fetched meanwhile."""

    def shows(self, document: Document) -> bool:
        """Return whether a document passes the filters."""
        of_worker = self.worker is None or document.worker == self.worker
        return of_worker and (self.prefix is None or document.id.startswith(self.prefix))


def parse_request(payload: Payload) -> SearchRequest:
    """Read the payload of ``directory::search``; raise D100 with the field that is wrong."""
    query, several = optional_text(payload, "query"), optional_texts(payload, "capabilities")
    if (query is None) == (several is None):
        raise invalid_field("query", "given, as a string, or capabilities as a list of them, but not both")
    asked = [query] if query is not None else several or []
    field = "query" if query is not None else "capabilities"
    if any(len(text) > limits.MAX_ASKED_CHARS for text in asked):
        raise invalid_field(field, f"at most {limits.MAX_ASKED_CHARS} characters long")
    if not 1 <= len(asked) <= limits.MAX_CAPABILITIES or not all(text.strip() for text in asked):
        words = "in words" if query is not None else f"1 to {limits.MAX_CAPABILITIES} strings of words"
        raise invalid_field(field, words)
    detail = optional_text(payload, "detail") or "brief"
    if detail not in DETAILS:
        raise invalid_field("detail", f"one of {', '.join(DETAILS)}")
    brief = payload.get("limit") is None and len(asked) == 1 and detail != "full"
    by_name = payload.get("installable") is True or "installable" in (payload.get("kinds") or ())
    return SearchRequest(
        asked,
        _kinds(payload),
        optional_text(payload, "worker"),
        optional_text(payload, "prefix"),
        _number(payload, "limit", DEFAULT_HITS, limits.MAX_SEARCH_HITS),
        detail,
        _number(payload, "budget_chars", _BRIEF_CHARS if brief else DEFAULT_CHARS, limits.MAX_ANSWER_CHARS),
        by_name and payload.get("installable") is not False,
    )


def _kinds(payload: Payload) -> Sequence[Kind]:
    given = optional_texts(payload, "kinds")
    kinds: list[Kind] = [kind for kind in KINDS if given is None or kind in given]
    if not kinds or (given is not None and not set(given) <= set(KINDS)):
        raise invalid_field("kinds", f"any of {', '.join(KINDS)}")
    with_installable = flag(payload, "installable", default=True)
    return [kind for kind in kinds if with_installable or kind != "installable"]


def _number(payload: Payload, key: str, default: int, most: int) -> int:
    value = payload.get(key)
    if value is None:
        return default
    if not is_count(value) or not 1 <= value <= most:
        raise invalid_field(key, f"a whole number from 1 to {most}")
    return value


# The keys of a payload that was sent as a question say nothing about what is wanted.
_JSON_KEY: Final = re.compile(r'"[A-Za-z_][\w-]*"\s*:')


class Question(NamedTuple):
    """The words of a request."""

    text: str
    """As asked, without the spaces around it."""
    words: tuple[str, ...]
    """Each once, in their order."""
    neighbours: tuple[tuple[str, str], ...]
    """Words that stand beside one another, words of grammar left out."""
    joined: Mapping[str, tuple[tuple[str, bool], ...]]
    """What a word is part of when written together with its neighbour, and whether it is written so."""
    all_words: tuple[str, ...]
    """Words of grammar included, each twice at most; single characters are left out."""
    unread: bool
    """Whether the question goes on beyond what is read of one."""


def parse_question(text: str) -> Question:
    """Read any text: what is not a word is passed over, and mere words of grammar are taken literally."""
    asked = text.strip()
    read = asked[: limits.MAX_QUESTION_CHARS]
    if read.startswith(("{", "[")):
        read = _JSON_KEY.sub(" ", read)
    found = list(units(read))
    parts = [part for unit in found for part in unit]
    telling = content(parts)
    # Single characters of a script without spaces say no more than the pairs of them.
    sequence = [word for word in telling if len(word) > 1] or telling or parts
    words = tuple(dict.fromkeys(sequence))
    counted = Counter(word for word in parts if len(word) > 1)
    together: dict[str, dict[str, bool]] = {}
    for unit in found:
        if len(unit) > 1 and (one := whole(unit)):
            for part in unit:
                together.setdefault(part, {})[one] = True
    for left, right in pairwise(sequence[: limits.MAX_QUESTION_WORDS + 1]):
        for part in (left, right):
            together.setdefault(part, {}).setdefault(left + right, False)
    return Question(
        text=asked,
        words=words[: limits.MAX_QUESTION_WORDS],
        neighbours=tuple(dict.fromkeys(pairwise(sequence)))[: limits.MAX_QUESTION_WORDS],
        joined={part: tuple(wholes.items()) for part, wholes in together.items()},
        all_words=tuple(word for word, count in counted.items() for _ in range(min(count, 2))),
        unread=len(asked) > limits.MAX_QUESTION_CHARS or len(words) > limits.MAX_QUESTION_WORDS,
    )


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
    pieces = _BETWEEN_PARTS.split(question.text[: limits.MAX_QUESTION_CHARS])
    parts = [part for part in map(parse_question, pieces) if len(part.words) >= _SHORTEST_PART]
    ends = accumulate(len(part.words) for part in parts)
    parts = [part for part, end in zip(parts, ends, strict=True) if end <= limits.MAX_WORDS_OF_PARTS]
    return parts[:_MOST_PARTS] if len(parts) > 1 else []
