"""A folder of published workers: ``<worker>/<version>/`` with worker.yaml, README.md, skills/ and prompts/.

Everything is read when it is asked for, so a running server shows what was published a moment ago. Names
that are no worker or no version (and so everything hidden) are not there.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Final, cast

from iii_directory import limits
from iii_directory.disk.files import settled_stamp
from iii_directory.disk.reasons import RefusedError
from iii_directory.disk.safe_open import read_below
from iii_directory.documents import frontmatter
from iii_directory.registry.answers import parse_row
from iii_directory.registry.requests import is_worker
from iii_directory.registry.versions import highest_stable, is_version
from iii_directory.shapes import Json, is_object, items_of, object_of
from iii_directory.text import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from iii_directory.disk.files import Stamp

TAGS: Final = "tags.json"
YANKED: Final = "yanked.json"
WORKER: Final = "worker.yaml"
README: Final = "README.md"
_DOWNLOADS: Final = "downloads"
_REFERENCE: Final = ("functions", "triggers")


class RegistryStore:
    """Reading one such folder."""

    def __init__(self, folder: Path) -> None:
        # A link on the way to the folder, or the folder as a link, counts once; below it none is followed.
        self._folder = os.path.realpath(folder)
        self._documents: dict[str, tuple[Stamp, Json]] = {}

    def workers(self) -> list[str]:
        return [name for name in _names(self._folder) if is_worker(name)]

    def versions(self, worker: str) -> list[str]:
        return [name for name in _names(f"{self._folder}/{worker}") if is_version(name)]

    def yanked(self, worker: str) -> frozenset[str]:
        """Versions that are served to whoever names them, and are offered to nobody."""
        try:
            found = items_of(json.loads(self._text(f"{worker}/{YANKED}") or "[]"))
        except (ValueError, RecursionError):
            return frozenset()
        return frozenset(version for version in found if isinstance(version, str))

    def published_at(self, worker: str, version: str) -> str | None:
        try:
            return rfc3339(os.lstat(f"{self._folder}/{worker}/{version}").st_mtime_ns)
        except OSError:
            return None

    def tags(self, worker: str) -> dict[str, str]:
        """The tags given to versions; ``latest`` is the highest stable version unless it was given.

        A tag of a version that was yanked is no tag.
        """
        yanked = self.yanked(worker)
        versions = [version for version in self.versions(worker) if version not in yanked]
        tags = {tag: version for tag, version in self.given_tags(worker).items() if version in versions}
        latest = highest_stable(versions)
        return {"latest": latest, **tags} if latest is not None else tags

    def given_tags(self, worker: str) -> dict[str, str]:
        try:
            found = object_of(json.loads(self._text(f"{worker}/{TAGS}") or "{}"))
        except (ValueError, RecursionError):
            return {}
        return {tag: version for tag, version in found.items() if isinstance(version, str)}

    def resolve(self, worker: str, asked: str) -> str | None:
        """The version that a version or a tag stands for, None when there is none."""
        if not is_worker(worker):
            return None
        return asked if asked in self.versions(worker) else self.tags(worker).get(asked)

    def rows(self) -> list[Json]:
        """One row a worker, at its latest version; a worker without one is not listed."""
        found = ((worker, self.resolve(worker, "latest")) for worker in self.workers())
        return [self.row(worker, version) for worker, version in found if version is not None]

    def row(self, worker: str, version: str) -> Json:
        known = {"name": worker, "version": version, "total_downloads": self.downloads(worker)}
        row = parse_row({**self._document(worker, version), **known})
        assert row is not None  # noqa: S101 - it has a name
        return row

    def detail(self, worker: str, version: str) -> Json:
        """The answer to ``GET /w/{name}``."""
        document = self._document(worker, version)
        reference = {field: document[field] for field in _REFERENCE if isinstance(document.get(field), list)}
        detail: Json = {**self.row(worker, version), "functions": [], "triggers": [], **reference}
        readme = self._text(f"{worker}/{version}/{README}")
        return {"worker": detail if readme is None else {**detail, "readme": readme}}

    def bundle(self, worker: str, version: str) -> Json | None:
        """The answer to ``GET /w/{name}/skills``, None when this version has no documents."""
        folder = f"{worker}/{version}"
        skills = [{"path": path, "content": content} for path, content in self._texts(f"{folder}/skills")]
        texts = self._texts(f"{folder}/prompts")
        prompts = [prompt_of(path, text) for path, text in texts if path.endswith(".md")]
        if not skills and not prompts:
            return None
        for skill in skills:
            # Whoever installs this takes one leading "skills/" off.
            if skill["path"].startswith("skills/"):
                skill["path"] = f"skills/{skill['path']}"
        return {"name": worker, "version": version, "skills": skills, "prompts": prompts}

    def downloads(self, worker: str) -> int:
        text = self._text(f"{worker}/{_DOWNLOADS}") or ""
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0

    def count_download(self, worker: str) -> None:
        """One more; a registry on a read-only disk does not count."""
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
        """The parsed worker.yaml; read again when the file is another one."""
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
        """The text files below a folder by their paths; hidden ones, links and other data are not served."""
        top = f"{self._folder}/{folder}"
        for parent, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(parent, name), top).replace(os.sep, "/")
                text = None if name.startswith(".") else self._text(f"{folder}/{path}")
                if text is not None:
                    yield path, text

    def _text(self, path: str) -> str | None:
        """A regular file's text, None when there is none or it is no text of bearable size."""
        try:
            return read_below(self._folder, path, limits.MAX_BUNDLE_BYTES).decode()
        except (RefusedError, UnicodeDecodeError):
            return None


def load_worker(text: str) -> Json | None:
    """The mapping in a worker.yaml, None when it is not plain data."""
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
    """Whether what comes out is no larger than what went in, and no deeper than the library bears."""
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
    """A prompt's file as the API has it: the metadata of the front matter beside the text."""
    block, body = frontmatter.split(content)
    values = frontmatter.read(block).values if block is not None else {}
    stem = path.rpartition("/")[2].removesuffix(".md")
    prompt = {"name": values.get("name", stem), "description": values.get("description", ""), "content": body}
    return {**prompt, "args_schema": values["args_schema"]} if "args_schema" in values else prompt


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
