"""Who may connect: decided on paper here, and tried with real handshakes."""

from __future__ import annotations

import itertools
import socket
from typing import TYPE_CHECKING

import pytest
from tests.support.engine import EngineThread, RawClient

from iii_directory.engine.server import EngineServer
from iii_directory.wire.access import Access, Admitted, Refused, is_loopback, purpose_of, same_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 49134
UPGRADE = {"connection": ["Upgrade"]}

# PORT stands for the port the engine listens on.
HOSTS = [
    "127.0.0.1:PORT",
    "localhost:PORT",
    "LOCALHOST:PORT",
    "[::1]:PORT",
    "127.0.0.1",
    "localhost",
    "127.0.0.1:1",
    "localhost.:PORT",
    "127.0.0.1.evil.example:PORT",
    "evil.example:PORT",
    "0.0.0.0:PORT",
    "[::ffff:127.0.0.1]:PORT",
    "2130706433:PORT",
    "",
]
OWN_HOSTS = HOSTS[:4]
ORIGINS = [
    None,
    "http://HOST",
    "https://HOST",
    "null",
    "",
    "http://evil.example",
    "http://evil.example:PORT",
    "http://HOST.evil.example",
    "http://HOST/",
    "HOST",
    "ws://HOST",
    "file://",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://user@HOST",
    "chrome-extension://abcdef",
    "http://HOST http://evil.example",
]
OWN_ORIGINS = ORIGINS[:3]
PAIRS = list(itertools.product(HOSTS, ORIGINS))


def filled(host: str, origin: str | None, port: int) -> tuple[str, str | None]:
    host = host.replace("PORT", str(port))
    return host, origin and origin.replace("HOST", host).replace("PORT", str(port))


def listed(host: str, origin: str | None) -> bool:
    return host in OWN_HOSTS and origin in OWN_ORIGINS


def headers(host: str | None, origin: str | None = None, **more: str) -> dict[str, list[str]]:
    given = {**UPGRADE, **{name: [value] for name, value in more.items()}}
    if host is not None:
        given["host"] = [host]
    if origin is not None:
        given["origin"] = [origin]
    return given


@pytest.mark.parametrize(("host", "origin"), PAIRS)
def test_only_listed_pairs_of_host_and_origin_pass(host: str, origin: str | None) -> None:
    named, page = filled(host, origin, PORT)
    decision = Access("127.0.0.1", PORT).decide("/", headers(named, page))

    assert (decision == Admitted("worker")) is listed(host, origin)
    if host not in OWN_HOSTS:
        assert isinstance(decision, Refused)
        assert decision.status == 421


CHANNEL = "/ws/channels/x?key=k&dir=read"
BEARER = {"authorization": "Bearer a-secret-of-sixteen"}


@pytest.mark.parametrize("more", [{}, BEARER], ids=["no token", "token"])
@pytest.mark.parametrize("path", ["/", "/otel", CHANNEL, "/nowhere"])
def test_no_path_is_open_to_another_host_or_page(path: str, more: dict[str, str]) -> None:
    for listens_on in ("127.0.0.1", "0.0.0.0"):
        access = Access(listens_on, PORT, "a-secret-of-sixteen")

        assert refused(access, path, headers(f"localhost:{PORT}", "http://evil.example", **more)) == 403
        assert refused(access, path, headers(None, **more)) == 421
    assert (
        refused(Access("127.0.0.1", PORT, "a-secret-of-sixteen"), path, headers("evil.example", **more))
        == 421
    )


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/otel",
        "/nowhere",
        "/?key=k&dir=read",
        "/otel?key=k&dir=read",
        "/ws/channels?key=k&dir=read",
        "/WS/channels/x?key=k&dir=read",
        "/ws/channels/x",
        "/ws/channels/x?dir=read",
        "/ws/channels/x?key=&dir=read",
        "/ws/channels/x?key=k",
        "/ws/channels/x?key=k&dir=both",
    ],
)
def test_without_a_channel_s_key_the_token_is_needed(path: str) -> None:
    assert (
        refused(Access("127.0.0.1", PORT, "a-secret-of-sixteen"), path, headers(f"localhost:{PORT}")) == 401
    )


@pytest.mark.parametrize("more", [{}, BEARER, {"authorization": "Bearer nope"}])
def test_the_key_of_a_channel_stands_in_for_the_token(more: dict[str, str]) -> None:
    decision = Access("127.0.0.1", PORT, "a-secret-of-sixteen").decide(
        CHANNEL, headers(f"localhost:{PORT}", **more)
    )

    assert decision == Admitted("channel", "x", "k", "read")


def refused(access: Access, path: str, given: dict[str, list[str]]) -> int:
    decision = access.decide(path, given)
    assert isinstance(decision, Refused)
    return decision.status


