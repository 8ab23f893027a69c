"""Check skill ids, prompt names and names from outside that become names on disk. Pure.

A path of a bundle is taken apart once, here; what passes is safe to create below a namespace on every
system the folder may be copied to. Nothing is repaired: a name that is not right is refused.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from iii_directory import limits
from iii_directory.errors import BAD_PROMPT, BAD_SKILL_ID, DirectoryError, refused
from iii_directory.limits import MAX_ID_BYTES, MAX_SEGMENT_CHARS, MAX_SKILL_NAME_CHARS
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

# The tree index is served at these addresses, so a skill of such an id has no URI.
RESERVED_IDS: Final = frozenset({"skills", "directory/skills"})
INDEX_SUFFIX: Final = "/index"
OVERVIEW: Final = "SKILL.md"
"""The name of the file that stands for a skill in the Agent Skills standard."""
OVERVIEWS: Final = (OVERVIEW, "SKILLS.md", "index.md")
"""The names of files that stand for their folder; of several in one folder the first counts."""
# Documents about the engine and this worker come only from the operator's folder or this package.
RESERVED_NAMESPACES: Final = frozenset({"iii", "iii-directory"})
# Readers mean the index of all skills by these, and `skills/x` as a path in a repository.
_INDEX_NAMESPACES: Final = frozenset({"skills", "index"})
_WINDOWS_DEVICE: Final = re.compile(r"con|prn|aux|nul|(?:com|lpt)[0-9]")

_SEGMENT: Final = re.compile(rf"[a-z0-9_-]{{1,{MAX_SEGMENT_CHARS}}}")
_SKILL_PATH: Final = re.compile(rf"(?!fn[/.])(?:{_SEGMENT.pattern}/)*(?:{_SEGMENT.pattern}|SKILLS?)\.md")
_SKILL_NAME: Final = re.compile(rf"(?!.{{{MAX_SKILL_NAME_CHARS + 1}}})[a-z0-9]+(?:-[a-z0-9]+)*")
_ALLOWED: Final = "use lowercase letters, digits, '-' and '_'"


class PathMeaning(NamedTuple):
    """The document that a path in the folder stands for; with a ``problem`` it stands for none."""

    key: str
    """The skill id, or the default name of a prompt."""
    is_prompt: bool = False
    problem: str | None = None


def segments_problem(text: str, what: str) -> str | None:
    """Return why ``text`` is not segments joined by ``/``, or None if it is."""
    if len(text) > MAX_ID_BYTES:
        return f"the {what} is too long: at most {MAX_ID_BYTES} bytes"
    for segment in text.split("/"):
        if not segment:
            return f"the {what} {quoted(text)} has an empty segment"
        if not _SEGMENT.fullmatch(segment):
            return _segment_problem(segment, what)
    return None


def skill_id_problem(skill_id: str) -> str | None:
    """Return why a skill cannot have this id, or None if it can."""
    if not skill_id.strip():
        return "id must be non-empty"
    problem = segments_problem(skill_id, "id")
    if problem is None and (skill_id == "fn" or skill_id.startswith("fn/")):
        return f"the id {quoted(skill_id)} is reserved: 'fn' as first segment marks a function"
    return problem


def check_skill_id(skill_id: str) -> None:
    """Refuse an id that breaks the grammar."""
    problem = skill_id_problem(skill_id)
    if problem is not None:
        raise DirectoryError(BAD_SKILL_ID, problem)


def check_registered_id(skill_id: str) -> None:
    """Refuse an id that breaks the grammar, or that readers would take for the index or for this worker."""
    check_skill_id(skill_id)
    namespace = namespace_of(skill_id)
    if namespace in RESERVED_NAMESPACES:
        reason = f"'{namespace}' speaks for itself"
    elif namespace in _INDEX_NAMESPACES or bare_id(skill_id) in RESERVED_IDS:
        reason = f"iii://{bare_id(skill_id)} leads to the index of all skills"
    else:
        return
    raise DirectoryError(BAD_SKILL_ID, f"the id '{skill_id}' is reserved: {reason}")


def check_new_skill_id(skill_id: str) -> None:
    """Refuse an id that `check_registered_id` refuses, or that has a name which Windows cannot store."""
    check_registered_id(skill_id)
    for name in skill_id.split("/"):
        if _WINDOWS_DEVICE.fullmatch(name):
            reason = f"Windows cannot store a file called '{name}'"
            raise DirectoryError(BAD_SKILL_ID, f"the id '{skill_id}' is reserved: {reason}")


def new_namespace_problem(namespace: str) -> str | None:
    """Return why nothing new may be installed or written in this namespace, or None if it may."""
    if namespace in _INDEX_NAMESPACES:
        return f"'{namespace}' stands for the index of all skills"
    if namespace.startswith("-"):
        return "programs take a name that begins with '-' for an option"
    return None if _WINDOWS_DEVICE.fullmatch(namespace) is None else f"Windows cannot store '{namespace}'"


def prompt_name_problem(name: str) -> str | None:
    """Return why a prompt cannot have this name, or None if it can."""
    if not name.strip():
        return "name must be non-empty"
    return None if _SEGMENT.fullmatch(name) else _segment_problem(name, "name")


def check_prompt_name(name: str) -> None:
    """Refuse a name that breaks the grammar."""
    problem = prompt_name_problem(name)
    if problem is not None:
        raise DirectoryError(BAD_PROMPT, problem)


def skill_name_of(value: object) -> str | None:
    """Return a valid skill name of the Agent Skills standard, or None for any other value."""
    return value if isinstance(value, str) and _SKILL_NAME.fullmatch(value) else None


def path_to_id(path: str) -> PathMeaning:
    """Return the skill or prompt that a path below the folder (``/`` between its parts) stands for."""
    if "/prompts/" in path or path.startswith("prompts/"):
        return PathMeaning(path[path.rfind("/") + 1 : -3], is_prompt=True, problem=_file_problem(path))
    # One match settles almost every file of a first scan; the other checks only find out what is wrong.
    is_right = len(path) <= MAX_ID_BYTES and _SKILL_PATH.fullmatch(path) is not None
    problem = None if is_right else _file_problem(path)
    if problem is not None:
        return PathMeaning("", problem=problem)
    skill_id = path[: path.rfind("SKILL")] + "index" if path.endswith(OVERVIEWS[:2]) else path[:-3]
    return PathMeaning(skill_id, problem=None if is_right else skill_id_problem(skill_id))


def bare_id(skill_id: str) -> str:
    """Strip a trailing ``/index`` from an id."""
    return skill_id.removesuffix(INDEX_SUFFIX)


def namespace_of(skill_id: str) -> str:
    """Return the first segment of an id, which names the worker that a skill belongs to."""
    return skill_id.partition("/")[0]


def _file_problem(path: str) -> str | None:
    if path.startswith(".") or "/." in path:
        return "it is hidden: its name, or that of a folder above it, starts with a dot"
    if not path.endswith(".md"):
        return "it is not a .md file"
    return None


def _segment_problem(segment: str, what: str) -> str:
    if len(segment) > MAX_SEGMENT_CHARS:
        return f"a segment of the {what} is too long: at most {MAX_SEGMENT_CHARS} characters"
    return f"the {what} has {quoted(segment)} in it: {_ALLOWED}"


# Names on disk


MERGE_SUFFIX: Final = ".merge"
"""Ends the name of the file with both sides of a merge that has conflicts; it is never served."""
COPY_MARKER: Final = ".iii-directory-copy.json"
"""The file in a copy of a skill that says where it was copied from; it is never served."""
FileKind = Literal["skill", "prompt", "file"]

# Device names of Windows, with or without an extension, in any case.
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?", re.IGNORECASE)
# An encoded dot, slash, backslash or NUL: harmless here, but not to a program that decodes a listing.
_ENCODED: Final = re.compile(r"%(2e|2f|5c|00)", re.IGNORECASE)


def is_namespace(name: str) -> bool:
    """Return whether a folder of this name can hold skills: one segment, and not the one URIs reserve."""
    return "/" not in name and skill_id_problem(name) is None


def kind_of(namespace: str, path: str) -> FileKind:
    """Return what a file is to the catalogue; markdown without a valid skill id is a plain file."""
    place = path_to_id(f"{namespace}/{path}")
    if place.problem is not None:
        return "file"
    return "prompt" if place.is_prompt else "skill"


def is_hidden(path: str) -> bool:
    """Return whether the path or a folder on the way to it starts with a dot."""
    return any(part.startswith(".") for part in path.split("/"))


def vet_path(path: str) -> None:
    """Raise unless every component of a bundle's path is safe to create."""
    if not path or path.startswith("/"):
        raise refused(f"the path {quoted(path)} is not relative to its bundle")
    # Neither control nor format characters (bidi marks, zero width), lone surrogates or odd spaces.
    if not path.isprintable():
        raise refused(f"the path {quoted(path)} holds characters that cannot be seen")
    if "\\" in path or ":" in path or _ENCODED.search(path):
        raise refused(f"the path {quoted(path)} holds a backslash, a colon or an encoded separator")
    parts = path.split("/")
    if len(parts) > limits.MAX_BUNDLE_DEPTH or len(path.encode()) > limits.MAX_BUNDLE_PATH_BYTES:
        raise refused(f"the path {quoted(path)} is too long")
    for part in parts:
        if part in ("", ".", ".."):
            raise refused(f"the path {quoted(path)} is not a plain relative path")
        if part[-1] in ". ":
            raise refused(f"the path {quoted(path)} has a name that ends with a dot or a space")
        if _DEVICE.fullmatch(part):
            raise refused(f"the path {quoted(path)} has a name that Windows reserves")
        if len(part.encode()) > limits.MAX_FILE_NAME_BYTES:
            raise refused(f"the path {quoted(path)} has a name that is too long")


def is_safe_path(path: str) -> bool:
    """Return whether `vet_path` lets the path pass."""
    try:
        vet_path(path)
    except DirectoryError:
        return False
    return True


def vet_together(paths: Iterable[str]) -> None:
    """Raise when two paths would meet on some disk: equal, equal but for case or form, or file and folder."""
    spelled: dict[str, str] = {}
    files: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        if path in files:
            raise refused(f"the path {quoted(path)} comes twice")
        files.add(path)
        above = folders_above(path)
        for prefix in (*above, path):
            # What a file system without case, or one that normalises, may take two spellings for.
            folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKD", prefix).casefold())
            other = spelled.setdefault(folded, prefix)
            if other != prefix:
                raise refused(f"the paths {quoted(other)} and {quoted(prefix)} differ only in case or form")
        folders.update(above)
    clash = files & folders
    if clash:
        raise refused(f"the path {quoted(min(clash))} is both a file and a folder")


def folders_above(path: str) -> list[str]:
    """List the folders that a path lies in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]
