"""Keep the search indexes of skills and prompts in step with the catalogue.

A search brings the indexes up to date before it answers. Besides that, changes are indexed in the background
once calls have paused, a little at a time, so that neither writers nor readers pay for a search that may
never come. Everything happens on the bus's event loop: an answer never sees half a change.
"""

from __future__ import annotations

import asyncio
import gc
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from iii_directory.bus.tasks import Tasks
from iii_directory.catalog.resolve import normalise
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.documents.ids import INDEX_SUFFIX, bare_id, namespace_of
from iii_directory.documents.uris import SectionUri, parse_uri
from iii_directory.errors import DirectoryError
from iii_directory.limits import INDEX_LATEST_SECONDS, INDEX_PAUSE_SECONDS
from iii_directory.search.fields import Document
from iii_directory.search.index import Index
from iii_directory.search.words import thesaurus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.documents.model import Prompt, Skill
    from iii_directory.search.search_request import Kind


# A search reads at most so many changed bodies before it answers, about a millisecond each.
_AT_ONCE: Final = 100
# A search waits for at most so many vectors, about a tenth of a millisecond each; more are made in the
# background, and until then words alone count.
_VECTORS_AT_ONCE: Final = 1000
_VECTORS_IN_A_ROW: Final = 8
# How long indexing holds the loop at a time.
_SLICE_SECONDS: Final = 0.002
# How long the loop is left to others after each slice, in multiples of the slice: not at all while a search
# waits; half of the time for what a search has asked for, or while nothing calls; else almost always.
_HURRY: Final = 0
_HALF: Final = 1
_BUSY: Final = 25
# Slices of the first indexing after which gc.freeze() is called: some hundred documents, which a collection
# would scan in two milliseconds.
_SLICES_TO_FREEZE: Final = 150

_CODE: Final = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


class IndexedKind:
    """The skills, or the prompts, that are indexed, by the ids callers see."""

    def __init__(
        self, document_of: Callable[[str, Any], Document], body_of: Callable[[CatalogueView, Any], str]
    ) -> None:
        self.index = Index(thesaurus())
        self.known: dict[str, Any] = {}
        """The records of the catalogue that are indexed."""
        self.unread: dict[str, Any] = {}
        """Those that are indexed without their bodies so far."""
        self.document_of = document_of
        self._body_of = body_of

    def put(self, key: str, record: Any, view: CatalogueView | None) -> None:
        """Index a record, without a view its body is left for later."""
        self.unread.pop(key, None)
        if view is None:
            self.unread[key] = record
        body = ""
        with suppress(DirectoryError):  # a file that has just gone will be missing in the next view
            body = "" if view is None else self._body_of(view, record)
        self.index.put(self.document_of(key, record), body)
        self.known[key] = record

    def drop(self, key: str) -> None:
        self.index.drop(key)
        self.unread.pop(key, None)
        del self.known[key]

    def relabels(self, key: str, record: Any) -> bool:
        """Take over the new source of a record that has the same words as before; False if it has not."""
        known = self.known.get(key)
        if known is None or known._replace(provenance=record.provenance) != record:
            return False
        self.index.relabel(self.document_of(key, record))
        self.known[key] = record
        if key in self.unread:
            self.unread[key] = record
        return True


