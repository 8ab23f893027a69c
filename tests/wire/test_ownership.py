"""On loopback the user who started a listener may connect, and root; anybody else needs a token.

The second user is real: a process of this test's that became ``nobody``, which only root can make.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from tests.support.commands import running
from tests.support.engine import WAIT, EngineThread, RawClient

from iii_directory.bus.client import EngineUnreachableError, call_function, probe
from iii_directory.registry_server.registry_http import RegistryServer
from iii_directory.wire.access import Access, Refused
from iii_directory.wire.ownership import can_tell, user_listening, user_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOBODY = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
needs_kernel = pytest.mark.skipif(not can_tell(), reason="this system does not say whose a connection is")
# What is imported is imported first: other users may not be able to read the interpreter's folder.
AS_NOBODY = (
    f"import encodings.idna, json, os, socket, struct, sys\nos.setgid({NOBODY}); os.setuid({NOBODY})\n"
)


def as_nobody(program: str, *arguments: str) -> str:
    """What a program prints that runs as another user; it uses the standard library alone."""
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY + program, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT,
        cwd="/",
    )
    return done.stdout.strip()


HANDSHAKE = """
port, path, *headers = sys.argv[1:]
lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers, "", ""]
with socket.create_connection(("127.0.0.1", int(port))) as s:
    s.sendall("\\r\\n".join(lines).encode())
    print(s.recv(4096).decode(errors="replace").split("\\r\\n", 1)[0].split(" ")[1])
"""
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as accepted,
    ):
        yield client, accepted


@needs_kernel
def test_the_kernel_says_whose_both_ends_are(pair: tuple[socket.socket, socket.socket]) -> None:
    client, accepted = pair

    assert user_of(client.getsockname(), client.getpeername()) == os.getuid()
    assert user_of(accepted.getsockname(), accepted.getpeername()) == os.getuid()


@needs_kernel
def test_a_closed_connection_has_no_owner_and_does_not_count_as_root(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, accepted = pair
    ends = client.getsockname(), client.getpeername()
    client.close()

    assert user_of(*ends) is None
    assert accepted.recv(1) == b""


@needs_kernel
def test_a_connection_that_does_not_exist_has_no_owner() -> None:
    assert user_of(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert user_of(("not an address", 1), ("127.0.0.1", 2)) is None
    assert user_listening(("127.0.0.1", 1)) is None


@needs_kernel
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_kernel_says_who_listens(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as server:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip(f"this machine has no {address}")
        server.listen()
        assert user_listening(server.getsockname()[:2]) == os.getuid()


OWN = {"host": ["127.0.0.1:7"]}
WITH_TOKEN = {**OWN, "authorization": ["Bearer a-token-that-is-long"]}


@pytest.mark.parametrize(
    ("access", "user", "headers", "let_in"),
    [
        (Access("127.0.0.1", 7, None, owner=1000), 1000, OWN, True),
        (Access("127.0.0.1", 7, None, owner=1000), 0, OWN, True),
        (Access("127.0.0.1", 7, None, owner=1000), 1001, OWN, False),
        (Access("127.0.0.1", 7, None, owner=1000), None, OWN, False),
        (Access("127.0.0.1", 7, None, owner=1000), 1001, WITH_TOKEN, False),
        (Access("127.0.0.1", 7, None, owner=None), None, OWN, True),
        (Access("127.0.0.1", 7, "a-token-that-is-long", owner=1000), 1000, OWN, False),
        (Access("127.0.0.1", 7, "a-token-that-is-long", owner=1000), 1001, WITH_TOKEN, True),
        (Access("127.0.0.1", 7, "a-token-that-is-long", 1000, asks_everybody=False), 1000, OWN, True),
        (Access("127.0.0.1", 7, "a-token-that-is-long", 1000, asks_everybody=False), 1001, OWN, False),
        (Access("127.0.0.1", 7, "a-token-that-is-long", 1000, asks_everybody=False), None, OWN, False),
        (Access("127.0.0.1", 7, "a-token-that-is-long", 1000, asks_everybody=False), 1001, WITH_TOKEN, True),
    ],
)
def test_who_is_let_in(access: Access, user: int | None, headers: dict[str, list[str]], let_in: bool) -> None:
    refused = access.refusal(headers, user)

    assert (refused is None) is let_in
    assert let_in or (isinstance(refused, Refused) and refused.status == 401)


@needs_root
@needs_kernel
def test_another_user_of_the_machine_is_refused_and_the_owner_served(engine: EngineThread) -> None:
    with RawClient(engine.url) as owner:
        assert as_nobody(HANDSHAKE, str(engine.server.port), "/", *UPGRADE) == "401"
        assert as_nobody(HANDSHAKE, str(engine.server.port), "/otel", *UPGRADE) == "401"
        assert owner.result("engine::health::check")


@needs_root
@needs_kernel
def test_another_user_gets_in_with_the_token_alone() -> None:
    token = "a-token-of-twenty-letters"
    with EngineThread(token=token, asks_everybody=False) as engine, RawClient(engine.url) as owner:
        port, given = str(engine.server.port), f"Authorization: Bearer {token}"
        assert as_nobody(HANDSHAKE, port, "/", *UPGRADE) == "401"
        assert as_nobody(HANDSHAKE, port, "/", *UPGRADE, given) == "101"
        assert owner.result("engine::health::check")


@needs_root
@needs_kernel
def test_another_user_is_refused_over_mcp_too(engine: EngineThread) -> None:
    pytest.importorskip("mcp", reason="the part for MCP is not installed")
    from tests.mcp.stage import http_bridge

    with http_bridge(engine.url) as url:
        port = str(urlsplit(url).port)
        assert as_nobody(HANDSHAKE, port, "/mcp", "Accept: text/event-stream") == "401"
        # Let in, and then told that there is more to say in a request.
        with socket.create_connection(("127.0.0.1", int(port))) as owner:
            owner.sendall(f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            assert b" 401 " not in owner.recv(4096)


@needs_root
@needs_kernel
def test_another_user_is_refused_by_a_registry_on_loopback_alone(tmp_path: Path) -> None:
    for host, answered in (("127.0.0.1", "401"), ("0.0.0.0", "200")):
        with RegistryServer(tmp_path, host=host) as server:
            port = str(urlsplit(server.url).port)
            assert as_nobody(HANDSHAKE, port, "/w") == answered
            with urlopen(f"http://127.0.0.1:{port}/w", timeout=WAIT) as owned:
                assert owned.status == 200


SEND_AND_LEAVE = """
port, *headers = sys.argv[1:]
said = json.dumps({"type": "invokefunction", "function_id": "state::set", "action": {"type": "void"},
                   "data": {"scope": "s", "key": "forged", "value": 1}}).encode()
