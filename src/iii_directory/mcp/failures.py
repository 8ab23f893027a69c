"""What went wrong on the engine, as an MCP client is told: a code of the protocol and one sentence."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from iii_directory.errors import ENGINE_FAILED, ENGINE_NOT_FOUND, RETRY, DirectoryError, Step, retold
from iii_directory.exposure import OFFERED, tool_names
from iii_directory.limits import MAX_MCP_ERROR_CHARS
from iii_directory.text import cut, visible
from iii_directory.wire.protocol import (
    CONNECTION_LOST,
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENTS,
    NOT_FOUND,
    TIMEOUT,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from mcp.server.context import ServerRequestContext

    from iii_directory.errors import ErrorKind

Blame = Literal["not_found", "request", "server"]
"""Whose fault it is: something asked for is not there, the request is wrong, or the other side failed."""

INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""What 2025 calls a missing resource; 2026-07-28 retired the code in favour of INVALID_PARAMS."""

_DIRECTORY: Final = ("skills::", "prompts::", "skill::", "directory::")
_SENTENCE: Final = re.compile(r"D\d{3} (\w+): ")
_BLAMES: Final[dict[str, Blame]] = {
    "not_found": "not_found",
    "invalid_input": "request",
    "forbidden": "request",
    # The engine's own functions have codes of their own.
    NOT_FOUND: "not_found",
    INVALID_ARGUMENTS: "request",
    "FORBIDDEN": "request",
}
"""By the class in a sentence of the directory, else by the error's code. What a text says is no ground."""


_TOOL_OF: Final = {function: name for name, function in tool_names(OFFERED).items()}


class BridgeError(Exception):
    """A call that did not work out; ``str()`` is the sentence for the client."""

    def __init__(self, sentence: str, blame: Blame = "server") -> None:
        super().__init__(sentence)
        self.blame: Blame = blame

    def code(self, *, about_resource: bool, modern: bool) -> int:
        """The protocol's code; a missing resource had one of its own before 2026-07-28."""
        if self.blame == "server":
            return INTERNAL_ERROR
        if self.blame == "not_found" and about_resource and not modern:
            return RESOURCE_NOT_FOUND
        return INVALID_PARAMS


@contextmanager
def protocol_errors(ctx: ServerRequestContext[Any], resource: str | None = None) -> Generator[None]:
    """Raise a failure as an error of the protocol version that the client speaks."""
    try:
        yield
    except BridgeError as failure:
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        code = failure.code(about_resource=resource is not None, modern=modern)
        about = None if resource is None or failure.blame == "server" else {"uri": resource}
        raise MCPError(code, str(failure), about) from None


def remote_failure(function_id: str, code: str, message: str) -> BridgeError:
    """What a call on the engine came back with.

    The directory's own errors are sentences already. Other workers may send anything, stack traces
    included, so of theirs one cleaned, bounded line is passed on.
    """
    if code == FUNCTION_NOT_FOUND:
        steps = (Step("start iii-directory on that engine with: iii-directory serve"),)
        problem = f"function '{function_id}' not found on the engine"
        return _own(ENGINE_NOT_FOUND, problem, *(steps if function_id.startswith(_DIRECTORY) else ()))
    if code == CONNECTION_LOST:
        return _own(
            ENGINE_FAILED, f"the engine went away while '{function_id}' ran; whether it ran is not known"
        )
    if code == TIMEOUT:
        return _own(ENGINE_FAILED, f"'{function_id}' did not answer in time")
    line = (
        retold(cut(visible(message), MAX_MCP_ERROR_CHARS), _for_tools)
        or f"'{function_id}' failed without saying why"
    )
    sentence = _SENTENCE.match(line)
    return BridgeError(line, _BLAMES.get(sentence[1] if sentence else code, "server"))


def _for_tools(step: Step) -> str:
    """Render a next step for a model, which calls tools; functions that are not tools keep their ids."""
    tool = _TOOL_OF.get(step.function)
    return str(step if tool is None else step._replace(function=tool))


def unreachable(url: str | None) -> BridgeError:
    """Nothing answers where the engine should be; without an address, the folder's own directory is late."""
    if url is None:
        return _own(ENGINE_FAILED, "the directory of this folder has not started yet", RETRY)
    return _own(
        ENGINE_FAILED,
        f"no iii engine answers at {url}",
        Step("start one with: iii-directory up"),
        RETRY,
    )


def _own(kind: ErrorKind, problem: str, *next_steps: Step) -> BridgeError:
    error = DirectoryError(kind, problem, next_steps=next_steps or None)
    return BridgeError(str(error), _BLAMES.get(kind.name, "server"))
