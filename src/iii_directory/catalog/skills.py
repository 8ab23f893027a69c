"""Skills as the world has them: folders with an overview and everything below it. Pure.

A skill goes by its overview: the document ``<folder>/index`` (written as SKILL.md, SKILLS.md or index.md), a
single ``<x>.md`` at the root of the folder, or a registered document with no registered one above it. A skill
inside another is a skill of its own, and its files are the outer one's too.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from iii_directory.catalog.snapshot import outranked_by
from iii_directory.documents.ids import INDEX_SUFFIX, OVERVIEW, bare_id, namespace_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Skill


def is_skill(snapshot: Snapshot, document: Skill) -> bool:
    """Whether a document stands for a skill."""
    if document.path is None:
        return _registered_above(snapshot, document) is None
    return "/" not in document.path or document.id.endswith(INDEX_SUFFIX)


def folder_of(skill: Skill) -> str | None:
    """The folder of a skill; None of one that is a single document."""
    if skill.path is None or not skill.id.endswith(INDEX_SUFFIX):
        return None
    return skill.path.rpartition("/")[0]


def skill_at(snapshot: Snapshot, path: str) -> Skill | None:
    """The innermost skill that a file belongs to, if any."""
    winners = snapshot.skill_claims.winners
    folder = path.rpartition("/")[0]
    while folder:
        overview = winners.get(folder + INDEX_SUFFIX)
        if overview is not None and overview.path is not None:
            return overview
        folder = folder.rpartition("/")[0]
    return None


def skill_of(snapshot: Snapshot, document: Skill) -> Skill | None:
    """The skill that a document is part of: itself, if it stands for one."""
    if document.path is None:
        return _registered_above(snapshot, document) or document
    return document if "/" not in document.path else skill_at(snapshot, document.path)


def every_skill(snapshot: Snapshot) -> list[tuple[str, Skill]]:
    """Every skill by the id callers see, in that order."""
    return snapshot.once(_every_skill)


def topmost_skills(snapshot: Snapshot) -> list[tuple[str, Skill]]:
    """Those with no skill above them."""
    return snapshot.once(_topmost_skills)


def paths_of_skill(snapshot: Snapshot, skill: Skill) -> list[str]:
    """The path of every file of a skill below the skills folder, in order; none of a registered one."""
    if skill.path is None:
        return []
    folder = folder_of(skill)
    if folder is None:
        return [skill.path]
    paths = snapshot.paths_of(namespace_of(folder))
    return paths[bisect_left(paths, f"{folder}/") : bisect_left(paths, f"{folder}0")]


def documents_of_skill(snapshot: Snapshot, skill: Skill) -> list[Skill]:
    """The documents of a skill, its overview first."""
    if skill.path is not None and folder_of(skill) is None:
        return [skill]
    author = skill.provenance.author
    below = (document for document in snapshot.skills_below(bare_id(skill.id)) if document is not skill)
    return [skill, *(document for document in below if document.provenance.author == author)]


def file_count(snapshot: Snapshot, skill: Skill) -> int:
    """How many files a skill has; a registered one has its documents."""
    found = documents_of_skill if skill.path is None else paths_of_skill
    return len(found(snapshot, skill))


class SkillFile(NamedTuple):
    """One file of a skill."""

    path: str
    """Below the skill's folder."""
    size: int
    executable: bool
    document: Skill | None
    """The document it is, if it is one that is served."""
    place: str | None
    """Its path below the skills folder; None of a document that is registered."""


def files_of(snapshot: Snapshot, skill: Skill) -> list[SkillFile]:
    """Every file of a skill, by its path; of a registered one its documents, as files of markdown."""
    if skill.path is None:
        documents = documents_of_skill(snapshot, skill)
        made = [
            SkillFile(_registered_path(skill, one), one.bytes, executable=False, document=one, place=None)
            for one in documents
        ]
        return sorted(made)
    return [_file(snapshot, skill, path) for path in paths_of_skill(snapshot, skill)]


def file_of(snapshot: Snapshot, skill: Skill, path: str) -> SkillFile | None:
    """The file of a skill at just this path below its folder; no others are looked at."""
    folder = folder_of(skill)
    place = path if folder is None else f"{folder}/{path}"
    if skill.path is None or (folder is None and place != skill.path) or snapshot.file(place) is None:
        return None
    return _file(snapshot, skill, place)


def _file(snapshot: Snapshot, skill: Skill, place: str) -> SkillFile:
    entry = snapshot.files[place]
    document = entry.skill
    if document is not None and snapshot.skill_claims.winners.get(document.id) is not document:
        document = None
    return SkillFile(relative_path(skill, place), entry.size or 0, entry.executable, document, place)


def relative_path(skill: Skill, path: str) -> str:
    """The path of a file as its skill has it."""
    folder = folder_of(skill)
    return path if folder is None else path.removeprefix(f"{folder}/")


def _registered_path(skill: Skill, document: Skill) -> str:
    if document is skill:
        return OVERVIEW
    return f"{document.id.removeprefix(bare_id(skill.id)).removeprefix('/')}.md"


def _every_skill(snapshot: Snapshot) -> list[tuple[str, Skill]]:
    shown = zip(snapshot.skills.keys, snapshot.skills.items, strict=True)
    return [(key, document) for key, document in shown if is_skill(snapshot, document)]


def _topmost_skills(snapshot: Snapshot) -> list[tuple[str, Skill]]:
    # What one author has above a skill does not hide the skill of another.
    known = {(skill.provenance.author, bare_id(skill.id)) for _, skill in every_skill(snapshot)}
    ids = {(skill.provenance.author, skill.id) for _, skill in every_skill(snapshot)}
    return [
        (key, skill)
        for key, skill in every_skill(snapshot)
        if known.isdisjoint((skill.provenance.author, above) for above in _above(bare_id(skill.id)))
        # Of a document at the root and a folder of the same name, the document comes first.
        and (skill.id == bare_id(skill.id) or (skill.provenance.author, bare_id(skill.id)) not in ids)
    ]


def _registered_above(snapshot: Snapshot, document: Skill) -> Skill | None:
    """The document furthest up above a registered one that the same worker registered, if there is one."""
    winners, author = snapshot.skill_claims.winners, document.provenance.author
    for above in reversed(list(_above(document.id))):
        for key in (above, above + INDEX_SUFFIX):
            found = winners.get(key)
            if found is None or found.provenance.author != author or found.id == document.id:
                continue
            if outranked_by(winners, found) is None:
                return found
    return None


def _above(skill_id: str) -> Iterator[str]:
    """Every id above one, the nearest first."""
    end = skill_id.rfind("/")
    while end > 0:
        yield skill_id[:end]
        end = skill_id.rfind("/", 0, end)
