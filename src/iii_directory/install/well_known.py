"""Read the skills in the well-known index of a site, and the artifacts that the index names.

Version 0.2.0 of the index names one artifact for each skill, a SKILL.md or an archive, with its digest; the
older version lists the files of each skill. Archives are unpacked in a child process (`unpack`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urljoin, urlsplit

from iii_directory import limits
from iii_directory.disk.install_record import SiteSource, content_hash
from iii_directory.disk.safe_names import is_safe_path
from iii_directory.documents.ids import OVERVIEW
from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError
from iii_directory.install.bundle import Bundle, Offer, Offered, content_digest, make_bundle
from iii_directory.install.direct_file import Unpacked, overview_text, unpacked
from iii_directory.install.unpack import Bounds
from iii_directory.registry.registry_client import Host, get_bytes, get_json
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
_BOUNDS: Final = Bounds(
    limits.MAX_BUNDLE_FILES,
    limits.MAX_BUNDLE_BYTES,
    limits.MAX_ARCHIVE_HEADER_BYTES,
    limits.UNPACK_MEMORY_BYTES,
    limits.UNPACK_SECONDS,
)


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
        self.found = Offered(())
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
        self.found = Offered(list(self._listed))

    async def bundles(self, chosen: Sequence[Offer]) -> AsyncIterator[Read]:
        for offer in chosen:
            try:
                yield offer, await self._bundle(offer)
            except DirectoryError as error:
                yield offer, error

    async def _bundle(self, offer: Offer) -> Bundle:
        entries, executable = await self._files(self._listed[offer])
        bundle = make_bundle(offer.name, SiteSource(self._url, offer.name), "", entries, executable)
        return bundle.resolved_as(content_digest(bundle))

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


def artifact_files(listed: Listed, content: bytes, stopped: threading.Event) -> Unpacked:
    """Check the digest of an artifact and return its files. Blocks; ``stopped`` ends it early."""
    name = quoted(listed.offer.name)
    if content_hash(content) != listed.digest:
        problem = f"what the site has for {name} is not what its index promises"
        raise DirectoryError(SOURCE_REFUSED, problem)
    if listed.is_archive:
        return unpacked(content, f"the archive of {name}", _BOUNDS, stopped)
    return Unpacked([(OVERVIEW, overview_text(content, f"what the site has for {name}"))])
