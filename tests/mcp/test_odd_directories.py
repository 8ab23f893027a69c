"""Another directory than ours on the engine: of what it answers, clients get what they can use."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.mcp.stage import http_bridge, session
from tests.support.engine import EngineThread
from tests.support.reader import OtherWorker, until

from iii_directory.mcp.bridge import Bridge, BridgeServer, bus_inside
from iii_directory.mcp.http_endpoint import HttpEndpoint
from iii_directory.wire.http_server import Listener

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mcp.stage import Session

ROW = {"uri": "iii://a", "name": "A"}
ANSWERS: dict[str, Any] = {
    "skills::resources-list": {"resources": [ROW, {"uri": "iii://b\x00", "name": "B"}, {"uri": 7}, None]},
    "skills::resources-read": {"contents": [{"uri": "iii://a", "blob": 7}]},
    "skills::resources-templates": "none",
    "prompts::mcp-list": {"prompts": [{"name": "p"}, {"name": "q\nr"}]},
    "prompts::mcp-get": {"messages": "none"},
    "directory::diagnostics": None,
}


@pytest.fixture(scope="module", params=["joined", "inside"])
def client(request: pytest.FixtureRequest) -> Iterator[Session]:
    with EngineThread() as engine, OtherWorker(engine.url, "odd") as odd:
        for function_id, answer in ANSWERS.items():
            odd.offer(function_id, lambda _, answer=answer: answer)
        inside = engine if request.param == "inside" else None
        with http_bridge(engine.url, inside=inside) as url, session(url, "2026") as opened:
            yield opened


def test_rows_that_no_client_could_use_are_left_out_and_said_so(
    client: Session, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "iii_directory.mcp"):
        assert client.uris() == ["iii://a"]

    assert "skills::resources-list: 2 entries that no client could use are left out" in caplog.text


def test_a_list_of_another_shape_is_empty(client: Session) -> None:
    assert client.ask("list_resource_templates").resource_templates == []


def test_a_prompt_whose_name_cannot_be_shown_is_left_out(client: Session) -> None:
    assert [row.name for row in client.ask("list_prompts").prompts] == ["p"]


def test_a_content_of_another_shape_is_an_error(client: Session) -> None:
    assert "is not a resource" in client.refusal("read_resource", "iii://a").message


def test_a_prompt_of_another_shape_is_an_error(client: Session) -> None:
    assert "'p'" in client.refusal("get_prompt", "p").message


def test_a_tool_without_a_description_has_one_and_takes_anything(client: Session) -> None:
    tool = client.tools()["directory__diagnostics"]

    assert tool.description == "Calls directory::diagnostics on the engine."
    assert tool.input_schema["type"] == "object"
    assert "properties" not in tool.input_schema
    assert client.call("directory__diagnostics", anything=1) == "null"


# What a bridge keeps, and for how long


def test_nothing_is_kept_of_clients_that_left() -> None:
    with EngineThread() as engine:
        listener = Listener("127.0.0.1", 0, None)
        bus = engine.on_loop(lambda: bus_inside(engine.server))
        bridge = Bridge.on(bus)
        try:
            bus.run(bridge.start_http(listener))
            announcer = bridge._announcer
            for _ in range(3):
                with session(listener.url, "2025"), session(listener.url, "2026"):
                    until(lambda: len(announcer._sessions) == 1, "the older client is known")
                    until(lambda: len(announcer._streams._streams) == 1, "the newer client listens")
            until(lambda: not announcer._sessions, "the older clients are forgotten")
            until(lambda: not announcer._streams._streams, "the newer clients are forgotten")
            until(lambda: not announcer._tasks._running, "nobody is told any more")
        finally:
            bus.run(bridge.close())
            bus.close()


def test_a_request_while_it_stops_is_told_so() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    no_page: Any = SimpleNamespace(complete=None)
    # Without a socket the owner of the request is unknown, so it brings a token.
    listener = Listener("127.0.0.1", 0, "a-token-of-sixteen")
    with listener.socket:
        host = f"127.0.0.1:{listener.port}".encode()
        headers = [(b"host", host), (b"authorization", b"Bearer a-token-of-sixteen")]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
        endpoint = HttpEndpoint(BridgeServer("test"), listener, no_page, no_page)
        asyncio.run(endpoint._answer(scope, receive, send))

    assert sent[0]["status"] == 503
