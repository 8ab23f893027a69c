"""One thin table per generation, from function id to handler to schema to description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iii_directory.worker.surfaces import v02, v04, v05, v08

if TYPE_CHECKING:
    from collections.abc import Collection

    from iii_directory.worker.surfaces.table import FunctionRow, Surface, TriggerTypeRow

SURFACES: Final[tuple[Surface, ...]] = (v02.SURFACE, v04.SURFACE, v05.SURFACE, v08.SURFACE)


def functions_of(generations: Collection[str]) -> list[FunctionRow]:
    """Every function of some generations, each once."""
    chosen = {
        row.id: row for surface in SURFACES if surface.generation in generations for row in surface.functions
    }
    return list(chosen.values())


def trigger_types_of(generations: Collection[str]) -> list[TriggerTypeRow]:
    """Every trigger type of some generations, each once."""
    chosen = {
        row.id: row
        for surface in SURFACES
        if surface.generation in generations
        for row in surface.trigger_types
    }
    return list(chosen.values())
