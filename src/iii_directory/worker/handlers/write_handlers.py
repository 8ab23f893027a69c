"""Answer writes: registrations go to iii-state, downloads and documents to the skills folder.

The functions of the workers registry are answered here as well.
"""

from __future__ import annotations

import re
import time
from base64 import b64decode
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from iii_directory.catalog import resolve
from iii_directory.catalog.diagnostics import row_of
from iii_directory.catalog.skill_folders import skill_of
from iii_directory.disk.install_record import content_hash
from iii_directory.documents import payload_fields
from iii_directory.documents.ids import check_new_skill_id, check_prompt_name, check_skill_id
from iii_directory.documents.model import UNKNOWN, Author
from iii_directory.documents.parse import written_document
from iii_directory.documents.uris import SCHEME
from iii_directory.errors import BAD_BODY, INVALID_FIELD, READ_ONLY_SKILL, DirectoryError, Step, invalid_field
from iii_directory.install.requests import any_download, registry_download, repo_download
from iii_directory.limits import MAX_WORKER_NAME_CHARS
from iii_directory.registry.registry_messages import info_request, page_request
from iii_directory.shapes import text_of
from iii_directory.text import cut, quoted, rfc3339
from iii_directory.wire.protocol import CALLER

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from iii_directory.bus.seam import Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.config import Settings
    from iii_directory.install.plan import EditedFiles
    from iii_directory.install.requests import DownloadRequest
    from iii_directory.install.service import Installer
    from iii_directory.install.writes import Writes, WrittenFile
    from iii_directory.registry.registry_client import RegistryClient
    from iii_directory.worker.change_events import DiskEditEvents, InstallEvents
    from iii_directory.worker.installed_workers import AutoDownload, InstalledWorkers
    from iii_directory.worker.registrations import Registrations


async def author_of(payload: Payload, workers: InstalledWorkers) -> Author:
    """Return the worker that made a call; unknown if the engine does not say."""
    worker_id = text_of(payload.get(CALLER))
    if not worker_id or len(worker_id) > MAX_WORKER_NAME_CHARS:
        return Author()
    name = await workers.name_of(worker_id)
    return Author(worker_id, cut(name, MAX_WORKER_NAME_CHARS) if name else UNKNOWN)


_DIGEST: Final = "sha256:"
_HEX_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(eq=False)
class RegistrationHandlers:
    """Answers ``skills::register|unregister`` and ``prompts::register|unregister``."""

    _registrations: Registrations
    _workers: InstalledWorkers

    async def register_skill(self, payload: Payload) -> dict[str, Any]:
        fields = payload_fields.skill_fields(payload, check_new_skill_id)
        author = await author_of(payload, self._workers)
        registered_at = await self._registrations.skills.register(fields, author)
        return {"id": fields["id"], "registered_at": registered_at}

    async def unregister_skill(self, payload: Payload) -> dict[str, Any]:
        skill_id = payload_fields.text(payload, "id")
        check_skill_id(skill_id)
        return {"id": skill_id, "removed": await self._registrations.skills.unregister(skill_id)}

    async def register_prompt(self, payload: Payload) -> dict[str, Any]:
        fields = payload_fields.prompt_fields(payload)
        author = await author_of(payload, self._workers)
        registered_at = await self._registrations.prompts.register(fields, author)
        return {"name": fields["name"], "registered_at": registered_at}

    async def unregister_prompt(self, payload: Payload) -> dict[str, Any]:
        name = payload_fields.text(payload, "name")
        check_prompt_name(name)
        return {"name": name, "removed": await self._registrations.prompts.unregister(name)}


