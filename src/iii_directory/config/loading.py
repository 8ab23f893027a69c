"""Find the project and read its ``config.yaml``, at the start and when it changes.

A missing or broken file, an unknown key or a wrong value is a warning, never a failed start: the default
applies, or the value from before.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits
from iii_directory.config.settings import BY_KEY, DEFAULT_ROOTS, SETTINGS, Settings, WrongValueError, written
from iii_directory.documents import frontmatter
from iii_directory.documents.ids import OVERVIEWS
from iii_directory.shapes import is_object, object_of
from iii_directory.text import close_names, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from iii_directory.config.settings import Setting
    from iii_directory.shapes import Json


CONFIG_FILE: Final = "config.yaml"
HOME_VARIABLE: Final = "III_DIRECTORY_HOME"
DATA_FOLDER: Final = ".iii-directory"
CONFIGURATION_ID: Final = "iii-directory"
"""The id of this worker's settings in the configuration of an engine."""
REMOTE: Final = frozenset(setting.key for setting in SETTINGS if setting.remote)
"""The keys that can be set in the engine's configuration."""
DEFAULT: Final = "default"


class Origin(NamedTuple):
    """Names a place where values are set, for people, with the values."""

    name: str
    values: Json


class CurrentSetting(NamedTuple):
    """A setting with its current value and where that comes from."""

    key: str
    value: object
    origin: str


class ReloadEffect(NamedTuple):
    """Describes the effect of a changed configuration on a running worker."""

    hot: dict[str, Any]
    """The fields of `Settings` that change at once."""
    waiting: tuple[str, ...]
    """Keys that were changed and take effect at the next start."""
    warnings: tuple[str, ...]


def parse_settings(document: object, base: Path) -> tuple[Settings, list[str]]:
    """Read settings from a parsed document, with warnings; relative folders are taken from ``base``."""
    values, wrong, unknown = read_values(document)
    warnings = [
        *unknown,
        *(f"'{key}' must be {expected}; the default is used" for key, expected in wrong.items()),
    ]
    return _beside(values, base), warnings


def reread_settings(now: Settings, at_start: Settings, document: object, base: Path) -> ReloadEffect:
    """Compare a changed document with the settings in force and with those of the start.

    A wrong value changes nothing.
    """
    values, wrong, unknown = read_values(document)
    fresh = _beside(values, base)
    hot: dict[str, Any] = {}
    waiting: list[str] = []
    for setting in SETTINGS:
        value = getattr(fresh, setting.key)
        if value == getattr(now if setting.hot else at_start, setting.key) or setting.key in wrong:
            continue
        if setting.hot:
            hot[setting.key] = value
        # Of the usual roots those count that were there at the start.
        elif setting.key != "roots" or "roots" in values:
            waiting.append(setting.key)
    kept = [f"'{key}' must be {expected}; what was before is kept" for key, expected in wrong.items()]
    return ReloadEffect(hot, tuple(waiting), (*unknown, *kept))


def read_values(document: object) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Return the fields that a document sets, what was expected of each wrong value, and other warnings."""
    values: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    if document is None:
        return values, wrong, []
    if not is_object(document):
        return values, wrong, ["the configuration is not a mapping; defaults are used"]
    for key, value in document.items():
        setting = BY_KEY.get(key)
        if setting is not None and value is not None:
            try:
                values[key] = setting.read(value)
            except WrongValueError as error:
                wrong[key] = str(error)
    unknown: list[str] = []
    for key in (key for key in document if key not in BY_KEY):
        close = close_names(key, BY_KEY.keys())
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        unknown.append(f"unknown key {quoted(key)} is ignored{hint}")
    return values, wrong, unknown


def load_settings(path: Path) -> tuple[Settings, list[str]]:
    """Read settings from a file, with warnings."""
    document, problem = read_document(path)
    settings, warnings = parse_settings(document, real_path(path).parent)
    if settings.user_roots:
        home, ours = home_folder(), user_skills_folder()
        theirs = () if home is None else (home / root for root in DEFAULT_ROOTS)
        found = (root for root in (ours, *theirs) if root is not None and root.is_dir())
        settings.user_folders = tuple(map(real_path, found))
    return settings, warnings if problem is None else [f"{path.name} {problem}; defaults are used"]


def set_on_engine(answer: object) -> tuple[Json, list[str]]:
    """Return what an answer of ``configuration::get`` sets, and a sentence for each key it may not."""
    value = object_of(object_of(answer).get("value"))
    alone = [f"'{key}' can be set in config.yaml alone" for key in sorted(value.keys() - REMOTE)]
    return {key: value[key] for key in sorted(REMOTE & value.keys()) if value[key] is not None}, alone


def at_next_start(settings: Settings) -> Json:
    """Return the settings that apply at a start only, as a file would write them; None for unset ones."""
    return {setting.key: written(getattr(settings, setting.key)) for setting in SETTINGS if not setting.hot}


def in_force(origins: Sequence[Origin]) -> tuple[list[CurrentSetting], list[str]]:
    """Return every setting with its value from the last origin that has a valid one.

    A sentence tells of each invalid value, which leaves the value before it in force.
    """
    problems: list[str] = []
    found: list[CurrentSetting] = []
    for setting in SETTINGS:
        now = CurrentSetting(setting.key, setting.default, DEFAULT)
        for origin in origins:
            value = origin.values.get(setting.key)
            try:
                if value is not None:
                    setting.read(value)
                    now = CurrentSetting(setting.key, value, origin.name)
            except WrongValueError as expected:
                problems.append(f"{origin.name}: '{setting.key}' must be {expected}")
        found.append(now)
    return found, problems


def default_document() -> dict[str, object]:
    """Return the configuration with every default, as the manifest prints it."""
    return {setting.key: setting.default for setting in SETTINGS}


def json_schema() -> Json:
    """Return the JSON Schema of the file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "iii-directory configuration",
        **_schema_of(SETTINGS),
    }


