"""Read skills from git repositories without a checkout.

One commit is fetched into a bare, empty repository in a scratch folder; its tree is listed, every name,
mode and size is vetted, and only then are the blobs read. Nothing of the repository is executed, no hook,
filter, submodule or configuration of it or of the user takes part, and git may speak one protocol only.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError
from iii_directory.install.bundle import offered, skill_folders
from iii_directory.install.git_program import Blob, Git, below, names_of, no_folder, no_ref, vetted
from iii_directory.install.process import ProcessStoppedError
from iii_directory.install.requests import RepoRequest, address_of, host_and_port, is_commit, is_public

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from iii_directory.install.requests import RepoAddress, RepoTree

SCRATCH_PREFIX: Final = "iii-directory-git-"


@dataclass(frozen=True, slots=True)
class Fetched:
    """The files of a skill folder at one commit; hidden ones without their content."""

    commit: str
    folder: str
    entries: tuple[tuple[str, bytes], ...]
    executable: frozenset[str]


class Checkout:
    """One fetched commit and the skills in it; alive as long as its folder of work is."""

    def __init__(self, git: Git, request: RepoTree, commit: str) -> None:
        self.branch = request.branch
        self.commit = commit
        self._repo = request.repo
        self._git = git
        self._blobs = git.listed(commit)
        paths = [blob.path for blob in self._blobs if not blob.problem]
        called = request.repo.rstrip("/").rpartition("/")[2].removesuffix(".git").lower()
        self.found = offered(paths, self._texts, called, request.path)

    def read(self, folders: Iterable[str]) -> Iterator[tuple[str, Fetched | DirectoryError]]:
        """Yield the files of skill folders, or why one cannot be read; git reads some folders at a time."""
        fit: dict[str, list[Blob]] = {}
        for folder in folders:
            blobs = below(self._blobs, folder)
            try:
                if not blobs:
                    raise no_folder(RepoRequest(self._repo, folder.rpartition("/")[2], path=folder), [])
                vetted(blobs)
                fit[folder] = blobs
            except DirectoryError as error:
                yield folder, error
        for group in _groups(fit):
            contents = self._git.read([blob for blobs in group.values() for blob in vetted(blobs)])
            for folder, blobs in group.items():
                yield folder, _fetched(self.commit, folder, blobs, contents)

    def _texts(self, paths: Iterable[str]) -> dict[str, bytes]:
        wanted = set(paths)
        blobs = [blob for blob in self._blobs if blob.path in wanted and blob.size <= limits.MAX_BODY_BYTES]
        contents = self._git.read(blobs)
        return {blob.path: contents[blob.name] for blob in blobs}


def _groups(folders: dict[str, list[Blob]]) -> Iterator[dict[str, list[Blob]]]:
    """Group folders as long as they fit into one call and one bundle's memory."""
    group: dict[str, list[Blob]] = {}
    count = size = 0
    for folder, blobs in folders.items():
        more = sum(blob.size for blob in blobs)
        if group and (count + len(blobs) > limits.MAX_BUNDLE_FILES or size + more > limits.MAX_BUNDLE_BYTES):
            yield group
            group, count, size = {}, 0, 0
        group[folder] = blobs
        count, size = count + len(blobs), size + more
    if group:
        yield group


def _fetched(commit: str, folder: str, blobs: list[Blob], contents: Mapping[str, bytes]) -> Fetched:
    return Fetched(
        commit=commit,
        folder=folder,
        entries=tuple((blob.path, contents.get(blob.name, b"")) for blob in blobs),
        executable=frozenset(blob.path for blob in blobs if blob.executable),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """Git repositories under one set of rules. All methods block, and end early once ``stopped`` is set."""

    mirrors: Mapping[str, str]
    allow_file: bool
    timeout_ms: int
    private: bool = False
    ssh_keys: bool = False

    def fetch(self, request: RepoRequest, stopped: threading.Event | None = None) -> Fetched:
        """Fetch one skill of a repository, as its branch, tag or commit has it now."""
        with self._git(request, stopped) as git:
            commit = git.fetch(request.branch)
            folder = request.path or f"skills/{request.skill}"
            blobs = below(git.listed(commit, folder), folder)
            if not blobs and request.path is None:
                # The one folder of that name with a SKILL.md, wherever it lies.
                everything = git.listed(commit)
                folders = skill_folders(blob.path for blob in everything if not blob.problem)
                found = [folder for folder in folders if folder.rpartition("/")[2] == request.skill]
                if len(found) != 1:
                    raise no_folder(request, folders)
                folder, blobs = found[0], below(everything, found[0])
            if not blobs:
                raise no_folder(request, [])
            return _fetched(commit, folder, blobs, git.read(vetted(blobs)))

    @contextmanager
    def opened(self, request: RepoTree, stopped: threading.Event) -> Generator[Checkout]:
        """Fetch a repository once, for as many of its skills as are wanted."""
        with self._git(request, stopped) as git:
            if request.tree is not None:
                ref, path = git.parted(request.tree)
                request = replace(request, branch=ref, path=path, tree=None)
            yield Checkout(git, request, git.fetch(request.branch))

    def resolve(self, request: RepoRequest, stopped: threading.Event | None = None) -> str:
        """Return the commit that a branch, tag or commit id stands for now, without fetching it."""
        if is_commit(request.branch):
            return request.branch
        with self._git(request, stopped) as git:
            found = git.remote_refs(names_of(request.branch))
        for name in names_of(request.branch):
            if name in found:
                return found.get(f"{name}^{{}}", found[name])
        raise no_ref(request, request.branch)

    @contextmanager
    def _git(self, request: RepoRequest | RepoTree, stopped: threading.Event | None) -> Generator[Git]:
        address = address_of(request.repo, self.mirrors, allow_file=self.allow_file)
        resolved = None if address.is_mirror else self._checked(request, address)
        deadline = time.monotonic() + self.timeout_ms / 1000
        try:
            with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, ignore_cleanup_errors=True) as scratch:
                yield Git(request, address, scratch, deadline, stopped or threading.Event(), resolved)
        except ProcessStoppedError as error:
            raise DirectoryError(SOURCE_FAILED, f"git was stopped at {request}: {error}") from None
        except FileNotFoundError:
            raise DirectoryError(SOURCE_FAILED, "git is not installed here") from None
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "it gave no reason"
            raise DirectoryError(
                SOURCE_FAILED, f"git could not be run: the system refused ({reason})"
            ) from error

    def _checked(self, request: RepoRequest | RepoTree, address: RepoAddress) -> str | None:
        """Refuse what a caller may not reach; return the addresses of the host, which git must use."""
        if address.protocol == "ssh" and not self.ssh_keys:
            problem = f"{request} is reached by ssh, which would use the keys of the user who runs this"
            raise DirectoryError(SOURCE_REFUSED, f"{problem}: name an https address, or set allow_ssh_keys")
        host, port = host_and_port(address)
        if self.private or host is None:
            return None
        try:
            looked_up = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            # Then git fails too, or a proxy knows better.
            return None
        found = list(dict.fromkeys(str(address[0]) for *_, address in looked_up))
        if any(not is_public(one) for one in found):
            problem = f"{request} is on this machine or a private network"
            raise DirectoryError(SOURCE_REFUSED, f"{problem}: set allow_private_repos, or name a mirror")
        listed = ",".join(f"[{one}]" if ":" in one else one for one in found)
        return f"{host}:{port}:{listed}" if found else None
