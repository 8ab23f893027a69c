"""Ask a workers registry over HTTP: pages of workers, one worker's detail, and bundles.

Every request is bounded in time, size and place. Errors never carry an address: the registry's may hold a
secret, and a caller can do nothing with it.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from iii_directory import limits
from iii_directory.errors import REGISTRY_FAILED, REGISTRY_NOT_FOUND, DirectoryError
from iii_directory.registry import registry_messages
from iii_directory.registry.registry_messages import PageRequest, can_be_version, is_version
from iii_directory.text import quoted, shown_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping

    import httpx2

    from iii_directory.errors import ErrorKind
    from iii_directory.registry.registry_messages import WorkerRequest


Value = TypeVar("Value")


class AnswerCache(Generic[Value]):
    """Caches answers for some time; a failure is raised to all who wait for it, and not kept."""

    def __init__(
        self,
        ttl_ms: int,
        *,
        size: int = limits.MAX_CACHED_ANSWERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ttl_ms = ttl_ms
        """How long answers that come from now on are fresh."""
        self._size = size
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Task[Value]] = {}

    def forget(self) -> None:
        """Drop every answer, and do not keep those that are being fetched."""
        self._kept.clear()
        self._running.clear()

    async def get(self, key: Hashable, fetch: Callable[[], Awaitable[Value]]) -> Value:
        """Return the kept answer while it is fresh, else fetch it once for all who wait."""
        kept = self._kept.get(key)
        if kept is not None and self._clock() < kept[0]:
            self._kept.move_to_end(key)
            return kept[1]
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(fetch())
            task.add_done_callback(lambda done: self._finished(key, done))
        # The first caller may give up; the others still want the answer.
        return await asyncio.shield(task)

    def _finished(self, key: Hashable, task: asyncio.Task[Value]) -> None:
        # Read the failure, so that asyncio does not report it as never retrieved if every caller gave up.
        has_failed = task.cancelled() or task.exception() is not None
        if self._running.get(key) is not task:
            # It was forgotten while it was fetched.
            return
        del self._running[key]
        if not has_failed:
            self._kept[key] = (self._clock() + self.ttl_ms / 1000, task.result())
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)


class RegistryClient:
    """Asks one registry. It belongs to the event loop that uses it first; `aclose` it there."""

    def __init__(
        self, url: str, *, timeout_ms: int, cache_ttl_ms: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url.rstrip("/")
        self._timeout_ms = timeout_ms
        self._cache: AnswerCache[dict[str, Any]] = AnswerCache(cache_ttl_ms, clock=clock)
        self.seen: dict[str, dict[str, Any]] = {}
        """The published workers of all pages that were fetched, by name; the newest answer about each."""
        self._client: httpx2.AsyncClient | None = None
        self._making = asyncio.Lock()

    def settings_changed(self, url: str, *, timeout_ms: int, cache_ttl_ms: int) -> None:
        """Ask another registry, or with other times, from now on."""
        self._timeout_ms = timeout_ms
        self._cache.ttl_ms = cache_ttl_ms
        if url.rstrip("/") != self._url:
            self._url = url.rstrip("/")
            self._cache.forget()
            self.seen.clear()

    @property
    def address(self) -> str:
        """Return the registry's address as records and errors may show it: without credentials."""
        return shown_url(self._url)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def workers(self, request: PageRequest) -> dict[str, Any]:
        """Return a page of what is published, ``{workers, pagination}``; cached."""
        return await self._cache.get(request, lambda: self._page(request))

    async def list_all(self) -> None:
        """Fetch every page, so that all published workers are in `seen`, as far as it reaches."""
        cursor: str | None = None
        for _ in range(limits.MAX_REGISTRY_PAGES):
            page = await self.workers(PageRequest(cursor=cursor))
            cursor = page["pagination"]["next_cursor"]
            if cursor is None or len(self.seen) >= limits.MAX_PUBLISHED_WORKERS:
                return

    async def worker_info(self, request: WorkerRequest) -> dict[str, Any]:
        """Return ``{worker, readme?, api_reference, skills_tree}`` of one worker; cached."""

        async def fetched() -> dict[str, Any]:
            detail, tree = await asyncio.gather(self._detail(request), self._tree(request))
            return {**detail, "skills_tree": tree}

        return await self._cache.get(request, fetched)

    async def bundle(self, request: WorkerRequest) -> registry_messages.BundleAnswer:
        """Fetch the documents of one version; not cached, because they are going to be installed."""
        answer = await self._get(
            f"/w/{request.worker}/skills",
            {"version": request.asked},
            limits.MAX_REGISTRY_BUNDLE_BYTES,
            _named(request, "a bundle of skills for "),
        )
        bundle = registry_messages.parse_bundle(answer, request.worker, request.asked)
        _check_version(request, bundle.version)
        return bundle

    async def current_version(self, request: WorkerRequest) -> str:
        """Ask which version a request resolves to right now; not cached."""
        version = (await self._detail(request))["worker"]["version"]
        if version is None:
            raise DirectoryError(REGISTRY_FAILED, f"the registry gives {_named(request)} no version")
        _check_version(request, version)
        return version

    async def _page(self, request: PageRequest) -> dict[str, Any]:
        query = {"search": request.search, "cursor": request.cursor}
        sent = {name: value for name, value in query.items() if value is not None}
        answer = await self._get("/w", sent, limits.MAX_REGISTRY_PAGE_BYTES, "the list")
        page = registry_messages.parse_page(answer)
        self.seen |= {row["name"]: row for row in page["workers"]}
        while len(self.seen) > limits.MAX_PUBLISHED_WORKERS:
            del self.seen[next(iter(self.seen))]
        return page

    async def _detail(self, request: WorkerRequest) -> dict[str, Any]:
        path, query = f"/w/{request.worker}", {"version": request.asked}
        answer = await self._get(path, query, limits.MAX_REGISTRY_DETAIL_BYTES, _named(request))
        return registry_messages.parse_detail(answer, request.worker)

    async def _tree(self, request: WorkerRequest) -> dict[str, Any]:
        try:
            return registry_messages.skills_tree(await self.bundle(request))
        except DirectoryError as error:
            if error.kind is not REGISTRY_NOT_FOUND:
                raise
            return registry_messages.skills_tree(None)

    async def _get(self, path: str, query: dict[str, str], limit: int, what: str) -> Any:
        client = await self.connection()
        return await get_json(
            client, f"{self._url}{path}", query, limit=limit, timeout_ms=self._timeout_ms, what=what
        )

    async def connection(self) -> httpx2.AsyncClient:
        """Return the HTTP client, made with the first request."""
        async with self._making:
            if self._client is None:
                # Importing the library and reading certificates takes a tenth of a second, which others feel.
                self._client = await asyncio.to_thread(make_client)
            return self._client


