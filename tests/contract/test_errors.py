"""§9: errors are one sentence, and nothing is left out in silence."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from tests.contract.requirements import requirement
from tests.support.engine import RawClient

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.support.reader import Reader

SENTENCE = re.compile(
    r"(?P<code>D\d{3}) (?P<kind>[a-z_]+): [^\n]+?\."
    r"(?: Did you mean: [^\n]+?\.)?(?: Next: call [^\n]+?\.)?"
)
FAILURES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "D100 invalid_input": ("directory::skills::get", "id", {"id": 7}),
    "D110 not_found": ("directory::skills::get", "nope", {"id": "nope"}),
    "D111 invalid_input": ("skill::fetch", "Provide uri", {}),
    "D112 invalid_input": ("directory::skills::get", "a::b", {"id": "a::b"}),
    "D120 forbidden": ("skills::resources-read", "state::set", {"uri": "iii://fn/state/set"}),
    "D210 not_found": ("prompts::get", "nope", {"name": "nope"}),
    "D211 invalid_input": ("prompts::get", "A", {"name": "A"}),
    "D411 not_found": ("skill::fetch", "nobody::home", {"uri": "iii://fn/nobody/home"}),
}


@requirement("errors.sentence", "errors.codes")
def test_every_failure_is_one_sentence_with_its_code(directory: Reader) -> None:
    for start, (function, named, payload) in FAILURES.items():
        sentence = directory.refusal(function, **payload)

        assert SENTENCE.fullmatch(sentence), sentence
        assert sentence.startswith(f"{start}: ")
        assert named in sentence
        if "not_found" in start:
            assert "not found" in sentence


@requirement("errors.nothing-leaks")
def test_nothing_of_the_machine_is_told(directory: Reader, tmp_path: Path) -> None:
    directory.skills.document("a.md", "A")
    with RawClient(directory.url) as client:
        for function, _, payload in [*FAILURES.values(), ("directory::skills::list", "", ["no object"])]:
            error = client.call(function, payload)["error"]

            wire = f"{error['message']}\n{error.get('stacktrace') or ''}"
            assert 'File "' not in wire
            assert "Traceback" not in wire
            assert str(tmp_path) not in wire
            assert "site-packages" not in wire
            assert "/src/" not in wire


@requirement("errors.nothing-leaks")
def test_an_unexpected_failure_is_one_sentence_too(
    directory: Reader, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(*_: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr("iii_directory.catalog.skill_replies.workers_index", explode)

    with caplog.at_level(logging.ERROR, "iii_directory"):
        error = directory.failure("directory::skills::index")

    assert error.message.startswith("D500 internal_error: directory::skills::index failed unexpectedly")
    assert "secret" not in error.message + (error.stacktrace or "")
    assert 'File "' not in (error.stacktrace or "")
    # The operator of the worker finds the reason in its log.
    assert "/secret/path" in caplog.text


@requirement("diagnostics.all")
def test_the_diagnostics_count_what_they_list(directory: Reader) -> None:
    directory.skills.document("Bad Name.md", "x")
    directory.skills.write("notes.txt", "x")
    directory.skills.write("a.md", "---\ntitle: [\n---\nText.\n")

    reply = directory.call("directory::diagnostics")

    assert reply["counts"] == {"front_matter": 1, "skipped": 2}
    assert {row["subject"] for row in reply["findings"]} == {"Bad Name.md", "notes.txt", "a.md"}
    for row in reply["findings"]:
        of_document = {"provenance"} if row["subject"] == "a.md" else set()
        assert set(row) == {"kind", "subject", "reason", "fix", "attention"} | of_document
        assert all(value for key, value in row.items() if key != "attention")
    for name in ("Bad Name.md", "notes.txt", "a.md"):
        directory.skills.remove(name)
    clean = directory.call("directory::diagnostics")
    assert (clean["counts"], clean["attention"], clean["findings"]) == ({}, 0, [])


@requirement("diagnostics.few")
def test_the_diagnostics_can_be_asked_for_a_few_and_count_all_the_same(directory: Reader) -> None:
    directory.skills.write("notes.txt", "x")
    for name in ("a", "b"):
        directory.skills.write(f"{name}.md", "---\ntitle: [\n---\nText.\n")

    urgent = directory.call("directory::diagnostics", attention=True)
    one = directory.call("directory::diagnostics", limit=1)
    none = directory.call("directory::diagnostics", limit=0)

    assert [row["subject"] for row in urgent["findings"]] == ["a.md", "b.md"]
    assert [row["subject"] for row in one["findings"]] == ["a.md"]
    assert none["findings"] == []
    assert [reply["left_out"] for reply in (urgent, one, none)] == [1, 2, 3]
    for reply in (urgent, one, none):
        assert (reply["counts"], reply["attention"]) == ({"front_matter": 2, "skipped": 1}, 2)


@requirement("diagnostics.why")
def test_of_one_document_every_rule_that_touched_it_is_told(directory: Reader) -> None:
    directory.skills.document("db/SKILL.md", "Winner")
    directory.skills.document("db/index.md", "Loser")
    directory.skills.write("db/run.sh", "true")
    directory.skills.write("Bad Name.md", "x")

    def why(asked: str) -> tuple[bool, str | None, list[str]]:
        reply = directory.call("directory::skills::explain", id=asked)
        return reply["served"], reply["id"], [row["kind"] for row in reply["rules"]]

    assert why("iii://db") == (True, "db", ["shadowed"])
    assert why("db/run.sh") == (True, "db/run.sh", ["file"])
    assert why("Bad Name.md") == (False, None, ["skipped"])
    assert why("nothing-like-it") == (False, None, [])


@requirement("diagnostics.shadowed")
def test_of_two_claims_to_one_name_the_loser_is_reported(directory: Reader) -> None:
    directory.skills.document("db/SKILL.md", "Winner")
    directory.skills.document("db/index.md", "Loser")
    prompt = "---\nname: ask\ndescription: {}\n---\nBody.\n"
    directory.skills.write("b/prompts/ask.md", prompt.format("placed"))
    directory.skills.write("a/prompts/other.md", prompt.format("claimed"))

    assert directory.get("db")["title"] == "Winner"
    assert directory.call("prompts::get", name="ask")["description"] == "placed"
    shadowed = {row["subject"]: row for row in directory.findings()}
    assert set(shadowed) == {"db/index.md", "a/prompts/other.md"}
    assert {row["kind"] for row in shadowed.values()} == {"shadowed"}
    assert "db/SKILL.md" in shadowed["db/index.md"]["reason"]
    assert "b/prompts/ask.md" in shadowed["a/prompts/other.md"]["reason"]


@requirement("diagnostics.log")
def test_the_log_says_each_finding_once(directory: Reader, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "iii_directory.catalog"):
        directory.skills.document("Bad Name.md", "x")
        directory.findings()
        directory.skills.document("Bad Name.md", "y")
        directory.skills.document("good.md", "z")
        directory.findings()

    assert len([line for line in caplog.messages if "Bad Name.md" in line]) == 1
