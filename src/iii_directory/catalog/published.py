"""Skills as MCP hosts load them (SEP-2640): where each is served, its files with digests, its front matter.

Every skill has an address ``skill://<path>/SKILL.md`` whose last segment before ``SKILL.md`` is its name. A
``SKILL.md`` with a valid name and a description is served as it is. For every other skill one is generated:
front matter with the two keys, and then the body, so that the bytes depend on the document alone.

What is at an address is decided in one place (`_bytes_at`), and digests are taken of exactly those bytes. A
manifest is kept until a file of its namespace changes, which the revisions of a look tell.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
import unicodedata
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from iii_directory.catalog.file_replies import of_file, skill_meant
from iii_directory.catalog.rows import meta_of
from iii_directory.catalog.skills import every_skill, files_of, folder_of
from iii_directory.documents import frontmatter
from iii_directory.documents.file_pages import media_type, text_of
from iii_directory.documents.ids import OVERVIEW, bare_id, namespace_of
from iii_directory.documents.parse import document_of
from iii_directory.documents.uris import SCHEME, SKILL_SCHEME, skill_path
from iii_directory.errors import FILE_NOT_FOUND, SKILL_NOT_FOUND, TOO_LARGE, DirectoryError, invalid_field
from iii_directory.limits import (
    MAX_BUNDLE_BYTES,
    MAX_BUNDLE_FILES,
    MAX_MANIFEST_PAGE_BYTES,
    MAX_MANIFEST_PAGE_SKILLS,
    MAX_SKILL_DESCRIPTION_CHARS,
    MAX_SKILL_NAME_CHARS,
)
from iii_directory.text import cut, quoted, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.catalog.look import Look
    from iii_directory.catalog.skills import SkillFile
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Skill
    from iii_directory.documents.provenance import Provenance

Row = dict[str, Any]
MARKDOWN: Final = "text/markdown"
FOLDER: Final = "inode/directory"
URI_META: Final = "dev.iii.directory/uri"
_DYNAMIC: Final = "dynamic"
_OVERVIEW_SUFFIX: Final = f"/{OVERVIEW}"
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")
_HASH_CHARS: Final = 4
# With the dots that stand for the rest it is as long as the standard allows.
_DESCRIPTION_CHARS: Final = MAX_SKILL_DESCRIPTION_CHARS - 3


class Published(NamedTuple):
    """A skill and the path at which it is served, without ``SKILL.md``."""

    path: str
    skill: Skill

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Publication(NamedTuple):
    """Every skill of a snapshot by its path, and the paths in order."""

    by_path: dict[str, Published]
    paths: list[str]

    def containing(self, path: str) -> Published | None:
        """The innermost skill at or above a path."""
        while path:
            if (found := self.by_path.get(path)) is not None:
                return found
            path = path.rpartition("/")[0]
        return None

    def below(self, path: str) -> list[str]:
        """The paths of the skills below a path; a slash sorts right before a zero."""
        return self.paths[bisect_left(self.paths, f"{path}/") : bisect_left(self.paths, f"{path}0")]


class Entry(NamedTuple):
    """A skill as ``skills/list`` shows it, and what else is known of it."""

    published: Published
    row: Row
    size: int
    """The size of its SKILL.md."""
    files: int
    fingerprint: str
    """Differs when the address, the front matter or any file differs."""

    @property
    def is_listed(self) -> bool:
        return bool(self.row["frontmatter"]["description"])


class Content(NamedTuple):
    """What is at an address."""

    mime_type: str
    content: str | bytes
    """Bytes where it is not text."""
    provenance: Provenance


def publication(snapshot: Snapshot) -> Publication:
    """Where every skill of a snapshot is served."""
    return snapshot.once(_publication)


def slug(text: str) -> str:
    """A name of the Agent Skills standard made of any text."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return _NOT_IN_NAMES.sub("-", folded).strip("-")[:MAX_SKILL_NAME_CHARS].strip("-")


