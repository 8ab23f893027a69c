"""What callers may ask a registry for."""

from __future__ import annotations

from typing import Any

import pytest

from iii_directory.errors import DirectoryError
from iii_directory.registry.registry_messages import (
    PageRequest,
    WorkerRequest,
    info_request,
    page_request,
    worker_request,
)


@pytest.mark.parametrize(
    ("payload", "request_"),
    [
        ({}, PageRequest()),
        ({"search": None, "cursor": None}, PageRequest()),
        ({"search": "  mail  ", "_caller_worker_id": 7}, PageRequest("mail")),
        ({"search": "", "cursor": "abc"}, PageRequest(cursor="abc")),
    ],
)
def test_a_page_is_asked_for_by_search_and_cursor(payload: dict[str, Any], request_: PageRequest) -> None:
    assert page_request(payload) == request_


@pytest.mark.parametrize("payload", [{"search": 1}, {"cursor": []}, {"search": "x" * 1025}])
def test_a_wrong_field_is_named(payload: dict[str, Any]) -> None:
    with pytest.raises(DirectoryError, match=f"D100 .*'{next(iter(payload))}'"):
        page_request(payload)


@pytest.mark.parametrize(
    ("payload", "expected", "asked"),
    [
        ({"name": "db"}, WorkerRequest("db", tag="latest"), "latest"),
        ({"name": " db ", "tag": "beta"}, WorkerRequest("db", tag="beta"), "beta"),
        ({"name": "db", "version": "1.2.3"}, WorkerRequest("db", version="1.2.3"), "1.2.3"),
        ({"name": "db", "version": " ", "tag": ""}, WorkerRequest("db", tag="latest"), "latest"),
    ],
)
def test_a_worker_is_asked_for_by_name_and_version_or_tag(
    payload: dict[str, Any], expected: WorkerRequest, asked: str
) -> None:
    assert info_request(payload) == expected
    assert info_request(payload).asked == asked


@pytest.mark.parametrize("payload", [{}, {"name": ""}, {"name": None}, {"name": 7}])
def test_a_missing_name_is_named(payload: dict[str, Any]) -> None:
    with pytest.raises(DirectoryError, match=r"D100 .*'name'"):
        info_request(payload)


@pytest.mark.parametrize("name", ["A", "-a", "_a", "a b", "a/b", "..", "../a", "a%2f", "é", "a" * 65, "a\n"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(DirectoryError, match=r"D311"):
        worker_request(name)


def test_version_and_tag_together_are_refused() -> None:
    with pytest.raises(DirectoryError, match=r"D311 .*either version or tag"):
        worker_request("db", "1.0.0", "latest")


@pytest.mark.parametrize("value", ["-x", "a b", "a&b=c", "a#b", "../x", "é", "x" * 129, "a\n"])
def test_a_version_or_tag_that_would_be_read_as_something_else_is_refused(value: str) -> None:
    with pytest.raises(DirectoryError, match=r"D311 .*version"):
        worker_request("db", version=value)
    with pytest.raises(DirectoryError, match=r"D311 .*tag"):
        worker_request("db", tag=value)
