"""Who may ask at ``/mcp``: pages of other sites and names of other machines may not."""

from __future__ import annotations

import http.client
import json
import socket
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from tests.mcp.stage import HELLO, http_bridge
from tests.support.engine import WAIT, EngineThread

from iii_directory.limits import MAX_MCP_BODY_BYTES, MAX_READ_MARKS
from iii_directory.wire.http_server import Listener

if TYPE_CHECKING:
    from collections.abc import Iterator

USUAL = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
OWN_HOSTS = ("127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LOCALHOST:{port}")
FOREIGN_HOSTS = (
    "127.0.0.1",
    "127.0.0.1:1{port}",
    "localhost.:{port}",
    "localhost.evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "evil.example:{port}",
    "evil.example",
    "[::1]",
    "127.0.0.1:{port}, evil.example",
    "",
)
NO_ORIGIN = None
FOREIGN_ORIGINS = (
    "null",
    "",
    "http://evil.example",
    "http://evil.example:{port}",
    "http://localhost",
    "http://localhost:1{port}",
    "http://localhost.:{port}",
    "http://localhost:{port}.evil.example",
    "http://127.0.0.1:{port}@evil.example",
    "file://",
    "chrome-extension://abcdefgh",
    "ws://127.0.0.1:{port}",
)