class DocumentIndexes:
    """The indexes of skills and prompts.

    ``activity`` is a number that grows with every call; indexing in the background gives way to calls.
    """

    def __init__(self, activity: Callable[[], int] = lambda: 0) -> None:
        self.kinds = IndexedKind(of_skill, _skill_body), IndexedKind(_of_prompt, _prompt_body)
        self.snapshot: Snapshot = EMPTY
        """The documents that are indexed."""
        self._activity = activity
        self._indexed: CatalogueView | None = None
        self._newest: CatalogueView | None = None
        self._searched = False
        """Whether a search has asked: before that the table of word vectors is not read."""
        self._changing = asyncio.Lock()
        self._waiting = 0
        """How many searches wait for the indexes."""
        self._tasks = Tasks()
        self._working: asyncio.Task[None] | None = None

    @property
    def skills(self) -> Index:
        return self.kinds[0].index

    @property
    def complete(self) -> bool:
        """Whether every body is indexed, and every vector made that searches need."""
        return all(not kind.unread and kind.index.by_meaning for kind in self.kinds)

    def follow(self, view: CatalogueView) -> None:
        """Index the documents of a view in the background, once calls have paused."""
        self._newest = view
        if self._has_work and (self._working is None or self._working.done()):
            self._working = self._tasks.start(self._work_in_background())

    async def catch_up(self, view: CatalogueView) -> None:
        """Index the documents of a view now, for a search.

        If many changed, their bodies follow in the background; so do the vectors of many documents.
        """
        self._searched = True
        if view.listed is self.snapshot and not self._unmade:
            return
        self._newest = view
        self._waiting += 1
        pace = _Pace(self._activity)
        try:
            await self._index_newest(pace)
            if self._unmade > _VECTORS_AT_ONCE:
                for kind in self.kinds:
                    kind.index.by_meaning = False
            else:
                await self._make_vectors(pace, _HURRY)
        finally:
            self._waiting -= 1
        self.follow(self._newest)

    def take_all(self, view: CatalogueView) -> None:
        """Note that all documents of a view are indexed."""
        self._indexed, self.snapshot = view, view.listed

    def close(self) -> None:
        self._tasks.cancel()
        # Garbage of a moment at which `_Pace` froze is left to the collector again: a process may start many
        # directories, one after the other.
        gc.unfreeze()

    # Inner workings

    @property
    def _unmade(self) -> int:
        return sum(kind.index.unmade_vectors for kind in self.kinds)

    @property
    def _has_work(self) -> bool:
        is_old = self._newest is not None and self._newest.listed is not self.snapshot
        return is_old or any(kind.unread for kind in self.kinds) or (self._searched and self._unmade > 0)

    async def _work_in_background(self) -> None:
        pace = _Pace(self._activity, freezes=self._indexed is None)
        pace.freeze()
        while self._has_work:
            # Only a search leaves bodies unread, and it told its caller that the answer is not complete.
            for kind in self.kinds:
                while kind.unread and self._indexed is not None:
                    key, record = next(iter(kind.unread.items()))
                    kind.put(key, record, self._indexed)
                    await pace.rest(_HALF)
            if self._searched:
                await self._make_vectors(pace, _HALF)
            # Until no call came for a moment, a search wants bodies, or changes have waited too long.
            latest, before = time.monotonic() + INDEX_LATEST_SECONDS, -1
            while (now := self._activity()) != before and time.monotonic() < latest:
                if any(kind.unread for kind in self.kinds):
                    break
                before = now
                await asyncio.sleep(INDEX_PAUSE_SECONDS)
            await self._index_newest(pace)
        pace.freeze()

    async def _make_vectors(self, pace: _Pace, times: int) -> None:
        for kind in self.kinds:
            while kind.index.unmade_vectors:
                kind.index.make_vectors(_VECTORS_IN_A_ROW)
                await pace.rest(times)
            kind.index.by_meaning = True

    async def _index_newest(self, pace: _Pace) -> None:
        async with self._changing:
            # The newest view by now, which need not be the one that made this start: indexing an older one
            # after a newer one would undo changes.
            view = self._newest
            if view is None or view.listed is self.snapshot:
                return
            for kind, records in zip(self.kinds, records_of(view), strict=True):
                for key in kind.known.keys() - records.keys():
                    kind.drop(key)
                changed: list[str] = []
                for key, record in records.items():
                    if kind.known.get(key) is not record and not kind.relabels(key, record):
                        changed.append(key)
                    await pace.rest(_HURRY if self._waiting else None)
                for key in changed:
                    # A search that waits for many documents is not kept waiting for their bodies too.
                    reads = len(changed) <= _AT_ONCE or not self._waiting
                    kind.put(key, records[key], view if reads else None)
                    await pace.rest(_HURRY if self._waiting else None)
            self.take_all(view)


class _Pace:
    """Leaves the event loop to others after each slice of work.

    During the first indexing it also calls gc.freeze(). The indexes stay for good, and scanning them for
    garbage holds the loop for 40 ms with 10,000 documents, again and again (every goal ``beside``). Only
    during the first, because garbage of such a moment stays as well.
    """

    def __init__(self, activity: Callable[[], int], *, freezes: bool = False) -> None:
        self._activity = activity
        self._since = time.monotonic()
        self._seen = activity()
        self._by_activity = _HALF
        self._freezes = freezes
        self._slices = 0

    async def rest(self, times: int | None) -> None:
        """When a slice is over, leave the loop to others for so many times as long; None goes by activity."""
        spent = time.monotonic() - self._since
        if spent < _SLICE_SECONDS:
            return
        self._slices += 1
        if self._slices % _SLICES_TO_FREEZE == 0:
            self.freeze()
        # A slice that took long, as when the machine was busy elsewhere, must not make a search wait 25 times
        # as long for what is under way here.
        spent = min(spent, 2 * _SLICE_SECONDS)
        await asyncio.sleep(spent * (self._by_activity if times is None else times))
        before, self._seen = self._seen, self._activity()
        self._by_activity = _HALF if before == self._seen else _BUSY
        self._since = time.monotonic()

    def freeze(self) -> None:
        if self._freezes:
            gc.freeze()


