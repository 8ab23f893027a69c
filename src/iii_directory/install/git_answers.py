"""What git says, taken apart: listings, and reasons a caller may hear. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install.bundle import check_count, check_file, check_total
from iii_directory.lockfile.names import is_hidden, vet_path
from iii_directory.suggest import close_names
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.install.requests import RepoRequest

_ENTRY: Final = re.compile(rb"(\d{6}) (\w+) ([0-9a-f]+) +(\d+|-)\t(.+)", re.DOTALL)
_FILES: Final = frozenset({b"100644", b"100755"})
_KINDS: Final = {b"120000": "a link", b"160000": "a submodule"}
# What git says, and what a caller may hear of it: its own words may hold addresses and paths.
_REASONS: Final = (
    (
        r"terminal prompts disabled|could not read username|authentication failed|permission denied",
        "it needs credentials",
    ),
    (r"could not resolve host", "its host has no address"),
    (r"redirect", "it has moved, and redirects are not followed"),
    (
        r"not found|does not exist|does not appear to be a git|repository access denied|40[34]",
        "it is not there, or private",
    ),
    (r"host key verification", "its host is not known to ssh"),
    (r"dubious ownership", "it belongs to another user"),
    (r"fsck error|bad object|missingEmail|hasdot|nullsha1", "it holds objects that git takes for malformed"),
    (r"certificate|ssl|tls", "its certificate is not trusted"),
    (r"connect|timed out|unreachable|reset", "its host cannot be reached"),
)


@dataclass(frozen=True, slots=True)
class Blob:
    path: str
    name: str
    size: int


def parse_listing(output: bytes, prefix: str) -> list[Blob]:
    """What ``ls-tree -r -l -z`` lists, with paths below the prefix; links and submodules are refused."""
    return [_blob(entry, prefix) for entry in output.split(b"\0") if entry]


def _blob(entry: bytes, prefix: str) -> Blob:
    found = _ENTRY.fullmatch(entry)
    try:
        path = (found[5] if found else b"").decode().removeprefix(prefix)
    except UnicodeDecodeError:
        raise refused("a name in the repository is not UTF-8") from None
    if found is None or found[1] not in _FILES:
        kind = _KINDS.get(found[1], "no regular file") if found else "no regular file"
        raise refused(f"{quoted(path)} in the repository is {kind}")
    return Blob(path, found[3].decode(), int(found[4]))


def vetted(blobs: list[Blob]) -> list[Blob]:
    """The blobs worth reading, once every name and size has been looked at."""
    for blob in blobs:
        vet_path(blob.path)
    wanted = [blob for blob in blobs if not is_hidden(blob.path)]
    check_count(len(wanted))
    check_total(sum(blob.size for blob in wanted))
    for blob in wanted:
        check_file(blob.path, blob.size)
    return wanted


def reads(output: bytes, blobs: list[Blob]) -> dict[str, bytes]:
    """The contents that ``cat-file --batch`` gave for blobs, by path."""
    contents: dict[str, bytes] = {}
    at = 0
    for blob in blobs:
        head = f"{blob.name} blob {blob.size}\n".encode()
        if not output.startswith(head, at) or len(output) < at + len(head) + blob.size:
            raise DirectoryError(SOURCE_FAILED, f"git could not read {quoted(blob.path)} of the repository")
        start = at + len(head)
        contents[blob.path] = output[start : start + blob.size]
        at = start + blob.size + 1
    return contents


def failed(request: RepoRequest, code: int, errors: bytes) -> DirectoryError:
    """Git gave up; what it said is only told apart, never repeated."""
    said = errors.decode("utf-8", "replace").lower()
    reason = next((words for pattern, words in _REASONS if re.search(pattern, said)), f"git gave up ({code})")
    return DirectoryError(SOURCE_FAILED, f"{request} could not be read: {reason}")


def no_ref(request: RepoRequest, there: Iterable[str] = ()) -> DirectoryError:
    problem = f"{request} has no branch, tag or commit {quoted(request.branch)}"
    return DirectoryError(SOURCE_REFUSED, problem, did_you_mean=_close(request.branch, there))


def no_folder(request: RepoRequest, there: Iterable[str]) -> DirectoryError:
    problem = f"{request} has no folder skills/{request.skill}"
    return DirectoryError(SOURCE_REFUSED, problem, did_you_mean=_close(request.skill, there))


def _close(wanted: str, there: Iterable[str]) -> list[str]:
    return close_names(wanted, {name for name in there if name.isprintable()})
