"""The configuration files of MCP clients: what each needs, and editing a file around it. Pure.

An entry is put into the text of a file and taken out again; everything else keeps its bytes, comments too.
Taking it out tries the ways in which it may have been put in, and takes the one that gives the same file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable  # noqa: TC003 (a named tuple has its fields' types at run time)
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.shapes import is_object, object_of
from iii_directory.text import has_unsafe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SERVER: Final = "iii-directory"
TOKEN_PLACE: Final = "<the engine's token>"  # noqa: S105 (a placeholder)
"""Stands where a secret goes, which is the reader's to fill in."""


class UnusableFileError(Exception):
    """A file that cannot be edited; the text says why."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a client starts the bridge. Clients pass no environment on, so everything is in the arguments."""

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


# What each client wants to read


def _typed(target: Target) -> dict[str, Any]:
    return {"type": "stdio" if isinstance(target, Launch) else "http", **target.fields()}


def _renamed(url: str) -> Callable[[Target], dict[str, Any]]:
    return lambda target: {url if key == "url" else key: value for key, value in target.fields().items()}


def _codex(target: Target) -> dict[str, Any]:
    return {"http_headers" if key == "headers" else key: value for key, value in target.fields().items()}


def _claude_desktop(target: Target) -> dict[str, Any]:
    if isinstance(target, Launch):
        return target.fields()
    # It starts programs and knows no addresses; this one passes on what it is told.
    header = ("--header", f"Authorization: Bearer {TOKEN_PLACE}") if target.needs_token else ()
    return {"command": "npx", "args": ["-y", "mcp-remote", target.url, *header]}


def _zed(target: Target) -> dict[str, Any]:
    return {"source": "custom", **target.fields()}


def _opencode(target: Target) -> dict[str, Any]:
    if isinstance(target, Address):
        return {"type": "remote", **target.fields()}
    found: dict[str, Any] = {"type": "local", "command": [target.command, *target.arguments]}
    return found | ({"environment": {"III_TOKEN": TOKEN_PLACE}} if target.needs_token else {})


class Client(NamedTuple):
    """One client: where its file is, and what an entry in it looks like."""

    file: str
    """Below the project, or with ``is_users`` below the user's home folder."""
    section: str
    fields: Callable[[Target], dict[str, Any]] = lambda target: target.fields()
    is_users: bool = False

    @property
    def is_toml(self) -> bool:
        return self.file.endswith(".toml")

    def entry(self, target: Target) -> str:
        """The value of the entry, as its file has it."""
        if self.is_toml:
            lines = (f"{key} = {_toml(value)}" for key, value in self.fields(target).items())
            return "\n".join((f"[{self.section}.{SERVER}]", *lines)) + "\n"
        return _json(self.fields(target), indent=2)

    def installed(self, text: str, entry: str) -> str:
        """The text of the file with the entry in it."""
        return _with_table(text, entry) if self.is_toml else _with_entry(text, self.section, entry)

    def uninstalled(self, text: str) -> str | None:
        """The text of the file as it was before the entry was put in; None if it has none."""
        return _without_table(text, self.section) if self.is_toml else _without_entry(text, self.section)


CLIENTS: Final[dict[str, Client]] = {
    "claude-code": Client(".mcp.json", "mcpServers", _typed),
    "claude": Client(".mcp.json", "mcpServers", _typed),
    "claude-desktop": Client(
        ".config/Claude/claude_desktop_config.json", "mcpServers", _claude_desktop, is_users=True
    ),
    "cursor": Client(".cursor/mcp.json", "mcpServers"),
    "vscode": Client(".vscode/mcp.json", "servers", _typed),
    "codex": Client(".codex/config.toml", "mcp_servers", _codex, is_users=True),
    "gemini": Client(".gemini/settings.json", "mcpServers", _renamed("httpUrl")),
    "windsurf": Client(
        ".codeium/windsurf/mcp_config.json", "mcpServers", _renamed("serverUrl"), is_users=True
    ),
    "zed": Client(".config/zed/settings.json", "context_servers", _zed, is_users=True),
    "opencode": Client("opencode.json", "mcp", _opencode),
}


def command_line(client: str, target: Target) -> list[str] | None:
    """The command of a client's own that adds the entry, where it has one."""
    if client in ("claude-code", "claude"):
        if isinstance(target, Address):
            return ["claude", "mcp", "add", "--transport", "http", SERVER, target.url]
        return ["claude", "mcp", "add", SERVER, "--", target.command, *target.arguments]
    if client == "vscode":
        return ["code", "--add-mcp", _json({"name": SERVER, **target.fields()})]
    return None


