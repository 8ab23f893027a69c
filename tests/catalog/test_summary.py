"""Many findings in few words."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.diagnostics import finding_of, grouped, log_lines, report
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.documents.model import Finding

if TYPE_CHECKING:
    import pytest
    from tests.support.folders import Folder


def asset(path: str) -> Finding:
    return Finding("skipped", path, "no document", "nothing, if it is an asset", urgent=False)


def broken(path: str, line: int = 1) -> Finding:
    return Finding("front_matter", path, f"line {line} is no YAML", "correct it")


def test_a_few_stay_on_their_own_and_what_needs_attention_comes_first() -> None:
    found = [asset("a"), asset("b"), broken("c.md"), asset("d")]

    assert [group.named() for group in grouped(found)] == ["c.md", "a", "b", "d"]


def test_the_row_of_a_finding_says_whether_it_needs_attention() -> None:
    calm = Finding("watch", "folder", "slow", "move it", urgent=False)
    pressing = Finding("watch", "folder", "slow", "move it")

    rows = report(EMPTY, [calm, asset("a"), pressing], {})["findings"]

    assert [row["attention"] for row in rows] == [False, False, True]
    assert [finding_of(row) for row in rows] == [calm, asset("a"), pressing]


def test_many_are_counted_with_examples_from_different_folders() -> None:
    found = [asset(f"{folder}/{number}.png") for folder in ("a", "b", "b/c") for number in range(9)]

    (group,) = grouped(found)

    assert group.named() == "27, such as a/0.png, b/0.png, b/c/0.png"
    assert len(group.subjects) == 27


def test_findings_with_different_reasons_are_not_grouped() -> None:
    found = [broken(f"{number}.md", number) for number in range(9)]

    assert [group.named() for group in grouped(found)] == [f"{number}.md" for number in range(9)]


def test_the_log_has_one_line_for_many_of_a_kind_with_an_example_for_each_reason() -> None:
    found = [asset(f"{number}.png") for number in range(300)]
    found += [broken(f"{number}.md", number // 100) for number in range(200)]

    examples = "0.md: line 0 is no YAML; 100.md: line 1 is no YAML"
    all_of_them = "(directory::diagnostics names them all)"
    assert list(log_lines(found)) == [
        (False, f"skipped: 300 findings, such as 0.png: no document {all_of_them}"),
        (True, f"front_matter: 200 findings, such as {examples} {all_of_them}"),
    ]


def test_the_log_of_a_real_tree_is_short_and_warns_of_what_needs_attention(
    skills: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(200):
        skills.write(f"ns/assets/{number}.png", "x")
    skills.write("ns/README.md", "x")
    skills.write("ns/Bad Name.md", "x")

    with caplog.at_level(logging.INFO, "iii_directory.catalog"):
        Catalogue(FolderSource(skills.root)).load()

    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    told = [record.message for record in caplog.records if record.levelno == logging.INFO]
    assert len(warned) == 1
    assert warned[0].startswith("ns/Bad Name.md: ")
    assert len(told) == 2
    assert told[0].startswith("ns/README.md: names in capitals ")
    assert told[1].startswith("ns/assets/0.png: 200 files below no folder with a SKILL.md")


def test_later_findings_are_logged_alone_and_once(skills: Folder, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(200):
        skills.write(f"ns/{number}.png", "x")
    catalogue = Catalogue(FolderSource(skills.root))
    catalogue.load()

    with caplog.at_level(logging.INFO, "iii_directory.catalog"):
        caplog.clear()
        skills.write("ns/late.png", "x")
        catalogue.load()
        catalogue.load()

    assert [line.partition(":")[0] for line in caplog.messages] == ["ns/late.png"]
