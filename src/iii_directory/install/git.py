"""Skills from git repositories, read and never checked out.

One commit is fetched into a bare, empty repository in a scratch folder; its tree is listed, every name,
mode and size is vetted, and only then are the blobs read. Nothing of the repository is executed, no hook,
filter, submodule or configuration of it or of the user takes part, and git may speak one protocol only.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.documents.ids import OVERVIEW
from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install.git_answers import (
    Blob,
    below,
    failed,
    no_folder,
    no_ref,
    parse_listing,
    reads,
    vetted,
)
from iii_directory.install.process import (
    Finished,
    ProcessStoppedError,
    TooMuchOutputError,
    folder_size,
    run,
)
from iii_directory.install.requests import (
    HEAD,
    Address,
    RepoRequest,
    RepoTree,
    address_of,
    host_and_port,
    is_commit,
    is_public,
)
from iii_directory.install.typed import Offer, offer_of, skill_folders
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

_SETTINGS: Final = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "credential.helper": "",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.followRedirects": "false",
    "protocol.version": "2",
    "transfer.bundleURI": "false",
}
# All that git and ssh get to see of our environment: how to reach programs, agents, proxies and trust.
_INHERITED: Final = (
    *("PATH", "USER", "LOGNAME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
)
SCRATCH_PREFIX: Final = "iii-directory-git-"
_TIP: Final = "refs/iii/tip"


@dataclass(frozen=True, slots=True)
class Fetched:
    """The files of a skill folder at one commit; hidden ones without their content."""

    commit: str
    folder: str
    entries: tuple[tuple[str, bytes], ...]
    executable: frozenset[str]


class Checkout:
    """One fetched commit and the skills in it; alive as long as its folder of work is."""

    def __init__(self, git: _Git, request: RepoTree, commit: str) -> None:
        self.branch = request.branch
        self.commit = commit
        self._git = git
        self._blobs = git.listed(commit)
        names = skill_folders((blob.path for blob in self._blobs if not blob.problem), request.path)
        self.offers = self._offers(names, request.repo)

    def read(self, folders: Iterable[str]) -> Iterator[tuple[str, Fetched | DirectoryError]]:
        """The files of skill folders, or why one cannot be had; git is asked for some folders at a time."""
        fit: dict[str, list[Blob]] = {}
        for folder in folders:
            blobs = below(self._blobs, folder)
            try:
                vetted(blobs)
                fit[folder] = blobs
            except DirectoryError as error:
                yield folder, error
        for group in _groups(fit):
            contents = self._git.read([blob for blobs in group.values() for blob in vetted(blobs)])
            for folder, blobs in group.items():
                yield folder, _fetched(self.commit, folder, blobs, contents)

    def _offers(self, folders: list[str], repo: str) -> list[Offer]:
        overviews = {folder: f"{folder}/{OVERVIEW}".removeprefix("./") for folder in folders}
        wanted = set(overviews.values())
        blobs = [blob for blob in self._blobs if blob.path in wanted and blob.size <= limits.MAX_BODY_BYTES]
        contents = self._git.read(blobs)
        texts = {blob.path: contents[blob.name] for blob in blobs}
        called = repo.rstrip("/").rpartition("/")[2].removesuffix(".git").lower()
        return [offer_of(folder, texts.get(path, b""), called) for folder, path in overviews.items()]


def _groups(folders: dict[str, list[Blob]]) -> Iterator[dict[str, list[Blob]]]:
    """Folders together as long as they fit into one call and one bundle's memory."""
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


