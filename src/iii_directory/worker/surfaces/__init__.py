"""Every function and trigger type of this worker: one table, with the generations that have each.

A function is added here and nowhere else: a row with its handler, its schemas, its description and an
example, in the module of its subject. The reference is printed from it, and the tests send every example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iii_directory.worker.surfaces import (
    engine_functions,
    prompt_functions,
    registry_functions,
    skill_functions,
    upkeep_functions,
)
from iii_directory.worker.surfaces.declare import V02, V04, V05, V08, FunctionRow, TriggerTypeRow

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

GENERATIONS: Final[Mapping[str, str]] = {
    V02: "registrations kept in iii-state, and reads shaped for MCP bridges",
    V04: "skills and prompts of a folder, the engine's own tables, downloads; short names",
    V05: "the batched read under a name of its own",
    V08: "everything under directory::, with reads that forgive and errors that say what to do",
}
"""The published versions of this worker that clients were written for, and what each brought."""

SUBJECTS: Final[Mapping[str, tuple[FunctionRow, ...]]] = {
    "Search": engine_functions.SEARCH,
    "Skills": skill_functions.READING,
    "Skills for hosts": skill_functions.FOR_HOSTS,
    "Looking after skills": upkeep_functions.ADVICE,
    "Writing skills": upkeep_functions.WRITING_SKILLS,
    "Prompts and registering": prompt_functions.FUNCTIONS,
    "The engine": engine_functions.FUNCTIONS,
    "The registry and downloads": registry_functions.FUNCTIONS,
}
FUNCTIONS: Final[tuple[FunctionRow, ...]] = tuple(row for rows in SUBJECTS.values() for row in rows)
TRIGGER_TYPES: Final[tuple[TriggerTypeRow, ...]] = prompt_functions.TRIGGER_TYPES


def functions_of(generations: Collection[str]) -> list[FunctionRow]:
    """Return every function of some generations, and those that every generation has."""
    return [
        row for row in FUNCTIONS if not row.generations or not set(row.generations).isdisjoint(generations)
    ]


def trigger_types_of(generations: Collection[str]) -> list[TriggerTypeRow]:
    """Return every trigger type of some generations."""
    return [row for row in TRIGGER_TYPES if not set(row.generations).isdisjoint(generations)]
