"""§3: which files of the folder are documents, and how fresh they are."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.contract.requirements import requirement
from tests.support.engine import RawClient
from tests.support.folders import Folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.reader import Reader


@requirement("folder.ids", "folder.display-id", "get.index")
def test_the_path_is_the_id(directory: Reader) -> None:
    directory.skills.document("plain.md", "Plain")
    directory.skills.document("a/SKILL.md", "A")
    directory.skills.document("b/SKILLS.md", "B")
    directory.skills.document("c/index.md", "C")
    directory.skills.document("c/deep/er/one.md", "Deep")
    directory.skills.document("c/deep/index.md", "Middle")

    assert directory.ids() == ["a", "b", "c", "c/deep", "c/deep/er/one", "plain"]
    assert directory.get("c/index")["id"] == "c"


@requirement("folder.display-id")
def test_an_overview_keeps_its_whole_id_when_a_document_has_the_bare_one(directory: Reader) -> None:
    directory.skills.document("db/index.md", "Overview")
    directory.skills.document("db.md", "Bare")

    assert {key: row["title"] for key, row in directory.rows().items()} == {
        "db": "Bare",
        "db/index": "Overview",
    }
    directory.skills.remove("db.md")
    assert {key: row["title"] for key, row in directory.rows().items()} == {"db": "Overview"}


@requirement("folder.prompts")
def test_what_lies_below_a_folder_called_prompts_is_a_prompt(directory: Reader) -> None:
    front = "---\ndescription: What it does\n---\nTemplate.\n"
    directory.skills.write("db/prompts/ask.md", front)
    directory.skills.write("db/prompts/deeper/tell.md", front)
    directory.skills.write("prompts/top.md", front)
    directory.skills.write("db/prompts/file.md", "---\nname: other-name\ndescription: x\n---\nBody.\n")

    prompts = [row["name"] for row in directory.call("directory::prompts::list")["prompts"]]

    assert prompts == ["ask", "other-name", "tell", "top"]
    assert directory.ids() == []


@requirement("folder.prompt-description")
def test_a_prompt_without_a_description_is_skipped_with_a_reason(directory: Reader) -> None:
    directory.skills.write("db/prompts/none.md", "Just a template.\n")
    directory.skills.write("db/prompts/blank.md", '---\ndescription: " "\n---\nTemplate.\n')

    assert directory.call("directory::prompts::list") == {"prompts": []}
    for subject in ("db/prompts/none.md", "db/prompts/blank.md"):
        assert "needs front matter with a description" in directory.reason(subject)


@requirement("folder.skipped", "diagnostics.all")
def test_a_file_that_is_not_a_document_is_skipped_with_its_reason(directory: Reader, tmp_path: Path) -> None:
    skills = directory.skills
    skills.document(".hidden.md", "x")
    skills.document(".git/config.md", "x")
    skills.write("script.py", "print()")
    skills.document("Big Name.md", "x")
    skills.document("fn/a.md", "x")
    skills.write("blank.md", " \n\t\n")
    skills.write("only-front-matter.md", "---\ntitle: x\n---\n")
    skills.write("large.md", "x" * (256 * 1024 + 1))
    skills.path("latin.md").write_bytes("# Gr\xfc\xdfe\n".encode("latin-1"))
    skills.document("twice/index.md", "x")
    skills.document("twice/SKILL.md", "x")
    (tmp_path / "outside.md").write_text("# secret\n", encoding="utf-8")
    skills.link("link.md", tmp_path / "outside.md")
    skills.link("folder-link", tmp_path)
    os.mkfifo(skills.path("pipe.md"))

    reasons = {finding["subject"]: finding["reason"] for finding in directory.findings()}

    assert directory.ids() == ["twice"]
    assert {subject: fragment in reasons[subject] for subject, fragment in SKIPPED.items()} == dict.fromkeys(
        SKIPPED, True
    )
    assert set(reasons) == set(SKIPPED)
    assert all(finding["fix"] for finding in directory.findings())


SKIPPED = {
    ".hidden.md": "hidden",
    ".git": "hidden",
    "script.py": "of no skill",
    "Big Name.md": "lowercase",
    "fn/a.md": "reserved",
    "blank.md": "empty",
    "only-front-matter.md": "empty",
    "large.md": "larger",
    "latin.md": "not UTF-8",
    "twice/index.md": "twice/SKILL.md has the same id",
    "link.md": "symbolic links",
    "folder-link": "symbolic links",
    "pipe.md": "neither a file nor a directory",
}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@requirement("folder.skipped")
def test_an_unreadable_file_is_skipped_with_its_reason(directory: Reader) -> None:
    directory.skills.document("closed.md", "x")
    directory.skills.path("closed.md").chmod(0)

    assert directory.ids() == []
    assert "cannot be read" in directory.reason("closed.md")


@requirement("folder.is-a-link")
def test_the_folder_itself_may_be_a_link_resolved_at_the_start(
    start: Callable[..., Reader], tmp_path: Path
) -> None:
    for name in ("first", "second"):
        Folder(tmp_path / name).document(f"{name}.md", name)
    (tmp_path / "current").symlink_to(tmp_path / "first")

    directory = start(skills_folder=tmp_path / "current")
    assert directory.ids() == ["first"]

    (tmp_path / "current").unlink()
    (tmp_path / "current").symlink_to(tmp_path / "second")
    assert directory.ids() == ["first"]


@requirement("folder.local")
def test_a_local_namespace_replaces_the_whole_one(start: Callable[..., Reader], tmp_path: Path) -> None:
    local = Folder(tmp_path / "local")
    local.document("db/index.md", "Local")
    directory = start(local_skills_folder=local.root)
    directory.skills.document("db/index.md", "Shared")
    directory.skills.document("db/query.md", "Query")
    directory.skills.document("mail/index.md", "Mail")

    assert {key: row["title"] for key, row in directory.rows().items()} == {"db": "Local", "mail": "Mail"}
    assert directory.body("db").startswith("# Local")
    assert [finding["kind"] for finding in directory.findings("db")] == ["shadowed"]

    local.remove("db")
    assert directory.ids() == ["db", "db/query", "mail"]


@requirement("folder.missing")
def test_a_missing_folder_is_empty_until_it_appears(start: Callable[..., Reader], tmp_path: Path) -> None:
    late = Folder(tmp_path / "late")
    directory = start(skills_folder=late.root)

    assert directory.ids() == []
    assert directory.findings() == []

    late.document("db/index.md", "DB")
    assert directory.ids() == ["db"]
    late.remove("db")
    late.root.rmdir()
    assert directory.ids() == []


@requirement("folder.fresh")
def test_an_edit_is_there_for_the_next_read(directory: Reader) -> None:
    directory.skills.document("db.md", "One")
    assert directory.rows()["db"]["title"] == "One"

    before = directory.skills.path("db.md").stat()
    for title in ("Two", "Six", "Ten"):
        # The same size, within the same tick of the clock, and with the time put back.
        directory.skills.document("db.md", title)
        directory.skills.put_time_back("db.md", before)
        assert directory.rows()["db"]["title"] == title
        assert directory.body("db") == f"# {title}\n\nAbout {title}.\n"
        assert directory.read_uri("iii://db")["text"] == f"# {title}\n\nAbout {title}.\n"
        assert title in directory.read_uri("iii://skills")["text"]


@requirement("folder.fresh")
def test_writers_who_read_at_the_same_time_each_see_their_own_edit(directory: Reader) -> None:
    def write_and_read(name: str) -> list[str]:
        with RawClient(directory.url) as client:
            return [text for text in map(str, range(30)) if not is_seen(client, name, text)]

    def is_seen(client: RawClient, name: str, text: str) -> bool:
        directory.skills.write(f"{name}.md", text)
        return client.result("directory::skills::get", {"id": name})["body"] == text

    with ThreadPoolExecutor(8) as pool:
        missed = list(pool.map(write_and_read, [f"writer-{number}" for number in range(8)]))

    assert missed == [[]] * 8


@requirement("folder.structure-fresh")
def test_folders_that_come_go_and_move_are_seen_by_the_next_read(directory: Reader) -> None:
    skills = directory.skills
    skills.document("a/index.md", "A")
    skills.document("a/deep/one.md", "One")
    assert directory.ids() == ["a", "a/deep/one"]

    skills.move("a", "b")
    assert directory.ids() == ["b", "b/deep/one"]
    skills.document("new/index.md", "New")
    skills.remove("b")
    skills.move("new", "b")
    assert {key: row["title"] for key, row in directory.rows().items()} == {"b": "New"}
    assert directory.miss("a/deep/one").startswith("D110 ")
    skills.remove("b/index.md")
    assert directory.ids() == []
