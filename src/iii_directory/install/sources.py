"""Fetch bundles from wherever they come: the registry, git, folders, sites and single files."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections import Counter
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from iii_directory import limits
from iii_directory.disk import install_record
from iii_directory.disk.files import GONE, TOO_LARGE, RefusedError
from iii_directory.disk.safe_open import directory_below, read_regular
from iii_directory.documents.ids import OVERVIEW, is_hidden
from iii_directory.errors import SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install.bundle import (
    MARKETPLACE,
    PLUGIN,
    PLUGIN_FOLDER,
    Bundle,
    Offer,
    Offered,
    Wanted,
    check_count,
    check_total,
    make_bundle,
    offered,
    registry_bundle,
    select,
)
from iii_directory.install.direct_file import DirectSkills, SiteSkills, fetch_direct, read_archive
from iii_directory.install.git import Checkout, Fetched, GitSource
from iii_directory.install.plan import check_namespace, check_registry
from iii_directory.install.process import ProcessStoppedError, Threads, run
from iii_directory.install.requests import (
    DirectFile,
    LocalFolder,
    OneOf,
    RepoRequest,
    RepoTree,
    Site,
    is_commit,
    repo_request,
)
from iii_directory.registry.registry_messages import WorkerRequest, is_version, worker_request
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from iii_directory.config import Settings
    from iii_directory.install.requests import DownloadRequest, SkillSource
    from iii_directory.registry.registry_client import RegistryClient

Result = TypeVar("Result")
_AGENTS: Final = (".claude", ".agents")
_GIT_SECONDS: Final = 5.0
# The bundle of an offer, or why it cannot be read.
Read: TypeAlias = "tuple[Offer, Bundle | DirectoryError]"


class OpenSource(NamedTuple):
    """A source that was asked once for what it has."""

    found: Offered
    bundles: Callable[[Sequence[Offer]], AsyncIterator[Read]]
    """Yields each of some offers as it is read, with its bundle or the reason why it cannot be read."""


class Sources:
    """Fetches bundles under the rules of the settings."""

    def __init__(
        self, settings: Settings, registry: Callable[[], RegistryClient], *, by_operator: bool = False
    ) -> None:
        self._registry = registry
        self._threads = Threads("git")
        self._settings = settings
        self._by_operator = by_operator

    @property
    def _git(self) -> GitSource:
        """Return git under the present settings; a fetch keeps those that it began with."""
        settings = self._settings
        return GitSource(
            mirrors=settings.repo_mirrors,
            allow_file=settings.allow_file_repos,
            timeout_ms=settings.download_timeout_ms,
            private=self._by_operator or settings.allow_private_repos,
            ssh_keys=self._by_operator or settings.allow_ssh_keys,
        )

    def close(self) -> None:
        self._threads.close()

    async def bundle(self, request: DownloadRequest) -> Bundle:
        """Fetch the bundle that a request stands for now, checked and ready to install."""
        check_namespace(request.worker if isinstance(request, WorkerRequest) else request.skill)
        if isinstance(request, WorkerRequest):
            client = self._registry()
            source = install_record.RegistrySource(
                request.worker, request.version, request.tag, client.address
            )
            answer = await client.bundle(request)
            return await asyncio.to_thread(registry_bundle, source, request.worker, answer)
        if isinstance(request, RepoRequest):
            names = request.repo, request.skill, request.branch
            return await self.in_thread(
                lambda stopped: _repo_bundle(*names, self._git.fetch(request, stopped))
            )
        async with self.opened(request.source) as found:
            return await _the_bundle(found, request)

    @asynccontextmanager
    async def opened(self, source: SkillSource) -> AsyncGenerator[OpenSource]:
        """Ask a source once, for as many of its skills as are wanted."""
        timeout_ms = self._settings.download_timeout_ms
        if isinstance(source, Site):
            site = SiteSkills(source, await self._registry().connection(), timeout_ms, self)
            yield _one_by_one(await site.look(), site.bundle)
        elif isinstance(source, LocalFolder):
            yield self._on_disk(await self.in_thread(lambda _: LocalSkills(source)))
        elif isinstance(source, DirectFile):
            if "://" in source.url:
                client = await self._registry().connection()
                private = self._by_operator or self._settings.allow_private_repos
                content = await fetch_direct(client, source, timeout_ms, private=private)
            else:
                content = await self.in_thread(lambda _: read_archive(source))
            skills = await self.in_thread(lambda stopped: DirectSkills(source, content, stopped))
            yield self._on_disk(skills)
        else:
            with ExitStack() as stack:
                stopped = threading.Event()
                opened = self._git.opened(source, stopped)
                checkout = await self.in_thread(lambda _: stack.enter_context(opened), stopped)
                yield self._fetched(source.repo, checkout, stopped)

    def _on_disk(self, skills: LocalSkills | DirectSkills) -> OpenSource:
        return _one_by_one(skills.found, lambda offer: self.in_thread(lambda _: skills.bundle(offer)))

    def _fetched(self, repo: str, checkout: Checkout, stopped: threading.Event) -> OpenSource:
        async def bundles(chosen: Sequence[Offer]) -> AsyncIterator[Read]:
            offers = {offer.path: offer for offer in chosen}
            folders = checkout.read(offers)
            while read := await self.in_thread(lambda _: next(folders, None), stopped):
                folder, fetched = read
                if not isinstance(fetched, DirectoryError):
                    try:
                        fetched = _repo_bundle(repo, offers[folder].name, checkout.branch, fetched)
                    except DirectoryError as error:
                        fetched = error
                yield offers[folder], fetched

        return OpenSource(checkout.found, bundles)

    async def in_thread(
        self, act: Callable[[threading.Event], Result], stopped: threading.Event | None = None
    ) -> Result:
        """Run work that blocks; when the caller is cancelled, end the work and wait until it has ended.

        The work must end early when the event that it is given is set.
        """
        stopped = stopped or threading.Event()
        work = asyncio.ensure_future(self._threads.run(act, stopped))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # Git writes into a scratch folder that is removed next, so the thread has to be out of it.
            stopped.set()
            await asyncio.wait([work])
            raise

    async def recorded(self, entry: install_record.Entry) -> Bundle:
        """Fetch exactly what was installed, from where it came."""
        source = entry.source
        if isinstance(source, install_record.RepoSource):
            return await self.bundle(self._repo_request(source, source.commit))
        if isinstance(source, install_record.RegistrySource) and is_version(entry.resolved):
            return await self.bundle(worker_request(source.worker, entry.resolved))
        return await self.bundle(self.request_for(entry))

    async def current(self, entry: install_record.Entry) -> str:
        """Return the version or commit that an update would bring; for a pinned version, the latest one."""
        source = entry.source
        if isinstance(source, install_record.RegistrySource):
            client = self._registry()
            check_registry(source._replace(registry=client.address), source)
            return await client.current_version(worker_request(source.worker, tag=source.tag))
        if isinstance(source, install_record.RepoSource):
            request = self._repo_request(source, source.branch)
            return await self.in_thread(lambda stopped: self._git.resolve(request, stopped))
        if isinstance(source, install_record.WrittenSource):
            return entry.resolved
        return (await self.bundle(self.request_for(entry))).resolved

    def request_for(self, entry: install_record.Entry) -> DownloadRequest:
        """Return the request that updates a namespace."""
        match entry.source:
            case install_record.RegistrySource() as source:
                return worker_request(source.worker, source.version, source.tag)
            case install_record.RepoSource() as source:
                return self._repo_request(source, source.branch)
            case install_record.LocalSource() as source:
                return OneOf(LocalFolder(source.path), source.skill)
            case install_record.FileSource() as source:
                return OneOf(DirectFile(source.url), source.skill)
            case install_record.SiteSource() as source:
                return OneOf(Site(source.url), source.skill)
            case install_record.WrittenSource():
                raise refused("it was written here, so no source has it")

    def _repo_request(self, source: install_record.RepoSource, branch: str) -> RepoRequest:
        return repo_request(
            source.repo, source.skill, branch, path=source.folder, allow_file=self._settings.allow_file_repos
        )


class LocalSkills:
    """The skills below one folder, which is read and never written. All methods block."""

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
        source = install_record.LocalSource(top, offer.name, self._commit)
        return make_bundle(offer.name, source, None, entries, executable)

    def _listed(self) -> Iterable[str]:
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

    def _files(self, top: str) -> Iterable[str]:
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


class AskedOnce(AsyncExitStack):
    """Ask each repository, site and file once for all of the namespaces that came from it."""

    def __init__(self, sources: Sources, entries: Iterable[install_record.Entry]) -> None:
        super().__init__()
        self._sources = sources
        self._named = Counter(_shared_source(entry) for entry in entries)
        self._commits: dict[RepoTree, asyncio.Future[str]] = {}
        self._opened: dict[RepoTree | Site | DirectFile, asyncio.Future[OpenSource]] = {}

    async def current(self, entry: install_record.Entry) -> str:
        """Return the version or commit that an update would bring; as `Sources.current`."""
        shared = _shared_source(entry)
        if isinstance(shared, RepoTree):
            if shared not in self._commits:
                self._commits[shared] = asyncio.ensure_future(self._sources.current(entry))
            return await self._commits[shared]
        if shared is not None:
            return (await self.bundle(entry)).resolved
        return await self._sources.current(entry)

    async def bundle(self, entry: install_record.Entry) -> Bundle:
        """Fetch what an update of a namespace installs."""
        shared, request = _shared_source(entry), self._sources.request_for(entry)
        # A lone folder is fetched by itself: the list of all files of a large repository can be too long.
        if shared is None or self._named[shared] < 2 or isinstance(request, WorkerRequest):
            return await self._sources.bundle(request)
        if shared not in self._opened:
            opening = self.enter_async_context(self._sources.opened(shared))
            self._opened[shared] = asyncio.ensure_future(opening)
        return await _the_bundle(await self._opened[shared], request)


def _shared_source(entry: install_record.Entry) -> RepoTree | Site | DirectFile | None:
    """Return the source of a namespace that other namespaces may have in common with it."""
    source = entry.source
    if isinstance(source, install_record.RepoSource):
        return RepoTree(source.repo, source.branch)
    if isinstance(source, install_record.FileSource):
        return DirectFile(source.url)
    return Site(source.url) if isinstance(source, install_record.SiteSource) else None


async def _the_bundle(found: OpenSource, request: RepoRequest | OneOf) -> Bundle:
    """Read the one skill of an open source that a request means."""
    offers = found.found.offers
    if isinstance(request, RepoRequest):
        source, chosen = str(request), [Offer(request.skill, request.path or "")]
    elif isinstance(request.source, LocalFolder):
        # The folder is the skill's own, and keeps the name it was installed under.
        source = str(request.source)
        chosen = [replace(offer, name=request.skill) for offer in offers if offer.path == "."]
    elif isinstance(request.source, DirectFile) and not request.source.is_archive:
        source, chosen = str(request.source), [replace(offer, name=request.skill) for offer in offers]
    else:
        source = str(request.source)
        chosen = list(select(found.found, Wanted([request.skill]), source).chosen)
    async for _, bundle in found.bundles(chosen):
        if isinstance(bundle, DirectoryError):
            raise bundle
        return bundle
    raise DirectoryError(SOURCE_REFUSED, f"{source} has no one skill {quoted(request.skill)}")


def _one_by_one(found: Offered, read: Callable[[Offer], Awaitable[Bundle]]) -> OpenSource:
    async def bundles(chosen: Sequence[Offer]) -> AsyncIterator[Read]:
        for offer in chosen:
            try:
                yield offer, await read(offer)
            except DirectoryError as error:
                yield offer, error

    return OpenSource(found, bundles)


def _repo_bundle(repo: str, skill: str, branch: str, fetched: Fetched) -> Bundle:
    """Make the bundle of a folder of a repository; its path is recorded where it is not the usual one."""
    path = None if fetched.folder == f"skills/{skill}" else fetched.folder
    source = install_record.RepoSource(repo, skill, branch, fetched.commit, path)
    return make_bundle(skill, source, fetched.commit, fetched.entries, fetched.executable)
