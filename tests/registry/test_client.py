"""The registry client against the real server, and against one that means harm."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import threading
import zlib
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.registry import RawServer, answer, publish_worker

from iii_directory import limits
from iii_directory.errors import DirectoryError
from iii_directory.registry.registry_client import RegistryClient, make_client
from iii_directory.registry.registry_messages import PageRequest, WorkerRequest, page_request, worker_request
from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    import httpx2

DB = worker_request("db")
BUNDLE = {
    "name": "db",
    "version": "1.0.0",
    "skills": [{"path": "SKILL.md", "content": "# db"}],
    "prompts": [],
}


def ask(
    url: str, act: Callable[[RegistryClient], Awaitable[Any]], *, timeout_ms: int = 5000, ttl_ms: int = 60_000
) -> Any:
    async def run() -> Any:
        async with aclosing(RegistryClient(url, timeout_ms=timeout_ms, cache_ttl_ms=ttl_ms)) as client:
            return await act(client)

    return asyncio.run(run())


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RegistryServer]:
    with RegistryServer(tmp_path / "registry") as running:
        yield running


def test_a_page_of_workers_comes_with_its_cursor(tmp_path: Path, registry: RegistryServer) -> None:
    for number in range(21):
        publish_worker(tmp_path, tmp_path / "registry", f"w{number:02}", "1.0.0", {"skills/a.md": "x"})

    first = ask(registry.url, lambda client: client.workers(PageRequest()))
    cursor = first["pagination"]["next_cursor"]
    second = ask(registry.url, lambda client: client.workers(page_request({"cursor": cursor})))

    assert len(first["workers"]) == 20
    assert first["pagination"]["has_more"]
    assert [row["name"] for row in second["workers"]] == ["w20"]
    assert second["pagination"] == {"next_cursor": None, "has_more": False, "page_size": 20}
    found = ask(registry.url, lambda client: client.workers(page_request({"search": "w07"})))
    assert found["workers"][0]["name"] == "w07"


def test_info_joins_detail_and_tree(tmp_path: Path, registry: RegistryServer) -> None:
    files = {"skills/SKILL.md": "x", "prompts/p.md": "---\ndescription: d\n---\nx", "README.md": "# R"}
    functions = [{"name": "db::get"}, {"no": "name"}]
    publish_worker(tmp_path, tmp_path / "registry", "db", "1.0.0", files, functions=functions)

    info = ask(registry.url, lambda client: client.worker_info(DB))

    assert info["worker"]["name"] == "db"
    assert info["worker"]["version"] == "1.0.0"
    assert info["readme"] == "# R"
    assert [function["name"] for function in info["api_reference"]["functions"]] == ["db::get"]
    assert info["api_reference"]["triggers"] == []
    assert info["skills_tree"] == {
        "skills": [{"path": "SKILL.md"}],
        "prompts": [{"name": "p", "description": "d"}],
    }


def test_a_worker_without_skills_has_an_empty_tree(tmp_path: Path, registry: RegistryServer) -> None:
    publish_worker(tmp_path, tmp_path / "registry", "db", "1.0.0", {})

    info = ask(registry.url, lambda client: client.worker_info(DB))

    assert info["skills_tree"] == {"skills": [], "prompts": []}
    assert "readme" not in info
    with pytest.raises(DirectoryError, match=r"D310"):
        ask(registry.url, lambda client: client.bundle(DB))


def test_a_bundle_is_that_of_the_version_asked_for(tmp_path: Path, registry: RegistryServer) -> None:
    publish_worker(tmp_path, tmp_path / "registry", "db", "1.0.0", {"skills/a.md": "one"})
    publish_worker(tmp_path, tmp_path / "registry", "db", "2.0.0", {"skills/a.md": "two"})

    for request, version in ((DB, "2.0.0"), (worker_request("db", version="1.0.0"), "1.0.0")):
        assert ask(registry.url, lambda client, request=request: client.bundle(request)).version == version
        assert ask(registry.url, lambda client, request=request: client.current_version(request)) == version


@pytest.mark.parametrize("what", ["worker_info", "bundle", "current_version"])
def test_a_worker_that_is_not_there_is_not_found(registry: RegistryServer, what: str) -> None:
    with pytest.raises(DirectoryError, match=r"D310 not_found: .*'nothing'.* not found") as error:
        ask(registry.url, lambda client: getattr(client, what)(worker_request("nothing")))
    assert registry.url not in str(error.value)


def test_identical_questions_cost_one_request_until_the_cache_is_stale() -> None:
    now = 0.0

    def respond(path: str, connection: socket.socket) -> None:
        connection.sendall(answer({"workers": [], "pagination": {}}))

    async def run(url: str) -> None:
        nonlocal now
        async with aclosing(
            RegistryClient(url, timeout_ms=5000, cache_ttl_ms=60_000, clock=lambda: now)
        ) as client:
            await asyncio.gather(*(client.workers(PageRequest("x")) for _ in range(8)))
            await client.workers(PageRequest("x"))
            assert server.asked == ["/w?search=x"]
            now = 60.0
            await client.workers(PageRequest("x"))
            await client.workers(PageRequest("y"))
            assert server.asked == ["/w?search=x", "/w?search=x", "/w?search=y"]

    with RawServer(respond) as server:
        asyncio.run(run(server.url))


def test_bundles_are_never_taken_from_the_cache(tmp_path: Path, registry: RegistryServer) -> None:
    async def run() -> list[str]:
        async with aclosing(RegistryClient(registry.url, timeout_ms=5000, cache_ttl_ms=60_000)) as client:
            versions: list[str] = []
            for version in ("1.0.0", "1.1.0"):
                publish_worker(tmp_path, tmp_path / "registry", "db", version, {"skills/a.md": version})
                versions.append((await client.bundle(DB)).version)
            return versions

    assert asyncio.run(run()) == ["1.0.0", "1.1.0"]


def send(content: bytes) -> Callable[[str, socket.socket], None]:
    return lambda path, connection: connection.sendall(content)


def stay(content: bytes) -> Callable[[str, socket.socket], None]:
    """Send something and then neither go on nor hang up."""

    def respond(path: str, connection: socket.socket) -> None:
        connection.sendall(content)
        connection.recv(1)

    return respond


def forever(chunk: bytes, head: bytes, pause: float = 0.0) -> Callable[[str, socket.socket], None]:
    def respond(path: str, connection: socket.socket) -> None:
        connection.sendall(head)
        connection.settimeout(pause or None)
        while True:
            connection.sendall(chunk)
            if pause:
                try:
                    connection.recv(1)
                    return
                except TimeoutError:
                    continue

    return respond


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


BOMB = gzip.compress(b" " * (limits.MAX_REGISTRY_BUNDLE_BYTES + 1))
OPEN = b"HTTP/1.1 200 OK\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

MISBEHAVIOURS: dict[str, Callable[[str, socket.socket], None]] = {
    "nothing at all": send(b""),
    "no http": send(b"hello\r\n\r\n"),
    "endless headers": forever(b"x: y\r\n", b"HTTP/1.1 200 OK\r\n"),
    "cut short": send(answer(body(BUNDLE), length=10_000)),
    "longer than said": send(answer(body(BUNDLE), length=10)),
    "negative length": send(answer(body(BUNDLE), length=-1)),
    "bad chunk": send(CHUNKED + b"zz\r\nx\r\n"),
    "chunk cut short": send(CHUNKED + b"ff\r\nx"),
    "endless body": forever(b" " * 65536, OPEN),
    "endless chunks": forever(b"10000\r\n" + b" " * 65536 + b"\r\n", CHUNKED),
    "gzip bomb": send(answer(BOMB, content_encoding="gzip")),
    "zlib bomb": send(
        answer(zlib.compress(b" " * (limits.MAX_REGISTRY_BUNDLE_BYTES + 1)), content_encoding="deflate")
    ),
    "gzip cut short": send(answer(gzip.compress(body(BUNDLE))[:-12], content_encoding="gzip")),
    "gzip with more behind": send(answer(gzip.compress(body(BUNDLE)) + b"more", content_encoding="gzip")),
    "a part": send(answer(body(BUNDLE)).replace(b" 200 ", b" 206 ", 1)),
    "accepted": send(answer(body(BUNDLE)).replace(b" 200 ", b" 202 ", 1)),
    "no gzip": send(answer(body(BUNDLE), content_encoding="gzip")),
    "unknown encoding": send(answer(body(BUNDLE), content_encoding="br")),
    "not json": send(answer(b"<html>")),
    "empty": send(answer(b"")),
    "not utf-8": send(answer(b'{"name": "\xff"}')),
    "deep json": send(answer(b"[" * 200_000)),
    "huge number": send(answer(b"1" * 100_000)),
    "not a number": send(answer(b'{"skills": NaN}')),
    "a list": send(answer(b"[]")),
    "wrong name": send(answer({**BUNDLE, "name": "other"})),
    "wrong version": send(answer({**BUNDLE, "version": "9.9.9"})),
    "entry without content": send(answer({**BUNDLE, "skills": [{"path": "a.md"}]})),
    "server error": send(answer({"error": "secret"}, "500 Oops")),
    "forbidden": send(answer({"error": "secret"}, "403 No")),
    "nothing new": send(answer(b"", "304 Not Modified")),
    "switching": send(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    "redirect without place": send(answer(b"", "302 Found")),
}


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_a_registry_that_misbehaves_is_an_error_that_says_nothing_it_should_not(name: str) -> None:
    with RawServer(MISBEHAVIOURS[name]) as server:
        with pytest.raises(DirectoryError, match=r"^D320 registry_error: ") as error:
            ask(
                server.url,
                lambda client: client.bundle(WorkerRequest("db", version="1.0.0")),
                timeout_ms=10_000,
            )
        said = str(error.value)
        assert server.url not in said
        assert "127.0.0.1" not in said
        assert "secret" not in said
        assert said.isprintable()


MEASURED = """
import asyncio, resource, sys
from contextlib import aclosing
from iii_directory.errors import DirectoryError
from iii_directory.registry.registry_client import RegistryClient
from iii_directory.registry.registry_messages import PageRequest, WorkerRequest

