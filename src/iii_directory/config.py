"""Settings: one frozen value, read once from ``config.yaml``.

A missing or broken file, an unknown key or a wrong value is a warning and the default, never a failed start.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEFAULT_URL: Final = "ws://127.0.0.1:49134"
DEFAULT_REGISTRY_URL: Final = "https://api.workers.iii.dev"
SURFACES: Final = ("v0.2", "v0.4", "v0.5", "v0.8")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator can decide. ``auto_download`` is None until the kind of engine is known."""

    skills_folder: Path = Path("skills")
    local_skills_folder: Path | None = None
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
    section_guard: bool = True
    surfaces: tuple[str, ...] = SURFACES


class _WrongValueError(Exception):
    """A value that does not fit its key; the text says what was expected."""


def parse_settings(document: object, base: Path) -> tuple[Settings, list[str]]:
    """Settings from a parsed YAML document; relative folders are taken from ``base``."""
    warnings: list[str] = []
    values: dict[str, Any] = {}
    if document is None:
        document = {}
    if not isinstance(document, dict):
        return _with_base(Settings(), base), ["the configuration is not a mapping; defaults are used"]
    for key, value in cast("dict[object, object]", document).items():
        parser = _PARSERS.get(str(key))
        if parser is None:
            warnings.append(f"unknown key '{key}' is ignored")
            continue
        if value is None:
            continue
        try:
            values.update(parser(str(key), value, base))
        except _WrongValueError as wrong:
            warnings.append(f"'{key}' must be {wrong}; the default is used")
    if "skills_folder" not in values:
        values["skills_folder"] = (base / "skills").resolve()
    return Settings(**values), warnings


def load_settings(path: Path) -> tuple[Settings, list[str]]:
    """Settings from a file, with what was wrong with it."""
    base = path.resolve().parent
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return _with_base(Settings(), base), []
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return _with_base(Settings(), base), [f"{path.name} cannot be read ({reason}); defaults are used"]
    import yaml

    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        return _with_base(Settings(), base), [f"{path.name} is not valid YAML{where}; defaults are used"]
    return parse_settings(document, base)


def default_document() -> dict[str, object]:
    """The configuration with every default, as the manifest prints it."""
    return {
        "skills_folder": "./skills",
        "local_skills_folder": None,
        "registry_url": DEFAULT_REGISTRY_URL,
        "download_timeout_ms": 60_000,
        "registry_cache_ttl_ms": 60_000,
        "state_timeout_ms": 10_000,
        "scopes": {"skills": "skills", "prompts": "prompts"},
        "auto_download": True,
        "filter_unregistered": True,
        "repo_mirrors": {},
        "allow_file_repos": False,
        "section_guard": True,
        "surfaces": list(SURFACES),
    }


def _with_base(settings: Settings, base: Path) -> Settings:
    return replace(settings, skills_folder=(base / "skills").resolve())


def _folder(key: str, value: object, base: Path) -> dict[str, Any]:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _WrongValueError("the path of a folder")
    try:
        return {key: (base / Path(value).expanduser()).resolve()}
    except (OSError, RuntimeError) as error:
        raise _WrongValueError("the path of a folder") from error


def _url(key: str, value: object, base: Path) -> dict[str, Any]:  # noqa: ARG001
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        raise _WrongValueError("an http or https address")
    return {key: value.rstrip("/")}


def _milliseconds(key: str, value: object, base: Path) -> dict[str, Any]:  # noqa: ARG001
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _WrongValueError("a number of milliseconds")
    return {key: value}


def _flag(key: str, value: object, base: Path) -> dict[str, Any]:  # noqa: ARG001
    # YAML 1.1 reads on/off as booleans, but quoted they are strings; both are meant the same way.
    if isinstance(value, str) and value.lower() in ("on", "off", "true", "false"):
        value = value.lower() in ("on", "true")
    if not isinstance(value, bool):
        raise _WrongValueError("true or false")
    return {key: value}


def _scopes(key: str, value: object, base: Path) -> dict[str, Any]:  # noqa: ARG001
    if not isinstance(value, dict):
        raise _WrongValueError("a mapping with 'skills' and 'prompts'")
    found: dict[str, Any] = {}
    for name, scope in cast("dict[object, object]", value).items():
        if name not in ("skills", "prompts") or not isinstance(scope, str) or not scope.strip():
            raise _WrongValueError("a mapping with 'skills' and 'prompts'")
        found[f"{name}_scope"] = scope
    return found


def _mirrors(key: str, value: object, base: Path) -> dict[str, Any]:  # noqa: ARG001
    if not isinstance(value, dict):
        raise _WrongValueError("a mapping from URL prefix to URL prefix")
    pairs = cast("dict[object, object]", value)
    if not all(isinstance(k, str) and isinstance(v, str) and k and v for k, v in pairs.items()):
        raise _WrongValueError("a mapping from URL prefix to URL prefix")
    return {key: dict(pairs)}


def _surface_list(key: str, value: object, base: Path) -> dict[str, Any]:  # noqa: ARG001
    if value == "all":
        return {key: SURFACES}
    if not isinstance(value, list):
        raise _WrongValueError(f"'all' or a list of {', '.join(SURFACES)}")
    names = tuple(str(item) for item in cast("list[object]", value))
    if not set(names) <= set(SURFACES):
        raise _WrongValueError(f"'all' or a list of {', '.join(SURFACES)}")
    return {key: names}


_PARSERS: Final[Mapping[str, Callable[[str, object, Path], dict[str, Any]]]] = {
    "skills_folder": _folder,
    "local_skills_folder": _folder,
    "registry_url": _url,
    "download_timeout_ms": _milliseconds,
    "registry_cache_ttl_ms": _milliseconds,
    "state_timeout_ms": _milliseconds,
    "scopes": _scopes,
    "auto_download": _flag,
    "filter_unregistered": _flag,
    "repo_mirrors": _mirrors,
    "allow_file_repos": _flag,
    "section_guard": _flag,
    "surfaces": _surface_list,
}
