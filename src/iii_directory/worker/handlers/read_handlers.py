"""Answer reads that need more than a snapshot: files, URIs, rendered prompts, and skills for MCP hosts.

Replies made from a snapshot alone are in `iii_directory.catalog.skill_replies`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from iii_directory import errors, limits
from iii_directory.bus.seam import CallError
from iii_directory.catalog import skill_replies
from iii_directory.catalog.file_replies import file_provenance, no_text, skill_file, skill_files
from iii_directory.catalog.resolve import Undocumented, find_exact, find_file, find_prompt
from iii_directory.catalog.skill_indexes import tree_index
from iii_directory.catalog.skill_manifests import uri_of
from iii_directory.catalog.skill_replies import INDEX_RESOURCE, MARKDOWN, meta_of
from iii_directory.documents import uris
from iii_directory.documents.file_pages import media_type
from iii_directory.documents.file_pages import text_of as text_of_bytes
from iii_directory.documents.model import rendered
from iii_directory.documents.payload_fields import flag, mapping, optional_text, optional_texts, text
from iii_directory.errors import DirectoryError
from iii_directory.shapes import is_list, object_of, text_of
from iii_directory.text import cut, one_line, quoted, rfc3339
from iii_directory.wire.protocol import FUNCTION_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.bus.seam import Bus, Payload
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.skill_manifests import Publisher
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.config import Settings
    from iii_directory.documents.model import Provenance, Skill
    from iii_directory.worker.engine_view import EngineView

Row = dict[str, Any]
_BETWEEN: Final = "\n\n---\n\n"


class Content(NamedTuple):
    mime_type: str
    content: str | bytes
    """Bytes if it is not text."""
    provenance: Provenance | None = None
    """The source of a document; None of what no document says, such as an index."""


class _Fetched(NamedTuple):
    """One section of a fetch."""

    text: str
    provenance: Provenance | None


@dataclass(eq=False)
class ReadHandlers:
    """Answers ``directory::skills::get``, every fetch, and the reads of MCP bridges."""

    _catalogue: Catalogue
    _bus: Bus
    _engine: EngineView
    _settings: Settings
    _publisher: Publisher
    _may_know_paths: Callable[[Payload], bool]

    async def get(self, payload: Payload) -> Row:
        found = skill_replies.skill(await self._look(payload), payload)
        if not isinstance(found, Undocumented):
            return found
        # Where the worker is not connected, nothing is known of it.
        detail: Row = {"worker": {}, "functions": []}
        with suppress(DirectoryError):
            detail = await self._engine.worker(found.worker)
        functions = [(row["function_id"], str(row["description"] or "")) for row in detail["functions"]]
        description = str(detail["worker"].get("description") or "")
        return skill_replies.overview(found, description, functions, rfc3339(time.time_ns()))

    async def files(self, payload: Payload) -> Row:
        return await asyncio.to_thread(skill_files, await self._look(payload), payload)

    async def file(self, payload: Payload) -> Row:
        return await asyncio.to_thread(skill_file, await self._catalogue.current(), payload)

    async def fetch(self, payload: Payload) -> str | Row:
        asked = uris.fetch_uris(optional_text(payload, "uri"), optional_texts(payload, "uris"))
        named = await self._look(payload) if payload.get(uris.UNREADABLE) == "name" else None
        only_reading = self._only_reading(payload)
        read = await self._each_once(Counter(asked), only_reading=only_reading, named=named)
        text = _BETWEEN.join(read[uri].text for uri in asked)
        if not flag(payload, "with_provenance", default=False):
            return text
        # The shape of this function has no room for it, so a bridge that has asks for both.
        sources = {uri: one.provenance.as_json() for uri, one in read.items() if one.provenance is not None}
        return {"content": text, "provenance": sources}

    async def resource(self, payload: Payload) -> Row:
        uri = text(payload, "uri")
        content = await self._read(uri, only_reading=self._only_reading(payload))
        entry: Row = {"uri": uri, "mimeType": content.mime_type}
        if content.provenance is not None:
            entry["_meta"] = meta_of(content.provenance)
        if isinstance(content.content, bytes):
            return {"contents": [entry | {"blob": base64.b64encode(content.content).decode("ascii")}]}
        return {"contents": [entry | {"text": content.content}]}

    async def mcp_prompt(self, payload: Payload) -> Row:
        arguments = mapping(payload, "arguments")
        look = await self._catalogue.current()
        prompt = find_prompt(look.snapshot, text(payload, "name"))
        if prompt.function_id is None:
            filled = rendered(prompt.name, look.read_prompt(prompt), prompt.arguments, arguments)
            messages: list[Any] = [user_message(filled)]
        else:
            answer = await self._call(prompt.function_id, arguments, used_as="prompt")
            given, content = object_of(answer).get("messages"), content_text(answer)
            if not is_list(given) and content is None:
                raise DirectoryError(
                    errors.PROMPT_SHAPE,
                    f"function {quoted(prompt.function_id)} answered an unsupported shape; "
                    "a prompt is a string, {content: string} or {messages: [...]}",
                )
            messages = given if is_list(given) else [user_message(content or "")]
        meta = meta_of(prompt.provenance)
        return {"description": prompt.description, "messages": messages, "_meta": meta}

    # Inner workings

    async def _look(self, payload: Payload) -> CatalogueView:
        may_know = self._may_know_paths(payload)
        look = await self._catalogue.current()
        return look.telling_paths() if may_know else look

    def _only_reading(self, payload: Payload) -> bool:
        """Return whether sections may only run functions that read: the operator decides, else the caller.

        The MCP bridge asks for it, because hosts let a model read without asking anybody.
        """
        wanted = self._settings.sections or payload.get("sections")
        return wanted == uris.READ_ONLY

    async def _each_once(
        self, times: Mapping[str, int], *, only_reading: bool, named: CatalogueView | None
    ) -> dict[str, _Fetched]:
        """Return the text of every address, reading a few at once; after a failure no further read begins."""
        few, turn = asyncio.Semaphore(limits.MAX_FETCHES_AT_ONCE), asyncio.Lock()
        size, failed = 0, False

        async def one(uri: str) -> _Fetched:
            nonlocal size, failed
            async with few:
                # What the look of several waits for is over for all at once: before their turns.
                await self._catalogue.current()
                # A skill is read without waiting for anything: others have the loop before the next is begun.
                async with turn:
                    await asyncio.sleep(0)
                if failed:
                    raise asyncio.CancelledError
                try:
                    found = await self._fetched(uri, only_reading=only_reading, named=named)
                    size += times[uri] * (_size_of(found.text) + len(_BETWEEN))
                    if size > limits.MAX_FETCH_BYTES:
                        raise _too_large("together these addresses have")
                except DirectoryError:
                    failed = True
                    raise
            return found

        reads = {uri: asyncio.ensure_future(one(uri)) for uri in times}
        try:
            await asyncio.wait(reads.values(), return_when=asyncio.FIRST_EXCEPTION)
            # All of them, or what the first that failed has raised.
            return {uri: read.result() for uri, read in reads.items() if read.done() and not read.cancelled()}
        finally:
            for read in reads.values():
                read.cancel()
            # What was raised holds this frame, which must not hold all that was read until it is collected.
            reads.clear()

    async def _fetched(self, uri: str, *, only_reading: bool, named: CatalogueView | None) -> _Fetched:
        try:
            content = await self._read_or_file(uri, only_reading=only_reading)
        except DirectoryError as error:
            if named is not None and error.kind in (errors.TOO_LARGE, errors.NO_TEXT):
                return _Fetched(_named_alone(named, uri, error.problem), None)
            if uri in error.problem:
                raise
            raise DirectoryError(
                error.kind,
                f"{quoted(uri)}: {error.problem}",
                did_you_mean=error.did_you_mean,
                next_steps=error.next_steps,
            ) from None
        size = _size_of(content.content)
        # A caller that has files named is a model, for which a text of megabytes is of no use either.
        is_too_large = (
            named is not None and size > limits.MAX_BODY_BYTES and find_file(named.snapshot, _path_in(uri))
        )
        if not isinstance(content.content, bytes) and not is_too_large:
            return _Fetched(f"# {uri}\n\n{content.content.rstrip()}", content.provenance)
        if named is not None:
            problem = f"this file is {'too large' if is_too_large else 'not text'}; it has {size} bytes"
            return _Fetched(_named_alone(named, uri, problem), content.provenance)
        raise no_text((await self._catalogue.current()).snapshot, _path_in(uri))

    async def _read_or_file(self, uri: str, *, only_reading: bool) -> Content:
        """Read an address, or a file of a skill whose path was written where an id is expected."""
        try:
            return await self._read(uri, only_reading=only_reading)
        except DirectoryError as error:
            look = await self._catalogue.current()
            found = find_file(look.snapshot, _path_in(uri))
            if found is None or error.kind not in (errors.BAD_SKILL_ID, errors.SKILL_NOT_FOUND):
                raise
            return await asyncio.to_thread(file_content, look, self._publisher, found)

    async def _read(self, uri: str, *, only_reading: bool) -> Content:
        match uris.parse_uri(uri):
            case uris.IndexUri():
                # The first after a start has every line to make: longer than a turn of the loop may take.
                look = await self._catalogue.current()
                return Content(MARKDOWN, await asyncio.to_thread(tree_index, look.listed))
            case uris.SkillUri(id=skill_id):
                look = await self._catalogue.current()
                skill = find_exact(look.snapshot, skill_id)
                return Content(MARKDOWN, look.read_skill(skill), skill.provenance)
            case uris.FileUri(path=path):
                look = await self._catalogue.current()
                return await asyncio.to_thread(file_content, look, self._publisher, path)
            case uris.SectionUri(function_id=function_id):
                answer = await self._call(function_id, {}, used_as="section", only_reading=only_reading)
                markdown, mime_type = content_text(answer), MARKDOWN
                if markdown is None:
                    markdown, mime_type = json.dumps(answer, indent=2, ensure_ascii=False), "application/json"
                if _size_of(markdown) > limits.MAX_FETCH_BYTES:
                    raise _too_large(f"what function {quoted(function_id)} answered has")
                return Content(mime_type, markdown)

    async def _call(
        self,
        function_id: str,
        payload: Row,
        *,
        used_as: Literal["section", "prompt"],
        only_reading: bool = False,
    ) -> object:
        """Call a function that a document or a prompt names; raise one sentence if it fails."""
        if self._settings.section_guard:
            uris.check_unguarded(function_id, used_as)
        if only_reading:
            detail = await self._engine.function(function_id)
            if not uris.says_it_only_reads(detail.get("metadata")):
                problem = f"function {quoted(function_id)} does not say that it only reads (readOnlyHint)"
                raise DirectoryError(errors.GUARDED, f"{problem}, and no others are run by this reader")
        try:
            return await self._bus.call(function_id, payload, timeout_ms=self._settings.state_timeout_ms)
        except CallError as error:
            kind, outcome = errors.ENGINE_NOT_FOUND, "not found on the engine"
            if error.code != FUNCTION_NOT_FOUND:
                reason = cut(one_line(str(error)), limits.MAX_RELAYED_CHARS)
                kind, outcome = errors.ENGINE_FAILED, f"failed: {reason}"
            raise DirectoryError(kind, f"function {quoted(function_id)} {outcome}") from None


def file_content(look: CatalogueView, publisher: Publisher, path: str) -> Content:
    """Read what hosts find at a path behind ``skill://``, else the file of a skill at that path on disk."""
    try:
        return Content(*publisher.content_at(look, path))
    except DirectoryError as error:
        found = find_file(look.snapshot, path)
        if found is None or error.kind is not errors.FILE_NOT_FOUND:
            raise
    part = look.files.read(found)
    if part.size > limits.MAX_BUNDLE_BYTES:
        raise no_text(look.snapshot, found)
    content = text_of_bytes(part.raw)
    provenance = file_provenance(look, found, part.sha256)
    return Content(media_type(found), part.raw if content is None else content, provenance)


