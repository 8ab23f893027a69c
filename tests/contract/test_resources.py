"""§4: skills as MCP resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from tests.support.reader import Reader

META = {"dev.iii.directory/provenance": {"kind": "file", "root": "skills"}}


@requirement("resources.list")
def test_every_skill_is_a_resource_behind_the_index(directory: Reader) -> None:
    directory.skills.write("b/index.md", "---\ntitle: Bee\n---\nText.\n")
    directory.skills.write("a/b/c.md", "# Deep\n\nText.\n")

    resources = directory.call("skills::resources-list")["resources"]
    mine = [row for row in resources if "iii-directory" not in row["uri"]]

    assert mine[0].items() >= {"uri": "iii://skills", "name": "skills", "mimeType": "text/markdown"}.items()
    assert mine[0]["description"]
    assert mine[1:] == [
        {"uri": "iii://a/b/c", "name": "Deep", "mimeType": "text/markdown", "_meta": META},
        {"uri": "iii://b", "name": "Bee", "mimeType": "text/markdown", "_meta": META},
    ]
    assert [row["uri"] for row in resources[1:]] == sorted(row["uri"] for row in resources[1:])
    assert no_nulls(resources)


@requirement("resources.read")
def test_a_resource_is_read_under_the_address_it_was_asked_by(directory: Reader) -> None:
    directory.skills.write("db/index.md", "---\ntype: index\n---\n# DB\n\nText. \n")

    for uri in ("iii://db", "iii://db/index"):
        assert directory.call("skills::resources-read", uri=uri) == {
            "contents": [{"uri": uri, "mimeType": "text/markdown", "text": "# DB\n\nText. \n", "_meta": META}]
        }


@requirement("resources.templates")
def test_there_are_exactly_two_templates(directory: Reader) -> None:
    reply = directory.call("skills::resources-templates")

    templates = reply["resourceTemplates"]
    assert [row["uriTemplate"] for row in templates] == ["iii://{skill_id}", "iii://fn/{function_path}"]
    assert all(row["name"] and row["description"] for row in templates)
    assert no_nulls(reply)


def no_nulls(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(no_nulls, value.values()))
    if isinstance(value, list):
        return all(map(no_nulls, value))
    return value is not None
