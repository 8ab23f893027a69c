"""What answers the functions: small groups of methods, each from a payload to a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.bus.seam import Handler


def bound(groups: Iterable[object]) -> dict[Any, Handler]:
    """The methods of some objects, by the plain functions that a table names them by."""
    return {
        function: getattr(group, name)
        for group in groups
        for name, function in vars(type(group)).items()
        if not name.startswith("_")
    }
