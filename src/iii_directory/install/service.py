"""Install, for the worker and for the command line. Blocking work happens in threads."""

from __future__ import annotations

import asyncio
import time
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from iii_directory import limits
from iii_directory.disk.install_record import By, RegistrySource
from iii_directory.errors import REGISTRY_NOT_FOUND, SOURCE_FAILED, DirectoryError
from iii_directory.install.bundle import Offered, Wanted, check_approved, news_of, select
from iii_directory.install.plan import check_namespace, is_pinned, plan_install
from iii_directory.install.process import Threads
from iii_directory.install.reports import Added, Installation, Preview, installation, unified_diff
from iii_directory.install.skills_folder import SkillsFolder
from iii_directory.install.tree import silent
from iii_directory.install.writes import Writes
from iii_directory.registry.registry_client import RegistryClient
from iii_directory.registry.registry_messages import WorkerRequest, worker_request
from iii_directory.text import rfc3339

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from iii_directory.config import Settings
    from iii_directory.disk.files import FolderAtStart
    from iii_directory.install.bundle import Approve, Bundle, Offer
    from iii_directory.install.plan import EditedFiles
    from iii_directory.install.requests import DownloadRequest, SkillSource
    from iii_directory.install.sources import Sources
    from iii_directory.install.tree import Progress
    from iii_directory.install.upkeep import Upkeep

Result = TypeVar("Result")


def _now() -> str:
    return rfc3339(time.time_ns())


