"""What git says, taken apart: listings, and reasons a caller may hear. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install.bundle import check_count, check_file, check_total
from iii_directory.lockfile.names import is_hidden, vet_path
from iii_directory.suggest import close_names
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.install.requests import RepoRequest, RepoTree

_ENTRY: Final = re.compile(rb"(\d{6}) (\w+) ([0-9a-f]+) +(\d+|-)\t(.+)", re.DOTALL)
_EXECUTABLE: Final = b"100755"
_FILES: Final = frozenset({b"100644", _EXECUTABLE})
_KINDS: Final = {b"120000": "a link", b"160000": "a submodule"}
_SHORT_COMMIT: Final = re.compile(r"[0-9a-f]{4,39}")
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
    """One file of a commit."""

    path: str
    name: str
    size: int
    executable: bool = False
    problem: str | None = None
    """Why it cannot be installed: it is a link, a submodule, or has a name that is no text."""


def parse_listing(output: bytes) -> list[Blob]:
    """What ``ls-tree -r -l -z`` lists."""
    return [_blob(entry) for entry in output.split(b"\0") if entry]


def _blob(entry: bytes) -> Blob:
    found = _ENTRY.fullmatch(entry)
    if found is None:
        return Blob("", "", 0, problem="a line of the listing cannot be read")
    path = found[5].decode("utf-8", "replace")
    problem = None if path.encode() == found[5] else "a name in the repository is not UTF-8"
    if found[1] not in _FILES:
        problem = f"{quoted(path)} in the repository is {_KINDS.get(found[1], 'no regular file')}"
    size = int(found[4]) if found[4].isdigit() else 0
    return Blob(path, found[3].decode(), size, found[1] == _EXECUTABLE, problem)


def below(blobs: Iterable[Blob], folder: str) -> list[Blob]:
    """The files of one folder, with paths relative to it; ``.`` is the whole commit."""
    if folder == ".":
        # A link or a submodule in a hidden place of the repository is no part of the skill.
        return [blob for blob in blobs if blob.problem is None or not is_hidden(blob.path)]
    prefix = f"{folder}/"
    return [replace(blob, path=blob.path[len(prefix) :]) for blob in blobs if blob.path.startswith(prefix)]


def vetted(blobs: list[Blob]) -> list[Blob]:
    """The blobs worth reading, once every name and size has been looked at; links are refused."""
    for blob in blobs:
        if blob.problem is not None:
            raise refused(blob.problem)
        vet_path(blob.path)
    wanted = [blob for blob in blobs if not is_hidden(blob.path)]
    check_count(len(wanted))
    check_total(sum(blob.size for blob in wanted))
    for blob in wanted:
        check_file(blob.path, blob.size)
    return wanted


def reads(output: bytes, blobs: list[Blob]) -> dict[str, bytes]:
    """The contents that ``cat-file --batch`` gave for blobs, by their names."""
    contents: dict[str, bytes] = {}
    at = 0
    for blob in blobs:
        head = f"{blob.name} blob {blob.size}\n".encode()
        if not output.startswith(head, at) or len(output) < at + len(head) + blob.size:
            raise DirectoryError(SOURCE_FAILED, f"git could not read {quoted(blob.path)} of the repository")
        start = at + len(head)
        contents[blob.name] = output[start : start + blob.size]
        at = start + blob.size + 1
    return contents


def failed(request: RepoRequest | RepoTree, code: int, errors: bytes) -> DirectoryError:
    """Git gave up; what it said is only told apart, never repeated."""
    said = errors.decode("utf-8", "replace").lower()
    reason = next((words for pattern, words in _REASONS if re.search(pattern, said)), f"git gave up ({code})")
    return DirectoryError(SOURCE_FAILED, f"{request} could not be read: {reason}")


def no_ref(request: RepoRequest | RepoTree, ref: str, there: Iterable[str] = ()) -> DirectoryError:
    short = " (a commit needs all digits of its id)" if _SHORT_COMMIT.fullmatch(ref) else ""
    problem = f"{request} has no branch, tag or commit {quoted(ref)}{short}"
    return DirectoryError(SOURCE_REFUSED, problem, did_you_mean=_close(ref, there))


def no_folder(request: RepoRequest, folders: list[str]) -> DirectoryError:
    """There is none, or there are several, of the name."""
    of_the_name = [folder for folder in folders if folder.rpartition("/")[2] == request.skill]
    if of_the_name:
        problem = f"{request} has several folders for {quoted(request.skill)}: {', '.join(of_the_name)}"
        return DirectoryError(SOURCE_REFUSED, problem)
    where = f"skills/{request.skill}" if request.path is None else request.path
    problem = f"{request} has no folder {quoted(where)} with files"
    names = [folder.rpartition("/")[2] for folder in folders]
    return DirectoryError(SOURCE_REFUSED, problem, did_you_mean=_close(request.skill, names))


def _close(wanted: str, there: Iterable[str]) -> list[str]:
    return close_names(wanted, {name for name in there if name.isprintable()})
