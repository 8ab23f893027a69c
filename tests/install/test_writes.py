"""Single documents written beside others who write the same: every accepted write is seen, none is lost."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.installs import WatchedFiles, bundle_of, contents, hashes, install, put
from tests.support.memory import in_memory

from iii_directory import limits
from iii_directory.disk.install_record import content_hash
from iii_directory.errors import DirectoryError
from iii_directory.install.skills_folder import SkillsFolder
from iii_directory.install.writes import Writes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from iii_directory.disk.files import FileOps
    from iii_directory.disk.install_record import Entry

NOW = "2026-01-01T00:00:00Z"
FIRST = b"# first\n"
ROUNDS = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with in_memory(tmp_path) as path:
        yield path / "skills"


def writes(folder: Path, files: FileOps | None = None) -> Writes:
    return Writes(SkillsFolder(folder, files=files), lambda: NOW)


def entry(folder: Path, namespace: str = "db") -> Entry | None:
    return SkillsFolder(folder).lock().namespaces.get(namespace)


def attempt(change: Any) -> str:
    """The code of what a write was refused with."""
    with pytest.raises(DirectoryError) as refusal:
        asyncio.run(change)
    return refusal.value.code


def test_of_two_writers_each_builds_on_what_it_read_and_no_accepted_write_is_lost(
    folder: Path,
) -> None:
    asyncio.run(writes(folder).create("db", "page.md", FIRST))
    history: dict[str, bytes] = {}
    refused = [0, 0]

    def write_rounds(who: int) -> None:
        mine, disk = writes(folder), SkillsFolder(folder)
        for number in range(ROUNDS):
            read = disk.read("db", "page.md")
            assert read is not None
            before = content_hash(read)
            content = f"# {who} {number}\n\non {before}\n".encode()
            try:
                asyncio.run(mine.update("db", "page.md", content, before))
            except DirectoryError as error:
                refused[who] += error.code == "D118"
            else:
                assert before not in history, "two writes were accepted on top of one"
                history[before] = content

    threads = [threading.Thread(target=write_rounds, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(history) + sum(refused) == 2 * ROUNDS
    text, steps = FIRST, 0
    while content_hash(text) in history:
        text, steps = history[content_hash(text)], steps + 1
    assert steps == len(history) >= ROUNDS, "every accepted write is in the chain from the first to the last"
    assert (folder / "db/page.md").read_bytes() == text
    recorded = entry(folder)
    assert recorded is not None
    assert recorded.files == {"page.md": content_hash(text)}


@pytest.mark.parametrize("content", [b"# mine\n", None], ids=["update", "delete"])
def test_an_edit_saved_during_a_write_is_kept_and_the_writer_is_told(
    folder: Path, content: bytes | None
) -> None:
    asyncio.run(writes(folder).create("db", "page.md", FIRST))

    def save(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "exchange":
            (folder / "db/page.md").write_bytes(b"# saved by hand\n")

    mine = writes(folder, WatchedFiles(save))
    change = mine.update("db", "page.md", None, None)
    if content is not None:
        change.close()
        change = mine.update("db", "page.md", content, None)

    assert attempt(change) == "D118"
    assert (folder / "db/page.md").read_bytes() == b"# saved by hand\n"


def test_a_file_made_meanwhile_in_the_same_place_is_kept(folder: Path) -> None:
    asyncio.run(writes(folder).create("db", "other.md", FIRST))

    def save(count: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "exchange":
            (folder / "db/page.md").write_bytes(b"# made by hand\n")

    assert attempt(writes(folder, WatchedFiles(save)).create("db", "page.md", b"# mine\n")) == "D118"
    assert (folder / "db/page.md").read_bytes() == b"# made by hand\n"


def test_a_document_that_has_just_gone_is_neither_written_nor_deleted(folder: Path) -> None:
    assert attempt(writes(folder).update("db", "page.md", FIRST, None)) == "D110"
    assert attempt(writes(folder).update("db", "page.md", None, None)) == "D110"
    assert not folder.exists()


def test_a_document_of_an_installed_namespace_counts_as_edited(folder: Path) -> None:
    files = {"SKILL.md": b"# db\n", "page.md": b"# page\n"}
    install(folder, bundle_of(files))
    before = entry(folder)

    asyncio.run(writes(folder).update("db", "page.md", b"# mine\n", None))
    asyncio.run(writes(folder).create("db", "own.md", b"# own\n"))

    assert entry(folder) == before
    install(folder, bundle_of({**files, "page.md": b"# newer\n"}, "2.0.0"), edited="keep")
    assert contents(folder / "db") == {"SKILL.md": b"# db\n", "page.md": b"# mine\n", "own.md": b"# own\n"}


def test_an_install_over_what_was_written_here_keeps_it_as_if_made_by_hand(folder: Path) -> None:
    for path in ("page.md", "own.md"):
        asyncio.run(writes(folder).create("db", path, b"# mine\n"))
    files = {"SKILL.md": b"# db\n", "page.md": b"# theirs\n"}

    plan = install(folder, bundle_of(files), edited="keep", prune=True)

    assert plan.changes.kept == ("page.md",)
    assert contents(folder / "db") == {"SKILL.md": b"# db\n", "page.md": b"# mine\n", "own.md": b"# mine\n"}
    recorded = entry(folder)
    assert recorded is not None
    assert (recorded.by, recorded.files, recorded.left_behind) == ("call", hashes(files), {})


def test_the_last_document_of_an_installed_namespace_takes_its_folder_along(folder: Path) -> None:
    install(folder, bundle_of({"SKILL.md": b"# db\n"}))

    asyncio.run(writes(folder).update("db", "SKILL.md", None, None))

    assert not (folder / "db").exists()
    assert entry(folder) is not None, "what was installed can be restored"


def test_the_record_forgets_what_was_deleted_by_hand(folder: Path) -> None:
    for path in ("a.md", "b.md"):
        asyncio.run(writes(folder).create("db", path, FIRST))
    (folder / "db/a.md").unlink()

    asyncio.run(writes(folder).create("db", "c.md", FIRST))

    recorded = entry(folder)
    assert recorded is not None
    assert sorted(recorded.files) == ["b.md", "c.md"]


def test_a_program_stays_one_when_it_is_written(folder: Path) -> None:
    put(folder, {"db/page.md": FIRST})
    (folder / "db/page.md").chmod(0o755)

    asyncio.run(writes(folder).update("db", "page.md", b"# other\n", None))

    assert (folder / "db/page.md").stat().st_mode & 0o100


def test_more_writes_than_there_is_room_for_are_told_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_WRITES_AT_ONCE", 2)

    async def many() -> list[object]:
        mine = writes(folder)
        creating = (mine.create("db", f"{number}.md", FIRST) for number in range(3))
        return await asyncio.gather(*creating, return_exceptions=True)

    done = asyncio.run(many())

    assert [getattr(one, "code", None) for one in done] == [None, None, "D340"]
    assert "2 writes are under way already; nothing was changed" in str(done[2])
    assert sorted(contents(folder / "db")) == ["0.md", "1.md"]
