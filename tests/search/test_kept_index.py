"""The index that commands keep beside the data: it saves time and never changes an answer."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from iii_directory.cli.source import loaded
from iii_directory.config import Settings
from iii_directory.search import kept_index
from iii_directory.search.index import Index
from iii_directory.search.kept_index import FILE_NAME, search_documents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUESTIONS = ["tie a bowline", "repair sail number 7", "knots", "greet a sailor", "zxqv blorp"]


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    for number in range(120):
        write(folder, number, f"Repair sail number {number}.", "Needle and thread.")
    write(folder, 7, "Tie knots.", "# Rope\n\nTie a bowline before the boat leaves.")
    prompt = folder / "boat" / "prompts" / "greet.md"
    prompt.parent.mkdir(parents=True)
    prompt.write_text("---\ndescription: Greet a sailor.\n---\nAhoy $1\n")
    return folder


def write(folder: Path, number: int, description: str, body: str) -> None:
    path = folder / f"skill-{number}" / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: skill-{number}\ndescription: {description}\n---\n{body}\n")


def asked(skills: Path, data: Path | None) -> dict[str, Any]:
    with loaded(Settings(skills_folder=skills)) as view:
        return {**search_documents(view, {"capabilities": QUESTIONS}, data), "latency_ms": 0}


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the documents that were indexed."""
    found: list[str] = []
    put = Index.put

    def counted(self: Index, document: Any, body: str = "") -> None:
        found.append(document.id)
        put(self, document, body)

    monkeypatch.setattr(Index, "put", counted)
    return found


def test_a_second_search_indexes_nothing_and_gives_the_same_answers(
    skills: Path, tmp_path: Path, indexed: list[str]
) -> None:
    data = tmp_path / ".iii-directory"
    first = asked(skills, data)
    indexed.clear()

    assert asked(skills, data) == first == asked(skills, data)
    assert indexed == []
    assert asked(skills, None) == first


def test_only_a_document_that_changed_is_indexed_again(
    skills: Path, tmp_path: Path, indexed: list[str]
) -> None:
    data = tmp_path / ".iii-directory"
    asked(skills, data)
    write(skills, 7, "Tie knots.", "# Rope\n\nTie a sheepshank.")
    write(skills, 200, "Tie a bowline with one hand.", "Fast.")
    (skills / "skill-9" / "SKILL.md").unlink()
    indexed.clear()

    changed = asked(skills, data)

    assert sorted(set(indexed)) == ["skill-200", "skill-7"]
    assert changed == asked(skills, None)
    indexed.clear()
    assert asked(skills, data) == changed
    assert indexed == []


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip_a_bit(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def come_from_another_version(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"iii-directory 2 ", b"iii-directory 1 ", 1))


def let_others_write(file: Path) -> None:
    file.chmod(0o644)


def link_elsewhere(file: Path) -> None:
    file.rename(file.parent / "elsewhere")
    file.symlink_to(file.parent / "elsewhere")


def become_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        truncate,
        flip_a_bit,
        empty,
        come_from_another_version,
        let_others_write,
        link_elsewhere,
        become_a_folder,
    ],
)
def test_a_file_that_cannot_be_trusted_is_ignored(
    skills: Path, tmp_path: Path, indexed: list[str], spoil: Callable[[Path], None]
) -> None:
    data = tmp_path / ".iii-directory"
    first = asked(skills, data)
    spoil(data / FILE_NAME)
    indexed.clear()

    assert asked(skills, data) == first
    assert len(set(indexed)) >= 120


def test_a_link_in_the_place_of_the_file_is_replaced_and_not_written_through(
    skills: Path, tmp_path: Path
) -> None:
    data, precious = tmp_path / ".iii-directory", tmp_path / "precious"
    data.mkdir()
    precious.write_text("mine")
    for name in (FILE_NAME, f"{FILE_NAME}.new"):
        (data / name).symlink_to(precious)

    asked(skills, data)

    assert precious.read_text() == "mine"
    assert stat.S_ISREG((data / FILE_NAME).lstat().st_mode)
    assert sorted(one.name for one in data.iterdir()) == [FILE_NAME]


def test_the_file_and_the_folder_made_for_it_are_private(skills: Path, tmp_path: Path) -> None:
    data = tmp_path / ".iii-directory"
    asked(skills, data)

    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE((data / FILE_NAME).stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_written_does_not_matter(skills: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    answers = asked(skills, None)

    assert asked(skills, file / "data") == asked(skills, file) == answers
    assert asked(skills, tmp_path / "missing" / ".iii-directory") == answers


def test_an_index_that_is_too_large_or_of_few_documents_is_not_kept(
    skills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tmp_path / "few"
    write(few, 1, "Tie knots.", "Rope.")
    asked(few, tmp_path / ".one")
    monkeypatch.setattr(kept_index, "MAX_KEPT_INDEX_BYTES", 10_000)
    asked(skills, tmp_path / ".other")

    assert not (tmp_path / ".one").exists()
    assert not (tmp_path / ".other").exists()


def test_a_data_folder_that_would_be_seen_is_not_made(skills: Path, tmp_path: Path) -> None:
    asked(skills, tmp_path / "data")

    assert not (tmp_path / "data").exists()
