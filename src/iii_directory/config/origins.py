"""Where each value comes from: it is the default, or the file, a start or the engine has set it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from iii_directory.config.table import SETTINGS, WrongValueError
from iii_directory.shapes import object_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iii_directory.config.model import Settings
    from iii_directory.config.table import Setting
    from iii_directory.shapes import Json

CONFIGURATION_ID: Final = "iii-directory"
"""What this worker's settings are called in the configuration of an engine."""
REMOTE: Final = frozenset(setting.key for setting in SETTINGS if setting.remote)
"""The keys that can be set there."""
DEFAULT: Final = "default"


class Origin(NamedTuple):
    """A place where values are set, as people are told of it."""

    name: str
    values: Json


class InForce(NamedTuple):
    """A setting as it is."""

    key: str
    value: object
    origin: str


def set_on_engine(answer: object) -> tuple[Json, list[str]]:
    """What an answer of ``configuration::get`` sets, and a sentence for each key that it may not."""
    value = object_of(object_of(answer).get("value"))
    alone = [f"'{key}' can be set in config.yaml alone" for key in sorted(value.keys() - REMOTE)]
    return {key: value[key] for key in sorted(REMOTE & value.keys()) if value[key] is not None}, alone


def at_next_start(settings: Settings) -> Json:
    """The keys that apply at a start alone, as a file would set them; None for what it would leave out."""
    return {setting.key: _written(setting, settings) for setting in SETTINGS if not setting.hot}


def in_force(origins: Sequence[Origin]) -> tuple[list[InForce], list[str]]:
    """Every setting, from the last of the origins that has a value for it which can be used.

    And a sentence for each value that cannot: what was before it is kept.
    """
    problems: list[str] = []
    return [_in_force(setting, origins, problems) for setting in SETTINGS], problems


def _in_force(setting: Setting, origins: Sequence[Origin], problems: list[str]) -> InForce:
    found = InForce(setting.key, setting.default, DEFAULT)
    for origin in origins:
        value = origin.values.get(setting.key)
        if value is None:
            continue
        try:
            setting.read(value)
        except WrongValueError as expected:
            problems.append(f"{origin.name}: '{setting.key}' must be {expected}")
        else:
            found = InForce(setting.key, value, origin.name)
    return found


def _written(setting: Setting, settings: Settings) -> object:
    if setting.key == "scopes":
        return {"skills": settings.skills_scope, "prompts": settings.prompts_scope}
    value = getattr(settings, setting.key)
    if isinstance(value, tuple):
        return [str(item) for item in cast("tuple[Path | str, ...]", value)]
    return str(value) if isinstance(value, Path) else value