def _named(request: WorkerRequest, prefix: str = "") -> str:
    return f"{prefix}the worker {quoted(request.worker)} at {quoted(request.asked)}"


def _check_version(request: WorkerRequest, answered: str) -> None:
    """Refuse an answer about another version than the exact one that was asked for."""
    if not can_be_version(answered):
        problem = f"the registry gives {_named(request)} something that is not a version: {quoted(answered)}"
        raise DirectoryError(REGISTRY_FAILED, problem)
    asked = request.version
    if asked is not None and is_version(asked) and answered != asked:
        problem = f"the registry answered with version {quoted(answered)} instead of {quoted(asked)}"
        raise DirectoryError(REGISTRY_FAILED, problem)


_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PARSED_IN_PLACE: Final = 256 * limits.KIB
_WBITS_ANY: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, told apart by their headers


def make_client() -> httpx2.AsyncClient:
    """Make a client that follows no redirect and has no deadline of its own; loopback has no proxy."""
    import httpx2

    loopback = ("all://127.0.0.1", "all://localhost", "all://[::1]")
    direct: dict[str, httpx2.AsyncBaseTransport | None] = dict.fromkeys(loopback)
    return httpx2.AsyncClient(
        follow_redirects=False,
        timeout=None,  # the whole answer has a deadline of its own
        headers={"accept": "application/json", "accept-encoding": "gzip"},
        mounts=direct,
    )


