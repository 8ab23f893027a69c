"""Seed 002: the schemas of the v0.8 functions, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.contract.published import REQUEST, RESPONSE
from tests.contract.requirements import requirement

from iii_directory.config import SURFACES
from iii_directory.worker.surfaces import functions_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.reader import Reader

ROWS = {row.id: row for row in functions_of(SURFACES)}


def flat(published: dict[str, dict[str, str]]) -> list[tuple[str, str, str]]:
    return [
        (function, field, kind) for function, fields in published.items() for field, kind in fields.items()
    ]


TAKEN = flat(REQUEST)
ANSWERED = flat(RESPONSE)


def find(schema: dict[str, Any], field: str) -> tuple[dict[str, Any], bool]:
    """The schema of a field, and whether it is required where it stands."""
    required = False
    for step in field.replace("[]", ".[]").split("."):
        schema = _object_in(schema)
        if step == "[]":
            schema, required = schema["items"], False
        else:
            required = step in schema.get("required", ())
            schema = schema["properties"][step]
    return schema, required


def _object_in(schema: dict[str, Any]) -> dict[str, Any]:
    """The one variant of a nullable object."""
    variants = [v for v in schema.get("anyOf", schema.get("allOf", ())) if v.get("type") != "null"]
    return variants[0] if variants else schema


def kinds(schema: dict[str, Any]) -> set[str]:
    found = schema.get("type", "anything")
    return set(found) - {"null"} if isinstance(found, list) else {found}


def check(schema: dict[str, Any], field: str, published: str) -> None:
    found, required = find(schema, field)

    assert kinds(found) == {published.rstrip("*")}
    assert required is published.endswith("*")
    if published.startswith("integer"):
        assert found["minimum"] == 0


@pytest.mark.parametrize(("function", "field", "kind"), TAKEN)
@requirement("schemas.fields")
def test_a_function_takes_the_published_field(function: str, field: str, kind: str) -> None:
    check(ROWS[function].request, field, kind)


@pytest.mark.parametrize(("function", "field", "kind"), ANSWERED)
@requirement("schemas.fields")
def test_a_function_answers_the_published_field(function: str, field: str, kind: str) -> None:
    response = ROWS[function].response
    assert response is not None
    check(response, field, kind)


@pytest.mark.parametrize("function", REQUEST)
@requirement("schemas.fields")
def test_a_function_takes_no_other_field(function: str) -> None:
    assert set(ROWS[function].request["properties"]) == set(REQUEST[function])


@requirement("schemas.descriptions")
def test_every_field_of_every_function_is_described() -> None:
    bare = [
        f"{row.id} {path}"
        for row in ROWS.values()
        for schema in (row.request, row.response or {})
        for path, field in fields(schema)
        if not field.get("description")
    ]

    assert bare == []


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every named field below a schema; the items of a list are described by the list."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(_object_in(field), f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


@requirement("schemas.answers")
def test_answers_fit_the_schemas_they_were_promised_by(directory: Reader) -> None:
    directory.skills.document("db/index.md", "DB")
    directory.skills.write("db/prompts/ask.md", "---\ndescription: Ask\n---\nAsk.\n")
    directory.skills.write("Odd Name.md", "x")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("directory::skills::get", {"id": "db"}),
        ("directory::skills::list", {}),
        ("directory::skills::index", {}),
        ("directory::skills::fetch-skill", {"uri": "db"}),
        ("directory::prompts::list", {}),
        ("directory::prompts::get", {"name": "ask"}),
        ("directory::diagnostics", {}),
        ("directory::engine::functions::info", {"function_id": "directory::skills::get"}),
        ("skills::list", {}),
        ("skills::resources-list", {}),
        ("skills::resources-read", {"uri": "iii://db"}),
        ("skills::resources-templates", {}),
        ("prompts::list", {}),
        ("prompts::get", {"name": "ask"}),
    ]
    for function, payload in calls:
        info = directory.call("engine::functions::info", function_id=function)
        jsonschema.validate(payload, info["request_schema"])
        jsonschema.validate(directory.call(function, **payload), info["response_schema"])
