"""Check what callers and people at a terminal ask to be installed, before anything is fetched. Pure.

Nothing is filtered out of a value and nothing is escaped: what is not plainly a repository, a ref or a
folder name is refused. People type:

agent-memory, agent-memory@1.2.3      a worker of the registry
owner/repo, owner/repo/path, …@ref    a repository of GitHub, or one folder of it
https://github.com/o/r/tree/ref/path  the same, as a browser shows it
https://…, ssh://…, git@…:…           any git repository
./folder, /folder                     a folder of this machine
./skills.zip, /skills.tar.gz          an archive of this machine
https://…/SKILL.md, https://….zip     a file or an archive at an address
https://host                          the well-known index of a site
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote, urlsplit

from iii_directory import limits
from iii_directory.documents.ids import OVERVIEW, is_namespace, is_safe_path
from iii_directory.documents.payload_fields import optional_word
from iii_directory.errors import BAD_REGISTRY_REQUEST, SOURCE_REFUSED, DirectoryError, Step, invalid_field
from iii_directory.registry.registry_messages import WorkerRequest, is_version, worker_request
from iii_directory.text import quoted, shown_url

if TYPE_CHECKING:
    from collections.abc import Mapping

Protocol = Literal["https", "http", "ssh", "file"]

DEFAULT_BRANCH: Final = "main"
# The default branch of a repository.
HEAD: Final = "HEAD"
_PORTS: Final = {"https": 443, "http": 80, "ssh": 22}
_NAT64: Final = ip_network("64:ff9b::/96")

_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_HOST: Final = rf"{_NAME}(?::[0-9]{{1,5}})?"
# A path whose parts are neither empty (but for the end) nor start with a dash.
_PATH: Final = r"(?:/(?!-)[^/\s\\?#@:]+)+/?"
_HTTPS: Final = re.compile(rf"https?://{_HOST}{_PATH}")
_SSH: Final = re.compile(rf"ssh://(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?{_HOST}{_PATH}")
_SCP: Final = re.compile(rf"git@{_NAME}:/?[^/\s\\?#@:-][^\s\\?#@:]*")
_FILE: Final = re.compile(r"file://(?:/(?!-)[^/\s\\?#:]+)+/?")
# Encoded dots, slashes, backslashes and control characters would mean something else once decoded.
_ENCODED: Final = re.compile(r"%(?:2e|2f|5c|7f|[01][0-9a-f]|$|.$|[^0-9a-f]|.[^0-9a-f])", re.IGNORECASE)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ARCHIVE: Final = re.compile(r"\.(?:zip|tar\.gz|tgz)\Z", re.IGNORECASE)
# What git check-ref-format refuses.
_BAD_REF: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|(?:^|/)\.|\.lock(?:/|$)|^[-/]|[/.]$|^@$")


_REGISTRY_FIELDS: Final = ("worker", "version", "tag")
_REPO_FIELDS: Final = ("repo", "skill", "branch")
_RULE: Final = "pass either worker with version or tag, or repo and skill with branch, not both"


@dataclass(frozen=True, slots=True)
class RepoRequest:
    """One skill of a repository at a branch, a tag, a full commit id or the repository's own HEAD."""

    repo: str
    skill: str
    branch: str = DEFAULT_BRANCH
    path: str | None = None
    """Its folder; without one ``skills/<skill>``, else the one folder of that name with a SKILL.md."""

    def __str__(self) -> str:
        return _shown(self.repo)


@dataclass(frozen=True, slots=True)
class RepoTree:
    """All skills of a repository, or those below one of its folders."""

    repo: str
    branch: str = HEAD
    path: str = ""
    tree: str | None = None
    """A ref with a folder behind it, as an address has them: which is which the repository knows."""

    def __str__(self) -> str:
        return _shown(self.repo)


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """All skills of a folder of this machine."""

    path: str

    def __str__(self) -> str:
        return f"the folder {quoted(self.path)}"


