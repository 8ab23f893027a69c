"""Keep the registered entries of one kind in memory, in step with iii-state. Pure.

An event tells of each write: what was there, and what is there now. Events may arrive in another order than
the writes were made. An event that follows upon the held record, with a newer ``registered_at`` than any seen
of its key, is the next write. Any other event puts the key in doubt: the caller asks the state what it holds
there and calls `Table.settle`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from iii_directory.catalog.records import UNSEALED, Record, decode, size_of
from iii_directory.documents.provenance import NO_AUTHOR
from iii_directory.limits import MAX_REMEMBERED_DELETIONS
from iii_directory.shapes import object_of, text_of
from iii_directory.text import nanoseconds_of, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from iii_directory.catalog.records import RecordKind, Seal
    from iii_directory.documents.model import ParsedFile
    from iii_directory.documents.provenance import Author

_MICROSECOND: Final = 1000
# A listing has no keys, so a record in it that does not say what it is called gets a number.
_UNNAMED: Final = "(unnamed "


class Outcome(Enum):
    """What a piece of news meant for the table."""

    NOTHING = "nothing"
    REGISTERED = "register"
    UNREGISTERED = "unregister"
    DOUBTFUL = "doubtful"


class Table:
    """Every record of one kind by its key."""

    def __init__(self, kind: RecordKind, seal: Seal = UNSEALED) -> None:
        self.kind = kind
        self._seal = seal
        self._held: dict[str, Record] = {}
        self._newest: dict[str, int] = {}
        """The newest ``registered_at`` seen of each key that is held."""
        self._deleted: dict[str, int] = {}
        """The same of keys that are not, for as many as are remembered."""
        self._changed: dict[str, ParsedFile | None] = {}
        """Keys whose document is other than when it was last taken, with it if it was made already."""
        self._touched: set[str] | None = None
        """While a listing is awaited: the keys that a write or an event spoke of since it was asked for."""
        self._doubts: dict[str, bool] = {}
        """Keys the state was asked for, and whether there was news of them since."""
        self._drafts: dict[str, Record] = {}
        """The newest draft of each key that is being written: its event needs no checks."""
        self._contested: set[str] = set()
        """Keys that somebody else wrote while we were writing them; the state knows who was last."""
        self._last_stamp = 0
        self._size = 0
        self.changes = 0
        """Grows with every record that is put or dropped."""

    def get(self, key: str) -> dict[str, Any] | None:
        """The record served under a key."""
        record = self._held.get(key)
        return None if record is None or record.problem else object_of(record.value)

    def key_of(self, key: str, old: object, new: object) -> str:
        """What an event's record is known as: as it says itself, for a listing has nothing else to go by."""
        return self._named(old if new is None else new) or key

    def draft(self, fields: dict[str, Any], now: int, author: Author = NO_AUTHOR) -> Record:
        """A new record of checked fields: registered now, and later than everything known of its key."""
        key = fields[self.kind.key_field]
        known = max(self._last_stamp, self._known_stamp(key))
        self._last_stamp = max(now // _MICROSECOND, known // _MICROSECOND + 1) * _MICROSECOND
        value = self._seal.signed({**fields, "registered_at": rfc3339(self._last_stamp)}, author)
        record = Record(key, self._last_stamp, value, size_of(value), fields, author=author)
        self._drafts[key] = record
        return record

    def drop_draft(self, record: Record) -> None:
        """Forget a draft that was written, or will not be."""
        if self._drafts.get(record.key) is record:
            del self._drafts[record.key]
            self._contested.discard(record.key)

    def size_with(self, record: Record) -> int:
        """How large a listing would be, in bytes, with this record."""
        held = self._held.get(record.key)
        return self._size - (held.size if held else 0) + record.size

    @property
    def has_changes(self) -> bool:
        """True when `take_changes` has something to give."""
        return bool(self._changed)

    def take_changes(self) -> dict[str, ParsedFile | None]:
        """The documents that are new, other, or (None) gone since the last call, by a key of both kinds."""
        changed, self._changed = self._changed, {}
        return {
            f"{self.kind.name}:{key}": document or self._document(key) for key, document in changed.items()
        }

    # News

    def written(self, record: Record) -> Outcome:
        """Take a record that the state took from us, unless something newer was seen already."""
        self._touch(record.key)
        if record.key in self._contested:
            return self._doubt(record.key)
        return self._put(record) if record.stamp > self._known_stamp(record.key) else Outcome.NOTHING

    def deleted(self, key: str, old: object) -> Outcome:
        """The state deleted a key for us and said what was there (None: nothing)."""
        self._touch(key)
        held, stamp = self._held.get(key), stamp_of(old)
        if held is not None and old is None:
            return self._doubt(key)
        if held is not None and held.stamp > stamp:
            return Outcome.NOTHING
        return self._drop(key, stamp)

    def seen(self, key: str, old: object, new: object) -> Outcome:
        """An event told of a write or (``new`` is None) of a deletion."""
        self._drop_unnamed(old)
        self._touch(key)
        held, newest = self._held.get(key), self._known_stamp(key)
        draft = self._drafts.get(key)
        # Most events tell of a write of ours, which is held or drafted: its time need not be parsed.
        ours = next((record for record in (held, draft) if record is not None and record.value == new), None)
        self._remember(key, max(newest, stamp_of(old), ours.stamp if ours else stamp_of(new)))
        value = held.value if held else None
        if new == value:
            return Outcome.NOTHING
        if old != value:
            return self._doubt(key)
        if new is None:
            return self._drop(key, 0)
        record = ours or self._decode(new, key)
        return self._put(record) if record.stamp > newest else self._doubt(key)

    def doubt(self, key: str) -> Outcome:
        """A key may have changed, by the word of somebody or a write of ours: only the state knows."""
        self._touch(key)
        return self._doubt(key)

    def hinted(self, key: str, at: str | None) -> Outcome:
        """Doubt a key that was written elsewhere with this ``registered_at``, or (None) deleted.

        An older time than ours is news as well: of two that write a key at one moment, the state keeps the
        one that came last, whatever their clocks say.
        """
        if key in self._drafts:
            self._contested.add(key)
        # An answer that is on its way may be older than the write.
        awaited = key in self._doubts or self._touched is not None
        news = key in self._held if at is None else nanoseconds_of(at) != self._known_stamp(key)
        return self.doubt(key) if awaited or news else Outcome.NOTHING

    def settle(self, key: str, value: object) -> Outcome:
        """The state said what it holds under a doubtful key; with news of it since, it is still in doubt."""
        news = self._doubts.pop(key, None)
        if news is None:
            return Outcome.NOTHING
        if news:
            return self._doubt(key)
        # While a listing is taken in step by step, this was asked later than that.
        self._touch(key)
        return self._drop(key, 0) if value is None else self._put(self._decode(value, key))

    def leave_doubtful(self, key: str) -> None:
        """The state did not answer; a listing will have to settle it."""
        self._doubts.pop(key, None)

    def listing_asked(self) -> None:
        """A whole listing is on its way; what is learned from now on may be newer than it."""
        self._touched = set()

    def stamps_in(self, values: Iterable[object]) -> dict[str, int]:
        """The keys of a listing and when each was registered, as far as the records say."""
        stamps: dict[str, int] = {}
        for value in values:
            key = self._named(value)
            if key is not None:
                stamps[key] = max(stamp_of(value), stamps.get(key, 0))
        return stamps

    def keep(self, key: str) -> None:
        """The listing on its way is no news of this key: it was written again since."""
        self._touch(key)

    def listed(self, values: Iterable[object]) -> Iterator[tuple[str, Outcome]]:
        """The listing came: everything is as it says, but for keys touched since it was asked for.

        A step for each record, mostly without news: whoever takes the steps can let others in between, and
        what these do to a key counts.
        """
        listed: dict[str, Record] = {}
        for number, value in enumerate(values):
            record = self._known(value) or self._decode(value, f"{_UNNAMED}{number})")
            known = listed.get(record.key)
            if known is None or record.stamp > known.stamp:
                listed[record.key] = record
            yield record.key, Outcome.NOTHING
        for key in self._held.keys() - listed.keys():
            yield key, Outcome.NOTHING if self._is_touched(key) else self._drop(key, 0)
        for key, record in listed.items():
            yield key, Outcome.NOTHING if self._is_touched(key) else self._put(record)
            # Made in steps too, and not all at once for the next reader.
            if key in self._changed:
                self._changed[key] = self._document(key)
        self._touched = None

    # Inner workings

    def _decode(self, value: object, key: str) -> Record:
        return decode(self.kind, value, key, self._seal)

    def _document(self, key: str) -> ParsedFile | None:
        held = self._held.get(key)
        return None if held is None else held.parsed(self.kind)

    def _known(self, value: object) -> Record | None:
        """The record that is held for a value, if it is the same: most are, and need no checks again."""
        held = self._held.get(self._named(value) or "")
        return held if held is not None and held.value == value else None

    def _is_touched(self, key: str) -> bool:
        return self._touched is not None and key in self._touched

    def _put(self, record: Record) -> Outcome:
        key, held = record.key, self._held.get(record.key)
        if held is not None and held.value == record.value:
            return Outcome.NOTHING
        newest = max(record.stamp, self._known_stamp(key))
        self._size += record.size - (held.size if held else 0)
        self._held[key] = record
        self.changes += 1
        self._deleted.pop(key, None)
        self._remember(key, newest)
        self._changed[key] = None
        if not record.problem:
            return Outcome.REGISTERED
        return Outcome.NOTHING if held is None else Outcome.UNREGISTERED

    def _drop(self, key: str, stamp: int) -> Outcome:
        newest = max(stamp, self._known_stamp(key))
        held = self._held.pop(key, None)
        self._newest.pop(key, None)
        self._remember(key, newest)
        if held is None:
            return Outcome.NOTHING
        self._size -= held.size
        self.changes += 1
        self._changed[key] = None
        return Outcome.UNREGISTERED

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

    def _touch(self, key: str) -> None:
        if self._touched is not None:
            self._touched.add(key)
        if key in self._doubts:
            self._doubts[key] = True

    def _doubt(self, key: str) -> Outcome:
        if key in self._doubts:
            return Outcome.NOTHING
        self._doubts[key] = False
        return Outcome.DOUBTFUL

    def _drop_unnamed(self, value: object) -> None:
        if value is None or self._named(value):
            return
        for key in [key for key in self._held if key.startswith(_UNNAMED)]:
            if self._held[key].value == value:
                self._drop(key, 0)

    def _named(self, value: object) -> str | None:
        return text_of(object_of(value).get(self.kind.key_field))


def stamp_of(value: object) -> int:
    """``registered_at`` of a stored value in nanoseconds since 1970; 0 when it has none."""
    at = text_of(object_of(value).get("registered_at"))
    return 0 if at is None else nanoseconds_of(at) or 0
