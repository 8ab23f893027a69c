"""Registered entries as iii-state keeps them: the two kinds of records, and the shapes of a listing. Pure.

The records are those of the first generation's worker, so that either worker reads what the other wrote.
Three fields are added: the id and the name of the worker that registered the entry, and a seal. Every worker
on the engine may write to the state, so the first two are believed only where the seal shows that this
directory wrote the record.
"""

from __future__ import annotations

import hashlib
import json
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from iii_directory.documents.ids import check_registered_id
from iii_directory.documents.model import Finding, ParsedFile
from iii_directory.documents.parse import parse_registered_prompt, parse_registered_skill
from iii_directory.documents.provenance import NO_AUTHOR, UNKNOWN, Author
from iii_directory.documents.registering import prompt_fields, skill_fields
from iii_directory.errors import DirectoryError
from iii_directory.shapes import is_list, is_object, is_text_map, items_of, object_of, rows_of, text_of
from iii_directory.text import nanoseconds_of, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The one plain character that only the thorough writer escapes.
_DELETE: Final = b"\x7f"
_SEAL: Final = "seal"
_SEAL_BYTES: Final = 16


class Seal:
    """Signs the records that this directory writes, with a key that only this directory knows."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        """``key`` gives the key. It is called when a record is first signed or checked."""
        self._key = key

    def signed(self, value: dict[str, Any], author: Author) -> dict[str, Any]:
        """The record with its author and the seal; unchanged where the engine named no caller."""
        if author.worker_id == UNKNOWN:
            return value
        signed = {**value, **author._asdict()}
        return {**signed, _SEAL: self._of(signed)}

    def author_of(self, value: Mapping[str, Any]) -> Author:
        """The author of a record, and an unknown one where the seal is missing or does not fit."""
        given, worker_id, worker = (text_of(value.get(name)) for name in (_SEAL, *Author._fields))
        if given is None or worker_id is None or worker is None:
            return NO_AUTHOR
        unsealed = {name: item for name, item in value.items() if name != _SEAL}
        try:
            fits = compare_digest(given, self._of(unsealed))
        except TypeError:
            # Another worker wrote what this directory never writes, such as half a pair of surrogates.
            fits = False
        return Author(worker_id, worker) if fits else NO_AUTHOR

    def _of(self, value: dict[str, Any]) -> str:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(written, key=self._key(), digest_size=_SEAL_BYTES).hexdigest()


UNSEALED: Final = Seal(bytes)
"""For a table that no state stands behind."""


class RecordKind(NamedTuple):
    """Skills or prompts: where a record has its key, what it must hold, and what document it is."""

    name: str
    key_field: str
    check: Callable[[Mapping[str, Any]], dict[str, Any]]
    parse: Callable[[dict[str, Any], str, Author], ParsedFile]


class Record(NamedTuple):
    """One value of the state. With a ``problem`` it is no document, and the diagnostics say why."""

    key: str
    stamp: int
    """``registered_at`` in nanoseconds since 1970; 0 when it cannot be told."""
    value: object
    size: int
    fields: dict[str, Any] | None = None
    """What was checked of the value; None of one with a problem."""
    problem: str = ""
    author: Author = NO_AUTHOR

    @property
    def registered_at(self) -> str:
        """When it was registered, as the record says it; only of one without a problem."""
        return object_of(self.value)["registered_at"]

    def parsed(self, kind: RecordKind) -> ParsedFile:
        if self.fields is not None:
            return kind.parse(self.fields, self.registered_at, self.author)
        fix = f"register it again, or delete it from iii-state (the key is the {kind.key_field})"
        return ParsedFile(
            findings=(Finding("undecodable", f"registered {kind.name} {self.key}", self.problem, fix),)
        )


def decode(kind: RecordKind, value: object, key: str, seal: Seal = UNSEALED) -> Record:
    """A stored value as a record; ``key`` stands in where the value does not name itself."""
    size = size_of(value)
    if not is_object(value):
        return Record(key, 0, value, size, problem="the record is not an object")
    named, registered_at = value.get(kind.key_field), value.get("registered_at")
    stamp = nanoseconds_of(registered_at) if isinstance(registered_at, str) else None
    key = named if isinstance(named, str) and named else key
    try:
        checked = kind.check(value)
    except DirectoryError as error:
        problem = f"the record cannot be served: {error.problem}"
        return Record(key, stamp or 0, value, size, problem=problem)
    if stamp is None:
        problem = f"its registered_at, {quoted(str(registered_at))}, is no RFC 3339 time"
        return Record(key, 0, value, size, problem=problem)
    return Record(key, stamp, value, size, checked, author=seal.author_of(value))


def size_of(value: object) -> int:
    """At most how many bytes of a listing a value takes, however it is written as JSON."""
    if is_text_map(value):
        # Plain text is written alike by the quick writer, but for a space behind each comma and colon.
        written = _quickly(value)
        if written is not None and written.isascii() and _DELETE not in written:
            return len(written) + max(2 * len(value) - 1, 0)
    return len(json.dumps(value))


def _quickly(value: Mapping[str, str]) -> bytes | None:
    try:
        return orjson.dumps(value)
    except TypeError:
        return None  # half a pair of surrogates


def values_of(listing: object) -> list[object]:
    """The values in an answer of ``state::list``: an array, ``{items: [{value}]}`` or ``{value: [...]}``."""
    if not is_object(listing):
        return items_of(listing)
    if is_list(listing.get("items")):
        return [row["value"] for row in rows_of(listing, "items") if "value" in row]
    return items_of(listing.get("value"))


def _check_skill(value: Mapping[str, Any]) -> dict[str, Any]:
    return skill_fields(value, check_registered_id)


def _parse_skill(fields: dict[str, Any], registered_at: str, author: Author) -> ParsedFile:
    return parse_registered_skill(fields["id"], fields["skill"], registered_at, author)


SKILLS: Final = RecordKind("skill", "id", _check_skill, _parse_skill)
PROMPTS: Final = RecordKind("prompt", "name", prompt_fields, parse_registered_prompt)
