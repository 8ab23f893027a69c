"""The workers registry as this program uses it: pages of workers, one worker's detail, and bundles."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from iii_directory import limits
from iii_directory.errors import REGISTRY_FAILED, REGISTRY_NOT_FOUND, DirectoryError
from iii_directory.registry import answers
from iii_directory.registry.http import get_json, make_client
from iii_directory.registry.requests import PageRequest
from iii_directory.registry.versions import can_be_version, is_version
from iii_directory.text import quoted, shown_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable
    from types import TracebackType

    import httpx2

    from iii_directory.registry.requests import WorkerRequest


Value = TypeVar("Value")


class AnswerCache(Generic[Value]):
    """Successes only; a failure is told to everyone who waited for it and forgotten."""

    def __init__(
        self,
        ttl_ms: int,
        *,
        size: int = limits.MAX_CACHED_ANSWERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl = ttl_ms / 1000
        self._size = size
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Task[Value]] = {}

    def keep_for(self, ttl_ms: int) -> None:
        """How long answers that come from now on are fresh."""
        self._ttl = ttl_ms / 1000

    def forget(self) -> None:
        """Every answer that was kept, and whatever is being asked for, is no longer wanted."""
        self._kept.clear()
        self._running.clear()

    async def get(self, key: Hashable, fetch: Callable[[], Awaitable[Value]]) -> Value:
        """The kept answer while it is fresh, else what ``fetch`` answers, asked once for all who wait."""
        kept = self._kept.get(key)
        if kept is not None and self._clock() < kept[0]:
            self._kept.move_to_end(key)
            return kept[1]
        task = self._running.get(key)
        if task is None:
            task = asyncio.ensure_future(self._fetch(key, fetch))
            self._running[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        # Whoever asked first may give up; the others still want the answer.
        return await asyncio.shield(task)

    async def _fetch(self, key: Hashable, fetch: Callable[[], Awaitable[Value]]) -> Value:
        value = await fetch()
        self._kept[key] = (self._clock() + self._ttl, value)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return value

    def _finished(self, key: Hashable, task: asyncio.Task[Value]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            # Looked at, so that a failure nobody waits for any more is not reported as forgotten.
            task.exception()


class RegistryClient:
    """One registry. Belongs to the event loop it is first used in; `close` it there."""

    def __init__(
        self, url: str, *, timeout_ms: int, cache_ttl_ms: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url.rstrip("/")
        self._timeout_ms = timeout_ms
        self._cache: AnswerCache[dict[str, Any]] = AnswerCache(cache_ttl_ms, clock=clock)
        self.seen: dict[str, dict[str, Any]] = {}
        """Published workers of the pages that were asked for, by their names; the newest answer of each."""
        self._client: httpx2.AsyncClient | None = None
        self._making = asyncio.Lock()

    def settings_changed(self, url: str, *, timeout_ms: int, cache_ttl_ms: int) -> None:
        """Ask another registry, or with other times, from now on; of another one nothing is known yet."""
        self._timeout_ms = timeout_ms
        self._cache.keep_for(cache_ttl_ms)
        if url.rstrip("/") != self._url:
            self._url = url.rstrip("/")
            self._cache.forget()
            self.seen.clear()

    @property
    def address(self) -> str:
        """The registry's address as records and errors may show it: without credentials and query."""
        return shown_url(self._url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def workers(self, request: PageRequest) -> dict[str, Any]:
        """``{workers, pagination}``: a page of what is published; cached."""
        return await self._cache.get(request, lambda: self._page(request))

    async def list_all(self) -> None:
        """Have every published worker in `seen`, page by page, as far as is kept."""
        cursor: str | None = None
        for _ in range(limits.MAX_REGISTRY_PAGES):
            page = await self.workers(PageRequest(cursor=cursor))
            cursor = page["pagination"]["next_cursor"]
            if cursor is None or len(self.seen) >= limits.MAX_PUBLISHED_WORKERS:
                return

    async def worker_info(self, request: WorkerRequest) -> dict[str, Any]:
        """``{worker, readme?, api_reference, skills_tree}`` of one worker; cached."""
        return await self._cache.get(request, lambda: self._info(request))

    async def bundle(self, request: WorkerRequest) -> answers.BundleAnswer:
        """The documents of one version; never from the cache, because they are going to be installed."""
        answer = await self._get(
            f"/w/{request.worker}/skills",
            {"version": request.asked},
            limits.MAX_REGISTRY_BUNDLE_BYTES,
            _named(request, "a bundle of skills for "),
        )
        bundle = answers.parse_bundle(answer, request.worker, request.asked)
        _check_version(request, bundle.version)
        return bundle

    async def current_version(self, request: WorkerRequest) -> str:
        """The version a request resolves to right now; not cached."""
        version = (await self._detail(request))["worker"]["version"]
        if version is None:
            raise DirectoryError(REGISTRY_FAILED, f"the registry gives {_named(request)} no version")
        _check_version(request, version)
        return version

    async def _page(self, request: PageRequest) -> dict[str, Any]:
        query = {"search": request.search, "cursor": request.cursor}
        sent = {name: value for name, value in query.items() if value is not None}
        page = answers.parse_page(await self._get("/w", sent, limits.MAX_REGISTRY_PAGE_BYTES, "the list"))
        self.seen |= {row["name"]: row for row in page["workers"]}
        while len(self.seen) > limits.MAX_PUBLISHED_WORKERS:
            del self.seen[next(iter(self.seen))]
        return page

    async def _info(self, request: WorkerRequest) -> dict[str, Any]:
        detail, tree = await asyncio.gather(self._detail(request), self._tree(request))
        return {**detail, "skills_tree": tree}

    async def _detail(self, request: WorkerRequest) -> dict[str, Any]:
        path, query = f"/w/{request.worker}", {"version": request.asked}
        answer = await self._get(path, query, limits.MAX_REGISTRY_DETAIL_BYTES, _named(request))
        return answers.parse_detail(answer, request.worker)

    async def _tree(self, request: WorkerRequest) -> dict[str, Any]:
        try:
            return answers.skills_tree(await self.bundle(request))
        except DirectoryError as error:
            if error.kind is not REGISTRY_NOT_FOUND:
                raise
            return answers.skills_tree(None)

    async def _get(self, path: str, query: dict[str, str], limit: int, what: str) -> Any:
        client = await self.connection()
        return await get_json(
            client, f"{self._url}{path}", query, limit=limit, timeout_ms=self._timeout_ms, what=what
        )

    async def connection(self) -> httpx2.AsyncClient:
        """The HTTP client, made when it is first needed."""
        async with self._making:
            if self._client is None:
                # Importing the library and reading certificates takes a tenth of a second, which others feel.
                self._client = await asyncio.to_thread(make_client)
            return self._client


def _named(request: WorkerRequest, prefix: str = "") -> str:
    return f"{prefix}the worker {quoted(request.worker)} at {quoted(request.asked)}"


def _check_version(request: WorkerRequest, answered: str) -> None:
    """An exact version is answered with that version: anything else is a mix-up, or an attack."""
    if not can_be_version(answered):
        raise DirectoryError(
            REGISTRY_FAILED,
            f"the registry gives {_named(request)} a version that can be none: {quoted(answered)}",
        )
    if request.version is not None and is_version(request.version) and answered != request.version:
        raise DirectoryError(
            REGISTRY_FAILED,
            f"the registry answered with version {quoted(answered)} instead of {quoted(request.version)}",
        )
