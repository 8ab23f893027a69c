"""Check the served skills, and report what each costs a reader and what it can do.

These functions read every text of every skill: call them in a thread, one at a time, not on an event loop.
"""

from __future__ import annotations

import json
import posixpath
import re
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

from iii_directory import limits
from iii_directory.catalog.file_replies import skill_meant
from iii_directory.catalog.resolve import Found, not_found, resolve_skill
from iii_directory.catalog.skill_folders import every_skill, files_of, folder_of
from iii_directory.catalog.skill_indexes import workers_index
from iii_directory.catalog.skill_manifests import publication
from iii_directory.catalog.skill_replies import resource_rows
from iii_directory.documents.facts import FileContent, facts_of
from iii_directory.documents.file_pages import text_of
from iii_directory.documents.model import Finding
from iii_directory.documents.parse import links_of, plain_line
from iii_directory.documents.payload_fields import text
from iii_directory.documents.skill_check import CHECKED, SkillFiles, check
from iii_directory.documents.uris import SCHEME, SKILL_SCHEME
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from iii_directory.catalog.skill_folders import SkillFile
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.documents.model import Skill

    Row = dict[str, Any]
    Targets = tuple[object, frozenset[str]]
    """What changes with a document, and where its links lead."""

# Addresses are also written without the brackets of a link.
_ADDRESS: Final = re.compile(r"\biii://[\w./-]+")
ESTIMATE: Final = f"characters / {limits.CHARS_PER_TOKEN}"
HOSTS: Final[Mapping[str, int]] = {
    # Used where the host does not know the context size of its model.
    "codex": 8_000,
    # 2 % of a context of 272,000 tokens, counted as characters.
    "codex-2-percent": 5_440,
    # 1 % of a context of 200,000 tokens, four characters each; and what it was before.
    "claude-code": 8_000,
    "claude-code-2-percent": 16_000,
}
"""The characters that each host reserves for its list of skills; it cuts the end of a longer list."""


def objections(view: CatalogueView) -> list[Finding]:
    """Check every skill that is a folder, and their names, and return the objections as findings."""
    published = publication(view.snapshot)
    first: dict[str, str] = {}
    repeated: list[Finding] = []
    for path in published.paths:
        name = path.rpartition("/")[2]
        if first.setdefault(name, path) != path:
            reason = f"{first[name]} has the same name {name!r}; hosts show both, installers only that one"
            subject = view.snapshot.display_id(published.by_path[path].skill)
            fix = "give one of the two another name"
            repeated.append(Finding(CHECKED, subject, reason, fix, urgent=False))
    return repeated + [
        Finding(
            CHECKED,
            "/".join(filter(None, (folder, objection.path))),
            objection.words,
            objection.fix,
            urgent=False,
            forbidden=objection.forbidden,
        )
        for _, skill in every_skill(view.snapshot)
        if (folder := folder_of(skill)) is not None
        for objection in check(SkillFiles(folder.rpartition("/")[2], contents_of(view, skill)))
    ]


def budget(view: CatalogueView, tools: Sequence[Row]) -> Row:
    """Answer ``directory::skills::budget``: the sizes of indexes and skills, beside what hosts allow."""
    known = every_skill(view.listed)
    lines = {key: f"- {key}: {plain_line(skill.description)}\n" for key, skill in known}
    listed = {key: lines[key] for key, skill in known if not skill.disable_model_invocation}
    ends = list(accumulate(map(len, listed.values())))
    used = ends[-1] if ends else 0
    by_cost = sorted(known, key=lambda one: (-len(lines[one[0]]), one[0]))
    return {
        "estimate": ESTIMATE,
        "index": _size(len(workers_index(view.listed).body)),
        "tools": _size(len(_json({"tools": tools}))),
        "resources": _size(len(_json({"resources": resource_rows(view.listed)}))),
        "hosts": [
            {
                "name": name,
                "limit_chars": room,
                "used_chars": used,
                "fits": used <= room,
                "cut": [key for key, end in zip(listed, ends, strict=True) if end > room],
            }
            for name, room in HOSTS.items()
        ],
        "skills": [{"id": key, "line": _size(len(lines[key])), **_sizes(view, one)} for key, one in by_cost],
    }


