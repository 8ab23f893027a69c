"""A folder of published workers: ``<worker>/<version>/`` with worker.yaml, README.md, skills/ and prompts/.

Everything is read when it is asked for, so a running server shows what was published a moment ago. Files and
folders that are not named like workers or versions are left out. A search ranks by trigrams as PostgreSQL's
``pg_trgm`` counts them, so that it finds what the public registry would find.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import json
import os
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from iii_directory import limits
from iii_directory.disk.files import RefusedError, settled_stamp
from iii_directory.disk.install_record import content_hash
from iii_directory.disk.safe_open import read_below
from iii_directory.documents import skill_package
from iii_directory.documents.ids import OVERVIEW, OVERVIEWS
from iii_directory.documents.parse import document_of, parse_file
from iii_directory.registry import registry_messages
from iii_directory.shapes import Json, is_object, items_of, object_of
from iii_directory.text import cut, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from iii_directory.disk.files import Stamp


TAGS: Final = "tags.json"
YANKED: Final = "yanked.json"
WORKER: Final = "worker.yaml"
README: Final = "README.md"
_DOWNLOADS: Final = "downloads"
_REFERENCE: Final = ("functions", "triggers")


class OfferedSkill(NamedTuple):
    """A skill of the latest version of a worker, as the well-known index names it."""

    name: str
    description: str
    type: str
    digest: str
    worker: str
    version: str
    root: str
    """The folder of the skill below the worker's ``skills/``; empty where it is that folder itself."""


