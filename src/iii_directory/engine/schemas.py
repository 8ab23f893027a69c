"""Check values against JSON Schemas of strangers, in a bounded number of steps. Pure.

The library takes long to import, so this module is imported when it is first needed.

The engine waits for the result, and all its clients wait for the engine, so neither a regular expression nor
a web of references may take longer than a moment.

Python's own matcher tries one alternative after another, and some patterns have more alternatives than there
is time. The matcher here follows all of them at once, character by character: a search takes at most the
length of the text times the size of the pattern, and every step is counted. Why not a library: the time limit
of ``regex`` starts after it has compiled, which takes 0.8 s and 260 MiB for ``(a{1000}){1000}`` and does not
end for ``(){9999999}``; ``google-re2`` is bounded, but lacks ``(?=`` and ``(?!``; ``jsonschema-rs`` bounds
each search, but not a whole check. Counted steps also make a busy machine decide as an idle one does.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, cast

from jsonschema import Draft202012Validator, ValidationError, validators
from referencing import Registry

from iii_directory import limits
from iii_directory.wire.json_text import encode_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from iii_directory.wire.json_text import Json

    Spend = Callable[[int], None]


class PatternError(Exception):
    """A pattern that is not valid, is too large or needs more than one pass, such as ``\\1``."""


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
    """Return whether a text has a place that fits; ``spend`` is told of the steps and may raise.

    Raises:
        PatternError: the pattern cannot be used.
    """
    program = _compiled(pattern)
    return _matches(program, text, 0, spend, anywhere=not program or program[0] is not _START)


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
            if isinstance(step, Fork):
                ways.extend(at + offset for offset in step.offsets)
                continue
            if isinstance(step, Look):
                fits = _matches(step.program, text, position, spend, anywhere=False) is step.wanted
            else:
                fits = step.fits.match(text, position) is not None
            if fits:
                (waiting if isinstance(step, One) else ways).append(at + 1)
        spend(len(seen))
    return False


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Program:
    if len(pattern) > limits.MAX_PATTERN_CHARS:
        raise PatternError("it is too long")
    try:
        reader = _Reader(pattern)
        program = reader.alternatives()
    except (re.error, RecursionError):
        raise PatternError("it is not a regular expression") from None
    if reader.at < len(pattern):
        raise PatternError("a parenthesis is closed that was never opened")
    return program


class _Reader:
    """Reads a pattern from left to right; what was read is a program that ends by falling off its end."""

    def __init__(self, source: str) -> None:
        self._ignoring_case = source.startswith(_IGNORING_CASE)
        self._source = source
        self.at = len(_IGNORING_CASE) if self._ignoring_case else 0

    def alternatives(self) -> Program:
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        if len(branches) == 1:
            return branches[0]
        # Behind the fork stand the branches, each with a way out at its end.
        starts = [0, *accumulate(len(branch) + 1 for branch in branches)]
        program: Program = [Fork(tuple(start + 1 for start in starts[:-1]))]
        for branch, next_start in zip(branches, starts[1:], strict=True):
            program += [*branch, Fork((starts[-1] - next_start + 1,))]
        _check_size(len(program))
        return program

    def _sequence(self) -> Program:
        program: Program = []
        while self.at < len(self._source) and self._source[self.at] not in "|)":
            program += self._repeated(self._item())
            _check_size(len(program))
        return program

    def _item(self) -> Program:
        for text, anchor in _ANCHORS.items():
            if self._take(text):
                return [anchor]
        if opening := self._match(_GROUP):
            inner = self.alternatives()
            if not self._take(")"):
                raise PatternError("a parenthesis is not closed")
            return [Look(inner, wanted=opening[0] == "(?=")] if opening[0] in ("(?=", "(?!") else inner
        one = None if _REPEAT.match(self._source, self.at) else self._match(_ONE)
        if one is None:
            raise PatternError(f"what stands at character {self.at + 1} is not supported")
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

    def _take(self, text: str) -> bool:
        found = self._source.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._source, self.at)
        self.at = match.end() if match else self.at
        return match


def _check_size(steps: int) -> None:
    if steps > limits.MAX_PATTERN_STEPS:
        raise PatternError("it is too large")


class UnusableSchemaError(Exception):
    """A schema that no value can be checked against, in one sentence."""


def schema_problem(schema: object, value: object) -> str | None:
    """Return what is wrong with a value under a JSON Schema, or None."""
    if not isinstance(schema, (dict, bool)):
        return None
    usable = cast("Json | bool", schema)
    if usable in (True, {}):
        return None
    if len(encode_value(usable)) > limits.MAX_CHECKED_SCHEMA_BYTES:
        return f"a schema has at most {limits.MAX_CHECKED_SCHEMA_BYTES} bytes"
    if len(encode_value(value)) > limits.MAX_CHECKED_VALUE_BYTES:
        return f"a value that is checked against a schema has at most {limits.MAX_CHECKED_VALUE_BYTES} bytes"
    _steps_left.set(limits.MAX_SCHEMA_STEPS)
    _patterns_paid.set(set())
    # An empty registry: a schema that refers elsewhere must not make the engine fetch anything.
    nothing: Registry[Any] = Registry()
    try:
        if _names(usable, "patternProperties") and _names(usable, "unevaluatedProperties"):
            # The latter makes the library match the patterns of the former itself.
            return "patternProperties and unevaluatedProperties cannot be used in one schema"
        problem = next(_BOUNDED(usable, registry=nothing).iter_errors(value), None)
    except UnusableSchemaError as error:
        return str(error)
    except Exception:  # noqa: BLE001 (a stranger's schema can make the validator stumble in any way)
        return "the schema cannot be used"
    return None if problem is None else str(problem.message)


_steps_left: ContextVar[int] = ContextVar("steps_left")
_patterns_paid: ContextVar[set[str]] = ContextVar("patterns_paid")


def _spend(steps: int) -> None:
    left = _steps_left.get() - steps
    if left < 0:
        raise UnusableSchemaError("checking the value against its schema takes too long")
    _steps_left.set(left)


def _fits(pattern: str, text: str) -> bool:
    try:
        paid = _patterns_paid.get()
        if pattern not in paid:
            # Compiling takes about as long as a step for each part, whether or not it was done before.
            paid.add(pattern)
            _spend(len(_compiled(pattern)))
        return search(pattern, text, _spend)
    except PatternError as error:
        shown = pattern[: limits.QUOTED_CHARS]
        raise UnusableSchemaError(f"the pattern {shown!r} cannot be used: {error}") from None


def _names(schema: object, keyword: str) -> bool:
    if isinstance(schema, dict):
        fields = cast("Json", schema)
        return keyword in fields or any(_names(inner, keyword) for inner in fields.values())
    return isinstance(schema, list) and any(_names(inner, keyword) for inner in cast("list[object]", schema))


def _pattern(validator: Any, expected: str, value: Any, _schema: Json) -> Iterator[Exception]:
    if validator.is_type(value, "string") and not _fits(expected, value):
        yield ValidationError(f"{value!r} does not match {expected!r}")


def _pattern_properties(validator: Any, patterns: Json, value: Any, _schema: Json) -> Iterator[Exception]:
    if validator.is_type(value, "object"):
        for expected, subschema in patterns.items():
            for name, inner in value.items():
                if _fits(expected, name):
                    yield from validator.descend(inner, subschema, path=name, schema_path=expected)


def _unique_items(validator: Any, wanted: object, value: Any, _schema: Json) -> Iterator[Exception]:
    """Find equal items by their hashes; the library compares every item with every other one."""
    if wanted and validator.is_type(value, "array") and len({_hashable(item) for item in value}) < len(value):
        yield ValidationError(f"{value!r} has non-unique elements")


def _const(_validator: Any, expected: object, value: object, _schema: Json) -> Iterator[Exception]:
    if _hashable(value) != _hashable(expected):
        yield ValidationError(f"{expected!r} was expected")


def _enum(_validator: Any, expected: Any, value: object, _schema: Json) -> Iterator[Exception]:
    wanted = _hashable(value)
    if all(_hashable(one) != wanted for one in expected):
        yield ValidationError(f"{value!r} is not one of {expected!r}")


def _hashable(value: object) -> object:
    """Return a key that is equal just when the JSON is (true is not 1); every part of a value is paid for."""
    _spend(1)
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in cast("Json", value).items())
    if isinstance(value, list):
        return tuple(_hashable(item) for item in cast("list[object]", value))
    return (bool, value) if isinstance(value, bool) else value


def _additional_properties(validator: Any, allowed: object, value: Any, schema: Json) -> Iterator[Exception]:
    patterns = schema.get("patternProperties")
    if patterns and validator.is_type(value, "object"):
        value = {name: value[name] for name in value if not any(_fits(one, name) for one in patterns)}
        schema = _without(schema, "patternProperties")
    return _LIBRARYS.VALIDATORS["additionalProperties"](validator, allowed, value, schema)


def _evolve(validator: Any, **changes: Any) -> Any:
    """Make the validator of a part; for a named dialect the library would choose one without our patterns."""
    _spend(limits.STEPS_PER_SUBSCHEMA)
    schema = changes.get("schema", validator.schema)
    if isinstance(schema, dict):
        changes["schema"] = _without(cast("Json", schema), "$schema")
    return _LIBRARYS.evolve(validator, **changes)


def _iter_errors(validator: Any, *arguments: Any) -> Any:
    """Run a whole check, such as every one that ``contains`` makes of an item without a part of its own."""
    _spend(limits.STEPS_PER_SUBSCHEMA)
    return _LIBRARYS.iter_errors(validator, *arguments)


def _without(schema: Json, keyword: str) -> Json:
    return {key: part for key, part in schema.items() if key != keyword} if keyword in schema else schema


_LIBRARYS: Final[Any] = Draft202012Validator
_BOUNDED: Final[Any] = cast("Any", validators).extend(
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "const": _const,
        "enum": _enum,
    },
)
_BOUNDED.evolve = _evolve
_BOUNDED.iter_errors = _iter_errors
