"""§4 and §5: the rows of ``directory::skills::list`` and ``skills::list``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from tests.support.reader import Reader


@pytest.fixture
def shop(directory: Reader) -> Reader:
    """A directory with documents to tell apart."""
    write = directory.skills.write
    write("db/index.md", "---\ntype: index\n---\n# Database\n\nKeeps rows and ÄRGER.\n")
    write("db/query.md", "---\ntype: how-to\nfunction_id: db::query\n---\n# Query it\n\nRead rows.\n")
    write("dbx/index.md", "---\ntype: index\n---\n# Other\n\nSomething else.\n")
    write("mail/send.md", "# Send\n\nSends MAIL to many.\n")
    return directory


@requirement("list.row", "list.bytes", "list.sorted")
def test_a_row_says_everything_but_the_body(shop: Reader) -> None:
    before = datetime.now(UTC)
    shop.skills.write("umlaut.md", "# Größe\n")

    rows = shop.rows()

    assert list(rows) == ["db", "db/query", "dbx", "mail/send", "umlaut"]
    assert set(rows["umlaut"]) == {
        "id",
        "title",
        "type",
        "function_id",
        "description",
        "bytes",
        "modified_at",
        "provenance",
        "root",
    }
    assert (rows["umlaut"]["type"], rows["umlaut"]["function_id"]) == (None, None)
    assert rows["umlaut"]["bytes"] == len("# Größe\n".encode())
    assert rows["db/query"]["function_id"] == "db::query"
    changed = datetime.fromisoformat(rows["umlaut"]["modified_at"])
    assert changed.utcoffset() is not None
    assert abs((changed - before).total_seconds()) < 60


@requirement("list.search")
def test_search_looks_at_id_title_and_description_in_any_case(shop: Reader) -> None:
    assert shop.ids(search="DB") == ["db", "db/query", "dbx"]
    assert shop.ids(search="query IT") == ["db/query"]
    assert shop.ids(search="rows") == ["db", "db/query"]
    assert shop.ids(search="mail") == ["mail/send"]
    assert shop.ids(search="ärger") == ["db"]
    assert shop.ids(search="nowhere") == []
    assert len(shop.ids(search="")) == 4


@requirement("list.search-without-description", "list.no-description")
def test_without_descriptions_they_are_empty_and_not_searched(shop: Reader) -> None:
    rows = shop.rows(include_description=False)

    assert [row["description"] for row in rows.values()] == ["", "", "", ""]
    assert set(rows["db"]) == set(shop.rows()["db"])
    assert shop.ids(search="rows", include_description=False) == []
    assert shop.ids(search="query", include_description=False) == ["db/query"]


@requirement("list.prefix")
def test_a_prefix_is_held_against_the_id_on_disk(shop: Reader) -> None:
    assert shop.ids(prefix="db/") == ["db", "db/query"]
    assert shop.ids(prefix="db") == ["db", "db/query", "dbx"]
    assert shop.ids(prefix="db/index") == ["db"]
    assert shop.ids(prefix="DB/") == []
    assert len(shop.ids(prefix="")) == 4


@requirement("list.type", "list.and")
def test_filters_must_all_hold(shop: Reader) -> None:
    assert shop.ids(type="index") == ["db", "dbx"]
    assert shop.ids(type="Index") == []
    assert shop.ids(type="ind") == []
    assert shop.ids(type="index", search="else") == ["dbx"]
    assert shop.ids(type="index", search="rows", prefix="db/") == ["db"]
    assert shop.ids(type="how-to", prefix="mail/") == []


@requirement("shared.skills-list")
def test_the_shared_list_has_the_fields_of_both_generations(shop: Reader) -> None:
    rows = {row["id"]: row for row in shop.call("skills::list")["skills"]}

    assert list(rows) == sorted(rows)
    row = rows["db/query"]
    assert row == shop.rows()["db/query"] | {"registered_at": row["modified_at"], "source": "folder"}
    assert all("body" not in row and "skill" not in row for row in rows.values())
