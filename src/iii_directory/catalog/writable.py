"""Which documents callers may write, and where a new one belongs. Pure.

Only the skills folder is written to. What would hide others' documents, or be hidden itself, is not begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.catalog.resolve import not_found
from iii_directory.documents.ids import (
    RESERVED_IDS,
    RESERVED_NAMESPACES,
    bare_id,
    check_skill_id,
    namespace_of,
    new_namespace_problem,
)
from iii_directory.documents.parse import written_document
from iii_directory.errors import (
    FUNCTION_ID_AS_SKILL,
    QUOTA,
    READ_ONLY_SKILL,
    RESERVED_PLACE,
    SKILL_EXISTS,
    DirectoryError,
)
from iii_directory.lockfile.names import vet_path
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.catalog.look import Look

_OVERVIEW: Final = "SKILL.md"


class Place(NamedTuple):
    """A document of the skills folder."""

    id: str
    """As every list shows it."""
    namespace: str
    path: str
    """Below the namespace's folder."""

    @property
    def whole_path(self) -> str:
        """Below the skills folder."""
        return f"{self.namespace}/{self.path}"


def place_of_new(look: Look, skill_id: str, content: str) -> tuple[Place, bytes]:
    """Where a skill of this id is created, and the bytes of its file; else D111 to D115."""
    _check_id(skill_id)
    bare, namespace = bare_id(skill_id), namespace_of(skill_id)
    _check_place(look, bare, namespace)
    if look.snapshot.find(bare) is not None:
        raise DirectoryError(SKILL_EXISTS, f"there is a skill {quoted(bare)} already")
    path = f"{bare}.md" if bare == skill_id and bare != namespace else f"{bare}/{_OVERVIEW}"
    place = Place(bare, namespace, path.removeprefix(f"{namespace}/"))
    try:
        vet_path(place.path)
        vet_path(namespace)
    except DirectoryError as error:
        raise DirectoryError(RESERVED_PLACE, error.problem) from None
    return place, written_document(path, content)


def place_of_known(look: Look, skill_id: str) -> Place:
    """The file of a skill that may be written; D110 where there is none, D116 where it is not ours."""
    _check_id(skill_id)
    skill = look.snapshot.find(skill_id)
    if skill is None:
        raise not_found(look.snapshot, skill_id)
    shown = look.snapshot.display_id(skill)
    if skill.path is None:
        raise _read_only(shown, "it is registered by a worker, which alone can change it")
    layer = look.files.layer_of(skill.path)
    if layer is not None:
        raise _read_only(shown, f"it comes from {layer}, which is only read")
    namespace, inside, path = skill.path.partition("/")
    if not inside:
        raise _read_only(
            shown, f"its file lies in no folder; move it to {shown}/{_OVERVIEW} to have it written"
        )
    return Place(shown, namespace, path)


def written_sizes(look: Look) -> dict[str, int]:
    """The documents that callers have written and that are still there, by path, with their sizes."""
    sizes: dict[str, int] = {}
    for namespace, entry in look.lockfile.namespaces.items():
        for path in {*entry.authors, *(entry.files if entry.by == "create" else ())}:
            file = look.snapshot.files.get(f"{namespace}/{path}")
            if file is not None:
                sizes[f"{namespace}/{path}"] = file.size or 0
    return sizes


def check_quota(sizes: Mapping[str, int], most_skills: int, most_bytes: int) -> None:
    """Refuse a write after which callers would have written more than the operator lets them."""
    if len(sizes) > most_skills:
        raise DirectoryError(QUOTA, f"callers have written {most_skills} skills, as many as they may")
    total = sum(sizes.values())
    if total > most_bytes:
        problem = f"with this the skills that callers have written take {total} bytes, at most {most_bytes}"
        raise DirectoryError(QUOTA, problem)


def _check_id(skill_id: str) -> None:
    if "::" in skill_id:
        raise DirectoryError(FUNCTION_ID_AS_SKILL, f"{quoted(skill_id)} is a function id, not a skill id")
    check_skill_id(skill_id)


def _check_place(look: Look, skill_id: str, namespace: str) -> None:
    if skill_id in RESERVED_IDS:
        raise _reserved(skill_id, f"iii://{skill_id} is the index of all skills")
    if (problem := new_namespace_problem(namespace)) is not None:
        raise _reserved(skill_id, problem)
    if any(segment.startswith("-") for segment in skill_id.split("/")):
        raise _reserved(skill_id, "programs take a name that begins with '-' for an option")
    if namespace in RESERVED_NAMESPACES:
        raise _reserved(skill_id, f"the namespace {quoted(namespace)} speaks for itself")
    if namespace in look.snapshot.hidden:
        why = f"the namespace {quoted(namespace)} is hidden, because its worker is not installed"
        raise _reserved(skill_id, why)
    layer = look.files.layer_of(f"{namespace}/")
    if layer is not None:
        raise _reserved(skill_id, f"the namespace {quoted(namespace)} comes from {layer}, which is only read")


def _reserved(skill_id: str, why: str) -> DirectoryError:
    return DirectoryError(RESERVED_PLACE, f"skill {quoted(skill_id)} cannot be created: {why}")


def _read_only(skill_id: str, why: str) -> DirectoryError:
    return DirectoryError(READ_ONLY_SKILL, f"skill {quoted(skill_id)} cannot be written: {why}")
