"""What the listings answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.catalog.worlds import WHEN, of_files, of_paths, parsed, parsed_records
from tests.support.folders import no_watcher

from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.skill_replies import (
    directory_prompt_row,
    list_skills,
    mcp_prompt_row,
    plain_prompt_row,
    plain_row,
    prompt,
    resource_rows,
    skill,
)
from iii_directory.catalog.snapshot import EMPTY, Snapshot
from iii_directory.documents.model import ParsedFile, Prompt, PromptArgument, Provenance

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.catalog.view import CatalogueView

FILE = {"kind": "file"}
META = {"dev.iii.directory/provenance": FILE}
REGISTERED = Provenance("registered", worker="mail", worker_id="w1")

QUERY = "---\ntitle: Query\ntype: how-to\nfunction_id: db::query\n---\nRuns a QUERY.\n"


@pytest.fixture
def shop() -> Snapshot:
    return of_files(
        db__SKILL="# Database\n\nStores things.\n", db__query=QUERY, mail__index="# Mail\n\nSends letters.\n"
    )


def ids(snapshot: Snapshot, **filters: Any) -> list[str]:
    return [row["id"] for row in list_skills(snapshot, **filters)]


def test_a_row_of_the_directory_has_these_fields(shop: Snapshot) -> None:
    assert list_skills(shop, prefix="db/query") == [
        {
            "id": "db/query",
            "title": "Query",
            "type": "how-to",
            "function_id": "db::query",
            "description": "Runs a QUERY.",
            "bytes": len(QUERY),
            "modified_at": WHEN,
            "provenance": FILE,
        }
    ]


def test_rows_are_sorted_by_id_in_plain_order() -> None:
    assert ids(of_paths("b.md", "a/b.md", "a-b.md", "a.md", "a_b.md", "a0.md")) == [
        "a",
        "a-b",
        "a/b",
        "a0",
        "a_b",
        "b",
    ]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("query", ["db/query"]),
        ("STORES", ["db"]),
        ("database", ["db"]),
        ("db", ["db", "db/query"]),
        ("nothing", []),
        ("", ["db", "db/query", "mail"]),
        ("letters", ["mail"]),
    ],
)
def test_a_search_looks_into_id_title_and_description_in_any_case(
    shop: Snapshot, search: str, found: list[str]
) -> None:
    assert ids(shop, search=search) == found


def test_a_search_without_descriptions_does_not_look_into_them(shop: Snapshot) -> None:
    assert ids(shop, search="letters", include_description=False) == []
    assert ids(shop, search="mail", include_description=False) == ["mail"]


def test_a_prefix_is_of_the_id_on_disk_so_a_folder_finds_its_overview(shop: Snapshot) -> None:
    assert ids(shop, prefix="db/") == ["db", "db/query"]
    assert ids(shop, prefix="db/q") == ["db/query"]
    assert ids(shop, prefix="query") == []


def test_a_type_is_matched_exactly(shop: Snapshot) -> None:
    assert ids(shop, type_="how-to") == ["db/query"]
    assert ids(shop, type_="how") == []


def test_a_listed_skill_passes_every_filter(shop: Snapshot) -> None:
    assert ids(shop, search="query", prefix="db/", type_="how-to") == ["db/query"]
    assert ids(shop, search="query", prefix="mail") == []


def test_without_descriptions_the_field_stays_and_is_empty(shop: Snapshot) -> None:
    rows = list_skills(shop, include_description=False)

    assert [row["description"] for row in rows] == [""] * 3
    assert list(rows[0]) == list(list_skills(shop)[0])


def test_unfiltered_rows_are_made_once(shop: Snapshot) -> None:
    assert list_skills(shop) is list_skills(shop)
    assert list_skills(shop, include_description=False) is list_skills(shop, include_description=False)


def test_a_document_with_broken_front_matter_still_has_a_row() -> None:
    rows = list_skills(of_files(a="---\ntitle: [\n---\n# From body\n", b="---\n{\n---\ntext"))

    assert [(row["id"], row["title"]) for row in rows] == [("a", "From body"), ("b", "b")]


def test_a_row_of_the_registry_has_the_fields_of_both_generations(shop: Snapshot) -> None:
    snapshot = shop.changed(registered=parsed_records({"mine": "# Mine\n\nT\u00e9xt.\n"}))
    rows = {row["id"]: row for row in snapshot.skills.column(plain_row)}

    assert list(rows) == ["db", "db/query", "mail", "mine"]
    assert rows["mine"] == {
        "id": "mine",
        "title": "Mine",
        "type": None,
        "function_id": None,
        "description": "T\u00e9xt.",
        "bytes": 15,
        "registered_at": WHEN,
        "modified_at": WHEN,
        "source": "registered",
        "provenance": {
            "kind": "registered",
            "worker": "unknown",
            "worker_id": "unknown",
            "since": WHEN,
            "state": "unknown",
        },
    }
    assert rows["db"]["source"] == "folder"
    assert rows["db"]["registered_at"] == rows["db"]["modified_at"]


def test_resources_are_the_index_and_every_skill_without_nulls(shop: Snapshot) -> None:
    rows = resource_rows(shop)

    assert (rows[0]["uri"], rows[0]["name"], rows[0]["mimeType"]) == (
        "iii://skills",
        "skills",
        "text/markdown",
    )
    assert rows[0]["description"]
    assert rows[1:] == [
        {"uri": "iii://db", "name": "Database", "mimeType": "text/markdown", "_meta": META},
        {"uri": "iii://db/query", "name": "Query", "mimeType": "text/markdown", "_meta": META},
        {"uri": "iii://mail", "name": "Mail", "mimeType": "text/markdown", "_meta": META},
    ]


def test_a_skill_behind_the_index_is_reached_by_its_full_id_or_not_at_all() -> None:
    overview = of_paths("skills/index.md", "directory/skills/SKILL.md")
    plain = of_paths("skills.md", "directory/skills.md")

    assert [row["uri"] for row in resource_rows(overview)[1:]] == [
        "iii://directory/skills/index",
        "iii://skills/index",
    ]
    assert resource_rows(plain)[1:] == []


def view_of(root: Path, path: str, content: str) -> CatalogueView:
    file = root / path
    file.parent.mkdir(parents=True)
    file.write_text(content)
    return Catalogue(FolderSource(root, watcher=no_watcher)).load()


def test_a_read_has_no_description_and_the_id_on_display(tmp_path: Path) -> None:
    view = view_of(tmp_path, "db/SKILL.md", "# Database\n\nStores things.\n")

    reply = skill(view, {"id": "db/index"})

    assert isinstance(reply, dict)
    assert reply.pop("modified_at")
    assert reply == {
        "id": "db",
        "title": "Database",
        "type": None,
        "function_id": None,
        "body": "# Database\n\nStores things.\n",
        "provenance": FILE | {"root": "skills"},
        "skill": "db",
        "front_matter": {},
        "files": 1,
    }


# Prompts


@pytest.fixture
def prompts() -> Snapshot:
    arguments = (PromptArgument("to", "Who", required=True), PromptArgument("cc"))
    registered = Prompt("send", "Sends.", WHEN, REGISTERED, None, "mail::render", arguments)
    files = {"mail/prompts/ask.md": b"---\ndescription: Asks.\narguments: [what]\n---\nAsk.\n"}
    return EMPTY.changed(parsed(files), {"prompt:send": ParsedFile(prompt=registered)})


def test_prompts_of_both_sources_are_listed_by_name(prompts: Snapshot) -> None:
    assert prompts.prompts.column(directory_prompt_row) == [
        {"name": "ask", "description": "Asks.", "modified_at": WHEN, "provenance": FILE},
        {"name": "send", "description": "Sends.", "modified_at": WHEN, "provenance": REGISTERED.as_json()},
    ]


def test_a_row_of_the_prompt_registry_counts_arguments(prompts: Snapshot) -> None:
    assert prompts.prompts.column(plain_prompt_row) == [
        {
            "name": name,
            "description": description,
            "function_id": function_id,
            "arguments": count,
            "registered_at": WHEN,
            "modified_at": WHEN,
            "source": source,
            "provenance": provenance,
        }
        for name, description, function_id, count, source, provenance in [
            ("ask", "Asks.", None, 1, "folder", FILE),
            ("send", "Sends.", "mail::render", 2, "registered", REGISTERED.as_json()),
        ]
    ]


def test_prompts_for_mcp_carry_their_arguments_without_nulls(prompts: Snapshot) -> None:
    assert prompts.prompts.column(mcp_prompt_row) == [
        {
            "name": "ask",
            "description": "Asks.",
            "arguments": [{"name": "what", "required": False}],
            "_meta": META,
        },
        {
            "name": "send",
            "description": "Sends.",
            "arguments": [
                {"name": "to", "required": True, "description": "Who"},
                {"name": "cc", "required": False},
            ],
            "_meta": {"dev.iii.directory/provenance": REGISTERED.as_json()},
        },
    ]


def test_a_read_of_a_prompt_has_these_fields(tmp_path: Path) -> None:
    view = view_of(tmp_path, "mail/prompts/ask.md", "---\ndescription: Asks.\n---\nAsk.\n")

    reply = prompt(view, {"name": "ask"})

    assert reply.pop("modified_at")
    assert reply == {
        "name": "ask",
        "description": "Asks.",
        "body": "Ask.\n",
        "provenance": FILE | {"root": "skills"},
    }