@dataclass(frozen=True, slots=True)
class Host:
    """Names a host in errors, and the kinds of errors it causes."""

    name: str
    failed: ErrorKind
    missing: ErrorKind
    route: Callable[[httpx2.URL], Awaitable[dict[str, Any]]] | None = None
    """Make the request for an address, or refuse it; with it, redirects to other places are followed."""

    def failure(self, problem: str) -> DirectoryError:
        return DirectoryError(self.failed, f"{self.name}{problem}")


REGISTRY: Final = Host("the registry", REGISTRY_FAILED, REGISTRY_NOT_FOUND)


async def get_json(
    client: httpx2.AsyncClient,
    url: str,
    query: Mapping[str, str],
    *,
    limit: int,
    timeout_ms: int,
    what: str,
    host: Host = REGISTRY,
) -> Any:
    """Fetch the JSON at an address within the deadline and the size; ``what`` names it in a 404."""
    body = await get_bytes(client, url, query, limit=limit, timeout_ms=timeout_ms, what=what, host=host)
    # Megabytes take long enough to parse that others would notice the loop standing still.
    if len(body) > _PARSED_IN_PLACE:
        return await asyncio.to_thread(_decoded, body, host)
    return _decoded(body, host)


async def get_bytes(
    client: httpx2.AsyncClient,
    url: str,
    query: Mapping[str, str],
    *,
    limit: int,
    timeout_ms: int,
    what: str,
    host: Host,
) -> bytes:
    """Fetch the body at an address within the deadline and the size; ``what`` names it in a 404."""
    import httpx2

    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await _get(client, httpx2.URL(url, params=dict(query)), limit, what, host)
    except TimeoutError:
        raise host.failure(f" did not finish its answer within {timeout_ms} ms") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise host.failure(" could not be reached, or broke off its answer") from error


async def _get(client: httpx2.AsyncClient, url: httpx2.URL, limit: int, what: str, host: Host) -> bytes:
    origin, own_user = _origin(url), url.userinfo
    for _ in range(limits.MAX_REDIRECTS + 1):
        sent: dict[str, Any] = {"url": url} if host.route is None else await host.route(url)
        async with client.stream("GET", **sent) as response:
            if response.status_code in _REDIRECTS and "location" in response.headers:
                url = url.join(response.headers["location"])
                moved = _origin(url) != origin or url.userinfo not in (b"", own_user)
                if moved and host.route is None:
                    raise host.failure(" redirected to another place, which is not followed")
                continue
            if response.status_code == 404:
                raise DirectoryError(host.missing, f"{what} was not found in {host.name}")
            # A part of an answer, or none, is not the answer.
            if response.status_code != 200:
                raise host.failure(f" answered with status {response.status_code}")
            return await _body(response, limit, host)
    raise host.failure(f" redirected more than {limits.MAX_REDIRECTS} times")


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


async def _body(response: httpx2.Response, limit: int, host: Host) -> bytes:
    """Read and unpack a body; neither its packed nor its unpacked size may pass the limit."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate", ""):
        raise host.failure(" encoded its answer in a way that was not asked for")
    unpack = zlib.decompressobj(_WBITS_ANY) if encoding in ("gzip", "deflate") else None
    body = bytearray()
    received = 0
    async for chunk in response.aiter_raw():
        received += len(chunk)
        try:
            body += chunk if unpack is None else unpack.decompress(chunk, limit + 1 - len(body))
        except zlib.error:
            raise host.failure("'s answer cannot be unpacked") from None
        if len(body) > limit or received > limit:
            raise host.failure("'s answer is too large")
    if unpack is not None and not unpack.eof:
        raise host.failure("'s answer is cut short")
    if unpack is not None and unpack.unused_data:
        raise host.failure("'s answer goes on behind its end")
    return bytes(body)


def _decoded(body: bytes, host: Host) -> Any:
    try:
        # JSON has neither NaN nor Infinity; int raises ValueError for both.
        return json.loads(body.decode("utf-8-sig"), parse_constant=int)
    except (ValueError, RecursionError):
        raise host.failure("'s answer is not JSON") from None
