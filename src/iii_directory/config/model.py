"""What an operator can decide, with every default."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iii_directory.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_URL: Final = "ws://127.0.0.1:49134"
DEFAULT_REGISTRY_URL: Final = "https://api.workers.iii.dev"
TOKEN_VARIABLE: Final = "III_TOKEN"  # noqa: S105 (its name, not a token)
SURFACES: Final = ("v0.2", "v0.4", "v0.5", "v0.8")
DEFAULT_ROOTS: Final = (".agents/skills", ".claude/skills")


@dataclass(slots=True)
class Settings:
    """What is in force. ``auto_download`` is None until the kind of engine is known.

    Some may change while the worker runs (`iii_directory.config.table` says which): whoever goes by one asks
    for it when it is used.
    """

    skills_folder: Path = Path("skills")
    local_skills_folder: Path | None = None
    roots: tuple[Path, ...] = ()
    roots_outside: tuple[str, ...] = ()
    """Default roots that are links out of the project; they are not served unless config.yaml names them."""
    user_roots: bool = True
    user_folders: tuple[Path, ...] = ()
    """The user's own folders of skills, served below the roots; none unless ``user_roots`` is on."""
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
    max_written_skills: int = 256
    max_written_bytes: int = 32 * MIB
    configuration_env: tuple[str, ...] = ()
    search_judge: bool = False
    search_semantic: bool = False
