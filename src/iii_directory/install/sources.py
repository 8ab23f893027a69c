"""Where bundles come from: the registry and git, behind one door."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from iii_directory.documents.ids import RESERVED_NAMESPACES
from iii_directory.errors import refused
from iii_directory.install.bundle import Bundle, make_bundle, registry_bundle
from iii_directory.install.git import GitSource
from iii_directory.install.requests import RepoRequest, is_commit, repo_request
from iii_directory.install.threads import Threads
from iii_directory.lockfile.format import Entry, RegistrySource, RepoSource
from iii_directory.registry.requests import WorkerRequest, worker_request
from iii_directory.registry.versions import is_version
from iii_directory.text import quoted

if TYPE_CHECKING:
    from iii_directory.config import Settings
    from iii_directory.install.requests import DownloadRequest
    from iii_directory.registry.client import RegistryClient


class Sources:
    """Fetches bundles under the rules of the settings."""

    def __init__(self, settings: Settings, registry: RegistryClient, *, by_operator: bool = False) -> None:
        self._registry = registry
        self._threads = Threads("git")
        self._allow_file = settings.allow_file_repos
        self._git = GitSource(
            mirrors=settings.repo_mirrors,
            allow_file=settings.allow_file_repos,
            timeout_ms=settings.download_timeout_ms,
            private=by_operator or settings.allow_private_repos,
            ssh_keys=by_operator or settings.allow_ssh_keys,
        )

    def close(self) -> None:
        self._threads.close()

    async def bundle(self, request: DownloadRequest) -> Bundle:
        """What a request stands for right now, checked and ready to install."""
        namespace = request.worker if isinstance(request, WorkerRequest) else request.skill
        if namespace in RESERVED_NAMESPACES:
            raise refused(f"the namespace {quoted(namespace)} is reserved: nothing is downloaded into it")
        if isinstance(request, WorkerRequest):
            answer = await self._registry.bundle(request)
            source = RegistrySource(request.worker, request.version, request.tag)
            return await asyncio.to_thread(registry_bundle, source, request.worker, answer)
        return await self._threads.run(self._repo_bundle, request)

    async def recorded(self, entry: Entry) -> Bundle:
        """Exactly what was installed, from where it came."""
        return await self.bundle(self._recorded_request(entry))

    async def current(self, entry: Entry) -> str:
        """The version or commit that an update would bring; for a pinned version, the latest there is."""
        source = entry.source
        if isinstance(source, RegistrySource):
            return await self._registry.current_version(worker_request(source.worker, tag=source.tag))
        return await self._threads.run(self._git.resolve, self._repo_request(source, source.branch))

    def request_for(self, entry: Entry) -> DownloadRequest:
        """What an update of a namespace asks for."""
        source = entry.source
        if isinstance(source, RegistrySource):
            return worker_request(source.worker, source.version, source.tag)
        return self._repo_request(source, source.branch)

    def _recorded_request(self, entry: Entry) -> DownloadRequest:
        source = entry.source
        if isinstance(source, RepoSource):
            return self._repo_request(source, source.commit)
        if is_version(entry.resolved):
            return worker_request(source.worker, entry.resolved)
        return worker_request(source.worker, source.version, source.tag)

    def _repo_request(self, source: RepoSource, branch: str) -> RepoRequest:
        return repo_request(source.repo, source.skill, branch, allow_file=self._allow_file)

    def _repo_bundle(self, request: RepoRequest) -> Bundle:
        fetched = self._git.fetch(request)
        source = RepoSource(request.repo, request.skill, request.branch, fetched.commit)
        return make_bundle(request.skill, source, fetched.commit, fetched.entries)


def is_pinned(entry: Entry) -> bool:
    """Whether the source names one state for good, so that there is nothing to update to."""
    source = entry.source
    return source.version is not None if isinstance(source, RegistrySource) else is_commit(source.branch)
