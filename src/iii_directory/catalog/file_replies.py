"""Answer the functions about files of skills, from one view of the catalogue and the payload. Pure.

These functions read and hash files: call them in a thread, not on an event loop.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from iii_directory.catalog import skill_folders
from iii_directory.catalog.resolve import Found, FoundFile, not_found, resolve_skill
from iii_directory.documents.file_pages import LONGEST_CHARACTER, FilePart, media_type, page_of, text_of
from iii_directory.documents.payload_fields import count, text
from iii_directory.documents.uris import SCHEME
from iii_directory.errors import FILE_NOT_FOUND, NO_TEXT, DirectoryError, Step, invalid_field
from iii_directory.limits import MAX_BODY_BYTES, MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES, MAX_PAGE_BYTES
from iii_directory.text import close_names, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.catalog.skill_replies import Row
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.documents.model import Provenance, Skill

    Payload = Mapping[str, Any]


def file_as_text(view: CatalogueView, path: str, *, with_raw: bool) -> Row:
    """Answer ``directory::skills::get`` for a path that is not a document."""
    part_of = skill_folders.skill_at(view.snapshot, path)
    entry = view.snapshot.files[path]
    if entry.size is None or entry.size > MAX_BODY_BYTES:
        raise no_text(view.snapshot, path)
    part = view.files.read(path, 0, MAX_BODY_BYTES + 1)
    content = None if part.size > MAX_BODY_BYTES else text_of(part.raw)
    if content is None:
        raise no_text(view.snapshot, path)
    reply: Row = {
        "id": path,
        "title": path.rpartition("/")[2],
        "type": "file",
        "function_id": None,
        "body": content,
        "modified_at": part.modified_at,
        "skill": None if part_of is None else view.snapshot.display_id(part_of),
    }
    provenance = file_provenance(view, path, part.sha256)
    if provenance is not None:
        reply["provenance"] = provenance.as_json()
    if with_raw:
        reply["raw"] = content
    return reply | view.files.place_of(path)


def file_provenance(view: CatalogueView, path: str, sha256: str | None) -> Provenance | None:
    """Return the provenance of a file by the hash of its bytes; None for a file outside of skills."""
    owner = skill_folders.skill_at(view.snapshot, path)
    return None if owner is None else view.sources.of_file(path, owner.provenance, sha256)


def no_text(snapshot: Snapshot, path: str) -> DirectoryError:
    """Return the error for a file that cannot be read as one text, with the function to call instead."""
    part_of = skill_folders.skill_at(snapshot, path)
    owner = "" if part_of is None else snapshot.display_id(part_of)
    inner = path if part_of is None else skill_folders.relative_path(part_of, path)
    return DirectoryError(
        NO_TEXT,
        f"file {quoted(path)} is binary or larger than {MAX_BODY_BYTES} bytes",
        next_steps=(Step("to read it in pages", "directory::skills::file", {"id": owner, "path": inner}),),
    )


def skill_files(view: CatalogueView, payload: Payload) -> Row:
    """Answer ``directory::skills::files``."""
    owner = skill_meant(view, payload)
    found = skill_folders.files_of(view.snapshot, owner)
    are_hashed = len(found) <= MAX_BUNDLE_FILES and sum(file.size for file in found) <= MAX_BUNDLE_BYTES
    listed: list[Row] = []
    for file in found:
        size, digest = file.size, None
        if are_hashed:
            try:
                _, size, digest, _ = read_part(view, file, 0, 0)
            except DirectoryError:
                continue  # it has just gone
        document = file.document
        listed.append(
            {
                "path": file.path,
                "bytes": size,
                "media_type": media_type(file.path),
                "executable": file.executable,
                "sha256": digest,
                "document": None if document is None else view.snapshot.display_id(document),
                "provenance": of_file(view, owner, file, digest).as_json(),
            }
        )
    key = view.snapshot.display_id(owner)
    provenance = owner.provenance.as_json()
    reply: Row = {"id": key, "uri": SCHEME + key, "provenance": provenance, "files": listed}
    return reply | view.files.place_of(skill_folders.folder_of(owner) or owner.path)


def skill_file(view: CatalogueView, payload: Payload) -> Row:
    """Answer ``directory::skills::file``."""
    offset = count(payload, "offset", default=0)
    limit = min(count(payload, "limit", default=MAX_PAGE_BYTES), MAX_PAGE_BYTES)
    if limit == 0:
        raise invalid_field("limit", "at least 1")
    owner, path = _owner_and_path(view, payload)
    file = _file_called(view.snapshot, owner, path)
    part = read_part(view, file, offset, max(limit, LONGEST_CHARACTER))
    if offset > part.size:
        raise invalid_field("offset", f"at most {part.size}, the size of the file")
    page = page_of(part.raw, is_last=offset + len(part.raw) >= part.size)
    end = offset + page.taken
    return {
        "id": view.snapshot.display_id(owner),
        "path": file.path,
        "media_type": media_type(file.path),
        "encoding": page.encoding,
        "content": page.content,
        "bytes": part.size,
        "sha256": part.sha256,
        "next_offset": end if end < part.size else None,
        "provenance": of_file(view, owner, file, part.sha256).as_json(),
    }


def of_file(
    view: CatalogueView, owner: Skill, file: skill_folders.SkillFile, sha256: str | None
) -> Provenance:
    """Return the provenance of one of the files of a skill, by the hash of its bytes."""
    if file.place is not None:
        return view.sources.of_file(file.place, owner.provenance, sha256)
    return (file.document or owner).provenance


def skill_meant(view: CatalogueView, payload: Payload) -> Skill:
    """Return the skill of a document or a file; a document without a skill stands for itself."""
    asked = text(payload, "id")
    target = resolve_skill(view.snapshot, asked, view.installed or frozenset())
    if isinstance(target, Found) and target.note is None:
        return skill_folders.skill_of(view.snapshot, target.skill) or target.skill
    part_of = skill_folders.skill_at(view.snapshot, target.path) if isinstance(target, FoundFile) else None
    if part_of is None:
        raise not_found(view.snapshot, asked)
    return part_of


def _owner_and_path(view: CatalogueView, payload: Payload) -> tuple[Skill, str]:
    """Return the skill of a file and the path of the file in that skill.

    Without a ``path`` the id is that of a skill with the path behind it; the longest id of a skill counts.
    """
    if payload.get("path") is not None:
        return skill_meant(view, payload), text(payload, "path")
    asked = text(payload, "id")
    skill_id = asked
    while "/" in skill_id:
        skill_id = skill_id.rpartition("/")[0]
        owner = view.snapshot.find(skill_id)
        if owner is not None and skill_folders.is_skill(view.snapshot, owner):
            return owner, asked.removeprefix(f"{skill_id}/")
    raise not_found(view.snapshot, asked)


def _file_called(snapshot: Snapshot, owner: Skill, path: str) -> skill_folders.SkillFile:
    wanted = path.strip().removeprefix("./")
    found = skill_folders.file_of(snapshot, owner, path) or skill_folders.file_of(snapshot, owner, wanted)
    if found is not None:
        return found
    # Accept any case, and a path below the skills folder instead of the skill's.
    folded = wanted.casefold()
    known = skill_folders.files_of(snapshot, owner)
    by_folded = {file.path.casefold(): file for file in known}
    found = by_folded.get(folded) or by_folded.get(folded.removeprefix(f"{skill_folders.folder_of(owner)}/"))
    if found is not None:
        return found
    key = snapshot.display_id(owner)
    problem = f"file {quoted(path)} not found in the skill {quoted(key)}"
    close = close_names(wanted, {file.path for file in known})
    raise DirectoryError(FILE_NOT_FOUND, problem, did_you_mean=close)


def read_part(view: CatalogueView, file: skill_folders.SkillFile, offset: int, limit: int) -> FilePart:
    """Return at most ``limit`` bytes of a skill's file from ``offset`` on, with the hash of the whole."""
    if file.place is not None:
        return view.files.read(file.place, offset, limit)
    assert file.document is not None  # noqa: S101 (a file without a place is registered)
    raw = view.read_document(file.document).raw.encode(errors="surrogatepass")
    digest = hashlib.sha256(raw).hexdigest()
    return FilePart(raw[offset : offset + limit], len(raw), digest, file.document.modified_at)


def with_places(view: CatalogueView, answer: Row) -> Row:
    """Add the paths on this machine to the skills and pages among the hits of a search."""

    def placed(hit: Row, kind: str) -> Row:
        skill = view.snapshot.find(hit["id"]) if kind == "skill" else None
        path = None if skill is None else skill_folders.folder_of(skill) or skill.path
        return hit | view.files.place_of(path)

    results: list[Row] = []
    for result in answer["results"]:
        sections = [
            section | {"hits": [placed(hit, section["kind"]) for hit in section["hits"]]}
            for section in result["sections"]
        ]
        nearest = [placed(hit, hit["kind"]) for hit in result["nearest"]]
        results.append(result | {"sections": sections, "nearest": nearest})
    return answer | {"results": results}
