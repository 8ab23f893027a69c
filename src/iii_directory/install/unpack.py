"""Unpack one archive: a program of its own, run as a child process with little memory and a deadline.

The archive comes from a stranger and the standard library's readers have had weaknesses, so the process that
unpacks holds nothing and can be ended at any moment. It imports the standard library alone. The archive is
read from standard input; standard output gets one line of JSON, ``{"files": [[path, size, executable], …]}``
or ``{"problem": …, "name": …}``, and then the contents of the files.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 512
# What a tar archive may hold beside files and folders: names that are too long for a header.
_FILES, _FOLDER = (tarfile.REGTYPE, tarfile.AREGTYPE), tarfile.DIRTYPE
_NAMES = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME)
_END_OF_ZIP, _ZIP64 = b"PK\5\6", b"PK\6\7"


class Bounds(NamedTuple):
    """What may come out of an archive."""

    files: int
    size: int
    header: int
    """The bytes of a long name, or of the other facts about one member."""
    memory: int = 0
    seconds: int = 0


class ArchiveRefusedError(Exception):
    """The archive is not unpacked: ``problem`` is "broken", "files", "size" or "link"."""

    def __init__(self, problem: str, name: str = "") -> None:
        super().__init__(problem)
        self.problem, self.name = problem, name


class Member(NamedTuple):
    path: str
    content: bytes
    executable: bool


def unpack(content: bytes, bounds: Bounds) -> list[Member]:
    """Read every file of a zip or of a gzipped tar archive; raise `ArchiveRefusedError` otherwise."""
    try:
        return list(_zipped(content, bounds) if content.startswith(b"PK") else _tarred(content, bounds))
    except ArchiveRefusedError:
        raise
    except Exception:  # noqa: BLE001 - the readers of broken archives raise whatever comes up
        raise ArchiveRefusedError("broken") from None


def _tarred(content: bytes, bounds: Bounds) -> Iterator[Member]:
    # A header for each file, folder and long name; what is larger is too large with any content.
    limit = bounds.size + (bounds.files + 2) * 8 * _BLOCK
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
    data = inflate.decompress(content, limit + 1)
    if len(data) > limit:
        raise ArchiveRefusedError("size")
    if not inflate.eof:
        raise ArchiveRefusedError("broken")
    _check_headers(data, bounds)
    left = bounds
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            if member.type == _FOLDER:
                continue
            if member.type not in _FILES or member.issparse():
                raise ArchiveRefusedError("link", member.name)
            left = _less(left, member.size)
            opened = archive.extractfile(member)
            found = b"" if opened is None else opened.read(member.size + 1)
            if len(found) != member.size:
                raise ArchiveRefusedError("broken")
            yield Member(member.name.removeprefix("./"), found, bool(member.mode & 0o100))


def _check_headers(data: bytes, bounds: Bounds) -> None:
    """Refuse odd members by their headers alone, before `tarfile` interprets any of them."""
    left, at, names = bounds, 0, 0
    while at + _BLOCK <= len(data) and data[at] != 0:
        kind = data[at + 156 : at + 157]
        # Octal digits; the binary form is for sizes that no archive of ours may have.
        size = int(data[at + 124 : at + 136].strip(b"\0 ") or b"0", 8)
        if size < 0 or at + _BLOCK + size > len(data):
            raise ArchiveRefusedError("broken")
        body = data[at + _BLOCK : at + _BLOCK + size]
        if kind in _NAMES:
            names += 1
            # `tarfile` takes quadratic time over the digits of a header, and more for sparse files.
            if size > bounds.header or names > 2 * bounds.files or b"GNU.sparse" in body:
                raise ArchiveRefusedError("broken")
        elif kind in _FILES:
            left = _less(left, size)
        elif kind != _FOLDER:
            raise ArchiveRefusedError("link", data[at : at + 100].split(b"\0")[0].decode("utf-8", "replace"))
        at += _BLOCK + size + -size % _BLOCK


def _zipped(content: bytes, bounds: Bounds) -> Iterator[Member]:
    end = content.rfind(_END_OF_ZIP)
    entries = int.from_bytes(content[end + 10 : end + 12], "little")
    directory = int.from_bytes(content[end + 12 : end + 16], "little")
    # An archive this small needs no 64-bit sizes; twice as many entries as files leaves room for folders.
    if end < 0 or content[max(0, end - 20) : end].startswith(_ZIP64):
        raise ArchiveRefusedError("broken")
    if entries > 2 * bounds.files or directory > 2 * bounds.files * bounds.header:
        raise ArchiveRefusedError("files")
    left = bounds
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            mode = member.external_attr >> 16
            if member.is_dir():
                continue
            if mode & 0o170000 not in (0, 0o100000):
                raise ArchiveRefusedError("link", member.filename)
            left = _less(left, member.file_size)
            with archive.open(member) as opened:
                found = opened.read(member.file_size + 1)
            if len(found) != member.file_size:
                raise ArchiveRefusedError("broken")
            yield Member(member.filename, found, bool(mode & 0o100))


def _less(left: Bounds, size: int) -> Bounds:
    """Return what may still come out of an archive after one more file."""
    if size < 0:
        raise ArchiveRefusedError("broken")
    if left.files == 0:
        raise ArchiveRefusedError("files")
    if size > left.size:
        raise ArchiveRefusedError("size")
    return left._replace(files=left.files - 1, size=left.size - size)


def _main() -> None:
    import resource

    bounds = Bounds(*map(int, sys.argv[1:]))
    for what, most in ((resource.RLIMIT_AS, bounds.memory), (resource.RLIMIT_CPU, bounds.seconds)):
        resource.setrlimit(what, (most, most))
    members: list[Member] = []
    try:
        members = unpack(sys.stdin.buffer.read(), bounds)
        told: dict[str, object] = {"files": [(one.path, len(one.content), one.executable) for one in members]}
    except ArchiveRefusedError as error:
        told = {"problem": error.problem, "name": error.name}
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n")
    for one in members:
        sys.stdout.buffer.write(one.content)


if __name__ == "__main__":
    _main()
