"""Where bundles come from: the registry, git, folders and sites, behind one door."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections import Counter
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeVar

from iii_directory.errors import SOURCE_REFUSED, DirectoryError, refused
from iii_directory.install.bundle import Bundle, Offer, make_bundle, registry_bundle, select
from iii_directory.install.git import Checkout, Fetched, GitSource
from iii_directory.install.local import LocalSkills
from iii_directory.install.plan import check_namespace, check_registry
from iii_directory.install.process import Threads
from iii_directory.install.requests import (
    LocalFolder,
    OneOf,
    RepoRequest,
    RepoTree,
    Site,
    repo_request,
)
from iii_directory.install.site import SiteSkills
from iii_directory.lockfile.format import (
    Entry,
    LocalSource,
    RegistrySource,
    RepoSource,
    SiteSource,
    WrittenSource,
)
from iii_directory.registry.requests import WorkerRequest, worker_request
from iii_directory.registry.versions import is_version
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence

    from iii_directory.config import Settings
    from iii_directory.install.requests import DownloadRequest
    from iii_directory.registry.client import RegistryClient

Result = TypeVar("Result")
# What an offer came to.
Read: TypeAlias = "tuple[Offer, Bundle | DirectoryError]"


class Collection(Protocol):
    """A source that was asked once for what it has."""

    @property
    def offers(self) -> Sequence[Offer]: ...

    def bundles(self, chosen: Sequence[Offer]) -> AsyncIterator[Read]:
        """What to install for each of the offers as it is read, or why it cannot be."""
        ...


class Sources:
    """Fetches bundles under the rules of the settings."""

    def __init__(self, settings: Settings, registry: RegistryClient, *, by_operator: bool = False) -> None:
        self._registry = registry
        self._threads = Threads("git")
        self._settings = settings
        self._by_operator = by_operator
        self.settings_changed()

    def settings_changed(self) -> None:
        """Fetch under other rules from now on; what is under way goes on under its own."""
        settings = self._settings
        self._git = GitSource(
            mirrors=settings.repo_mirrors,
            allow_file=settings.allow_file_repos,
            timeout_ms=settings.download_timeout_ms,
            private=self._by_operator or settings.allow_private_repos,
            ssh_keys=self._by_operator or settings.allow_ssh_keys,
        )

    def close(self) -> None:
        self._threads.close()

    async def bundle(self, request: DownloadRequest) -> Bundle:
        """What a request stands for right now, checked and ready to install."""
        check_namespace(request.worker if isinstance(request, WorkerRequest) else request.skill)
        if isinstance(request, WorkerRequest):
            source = RegistrySource(request.worker, request.version, request.tag, self._registry.address)
            answer = await self._registry.bundle(request)
            return await asyncio.to_thread(registry_bundle, source, request.worker, answer)
        if isinstance(request, RepoRequest):
            return await self.in_thread(lambda stopped: self._repo_bundle(request, stopped))
        async with self.opened(request.source) as found:
            if isinstance(request.source, LocalFolder):
                # The folder is the skill's own, and keeps the name it was installed under.
                chosen = [replace(offer, name=request.skill) for offer in found.offers if offer.path == "."]
            else:
                wanted = [request.skill]
                chosen = select(found.offers, wanted, everything=False, source=str(request.source)).chosen
            missing = f"{request.source} has no one skill {quoted(request.skill)}"
            return await _only(found.bundles(chosen), missing)

    @asynccontextmanager
    async def opened(self, source: RepoTree | LocalFolder | Site) -> AsyncGenerator[Collection]:
        """A source asked once, for as many of its skills as are wanted."""
        if isinstance(source, Site):
            client = await self._registry.connection()
            site = SiteSkills(source, client, self._settings.download_timeout_ms, self)
            await site.look()
            yield site
        elif isinstance(source, LocalFolder):
            yield _Local(self, await self.in_thread(lambda _: LocalSkills(source)))
        else:
            with ExitStack() as stack:
                stopped = threading.Event()
                opened = self._git.opened(source, stopped)
                checkout = await self.in_thread(lambda _: stack.enter_context(opened), stopped)
                yield _Repository(self, source.repo, checkout, stopped)

    async def in_thread(
        self, act: Callable[[threading.Event], Result], stopped: threading.Event | None = None
    ) -> Result:
        """Run work that blocks; when the caller is cancelled, end the work and wait until it has ended.

        Work ends early when the event that it is given is set.
        """
        stopped = stopped or threading.Event()
        work = asyncio.ensure_future(self._threads.run(act, stopped))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stopped.set()
            await asyncio.wait([work])
            raise

    def asked_once(self, entries: Iterable[Entry]) -> AskedOnce:
        """Prepare to ask each source of some namespaces once."""
        return AskedOnce(self, entries)

    async def recorded(self, entry: Entry) -> Bundle:
        """Exactly what was installed, from where it came."""
        return await self.bundle(self._recorded_request(entry))

    async def current(self, entry: Entry) -> str:
        """The version or commit that an update would bring; for a pinned version, the latest there is."""
        source = entry.source
        if isinstance(source, RegistrySource):
            check_registry(source._replace(registry=self._registry.address), source)
            return await self._registry.current_version(worker_request(source.worker, tag=source.tag))
        if isinstance(source, RepoSource):
            request = self._repo_request(source, source.branch)
            return await self.in_thread(lambda stopped: self._git.resolve(request, stopped))
        if isinstance(source, WrittenSource):
            return entry.resolved
        return (await self.bundle(self.request_for(entry))).resolved

    def request_for(self, entry: Entry) -> DownloadRequest:
        """What an update of a namespace asks for."""
        source = entry.source
        if isinstance(source, RegistrySource):
            return worker_request(source.worker, source.version, source.tag)
        if isinstance(source, RepoSource):
            return self._repo_request(source, source.branch)
        if isinstance(source, LocalSource):
            return OneOf(LocalFolder(source.path), source.skill)
        if isinstance(source, WrittenSource):
            raise refused("it was written here, so there is no source that has it")
        return OneOf(Site(source.url), source.skill)

    def _recorded_request(self, entry: Entry) -> DownloadRequest:
        source = entry.source
        if isinstance(source, RepoSource):
            return self._repo_request(source, source.commit)
        if isinstance(source, RegistrySource) and is_version(entry.resolved):
            return worker_request(source.worker, entry.resolved)
        return self.request_for(entry)

    def _repo_request(self, source: RepoSource, branch: str) -> RepoRequest:
        return repo_request(
            source.repo, source.skill, branch, path=source.folder, allow_file=self._settings.allow_file_repos
        )

    def _repo_bundle(self, request: RepoRequest, stopped: threading.Event) -> Bundle:
        return _repo_bundle(request.repo, request.skill, request.branch, self._git.fetch(request, stopped))


class AskedOnce:
    """Sources for one look after many namespaces: each repository and site is asked once, for all of them."""

    def __init__(self, sources: Sources, entries: Iterable[Entry]) -> None:
        self._sources = sources
        self._named = Counter(_asked_of(entry) for entry in entries)
        self._commits: dict[RepoTree, asyncio.Future[str]] = {}
        self._opened: dict[RepoTree | Site, asyncio.Future[Collection]] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def current(self, entry: Entry) -> str:
        """Return the version or commit that an update would bring; as `Sources.current`."""
        asked = _asked_of(entry)
        if isinstance(asked, RepoTree):
            if asked not in self._commits:
                self._commits[asked] = asyncio.ensure_future(self._sources.current(entry))
            return await self._commits[asked]
        if isinstance(asked, Site):
            return (await self.bundle(entry)).resolved
        return await self._sources.current(entry)

    async def bundle(self, entry: Entry) -> Bundle:
        """Fetch what an update of a namespace installs."""
        asked, request = _asked_of(entry), self._sources.request_for(entry)
        # A lone folder is fetched by itself: the list of all files of a large repository can be too long.
        if asked is None or self._named[asked] < 2 or isinstance(request, WorkerRequest):
            return await self._sources.bundle(request)
        if asked not in self._opened:
            opening = self._stack.enter_async_context(self._sources.opened(asked))
            self._opened[asked] = asyncio.ensure_future(opening)
        found = await self._opened[asked]
        if isinstance(request, RepoRequest):
            chosen = [Offer(request.skill, request.path or "")]
        else:
            wanted = [request.skill]
            chosen = select(found.offers, wanted, everything=False, source=str(asked)).chosen
        return await _only(found.bundles(chosen), f"{asked} has no one skill {quoted(request.skill)}")


def _asked_of(entry: Entry) -> RepoTree | Site | None:
    """The repository or site of a namespace, which others may have in common with it."""
    source = entry.source
    if isinstance(source, RepoSource):
        return RepoTree(source.repo, source.branch)
    return Site(source.url) if isinstance(source, SiteSource) else None


async def _only(bundles: AsyncIterator[Read], missing: str) -> Bundle:
    async for _, bundle in bundles:
        if isinstance(bundle, DirectoryError):
            raise bundle
        return bundle
    raise DirectoryError(SOURCE_REFUSED, missing)


class _Repository:
    """The skills of a repository that was fetched."""

    def __init__(self, sources: Sources, repo: str, checkout: Checkout, stopped: threading.Event) -> None:
        self.offers: Sequence[Offer] = checkout.offers
        self._sources = sources
        self._stopped = stopped
        self._repo = repo
        self._checkout = checkout

    async def bundles(self, chosen: Sequence[Offer]) -> AsyncIterator[Read]:
        offers = {offer.path: offer for offer in chosen}
        folders = self._checkout.read(offers)
        while (
            found := await self._sources.in_thread(lambda _: next(folders, None), self._stopped)
        ) is not None:
            folder, fetched = found
            yield offers[folder], _attempted(functools.partial(self._bundle, offers[folder], fetched))

    def _bundle(self, offer: Offer, fetched: Fetched | DirectoryError) -> Bundle:
        if isinstance(fetched, DirectoryError):
            raise fetched
        return _repo_bundle(self._repo, offer.name, self._checkout.branch, fetched)


class _Local:
    """The skills of a folder of this machine."""

    def __init__(self, sources: Sources, skills: LocalSkills) -> None:
        self.offers: Sequence[Offer] = skills.offers
        self._sources = sources
        self._skills = skills

    async def bundles(self, chosen: Sequence[Offer]) -> AsyncIterator[Read]:
        for offer in chosen:
            read = functools.partial(self._skills.bundle, offer)
            yield offer, await self._sources.in_thread(lambda _, read=read: _attempted(read))


def _attempted(make: Callable[[], Bundle]) -> Bundle | DirectoryError:
    try:
        return make()
    except DirectoryError as error:
        return error


def _repo_bundle(repo: str, skill: str, branch: str, fetched: Fetched) -> Bundle:
    """The bundle in a folder of a repository; its path is recorded where it is not the usual one."""
    path = None if fetched.folder == f"skills/{skill}" else fetched.folder
    source = RepoSource(repo, skill, branch, fetched.commit, path)
    return make_bundle(skill, source, fetched.commit, fetched.entries, fetched.executable)
