"""Why a document is served as it is, or is not: every rule that hid, cut, shadowed or skipped it. Pure.

Most rules leave a finding; this gathers those about one document, and adds what is no finding because it is
meant so: a file that is no document, a description that a list cuts, a skill that only people call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.catalog.composed import workers_index
from iii_directory.catalog.diagnostics import origin_of, provenance_of, row_of
from iii_directory.catalog.resolve import (
    Found,
    FoundFile,
    Undocumented,
    normalise,
    resolve_skill,
    without_scheme,
)
from iii_directory.catalog.skills import skill_at, skill_of
from iii_directory.catalog.visibility import FULL, MANUAL, NAME, OFF
from iii_directory.documents.ids import INDEX_SUFFIX, bare_id, namespace_of, path_to_id
from iii_directory.documents.markdown import plain_line
from iii_directory.documents.payload_fields import text
from iii_directory.errors import DirectoryError
from iii_directory.limits import INDEX_BUDGET_BYTES, MAX_DESCRIPTION_CHARS
from iii_directory.text import escaped, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from iii_directory.catalog.look import Look
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Finding, ParsedFile, Prompt, Skill
    from iii_directory.documents.provenance import Provenance

    Row = dict[str, Any]

_FOLDER: Final = "skills/"
_NOTHING: Final = "nothing, that is meant"


class _Answer(NamedTuple):
    """What a reader is given for what was asked."""

    summary: str
    id: str | None = None
    document: Skill | None = None
    stands_in: bool = False
    """Whether it is another thing, given for want of what was asked for."""
    provenance: Provenance | None = None


def explanation(look: Look, payload: Mapping[str, Any], beside: Iterable[Finding] = ()) -> Row:
    """The answer of ``directory::skills::explain``; ``beside`` are findings that the look does not hold."""
    asked = text(payload, "id")
    written = without_scheme(asked)
    places = dict(_places(look.snapshot, written))
    about = {*places, *_names(written), *(namespace_of(place) for place in places if "/" in place)}
    findings = (finding for finding in (*look.findings(), *beside) if finding.subject in about)
    rules = [row_of(finding, provenance_of(look.snapshot, finding)) for finding in findings]
    rules += [rule for place, entry in places.items() for rule in _of_file(look.snapshot, place, entry)]
    try:
        answer = _answer(look, asked, written)
    except DirectoryError as error:
        answer = _Answer(f"{quoted(written)} is there and is not served" if rules else str(error))
    if answer.document is not None:
        rules += _of_served(look, answer.document)
    rules += _of_levels(look, written)
    return {
        "asked": asked,
        "served": answer.id is not None and not answer.stands_in,
        "id": answer.id,
        "summary": answer.summary,
        "provenance": None if answer.provenance is None else answer.provenance.as_json(),
        "rules": rules,
    }


# What was meant, and what a reader is given


def _names(written: str) -> set[str]:
    """What findings may call it: the id, and every folder on the way."""
    trimmed = written.removeprefix(_FOLDER)
    names = {written, trimmed, normalise(trimmed)}
    parts = trimmed.split("/")
    return names | {"/".join(parts[:end]) for end in range(1, len(parts))}


def _places(snapshot: Snapshot, written: str) -> Iterator[tuple[str, ParsedFile]]:
    """Every file and every record that was or could have been what somebody wrote, by the words for it."""
    trimmed = written.removeprefix(_FOLDER)
    wanted = bare_id(normalise(trimmed))
    ids = {wanted, wanted + INDEX_SUFFIX}
    folded = {name.casefold() for name in (written, trimmed, f"{trimmed}.md")}
    for path, entry in snapshot.files.items():
        if path.casefold() in folded or _claims(entry, ids, trimmed) or _would_claim(path, entry, ids):
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


def _would_claim(path: str, entry: ParsedFile, ids: set[str]) -> bool:
    """Whether a file that is no document would have been this one."""
    return entry.skill is None and entry.prompt is None and path_to_id(path).key in ids


def _answer(look: Look, asked: str, written: str) -> _Answer:
    snapshot, prompt = look.snapshot, look.snapshot.prompt(written)
    try:
        target = resolve_skill(snapshot, asked, look.installed or frozenset())
    except DirectoryError:
        if prompt is None:
            raise
        return _of_prompt(prompt)
    if isinstance(target, Undocumented):
        return _Answer(f"the worker {quoted(target.worker)} is installed and has no documents", target.worker)
    if isinstance(target, FoundFile):
        part = skill_at(snapshot, target.path)
        whose = "" if part is None else f" of the skill {quoted(snapshot.display_id(part))}"
        return _Answer(f"{quoted(target.path)} is a file{whose} and no document", target.path)
    if prompt is not None and target.note is not None:
        return _of_prompt(prompt)
    return _of_found(snapshot, asked, target)


def _of_prompt(prompt: Prompt) -> _Answer:
    summary = f"{quoted(prompt.name)} is a prompt, served from {origin_of(prompt)}"
    return _Answer(summary, prompt.name, provenance=prompt.provenance)


def _of_found(snapshot: Snapshot, asked: str, found: Found) -> _Answer:
    key = snapshot.display_id(found.skill)
    where = f"served from {origin_of(found.skill)}"
    if found.note is not None:
        summary = f"no document is served as {quoted(asked)}; {quoted(key)} is given instead, {where}"
        return _Answer(summary, key, stands_in=True, provenance=found.skill.provenance)
    return _Answer(f"{quoted(key)} is {where}", key, found.skill, provenance=found.skill.provenance)


# Rules that leave no finding


def _rule(kind: str, subject: str, reason: str, fix: str = _NOTHING) -> Row:
    return {"kind": kind, "subject": escaped(subject), "reason": escaped(reason), "fix": fix}


def _of_file(snapshot: Snapshot, path: str, entry: ParsedFile) -> Iterator[Row]:
    """Of a file that is no document: whose it is."""
    if not entry.is_plain:
        return
    part = skill_at(snapshot, path)
    if part is None:
        # Of markdown there is a finding.
        if not path.endswith(".md"):
            reason = "it is no document and lies in no folder with a SKILL.md"
            yield _rule("file", path, reason, "give the folder above a SKILL.md")
        return
    whose = quoted(snapshot.display_id(part))
    reason = f"it is a file of the skill {whose}; lists and search name documents only"
    yield _rule("file", path, reason, "nothing; directory::skills::file reads it")


def _of_levels(look: Look, written: str) -> Iterator[Row]:
    """Say what the operator's table of visibility makes of a document."""
    name = bare_id(normalise(written.removeprefix(_FOLDER)))
    rule = look.levels.rule_for(name)
    if rule is not None and rule[1] != FULL:
        pattern, level = rule
        effects = {
            NAME: "lists and the index show no description",
            MANUAL: "it is read when asked for by name, and in no list, index or search",
            OFF: "it is not served",
        }
        reason = f"visibility in the configuration says {level} for {quoted(pattern)}: {effects[level]}"
        yield _rule("visibility", name, reason, f"nothing, or run iii-directory skills enable {name}")


def _of_served(look: Look, skill: Skill) -> Iterator[Row]:
    """What lists, the index and hosts leave out of a document that is served."""
    snapshot = look.snapshot
    key, part = snapshot.display_id(skill), skill_of(snapshot, skill)
    described = look.read_document(skill).front_matter.get("description")
    if isinstance(described, str) and len(described.strip()) > MAX_DESCRIPTION_CHARS:
        reason = f"lists show {MAX_DESCRIPTION_CHARS} of the {len(described)} characters of its description"
        yield _rule("cut", key, reason, "shorten the description")
    if part is not None and part is not skill:
        whole = quoted(snapshot.display_id(part))
        yield _rule("index", key, f"it is part of the skill {whole}, so the index names that one alone")
    elif plain_line(skill.description) not in workers_index(snapshot).body:
        reason = f"the index cuts every description so that all skills fit {INDEX_BUDGET_BYTES} bytes"
        yield _rule("cut", key, reason, "nothing; say first what the skill is for")
    if skill.disable_model_invocation:
        yield _rule(
            "for_people", key, "its author lets people call it, not models (disable-model-invocation)"
        )