@dataclass(eq=False)
class DownloadHandlers:
    """Answers ``directory::skills::download*|plan|install|remove`` and what the ``worker`` trigger calls."""

    _installer: Installer
    _installs: InstallEvents
    _automatic: AutoDownload
    _settings: Settings
    _is_our_page: Callable[[Payload], bool]
    """Returns whether a call is of the web page that was started with this directory."""

    async def download(self, payload: Payload) -> dict[str, Any]:
        return await self._install(any_download(payload, allow_file=self._settings.allow_file_repos))

    async def from_registry(self, payload: Payload) -> dict[str, Any]:
        return await self._install(registry_download(payload))

    async def from_repo(self, payload: Payload) -> dict[str, Any]:
        return await self._install(repo_download(payload, allow_file=self._settings.allow_file_repos))

    async def on_worker_added(self, payload: Payload) -> dict[str, bool]:
        """Accept every event and never fail: the sender cannot correct a failed download."""
        self._automatic.worker_added(payload)
        return {"ok": True}

    async def plan(self, payload: Payload) -> dict[str, Any]:
        return (await self._installer.preview(registry_download(payload), edited="keep")).as_dict()

    async def install(self, payload: Payload) -> dict[str, Any]:
        return await self._install(registry_download(payload), "keep")

    async def remove(self, payload: Payload) -> dict[str, Any]:
        if not self._settings.allow_writing and not self._is_our_page(payload):
            way = Step("run iii-directory skills remove, or set allow_writing: true in the configuration")
            raise DirectoryError(READ_ONLY_SKILL, "removing skills is switched off here", next_steps=(way,))
        report = await self._installer.upkeep.remove(payload_fields.text(payload, "namespace"))
        await self._installs.removed(report.namespace)
        return {"namespace": report.namespace, "status": report.status, "changes": report.changes.as_dict()}

    async def _install(self, request: DownloadRequest, edited: EditedFiles = "overwrite") -> dict[str, Any]:
        done = await self._installer.download(request, edited=edited)
        await self._installs.landed(done)
        return done.reply


@dataclass(eq=False)
class WriteHandlers:
    """Answers ``directory::skills::create|update|delete``: documents and files of the skills folder."""

    _catalogue: Catalogue
    _writes: Writes
    _installs: InstallEvents
    _edits: DiskEditEvents
    _workers: InstalledWorkers
    _settings: Settings
    _under_way: dict[str, int] = field(default_factory=dict[str, int])
    """The sizes of documents that are being written, by their paths."""

    async def create(self, payload: Payload) -> dict[str, Any]:
        """Create a document, or with ``path`` a file of a skill that exists."""
        self._check_allowed()
        asked = _asked_write(payload, ("id", "path", "content", "encoding", "executable"))
        author = await author_of(payload, self._workers)
        look = await self._catalogue.current()
        if asked.path is None:
            place, raw = resolve.place_of_new(look, asked.id, _decoded(asked.raw))
        else:
            place, raw = resolve.place_of_file(look, asked.id, asked.path, asked.raw), asked.raw
        with self._within_quota(look, place, len(raw)):
            with self._edits.our_own(place.whole_path, content_hash(raw)):
                held = await self._writes.create(
                    place.namespace, place.path, raw, author._asdict(), executable=bool(asked.executable)
                )
            return await self._told("create", place, held, asked.path)

    async def update(self, payload: Payload) -> dict[str, Any]:
        """Replace a document, or with ``path`` a file of the skill."""
        self._check_allowed()
        fields = ("id", "path", "content", "encoding", "executable", "expected_sha256")
        asked, expected = _asked_write(payload, fields), _expected(payload)
        author = await author_of(payload, self._workers)
        look = await self._catalogue.current()
        if asked.path is None:
            place = resolve.place_of_known(look, asked.id)
            raw = written_document(place.whole_path, _decoded(asked.raw))
        else:
            place, raw = resolve.place_of_file(look, asked.id, asked.path, asked.raw), asked.raw
        with self._within_quota(look, place, len(raw)):
            with self._edits.our_own(place.whole_path, content_hash(raw)):
                held = await self._writes.update(
                    place.namespace, place.path, raw, expected, author._asdict(), executable=asked.executable
                )
            return await self._told("update", place, held, asked.path)

    async def delete(self, payload: Payload) -> dict[str, Any]:
        self._check_allowed()
        _check_fields(payload, ("id", "expected_sha256"))
        skill_id, expected = payload_fields.text(payload, "id"), _expected(payload)
        look = await self._catalogue.current()
        place = resolve.place_of_known(look, skill_id)
        with self._edits.our_own(place.whole_path, None):
            held = await self._writes.update(place.namespace, place.path, None, expected)
        return await self._told("delete", place, held)

    def _check_allowed(self) -> None:
        if not self._settings.allow_writing:
            way = Step("set allow_writing: true in the configuration if callers may write skills")
            raise DirectoryError(READ_ONLY_SKILL, "writing skills is switched off here", next_steps=(way,))

    @contextmanager
    def _within_quota(self, look: CatalogueView, place: resolve.WritablePlace, size: int) -> Generator[None]:
        """Count a write before it begins, so that writes at the same time stay within the quota together."""
        used = resolve.written_sizes(look) | self._under_way
        path = place.whole_path
        # A document that becomes smaller is never refused: that is a way back below the quota.
        if size > used.get(path, -1):
            settings = self._settings
            resolve.check_quota(used | {path: size}, settings.max_written_skills, settings.max_written_bytes)
        self._under_way[path] = size
        try:
            yield
        finally:
            self._under_way.pop(path, None)

    async def _told(
        self,
        op: Literal["create", "update", "delete"],
        place: resolve.WritablePlace,
        held: WrittenFile,
        path: str | None = None,
    ) -> dict[str, Any]:
        """Return the reply; by then readers see the change and subscribers were told."""
        look = await self._catalogue.current()
        # A file of a skill is a change of the skill.
        self._installs.written(op if path is None else "update", place.id)
        found = look.snapshot.find(place.id)
        entry = look.snapshot.files.get(place.whole_path)
        odd = [] if entry is None else [row_of(finding) for finding in entry.findings]
        reply: dict[str, Any] = {
            "id": place.id,
            "uri": f"{SCHEME}{place.id}",
            "bytes": held.size,
            "sha256": held.digest.removeprefix(_DIGEST),
            "modified_at": rfc3339(time.time_ns()) if found is None or path else found.modified_at,
            **({"findings": odd} if odd else {}),
        }
        if path is not None:
            reply |= {"path": path, "executable": entry is not None and entry.executable}
        elif op == "create" and found is not None and skill_of(look.snapshot, found) is None:
            reply["note"] = (
                f"{place.namespace} has no overview, so {place.id} is not in the list of skills and not in "
                f"the index: create {place.namespace}"
            )
        return reply