class RegistryStore:
    """Reads one such folder."""

    def __init__(self, folder: Path) -> None:
        # A link on the way to the folder, or the folder as a link, counts once; below it none is followed.
        self._folder = os.path.realpath(folder)
        self._documents: dict[str, tuple[Stamp, Json]] = {}
        self._offered: dict[tuple[str, str], tuple[OfferedSkill, ...]] = {}

    def workers(self) -> list[str]:
        return [name for name in _names(self._folder) if registry_messages.is_worker(name)]

    def versions(self, worker: str) -> list[str]:
        return [name for name in _names(f"{self._folder}/{worker}") if registry_messages.is_version(name)]

    def yanked(self, worker: str) -> frozenset[str]:
        """Return the versions that are served to callers who name them, and not offered otherwise."""
        found = items_of(self._record(f"{worker}/{YANKED}"))
        return frozenset(version for version in found if isinstance(version, str))

    def published_at(self, worker: str, version: str) -> str | None:
        try:
            return rfc3339(os.lstat(f"{self._folder}/{worker}/{version}").st_mtime_ns)
        except OSError:
            return None

    def tags(self, worker: str) -> dict[str, str]:
        """Return the tags given to versions; ``latest`` is the highest stable version unless it was given.

        A tag of a version that was yanked is left out.
        """
        yanked = self.yanked(worker)
        versions = [version for version in self.versions(worker) if version not in yanked]
        tags = {tag: version for tag, version in self.given_tags(worker).items() if version in versions}
        latest = registry_messages.highest_stable(versions)
        return {"latest": latest, **tags} if latest is not None else tags

    def given_tags(self, worker: str) -> dict[str, str]:
        found = object_of(self._record(f"{worker}/{TAGS}"))
        return {tag: version for tag, version in found.items() if isinstance(version, str)}

    def resolve(self, worker: str, asked: str) -> str | None:
        """Return the version that a version or a tag stands for; None if the worker does not have it."""
        if not registry_messages.is_worker(worker):
            return None
        return asked if asked in self.versions(worker) else self.tags(worker).get(asked)

    def rows(self) -> list[Json]:
        """List every worker at its latest version; a worker without one is left out."""
        found = ((worker, self.resolve(worker, "latest")) for worker in self.workers())
        return [self.row(worker, version) for worker, version in found if version is not None]

    def row(self, worker: str, version: str) -> Json:
        known = {"name": worker, "version": version, "total_downloads": self.downloads(worker)}
        row = registry_messages.parse_row({**self._document(worker, version), **known})
        assert row is not None  # noqa: S101 - it has a name
        return row

    def detail(self, worker: str, version: str) -> Json:
        """Answer ``GET /w/{name}``."""
        document = self._document(worker, version)
        reference = {field: document[field] for field in _REFERENCE if isinstance(document.get(field), list)}
        detail: Json = {**self.row(worker, version), "functions": [], "triggers": [], **reference}
        tags, yanked = self.tags(worker), self.yanked(worker)
        detail["versions"] = [
            {
                "version": one,
                "tags": sorted(tag for tag, version in tags.items() if version == one),
                "published_at": self.published_at(worker, one),
            }
            for one in sorted(
                self.versions(worker), key=lambda one: registry_messages.order_of(one) or (), reverse=True
            )
            if one not in yanked
        ]
        readme = self._text(f"{worker}/{version}/{README}")
        return {"worker": detail if readme is None else {**detail, "readme": readme}}

    def bundle(self, worker: str, version: str) -> Json | None:
        """Answer ``GET /w/{name}/skills``; None if the version has no documents."""
        folder = f"{worker}/{version}"
        skills = [{"path": path, "content": content} for path, content in self._texts(f"{folder}/skills")]
        texts = self._texts(f"{folder}/prompts")
        prompts = [prompt_of(path, text) for path, text in texts if path.endswith(".md")]
        if not skills and not prompts:
            return None
        for skill in skills:
            # Installers take one leading "skills/" off.
            if skill["path"].startswith("skills/"):
                skill["path"] = f"skills/{skill['path']}"
        return {"name": worker, "version": version, "skills": skills, "prompts": prompts}

    def offered_skills(self) -> dict[str, OfferedSkill]:
        """Find the skills of every worker's latest version by their names; of two with one name the first."""
        found: dict[str, OfferedSkill] = {}
        tagged = ((worker, self.tags(worker).get("latest")) for worker in self.workers())
        latest = {(worker, version) for worker, version in tagged if version is not None}
        for key in sorted(latest):
            # A version never changes, so its skills are read and hashed once.
            if key not in self._offered:
                self._offered[key] = tuple(self._skills_in(*key))
            for skill in self._offered[key]:
                found.setdefault(skill.name, skill)
        for gone in self._offered.keys() - latest:
            del self._offered[gone]
        return found

    def skill_files(self, skill: OfferedSkill) -> dict[str, skill_package.PackedFile]:
        """Read every file of a skill by its path in it."""
        texts = dict(self._texts(f"{skill.worker}/{skill.version}/skills"))
        _, files = _packed_files(texts, skill.worker, skill.root, _overview_at(texts, skill.root) or OVERVIEW)
        return files

    def _skills_in(self, worker: str, version: str) -> Iterator[OfferedSkill]:
        texts = dict(self._texts(f"{worker}/{version}/skills"))
        for root in sorted({"", *(path.rpartition("/")[0] for path in texts)}):
            overview = _overview_at(texts, root)
            if overview is None or "prompts" in root.split("/"):
                continue
            head, files = _packed_files(texts, worker, root, overview)
            artifact = files[OVERVIEW].raw if len(files) == 1 else skill_package.packed(files)
            kind = "skill-md" if len(files) == 1 else "archive"
            if head["description"]:
                description = cut(head["description"], skill_package.DESCRIPTION_CHARS)
                digest = content_hash(artifact)
                yield OfferedSkill(head["name"], description, kind, digest, worker, version, root)

    def downloads(self, worker: str) -> int:
        text = self._text(f"{worker}/{_DOWNLOADS}") or ""
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0

    def count_download(self, worker: str) -> None:
        """Count one download more, unless the disk is read-only."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            opened = os.open(f"{self._folder}/{worker}/{_DOWNLOADS}", flags, 0o644)
        except OSError:
            return
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
            os.pwrite(opened, str(self.downloads(worker) + 1).encode(), 0)
        finally:
            os.close(opened)

    def _document(self, worker: str, version: str) -> Json:
        """Parse a worker.yaml, or return what was parsed if the file is still the same."""
        path = f"{worker}/{version}/{WORKER}"
        try:
            stamp = settled_stamp(os.lstat(f"{self._folder}/{path}"))
        except OSError:
            return {}
        known = self._documents.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        document = load_worker(self._text(path) or "") or {}
        if stamp is not None:
            self._documents[path] = (stamp, document)
        return document

    def _texts(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the text files below a folder by their paths, without hidden ones, links and other data."""
        top = f"{self._folder}/{folder}"
        for parent, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(parent, name), top).replace(os.sep, "/")
                text = None if name.startswith(".") else self._text(f"{folder}/{path}")
                if text is not None:
                    yield path, text

    def _record(self, path: str) -> object:
        """Read a JSON file; None if it is missing or broken."""
        try:
            return json.loads(self._text(path) or "null")
        except (ValueError, RecursionError):
            return None

    def _text(self, path: str) -> str | None:
        """Return the text of a regular file; None for a missing, binary or oversized file."""
        try:
            return read_below(self._folder, path, limits.MAX_BUNDLE_BYTES).decode()
        except (RefusedError, UnicodeDecodeError):
            return None


def _overview_at(texts: Mapping[str, str], root: str) -> str | None:
    """Find the document that makes a folder a skill; a worker's own folder may also have an ``index.md``."""
    names = OVERVIEWS if not root else (OVERVIEW,)
    return next((path for name in names if (path := f"{root}/{name}".lstrip("/")) in texts), None)


