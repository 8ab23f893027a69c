"""Which namespaces of the folder are shown."""

from __future__ import annotations

import pytest
from tests.catalog.worlds import of_paths, parsed, parsed_records, recorded

from iii_directory.catalog.diagnostics import findings
from iii_directory.catalog.origins import Visibility
from iii_directory.catalog.snapshot import EMPTY

AUTO = {"db": recorded("auto", {"a.md": "", "prompts/p.md": ""})}
NOBODY = frozenset[str]()


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        (Visibility(None, AUTO), True),
        (Visibility(NOBODY, AUTO), False),
        (Visibility(frozenset({"other"}), AUTO), False),
        (Visibility(frozenset({"db"}), AUTO), True),
        (Visibility(NOBODY, AUTO, local=frozenset({"db"})), True),
        (Visibility(NOBODY, {}), True),
        (Visibility(NOBODY, {"db": recorded("call", {"a.md": ""})}), True),
        (Visibility(NOBODY, {"db": recorded("auto", {"b.md": ""})}), True),
    ],
)
def test_a_namespace_is_shown_when_its_worker_is_installed_or_its_files_are_the_operators(
    rule: Visibility, *, shown: bool
) -> None:
    snapshot = of_paths("db/a.md").changed(visibility=rule)

    assert snapshot.skills.keys == (["db/a"] if shown else [])
    assert snapshot.hidden == (NOBODY if shown else {"db"})
    assert [finding.kind for finding in findings(snapshot)] == ([] if shown else ["hidden"])


@pytest.mark.parametrize("namespace", ["iii", "iii-directory"])
def test_the_engine_and_the_directory_itself_are_always_shown(namespace: str) -> None:
    rule = Visibility(NOBODY, {namespace: recorded("auto", {"a.md": ""})})

    assert of_paths(f"{namespace}/a.md").changed(visibility=rule).skills.keys == [f"{namespace}/a"]


def test_a_hand_written_file_shows_its_whole_namespace_until_it_goes() -> None:
    hidden = of_paths("db/a.md").changed(visibility=Visibility(NOBODY, AUTO))

    shown = hidden.changed(parsed({"db/mine.md": b"# Mine"}))
    assert shown.skills.keys == ["db/a", "db/mine"]
    assert shown.changed({"db/mine.md": None}).skills.keys == []


def test_a_hand_written_file_that_is_not_a_document_does_not_show_its_namespace() -> None:
    hidden = of_paths("db/a.md").changed(visibility=Visibility(NOBODY, AUTO))

    assert hidden.changed(parsed({"db/Bad.md": b"x"})).skills.keys == []


def test_prompts_are_hidden_with_their_namespace() -> None:
    files = {
        "db/prompts/p.md": b"---\ndescription: x\n---\nx",
        "x/prompts/q.md": b"---\ndescription: x\n---\nx",
    }
    snapshot = EMPTY.changed(parsed(files), visibility=Visibility(NOBODY, AUTO))

    assert snapshot.prompts.keys == ["q"]


def test_a_file_at_the_root_is_always_shown() -> None:
    rule = Visibility(NOBODY, {"db": recorded("auto", {"a.md": ""})})

    assert of_paths("db.md", "db/a.md").changed(visibility=rule).skills.keys == ["db"]


def test_registered_entries_are_always_shown_even_behind_a_hidden_file() -> None:
    snapshot = of_paths("db/a.md").changed(registered=parsed_records({"db/a": "# Registered"}))

    hidden = snapshot.changed(visibility=Visibility(NOBODY, AUTO))
    skill = hidden.find("db/a")
    assert skill is not None
    assert skill.provenance.kind == "registered"


def test_an_installed_worker_brings_its_namespace_back() -> None:
    hidden = of_paths("db/a.md", "x/b.md").changed(visibility=Visibility(NOBODY, AUTO))
    back = hidden.changed(visibility=Visibility(frozenset({"db"}), AUTO))

    assert hidden.skills.keys == ["x/b"]
    assert back.skills.keys == ["db/a", "x/b"]