class _AskedWrite(NamedTuple):
    """What a caller wants to be written."""

    id: str
    path: str | None
    raw: bytes
    executable: bool | None


def _asked_write(payload: Payload, known: tuple[str, ...]) -> _AskedWrite:
    _check_fields(payload, known)
    content, path = payload_fields.text(payload, "content"), payload_fields.optional_text(payload, "path")
    encoding = payload.get("encoding")
    if encoding not in (None, "base64"):
        raise invalid_field("encoding", "base64, or left out for text")
    try:
        raw = content.encode() if encoding is None else b64decode(content, validate=True)
    except UnicodeEncodeError:
        raise DirectoryError(BAD_BODY, "content must be text that UTF-8 can carry") from None
    except ValueError:
        raise invalid_field("content", "base64, as encoding says") from None
    executable = None
    if payload.get("executable") is not None:
        executable = payload_fields.flag(payload, "executable", default=False)
        if path is None:
            raise invalid_field("executable", "given with path: a document is not a program")
    return _AskedWrite(payload_fields.text(payload, "id"), path, raw, executable)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise DirectoryError(BAD_BODY, "the content of a document must be UTF-8 text") from None


def _check_fields(payload: Payload, known: tuple[str, ...]) -> None:
    """Refuse a field that the function does not have: the caller expects something to come of it."""
    for key in payload.keys() - {*known, CALLER}:
        raise DirectoryError(INVALID_FIELD, f"field {quoted(key)} is not one of {', '.join(known)}")


def _expected(payload: Payload) -> str | None:
    """Return the hash that the caller expects of the current file, as the record writes hashes."""
    given = payload_fields.optional_word(payload, "expected_sha256")
    if given is None:
        return None
    digits = given.removeprefix(_DIGEST).lower()
    if not _HEX_DIGEST.fullmatch(digits):
        raise invalid_field("expected_sha256", "64 hex digits, as directory::skills::get with raw gives them")
    return _DIGEST + digits


@dataclass(eq=False)
class RegistryHandlers:
    """Answers ``directory::registry::workers::list|info`` and their v0.4 names."""

    _client: RegistryClient

    async def workers(self, payload: Payload) -> dict[str, Any]:
        return await self._client.workers(page_request(payload))

    async def worker_info(self, payload: Payload) -> dict[str, Any]:
        wants_schemas = payload_fields.flag(payload, "schemas", default=True)
        wants_readme = payload_fields.flag(payload, "readme", default=True)
        info = await self._client.worker_info(info_request(payload))
        if not wants_schemas:
            # The schemas of a worker may take more room than all else.
            names = {
                kind: [{key: row[key] for key in ("name", "description") if key in row} for row in rows]
                for kind, rows in info["api_reference"].items()
            }
            info = {**info, "api_reference": names}
        return info if wants_readme else {key: value for key, value in info.items() if key != "readme"}