@dataclass(frozen=True, slots=True)
class Site:
    """All skills in the well-known index of a site."""

    url: str

    def __str__(self) -> str:
        return f"the site {quoted(self.url)}"


@dataclass(frozen=True, slots=True)
class DirectFile:
    """All skills in one file: a SKILL.md at an address, or an archive there or on this machine."""

    url: str

    def __str__(self) -> str:
        return f"the file {quoted(shown_url(self.url))}"

    @property
    def is_archive(self) -> bool:
        return not self.url.endswith(f"/{OVERVIEW}")

    @property
    def stem(self) -> str:
        """Return the name for a skill at the top of the file that does not name itself."""
        parts = self.url.removesuffix(f"/{OVERVIEW}").rsplit("/", 1)
        return _ARCHIVE.sub("", parts[-1]).lower()


@dataclass(frozen=True, slots=True)
class OneOf:
    """One skill of a folder or a file of this machine, of a site or of a file at an address, by its name."""

    source: LocalFolder | Site | DirectFile
    skill: str


def _shown(repo: str) -> str:
    """Name a repository in an error, never by a path of this machine."""
    return "the repository" if repo.startswith("file:") else f"the repository {quoted(repo)}"


SkillSource = RepoTree | LocalFolder | Site | DirectFile
"""Where several skills can come from at once."""
DownloadRequest = WorkerRequest | RepoRequest | OneOf


@dataclass(frozen=True, slots=True)
class RepoAddress:
    """Where git is sent, and by which one protocol it may go."""

    url: str
    protocol: Protocol
    is_mirror: bool = False


def repo_request(
    repo: str, skill: str, branch: str | None = None, *, path: str | None = None, allow_file: bool = False
) -> RepoRequest:
    """Check what a caller sent; raises D331."""
    _protocol_of(repo, allow_file=allow_file)
    _check_skill_name(skill)
    return RepoRequest(repo, skill, checked_ref(branch or DEFAULT_BRANCH), path)


def _check_skill_name(skill: str) -> None:
    if not is_namespace(skill):
        rule = "use lowercase letters, digits, '-' and '_'"
        raise _refused(f"{quoted(skill)} cannot be the name of a skill folder: {rule}")


def repo_tree(
    repo: str, *, ref: str | None = None, path: str = "", tree: str | None = None, allow_file: bool = False
) -> RepoTree:
    """Check an address, a ref and a folder that a person typed; raises D331."""
    _protocol_of(repo, allow_file=allow_file)
    for folder in (path, tree or ""):
        if folder and not is_safe_path(folder):
            raise _refused(f"{quoted(folder)} cannot be a folder of a repository")
    return RepoTree(repo, checked_ref(ref or HEAD), path, tree)


def checked_ref(ref: str) -> str:
    if len(ref) > limits.MAX_REF_CHARS or not ref.isprintable() or _BAD_REF.search(ref):
        raise _refused(f"{quoted(ref)} cannot be a branch, a tag or a commit id")
    return ref.lower() if is_commit(ref.lower()) else ref


def is_commit(ref: str) -> bool:
    """Return whether a ref is a full commit id, which never moves."""
    return _COMMIT.fullmatch(ref) is not None


def address_of(repo: str, mirrors: Mapping[str, str], *, allow_file: bool) -> RepoAddress:
    """Return where a repository is really fetched from; the longest prefix among the mirrors wins."""
    # A prefix ends where a part of the address ends, so that no longer name matches it.
    matching = [
        prefix
        for prefix in mirrors
        if (prefix.endswith(("/", ":")) and repo != prefix and repo.startswith(prefix))
        or repo.startswith(f"{prefix}/")
    ]
    if not matching:
        return RepoAddress(repo, _protocol_of(repo, allow_file=allow_file))
    prefix = max(matching, key=len)
    target = mirrors[prefix]
    if target.startswith("/"):
        target = f"file://{quote(target)}"
    between = "" if target.endswith(("/", ":")) else "/"
    url = f"{target}{between}{repo[len(prefix) :].lstrip('/')}"
    try:
        protocol = _protocol_of(url, allow_file=allow_file, allow_http=True)
        return RepoAddress(url, protocol, is_mirror=True)
    except DirectoryError:
        hint = "set allow_file_repos, or name an https, ssh or git@ address"
        raise _refused(f"the mirror configured for {quoted(repo)} cannot be used: {hint}") from None


