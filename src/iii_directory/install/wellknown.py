"""The well-known index of a site, and the archives it names. Pure.

Version 0.2.0 has one artifact a skill, a SKILL.md or an archive, with its digest; the older one has lists of
files beside each other. What is unpacked is bounded before it is unpacked, and vetted as any bundle is.
"""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from iii_directory import limits
from iii_directory.documents.ids import OVERVIEW
from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install.bundle import check_count, check_total
from iii_directory.install.typed import Offer
from iii_directory.lockfile.format import content_hash
from iii_directory.lockfile.names import is_safe_path
from iii_directory.shapes import is_object, is_text_list, rows_of, text_of
from iii_directory.text import one_line, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

INDEX: Final = "/.well-known/agent-skills/index.json"
OLDER_INDEX: Final = "/.well-known/skills/index.json"
# What the libraries raise for archives that are none, are cut short, or want a password.
_BROKEN: Final = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error),
    *(EOFError, OSError, ValueError, RuntimeError),
)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Listed:
    """A skill in an index: its artifact with a digest, or the files of the older kind."""

    offer: Offer
    url: str
    digest: str | None = None
    is_archive: bool = False
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The files of an artifact."""

    entries: tuple[tuple[str, bytes], ...]
    executable: frozenset[str] = frozenset()


def parse_index(answer: object, address: str) -> list[Listed]:
    """The skills in an index that was found at an address; a malformed row costs only itself."""
    if not is_object(answer):
        raise DirectoryError(SOURCE_FAILED, "the site's index of skills is not an object")
    rows = (_listed(row, address) for row in rows_of(answer, "skills"))
    return [row for row in rows if row is not None]


def _listed(row: dict[str, object], address: str) -> Listed | None:
    name, description = text_of(row.get("name")), text_of(row.get("description"))
    if name is None:
        return None
    offer = Offer(name, name, one_line(description or ""), name)
    url, digest, files = text_of(row.get("url")), text_of(row.get("digest")), row.get("files")
    if url is not None and digest is not None and _DIGEST.fullmatch(digest):
        artifact = urljoin(address, url)
        found = Listed(offer, artifact, digest, row.get("type") == "archive")
        return found if _is_as_safe(artifact, address) else None
    if is_text_list(files) and OVERVIEW in files and all(is_safe_path(path) for path in (name, *files)):
        return Listed(offer, urljoin(address, f"{name}/"), files=tuple(files))
    return None


def _is_as_safe(url: str, address: str) -> bool:
    """https leads to https; http, which only loopback may speak, to the same place."""
    there, here = urlsplit(url), urlsplit(address)
    same = (there.scheme, there.netloc) == (here.scheme, here.netloc)
    return not there.username and (same or (here.scheme == "https" and there.scheme == "https"))


def unpacked(listed: Listed, content: bytes) -> Unpacked:
    """The files of an artifact, once its digest is right."""
    if content_hash(content) != listed.digest:
        problem = f"what the site has for {quoted(listed.offer.name)} is not what its index promises"
        raise DirectoryError(SOURCE_REFUSED, problem)
    if not listed.is_archive:
        return Unpacked(((OVERVIEW, content),))
    try:
        members = list(_zipped(content) if content.startswith(b"PK") else _tarred(content))
    except _BROKEN:
        raise refused(f"the archive of {quoted(listed.offer.name)} cannot be unpacked") from None
    return Unpacked(
        tuple((path, data) for path, data, _ in members),
        frozenset(path for path, _, executable in members if executable),
    )


def _tarred(content: bytes) -> Iterator[tuple[str, bytes, bool]]:
    room = _Room()
    with tarfile.open(fileobj=io.BytesIO(_inflated(content)), mode="r:") as archive:
        for member in archive:
            if member.isdir():
                continue
            if not member.isfile():
                raise refused(f"{quoted(member.name)} in the archive is a link or no regular file")
            room.take(member.size)
            opened = archive.extractfile(member)
            assert opened is not None  # noqa: S101 - it is a file
            yield member.name.removeprefix("./"), opened.read(), bool(member.mode & 0o100)


def _inflated(content: bytes) -> bytes:
    """The bytes of a gzipped archive, which must not be more than a bundle with its headers may be."""
    limit = limits.MAX_BUNDLE_BYTES + (limits.MAX_BUNDLE_FILES + 2) * 4 * limits.KIB
    unpack = zlib.decompressobj(16 + zlib.MAX_WBITS)
    data = unpack.decompress(content, limit + 1)
    if len(data) > limit:
        check_total(limits.MAX_BUNDLE_BYTES + 1)
    if not unpack.eof:
        raise EOFError
    return data


def _zipped(content: bytes) -> Iterator[tuple[str, bytes, bool]]:
    room = _Room()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            mode = member.external_attr >> 16
            if member.is_dir():
                continue
            if mode & 0o170000 not in (0, 0o100000):
                raise refused(f"{quoted(member.filename)} in the archive is a link or no regular file")
            room.take(member.file_size)
            with archive.open(member) as opened:
                data = opened.read(member.file_size + 1)
            if len(data) != member.file_size:
                raise EOFError
            yield member.filename, data, bool(mode & 0o100)


class _Room:
    """How much may still come out of an archive."""

    def __init__(self) -> None:
        self._count = self._size = 0

    def take(self, size: int) -> None:
        self._count += 1
        self._size += size
        check_count(self._count)
        check_total(self._size)
