"""Checks values against JSON Schemas of strangers, in a number of steps that is bounded. Pure.

The engine waits for the answer, and everybody for the engine: neither a pattern nor a web of references may
keep it for longer than a moment.
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from iii_directory.engine.patterns import PatternError, search, size_of
from iii_directory.limits import (
    MAX_CHECKED_SCHEMA_BYTES,
    MAX_CHECKED_VALUE_BYTES,
    MAX_SCHEMA_STEPS,
    QUOTED_CHARS,
    STEPS_PER_SUBSCHEMA,
)
from iii_directory.wire.json_text import encode_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.wire.json_text import Json


class UnusableSchemaError(Exception):
    """A schema that no value can be checked against, in one sentence."""


def schema_problem(schema: object, value: object) -> str | None:
    """What is wrong with a value under a JSON Schema, or None. What is no schema accepts everything."""
    from referencing import Registry

    if not isinstance(schema, (dict, bool)):
        return None
    usable = cast("Json | bool", schema)
    if usable in (True, {}):
        return None
    if len(encode_value(usable)) > MAX_CHECKED_SCHEMA_BYTES:
        return f"a schema has at most {MAX_CHECKED_SCHEMA_BYTES} bytes"
    if len(encode_value(value)) > MAX_CHECKED_VALUE_BYTES:
        return f"a value that is checked against a schema has at most {MAX_CHECKED_VALUE_BYTES} bytes"
    _steps_left.set(MAX_SCHEMA_STEPS)
    _patterns_paid.set(set())
    # An empty registry: a schema that refers elsewhere must not make the engine fetch anything.
    nothing: Registry[Any] = Registry()
    try:
        if _names(usable, "patternProperties") and _names(usable, "unevaluatedProperties"):
            # The latter makes the library match the patterns of the former itself.
            return "patternProperties and unevaluatedProperties cannot be used in one schema"
        problem = next(_validator_class()(usable, registry=nothing).iter_errors(value), None)
    except UnusableSchemaError as error:
        return str(error)
    except Exception:  # noqa: BLE001 (a stranger's schema can make the validator stumble in any way)
        return "the schema cannot be used"
    return None if problem is None else str(problem.message)


def load_library() -> None:
    """Import what checks need: it takes longer than anybody should have to wait for a first check.

    A machine that is out of files or memory right now is asked again by the first check.
    """
    with suppress(OSError, ImportError, MemoryError):
        _validator_class()


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
            _spend(size_of(pattern))
        return search(pattern, text, _spend)
    except PatternError as error:
        raise UnusableSchemaError(f"the pattern {pattern[:QUOTED_CHARS]!r} cannot be used: {error}") from None


def _names(schema: object, keyword: str) -> bool:
    if isinstance(schema, dict):
        fields = cast("Json", schema)
        return keyword in fields or any(_names(inner, keyword) for inner in fields.values())
    return isinstance(schema, list) and any(_names(inner, keyword) for inner in cast("list[object]", schema))


def _pattern(validator: Any, expected: str, value: Any, _schema: Json) -> Iterator[Exception]:
    from jsonschema import ValidationError

    if validator.is_type(value, "string") and not _fits(expected, value):
        yield ValidationError(f"{value!r} does not match {expected!r}")


def _pattern_properties(validator: Any, patterns: Json, value: Any, _schema: Json) -> Iterator[Exception]:
    if validator.is_type(value, "object"):
        for expected, subschema in patterns.items():
            for name, inner in value.items():
                if _fits(expected, name):
                    yield from validator.descend(inner, subschema, path=name, schema_path=expected)


def _unique_items(validator: Any, wanted: object, value: Any, _schema: Json) -> Iterator[Exception]:
    """The library compares every object with every other one."""
    from jsonschema import ValidationError

    if wanted and validator.is_type(value, "array") and len({_hashable(item) for item in value}) < len(value):
        yield ValidationError(f"{value!r} has non-unique elements")


def _const(_validator: Any, expected: object, value: object, _schema: Json) -> Iterator[Exception]:
    from jsonschema import ValidationError

    if _hashable(value) != _hashable(expected):
        yield ValidationError(f"{expected!r} was expected")


def _enum(_validator: Any, expected: Any, value: object, _schema: Json) -> Iterator[Exception]:
    from jsonschema import ValidationError

    wanted = _hashable(value)
    if all(_hashable(one) != wanted for one in expected):
        yield ValidationError(f"{value!r} is not one of {expected!r}")


def _hashable(value: object) -> object:
    """What is equal just when the JSON is: true is not 1. It is paid for by every part of the value."""
    _spend(1)
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in cast("Json", value).items())
    if isinstance(value, list):
        return tuple(_hashable(item) for item in cast("list[object]", value))
    return (bool, value) if isinstance(value, bool) else value


def _additional_properties(validator: Any, allowed: object, value: Any, schema: Json) -> Iterator[Exception]:
    from jsonschema import Draft202012Validator

    patterns = schema.get("patternProperties")
    if patterns and validator.is_type(value, "object"):
        value = {name: value[name] for name in value if not any(_fits(one, name) for one in patterns)}
        schema = _without(schema, "patternProperties")
    theirs: Any = Draft202012Validator.VALIDATORS["additionalProperties"]
    return theirs(validator, allowed, value, schema)


def _evolve(validator: Any, **changes: Any) -> Any:
    """The validator of a part. One that names its dialect would get another class, without our patterns."""
    from jsonschema import Draft202012Validator

    _spend(STEPS_PER_SUBSCHEMA)
    schema = changes.get("schema", validator.schema)
    if isinstance(schema, dict):
        changes["schema"] = _without(cast("Json", schema), "$schema")
    theirs: Any = Draft202012Validator
    return theirs.evolve(validator, **changes)


def _iter_errors(validator: Any, *arguments: Any) -> Any:
    """A whole check, such as every one that ``contains`` makes of an item without a part of its own."""
    from jsonschema import Draft202012Validator

    _spend(STEPS_PER_SUBSCHEMA)
    theirs: Any = Draft202012Validator
    return theirs.iter_errors(validator, *arguments)


def _without(schema: Json, keyword: str) -> Json:
    return {key: part for key, part in schema.items() if key != keyword} if keyword in schema else schema


@cache
def _validator_class() -> Any:
    """The library's validator with our patterns; made when first needed, because the library is large."""
    from jsonschema import Draft202012Validator, validators

    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "const": _const,
        "enum": _enum,
    }
    bounded: Any = cast("Any", validators).extend(Draft202012Validator, keywords)
    bounded.evolve = _evolve
    bounded.iter_errors = _iter_errors
    return bounded
