"""Describe the skills and prompts that can be searched, and judge how well skills are found."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.catalog.resolve import normalise
from iii_directory.documents.ids import INDEX_SUFFIX, bare_id, namespace_of
from iii_directory.documents.uris import SectionUri, parse_uri
from iii_directory.errors import DirectoryError
from iii_directory.search.fields import Document
from iii_directory.search.index import Index
from iii_directory.search.search_replies import found_by
from iii_directory.search.search_request import SearchRequest
from iii_directory.search.words import thesaurus
from iii_directory.shapes import items_of, object_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iii_directory.catalog.view import CatalogueView
    from iii_directory.documents.model import Prompt, Skill
    from iii_directory.search.finding import Hit
    from iii_directory.search.search_request import Kind

_CODE: Final = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
NOTHING: Final = "nothing"
"""What a case expects where no skill should be found."""
_SHOWN: Final = 5
_NEARLY: Final = 0.7
"""Another skill with so much of a description would be found in its place."""


@dataclass(eq=False)
class IndexedKind:
    """The skills, or the prompts, that are indexed, by the ids callers see."""

    document_of: Callable[[str, Any], Document]
    _body_of: Callable[[CatalogueView, Any], str]
    index: Index = field(default_factory=lambda: Index(thesaurus()))
    known: dict[str, Any] = field(default_factory=dict[str, Any])
    """The records of the catalogue that are indexed."""
    unread: dict[str, Any] = field(default_factory=dict[str, Any])
    """Those that are indexed without their bodies so far."""

    def put(self, key: str, record: Any, view: CatalogueView | None) -> None:
        """Index a record; without a view its body is left for later."""
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


class Library:
    """Everything that can be searched at one moment: skills, prompts, and what an engine has."""

    def __init__(
        self, kinds: tuple[IndexedKind, IndexedKind], view: CatalogueView, *, complete: bool = True
    ) -> None:
        skills, prompts = kinds
        self.indexes: Mapping[Kind, Index] = {"skill": skills.index, "prompt": prompts.index}
        self.complete = complete
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


def _of_skill(display_id: str, skill: Skill) -> Document:
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


def document_kinds() -> tuple[IndexedKind, IndexedKind]:
    """Return what will hold the skills and what will hold the prompts."""

    def skill_body(view: CatalogueView, skill: Skill) -> str:
        # Without the front matter, which lists show and which would count twice.
        body = view.read_document(skill).body
        # The examples in the manual of this program are about things that a directory need not have.
        return _CODE.sub(" ", body) if skill.provenance.kind == "built-in" else body

    def prompt_body(view: CatalogueView, prompt: Prompt) -> str:
        return view.read_prompt(prompt) if prompt.function_id is None else ""

    return IndexedKind(_of_skill, skill_body), IndexedKind(_of_prompt, prompt_body)


# How well skills are found by example requests, with the ranking that agents get


class Case(NamedTuple):
    request: str
    expect: str


class Outcome(NamedTuple):
    """How one request was answered."""

    case: Case
    rank: int | None
    """The place of what was expected; None if it was not among what an agent is shown."""
    winner: str
    """What came first; empty if nothing fits."""
    why: str
    """The words that led to what came first."""

    @property
    def passed(self) -> bool:
        return not self.winner if self.case.expect == NOTHING else self.rank is not None


class Collision(NamedTuple):
    """Another skill that has most of what a description says."""

    skill: str
    other: str
    why: str


class Confusion(NamedTuple):
    """A skill, or nothing, that was returned first instead of the expected one."""

    expected: str
    returned: str
    requests: list[str]


def parse_cases(document: object, default: str | None) -> list[Case] | str:
    """Read the ``cases`` of a file, each a ``request`` and what to ``expect``, or say what is wrong."""
    rows = items_of(object_of(document).get("cases"))
    if not rows:
        return "it has no list called cases"
    cases: list[Case] = []
    for number, row in enumerate(rows, 1):
        request = text_of(object_of(row).get("request"))
        expect = text_of(object_of(row).get("expect")) or default
        if not request or not request.strip():
            return f"case {number} has no request"
        if expect is None:
            return f"case {number} does not say what to expect: the id of a skill, or {NOTHING}"
        cases.append(Case(request, expect))
    return cases


def judge(library: Library, case: Case) -> Outcome:
    """Ask for one case as an agent would, among skills."""
    hits = _hits(library, case.request)
    places = [at for at, hit in enumerate(hits, 1) if case.expect in (hit.document.id, hit.inside)]
    if not hits:
        return Outcome(case, None, "", "")
    return Outcome(case, min(places, default=None), hits[0].inside or hits[0].document.id, hits[0].why)


def confusions(outcomes: Sequence[Outcome]) -> list[Confusion]:
    """Return what was returned first instead of what was expected, with the requests that led there."""
    found: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        returned = outcome.winner or NOTHING
        if outcome.rank != 1 and returned != outcome.case.expect:
            found.setdefault((outcome.case.expect, returned), []).append(outcome.case.request)
    most_first = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [Confusion(expected, returned, requests) for (expected, returned), requests in most_first]


def collisions(library: Library, skills: Sequence[str]) -> list[Collision]:
    """Return the skills that a description would be taken for."""
    found: list[Collision] = []
    for skill in skills:
        document = library.indexes["skill"].find(skill)
        if document is not None and document.description:
            found += [
                Collision(skill, hit.document.id, hit.why)
                for hit in _hits(library, document.description)
                if hit.document.id != skill and hit.inside != skill and hit.evidence.share >= _NEARLY
            ]
    return found


def _hits(library: Library, request: str) -> list[Hit]:
    found = found_by(library, SearchRequest([request], kinds=("skill",), limit=_SHOWN), request)
    return [hit for section in found.sections for hit in section.hits]
