"""The regular expressions of JSON Schemas, matched in steps that can be counted. Pure.

Python's own matcher tries one way after the other, and some patterns have more ways than there is time. Here
all are taken at once, character by character. So a search takes no more steps than the text has characters
times the pattern has steps, and every step is paid for. Python only says whether one character fits.

Why not a library: the time limit of ``regex`` begins after it has compiled, and that takes 0.8 s and 260 MiB
for ``(a{1000}){1000}`` and does not end for ``(){9999999}``. ``google-re2`` is bounded, but knows no
``(?=`` and ``(?!``, which rules for passwords and reserved names are written with. And steps are counted
here, so that a busy machine refuses no value that an idle one takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from iii_directory.limits import MAX_PATTERN_CHARS, MAX_PATTERN_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable

    Spend = Callable[[int], None]


class PatternError(Exception):
    """A pattern that is none, is too large or needs what cannot be done in one pass, such as ``\\1``."""


@dataclass(frozen=True, slots=True)
class One:
    """A character that fits."""

    fits: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place that fits."""

    fits: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Look:
    """What follows fits, or must not; ``(?=…)`` and ``(?!…)``."""

    program: Program
    wanted: bool


@dataclass(frozen=True, slots=True)
class Fork:
    """Go on at every one of these, counted from here."""

    offsets: tuple[int, ...]


Program = list[One | Anchor | Look | Fork]

_START: Final = Anchor(re.compile(r"\A"))
# As in JSON Schema, and unlike in Python, $ is the very end.
_END: Final = Anchor(re.compile(r"\Z"))
_ANCHORS: Final = {
    "^": _START,
    "\\A": _START,
    "$": _END,
    "\\Z": _END,
    "\\z": _END,
    "\\b": Anchor(re.compile(r"\b")),
    "\\B": Anchor(re.compile(r"\B")),
}
_ONE: Final = re.compile(
    r"\[\^?\]?(?:[^\]\\]|\\.)*\]"
    r"|\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|0[0-7]{0,2}|[^1-9])"
    r"|[^\\[()|*+?]",
    re.DOTALL,
)
_REPEAT: Final = re.compile(r"(?:([*+?])|\{(?=[\d,])(\d*)(,?)(\d*)\})\??")
_GROUP: Final = re.compile(r"\((?:\?(?:P?<[A-Za-z_]\w*>|[:=!])|(?!\?))")
_IGNORING_CASE: Final = "(?i)"


def search(pattern: str, text: str, spend: Spend) -> bool:
    """Whether a text has a place that fits; ``spend`` is told of the steps and may raise.

    Raises:
        PatternError: the pattern cannot be used.
    """
    program = _compiled(pattern)
    return _matches(program, text, 0, spend, anywhere=not program or program[0] is not _START)


def size_of(pattern: str) -> int:
    """How many parts a pattern has once it is compiled; `PatternError` as of `search`."""
    return len(_compiled(pattern))


def _matches(program: Program, text: str, start: int, spend: Spend, *, anywhere: bool) -> bool:
    waiting: list[int] = []
    for position in range(start, len(text) + 1):
        ways = [*waiting, 0] if anywhere or position == start else waiting
        if not ways:
            return False
        waiting, seen = [], set[int]()
        while ways:
            at = ways.pop()
            if at in seen:
                continue
            if at == len(program):
                return True
            seen.add(at)
            step = program[at]
            if isinstance(step, One):
                if step.fits.match(text, position):
                    waiting.append(at + 1)
            elif isinstance(step, Fork):
                ways.extend(at + offset for offset in step.offsets)
            elif _holds(step, text, position, spend):
                ways.append(at + 1)
        spend(len(seen))
    return False


def _holds(step: Anchor | Look, text: str, position: int, spend: Spend) -> bool:
    if isinstance(step, Anchor):
        return step.fits.match(text, position) is not None
    return _matches(step.program, text, position, spend, anywhere=False) is step.wanted


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Program:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError("it is too long")
    try:
        return _Reader(pattern).whole()
    except (re.error, RecursionError):
        raise PatternError("it is no regular expression") from None


class _Reader:
    """Reads a pattern from left to right; what was read is a program that ends by falling off its end."""

    def __init__(self, source: str) -> None:
        self._ignoring_case = source.startswith(_IGNORING_CASE)
        self._source = source
        self._at = len(_IGNORING_CASE) if self._ignoring_case else 0

    def whole(self) -> Program:
        program = self._alternatives()
        if self._at < len(self._source):
            raise PatternError("a parenthesis is closed that was never opened")
        return program

    def _alternatives(self) -> Program:
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else _any_of(branches)

    def _sequence(self) -> Program:
        program: Program = []
        while self._at < len(self._source) and self._source[self._at] not in "|)":
            program += self._repeated(self._item())
            _check_size(len(program))
        return program

    def _item(self) -> Program:
        for text, anchor in _ANCHORS.items():
            if self._take(text):
                return [anchor]
        if opening := self._match(_GROUP):
            inner = self._alternatives()
            if not self._take(")"):
                raise PatternError("a parenthesis is not closed")
            return [Look(inner, wanted=opening[0] == "(?=")] if opening[0] in ("(?=", "(?!") else inner
        one = None if _REPEAT.match(self._source, self._at) else self._match(_ONE)
        if one is None:
            raise PatternError(f"what stands at character {self._at + 1} is not supported")
        # A dot and what has brackets or a backslash means the same to Python; all else is itself.
        source = one[0] if one[0][0] in ".[\\" else re.escape(one[0])
        return [One(re.compile(source, re.IGNORECASE if self._ignoring_case else re.NOFLAG))]

    def _repeated(self, program: Program) -> Program:
        repeat = self._match(_REPEAT)
        if repeat is None:
            return program
        sign, least_text, comma, most_text = repeat.groups()
        if sign:
            least, most = int(sign == "+"), 1 if sign == "?" else None
        else:
            least = int(least_text or 0)
            most = int(most_text) if most_text else None if comma else least
        return _times(program, least, most)

    def _take(self, text: str) -> bool:
        found = self._source.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._source, self._at)
        self._at = match.end() if match else self._at
        return match


def _any_of(branches: list[Program]) -> Program:
    # Behind the fork stand the branches, each with a way out at its end.
    starts = [0, *accumulate(len(branch) + 1 for branch in branches)]
    program: Program = [Fork(tuple(start + 1 for start in starts[:-1]))]
    for branch, next_start in zip(branches, starts[1:], strict=True):
        program += [*branch, Fork((starts[-1] - next_start + 1,))]
    _check_size(len(program))
    return program


def _times(program: Program, least: int, most: int | None) -> Program:
    size = len(program) + 1
    if most is None:
        _check_size(size * (least + 1))
        return [*program * least, Fork((1, size + 1)), *program, Fork((-size,))]
    if most < least:
        raise PatternError("a repeat ends before it begins")
    _check_size(size * most)
    repeated = program * least
    for left in range(most - least, 0, -1):
        repeated += [Fork((1, size * left)), *program]
    return repeated


def _check_size(steps: int) -> None:
    if steps > MAX_PATTERN_STEPS:
        raise PatternError("it is too large")
