"""Run git for one repository, in a scratch folder, until one deadline, and read what it answers.

Every argument is ours or stands behind ``--``, every environment variable is on a list, and git's output has
bounds. A caller hears one of our own sentences about a failure, never git's.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.documents.ids import is_hidden
from iii_directory.errors import SOURCE_FAILED, SOURCE_REFUSED, DirectoryError, Step, refused
from iii_directory.install.bundle import check_count, check_file, check_total
from iii_directory.install.process import Finished, TooMuchOutputError, folder_size, run
from iii_directory.install.requests import HEAD, is_commit
from iii_directory.text import close_names, quoted

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

    from iii_directory.install.requests import RepoAddress, RepoRequest, RepoTree

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
_TIP: Final = "refs/iii/tip"


_ENTRY: Final = re.compile(rb"(\d{6}) (\w+) ([0-9a-f]+) +(\d+|-)\t(.+)", re.DOTALL)
_EXECUTABLE: Final = b"100755"
_FILES: Final = frozenset({b"100644", _EXECUTABLE})
_KINDS: Final = {b"120000": "a link", b"160000": "a submodule"}
_SHORT_COMMIT: Final = re.compile(r"[0-9a-f]{4,39}")
_PRIVATE: Final = "it needs credentials"
_ABSENT: Final = "it is not there, or private"
_CHECK_ADDRESS: Final = (Step("check the address; a private repository needs git@HOST:OWNER/REPO and a key"),)
# What git says, and what a caller may hear of it: its own words may hold addresses and paths.
_REASONS: Final = (
    (r"terminal prompts disabled|could not read username|authentication failed|permission denied", _PRIVATE),
    (r"could not resolve host", "its host has no address"),
    (r"redirect", "it has moved, and redirects are not followed"),
    (r"not found|does not exist|does not appear to be a git|repository access denied|40[34]", _ABSENT),
    (r"host key verification", "its host is not known to ssh"),
    (r"dubious ownership", "it belongs to another user"),
    (r"fsck error|bad object|missingEmail|hasdot|nullsha1", "it holds objects that git takes for malformed"),
    (r"certificate|ssl|tls", "its certificate is not trusted"),
    (r"connect|timed out|unreachable|reset", "its host cannot be reached"),
)


@dataclass(frozen=True, slots=True)
class Blob:
    """One file of a commit."""

    path: str
    name: str
    size: int
    executable: bool = False
    problem: str | None = None
    """Why it cannot be installed: it is a link, a submodule, or its name is not text."""


class Git:
    """Git in a scratch folder, for one repository and until one deadline."""

    def __init__(
        self,
        request: RepoRequest | RepoTree,
        address: RepoAddress,
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
        """Make an empty repository for one kind of object names."""
        shutil.rmtree(self._repository, ignore_errors=True)
        os.mkdir(self._repository)
        self._expect(self._run(["init", "--bare", "--quiet", "--template=", f"--object-format={hashes}"]))

    def fetch(self, ref: str) -> str:
        """Fetch one commit without its history and return its id."""
        self._start("sha256" if len(ref) == 64 and is_commit(ref) else "sha1")
        for name in [ref] if is_commit(ref) else names_of(ref):
            done = self._fetch(name)
            if done.code and b"mismatched algorithms" in done.errors:
                self._start("sha256")
                done = self._fetch(name)
            if done.code == 0:
                break
            if not re.search(rb"couldn't find remote ref|not our ref|unadvertised object", done.errors):
                raise failed(self._request, done.code, done.errors)
        else:
            heads = self.remote_refs(["refs/heads/*"])
            raise no_ref(self._request, ref, (name.removeprefix("refs/heads/") for name in heads))
        done = self._run(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{_TIP}^{{commit}}"])
        commit = done.output.decode("ascii", "replace").strip()
        if done.code or not is_commit(commit):
            raise DirectoryError(SOURCE_REFUSED, f"{quoted(self._request.branch)} does not name a commit")
        return commit

    def _fetch(self, name: str) -> Finished:
        options = ["--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
        refspec = f"+{name}:{_TIP}"
        return self._run(["fetch", *options, "--no-auto-maintenance", "--", self._address.url, refspec])

    def remote_refs(self, names: list[str]) -> dict[str, str]:
        """List the refs of a repository by name; annotated tags come a second time with ``^{}``."""
        peeled = [f"{name}^{{}}" for name in names if "*" not in name]
        done = self._run(["ls-remote", "--quiet", "--", self._address.url, *names, *peeled])
        self._expect(done)
        lines = (line.partition("\t") for line in done.output.decode("utf-8", "replace").splitlines())
        return {name: commit for commit, _, name in lines}

    def parted(self, tree: str) -> tuple[str, str]:
        """Split a ref and a folder that an address joins: the ref is the longest that exists."""
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
        """List every file of a commit, or of one of its folders."""
        where = [] if folder == "." else [f"{folder}/"]
        room = limits.MAX_GIT_LISTING_BYTES if where else limits.MAX_GIT_TREE_BYTES
        try:
            done = self._run(["ls-tree", "-r", "-l", "-z", "--full-tree", commit, *where], room=room)
        except TooMuchOutputError:
            few = f"more than {limits.MAX_BUNDLE_FILES}" if where else "too many"
            raise refused(f"the bundle has {few} files") from None
        self._expect(done)
        return [_blob(entry) for entry in done.output.split(b"\0") if entry]

    def read(self, blobs: list[Blob]) -> dict[str, bytes]:
        """Read the contents of blobs whose sizes were checked, by their names."""
        sent = "".join(f"{blob.name}\n" for blob in blobs).encode()
        room = sum(blob.size for blob in blobs) + 200 * (len(blobs) + 1)
        done = self._run(["cat-file", "--batch", "--buffer"], sent=sent, room=room)
        self._expect(done)
        return reads(done.output, blobs)

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
            return "the caller left"
        return "it is too large" if folder_size(self._scratch) > limits.MAX_GIT_FETCH_BYTES else None

    def _expect(self, done: Finished) -> None:
        if done.code:
            raise failed(self._request, done.code, done.errors)


def _prepared_environment(scratch: str, address: RepoAddress) -> dict[str, str]:
    """Return the environment of git, and write its one configuration file."""
    configuration = os.path.join(scratch, "configuration")
    with open(configuration, "w", encoding="utf-8") as file:
        if address.is_mirror and address.protocol == "file":
            # The operator named this folder; it may belong to the user who keeps the mirror.
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


def names_of(ref: str) -> list[str]:
    """Return the full names that a branch or a tag may have, the likelier first."""
    return [HEAD] if ref == HEAD else [f"refs/heads/{ref}", f"refs/tags/{ref}"]


def _blob(entry: bytes) -> Blob:
    """Parse one entry of the output of ``ls-tree -r -l -z``."""
    found = _ENTRY.fullmatch(entry)
    if found is None:
        return Blob("", "", 0, problem="a line of the listing cannot be read")
    path = found[5].decode("utf-8", "replace")
    problem = None if path.encode() == found[5] else "a name in the repository is not UTF-8"
    if found[1] not in _FILES:
        problem = f"{quoted(path)} in the repository is {_KINDS.get(found[1], 'no regular file')}"
    size = int(found[4]) if found[4].isdigit() else 0
    return Blob(path, found[3].decode(), size, found[1] == _EXECUTABLE, problem)


def below(blobs: Iterable[Blob], folder: str) -> list[Blob]:
    """Select the files of one folder, with paths relative to it; ``.`` is the whole commit."""
    if folder == ".":
        # A link or a submodule in a hidden place of the repository does not belong to the skill.
        return [blob for blob in blobs if blob.problem is None or not is_hidden(blob.path)]
    prefix = f"{folder}/"
    return [replace(blob, path=blob.path[len(prefix) :]) for blob in blobs if blob.path.startswith(prefix)]


def vetted(blobs: list[Blob]) -> list[Blob]:
    """Return the blobs to read; refuse links and sizes. `make_bundle` checks the names."""
    for blob in blobs:
        if blob.problem is not None:
            raise refused(blob.problem)
    wanted = [blob for blob in blobs if not is_hidden(blob.path)]
    check_count(len(wanted))
    check_total(sum(blob.size for blob in wanted))
    for blob in wanted:
        check_file(blob.path, blob.size)
    return wanted


def reads(output: bytes, blobs: list[Blob]) -> dict[str, bytes]:
    """Parse the output of ``cat-file --batch`` for blobs, by their names."""
    contents: dict[str, bytes] = {}
    at = 0
    for blob in blobs:
        head = f"{blob.name} blob {blob.size}\n".encode()
        if not output.startswith(head, at) or len(output) < at + len(head) + blob.size:
            raise DirectoryError(SOURCE_FAILED, f"git could not read {quoted(blob.path)} of the repository")
        start = at + len(head)
        contents[blob.name] = output[start : start + blob.size]
        at = start + blob.size + 1
    return contents


def failed(request: RepoRequest | RepoTree, code: int, errors: bytes) -> DirectoryError:
    """Make the error for a failure of git, whose own words are classified and never repeated."""
    said = errors.decode("utf-8", "replace").lower()
    reason = next((words for pattern, words in _REASONS if re.search(pattern, said)), f"git gave up ({code})")
    steps = _CHECK_ADDRESS if reason in (_PRIVATE, _ABSENT) else None
    return DirectoryError(SOURCE_FAILED, f"{request} could not be read: {reason}", next_steps=steps)


def no_ref(request: RepoRequest | RepoTree, ref: str, there: Iterable[str] = ()) -> DirectoryError:
    short = " (a commit needs all digits of its id)" if _SHORT_COMMIT.fullmatch(ref) else ""
    problem = f"{request} has no branch, tag or commit {quoted(ref)}{short}"
    return DirectoryError(SOURCE_REFUSED, problem, did_you_mean=_close(ref, there))


def no_folder(request: RepoRequest, folders: list[str]) -> DirectoryError:
    """Make the error for a name that no folder, or several, have."""
    of_the_name = [folder for folder in folders if folder.rpartition("/")[2] == request.skill]
    if of_the_name:
        problem = f"{request} has several folders for {quoted(request.skill)}: {', '.join(of_the_name)}"
        return DirectoryError(SOURCE_REFUSED, problem)
    where = f"skills/{request.skill}" if request.path is None else request.path
    problem = f"{request} has no folder {quoted(where)} with files"
    names = [folder.rpartition("/")[2] for folder in folders]
    return DirectoryError(SOURCE_REFUSED, problem, did_you_mean=_close(request.skill, names))


def _close(wanted: str, there: Iterable[str]) -> list[str]:
    return close_names(wanted, {name for name in there if name.isprintable()})