ASKED = {
    "page": lambda client: client.workers(PageRequest()),
    "detail": lambda client: client.worker_info(WorkerRequest("db", version="1.0.0")),
    "bundle": lambda client: client.bundle(WorkerRequest("db", version="1.0.0")),
}


async def refused(url):
    async with aclosing(RegistryClient(url, timeout_ms=60_000, cache_ttl_ms=0)) as client:
        try:
            await ASKED[sys.argv[2]](client)
        except DirectoryError:
            return
    raise SystemExit("it was taken")


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# The first request imports what the others use.
asyncio.run(refused(sys.argv[1] + "/warm"))
before = peak()
asyncio.run(refused(sys.argv[1]))
print(peak() - before)
"""


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ("page", 32 * 1024),
        # A whole bundle, which the detail is told with, may be as large as 33 MiB of JSON.
        ("detail", limits.MAX_REGISTRY_BUNDLE_BYTES // 1024 + 32 * 1024),
        ("bundle", limits.MAX_REGISTRY_BUNDLE_BYTES // 1024 + 32 * 1024),
    ],
)
def test_a_bomb_costs_little_memory(asked: str, most: int) -> None:
    """A gigabyte of blanks in a megabyte of gzip; the peak of a process of its own, in KiB."""
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(1024)) + packer.flush()

    def respond(path: str, connection: socket.socket) -> None:
        content = answer(b"[]") if "/warm" in path else answer(bomb, content_encoding="gzip")
        connection.sendall(content)

    with RawServer(respond) as server:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, server.url, asked],
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        )

    assert int(done.stdout) <= most


@pytest.mark.parametrize(
    "respond",
    [
        stay(b""),
        stay(b"HTTP/1.1 200 OK\r\n"),
        stay(answer(b'{"name"', length=1000)),
        forever(b" ", OPEN, pause=0.05),
        forever(b"x: y\r\n", b"HTTP/1.1 200 OK\r\n", pause=0.05),
    ],
    ids=["silence", "half a head", "half a body", "dripping body", "dripping head"],
)
def test_the_deadline_is_one_for_the_whole_answer(respond: Callable[[str, socket.socket], None]) -> None:
    with RawServer(respond) as server, pytest.raises(DirectoryError, match=r"D320 .*within 300 ms"):
        ask(server.url, lambda client: client.bundle(DB), timeout_ms=300)


def test_a_redirect_chain_shares_the_deadline() -> None:
    def respond(path: str, connection: socket.socket) -> None:
        connection.settimeout(0.1)
        try:
            connection.recv(1)
        except TimeoutError:
            connection.sendall(answer(b"", "302 Found", location=path))

    with RawServer(respond) as server, pytest.raises(DirectoryError, match=r"D320 .*within 250 ms"):
        ask(server.url, lambda client: client.bundle(DB), timeout_ms=250)


@pytest.mark.parametrize("status", ["301 M", "302 F", "303 S", "307 T", "308 P"])
def test_a_redirect_within_the_registry_is_followed(status: str) -> None:
    def respond(path: str, connection: socket.socket) -> None:
        here = path.startswith("/moved")
        connection.sendall(answer(BUNDLE) if here else answer(b"", status, location="/moved?x=1"))

    with RawServer(respond) as server:
        assert ask(server.url, lambda client: client.bundle(DB)).version == "1.0.0"
        assert len(server.asked) == 2


def test_five_redirects_are_followed_and_six_are_not() -> None:
    def respond(path: str, connection: socket.socket) -> None:
        left = int(path.rpartition("=")[2]) if "left=" in path else allowed
        location = f"/w/db/skills?left={left - 1}"
        connection.sendall(answer(b"", "302 Found", location=location) if left else answer(BUNDLE))

    for allowed in (5, 6):
        with RawServer(respond) as server:
            if allowed == 5:
                assert ask(server.url, lambda client: client.bundle(DB)).version == "1.0.0"
            else:
                with pytest.raises(DirectoryError, match=r"D320 .*redirected more than 5"):
                    ask(server.url, lambda client: client.bundle(DB))


PRIVATE = [
    "http://127.0.0.1:1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://0.0.0.0/",
    "http://localhost/",
    "http://localhost./",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[fe80::1]/",
    "http://[fd00::1]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://metadata.internal/",
    "http://example.org/",
    "https://{host}/",
    "//{host}.evil.example/",
    "http://user:secret@{host}:{port}/w/db/skills",
    "http://{host}:{port}0/",
    "http://{host}/",
    "ftp://{host}:{port}/",
    "file:///etc/passwd",
    "gopher://{host}:{port}/",
    "javascript:alert(1)",
    "data:application/json,{{}}",
    "http://[",
]


def test_a_redirect_never_leaves_the_registry() -> None:
    cases = [(target, hop) for target in PRIVATE for hop in (1, 5)]
    location, hops = "", 0

    def respond(path: str, connection: socket.socket) -> None:
        onward = "/again" if len(server.asked) < hops else location
        connection.sendall(answer(b"", "302 Found", location=onward))

    async def run(url: str) -> None:
        nonlocal location, hops
        host, _, port = url.removeprefix("http://").partition(":")
        async with aclosing(RegistryClient(url, timeout_ms=5000, cache_ttl_ms=0)) as client:
            for target, hops in cases:
                location = target.format(host=host, port=port)
                server.asked.clear()
                with pytest.raises(DirectoryError, match=r"D320"):
                    await client.bundle(DB)
                assert len(server.asked) == hops, target

    with RawServer(respond) as server:
        asyncio.run(run(server.url))


def test_a_registry_that_is_not_there_is_an_error_without_its_address() -> None:
    with pytest.raises(DirectoryError, match=r"D320 .*could not be reached") as error:
        ask("http://token:secret@127.0.0.1:1/base", lambda client: client.bundle(DB))
    assert "127.0.0.1" not in str(error.value)
    assert "secret" not in str(error.value)


def test_a_path_in_the_registrys_address_and_its_credentials_are_used() -> None:
    def respond(path: str, connection: socket.socket) -> None:
        connection.sendall(answer(b"", "302 F", location="/base/moved") if "/w/" in path else answer(BUNDLE))

    with RawServer(respond) as server:
        url = server.url.replace("http://", "http://token:secret@") + "/base/"
        assert ask(url, lambda client: client.bundle(DB)).version == "1.0.0"
        assert server.asked == ["/base/w/db/skills?version=latest", "/base/moved"]


def test_gzip_is_understood() -> None:
    with RawServer(send(answer(gzip.compress(body(BUNDLE)), content_encoding="gzip"))) as server:
        assert ask(server.url, lambda client: client.bundle(DB)).version == "1.0.0"


def test_a_detail_without_a_version_has_no_current_one() -> None:
    unversioned = send(answer({"worker": {"name": "db"}}))
    with RawServer(unversioned) as server, pytest.raises(DirectoryError, match=r"D320 .*no version"):
        ask(server.url, lambda client: client.current_version(DB))


def test_a_failing_tree_fails_the_info_but_a_missing_one_does_not() -> None:
    status = "404 Not Found"

    def respond(path: str, connection: socket.socket) -> None:
        skills = path.startswith("/w/db/skills")
        connection.sendall(answer({}, status) if skills else answer({"worker": {"name": "db"}}))

    with RawServer(respond) as server:
        info = ask(server.url, lambda client: client.worker_info(DB))
        assert info["skills_tree"] == {"skills": [], "prompts": []}
        status = "503 Down"
        with pytest.raises(DirectoryError, match=r"D320 .*503"):
            ask(server.url, lambda client: client.worker_info(DB))


def test_the_first_request_is_prepared_once_and_off_the_loop(
    tmp_path: Path, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_worker(tmp_path, tmp_path / "registry", "db", "1.0.0", {"skills/a.md": "# a"})
    prepared_in: list[threading.Thread] = []

    def noted() -> httpx2.AsyncClient:
        prepared_in.append(threading.current_thread())
        return make_client()

    monkeypatch.setattr("iii_directory.registry.registry_client.make_client", noted)
    ask(registry.url, lambda client: client.worker_info(DB))

    assert len(prepared_in) == 1
    assert prepared_in != [threading.current_thread()]
