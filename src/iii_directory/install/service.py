"""The installer: what the worker and the command line call. Blocking work happens in threads."""

from __future__ import annotations

import asyncio
import time
from functools import cached_property
from typing import TYPE_CHECKING

from iii_directory import limits
from iii_directory.errors import REGISTRY_NOT_FOUND, SOURCE_FAILED, DirectoryError, refused
from iii_directory.install.bundle import news_of
from iii_directory.install.folder import SkillsFolder
from iii_directory.install.plan import check_namespace, is_pinned, plan_install
from iii_directory.install.process import Threads
from iii_directory.install.reports import Added, Installation, Preview, added, installation, unified_diff
from iii_directory.install.tree import silent
from iii_directory.install.writes import Writes
from iii_directory.lockfile.format import By, RegistrySource
from iii_directory.registry.client import RegistryClient
from iii_directory.registry.requests import WorkerRequest, worker_request
from iii_directory.text import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iii_directory.config import Settings
    from iii_directory.disk.files import FolderAtStart
    from iii_directory.install.bundle import Approve, Bundle, Offer
    from iii_directory.install.plan import EditedFiles
    from iii_directory.install.requests import DownloadRequest, LocalFolder, RepoTree, Site
    from iii_directory.install.sources import Sources
    from iii_directory.install.tree import Progress
    from iii_directory.install.upkeep import Upkeep
    from iii_directory.lockfile.format import Entry


def _now() -> str:
    return rfc3339(time.time_ns())


