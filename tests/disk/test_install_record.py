"""The record of what was installed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.disk.install_record import (
    Entry,
    LockFile,
    NamespaceChange,
    RegistrySource,
    RepoSource,
    changed_namespaces,
    content_hash,
    parse_lock,
    render_lock,
)

HASH = content_hash(b"x")
DB = Entry(RegistrySource("db", version="1.2.3"), "1.2.3", "2026-01-01T00:00:00Z", "call", {"SKILL.md": HASH})
WEB = Entry(
    RepoSource("https://example.org/r", "web", "main", "c" * 40),
    "c" * 40,
    "2026-01-02T00:00:00Z",
    "auto",
    {"prompts/p.md": HASH, "b.md": HASH, "a.py": HASH},
)


def test_the_file_has_the_shape_of_the_contract() -> None:
    written = json.loads(render_lock(LockFile({"web": WEB, "db": DB})))

    assert written == {
        "version": 1,
        "namespaces": {
            "db": {
                "source": {"kind": "registry", "worker": "db", "version": "1.2.3"},
                "resolved": "1.2.3",
                "installed_at": "2026-01-01T00:00:00Z",
                "by": "call",
                "files": {"SKILL.md": HASH},
            },
            "web": {
                "source": {
                    "kind": "repo",
                    "repo": "https://example.org/r",
                    "skill": "web",
                    "branch": "main",
                    "commit": "c" * 40,
                },
                "resolved": "c" * 40,
                "installed_at": "2026-01-02T00:00:00Z",
                "by": "auto",
                "files": {"a.py": HASH, "b.md": HASH, "prompts/p.md": HASH},
            },
        },
    }


def test_the_same_record_gives_the_same_bytes_whatever_its_order() -> None:
    assert render_lock(LockFile({"web": WEB, "db": DB})) == render_lock(LockFile({"db": DB, "web": WEB}))
    assert render_lock(LockFile({"db": DB})).endswith(b"}\n")


def test_a_written_record_is_read_back() -> None:
    lock = LockFile({"db": DB, "web": WEB})

    assert parse_lock(render_lock(lock)) == lock


def test_a_tag_is_recorded_as_a_tag() -> None:
    assert RegistrySource("db", tag="beta").as_dict() == {"kind": "registry", "worker": "db", "tag": "beta"}


def test_a_missing_file_is_an_empty_record() -> None:
    assert parse_lock(None) == LockFile()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'{"version": 1}',
        b'{"version": 1, "namespaces": []}',
        b'{"version": 2, "namespaces": {}}',
        b"\xff\xfe",
        b"<<<<<<< HEAD\n{}",
        b"[" * 100_000,
    ],
    ids=lambda content: ascii(content[:20]),
)
def test_a_file_that_cannot_be_read_is_reported_and_not_to_be_written_over(content: bytes) -> None:
    lock = parse_lock(content)

    assert lock.broken
    assert lock.namespaces == {}
    assert lock.findings[0].subject == "skills.lock.json"


def _with(**changes: Any) -> dict[str, Any]:
    return {**DB.as_dict(), **changes}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", None),
        ("x", []),
        ("x", {}),
        ("x", _with(source=None)),
        ("x", _with(source={"kind": "ftp"})),
        ("x", _with(source={"kind": "registry", "worker": 1})),
        ("x", _with(source={"kind": "repo", "repo": "r"})),
        ("x", _with(resolved=1)),
        ("x", _with(installed_at=None)),
        ("x", _with(by="someone")),
        ("x", _with(files=[])),
        ("x", _with(files={"a.md": 1})),
        ("x", _with(files={"../a.md": HASH})),
        ("x", _with(files={"/etc/passwd": HASH})),
        ("../x", _with()),
        ("X", _with()),
        (".", _with()),
    ],
)
def test_a_malformed_entry_is_reported_loses_only_itself_and_is_written_back(name: str, value: Any) -> None:
    document = {"version": 1, "namespaces": {"db": DB.as_dict(), name: value}}

    lock = parse_lock(json.dumps(document).encode())

    assert lock.namespaces == {"db": DB}
    assert name in lock.findings[0].subject
    written = json.loads(render_lock(lock.with_entry("web", WEB)))
    assert written["namespaces"][name] == value
    assert written["namespaces"].keys() == {"db", "web", name}


def test_a_new_entry_takes_the_place_of_a_malformed_one() -> None:
    lock = LockFile(carried={"db": {"odd": True}})

    assert lock.with_entry("db", DB) == LockFile({"db": DB})
    assert LockFile({"db": DB}).with_entry("db", None) == LockFile()


@given(st.binary(max_size=200))
def test_no_bytes_whatever_make_reading_fail(content: bytes) -> None:
    parse_lock(content)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    )
)
def test_no_json_whatever_makes_reading_fail(value: Any) -> None:
    parse_lock(json.dumps({"version": 1, "namespaces": {"a": value}}).encode())
    parse_lock(json.dumps(value).encode())


def test_events_are_due_for_namespaces_that_came_or_changed() -> None:
    later = Entry(DB.source, "1.2.4", "2026-01-03T00:00:00Z", "call", DB.files)

    rows = changed_namespaces(
        LockFile({"db": DB, "gone": DB, "same": DB}),
        LockFile({"db": later, "web": WEB, "same": DB}),
        lambda _path, _digest: True,
    )

    assert rows == [
        NamespaceChange("db", "registry", skills=True, prompts=False),
        NamespaceChange("web", "repo", skills=True, prompts=True),
    ]