def _path_in(uri: str) -> str:
    """Return the path of a file in an address of either scheme."""
    return uris.skill_path(uri) if uri.startswith(uris.SKILL_SCHEME) else uri.removeprefix(uris.SCHEME)


def _named_alone(look: CatalogueView, uri: str, problem: str) -> str:
    """Return the text for a file that is not text: its address and, if the caller may know it, its path."""
    path = find_file(look.snapshot, _path_in(uri)) or _path_in(uri)
    place = look.files.place_of(path).get("path")
    where = f"\nOn this machine: {place}" if place else ""
    return f"# {uri}\n\n{problem}\nRead it as the resource {uri_of(path)}{where}"


def _size_of(found: str | bytes) -> int:
    return len(found if isinstance(found, bytes) else found.encode(errors="surrogatepass"))


def _too_large(what: str) -> DirectoryError:
    return DirectoryError(errors.TOO_LARGE, f"{what} more than {limits.MAX_FETCH_BYTES} bytes")


def content_text(output: object) -> str | None:
    """Return the text of a string or of ``{content: string}``, or None for other shapes."""
    return output if isinstance(output, str) else text_of(object_of(output).get("content"))


def user_message(content: str) -> Row:
    return {"role": "user", "content": {"type": "text", "text": content}}


@dataclass(eq=False)
class HostHandlers:
    """Answers ``directory::mcp::…`` and ``directory::skills::archive``. Files are read in a thread."""

    _catalogue: Catalogue
    _publisher: Publisher

    async def skills(self, payload: Payload) -> Row:
        uri, cursor = optional_text(payload, "uri"), optional_text(payload, "cursor")
        if uri is not None:
            return await self._in_thread(self._publisher.skill, uri)
        look = await self._catalogue.current()
        if self._publisher.is_ready(look):
            return self._publisher.page(look, cursor)
        return await asyncio.to_thread(self._publisher.page, look, cursor)

    async def resources(self, _: Payload) -> Row:
        """List the index, then the skills, then every document."""

        def rows(look: CatalogueView) -> list[Row]:
            documents = filter(None, look.listed.skills.column(_document_row))
            return [INDEX_RESOURCE, *self._publisher.resources(look), *documents]

        return {"resources": await self._in_thread(rows)}

    async def folder(self, payload: Payload) -> Row:
        return await self._in_thread(self._publisher.folder, text(payload, "uri"))

    async def index(self, _: Payload) -> Row:
        return {"skills": await self._in_thread(self._publisher.index)}

    async def archive(self, payload: Payload) -> Row:
        return await self._in_thread(self._publisher.archive, text(payload, "id"))

    async def _in_thread(self, work: Callable[..., Any], *asked: str) -> Any:
        return await asyncio.to_thread(work, await self._catalogue.current(), *asked)


def _document_row(key: str, skill: Skill) -> Row | None:
    address = uris.address_of(key, skill)
    if address is None:
        return None
    row: Row = {
        "uri": address,
        "name": skill.title,
        "mimeType": MARKDOWN,
        "size": skill.bytes,
        "_meta": meta_of(skill.provenance),
    }
    return row | ({"description": skill.description} if skill.description else {})
