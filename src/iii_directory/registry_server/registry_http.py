"""Serve a folder of published workers with the API of the public registry.

The skills of every worker's latest version are also in the well-known index, from which installers of agent
skills take them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from urllib.parse import parse_qs, unquote

from iii_directory import limits
from iii_directory.disk.install_record import content_hash
from iii_directory.documents import skill_package
from iii_directory.documents.file_pages import media_type
from iii_directory.registry_server import published_workers
from iii_directory.wire.http_server import HttpLimits, HttpServer, Listener

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

    from iii_directory.wire.access import Refused


_log: Final = logging.getLogger(__name__)
_JSON: Final = "application/json"
_MARKDOWN: Final = "text/markdown; charset=utf-8"
_HEADERS: Final = ((b"cache-control", b"no-cache"), (b"x-content-type-options", b"nosniff"))


class _AnswerError(Exception):
    """An answer that is not 200, with its reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _FileAnswer(NamedTuple):
    """A body that is not made of JSON here, and the digest that tells whether it changed."""

    body: bytes
    media_type: str
    digest: str


class RegistryServer:
    """Listens from the start, and answers in a thread of its own while it is a context."""

    def __init__(self, folder: Path, *, host: str = "127.0.0.1", port: int = 0) -> None:
        bounds = HttpLimits(limits.MAX_REGISTRY_CONNECTIONS, limits.REGISTRY_REQUEST_SECONDS)
        self._store = published_workers.RegistryStore(folder)
        self._listener = Listener(host, port, is_public=True, path="", limits=bounds)
        self._server = HttpServer(self._respond, self._listener, _refuse)
        self.url = self._listener.url

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="registry", daemon=True
        )
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, *_: object) -> None:
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
            is_well_known = scope["path"].startswith(skill_package.WELL_KNOWN)
            if scope["method"] != "GET" and not (is_well_known and scope["method"] == "HEAD"):
                raise _AnswerError(HTTPStatus.NOT_IMPLEMENTED, "only GET is answered")
            if is_well_known:
                await _send_found(scope, send, await asyncio.to_thread(self._well_known, scope["path"]))
                return
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
                search = fields.get("search", "").strip()[: limits.MAX_REGISTRY_QUERY_CHARS] or None
                rows = published_workers.search_rows(self._store.rows(), search)
                try:
                    return published_workers.page_of(rows, fields.get("cursor"))
                except published_workers.BadCursorError:
                    reason = "the cursor is not one of this registry"
                    raise _AnswerError(HTTPStatus.BAD_REQUEST, reason) from None
            case ["w", worker]:
                return self._store.detail(worker, self._resolved(worker, fields))
            case ["w", worker, "skills"]:
                bundle = self._store.bundle(worker, self._resolved(worker, fields))
                if bundle is None:
                    raise _AnswerError(HTTPStatus.NOT_FOUND, "this worker has no skills")
                self._store.count_download(worker)
                return bundle
            case _:
                raise _AnswerError(HTTPStatus.NOT_FOUND, "no such address")

    def _well_known(self, path: str) -> _FileAnswer:
        """Find the index, an archive, or a file of a skill."""
        offered = self._store.offered_skills()
        wanted = path.removeprefix(skill_package.WELL_KNOWN)
        if wanted == "index.json":
            body = skill_package.index_document(skill._asdict() for skill in offered.values())
            return _FileAnswer(body, _JSON, content_hash(body))
        name, slash, inner = wanted.partition("/")
        if not slash and name.endswith(skill_package.ARCHIVE_SUFFIX):
            skill = offered.get(name.removesuffix(skill_package.ARCHIVE_SUFFIX))
            if skill is not None and skill.type == "archive":
                archive = skill_package.packed(self._store.skill_files(skill))
                return _FileAnswer(archive, "application/gzip", skill.digest)
        elif name in offered and (file := self._store.skill_files(offered[name]).get(inner)) is not None:
            media = _MARKDOWN if inner.endswith(".md") else media_type(inner)
            return _FileAnswer(file.raw, media, content_hash(file.raw))
        raise _AnswerError(HTTPStatus.NOT_FOUND, "no such skill or file")

    def _resolved(self, worker: str, fields: dict[str, str]) -> str:
        # The public registry once took tags in a field of their own.
        asked = fields.get("version") or fields.get("tag") or "latest"
        version = self._store.resolve(worker, asked)
        if version is None:
            raise _AnswerError(HTTPStatus.NOT_FOUND, "no such worker or version")
        return version


async def _refuse(refused: Refused, _scope: Scope, _receive: Receive, send: Send) -> None:
    await _send(send, refused.status, {"error": refused.text.strip()})


async def _send(send: Send, status: int, answer: dict[str, Any], *more: tuple[bytes, bytes]) -> None:
    body = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    headers = [(b"content-type", _JSON.encode()), *_HEADERS, (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_found(scope: Scope, send: Send, found: _FileAnswer) -> None:
    tag = f'"{found.digest}"'.encode()
    is_known = (b"if-none-match", tag) in scope["headers"]
    body = b"" if is_known else found.body
    # What a registry serves is public, so pages of every origin may read it.
    headers = [*_HEADERS, (b"etag", tag), (b"access-control-allow-origin", b"*")]
    if not is_known:
        headers += [(b"content-type", found.media_type.encode()), (b"content-length", b"%d" % len(body))]
    status = HTTPStatus.NOT_MODIFIED if is_known else HTTPStatus.OK
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
