"""Settings: what an operator can decide, one table with every key, read from ``config.yaml``.

A missing or broken file, an unknown key or a wrong value is a warning and the default, never a failed start.
The table is what the manifest, ``config init``, the reference and the JSON Schema for editors are made from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits
from iii_directory.documents import frontmatter
from iii_directory.shapes import is_count, is_list, is_object, is_text_list, is_text_map
from iii_directory.suggest import close_names
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.shapes import Json

DEFAULT_URL: Final = "ws://127.0.0.1:49134"
DEFAULT_REGISTRY_URL: Final = "https://api.workers.iii.dev"
TOKEN_VARIABLE: Final = "III_TOKEN"  # noqa: S105 (its name, not a token)
SURFACES: Final = ("v0.2", "v0.4", "v0.5", "v0.8")
DEFAULT_ROOTS: Final = (".agents/skills", ".claude/skills")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator can decide. ``auto_download`` is None until the kind of engine is known."""

    skills_folder: Path = Path("skills")
    local_skills_folder: Path | None = None
    roots: tuple[Path, ...] = ()
    registry_url: str = DEFAULT_REGISTRY_URL
    download_timeout_ms: int = 60_000
    registry_cache_ttl_ms: int = 60_000
    state_timeout_ms: int = 10_000
    skills_scope: str = "skills"
    prompts_scope: str = "prompts"
    auto_download: bool | None = None
    filter_unregistered: bool = True
    repo_mirrors: Mapping[str, str] = field(default_factory=dict[str, str])
    allow_file_repos: bool = False
    allow_private_repos: bool = False
    allow_ssh_keys: bool = False
    section_guard: bool = True
    sections: str | None = None
    surfaces: tuple[str, ...] = SURFACES
    show_paths: bool = False
    allow_writing: bool = False
    configuration_env: tuple[str, ...] = ()
    search_judge: bool = False


class _WrongValueError(Exception):
    """A value that does not fit its key; the text says what was expected."""


class Setting(NamedTuple):
    """One key of the file."""

    key: str
    default: object
    """As the file would say it."""
    about: str
    schema: Json
    read: Callable[[object], dict[str, Any]]
    """The fields of `Settings` that a value of the file means, or `_WrongValueError`."""
    hot: bool = True
    """A change applies while the worker runs; else at the next start."""


def parse_settings(document: object, base: Path) -> tuple[Settings, list[str]]:
    """Settings from a parsed document; relative folders are taken from ``base``."""
    warnings: list[str] = []
    values: dict[str, Any] = {}
    if document is None:
        document = {}
    if not is_object(document):
        return _beside(Settings(), base), ["the configuration is not a mapping; defaults are used"]
    for key, value in document.items():
        setting = BY_KEY.get(key)
        if setting is None:
            warnings.append(_unknown(key))
        elif value is not None:
            try:
                values.update(setting.read(value))
            except _WrongValueError as wrong:
                warnings.append(f"'{key}' must be {wrong}; the default is used")
    return _beside(Settings(**values), base, has_roots="roots" in values), warnings


def load_settings(path: Path) -> tuple[Settings, list[str]]:
    """Settings from a file, with what was wrong with it."""
    document, problem = read_document(path)
    settings, warnings = parse_settings(document, path.resolve().parent)
    return settings, warnings if problem is None else [f"{path.name} {problem}; defaults are used"]


def default_document() -> dict[str, object]:
    """The configuration with every default, as the manifest prints it."""
    return {setting.key: setting.default for setting in SETTINGS}