def test_a_missing_or_doubled_header_is_refused() -> None:
    access, own = Access("127.0.0.1", PORT), f"127.0.0.1:{PORT}"

    assert isinstance(access.decide("/", headers(None)), Refused)
    assert isinstance(access.decide("/", {**UPGRADE, "host": [own, own]}), Refused)
    doubled = {**headers(own), "origin": [f"http://{own}", "http://evil.example"]}
    assert isinstance(access.decide("/", doubled), Refused)


def test_on_port_80_the_port_may_be_left_out() -> None:
    for host in ("localhost", "localhost:80"):
        assert Access("127.0.0.1", 80).decide("/", headers(host)) == Admitted("worker")


@pytest.mark.parametrize(
    ("listens_on", "host"), [("::1", "[::1]"), ("127.0.0.2", "127.0.0.2"), ("localhost", "localhost")]
)
def test_an_engine_answers_to_the_address_it_listens_on(listens_on: str, host: str) -> None:
    assert Access(listens_on, PORT).decide("/", headers(f"{host}:{PORT}")) == Admitted("worker")


def test_another_loopback_address_is_foreign() -> None:
    assert isinstance(Access("127.0.0.1", PORT).decide("/", headers(f"127.0.0.2:{PORT}")), Refused)


def test_beyond_loopback_the_token_decides_and_pages_must_still_be_our_own() -> None:
    access = Access("0.0.0.0", PORT, "a-secret-of-sixteen")
    bearer = {"authorization": "Bearer a-secret-of-sixteen"}

    assert access.decide("/", headers("box.example:1", **bearer)) == Admitted("worker")
    assert isinstance(access.decide("/", headers("box.example:1", "http://evil.example", **bearer)), Refused)
    assert isinstance(access.decide("/", headers("box.example:1")), Refused)


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "a-secret-of-sixteen",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer a-secret-of-sixteen ",
        "Bearer a-secret-of-sixteenx",
        "Bearer SECRET",
        "Basic secret",
        "bearer secret",
        "Bearer a-secret-of-sixteen, Bearer a-secret-of-sixteen",
        "Bearer \udcff",
    ],
)
def test_only_the_very_token_passes(given: str | None) -> None:
    more = {} if given is None else {"authorization": given}
    decision = Access("127.0.0.1", PORT, "a-secret-of-sixteen").decide(
        "/", headers(f"localhost:{PORT}", **more)
    )

    assert isinstance(decision, Refused)
    assert decision.status == 401
    assert "a-secret-of-sixteen" not in decision.text


def test_the_token_passes_in_its_header_alone() -> None:
    access, own = Access("127.0.0.1", PORT, "sécret"), f"localhost:{PORT}"

    assert access.decide("/", headers(own, authorization="Bearer sécret")) == Admitted("worker")
    assert isinstance(access.decide("/?token=sécret&authorization=Bearer+sécret", headers(own)), Refused)
    doubled = {**headers(own), "authorization": ["Bearer sécret", "Bearer sécret"]}
    assert isinstance(access.decide("/", doubled), Refused)


def test_secrets_are_compared_as_bytes() -> None:
    assert same_secret("é", "é")
    assert not same_secret("\udcff", "é")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.1.1", False),
        ("127.0.0.1.evil.example", False),
        ("127.evil", False),
        ("localhost.evil.example", False),
        ("10.127.0.1", False),
    ],
)
def test_loopback_is_told_by_address(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.1", "127.0.0.1.evil.example"])
@pytest.mark.parametrize("token", [None, ""])
def test_listening_beyond_loopback_needs_a_token(host: str, token: str | None) -> None:
    with pytest.raises(ValueError, match="needs a token"):
        EngineServer(host=host, token=token)


@pytest.mark.parametrize(
    ("path", "purpose"),
    [
        ("/", Admitted("worker")),
        ("/?namespace=x", Admitted("worker")),
        ("/otel", Admitted("otel")),
        ("/ws/channels/c?key=k&dir=read", Admitted("channel", "c", "k", "read")),
        ("/ws/channels/c?dir=write&key=k%2F&more=1", Admitted("channel", "c", "k/", "write")),
    ],
)
def test_a_path_says_what_a_socket_is_for(path: str, purpose: Admitted) -> None:
    assert purpose_of(path) == purpose


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("", 404),
        ("//", 404),
        ("//[", 404),
        ("/x", 404),
        ("/otel/", 404),
        ("/OTEL", 404),
        ("*", 404),
        ("http://localhost/", 404),
        ("/ws/channels", 404),
        ("/ws/channels/c", 400),
        ("/ws/channels/c?key=k", 400),
        ("/ws/channels/c?key=k&dir=both", 400),
        ("/ws/channels/c?dir=read", 400),
        ("/ws/channels/c?key=&dir=read", 400),
    ],
)
def test_another_path_is_refused(path: str, status: int) -> None:
    decision = purpose_of(path)

    assert isinstance(decision, Refused)
    assert decision.status == status


# Real handshakes

ADMITTED = {"additional_headers": {"Authorization": "Bearer a-secret-of-sixteen"}}


