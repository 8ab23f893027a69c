"""Any entry in the folder of a skill is served byte for byte, or is a finding, and no caller waits."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import stat
from typing import TYPE_CHECKING

import pytest
from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.folders import Folder
    from tests.support.reader import Reader

CANARY = "canary-of-another-place"
SPARSE_BYTES = 10 * 1024**3
DEEP = 40
MANY = 100_000
NAMES = (
    "new\nline.txt",
    "tab\there.txt",
    "escape\x1b[31m.txt",
    "bidi\u202etxt.exe",
    "zero\u200bwidth.md",
    "nfc \u00e9.txt",
    "nfc e\u0301.txt",
    "CON",
    "nul.md",
    "trailing ",
    "trailing.",
    "-rf",
    "a:b|c?.txt",
    "back\\slash.txt",
    "%2e%2e",
    "x" * 255,
    "README",
    "Upper.MD",
)


@pytest.fixture
def odd(directory: Reader, tmp_path: Path) -> Reader:
    """A directory with one skill that has every odd thing a folder can hold, devices apart."""
    skills, outside = directory.skills, tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "secret.txt").write_text(CANARY, encoding="utf-8")
    (outside / "folder" / "SKILL.md").write_text(f"# {CANARY}\n", encoding="utf-8")
    skills.write("odd/SKILL.md", "# Odd\n\nUse when something is odd.\n")
    for name in NAMES:
        skills.write(f"odd/{name}", f"the text of {name!r}")
    os.close(os.open(os.fsencode(skills.path("odd")) + b"/\xff\xfe.txt", os.O_CREAT | os.O_WRONLY))
    for name, target in (
        ("inside.md", "SKILL.md"),
        ("outside.txt", str(outside / "secret.txt")),
        ("climbing.txt", "../../outside/secret.txt"),
        ("dangling.txt", "nowhere"),
        ("loop-a", "loop-b"),
        ("loop-b", "loop-a"),
        ("folder", str(outside / "folder")),
        ("self", "."),
    ):
        skills.link(f"odd/{name}", target)
    os.mkfifo(skills.path("odd/pipe.md"))
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(skills.path("odd"))
        listener.bind("socket.txt")
        os.chdir(here)
    with skills.path("odd/sparse.bin").open("wb") as sparse:
        sparse.truncate(SPARSE_BYTES)
    with skills.path("odd/sparse.md").open("wb") as sparse:
        sparse.truncate(SPARSE_BYTES)
    deep = skills.path("odd") / "/".join(["d"] * DEEP)
    deep.mkdir(parents=True)
    for level in (3, DEEP):
        (skills.path("odd") / "/".join(["d"] * level) / "leaf.txt").write_text("leaf", encoding="utf-8")
    return directory


def everything(folder: Folder) -> Iterator[tuple[str, os.stat_result]]:
    """Return every path below the folder that is not a directory, and what it is."""
    for parent, folders, names in os.walk(folder.root):
        for name in (*names, *folders):
            path = os.path.join(parent, name)
            state = os.lstat(path)
            if not stat.S_ISDIR(state.st_mode):
                yield os.path.relpath(path, folder.root), state


def whole(reader: Reader, path: str, size: int) -> bytes:
    """A file as a client puts it together; of a huge one the first and the last page."""
    pieces: list[bytes] = []
    offset: int | None = 0
    while offset is not None:
        page = reader.call("directory::skills::file", id="odd", path=path, offset=offset)
        raw = page["content"].encode()
        pieces.append(base64.b64decode(raw) if page["encoding"] == "base64" else raw)
        offset = page["next_offset"]
        if offset is not None and size > 10**9:
            assert page["sha256"] is None
            offset = max(offset, size - 1000)
    return b"".join(pieces)


def said_of(reader: Reader) -> dict[str, str]:
    return {row["subject"]: row["reason"] for row in reader.findings()}


def is_said(path: str, findings: dict[str, str]) -> bool:
    """Whether there is a finding about a path, or about a folder that it lies in."""
    shown = path.encode("utf-8", "backslashreplace").decode()
    return any(shown == subject or shown.startswith(f"{subject}/") for subject in findings)


@requirement("files.hostile")
def test_every_odd_file_is_served_byte_for_byte_or_is_a_finding(odd: Reader) -> None:
    rows = {row["path"]: row for row in odd.call("directory::skills::files", id="odd")["files"]}
    findings = said_of(odd)
    served: set[str] = set()

    for path, state in everything(odd.skills):
        inner = path.removeprefix("odd/")
        if inner not in rows:
            assert is_said(path, findings), path
            continue
        served.add(inner)
        assert stat.S_ISREG(state.st_mode), path
        assert rows[inner]["bytes"] == state.st_size
        if state.st_size < 10**9:
            assert whole(odd, inner, state.st_size) == odd.skills.path(path).read_bytes(), path
        else:
            assert whole(odd, inner, state.st_size).strip(b"\0") == b""

    assert served == set(rows) >= {*NAMES, "SKILL.md", "sparse.bin", "sparse.md", "d/d/d/leaf.txt"}
    assert CANARY not in str(rows)


@requirement("files.hostile")
def test_no_odd_name_leads_to_another_place_by_any_door(odd: Reader) -> None:
    names = ("inside.md", "outside.txt", "climbing.txt", "dangling.txt", "loop-a", "folder/SKILL.md")
    for name in (*names, "self/SKILL.md", "pipe.md", "socket.txt", "../outside/secret.txt"):
        refusals = (
            odd.refusal("directory::skills::file", id="odd", path=name),
            odd.miss(f"odd/{name}"),
            odd.refusal("skills::resources-read", uri=f"skill://odd/{name}"),
        )
        for sentence in refusals:
            assert sentence[:4] in ("D110", "D111", "D117", "D119"), (name, sentence)
            assert CANARY not in sentence


@requirement("files.hostile")
def test_a_huge_file_is_read_in_pages_and_never_whole(odd: Reader) -> None:
    last = odd.call("directory::skills::file", id="odd", path="sparse.bin", offset=SPARSE_BYTES - 10)

    assert (last["bytes"], last["sha256"], last["next_offset"]) == (SPARSE_BYTES, None, None)
    assert odd.miss("odd/sparse.bin").startswith("D117 ")
    assert odd.reason("odd").startswith(f"the skill has {str(2 * SPARSE_BYTES)[:7]}")
    rows = odd.call("directory::skills::files", id="odd")["files"]
    assert {row["sha256"] for row in rows} == {None}
    assert odd.call("directory::skills::budget")["skills"]
    assert odd.call("directory::diagnostics", check=True)["counts"]["check"] > 0


@requirement("files.hostile")
def test_twins_of_one_name_are_two_files(odd: Reader) -> None:
    for name in ("nfc \u00e9.txt", "nfc e\u0301.txt"):
        part = odd.call("directory::skills::file", id="odd", path=name)
        assert (part["path"], part["content"]) == (name, f"the text of {name!r}")


@requirement("files.hostile")
def test_a_device_is_not_served_as_a_file(directory: Reader) -> None:
    directory.skills.document("odd/SKILL.md", "Odd")
    for name, numbers in (("null.md", (1, 3)), ("zero.bin", (1, 5))):
        try:
            os.mknod(directory.skills.path(f"odd/{name}"), stat.S_IFCHR | 0o666, os.makedev(*numbers))
        except PermissionError:
            pytest.skip("only root may make a device, and not in every container")

    files = directory.call("directory::skills::files", id="odd")["files"]

    assert [row["path"] for row in files] == ["SKILL.md"]
    assert {"odd/null.md", "odd/zero.bin"} <= set(said_of(directory))
    assert directory.refusal("directory::skills::file", id="odd", path="zero.bin").startswith("D119 ")


@requirement("files.hostile")
@pytest.mark.parametrize("place", ["inside"], indirect=True)
def test_a_hundred_thousand_files_of_one_skill_are_listed_and_read(directory: Reader) -> None:
    directory.skills.document("many/SKILL.md", "Many")
    folder = directory.skills.path("many/files")
    folder.mkdir()
    at = os.open(folder, os.O_RDONLY)
    for number in range(MANY):
        os.close(os.open(f"{number}.txt", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    directory.skills.write("many/files/7.txt", "seven")

    row = directory.rows(kind="skill")["many"]
    part = directory.call("directory::skills::file", id="many", path="files/7.txt")
    listed = directory.call("directory::skills::files", id="many")["files"]

    assert row["files"] == len(listed) == MANY + 1
    assert part["sha256"] == hashlib.sha256(b"seven").hexdigest()
    assert directory.reason("many").startswith(f"the skill has {MANY + 1} files")
    costs = {cost["id"]: cost for cost in directory.call("directory::skills::budget")["skills"]}
    assert costs["many"]["whole"]["chars"] == len("# Many\n\nAbout Many.\n") + len("seven")
    directory.skills.write("many/files/8.txt", "eight")
    assert directory.call("directory::skills::file", id="many", path="files/8.txt")["content"] == "eight"
