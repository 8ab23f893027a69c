"""Find the skills of a snapshot: folders with an overview, and every file below it. Pure.

A skill is known by its overview: the document ``<folder>/index`` (written as SKILL.md, SKILLS.md or
index.md), a single ``<x>.md`` at the root of the folder, or a registered document with no registered one
above it. A skill inside another is a skill of its own, and its files are also files of the outer one.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from iii_directory.catalog.snapshot import once_per_snapshot, outranked_by
from iii_directory.documents.ids import INDEX_SUFFIX, OVERVIEW, bare_id, folders_above, namespace_of

if TYPE_CHECKING:
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Skill


class SkillFile(NamedTuple):
    """One file of a skill."""

    path: str
    """Below the skill's folder."""
    size: int
    executable: bool
    document: Skill | None
    """The document in this file, if it is one that is served."""
    place: str | None
    """The path below the skills folder; None for a registered document."""


def is_skill(snapshot: Snapshot, document: Skill) -> bool:
    """Return whether a document stands for a skill."""
    if document.path is None:
        return _registered_above(snapshot, document) is None
    return "/" not in document.path or document.id.endswith(INDEX_SUFFIX)


def folder_of(skill: Skill) -> str | None:
    """Return the folder of a skill, or None for a skill that is a single document."""
    if skill.path is None or not skill.id.endswith(INDEX_SUFFIX):
        return None
    return skill.path.rpartition("/")[0]


def skill_at(snapshot: Snapshot, path: str) -> Skill | None:
    """Return the innermost skill that a file belongs to, if any."""
    winners = snapshot.skill_claims.winners
    folder = path.rpartition("/")[0]
    while folder:
        overview = winners.get(folder + INDEX_SUFFIX)
        if overview is not None and overview.path is not None:
            return overview
        folder = folder.rpartition("/")[0]
    return None


def skill_of(snapshot: Snapshot, document: Skill) -> Skill | None:
    """Return the skill that a document is part of: itself, if it stands for one."""
    if document.path is None:
        return _registered_above(snapshot, document) or document
    return document if "/" not in document.path else skill_at(snapshot, document.path)


@once_per_snapshot
def every_skill(snapshot: Snapshot) -> list[tuple[str, Skill]]:
    """Return every skill with the id that callers see, sorted by it."""
    shown = zip(snapshot.skills.keys, snapshot.skills.items, strict=True)
    return [(key, document) for key, document in shown if is_skill(snapshot, document)]


@once_per_snapshot
def topmost_skills(snapshot: Snapshot) -> list[tuple[str, Skill]]:
    """Return the skills that have no skill above them."""
    # A document that one author has above a skill does not hide the skill of another author.
    known = {(skill.provenance.author, bare_id(skill.id)) for _, skill in every_skill(snapshot)}
    ids = {(skill.provenance.author, skill.id) for _, skill in every_skill(snapshot)}
    return [
        (key, skill)
        for key, skill in every_skill(snapshot)
        if known.isdisjoint((skill.provenance.author, above) for above in folders_above(bare_id(skill.id)))
        # Of a document at the root and a folder of the same name, the document comes first.
        and (skill.id == bare_id(skill.id) or (skill.provenance.author, bare_id(skill.id)) not in ids)
    ]


def paths_of_skill(snapshot: Snapshot, skill: Skill) -> list[str]:
    """Return the sorted paths of a skill's files below the skills folder; empty for a registered skill."""
    if skill.path is None:
        return []
    folder = folder_of(skill)
    if folder is None:
        return [skill.path]
    paths = snapshot.paths_of(namespace_of(folder))
    # "0" is the character after "/".
    return paths[bisect_left(paths, f"{folder}/") : bisect_left(paths, f"{folder}0")]


def documents_of_skill(snapshot: Snapshot, skill: Skill) -> list[Skill]:
    """Return the documents of a skill, its overview first."""
    if skill.path is not None and folder_of(skill) is None:
        return [skill]
    author = skill.provenance.author
    below = (document for document in snapshot.skills_below(bare_id(skill.id)) if document is not skill)
    return [skill, *(document for document in below if document.provenance.author == author)]


def file_count(snapshot: Snapshot, skill: Skill) -> int:
    """Count the files of a skill; the files of a registered skill are its documents."""
    found = documents_of_skill if skill.path is None else paths_of_skill
    return len(found(snapshot, skill))


def files_of(snapshot: Snapshot, skill: Skill) -> list[SkillFile]:
    """Return every file of a skill, sorted; the documents of a registered skill count as Markdown files."""
    if skill.path is not None:
        return [_file(snapshot, skill, path) for path in paths_of_skill(snapshot, skill)]
    start = bare_id(skill.id)
    return sorted(
        SkillFile(
            OVERVIEW if one is skill else f"{one.id.removeprefix(start).removeprefix('/')}.md",
            one.bytes,
            executable=False,
            document=one,
            place=None,
        )
        for one in documents_of_skill(snapshot, skill)
    )


def file_of(snapshot: Snapshot, skill: Skill, path: str) -> SkillFile | None:
    """Return the file at exactly this path below the folder of a skill, without visiting other files."""
    folder = folder_of(skill)
    place = path if folder is None else f"{folder}/{path}"
    if skill.path is None or (folder is None and place != skill.path) or snapshot.file(place) is None:
        return None
    return _file(snapshot, skill, place)


def relative_path(skill: Skill, path: str) -> str:
    """Return the path of a file below the folder of its skill."""
    folder = folder_of(skill)
    return path if folder is None else path.removeprefix(f"{folder}/")


def _file(snapshot: Snapshot, skill: Skill, place: str) -> SkillFile:
    entry = snapshot.files[place]
    document = entry.skill
    if document is not None and snapshot.skill_claims.winners.get(document.id) is not document:
        document = None
    return SkillFile(relative_path(skill, place), entry.size or 0, entry.executable, document, place)


def _registered_above(snapshot: Snapshot, document: Skill) -> Skill | None:
    """Return the topmost document above a registered one that the same worker registered, if any."""
    winners, author = snapshot.skill_claims.winners, document.provenance.author
    for above in folders_above(document.id):
        for key in (above, above + INDEX_SUFFIX):
            found = winners.get(key)
            if found is None or found.provenance.author != author or found.id == document.id:
                continue
            if outranked_by(winners, found) is None:
                return found
    return None