def _publication(snapshot: Snapshot) -> Publication:
    taken: dict[str, Published] = {}
    waiting: list[Skill] = []
    # A skill that is named like its folder has its place before any other may take it.
    for _, skill in every_skill(snapshot):
        base = _base(skill)
        last = base.rpartition("/")[2]
        if last == slug(last) and skill.name in (None, last) and base not in taken and skill.path is not None:
            taken[base] = Published(base, skill)
        else:
            waiting.append(skill)
    for skill in waiting:
        # What a worker registers never has an address inside a skill of the folder.
        apart = skill.path is None and Publication(taken, []).containing(_base(skill)) is not None
        path = next(path for path in _candidates(skill, apart=apart) if path not in taken)
        taken[path] = Published(path, skill)
    return Publication(taken, sorted(taken))


def _base(skill: Skill) -> str:
    """The folder of a skill, or the id that it has without one."""
    return folder_of(skill) or bare_id(skill.id)


def _candidates(skill: Skill, *, apart: bool) -> Iterator[str]:
    above, slash, last = ("", "", _base(skill)) if apart else _base(skill).rpartition("/")
    digest = hashlib.sha256(skill.id.encode()).hexdigest()
    made = slug(last) or f"skill-{digest[:_HASH_CHARS]}"
    for name in (skill.name, made):
        if name is not None:
            yield f"{above}{slash}{name}"
    for length in range(_HASH_CHARS, len(digest)):
        yield f"{above}{slash}{made[: MAX_SKILL_NAME_CHARS - length - 1].strip('-')}-{digest[:length]}"


# What is at an address


def uri_of(path: str) -> str:
    """The address of a path, percent-encoded where that is needed."""
    return SKILL_SCHEME + quote(path)


def _provenance_at(look: Look, path: str, raw: bytes) -> Provenance:
    """The provenance of what `_bytes_at` gives for a path."""
    found = publication(look.snapshot)
    item = found.by_path.get(path.removesuffix(_OVERVIEW_SUFFIX)) or found.containing(path)
    assert item is not None  # noqa: S101 (something is at the path)
    file = _file_at(look.snapshot, item, path.removeprefix(f"{item.path}/"))
    if file is None:
        return item.skill.provenance
    return of_file(look, item.skill, file, hashlib.sha256(raw).hexdigest())


def _bytes_at(look: Look, path: str) -> bytes:
    found = publication(look.snapshot)
    if path.endswith(_OVERVIEW_SUFFIX) and (item := found.by_path.get(path.removesuffix(_OVERVIEW_SUFFIX))):
        return _overview(look, item)[0]
    item = found.containing(path)
    file = None if item is None else _file_at(look.snapshot, item, path.removeprefix(f"{item.path}/"))
    if file is None:
        raise DirectoryError(FILE_NOT_FOUND, f"file {quoted(SKILL_SCHEME + path)} not found")
    return _bytes_of(look, file)


def _bytes_of(look: Look, file: SkillFile) -> bytes:
    if file.place is None:
        assert file.document is not None  # noqa: S101 (what has no place is registered)
        return look.read_document(file.document).raw.encode(errors="surrogatepass")
    part = look.files.read(file.place)
    if part.size > MAX_BUNDLE_BYTES:
        raise DirectoryError(TOO_LARGE, f"file {quoted(file.path)} has more than {MAX_BUNDLE_BYTES} bytes")
    return part.raw


def _overview(look: Look, item: Published) -> tuple[bytes, Row]:
    """The bytes of a skill's SKILL.md, and its front matter as JSON."""
    skill = item.skill
    if skill.path is None:
        raw = look.bodies.registered(skill.id).encode(errors="surrogatepass")
    else:
        raw = look.files.read(skill.path).raw
    text = raw.decode("utf-8", "replace")
    block, _ = frontmatter.split(text)
    read = None if block is None else frontmatter.read(block)
    if read is not None and read.problem is None:
        description = read.values.get("description")
        if read.values.get("name") == item.name and isinstance(description, str) and description.strip():
            return raw, read.values
    made: Row = {
        "name": item.name,
        "description": cut(visible(skill.description), _DESCRIPTION_CHARS),
    }
    lines = (f"{key}: {_quoted(value)}" for key, value in made.items())
    body = document_of(text).body
    return "\n".join(("---", *lines, "---", body)).encode(errors="surrogatepass"), made