class Installer:
    """Installs into the skills folder of the settings. Belongs to one event loop, as its client does.

    ``folder`` is the skills folder as it was when a worker started: a folder that replaced it later is not
    written to. ``by_operator`` is for commands typed on this machine: they may reach private addresses.
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
        self._given_registry = registry
        self._folder = SkillsFolder(folder or settings.skills_folder)
        self._threads = Threads("download")
        self._now = now
        self._absent: dict[str, float] = {}
        self.approve: Approve | None = None
        """Asked before an install or an update that can do something new; None to go on and report it."""
        self.writes = Writes(self._folder, now)
        """For single files."""

    @cached_property
    def upkeep(self) -> Upkeep:
        """For what is installed already."""
        from iii_directory.install.upkeep import Upkeep

        return Upkeep(self._folder, self._sources, self._threads, self._now, self.approve)

    @cached_property
    def _registry(self) -> RegistryClient:
        # Most commands never ask a registry.
        return self._given_registry or RegistryClient(
            self._settings.registry_url,
            timeout_ms=self._settings.download_timeout_ms,
            cache_ttl_ms=self._settings.registry_cache_ttl_ms,
        )

    @cached_property
    def _sources(self) -> Sources:
        # Git, archives and the web: a worker starts without them.
        from iii_directory.install.sources import Sources

        return Sources(self._settings, lambda: self._registry, by_operator=self._by_operator)

    async def close(self) -> None:
        """End the threads, and close the registry client unless it was given to us."""
        self._threads.close()
        self.writes.close()
        if "_sources" in vars(self):
            self._sources.close()
        if "_registry" in vars(self) and self._given_registry is None:
            await self._registry.aclose()

    async def recover(self) -> None:
        """Repair what crashed installs left; to be awaited at every start."""
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
        """Return what `download` would do, with a diff, without doing it."""
        with self._threads.room(limits.MAX_DOWNLOADS_AT_ONCE, SOURCE_FAILED):
            bundle = await self._sources.bundle(request)
            rules = {"explicit": _is_explicit(request), "allow_downgrade": allow_downgrade}
            return await self._threads.run(self._preview, bundle, edited, **rules)

    async def offers(self, source: SkillSource) -> Offered:
        """List the skills of a source; nothing is installed."""
        with self._threads.room(limits.MAX_DOWNLOADS_AT_ONCE, SOURCE_FAILED):
            async with self._sources.opened(source) as opened:
                return opened.found

    async def fetch(self, source: WorkerRequest | SkillSource, asked: Wanted) -> tuple[Offered, list[Bundle]]:
        """Fetch skills of a source without installing them; none where it is not clear which are meant."""
        if isinstance(source, WorkerRequest):
            return Offered(()), [await self._sources.bundle(source)]
        bundles: list[Bundle] = []
        async with self._sources.opened(source) as opened:
            async for _, bundle in opened.bundles(select(opened.found, asked, str(source)).chosen):
                if isinstance(bundle, DirectoryError):
                    raise bundle
                bundles.append(bundle)
        return opened.found, bundles

    async def add(
        self,
        source: SkillSource,
        asked: Wanted,
        *,
        dry_run: bool = False,
        edited: EditedFiles = "keep",
        progress: Progress = silent,
    ) -> tuple[Offered, Added]:
        """Install skills of a source that is fetched once.

        Each becomes a namespace of its own; one that cannot be installed does not hold up the others.
        """
        progress("fetch", 0, 0)
        done: dict[Offer, Installation | Preview | DirectoryError] = {}
        turn = asyncio.Semaphore(limits.PARALLEL_DOWNLOADS)

        async def one(offer: Offer, bundle: Bundle | DirectoryError) -> None:
            try:
                if isinstance(bundle, DirectoryError):
                    raise bundle
                check_namespace(bundle.namespace)
                if dry_run:
                    done[offer] = await self._threads.run(self._preview, bundle, edited)
                else:
                    done[offer] = await self._threads.run(self._install, bundle, "call", edited, silent)
            except DirectoryError as error:
                done[offer] = error
            finally:
                turn.release()
            progress("write", len(done), len(selection.chosen))

        async with self._sources.opened(source) as opened:
            selection = select(opened.found, asked, str(source))
            waiting = list(selection.chosen)
            # The disk takes several at a time in little more time than one; each is a namespace of its own.
            async with asyncio.TaskGroup() as tasks:
                try:
                    async for offer, bundle in opened.bundles(selection.chosen):
                        await turn.acquire()
                        waiting.remove(offer)
                        tasks.create_task(one(offer, bundle))
                except DirectoryError as error:
                    done.update(dict.fromkeys(waiting, error))
        results = [(offer.name, done[offer]) for offer in selection.chosen]
        failed = {name: one for name, one in results if isinstance(one, DirectoryError)}
        return opened.found, Added(
            selection=selection,
            installed=tuple(one for _, one in results if isinstance(one, Installation)),
            previews=tuple(one for _, one in results if isinstance(one, Preview)),
            failed=failed,
            is_complete=not (failed or selection.ambiguous or selection.unfit),
        )

    async def auto_download(self, worker: str) -> Installation | None:
        """Bring an installed worker's skills up to date; None when there is nothing to install.

        A namespace that a caller pinned or took from a repository is left alone; a chosen tag is kept. A
        worker without skills in the registry is not asked for again for an hour.
        """
        # A name that cannot be a worker's is refused before it reaches the disk.
        request = worker_request(worker)
        disk, entry = await self._threads.run(self._folder.look, worker, ())
        # Without its folder a recorded namespace counts as not installed.
        entry = entry if disk.exists else None
        source = None if entry is None else entry.source
        request = worker_request(worker, tag=source.tag) if isinstance(source, RegistrySource) else request
        stays = entry is not None and (is_pinned(entry) or not isinstance(source, RegistrySource))
        if entry is not None and entry.by == "call" and stays:
            return None
        if self._absent.get(worker, 0.0) > time.monotonic():
            return None
        try:
            # The version alone is a far smaller answer than the bundle.
            if entry is not None and await self._registry.current_version(request) == entry.resolved:
                return None
        except DirectoryError:
            # Only the bundle matters: it may be there, and if not, its failure is the one to report.
            pass
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

    def _install(
        self, bundle: Bundle, by: By, edited: EditedFiles, progress: Progress, **rules: bool
    ) -> Installation:
        news = news_of(bundle, *self._folder.facts(bundle.namespace))
        check_approved(self.approve, bundle.namespace, news)
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
        news = news_of(bundle, *self._folder.facts(bundle.namespace))
        installed = known.resolved if known is not None and disk.exists else None
        return Preview(
            bundle.namespace, bundle.resolved, plan.changes, bundle.left_out, diff, news, installed
        )


async def with_installer(
    settings: Settings, act: Callable[[Installer], Awaitable[Result]], approve: Approve | None
) -> Result:
    """Do one thing with an installer of its own, for a command."""
    installer = Installer(settings, by_operator=True)
    installer.approve = approve
    try:
        await installer.recover()
        return await act(installer)
    finally:
        await installer.close()


def _is_explicit(request: DownloadRequest) -> bool:
    """Return whether the caller named a version; ``latest`` leaves the choice to the registry."""
    return isinstance(request, WorkerRequest) and request.asked != "latest"