def facts(view: CatalogueView, payload: Mapping[str, Any], functions: Collection[str] | None = None) -> Row:
    """Answer ``directory::skills::facts``; ``functions`` are the engine's, None without an engine."""
    skill = skill_meant(view, payload)
    shown = view.snapshot.display_id(skill)
    known = view.lockfile.namespaces.get(shown) if skill.path is not None else None
    baseline = None if known is None else known.facts_baseline
    reply = facts_of(contents_of(view, skill)).as_dict(functions, {} if baseline is None else baseline.facts)
    if baseline is not None:
        reply["accepted"] = {"at": baseline.accepted_at, "reason": baseline.reason}
    return {"id": shown, **reply}


def linking(view: CatalogueView, payload: Mapping[str, Any], kept: dict[str, Targets]) -> Row:
    """Answer ``directory::skills::links``; ``kept`` is what an earlier call read, by the ids of documents."""
    found = resolve_skill(view.snapshot, text(payload, "id"), view.installed or frozenset())
    if not isinstance(found, Found) or found.note is not None:
        raise not_found(view.snapshot, text(payload, "id"))
    key = view.snapshot.display_id(found.skill)
    names = {key, found.skill.id, found.skill.path}
    listed = list(zip(view.listed.skills.keys, view.listed.skills.items, strict=True))
    read = {one.id: _targets_of(view, one, kept.get(one.id)) for _, one in listed}
    kept.clear()
    kept.update(read)
    rows = [
        {"id": other, "title": one.title, "provenance": one.provenance.as_json()}
        for other, one in listed
        if one is not found.skill and not names.isdisjoint(read[one.id][1])
    ]
    left_out = len(rows) - limits.MAX_LINKING_DOCUMENTS
    more = {"left_out": left_out} if left_out > 0 else {}
    return {"id": key, "documents": rows[: limits.MAX_LINKING_DOCUMENTS], **more}


def _targets_of(view: CatalogueView, skill: Skill, kept: Targets | None) -> Targets:
    """Return where the links of a document lead; a document that did not change is not read again."""
    state = (skill.modified_at, skill.bytes, skill.path)
    if kept is not None and kept[0] == state:
        return kept
    try:
        body = view.read_skill(skill)
    except DirectoryError:
        return state, frozenset()
    found = {target.partition("#")[0] for target in links_of(body)} | set(_ADDRESS.findall(body))
    base = posixpath.dirname(skill.path or skill.id)
    return state, frozenset(_document_named(one, base) for one in islice(found, limits.MAX_LINKS_OF_DOCUMENT))


def _document_named(target: str, base: str) -> str:
    """Return the id or the path below the skills folder that a link in the folder ``base`` leads to."""
    for scheme in (SCHEME, SKILL_SCHEME):
        if target.startswith(scheme):
            return target.removeprefix(scheme).rstrip(".,;:!?")
    return posixpath.normpath(posixpath.join(base, target))


def contents_of(view: CatalogueView, skill: Skill) -> dict[str, FileContent]:
    """Read every file of a served skill; the files of a registered skill are its documents."""
    return {file.path: _content(view, file) for file in files_of(view.snapshot, skill)}


def _content(view: CatalogueView, file: SkillFile) -> FileContent:
    try:
        if file.place is None:
            document = file.document
            return FileContent(b"" if document is None else view.read_document(document).raw.encode())
        part = view.files.read(file.place, 0, limits.MAX_FACT_FILE_BYTES)
    except DirectoryError:
        return FileContent(b"", is_whole=False)
    return FileContent(part.raw, file.executable, len(part.raw) == part.size)


def _sizes(view: CatalogueView, skill: Skill) -> Row:
    """Count the characters of a skill's overview and of all its texts.

    In a skill that is too large to be served whole, only the overview is read; bytes of the other files
    stand for their characters.
    """
    overview = whole = 0
    files = files_of(view.snapshot, skill)
    are_read = len(files) <= limits.MAX_BUNDLE_FILES
    for file in files:
        if are_read or file.document is skill:
            chars = len(_text(view, file) or "")
        else:
            chars = file.size if file.size <= limits.MAX_BODY_BYTES else 0
        whole += chars
        if file.document is skill:
            overview = chars
    return {"overview": _size(overview), "whole": _size(whole)}


def _text(view: CatalogueView, file: SkillFile) -> str | None:
    """Read a file as text; return None for a binary, too large or vanished file."""
    try:
        if file.place is None:
            return None if file.document is None else view.read_document(file.document).raw
        if file.size > limits.MAX_BODY_BYTES:
            return None
        return text_of(view.files.read(file.place, 0, limits.MAX_BODY_BYTES).raw)
    except DirectoryError:
        return None


def _size(chars: int) -> Row:
    return {"chars": chars, "tokens": -(-chars // limits.CHARS_PER_TOKEN)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
