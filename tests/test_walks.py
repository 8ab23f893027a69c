"""How many package borders everyday requests cross, as `tools.walks` traces them."""

from __future__ import annotations

from typing import Final

from tools.walks import GOALS, path_of, walks

# The other walks of `tools.walks` are longer than their goals and are added here when they are not.
SHORT_ENOUGH: Final = ("get", "mcp read", "edit then read", "skills list", "add from git")


def test_everyday_requests_cross_few_package_borders() -> None:
    paths = {name: path_of(calls) for name, calls in walks(SHORT_ENOUGH).items()}

    assert paths.keys() == set(SHORT_ENOUGH)
    assert {name: path for name, path in paths.items() if len(path) - 1 > GOALS[name]} == {}


def test_calls_are_reduced_to_packages_without_plain_values_and_the_codec() -> None:
    calls = [
        "wire/message_socket.py:MessageSocket.flush",
        "wire/codec.py:encode",
        "engine/server.py:EngineServer.flush",
        "text.py:cut",
        "documents/ids.py:bare_id",
        "engine/peer.py:Peer.flush",
        "wire/http_server.py:serve",
    ]

    assert path_of(calls) == ["wire", "engine", "wire"]
