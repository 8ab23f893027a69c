"""The name that a skill gives itself is an address, where no id has that name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from tests.support.reader import Reader


def skill(name: str) -> str:
    return f"---\nname: {name}\ndescription: Use when needed.\n---\n# {name}\n"


@requirement("names.addresses")
def test_a_skill_is_read_by_the_name_it_gives_itself(directory: Reader) -> None:
    directory.skills.write("react/SKILL.md", skill("vercel-react"))
    directory.skills.write("react/rules/lists.md", "# Lists\n")
    directory.skills.write("react/run.sh", "echo")

    assert directory.call("directory::skills::get", id="vercel-react")["id"] == "react"
    assert (
        directory.call("directory::skills::get", id="vercel-react/rules/lists")["id"] == "react/rules/lists"
    )
    assert directory.call("directory::skills::files", id="vercel-react")["id"] == "react"
    assert directory.call("directory::skills::file", id="vercel-react", path="run.sh")["content"] == "echo"
    assert "# vercel-react" in directory.call("skill::fetch", uri="iii://vercel-react")
    assert directory.call("directory::skills::facts", id="vercel-react")["id"] == "react"


@requirement("names.addresses")
def test_an_id_comes_before_a_name(directory: Reader) -> None:
    directory.skills.write("a/SKILL.md", skill("b"))
    directory.skills.write("b/SKILL.md", skill("c"))

    assert directory.call("directory::skills::get", id="b")["id"] == "b"


@requirement("names.addresses")
def test_two_skills_of_one_name_are_both_named(directory: Reader) -> None:
    directory.skills.write("a/SKILL.md", skill("twin"))
    directory.skills.write("b/SKILL.md", skill("twin"))

    sentence = directory.refusal("directory::skills::get", id="twin")

    assert "2 skills are called 'twin': 'a', 'b'" in sentence