def json_schema() -> Json:
    """What an editor needs to know of the file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "iii-directory configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            setting.key: {**setting.schema, "description": setting.about, "default": setting.default}
            for setting in SETTINGS
        },
    }


def sample() -> str:
    """A file that changes nothing: every setting commented out, with its default and what it is for."""
    import json

    lines = ["# iii-directory: every setting with its default. Remove the # in front of what you change.", ""]
    for setting in SETTINGS:
        when = "" if setting.hot else " (at the next start)"
        lines += [f"# {setting.about}{when}", f"# {setting.key}: {json.dumps(setting.default)}", ""]
    return "\n".join(lines)


def read_document(path: Path) -> tuple[Json, str | None]:
    """What a file says, or nothing and what is wrong with it. A missing file is an empty one."""
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
    except frontmatter.RefusedError as refused:
        return {}, f"cannot be used: {refused}"


def _unknown(key: str) -> str:
    close = close_names(key, BY_KEY.keys())
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return f"unknown key {quoted(key)} is ignored{hint}"


def _beside(settings: Settings, base: Path, *, has_roots: bool = False) -> Settings:
    """Relative folders lie beside the file; the usual roots count where they exist."""
    local = settings.local_skills_folder
    roots = settings.roots if has_roots else tuple(map(Path, DEFAULT_ROOTS))
    found = tuple(_resolved(base, root) for root in roots)
    return replace(
        settings,
        skills_folder=_resolved(base, settings.skills_folder),
        local_skills_folder=None if local is None else _resolved(base, local),
        roots=found if has_roots else tuple(root for root in found if root.is_dir()),
    )


def _resolved(base: Path, folder: Path) -> Path:
    try:
        return (base / folder).resolve()
    except (OSError, RuntimeError):
        return base / folder


def _path(value: object) -> Path:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _WrongValueError("the path of a folder")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise _WrongValueError("the path of a folder, with a home that exists") from None


def _folder(key: str) -> Callable[[object], dict[str, Any]]:
    return lambda value: {key: _path(value)}


def _folders(key: str) -> Callable[[object], dict[str, Any]]:
    def read(value: object) -> dict[str, Any]:
        if not is_list(value) or len(value) > limits.MAX_ROOTS:
            raise _WrongValueError(f"a list of at most {limits.MAX_ROOTS} folders")
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
            raise _WrongValueError("an http or https address")
        return {key: value.rstrip("/")}

    return read


def _milliseconds(key: str) -> Callable[[object], dict[str, Any]]:
    def read(value: object) -> dict[str, Any]:
        if not is_count(value) or value > limits.MAX_SETTING_MS:
            raise _WrongValueError(f"a number of milliseconds, at most {limits.MAX_SETTING_MS}")
        return {key: value}

    return read


def _flag(key: str) -> Callable[[object], dict[str, Any]]:
    def read(value: object) -> dict[str, Any]:
        # To YAML 1.2 on and off are words; they are meant like true and false.
        if isinstance(value, str) and value.lower() in ("on", "off", "yes", "no", "true", "false"):
            value = value.lower() in ("on", "yes", "true")
        if not isinstance(value, bool):
            raise _WrongValueError("true or false")
        return {key: value}

    return read


def _scopes(value: object) -> dict[str, Any]:
    known = {"skills", "prompts"}
    if not is_text_map(value) or not value.keys() <= known or not all(map(str.strip, value.values())):
        raise _WrongValueError("a mapping with 'skills' and 'prompts'")
    return {f"{name}_scope": scope for name, scope in value.items()}


def _mirrors(value: object) -> dict[str, Any]:
    if not is_text_map(value) or not all((*value, *value.values())):
        raise _WrongValueError("a mapping from URL prefix to URL prefix")
    return {"repo_mirrors": dict(value)}


def _surfaces(value: object) -> dict[str, Any]:
    if value == "all":
        return {"surfaces": SURFACES}
    if not is_text_list(value) or not set(value) <= set(SURFACES):
        raise _WrongValueError(f"'all' or a list of {', '.join(SURFACES)}")
    return {"surfaces": tuple(value)}


def _sections(value: object) -> dict[str, Any]:
    if value not in ("read-only", "all"):
        raise _WrongValueError("'read-only' or 'all'")
    return {"sections": value}


def _variables(value: object) -> dict[str, Any]:
    if not is_text_list(value) or not all(map(str.isidentifier, value)):
        raise _WrongValueError("a list of names of environment variables")
    if TOKEN_VARIABLE in value:
        raise _WrongValueError(f"a list without {TOKEN_VARIABLE}, which is nobody's to read")
    return {"configuration_env": tuple(value)}


_TEXT: Final[Json] = {"type": "string"}
_TEXTS: Final[Json] = {"type": "array", "items": _TEXT}
_TEXT_MAP: Final[Json] = {"type": "object", "additionalProperties": _TEXT}
_BOOLEAN: Final[Json] = {"type": "boolean"}
_MS: Final[Json] = {"type": "integer", "minimum": 0, "maximum": limits.MAX_SETTING_MS}


def _nullable(schema: Json) -> Json:
    return {**schema, "type": [schema["type"], "null"]}


def _time(key: str, default: int, about: str) -> Setting:
    return Setting(key, default, about, _MS, _milliseconds(key))


def _switch(key: str, about: str, *, default: bool = False, hot: bool = True) -> Setting:
    return Setting(key, default, about, _BOOLEAN, _flag(key), hot)


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
    Setting(
        "registry_url",
        DEFAULT_REGISTRY_URL,
        "the workers registry to list and install from",
        _TEXT,
        _url("registry_url"),
    ),
    _time("download_timeout_ms", 60_000, "the deadline of one download, its whole answer included"),
    _time(
        "registry_cache_ttl_ms", 60_000, "how long answers of the registry and the engine count as current"
    ),
    _time("state_timeout_ms", 10_000, "the deadline of a write to the engine's state and of a live section"),
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
        "filter_unregistered", "hide downloaded documents of workers that are not installed", default=True
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
)
BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
