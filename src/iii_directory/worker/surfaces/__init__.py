"""One thin table per generation, from function id to handler to schema to description. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iii_directory.worker.surfaces import own, v02, v04, v05, v08

if TYPE_CHECKING:
    from collections.abc import Collection

    from iii_directory.worker.surfaces.table import FunctionRow, Surface, TriggerTypeRow

SURFACES: Final[tuple[Surface, ...]] = (
    v02.SURFACE,
    v04.SURFACE,
    v05.SURFACE,
    v08.SURFACE,
    own.SURFACE,
)


def functions_of(generations: Collection[str]) -> list[FunctionRow]:
    """Every function of some generations, each once, and what is of none."""
    return list({row.id: row for surface in _surfaces(generations) for row in surface.functions}.values())


def trigger_types_of(generations: Collection[str]) -> list[TriggerTypeRow]:
    """Every trigger type of some generations, each once."""
    return list({row.id: row for surface in _surfaces(generations) for row in surface.trigger_types}.values())


def _surfaces(generations: Collection[str]) -> list[Surface]:
    return [surface for surface in SURFACES if surface is own.SURFACE or surface.generation in generations]
