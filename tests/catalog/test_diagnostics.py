"""What the diagnostics say."""

from __future__ import annotations

from tests.catalog.worlds import of_paths, parsed, parsed_records, recorded

from iii_directory.catalog.diagnostics import findings, report
from iii_directory.catalog.origins import Visibility
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.documents.model import Finding


def test_every_kind_of_finding_is_there_with_a_reason_and_what_to_do() -> None:
    files = {
        "A.md": b"x",
        "broken.md": b"---\n[\n---\nx",
        "odd.md": b"# a\xe2\x80\xaeb\n",
        "skills.md": b"x",
        "db/SKILL.md": b"x",
        "db/index.md": b"x",
        "auto/a.md": b"x",
    }
    rule = Visibility(frozenset(), {"auto": recorded("auto", {"a.md": ""})})
    snapshot = EMPTY.changed(parsed(files), parsed_records({"directory/skills": "x", "db/index": "y"}), rule)

    found = [(finding.kind, finding.subject) for finding in findings(snapshot)]

    assert found == [
        ("foreign", "db"),
        ("front_matter", "broken.md"),
        ("hidden", "auto"),
        ("invisible_text", "odd.md"),
        ("shadowed", "db/index.md"),
        ("shadowed", "registered skill db/index"),
        ("skipped", "A.md"),
        ("unreachable", "registered skill directory/skills"),
        ("unreachable", "skills.md"),
    ]
    assert all(finding.reason and finding.fix for finding in findings(snapshot))


def test_a_catalogue_without_problems_has_no_findings() -> None:
    assert report(EMPTY, findings(of_paths("a.md", "b/SKILL.md")), {}) == {
        "counts": {},
        "attention": 0,
        "findings": [],
    }


def test_a_skill_reached_by_its_full_id_is_not_unreachable() -> None:
    assert findings(of_paths("skills/index.md")) == []


def test_the_report_counts_by_kind_and_escapes_what_it_repeats() -> None:
    found = [
        Finding("skipped", "a\x1b.md", "b\u202e", "c\n"),
        Finding("skipped", "b", "r", "f"),
        Finding("watch", "c", "r", "f", urgent=False),
    ]

    assert report(EMPTY, found, {}) == {
        "counts": {"skipped": 2, "watch": 1},
        "attention": 2,
        "findings": [
            {
                "kind": "skipped",
                "subject": "a\\x1b.md",
                "reason": "b\\u202e",
                "fix": "c\\x0a",
                "attention": True,
            },
            {"kind": "skipped", "subject": "b", "reason": "r", "fix": "f", "attention": True},
            {"kind": "watch", "subject": "c", "reason": "r", "fix": "f", "attention": False},
        ],
    }


def test_shadowed_prompts_are_named_by_their_origin() -> None:
    text = b"---\ndescription: x\n---\nx"
    snapshot = EMPTY.changed(parsed({"a/prompts/p.md": text, "b/prompts/p.md": text}))

    assert [(finding.subject, "a/prompts/p.md" in finding.reason) for finding in findings(snapshot)] == [
        ("b/prompts/p.md", True)
    ]
