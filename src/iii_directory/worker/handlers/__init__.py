"""What answers the functions: small groups of methods, each from a payload to a reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iii_directory.worker.handlers.diagnostics import Diagnostics
    from iii_directory.worker.handlers.downloads import Downloads
    from iii_directory.worker.handlers.introspection import Introspection
    from iii_directory.worker.handlers.prompts import Prompts
    from iii_directory.worker.handlers.reading import Reading
    from iii_directory.worker.handlers.registering import Registering
    from iii_directory.worker.handlers.registry import Registry
    from iii_directory.worker.handlers.resources import Resources


@dataclass(frozen=True, slots=True)
class Handlers:
    """Every group, for the surface tables to pick from."""

    reading: Reading
    resources: Resources
    prompts: Prompts
    registering: Registering
    introspection: Introspection
    registry: Registry
    downloads: Downloads
    diagnostics: Diagnostics
