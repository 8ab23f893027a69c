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
from typing import TYPE_CHECKING, Any, Final

from iii_directory.bus.tasks import Tasks
from iii_directory.catalog.resolve import normalise
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.documents.ids import INDEX_SUFFIX
from iii_directory.documents.uris import SectionUri, parse_uri
from iii_directory.errors import DirectoryError
from iii_directory.limits import INDEX_LATEST_SECONDS, INDEX_PAUSE_SECONDS
from iii_directory.search.index import Index
from iii_directory.search.replies import found_by, reply
from iii_directory.search.request import parse_request
from iii_directory.search.sources import of_prompt, of_skill
from iii_directory.search.thesaurus import thesaurus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from iii_directory.catalog.look import Look
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Prompt, Skill
    from iii_directory.search.request import Kind

# A search reads at most so many changed bodies before it answers, about a millisecond each.
_AT_ONCE: Final = 100
# How long indexing holds the loop at a time.
_SLICE_SECONDS: Final = 0.002
# How long the loop is left to others after each slice, in multiples of the slice: not at all while a search
# waits; half of the time for what a search has asked for, or while there are no calls; else almost always.
_HURRY: Final = 0
_HALF: Final = 1
_BUSY: Final = 25
# Slices of the first indexing after which gc.freeze() is called: some hundred documents, which a collection
# would scan in two milliseconds.
_SLICES_TO_FREEZE: Final = 150

_CODE: Final = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


class DocumentIndexes:
    """The indexes of skills and prompts, by the ids callers see.

    ``activity`` is a number that grows with every call; indexing in the background gives way to calls.
    """

    def __init__(self, activity: Callable[[], int] = lambda: 0) -> None:
        self.skills = Index(thesaurus())
        self.prompts = Index(thesaurus())
        self._activity = activity
        self._indexed: Look | None = None
        self._newest: Look | None = None
        self._known_skills: dict[str, Skill] = {}
        self._known_prompts: dict[str, Prompt] = {}
        self._unread: dict[str, Skill] = {}
        """Skills that are indexed without their bodies so far."""
        self._changing = asyncio.Lock()
        self._waiting = 0
        """How many searches wait for the indexes."""
        self._tasks = Tasks()
        self._working: asyncio.Task[None] | None = None

    @property
    def complete(self) -> bool:
        return not self._unread

    @property
    def snapshot(self) -> Snapshot:
        """The documents that are indexed."""
        return EMPTY if self._indexed is None else self._indexed.listed

    def follow(self, look: Look) -> None:
        """Index the documents of a look in the background, once calls have paused."""
        self._newest = look
        if self._has_work and (self._working is None or self._working.done()):
            self._working = self._tasks.start(self._work_in_background())

    async def catch_up(self, look: Look) -> None:
        """Index the documents of a look now; if many changed, their bodies follow in the background."""
        if look.listed is self.snapshot:
            return
        self._newest = look
        self._waiting += 1
        try:
            await self._index_newest(_Pace(self._activity))
        finally:
            self._waiting -= 1
        self.follow(self._newest)

    def load(self, look: Look) -> None:
        """Index everything at once, for a caller that looks and leaves; needs no event loop."""
        for key, skill in _offered(look.listed).items():
            self._put_skill(key, skill, _body(look, skill))
        for prompt in look.listed.prompts.items:
            self._put_prompt(prompt, look)
        self._indexed = look

    def close(self) -> None:
        self._tasks.cancel()

    # Inner workings

    @property
    def _has_work(self) -> bool:
        return bool(self._unread) or (self._newest is not None and self._newest.listed is not self.snapshot)

    async def _work_in_background(self) -> None:
        pace = _Pace(self._activity, freezes=self._indexed is None)
        pace.freeze()
        while self._has_work:
            # Only a search leaves bodies unread, and it told its caller that the answer is not complete.
            while self._unread and self._indexed is not None:
                key, skill = next(iter(self._unread.items()))
                self._put_skill(key, skill, _body(self._indexed, skill))
                await pace.rest(_HALF)
            await self._calls_pause()
            await self._index_newest(pace)
        pace.freeze()

    async def _calls_pause(self) -> None:
        """Return when no call came for a moment, a search wants bodies, or changes have waited too long."""
        latest = time.monotonic() + INDEX_LATEST_SECONDS
        before = -1
        while not self._unread and (now := self._activity()) != before and time.monotonic() < latest:
            before = now
            await asyncio.sleep(INDEX_PAUSE_SECONDS)

    async def _index_newest(self, pace: _Pace) -> None:
        async with self._changing:
            # The newest look by now, which need not be the one that made this start: indexing an older one
            # after a newer one would undo changes.
            look = self._newest
            if look is None or look.listed is self.snapshot:
                return
            skills = _offered(look.listed)
            prompts = {prompt.name: prompt for prompt in look.listed.prompts.items}
            for key in self._known_skills.keys() - skills.keys():
                self._drop_skill(key)
            for key in self._known_prompts.keys() - prompts.keys():
                self._known_prompts.pop(key)
                self.prompts.drop(key)
            for prompt in _changed(prompts, self._known_prompts):
                if not self._relabels_prompt(prompts[prompt]):
                    self._put_prompt(prompts[prompt], look)
                await pace.rest(_HURRY if self._waiting else None)
            changed: list[str] = []
            for key in _changed(skills, self._known_skills):
                if not self._relabels_skill(key, skills[key]):
                    changed.append(key)
                await pace.rest(_HURRY if self._waiting else None)
            for key in changed:
                # A search that waits for many documents is not kept waiting for their bodies too.
                reads = len(changed) <= _AT_ONCE or not self._waiting
                self._put_skill(key, skills[key], _body(look, skills[key]) if reads else None)
                await pace.rest(_HURRY if self._waiting else None)
            self._indexed = look

    def _put_skill(self, key: str, skill: Skill, body: str | None) -> None:
        self.skills.put(of_skill(key, skill), body or "")
        self._known_skills[key] = skill
        self._unread.pop(key, None)
        if body is None:
            self._unread[key] = skill

    def _put_prompt(self, prompt: Prompt, look: Look) -> None:
        body = ""
        if prompt.function_id is None:
            try:
                body = look.read_prompt(prompt)
            except DirectoryError:
                body = ""  # its file has just gone; the next look will say so
        self.prompts.put(of_prompt(prompt), body)
        self._known_prompts[prompt.name] = prompt

    def _relabels_skill(self, key: str, skill: Skill) -> bool:
        """Take over the new source of a skill that has the same words as before; False if it has not."""
        known = self._known_skills.get(key)
        if known is None or known._replace(provenance=skill.provenance) != skill:
            return False
        self.skills.relabel(of_skill(key, skill))
        self._known_skills[key] = skill
        if key in self._unread:
            self._unread[key] = skill
        return True

    def _relabels_prompt(self, prompt: Prompt) -> bool:
        known = self._known_prompts.get(prompt.name)
        if known is None or known._replace(provenance=prompt.provenance) != prompt:
            return False
        self.prompts.relabel(of_prompt(prompt))
        self._known_prompts[prompt.name] = prompt
        return True

    def _drop_skill(self, key: str) -> None:
        self.skills.drop(key)
        self._known_skills.pop(key)
        self._unread.pop(key, None)


