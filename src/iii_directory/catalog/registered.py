"""Hold the skills and prompts that workers registered, as iii-state keeps them. Pure.

The records are those of the first generation's worker, so that either worker reads what the other wrote.
Three fields are added: the id and the name of the worker that registered the entry, and a seal. Every worker
on the engine may write to the state, so the first two are trusted only if the seal shows that this directory
wrote the record.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from enum import Enum
from hmac import compare_digest
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from iii_directory.documents.model import NO_AUTHOR, UNKNOWN, Author, Finding, ParsedFile
from iii_directory.documents.parse import parse_registered_prompt, parse_registered_skill
from iii_directory.documents.payload_fields import prompt_fields, skill_fields
from iii_directory.errors import BAD_BODY, DirectoryError, Step
from iii_directory.limits import (
    MAX_REGISTERED_BYTES,
    MAX_REMEMBERED_DELETIONS,
    MAX_REMEMBERED_WRITES,
    REMEMBERED_WRITE_SECONDS,
)
from iii_directory.shapes import is_list, is_object, is_text_map, items_of, object_of, rows_of, text_of
from iii_directory.text import nanoseconds_of, quoted, rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


# The one ASCII character that the json module escapes and orjson does not.
_DELETE: Final = b"\x7f"
_SEAL: Final = "seal"
_SEAL_BYTES: Final = 16


class Seal:
    """Signs the records that this directory writes, with a key that only this directory knows."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        """``key`` returns the key. It is called when a record is first signed or checked."""
        self._key = key

    def signed(self, value: dict[str, Any], author: Author) -> dict[str, Any]:
        """Return the record with its author and the seal; unchanged where the engine named no caller."""
        if author.worker_id == UNKNOWN:
            return value
        signed = {**value, **author._asdict()}
        return {**signed, _SEAL: self._of(signed)}

    def author_of(self, value: Mapping[str, Any]) -> Author:
        """Return the author of a record; an unknown one where the seal is missing or wrong."""
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
        # An engine may give the fields back in another order.
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(written, key=self._key(), digest_size=_SEAL_BYTES).hexdigest()


UNSEALED: Final = Seal(bytes)
"""The seal of a table that is not kept in a state."""


class RecordKind(NamedTuple):
    """Skills or prompts: the field with the key of a record, how to check it, and how to parse it."""

    name: str
    key_field: str
    check: Callable[[Mapping[str, Any]], dict[str, Any]]
    parse: Callable[[dict[str, Any], str, Author], ParsedFile]


class Record(NamedTuple):
    """One value of the state. With a ``problem`` it is not served, and the diagnostics say why."""

    key: str
    stamp: int
    """``registered_at`` in nanoseconds since 1970; 0 if it cannot be read."""
    value: object
    size: int
    fields: dict[str, Any] | None = None
    """The checked fields of the value; None for one with a problem."""
    problem: str = ""
    author: Author = NO_AUTHOR

    @property
    def registered_at(self) -> str:
        """Return the time of registration as written in the record; only without a problem."""
        return object_of(self.value)["registered_at"]

    def parsed(self, kind: RecordKind) -> ParsedFile:
        if self.fields is not None:
            return kind.parse(self.fields, self.registered_at, self.author)
        fix = f"register it again, or delete it from iii-state (the key is the {kind.key_field})"
        finding = Finding("undecodable", f"registered {kind.name} {self.key}", self.problem, fix)
        return ParsedFile(findings=(finding,))


def decode(kind: RecordKind, value: object, key: str, seal: Seal = UNSEALED) -> Record:
    """Read a stored value as a record; ``key`` is used where the value does not name itself."""
    size = size_of(value)
    if not is_object(value):
        return Record(key, 0, value, size, problem="the record is not an object")
    named, registered_at = value.get(kind.key_field), value.get("registered_at")
    stamp = nanoseconds_of(registered_at) if isinstance(registered_at, str) else None
    # The state files a record under any key. What it calls itself counts, because a listing has no keys.
    key = named if isinstance(named, str) and named else key
    try:
        checked = kind.check(value)
    except DirectoryError as error:
        problem = f"the record cannot be served: {error.problem}"
        return Record(key, stamp or 0, value, size, problem=problem)
    if stamp is None:
        problem = f"its registered_at, {quoted(str(registered_at))}, is not an RFC 3339 time"
        return Record(key, 0, value, size, problem=problem)
    return Record(key, stamp, value, size, checked, author=seal.author_of(value))


def size_of(value: object) -> int:
    """Return how many bytes of a listing a value takes at most, however it is written as JSON."""
    if is_text_map(value):
        # A TypeError means half a pair of surrogates.
        with suppress(TypeError):
            # orjson writes plain text like the json module, without the space after each comma and colon.
            written = orjson.dumps(value)
            if written.isascii() and _DELETE not in written:
                return len(written) + max(2 * len(value) - 1, 0)
    return len(json.dumps(value))


def values_of(listing: object) -> list[object]:
    """Return the values of a ``state::list`` answer: an array, ``{items: [{value}]}`` or ``{value: […]}``."""
    if not is_object(listing):
        return items_of(listing)
    if is_list(listing.get("items")):
        return [row["value"] for row in rows_of(listing, "items") if "value" in row]
    return items_of(listing.get("value"))


SKILLS: Final = RecordKind("skill", "id", skill_fields, parse_registered_skill)
PROMPTS: Final = RecordKind("prompt", "name", prompt_fields, parse_registered_prompt)


_MICROSECOND: Final = 1000
# A listing has no keys, so a record in it that does not say what it is called gets a number.
_UNNAMED: Final = "(unnamed "


class RecordChange(Enum):
    """The effect of a piece of news on the table."""

    NOTHING = "nothing"
    REGISTERED = "register"
    UNREGISTERED = "unregister"
    DOUBTFUL = "doubtful"


class Write(NamedTuple):
    """One acknowledged write of one key. Times are of a clock that does not go back."""

    key: str
    stamp: int
    """``registered_at`` of what was written, or of what was deleted."""
    record: Record | None
    """None for a deletion."""
    sent: float
    acknowledged: float

    def is_missing(self, listed: int | None) -> bool:
        """Return whether a listing, in which the key has this stamp or is absent, is older than the write."""
        if self.record is None:
            return listed is not None and listed <= self.stamp
        return listed is None or listed < self.stamp


class RecentWrites:
    """Remembers the last write of each key, as long as this worker made it.

    An engine that keeps its state itself may hold its newest writes in memory for some seconds. If it dies
    before they are on disk, it loses writes that it had acknowledged to this worker, and this worker to a
    caller. It loses the newest first: if one write survived, every write that was acknowledged before it was
    sent survived too, and if such a record is missing, another worker deleted it since.
    """

    def __init__(self) -> None:
        self._writes: dict[str, Write] = {}
        """The oldest first."""
        self.endangered: dict[str, Write] = {}
        """Writes of the last moments of an engine that has gone, until each is known to be kept or lost."""
        self._judged = True
        """Whether the endangered writes have been compared with the state, and only lost ones are left."""

    def put(self, write: Write) -> None:
        self._writes.pop(write.key, None)
        self.endangered.pop(write.key, None)
        self._writes[write.key] = write
        oldest = next(iter(self._writes.values()))
        too_old = oldest.acknowledged < write.acknowledged - REMEMBERED_WRITE_SECONDS
        if len(self._writes) > MAX_REMEMBERED_WRITES or too_old:
            del self._writes[oldest.key]

    def superseded(self, key: str, value: object) -> None:
        """Forget the write of a key that holds another value now, or (None) no value."""
        for writes in (self._writes, self.endangered):
            write = writes.get(key)
            if write is not None and value != (write.record and write.record.value):
                del writes[key]

    def engine_gone(self, at: float) -> None:
        """Note that the engine may not have kept what it acknowledged shortly before this time."""
        since = at - REMEMBERED_WRITE_SECONDS
        recent = {key: write for key, write in self._writes.items() if write.acknowledged >= since}
        self.endangered |= recent
        self._writes = {}
        self._judged = False

    def believe(self) -> None:
        """Forget everything endangered, because the state is known to have lost nothing."""
        self.endangered = {}

    def lost(self, listed: Mapping[str, int]) -> list[Write]:
        """Return the writes that the state has lost, given the stamps of the keys in its listing.

        The first listing after the engine's return decides which writes were lost. In a later one, writes
        that were made again since would pass for survivors.
        """
        if not self._judged:
            self._judged = True
            # A listing proves a write by the very record; a key that is absent proves no deletion.
            proven = (w.sent for w in self.endangered.values() if w.record and listed.get(w.key) == w.stamp)
            survived = max(proven, default=-inf)
            # Nothing that comes later can prove that a lost write was kept.
            self.endangered = {
                write.key: write._replace(acknowledged=inf)
                for write in self.endangered.values()
                if write.acknowledged > survived and write.is_missing(listed.get(write.key))
            }
        return [write for write in self.endangered.values() if write.is_missing(listed.get(write.key))]


class Table:
    """Every record of one kind by its key, and the recent writes of this worker among them."""

    def __init__(self, kind: RecordKind, seal: Seal = UNSEALED) -> None:
        self.kind = kind
        self._seal = seal
        self._held: dict[str, Record] = {}
        self._newest: dict[str, int] = {}
        """The newest ``registered_at`` seen of each key that is held."""
        self._deleted: dict[str, int] = {}
        """The newest known stamps of deleted keys, the oldest deletion first."""
        self.changed: dict[str, ParsedFile | None] = {}
        """Keys whose document changed since it was last taken, with the document if it was parsed already."""
        self._touched: set[str] | None = None
        """While a listing is awaited: the keys of writes and events since it was asked for."""
        self._doubts: dict[str, bool] = {}
        """Keys that the state was asked for, and whether there was news of them since."""
        self._drafts: dict[str, Record] = {}
        """The newest draft of each key that is being written: its event needs no checks."""
        self._contested: set[str] = set()
        """Keys that another worker wrote while this one wrote them; only the state knows the last value."""
        self.recent = RecentWrites()
        self._last_stamp = 0
        self._size = 0
        self.changes = 0
        """Grows with every record that is put or dropped."""

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the record served under a key."""
        record = self._held.get(key)
        return None if record is None or record.problem else object_of(record.value)

    def draft(self, fields: dict[str, Any], now: int, author: Author = NO_AUTHOR) -> Record:
        """Make a record of checked fields, registered now and later than everything known of its key.

        Raises:
            DirectoryError: with this record, everything would be too large to list.
        """
        key = fields[self.kind.key_field]
        known = max(self._last_stamp, self._known_stamp(key))
        # The clock may stand still or go back. A record that is not later than all known ones of its key
        # would be taken for older news, here and by every other reader of the state.
        self._last_stamp = max(now // _MICROSECOND, known // _MICROSECOND + 1) * _MICROSECOND
        value = self._seal.signed({**fields, "registered_at": rfc3339(self._last_stamp)}, author)
        record = Record(key, self._last_stamp, value, size_of(value), fields, author=author)
        held = self._held.get(key)
        size = self._size - (held.size if held else 0) + record.size
        if size > MAX_REGISTERED_BYTES:
            raise DirectoryError(
                BAD_BODY,
                f"with this, everything registered would be too large to list: {size} bytes, "
                f"at most {MAX_REGISTERED_BYTES}",
                next_steps=(Step("for what is not needed any more", "skills::unregister"),),
            )
        self._drafts[key] = record
        return record

    def drop_draft(self, record: Record) -> None:
        """Forget a draft that was written, or will not be."""
        if self._drafts.get(record.key) is record:
            del self._drafts[record.key]
            self._contested.discard(record.key)

    def take_changes(self) -> dict[str, ParsedFile | None]:
        """Return and clear the documents that are new, changed or (None) gone, by a key of both kinds."""
        changed, self.changed = self.changed, {}
        kind = self.kind.name
        return {f"{kind}:{key}": document or self._document(key) for key, document in changed.items()}

    # News

    def wrote(self, record: Record, sent: float, acknowledged: float) -> RecordChange:
        """Take a draft that the state took from us, unless something newer was seen already."""
        key = record.key
        self.keep(key)
        if key in self._contested:
            outcome = self.doubt(key)
        else:
            outcome = self._put(record) if record.stamp > self._known_stamp(key) else RecordChange.NOTHING
        self.recent.put(Write(key, record.stamp, record, sent, acknowledged))
        # The write of a doubtful key is superseded once the key is settled.
        if key not in self._doubts:
            self.recent.superseded(key, self.get(key))
        self.drop_draft(record)
        return outcome

    def removed(self, key: str, old: object, sent: float, acknowledged: float) -> RecordChange:
        """Take a deletion that the state did for us, with the value that was there (None: no value)."""
        self.keep(key)
        held, stamp = self._held.get(key), stamp_of(old)
        # A record is held that the state did not have any more: another deletion, or a write whose event is
        # still to come. Only the state can tell which.
        if held is not None and old is None:
            return self.doubt(key)
        # What is held may be newer than what was deleted: then it was written after the deletion.
        is_newer = held is not None and held.stamp > stamp
        outcome = RecordChange.NOTHING if is_newer else self._drop(key, stamp)
        if old is not None:
            self.recent.put(Write(key, stamp, None, sent, acknowledged))
            self.recent.superseded(key, self.get(key))
        return outcome

    def heard(self, key: str, old: object, new: object) -> tuple[str, RecordChange]:
        """Take an event of a write or (``new`` is None) of a deletion; return the key and the effect."""
        # The key in the record counts, because a listing has no other.
        key = self._named(old if new is None else new) or key
        if old is not None and not self._named(old):
            # Records without a name are held under numbers, and found by their value.
            for number in [one for one in self._held if one.startswith(_UNNAMED)]:
                if self._held[number].value == old:
                    self._drop(number, 0)
        self.keep(key)
        held, newest = self._held.get(key), self._known_stamp(key)
        draft = self._drafts.get(key)
        # Most events are about our own writes, which are held or drafted: their times need not be parsed.
        ours = next((record for record in (held, draft) if record is not None and record.value == new), None)
        self._remember(key, max(newest, stamp_of(old), ours.stamp if ours else stamp_of(new)))
        value = held.value if held else None
        if new == value:
            return key, RecordChange.NOTHING
        # The event replaced something else than what is held, so an event before it is missing.
        if old != value:
            return key, self.doubt(key)
        if new is None:
            return key, self._drop(key, 0)
        record = ours or decode(self.kind, new, key, self._seal)
        return key, self._put(record) if record.stamp > newest else self.doubt(key)

    def doubt(self, key: str) -> RecordChange:
        """Mark a key as possibly changed, by an event or an own write; only the state knows its value."""
        self.keep(key)
        if key in self._doubts:
            return RecordChange.NOTHING
        self._doubts[key] = False
        return RecordChange.DOUBTFUL

    def hinted(self, key: str, at: str | None) -> RecordChange:
        """Doubt a key that was written elsewhere with this ``registered_at``, or (None) deleted.

        An older time than ours is news as well: of two that write a key at one moment, the state keeps the
        one that came last, whatever their clocks say.
        """
        if key in self._drafts:
            self._contested.add(key)
        # An answer that is on its way may be older than the write.
        awaited = key in self._doubts or self._touched is not None
        news = key in self._held if at is None else nanoseconds_of(at) != self._known_stamp(key)
        return self.doubt(key) if awaited or news else RecordChange.NOTHING

    def settled(self, key: str, value: object) -> RecordChange:
        """Take the state's value of a doubtful key; with news of the key since, it stays doubtful."""
        news = self._doubts.pop(key, None)
        if news is None:
            return RecordChange.NOTHING
        # The value was asked for before that news, and may be what the news replaced.
        if news:
            return self.doubt(key)
        # A listing that is being taken in step by step was asked for earlier than this value.
        self.keep(key)
        if value is not None:
            return self._put(decode(self.kind, value, key, self._seal))
        # An engine that may have lost what we wrote says nothing by a missing value; the listing will tell.
        return self._drop(key, 0, is_certain=not self.recent.endangered)

    def leave_doubtful(self, key: str) -> None:
        """Leave a key to the next listing, because the state did not answer."""
        self._doubts.pop(key, None)

    def listing_asked(self) -> None:
        """Remember from now on what is newer than the listing that was asked for."""
        self._touched = set()

    def stamps_in(self, values: Iterable[object]) -> dict[str, int]:
        """Return the keys of a listing and when each was registered, as far as the records tell."""
        stamps: dict[str, int] = {}
        for value in values:
            key = self._named(value)
            if key is not None:
                stamps[key] = max(stamp_of(value), stamps.get(key, 0))
        return stamps

    def keep(self, key: str) -> None:
        """Prefer news of this key over answers of the state that were asked for before the news."""
        if self._touched is not None:
            self._touched.add(key)
        if key in self._doubts:
            self._doubts[key] = True

    def news_in(self, values: Iterable[object]) -> Iterator[tuple[str, RecordChange]]:
        """Take in a listing, except for keys with news since it was asked for; one step for each record.

        The caller can do other work between the steps, and news of a key in between counts.
        """
        listed: dict[str, Record] = {}
        for number, value in enumerate(values):
            # Most values are held already, and need no checks again.
            record = self._held.get(self._named(value) or "")
            if record is None or record.value != value:
                record = decode(self.kind, value, f"{_UNNAMED}{number})", self._seal)
            known = listed.get(record.key)
            if known is None or record.stamp > known.stamp:
                listed[record.key] = record
            yield record.key, RecordChange.NOTHING
        for key in self._held.keys() - listed.keys():
            yield key, RecordChange.NOTHING if key in (self._touched or ()) else self._drop(key, 0)
        for key, record in listed.items():
            yield key, RecordChange.NOTHING if key in (self._touched or ()) else self._put(record)
            # Parsed in steps too, and not all at once for the next reader.
            if key in self.changed:
                self.changed[key] = self._document(key)
        self._touched = None

    # Inner workings

    def _document(self, key: str) -> ParsedFile | None:
        held = self._held.get(key)
        return None if held is None else held.parsed(self.kind)

    def _put(self, record: Record) -> RecordChange:
        key, held = record.key, self._held.get(record.key)
        if held is not None and held.value == record.value:
            return RecordChange.NOTHING
        # A record may be older than a deletion of its key: another clock is behind. It is held, because the
        # state holds it, but the newest time stays, so that our next draft is later than both.
        newest = max(record.stamp, self._known_stamp(key))
        self._size += record.size - (held.size if held else 0)
        self._held[key] = record
        self.changes += 1
        self._deleted.pop(key, None)
        self._remember(key, newest)
        self.changed[key] = None
        if record.problem and held is None:
            return RecordChange.NOTHING
        self.recent.superseded(key, self.get(key))
        return RecordChange.UNREGISTERED if record.problem else RecordChange.REGISTERED

    def _drop(self, key: str, stamp: int, *, is_certain: bool = True) -> RecordChange:
        newest = max(stamp, self._known_stamp(key))
        held = self._held.pop(key, None)
        self._newest.pop(key, None)
        self._remember(key, newest)
        if held is None:
            return RecordChange.NOTHING
        self._size -= held.size
        self.changes += 1
        self.changed[key] = None
        if is_certain:
            self.recent.superseded(key, None)
        return RecordChange.UNREGISTERED

    def _known_stamp(self, key: str) -> int:
        return self._newest.get(key) or self._deleted.get(key, 0)

    def _remember(self, key: str, stamp: int) -> None:
        if key in self._held:
            self._newest[key] = stamp
        elif stamp:
            # The newest deletion goes to the end; the oldest is forgotten first.
            self._deleted.pop(key, None)
            self._deleted[key] = stamp
            if len(self._deleted) > MAX_REMEMBERED_DELETIONS:
                del self._deleted[next(iter(self._deleted))]

    def _named(self, value: object) -> str | None:
        return text_of(object_of(value).get(self.kind.key_field))


def stamp_of(value: object) -> int:
    """Return ``registered_at`` of a stored value in nanoseconds since 1970; 0 if it has none."""
    at = text_of(object_of(value).get("registered_at"))
    return 0 if at is None else nanoseconds_of(at) or 0
