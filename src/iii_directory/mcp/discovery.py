"""What installers and crawlers ask a web server for: the well-known index of skills, and ``llms.txt``.

``/.well-known/agent-skills/index.json`` (version 0.2.0 of the discovery draft) names every skill with the
digest of what it is installed from: its SKILL.md, or an archive where it has other files. The files of an
archive are also served one by one, so that relative links work in a browser.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from iii_directory.documents.file_pages import media_type
from iii_directory.documents.ids import OVERVIEW
from iii_directory.exposure import RESOURCES_READ, read_payload
from iii_directory.limits import MAX_LLMS_BYTES
from iii_directory.mcp.failures import BridgeError
from iii_directory.shapes import object_of, rows_of
from iii_directory.text import visible

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from iii_directory.mcp.upstream import Upstream

ROOT: Final = "/.well-known/agent-skills/"
LLMS: Final = "/llms.txt"
LLMS_FULL: Final = "/llms-full.txt"
_SCHEMA: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_ARCHIVE: Final = ".tar.gz"
_INDEX: Final = "directory::mcp::index"
_MARKDOWN: Final = "text/markdown; charset=utf-8"


def is_discovery(path: str) -> bool:
    """Whether a path is one of those answered here."""
    return path.startswith(ROOT) or path in (LLMS, LLMS_FULL)


class _Found(NamedTuple):
    body: bytes
    media_type: str
    digest: str | None = None


class Discovery:
    """An ASGI application over the directory behind ``upstream``."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = Response("Only GET and HEAD are answered here.\n", 405, {"allow": "GET, HEAD"})
        if request.method in ("GET", "HEAD"):
            try:
                found = await self._found(request.url.path)
            except BridgeError as failure:
                response = Response(f"{failure}\n", 404 if failure.blame == "not_found" else 503)
            else:
                response = await self._response(request, found)
        await response(scope, receive, send)

    async def _response(self, request: Request, found: _Found | None) -> Response:
        if found is None:
            return Response("There is no such skill or file.\n", 404)
        headers = {"cache-control": "no-cache"}
        if await self._is_public():
            headers["access-control-allow-origin"] = "*"
        if found.digest is not None:
            headers["etag"] = f'"{found.digest}"'
            if request.headers.get("if-none-match") == headers["etag"]:
                return Response(status_code=304, headers=headers)
        return Response(found.body, media_type=found.media_type, headers=headers)

    async def _found(self, path: str) -> _Found | None:
        if path == LLMS:
            return _Found(await self._llms(full=False), _MARKDOWN)
        if path == LLMS_FULL:
            return _Found(await self._llms(full=True), _MARKDOWN)
        wanted = path.removeprefix(ROOT)
        rows = {str(row.get("name")): row for row in rows_of(await self._read(_INDEX, {}), "skills")}
        if wanted == "index.json":
            return _Found(_index(rows.values()), "application/json")
        name, _, inner = wanted.partition("/")
        if not inner and name.endswith(_ARCHIVE):
            return await self._archive(rows.get(name.removesuffix(_ARCHIVE)))
        return await self._file(rows[name], inner) if name in rows and inner else None

    async def _archive(self, row: dict[str, Any] | None) -> _Found | None:
        if row is None or row.get("type") != "archive":
            return None
        answer = object_of(await self._read("directory::skills::archive", {"id": row["id"]}))
        body = base64.b64decode(answer["content"])
        return _Found(body, "application/gzip", f"sha256:{answer['sha256']}")

    async def _file(self, row: dict[str, Any], inner: str) -> _Found | None:
        (content,) = rows_of(
            await self._read(RESOURCES_READ, read_payload(f"skill://{row['path']}/{inner}")), "contents"
        )
        text = content.get("text")
        body = text.encode() if isinstance(text, str) else base64.b64decode(content["blob"])
        kind = _MARKDOWN if inner.endswith(".md") else media_type(inner)
        return _Found(body, kind, row["digest"] if inner == OVERVIEW and row["type"] == "skill-md" else None)

    async def _llms(self, *, full: bool) -> bytes:
        """The skills of the directory, for a model that reads web pages: their lines, or their bodies."""
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
            if size > MAX_LLMS_BYTES:
                lines.append(f"The rest is left out; {LLMS} names every skill.")
                break
            lines.append(section)
        return "\n".join(lines).encode()

    async def _is_public(self) -> bool:
        answer = await self._read("engine::functions::info", {"function_id": _INDEX})
        return object_of(object_of(answer).get("metadata")).get("public_index") is True

    async def _read(self, function_id: str, payload: dict[str, Any]) -> Any:
        return await self._upstream.call(function_id, payload, repeatable=True)


def _index(rows: Any) -> bytes:
    """The index; installers drop entries without a valid name, description or digest in silence."""
    skills = [
        {
            "name": row["name"],
            "type": row["type"],
            "description": row["description"],
            "url": f"{row['name']}{_ARCHIVE}" if row["type"] == "archive" else f"{row['name']}/{OVERVIEW}",
            "digest": row["digest"],
        }
        for row in rows
    ]
    return json.dumps({"$schema": _SCHEMA, "skills": skills}, ensure_ascii=False).encode()
