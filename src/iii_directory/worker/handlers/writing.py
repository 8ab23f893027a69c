"""Writing: registrations go to iii-state, downloads and documents to the skills folder; and the registry."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from iii_directory.catalog.diagnostics import row_of
from iii_directory.catalog.writable import check_quota, place_of_known, place_of_new, written_sizes
from iii_directory.documents.ids import check_new_skill_id, check_prompt_name, check_skill_id
from iii_directory.documents.parse import written_document
from iii_directory.documents.payload_fields import flag, optional_word, text
from iii_directory.documents.registering import prompt_fields, skill_fields
from iii_directory.documents.uris import SCHEME
from iii_directory.errors import INVALID_FIELD, READ_ONLY_SKILL, DirectoryError, Step, invalid_field
from iii_directory.install.requests import any_download, registry_download, repo_download
from iii_directory.lockfile.format import content_hash
from iii_directory.registry.requests import info_request, page_request
from iii_directory.text import quoted, rfc3339
from iii_directory.wire.protocol import CALLER
from iii_directory.worker.registrants import author_of

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.look import Look
    from iii_directory.catalog.writable import Place
    from iii_directory.config import Settings
    from iii_directory.install.requests import DownloadRequest
    from iii_directory.install.service import Installer
    from iii_directory.install.writes import Held, Writes
    from iii_directory.registry.client import RegistryClient
    from iii_directory.worker.auto_download import AutoDownload
    from iii_directory.worker.folder_events import DiskEditEvents, InstallEvents
    from iii_directory.worker.installed_workers import InstalledWorkers
    from iii_directory.worker.registrations import Registrations

_DIGEST: Final = "sha256:"
_HEX_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class Registering:
    """``skills::register|unregister`` and ``prompts::register|unregister``."""

    def __init__(self, registrations: Registrations, workers: InstalledWorkers) -> None:
        self._registrations = registrations
        self._workers = workers

    async def register_skill(self, payload: Payload) -> dict[str, Any]:
        fields = skill_fields(payload, check_new_skill_id)
        author = await author_of(payload, self._workers)
        registered_at = await self._registrations.skills.register(fields, author)
        return {"id": fields["id"], "registered_at": registered_at}

    async def unregister_skill(self, payload: Payload) -> dict[str, Any]:
        skill_id = text(payload, "id")
        check_skill_id(skill_id)
        removed = await self._registrations.skills.unregister(skill_id)
        return {"id": skill_id, "removed": removed}

    async def register_prompt(self, payload: Payload) -> dict[str, Any]:
        fields = prompt_fields(payload)
        author = await author_of(payload, self._workers)
        registered_at = await self._registrations.prompts.register(fields, author)
        return {"name": fields["name"], "registered_at": registered_at}

    async def unregister_prompt(self, payload: Payload) -> dict[str, Any]:
        name = text(payload, "name")
        check_prompt_name(name)
        removed = await self._registrations.prompts.unregister(name)
        return {"name": name, "removed": removed}


class Downloads:
    """``directory::skills::download*``, ``skills::download`` and what the ``worker`` trigger calls."""

    def __init__(
        self, installer: Installer, installs: InstallEvents, automatic: AutoDownload, settings: Settings
    ) -> None:
        self._installer = installer
        self._installs = installs
        self._automatic = automatic
        self._settings = settings

    async def download(self, payload: Payload) -> dict[str, Any]:
        return await self._install(any_download(payload, allow_file=self._settings.allow_file_repos))

    async def from_registry(self, payload: Payload) -> dict[str, Any]:
        return await self._install(registry_download(payload))

    async def from_repo(self, payload: Payload) -> dict[str, Any]:
        return await self._install(repo_download(payload, allow_file=self._settings.allow_file_repos))

    async def on_worker_added(self, payload: Payload) -> dict[str, bool]:
        """Whatever it is sent, and whatever comes of it: the one who tells us is not to blame."""
        self._automatic.worker_added(payload)
        return {"ok": True}

    async def _install(self, request: DownloadRequest) -> dict[str, Any]:
        done = await self._installer.download(request)
        await self._installs.landed(done)
        return done.reply


class Authoring:
    """``directory::skills::create|update|delete``: single documents of the skills folder."""

    def __init__(
        self,
        catalogue: Catalogue,
        writes: Writes,
        installs: InstallEvents,
        edits: DiskEditEvents,
        workers: InstalledWorkers,
        settings: Settings,
    ) -> None:
        self._catalogue = catalogue
        self._writes = writes
        self._installs = installs
        self._edits = edits
        self._workers = workers
        self._settings = settings
        self._under_way: dict[str, int] = {}
        """The sizes of documents that are being written, by their paths."""

    async def create(self, payload: Payload) -> dict[str, Any]:
        self._check_allowed()
        _check_fields(payload, ("id", "content"))
        skill_id, content = text(payload, "id"), text(payload, "content")
        author = await author_of(payload, self._workers)
        look = await self._catalogue.look()
        place, raw = place_of_new(look, skill_id, content)
        with self._within_quota(look, place, len(raw)):
            with self._edits.our_own(place.whole_path, content_hash(raw)):
                held = await self._writes.create(place.namespace, place.path, raw, author._asdict())
            return await self._told("create", place, held)

    async def update(self, payload: Payload) -> dict[str, Any]:
        self._check_allowed()
        _check_fields(payload, ("id", "content", "expected_sha256"))
        skill_id, content = text(payload, "id"), text(payload, "content")
        expected = _expected(payload)
        author = await author_of(payload, self._workers)
        look = await self._catalogue.look()
        place = place_of_known(look, skill_id)
        raw = written_document(place.whole_path, content)
        with self._within_quota(look, place, len(raw)):
            with self._edits.our_own(place.whole_path, content_hash(raw)):
                held = await self._writes.update(place.namespace, place.path, raw, expected, author._asdict())
            return await self._told("update", place, held)

    async def delete(self, payload: Payload) -> dict[str, Any]:
        self._check_allowed()
        _check_fields(payload, ("id", "expected_sha256"))
        skill_id, expected = text(payload, "id"), _expected(payload)
        look = await self._catalogue.look()
        place = place_of_known(look, skill_id)
        with self._edits.our_own(place.whole_path, None):
            held = await self._writes.delete(place.namespace, place.path, expected)
        return await self._told("delete", place, held)

    def _check_allowed(self) -> None:
        if not self._settings.allow_writing:
            way = Step("set allow_writing: true in the configuration if callers may write skills")
            raise DirectoryError(READ_ONLY_SKILL, "writing skills is switched off here", next_steps=(way,))

    @contextmanager
    def _within_quota(self, look: Look, place: Place, size: int) -> Generator[None]:
        """Count a write before it begins, so that writes at the same time stay within the quota together."""
        used = written_sizes(look) | self._under_way
        path = place.whole_path
        # A document that becomes smaller is never refused: that is a way back below the quota.
        if size > used.get(path, -1):
            check_quota(
                used | {path: size}, self._settings.max_written_skills, self._settings.max_written_bytes
            )
        self._under_way[path] = size
        try:
            yield
        finally:
            self._under_way.pop(path, None)

    async def _told(
        self, op: Literal["create", "update", "delete"], place: Place, held: Held
    ) -> dict[str, Any]:
        """The reply; when it is there, readers see the change and subscribers were told."""
        look = await self._catalogue.look()
        self._installs.written(op, place.id)
        found = look.snapshot.find(place.id)
        entry = look.snapshot.files.get(place.whole_path)
        odd = [] if entry is None else [row_of(finding) for finding in entry.findings]
        return {
            "id": place.id,
            "uri": f"{SCHEME}{place.id}",
            "bytes": held.size,
            "sha256": held.digest.removeprefix(_DIGEST),
            "modified_at": rfc3339(time.time_ns()) if found is None else found.modified_at,
            **({"findings": odd} if odd else {}),
        }


def _check_fields(payload: Payload, known: tuple[str, ...]) -> None:
    """Refuse a field that the function does not have: the caller expects something to come of it."""
    for key in payload.keys() - {*known, CALLER}:
        raise DirectoryError(INVALID_FIELD, f"field {quoted(key)} is not one of {', '.join(known)}")


def _expected(payload: Payload) -> str | None:
    """The hash that a caller expects of what is there, as the record writes hashes."""
    given = optional_word(payload, "expected_sha256")
    if given is None:
        return None
    digits = given.removeprefix(_DIGEST).lower()
    if not _HEX_DIGEST.fullmatch(digits):
        raise invalid_field("expected_sha256", "64 hex digits, as directory::skills::get with raw gives them")
    return _DIGEST + digits


class RegistryProxy:
    """``directory::registry::workers::list|info`` and their v0.4 names."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    async def workers(self, payload: Payload) -> dict[str, Any]:
        return await self._client.workers(page_request(payload))

    async def worker_info(self, payload: Payload) -> dict[str, Any]:
        wants_schemas = flag(payload, "schemas", default=True)
        wants_readme = flag(payload, "readme", default=True)
        info = await self._client.worker_info(info_request(payload))
        if not wants_schemas:
            info = {**info, "api_reference": _names_only(info["api_reference"])}
        return info if wants_readme else {key: value for key, value in info.items() if key != "readme"}


def _names_only(api_reference: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """What a worker offers by name and description; the schemas of one may take more room than all else."""
    return {
        kind: [{key: row[key] for key in ("name", "description") if key in row} for row in rows]
        for kind, rows in api_reference.items()
    }
