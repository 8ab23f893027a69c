"""Serve the views over HTTP: routes, twins, forms, live updates and security headers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
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
from iii_directory.access.policy import same_secret
from iii_directory.limits import MAX_PAGE_FORM_BYTES, MAX_PAGE_STREAMS, PAGE_HEARTBEAT_SECONDS
from iii_directory.page import render
from iii_directory.page.views import SOURCES, CallFailedError, View, Views
from iii_directory.shapes import object_of, rows_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from iii_directory.access.http_server import Headers
    from iii_directory.access.policy import Access, Refused
    from iii_directory.page.views import Caller
    from iii_directory.shapes import Json

log = logging.getLogger("iii_directory.page")
STATIC: Final = Path(__file__).parent / "static"
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Shown in the page; every other file is offered for download. SVG can carry scripts, so it is not among them.
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TOKEN_COOKIE: Final = "iii-directory-token"  # noqa: S105 (a name)
_SESSION_COOKIE: Final = "iii-directory-session"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
_FILE_POLICY: Final = "default-src 'none'; sandbox"
_MARKDOWN: Final = "text/markdown; charset=utf-8"


class Page:
    """The ASGI application of the page; lives on the event loop of the bus behind ``call``."""

    def __init__(
        self, call: Caller, render_prompt: Caller, access: Access, connect: Sequence[tuple[str, str]]
    ) -> None:
        """``render_prompt`` may run a function of another worker, so only a form with a token reaches it.

        ``connect`` are the lines with which clients are connected, by their names.
        """
        self._views = Views(call)
        self._render_prompt = render_prompt
        self._access = access
        self._connect = connect
        self._secret = secrets.token_bytes(32)
        self._version = f"{__version__}-{_static_digest()}"
        self._streams: set[asyncio.Event] = set()
        self._closing = False
        self._app = self._application()

    def changed(self) -> None:
        """Tell every open page that something changed."""
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
        await self._app(scope, receive, send)

    async def refuse(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request: with the login form if a token would help, else with the reason."""
        path = scope["path"]
        is_open = path.startswith("/static/") or path in ("/healthz", "/readyz")
        if refused.status == 401 and (is_open or (path == "/login" and scope["method"] == "POST")):
            await self._app({**scope, "is_refused": True}, receive, send)
        elif refused.status == 401 and self._access.token is not None:
            view = View("login", "A token is needed", {}, 401, twins=False)
            response = self._html(Request(scope), view, headers={"www-authenticate": "Bearer"})
            await response(scope, receive, send)
        else:
            await _secured(PlainTextResponse(refused.text, refused.status))(scope, receive, send)

    # Routes

    def _application(self) -> ASGIApp:
        views = self._views
        reading: dict[str, Callable[[Request], Awaitable[View]]] = {
            "/": lambda _: views.overview(),
            "/search": lambda asked: views.search(
                asked.query_params.get("q", ""), asked.query_params.get("kind")
            ),
            "/skills": lambda asked: views.skills(
                asked.query_params, _number(asked.query_params.get("page"))
            ),
            "/skills/{id:path}": lambda asked: views.skill(asked.path_params["id"]),
            "/prompts": lambda _: views.prompts(),
            "/prompts/{name}": lambda asked: views.prompt(asked.path_params["name"]),
            "/functions": lambda _: views.functions(),
            "/functions/{id}": lambda asked: views.function(asked.path_params["id"]),
            "/workers": lambda _: views.workers(),
            "/workers/{name}": lambda asked: views.worker(asked.path_params["name"]),
            "/registry": lambda asked: views.registry(asked.query_params.get("search", "").strip()),
            "/registry/{name}": lambda asked: views.published(asked.path_params["name"]),
            "/diagnostics": lambda _: views.diagnostics(),
            "/usage": lambda _: views.usage(),
        }
        routes = [
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
            Route("/static/{name}", self._static),
            Route("/events", self._events),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/files/{path:path}", self._file),
            Route("/prompts/{name}", self._rendered, methods=["POST"]),
            *(Route(path, self._reading(view)) for path, view in reading.items()),
        ]
        return _Twins(Starlette(routes=routes, exception_handlers={404: self._not_found}))

    def _reading(
        self, view_of: Callable[[Request], Awaitable[View]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                view = await view_of(request)
            except CallFailedError as error:
                view = _failure(error)
            return self._response(request, view)

        return answer

    def _response(self, request: Request, view: View) -> Response:
        match request.scope.get("twin"):
            case "json":
                return _secured(JSONResponse(view.data, view.status))
            case "md":
                text = render.markdown(view) if view.twins else f"# {view.title}\n\n{view.data['message']}\n"
                return _secured(Response(text, view.status, media_type=_MARKDOWN))
            case _:
                return self._html(request, view)

    def _html(self, request: Request, view: View, headers: Mapping[str, str] | None = None) -> Response:
        session = request.cookies.get(_SESSION_COOKIE) or secrets.token_urlsafe(24)
        query = request.url.query
        page = request.scope.get("untwinned", request.url.path)

        def twin(ending: str) -> str:
            return f"{'/index' if page == '/' else page}.{ending}{'?' + query if query else ''}"

        def link(key: str = "", facet: str | None = None, page: int | None = None) -> str:
            chosen = {
                name: value for name, value in request.query_params.items() if name not in (key, "page")
            }
            if key and facet is not None:
                chosen[key] = facet
            if page is not None:
                chosen["page"] = str(page)
            return f"{request.url.path}?{urlencode(chosen)}" if chosen else request.url.path

        text = render.html(
            view,
            here="/" + page.split("/")[1],
            version=self._version,
            twin=twin,
            link=link,
            connect=self._connect,
            source_names=SOURCES,
            form_token=self._form_token(session),
            calls=_calls(view.data) if view.template == "function" else (),
        )
        response = _secured(HTMLResponse(text, view.status, dict(headers or {})))
        if view.template == "prompt" and _SESSION_COOKIE not in request.cookies:
            response.set_cookie(_SESSION_COOKIE, session, httponly=True, samesite="strict")
        return response

    async def _not_found(self, request: Request, _: Exception) -> Response:
        return self._response(
            request, _message("Nothing is here", "There is no such page; MCP is at /mcp.", 404)
        )

    async def _rendered(self, request: Request) -> Response:
        """Render a prompt with the values of its form."""
        fields = await _form(request)
        session = request.cookies.get(_SESSION_COOKIE, "")
        if not session or not same_secret(fields.get("token", ""), self._form_token(session)):
            return self._html(
                request, _message("The form is too old", "Open the prompt again and repeat it.", 403)
            )
        name = request.path_params["name"]
        given = {key[4:]: value for key, value in fields.items() if key.startswith("arg.") and value}
        rendered, problem = None, None
        try:
            view = await self._views.prompt(name)
            answer = object_of(
                await self._render_prompt("prompts::mcp-get", {"name": name, "arguments": given})
            )
            rendered = "\n\n".join(
                str(object_of(message.get("content")).get("text", ""))
                for message in rows_of(answer, "messages")
            )
        except CallFailedError as error:
            if error.missing:
                return self._html(request, _failure(error))
            view = await self._views.prompt(name)
            problem = str(error)
        extra: Json = {"given": given, "rendered": rendered, "problem": problem}
        return self._html(request, View("prompt", view.title, view.data, extra=extra))

    async def _file(self, request: Request) -> Response:
        """Show or send a file of a skill. The longest prefix that is a skill is its id."""
        parts = request.path_params["path"].split("/")
        found: Json | None = None
        for split in range(1, len(parts)):
            skill_id, path = "/".join(parts[:split]), "/".join(parts[split:])
            try:
                found = {**await self._views.file(skill_id, path), "id": skill_id, "path": path}
                break
            except CallFailedError:
                continue
        if found is None:
            return self._html(request, _message("No such file", "No skill has a file at this address.", 404))
        media_type = str(found.get("media_type"))
        if "raw" in request.query_params:
            return self._raw(found, media_type)
        found |= {"image": media_type in _IMAGES, "more": found.get("next_offset") is not None}
        return self._html(request, View("file", found["path"], found, twins=False))

    def _raw(self, found: Json, media_type: str) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            part: Json = found
            while True:
                content = str(part.get("content", ""))
                yield base64.b64decode(content) if part.get("encoding") == "base64" else content.encode()
                if part.get("next_offset") is None:
                    return
                part = await self._views.file(found["id"], found["path"], part["next_offset"])

        shown = media_type in _IMAGES
        response = StreamingResponse(pieces(), media_type=media_type if shown else "application/octet-stream")
        _secured(response)
        response.headers["content-security-policy"] = _FILE_POLICY
        if not shown:
            response.headers["content-disposition"] = "attachment"
        return response

    async def _health(self, _: Request) -> Response:
        """Tell a probe that the process answers."""
        return _secured(JSONResponse({"status": "ok"}))

    async def _ready(self, request: Request) -> Response:
        """Tell a probe whether calls are answered; the parts are named only to clients that may read."""
        parts = await self._views.readiness()
        ready = "unavailable" not in parts.values()
        data: Json = {"status": "ok" if ready else "unavailable"}
        if not request.scope.get("is_refused"):
            data |= parts
        return _secured(JSONResponse(data, 200 if ready else 503))

    async def _metrics(self, _: Request) -> Response:
        """Write the counters in the text format of Prometheus."""
        try:
            text = render.prometheus(await self._views.metrics())
        except CallFailedError as error:
            return _secured(PlainTextResponse(f"{error}\n", 503))
        return _secured(Response(text, media_type="text/plain; version=0.0.4; charset=utf-8"))

    async def _static(self, request: Request) -> Response:
        path = STATIC / Path(request.path_params["name"]).name
        if path.suffix not in _TYPES or not path.is_file():
            return _secured(PlainTextResponse("There is no such file.\n", 404))
        response = Response(path.read_bytes(), media_type=_TYPES[path.suffix])
        response.headers["cache-control"] = "max-age=86400"
        return _secured(response)

    async def _log_in(self, request: Request) -> Response:
        given = (await _form(request)).get("token", "")
        if self._access.token is None or not same_secret(given, self._access.token):
            return self._html(request, View("login", "A token is needed", {"wrong": True}, 401, twins=False))
        response = _secured(RedirectResponse("/", 303))
        response.set_cookie(_TOKEN_COOKIE, given, httponly=True, samesite="strict")
        return response

    async def _events(self, _: Request) -> Response:
        """Stream an event whenever something changed."""
        if len(self._streams) >= MAX_PAGE_STREAMS:
            return _secured(PlainTextResponse("Too many pages are open.\n", 503))

        async def stream() -> AsyncIterator[str]:
            woken = asyncio.Event()
            self._streams.add(woken)
            try:
                yield ": open\n\n"
                while not self._closing:
                    try:
                        async with asyncio.timeout(PAGE_HEARTBEAT_SECONDS):
                            await woken.wait()
                    except TimeoutError:
                        yield ": still here\n\n"
                        continue
                    woken.clear()
                    yield "event: changed\ndata: {}\n\n"
            finally:
                self._streams.discard(woken)

        return _secured(StreamingResponse(stream(), media_type="text/event-stream"))

    def _form_token(self, session: str) -> str:
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()


class _Twins:
    """Takes the ending ``.json`` or ``.md`` off a path and notes it as the wanted form of the view."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        bare, dot, ending = path.rpartition(".")
        if dot and ending in ("json", "md") and not path.startswith(("/files/", "/static/")):
            bare = "/" if bare == "/index" else bare
            scope = {**scope, "path": bare, "raw_path": bare.encode(), "twin": ending, "untwinned": bare}
        await self._app(scope, receive, send)


def _secured(response: Response) -> Any:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _message(title: str, message: str, status: int) -> View:
    return View("message", title, {"message": message}, status, twins=False)


def _failure(error: CallFailedError) -> View:
    return _message(
        "Not found" if error.missing else "That did not work", str(error), 404 if error.missing else 502
    )


async def _form(request: Request) -> dict[str, str]:
    """Read the fields of a plain form; more than a form can hold counts as empty."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_PAGE_FORM_BYTES:
            return {}
    return {name: values[0] for name, values in parse_qs(body.decode(errors="replace")).items()}


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 9 else 1


def _calls(info: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write the example call of a function for a shell, Python and Node."""
    name, payload = str(info.get("function_id")), json.dumps(info.get("example"), ensure_ascii=False)
    quoted = payload.replace("'", "'\\''")
    return [
        ("command", f"iii-directory trigger {name} --json '{quoted}'"),
        ("Python", f'worker.trigger({{"function_id": "{name}", "payload": {payload}}})'),
        ("Node", f'await worker.trigger({{ function_id: "{name}", payload: {payload} }})'),
        ("sentence for an agent", f"Call the function {name} with {payload}."),
    ]


def _static_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(STATIC.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
