"""Write the entry of this server into the configuration files of MCP clients, and take it out again.

An entry is put into the text of a file and taken out again; everything else keeps its bytes, comments too.
Taking it out tries the ways in which it may have been put in, and takes the one that gives the same file.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from iii_directory.cli.common import PROGRAM, fail, replace_file
from iii_directory.cli.output import json_text, say
from iii_directory.cli.tokens import engine_token
from iii_directory.config import TOKEN_VARIABLE
from iii_directory.shapes import is_object, object_of
from iii_directory.text import shown_url
from iii_directory.wire.http_server import endpoint_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from iii_directory.cli.common import Project

SERVER: Final = "iii-directory"
# Stands where a secret goes, which the reader fills in.
TOKEN_PLACE: Final = "<the engine's token>"  # noqa: S105 (a placeholder)


class UnusableFileError(Exception):
    """A file that cannot be edited; the text says why."""


class Launch(NamedTuple):
    """How a client starts the bridge. Clients pass no environment on, so everything is in the arguments."""

    command: str
    arguments: Sequence[str]
    needs_token: bool = False


class HttpTarget(NamedTuple):
    """Where a client finds a bridge that runs already."""

    url: str
    needs_token: bool = False


Target = Launch | HttpTarget


def _fields(target: Target) -> dict[str, Any]:
    """Return the fields of an entry in the names that most clients use."""
    if isinstance(target, Launch):
        found: dict[str, Any] = {"command": target.command, "args": list(target.arguments)}
        return found | ({"env": {TOKEN_VARIABLE: TOKEN_PLACE}} if target.needs_token else {})
    headers = {"headers": {"Authorization": f"Bearer {TOKEN_PLACE}"}} if target.needs_token else {}
    return {"url": target.url, **headers}


class Client(NamedTuple):
    """One client: where its file is, and what an entry in it looks like."""

    file: str
    """Below the project, or with ``is_users`` below the user's home folder."""
    section: str
    is_users: bool = False
    stdio: Mapping[str, str] = {}
    """Further fields of an entry that starts a program."""
    http: Mapping[str, str] = {}
    """Further fields of an entry with an address."""
    names: Mapping[str, str] = {}
    """The client's own names of fields."""
    starts_only: bool = False
    """Whether the client starts programs and knows no addresses."""
    is_one_list: bool = False
    """Whether the program and its arguments are one list."""

    @property
    def is_toml(self) -> bool:
        return self.file.endswith(".toml")

    def entry(self, target: Target) -> str:
        """Write the value of the entry, as the client's file has it."""
        if self.starts_only and isinstance(target, HttpTarget):
            # This program connects to the address and passes the messages on.
            header = ("--header", f"Authorization: Bearer {TOKEN_PLACE}") if target.needs_token else ()
            target = Launch("npx", ["-y", "mcp-remote", target.url, *header])
        fields = {self.names.get(key, key): value for key, value in _fields(target).items()}
        if self.is_one_list and isinstance(target, Launch):
            fields["command"] = [target.command, *fields.pop("args")]
        fields = {**(self.stdio if isinstance(target, Launch) else self.http), **fields}
        if self.is_toml:
            lines = (f"{key} = {_toml(value)}" for key, value in fields.items())
            return "\n".join((f"[{self.section}.{SERVER}]", *lines)) + "\n"
        return json_text(fields)

    def installed(self, text: str, entry: str) -> str:
        """Return the text of the file with the entry in it."""
        return _with_table(text, entry) if self.is_toml else _with_entry(text, self.section, entry)

    def uninstalled(self, text: str) -> str | None:
        """Return the text of the file as it was before the entry was put in; None without an entry."""
        return _without_table(text, self.section) if self.is_toml else _without_entry(text, self.section)


_STDIO: Final = {"type": "stdio"}
_HTTP: Final = {"type": "http"}
_ZED: Final = {"source": "custom"}
_CLAUDE_FOLDER: Final = "Library/Application Support/Claude" if sys.platform == "darwin" else ".config/Claude"
CLIENTS: Final[dict[str, Client]] = {
    "claude-code": Client(".mcp.json", "mcpServers", stdio=_STDIO, http=_HTTP),
    "claude": Client(".mcp.json", "mcpServers", stdio=_STDIO, http=_HTTP),
    "claude-desktop": Client(
        f"{_CLAUDE_FOLDER}/claude_desktop_config.json", "mcpServers", is_users=True, starts_only=True
    ),
    "cursor": Client(".cursor/mcp.json", "mcpServers"),
    "vscode": Client(".vscode/mcp.json", "servers", stdio=_STDIO, http=_HTTP),
    "codex": Client(".codex/config.toml", "mcp_servers", is_users=True, names={"headers": "http_headers"}),
    "gemini": Client(".gemini/settings.json", "mcpServers", names={"url": "httpUrl"}),
    "windsurf": Client(
        ".codeium/windsurf/mcp_config.json", "mcpServers", is_users=True, names={"url": "serverUrl"}
    ),
    "zed": Client(".config/zed/settings.json", "context_servers", is_users=True, stdio=_ZED, http=_ZED),
    "opencode": Client(
        "opencode.json",
        "mcp",
        stdio={"type": "local"},
        http={"type": "remote"},
        names={"env": "environment"},
        is_one_list=True,
    ),
}


