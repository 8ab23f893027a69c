"""One table with every key of the file: what it is for, its default, and how a value of it is read.

The manifest, ``config init``, the reference and the JSON Schema for editors are made from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits
from iii_directory.config.model import DEFAULT_REGISTRY_URL, DEFAULT_ROOTS, SURFACES, TOKEN_VARIABLE
from iii_directory.shapes import is_count, is_list, is_text_list, is_text_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.shapes import Json


class WrongValueError(Exception):
    """A value that does not fit its key; the text says what was expected."""


class Setting(NamedTuple):
    """One key of the file."""

    key: str
    default: object
    """As the file would say it."""
    about: str
    schema: Json
    read: Callable[[object], dict[str, Any]]
    """The fields of `Settings` that a value of the file means, or `WrongValueError`."""
    hot: bool = True
    """A change applies while the worker runs; else at the next start."""
    remote: bool = False
    """Any worker may set it in the engine's configuration.

    False for settings that open this machine to callers or decide where documents come from.
    """

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of `Settings` it stands for."""
        return ("skills_scope", "prompts_scope") if self.key == "scopes" else (self.key,)


def _path(value: object) -> Path:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise WrongValueError("the path of a folder")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise WrongValueError("the path of a folder, with a home that exists") from None


def _folder(key: str) -> Callable[[object], dict[str, Any]]:
    return lambda value: {key: _path(value)}


def _folders(key: str) -> Callable[[object], dict[str, Any]]:
    def read(value: object) -> dict[str, Any]:
        if not is_list(value) or len(value) > limits.MAX_ROOTS:
            raise WrongValueError(f"a list of at most {limits.MAX_ROOTS} folders")
        return {key: tuple(map(_path, value))}

    return read


def _url(key: str) -> Callable[[object], dict[str, Any]]:
    def read(value: object) -> dict[str, Any]:
        from urllib.parse import urlsplit

        try:
            address = urlsplit(value) if isinstance(value, str) else None
            usable = address is not None and address.scheme in ("http", "https") and address.hostname
            usable = usable and (address is None or address.port != 0)
        except ValueError:
            usable = None
        if not usable or not isinstance(value, str):
            raise WrongValueError("an http or https address")
        return {key: value.rstrip("/")}

    return read


def _milliseconds(key: str, least: int) -> Callable[[object], dict[str, Any]]:
    def read(value: object) -> dict[str, Any]:
        if not is_count(value) or not least <= value <= limits.MAX_SETTING_MS:
            raise WrongValueError(f"a number of milliseconds from {least} to {limits.MAX_SETTING_MS}")
        return {key: value}

    return read


def _amount(key: str) -> Callable[[object], dict[str, Any]]:
    def read(value: object) -> dict[str, Any]:
        if not is_count(value):
            raise WrongValueError("a whole number that is not negative")
        return {key: value}

    return read


def _flag(key: str) -> Callable[[object], dict[str, Any]]:
    def read(value: object) -> dict[str, Any]:
        # To YAML 1.2 on and off are words; they are meant like true and false.
        if isinstance(value, str) and value.lower() in ("on", "off", "yes", "no", "true", "false"):
            value = value.lower() in ("on", "yes", "true")
        if not isinstance(value, bool):
            raise WrongValueError("true or false")
        return {key: value}

    return read


def _scopes(value: object) -> dict[str, Any]:
    known = {"skills", "prompts"}
    if not is_text_map(value) or not value.keys() <= known or not all(map(str.strip, value.values())):
        raise WrongValueError("a mapping with 'skills' and 'prompts'")
    return {f"{name}_scope": scope for name, scope in value.items()}


def _mirrors(value: object) -> dict[str, Any]:
    if not is_text_map(value) or not all((*value, *value.values())):
        raise WrongValueError("a mapping from URL prefix to URL prefix")
    return {"repo_mirrors": dict(value)}


def _surfaces(value: object) -> dict[str, Any]:
    if value == "all":
        return {"surfaces": SURFACES}
    if not is_text_list(value) or not set(value) <= set(SURFACES):
        raise WrongValueError(f"'all' or a list of {', '.join(SURFACES)}")
    return {"surfaces": tuple(value)}


def _sections(value: object) -> dict[str, Any]:
    if value not in ("read-only", "all"):
        raise WrongValueError("'read-only' or 'all'")
    return {"sections": value}


def _variables(value: object) -> dict[str, Any]:
    if not is_text_list(value) or not all(map(str.isidentifier, value)):
        raise WrongValueError("a list of names of environment variables")
    if TOKEN_VARIABLE in value:
        raise WrongValueError(f"a list without {TOKEN_VARIABLE}, which is nobody's to read")
    return {"configuration_env": tuple(value)}


