"""The few lines an MCP client needs to find the bridge, in the form each client wants them. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from iii_directory.text import has_unsafe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SERVER: Final = "iii-directory"
TOKEN_PLACE: Final = "<the engine's token>"  # noqa: S105 (it is none)
"""Stands where a secret goes: it is the reader's to fill in, not ours to print."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a client starts the bridge. It passes no environment on, so everything is in the arguments."""

    command: str
    arguments: Sequence[str]
    needs_token: bool = False

    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = {"command": self.command, "args": list(self.arguments)}
        if self.needs_token:
            found["env"] = {"III_TOKEN": TOKEN_PLACE}
        return found


@dataclass(frozen=True, slots=True)
class Address:
    """Where a client finds a bridge that runs already."""

    url: str
    needs_token: bool = False

    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = {"url": self.url}
        if self.needs_token:
            found["headers"] = {"Authorization": f"Bearer {TOKEN_PLACE}"}
        return found


Target = Launch | Address


@dataclass(frozen=True, slots=True)
class Snippet:
    """Lines for a client's configuration, and the file they belong in."""

    file: str
    text: str


def snippet(client: str, target: Target) -> Snippet:
    """What one of `CLIENTS` needs."""
    return CLIENTS[client](target)


def _claude(target: Target) -> Snippet:
    return Snippet(".mcp.json in the project", _document("mcpServers", _typed(target)))


def _cursor(target: Target) -> Snippet:
    return Snippet(".cursor/mcp.json in the project or at home", _document("mcpServers", target.fields()))


def _vscode(target: Target) -> Snippet:
    return Snippet(".vscode/mcp.json in the project", _document("servers", _typed(target)))


def _codex(target: Target) -> Snippet:
    fields = target.fields()
    if "headers" in fields:
        fields["http_headers"] = fields.pop("headers")
    lines = (f"{key} = {_toml(value)}" for key, value in fields.items())
    return Snippet(".codex/config.toml at home", "\n".join((f"[mcp_servers.{SERVER}]", *lines)))


def _claude_desktop(target: Target) -> Snippet:
    # It starts programs and knows no addresses; this one passes on what it is told.
    fields = target.fields()
    if isinstance(target, Address):
        header = ("--header", f"Authorization: Bearer {TOKEN_PLACE}") if target.needs_token else ()
        fields = {"command": "npx", "args": ["-y", "mcp-remote", target.url, *header]}
    return Snippet(
        "claude_desktop_config.json (Settings, Developer, Edit Config)", _document("mcpServers", fields)
    )


def _windsurf(target: Target) -> Snippet:
    file = ".codeium/windsurf/mcp_config.json at home"
    return Snippet(file, _document("mcpServers", _url_as("serverUrl", target)))


def _gemini(target: Target) -> Snippet:
    return Snippet(
        ".gemini/settings.json in the project or at home",
        _document("mcpServers", _url_as("httpUrl", target)),
    )


def _zed(target: Target) -> Snippet:
    file = "settings.json of Zed (.config/zed at home)"
    return Snippet(file, _document("context_servers", {"source": "custom", **target.fields()}))


def _url_as(name: str, target: Target) -> dict[str, Any]:
    return {name if key == "url" else key: value for key, value in target.fields().items()}


def _typed(target: Target) -> dict[str, Any]:
    return {"type": "stdio" if isinstance(target, Launch) else "http", **target.fields()}


def _document(key: str, fields: dict[str, Any]) -> str:
    return _json({key: {SERVER: fields}}, indent=2)


def _toml(value: str | list[str] | dict[str, str]) -> str:
    """JSON's strings and arrays are TOML's too; its objects need another sign."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + " }"
    return _json(value)


def _json(value: object, indent: int | None = None) -> str:
    """Letters as they are, unless some of them act on a terminal or hide: then all others as escapes."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return json.dumps(value, indent=indent) if has_unsafe(text.replace("\n", "")) else text


CLIENTS: Final[dict[str, Callable[[Target], Snippet]]] = {
    "claude": _claude,
    "claude-desktop": _claude_desktop,
    "cursor": _cursor,
    "vscode": _vscode,
    "codex": _codex,
    "windsurf": _windsurf,
    "gemini": _gemini,
    "zed": _zed,
}
