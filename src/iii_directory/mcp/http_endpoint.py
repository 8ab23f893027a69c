"""Serve HTTP: ``/mcp`` with the SDK behind it, the well-known index of skills, ``llms.txt``, and the page.

A session of a 2025 client holds memory until the client ends it or is silent for long. One client gets only
so many: opening another ends its oldest unused session, or else the one that has been quiet the longest. A
session with a request under way, or with a stream of notifications, is never ended for that.

``/.well-known/agent-skills/index.json`` (version 0.2.0 of the discovery draft) names every skill with the
digest of what it is installed from: its SKILL.md, or an archive where it has other files. The files of an
archive are also served one by one, so that relative links work in a browser.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from iii_directory import limits
from iii_directory.documents.file_pages import media_type
from iii_directory.documents.ids import OVERVIEW
from iii_directory.documents.skill_package import ARCHIVE_SUFFIX, WELL_KNOWN, index_document
from iii_directory.mcp.exposure import RESOURCES_READ, read_payload
from iii_directory.mcp.upstream import BridgeError
from iii_directory.shapes import object_of, rows_of
from iii_directory.text import visible
from iii_directory.wire.access import Refused
from iii_directory.wire.http_server import MCP_PATH, USER, HttpServer, refuse
from iii_directory.wire.json_text import is_long

if TYPE_CHECKING:
    from collections.abc import Hashable

    from starlette.types import Message, Receive, Scope, Send

    from iii_directory.mcp.bridge import BridgeServer
    from iii_directory.mcp.upstream import Upstream
    from iii_directory.page.page_routes import Page
    from iii_directory.wire.http_server import Listener

log = logging.getLogger("iii_directory.mcp")
_SESSION_HEADER: Final = b"mcp-session-id"
_TOO_MANY_SESSIONS: Final = Refused(
    503, "All the sessions that one client can have are in use; end one of them, and try again.\n"
)
_NOT_WHOLE: Final = Refused(408, f"A request must be whole within {limits.MCP_REQUEST_SECONDS:g} s.\n")
_TOO_MUCH: Final = Refused(
    413, f"A request has at most {limits.MAX_READ_MARKS} commas and opening brackets.\n"
)
_STOPPING: Final = Refused(503, "The server is stopping.\n")
_LLMS: Final = "/llms.txt"
_LLMS_FULL: Final = "/llms-full.txt"
_INDEX: Final = "directory::mcp::index"
_MARKDOWN: Final = "text/markdown; charset=utf-8"


@dataclass(slots=True)
class _SessionUse:
    """How a client uses one of its sessions."""

    client: Hashable
    heard_at: float
    requests: int = 0
    """The first request only says that the client is ready; after more the session is in use."""
    under_way: int = 0


@dataclass(slots=True, eq=False)
class Ledger:
    """Which client has which sessions. Times are seconds of any clock that does not go back."""

    _most: int
    _sessions: dict[str, _SessionUse] = field(default_factory=dict[str, _SessionUse])
    _opening: Counter[Hashable] = field(default_factory=Counter["Hashable"])

    def room_for(self, client: Hashable, now: float) -> list[str] | None:
        """Return the sessions to end before the client opens one more; None if all are in use.

        A caller that goes on to open one says so with `opening`.
        """
        # The SDK ends sessions that are silent for so long by itself, and does not tell.
        for session_id, session in list(self._sessions.items()):
            if not session.under_way and now - session.heard_at > limits.MCP_SESSION_IDLE_SECONDS:
                del self._sessions[session_id]
        mine = [(one, session) for one, session in self._sessions.items() if session.client == client]
        surplus = max(len(mine) + self._opening[client] + 1 - self._most, 0)
        quiet = sorted(
            (session.requests > 1, session.heard_at, session_id)
            for session_id, session in mine
            if not session.under_way
        )
        return None if surplus > len(quiet) else [session_id for _, _, session_id in quiet[:surplus]]

    def opening(self, client: Hashable) -> None:
        """Count a session that is being opened; `opened` tells the outcome."""
        self._opening[client] += 1

    def opened(self, client: Hashable, session_id: str | None, now: float) -> None:
        """Note the outcome of an opening; None if it failed."""
        self._opening -= Counter([client])
        if session_id is not None:
            self._sessions[session_id] = _SessionUse(client, now)

    def used(self, session_id: str, now: float, *, begins: bool) -> None:
        """Note that a request of a session begins or is finished; unknown sessions are passed over."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.under_way += 1 if begins else -1
            session.requests += begins
            session.heard_at = now

    def ended(self, session_id: str) -> None:
        """Forget a session."""
        self._sessions.pop(session_id, None)


