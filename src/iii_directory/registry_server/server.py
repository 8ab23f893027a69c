"""Serves a folder of published workers with the API of the public registry."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qs, unquote

from iii_directory import limits
from iii_directory.access.http_server import HttpLimits, HttpServer, Listener
from iii_directory.registry_server.ranking import BadCursorError, page_of, search_rows
from iii_directory.registry_server.store import RegistryStore

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from starlette.types import Receive, Scope, Send

    from iii_directory.access.policy import Refused

_log: Final = logging.getLogger(__name__)
_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-cache"),
    (b"x-content-type-options", b"nosniff"),
)


class _AnswerError(Exception):
    """An answer that is not 200, with its reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class RegistryServer:
    """A registry that listens from the start, and answers in a thread of its own while it is a context."""

    def __init__(self, folder: Path, *, host: str = "127.0.0.1", port: int = 0) -> None:
        bounds = HttpLimits(limits.MAX_REGISTRY_CONNECTIONS, limits.REGISTRY_REQUEST_SECONDS)
        self._store = RegistryStore(folder)
        self._listener = Listener(host, port, is_public=True, path="", limits=bounds)
        self._server = HttpServer(self._respond, self._listener, _refuse)

    @property
    def url(self) -> str:
        return self._listener.url

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="registry", daemon=True
        )
        self._thread.start()
        started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._thread.join()
        self._listener.socket.close()

    async def _serve(self, started: threading.Event) -> None:
        serving = asyncio.ensure_future(self._server.serve())
        await asyncio.sleep(0)
        started.set()
        await serving

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - no body is read
        _log.debug("%s %s?%s", scope["method"], scope["path"], scope["query_string"].decode("latin-1"))
        try:
            if scope["method"] != "GET":
                raise _AnswerError(HTTPStatus.NOT_IMPLEMENTED, "only GET is answered")
            status, answer = HTTPStatus.OK, await asyncio.to_thread(self._answer, scope)
        except _AnswerError as error:
            status, answer = error.status, {"error": str(error)}
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        # A body is not read, so the connection cannot carry another request behind it.
        await _send(send, status, answer, *([(b"connection", b"close")] if has_body else []))

    def _answer(self, scope: Scope) -> dict[str, Any]:
        try:
            query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=8)
        except ValueError:
            raise _AnswerError(HTTPStatus.BAD_REQUEST, "this address cannot be read") from None
        fields = {name: values[-1] for name, values in query.items()}
        path = scope["raw_path"].decode("latin-1").partition("?")[0]
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["w"]:
                return self._page(fields)
            case ["w", worker]:
                return self._store.detail(worker, self._resolved(worker, fields))
            case ["w", worker, "skills"]:
                return self._bundle(worker, self._resolved(worker, fields))
            case _:
                raise _AnswerError(HTTPStatus.NOT_FOUND, "no such address")

    def _page(self, fields: dict[str, str]) -> dict[str, Any]:
        search = fields.get("search", "").strip()[: limits.MAX_REGISTRY_QUERY_CHARS] or None
        try:
            return page_of(search_rows(self._store.rows(), search), fields.get("cursor"))
        except BadCursorError:
            raise _AnswerError(HTTPStatus.BAD_REQUEST, "the cursor is not one of this registry") from None

    def _resolved(self, worker: str, fields: dict[str, str]) -> str:
        # The public registry once took tags in a field of their own.
        asked = fields.get("version") or fields.get("tag") or "latest"
        version = self._store.resolve(worker, asked)
        if version is None:
            raise _AnswerError(HTTPStatus.NOT_FOUND, "no such worker or version")
        return version

    def _bundle(self, worker: str, version: str) -> dict[str, Any]:
        bundle = self._store.bundle(worker, version)
        if bundle is None:
            raise _AnswerError(HTTPStatus.NOT_FOUND, "this worker has no skills")
        self._store.count_download(worker)
        return bundle


async def _refuse(refused: Refused, _scope: Scope, _receive: Receive, send: Send) -> None:
    await _send(send, refused.status, {"error": refused.text.strip()})


async def _send(send: Send, status: int, answer: dict[str, Any], *more: tuple[bytes, bytes]) -> None:
    body = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    headers = [*_HEADERS, (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