def _quoted(value: str) -> str:
    """A string that every YAML parser reads alike; readers that look for the next fence find none in it."""
    return json.dumps(value, ensure_ascii=False).replace("---", r"\u002d\u002d\u002d")


def _files_in(snapshot: Snapshot, item: Published) -> dict[str, SkillFile | None]:
    """Every file of a skill by its path below it; None for a SKILL.md that may be generated."""
    files: dict[str, SkillFile | None] = {OVERVIEW: None}
    if item.skill.path is None or folder_of(item.skill) is not None:
        files |= {
            file.path: file for file in files_of(snapshot, item.skill) if not _is_prompt(snapshot, file)
        }
    found = publication(snapshot)
    author = item.skill.provenance.author
    for inner in found.below(item.path):
        if found.by_path[inner].skill.provenance.author == author:
            files[f"{inner.removeprefix(f'{item.path}/')}{_OVERVIEW_SUFFIX}"] = None
    files[OVERVIEW] = None
    return files


def _file_at(snapshot: Snapshot, item: Published, inner: str) -> SkillFile | None:
    return _files_in(snapshot, item).get(inner)


def _is_prompt(snapshot: Snapshot, file: SkillFile) -> bool:
    return file.place is not None and snapshot.files[file.place].prompt is not None


class Publisher:
    """Answers what hosts ask about skills. Any thread may ask; nothing unchanged is read or hashed twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[object, Entry]] = {}
        self._of: tuple[object, list[Entry], str] | None = None
        self._archives: dict[str, tuple[str, Row]] = {}

    def is_ready(self, look: Look) -> bool:
        """Whether the list of a look is known, so that nothing has to be read for it."""
        return self._of is not None and self._of[0] is look.listed

    def content_at(self, look: Look, path: str) -> Content:
        """Read what is served at a path behind ``skill://``."""
        raw = _bytes_at(look, path)
        self._compare(path, raw)
        text = text_of(raw)
        mime_type = MARKDOWN if path.endswith(".md") else media_type(path)
        return Content(mime_type, raw if text is None else text, _provenance_at(look, path, raw))

    def _compare(self, path: str, raw: bytes) -> None:
        """Forget the manifests that list other bytes: a file has others before its writer closes it."""
        uri = uri_of(path)
        digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
        with self._lock:
            above = path.rpartition("/")[0]
            while above:
                kept = self._kept.get(above)
                resources: Any = [] if kept is None else kept[1].row["resources"]
                if any(row["uri"] == uri and row["digest"] != digest for row in resources if row != _DYNAMIC):
                    del self._kept[above]
                    self._of = None
                above = above.rpartition("/")[0]

    def page(self, look: Look, cursor: str | None) -> Row:
        """One page of the skills, as ``skills/list`` shows them."""
        entries, revision = self._entries(look)
        start = _start(cursor, revision)
        rows: list[Row] = []
        size = 0
        for entry in entries[start:]:
            size += len(json.dumps(entry.row, ensure_ascii=False))
            if rows and (len(rows) >= MAX_MANIFEST_PAGE_SKILLS or size > MAX_MANIFEST_PAGE_BYTES):
                break
            rows.append(entry.row)
        end = start + len(rows)
        reply: Row = {"skills": rows}
        return reply | ({"next_cursor": f"{revision}-{end}"} if end < len(entries) else {})

    def skill(self, look: Look, uri: str) -> Row:
        """One skill by the address of its SKILL.md."""
        path = skill_path(uri) if uri.startswith(SKILL_SCHEME) else ""
        item = publication(look.snapshot).by_path.get(path.removesuffix(_OVERVIEW_SUFFIX))
        if item is None or not path.endswith(_OVERVIEW_SUFFIX):
            raise DirectoryError(SKILL_NOT_FOUND, f"skill {quoted(uri)} not found")
        with self._lock:
            return {"skill": self._entry(look, item).row}

    def resources(self, look: Look) -> list[Row]:
        """A row of ``resources/list`` for the SKILL.md of every listed skill."""
        entries, _ = self._entries(look)
        return [_resource(look.snapshot, entry) for entry in entries]

    def folder(self, look: Look, uri: str) -> Row:
        """The direct children of a folder, in the order of their names."""
        path = skill_path(uri.removesuffix("/")) if uri.startswith(SKILL_SCHEME) else ""
        found = publication(look.snapshot)
        item = found.containing(path)
        files = (
            {}
            if item is None
            else {f"{item.path}/{inner}": file for inner, file in _files_in(look.snapshot, item).items()}
        )
        inner_skills = {f"{below}{_OVERVIEW_SUFFIX}": None for below in found.below(path)}
        children: dict[str, SkillFile | str | None] = {}
        for place, file in (inner_skills | files).items():
            if place.startswith(f"{path}/"):
                name, slash, _ = place.removeprefix(f"{path}/").partition("/")
                children[name] = FOLDER if slash else file
        if not children:
            raise DirectoryError(FILE_NOT_FOUND, f"{quoted(uri)} is not a folder of a skill")
        return {"resources": [_child(look, f"{path}/{name}", children[name]) for name in sorted(children)]}

    def archive(self, look: Look, asked: str) -> Row:
        """``directory::skills::archive``: a deterministic ``.tar.gz`` of the whole skill that an id means."""
        skill = skill_meant(look, {"id": asked})
        found = publication(look.snapshot).by_path.values()
        item = next((item for item in found if item.skill is skill), None)
        if item is None:
            raise DirectoryError(SKILL_NOT_FOUND, f"skill {quoted(asked)} not found")
        with self._lock:
            entry = self._entry(look, item)
        if entry.row["resources"] == _DYNAMIC:
            bounds = f"{MAX_BUNDLE_FILES} files or {MAX_BUNDLE_BYTES} bytes"
            raise DirectoryError(TOO_LARGE, f"skill {quoted(asked)} has more than {bounds}")
        packed = _archive(look, item)
        return {
            "id": look.snapshot.display_id(skill),
            "content": base64.b64encode(packed).decode("ascii"),
            "encoding": "base64",
            "bytes": len(packed),
            "sha256": hashlib.sha256(packed).hexdigest(),
        }

    def index(self, look: Look) -> list[Row]:
        """The skills as a well-known index offers them: each with its artifact, whose name is unique."""
        entries, _ = self._entries(look)
        rows: dict[str, Row] = {}
        for entry in entries:
            name = entry.published.name
            if name not in rows and entry.row["resources"] != _DYNAMIC:
                rows[name] = self._artifact(look, entry)
        return list(rows.values())

    def _artifact(self, look: Look, entry: Entry) -> Row:
        path = entry.published.path
        kept = self._archives.get(path)
        if kept is not None and kept[0] == entry.fingerprint:
            return kept[1]
        resources: list[Row] = entry.row["resources"]
        digest = resources[0]["digest"]
        if len(resources) > 1:
            digest = f"sha256:{hashlib.sha256(_archive(look, entry.published)).hexdigest()}"
        row: Row = {
            "id": look.snapshot.display_id(entry.published.skill),
            "path": path,
            "name": entry.published.name,
            "description": cut(entry.row["frontmatter"]["description"], _DESCRIPTION_CHARS),
            "type": "archive" if len(resources) > 1 else "skill-md",
            "digest": digest,
        }
        self._archives[path] = (entry.fingerprint, row)
        return row

    def _entries(self, look: Look) -> tuple[list[Entry], str]:
        """The listed skills by their paths, and what differs when any of them differs."""
        with self._lock:
            known = self._of
            if known is not None and known[0] is look.listed:
                return known[1], known[2]
            found = publication(look.snapshot)
            entries: list[Entry] = []
            for path in found.paths:
                try:
                    entries.append(self._entry(look, found.by_path[path]))
                except DirectoryError:
                    continue  # it has just gone, and the next look does not have it
            listed = {skill.id for _, skill in every_skill(look.listed)}
            entries = [entry for entry in entries if entry.is_listed and entry.published.skill.id in listed]
            for gone in self._kept.keys() - found.by_path.keys():
                del self._kept[gone]
                self._archives.pop(gone, None)
            every = hashlib.sha256("".join(entry.fingerprint for entry in entries).encode())
            self._of = look.listed, entries, every.hexdigest()[:16]
            return entries, self._of[2]

    def _entry(self, look: Look, item: Published) -> Entry:
        skill = item.skill
        place = None if skill.path is None else namespace_of(skill.path)
        version = skill, look.revision_of(place)
        kept = self._kept.get(item.path)
        if kept is None or kept[0] != version:
            kept = self._kept[item.path] = version, _new_entry(look, item)
        return kept[1]


