"""The surface of v0.5: the batched read under its own name. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces import shapes
from iii_directory.worker.surfaces.table import FunctionRow, Surface

_FETCH: Final = FunctionRow(
    "directory::skills::fetch-skill",
    lambda h: h.reading.fetch,
    "Read one or more skills and get one markdown text back. Pass uri, or uris for several at once; each is "
    "an iii:// URI or a bare skill id. iii://directory/skills is the index, iii://fn/a/b the output of a::b.",
    shapes.FETCH,
    shapes.FETCHED,
)

SURFACE: Final = Surface("v0.5", (_FETCH,))
