"""§4: the index of workers and the tree of skills."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from tests.support.reader import Reader

BUDGET = 3000


def index(directory: Reader) -> tuple[str, int]:
    reply = directory.call("directory::skills::index")
    assert set(reply) == {"body", "workers_count"}
    return reply["body"], reply["workers_count"]


def call_of(skill_id: str) -> str:
    return f'directory::skills::get {{ "id": "{skill_id}" }}'


@requirement("index.blocks", "index.count", "index.only-overviews")
def test_the_index_has_one_block_for_each_overview(directory: Reader) -> None:
    directory.skills.write("mail/SKILL.md", "---\ntitle: Mail\n---\n# x\n\nSends mail.\n")
    directory.skills.write("db/index.md", "# Database\n\n> skipped\n\nKeeps\nrows.\n")
    directory.skills.document("db/query.md", "Query")
    directory.skills.document("orphans/one.md", "One")
    directory.skills.write("single.md", "# Single\n\nStands alone.\n")

    body, count = index(directory)

    assert body.startswith("# Skills index\n")
    blocks = dict(re.findall(r"^## (.+)\n\n(.+)\n\n`directory::skills::get", body, re.MULTILINE))
    assert blocks["Database"] == "Keeps rows."
    assert blocks["Mail"] == "Sends mail."
    assert blocks["Single"] == "Stands alone."
    calls = re.findall(r'directory::skills::get \{ "id": "(.+)" \}', body)
    assert calls == ["db", "iii-directory", "mail", "single"]
    assert count == len(calls) == body.count("\n## ")
    assert "One" not in body


@requirement("index.budget", "index.count")
@pytest.mark.parametrize(("workers", "fits"), [(10, True), (25, True), (200, False)])
def test_past_its_budget_the_index_cuts_descriptions_but_keeps_a_word_of_every_skill(
    directory: Reader, workers: int, fits: bool
) -> None:
    for number in range(workers):
        directory.skills.write(f"w{number:03}/index.md", f"# W{number:03}\n\n{'x' * 140}\n")

    body, count = index(directory)

    assert count == workers + 1
    for number in range(workers):
        name = f"w{number:03}"
        assert (call_of(name) if workers == 10 else f"\n- {name}: xxxx") in body
    assert (len(body.encode()) <= BUDGET) is fits
    assert ("x" * 140 in body) is (workers == 10)
    assert ("directory::skills::list" in body) is (workers > 10)


@requirement("tree.lines", "documents.teaser")
def test_the_tree_has_one_line_for_each_skill_with_parents_first(directory: Reader) -> None:
    directory.skills.write("resend/index.md", "# Resend\n\nEmail [provider](http://x.example).\n")
    directory.skills.write("resend/email.md", "# Email\n")
    directory.skills.write("resend/email/send.md", "# Send | it\n\nOutbound.\n")
    directory.skills.write("resend-extra/index.md", "# Extra\n\nMore.\n")

    text = directory.read_uri("iii://skills")["text"]
    lines = [
        line for line in text.split("\n") if line.lstrip().startswith("- [") and "iii-directory" not in line
    ]

    assert lines == [
        "- [`resend`](iii://resend) — Resend — Email provider.",
        "  - [`resend/email`](iii://resend/email) — Email",
        "    - [`resend/email/send`](iii://resend/email/send) — Send | it — Outbound.",
        "- [`resend-extra`](iii://resend-extra) — Extra — More.",
    ]
    intro = text.split("\n- [")[0]
    assert intro.startswith("# Skills\n\n")
    assert "](" not in intro


@requirement("tree.lines")
def test_what_a_document_says_cannot_break_out_of_its_line(directory: Reader) -> None:
    directory.skills.write(
        "evil.md",
        '---\ntitle: "A\\n- [`fake`](iii://fake)"\ndescription: "x](iii://y) \\u2028 z"\n---\nBody.\n',
    )

    text = directory.read_uri("iii://skills")["text"]
    (line,) = [line for line in text.split("\n") if "iii://evil" in line]

    assert len(re.findall(r"(?<!\\)\]\(", line)) == 1
    assert "\u2028" not in text
    assert not any(line.startswith("- [`fake`]") for line in text.split("\n"))


@requirement("tree.empty")
def test_an_empty_tree_says_so_in_italics(start_without_own_documents: Reader) -> None:
    text = start_without_own_documents.read_uri("iii://skills")["text"]

    assert re.search(r"^_.+_$", text, re.MULTILINE)
    assert "](" not in text


@pytest.fixture
def start_without_own_documents(directory: Reader) -> Reader:
    """A directory whose folder replaces the package's own documents by none that can be shown."""
    directory.skills.write("iii-directory/SKILL.md", " ")
    return directory