def _new_entry(look: Look, item: Published) -> Entry:
    raw, front_matter = _overview(look, item)
    files = _files_in(look.snapshot, item)
    overview_uri = uri_of(f"{item.path}{_OVERVIEW_SUFFIX}")
    resources: list[Row] | str = [_resource_row(overview_uri, raw)]
    known = sum(file.size for file in files.values() if file is not None) + len(raw)
    if len(files) > MAX_BUNDLE_FILES or known > MAX_BUNDLE_BYTES:
        resources = _DYNAMIC
    else:
        resources += [
            _manifest_row(look, f"{item.path}/{inner}", files[inner])
            for inner in sorted(files)
            if inner != OVERVIEW
        ]
    row: Row = {"uri": overview_uri, "frontmatter": front_matter, "resources": resources}
    fingerprint = hashlib.sha256(json.dumps(row, ensure_ascii=True).encode()).hexdigest()
    row["_meta"] = meta_of(item.skill.provenance)
    return Entry(item, row, len(raw), len(files), fingerprint)


def _manifest_row(look: Look, path: str, file: SkillFile | None) -> Row:
    if file is None or file.place is None:
        return _resource_row(uri_of(path), _bytes_at(look, path))
    part = look.files.read(file.place, 0, 0)
    return {"uri": uri_of(path), "digest": f"sha256:{part.sha256}", "size": part.size}