@pytest.fixture(scope="module", params=["joined", "inside"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    with (
        EngineThread() as engine,
        http_bridge(engine.url, inside=engine if request.param == "inside" else None) as url,
    ):
        yield urlsplit(url).port or 0


def ask(
    port: int,
    *,
    host: str | None = None,
    origin: str | None = None,
    method: str = "POST",
    path: str = "/mcp",
    body: bytes | None = None,
    **headers: str,
) -> http.client.HTTPResponse:
    """One request with exactly the headers given."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        sent = json.dumps(HELLO).encode() if body is None else body
        connection.putheader("Host", f"127.0.0.1:{port}" if host is None else host)
        if origin is not None:
            connection.putheader("Origin", origin)
        wanted = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        }
        for name, value in wanted.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.putheader("Content-Length", str(len(sent)))
        connection.endheaders()
        connection.send(sent)
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


def filled(text: str | None, port: int) -> str | None:
    return None if text is None else text.replace("{port}", str(port))


@pytest.mark.parametrize("host", OWN_HOSTS)
def test_a_program_on_this_machine_may_ask(port: int, host: str) -> None:
    assert ask(port, host=filled(host, port)).status == 200


@pytest.mark.parametrize("host", OWN_HOSTS)
def test_a_page_of_our_own_may_ask(port: int, host: str) -> None:
    own = filled(host, port)

    assert ask(port, host=own, origin=f"http://{own}").status == 200


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
@pytest.mark.parametrize("origin", [NO_ORIGIN, "http://127.0.0.1:{port}", *FOREIGN_ORIGINS])
def test_a_name_that_is_not_ours_is_refused_whatever_the_page(
    port: int, host: str, origin: str | None
) -> None:
    assert ask(port, host=filled(host, port), origin=filled(origin, port)).status in (400, 421)


@pytest.mark.parametrize("host", OWN_HOSTS)
@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_page_of_another_origin_is_refused_whatever_the_name(port: int, host: str, origin: str) -> None:
    assert ask(port, host=filled(host, port), origin=filled(origin, port)).status == 403


def test_one_of_our_names_is_not_an_allowed_origin_for_another(port: int) -> None:
    names = [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"]

    for host, other in product(names, names):
        assert ask(port, host=host, origin=f"http://{other}").status == (200 if host == other else 403)


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT", "HEAD"])
def test_every_method_is_guarded(port: int, method: str) -> None:
    assert ask(port, method=method, host="evil.example", body=b"").status == 421
    assert ask(port, method=method, origin="http://evil.example", body=b"").status == 403


def test_a_request_of_the_newest_protocol_is_guarded_as_well(port: int) -> None:
    version = "2026-07-28"

    assert ask(port, host="evil.example", MCP_Protocol_Version=version).status == 421
    assert ask(port, origin="http://evil.example", MCP_Protocol_Version=version).status == 403


def test_other_addresses_are_not_found(port: int) -> None:
    for path in ("/mcp/", "/mcp/x", "/../mcp", "/sse", "/.well-known/oauth-protected-resource"):
        assert ask(port, path=path).status == 404


def test_a_body_that_is_too_large_is_refused(port: int) -> None:
    assert ask(port, body=b" " * (MAX_MCP_BODY_BYTES + 1)).status == 413
    padded = json.dumps(HELLO).encode().ljust(MAX_MCP_BODY_BYTES)
    assert ask(port, body=padded).status == 200


def test_a_body_that_takes_long_to_read_is_refused(port: int) -> None:
    def with_rows(count: int) -> bytes:
        return json.dumps({**HELLO, "junk": [[]] * count}).encode()

    assert ask(port, body=with_rows(MAX_READ_MARKS // 2 + 1)).status == 413
    assert ask(port, body=with_rows(MAX_READ_MARKS // 4)).status == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"jsonrpc":"2.0"}']
)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", "1999-01-01"])
def test_an_invalid_body_is_the_clients_mistake(port: int, body: bytes, version: str) -> None:
    assert 400 <= ask(port, body=body, MCP_Protocol_Version=version).status < 500


def test_it_listens_on_loopback_alone(port: int) -> None:
    listening = _listeners(port)

    assert listening == {"0100007F"}


def test_with_a_token_everybody_needs_it() -> None:
    with (
        EngineThread(token="a-secret-of-sixteen") as engine,
        http_bridge(engine.url, token="a-secret-of-sixteen") as url,
    ):
        port = urlsplit(url).port or 0

        assert ask(port).status == 401
        assert ask(port, Authorization="Bearer wrong").status == 401
        assert ask(port, Authorization="secret").status == 401
        assert ask(port, Authorization="Bearer a-secret-of-sixteen").status == 200
        assert ask(port, Authorization="Bearer a-secret-of-sixteen", host="evil.example").status == 421
        assert (
            ask(port, Authorization="Bearer a-secret-of-sixteen", origin="http://evil.example").status == 403
        )
        assert ask(port).headers["WWW-Authenticate"] == "Bearer"


def test_beyond_loopback_a_token_is_needed() -> None:
    with pytest.raises(ValueError, match="needs a token"):
        Listener("0.0.0.0", 0, None)


def test_beyond_loopback_the_token_decides_and_not_the_name() -> None:
    with (
        EngineThread(token="a-secret-of-sixteen") as engine,
        http_bridge(engine.url, host="0.0.0.0", token="a-secret-of-sixteen") as url,
    ):
        port, given = urlsplit(url).port or 0, "Bearer a-secret-of-sixteen"

        assert ask(port, host="our.example:80", Authorization=given).status == 200
        assert ask(port, host=f"127.0.0.1:{port}").status == 401
        # The cookie of the web page is not for programs.
        cookie = "iii-directory-token=a-secret-of-sixteen"
        assert ask(port, host=f"127.0.0.1:{port}", Cookie=cookie).status == 401
        foreign = ask(port, host="a.example", origin="http://b.example", Authorization=given)
        assert foreign.status == 403


def test_an_address_of_the_newer_kind_is_listened_on() -> None:
    listener = Listener("::1", 0, None)
    listener.socket.close()

    assert listener.url == f"http://[::1]:{listener.port}/mcp"


def test_small_packets_are_sent_at_once() -> None:
    listener = Listener("127.0.0.1", 0, None)
    with listener.socket:
        assert listener.socket.proto == socket.IPPROTO_TCP  # what asyncio looks at


def _listeners(port: int) -> set[str]:
    """Return the addresses with a listener at a port, as the kernel tells them."""
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            fields: list[Any] = line.split()
            address, _, number = fields[1].partition(":")
            if fields[3] == "0A" and int(number, 16) == port:
                found.add(address)
    return found
