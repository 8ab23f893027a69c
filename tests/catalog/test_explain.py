"""Why a document is served as it is, or is not: the rules that leave no finding, and who is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.explain import explanation
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.documents.model import Finding
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_DESCRIPTION_CHARS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.folders import Folder


def explained(skills: Folder, asked: str, *beside: Finding, local: Path | None = None) -> dict[str, Any]:
    catalogue = Catalogue(FolderSource(skills.root, local))
    try:
        return explanation(catalogue.load(), {"id": asked}, beside)
    finally:
        catalogue.close()


def kinds(reply: dict[str, Any]) -> list[str]:
    return [rule["kind"] for rule in reply["rules"]]


def test_a_document_that_no_rule_touched_is_served_and_that_is_all(skills: Folder) -> None:
    skills.document("tea/SKILL.md", "Tea")

    reply = explained(skills, "tea")

    assert (reply["served"], reply["id"], reply["rules"]) == (True, "tea", [])
    assert reply["summary"] == "'tea' is served from tea/SKILL.md"


@pytest.mark.parametrize(
    "asked", ["iii://tea", "skill://tea/SKILL.md", "./tea/", "skills/tea/SKILL.md", "TEA"]
)
def test_explain_understands_every_spelling_that_reading_does(skills: Folder, asked: str) -> None:
    skills.document("tea/SKILL.md", "Tea")

    assert explained(skills, asked)["id"] == "tea"


def test_a_description_that_lists_and_the_index_cut_is_told_of(skills: Folder) -> None:
    skills.write("tea/SKILL.md", f"---\ndescription: {'word ' * (MAX_DESCRIPTION_CHARS // 4)}\n---\nText.\n")

    rules = explained(skills, "tea")["rules"]

    assert [rule["kind"] for rule in rules] == ["cut", "cut"]
    assert "lists show" in rules[0]["reason"]
    assert "the index cuts" in rules[1]["reason"]


def test_a_document_of_a_skill_is_said_to_be_part_of_it(skills: Folder) -> None:
    skills.document("tea/SKILL.md", "Tea")
    skills.document("tea/green.md", "Green")

    (rule,) = explained(skills, "tea/green")["rules"]

    assert rule["kind"] == "index"
    assert "part of the skill 'tea'" in rule["reason"]


def test_a_skill_for_people_alone_is_said_to_be_one(skills: Folder) -> None:
    skills.write("tea/SKILL.md", "---\ndescription: Tea.\ndisable-model-invocation: true\n---\nText.\n")

    assert kinds(explained(skills, "tea")) == ["for_people"]


def test_a_folder_above_that_is_not_read_is_the_reason(skills: Folder) -> None:
    skills.write(".hidden/tea.md", "Text.")

    reply = explained(skills, ".hidden/tea.md")

    assert (reply["served"], kinds(reply)) == (False, ["skipped"])
    assert reply["rules"][0]["subject"] == ".hidden"


def test_a_file_of_no_skill_is_told_what_it_lacks(skills: Folder) -> None:
    skills.write("pictures/cup.png", "x")

    reply = explained(skills, "pictures/cup.png")

    assert (reply["served"], kinds(reply)[-1]) == (False, "file")
    assert "SKILL.md" in reply["rules"][-1]["fix"]


def test_a_namespace_that_a_layer_above_replaces_is_the_reason(skills: Folder, tmp_path: Path) -> None:
    local = tmp_path / "local"
    (local / "tea").mkdir(parents=True)
    (local / "tea" / "SKILL.md").write_text("Mine.\n", encoding="utf-8")
    skills.document("tea/green.md", "Green")

    reply = explained(skills, "tea/green", local=local)

    assert "shadowed" in kinds(reply)
    assert reply["summary"].startswith("no document is served as 'tea/green'; 'tea' is given instead")


def test_a_prompt_is_found_by_its_name(skills: Folder) -> None:
    skills.write("tea/prompts/brew.md", "---\nname: brew\ndescription: Brews.\n---\nText.\n")

    reply = explained(skills, "brew")

    assert (reply["id"], reply["summary"]) == ("brew", "'brew' is a prompt, served from tea/prompts/brew.md")


def test_explain_also_shows_findings_that_the_view_does_not_have(skills: Folder) -> None:
    skills.document("tea/SKILL.md", "Tea")
    edited = Finding("edited", "tea/SKILL.md", "it was edited by hand", "restore it", urgent=False)

    assert kinds(explained(skills, "tea", edited)) == ["edited"]


def test_an_address_of_another_scheme_is_refused(skills: Folder) -> None:
    with pytest.raises(DirectoryError, match="does not start with iii://"):
        explained(skills, "https://example.org/x")
