"""What is of no generation: it is there whichever of them are on. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces import shapes
from iii_directory.worker.surfaces.table import NOTHING, FunctionRow, Surface, obj, rows

_DIAGNOSTICS: Final = FunctionRow(
    "directory::diagnostics",
    lambda h: h.diagnostics.report,
    "What the directory left out or found odd, each with its reason and what to do: skipped files, shadowed "
    "ids, broken front matter, records that cannot be read, failed downloads, installed files that were "
    "edited by hand. Call it when something is missing.",
    NOTHING,
    obj(
        {
            "counts": {"type": "object", "description": "How many findings there are of each kind."},
            "findings": rows(shapes.FINDING, "Every finding."),
        }
    ),
)

SURFACE: Final = Surface("every generation", (_DIAGNOSTICS,))