class GitSource:
    """Git repositories under one set of rules. All methods block; run them in a thread."""

    def __init__(
        self,
        *,
        mirrors: Mapping[str, str],
        allow_file: bool,
        timeout_ms: int,
        private: bool = False,
        ssh_keys: bool = False,
    ) -> None:
        self._private = private
        self._ssh_keys = ssh_keys
        self._mirrors = mirrors
        self._allow_file = allow_file
        self._timeout_ms = timeout_ms
        self.stopped = threading.Event()
        """Set by whoever no longer waits: what git is doing then ends at once."""

    def fetch(self, request: RepoRequest) -> Fetched:
        """One skill of a repository, as its branch, tag or commit has it now."""
        with self._git(request) as git:
            commit = git.fetch(request.branch)
            folder = request.path or f"skills/{request.skill}"
            blobs = below(git.listed(commit, folder), folder)
            if not blobs and request.path is None:
                folder, blobs = _elsewhere(git, request, commit)
            if not blobs:
                raise no_folder(request, [])
            return _fetched(commit, folder, blobs, git.read(vetted(blobs)))

    @contextmanager
    def opened(self, request: RepoTree) -> Generator[Checkout]:
        """A repository fetched once, for as many of its skills as are wanted."""
        with self._git(request) as git:
            if request.tree is not None:
                ref, path = git.parted(request.tree)
                request = replace(request, branch=ref, path=path, tree=None)
            yield Checkout(git, request, git.fetch(request.branch))

    def resolve(self, request: RepoRequest) -> str:
        """The commit that a branch, tag or commit id stands for now, without fetching it."""
        if is_commit(request.branch):
            return request.branch
        with self._git(request) as git:
            found = git.remote_refs(_names(request.branch))
        for name in _names(request.branch):
            if name in found:
                return found.get(f"{name}^{{}}", found[name])
        raise no_ref(request, request.branch)

    @contextmanager
    def _git(self, request: RepoRequest | RepoTree) -> Generator[_Git]:
        address = address_of(request.repo, self._mirrors, allow_file=self._allow_file)
        resolved = None if address.is_mirror else self._checked(request, address)
        deadline = time.monotonic() + self._timeout_ms / 1000
        try:
            with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, ignore_cleanup_errors=True) as scratch:
                yield _Git(request, address, scratch, deadline, self.stopped, resolved)
        except ProcessStoppedError as stopped:
            raise DirectoryError(SOURCE_FAILED, f"git was stopped at {request}: {stopped}") from None
        except FileNotFoundError:
            raise DirectoryError(SOURCE_FAILED, "git is not installed here") from None
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "it gave no reason"
            raise DirectoryError(
                SOURCE_FAILED, f"git could not be run: the system refused ({reason})"
            ) from error

    def _checked(self, request: RepoRequest | RepoTree, address: Address) -> str | None:
        """Refuse what a caller may not reach; what the host's name was found to mean, for git to keep to."""
        if address.protocol == "ssh" and not self._ssh_keys:
            problem = f"{request} is reached by ssh, which would use keys of whoever runs this"
            raise DirectoryError(SOURCE_REFUSED, f"{problem}: name an https address, or set allow_ssh_keys")
        host, port = host_and_port(address)
        if self._private or host is None:
            return None
        found = _addresses_of(host, port)
        if any(not is_public(one) for one in found):
            problem = f"{request} is on this machine or a private network"
            raise DirectoryError(SOURCE_REFUSED, f"{problem}: set allow_private_repos, or name a mirror")
        return f"{host}:{port}:{','.join(_in_brackets(one) for one in found)}" if found else None


