"""Skills as the directory serves them: what is objected to, what each costs and what each can do.

These functions read every text of every skill: call them in a thread, one at a time, not on an event loop.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from iii_directory.authoring.check import CHECKED, SkillFiles, check
from iii_directory.catalog.composed import workers_index
from iii_directory.catalog.file_replies import skill_meant
from iii_directory.catalog.rows import resource_rows
from iii_directory.catalog.skills import every_skill, files_of, folder_of
from iii_directory.documents.facts import FileContent, facts_of
from iii_directory.documents.file_pages import text_of
from iii_directory.documents.markdown import plain_line
from iii_directory.documents.model import Finding
from iii_directory.errors import DirectoryError
from iii_directory.limits import CHARS_PER_TOKEN, MAX_BODY_BYTES, MAX_BUNDLE_FILES, MAX_FACT_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from iii_directory.catalog.look import Look
    from iii_directory.catalog.skills import SkillFile
    from iii_directory.documents.model import Skill

    Row = dict[str, Any]

ESTIMATE: Final = f"characters / {CHARS_PER_TOKEN}"
HOSTS: Final[Mapping[str, int]] = {
    # Where it does not know how much a model reads.
    "codex": 8_000,
    # 2 % of a context of 272,000 tokens, counted as characters.
    "codex-2-percent": 5_440,
    # 1 % of a context of 200,000 tokens, four characters each; and what it was before.
    "claude-code": 8_000,
    "claude-code-2-percent": 16_000,
}
"""How many characters a host keeps for the list of skills. What does not fit is cut, from the end."""


def objections(look: Look) -> list[Finding]:
    """What the Agent Skills standard and hosts object to in the skills that are folders, as findings."""
    return [
        Finding(
            CHECKED,
            "/".join(filter(None, (folder, objection.path))),
            objection.words,
            objection.fix,
            urgent=False,
            forbidden=objection.forbidden,
        )
        for folder, skill in _folders(look)
        for objection in check(skill)
    ]


def budget(look: Look, tools: Sequence[Row]) -> Row:
    """``directory::skills::budget``: what everything costs a reader, beside what hosts allow."""
    known = every_skill(look.listed)
    lines = {key: f"- {key}: {plain_line(skill.description)}\n" for key, skill in known}
    listed = {key: lines[key] for key, skill in known if not skill.disable_model_invocation}
    by_cost = sorted(known, key=lambda one: (-len(lines[one[0]]), one[0]))
    return {
        "estimate": ESTIMATE,
        "index": _size(len(workers_index(look.listed).body)),
        "tools": _size(len(_json({"tools": tools}))),
        "resources": _size(len(_json({"resources": resource_rows(look.listed)}))),
        "hosts": [_host(name, room, listed) for name, room in HOSTS.items()],
        "skills": [
            {"id": key, "line": _size(len(lines[key])), **_sizes(look, skill)} for key, skill in by_cost
        ],
    }


def _folders(look: Look) -> Iterator[tuple[str, SkillFiles]]:
    for _, skill in every_skill(look.snapshot):
        folder = folder_of(skill)
        if folder is not None:
            yield folder, SkillFiles(folder.rpartition("/")[2], contents_of(look, skill))


def facts(look: Look, payload: Mapping[str, Any], functions: Collection[str] | None = None) -> Row:
    """``directory::skills::facts``; ``functions`` are those of the engine, None where none was asked."""
    skill = skill_meant(look, payload)
    return {
        "id": look.snapshot.display_id(skill),
        **facts_of(contents_of(look, skill)).as_dict(functions),
    }


def contents_of(look: Look, skill: Skill) -> dict[str, FileContent]:
    """Read the files of a skill that is served; those of a registered one are its documents."""
    return {file.path: _content(look, file) for file in files_of(look.snapshot, skill)}


def _content(look: Look, file: SkillFile) -> FileContent:
    try:
        if file.place is None:
            document = file.document
            return FileContent(b"" if document is None else look.read_document(document).raw.encode())
        part = look.files.read(file.place, 0, MAX_FACT_FILE_BYTES)
    except DirectoryError:
        return FileContent(b"", is_whole=False)
    return FileContent(part.raw, file.executable, len(part.raw) == part.size)


def _host(name: str, room: int, lines: Mapping[str, str]) -> Row:
    """How a host that takes so many characters of the list fares, line by line in the order of the ids."""
    used = 0
    cut: list[str] = []
    for key, line in lines.items():
        used += len(line)
        if used > room:
            cut.append(key)
    return {"name": name, "limit_chars": room, "used_chars": used, "fits": used <= room, "cut": cut}


def _sizes(look: Look, skill: Skill) -> Row:
    """What the overview of a skill has, and all its texts; what is no text is never read whole.

    Of a skill that is too large to be served whole, bytes stand for the characters of the others.
    """
    overview = whole = 0
    files = files_of(look.snapshot, skill)
    are_read = len(files) <= MAX_BUNDLE_FILES
    for file in files:
        if are_read or file.document is skill:
            chars = len(_text(look, file) or "")
        else:
            chars = file.size if file.size <= MAX_BODY_BYTES else 0
        whole += chars
        if file.document is skill:
            overview = chars
    return {"overview": _size(overview), "whole": _size(whole)}


def _text(look: Look, file: SkillFile) -> str | None:
    """A text that can be read in one piece; None of any other file, and of one that has just gone."""
    try:
        if file.place is None:
            return None if file.document is None else look.read_document(file.document).raw
        if file.size > MAX_BODY_BYTES:
            return None
        return text_of(look.files.read(file.place, 0, MAX_BODY_BYTES).raw)
    except DirectoryError:
        return None


def _size(chars: int) -> Row:
    return {"chars": chars, "tokens": -(-chars // CHARS_PER_TOKEN)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
