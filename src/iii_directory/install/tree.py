"""Read the tree of a namespace, and build the tree that replaces it."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from iii_directory.disk import safe_open
from iii_directory.disk.files import Mark, closing_fd, mark_of
from iii_directory.documents.ids import folders_above
from iii_directory.errors import refused
from iii_directory.install.plan import Disk, Node

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterator, Mapping

    from iii_directory.disk.files import FileOps

# Called with a phase or a namespace, how much is done and how much there is; from any thread.
Progress: TypeAlias = "Callable[[str, int, int], None]"


def silent(phase: str, done: int, total: int) -> None:
    """Report progress to no one."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A namespace's paths as they were when they were looked at."""

    disk: Disk
    marks: dict[str, Mark]
    folders: dict[str, os.stat_result]
    """Every folder, the namespace itself as ``""``."""


def scan_namespace(files: FileOps, root: int, namespace: str, wanted: Collection[str] | None) -> Scan:
    """Look at all of a namespace and hash the wanted files (every file when ``wanted`` is None)."""
    nodes: dict[str, Node] = {}
    hashes: dict[str, str] = {}
    executable: set[str] = set()
    marks: dict[str, Mark] = {}
    folders: dict[str, os.stat_result] = {}
    top = safe_open.status_or_none(files, namespace, root)
    if top is None:
        return Scan(Disk(), marks, folders)
    if not stat.S_ISDIR(top.st_mode):
        raise refused(f"a {_node(top)} stands where the namespace '{namespace}' belongs")
    folders[""] = top
    with safe_open.opened_folder(files, namespace, root) as opened:
        for path, name, folder, state in _walk(files, opened, ""):
            nodes[path] = _node(state)
            if stat.S_ISDIR(state.st_mode):
                folders[path] = state
                continue
            marks[path] = mark_of(state)
            if state.st_mode & stat.S_IXUSR:
                executable.add(path)
            if stat.S_ISREG(state.st_mode) and (wanted is None or path in wanted):
                hashes[path], state_read = safe_open.hash_file(files, name, folder)
                marks[path] = mark_of(state_read)
    disk = Disk(exists=True, nodes=nodes, hashes=hashes, executable=frozenset(executable))
    return Scan(disk, marks, folders)


def _node(state: os.stat_result) -> Node:
    if stat.S_ISREG(state.st_mode):
        return "file"
    if stat.S_ISDIR(state.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(state.st_mode) else "other"


def _walk(files: FileOps, folder: int, prefix: str) -> Iterator[tuple[str, str, int, os.stat_result]]:
    """Yield every path below an open folder, parents first, with the open folder it lies in."""
    for name in sorted(files.list_folder(folder)):
        state = files.status(name, folder)
        yield f"{prefix}{name}", name, folder, state
        if stat.S_ISDIR(state.st_mode):
            with safe_open.opened_folder(files, name, folder) as opened:
                yield from _walk(files, opened, f"{prefix}{name}/")


@dataclass(slots=True)
class Branch:
    """A folder of the tree to be: new files with their content, kept files by name, and folders."""

    writes: dict[str, bytes] = field(default_factory=dict[str, bytes])
    executable: set[str] = field(default_factory=set[str])
    """Which of the new files are programs."""
    kept: list[str] = field(default_factory=list[str])
    folders: dict[str, Branch] = field(default_factory=dict[str, "Branch"])


def lay_out(
    disk: Disk, writes: Mapping[str, bytes], deletes: Collection[str], executable: Collection[str] = ()
) -> Branch:
    """Return the new tree: what exists, without what is deleted, with what is written."""
    top = Branch()
    emptied = {above for path in deletes for above in folders_above(path)}
    for path, node in disk.nodes.items():
        if node == "folder":
            if path not in emptied:
                _branch(top, path.split("/"))
        elif path not in deletes and path not in writes:
            *parents, name = path.split("/")
            _branch(top, parents).kept.append(name)
    for path, content in writes.items():
        *parents, name = path.split("/")
        branch = _branch(top, parents)
        branch.writes[name] = content
        if path in executable:
            branch.executable.add(name)
    return top


def _branch(top: Branch, parts: list[str]) -> Branch:
    for part in parts:
        top = top.folders.setdefault(part, Branch())
    return top


@dataclass(slots=True)
class Builder:
    """Fill empty folders with the new tree, and report after every file how many are written."""

    files: FileOps
    states: Mapping[str, os.stat_result]
    progress: Progress = silent
    total: int = 0
    written: int = 0

    def fill(self, opened: int, branch: Branch, source: int | None = None, prefix: str = "") -> None:
        """Fill an open folder, taking kept files from the open ``source``, and sync it."""
        files = self.files
        for name in branch.kept:
            assert source is not None  # noqa: S101 - kept files come from a folder that was scanned
            safe_open.carry(files, name, source, name, opened)
        for name, content in branch.writes.items():
            safe_open.write_file(files, name, opened, content, executable=name in branch.executable)
            self.written += 1
            self.progress("write", self.written, self.total)
        for name, inner in branch.folders.items():
            path = f"{prefix}{name}"
            files.make_folder(name, opened)
            with safe_open.opened_folder(files, name, opened) as below:
                if path in self.states and source is not None:
                    with safe_open.opened_folder(files, name, source) as inner_source:
                        self.fill(below, inner, inner_source, f"{path}/")
                else:
                    self.fill(below, inner, None, f"{path}/")
        if prefix.removesuffix("/") in self.states:
            files.adopt(opened, self.states[prefix.removesuffix("/")])
        files.sync(opened)


def rescue(
    files: FileOps,
    old: int,
    root: int,
    namespace: str,
    marks: Mapping[str, Mark],
    given_up: Collection[str],
    scratch: int,
) -> None:
    """Carry over what was saved in the old tree after it was scanned.

    The old tree itself is left as it is, so that a switch can still be undone. Paths in ``given_up``
    were to be replaced whatever they held.
    """
    for path, name, folder, state in _walk(files, old, ""):
        if stat.S_ISDIR(state.st_mode) or path in given_up or marks.get(path) == mark_of(state):
            continue
        with closing_fd(_made(files, root, [namespace, *path.split("/")[:-1]])) as target:
            there = safe_open.status_or_none(files, name, target)
            if there is not None and there.st_ino == state.st_ino:
                continue
            # Through the scratch folder, so that a crash leaves no half-named file among the documents.
            safe_open.remove_tree(files, "rescued", scratch)
            safe_open.carry(files, name, folder, "rescued", scratch)
            files.rename("rescued", scratch, name, target)
            files.sync(target)


def _made(files: FileOps, folder: int, parts: list[str]) -> int:
    """Open the last of a chain of folders; missing ones are made."""
    name, *rest = parts
    try:
        opened = files.open_folder(name, folder)
    except FileNotFoundError:
        files.make_folder(name, folder)
        opened = files.open_folder(name, folder)
    if not rest:
        return opened
    with closing_fd(opened):
        return _made(files, opened, rest)
