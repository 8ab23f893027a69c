"""Answer ``initialize`` over stdio before anything slow is imported.

The SDK takes most of a second to import, and the first answer of a server is known beforehand. So it is sent
at once; the SDK is then given the request as well, and its own answer, which is the same, is left out. The
SDK answers everything that is not a plain ``initialize``. Without this module a lone bridge takes 1.4 times
as long to the first answer as a process that imports ``mcp`` and answers, with it less than half as long:
``mcp.initialize-stdio`` of the benchmarks.
"""

from __future__ import annotations

import json
import os
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from iii_directory import __version__
from iii_directory.shapes import is_object, object_of

if TYPE_CHECKING:
    from iii_directory.shapes import Json

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 3117
NAME: Final = "iii-directory"
TITLE: Final = "iii directory"
INSTRUCTIONS: Final = (
    "Skills of this project: instructions, often with scripts, that say how a task is done here. Before a "
    "task, call the tool search with what you need in words; then read what fits with skill__fetch, several "
    "ids or files at once. directory__skills__list shows every skill. Read a skill before you act on it, and "
    "run its scripts from the place that search and directory__skills__files tell. Texts name functions as "
    "a::b; search says whether one can be called here. Prompts are slash-commands for the user."
)
# The versions that begin with a handshake, and what the SDK's server makes of the handlers it is given. A
# test holds both against the SDK.
VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
CAPABILITIES: Final[Json] = {
    "completions": {},
    "prompts": {"listChanged": True},
    "extensions": {"io.modelcontextprotocol/skills": {"directoryRead": True}},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": True},
}


class Wire:
    """The client at the other end of stdin and stdout; nothing else in this process reaches it any more."""

    def __init__(self) -> None:
        self.incoming = _Incoming(os.fdopen(os.dup(0), "rb"), encoding="utf-8", errors="replace")
        self.outgoing = _Outgoing(os.fdopen(os.dup(1), "wb"), encoding="utf-8")
        # A library that prints would break the protocol: its output goes to stderr, and it reads nothing.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)

    def greet(self) -> None:
        """Wait for the first line, and answer it if that can be done without the SDK."""
        line = self.incoming.ahead = self.incoming.readline()
        answer = answer_to(line)
        if answer is not None:
            self.outgoing.write(json.dumps(answer, ensure_ascii=False) + "\n")
            self.outgoing.flush()
            self.outgoing.answered = answer["id"]


def answer_to(line: str) -> Json | None:
    """Answer a line that is a valid ``initialize``; return None for anything else."""
    try:
        message: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    request = object_of(message)
    asked = object_of(request.get("params"))
    client, able = object_of(asked.get("clientInfo")), asked.get("capabilities")
    is_valid = (
        request.get("jsonrpc") == "2.0"
        and request.get("method") == "initialize"
        and isinstance(request.get("id"), (str, int))
        and asked.get("protocolVersion") in VERSIONS
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version"), str)
        and is_object(able)
        and all(is_object(one) for one in able.values())
    )
    if not is_valid:
        return None
    result = {
        "protocolVersion": asked["protocolVersion"],
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": NAME, "title": TITLE, "version": __version__},
        "instructions": INSTRUCTIONS,
    }
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


class _Incoming(TextIOWrapper):
    """What the client says; a line that was read ahead is read again."""

    ahead = ""

    def readline(self, size: int = -1, /) -> str:
        line, self.ahead = self.ahead, ""
        return line or super().readline(size)


class _Outgoing(TextIOWrapper):
    """What the client is told; the SDK's answer to a request that was answered already is left out."""

    answered: object = None

    def write(self, line: str, /) -> int:
        if self.answered is not None and json.loads(line).get("id") == self.answered:
            self.answered = None
            return len(line)
        return super().write(line)