def host_and_port(address: RepoAddress) -> tuple[str | None, int]:
    """Return the host and port of an address; no host for a folder of this machine."""
    if address.protocol == "file":
        return None, 0
    if "://" not in address.url:
        return address.url.partition("@")[2].partition(":")[0], _PORTS["ssh"]
    parts = urlsplit(address.url)
    try:
        return parts.hostname, parts.port or _PORTS[address.protocol]
    except ValueError:
        raise _refused("the repository address has a port that is not a number") from None


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the internet: not of this machine, its network, or reserved."""
    found = ip_address(address.partition("%")[0])
    inner = None
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _NAT64:
            inner = IPv4Address(int(found) & 0xFFFFFFFF)
    return (inner or found).is_global and not found.is_multicast


def _protocol_of(url: str, *, allow_file: bool, allow_http: bool = False) -> Protocol:
    """Return the protocol of an address; anything unusual is refused without repeating it."""
    if len(url) > limits.MAX_REPO_URL_CHARS or not url.isprintable() or _ENCODED.search(url):
        raise _refused("the repository address is too long or holds characters that do not belong there")
    if any(part in (".", "..") for part in url.split("/")):
        raise _refused("the repository address must not climb folders")
    if _SSH.fullmatch(url) or _SCP.fullmatch(url):
        return "ssh"
    if _FILE.fullmatch(url):
        if not allow_file:
            raise _refused("file:// repositories are switched off: set allow_file_repos to use them")
        return "file"
    if not _HTTPS.fullmatch(url):
        raise _refused("the repository must be an https://, ssh:// or git@ address without credentials")
    if url.startswith("https:"):
        return "https"
    if not allow_http:
        raise _refused("plain http is not secure: use https://")
    return "http"


def _refused(problem: str) -> DirectoryError:
    return DirectoryError(SOURCE_REFUSED, problem)


def registry_download(payload: Mapping[str, Any]) -> WorkerRequest:
    """Read ``{worker, version? xor tag?}``."""
    worker = optional_word(payload, "worker")
    if worker is None:
        raise invalid_field("worker", "the name of a worker in the registry")
    return worker_request(worker, optional_word(payload, "version"), optional_word(payload, "tag"))


def repo_download(payload: Mapping[str, Any], *, allow_file: bool) -> RepoRequest | OneOf:
    """Read ``{repo, skill, branch?}``; ``repo`` may also be the address of a SKILL.md or an archive."""
    repo, skill = optional_word(payload, "repo"), optional_word(payload, "skill")
    if repo is None:
        raise invalid_field("repo", "the address of a git repository, a SKILL.md or an archive")
    if skill is None:
        raise invalid_field("skill", "the name of a folder below skills/ in the repository")
    if (direct := direct_file(repo)) is not None:
        if optional_word(payload, "branch") is not None:
            raise _mixed("'branch' is for git repositories")
        _check_skill_name(skill)
        return OneOf(direct, skill)
    return repo_request(repo, skill, optional_word(payload, "branch"), allow_file=allow_file)


def any_download(payload: Mapping[str, Any], *, allow_file: bool) -> DownloadRequest:
    """Read either of the two; an error for mixed fields says which go together."""
    registry = [field for field in _REGISTRY_FIELDS if optional_word(payload, field) is not None]
    repo = [field for field in _REPO_FIELDS if optional_word(payload, field) is not None]
    if registry and repo:
        raise _mixed(f"'{registry[0]}' and '{repo[0]}' do not go together")
    if "worker" in registry:
        return registry_download(payload)
    if "repo" in repo and "skill" in repo:
        return repo_download(payload, allow_file=allow_file)
    if registry:
        raise _mixed(f"'{registry[0]}' needs 'worker'")
    if repo:
        missing = "skill" if "repo" in repo else "repo"
        raise _mixed(f"'{repo[0]}' needs '{missing}'")
    raise _mixed("there is nothing to download")


def _mixed(problem: str) -> DirectoryError:
    return DirectoryError(BAD_REGISTRY_REQUEST, f"{problem}: {_RULE}")


_GITHUB: Final = "https://github.com/"
_OWNER: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_SHORT: Final = re.compile(rf"({_OWNER}/[A-Za-z0-9._-]+)((?:/[^/@\s]+)*)/?(?:@(\S+))?")
_TREE: Final = re.compile(rf"https://github\.com/({_OWNER}/[A-Za-z0-9._-]+?)(?:\.git)?/(?:tree|blob)/(\S+)")
_SITE_URL: Final = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?/?")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_FORMS: Final = "NAME, NAME@VERSION, owner/repo, a git address, ./folder, an archive or https://host"


def is_safe_address(url: str) -> bool:
    """Return whether an address has no credentials and is fetched by https, or by http from this machine."""
    parts = urlsplit(url)
    encrypted = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    return encrypted and parts.username is None


def direct_file(address: str) -> DirectFile | None:
    """Return the SKILL.md or archive that an address names, or None; D331 if it may not be fetched."""
    parts = urlsplit(address)
    is_named = parts.path.endswith(f"/{OVERVIEW}") or _ARCHIVE.search(parts.path)
    if (
        parts.scheme not in ("http", "https")
        or not parts.netloc
        or not is_named
        or parts.query
        or parts.fragment
    ):
        return None
    if len(address) > limits.MAX_REPO_URL_CHARS or not address.isprintable() or " " in address:
        raise _refused("the address is too long or holds characters that do not belong there")
    if not is_safe_address(address):
        raise _refused("use https:// without credentials")
    return DirectFile(address)


def typed_source(text: str, *, allow_file: bool = False) -> WorkerRequest | SkillSource:
    """Return the source that a person typed; D311 or D331 with what was typed when it is not a source."""
    try:
        return _source_of(text, allow_file=allow_file)
    except DirectoryError as error:
        typed = quoted(shown_url(text))
        if typed in error.problem:
            raise
        problem = f"{typed} is not a source of skills: {error.problem}"
        raise DirectoryError(error.kind, problem, next_steps=(Step(f"give {_FORMS}"),)) from None


def _source_of(text: str, *, allow_file: bool) -> WorkerRequest | SkillSource:
    if text.startswith(("./", "../", "/", "~/")) or text in (".", ".."):
        # The overview of a folder means the whole skill; an address has nothing but the file.
        return DirectFile(text) if _ARCHIVE.search(text) else LocalFolder(text.removesuffix(f"/{OVERVIEW}"))
    tree = _TREE.fullmatch(text)
    if tree is not None:
        return repo_tree(f"{_GITHUB}{tree[1]}", tree=tree[2].strip("/").removesuffix(f"/{OVERVIEW}"))
    if _SITE_URL.fullmatch(text):
        if not is_safe_address(text):
            raise _refused("plain http is not secure: use https://")
        return Site(text.rstrip("/"))
    if (direct := direct_file(text)) is not None:
        return direct
    if "://" in text or text.startswith("git@"):
        # An optional "@ref" at the end; "git@host:…" has an "@" of its own.
        at = text.rfind("@")
        has_ref = at > max(text.rfind("/"), text.rfind(":"))
        address, ref = (text[:at], text[at + 1 :]) if has_ref else (text, None)
        return repo_tree(address, ref=ref, allow_file=allow_file)
    short = _SHORT.fullmatch(text)
    if short is not None:
        return repo_tree(f"{_GITHUB}{short[1]}", ref=short[3], path=short[2].strip("/"))
    name, at, wanted = text.partition("@")
    if not at:
        return worker_request(name)
    return worker_request(name, wanted) if is_version(wanted) else worker_request(name, tag=wanted)