class _Git:
    """Git in a scratch folder, for one repository and until one deadline."""

    def __init__(
        self,
        request: RepoRequest | RepoTree,
        address: Address,
        scratch: str,
        deadline: float,
        stopped: threading.Event,
        resolved: str | None,
    ) -> None:
        # A name that means something else a moment later leads to nowhere else.
        self._settings = _SETTINGS if resolved is None else {**_SETTINGS, "http.curloptResolve": resolved}
        self._request = request
        self._address = address
        self._scratch = scratch
        self._deadline = deadline
        self._stopped = stopped
        self._repository = os.path.join(scratch, "repository")
        self._environment = _prepared_environment(scratch, address)

    def _start(self, hashes: str) -> None:
        """An empty repository for one kind of object names."""
        shutil.rmtree(self._repository, ignore_errors=True)
        os.mkdir(self._repository)
        self._expect(self._run(["init", "--bare", "--quiet", "--template=", f"--object-format={hashes}"]))

    def fetch(self, ref: str) -> str:
        """Fetch one commit without its history; its id."""
        self._start("sha256" if len(ref) == 64 and is_commit(ref) else "sha1")
        for name in [ref] if is_commit(ref) else _names(ref):
            done = self._fetch(name)
            if done.code and b"mismatched algorithms" in done.errors:
                self._start("sha256")
                done = self._fetch(name)
            if done.code == 0:
                return self._commit()
            if not re.search(rb"couldn't find remote ref|not our ref|unadvertised object", done.errors):
                raise failed(self._request, done.code, done.errors)
        heads = self.remote_refs(["refs/heads/*"])
        raise no_ref(self._request, ref, (name.removeprefix("refs/heads/") for name in heads))

    def _fetch(self, name: str) -> Finished:
        options = ["--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
        refspec = f"+{name}:{_TIP}"
        return self._run(["fetch", *options, "--no-auto-maintenance", "--", self._address.url, refspec])

    def _commit(self) -> str:
        done = self._run(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{_TIP}^{{commit}}"])
        commit = done.output.decode("ascii", "replace").strip()
        if done.code or not is_commit(commit):
            raise DirectoryError(SOURCE_REFUSED, f"{quoted(self._request.branch)} does not name a commit")
        return commit

    def remote_refs(self, names: list[str]) -> dict[str, str]:
        """The refs of a repository by name; annotated tags come a second time with ``^{}``."""
        peeled = [f"{name}^{{}}" for name in names if "*" not in name]
        done = self._run(["ls-remote", "--quiet", "--", self._address.url, *names, *peeled])
        self._expect(done)
        lines = (line.partition("\t") for line in done.output.decode("utf-8", "replace").splitlines())
        return {name: commit for commit, _, name in lines}

    def parted(self, tree: str) -> tuple[str, str]:
        """The ref and the folder in what an address has behind each other: the longest ref that fits."""
        parts = tree.split("/")
        if is_commit(parts[0].lower()):
            return parts[0].lower(), "/".join(parts[1:])
        refs = self.remote_refs(["refs/heads/*", "refs/tags/*"])
        names = {name.partition("/")[2].partition("/")[2] for name in refs}
        for length in range(len(parts), 0, -1):
            ref = "/".join(parts[:length])
            if ref in names:
                return ref, "/".join(parts[length:])
        raise no_ref(self._request, parts[0], names)

    def listed(self, commit: str, folder: str = ".") -> list[Blob]:
        """Every file of a commit, or of a folder of it."""
        where = [] if folder == "." else [f"{folder}/"]
        room = limits.MAX_GIT_LISTING_BYTES if where else limits.MAX_GIT_TREE_BYTES
        try:
            done = self._run(["ls-tree", "-r", "-l", "-z", "--full-tree", commit, *where], room=room)
        except TooMuchOutputError:
            few = f"more than {limits.MAX_BUNDLE_FILES}" if where else "too many"
            raise refused(f"the bundle has {few} files") from None
        self._expect(done)
        return parse_listing(done.output)

    def read(self, blobs: list[Blob]) -> dict[str, bytes]:
        """The contents of blobs whose sizes were vetted, by their names."""
        found: dict[str, bytes] = {}
        # What is asked for at once must fit into a pipe's buffer.
        for start in range(0, len(blobs), limits.MAX_BUNDLE_FILES):
            some = blobs[start : start + limits.MAX_BUNDLE_FILES]
            sent = "".join(f"{blob.name}\n" for blob in some).encode()
            room = sum(blob.size for blob in some) + 200 * (len(some) + 1)
            done = self._run(["cat-file", "--batch", "--buffer"], sent=sent, room=room)
            self._expect(done)
            found.update(reads(done.output, some))
        return found

    def _run(
        self, arguments: list[str], *, sent: bytes = b"", room: int = limits.MAX_GIT_LISTING_BYTES
    ) -> Finished:
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        folder = self._repository if os.path.isdir(self._repository) else self._scratch
        return run(
            ["git", *settings, *arguments],
            environment=self._environment,
            folder=folder,
            deadline=self._deadline,
            max_output=room,
            max_errors=limits.MAX_GIT_ERROR_BYTES,
            sent=sent,
            watch=self._watch,
        )

    def _watch(self) -> str | None:
        if self._stopped.is_set():
            return "nobody waits for it any more"
        return "it is too large" if folder_size(self._scratch) > limits.MAX_GIT_FETCH_BYTES else None

    def _expect(self, done: Finished) -> None:
        if done.code:
            raise failed(self._request, done.code, done.errors)


def _addresses_of(host: str, port: int) -> list[str]:
    """What a name means, none if nobody knows: then git cannot reach it, or a proxy knows better."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _in_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _prepared_environment(scratch: str, address: Address) -> dict[str, str]:
    """What git gets to see; its one configuration file is written for it."""
    configuration = os.path.join(scratch, "configuration")
    with open(configuration, "w", encoding="utf-8") as file:
        if address.is_mirror and address.protocol == "file":
            # The operator named this folder; it may belong to whoever keeps the mirror.
            file.write("[safe]\n\tdirectory = *\n")
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {
        **kept,
        "GIT_ALLOW_PROTOCOL": address.protocol,
        "GIT_ASKPASS": "",
        "GIT_CONFIG_GLOBAL": configuration,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oPermitLocalCommand=no -oClearAllForwardings=yes",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": scratch,
        "LC_ALL": "C",
        "SSH_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "TMPDIR": scratch,
        "XDG_CONFIG_HOME": scratch,
    }


def _elsewhere(git: _Git, request: RepoRequest, commit: str) -> tuple[str, list[Blob]]:
    """The one folder of the wanted name that has a SKILL.md, wherever it lies."""
    blobs = git.listed(commit)
    folders = skill_folders(blob.path for blob in blobs if not blob.problem)
    found = [folder for folder in folders if folder.rpartition("/")[2] == request.skill]
    if len(found) != 1:
        raise no_folder(request, folders)
    return found[0], below(blobs, found[0])


def _names(ref: str) -> list[str]:
    return [HEAD] if ref == HEAD else [f"refs/heads/{ref}", f"refs/tags/{ref}"]
