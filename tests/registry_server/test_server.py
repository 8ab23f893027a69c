"""The registry of one's own, over the wire."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import select
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from tests.hostile import HOSTILE
from tests.support.installs import put
from tests.support.registry import publish_worker

from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


CANARY = "canary-52c01d6f"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RegistryServer]:
    with RegistryServer(tmp_path / "registry") as running:
        yield running


def get(server: RegistryServer, path: str, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_an_empty_registry_has_an_empty_page(server: RegistryServer) -> None:
    assert get(server, "/w") == (
        200,
        {"workers": [], "pagination": {"next_cursor": None, "has_more": False, "page_size": 20}},
    )


def test_a_running_server_shows_what_is_published_at_once(tmp_path: Path, server: RegistryServer) -> None:
    for version in ("1.0.0", "1.1.0"):
        files = {"skills/SKILL.md": version, "README.md": "# Read me"}
        publish_worker(tmp_path, tmp_path / "registry", "db", version, files, description="A database")

        status, page = get(server, "/w")
        assert status == 200
        assert [(row["name"], row["version"]) for row in page["workers"]] == [("db", version)]
        assert get(server, "/w/db/skills")[1]["skills"] == [{"path": "SKILL.md", "content": version}]
        assert get(server, "/w/db")[1]["worker"]["readme"] == "# Read me"
        assert get(server, "/w/db?version=1.0.0")[1]["worker"]["version"] == "1.0.0"


def test_functions_and_triggers_of_worker_yaml_are_served(tmp_path: Path, server: RegistryServer) -> None:
    function = {"name": "db::get", "description": "get", "request_schema": {"type": "object"}}
    publish_worker(
        tmp_path,
        tmp_path / "registry",
        "db",
        "1.0.0",
        {},
        functions=[function],
        triggers="nonsense",
        type="binary",
    )

    worker = get(server, "/w/db")[1]["worker"]

    assert worker["functions"] == [function]
    assert worker["triggers"] == []
    assert worker["type"] == "binary"
    assert get(server, "/w/db/skills")[0] == 404


def test_tags_are_taken_as_versions(tmp_path: Path, server: RegistryServer) -> None:
    registry = tmp_path / "registry"
    publish_worker(tmp_path, registry, "db", "1.0.0", {"skills/a.md": "1"})
    publish_worker(tmp_path, registry, "db", "2.0.0-rc.1", {"skills/a.md": "2"}, tag="next")

    for query, version in (
        ("", "1.0.0"),
        ("version=latest", "1.0.0"),
        ("version=next", "2.0.0-rc.1"),
        ("tag=next", "2.0.0-rc.1"),
    ):
        assert get(server, f"/w/db/skills?{query}")[1]["version"] == version


def test_browsing_goes_by_downloads_and_searching_by_likeness(tmp_path: Path, server: RegistryServer) -> None:
    for name, about in (("mail", "Send mail"), ("queue", "Jobs"), ("web", "Serve pages")):
        publish_worker(
            tmp_path, tmp_path / "registry", name, "1.0.0", {"skills/a.md": "x"}, description=about
        )
    for name in ("web", "web", "queue"):
        get(server, f"/w/{name}/skills")

    assert [row["name"] for row in get(server, "/w")[1]["workers"]] == ["web", "queue", "mail"]
    assert [row["name"] for row in get(server, "/w?search=serv%20page")[1]["workers"]] == ["web"]
    assert get(server, "/w?search=zzz")[1]["workers"] == []


def test_pages_follow_their_cursors(tmp_path: Path, server: RegistryServer) -> None:
    names = [f"w{n:02}" for n in range(45)]
    for name in names:
        publish_worker(tmp_path, tmp_path / "registry", name, "1.0.0", {"skills/a.md": "x"})
    seen: list[str] = []
    cursor = ""
    for size in (20, 20, 5):
        page = get(server, f"/w?cursor={cursor}" if cursor else "/w")[1]
        assert len(page["workers"]) == size
        seen += [row["name"] for row in page["workers"]]
        cursor = page["pagination"]["next_cursor"]

    assert seen == names
    assert cursor is None


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 404),
        ("/x", 404),
        ("/w/none", 404),
        ("/w/none/skills", 404),
        ("/w/db?version=9.9.9", 404),
        ("/w/db/skills?version=../1.0.0", 404),
        ("/w/db/files", 404),
        ("/w/../../etc/passwd", 404),
        ("/w/%2e%2e", 404),
        ("/w/..%2f..", 404),
        ("/w/db%00", 404),
        ("/w/.iii-directory", 404),
        ("/w/DB", 404),
        ("/w?cursor=nonsense", 400),
        ("/w?" + "&".join(f"a{n}=1" for n in range(50)), 400),
    ],
)
def test_anything_else_is_an_error_in_json(
    tmp_path: Path, server: RegistryServer, path: str, status: int
) -> None:
    publish_worker(tmp_path, tmp_path / "registry", "db", "1.0.0", {"skills/a.md": "x"})

    answered, body = get(server, path)

    assert answered == status
    assert str(tmp_path) not in body["error"]


OWN_NAMES = ("127.0.0.1", "localhost", "[::1]", "LOCALHOST")
FOREIGN_HOSTS = (
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "localhost.:{port}",
    "evil.example@127.0.0.1:{port}",
    "127.0.0.1@evil.example",
    "127.0.0.1:1",
    "127.0.0.1",
    "[::ffff:127.0.0.1]:{port}",
    "0.0.0.0:{port}",
    "127.1:{port}",
    "2130706433:{port}",
    "",
    "[",
)
FOREIGN_ORIGINS = (
    "http://evil.example",
    "https://evil.example:{port}",
    "null",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://127.0.0.1.evil.example:{port}",
    "http://evil.example@127.0.0.1:{port}",
    "file://",
    "",
)


def port_of(server: RegistryServer) -> int:
    return int(server.url.rpartition(":")[2])


@pytest.mark.parametrize("name", OWN_NAMES)
def test_on_loopback_its_own_names_are_served(server: RegistryServer, name: str) -> None:
    host = f"{name}:{port_of(server)}"

    assert get(server, "/w", Host=host)[0] == 200
    assert get(server, "/w", Host=host, Origin=f"http://{host}")[0] == 200


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_on_loopback_another_name_is_not_served(server: RegistryServer, host: str) -> None:
    assert get(server, "/w", Host=host.format(port=port_of(server)))[0] == 421


@pytest.mark.parametrize("name", OWN_NAMES)
@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_page_of_another_origin_gets_nothing(server: RegistryServer, name: str, origin: str) -> None:
    port = port_of(server)

    assert get(server, "/w", Host=f"{name}:{port}", Origin=origin.format(port=port))[0] == 403


BROKEN_YAML = (
    "!!bool x",
    "!!timestamp zz",
    "!!int zz",
    "0x_",
    "[" * 100_000,
    "{a: " * 50_000,
    "9" * 5000,
    "2024-99-99",
)


@pytest.mark.parametrize("value", BROKEN_YAML, ids=lambda value: value[:12])
def test_a_broken_worker_yaml_hides_no_other_worker(
    tmp_path: Path, server: RegistryServer, value: str
) -> None:
    registry = tmp_path / "registry"
    publish_worker(tmp_path, registry, "broken", "1.0.0", {"skills/a.md": "x"}, description="A")
    publish_worker(tmp_path, registry, "db", "1.0.0", {"skills/a.md": "x"}, description="B")
    (registry / "broken" / "1.0.0" / "worker.yaml").write_text(
        f"name: broken\nx: {value}\n", encoding="utf-8"
    )

    status, page = get(server, "/w")

    assert status == 200
    assert sorted(row["name"] for row in page["workers"]) == ["broken", "db"]
    assert get(server, "/w/broken")[0] == 200


def test_a_request_that_only_drips_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_directory.limits.REGISTRY_REQUEST_SECONDS", 0.3)
    with RegistryServer(tmp_path) as server, socket.create_connection(("127.0.0.1", port_of(server))) as drip:
        drip.settimeout(10)
        drip.sendall(b"GET /w HTTP/1.1\r\nX: ")
        for _ in range(1000):
            readable, _, _ = select.select([drip], [], [], 0.02)
            if readable:
                break
            drip.sendall(b"x")
        else:
            pytest.fail("it was never given up")


def test_past_its_room_a_connection_is_refused_and_the_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.limits.MAX_REGISTRY_CONNECTIONS", 4)
    with RegistryServer(tmp_path) as server, contextlib.ExitStack() as open_sockets:
        address = ("127.0.0.1", port_of(server))
        held = [open_sockets.enter_context(socket.create_connection(address)) for _ in range(4)]
        held[0].sendall(f"GET /w HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\n\r\n".encode())
        held[0].settimeout(10)
        assert held[0].recv(100).startswith(b"HTTP/1.1 200")

        with socket.create_connection(address) as late:
            late.settimeout(10)
            assert late.recv(1000).startswith(b"HTTP/1.1 503 ")


def test_a_request_with_a_body_ends_its_connection(server: RegistryServer) -> None:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    connection.request("GET", "/w", body=b"GET /w HTTP/1.1\r\n\r\n")
    response = connection.getresponse()
    response.read()

    assert response.will_close or connection.sock is None or connection.sock.recv(1) == b""
    connection.close()


def test_another_method_is_refused(server: RegistryServer) -> None:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    connection.request("DELETE", "/w/db")

    assert connection.getresponse().status == 501
    connection.close()


def test_it_listens_on_loopback_unless_told_otherwise(server: RegistryServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")


def test_a_hostile_route_reads_nothing_and_is_told_nothing(tmp_path: Path, server: RegistryServer) -> None:
    for secret in ("secret.md", "registry2/secret.md", "etc/passwd"):
        put(tmp_path, {secret: CANARY.encode()})
    sent = [text.encode("utf-8", "surrogatepass") for text in HOSTILE]
    assert len(sent) >= 150

    for text, safe, route in itertools.product(sent, ("", "/.%"), ("/w/{}", "/w/{}/skills", "/{}")):
        path = route.format(quote(text, safe=safe))
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
        connection.request("GET", path)
        with contextlib.closing(connection), connection.getresponse() as response:
            reply = response.read()
        # Without a name it is the list, which is empty.
        assert 400 <= response.status < 500 or json.loads(reply)["workers"] == [], path
        assert CANARY.encode() not in reply, path
