"""Copy skills from a folder of this machine, which is read and never written."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.disk.files import GONE, TOO_LARGE, RefusedError
from iii_directory.disk.install_record import LocalSource
from iii_directory.disk.safe_open import directory_below, read_regular
from iii_directory.documents.ids import OVERVIEW, is_hidden
from iii_directory.errors import SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install.bundle import (
    MARKETPLACE,
    PLUGIN,
    PLUGIN_FOLDER,
    Bundle,
    Offer,
    check_count,
    check_total,
    make_bundle,
    offered,
)
from iii_directory.install.process import ProcessStoppedError, run
from iii_directory.install.requests import LocalFolder, is_commit
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_AGENTS: Final = (".claude", ".agents")
_GIT_SECONDS: Final = 5.0


class LocalSkills:
    """The skills below one folder. All methods block; run them in a thread."""

    def __init__(self, source: LocalFolder) -> None:
        self._source = source
        # Links on the way to the folder, and the folder itself as a link, count once; below it none does.
        self._root = os.path.realpath(os.path.expanduser(source.path))
        if not os.path.isdir(self._root):
            raise DirectoryError(
                SOURCE_REFUSED, f"the folder {quoted(source.path)} does not exist", next_steps=()
            )
        self._commit = _commit_of(self._root)
        called = os.path.basename(self._root).lower()
        self.found = offered(list(self._listed()), self._texts, called)

    def bundle(self, offer: Offer) -> Bundle:
        """Read all files of one of the skills."""
        top = self._root if offer.path == "." else f"{self._root}/{offer.path}"
        entries: list[tuple[str, bytes]] = []
        executable: set[str] = set()
        size = 0
        for path in self._files(top):
            check_count(len(entries))
            if is_hidden(path):
                entries.append((path, b""))
                continue
            state, content = self._read(top, path)
            size += len(content)
            check_total(size)
            entries.append((path, content))
            if state.st_mode & stat.S_IXUSR:
                executable.add(path)
        source = LocalSource(top, offer.name, self._commit)
        return make_bundle(offer.name, source, None, entries, executable)

    def _listed(self) -> Iterator[str]:
        """List the overviews below the folder, where skills may lie, and the manifests of plugins."""
        seen = 0
        for parent, folders, names in os.walk(self._root):
            inside = os.path.relpath(parent, self._root).replace(os.sep, "/")
            if PLUGIN_FOLDER in folders:
                # Those that are missing cannot be read.
                yield from (f"{inside}/{path}".removeprefix("./") for path in (MARKETPLACE, PLUGIN))
            folders[:] = [
                name
                for name in sorted(folders)
                if name != "node_modules" and (name in _AGENTS or not name.startswith("."))
            ]
            seen += len(names) + len(folders)
            if seen > limits.MAX_FOLDER_ENTRIES:
                raise refused(f"{self._source} holds more than {limits.MAX_FOLDER_ENTRIES} files")
            if OVERVIEW in names:
                yield f"{inside}/{OVERVIEW}".removeprefix("./")

    def _files(self, top: str) -> Iterator[str]:
        for parent, folders, names in os.walk(top):
            links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
            folders[:] = sorted(name for name in folders if name != ".git" and name not in links)
            for name in sorted((*names, *links)):
                yield os.path.relpath(os.path.join(parent, name), top).replace(os.sep, "/")

    def _texts(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Read files; those that cannot be read are left out."""
        found: dict[str, bytes] = {}
        for path in paths:
            with suppress(DirectoryError):
                found[path] = self._read(self._root, path)[1]
        return found

    def _read(self, top: str, path: str) -> tuple[os.stat_result, bytes]:
        *names, name = path.split("/")
        try:
            with directory_below(top, names) as folder:
                return read_regular(folder, name, limits.MAX_BUNDLE_BYTES)
        except RefusedError as refusal:
            if refusal.reason is TOO_LARGE:
                check_total(limits.MAX_BUNDLE_BYTES + 1)
            reason = "it went away" if refusal.reason is GONE else refusal.reason.text
            raise refused(f"{quoted(path)} of {self._source} cannot be read: {reason}") from None


def _commit_of(folder: str) -> str | None:
    """Return the commit of a git work tree; None for any other folder, and for one of another user."""
    path = os.environ.get("PATH", "")
    environment = {"PATH": path, "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    # Git refuses a work tree of another user, whose configuration it would read; then no commit is recorded.
    command = ["git", "-c", f"core.hooksPath={os.devnull}", "rev-parse", "HEAD"]
    try:
        done = run(
            command,
            environment=environment,
            folder=folder,
            deadline=time.monotonic() + _GIT_SECONDS,
            max_output=limits.KIB,
            max_errors=limits.KIB,
        )
    except (OSError, ProcessStoppedError):
        return None
    commit = done.output.decode("ascii", "replace").strip()
    return commit if done.code == 0 and is_commit(commit) else None