def _offered(snapshot: Snapshot) -> dict[str, Skill]:
    """Return the skills that agents may find: neither those that only people may call, nor their parts."""
    skills = dict(zip(snapshot.skills.keys, snapshot.skills.items, strict=True))
    kept_back = [key for key, skill in skills.items() if skill.disable_model_invocation]
    if not kept_back:
        return skills
    withheld = frozenset(kept_back)
    return {
        key: skill for key, skill in skills.items() if withheld.isdisjoint((key, owner_of(snapshot, key)))
    }


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
        await asyncio.sleep(spent * (self._by_activity if times is None else times))
        before, self._seen = self._seen, self._activity()
        self._by_activity = _HALF if before == self._seen else _BUSY
        self._since = time.monotonic()

    def freeze(self) -> None:
        if self._freezes:
            gc.freeze()


def _changed(after: Mapping[str, object], before: Mapping[str, object]) -> list[str]:
    return [key for key, one in after.items() if before.get(key) is not one]


def _body(look: Look, skill: Skill) -> str:
    try:
        # Without the front matter, which lists show and which would count twice.
        body = look.read_document(skill).body
    except DirectoryError:
        return ""  # its file has just gone; the next look will say so
    # The examples in the manual of this program are about things that a directory need not have.
    return _CODE.sub(" ", body) if skill.provenance.kind == "built-in" else body


class DocumentLibrary:
    """Gives search the skills and prompts of one moment; it has no functions."""

    def __init__(self, documents: DocumentIndexes, look: Look) -> None:
        self.indexes: Mapping[Kind, Index] = {"skill": documents.skills, "prompt": documents.prompts}
        self.complete = documents.complete
        self._look = look

    def exactly(self, kind: Kind, typed: str) -> str | None:
        try:
            if kind == "skill":
                skill = self._look.listed.find(normalise(typed))
                return None if skill is None else self._look.listed.display_id(skill)
            uri = parse_uri(typed) if kind == "function" and "://" in typed else None
        except DirectoryError:
            return None
        return uri.function_id if isinstance(uri, SectionUri) else None

    def skill_of(self, document_id: str) -> str:
        return owner_of(self._look.listed, document_id)

    def body(self, kind: Kind, document_id: str) -> str:
        snapshot = self._look.listed
        try:
            if kind == "skill" and (skill := snapshot.find(document_id)):
                return self._look.read_skill(skill)
            if kind == "prompt" and (prompt := snapshot.prompt(document_id)) and prompt.path:
                return self._look.read_prompt(prompt)
        except DirectoryError:
            pass
        return ""

    def schema(self, function_id: str) -> object:  # noqa: ARG002 (there are no functions here)
        return None


def owner_of(snapshot: Snapshot, document_id: str) -> str:
    """Return the skill that a document is part of: the nearest overview at or above it, or itself."""
    document, winners = snapshot.find(document_id), snapshot.skill_claims.winners
    if document is None:
        return document_id
    for folder in _at_and_above(document_id):
        overview = winners.get(folder + INDEX_SUFFIX)
        # What another author wrote is not part of a skill, wherever it lies.
        if overview is not None and overview.provenance.author == document.provenance.author:
            return snapshot.display_id(overview)
    return document_id


def _at_and_above(document_id: str) -> Iterable[str]:
    yield document_id
    while "/" in document_id:
        document_id = document_id.rpartition("/")[0]
        yield document_id


def library_of(look: Look) -> DocumentLibrary:
    """Index all documents of a look, for a caller that looks and leaves."""
    documents = DocumentIndexes()
    documents.load(look)
    return DocumentLibrary(documents, look)


def search_documents(look: Look, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Answer ``directory::search`` from the documents of a look, without an engine."""
    started = time.perf_counter()
    request = parse_request(payload)
    library = library_of(look)
    found = [found_by(library, request, capability) for capability in request.capabilities]
    taken = round((time.perf_counter() - started) * 1000, 1)
    return {**reply(library, request, found), "latency_ms": taken}
