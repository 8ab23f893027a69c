"""Read skills out of one file, a SKILL.md or an archive, or out of all that the index of a site names.

An archive is unpacked in a child process (`unpack`) with bounds on its time and memory. It may hold one skill
or many; each is found and checked as in a repository. Version 0.2.0 of the well-known index names one such
file for each skill, with its digest; the older version lists the files of each skill.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from iii_directory import limits
from iii_directory.disk.files import TOO_LARGE, RefusedError
from iii_directory.disk.install_record import FileSource, SiteSource, content_hash
from iii_directory.disk.safe_open import read_below
from iii_directory.documents.ids import OVERVIEW, is_safe_path, vet_path, vet_together
from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install import unpack
from iii_directory.install.bundle import Bundle, Offer, Offered, make_bundle, offered
from iii_directory.install.process import ProcessStoppedError, run
from iii_directory.install.requests import DirectFile, is_public, is_safe_address
from iii_directory.registry.registry_client import Host, get_bytes, get_json
from iii_directory.shapes import is_object, is_text_list, rows_of, text_of
from iii_directory.text import one_line, quoted

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    import httpx2

    from iii_directory.install.requests import Site
    from iii_directory.install.sources import Sources

# One skill of a site, and an archive that may hold many.
_ARTIFACT: Final = unpack.Bounds(
    limits.MAX_BUNDLE_FILES,
    limits.MAX_BUNDLE_BYTES,
    limits.MAX_ARCHIVE_HEADER_BYTES,
    limits.UNPACK_MEMORY_BYTES,
    limits.UNPACK_SECONDS,
)
_DIRECT: Final = _ARTIFACT._replace(files=limits.MAX_ARCHIVE_FILES, size=limits.MAX_ARCHIVE_BYTES)


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
        self.found = offered(list(self._files), lambda _: self._files, source.stem)

    def bundle(self, offer: Offer) -> Bundle:
        """Collect the files of one of the skills."""
        prefix = "" if offer.path == "." else f"{offer.path}/"
        entries = [
            (path[len(prefix) :], content) for path, content in self._files.items() if path.startswith(prefix)
        ]
        executable = {path[len(prefix) :] for path in self._executable if path.startswith(prefix)}
        source = FileSource(self._url, offer.name)
        return make_bundle(offer.name, source, None, entries, executable)


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


_INDEX: Final = "/.well-known/agent-skills/index.json"
_OLDER_INDEX: Final = "/.well-known/skills/index.json"
_HOST: Final = Host("the site", SOURCE_FAILED, SOURCE_REFUSED)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Listed:
    """A skill in an index: its artifact with a digest, or the files of the older version."""

    offer: Offer
    url: str
    digest: str | None = None
    is_archive: bool = False
    files: tuple[str, ...] = ()


class SiteSkills:
    """The skills in the index of a site, which is asked for once."""

    def __init__(self, site: Site, client: httpx2.AsyncClient, timeout_ms: int, sources: Sources) -> None:
        self._url = site.url
        self._client = client
        self._sources = sources
        self._listed: dict[Offer, Listed] = {}
        self._options: dict[str, Any] = {"timeout_ms": timeout_ms, "host": _HOST}

    async def look(self) -> Offered:
        """Fetch the index, from its present place or else from its older one."""
        try:
            address, answer = await self._index(_INDEX)
        except DirectoryError as error:
            if error.kind is not _HOST.missing:
                raise
            address, answer = await self._index(_OLDER_INDEX)
        self._listed = {one.offer: one for one in parse_index(answer, address)}
        return Offered(list(self._listed))

    async def bundle(self, offer: Offer) -> Bundle:
        """Fetch the files of one of the skills."""
        entries, executable = await self._files(self._listed[offer])
        return make_bundle(offer.name, SiteSource(self._url, offer.name), None, entries, executable)

    async def _index(self, place: str) -> tuple[str, Any]:
        address, limit = f"{self._url}{place}", limits.MAX_REGISTRY_PAGE_BYTES
        what = "an index of skills"
        return address, await get_json(self._client, address, {}, limit=limit, what=what, **self._options)

    async def _files(self, listed: Listed) -> Unpacked:
        what = f"the skill {quoted(listed.offer.name)}"
        if listed.digest is not None:
            content = await self._get(listed.url, limits.MAX_BUNDLE_BYTES, what)
            return await self._sources.in_thread(lambda stopped: artifact_files(listed, content, stopped))
        entries: list[tuple[str, bytes]] = []
        left = limits.MAX_BUNDLE_BYTES
        for path in listed.files[: limits.MAX_BUNDLE_FILES + 1]:
            content = await self._get(urljoin(listed.url, quote(path)), left, f"a file of {what}")
            left -= len(content)
            entries.append((path, content))
        return Unpacked(entries)

    async def _get(self, url: str, limit: int, what: str) -> bytes:
        return await get_bytes(self._client, url, {}, limit=limit, what=what, **self._options)


def parse_index(answer: object, address: str) -> list[Listed]:
    """List the skills of an index found at an address; malformed rows and unknown types are left out."""
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
        artifact, kind = urljoin(address, url), row.get("type")
        there, here = urlsplit(artifact), urlsplit(address)
        # By https, or by plain http from the very place of the index.
        is_safe = (there.scheme, there.netloc) == (here.scheme, here.netloc)
        is_safe = is_safe or (here.scheme == "https" and there.scheme == "https")
        usable = kind in ("skill-md", "archive") and is_safe and not there.username
        return Listed(offer, artifact, digest, kind == "archive") if usable else None
    if is_text_list(files) and OVERVIEW in files and all(is_safe_path(path) for path in (name, *files)):
        return Listed(offer, urljoin(address, f"{name}/"), files=tuple(files))
    return None


def artifact_files(listed: Listed, content: bytes, stopped: threading.Event) -> Unpacked:
    """Check the digest of an artifact and return its files. Blocks; ``stopped`` ends it early."""
    name = quoted(listed.offer.name)
    if content_hash(content) != listed.digest:
        problem = f"what the site has for {name} is not what its index promises"
        raise DirectoryError(SOURCE_REFUSED, problem)
    if listed.is_archive:
        return unpacked(content, f"the archive of {name}", _ARTIFACT, stopped)
    return Unpacked([(OVERVIEW, overview_text(content, f"what the site has for {name}"))])
