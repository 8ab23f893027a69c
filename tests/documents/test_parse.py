"""From bytes to a skill, a prompt, or a reason why not."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE, label

from iii_directory.documents.model import (
    OPERATOR,
    Author,
    ParsedFile,
    Prompt,
    PromptArgument,
    Provenance,
    Skill,
)
from iii_directory.documents.parse import check_body, document_of, parse_file, parse_registered_skill
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_BODY_BYTES, MAX_DESCRIPTION_CHARS

WHEN = "2025-01-31T12:00:00.000001Z"


def parse(path: str, text: str | bytes) -> ParsedFile:
    raw = text.encode() if isinstance(text, str) else text
    return parse_file(path, raw, len(raw), WHEN)


def skill(text: str, path: str = "db/query.md") -> Skill:
    found = parse(path, text).skill
    assert found is not None
    return found


def prompt(front_matter: str, path: str = "db/prompts/ask.md") -> Prompt:
    found = parse(path, f"---\n{front_matter}---\nbody").prompt
    assert found is not None
    return found


def body_of(raw: bytes) -> str:
    return document_of(raw.decode()).body


def reasons(found: ParsedFile) -> list[str]:
    return [f"{finding.kind}: {finding.reason}" for finding in found.findings]


# Skills


def test_a_skill_carries_its_front_matter_and_its_place() -> None:
    text = (
        "---\ntitle: How to query\ntype: how-to\nfunction_id: db::query\ndescription: Runs a query.\n"
        "functions:\n  - db::query\n  - db::explain\nother: kept away\n---\n# Heading\n\nText.\n"
    )

    assert parse("db/query.md", text) == ParsedFile(
        Skill(
            id="db/query",
            title="How to query",
            type="how-to",
            function_id="db::query",
            description="Runs a query.",
            bytes=len(text),
            modified_at=WHEN,
            provenance=OPERATOR,
            functions=("db::query", "db::explain"),
            path="db/query.md",
        ),
        size=len(text.encode()),
        digest=sha256(text.encode()).digest(),
    )


def test_without_front_matter_the_title_and_description_come_from_the_body() -> None:
    found = skill("# Query\n\nRuns a query\nand more.\n\nOther.\n")

    assert (found.title, found.description, found.type, found.function_id) == (
        "Query",
        "Runs a query and more.",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("path", "title"), [("db/query.md", "db/query"), ("db/SKILL.md", "db"), ("index.md", "index")]
)
def test_without_a_heading_the_title_is_the_id(path: str, title: str) -> None:
    assert skill("text", path).title == title


@pytest.mark.parametrize("value", ["", "''", "'  '", "~"])
def test_an_empty_title_counts_as_none(value: str) -> None:
    found = parse("a.md", f"---\ntitle: {value}\n---\n# Heading\n")

    assert found.skill is not None
    assert found.skill.title == "Heading"
    assert found.findings == ()


def test_the_heading_of_the_body_counts_not_a_comment_of_the_front_matter() -> None:
    assert skill("---\n# comment\ntype: x\n---\n# Heading\n").title == "Heading"


def test_one_wrong_key_loses_only_itself_and_is_reported() -> None:
    found = parse("a.md", "---\ntitle: [a]\ntype: 7\nfunction_id: x::y\nfunctions: {a: b}\n---\n# H\n")

    assert found.skill is not None
    assert (found.skill.title, found.skill.type, found.skill.function_id) == ("H", None, "x::y")
    assert [finding.kind for finding in found.findings] == ["front_matter"] * 3
    assert ["'title'" in text or "'type'" in text or "'functions'" in text for text in reasons(found)] == [
        True
    ] * 3


def test_functions_that_are_not_all_text_are_reported() -> None:
    found = parse("a.md", "---\nfunctions: [a::b, 7]\n---\nx\n")

    assert found.skill is not None
    assert found.skill.functions == ()
    assert "'functions'" in reasons(found)[0]


def test_broken_front_matter_loses_the_block_and_keeps_the_body() -> None:
    found = parse("a.md", "---\ntitle: [\n---\n# Heading\n\nText.\n")

    assert found.skill is not None
    assert (found.skill.title, found.skill.description) == ("Heading", "Text.")
    assert "not valid YAML (line 3); the block is ignored" in reasons(found)[0]
    assert body_of(b"---\ntitle: [\n---\n# Heading\n") == "# Heading\n"


def test_an_unquoted_colon_is_forgiven_and_reported() -> None:
    found = parse("a.md", "---\ndescription: Use when: always\n---\nText.\n")

    assert found.skill is not None
    assert found.skill.description == "Use when: always"
    assert "read as if quoted" in reasons(found)[0]


def test_front_matter_that_is_never_closed_is_reported_and_served_as_text() -> None:
    found = parse("a.md", "---\ntitle: x\n\n# Heading\n")

    assert found.skill is not None
    assert found.skill.title == "Heading"
    assert "not closed" in reasons(found)[0]


def test_a_horizontal_rule_at_the_start_is_not_front_matter() -> None:
    assert parse("a.md", "---\n\nText\n").findings == ()


@pytest.mark.parametrize("text", ["\ufeff---\r\ntitle: T\r\n---\r\nText.\r\n", "\ufeff# T\r\n\r\nText.\r\n"])
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(text: str) -> None:
    found = skill(text)

    assert (found.title, found.description) == ("T", "Text.")
    assert found.bytes == len(text.encode())
    assert not body_of(text.encode()).startswith("\ufeff")


def test_an_empty_block_is_a_block() -> None:
    assert skill("---\n---\n# T\n").title == "T"
    assert body_of(b"---\n---\n# T\n") == "# T\n"


def test_a_body_is_served_as_it_stands() -> None:
    assert body_of(b"---\na: b\n---\n\n  text \x1b[0m\r\n\n") == "\n  text \x1b[0m\r\n\n"


@pytest.mark.parametrize("key", ["title", "description"])
def test_text_that_cannot_be_seen_is_reported_and_kept(key: str) -> None:
    found = parse("a.md", f"---\n{key}: a\u202eb\n---\nText\n")

    assert found.skill is not None
    assert "a\u202eb" in (found.skill.title, found.skill.description)
    assert [finding.kind for finding in found.findings] == ["invisible_text"]


def test_a_description_of_several_lines_is_nothing_to_report() -> None:
    found = parse("a.md", "---\ndescription: |\n  One\ttab,\n  two lines.\n---\nText\n")

    assert found.skill is not None
    assert found.skill.description == "One\ttab,\ntwo lines."
    assert found.findings == ()


def test_a_description_as_long_as_a_document_is_cut() -> None:
    found = skill("---\ndescription: " + "x" * 5000 + "\n---\nText\n")

    assert found.description == "x" * MAX_DESCRIPTION_CHARS + "..."


# Skipped files


@pytest.mark.parametrize(
    ("path", "content", "fragment"),
    [
        (".a.md", b"x", "hidden"),
        ("a.md", b"", "empty"),
        ("a.md", b" \n\t\n", "empty"),
        ("a.md", b"\xef\xbb\xbf", "empty"),
        ("a.md", b"---\ntitle: x\n---\n", "empty"),
        ("a.md", b"\xff\xfe", "UTF-8"),
        ("a.md", b"text \xed\xa0\x80", "UTF-8"),
        ("a.md", b"# T\n\n" + b"x" * 3000 + b"\xc3", "UTF-8"),
        ("a.md", b"x" * (MAX_BODY_BYTES + 1), "too large"),
        ("a/prompts/b.md", b"text", "description"),
        ("a/prompts/b.md", b"---\ndescription:\n---\ntext", "description"),
        ("a/prompts/b.md", b"---\ndescription: [x]\n---\ntext", "not text"),
        ("a/prompts/b.md", b"---\ndescription: [\n---\ntext", "not valid YAML"),
        ("a/prompts/b.md", b"---\ndescription: x\n---\n \n", "empty"),
        ("a/prompts/B.md", b"---\ndescription: x\n---\ntext", "lowercase"),
        ("a/prompts/b.md", b"---\ndescription: x\nname: A b\n---\ntext", "lowercase"),
    ],
)
def test_a_file_that_is_left_out_says_why_and_what_to_do(path: str, content: bytes, fragment: str) -> None:
    found = parse(path, content)

    assert (found.skill, found.prompt) == (None, None)
    assert [finding.kind for finding in found.findings] == ["skipped"]
    assert found.findings[0].subject == path
    assert fragment in found.findings[0].reason
    assert found.findings[0].fix


@pytest.mark.parametrize(
    "path", ["A.md", "a.txt", "fn/a.md", "README.md", "db/v1.2.md", "Odd Folder/SKILL.md"]
)
def test_a_name_that_makes_no_id_is_a_plain_file(path: str) -> None:
    found = parse(path, "text")

    assert found.is_plain
    assert found.size == 4


def test_a_file_of_exactly_the_largest_size_is_a_skill() -> None:
    assert parse("a.md", b"x" * MAX_BODY_BYTES).skill is not None


def test_a_file_too_large_is_refused_by_its_size_alone() -> None:
    assert "too large" in parse_file("a.md", b"", MAX_BODY_BYTES + 1, WHEN).findings[0].reason


# Prompts


def test_a_prompt_is_called_like_its_file_unless_it_says_otherwise() -> None:
    assert prompt("description: Asks.\n") == Prompt("ask", "Asks.", WHEN, OPERATOR, "db/prompts/ask.md")
    assert prompt("description: Asks.\nname: other\n").name == "other"
    assert prompt("description: Asks.\nname: other\n", "prompts/Odd Name.md").name == "other"


@pytest.mark.parametrize(
    ("block", "arguments"),
    [
        ("arguments:\n  - to\n  - subject\n", (PromptArgument("to"), PromptArgument("subject"))),
        (
            "arguments:\n  - name: to\n    description: Who\n    required: true\n  - {name: cc}\n",
            (PromptArgument("to", "Who", required=True), PromptArgument("cc")),
        ),
        (
            "args_schema: {properties: {to: {type: string, description: Who}, n: {}}, required: [to]}\n",
            (PromptArgument("to", "Who", required=True), PromptArgument("n")),
        ),
        ("args_schema: {type: object}\n", ()),
        ("arguments: []\n", ()),
        ("arguments: [a]\nargs_schema: {properties: {b: {}}}\n", (PromptArgument("a"),)),
        ("arguments: ~\nargs_schema: {properties: {b: true}}\n", (PromptArgument("b"),)),
        ("", ()),
    ],
)
def test_a_prompt_has_the_arguments_of_its_front_matter(
    block: str, arguments: tuple[PromptArgument, ...]
) -> None:
    assert prompt(f"description: x\n{block}").arguments == arguments


@pytest.mark.parametrize(
    "block",
    [
        "arguments: to",
        "arguments: [1]",
        "arguments: ['']",
        "arguments: [{description: x}]",
        "arguments: [{name: a, required: maybe}]",
        "arguments: [a, a]",
        "arguments: [[a]]",
        "args_schema: x",
        "args_schema: {properties: [a]}",
        "args_schema: {properties: {a: {}}, required: a}",
    ],
)
def test_arguments_that_make_no_sense_are_left_out_and_reported(block: str) -> None:
    found = parse("prompts/a.md", f"---\ndescription: x\n{block}\n---\nbody")

    assert found.prompt is not None
    assert found.prompt.arguments == ()
    assert "does not describe arguments" in reasons(found)[0]


def test_a_prompt_with_text_that_cannot_be_seen_is_reported() -> None:
    assert reasons(parse("prompts/a.md", "---\ndescription: a\u200bb\n---\nbody"))[0].startswith(
        "invisible_text"
    )


# Registered bodies


def test_a_registered_skill_is_read_like_a_file_and_measured_in_bytes() -> None:
    body = "---\ntype: how-to\n---\n# T\u00e9\n\nText.\n"

    found = parse_registered_skill({"id": "db/index", "skill": body}, WHEN, Author("w1", "db")).skill

    provenance = Provenance("registered", worker="db", worker_id="w1", since=WHEN, state="unknown")
    assert found == Skill(
        "db/index", "T\u00e9", "how-to", None, "Text.", len(body.encode()), WHEN, provenance
    )


def test_a_registered_body_of_front_matter_alone_is_still_listed() -> None:
    found = parse_registered_skill({"id": "a", "skill": "---\ntitle: T\n---\n"}, WHEN).skill

    assert found is not None
    assert found.title == "T"


def test_a_registered_skill_with_broken_front_matter_is_reported_by_its_id() -> None:
    assert parse_registered_skill({"id": "a", "skill": "---\n[\n---\nx"}, WHEN).findings[0].subject == "a"


@pytest.mark.parametrize(
    ("body", "fragment"),
    [
        ("", "skill must be non-empty"),
        (" \n ", "skill must be non-empty"),
        ("x" * (MAX_BODY_BYTES + 1), "too large"),
        ("\u00e9" * (MAX_BODY_BYTES // 2 + 1), "too large"),
        ("\ud800", "UTF-8"),
    ],
)
def test_a_body_that_cannot_be_registered_is_refused(body: str, fragment: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D113 invalid_input: ") as caught:
        check_body(body)

    assert fragment in str(caught.value)


def test_a_body_of_exactly_the_largest_size_can_be_registered() -> None:
    check_body("x" * MAX_BODY_BYTES)


# Anything at all


@given(st.binary(max_size=200), st.sampled_from(["a.md", "x/prompts/b.md", "a/SKILL.md"]))
def test_any_bytes_are_a_document_or_have_a_reason(raw: bytes, path: str) -> None:
    found = parse(path, raw)

    assert (found.skill is not None) + (found.prompt is not None) + any(
        f.kind == "skipped" for f in found.findings
    ) == 1


_TEXTS = st.lists(
    st.sampled_from(["---", "title: x", "description: a: b", "# H", "", "text", "\ufeff", "a: [", "\r"])
)


@given(_TEXTS.map("\n".join), st.sampled_from(["\n", "\r\n"]))
def test_any_text_that_is_a_skill_has_a_title_and_a_body(text: str, line_end: str) -> None:
    text = text.replace("\n", line_end)
    found = parse("a.md", text)

    if found.skill is not None:
        assert found.skill.title.strip()
        assert body_of(text.encode()).strip()


@pytest.mark.parametrize("text", HOSTILE, ids=label)
def test_a_hostile_path_is_not_a_document_or_has_a_plain_id(text: str) -> None:
    for path in (text, f"{text}.md", f"a/{text}.md"):
        found = parse(path, "---\ndescription: x\n---\nbody")
        if found.skill is not None:
            assert re.fullmatch(r"[a-z0-9_-]+(/[a-z0-9_-]+)*", found.skill.id)
            assert ".." not in path


HIDING = ("\u200b", "\u202e", "\u2066", "\u2060", "\U000e0041", "\u3164", "\x1b[31m", "\x9b31m", "\u180e")
SCRIPTS = ("\u200d", "\u200c", "\u200f", "é", "漢", "👩\u200d💻", "\t", "\r\n", "\u00ad")


@pytest.mark.parametrize("path", ["a/doc.md", "a/prompts/p.md"])
@pytest.mark.parametrize("text", HIDING, ids=ascii)
def test_a_body_that_hides_something_is_a_finding_and_served_as_it_is(path: str, text: str) -> None:
    raw = f"---\ndescription: plain\n---\n# T\n\nFirst.\n\nThen {text} more.\n".encode()

    parsed = parse_file(path, raw, len(raw), "2026-01-01T00:00:00Z")

    (finding,) = parsed.findings
    assert (finding.kind, finding.urgent) == ("invisible_text", False)
    assert parsed.skill or parsed.prompt


@pytest.mark.parametrize("text", SCRIPTS, ids=ascii)
def test_letters_that_scripts_and_emoji_need_hide_nothing(text: str) -> None:
    raw = f"# T\n\nFirst.\n\nThen {text} more.\n".encode()

    assert parse_file("a/doc.md", raw, len(raw), "2026-01-01T00:00:00Z").findings == ()