def _packed_files(
    texts: Mapping[str, str], worker: str, root: str, overview: str
) -> tuple[Json, dict[str, skill_package.PackedFile]]:
    """Give the front matter of a skill, and its files with the SKILL.md that every skill has."""
    raw = texts[overview].encode()
    folder = root.rpartition("/")[2] or worker
    skill = parse_file(f"{worker}/{overview}", raw, len(raw), "").skill
    named = None if skill is None else skill.name
    name = named if named is not None and named == skill_package.slug(named) else skill_package.slug(folder)
    head, front_matter = skill_package.overview_of(raw, name, "" if skill is None else skill.description)
    prefix = f"{root}/" if root else ""
    inner = {path.removeprefix(prefix): text for path, text in texts.items() if path.startswith(prefix)}
    files = {path: skill_package.PackedFile(text.encode()) for path, text in inner.items()}
    return front_matter, {**files, OVERVIEW: skill_package.PackedFile(head)}


def load_worker(text: str) -> Json | None:
    """Parse a worker.yaml; None if it is not a mapping of plain data."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events = cast("Iterator[object]", yaml.parse(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType]
        if not _is_bounded(events):
            return None
        found = yaml.load(text, Loader=loader)  # noqa: S506 - one of the safe loaders
        found = json.loads(json.dumps(found, allow_nan=False, default=str))
    # A constructor raises what a value makes it meet: `!!bool x` a KeyError, `!!timestamp x` another.
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        return None
    return found if is_object(found) else None


def _is_bounded(events: Iterator[object]) -> bool:
    """Return whether a document has no aliases, which make it grow, and is not nested too deeply."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > limits.MAX_WORKER_YAML_DEPTH or isinstance(event, yaml.AliasEvent):
            return False
    return True


def prompt_of(path: str, content: str) -> Json:
    """Describe a prompt's file as the API does: metadata of the front matter, and the text."""
    _, body, values = document_of(content)
    stem = path.rpartition("/")[2].removesuffix(".md")
    prompt = {"name": values.get("name", stem), "description": values.get("description", ""), "content": body}
    return {**prompt, "args_schema": values["args_schema"]} if "args_schema" in values else prompt


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


_WORD: Final = re.compile(r"\w+")
# A hit in the description counts a little less than the same hit in the name.
_DESCRIPTION_WEIGHT: Final = 0.8


Rank = tuple[float, str]
"""The score of a row, negative so that higher scores come first, and its name."""


class BadCursorError(ValueError):
    """The cursor is not one that this registry gave out."""


def trigrams(text: str) -> frozenset[str]:
    """Return every three letters in a row, with two blanks before a word and one behind it."""
    padded = (f"  {word} " for word in _WORD.findall(text.lower()))
    return frozenset(word[at : at + 3] for word in padded for at in range(len(word) - 2))


def similarity(search: str, name: str, description: str) -> float:
    """Score how well a search fits: from 0 to 1, and 1 for the name itself."""
    wanted = trigrams(search)
    if not wanted:
        return 0.0
    in_name = trigrams(name)
    by_name = len(wanted & in_name) / len(wanted | in_name)
    contained = len(wanted & in_name) / len(wanted) * _DESCRIPTION_WEIGHT
    described = len(wanted & trigrams(description)) / len(wanted) * _DESCRIPTION_WEIGHT
    return max(by_name, contained, described)


def search_rows(rows: Sequence[dict[str, Any]], search: str | None) -> list[tuple[Rank, dict[str, Any]]]:
    """Return the rows that a search finds, best first; without one all, most downloaded first."""
    if search is None:
        placed = [((-float(row["total_downloads"]), row["name"]), row) for row in rows]
    else:
        scored = ((similarity(search, row["name"], row.get("description") or ""), row) for row in rows)
        placed = [((-score, row["name"]), row) for score, row in scored if score >= limits.MIN_SIMILARITY]
    return sorted(placed, key=itemgetter(0))


def page_of(
    placed: Sequence[tuple[Rank, dict[str, Any]]], cursor: str | None, size: int = limits.REGISTRY_PAGE_ROWS
) -> dict[str, Any]:
    """Return one page, starting after the row that a cursor stands for."""
    after = None if cursor is None else decode_cursor(cursor)
    rest = [one for one in placed if after is None or one[0] > after]
    shown = rest[:size]
    more = len(rest) > size
    return {
        "workers": [row for _, row in shown],
        "pagination": {
            "next_cursor": encode_cursor(shown[-1][0]) if more else None,
            "has_more": more,
            "page_size": size,
        },
    }


def encode_cursor(place: Rank) -> str:
    return base64.urlsafe_b64encode(json.dumps([-place[0], place[1]]).encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> Rank:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        score, name = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(name, str) or not isinstance(score, float):
            raise BadCursorError(cursor)
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise BadCursorError(cursor) from error
    return -score, name
