"""§3: what a document is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from tests.support.reader import Reader

KIB = 1024


@requirement("front-matter.keys", "list.row", "documents.file-body")
def test_the_front_matter_says_what_a_document_is(directory: Reader) -> None:
    directory.skills.write(
        "sandbox/create.md",
        "---\ntitle: Create a sandbox\ntype: how-to\nfunction_id: sandbox::create\n"
        "description: Makes one.\n---\n# Other\n\nBody.\n",
    )

    row = directory.rows()["sandbox/create"]

    assert row == {
        "id": "sandbox/create",
        "title": "Create a sandbox",
        "type": "how-to",
        "function_id": "sandbox::create",
        "description": "Makes one.",
        "bytes": directory.skills.path("sandbox/create.md").stat().st_size,
        "modified_at": row["modified_at"],
        "provenance": {"kind": "file", "root": "skills"},
        "root": "skills",
    }
    assert directory.body("sandbox/create") == "# Other\n\nBody.\n"


@requirement("front-matter.bom", "front-matter.crlf", "front-matter.empty")
def test_front_matter_is_read_in_the_shapes_editors_write(directory: Reader) -> None:
    directory.skills.write("bom.md", "\ufeff---\ntitle: With a mark\n---\nBody.\n")
    directory.skills.path("crlf.md").write_bytes(b"---\r\ntitle: From Windows\r\n---\r\nBody.\r\n")
    directory.skills.write("empty.md", "---\n---\n# Empty block\n")

    rows = directory.rows()

    assert rows["bom"]["title"] == "With a mark"
    assert directory.body("bom") == "Body.\n"
    assert rows["crlf"]["title"] == "From Windows"
    assert directory.body("crlf") == "Body.\r\n"
    assert rows["empty"]["title"] == "Empty block"
    assert directory.body("empty") == "# Empty block\n"
    assert directory.findings() == []


@requirement("front-matter.wrong-type")
def test_a_wrong_typed_key_loses_only_itself(directory: Reader) -> None:
    directory.skills.write("a.md", "---\ntitle: [1, 2]\ntype: how-to\nfunction_id: 7\n---\n# Heading\n")

    row = directory.rows()["a"]

    assert (row["title"], row["type"], row["function_id"]) == ("Heading", "how-to", None)
    assert {finding["kind"] for finding in directory.findings("a.md")} == {"front_matter"}
    assert "'title'" in " ".join(finding["reason"] for finding in directory.findings("a.md"))


@requirement("front-matter.broken", "list.broken-front-matter")
def test_broken_front_matter_keeps_the_body_and_is_reported(directory: Reader) -> None:
    directory.skills.write("a.md", "---\ntitle: [unclosed\n---\n# From the body\n\nText.\n")
    directory.skills.write("b.md", "---\n{{: }\n---\nNo heading.\n")

    rows = directory.rows()

    assert rows["a"]["title"] == "From the body"
    assert rows["b"]["title"] == "b"
    assert directory.body("a") == "# From the body\n\nText.\n"
    for subject in ("a.md", "b.md"):
        (finding,) = directory.findings(subject)
        assert finding["kind"] == "front_matter"
        assert "cannot be read" in finding["reason"]


@requirement("front-matter.no-tags")
def test_tags_anchors_and_aliases_are_refused(directory: Reader) -> None:
    directory.skills.write("tag.md", "---\ntitle: !!python/object/apply:os.getcwd []\n---\n# Tag\n")
    directory.skills.write("alias.md", "---\nx: &a [1]\ntitle: *a\n---\n# Alias\n")

    rows = directory.rows()

    assert (rows["tag"]["title"], rows["alias"]["title"]) == ("Tag", "Alias")
    assert [finding["kind"] for finding in directory.findings()] == ["front_matter", "front_matter"]


@requirement("front-matter.other-keys")
def test_other_keys_do_no_harm(directory: Reader) -> None:
    directory.skills.write(
        "pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads PDFs.\nlicense: Proprietary\nallowed-tools: [Read]\n"
        "metadata:\n  version: 1.0\n---\nBody.\n",
    )

    assert directory.rows()["pdf"]["description"] == "Reads PDFs."
    assert directory.findings() == []


@requirement("documents.title")
def test_a_title_comes_from_the_front_matter_the_heading_or_the_id(directory: Reader) -> None:
    directory.skills.write("one.md", "---\ntitle: Given\n---\n# Heading\n")
    directory.skills.write("two.md", "Text.\n\n# Heading\n")
    directory.skills.write("three/index.md", "## Too deep\n\n#no space\n")
    directory.skills.write("four.md", '---\ntitle: "  "\n---\n# Blank title\n')

    titles = {key: row["title"] for key, row in directory.rows().items()}

    assert titles == {"one": "Given", "two": "Heading", "three": "three", "four": "Blank title"}


@requirement("documents.description")
def test_a_description_is_the_front_matters_or_the_first_paragraph(directory: Reader) -> None:
    directory.skills.write("one.md", "---\ndescription: Given.\n---\nParagraph.\n")
    directory.skills.write("two.md", "# T\n\n> quoted\n\n## S\n\nFirst line\n  second line\n\nNext.\n")
    directory.skills.write("three.md", "# Only\n\n## Headings\n")

    descriptions = {key: row["description"] for key, row in directory.rows().items()}

    assert descriptions == {"one": "Given.", "two": "First line second line", "three": ""}


@requirement("documents.teaser")
def test_the_tree_index_cuts_descriptions_at_140_characters(directory: Reader) -> None:
    directory.skills.write("long.md", f"# T\n\n{'x' * 150}\n")
    directory.skills.write("fits.md", f"# T\n\n{'y' * 140}\n")

    index = directory.read_uri("iii://skills")["text"]

    assert f" — {'x' * 140}...\n" in index
    assert f" — {'y' * 140}\n" in index


@requirement("documents.body-limit")
def test_a_body_of_256_kib_is_served_and_a_larger_one_is_not(directory: Reader) -> None:
    directory.skills.write("fits.md", "x" * (256 * KIB))
    directory.skills.write("large.md", "x" * (256 * KIB + 1))

    assert directory.ids() == ["fits"]
    assert len(directory.body("fits")) == 256 * KIB
    assert "larg" in directory.reason("large.md")


@requirement("documents.lines")
def test_only_newlines_end_lines(directory: Reader) -> None:
    directory.skills.write("a.md", "# One\u2028# Two\x0b# Three\x85still\n\nText.\n")
    directory.skills.write("b.md", "---\ntitle: Given\u2028---\u2028\n---\n# B\n")

    rows = directory.rows()

    assert rows["a"]["title"] == "One\u2028# Two\x0b# Three\x85still"
    assert directory.body("a").startswith("# One\u2028# Two")
    assert directory.body("b") == "# B\n"