class Installer:
    """Installs into the skills folder of the settings. Belongs to one event loop, as its client does.

    ``folder`` is the skills folder as it was when a worker started: what took its place is not written to.
    ``by_operator`` is for commands that somebody types here: they may reach where calls may not.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        registry: RegistryClient | None = None,
        folder: FolderAtStart | None = None,
        by_operator: bool = False,
        now: Callable[[], str] = _now,
    ) -> None:
        self._settings = settings
        self._by_operator = by_operator
        self._own_registry = registry is None
        self._registry = registry or RegistryClient(
            settings.registry_url,
            timeout_ms=settings.download_timeout_ms,
            cache_ttl_ms=settings.registry_cache_ttl_ms,
        )
        self._folder = SkillsFolder(folder or settings.skills_folder)
        self._threads = Threads("download")
        self._now = now
        self._absent: dict[str, float] = {}
        self.approve: Approve | None = None
        """Asked before an install or an update that can do something new; None to go on and report it."""
        self.writes = Writes(self._folder, now)
        """For single documents."""

    @cached_property
    def upkeep(self) -> Upkeep:
        """For what is installed already."""
        from iii_directory.install.upkeep import Upkeep

        return Upkeep(self._folder, self._sources, self._threads, self._now, self.approve)

    @cached_property
    def _sources(self) -> Sources:
        # Git, archives and the web: a worker starts without them.
        from iii_directory.install.sources import Sources

        return Sources(self._settings, self._registry, by_operator=self._by_operator)

    async def close(self) -> None:
        """Let go of the threads, and of the registry client unless it was given to us."""
        self._threads.close()
        self.writes.close()
        if "_sources" in vars(self):
            self._sources.close()
        if self._own_registry:
            await self._registry.close()

    def settings_changed(self) -> None:
        """Go by what the settings say now."""
        self._sources.settings_changed()

    async def recover(self) -> None:
        """Put right what crashed installs left; to be awaited at every start."""
        await self._threads.run(self._folder.recover)

    async def download(
        self,
        request: DownloadRequest,
        *,
        edited: EditedFiles = "overwrite",
        allow_downgrade: bool = False,
        progress: Progress = silent,
    ) -> Installation:
        """Install what a checked request stands for; the phases of its progress are "fetch" and "write"."""
        with self._threads.room(limits.MAX_DOWNLOADS_AT_ONCE, SOURCE_FAILED):
            progress("fetch", 0, 0)
            bundle = await self._sources.bundle(request)
            rules = {"explicit": _is_explicit(request), "allow_downgrade": allow_downgrade}
            return await self._threads.run(self._install, bundle, "call", edited, progress, **rules)

    async def preview(
        self, request: DownloadRequest, *, edited: EditedFiles = "overwrite", allow_downgrade: bool = False
    ) -> Preview:
        """What `download` would do, with a diff, and without doing it."""
        with self._threads.room(limits.MAX_DOWNLOADS_AT_ONCE, SOURCE_FAILED):
            bundle = await self._sources.bundle(request)
            rules = {"explicit": _is_explicit(request), "allow_downgrade": allow_downgrade}
            return await self._threads.run(self._preview, bundle, edited, **rules)

    async def offers(self, source: RepoTree | LocalFolder | Site) -> Sequence[Offer]:
        """The skills a source has; nothing is installed."""
        with self._threads.room(limits.MAX_DOWNLOADS_AT_ONCE, SOURCE_FAILED):
            async with self._sources.opened(source) as found:
                return found.offers

    async def add(
        self,
        source: RepoTree | LocalFolder | Site,
        wanted: Sequence[str] = (),
        *,
        everything: bool = False,
        dry_run: bool = False,
        edited: EditedFiles = "keep",
        progress: Progress = silent,
    ) -> tuple[Sequence[Offer], Added]:
        """Install skills of a source that is fetched once: the wanted ones, all, or the only one.

        Each becomes a namespace of its own; one that cannot be installed does not hold up the others.
        """
        progress("fetch", 0, 0)
        done: dict[Offer, Installation | Preview | DirectoryError] = {}
        turn = asyncio.Semaphore(limits.PARALLEL_DOWNLOADS)

        async def one(offer: Offer, bundle: Bundle | DirectoryError) -> None:
            try:
                done[offer] = await self._add(bundle, edited, dry_run=dry_run)
            except DirectoryError as error:
                done[offer] = error
            finally:
                turn.release()
            progress("write", len(done), len(selection.chosen))

        from iii_directory.install.bundle import select

        async with self._sources.opened(source) as found:
            selection = select(found.offers, wanted, everything=everything, source=str(source))
            waiting = list(selection.chosen)
            # The disk takes several at a time in little more time than one; each is a namespace of its own.
            async with asyncio.TaskGroup() as tasks:
                try:
                    async for offer, bundle in found.bundles(selection.chosen):
                        await turn.acquire()
                        waiting.remove(offer)
                        tasks.create_task(one(offer, bundle))
                except DirectoryError as error:
                    done.update(dict.fromkeys(waiting, error))
        return found.offers, added(selection, done)

    async def _add(
        self, bundle: Bundle | DirectoryError, edited: EditedFiles, *, dry_run: bool
    ) -> Installation | Preview:
        if isinstance(bundle, DirectoryError):
            raise bundle
        check_namespace(bundle.namespace)
        if dry_run:
            return await self._threads.run(self._preview, bundle, edited)
        return await self._threads.run(self._install, bundle, "call", edited, silent)

    async def auto_download(self, worker: str) -> Installation | None:
        """Bring an installed worker's skills up to date; None when there is nothing to do or to be had.

        What someone pinned or took from a repository is theirs and left alone; a tag they chose is kept.
        A worker without skills in the registry is not asked for again for an hour.
        """
        request = worker_request(worker)
        entry = await self._installed_entry(worker)
        if entry is not None and isinstance(entry.source, RegistrySource):
            request = worker_request(worker, tag=entry.source.tag)
        if entry is not None and _is_theirs(entry):
            return None
        if self._absent.get(worker, 0.0) > time.monotonic():
            return None
        if entry is not None and await self._is_current(request, entry):
            return None
        try:
            bundle = await self._sources.bundle(request)
        except DirectoryError as error:
            if error.kind is not REGISTRY_NOT_FOUND:
                raise
            self._absent[worker] = time.monotonic() + limits.ABSENT_WORKER_SECONDS
            return None
        if entry is not None and bundle.resolved == entry.resolved:
            return None
        return await self._threads.run(self._install, bundle, "auto", "keep", silent)

    async def _is_current(self, request: WorkerRequest, entry: Entry) -> bool:
        """Whether the registry says, without sending the bundle, that it has the same version."""
        try:
            return await self._registry.current_version(request) == entry.resolved
        except DirectoryError:
            # Only the bundle matters: it may be there, and if not, its failure is the one to tell.
            return False

    async def _installed_entry(self, namespace: str) -> Entry | None:
        """The record of a namespace that is really there; without its folder it counts as not installed."""
        disk, entry = await self._threads.run(self._folder.look, namespace, ())
        return entry if disk.exists else None

    def _install(
        self, bundle: Bundle, by: By, edited: EditedFiles, progress: Progress, **rules: bool
    ) -> Installation:
        news = news_of(bundle, self._folder.facts(bundle.namespace))
        if news and self.approve is not None and not self.approve(bundle.namespace, news):
            raise refused(f"{bundle.namespace} was not approved; nothing was changed")
        with self._folder.locked(bundle.namespace, bundle.files) as found:
            plan = plan_install(
                bundle, found.disk, found.known, edited=edited, by=by, now=self._now(), **rules
            )
            found.commit(plan, progress)
        return installation(bundle, plan, news)

    def _preview(self, bundle: Bundle, edited: EditedFiles, **rules: bool) -> Preview:
        disk, known = self._folder.look(bundle.namespace, bundle.files)
        plan = plan_install(bundle, disk, known, edited=edited, by="call", now=self._now(), **rules)
        old = {path: self._folder.read(bundle.namespace, path) for path in plan.writes}
        diff = unified_diff(bundle.namespace, [(path, old[path], new) for path, new in plan.writes.items()])
        news = news_of(bundle, self._folder.facts(bundle.namespace))
        return Preview(bundle.namespace, bundle.resolved, plan.changes, bundle.left_out, diff, news)


def _is_explicit(request: DownloadRequest) -> bool:
    """Whether the caller named the version they want; ``latest`` leaves the choice to the registry."""
    return isinstance(request, WorkerRequest) and request.asked != "latest"


def _is_theirs(entry: Entry) -> bool:
    return entry.by == "call" and (is_pinned(entry) or not isinstance(entry.source, RegistrySource))