def remote_schema() -> Json:
    """Return the JSON Schema of the settings that the engine's configuration may set."""
    return _schema_of(setting for setting in SETTINGS if setting.remote)


def _schema_of(settings: Iterable[Setting]) -> Json:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            setting.key: {**setting.schema, "description": setting.about, "default": setting.default}
            for setting in settings
        },
    }


def sample() -> str:
    """Return a file that changes nothing: every setting commented out, with its default and purpose."""
    import json

    lines = ["# iii-directory: every setting with its default. Remove the # in front of what you change.", ""]
    for setting in SETTINGS:
        when = "" if setting.hot else " (at the next start)"
        lines += [f"# {setting.about}{when}", f"# {setting.key}: {json.dumps(setting.default)}", ""]
    return "\n".join(lines)


def read_document(path: Path) -> tuple[Json, str | None]:
    """Return the content of a file, or nothing and what is wrong with it. A missing file is empty."""
    try:
        with path.open("rb") as file:
            raw = file.read(limits.MAX_CONFIG_BYTES + 1)
        if len(raw) > limits.MAX_CONFIG_BYTES:
            return {}, f"is larger than {limits.MAX_CONFIG_BYTES} bytes"
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        return {}, None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return {}, f"cannot be read ({reason})"
    # Plain lines need no YAML parser, whose import takes as long as that of the event loop.
    plain = frontmatter.scan(text.removesuffix("\n") + "\n")
    if plain is not None:
        return plain, None
    try:
        return frontmatter.load(text, first_line=1), None
    except frontmatter.FrontMatterError as refused:
        return {}, f"cannot be used: {refused}"


def home_folder() -> Path | None:
    """Return the home folder of the user, if there is one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def user_skills_folder() -> Path | None:
    """Return the folder that commands with ``-g`` install into."""
    data = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(data):
        return Path(data, "iii-directory", "skills")
    home = home_folder()
    return None if home is None else home / ".local/share/iii-directory/skills"


def _beside(values: dict[str, Any], base: Path) -> Settings:
    """Resolve relative folders from the folder of the file, and add the usual roots that exist."""
    settings = Settings(**values)
    local = settings.local_skills_folder
    roots = tuple(real_path(base / root) for root in settings.roots)
    outside: list[str] = []
    if "roots" not in values:
        found = {name: real_path(base / name) for name in DEFAULT_ROOTS}
        found = {name: root for name, root in found.items() if root.is_dir()}
        # The operator did not choose these folders: a checkout could bring a link to any folder.
        outside = [name for name, root in found.items() if not root.is_relative_to(base)]
        roots = tuple(root for name, root in found.items() if name not in outside)
    return replace(
        settings,
        skills_folder=real_path(base / settings.skills_folder),
        local_skills_folder=None if local is None else real_path(base / local),
        roots=roots,
        roots_outside=tuple(outside),
    )


def real_path(path: Path) -> Path:
    """Follow every link; a link to itself stays as it is, where ``Path.resolve`` would raise."""
    return Path(os.path.realpath(path))


def nearest_project(start: Path) -> Path:
    """Return the folder that ``III_DIRECTORY_HOME`` names, else the nearest project from ``start`` upward.

    The search ends at the home folder and at the root of the file system that ``start`` lies on. Without a
    project it is ``start`` itself.
    """
    named = os.environ.get(HOME_VARIABLE)
    if named:
        return Path(named).expanduser()
    start = real_path(start)
    home = home_folder()
    home = None if home is None else real_path(home)
    for folder in (start, *start.parents):
        # In the home folder these are the user's, for every project.
        roots = () if folder == home else DEFAULT_ROOTS
        file = folder / CONFIG_FILE
        # A configuration is ours if it has a key that we know.
        is_ours = file.is_file() and any(key in BY_KEY for key in read_document(file)[0])
        if is_ours or (folder / DATA_FOLDER).is_dir():
            return folder
        if any((folder / root).is_dir() for root in roots) or _has_skill(folder / "skills"):
            return folder
        if folder == home or os.path.ismount(folder):
            break
    return start


def _has_skill(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(
                os.path.isfile(os.path.join(entry.path, name))
                for entry in entries
                if not entry.name.startswith(".")
                for name in OVERVIEWS
            )
    except OSError:
        return False