_TEXT: Final[Json] = {"type": "string"}
_TEXTS: Final[Json] = {"type": "array", "items": _TEXT}
_TEXT_MAP: Final[Json] = {"type": "object", "additionalProperties": _TEXT}
_BOOLEAN: Final[Json] = {"type": "boolean"}


def _nullable(schema: Json) -> Json:
    return {**schema, "type": [schema["type"], "null"]}


def _time(key: str, default: int, about: str, *, least: int) -> Setting:
    schema = {"type": "integer", "minimum": least, "maximum": limits.MAX_SETTING_MS}
    return Setting(key, default, about, schema, _milliseconds(key, least), remote=True)


def _switch(
    key: str, about: str, *, default: bool = False, hot: bool = True, remote: bool = False
) -> Setting:
    return Setting(key, default, about, _BOOLEAN, _flag(key), hot, remote)


SETTINGS: Final = (
    Setting(
        "skills_folder",
        "./skills",
        "where documents are read from and installed to; relative to this file",
        _TEXT,
        _folder("skills_folder"),
        hot=False,
    ),
    Setting(
        "local_skills_folder",
        None,
        "a second folder: each namespace in it replaces that of skills_folder",
        _nullable(_TEXT),
        _folder("local_skills_folder"),
        hot=False,
    ),
    Setting(
        "roots",
        list(DEFAULT_ROOTS),
        "further folders of skills, only read, below skills_folder; by default the usual two if they exist",
        _TEXTS,
        _folders("roots"),
        hot=False,
    ),
    _switch(
        "user_roots",
        "read the user's own skills, too: ~/.agents/skills, ~/.claude/skills and what was added with -g",
        default=True,
        hot=False,
    ),
    Setting(
        "registry_url",
        DEFAULT_REGISTRY_URL,
        "the workers registry to list and install from",
        _TEXT,
        _url("registry_url"),
    ),
    _time(
        "download_timeout_ms",
        60_000,
        "the deadline of one download, its whole answer included",
        least=limits.MIN_TIMEOUT_MS,
    ),
    _time(
        "registry_cache_ttl_ms",
        60_000,
        "how long answers of the registry and the engine count as current; 0 asks every time",
        least=0,
    ),
    _time(
        "state_timeout_ms",
        10_000,
        "the deadline of a write to the engine's state and of a live section",
        least=limits.MIN_TIMEOUT_MS,
    ),
    Setting(
        "scopes",
        {"skills": "skills", "prompts": "prompts"},
        "where registrations are kept in iii-state",
        {"type": "object", "properties": {"skills": _TEXT, "prompts": _TEXT}, "additionalProperties": False},
        _scopes,
        hot=False,
    ),
    _switch(
        "auto_download",
        "download the documents of workers as they are installed; on the embedded engine false by default",
        default=True,
        hot=False,
    ),
    _switch(
        "filter_unregistered",
        "hide downloaded documents of workers that are not installed",
        default=True,
        remote=True,
    ),
    Setting("repo_mirrors", {}, "prefixes of git addresses and what to use instead", _TEXT_MAP, _mirrors),
    _switch("allow_file_repos", "let downloads and mirrors name file:// repositories"),
    _switch("allow_private_repos", "let calls of download functions name loopback and private addresses"),
    _switch("allow_ssh_keys", "let calls of download functions use the ssh keys of whoever runs this"),
    _switch("section_guard", "keep iii://fn/ links away from internal functions", default=True),
    Setting(
        "sections",
        None,
        "which functions iii://fn/ links may run: 'read-only' or 'all'; unset, MCP clients run read-only ones"
        " and callers on the engine what section_guard lets pass",
        {"enum": ["read-only", "all", None]},
        _sections,
    ),
    Setting(
        "surfaces",
        list(SURFACES),
        "the generations of functions that are offered, or 'all'",
        {"oneOf": [{"const": "all"}, {"type": "array", "items": {"enum": list(SURFACES)}}]},
        _surfaces,
        hot=False,
    ),
    _switch("show_paths", "tell callers where a skill lies on this machine"),
    _switch("allow_writing", "let callers create, change and delete skills of skills_folder"),
    Setting(
        "max_written_skills",
        256,
        "how many skills callers may have written in all",
        {"type": "integer", "minimum": 0},
        _amount("max_written_skills"),
    ),
    Setting(
        "max_written_bytes",
        32 * limits.MIB,
        "how many bytes the skills that callers have written may take in all",
        {"type": "integer", "minimum": 0},
        _amount("max_written_bytes"),
    ),
    Setting(
        "configuration_env",
        [],
        "environment variables that configuration values on the embedded engine may expand",
        _TEXTS,
        _variables,
        hot=False,
    ),
    _switch(
        "search_judge",
        "let judge::evaluate order the best hits of a search anew, if it answers in time",
        hot=False,
    ),
    _switch(
        "search_semantic",
        "search by meaning too, with a small model on this machine; needs iii-directory[semantic]",
        hot=False,
    ),
)
BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
