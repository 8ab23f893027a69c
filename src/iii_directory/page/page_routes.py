"""Serve the views over HTTP: routes, twins, forms, live updates and security headers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlencode

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from iii_directory import __version__
from iii_directory.limits import MAX_PAGE_FORM_BYTES, MAX_PAGE_STREAMS, PAGE_HEARTBEAT_SECONDS
from iii_directory.page import render
from iii_directory.page.views import SOURCES, CallFailedError, View, Views
from iii_directory.shapes import object_of, rows_of
from iii_directory.wire.access import same_secret

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from starlette.types import Message, Receive, Scope, Send

    from iii_directory.page.views import Caller
    from iii_directory.shapes import Json
    from iii_directory.wire.access import Access, Refused
    from iii_directory.wire.http_server import Headers

log = logging.getLogger("iii_directory.page")
STATIC: Final = Path(__file__).parent / "static"
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Shown in the page; every other file is offered for download. SVG can carry scripts, so it is not among them.
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TOKEN_COOKIE: Final = "iii-directory-token"  # noqa: S105 (a name)
_SESSION_COOKIE: Final = "iii-directory-session"
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
_FILE_POLICY: Final = "default-src 'none'; sandbox"
_WITH_FORMS: Final = ("prompt", "published")
_DONE: Final = {"installed": "It was installed.", "removed": "It was removed."}


class Page:
    """The ASGI application of the page; lives on the event loop of the bus behind ``read``."""

    def __init__(
        self,
        read: Caller,
        work: Caller,
        change: Caller | None,
        access: Access,
        connect: Sequence[tuple[str, str]],
    ) -> None:
        """Build the routes.

        ``work`` may run a function of another worker, and ``change`` may install and remove, if the operator
        allows it: only a form with a token reaches them. ``connect`` are the lines with which clients are
        connected, by their names.
        """
        self._views = Views(read)
        self._read = read
        self._work = work
        self._change = change
        self._access = access
        self._connect = connect
        self._secret = secrets.token_bytes(32)
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(STATIC.iterdir())))
        # In the addresses of script and style sheet, so that a browser never mixes two releases.
        self._version = f"{__version__}-{digest.hexdigest()[:8]}"
        self._streams: set[asyncio.Event] = set()
        # Counts changes. It starts at the clock, so that a page of an earlier process is behind.
        self._changes = time.time_ns()
        self._closing = False
        self._app = Starlette(routes=self._routes(), exception_handlers={404: self._not_found})

    def changed(self) -> None:
        """Tell every open page that something changed."""
        self._changes += 1
        for stream in self._streams:
            stream.set()

    def close(self) -> None:
        """End the event streams."""
        self._closing = True
        self.changed()

    def complete(self, scope: Scope, headers: Headers) -> None:
        """Add what a browser cannot send itself: the token out of the page's own cookie.

        Browsers also send ``Origin: null`` with forms of a page whose referrer policy is ``no-referrer``;
        such a form is the page's own if the browser says that it comes from the same origin.
        """
        if headers.get("origin") == ["null"] and headers.get("sec-fetch-site") == ["same-origin"]:
            del headers["origin"]
        kept = Request(scope).cookies.get(_TOKEN_COOKIE)
        if kept is not None and "authorization" not in headers:
            headers["authorization"] = [f"Bearer {kept}"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; an ending ``.json`` or ``.md`` of a path names the wanted form of the view."""
        path: str = scope["path"]
        # Taken before the view is made: a change meanwhile is then told to the page that shows the view.
        scope = {**scope, "seen": self._changes}
        bare, dot, ending = path.rpartition(".")
        if dot and ending in ("json", "md") and not path.startswith(("/files/", "/static/")):
            bare = "/" if bare == "/index" else bare
            scope = {**scope, "path": bare, "raw_path": bare.encode(), "twin": ending}
        await self._app(scope, receive, _secured(send))

    async def refuse(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request: with the login form if a token would help, else with the reason."""
        path = scope["path"]
        is_open = path.startswith("/static/") or path in ("/healthz", "/readyz")
        if refused.status == 401 and (is_open or (path == "/login" and scope["method"] == "POST")):
            await self({**scope, "is_refused": True}, receive, send)
            return
        if refused.status == 401 and self._access.token is not None:
            response = self._html(Request(scope), View("login", "A token is needed", {}, 401, twins=False))
            response.headers["www-authenticate"] = "Bearer"
        else:
            response = PlainTextResponse(refused.text, refused.status)
        await response(scope, receive, _secured(send))

    def _routes(self) -> list[Route]:
        views = self._views
        reading: dict[str, Callable[[Request], Awaitable[View]]] = {
            "/": lambda _: views.overview(),
            "/search": lambda asked: views.search(
                asked.query_params.get("q", ""), asked.query_params.get("kind")
            ),
            "/skills": lambda asked: views.skills(asked.query_params),
            "/skills/{id:path}": lambda asked: views.skill(asked.path_params["id"]),
            "/prompts": lambda _: views.prompts(),
            "/prompts/{name}": lambda asked: views.prompt(asked.path_params["name"]),
            "/functions": lambda asked: views.functions(hidden=bool(asked.query_params.get("hidden"))),
            "/functions/{id}": lambda asked: views.function(asked.path_params["id"]),
            "/workers": lambda _: views.workers(),
            "/workers/{name}": lambda asked: views.worker(asked.path_params["name"]),
            "/registry": lambda asked: views.registry(
                asked.query_params.get("search", "").strip(), asked.query_params.get("cursor")
            ),
            "/registry/{name}": lambda asked: views.published(
                asked.path_params["name"], asked.query_params.get("version")
            ),
            "/diagnostics": lambda _: views.diagnostics(),
            "/usage": lambda _: views.usage(),
        }

        def answering(view_of: Callable[[Request], Awaitable[View]]) -> Callable[[Request], Any]:
            async def answer(request: Request) -> Response:
                try:
                    return self._response(request, await view_of(request))
                except CallFailedError as error:
                    wanted = next(iter(request.path_params.values()), "") if error.missing else ""
                    return self._response(request, replace(_failure(error), extra={"wanted": wanted}))

            return answer

        return [
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
            Route("/static/{name}", self._static),
            Route("/events", self._events),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/files/{path:path}", self._file),
            Route("/prompts/{name}", self._render_prompt, methods=["POST"]),
            Route("/registry/{name}", self._install, methods=["POST"]),
            *(Route(path, answering(view_of)) for path, view_of in reading.items()),
        ]

    def _response(self, request: Request, view: View) -> Response:
        match request.scope.get("twin"):
            case "json":
                return JSONResponse(view.data, view.status)
            case "md":
                text = render.markdown(view) if view.twins else f"# {view.title}\n\n{view.data['message']}\n"
                return Response(text, view.status, media_type="text/markdown; charset=utf-8")
            case _:
                return self._html(request, view)

    def _html(self, request: Request, view: View) -> Response:
        session = request.cookies.get(_SESSION_COOKIE) or secrets.token_urlsafe(24)
        page, query = quote(request.scope["path"], safe="/:@"), request.url.query
        stem, tail = "/index" if page == "/" else page, f"?{query}" if query else ""

        def link(**changes: Any) -> str:
            """Return the address of this view with other query fields; None removes a field."""
            fields = {**request.query_params, "page": None, "cursor": None, **changes}
            kept = {name: value for name, value in fields.items() if value is not None}
            return f"{page}?{urlencode(kept)}" if kept else page

        text = render.html(
            view,
            here="/skills" if page.startswith("/files/") else "/" + page.split("/")[1],
            version=self._version,
            twins={ending: f"{stem}.{ending}{tail}" for ending in ("json", "md") if view.twins},
            link=link,
            connect=self._connect,
            source_names=SOURCES,
            form_token=self._form_token(session),
            allow_changes=self._change is not None,
            done=_DONE.get(request.query_params.get("done", "")),
            # What a form brought would be lost if a change replaced the view.
            is_live=request.method == "GET",
            seen=request.scope.get("seen", ""),
        )
        response = HTMLResponse(text, view.status)
        if view.template in _WITH_FORMS and _SESSION_COOKIE not in request.cookies:
            response.set_cookie(_SESSION_COOKIE, session, httponly=True, samesite="strict")
        return response

    async def _not_found(self, request: Request, _: Exception) -> Response:
        view = _message("Nothing is here", "This address has no page; MCP is at /mcp.", 404)
        return self._response(request, view)

    # Forms

    def _form_token(self, session: str) -> str:
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    async def _trusted_form(self, request: Request) -> dict[str, str] | None:
        """Return the fields of a form that this browser session was given; None for any other."""
        fields, session = await _form(request), request.cookies.get(_SESSION_COOKIE, "")
        is_ours = session and same_secret(fields.get("token", ""), self._form_token(session))
        return fields if is_ours else None

    async def _render_prompt(self, request: Request) -> Response:
        """Render a prompt with the values of its form."""
        fields = await self._trusted_form(request)
        if fields is None:
            return self._html(request, _TOO_OLD)
        name = request.path_params["name"]
        given = {key[4:]: value for key, value in fields.items() if key.startswith("arg.") and value}
        extra: Json = {"given": given}
        try:
            view = await self._views.prompt(name)
            answer = await self._work("prompts::mcp-get", {"name": name, "arguments": given})
            contents = [object_of(message.get("content")) for message in rows_of(answer, "messages")]
            extra["rendered"] = "\n\n".join(str(content.get("text", "")) for content in contents)
        except CallFailedError as error:
            if error.missing:
                return self._html(request, _failure(error))
            view = await self._views.prompt(name)
            extra["problem"] = str(error)
        return self._html(request, View("prompt", view.title, view.data, extra=extra))

    async def _install(self, request: Request) -> Response:
        """Plan, install or remove a published worker, as its form says."""
        fields = await self._trusted_form(request)
        if fields is None:
            return self._html(request, _TOO_OLD)
        name, action = request.path_params["name"], fields.get("action")
        version = fields.get("version") or None
        extra: Json = {}
        try:
            if action == "remove" and self._change is not None:
                await self._change("directory::skills::remove", {"namespace": name})
                return RedirectResponse(f"/registry/{quote(name)}?done=removed", 303)
            wanted = {"worker": name, **({"version": version} if version else {})}
            # Files that were edited by hand stay.
            plan = object_of(await self._read("directory::skills::plan", wanted))
            # What was published since the person looked is shown before it is installed.
            has_changed = "resolved" in fields and fields["resolved"] != plan.get("resolved")
            if action == "install" and self._change is not None and not has_changed:
                await self._change("directory::skills::install", wanted)
                return RedirectResponse(f"/registry/{quote(name)}?done=installed", 303)
            extra = {"plan": plan, "has_changed": has_changed}
        except CallFailedError as error:
            extra["problem"] = str(error)
        try:
            view = await self._views.published(name, version)
        except CallFailedError as error:
            return self._html(request, _failure(error))
        return self._html(request, View("published", view.title, view.data, extra=extra))

    async def _log_in(self, request: Request) -> Response:
        given = (await _form(request)).get("token", "")
        if self._access.token is None or not same_secret(given, self._access.token):
            return self._html(request, View("login", "A token is needed", {"wrong": True}, 401, twins=False))
        response = RedirectResponse("/", 303)
        response.set_cookie(_TOKEN_COOKIE, given, httponly=True, samesite="strict")
        return response

    # Files, probes and events

    async def _file(self, request: Request) -> Response:
        """Show or send a file of a skill."""
        asked = request.path_params["path"]
        try:
            found = await self._views.file(asked)
        except CallFailedError as error:
            return self._html(request, _failure(error))
        media_type = str(found.get("media_type"))
        is_image = media_type in _IMAGES
        if "raw" not in request.query_params:
            found |= {"is_image": is_image, "more": found.get("next_offset") is not None}
            return self._html(request, View("file", str(found.get("path")), found, twins=False))

        async def pieces() -> AsyncIterator[bytes]:
            part = found
            while True:
                content = str(part.get("content", ""))
                yield base64.b64decode(content) if part.get("encoding") == "base64" else content.encode()
                if part.get("next_offset") is None:
                    return
                part = await self._views.file(asked, part["next_offset"])

        sent_as = media_type if is_image else "application/octet-stream"
        response = StreamingResponse(pieces(), media_type=sent_as)
        response.headers["content-security-policy"] = _FILE_POLICY
        if not is_image:
            response.headers["content-disposition"] = "attachment"
        return response

    async def _health(self, _: Request) -> Response:
        """Tell a probe that the process answers."""
        return JSONResponse({"status": "ok"})

    async def _ready(self, request: Request) -> Response:
        """Tell a probe whether calls are answered; the parts are named only to clients that may read."""
        parts = await self._views.readiness()
        is_ready = "unavailable" not in parts.values()
        data: Json = {"status": "ok" if is_ready else "unavailable"}
        if not request.scope.get("is_refused"):
            data |= parts
        return JSONResponse(data, 200 if is_ready else 503)

    async def _metrics(self, _: Request) -> Response:
        """Write the counters in the text format of Prometheus."""
        try:
            text = render.prometheus(rows_of(await self._read("directory::metrics", {}), "metrics"))
        except CallFailedError as error:
            return PlainTextResponse(f"{error}\n", 503)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _static(self, request: Request) -> Response:
        path = STATIC / Path(request.path_params["name"]).name
        if path.suffix not in _TYPES or not path.is_file():
            return PlainTextResponse("This file does not exist.\n", 404)
        cached = {"cache-control": "max-age=86400"}
        return Response(path.read_bytes(), media_type=_TYPES[path.suffix], headers=cached)

    async def _events(self, request: Request) -> Response:
        """Stream an event whenever something changed, also since the page was made or the stream broke."""
        if len(self._streams) >= MAX_PAGE_STREAMS:
            return PlainTextResponse("Too many pages are open.\n", 503)

        async def stream() -> AsyncIterator[str]:
            woken = asyncio.Event()
            self._streams.add(woken)
            seen = request.headers.get("last-event-id") or request.query_params.get("seen")
            if seen != str(self._changes):
                woken.set()
            try:
                yield ": open\n\n"
                while not self._closing:
                    try:
                        async with asyncio.timeout(PAGE_HEARTBEAT_SECONDS):
                            await woken.wait()
                    except TimeoutError:
                        # Writing is the only way to notice that the browser left.
                        yield ": still here\n\n"
                        continue
                    woken.clear()
                    yield f"id: {self._changes}\nevent: changed\ndata: {{}}\n\n"
            finally:
                self._streams.discard(woken)

        return StreamingResponse(stream(), media_type="text/event-stream")


def _secured(send: Send) -> Send:
    """Add the security headers to every answer that goes out through ``send``."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _message(title: str, message: str, status: int) -> View:
    return View("message", title, {"message": message}, status, twins=False)


_TOO_OLD: Final = _message("The form is too old", "Open the page again and repeat it.", 403)


def _failure(error: CallFailedError) -> View:
    title, status = ("Not found", 404) if error.missing else ("That did not work", 502)
    return _message(title, str(error), status)


async def _form(request: Request) -> dict[str, str]:
    """Read the fields of a plain form; more than a form can hold counts as empty."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_PAGE_FORM_BYTES:
            return {}
    return {name: values[0] for name, values in parse_qs(body.decode(errors="replace")).items()}
