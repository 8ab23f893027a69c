"""Read skills out of one file: a SKILL.md at an address, or an archive there or on this machine.

An archive is unpacked in a child process (`unpack`) with bounds on its time and memory. It may hold one skill
or many; each is found and checked as in a repository.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits
from iii_directory.disk.install_record import FileSource
from iii_directory.disk.reasons import TOO_LARGE, RefusedError
from iii_directory.disk.safe_names import vet_path, vet_together
from iii_directory.disk.safe_open import read_below
from iii_directory.documents.ids import OVERVIEW
from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install import unpack
from iii_directory.install.bundle import Bundle, Offer, content_digest, make_bundle, offer_of, skill_folders
from iii_directory.install.marketplace import manifest_paths, with_plugins
from iii_directory.install.process import ProcessStoppedError, run
from iii_directory.install.requests import DirectFile, is_public, is_safe_address
from iii_directory.registry.registry_client import Host, get_bytes
from iii_directory.text import quoted

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    import httpx2

_DIRECT: Final = unpack.Bounds(
    limits.MAX_ARCHIVE_FILES,
    limits.MAX_ARCHIVE_BYTES,
    limits.MAX_ARCHIVE_HEADER_BYTES,
    limits.UNPACK_MEMORY_BYTES,
    limits.UNPACK_SECONDS,
)


class Unpacked(NamedTuple):
    """The files of an artifact, and the paths of those that are executable."""

    entries: list[tuple[str, bytes]]
    executable: frozenset[str] = frozenset()


class DirectSkills:
    """The skills in one fetched file. All methods block; run them in a thread."""

    def __init__(self, source: DirectFile, content: bytes, stopped: threading.Event) -> None:
        # A path is recorded whole, so that an update from another folder finds the file.
        self._url = source.url if "://" in source.url else os.path.abspath(os.path.expanduser(source.url))
        self._executable: frozenset[str] = frozenset()
        if source.is_archive:
            entries, self._executable = unpacked(content, str(source), _DIRECT, stopped)
            for path, _ in entries:
                vet_path(path)
            vet_together(path for path, _ in entries)
        else:
            entries = [(OVERVIEW, overview_text(content, str(source)))]
        self._files = dict(entries)
        found = [
            offer_of(folder, self._files[f"{folder}/{OVERVIEW}".removeprefix("./")], source.stem)
            for folder in skill_folders(self._files)
        ]
        manifests = {path: self._files[path] for path in manifest_paths(self._files)}
        self.found = with_plugins(found, manifests)

    def bundle(self, offer: Offer) -> Bundle:
        """Collect the files of one of the skills."""
        prefix = "" if offer.path == "." else f"{offer.path}/"
        entries = [
            (path[len(prefix) :], content) for path, content in self._files.items() if path.startswith(prefix)
        ]
        executable = {path[len(prefix) :] for path in self._executable if path.startswith(prefix)}
        source = FileSource(self._url, offer.name)
        bundle = make_bundle(offer.name, source, "", entries, executable)
        return bundle.resolved_as(content_digest(bundle))


def overview_text(content: bytes, what: str) -> bytes:
    """Return the content of a SKILL.md; refuse what is not text."""
    try:
        content.decode()
    except UnicodeDecodeError:
        raise refused(f"{what} is not text, so it is not a {OVERVIEW}") from None
    return content


def read_archive(source: DirectFile) -> bytes:
    """Read an archive of this machine. Blocks."""
    folder, name = os.path.split(os.path.realpath(os.path.expanduser(source.url)))
    try:
        return read_below(folder, name, limits.MAX_PACKED_BYTES)
    except RefusedError as refusal:
        if refusal.is_absence:
            raise DirectoryError(
                SOURCE_REFUSED, f"the file {quoted(source.url)} does not exist", next_steps=()
            ) from None
        reason = f"it is larger than {limits.MAX_PACKED_BYTES // limits.MIB} MiB"
        reason = reason if refusal.reason is TOO_LARGE else refusal.reason.text
        raise refused(f"{source} cannot be read: {reason}") from None


async def fetch_direct(
    client: httpx2.AsyncClient, source: DirectFile, timeout_ms: int, *, private: bool
) -> bytes:
    """Fetch the file at an address; without ``private`` from public addresses only, redirects included."""

    async def route(url: httpx2.URL) -> dict[str, Any]:
        if not is_safe_address(str(url)):
            raise DirectoryError(SOURCE_REFUSED, f"{source} leads to an address that is not https")
        if private:
            return {"url": url}
        return await asyncio.to_thread(_pinned, url, source)

    host = Host("the host", SOURCE_FAILED, SOURCE_REFUSED, route)
    limit = limits.MAX_PACKED_BYTES if source.is_archive else limits.MAX_BODY_BYTES
    return await get_bytes(
        client, source.url, {}, limit=limit, timeout_ms=timeout_ms, what=str(source), host=host
    )


def _pinned(url: httpx2.URL, source: DirectFile) -> dict[str, Any]:
    """Return a request to the address that was checked: a name may mean another address a moment later."""
    try:
        port = url.port or (443 if url.scheme == "https" else 80)
        found = [str(one[4][0]) for one in socket.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        raise DirectoryError(SOURCE_FAILED, f"{source} cannot be fetched: its host has no address") from None
    if not all(is_public(one) for one in found):
        problem = f"{source} is on this machine or a private network"
        raise DirectoryError(SOURCE_REFUSED, f"{problem}: set allow_private_repos to allow it")
    return {
        "url": url.copy_with(host=found[0]),
        "headers": {"host": url.netloc.decode("ascii")},
        # The certificate is still checked for the name.
        "extensions": {"sni_hostname": url.host},
    }


def unpacked(content: bytes, what: str, bounds: unpack.Bounds, stopped: threading.Event) -> Unpacked:
    """Return the files of an archive, and which are executable. Blocks; ``stopped`` ends it early."""
    try:
        done = run(
            [sys.executable, "-I", "-S", unpack.__file__, *map(str, bounds)],
            environment={"LC_ALL": "C"},
            folder=os.path.dirname(unpack.__file__),
            deadline=time.monotonic() + bounds.seconds,
            # Beside the contents, a line with the names of the files.
            max_output=bounds.size + limits.MAX_GIT_LISTING_BYTES,
            max_errors=0,
            sent=content,
            watch=lambda: "the command was stopped" if stopped.is_set() else None,
        )
    except ProcessStoppedError as error:
        raise refused(f"{what} cannot be unpacked: {error}") from None
    head, _, contents = done.output.partition(b"\n")
    told: Mapping[str, Any] = {"problem": "broken"} if done.code else json.loads(head)
    if told.get("problem") == "link":
        raise refused(f"{quoted(told['name'])} in {what} is not a regular file")
    if "problem" in told:
        problems = {
            "files": f"holds more than {bounds.files} files",
            "size": f"is larger than {bounds.size // limits.MIB} MiB when it is unpacked",
        }
        raise refused(f"{what} {problems.get(told['problem'], 'cannot be unpacked')}")
    entries: list[tuple[str, bytes]] = []
    at = 0
    for path, size, _ in told["files"]:
        entries.append((path, contents[at : at + size]))
        at += size
    return Unpacked(entries, frozenset(path for path, _, executable in told["files"] if executable))