# JSON with comments, as editors write it

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\],:]|[^\s"{}\[\],:/]+', re.DOTALL)


class _Member(NamedTuple):
    """One member of an object: where its key starts, and where its value starts and ends."""

    key: str
    start: int
    value: int
    end: int


def _tokens(text: str, start: int) -> Iterator[re.Match[str]]:
    return (found for found in _TOKEN.finditer(text, start) if not found[0].startswith(("//", "/*")))


def _members(text: str, start: int) -> list[_Member]:
    """The members of the object whose brace is at ``start``."""
    members: list[_Member] = []
    depth, end = 1, start
    key: re.Match[str] | None = None
    value: int | None = None
    for token in _tokens(text, start + 1):
        sign = token[0]
        depth -= sign in ("]", "}")
        if depth == 0 or (sign == "," and depth == 1):
            if key is not None and value is not None:
                members.append(_Member(json.loads(key[0]), key.start(), value, end))
            key = value = None
            if depth == 0:
                break
        elif key is None:
            key = token
        elif value is None and sign != ":":
            value = token.start()
        depth += sign in ("[", "{")
        end = token.end()
    return members


def _read(text: str) -> dict[str, Any]:
    """The object in a file with comments and trailing commas."""
    plain = "".join(token[0] for token in _tokens(text, 0))
    try:
        found: Any = json.loads(re.sub(r",([\]}])", r"\1", plain))
    except ValueError:
        raise UnusableFileError("it is not JSON") from None
    if not is_object(found):
        raise UnusableFileError("it is not a JSON object")
    return found


def _with_entry(text: str, section: str, entry: str) -> str:
    if not text.strip():
        return f'{{\n  "{section}": {{\n    "{SERVER}": {_indented(entry, 4)}\n  }}\n}}\n'
    known = _read(text).get(section, {})
    if not is_object(known):
        raise UnusableFileError(f"its {section} is not an object")
    brace = next(token.start() for token in _tokens(text, 0))
    top = _members(text, brace)
    found = next((member for member in top if member.key == section), None)
    if found is None:
        made = f'\n  "{section}": {{\n    "{SERVER}": {_indented(entry, 4)}\n  }}{"," if top else chr(10)}'
        return text[: brace + 1] + made + text[brace + 1 :]
    inner = _members(text, found.value)
    old = next((member for member in inner if member.key == SERVER), None)
    if old is not None:
        return text[: old.value] + _indented(entry, 4) + text[old.end :]
    made = f'\n    "{SERVER}": {_indented(entry, 4)},' if inner else f'"{SERVER}": {_indented(entry, 4)}'
    return text[: found.value + 1] + made + text[found.value + 1 :]


def _without_entry(text: str, section: str) -> str | None:
    if not text.strip() or SERVER not in object_of(_read(text).get(section)):
        return None
    brace = next(token.start() for token in _tokens(text, 0))
    found = next(member for member in _members(text, brace) if member.key == section)
    old = next(member for member in _members(text, found.value) if member.key == SERVER)
    entry = "\n".join(line.removeprefix("    ") for line in text[old.value : old.end].split("\n"))
    for before in ("", _cut(text, brace + 1, found), _cut(text, found.value + 1, old)):
        if _with_entry(before, section, entry) == text:
            return before
    return _cut(text, found.value + 1, old)


def _cut(text: str, opened: int, member: _Member) -> str:
    """The text without a member of an object that opens right before ``opened``."""
    rest = text[member.end :]
    comma = re.match(r"\s*,", rest)
    if comma is not None:
        rest = rest[comma.end() :]
        start = opened if not text[opened : member.start].strip() else member.start
        return text[:start] + rest
    head = text[: member.start].rstrip()
    is_only = head.endswith("{")
    if is_only:
        return text[:opened] + (
            rest.removeprefix("\n") if text[opened : member.start].startswith("\n") else rest
        )
    return head.removesuffix(",") + rest


def _indented(entry: str, by: int) -> str:
    return entry.replace("\n", "\n" + " " * by)


# TOML


def _with_table(text: str, entry: str) -> str:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise UnusableFileError("it is not TOML") from None
    header = entry.partition("\n")[0]
    if (found := _table(text, header)) is not None:
        return text[: found[0]] + entry + text[found[1] :]
    return f"{text}\n{entry}" if text else entry


def _without_table(text: str, section: str) -> str | None:
    found = _table(text, f"[{section}.{SERVER}]")
    if found is None:
        return None
    start, end = found
    entry = text[start:end]
    for before in ("", text[: max(start - 1, 0)]):
        if _with_table(before, entry) == text:
            return before
    return text[:start] + text[end:]


def _table(text: str, header: str) -> tuple[int, int] | None:
    """Where the table with a header starts and ends."""
    found = re.search(rf"^{re.escape(header)}[ \t]*$", text, re.MULTILINE)
    if found is None:
        return None
    following = re.search(r"^\[", text[found.end() :], re.MULTILINE)
    end = len(text) if following is None else found.end() + following.start()
    return found.start(), end


def _toml(value: str | list[str] | dict[str, str]) -> str:
    """JSON's strings and arrays are TOML's too; its objects need another sign."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + " }"
    return _json(value)


def _json(value: object, indent: int | None = None) -> str:
    """JSON with letters as they are, unless some of them act on a terminal or hide: then as escapes."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return json.dumps(value, indent=indent) if has_unsafe(text.replace("\n", "")) else text
