"""The skills in the well-known index of a site, and the artifacts that the index names.

Version 0.2.0 of the index names one artifact for each skill, a SKILL.md or an archive, with its digest; the
older version lists the files of each skill. Archives are unpacked in a child process (`unpack`).
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urljoin, urlsplit

from iii_directory import limits
from iii_directory.documents.ids import OVERVIEW
from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install import unpack
from iii_directory.install.bundle import Bundle, Offer, content_digest, make_bundle
from iii_directory.install.process import ProcessStoppedError, run
from iii_directory.lockfile.format import SiteSource, content_hash
from iii_directory.lockfile.names import is_safe_path
from iii_directory.registry.http import Host, get_bytes, get_json
from iii_directory.shapes import is_object, is_text_list, rows_of, text_of
from iii_directory.text import one_line, quoted

if TYPE_CHECKING:
    import threading
    from collections.abc import AsyncIterator, Sequence

    import httpx2

    from iii_directory.install.requests import Site
    from iii_directory.install.sources import Read, Sources

_INDEX: Final = "/.well-known/agent-skills/index.json"
_OLDER_INDEX: Final = "/.well-known/skills/index.json"
_HOST: Final = Host("the site", SOURCE_FAILED, SOURCE_REFUSED)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_PROBLEMS: Final = {
    "files": f"holds more than {limits.MAX_BUNDLE_FILES} files",
    "size": f"is larger than {limits.MAX_BUNDLE_BYTES // limits.MIB} MiB when it is unpacked",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """A skill in an index: its artifact with a digest, or the files of the older version."""

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


class SiteSkills:
    """The skills in the index of a site, which is asked for once."""

    def __init__(self, site: Site, client: httpx2.AsyncClient, timeout_ms: int, sources: Sources) -> None:
        self.offers: Sequence[Offer] = ()
        self._url = site.url
        self._client = client
        self._sources = sources
        self._listed: dict[Offer, Listed] = {}
        self._options: dict[str, Any] = {"timeout_ms": timeout_ms, "host": _HOST}

    async def look(self) -> None:
        """Fetch the index, from its present place or else from its older one."""
        try:
            address, answer = await self._index(_INDEX)
        except DirectoryError as error:
            if error.kind is not _HOST.missing:
                raise
            address, answer = await self._index(_OLDER_INDEX)
        self._listed = {one.offer: one for one in parse_index(answer, address)}
        self.offers = list(self._listed)

    async def bundles(self, chosen: Sequence[Offer]) -> AsyncIterator[Read]:
        for offer in chosen:
            try:
                yield offer, await self._bundle(offer)
            except DirectoryError as error:
                yield offer, error

    async def _bundle(self, offer: Offer) -> Bundle:
        files = await self._files(self._listed[offer])
        source = SiteSource(self._url, offer.name)
        bundle = make_bundle(offer.name, source, "", files.entries, files.executable)
        return bundle.resolved_as(content_digest(bundle))

    async def _index(self, place: str) -> tuple[str, Any]:
        address, limit = f"{self._url}{place}", limits.MAX_REGISTRY_PAGE_BYTES
        what = "an index of skills"
        return address, await get_json(self._client, address, {}, limit=limit, what=what, **self._options)

    async def _files(self, listed: Listed) -> Unpacked:
        what = f"the skill {quoted(listed.offer.name)}"
        if listed.digest is not None:
            content = await self._get(listed.url, limits.MAX_BUNDLE_BYTES, what)
            return await self._sources.in_thread(lambda stopped: unpacked(listed, content, stopped))
        entries: list[tuple[str, bytes]] = []
        left = limits.MAX_BUNDLE_BYTES
        for path in listed.files[: limits.MAX_BUNDLE_FILES + 1]:
            content = await self._get(urljoin(listed.url, quote(path)), left, f"a file of {what}")
            left -= len(content)
            entries.append((path, content))
        return Unpacked(tuple(entries))

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
        usable = kind in ("skill-md", "archive") and _is_as_safe(artifact, address)
        return Listed(offer, artifact, digest, kind == "archive") if usable else None
    if is_text_list(files) and OVERVIEW in files and all(is_safe_path(path) for path in (name, *files)):
        return Listed(offer, urljoin(address, f"{name}/"), files=tuple(files))
    return None


def _is_as_safe(url: str, address: str) -> bool:
    """Whether an artifact is fetched by https, or by plain http from the very place of the index."""
    there, here = urlsplit(url), urlsplit(address)
    same = (there.scheme, there.netloc) == (here.scheme, here.netloc)
    return not there.username and (same or (here.scheme == "https" and there.scheme == "https"))


def unpacked(listed: Listed, content: bytes, stopped: threading.Event) -> Unpacked:
    """Check the digest of an artifact and return its files. Blocks; `stopped` ends it early."""
    name = quoted(listed.offer.name)
    if content_hash(content) != listed.digest:
        problem = f"what the site has for {name} is not what its index promises"
        raise DirectoryError(SOURCE_REFUSED, problem)
    if not listed.is_archive:
        try:
            content.decode()
        except UnicodeDecodeError:
            raise refused(f"what the site has for {name} is not text, so it is not a {OVERVIEW}") from None
        return Unpacked(((OVERVIEW, content),))
    head, _, contents = _run_unpack(content, name, stopped).partition(b"\n")
    told = json.loads(head)
    if told.get("problem") == "link":
        raise refused(f"{quoted(told['name'])} in the archive of {name} is not a regular file")
    if "problem" in told:
        raise refused(f"the archive of {name} {_PROBLEMS.get(told['problem'], 'cannot be unpacked')}")
    entries: list[tuple[str, bytes]] = []
    at = 0
    for path, size, _ in told["files"]:
        entries.append((path, contents[at : at + size]))
        at += size
    return Unpacked(tuple(entries), frozenset(path for path, _, executable in told["files"] if executable))


def _run_unpack(content: bytes, name: str, stopped: threading.Event) -> bytes:
    """Run `unpack` on an archive, with bounds on its time and memory, and return its output."""
    bounds = unpack.Bounds(
        limits.MAX_BUNDLE_FILES,
        limits.MAX_BUNDLE_BYTES,
        limits.MAX_ARCHIVE_HEADER_BYTES,
        limits.UNPACK_MEMORY_BYTES,
        limits.UNPACK_SECONDS,
    )
    try:
        done = run(
            [sys.executable, "-I", "-S", unpack.__file__, *map(str, bounds)],
            environment={"LC_ALL": "C"},
            folder=os.path.dirname(unpack.__file__),
            deadline=time.monotonic() + limits.UNPACK_SECONDS,
            # Beside the contents, a line with the names of the files.
            max_output=limits.MAX_BUNDLE_BYTES + limits.MAX_GIT_LISTING_BYTES,
            max_errors=0,
            sent=content,
            watch=lambda: "the command was stopped" if stopped.is_set() else None,
        )
    except ProcessStoppedError as error:
        raise refused(f"the archive of {name} cannot be unpacked: {error}") from None
    if done.code:
        raise refused(f"the archive of {name} cannot be unpacked")
    return done.output
