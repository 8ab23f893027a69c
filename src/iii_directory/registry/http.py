"""One bounded HTTP request for JSON: how long, how much, and from where are all limited.

Errors never carry an address: the registry's may hold a secret, and a caller can do nothing with it.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import TYPE_CHECKING, Any, Final

from iii_directory import limits
from iii_directory.errors import REGISTRY_FAILED, REGISTRY_NOT_FOUND, DirectoryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PARSED_IN_PLACE: Final = 256 * limits.KIB
_WBITS_ANY: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, told apart by their headers


def make_client() -> httpx.AsyncClient:
    """A client that follows nothing and waits for nothing by itself; proxies do not apply to loopback."""
    import httpx

    direct: dict[str, httpx.AsyncBaseTransport | None] = {
        "all://127.0.0.1": None,
        "all://localhost": None,
        "all://[::1]": None,
    }
    return httpx.AsyncClient(
        follow_redirects=False,
        timeout=None,  # noqa: S113 - the whole answer has a deadline of its own
        headers={"accept": "application/json", "accept-encoding": "gzip"},
        mounts=direct,
    )


async def get_json(
    client: httpx.AsyncClient, url: str, query: Mapping[str, str], *, limit: int, timeout_ms: int, what: str
) -> Any:
    """The JSON at an address, all of it within the deadline and the size; ``what`` is for a 404."""
    import httpx

    try:
        async with asyncio.timeout(timeout_ms / 1000):
            body = await _get(client, httpx.URL(url, params=dict(query)), limit, what)
    except TimeoutError:
        raise _failed(f"the registry did not finish its answer within {timeout_ms} ms") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise _failed("the registry could not be reached, or broke off its answer") from error
    # Megabytes take long enough to parse that others would notice the loop standing still.
    return await asyncio.to_thread(_decoded, body) if len(body) > _PARSED_IN_PLACE else _decoded(body)


async def _get(client: httpx.AsyncClient, url: httpx.URL, limit: int, what: str) -> bytes:
    origin, own_user = _origin(url), url.userinfo
    for _ in range(limits.MAX_REDIRECTS + 1):
        async with client.stream("GET", url) as response:
            if response.status_code in _REDIRECTS and "location" in response.headers:
                url = url.join(response.headers["location"])
                if _origin(url) != origin or url.userinfo not in (b"", own_user):
                    raise _failed("the registry redirected to another place, which is not followed")
                continue
            if response.status_code == 404:
                raise DirectoryError(REGISTRY_NOT_FOUND, f"{what} was not found in the registry")
            if not 200 <= response.status_code < 300:
                raise _failed(f"the registry answered with status {response.status_code}")
            return await _body(response, limit)
    raise _failed(f"the registry redirected more than {limits.MAX_REDIRECTS} times")


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


async def _body(response: httpx.Response, limit: int) -> bytes:
    """The decoded body; neither what comes in nor what comes out of it may pass the limit."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate", ""):
        raise _failed("the registry encoded its answer in a way that was not asked for")
    unpack = zlib.decompressobj(_WBITS_ANY) if encoding in ("gzip", "deflate") else None
    body = bytearray()
    received = 0
    async for chunk in response.aiter_raw():
        received += len(chunk)
        if unpack is None:
            body += chunk
        else:
            body += _unpacked(unpack, chunk, limit + 1 - len(body))
        if len(body) > limit or received > limit:
            raise _failed("the registry's answer is too large")
    if unpack is not None and not unpack.eof:
        raise _failed("the registry's answer is cut short")
    return bytes(body)


def _unpacked(unpack: zlib._Decompress, chunk: bytes, room: int) -> bytes:  # pyright: ignore[reportPrivateUsage]
    try:
        return unpack.decompress(chunk, room)
    except zlib.error:
        raise _failed("the registry's answer cannot be unpacked") from None


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _failed("the registry's answer is not JSON") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _failed(problem: str) -> DirectoryError:
    return DirectoryError(REGISTRY_FAILED, problem)
