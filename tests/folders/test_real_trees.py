"""Trees as people keep them: every file is shown, or the diagnostics say why it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.trees import BODIES, FRONT_MATTER, grow, unaccounted

from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.folders import BundledDocuments
from iii_directory.catalog.skill_indexes import tree_index, workers_index
from iii_directory.catalog.skill_replies import list_skills, plain_row, resource_rows
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from pathlib import Path

FILES = 400


@pytest.fixture(params=range(6))
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A tree, another one for each seed."""
    grow(tmp_path, request.param, FILES)
    return tmp_path


def test_every_file_is_shown_or_in_the_diagnostics(root: Path) -> None:
    catalogue = Catalogue(FolderSource(root, below=[BundledDocuments()]))

    assert unaccounted(catalogue, root) == []
    view = catalogue.load()
    assert len(view.snapshot.skills.items) > 20
    assert len(view.findings()) > 50


def test_every_skill_of_a_tree_can_be_read_and_listed(root: Path) -> None:
    view = Catalogue(FolderSource(root)).load()
    snapshot = view.snapshot

    for skill in snapshot.skills.items:
        assert view.read_skill(skill).strip()
        assert skill.title
    assert len(list_skills(snapshot)) == len(snapshot.skills.column(plain_row)) == len(snapshot.skills.items)
    assert len(resource_rows(snapshot)) <= 1 + len(snapshot.skills.items)
    assert tree_index(snapshot).count("\n- ") <= len(snapshot.skills.items)
    assert workers_index(snapshot).workers_count >= 1


def test_every_shape_of_front_matter_keeps_its_document(tmp_path: Path) -> None:
    for number, head in enumerate(FRONT_MATTER):
        (tmp_path / f"shape-{number}.md").write_bytes(head + b"# Body\n\nText.\n")
    view = Catalogue(FolderSource(tmp_path)).load()
    snapshot = view.snapshot

    for number in range(len(FRONT_MATTER)):
        skill = snapshot.find(f"shape-{number}")
        assert skill is not None
        assert "# Body" in view.read_skill(skill)


def test_a_body_is_served_as_it_is_or_reported(tmp_path: Path) -> None:
    for number, body in enumerate(BODIES):
        (tmp_path / f"body-{number}.md").write_bytes(body)
    view = Catalogue(FolderSource(tmp_path)).load()
    snapshot = view.snapshot
    told = {finding.subject for finding in view.findings() if finding.kind == "skipped"}

    for number, body in enumerate(BODIES):
        skill = snapshot.find(f"body-{number}")
        assert (skill is None) is (f"body-{number}.md" in told)
        if skill is not None:
            assert view.read_skill(skill).encode() == body


def test_a_file_that_goes_after_the_list_was_made_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n", encoding="utf-8")
    view = Catalogue(FolderSource(tmp_path)).load()
    skill = view.snapshot.find("a")
    assert skill is not None
    (tmp_path / "a.md").unlink()

    with pytest.raises(DirectoryError, match="D110 not_found: skill 'a' not found"):
        view.read_skill(skill)
