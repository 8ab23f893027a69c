"""The settings an operator can decide: each declared once, with its default, its purpose and its type.

The manifest, ``config init``, the reference and the JSON Schema for editors are made from these declarations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from iii_directory import limits
from iii_directory.shapes import is_count, is_list, is_text_list, is_text_map

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.shapes import Json

DEFAULT_URL: Final = "ws://127.0.0.1:49134"
DEFAULT_REGISTRY_URL: Final = "https://api.workers.iii.dev"
TOKEN_VARIABLE: Final = "III_TOKEN"  # noqa: S105 (its name, not a token)
SURFACES: Final = ("v0.2", "v0.4", "v0.5", "v0.8")
LEVELS: Final = ("full", "name", "manual", "off")
DEFAULT_ROOTS: Final = (".agents/skills", ".claude/skills")


class WrongValueError(Exception):
    """A value that does not fit its key; the text says what was expected."""


class Scopes(NamedTuple):
    """The scopes of iii-state that registrations are kept in."""

    skills: str = "skills"
    prompts: str = "prompts"


class Setting(NamedTuple):
    """One key of the file, which is also a field of `Settings`."""

    key: str
    default: object
    """As the file would say it."""
    about: str
    schema: Json
    read: Callable[[object], Any]
    """Turn a value of the file into the value of the field, or raise `WrongValueError`."""
    hot: bool
    """A change applies while the worker runs; else at the next start."""
    remote: bool
    """Any worker may set it in the engine's configuration.

    False for settings that open this machine to callers or decide where documents come from.
    """


# The types of values: the JSON Schema that editors see, and how a value is read


class _Type(NamedTuple):
    schema: Json
    read: Callable[[object], Any]


def _type(
    schema: Json, expected: str, fits: Callable[[Any], object], made: Callable[[Any], Any] | None = None
) -> _Type:
    def read(value: object) -> Any:
        if not fits(value):
            raise WrongValueError(expected)
        return value if made is None else made(value)

    return _Type(schema, read)


def _number(least: int, most: int | None = None) -> _Type:
    expected = "a whole number that is not negative"
    schema: Json = {"type": "integer", "minimum": least}
    if most is not None:
        expected = f"a number of milliseconds from {least} to {most}"
        schema["maximum"] = most
    return _type(
        schema, expected, lambda value: is_count(value) and least <= value and (most is None or value <= most)
    )


def _is_http(value: object) -> bool:
    from urllib.parse import urlsplit

    try:
        address = urlsplit(value if isinstance(value, str) else "")
        return address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        return False


def _read_folder(value: object) -> Path:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise WrongValueError("the path of a folder")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise WrongValueError("the path of a folder, with a home that exists") from None


def _read_flag(value: object) -> bool:
    # To YAML 1.2 on and off are words; they are meant like true and false.
    if isinstance(value, str) and value.lower() in ("on", "off", "yes", "no", "true", "false"):
        return value.lower() in ("on", "yes", "true")
    if not isinstance(value, bool):
        raise WrongValueError("true or false")
    return value


def _read_variables(value: object) -> tuple[str, ...]:
    if not is_text_list(value) or not all(map(str.isidentifier, value)):
        raise WrongValueError("a list of names of environment variables")
    if TOKEN_VARIABLE in value:
        raise WrongValueError(f"a list without {TOKEN_VARIABLE}, which no caller may read")
    return tuple(value)


def _read_paths(value: object) -> bool | str:
    return "auto" if value == "auto" else _read_flag(value)


_TEXT: Final[Json] = {"type": "string"}
_TEXTS: Final[Json] = {"type": "array", "items": _TEXT}
_FLAG: Final = _Type({"type": "boolean"}, _read_flag)
_AMOUNT: Final = _number(0)
_DEADLINE: Final = _number(limits.MIN_TIMEOUT_MS, limits.MAX_SETTING_MS)
_DURATION: Final = _number(0, limits.MAX_SETTING_MS)
_FOLDER: Final = _Type(_TEXT, _read_folder)
_OPTIONAL_FOLDER: Final = _Type({"type": ["string", "null"]}, _read_folder)
_FOLDERS: Final = _type(
    _TEXTS,
    f"a list of at most {limits.MAX_ROOTS} folders",
    lambda value: is_list(value) and len(value) <= limits.MAX_ROOTS,
    lambda value: tuple(map(_read_folder, value)),
)
_URL: Final = _type(_TEXT, "an http or https address", _is_http, lambda value: value.rstrip("/"))
_SCOPES: Final = _type(
    {"type": "object", "properties": {"skills": _TEXT, "prompts": _TEXT}, "additionalProperties": False},
    "a mapping with 'skills' and 'prompts'",
    lambda value: (
        is_text_map(value) and value.keys() <= set(Scopes._fields) and all(map(str.strip, value.values()))
    ),
    lambda value: Scopes(**value),
)
_MIRRORS: Final = _type(
    {"type": "object", "additionalProperties": _TEXT},
    "a mapping from URL prefix to URL prefix",
    lambda value: is_text_map(value) and all((*value, *value.values())),
    dict,
)
_VISIBILITY: Final = _type(
    {"type": "object", "additionalProperties": {"enum": list(LEVELS)}},
    f"a mapping of at most {limits.MAX_VISIBILITY_RULES} patterns to {', '.join(LEVELS)}",
    lambda value: (
        is_text_map(value)
        and len(value) <= limits.MAX_VISIBILITY_RULES
        and all(0 < len(pattern) <= limits.MAX_ID_BYTES for pattern in value)
        and set(value.values()) <= set(LEVELS)
    ),
    dict,
)
_SECTIONS: Final = _type(
    {"enum": ["read-only", "all", None]}, "'read-only' or 'all'", lambda value: value in ("read-only", "all")
)
_SURFACES: Final = _type(
    {"oneOf": [{"const": "all"}, {"type": "array", "items": {"enum": list(SURFACES)}}]},
    f"'all' or a list of {', '.join(SURFACES)}",
    lambda value: value == "all" or (is_text_list(value) and set(value) <= set(SURFACES)),
    lambda value: SURFACES if value == "all" else tuple(value),
)
_PATHS: Final = _Type({"enum": ["auto", True, False]}, _read_paths)
_TOOLS: Final = _type({"enum": ["small", "all"]}, "'small' or 'all'", lambda value: value in ("small", "all"))
_CALLS: Final = _type(
    {"enum": ["off", "read-only", "all"]},
    "'off', 'read-only' or 'all'",
    # To YAML 1.1 and to people off is false.
    lambda value: value in ("off", "read-only", "all") or value is False,
    lambda value: value or "off",
)
_VARIABLES: Final = _Type(_TEXTS, _read_variables)


def _setting(
    type_: _Type, about: str, *, default: object, shown: object = None, hot: bool = True, remote: bool = False
) -> Any:
    """Declare a field that is a key of the file; ``shown`` is its default in words where that differs."""
    row = (written(default) if shown is None else shown, about, *type_, hot, remote)
    return field(default_factory=lambda: default, metadata={Setting: row})


def written(value: object) -> object:
    """Write the value of a field as the file would have it."""
    if isinstance(value, Scopes):
        return value._asdict()
    if isinstance(value, tuple):
        return [str(item) for item in cast("tuple[object, ...]", value)]
    return str(value) if isinstance(value, Path) else value


@dataclass(slots=True)
class Settings:
    """The values in force. ``auto_download`` is None until the kind of engine is known.

    Hot settings may change while the worker runs: read them when they are used.
    """

    skills_folder: Path = _setting(
        _FOLDER,
        "where documents are read from and installed to; relative to this file",
        default=Path("skills"),
        shown="./skills",
        hot=False,
    )
    local_skills_folder: Path | None = _setting(
        _OPTIONAL_FOLDER,
        "a second folder: each namespace in it replaces that of skills_folder",
        default=None,
        hot=False,
    )
    roots: tuple[Path, ...] = _setting(
        _FOLDERS,
        "further folders of skills, only read, below skills_folder; by default the usual two if they exist",
        default=(),
        shown=list(DEFAULT_ROOTS),
        hot=False,
    )
    roots_outside: tuple[str, ...] = ()
    """Default roots that are links out of the project; they are not served unless config.yaml names them."""
    user_roots: bool = _setting(
        _FLAG,
        "read the user's own skills, too: ~/.agents/skills, ~/.claude/skills and what was added with -g",
        default=True,
        hot=False,
    )
    user_folders: tuple[Path, ...] = ()
    """The user's own folders of skills, served below the roots; none unless ``user_roots`` is on."""
    registry_url: str = _setting(
        _URL, "the workers registry to list and install from", default=DEFAULT_REGISTRY_URL
    )
    download_timeout_ms: int = _setting(
        _DEADLINE, "the deadline of one download, its whole answer included", default=60_000, remote=True
    )
    registry_cache_ttl_ms: int = _setting(
        _DURATION,
        "how long answers of the registry and the engine count as current; 0 asks every time",
        default=60_000,
        remote=True,
    )
    state_timeout_ms: int = _setting(
        _DEADLINE,
        "the deadline of a write to the engine's state and of a live section",
        default=10_000,
        remote=True,
    )
    scopes: Scopes = _setting(
        _SCOPES, "where registrations are kept in iii-state", default=Scopes(), hot=False
    )
    auto_download: bool | None = _setting(
        _FLAG,
        "download the documents of workers as they are installed; on the embedded engine false by default",
        default=None,
        shown=True,
        hot=False,
    )
    filter_unregistered: bool = _setting(
        _FLAG, "hide downloaded documents of workers that are not installed", default=True, remote=True
    )
    visibility: Mapping[str, str] = _setting(
        _VISIBILITY,
        "patterns of skill ids and how much of those skills is offered: full, name (no description), manual"
        " (when asked for by name) or off; the first that fits counts",
        default={},
    )
    repo_mirrors: Mapping[str, str] = _setting(
        _MIRRORS, "prefixes of git addresses and what to use instead", default={}
    )
    allow_file_repos: bool = _setting(
        _FLAG, "let downloads and mirrors name file:// repositories", default=False
    )
    allow_private_repos: bool = _setting(
        _FLAG, "let calls of download functions name loopback and private addresses", default=False
    )
    allow_ssh_keys: bool = _setting(
        _FLAG, "let calls of download functions use the ssh keys of the user who runs this", default=False
    )
    section_guard: bool = _setting(_FLAG, "keep iii://fn/ links away from internal functions", default=True)
    sections: str | None = _setting(
        _SECTIONS,
        "the functions that iii://fn/ links may run, 'read-only' or 'all'; by default MCP clients run"
        " read-only ones, and callers on the engine all that section_guard allows",
        default=None,
    )
    surfaces: tuple[str, ...] = _setting(
        _SURFACES, "the generations of functions that are offered, or 'all'", default=SURFACES, hot=False
    )
    show_paths: bool | str = _setting(
        _PATHS,
        "tell callers where a skill lies on this machine; auto tells MCP clients of the same user",
        default="auto",
    )
    mcp_tools: str = _setting(
        _TOOLS, "the tools that MCP clients see: 'small' for reading skills, or 'all'", default="small"
    )
    mcp_calls: str = _setting(
        _CALLS,
        "which functions MCP clients may call: off, read-only (those that say they only read) or all",
        default="off",
    )
    public_index: bool = _setting(
        _FLAG, "let web pages of any origin read the well-known index of skills and its files", default=False
    )
    allow_writing: bool = _setting(
        _FLAG, "let callers create, change and delete skills of skills_folder", default=False
    )
    max_written_skills: int = _setting(
        _AMOUNT, "how many skills callers may have written in all", default=256
    )
    max_written_bytes: int = _setting(
        _AMOUNT,
        "how many bytes the skills that callers have written may take in all",
        default=32 * limits.MIB,
    )
    usage: bool = _setting(
        _FLAG,
        "count how often skills are offered, read and used, in the data folder of this machine alone",
        default=True,
    )
    configuration_env: tuple[str, ...] = _setting(
        _VARIABLES,
        "environment variables that configuration values on the embedded engine may expand",
        default=(),
        hot=False,
    )


SETTINGS: Final = tuple(
    Setting(declared.name, *declared.metadata[Setting])
    for declared in fields(Settings)
    if Setting in declared.metadata
)
BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
