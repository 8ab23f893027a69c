"""Registering skills: what is taken, what is refused, and where it is found afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest
from tests.registered.stage import unique

from iii_directory.text import nanoseconds_of

if TYPE_CHECKING:
    from tests.registered.stage import House

KIB = 1024
LONGEST_SEGMENT = "s" * 64
LONGEST_ID = "/".join([*["a" * 63] * 15, "b" * 64])  # 15 * 64 + 64 bytes


def register(house: House, skill_id: str, body: str = "# A title\n\nA line.\n") -> dict[str, Any]:
    return house.call("skills::register", id=skill_id, skill=body)


# What is taken


def test_a_registered_skill_is_read_back_verbatim_through_every_door(house: House) -> None:
    skill_id, body = unique("demo"), "---\ntitle: T\n---\n# Ünïcode ✓\r\n\nA line. \n\n"
    register(house, skill_id, body)
    reply = house.call("directory::skills::get", id=skill_id, raw=True)
    assert reply["raw"] == body
    assert reply["body"] == "# Ünïcode ✓\r\n\nA line. \n\n"
    assert house.read(f"iii://{skill_id}") == {
        "uri": f"iii://{skill_id}",
        "mimeType": "text/markdown",
        "text": body,
        "_meta": ANY,
    }
    for door in ("skill::fetch", "skills::fetch_skill", "directory::skills::fetch-skill"):
        assert house.call(door, uri=f"iii://{skill_id}") == f"# iii://{skill_id}\n\n{body.rstrip()}"


def test_the_reply_names_the_id_and_a_time_with_sub_seconds(house: House) -> None:
    skill_id = unique("demo")
    reply = register(house, skill_id)
    assert reply.keys() == {"id", "registered_at"}
    assert reply["id"] == skill_id
    assert nanoseconds_of(reply["registered_at"]) is not None
    assert "." in reply["registered_at"]


def test_the_record_in_iii_state_has_the_reference_shape_and_names_the_registrant(house: House) -> None:
    skill_id = unique("demo")
    reply = register(house, skill_id, "# x")
    stored = house.stored(skill_id)
    own = {"id": skill_id, "skill": "# x", "registered_at": reply["registered_at"]}
    assert stored == own | {"worker_id": ANY, "worker": house.client.name, "seal": ANY}
    workers = house.call("engine::workers::list")["workers"]
    assert [row["name"] for row in workers if row["id"] == stored["worker_id"]] == [house.client.name]


def test_a_row_of_the_list_has_the_fields_of_both_generations_and_no_body(house: House) -> None:
    skill_id = unique("demo")
    body = "---\ntype: how-to\nfunction_id: demo::x\n---\n# Ä title\n\nA line.\n"
    reply = register(house, skill_id, body)
    assert house.skill_rows()[skill_id] == {
        "id": skill_id,
        "title": "Ä title",
        "type": "how-to",
        "function_id": "demo::x",
        "description": "A line.",
        "bytes": len(body.encode()),
        "registered_at": reply["registered_at"],
        "modified_at": reply["registered_at"],
        "source": "registered",
        "provenance": {
            "kind": "registered",
            "worker": house.client.name,
            "worker_id": house.stored(skill_id)["worker_id"],
            "since": reply["registered_at"],
            "state": "connected",
        },
    }


def test_registering_again_replaces_the_body_and_refreshes_the_time(house: House) -> None:
    skill_id = unique("demo")
    first = register(house, skill_id, "# one")["registered_at"]
    second = register(house, skill_id, "# two")["registered_at"]
    assert second > first
    assert house.call("directory::skills::get", id=skill_id)["body"] == "# two"
    assert house.skill_rows()[skill_id]["registered_at"] == second
    assert [row["id"] for row in house.state() if row["id"] == skill_id] == [skill_id]


def test_registering_the_same_body_again_refreshes_the_time(house: House) -> None:
    skill_id = unique("demo")
    first = register(house, skill_id)["registered_at"]
    assert register(house, skill_id)["registered_at"] > first


@pytest.mark.parametrize(
    "skill_id",
    [
        "a",
        "0-_",
        LONGEST_SEGMENT,
        f"deep/{LONGEST_SEGMENT}",
        LONGEST_ID,
        "docs/fn",
        "fn-reference",
        "directory",
        "x/skills",
        "console",
    ],
)
def test_an_id_within_the_grammar_is_taken(house: House, skill_id: str) -> None:
    register(house, skill_id)
    assert house.call("directory::skills::get", id=skill_id)["id"] == skill_id
    assert house.call("skills::unregister", id=skill_id) == {"id": skill_id, "removed": True}


def test_a_body_may_be_as_large_as_the_limit(house: House) -> None:
    skill_id, body = unique("large"), "ä" * (128 * KIB)
    register(house, skill_id, body)
    assert house.call("directory::skills::get", id=skill_id)["body"] == body
    assert house.skill_rows()[skill_id]["bytes"] == 256 * KIB


def test_unknown_fields_are_ignored(house: House) -> None:
    skill_id = unique("demo")
    house.call("skills::register", id=skill_id, skill="# x", colour="red")
    assert house.stored(skill_id).keys() == {"id", "skill", "registered_at", "worker_id", "worker", "seal"}


# What is refused

REFUSED = [
    ("", "D111", "id must be non-empty"),
    ("  ", "D111", "id must be non-empty"),
    ("Demo", "D111", "lowercase"),
    ("de mo", "D111", "lowercase"),
    ("démo", "D111", "lowercase"),
    ("demo.md", "D111", "lowercase"),
    ("a::b", "D111", "lowercase"),
    ("demo\n", "D111", "lowercase"),
    ("x" * 65, "D111", "too long"),
    (f"{LONGEST_ID}c", "D111", "too long"),
    ("/demo", "D111", "empty segment"),
    ("demo/", "D111", "empty segment"),
    ("de//mo", "D111", "empty segment"),
    ("fn", "D111", "reserved"),
    ("fn/x", "D111", "reserved"),
    ("skills", "D111", "reserved"),
    ("directory/skills", "D111", "reserved"),
]


@pytest.mark.parametrize(("skill_id", "code", "words"), REFUSED)
def test_an_id_that_breaks_the_grammar_is_refused_and_nothing_is_written(
    house: House, skill_id: str, code: str, words: str
) -> None:
    before = house.state()
    sentence = house.refusal("skills::register", id=skill_id, skill="# x")
    assert sentence.startswith(f"{code} invalid_input: ")
    assert words in sentence
    assert house.state() == before


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"skill": "# x"}, "D100 invalid_input: field 'id'"),
        ({"id": 5, "skill": "# x"}, "D100 invalid_input: field 'id'"),
        ({"id": None, "skill": "# x"}, "D100 invalid_input: field 'id'"),
        ({"id": "demo"}, "D100 invalid_input: field 'skill'"),
        ({"id": "demo", "skill": ["# x"]}, "D100 invalid_input: field 'skill'"),
        ({"id": "demo", "skill": ""}, "D113 invalid_input: skill must be non-empty"),
        ({"id": "demo", "skill": " \n\t"}, "D113 invalid_input: skill must be non-empty"),
        ({"id": "demo", "skill": "x" * (256 * KIB + 1)}, "too large"),
        ({"id": "demo", "skill": "ä" * (128 * KIB) + "x"}, "too large"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_written(
    house: House, fields: dict[str, Any], words: str
) -> None:
    before = house.state()
    sentence = house.refusal("skills::register", fields)
    assert words in sentence
    assert house.state() == before


def test_a_refused_registration_leaves_the_skill_that_was_there(house: House) -> None:
    skill_id = unique("demo")
    register(house, skill_id, "# kept")
    house.refusal("skills::register", id=skill_id, skill="")
    assert house.call("directory::skills::get", id=skill_id)["body"] == "# kept"


def test_an_error_is_one_sentence_without_a_trace(house: House) -> None:
    sentence = house.refusal("skills::register", id="fn", skill="# x")
    assert "Traceback" not in sentence
    assert "\n" not in sentence
    assert ".py" not in sentence


# Removing


def test_unregistering_removes_it_everywhere(house: House) -> None:
    skill_id = unique("demo")
    register(house, skill_id)
    assert house.call("skills::unregister", id=skill_id) == {"id": skill_id, "removed": True}
    assert skill_id not in house.skill_rows()
    assert house.stored(skill_id) is None
    assert "not found" in house.refusal("skills::resources-read", uri=f"iii://{skill_id}")


def test_unregistering_a_missing_skill_is_not_an_error(house: House) -> None:
    skill_id = unique("never")
    assert house.call("skills::unregister", id=skill_id) == {"id": skill_id, "removed": False}


@pytest.mark.parametrize(("skill_id", "code", "words"), REFUSED[:-2])
def test_unregistering_a_bad_id_is_refused(house: House, skill_id: str, code: str, words: str) -> None:
    assert words in house.refusal("skills::unregister", id=skill_id)


def test_unregistering_needs_an_id(house: House) -> None:
    assert "D100 invalid_input: field 'id'" in house.refusal("skills::unregister", {})


# The tree


def test_orphans_and_depth_are_shown_in_the_tree_parents_first(own_house: House) -> None:
    for skill_id in ("b/c/d", "b", "a-z", "a/x/y", "b/c", "a"):
        register(own_house, skill_id, f"# Title of {skill_id}\n\nAbout {skill_id}.\n")
    tree = own_house.read("iii://skills")["text"]
    assert tree.startswith("# Skills\n")
    lines = [line for line in tree.splitlines() if "](iii://" in line and "iii-directory" not in line]
    mark = f" (registered by {own_house.client.name})"
    assert all(line.endswith(mark) for line in lines)
    assert [line.removesuffix(mark) for line in lines] == [
        "- [`a`](iii://a) — Title of a — About a.",
        "    - [`a/x/y`](iii://a/x/y) — Title of a/x/y — About a/x/y.",
        "- [`a-z`](iii://a-z) — Title of a-z — About a-z.",
        "- [`b`](iii://b) — Title of b — About b.",
        "  - [`b/c`](iii://b/c) — Title of b/c — About b/c.",
        "    - [`b/c/d`](iii://b/c/d) — Title of b/c/d — About b/c/d.",
    ]
    assert own_house.read("iii://directory/skills")["text"] == tree


def test_lists_are_sorted_by_id_as_plain_strings(own_house: House) -> None:
    for skill_id in ("b", "a/x", "a-z", "a", "a_b", "a0"):
        register(own_house, skill_id)
    assert list(own_house.skill_rows()) == ["a", "a-z", "a/x", "a0", "a_b", "b"]
    resources = own_house.call("skills::resources-list")["resources"]
    assert resources[0]["uri"] == "iii://skills"
    uris = [row["uri"] for row in resources[1:]]
    assert uris == sorted(uris)


def test_a_long_description_is_cut_in_the_tree(own_house: House) -> None:
    register(own_house, "long", f"# Long\n\n{'x' * 141}\n")
    assert (
        f"— {'x' * 140}... (registered by {own_house.client.name})\n"
        in own_house.read("iii://skills")["text"]
    )


def test_resources_are_shaped_for_mcp_clients(house: House) -> None:
    skill_id = unique("demo")
    register(house, skill_id, "no title")
    resources = house.call("skills::resources-list")["resources"]
    assert resources[0].keys() == {"uri", "name", "description", "mimeType"}
    (row,) = [row for row in resources if row["uri"] == f"iii://{skill_id}"]
    expected = {"uri": f"iii://{skill_id}", "name": skill_id, "mimeType": "text/markdown"}
    assert row == expected | {"_meta": ANY}
    templates = house.call("skills::resources-templates")["resourceTemplates"]
    assert [row["uriTemplate"] for row in templates] == ["iii://{skill_id}", "iii://fn/{function_path}"]


# One catalogue


def test_a_file_wins_over_a_registration_and_the_diagnostics_say_so(house: House) -> None:
    skill_id = unique("both")
    register(house, skill_id, "# registered")
    (house.folder / f"{skill_id}.md").write_text("# from the folder\n", encoding="utf-8")
    assert house.call("directory::skills::get", id=skill_id)["body"] == "# from the folder\n"
    (finding,) = [
        row
        for row in house.call("directory::diagnostics")["findings"]
        if row["subject"] == f"registered skill {skill_id}"
    ]
    assert finding["kind"] == "shadowed"
    (house.folder / f"{skill_id}.md").unlink()
    assert house.call("directory::skills::get", id=skill_id)["body"] == "# registered"


def test_an_overview_is_found_by_the_name_of_its_folder(house: House) -> None:
    worker = unique("worker")
    register(house, f"{worker}/index", "# Overview")
    assert house.read(f"iii://{worker}")["text"] == "# Overview"
    assert house.call("directory::skills::get", id=worker)["id"] == worker


def test_registered_skills_appear_in_the_index_of_workers(house: House) -> None:
    worker = unique("worker")
    register(house, worker, "# The worker\n\nWhat it does.\n")
    body = house.call("directory::skills::index")["body"]
    # With what other tests left there it may be past its budget, and then each has a line.
    assert (
        f'directory::skills::get {{ "id": "{worker}" }}' in body
        or f"\n- {worker} (registered by {house.client.name}): What it does.\n" in body
    )


def test_a_typo_of_a_registered_id_is_answered_with_the_id(house: House) -> None:
    register(house, "registered-sandbox")
    sentence = house.refusal("directory::skills::get", id="registered-sanbox")
    assert "Did you mean: registered-sandbox" in sentence
