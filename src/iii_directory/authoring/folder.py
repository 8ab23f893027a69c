"""Skills as an author has them on disk: found below a path to be checked, and written anew to start from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.authoring.check import SkillFiles
from iii_directory.disk.safe_open import RefusedError, read_below
from iii_directory.documents.ids import OVERVIEW, OVERVIEWS, skill_name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where the hosts keep skills, although hidden folders are nobody's business else.
_HOSTS: Final = frozenset({".agents", ".claude"})
_SKELETON: Final = """---
name: {name}
description: Says in a sentence what {name} does. Use when somebody asks for what it does.
---
# {title}

What to do, step by step, for a reader who knows nothing of it.

1. Say what to look at first.
2. Say what to run, and what a good result looks like.
3. Say what to do when it fails.

Keep this page short. What is only needed now and then goes to files of its own beside it (`references/`,
`scripts/`, `assets/`), each linked from here where it is needed.
"""


class AuthoringError(Exception):
    """Something the author asked for cannot be done; the text says why."""


def skills_below(path: str) -> Iterator[tuple[str, SkillFiles]]:
    """Every skill at a path or below it, with the folder it lies in, sorted; links are not followed."""
    if os.path.isfile(path) and os.path.basename(path) in OVERVIEWS:
        path = os.path.dirname(path) or "."
    if not os.path.isdir(path):
        raise AuthoringError(f"there is no skill and no folder at {path}")
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if _is_entered(name))
        if not any(name in OVERVIEWS for name in files):
            continue
        yield folder, read_skill(folder)


def read_skill(folder: str) -> SkillFiles:
    """A skill with all its files, the texts of those that are markdown."""
    root = os.path.realpath(folder)
    files: dict[str, str | None] = {}
    for below, names, inner in os.walk(root):
        names[:] = sorted(name for name in names if _is_entered(name))
        for name in sorted(inner):
            if not name.startswith("."):
                path = os.path.relpath(os.path.join(below, name), root)
                files[path] = _text(root, path) if name.lower().endswith(".md") else None
    return SkillFiles(os.path.basename(root), files)


def write_skeleton(skills_folder: str, name: str) -> str:
    """Write a new skill that passes the check; gives the path of its SKILL.md."""
    if skill_name_of(name) is None:
        raise AuthoringError(
            f"'{name}' is no name for a skill: use lowercase letters, digits and single hyphens,"
            f" {limits.MAX_SKILL_NAME_CHARS} at most"
        )
    folder = os.path.join(skills_folder, name)
    path = os.path.join(folder, OVERVIEW)
    text = _SKELETON.format(name=name, title=name.replace("-", " ").capitalize())
    try:
        os.makedirs(skills_folder, exist_ok=True)
        os.mkdir(folder)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise AuthoringError(f"there is something called '{name}' in {skills_folder} already") from None
    except OSError as error:
        raise AuthoringError(f"{path} cannot be written: {error.strerror}") from None
    return path


def _is_entered(name: str) -> bool:
    return name in _HOSTS or not (name.startswith(".") or name == "node_modules")


def _text(root: str, path: str) -> str | None:
    try:
        return read_below(root, path, limits.MAX_BODY_BYTES).decode("utf-8")
    except (RefusedError, UnicodeDecodeError):
        return None
