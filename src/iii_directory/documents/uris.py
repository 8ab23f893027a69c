"""Parse addresses: ``iii://`` for the index, a skill or a section, ``skill://`` for a file. Pure.

Schemes are case-sensitive. ``iii://`` addresses are not percent-decoded, so each document has one spelling;
``skill://`` follows SEP-2640, in which file names are percent-encoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import unquote

from iii_directory import errors
from iii_directory.documents.ids import RESERVED_IDS, check_skill_id, segments_problem
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_FETCH_URIS
from iii_directory.shapes import object_of
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.documents.model import Skill

SCHEME: Final = "iii://"
SKILL_SCHEME: Final = "skill://"
"""The scheme of files of skills (SEP-2640), followed by a path below the skills folder."""
READ_ONLY: Final = "read-only"
"""The value of ``sections`` in the configuration, in calls, and in the metadata of ``skill::fetch``."""
WRITING: Final = "allow_writing"
"""The metadata key under which functions that write skills say whether the operator allows it."""
UNREADABLE: Final = "unreadable"
"""The field in which a bridge asks ``skill::fetch`` to name files that are not text, instead of failing."""
LOCAL: Final = "local"
"""The field in which a bridge shows the secret of a directory of its own user, to be told paths."""
LOOKING: Final = "looking"
"""The field with which the web page says that a person looks; usage counts agents only."""
INSTANCE: Final = "instance"
INSTANCE_FUNCTION: Final = "directory::skills::files"
"""The metadata of this function, which every directory has, names the process that answers."""
SKILL_TEMPLATE: Final = f"{SCHEME}{{skill_id}}"
SECTION_TEMPLATE: Final = f"{SCHEME}fn/{{function_path}}"
"""The two URI templates (RFC 6570) offered to MCP clients."""

# Functions that documents must not call: infrastructure, bridges, and the functions of this worker.
GUARDED_PREFIXES: Final = (
    "engine::",
    "state::",
    "stream::",
    "iii.",
    "iii::",
    "mcp::",
    "a2a::",
    "skills::",
    "prompts::",
    "configuration::",
    "worker::",
    "compose::",
)
# The engine's one function without a namespace: it sends the caller's data to every subscriber of a topic.
_PUBLISH: Final = "publish"
# Functions of the directory that change the skills folder; MCP offers them as tools that say so.
_WRITERS: Final = tuple(f"directory::skills::{name}" for name in ("create", "update", "delete", "download"))


@dataclass(frozen=True, slots=True)
class IndexUri:
    """The tree index of every skill."""


@dataclass(frozen=True, slots=True)
class SkillUri:
    """The body of a skill."""

    id: str


@dataclass(frozen=True, slots=True)
class SectionUri:
    """The result of a function called with ``{}``."""

    function_id: str


@dataclass(frozen=True, slots=True)
class FileUri:
    """A file of a skill, as it is on disk."""

    path: str


Uri = IndexUri | SkillUri | SectionUri | FileUri


def parse_uri(uri: str) -> Uri:
    """Parse an address without checking whether the document exists."""
    if uri.startswith(SKILL_SCHEME):
        return FileUri(skill_path(uri))
    if not uri.startswith(SCHEME):
        raise DirectoryError(errors.BAD_SKILL_ID, f"the address {quoted(uri)} does not start with {SCHEME}")
    path = uri.removeprefix(SCHEME)
    if path in RESERVED_IDS:
        return IndexUri()
    if path in ("fn", "fn/"):
        problem = f"{quoted(uri)} is missing a function path, as in {SCHEME}fn/worker/function"
        raise DirectoryError(errors.BAD_SKILL_ID, problem)
    if "::" in path:
        # An address of the first generation, which named a function id.
        start = path.rfind("/", 0, path.index("::")) + 1
        function_path = path[start:].replace("::", "/")
        problem = f"skill {quoted(uri)} not found: it names a function"
        if segments_problem(function_path, "function path") is None:
            problem += f", which is linked as {SCHEME}fn/{function_path}"
        raise DirectoryError(errors.FUNCTION_ID_AS_SKILL, problem)
    if path.startswith("fn/"):
        function_path = path.removeprefix("fn/")
        bad = segments_problem(function_path, "function path")
        if bad is not None:
            raise DirectoryError(errors.BAD_SKILL_ID, bad)
        return SectionUri(function_path.replace("/", "::"))
    check_skill_id(path)
    return SkillUri(path)


def skill_path(uri: str) -> str:
    """Return the path in a ``skill://`` address, percent-encoded or not."""
    path = unquote(uri.removeprefix(SKILL_SCHEME), errors="surrogateescape")
    if not path or any(part in ("", ".", "..") for part in path.split("/")):
        problem = f"the address {quoted(uri)} does not name a file; write it like skill://pdf/SKILL.md"
        raise DirectoryError(errors.BAD_SKILL_ID, problem)
    return path


def fetch_uris(uri: str | None, uris: Iterable[str] | None) -> list[str]:
    """Return the addresses of one fetch, each with its scheme; ``uris`` wins over ``uri``."""
    asked = list(uris or ()) or [uri or ""]
    if len(asked) > MAX_FETCH_URIS:
        problem = f"field 'uris' must be a list of at most {MAX_FETCH_URIS} addresses, not {len(asked)}"
        raise DirectoryError(errors.INVALID_FIELD, problem)
    found: list[str] = []
    for address in filter(None, map(str.strip, asked)):
        if address.startswith((SCHEME, SKILL_SCHEME)):
            found.append(address)
        elif "://" in address:
            problem = f"the address {quoted(address)} does not start with {SCHEME}"
            raise DirectoryError(errors.BAD_SKILL_ID, problem)
        else:
            found.append(SCHEME + address)
    if not found:
        problem = "Provide uri or uris: at least one address, such as iii://skills, that is not blank"
        raise DirectoryError(errors.BAD_SKILL_ID, problem)
    return found


def is_guarded(function_id: str) -> bool:
    """Return whether a function belongs to the engine or another internal namespace."""
    name = function_id.strip()
    return name == _PUBLISH or name.startswith(GUARDED_PREFIXES)


def check_unguarded(function_id: str, used_as: Literal["section", "prompt"]) -> None:
    """Refuse a function that a document or a prompt must not reach."""
    if is_guarded(function_id) or function_id.strip().startswith(_WRITERS):
        problem = f"function {quoted(function_id)} is in an internal namespace and cannot back a {used_as}"
        raise DirectoryError(errors.GUARDED, problem)


def says_it_only_reads(metadata: object) -> bool:
    """Return whether the metadata of a function has MCP's ``readOnlyHint``."""
    known = object_of(metadata)
    places = (known, object_of(known.get("annotations")), object_of(known.get("mcp")))
    return any(place.get("readOnlyHint") is True for place in places)


def address_of(key: str, skill: Skill) -> str | None:
    """Return the URI of a skill shown as ``key``.

    Where the index has that address, the URI has the full id; None if the index has that one as well.
    """
    if key not in RESERVED_IDS:
        return SCHEME + key
    return None if skill.id in RESERVED_IDS else SCHEME + skill.id
