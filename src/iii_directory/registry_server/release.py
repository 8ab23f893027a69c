"""Publish workers into a registry folder: a version appears as a whole, never changes, and can be yanked."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.disk.files import LINK, SPECIAL, TOO_LARGE, FileOps, RefusedError, closing_fd, disk_errors
from iii_directory.disk.lock_files import held
from iii_directory.disk.safe_open import opened_folder, read_below, remove_tree, write_file
from iii_directory.documents.ids import is_hidden, prompt_name_problem, vet_path, vet_together
from iii_directory.errors import BAD_REGISTRY_REQUEST, DirectoryError, refused
from iii_directory.install.bundle import check_count, check_file, check_total
from iii_directory.install.plan import Disk
from iii_directory.install.tree import Builder, lay_out
from iii_directory.registry import registry_messages
from iii_directory.registry_server import published_workers
from iii_directory.text import is_utf8, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MANIFEST: Final = "iii.worker.yaml"
"""The manifest of a worker for the engine; published as worker.yaml if that file is missing."""
_FOLDERS: Final = ("skills", "prompts")
_WORK: Final = "publish.work"
_NEW_RECORD: Final = "record.new"
_LOCK: Final = "PUBLISH"


@dataclass(frozen=True, slots=True)
class Published:
    """Reports what `publish` did; ``is_new`` is False if exactly this was published before."""

    worker: str
    version: str
    tags: dict[str, str]
    is_new: bool
    files: tuple[str, ...]
    left_out: tuple[str, ...]
    """Hidden files, and files that are not UTF-8 text, which the API cannot carry."""


def publish(path: Path, registry: Path, version: str, tag: str | None = None) -> Published:
    """Publish the worker in a folder under a version, and perhaps a tag, into a registry folder."""
    if not registry_messages.is_version(version):
        raise _unfit(f"{quoted(version)} is not a semantic version such as 1.2.3")
    with disk_errors("nothing was published", next_steps=()):
        found = dict(_files(path))
        left_out = {name for name, content in found.items() if is_hidden(name) or not is_utf8(content)}
        contents = {name: content for name, content in found.items() if name not in left_out}
        worker = registry_messages.worker_request(_name(path, contents), tag=tag).worker
        _check(contents)
        is_new, tags = _enter(registry, worker, version, tag, contents)
    return Published(worker, version, tags, is_new, tuple(sorted(contents)), tuple(sorted(left_out)))


def _enter(
    registry: Path, worker: str, version: str, tag: str | None, contents: dict[str, bytes]
) -> tuple[bool, dict[str, str]]:
    files, store = FileOps(), published_workers.RegistryStore(registry)
    (registry / worker).mkdir(parents=True, exist_ok=True)
    with (
        closing_fd(files.open_root(os.fspath(registry / worker))) as root,
        held(files, root, _LOCK, limits.INSTALL_LOCK_SECONDS) as hidden,
    ):
        before = store.tags(worker).get("latest")
        is_new = version not in store.versions(worker)
        if is_new:
            # The version is built out of sight and appears with one rename.
            remove_tree(files, _WORK, hidden)
            files.make_folder(_WORK, hidden)
            with opened_folder(files, _WORK, hidden) as work:
                Builder(files, {}).fill(work, lay_out(Disk(), contents, ()))
            files.rename(_WORK, hidden, version, root)
            files.sync(root)
        elif dict(_files(registry / worker / version)) != contents:
            raise _unfit(f"version {version} of {worker} is published already, and versions never change")
        given = store.given_tags(worker)
        tags = given if before is None else {**given, "latest": before}
        if tag is not None:
            tags = {**tags, tag: version}
        # Without a tag, ``latest`` follows the highest stable version.
        elif registry_messages.highest_stable([version]) and (
            before is None or not registry_messages.is_older(version, before)
        ):
            tags = {**tags, "latest": version}
        if tags != given:
            _write(files, root, hidden, published_workers.TAGS, tags)
        return is_new, store.tags(worker)


def yank(registry: Path, worker: str, version: str, *, undo: bool = False) -> dict[str, str]:
    """Stop offering a version, or offer it again with ``undo``; return the tags as they are then.

    A project that recorded the version can still install it by its number: what was published stays.
    """
    store = published_workers.RegistryStore(registry)
    if not registry_messages.is_worker(worker) or version not in store.versions(worker):
        known = store.versions(worker) if registry_messages.is_worker(worker) else []
        found = f"it has {', '.join(known)}" if known else "it does not have that worker"
        raise _unfit(f"the registry has no version {quoted(version)} of {quoted(worker)}: {found}")
    files = FileOps()
    with (
        disk_errors("nothing was changed", next_steps=()),
        closing_fd(files.open_root(os.fspath(registry / worker))) as root,
        held(files, root, _LOCK, limits.INSTALL_LOCK_SECONDS) as hidden,
    ):
        before = store.yanked(worker)
        after = before - {version} if undo else before | {version}
        if after != before:
            _write(files, root, hidden, published_workers.YANKED, sorted(after))
        return store.tags(worker)


def _write(files: FileOps, root: int, hidden: int, name: str, content: object) -> None:
    """Replace a record of a worker with one rename."""
    remove_tree(files, _NEW_RECORD, hidden)
    write_file(files, _NEW_RECORD, hidden, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())
    files.rename(_NEW_RECORD, hidden, name, root)
    files.sync(root)


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder that are published, by path; refuse links and special files."""
    if not path.is_dir():
        raise _unfit("that path is not a folder to publish")
    root = os.path.realpath(path)
    for name in (published_workers.WORKER, published_workers.README):
        if os.path.lexists(path / name):
            yield name, _read(root, name)
        elif name == published_workers.WORKER and os.path.lexists(path / MANIFEST):
            yield published_workers.WORKER, _read(root, MANIFEST)
    for folder in _FOLDERS:
        if (path / folder).is_symlink():
            raise refused(f"{quoted(folder)} is a link")
        for parent, inner, names in os.walk(os.path.join(root, folder)):
            for name in (*inner, *names):
                place = os.path.join(parent, name)
                if name in names or os.path.islink(place):
                    shown = os.path.relpath(place, root).replace(os.sep, "/")
                    yield shown, _read(root, shown)