class Library:
    """Everything that can be searched at one moment: skills, prompts, and what an engine has."""

    def __init__(self, documents: DocumentIndexes, view: CatalogueView) -> None:
        skills, prompts = documents.kinds
        self.indexes: Mapping[Kind, Index] = {"skill": skills.index, "prompt": prompts.index}
        self.complete = documents.complete
        """Whether all bodies are indexed and the engine has told everything."""
        self.schema: Callable[[str], object] = lambda _: None
        """Returns the schema of the payload of a function."""
        self._skills: Mapping[str, Skill] = skills.known
        self._prompts: Mapping[str, Prompt] = prompts.known
        self._look = view

    def exactly(self, kind: Kind, typed: str) -> str | None:
        """Return the id that a caller wrote in another way, such as an address or a path."""
        if " " in typed:
            return None
        try:
            if kind == "skill":
                skill_id = normalise(typed)
                return next((one for one in (skill_id, bare_id(skill_id)) if one in self._skills), None)
            uri = parse_uri(typed) if kind == "function" and "://" in typed else None
        except DirectoryError:
            return None
        return uri.function_id if isinstance(uri, SectionUri) else None

    def skill_of(self, document_id: str) -> str:
        """Return the skill that a document is part of: itself, if it is not part of another."""
        return owner_of(self._skills, document_id)

    def body(self, kind: Kind, document_id: str) -> str:
        """Return the body of a document, or nothing."""
        try:
            if kind == "skill":
                return self._look.read_skill(self._skills[document_id])
            return self._look.read_prompt(self._prompts[document_id])
        except (DirectoryError, KeyError):
            return ""


def owner_of(skills: Mapping[str, Skill], document_id: str) -> str:
    """Return the skill that a document is part of: the nearest overview at or above it, or itself."""
    document, folder = skills.get(document_id), document_id
    while document is not None and folder:
        # An overview goes by the name of its folder, unless another document has that.
        for key in (folder, folder + INDEX_SUFFIX):
            overview = skills.get(key)
            if (
                overview is not None
                and overview.id == folder + INDEX_SUFFIX
                # What another author wrote is not part of a skill, wherever it lies.
                and overview.provenance.author == document.provenance.author
            ):
                return key
        folder = folder.rpartition("/")[0]
    return document_id


def records_of(view: CatalogueView) -> tuple[dict[str, Skill], dict[str, Prompt]]:
    """Return the skills and prompts that agents may find.

    Left out are the skills that only people may call, and their parts.
    """
    snapshot = view.listed
    skills = dict(zip(snapshot.skills.keys, snapshot.skills.items, strict=True))
    prompts = {prompt.name: prompt for prompt in snapshot.prompts.items}
    withheld = frozenset(key for key, skill in skills.items() if skill.disable_model_invocation)
    if not withheld:
        return skills, prompts
    offered = {
        key: skill for key, skill in skills.items() if withheld.isdisjoint((key, owner_of(skills, key)))
    }
    return offered, prompts


def of_skill(display_id: str, skill: Skill) -> Document:
    """Describe a skill without its body; the functions it is about count like arguments."""
    functions = skill.functions if skill.function_id is None else (skill.function_id, *skill.functions)
    return Document(
        display_id,
        skill.title,
        skill.description,
        worker=skill.provenance.worker or namespace_of(display_id),
        keywords=skill.keywords,
        arguments=functions,
        provenance=skill.provenance,
    )


def _of_prompt(name: str, prompt: Prompt) -> Document:
    return Document(
        name,
        description=prompt.description,
        worker=prompt.provenance.worker or namespace_of(prompt.path or ""),
        arguments=tuple(argument.name for argument in prompt.arguments),
        provenance=prompt.provenance,
    )


def _skill_body(view: CatalogueView, skill: Skill) -> str:
    # Without the front matter, which lists show and which would count twice.
    body = view.read_document(skill).body
    # The examples in the manual of this program are about things that a directory need not have.
    return _CODE.sub(" ", body) if skill.provenance.kind == "built-in" else body


def _prompt_body(view: CatalogueView, prompt: Prompt) -> str:
    return view.read_prompt(prompt) if prompt.function_id is None else ""