def _resource_row(uri: str, raw: bytes) -> Row:
    return {"uri": uri, "digest": f"sha256:{hashlib.sha256(raw).hexdigest()}", "size": len(raw)}


def _resource(snapshot: Snapshot, entry: Entry) -> Row:
    skill, told = entry.published.skill, entry.row["frontmatter"]
    return {
        "uri": entry.row["uri"],
        "name": told["name"],
        "description": told["description"],
        "mimeType": MARKDOWN,
        "size": entry.size,
        "annotations": {"audience": ["assistant"], "priority": 1.0, "lastModified": skill.modified_at},
        "_meta": {URI_META: SCHEME + snapshot.display_id(skill), **meta_of(skill.provenance)},
    }


def _child(look: Look, path: str, kind: SkillFile | str | None) -> Row:
    row: Row = {"uri": uri_of(path), "name": path.rpartition("/")[2]}
    if kind == FOLDER:
        return row | {"mimeType": FOLDER}
    mime_type = MARKDOWN if path.endswith(".md") else media_type(path)
    size = len(_bytes_at(look, path)) if kind is None or isinstance(kind, str) else kind.size
    return row | {"mimeType": mime_type, "size": size}


def _start(cursor: str | None, revision: str) -> int:
    if cursor is None:
        return 0
    known, _, start = cursor.partition("-")
    if known != revision or not start.isdecimal():
        raise invalid_field("cursor", "one of the list as it is now; begin again without it")
    return int(start)


def _archive(look: Look, item: Published) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for inner, file in sorted(_files_in(look.snapshot, item).items(), key=lambda pair: pair[0]):
            raw = _bytes_at(look, f"{item.path}/{inner}")
            member = tarfile.TarInfo(inner)
            member.size = len(raw)
            member.mode = 0o755 if file is not None and file.executable else 0o644
            archive.addfile(member, io.BytesIO(raw))
    return gzip.compress(packed.getvalue(), mtime=0)
