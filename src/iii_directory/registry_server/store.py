"""A folder of published workers: ``<worker>/<version>/`` with worker.yaml, README.md, skills/ and prompts/.

Everything is read when it is asked for, so a running server shows what was published a moment ago. Names
that are no worker or no version (and so everything hidden) are not there.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Any, Final, cast

from iii_directory import limits
from iii_directory.documents import frontmatter
from iii_directory.registry.answers import parse_row
from iii_directory.registry.requests import is_worker
from iii_directory.registry.versions import highest_stable, is_version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TAGS: Final = "tags.json"
WORKER: Final = "worker.yaml"
README: Final = "README.md"
_DOWNLOADS: Final = "downloads"
_REFERENCE: Final = ("functions", "triggers")


class RegistryStore:
    """Reading one such folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._documents: dict[Path, tuple[tuple[int, int, int], dict[str, Any]]] = {}

    def workers(self) -> list[str]:
        return [name for name in _names(self._folder) if is_worker(name)]

    def versions(self, worker: str) -> list[str]:
        return [name for name in _names(self._folder / worker) if is_version(name)]

    def tags(self, worker: str) -> dict[str, str]:
        """The tags given to versions; ``latest`` is the highest stable version unless it was given."""
        versions = self.versions(worker)
        tags = {tag: version for tag, version in self.given_tags(worker).items() if version in versions}
        latest = highest_stable(versions)
        return {"latest": latest, **tags} if latest is not None else tags

    def given_tags(self, worker: str) -> dict[str, str]:
        try:
            found = json.loads((self._folder / worker / TAGS).read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        pairs = cast("dict[str, object]", found)
        return {tag: version for tag, version in pairs.items() if isinstance(version, str)}

    def resolve(self, worker: str, asked: str) -> str | None:
        """The version that a version or a tag stands for, None when there is none."""
        if not is_worker(worker):
            return None
        return asked if asked in self.versions(worker) else self.tags(worker).get(asked)

    def rows(self) -> list[dict[str, Any]]:
        """One row a worker, at its latest version; a worker without one is not listed."""
        found = ((worker, self.resolve(worker, "latest")) for worker in self.workers())
        return [self.row(worker, version) for worker, version in found if version is not None]

    def row(self, worker: str, version: str) -> dict[str, Any]:
        known = {"name": worker, "version": version, "total_downloads": self.downloads(worker)}
        row = parse_row({**self._document(worker, version), **known})
        assert row is not None  # noqa: S101 - it has a name
        return row

    def detail(self, worker: str, version: str) -> dict[str, Any]:
        """The answer to ``GET /w/{name}``."""
        document = self._document(worker, version)
        reference = {field: document[field] for field in _REFERENCE if isinstance(document.get(field), list)}
        detail: dict[str, Any] = {**self.row(worker, version), "functions": [], "triggers": [], **reference}
        readme = _text(self._folder / worker / version / README)
        return {"worker": detail if readme is None else {**detail, "readme": readme}}

    def bundle(self, worker: str, version: str) -> dict[str, Any] | None:
        """The answer to ``GET /w/{name}/skills``, None when this version has no documents."""
        folder = self._folder / worker / version
        skills = [{"path": path, "content": content} for path, content in _texts(folder / "skills")]
        prompts = [prompt_of(path, text) for path, text in _texts(folder / "prompts") if path.endswith(".md")]
        if not skills and not prompts:
            return None
        for skill in skills:
            # Whoever installs this takes one leading "skills/" off.
            if skill["path"].startswith("skills/"):
                skill["path"] = f"skills/{skill['path']}"
        return {"name": worker, "version": version, "skills": skills, "prompts": prompts}

    def downloads(self, worker: str) -> int:
        text = _text(self._folder / worker / _DOWNLOADS) or ""
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0

    def count_download(self, worker: str) -> None:
        """One more; a registry on a read-only disk does not count."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            opened = os.open(self._folder / worker / _DOWNLOADS, flags, 0o644)
        except OSError:
            return
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
            os.pwrite(opened, str(self.downloads(worker) + 1).encode(), 0)
        finally:
            os.close(opened)

    def _document(self, worker: str, version: str) -> dict[str, Any]:
        """The parsed worker.yaml; read again when the file is another one."""
        path = self._folder / worker / version / WORKER
        try:
            state = path.stat()
        except OSError:
            return {}
        mark = (state.st_ino, state.st_size, state.st_mtime_ns)
        known = self._documents.get(path)
        if known is None or known[0] != mark:
            known = (mark, load_worker(_text(path) or "") or {})
            self._documents[path] = known
        return known[1]


def load_worker(text: str) -> dict[str, Any] | None:
    """The mapping in a worker.yaml, None when it is not plain data."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Without aliases what comes out is never larger than what went in.
        events = cast("Iterator[object]", yaml.parse(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType]
        if any(isinstance(event, yaml.AliasEvent) for event in events):
            return None
        found = yaml.load(text, Loader=loader)  # noqa: S506 - one of the safe loaders
        found = json.loads(json.dumps(found, allow_nan=False, default=str))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def prompt_of(path: str, content: str) -> dict[str, Any]:
    """A prompt's file as the API has it: the metadata of the front matter beside the text."""
    block, body = frontmatter.split(content)
    values = frontmatter.read(block).values if block is not None else {}
    stem = path.rpartition("/")[2].removesuffix(".md")
    prompt = {"name": values.get("name", stem), "description": values.get("description", ""), "content": body}
    return {**prompt, "args_schema": values["args_schema"]} if "args_schema" in values else prompt


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    """The text files below a folder by their paths; hidden ones, links and other data are not served."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(parent, name)
            text = None if name.startswith(".") else _text(path)
            if text is not None:
                yield os.path.relpath(path, folder).replace(os.sep, "/"), text


def _text(path: Path | str) -> str | None:
    """A regular file's text, None when there is none or it is no text of bearable size."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with os.fdopen(opened, "rb") as file:
            content = file.read(limits.MAX_BUNDLE_BYTES + 1)
            return None if len(content) > limits.MAX_BUNDLE_BYTES else content.decode()
    except (OSError, UnicodeDecodeError):
        return None