@pytest.fixture(scope="module")
def running() -> Iterator[EngineThread]:
    with EngineThread() as engine:
        yield engine


@pytest.fixture(scope="module")
def guarded() -> Iterator[EngineThread]:
    with EngineThread(token="a-secret-of-sixteen") as engine:
        yield engine


def handshake(engine: EngineThread, lines: list[str], path: str = "/") -> tuple[int, str]:
    """The status and the body of an answer to a handshake."""
    request = [
        f"GET {path} HTTP/1.1",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        *lines,
    ]
    return exchange(engine, "\r\n".join([*request, "", ""]).encode("utf-8", "surrogateescape"))


def exchange(engine: EngineThread, request: bytes) -> tuple[int, str]:
    with socket.create_connection(("127.0.0.1", engine.server.port), timeout=10) as client:
        client.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = client.recv(65536)
            if not piece:
                break
            answer += piece
        status = int(answer.split(b" ", 2)[1]) if answer else 0
        while status not in (0, 101) and (piece := client.recv(65536)):
            answer += piece
    return status, answer.partition(b"\r\n\r\n")[2].decode(errors="replace")


def test_real_handshakes_pass_for_listed_pairs_only(running: EngineThread) -> None:
    for host, origin in PAIRS:
        named, page = filled(host, origin, running.server.port)
        lines = [f"Host: {named}"] + ([] if page is None else [f"Origin: {page}"])
        status, _ = handshake(running, lines)
        expected = 101 if listed(host, origin) else 421 if host not in OWN_HOSTS else 403

        assert status == expected, (host, origin)


def test_a_real_handshake_without_a_host_is_refused(running: EngineThread) -> None:
    assert handshake(running, [])[0] == 421


def test_real_handshakes_need_the_token(guarded: EngineThread) -> None:
    own = f"Host: 127.0.0.1:{guarded.server.port}"

    for path in ("/", "/otel"):
        assert handshake(guarded, [own], path)[0] == 401
        assert handshake(guarded, [own], f"{path}?token=secret")[0] == 401
        assert handshake(guarded, [own, "Authorization: Bearer nope"], path)[0] == 401
        assert handshake(guarded, [own, "Authorization: Bearer \udcff\udcfe"], path)[0] == 401
        assert handshake(guarded, [own, "Authorization: Bearer a-secret-of-sixteen"], path)[0] == 101


def test_a_real_channel_opens_by_its_key_alone(guarded: EngineThread) -> None:
    own = f"Host: 127.0.0.1:{guarded.server.port}"
    with RawClient(guarded.url, connecting=ADMITTED) as client:
        channel = client.result("engine::channels::create")
    key, path = channel["reader"]["access_key"], f"/ws/channels/{channel['reader']['channel_id']}"

    assert handshake(guarded, [own, "Origin: http://evil.example"], f"{path}?key={key}&dir=read")[0] == 403
    assert handshake(guarded, ["Host: evil.example"], f"{path}?key={key}&dir=read")[0] == 421
    for wrong in (key[:-1], f"{key}0", "a-secret-of-sixteen", channel["reader"]["channel_id"]):
        assert handshake(guarded, [own], f"{path}?key={wrong}&dir=read") == (404, "Channel not found")
    assert handshake(guarded, [own], path)[0] == 401
    assert handshake(guarded, [own], f"{path}?key={key}&dir=read")[0] == 101


def test_a_token_once_given_is_asked_of_loopback_too_and_a_client_can_give_it(guarded: EngineThread) -> None:
    with RawClient(guarded.url, connecting=ADMITTED) as client:
        assert client.result("engine::health::check")


def test_other_paths_and_plain_requests_are_told_so(running: EngineThread) -> None:
    own = f"Host: 127.0.0.1:{running.server.port}"

    assert handshake(running, [own], "/nowhere") == (404, "")
    assert handshake(running, [own], "//[")[0] == 404
    assert handshake(running, [own], "/ws/channels/x")[0] == 400
    assert handshake(running, [own], "/ws/channels/x?key=k&dir=read") == (404, "Channel not found")
    plain = f"GET / HTTP/1.1\r\n{own}\r\n\r\n".encode()
    assert exchange(running, plain) == (400, "Connection header did not include 'upgrade'")
    half = f"GET / HTTP/1.1\r\n{own}\r\nConnection: upgrade\r\n\r\n".encode()
    assert exchange(running, half)[0] in (400, 426)


def test_neither_a_subprotocol_nor_compression_is_agreed_on(running: EngineThread) -> None:
    with RawClient(running.url, connecting={"subprotocols": ["iii"], "compression": "deflate"}) as client:
        assert client.socket.subprotocol is None
        assert client.socket.protocol.extensions == []
        assert client.result("engine::health::check")


def test_an_engine_listens_on_loopback_alone(running: EngineThread) -> None:
    server = running.server._server
    assert server is not None

    assert {bound.getsockname()[0] for bound in server.sockets} == {"127.0.0.1"}
