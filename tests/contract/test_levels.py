"""The table ``visibility``: how much of each skill is offered, at every door that lists or reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.reader import Reader

TABLE = {"named*": "name", "quiet": "manual", "gone": "off", "named": "off"}
NAMES = ("open", "named", "quiet", "gone")


@pytest.fixture
def directory(start: Callable[..., Reader]) -> Reader:
    directory = start(visibility=TABLE)
    for name in NAMES:
        text = f"---\nname: {name}\ndescription: Bakes {name} bread.\n---\n# {name}\n"
        directory.skills.write(f"{name}/SKILL.md", text)
        directory.skills.write(f"{name}/pages/more.md", "# More about bread\n")
        directory.skills.write(f"{name}/prompts/ask-{name}.md", "---\ndescription: Asks.\n---\nAsk.\n")
    return directory


def ours(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith("iii-directory")]


@requirement("visibility.levels")
def test_lists_leave_out_what_is_manual_or_off(directory: Reader) -> None:
    rows = directory.call("directory::skills::list", kind="skill")["skills"]
    described = {row["id"]: row["description"] for row in rows if row["id"] != "iii-directory"}

    assert described == {"open": "Bakes open bread.", "named": ""}
    every = [row["id"] for row in directory.call("directory::skills::list")["skills"]]
    assert ours(every) == ["named", "named/pages/more", "open", "open/pages/more"]
    assert ours([row["id"] for row in directory.call("skills::list")["skills"]]) == ours(every)


@requirement("visibility.levels")
def test_the_index_resources_and_prompts_leave_out_the_same(directory: Reader) -> None:
    index = directory.call("directory::skills::index")["body"]
    uris = [row["uri"] for row in directory.call("skills::resources-list")["resources"]]
    prompts = {row["name"]: row["description"] for row in directory.call("prompts::mcp-list")["prompts"]}

    assert "Bakes open bread." in index
    assert "named" in index
    assert "Bakes named bread." not in index
    assert "quiet" not in index
    assert "gone" not in index
    assert "iii://open" in uris
    assert not [uri for uri in uris if "quiet" in uri or "gone" in uri]
    assert prompts["ask-open"] == "Asks."
    assert prompts["ask-named"] == ""
    assert "ask-quiet" not in prompts
    assert "ask-gone" not in prompts


@requirement("visibility.levels")
def test_search_finds_nothing_that_is_manual_or_off(directory: Reader) -> None:
    reply = str(directory.call("directory::search", query="bread", limit=20))

    assert "'open'" in reply
    assert "quiet" not in reply
    assert "gone" not in reply


@requirement("visibility.levels")
def test_what_is_manual_is_read_by_name_and_what_is_off_is_not(directory: Reader) -> None:
    assert directory.call("directory::skills::get", id="quiet")["title"] == "quiet"
    assert directory.call("directory::skills::get", id="quiet/pages/more")["id"] == "quiet/pages/more"
    assert "# quiet" in directory.call("skill::fetch", uri="iii://quiet")
    assert directory.call("directory::prompts::get", name="ask-quiet")["body"]
    assert "not found" in directory.refusal("directory::skills::get", id="gone")
    assert "not found" in directory.refusal("directory::skills::get", id="gone/pages/more")
    assert "not found" in directory.refusal("directory::prompts::get", name="ask-gone")


@requirement("visibility.levels")
@pytest.mark.parametrize(("name", "level"), [("named", "name"), ("quiet", "manual"), ("gone", "off")])
def test_an_explanation_names_the_rule(directory: Reader, name: str, level: str) -> None:
    rules = directory.call("directory::skills::explain", id=name)["rules"]

    (rule,) = [rule for rule in rules if rule["kind"] == "visibility"]
    assert f"says {level} for" in rule["reason"]
    assert f"skills enable {name}" in rule["fix"]


@requirement("visibility.levels")
def test_a_changed_document_keeps_its_level(directory: Reader) -> None:
    assert directory.call("directory::skills::list", prefix="quiet")["skills"] == []

    directory.skills.write("quiet/SKILL.md", "# Louder\n")
    directory.skills.write("quiet/new.md", "# New\n")

    assert directory.call("directory::skills::list", prefix="quiet")["skills"] == []
    assert directory.call("directory::skills::get", id="quiet")["title"] == "Louder"