def _read(root: str, path: str) -> bytes:
    try:
        content = read_below(root, path, limits.MAX_BUNDLE_BYTES)
    except RefusedError as refusal:
        if refusal.reason is TOO_LARGE:
            check_total(limits.MAX_BUNDLE_BYTES + 1)
        if refusal.reason in (LINK, SPECIAL):
            raise refused(f"{quoted(path)} is a link or not a regular file") from None
        raise
    check_file(path, len(content))
    return content


def _name(path: Path, contents: dict[str, bytes]) -> str:
    """Find the worker's name: that of worker.yaml or iii.worker.yaml, else that of the folder."""
    if published_workers.WORKER not in contents:
        return path.resolve().name
    too_large = len(contents[published_workers.WORKER]) > limits.MAX_WORKER_YAML_BYTES
    text = contents[published_workers.WORKER].decode()
    document = None if too_large else published_workers.load_worker(text)
    if document is None:
        raise _unfit(f"{published_workers.WORKER} is not a mapping of plain data")
    name = document.get("name", path.resolve().name)
    if not isinstance(name, str):
        raise _unfit(f"the name in {published_workers.WORKER} is not a string")
    return name


def _check(contents: dict[str, bytes]) -> None:
    """Refuse to publish what could not be installed."""
    if not contents:
        raise _unfit(f"the folder has no {published_workers.WORKER}, no skills and no prompts")
    check_count(len(contents))
    check_total(sum(map(len, contents.values())))
    for path in contents:
        vet_path(path)
    vet_together(contents)
    prompts = [
        published_workers.prompt_of(path, text.decode())
        for path, text in contents.items()
        if path.startswith("prompts/") and path.endswith(".md")
    ]
    names = [prompt["name"] for prompt in prompts]
    for name in names:
        problem = prompt_name_problem(name) if isinstance(name, str) else "name must be a string"
        if problem is not None or names.count(name) > 1:
            raise _unfit(f"a prompt cannot be published: {problem or f'there are two of the name {name}'}")


def _unfit(problem: str) -> DirectoryError:
    return DirectoryError(BAD_REGISTRY_REQUEST, problem, next_steps=())
