"""Indexes of sites and the archives in them."""

from __future__ import annotations

import gzip
import io
import tarfile
import threading
import zipfile
from typing import TYPE_CHECKING

import pytest

from iii_directory import limits
from iii_directory.disk.install_record import content_hash
from iii_directory.errors import DirectoryError
from iii_directory.install.bundle import Offer
from iii_directory.install.direct_file import Listed, artifact_files, parse_index

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.install.direct_file import Unpacked

INDEX = "https://example.com/.well-known/agent-skills/index.json"
DIGEST = content_hash(b"x")


def tarred(*members: tuple[str, bytes, int], kind: bytes = tarfile.REGTYPE) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content, mode in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.type, info.linkname = len(content), mode, kind, "/etc/passwd"
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(*members: tuple[str, bytes, int]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return out.getvalue()


def opened(content: bytes, digest: str | None = None, *, is_archive: bool = True) -> Unpacked:
    listed = Listed(Offer("a", "a"), "", digest or content_hash(content), is_archive=is_archive)
    return artifact_files(listed, content, threading.Event())


def test_a_row_names_its_artifact_and_malformed_or_unknown_rows_are_left_out() -> None:
    rows = [
        {"name": "a", "type": "skill-md", "description": "A\nskill.", "url": "a/SKILL.md", "digest": DIGEST},
        {"name": "b", "type": "archive", "url": "https://cdn.example.com/b.tar.gz", "digest": DIGEST},
        {"name": "c", "type": "skill-md", "url": "c/SKILL.md", "sha256": DIGEST},
        {"name": "d", "type": "skill-md", "url": "http://example.com/d", "digest": DIGEST},
        {"name": "e", "type": "skill-md", "url": "https://user@example.com/e", "digest": DIGEST},
        {"name": "f", "type": "skill-md", "url": "f", "digest": "md5:1"},
        {"name": "i", "type": "executable", "url": "i", "digest": DIGEST},
        {"name": "j", "url": "j", "digest": DIGEST},
        {"name": "k", "type": ["archive"], "url": "k", "digest": DIGEST},
        {"type": "skill-md", "url": "g", "digest": DIGEST},
        "h",
    ]

    a, b = parse_index({"skills": rows}, INDEX)

    assert a.offer == Offer("a", "a", "A skill.", "a")
    assert (a.url, a.digest, a.is_archive) == (
        "https://example.com/.well-known/agent-skills/a/SKILL.md",
        DIGEST,
        False,
    )
    assert (b.url, b.is_archive) == ("https://cdn.example.com/b.tar.gz", True)


def test_the_older_index_lists_files() -> None:
    rows = [
        {"name": "a", "description": "", "files": ["SKILL.md", "x/y.md"]},
        {"name": "b", "files": ["SKILL.md", "../../etc/passwd"]},
        {"name": "c", "files": ["other.md"]},
        {"name": "../d", "files": ["SKILL.md"]},
    ]

    (a,) = parse_index({"skills": rows}, INDEX)

    assert a.files == ("SKILL.md", "x/y.md")


@pytest.mark.parametrize("make", [tarred, zipped])
def test_an_archive_gives_files_and_which_are_programs(make: Callable[..., bytes]) -> None:
    content = make(("SKILL.md", b"# a", 0o644), ("scripts/run.sh", b"#!", 0o100755))

    found = opened(content)

    assert dict(found.entries) == {"SKILL.md": b"# a", "scripts/run.sh": b"#!"}
    assert found.executable == {"scripts/run.sh"}


def test_what_has_another_digest_is_refused() -> None:
    with pytest.raises(DirectoryError, match=r"^D331 .*not what its index promises"):
        opened(tarred(("SKILL.md", b"", 0o644)), content_hash(b"other"))


BAD: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "no zip": lambda: b"PK\x03\x04 no zip",
    "no gzip": lambda: b"no gzip",
    "no tar": lambda: gzip.compress(b"no tar" * 1000),
    "cut short": lambda: tarred(("SKILL.md", b"x" * 9999, 0o644))[:-20],
    "a link": lambda: tarred(("link", b"", 0o644), kind=tarfile.SYMTYPE),
    "a device": lambda: tarred(("device", b"", 0o644), kind=tarfile.CHRTYPE),
    "a zipped link": lambda: zipped(("link", b"/etc/passwd", 0o120777)),
    "a bomb": lambda: gzip.compress(b"\0" * (limits.MAX_BUNDLE_BYTES * 2)),
    "many": lambda: tarred(*((str(n), b"", 0o644) for n in range(limits.MAX_BUNDLE_FILES + 1))),
    "large": lambda: zipped(*((str(n), b"x" * limits.MIB, 0o644) for n in range(17))),
}


@pytest.mark.parametrize("name", BAD)
def test_an_archive_that_is_broken_or_too_large_is_refused(name: str) -> None:
    content = BAD[name]()

    with pytest.raises(DirectoryError, match=r"^D340 install_error: "):
        opened(content)


def test_a_skill_md_that_is_not_text_is_refused() -> None:
    with pytest.raises(DirectoryError, match=r"^D340 .*is not text, so it is not a SKILL\.md"):
        opened(b"\x7fELF\xff", is_archive=False)
