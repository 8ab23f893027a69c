"""What a caller sends is bounded at the door: an oversized name is not read to its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.directory import directory
from tests.support.engine import EngineThread, RawClient

from iii_directory.limits import MAX_ASKED_CHARS, MAX_NAME_FIELD_CHARS
from iii_directory.worker.surfaces import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELDS = [
    (row, name, field)
    for row in FUNCTIONS
    for name, field in row.request.get("properties", {}).items()
    if name not in row.long_fields and "string" in (field.get("type"), field.get("items", {}).get("type"))
]


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    folder = tmp_path_factory.mktemp("skills")
    with EngineThread() as engine, directory(engine.url, folder, engine), RawClient(engine.url) as client:
        yield client


def failure(caller: RawClient, function_id: str, payload: Any) -> str:
    return caller.call(function_id, payload)["error"]["message"]


@pytest.mark.parametrize(
    ("row", "name", "field"), [pytest.param(*one, id=f"{one[0].id} {one[1]}") for one in FIELDS]
)
def test_a_name_that_is_longer_than_any_is_refused_unread(
    caller: RawClient, row: Any, name: str, field: dict[str, Any]
) -> None:
    """As many folders as fit a message took minutes to look for."""
    path = "a/" * (MAX_NAME_FIELD_CHARS // 2 + 1)
    payload = {**row.example, name: [path] if field.get("type") == "array" else path}

    said = failure(caller, row.id, payload)

    assert said.startswith(f"D100 invalid_input: field '{name}' must be at most {MAX_NAME_FIELD_CHARS} char")
    assert len(said) < 1000


@pytest.mark.parametrize(
    "payload", [{"query": "x" * (MAX_ASKED_CHARS + 1)}, {"capabilities": ["y" * 70_000]}]
)
def test_a_question_that_is_a_book_is_refused(caller: RawClient, payload: dict[str, Any]) -> None:
    assert f"at most {MAX_ASKED_CHARS} characters long" in failure(caller, "directory::search", payload)


def test_a_long_question_is_read_in_part_and_says_so(caller: RawClient) -> None:
    reply = caller.result("directory::search", {"query": "coffee " * 2_000})

    assert "only the first 2000 characters of it were read" in json.dumps(reply)


@pytest.mark.parametrize("function_id", ["skills::register", "directory::skills::create"])
def test_a_text_has_the_limit_that_its_own_error_names(caller: RawClient, function_id: str) -> None:
    text = "x" * 300_000
    said = failure(caller, function_id, {"id": "a", "skill": text, "content": text})

    assert "characters long" not in said
