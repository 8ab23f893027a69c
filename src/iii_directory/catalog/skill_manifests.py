"""Serve skills as MCP hosts load them (SEP-2640): addresses, files with digests, and front matter.

Every skill has an address ``skill://<path>/SKILL.md`` whose last segment before ``SKILL.md`` is its name. A
``SKILL.md`` with a valid name and a description is served as it is. For every other skill one is generated:
front matter with the two keys, and then the body, so that the bytes depend on the document alone.

One function decides what is at an address (`_find`), and digests are taken of exactly the served bytes. A
manifest is kept until a file of its namespace changes, which the revisions of a view tell.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from iii_directory import limits
from iii_directory.catalog.file_replies import of_file, read_part, skill_meant
from iii_directory.catalog.skill_folders import every_skill, files_of, folder_of
from iii_directory.catalog.skill_replies import meta_of
from iii_directory.catalog.snapshot import once_per_snapshot
from iii_directory.catalog.view import REGISTERED
from iii_directory.disk.install_record import content_hash
from iii_directory.documents import skill_package
from iii_directory.documents.file_pages import media_type, text_of
from iii_directory.documents.ids import OVERVIEW, bare_id, namespace_of
from iii_directory.documents.uris import SCHEME, SKILL_SCHEME, skill_path
from iii_directory.errors import FILE_NOT_FOUND, SKILL_NOT_FOUND, TOO_LARGE, DirectoryError, invalid_field
from iii_directory.text import cut, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.catalog.skill_folders import SkillFile
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.documents.model import Provenance, Skill


Row = dict[str, Any]
MARKDOWN: Final = "text/markdown"
FOLDER: Final = "inode/directory"
URI_META: Final = "dev.iii.directory/uri"
_DYNAMIC: Final = "dynamic"
_OVERVIEW_SUFFIX: Final = f"/{OVERVIEW}"
_HASH_CHARS: Final = 4


class AddressedSkill(NamedTuple):
    """A skill and the path at which it is served, without ``SKILL.md``."""

    path: str
    skill: Skill

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class SkillAddresses(NamedTuple):
    """Every skill of a snapshot by its path, and the paths in order."""

    by_path: dict[str, AddressedSkill]
    paths: list[str]

    def containing(self, path: str) -> AddressedSkill | None:
        """Return the innermost skill at or above a path."""
        while path:
            if (found := self.by_path.get(path)) is not None:
                return found
            path = path.rpartition("/")[0]
        return None

    def below(self, path: str) -> list[str]:
        """Return the paths of the skills below a path; a slash sorts right before a zero."""
        return self.paths[bisect_left(self.paths, f"{path}/") : bisect_left(self.paths, f"{path}0")]


class ManifestEntry(NamedTuple):
    """The row of a skill in ``skills/list``, and further facts about the skill."""

    published: AddressedSkill
    row: Row
    size: int
    """The size of its SKILL.md."""
    files: int
    fingerprint: str
    """Differs when the address, the front matter or any file differs."""


class SkillContent(NamedTuple):
    """The content at an address, and its source."""

    mime_type: str
    content: str | bytes
    """Bytes for content that is not text."""
    provenance: Provenance


@once_per_snapshot
def publication(snapshot: Snapshot) -> SkillAddresses:
    """Give every skill of a snapshot the path at which it is served."""
    taken: dict[str, AddressedSkill] = {}
    waiting: list[Skill] = []
    # A skill that is named like its folder has its place before any other may take it.
    for _, skill in every_skill(snapshot):
        base = _base(skill)
        last = base.rpartition("/")[2]
        if (
            last == skill_package.slug(last)
            and skill.name in (None, last)
            and base not in taken
            and skill.path is not None
        ):
            taken[base] = AddressedSkill(base, skill)
        else:
            waiting.append(skill)
    for skill in waiting:
        # A registered skill never has an address inside a skill of the folder.
        apart = skill.path is None and SkillAddresses(taken, []).containing(_base(skill)) is not None
        path = next(path for path in _candidates(skill, apart=apart) if path not in taken)
        taken[path] = AddressedSkill(path, skill)
    return SkillAddresses(taken, sorted(taken))


def _base(skill: Skill) -> str:
    """Return the folder of a skill, or its id if it has none."""
    return folder_of(skill) or bare_id(skill.id)


def _candidates(skill: Skill, *, apart: bool) -> Iterator[str]:
    """Yield the paths that a skill may have: by its own name, by its folder's, then with a hash behind it."""
    above, slash, last = ("", "", _base(skill)) if apart else _base(skill).rpartition("/")
    digest = hashlib.sha256(skill.id.encode()).hexdigest()
    made = skill_package.slug(last) or f"skill-{digest[:_HASH_CHARS]}"
    for name in (skill.name, made):
        if name is not None:
            yield f"{above}{slash}{name}"
    for length in range(_HASH_CHARS, len(digest)):
        yield f"{above}{slash}{made[: limits.MAX_SKILL_NAME_CHARS - length - 1].strip('-')}-{digest[:length]}"


