"""The indexes behind search, kept as the catalogue and the engine are: never staler than a read.

Skills and prompts follow from one look after another. A few changed documents are taken in with their
bodies before the answer; many, as after a start, first by what lists show of them, and their bodies in the
background a little at a time. All of it is on the bus's event loop: an answer never meets half a change.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING, Any, Final

from iii_directory.bus.tasks import Tasks
from iii_directory.catalog.resolve import normalise
from iii_directory.catalog.snapshot import EMPTY
from iii_directory.documents.ids import INDEX_SUFFIX
from iii_directory.documents.uris import SectionUri, parse_uri
from iii_directory.errors import DirectoryError
from iii_directory.search.index import Index
from iii_directory.search.replies import found_by, reply
from iii_directory.search.request import parse_request
from iii_directory.search.sources import of_prompt, of_skill
from iii_directory.search.thesaurus import thesaurus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.catalog.look import Look
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Prompt, Skill
    from iii_directory.search.request import Kind

# As many documents are read and taken in while a caller waits, about a millisecond each.
_AT_ONCE: Final = 100
# How long the loop is kept from others at a time, and how long nobody needs it after a start.
_SLICE_SECONDS: Final = 0.002
_AFTER_START_SECONDS: Final = 0.5
# Slices of a start after which the collector forgets what they made: some hundred documents, which it would
# look through in two milliseconds.
_SLICES_TO_SETTLE: Final = 150


class DocumentIndexes:
    """Skills and prompts, by the ids callers see."""

    def __init__(self) -> None:
        self.skills = Index(thesaurus())
        self.prompts = Index(thesaurus())
        self._look: Look | None = None
        self._known_skills: dict[str, Skill] = {}
        self._known_prompts: dict[str, Prompt] = {}
        self._unread: dict[str, Skill] = {}
        """Skills without their bodies so far."""
        self._changing = asyncio.Lock()
        self._waiting = 0
        self._tasks = Tasks()
        self._working: asyncio.Task[None] | None = None

    @property
    def complete(self) -> bool:
        return not self._unread

    @property
    def snapshot(self) -> Snapshot:
        """What the indexes hold."""
        return EMPTY if self._look is None else self._look.snapshot

    def follow(self, look: Look) -> None:
        """The catalogue changed: take it in when there is time, before anybody asks."""
        if self._working is None or self._working.done():
            self._working = self._tasks.start(self._in_background(look))

    async def catch_up(self, look: Look) -> None:
        """Until this returns, the indexes are brought to a look; bodies of many documents may follow."""
        if look.snapshot is self.snapshot:
            return
        self._waiting += 1
        try:
            await self._take(look, _Pace())
        finally:
            self._waiting -= 1
        if self._unread:
            self.follow(look)

    def load(self, look: Look) -> None:
        """Everything at once, for whoever looks and leaves; needs no event loop."""
        for key, skill in _offered(look.snapshot).items():
            self._put_skill(key, skill, _body(look, skill))
        for prompt in look.snapshot.prompts.items:
            self._put_prompt(prompt, look)
        self._look = look

    def close(self) -> None:
        self._tasks.cancel()

    # Inner workings

    async def _in_background(self, look: Look) -> None:
        pace = _Pace(settles=self._look is None)
        pace.settle()
        await asyncio.sleep(_AFTER_START_SECONDS)
        await self._take(look, pace)
        while self._unread and self._look is not None:
            key, skill = next(iter(self._unread.items()))
            self._put_skill(key, skill, _body(self._look, skill))
            await pace.rest(hurry=False)
        pace.settle()

    async def _take(self, look: Look, pace: _Pace) -> None:
        async with self._changing:
            skills = _offered(look.snapshot)
            prompts = {prompt.name: prompt for prompt in look.snapshot.prompts.items}
            for key in self._known_skills.keys() - skills.keys():
                self._drop_skill(key)
            for key in self._known_prompts.keys() - prompts.keys():
                self._known_prompts.pop(key)
                self.prompts.drop(key)
            for prompt in _changed(prompts, self._known_prompts):
                self._put_prompt(prompts[prompt], look)
                await pace.rest(hurry=self._waiting > 0)
            changed = _changed(skills, self._known_skills)
            for key in changed:
                body = _body(look, skills[key]) if len(changed) <= _AT_ONCE else None
                self._put_skill(key, skills[key], body)
                await pace.rest(hurry=self._waiting > 0)
            self._look = look

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
                body = ""  # its file went just now; the next look will say so
        self.prompts.put(of_prompt(prompt), body)
        self._known_prompts[prompt.name] = prompt

    def _drop_skill(self, key: str) -> None:
        self.skills.drop(key)
        self._known_skills.pop(key)
        self._unread.pop(key, None)


def _offered(snapshot: Snapshot) -> dict[str, Skill]:
    """The skills that agents may find: not those for people to call, nor what is part of one."""
    skills = dict(zip(snapshot.skills.keys, snapshot.skills.items, strict=True))
    kept_back = [key for key, skill in skills.items() if skill.disable_model_invocation]
    if not kept_back:
        return skills
    withheld = frozenset(kept_back)
    return {
        key: skill for key, skill in skills.items() if withheld.isdisjoint((key, owner_of(snapshot, key)))
    }


class _Pace:
    """Leaves the loop to others again and again.

    At a start it also keeps what was taken in from the collector. That stays for good, and looking through
    all of it for garbage holds the loop for 40 ms with 10,000 documents, again and again (every goal
    ``beside``). Only at a start, because what is garbage at such a moment stays as well.
    """

    def __init__(self, *, settles: bool = False) -> None:
        self._since = time.monotonic()
        self._settles = settles
        self._slices = 0

    async def rest(self, *, hurry: bool) -> None:
        """After a slice of work let others have a turn, or half of the time while nobody waits for this."""
        spent = time.monotonic() - self._since
        if spent >= _SLICE_SECONDS:
            self._slices += 1
            if self._slices % _SLICES_TO_SETTLE == 0:
                self.settle()
            await asyncio.sleep(0 if hurry else spent)
            self._since = time.monotonic()

    def settle(self) -> None:
        if self._settles:
            gc.freeze()


def _changed(after: Mapping[str, object], before: Mapping[str, object]) -> list[str]:
    return [key for key, one in after.items() if before.get(key) is not one]


def _body(look: Look, skill: Skill) -> str:
    try:
        return look.read_skill(skill)
    except DirectoryError:
        return ""  # its file went just now; the next look will say so


class DocumentLibrary:
    """Skills and prompts at one moment, as search asks for them; functions are another's."""

    def __init__(self, documents: DocumentIndexes, look: Look) -> None:
        self.indexes: Mapping[Kind, Index] = {"skill": documents.skills, "prompt": documents.prompts}
        self.complete = documents.complete
        self._look = look

    def exactly(self, kind: Kind, typed: str) -> str | None:
        try:
            if kind == "skill":
                skill = self._look.snapshot.find(normalise(typed))
                return None if skill is None else self._look.snapshot.display_id(skill)
            uri = parse_uri(typed) if kind == "function" and "://" in typed else None
        except DirectoryError:
            return None
        return uri.function_id if isinstance(uri, SectionUri) else None

    def skill_of(self, document_id: str) -> str:
        return owner_of(self._look.snapshot, document_id)

    def body(self, kind: Kind, document_id: str) -> str:
        snapshot = self._look.snapshot
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
    """The skill that a document is part of: the overview at or above it, the nearest one, or itself."""
    winners = snapshot.skill_claims.winners
    for folder in _at_and_above(document_id):
        overview = winners.get(folder + INDEX_SUFFIX)
        if overview is not None:
            return snapshot.display_id(overview)
    return document_id


def _at_and_above(document_id: str) -> Iterable[str]:
    yield document_id
    while "/" in document_id:
        document_id = document_id.rpartition("/")[0]
        yield document_id


def library_of(look: Look) -> DocumentLibrary:
    """The documents of a look, all taken in; for whoever looks and leaves."""
    documents = DocumentIndexes()
    documents.load(look)
    return DocumentLibrary(documents, look)


def search_documents(look: Look, payload: Mapping[str, Any]) -> dict[str, Any]:
    """``directory::search`` over the documents of a look, without an engine."""
    started = time.perf_counter()
    request = parse_request(payload)
    library = library_of(look)
    found = [found_by(library, request, capability) for capability in request.capabilities]
    taken = round((time.perf_counter() - started) * 1000, 1)
    return {**reply(library, request, found), "latency_ms": taken}