class HttpEndpoint:
    """The bridge's server behind one listener; lives on the loop of the bridge's bus."""

    def __init__(self, server: BridgeServer, listener: Listener, page: Page, discovery: Discovery) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        self._listener = listener
        self._page = page
        self._discovery = discovery
        self._sessions = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=limits.MCP_SESSION_IDLE_SECONDS,
            max_request_body_size=limits.MAX_MCP_BODY_BYTES,
            max_sessions=limits.MAX_MCP_SESSIONS,
        )
        self._ledger = Ledger(listener.limits.client_sessions)
        self._http = HttpServer(self._answer, listener, self._refuse, page.complete)
        self._stopping = asyncio.Event()
        self._open = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Serve until `stop`."""
        if self._listener.access.everybody_s is not None:
            log.warning("%s", self._listener.access.everybody_s)
        ready = asyncio.Event()

        # The SDK's sessions must be opened and closed in one task.
        async def keep_sessions() -> None:
            async with self._sessions.run():
                self._open = True
                ready.set()
                await self._stopping.wait()

        self._tasks = [asyncio.create_task(keep_sessions()), asyncio.create_task(self._http.serve())]
        await ready.wait()

    async def stop(self) -> None:
        """End every session, which ends its streams, and then the listener, which waits for them."""
        self._open = False
        self._page.close()
        self._stopping.set()
        sessions, http = self._tasks
        await sessions
        self._http.stop()
        await http

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose headers have passed; only now is its body read."""
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

        # The parser leaves blanks behind a value, and the SDK compares values as they are.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        if not self._open:
            await refuse(_STOPPING, send)
            return
        whole = await _whole(receive, self._listener.limits.request_seconds)
        if isinstance(whole, Refused):
            await refuse(whole, send, (b"connection", b"close"))
            return
        if scope["path"] != MCP_PATH:
            is_discovery = scope["path"].startswith((WELL_KNOWN, _LLMS, _LLMS_FULL))
            await (self._discovery if is_discovery else self._page)(scope, whole, send)
            return
        # Of a header that comes twice the first counts, as for the SDK.
        headers = {name: value.decode("latin-1") for name, value in reversed(scope["headers"])}
        if (session_id := headers.get(_SESSION_HEADER)) is not None:
            await self._in_session(session_id, scope, whole, send)
        # A client of 2026 names its version with every request, and opens no session.
        elif headers.get(b"mcp-protocol-version") not in (None, *HANDSHAKE_PROTOCOL_VERSIONS):
            await self._sessions.handle_request(scope, whole, send)
        else:
            await self._open_session(scope, whole, send)

    async def _refuse(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == MCP_PATH:
            await refuse(refused, send)
        else:
            await self._page.refuse(refused, scope, receive, send)

    async def _in_session(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        over = scope["method"] == "DELETE"

        async def noted(message: Message) -> None:
            nonlocal over
            over = over or message.get("status") == 404
            await send(message)

        self._ledger.used(session_id, time.monotonic(), begins=True)
        try:
            await self._sessions.handle_request(scope, receive, noted)
        finally:
            self._ledger.used(session_id, time.monotonic(), begins=False)
            if over:
                self._ledger.ended(session_id)

    async def _open_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a new session; sessions that its client left open make room for it."""
        client = scope["client"][0], scope[USER]
        surplus = self._ledger.room_for(client, time.monotonic())
        if surplus is None:
            await refuse(_TOO_MANY_SESSIONS, send)
            return
        is_open = False

        async def noted(message: Message) -> None:
            nonlocal is_open
            for name, value in message.get("headers", ()):
                if name.lower() == _SESSION_HEADER and message.get("status", 500) < 400:
                    # Before the client hears of its session: the next request may come at once.
                    self._ledger.opened(client, value.decode("latin-1"), time.monotonic())
                    is_open = True
            await send(message)

        self._ledger.opening(client)
        try:
            for session_id in surplus:
                # The session is ended by the request with which its own client would end it.
                self._ledger.ended(session_id)
                header = _SESSION_HEADER, session_id.encode("latin-1")
                asked = {**scope, "method": "DELETE", "headers": [header]}
                await self._sessions.handle_request(asked, _no_body, _ignored)
            await self._sessions.handle_request(scope, receive, noted)
        finally:
            if not is_open:
                self._ledger.opened(client, None, time.monotonic())


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignored(_message: Message) -> None:
    """Drop the answer to a request that was made up here."""


async def _whole(receive: Receive, seconds: float) -> Receive | Refused:
    """Wait for the whole body of a request; refuse a body that takes long to arrive or to parse.

    A body that is too large is handed on as far as it came, to the SDK, which refuses it.
    """
    kept, size, more = list["Message"](), 0, True
    try:
        async with asyncio.timeout(seconds):
            while more and size <= limits.MAX_MCP_BODY_BYTES:
                message = await receive()
                kept.append(message)
                size += len(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        return _NOT_WHOLE
    if is_long(*(message.get("body", b"") for message in kept), most=2 * limits.MAX_MCP_BODY_BYTES):
        return _TOO_MUCH

    async def replay() -> Message:
        return kept.pop(0) if kept else await receive()

    return replay


# For installers and crawlers


class _Download(NamedTuple):
    body: bytes
    media_type: str
    digest: str | None = None


class Discovery:
    """The ASGI application for installers and crawlers, over the directory behind ``upstream``."""

    def __init__(self, upstream: Upstream) -> None:
        self._read = partial(upstream.call, repeatable=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] in ("GET", "HEAD"):
            try:
                response = await self._response(Request(scope, receive))
            except BridgeError as failure:
                response = Response(f"{failure}\n", 404 if failure.blame == "not_found" else 503)
        else:
            response = Response("Only GET and HEAD are answered here.\n", 405, {"allow": "GET, HEAD"})
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        found = await self._download(request.url.path)
        if found is None:
            return Response("No skill or file has this address.\n", 404)
        headers = {"cache-control": "no-cache"}
        info = object_of(await self._read("engine::functions::info", {"function_id": _INDEX}))
        # Only the operator opens the index to web pages of other origins: it may be private.
        if object_of(info.get("metadata")).get("public_index") is True:
            headers["access-control-allow-origin"] = "*"
        if found.digest is not None:
            headers["etag"] = f'"{found.digest}"'
            if request.headers.get("if-none-match") == headers["etag"]:
                return Response(status_code=304, headers=headers)
        return Response(found.body, media_type=found.media_type, headers=headers)

    async def _download(self, path: str) -> _Download | None:
        if path in (_LLMS, _LLMS_FULL):
            return _Download(await self._llms(full=path == _LLMS_FULL), _MARKDOWN)
        wanted = path.removeprefix(WELL_KNOWN)
        rows = {str(row.get("name")): row for row in rows_of(await self._read(_INDEX, {}), "skills")}
        if wanted == "index.json":
            return _Download(index_document(rows.values()), "application/json")
        name, _, inner = wanted.partition("/")
        if inner:
            return await self._file(rows[name], inner) if name in rows else None
        row = rows.get(name.removesuffix(ARCHIVE_SUFFIX), {})
        # A skill that is a lone SKILL.md is offered as that file alone.
        if not name.endswith(ARCHIVE_SUFFIX) or row.get("type") != "archive":
            return None
        answer = object_of(await self._read("directory::skills::archive", {"id": row["id"]}))
        body = base64.b64decode(answer["content"])
        return _Download(body, "application/gzip", f"sha256:{answer['sha256']}")

    async def _file(self, row: dict[str, Any], inner: str) -> _Download:
        payload = read_payload(f"skill://{row['path']}/{inner}")
        (content,) = rows_of(await self._read(RESOURCES_READ, payload), "contents")
        text = content.get("text")
        body = text.encode() if isinstance(text, str) else base64.b64decode(content["blob"])
        kind = _MARKDOWN if inner.endswith(".md") else media_type(inner)
        is_whole_skill = inner == OVERVIEW and row["type"] == "skill-md"
        return _Download(body, kind, row["digest"] if is_whole_skill else None)

    async def _llms(self, *, full: bool) -> bytes:
        """Write the skills of the directory for a reader of web pages: one line each, or their bodies."""
        skills = rows_of(await self._read("directory::skills::list", {"kind": "skill"}), "skills")
        lines = ["# Skills", "", "> How tasks are done here: instructions, often with scripts.", ""]
        if not full:
            lines += ["## Skills", ""]
            for row in skills:
                title, said = visible(str(row.get("title"))), visible(str(row.get("description")))
                lines.append(f"- [{title}](/skills/{row['id']}.md): {said}")
            return "\n".join((*lines, "")).encode()
        size = 0
        for row in skills:
            answer = object_of(await self._read("directory::skills::get", {"id": row["id"]}))
            section = f"## {row['id']}\n\n{str(answer.get('body')).strip()}\n"
            size += len(section.encode())
            if size > limits.MAX_LLMS_BYTES:
                lines.append(f"The rest is left out; {_LLMS} names every skill.")
                break
            lines.append(section)
        return "\n".join(lines).encode()