# What is at an address


def uri_of(path: str) -> str:
    """Return the address of a path, percent-encoded where necessary."""
    return SKILL_SCHEME + quote(path)


def _find(view: CatalogueView, path: str) -> tuple[AddressedSkill, SkillFile | None]:
    """Find the skill and the file at a path; None stands for a SKILL.md that may be generated."""
    found = publication(view.snapshot)
    item = found.by_path.get(path.removesuffix(_OVERVIEW_SUFFIX))
    if item is not None and path.endswith(_OVERVIEW_SUFFIX):
        return item, None
    item = found.containing(path)
    file = None
    if item is not None:
        file = _files_in(view.snapshot, item).get(path.removeprefix(f"{item.path}/"))
    if item is None or file is None:
        raise DirectoryError(FILE_NOT_FOUND, f"file {quoted(SKILL_SCHEME + path)} not found")
    return item, file


def _bytes_of(view: CatalogueView, item: AddressedSkill, file: SkillFile | None) -> tuple[bytes, str]:
    """Return the bytes that are served of a skill, and their SHA-256."""
    if file is None:
        return _overview(view, item)[:2]
    part = read_part(view, file, 0, limits.MAX_BUNDLE_BYTES)
    if part.sha256 is None:
        problem = f"file {quoted(file.path)} has more than {limits.MAX_BUNDLE_BYTES} bytes"
        raise DirectoryError(TOO_LARGE, problem)
    return part.raw, part.sha256


def _overview(view: CatalogueView, item: AddressedSkill) -> tuple[bytes, str, Row]:
    """Return the bytes of a skill's SKILL.md, their SHA-256, and its front matter as JSON."""
    skill = item.skill
    if skill.path is None:
        raw, known = view.files.registered(skill.id).encode(errors="surrogatepass"), None
    else:
        part = view.files.read(skill.path)
        raw, known = part.raw, part.sha256
    served, front_matter = skill_package.overview_of(raw, item.name, skill.description)
    if served is not raw or known is None:
        known = hashlib.sha256(served).hexdigest()
    return served, known, front_matter


def _files_in(snapshot: Snapshot, item: AddressedSkill) -> dict[str, SkillFile | None]:
    """Return every file of a skill by its path below it; None for a SKILL.md that may be generated."""
    files: dict[str, SkillFile | None] = {OVERVIEW: None}
    if item.skill.path is None or folder_of(item.skill) is not None:
        files |= {
            file.path: file
            for file in files_of(snapshot, item.skill)
            # Prompts are served as prompts, not as files of a skill.
            if file.place is None or snapshot.files[file.place].prompt is None
        }
    found = publication(snapshot)
    author = item.skill.provenance.author
    for inner in found.below(item.path):
        if found.by_path[inner].skill.provenance.author == author:
            files[f"{inner.removeprefix(f'{item.path}/')}{_OVERVIEW_SUFFIX}"] = None
    files[OVERVIEW] = None
    return files


