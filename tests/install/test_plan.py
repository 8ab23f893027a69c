"""What an install would change."""

from __future__ import annotations

import pytest
from tests.support.installs import Contents, bundle_of, hashes

from iii_directory.disk.install_record import By, Entry, RegistrySource
from iii_directory.errors import DirectoryError
from iii_directory.install.plan import (
    Disk,
    EditedFiles,
    InstallPlan,
    Node,
    plan_install,
    plan_remove,
    plan_restore,
    verify_entry,
)
from iii_directory.install.reports import unified_diff

OLD = {"same.md": b"same", "clean.md": b"one", "edited.md": b"one", "gone.md": b"one"}
NEW = {"same.md": b"same", "clean.md": b"two", "edited.md": b"two", "added.md": b"two", "own.md": b"two"}
DISK = {"same.md": b"same", "clean.md": b"one", "edited.md": b"by hand", "gone.md": b"one", "own.md": b"mine"}


def entry_of(files: Contents, version: str = "1.0.0", by: By = "call") -> Entry:
    return Entry(RegistrySource("db", tag="latest"), version, "2025-01-01T00:00:00Z", by, hashes(files))


def disk_of(files: Contents, **nodes: Node) -> Disk:
    return Disk(exists=True, nodes={**dict.fromkeys(files, "file"), **nodes}, hashes=hashes(files))


def plan(
    edited: EditedFiles, *, by: By = "call", known: Entry | None = None, prune: bool = False
) -> InstallPlan:
    return plan_install(
        bundle_of(NEW, "2.0.0"),
        disk_of(DISK),
        known or entry_of(OLD),
        edited=edited,
        by=by,
        now="2026-01-01T00:00:00Z",
        prune=prune,
    )


def test_an_explicit_call_replaces_edited_files_and_leaves_the_others() -> None:
    made = plan("overwrite")

    assert made.changes.added == ("added.md",)
    assert made.changes.replaced == ("clean.md",)
    assert made.changes.unchanged == ("same.md",)
    assert made.changes.overwritten == ("edited.md", "own.md")
    assert made.changes.left_behind == ("gone.md",)
    assert made.writes == {path: NEW[path] for path in ("added.md", "clean.md", "edited.md", "own.md")}
    assert not made.deletes
    assert not made.edits_win


def test_an_automatic_update_keeps_edited_files_and_records_what_the_source_has() -> None:
    made = plan("keep")

    assert made.changes.kept == ("edited.md", "own.md")
    assert made.writes == {path: NEW[path] for path in ("added.md", "clean.md")}
    assert made.edits_win
    assert made.entry is not None
    assert made.entry.files == hashes(NEW)


def test_pruning_takes_away_clean_files_that_left_the_source() -> None:
    made = plan("keep", prune=True)

    assert made.changes.removed == ("gone.md",)
    assert made.deletes == {"gone.md"}
    assert not made.changes.left_behind


def test_what_was_edited_is_not_pruned() -> None:
    known = entry_of({**OLD, "own.md": b"other"})
    bundle = bundle_of({"same.md": b"same"}, "2.0.0")

    made = plan_install(bundle, disk_of(DISK), known, edited="keep", by="auto", now="x", prune=True)

    assert made.changes.removed == ("clean.md", "gone.md")


def test_the_record_says_what_where_and_when() -> None:
    made = plan("overwrite").entry

    assert made == Entry(
        source=RegistrySource("db", tag="latest"),
        resolved="2.0.0",
        installed_at="2026-01-01T00:00:00Z",
        by="call",
        files=hashes(NEW),
        left_behind=hashes({"gone.md": OLD["gone.md"]}),
    )


def test_an_automatic_update_of_something_asked_for_leaves_it_asked_for() -> None:
    asked_for = plan("keep", by="auto").entry
    assert asked_for is not None
    assert asked_for.by == "call"
    by_auto = plan("keep", by="auto", known=entry_of(OLD, by="auto")).entry
    assert by_auto is not None
    assert by_auto.by == "auto"
    by_call = plan("keep", by="call", known=entry_of(OLD, by="auto")).entry
    assert by_call is not None
    assert by_call.by == "call"


def test_the_same_content_again_touches_no_file_and_keeps_the_time_of_the_install() -> None:
    known = entry_of(OLD)

    made = plan_install(bundle_of(OLD), disk_of(OLD), known, edited="overwrite", by="call", now="later")

    assert not made.touches_files
    assert made.entry is not None
    assert made.entry.installed_at == known.installed_at