def target_for(
    client: str,
    url: str | None,
    expose: Sequence[str],
    http: tuple[str, int] | None,
    project: Project,
    *,
    folder_named: bool,
) -> Target:
    """Return what the client is to start, or where it is to connect.

    A file of the project is shared with others and read by a client that starts servers there: it names the
    command alone. A file of the user names the program and the folder, wherever the client starts it.
    """
    if http is not None:
        return HttpTarget(endpoint_url(*http), needs_token=bool(os.environ.get(TOKEN_VARIABLE)))
    needs_token = url is not None and engine_token(url, named=True) is not None
    words = [] if url is None else ["--url", shown_url(url)]
    start = [PROGRAM]
    if CLIENTS[client].is_users:
        program = Path(sys.executable).with_name(PROGRAM)
        start = [str(program)] if program.exists() else [sys.executable, "-m", "iii_directory"]
    folder = project.settings.skills_folder
    # The bridge takes the parent of a skills folder as its project.
    if folder_named or (CLIENTS[client].is_users and url is None and project.home == folder.parent):
        words += ["--skills-folder", str(folder)]
    elif CLIENTS[client].is_users and url is None:
        words += ["--config", str(project.config)]
    globs = (part for glob in expose for part in ("--expose", glob))
    return Launch(start[0], [*start[1:], "mcp", *words, *globs], needs_token)


def command_line(client: str, target: Target) -> list[str] | None:
    """Return the client's own command that adds the entry, if it has one."""
    if client in ("claude-code", "claude"):
        if isinstance(target, HttpTarget):
            return ["claude", "mcp", "add", "--transport", "http", SERVER, target.url]
        return ["claude", "mcp", "add", SERVER, "--", target.command, *target.arguments]
    if client == "vscode":
        return ["code", "--add-mcp", json_text({"name": SERVER, **_fields(target)}, indent=None)]
    return None


def connecting_lines(url: str) -> list[tuple[str, str]]:
    """Say with which lines clients connect to a bridge that runs, for the web page."""
    typed = command_line("claude-code", HttpTarget(url)) or []
    return [
        ("for any client", url),
        ("for Claude Code", shlex.join(typed)),
        ("for a project", f"{SERVER} mcp --print-config cursor"),
    ]


def print_config(name: str, target: Target) -> None:
    """Print what a client needs in its file, and its own command for that."""
    client = CLIENTS[name]
    where = "at home" if client.is_users else "in the project"
    say(f"This goes into {client.file} {where}:", err=True)
    say(client.installed("", client.entry(target)).rstrip("\n"))
    if (typed := command_line(name, target)) is not None:
        say(f"Or run: {shlex.join(typed)}", err=True)


def edit_file(name: str, home: Path, target: Target | None, *, yes: bool) -> None:
    """Put the entry into the client's own file, or without a target take it out; show the change and ask."""
    import difflib

    client = CLIENTS[name]
    path = (Path.home() if client.is_users else home) / client.file
    try:
        # A link stays a link: the file behind it is written.
        path = path.resolve() if path.exists() else path
        old = path.read_bytes().decode() if path.exists() else ""
        new = client.uninstalled(old) if target is None else client.installed(old, client.entry(target))
    except (OSError, UnicodeDecodeError, UnusableFileError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        fail(f"{path} was not changed: {reason}")
    if new is None or new == old:
        say(f"{path} {'has no entry of ours' if target is None else 'has this entry already'}")
        return
    changes = difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), str(path), lineterm="", n=1)
    say("\n".join(changes))
    if not yes and not (sys.stdin.isatty() and click.confirm(f"Change {path}?")):
        fail("nothing was changed; pass --yes to change it without being asked")
    try:
        if new:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, new)
        else:
            path.unlink()
    except OSError as error:
        fail(f"{path} was not changed: {error.strerror}")
    say(f"changed {path}" if new else f"removed {path}")


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
    """Return the members of the object whose brace is at ``start``."""
    members: list[_Member] = []
    depth, end = 1, start
    key: re.Match[str] | None = None
    value: int | None = None
    for token in _tokens(text, start + 1):
        sign = token[0]
        # Commas and braces count only at the depth of the object itself.
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
    """Parse a file with comments and trailing commas."""
    # Editors allow both in their own files, and JSON does not.
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
    # The entry may have made the file, the section, or only itself: the smallest file that gives this one.
    for before in ("", _cut(text, brace + 1, found), _cut(text, found.value + 1, old)):
        if _with_entry(before, section, entry) == text:
            return before
    return _cut(text, found.value + 1, old)


def _cut(text: str, opened: int, member: _Member) -> str:
    """Return the text without a member of an object that opens right before ``opened``."""
    rest = text[member.end :]
    comma = re.match(r"\s*,", rest)
    if comma is not None:
        rest = rest[comma.end() :]
        start = opened if not text[opened : member.start].strip() else member.start
        return text[:start] + rest
    head = text[: member.start].rstrip()
    is_only = head.endswith("{")
    if is_only:
        # The line that the member began goes with it.
        was_own_line = text[opened : member.start].startswith("\n")
        return text[:opened] + (rest.removeprefix("\n") if was_own_line else rest)
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
    # The entry may have made the file, or brought an empty line before itself.
    for before in ("", text[: max(start - 1, 0)]):
        if _with_table(before, entry) == text:
            return before
    return text[:start] + text[end:]


def _table(text: str, header: str) -> tuple[int, int] | None:
    """Return where the table with a header starts and ends."""
    found = re.search(rf"^{re.escape(header)}[ \t]*$", text, re.MULTILINE)
    if found is None:
        return None
    following = re.search(r"^\[", text[found.end() :], re.MULTILINE)
    end = len(text) if following is None else found.end() + following.start()
    return found.start(), end


def _toml(value: str | list[str] | dict[str, str]) -> str:
    """Write a value in TOML: strings and arrays are as in JSON, objects have another sign."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + " }"
    return json_text(value, indent=None)