class Publisher:
    """Answers hosts that ask about skills. Any thread may ask; unchanged files are not hashed twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[object, ManifestEntry]] = {}
        self._of: tuple[object, list[ManifestEntry], str] | None = None
        self._archives: dict[str, tuple[str, Row]] = {}

    def is_ready(self, view: CatalogueView) -> bool:
        """Return whether the list of a view is known, so that no file has to be read for it."""
        return self._of is not None and self._of[0] is view.listed

    def content_at(self, view: CatalogueView, path: str) -> SkillContent:
        """Read the content served at a path behind ``skill://``."""
        item, file = _find(view, path)
        raw, sha256 = _bytes_of(view, item, file)
        # Forget the manifests that list other bytes: a file may change before its writer closes it.
        uri, digest, above = uri_of(path), f"sha256:{sha256}", path.rpartition("/")[0]
        with self._lock:
            while above:
                kept = self._kept.get(above)
                resources: Any = [] if kept is None else kept[1].row["resources"]
                if any(row["uri"] == uri and row["digest"] != digest for row in resources if row != _DYNAMIC):
                    del self._kept[above]
                    self._of = None
                above = above.rpartition("/")[0]
        text = text_of(raw)
        mime_type = MARKDOWN if path.endswith(".md") else media_type(path)
        provenance = item.skill.provenance
        if file is not None:
            provenance = of_file(view, item.skill, file, sha256)
        return SkillContent(mime_type, raw if text is None else text, provenance)

    def page(self, view: CatalogueView, cursor: str | None) -> Row:
        """Return one page of the skills, as ``skills/list`` shows them."""
        entries, revision = self._entries(view)
        start = 0
        if cursor is not None:
            known, _, number = cursor.partition("-")
            if known != revision or not number.isdecimal():
                raise invalid_field("cursor", "one of the list as it is now; begin again without it")
            start = int(number)
        rows: list[Row] = []
        size = 0
        for entry in entries[start:]:
            size += len(json.dumps(entry.row, ensure_ascii=False))
            if rows and (
                len(rows) >= limits.MAX_MANIFEST_PAGE_SKILLS or size > limits.MAX_MANIFEST_PAGE_BYTES
            ):
                break
            rows.append(entry.row)
        end = start + len(rows)
        reply: Row = {"skills": rows}
        return reply | ({"next_cursor": f"{revision}-{end}"} if end < len(entries) else {})

    def skill(self, view: CatalogueView, uri: str) -> Row:
        """Return one skill by the address of its SKILL.md."""
        path = skill_path(uri) if uri.startswith(SKILL_SCHEME) else ""
        item = publication(view.snapshot).by_path.get(path.removesuffix(_OVERVIEW_SUFFIX))
        if item is None or not path.endswith(_OVERVIEW_SUFFIX):
            raise DirectoryError(SKILL_NOT_FOUND, f"skill {quoted(uri)} not found")
        with self._lock:
            return {"skill": self._entry(view, item).row}

    def resources(self, view: CatalogueView) -> list[Row]:
        """Return a row of ``resources/list`` for the SKILL.md of every listed skill."""
        rows: list[Row] = []
        for entry in self._entries(view)[0]:
            skill, told = entry.published.skill, entry.row["frontmatter"]
            modified = {"audience": ["assistant"], "priority": 1.0, "lastModified": skill.modified_at}
            address = SCHEME + view.snapshot.display_id(skill)
            rows.append(
                {
                    "uri": entry.row["uri"],
                    "name": told["name"],
                    "description": told["description"],
                    "mimeType": MARKDOWN,
                    "size": entry.size,
                    "annotations": modified,
                    "_meta": {URI_META: address, **meta_of(skill.provenance)},
                }
            )
        return rows

    def folder(self, view: CatalogueView, uri: str) -> Row:
        """Return the direct children of a folder, sorted by name."""
        path = skill_path(uri.removesuffix("/")) if uri.startswith(SKILL_SCHEME) else ""
        found = publication(view.snapshot)
        item = found.containing(path)
        places: dict[str, SkillFile | None] = {f"{one}{_OVERVIEW_SUFFIX}": None for one in found.below(path)}
        if item is not None:
            places |= {f"{item.path}/{name}": file for name, file in _files_in(view.snapshot, item).items()}
        children: dict[str, Row] = {}
        for place, file in places.items():
            if place.startswith(f"{path}/"):
                name, slash, _ = place.removeprefix(f"{path}/").partition("/")
                row: Row = {"uri": uri_of(f"{path}/{name}"), "name": name}
                if slash:
                    children[name] = row | {"mimeType": FOLDER}
                    continue
                mime_type = MARKDOWN if name.endswith(".md") else media_type(name)
                size = len(_bytes_of(view, *_find(view, place))[0]) if file is None else file.size
                children[name] = row | {"mimeType": mime_type, "size": size}
        if not children:
            raise DirectoryError(FILE_NOT_FOUND, f"{quoted(uri)} is not a folder of a skill")
        return {"resources": [children[name] for name in sorted(children)]}

    def archive(self, view: CatalogueView, asked: str) -> Row:
        """Answer ``directory::skills::archive``: a deterministic ``.tar.gz`` of a whole skill."""
        skill = skill_meant(view, {"id": asked})
        found = publication(view.snapshot).by_path.values()
        item = next((item for item in found if item.skill is skill), None)
        if item is None:
            raise DirectoryError(SKILL_NOT_FOUND, f"skill {quoted(asked)} not found")
        with self._lock:
            entry = self._entry(view, item)
        if entry.row["resources"] == _DYNAMIC:
            bounds = f"{limits.MAX_BUNDLE_FILES} files or {limits.MAX_BUNDLE_BYTES} bytes"
            raise DirectoryError(TOO_LARGE, f"skill {quoted(asked)} has more than {bounds}")
        content = _archive(view, item)
        return {
            "id": view.snapshot.display_id(skill),
            "content": base64.b64encode(content).decode("ascii"),
            "encoding": "base64",
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }

    def index(self, view: CatalogueView) -> list[Row]:
        """Return the skills for a well-known index: each with its artifact, under a unique name."""
        rows: dict[str, Row] = {}
        for entry in self._entries(view)[0]:
            item, resources = entry.published, entry.row["resources"]
            if item.name in rows or resources == _DYNAMIC:
                continue
            kept = self._archives.get(item.path)
            if kept is None or kept[0] != entry.fingerprint:
                is_archive = len(resources) > 1
                row: Row = {
                    "id": view.snapshot.display_id(item.skill),
                    "path": item.path,
                    "name": item.name,
                    "description": cut(
                        entry.row["frontmatter"]["description"], skill_package.DESCRIPTION_CHARS
                    ),
                    "type": "archive" if is_archive else "skill-md",
                    "digest": content_hash(_archive(view, item)) if is_archive else resources[0]["digest"],
                }
                kept = self._archives[item.path] = entry.fingerprint, row
            rows[item.name] = kept[1]
        return list(rows.values())

    def _entries(self, view: CatalogueView) -> tuple[list[ManifestEntry], str]:
        """Return the listed skills by their paths, and a revision that differs when any of them differs."""
        with self._lock:
            known = self._of
            if known is not None and known[0] is view.listed:
                return known[1], known[2]
            found = publication(view.snapshot)
            listed = {skill.id for _, skill in every_skill(view.listed)}
            entries: list[ManifestEntry] = []
            for path in found.paths:
                try:
                    entry = self._entry(view, found.by_path[path])
                except DirectoryError:
                    continue  # it has just gone, and the next view does not have it
                if entry.row["frontmatter"]["description"] and entry.published.skill.id in listed:
                    entries.append(entry)
            for gone in self._kept.keys() - found.by_path.keys():
                del self._kept[gone]
                self._archives.pop(gone, None)
            every = hashlib.sha256("".join(entry.fingerprint for entry in entries).encode())
            self._of = view.listed, entries, every.hexdigest()[:16]
            return entries, self._of[2]

    def _entry(self, view: CatalogueView, item: AddressedSkill) -> ManifestEntry:
        skill = item.skill
        # Every change of a file in the namespace changes the revision, so a manifest is never outdated.
        place = REGISTERED if skill.path is None else namespace_of(skill.path)
        version = skill, view.revisions.get(place)
        kept = self._kept.get(item.path)
        if kept is not None and kept[0] == version:
            return kept[1]
        raw, sha256, front_matter = _overview(view, item)
        files = _files_in(view.snapshot, item)
        overview_uri = uri_of(f"{item.path}{_OVERVIEW_SUFFIX}")
        rows: list[Row] = [{"uri": overview_uri, "digest": f"sha256:{sha256}", "size": len(raw)}]
        known = sum(file.size for file in files.values() if file is not None) + len(raw)
        is_dynamic = len(files) > limits.MAX_BUNDLE_FILES or known > limits.MAX_BUNDLE_BYTES
        for inner in () if is_dynamic else sorted(files.keys() - {OVERVIEW}):
            path, file = f"{item.path}/{inner}", files[inner]
            if file is None or file.place is None:
                content, sha256 = _bytes_of(view, *_find(view, path))
                size = len(content)
            else:
                part = view.files.read(file.place, 0, 0)
                sha256, size = part.sha256, part.size
            rows.append({"uri": uri_of(path), "digest": f"sha256:{sha256}", "size": size})
        resources = _DYNAMIC if is_dynamic else rows
        row: Row = {"uri": overview_uri, "frontmatter": front_matter, "resources": resources}
        fingerprint = hashlib.sha256(json.dumps(row, ensure_ascii=True).encode()).hexdigest()
        row["_meta"] = meta_of(skill.provenance)
        entry = ManifestEntry(item, row, len(raw), len(files), fingerprint)
        self._kept[item.path] = version, entry
        return entry


def _archive(view: CatalogueView, item: AddressedSkill) -> bytes:
    return skill_package.packed(
        {
            inner: skill_package.PackedFile(
                _bytes_of(view, *_find(view, f"{item.path}/{inner}"))[0], file is not None and file.executable
            )
            for inner, file in _files_in(view.snapshot, item).items()
        }
    )
