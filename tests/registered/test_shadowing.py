"""What the operator wrote is read by its address, whatever strangers register beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from iii import InvocationError
from tests.registered.stage import unique

if TYPE_CHECKING:
    from tests.registered.stage import House

# What the folder has, what a stranger registers, and by which id everybody reads it.
PAIRS = [
    ("{0}/SKILL.md", "{0}"),
    ("{0}/index.md", "{0}"),
    ("{0}.md", "{0}/index"),
    ("{0}/a/SKILL.md", "{0}/a"),
]


RESERVED = ["iii", "iii-directory", "iii-directory/index", "iii/engine", "iii-directory/x"]


@pytest.mark.parametrize("first", ["file", "registration"])
@pytest.mark.parametrize(("path", "registered"), PAIRS)
def test_a_registration_takes_no_file_s_place_at_any_door(
    house: House, path: str, registered: str, first: str
) -> None:
    name = unique("ns")
    path, registered = path.format(name), registered.format(name)
    file = house.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if first == "file":
        file.write_text("# Of the operator\n", encoding="utf-8")
    house.call("skills::register", id=registered, skill="# Of a stranger")
    if first == "registration":
        assert house.call("directory::skills::get", id=registered)["body"] == "# Of a stranger"
        file.write_text("# Of the operator\n", encoding="utf-8")

    read_as = registered.removesuffix("/index")
    assert house.call("directory::skills::get", id=read_as)["body"] == "# Of the operator\n"
    assert house.read(f"iii://{read_as}")["text"] == "# Of the operator\n"
    assert "# Of the operator" in house.call("skill::fetch", uri=f"iii://{read_as}")
    rows = [row for row in house.call("directory::skills::list", prefix=name)["skills"] if row["title"]]
    assert [row["title"] for row in rows] == ["Of the operator"]
    listed = [row["name"] for row in house.call("skills::resources-list")["resources"] if name in row["uri"]]
    assert listed == ["Of the operator"]
    assert "stranger" not in house.call("directory::skills::index")["body"]
    findings = house.call("directory::diagnostics")["findings"]
    (finding,) = [row for row in findings if row["subject"] == f"registered skill {registered}"]
    assert finding["kind"] == "shadowed"
    assert path in finding["reason"]

    file.unlink()
    assert house.call("directory::skills::get", id=registered)["body"] == "# Of a stranger"
    house.call("skills::unregister", id=registered)


@pytest.mark.parametrize("skill_id", RESERVED)
def test_no_worker_registers_in_the_name_of_the_engine_or_the_directory(house: House, skill_id: str) -> None:
    with pytest.raises(InvocationError, match=r"D111 .*reserved"):
        house.call("skills::register", id=skill_id, skill="# Mine")
