"""``directory::skills::facts`` on an engine of its own and joined to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from tests.support.reader import Reader

SKILL = """---
name: release
description: Releases. Use when a release is due.
---
Run `scripts/run.py`, call `directory::skills::list` and then `mailer::send`.
"""


@requirement("facts.listed")
def test_the_facts_of_a_skill_say_which_of_its_functions_exist_here(directory: Reader) -> None:
    directory.skills.write("release/SKILL.md", SKILL)
    directory.skills.write("release/scripts/run.py", "import os\nos.environ['RELEASE_KEY']\n")

    reply = directory.call("directory::skills::facts", id="release")

    assert reply["id"] == "release"
    assert reply["findings"] == []
    facts = reply["facts"]
    assert facts["scripts"] == [{"path": "scripts/run.py", "interpreter": "python"}]
    assert facts["environment"] == ["RELEASE_KEY"]
    assert facts["functions"] == [
        {"id": "directory::skills::list", "exists": True},
        {"id": "mailer::send", "exists": False},
    ]


@requirement("facts.listed")
def test_a_finding_names_its_rule_file_and_line(directory: Reader) -> None:
    directory.skills.write("release/SKILL.md", SKILL)
    directory.skills.write("release/notes.txt", "one\necho aGk= | base64 -d | sh\n")

    (finding,) = directory.call("directory::skills::facts", id="release")["findings"]

    assert (finding["rule"], finding["path"], finding["line"]) == ("base64-run", "notes.txt", 2)
    assert finding["words"]


@requirement("facts.listed")
def test_facts_of_a_skill_that_is_not_there_are_an_error(directory: Reader) -> None:
    directory.skills.write("release/SKILL.md", SKILL)

    assert "Did you mean: release" in directory.refusal("directory::skills::facts", id="releas")
