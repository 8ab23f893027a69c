"""What the folder source makes of a folder: rules of the contract's §3, the same watched and rescanned."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from tests.hostile import HOSTILE
from tests.support.folders import Folder, View, no_watcher, scanned

from iii_directory import limits
from iii_directory.catalog import folder_scanning as rules
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.disk import files
from iii_directory.disk.files import RefusedError
from iii_directory.disk.install_record import LOCKFILE
from iii_directory.disk.safe_open import read_below
from iii_directory.documents.model import ParsedFile

if TYPE_CHECKING:
    from pathlib import Path


def test_documents_are_found_at_the_root_and_in_namespaces(skills: Folder, view: View) -> None:
    skills.document("hello.md", "Hello")
    skills.document("db/SKILL.md", "Database")
    skills.document("db/how/to-query.md", "Query")

    assert view.titles() == {"hello.md": "Hello", "db/SKILL.md": "Database", "db/how/to-query.md": "Query"}
    assert view.files["db/SKILL.md"].skill is not None
    assert view.files["db/SKILL.md"].skill.id == "db/index"


def test_a_prompt_is_found_below_a_folder_called_prompts(skills: Folder, view: View) -> None:
    skills.write("db/prompts/ask.md", "---\ndescription: Ask it\n---\nAsk.\n")
    view.refresh()

    prompt = view.files["db/prompts/ask.md"].prompt

    assert prompt is not None
    assert (prompt.name, prompt.description) == ("ask", "Ask it")


def test_a_missing_folder_is_an_empty_catalogue_and_is_seen_when_it_appears(
    tmp_path: Path, watcher: Any
) -> None:
    view = View(FolderSource(tmp_path / "not" / "yet", watcher=watcher))
    assert not view.refresh()
    assert view.source.findings == () or watcher is no_watcher

    Folder(tmp_path / "not" / "yet").document("a/b.md", "B")

    assert view.titles() == {"a/b.md": "B"}


def test_a_folder_that_is_a_link_is_resolved_once_at_the_start(tmp_path: Path, watcher: Any) -> None:
    first, second = Folder(tmp_path / "first"), Folder(tmp_path / "second")
    first.document("a.md", "First")
    second.document("a.md", "Second")
    os.symlink(first.root, tmp_path / "skills")
    view = View(FolderSource(tmp_path / "skills", watcher=watcher))
    assert view.titles() == {"a.md": "First"}

    os.unlink(tmp_path / "skills")
    os.symlink(second.root, tmp_path / "skills")

    assert view.titles() == {"a.md": "First"}


@pytest.mark.parametrize("replacement", ["link", "file"])
def test_a_folder_replaced_by_something_else_is_empty_and_says_so(
    tmp_path: Path, skills: Folder, view: View, replacement: str
) -> None:
    skills.document("a.md", "A")
    assert view.titles() == {"a.md": "A"}

    os.rename(skills.root, tmp_path / "elsewhere")
    if replacement == "link":
        os.symlink(tmp_path / "elsewhere", skills.root)
    else:
        skills.root.write_text("not a directory", encoding="utf-8")

    assert view.titles() == {}
    assert any(
        finding.subject == "skills_folder" and "not a directory" in finding.reason
        for finding in view.source.findings
    )
    os.unlink(skills.root)
    os.rename(tmp_path / "elsewhere", skills.root)
    assert view.titles() == {"a.md": "A"}
    assert not any(finding.kind == "skipped" for finding in view.source.findings)


def test_everything_that_is_not_a_document_is_left_out_with_its_reason(
    tmp_path: Path, skills: Folder, view: View
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("# Outside", encoding="utf-8")
    skills.write("ns/script.sh", "echo")
    skills.write("ns/.hidden.md", "# Hidden")
    skills.write(".git/config.md", "# Git")
    skills.write("ns/large.md", "x" * (limits.MAX_BODY_BYTES + 1))
    skills.write("ns/empty.md", "")
    skills.path("ns/latin.md").write_bytes(b"# caf\xe9")
    skills.document("ns/Bad Name.md", "Bad")
    skills.document("fn/reserved.md", "Reserved")
    skills.link("ns/link.md", outside)
    skills.link("ns/broken.md", "nowhere")
    skills.link("ns/loop.md", "loop.md")
    skills.link("linked", tmp_path)
    os.mkfifo(skills.path("ns/fifo.md"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(skills.path("ns/socket.md")))

    found = view.reasons()

    assert "ns/script.sh" not in found
    assert view.files["ns/script.sh"] == ParsedFile(size=4)
    assert found["ns/.hidden.md"] == found[".git"] == rules.HIDDEN.text
    assert found["ns/large.md"] == files.TOO_LARGE.text
    assert "empty" in found["ns/empty.md"]
    assert "UTF-8" in found["ns/latin.md"]
    assert view.files["ns/large.md"].size == limits.MAX_BODY_BYTES + 1
    assert view.files["ns/Bad Name.md"].is_plain
    assert view.files["fn/reserved.md"].is_plain
    for link in ("ns/link.md", "ns/broken.md", "ns/loop.md", "linked"):
        assert found[link] == files.LINK.text
    assert found["ns/fifo.md"] == found["ns/socket.md"] == files.SPECIAL.text
    assert view.titles() == {}


def test_what_installs_leave_in_the_folder_is_neither_a_document_nor_a_finding(
    skills: Folder, view: View
) -> None:
    skills.write("skills.lock.json", "{}")
    skills.write(".iii-directory/ns.lock", "")
    skills.write("ns/skills.lock.json", "{}")

    assert view.reasons() == {}
    assert list(view.files) == ["ns/skills.lock.json"]


def test_a_name_that_is_not_utf8_is_reported_with_escapes(skills: Folder, view: View) -> None:
    root = os.fsencode(skills.root)
    os.mkdir(root + b"/dir\xff")
    for name in (b"/bad\xff.md", b"/dir\xff/a.md"):
        with open(root + name, "wb") as file:
            file.write(b"# Bad")
    view.refresh()

    findings = sorted(finding.subject for file in view.files.values() for finding in file.findings)

    assert findings == ["bad\\udcff.md", "dir\\udcff"]
    assert set(view.reasons().values()) == {rules.BAD_NAME.text}


def test_directories_are_entered_down_to_the_limit_and_no_further(
    skills: Folder, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_FOLDER_DEPTH", 3)
    skills.document("a/b/c/deep.md", "Deep")
    skills.document("a/b/c/d/deeper.md", "Deeper")

    assert view.titles() == {"a/b/c/deep.md": "Deep"}
    assert view.reasons() == {"a/b/c/d": rules.TOO_DEEP.text}


def test_a_folder_with_too_many_entries_says_so_and_takes_in_the_rest_when_there_is_room(
    skills: Folder, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_FOLDER_ENTRIES", 5)
    for number in range(4):
        skills.document(f"ns/doc-{number}.md", str(number))
    skills.document("other/doc.md", "Other")
    skills.document("third/doc.md", "Third")
    view.refresh()
    assert len(view.files) <= 4
    assert any("more than 5" in finding.reason for finding in view.source.findings)

    skills.remove("ns")
    view.refresh()

    assert view.titles() == {"other/doc.md": "Other", "third/doc.md": "Third"}
    assert not any("more than" in finding.reason for finding in view.source.findings)


def test_a_namespace_of_the_local_folder_replaces_the_whole_namespace(
    skills: Folder, local: Folder, watcher: Any
) -> None:
    skills.document("db/SKILL.md", "Base")
    skills.document("db/extra.md", "Extra")
    skills.document("mail/SKILL.md", "Mail")
    skills.document("hello.md", "Hello")
    view = View(FolderSource(skills.root, local.root, watcher=watcher))
    base = view.titles()

    local.document("db/SKILL.md", "Local")
    local.document("hello.md", "Local hello")
    local.document("own/SKILL.md", "Own")

    assert view.titles() == {
        "db/SKILL.md": "Local",
        "mail/SKILL.md": "Mail",
        "hello.md": "Local hello",
        "own/SKILL.md": "Own",
    }
    assert [f.subject for f in view.source.findings if f.kind == "shadowed"] == ["db"]
    assert view.source.local_namespaces == {"db", "own"}
    assert view.source.read_body("db/SKILL.md").startswith(b"# Local\n")
    assert view.source.read_body("hello.md").startswith(b"# Local hello\n")
    assert view.source.read_body("mail/SKILL.md").startswith(b"# Mail\n")
    with pytest.raises(RefusedError):
        view.source.read_body("db/extra.md")

    skills.document("db/extra.md", "Edited out of sight")
    assert view.refresh().get("db/extra.md") is None

    for name in ("db", "hello.md", "own"):
        local.remove(name)
    assert view.titles() == {**base, "db/extra.md": "Edited out of sight"}
    assert [f for f in view.source.findings if f.kind == "shadowed"] == []


def test_an_empty_namespace_of_the_local_folder_hides_the_other(
    skills: Folder, local: Folder, watcher: Any
) -> None:
    skills.document("db/SKILL.md", "Base")
    view = View(FolderSource(skills.root, local.root, watcher=watcher))
    view.refresh()

    local.path("db").mkdir()

    assert view.titles() == {}
    local.remove("db")
    assert view.titles() == {"db/SKILL.md": "Base"}


def test_a_body_is_what_the_file_holds_at_the_call(skills: Folder, view: View) -> None:
    skills.document("a.md", "A")
    view.refresh()

    skills.document("a.md", "Not announced")

    assert view.source.read_body("a.md") == b"# Not announced\n\nAbout Not announced.\n"


@pytest.mark.parametrize("fate", ["gone", "link", "directory", "too large", "parent gone", "parent a link"])
def test_a_body_whose_file_became_something_else_is_refused(
    tmp_path: Path, skills: Folder, view: View, fate: str
) -> None:
    canary = Folder(tmp_path / "canary")
    canary.document("a.md", "Canary")
    skills.document("ns/a.md", "A")
    view.refresh()
    skills.remove("ns" if fate.startswith("parent") else "ns/a.md")
    match fate:
        case "link":
            skills.link("ns/a.md", canary.path("a.md"))
        case "directory":
            skills.path("ns/a.md").mkdir()
        case "too large":
            skills.write("ns/a.md", "x" * (limits.MAX_BODY_BYTES + 1))
        case "parent a link":
            skills.link("ns", canary.root)
        case _:
            pass

    with pytest.raises(RefusedError):
        view.source.read_body("ns/a.md")


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "/",
        "../canary.md",
        "ns/../../canary.md",
        "ns//a.md",
        "/etc/passwd",
        "a\0.md",
        "\udfff.md",
    ],
)
def test_a_path_outside_the_catalogue_is_never_opened(
    tmp_path: Path, skills: Folder, view: View, path: str
) -> None:
    (tmp_path / "canary.md").write_text("# Canary", encoding="utf-8")
    skills.document("ns/a.md", "A")
    view.refresh()

    with pytest.raises(RefusedError):
        view.source.read_body(path)


def test_no_hostile_string_is_a_path_that_is_read(tmp_path: Path, skills: Folder, view: View) -> None:
    for name in ("a", "etc/passwd", "skills2/secret", "skills.bak/secret"):
        Folder(tmp_path).write(name, "canary")
    skills.document("a/b.md", "Inside")
    view.refresh()

    for text in HOSTILE:
        for path in (text, f"a/{text}", f"{text}/b.md", f"a/{text}/b.md"):
            with pytest.raises(RefusedError):
                view.source.read_body(path)
            with pytest.raises(RefusedError):
                read_below(os.fspath(skills.root), path, 100)


def test_a_file_with_a_hostile_name_is_listed_or_has_its_reason(skills: Folder, view: View) -> None:
    made: set[str] = set()
    for text in HOSTILE:
        name = f"{text}.md"
        with contextlib.suppress(OSError, ValueError):
            skills.path("ns").mkdir(exist_ok=True)
            with open(os.path.join(skills.root, "ns", name), "xb") as file:
                file.write(b"# Hostile")
            made |= {f"ns/{name}"} if "/" not in name else set()
    view.refresh()

    assert len(made) > 100
    assert made <= view.files.keys()
    for path in made:
        file = view.files[path]
        assert file.skill or file.findings or file.is_plain
        assert all(json.dumps(f.subject, ensure_ascii=False).encode("utf-8") for f in file.findings)


def test_the_lock_file_is_read_from_the_skills_folder(skills: Folder, local: Folder) -> None:
    view = View(FolderSource(skills.root, local.root, watcher=no_watcher))
    local.write("skills.lock.json", "not this one")
    assert LOCKFILE not in view.refresh()
    assert not view.source.record.lock.broken

    skills.write("skills.lock.json", "{}")

    assert LOCKFILE in view.refresh()
    assert view.source.record.lock.broken


def refuse_to_open(monkeypatch: pytest.MonkeyPatch, names: set[str], number: int) -> None:
    """Have the system refuse to open some names: a test may run as root, whom permissions do not stop."""
    really = os.open

    def refusing(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path in names:
            raise OSError(number, os.strerror(number))
        return really(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)


def test_an_unreadable_file_is_reported_and_read_once_it_can_be(
    skills: Folder, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    skills.document("ns/secret.md", "Secret")
    skills.document("locked/a.md", "A")
    with monkeypatch.context() as patch:
        refuse_to_open(patch, {"secret.md", "locked"}, errno.EACCES)
        assert view.reasons() == dict.fromkeys(("ns/secret.md", "locked"), files.UNREADABLE.text)

    os.chmod(skills.path("ns/secret.md"), 0o644)
    os.chmod(skills.path("locked"), 0o755)

    assert view.titles() == {"ns/secret.md": "Secret", "locked/a.md": "A"}
    assert view.reasons() == {}


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_passing_shortage_is_reported_and_tried_again_at_the_next_refresh(
    skills: Folder, view: View, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    skills.document("ns/a.md", "A")
    skills.document("other/b.md", "B")
    view.refresh()
    skills.document("ns/a.md", "A2")
    skills.document("ns/new.md", "New")
    skills.document("more/c.md", "C")
    with monkeypatch.context() as patch:
        refuse_to_open(patch, {"new.md", "more", "ns"}, number)
        view.refresh()

    assert view.titles() == {"ns/a.md": "A2", "ns/new.md": "New", "more/c.md": "C", "other/b.md": "B"}
    assert view.reasons() == {}


def test_a_directory_that_cannot_be_listed_to_its_end_keeps_what_is_known(
    skills: Folder, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    skills.document("ns/a.md", "A")
    assert view.titles() == {"ns/a.md": "A"}
    skills.document("ns/sub/b.md", "B")

    def failing(_: int) -> Any:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", failing)
        assert view.titles() == {"ns/a.md": "A"}

    assert view.titles() == {"ns/a.md": "A", "ns/sub/b.md": "B"}


def test_a_file_that_goes_between_the_listing_and_the_look_is_forgotten(
    skills: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    skills.document("ns/a.md", "A")
    view = View(FolderSource(skills.root, watcher=no_watcher))
    monkeypatch.setattr("iii_directory.disk.files.time.time_ns", lambda: 2**62)
    view.refresh()

    class Late:
        """A listing whose file is deleted as soon as it was listed."""

        def __init__(self, directory: int) -> None:
            self.items = list(really(directory))

        def __enter__(self) -> Any:
            if any(item.name == "a.md" for item in self.items):
                skills.remove("ns/a.md")
            return iter(self.items)

        def __exit__(self, *_: object) -> None:
            return

    really = os.scandir
    monkeypatch.setattr(os, "scandir", Late)

    assert view.titles() == {}


def test_a_root_that_cannot_be_opened_is_reported_by_its_key_and_not_by_its_path(
    skills: Folder, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    skills.document("a.md", "A")
    with monkeypatch.context() as patch:
        refuse_to_open(patch, {os.fspath(skills.root)}, errno.EACCES)
        source = FolderSource(skills.root, watcher=no_watcher)
        assert not View(source).refresh()
        found = [finding for finding in source.findings if finding.kind == "skipped"]
    assert [(f.subject, f.reason) for f in found] == [("skills_folder", files.UNREADABLE.text)]
    assert set(View(source).refresh()) == {"a.md"}


def test_a_time_that_no_calendar_holds_does_not_stop_the_scan(skills: Folder) -> None:
    skills.document("a.md", "A")
    os.utime(skills.path("a.md"), (0, -10))
    skill = scanned(skills.root)["a.md"].skill
    assert skill is not None
    assert skill.modified_at == "1970-01-01T00:00:00.000000Z"


def test_modified_at_is_rfc_3339_in_utc(skills: Folder) -> None:
    skills.document("a.md", "A")
    os.utime(skills.path("a.md"), ns=(0, 1_700_000_000_123_456_789))
    skill = scanned(skills.root)["a.md"].skill
    assert skill is not None
    assert skill.modified_at == "2023-11-14T22:13:20.123456Z"


def test_both_sides_of_a_merge_are_never_served(view: View, skills: Folder) -> None:
    skills.document("pdf/SKILL.md", "pdf")
    skills.write("pdf/SKILL.md.merge", "<<<<<<<")

    assert view.titles() == {"pdf/SKILL.md": "pdf"}
    assert view.reasons()["pdf/SKILL.md.merge"] == rules.MERGE.text
