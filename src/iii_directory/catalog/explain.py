"""Explain why a document is served or not: every rule that hid, cut, shadowed or skipped it. Pure.

Most rules leave a finding. This module gathers the findings about one document and adds what is intended and
therefore not a finding: a file that is not a document, a description that a list cuts, a skill that only
people call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.catalog import resolve
from iii_directory.catalog.diagnostics import origin_of, provenance_of, row_of
from iii_directory.catalog.origins import FULL, MANUAL, NAME, OFF
from iii_directory.catalog.skill_folders import skill_at, skill_of
from iii_directory.catalog.skill_indexes import workers_index
from iii_directory.documents.ids import INDEX_SUFFIX, bare_id, folders_above, namespace_of, path_to_id
from iii_directory.documents.parse import plain_line
from iii_directory.documents.payload_fields import text
from iii_directory.errors import DirectoryError
from iii_directory.limits import INDEX_BUDGET_BYTES, MAX_DESCRIPTION_CHARS
from iii_directory.text import escaped, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.documents.model import Finding, ParsedFile, Prompt, Provenance, Skill

    Row = dict[str, Any]

_FOLDER: Final = "skills/"
_NOTHING: Final = "nothing, that is meant"


class _Answer(NamedTuple):
    """The answer of a read: a sentence about it, and the document."""

    summary: str
    id: str | None = None
    document: Skill | None = None
    stands_in: bool = False
    """True for a substitute, given because the document asked for does not exist."""
    provenance: Provenance | None = None


def explanation(view: CatalogueView, payload: Mapping[str, Any], beside: Iterable[Finding] = ()) -> Row:
    """Answer ``directory::skills::explain``; ``beside`` are findings that the view does not have."""
    asked = text(payload, "id")
    written = resolve.without_scheme(asked)
    places = dict(_places(view.snapshot, written))
    about = {*places, *_names(written), *(namespace_of(place) for place in places if "/" in place)}
    findings = (finding for finding in (*view.findings(), *beside) if finding.subject in about)
    rules = [row_of(finding, provenance_of(view.snapshot, finding)) for finding in findings]
    rules += [rule for place, entry in places.items() for rule in _of_file(view.snapshot, place, entry)]
    try:
        answer = _answer(view, asked, written)
    except DirectoryError as error:
        # The caller asks for reasons, so other ways to find the document are left out.
        known = DirectoryError(error.kind, error.problem, did_you_mean=error.did_you_mean, next_steps=())
        answer = _Answer(f"{quoted(written)} is there and is not served" if rules else str(known))
    if answer.document is not None:
        rules += _of_served(view, answer.document)
    rules += _of_levels(view, written)
    return {
        "asked": asked,
        "served": answer.id is not None and not answer.stands_in,
        "id": answer.id,
        "summary": answer.summary,
        "provenance": None if answer.provenance is None else answer.provenance.as_json(),
        "rules": rules,
    }


# What the caller means, and what a read answers


def _names(written: str) -> set[str]:
    """Return the names that findings may use for a document: its id, and every folder above it."""
    trimmed = written.removeprefix(_FOLDER)
    names = {written, trimmed, resolve.normalise(trimmed)}
    return names.union(folders_above(trimmed))


def _places(snapshot: Snapshot, written: str) -> Iterator[tuple[str, ParsedFile]]:
    """Return every file and record that may be what the caller asked for, by its name in findings."""
    trimmed = written.removeprefix(_FOLDER)
    wanted = bare_id(resolve.normalise(trimmed))
    ids = {wanted, wanted + INDEX_SUFFIX}
    folded = {name.casefold() for name in (written, trimmed, f"{trimmed}.md")}
    for path, entry in snapshot.files.items():
        is_document = entry.skill is not None or entry.prompt is not None
        # A file that is not a document may be meant by the id that it would have had.
        claims = _claims(entry, ids, trimmed) if is_document else path_to_id(path).key in ids
        if claims or path.casefold() in folded:
            yield path, entry
    for entry in snapshot.registered.values():
        if _claims(entry, ids, trimmed):
            document = entry.skill or entry.prompt
            if document is not None:
                yield origin_of(document), entry


def _claims(entry: ParsedFile, ids: set[str], name: str) -> bool:
    if entry.skill is not None:
        return entry.skill.id in ids
    return entry.prompt is not None and entry.prompt.name == name


def _answer(view: CatalogueView, asked: str, written: str) -> _Answer:
    snapshot, prompt = view.snapshot, view.snapshot.prompt(written)
    try:
        target = resolve.resolve_skill(snapshot, asked, view.installed or frozenset())
    except DirectoryError:
        if prompt is None:
            raise
        return _of_prompt(prompt)
    if isinstance(target, resolve.Undocumented):
        return _Answer(f"the worker {quoted(target.worker)} is installed and has no documents", target.worker)
    if isinstance(target, resolve.FoundFile):
        part = skill_at(snapshot, target.path)
        whose = "" if part is None else f" of the skill {quoted(snapshot.display_id(part))}"
        return _Answer(f"{quoted(target.path)} is a file{whose} and no document", target.path)
    if prompt is not None and target.note is not None:
        return _of_prompt(prompt)
    key, where = snapshot.display_id(target.skill), f"served from {origin_of(target.skill)}"
    if target.note is not None:
        summary = f"no document is served as {quoted(asked)}; {quoted(key)} is given instead, {where}"
        return _Answer(summary, key, stands_in=True, provenance=target.skill.provenance)
    return _Answer(f"{quoted(key)} is {where}", key, target.skill, provenance=target.skill.provenance)


def _of_prompt(prompt: Prompt) -> _Answer:
    summary = f"{quoted(prompt.name)} is a prompt, served from {origin_of(prompt)}"
    return _Answer(summary, prompt.name, provenance=prompt.provenance)


# Rules that leave no finding


def _rule(kind: str, subject: str, reason: str, fix: str = _NOTHING) -> Row:
    return {"kind": kind, "subject": escaped(subject), "reason": escaped(reason), "fix": fix}


def _of_file(snapshot: Snapshot, path: str, entry: ParsedFile) -> Iterator[Row]:
    """Yield a rule that names the skill of a file that is not a document."""
    if not entry.is_plain:
        return
    part = skill_at(snapshot, path)
    if part is None:
        # Of markdown there is a finding.
        if not path.endswith(".md"):
            reason = "it is not a document and no folder above it has a SKILL.md"
            yield _rule("file", path, reason, "give the folder above a SKILL.md")
        return
    whose = quoted(snapshot.display_id(part))
    reason = f"it is a file of the skill {whose}; lists and search name documents only"
    fix = "nothing; skills show ID PATH reads it, and so does directory::skills::file"
    yield _rule("file", path, reason, fix)


def _of_levels(view: CatalogueView, written: str) -> Iterator[Row]:
    """Yield the rule of the setting ``visibility`` that applies to a document."""
    name = bare_id(resolve.normalise(written.removeprefix(_FOLDER)))
    rule = view.levels.rule_for(name)
    if rule is not None and rule[1] != FULL:
        pattern, level = rule
        effects = {
            NAME: "lists and the index show no description",
            MANUAL: "it is read when asked for by name, and in no list, index or search",
            OFF: "it is not served",
        }
        reason = f"visibility in the configuration says {level} for {quoted(pattern)}: {effects[level]}"
        yield _rule("visibility", name, reason, f"nothing, or run iii-directory skills enable {name}")


def _of_served(view: CatalogueView, skill: Skill) -> Iterator[Row]:
    """Yield the rules by which lists, the index and hosts leave something out of a served document."""
    snapshot = view.snapshot
    key, part = snapshot.display_id(skill), skill_of(snapshot, skill)
    described = view.read_document(skill).front_matter.get("description")
    if isinstance(described, str) and len(described.strip()) > MAX_DESCRIPTION_CHARS:
        reason = f"lists show {MAX_DESCRIPTION_CHARS} of the {len(described)} characters of its description"
        yield _rule("cut", key, reason, "shorten the description")
    if part is not None and part is not skill:
        whole = quoted(snapshot.display_id(part))
        yield _rule("index", key, f"it is part of the skill {whole}, so the index names that one alone")
    elif (view.levels.rule_for(bare_id(skill.id)) or ("", FULL))[1] != FULL:
        # The rule of the setting says what the index has of it.
        pass
    elif plain_line(skill.description) not in workers_index(view.listed).body:
        reason = f"the index cuts every description so that all skills fit {INDEX_BUDGET_BYTES} bytes"
        yield _rule("cut", key, reason, "nothing; say first what the skill is for")
    if skill.disable_model_invocation:
        reason = "its author lets people call it, not models (disable-model-invocation)"
        yield _rule("for_people", key, reason)