def test_a_file_deleted_by_hand_comes_back() -> None:
    made = plan_install(bundle_of(OLD), disk_of({}), entry_of(OLD), edited="keep", by="auto", now="x")

    assert made.changes.added == tuple(sorted(OLD))


@pytest.mark.parametrize("node", ["link", "folder", "other"])
def test_nothing_is_written_over_an_entry_that_is_not_a_file(node: Node) -> None:
    disk = Disk(exists=True, nodes={"a.md": node})

    with pytest.raises(DirectoryError, match=f"D340 .*{node} stands"):
        plan_install(bundle_of({"a.md": b""}), disk, None, edited="overwrite", by="call", now="x")


@pytest.mark.parametrize("node", ["link", "file", "other"])
def test_nothing_is_written_through_an_entry_that_is_not_a_folder(node: Node) -> None:
    disk = Disk(exists=True, nodes={"a": "folder", "a/b": node})

    with pytest.raises(DirectoryError, match=f"D340 .*{node} stands"):
        plan_install(bundle_of({"a/b/c.md": b""}), disk, None, edited="overwrite", by="call", now="x")


def test_removing_takes_what_the_record_names_and_keeps_what_was_edited() -> None:
    made = plan_remove("db", disk_of(DISK), entry_of(OLD), force=False)

    assert made.entry is None
    assert made.changes.removed == ("clean.md", "gone.md", "same.md")
    assert made.changes.kept == ("edited.md",)
    assert "own.md" not in made.deletes


def test_removing_by_force_takes_edited_files_too_but_never_own_ones() -> None:
    made = plan_remove("db", disk_of(DISK), entry_of(OLD), force=True)

    assert made.deletes == {"clean.md", "gone.md", "same.md", "edited.md"}
    assert not made.edits_win


def test_restoring_leaves_the_record_as_it_was() -> None:
    known = entry_of(OLD, by="auto")

    made = plan_restore(bundle_of(OLD), Disk(), known, edited="keep")

    assert made.entry is known
    assert made.writes == OLD


def test_restoring_from_a_source_that_changed_is_refused() -> None:
    with pytest.raises(DirectoryError, match=r"D340 .*other content"):
        plan_restore(bundle_of(NEW), Disk(), entry_of(OLD), edited="keep")


def test_verifying_tells_clean_edited_missing_and_own_files_apart() -> None:
    disk = disk_of({**DISK, "sub/own.txt": b""}, sub="folder")

    found = verify_entry(entry_of({**OLD, "lost.md": b""}), disk)

    assert found == {
        "clean": ["clean.md", "gone.md", "same.md"],
        "edited": ["edited.md"],
        "missing": ["lost.md"],
        "mode": [],
        "left_behind": [],
        "own": ["own.md", "sub/own.txt"],
    }


def test_changes_as_a_dict_name_only_what_there_is() -> None:
    assert plan("keep").changes.as_dict() == {
        "added": ["added.md"],
        "replaced": ["clean.md"],
        "kept": ["edited.md", "own.md"],
        "left_behind": ["gone.md"],
        "unchanged": ["same.md"],
    }


def test_a_diff_shows_changed_new_and_removed_files() -> None:
    text = unified_diff(
        "db", [("a.md", b"one\ntwo\n", b"one\n2\n"), ("n.md", None, b"new"), ("g.md", b"x\n", None)]
    )

    assert text == (
        "--- a/db/a.md\n+++ b/db/a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        "--- a/db/g.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "--- /dev/null\n+++ b/db/n.md\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n"
    )


def test_a_diff_of_a_binary_file_names_sizes_and_hashes() -> None:
    text = unified_diff(
        "db", [("a.bin", b"\xff", b"\xfe\xfe"), ("b.txt", b"x" * 100_000, None), ("c", b"\0", b"\0")]
    )

    assert "Binary file db/a.bin: 1 bytes, sha256:" in text
    assert "-> 2 bytes, sha256:" in text
    assert "db/b.txt: 100000 bytes" in text
    assert "-> nothing" in text
    assert "db/c" not in text


def test_a_diff_never_sends_control_characters_to_a_terminal() -> None:
    assert "\x1b" not in unified_diff("db", [("a.md", b"plain\r\n", b"\x1b[31mred\n")])