frame = struct.pack(">BBH", 0x81, 0x80 | 126, len(said)) + bytes(4) + said
lines = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers, "", ""]
for _ in range(50):
    with socket.create_connection(("127.0.0.1", int(port))) as s:
        s.sendall("\\r\\n".join(lines).encode() + frame)
"""


@needs_root
@needs_kernel
def test_a_client_that_sends_everything_and_leaves_at_once_does_not_pass_for_root(
    engine: EngineThread,
) -> None:
    as_nobody(SEND_AND_LEAVE, str(engine.server.port), *UPGRADE)
    with RawClient(engine.url) as owner:
        assert owner.result("state::list", {"scope": "s"}) == []


NAMES = {"box.example": "127.0.0.1"}
SQUATTER = """
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    server.settimeout(20)
    server.accept()[0].recv(4096)
"""


@needs_root
@needs_kernel
def test_a_token_is_not_sent_to_another_user_who_listens_in_the_engine_s_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **named: resolve(NAMES.get(host, host), *rest, **named)
    )
    squatter = subprocess.Popen(
        [sys.executable, "-c", AS_NOBODY + SQUATTER], stdout=subprocess.PIPE, text=True, cwd="/"
    )
    try:
        assert squatter.stdout is not None
        port = int(squatter.stdout.readline())
        url = f"ws://127.0.0.1:{port}"
        for asked in (
            lambda: probe(url, token="a-token-of-twenty-letters"),
            lambda: call_function(url, "a::b", {}, token="a-token-of-twenty-letters"),
        ):
            with pytest.raises(EngineUnreachableError, match=r"another user .* the token was not sent"):
                asked()
        with pytest.raises(EngineUnreachableError, match="the token was not sent"):
            probe(url.replace("ws://", "ws://user:password@"))
        for spelling in ("127.1", "2130706433", "0x7f.1", "localhost", "[::ffff:127.0.0.1]", "box.example"):
            with pytest.raises(EngineUnreachableError, match="the token was not sent"):
                probe(f"ws://{spelling}:{port}", token="a-token-of-twenty-letters")
        with running("serve", "--url", url, III_TOKEN="a-token-of-twenty-letters") as worker:
            worker.wait_for("belongs to another user of this machine; the token was not sent there")
        # It is not connected, and goes on waiting.
        assert squatter.poll() is None
    finally:
        squatter.kill()
        squatter.communicate()


def test_what_an_engine_keeps_is_its_owner_s_alone(tmp_path: Path) -> None:
    from iii_directory.engine.sqlite_store import Database

    before = os.umask(0o022)
    try:
        database = Database(tmp_path / "data")
        database.store("state").set("s", "k", json.dumps({"password": "hunter2"}))
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "data").iterdir()}
        directory_mode = (tmp_path / "data").stat().st_mode & 0o777
        database.close()
    finally:
        os.umask(before)

    assert directory_mode == 0o700
    assert modes.keys() >= {"engine.db", "engine.db-wal"}
    assert set(modes.values()) == {0o600}


def test_a_data_directory_of_before_becomes_private_and_a_shared_one_stays(tmp_path: Path) -> None:
    from iii_directory.engine.sqlite_store import Database

    old, shared = tmp_path / "old", tmp_path / "shared"
    for folder in (old, shared):
        folder.mkdir()
        folder.chmod(0o755)
        Database(folder).close()
    (shared / "something-else").touch()
    for folder in (old, shared):
        folder.chmod(0o755)
        (folder / "engine.db").chmod(0o644)
        Database(folder).close()

    assert [folder.stat().st_mode & 0o777 for folder in (old, shared)] == [0o700, 0o755]
    assert [(folder / "engine.db").stat().st_mode & 0o777 for folder in (old, shared)] == [0o600, 0o600]


@pytest.mark.parametrize("module", ["iii_directory.engine.server", "iii_directory.wire.http_server"])
def test_where_users_cannot_be_told_apart_the_start_says_so(
    module: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("mcp", reason="the part for MCP is not installed")
    from tests.mcp.stage import http_bridge

    monkeypatch.setattr(f"{module}.can_tell", lambda: False)
    with EngineThread() as engine, http_bridge(engine.url):
        pass

    said = [line for line in caplog.messages if "every user of this machine can connect" in line]
    assert len(said) == 1
