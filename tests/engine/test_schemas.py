"""Schemas of strangers: what they mean, and that none of them keeps the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from iii_directory.engine.schemas import schema_problem
from iii_directory.limits import MAX_CHECKED_SCHEMA_BYTES, MAX_CHECKED_VALUE_BYTES

EVIL, TEXT = "^(a+)+$", "a" * 60 + "!"
DIALECT = "http://json-schema.org/draft-07/schema#"
THIS_DIALECT = "https://json-schema.org/draft/2020-12/schema"
DOUBLING = {
    "$ref": "#/$defs/0",
    "$defs": {
        "64": {},
        **{
            str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}, {"$ref": f"#/$defs/{n + 1}"}]} for n in range(64)
        },
    },
}
TOO_LONG = "checking the value against its schema takes too long"


@pytest.mark.parametrize(
    ("schema", "fitting", "other"),
    [
        ({"pattern": "^a"}, ["a", 7, None], ["b"]),
        ({"patternProperties": {"^n_": {"type": "integer"}}}, [{"n_a": 1}, {"x": "y"}, 7], [{"n_a": "x"}]),
        (
            {
                "properties": {"a": {}},
                "patternProperties": {"^n_": {"type": "integer"}, "^x-": {}},
                "additionalProperties": False,
            },
            [{"a": 1, "n_b": 2, "x-c": "d"}, {}, 7],
            [{"b": 1}, {"n_b": "x"}],
        ),
        (
            {"patternProperties": {"^x-": {}}, "additionalProperties": {"type": "string"}},
            [{"x-a": 1, "b": "c"}],
            [{"b": 1}],
        ),
        ({"additionalProperties": False}, [{}], [{"a": 1}]),
        ({"propertyNames": {"pattern": "^[a-z]+$"}}, [{"a": 1}], [{"A": 1}]),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, [{"a": 1}], [{"b": 1}]),
        (
            {"uniqueItems": True},
            [[1, True, "1", [1], [True], {}, []], [{"a": 1}, {"a": True}], "aa"],
            [[1, 1.0]],
        ),
        ({"uniqueItems": True}, [[]], [[{"a": [1], "b": 2}, {"b": 2, "a": [1]}], [[False], [False]]]),
        ({"uniqueItems": False}, [[1, 1]], []),
        ({"const": [1, {"a": 1}]}, [[1, {"a": 1}], [1.0, {"a": 1}]], [[True, {"a": 1}], [1], 1]),
        ({"enum": [1, "a", [0], False]}, [1, 1.0, "a", [0], False], [True, 0, [False], "b"]),
        ({"$schema": DIALECT, "$ref": "#/definitions/a", "definitions": {"a": {"const": 1}}}, [1], [2]),
        (False, [], [1]),
    ],
)
def test_a_value_fits_or_does_not(schema: Any, fitting: list[Any], other: list[Any]) -> None:
    assert [value for value in fitting if schema_problem(schema, value) is not None] == []
    assert [value for value in other if schema_problem(schema, value) is None] == []


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"pattern": "^a"}, "b", "'b' does not match '^a'"),
        ({"pattern": "("}, "b", "the pattern '(' cannot be used: a parenthesis is not closed"),
        ({"pattern": 7}, "b", "the schema cannot be used"),
        ({"pattern": "x" * 5000}, "b", f"the pattern '{'x' * 80}' cannot be used: it is too long"),
        ({"pattern": "^" + "a*" * 1000}, "a" * 1000 + "!", None),
        ({"pattern": "a*" * 1000 + "b"}, "a" * 1000, TOO_LONG),
        ({"items": {"pattern": "^" + "a*" * 100 + "$"}}, ["a" * 10] * 10, None),
        ({"items": {"pattern": "^" + "a*" * 100 + "$"}}, ["a" * 10] * 1000, TOO_LONG),
        (
            {"patternProperties": {"a": {}}, "allOf": [{"unevaluatedProperties": False}]},
            {},
            "patternProperties and unevaluatedProperties cannot be used in one schema",
        ),
        (DOUBLING, 1, TOO_LONG),
        ({"allOf": [{"pattern": f"^.{{1,{4096 - n}}}$"} for n in range(4)]}, "x", None),
        ({"allOf": [{"pattern": f"^.{{1,{4096 - n}}}$"} for n in range(100)]}, "x", TOO_LONG),
        ({"contains": {"const": -1}}, list(range(20_000)), TOO_LONG),
        ({"items": {"const": list(range(1000))}}, [list(range(1000))] * 50, TOO_LONG),
        ({"items": {"enum": list(range(10_000))}}, [9_999] * 50, TOO_LONG),
        ({"items": {"type": "integer"}}, [1] * 20_000, TOO_LONG),
        ({"uniqueItems": True}, [[n] * 100 for n in range(600)], TOO_LONG),
        (
            {"type": "string"},
            "x" * MAX_CHECKED_VALUE_BYTES,
            f"a value that is checked against a schema has at most {MAX_CHECKED_VALUE_BYTES} bytes",
        ),
        (
            {"required": ["x" * MAX_CHECKED_SCHEMA_BYTES]},
            {},
            f"a schema has at most {MAX_CHECKED_SCHEMA_BYTES} bytes",
        ),
        (True, "x" * MAX_CHECKED_VALUE_BYTES, None),
        ({}, "x" * MAX_CHECKED_VALUE_BYTES, None),
        ({**DOUBLING, "unevaluatedProperties": False}, {"a": 1}, TOO_LONG),
    ],
)
def test_a_value_that_breaks_its_schema_is_explained_in_a_sentence(
    schema: Any, value: Any, problem: str | None
) -> None:
    assert schema_problem(schema, value) == problem


def test_every_check_has_its_own_steps() -> None:
    assert schema_problem(DOUBLING, 1) == TOO_LONG
    assert schema_problem({"items": {"pattern": "a"}}, ["a", "b"]) == "'b' does not match 'a'"


EVIL_SCHEMAS: list[tuple[Any, Any]] = [
    ({"pattern": EVIL}, TEXT),
    ({"pattern": "^(a|a)*$"}, TEXT),
    ({"pattern": "^(a|aa)+$"}, TEXT),
    ({"pattern": "(.*a){30}"}, "a" * 29 + "b"),
    ({"pattern": "a*" * 20 + "b"}, "a" * 100),
    ({"pattern": f"(?=({EVIL}))"}, TEXT),
    ({"patternProperties": {EVIL: False}, "required": ["x"]}, {TEXT: 1}),
    ({"patternProperties": {EVIL: {}}, "additionalProperties": False}, {TEXT: 1}),
    ({"patternProperties": {EVIL: {}}, "unevaluatedProperties": False}, {TEXT: 1}),
    ({"propertyNames": {"pattern": EVIL}}, {TEXT: 1}),
    ({"properties": {"a": {"$schema": DIALECT, "pattern": EVIL}}}, {"a": TEXT}),
    ({"properties": {"a": {"$schema": THIS_DIALECT, "pattern": EVIL}}}, {"a": TEXT}),
    ({"$schema": DIALECT, "properties": {"a": {"$ref": "#"}}, "pattern": EVIL}, {"a": TEXT}),
    (
        {"pattern": EVIL, "$id": "urn:x", "$dynamicAnchor": "meta", "$ref": THIS_DIALECT},
        {"not": TEXT, "properties": {"a": TEXT}},
    ),
    ({"items": {"$dynamicRef": "#a"}, "$defs": {"b": {"$dynamicAnchor": "a", "pattern": EVIL}}}, [TEXT]),
    ({"not": {"not": {"if": {"pattern": EVIL}, "else": False}}}, TEXT),
    ({"uniqueItems": True, "minItems": 10**6}, [{"a": n} for n in range(20_000)]),
    (DOUBLING, 1),
]


def test_no_schema_keeps_the_engine_for_long() -> None:
    """Run in another process, because Python's own matching cannot be stopped from within."""
    check_all = (
        "import json, sys; from iii_directory.engine.schemas import schema_problem;"
        "print(json.dumps([schema_problem(*pair) for pair in json.load(sys.stdin)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", check_all],
        input=json.dumps(EVIL_SCHEMAS),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    problems = json.loads(done.stdout)
    assert [
        schema for (schema, _), problem in zip(EVIL_SCHEMAS, problems, strict=True) if problem is None
    ] == []
