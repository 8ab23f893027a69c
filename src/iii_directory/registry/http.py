"""One bounded HTTP request: how long, how much, and from where are all limited.

Errors never carry an address: the registry's may hold a secret, and a caller can do nothing with it.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from iii_directory import limits
from iii_directory.errors import REGISTRY_FAILED, REGISTRY_NOT_FOUND, DirectoryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

    from iii_directory.errors import ErrorKind

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PARSED_IN_PLACE: Final = 256 * limits.KIB
_WBITS_ANY: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, told apart by their headers


def make_client() -> httpx2.AsyncClient:
    """A client that follows nothing and waits for nothing by itself; proxies do not apply to loopback."""
    import httpx2

    direct: dict[str, httpx2.AsyncBaseTransport | None] = {
        "all://127.0.0.1": None,
        "all://localhost": None,
        "all://[::1]": None,
    }
    return httpx2.AsyncClient(
        follow_redirects=False,
        timeout=None,  # the whole answer has a deadline of its own
        headers={"accept": "application/json", "accept-encoding": "gzip"},
        mounts=direct,
    )


@dataclass(frozen=True, slots=True)
class Host:
    """Who is asked, as errors call it, and the errors it causes."""

    name: str
    failed: ErrorKind
    missing: ErrorKind

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
    """The JSON at an address, all of it within the deadline and the size; ``what`` is for a 404."""
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
    """The body at an address, all of it within the deadline and the size; ``what`` is for a 404."""
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
        async with client.stream("GET", url) as response:
            if response.status_code in _REDIRECTS and "location" in response.headers:
                url = url.join(response.headers["location"])
                if _origin(url) != origin or url.userinfo not in (b"", own_user):
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
    """The decoded body; neither what comes in nor what comes out of it may pass the limit."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate", ""):
        raise host.failure(" encoded its answer in a way that was not asked for")
    unpack = zlib.decompressobj(_WBITS_ANY) if encoding in ("gzip", "deflate") else None
    body = bytearray()
    received = 0
    async for chunk in response.aiter_raw():
        received += len(chunk)
        if unpack is None:
            body += chunk
        else:
            body += _unpacked(unpack, chunk, limit + 1 - len(body), host)
        if len(body) > limit or received > limit:
            raise host.failure("'s answer is too large")
    if unpack is not None and not unpack.eof:
        raise host.failure("'s answer is cut short")
    if unpack is not None and unpack.unused_data:
        raise host.failure("'s answer goes on behind its end")
    return bytes(body)


def _unpacked(unpack: zlib._Decompress, chunk: bytes, room: int, host: Host) -> bytes:  # pyright: ignore[reportPrivateUsage]
    try:
        return unpack.decompress(chunk, room)
    except zlib.error:
        raise host.failure("'s answer cannot be unpacked") from None


def _decoded(body: bytes, host: Host) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise host.failure("'s answer is not JSON") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)
