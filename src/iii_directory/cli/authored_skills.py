"""Find the skills below a path to check them, and write the skeleton of a new skill."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.cli.common import fail
from iii_directory.disk.safe_open import RefusedError, regular_below
from iii_directory.documents.facts import FileContent
from iii_directory.documents.ids import OVERVIEW, OVERVIEWS, check_new_skill_id, path_to_id, skill_name_of
from iii_directory.documents.skill_check import CASE_PLACEHOLDER, CASES_FILE, SkillFiles
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Hosts keep skills in these; other hidden folders are not entered.
_HOSTS: Final = frozenset({".agents", ".claude"})
_SKELETON: Final = """---
name: {name}
description: Says in a sentence what {name} does. Use when someone asks for what it does.
---
# {title}

What to do, step by step, for a reader who knows nothing of it.

1. Say what to look at first.
2. Say what to run, and what a good result looks like.
3. Say what to do when it fails.

Keep this page short. What is only needed now and then goes to files of its own beside it (`references/`,
`scripts/`, `assets/`), each linked from here where it is needed.
"""
_CASES: Final = f"""# Requests by which people should find this skill: iii-directory skills eval {{name}}
cases:
  - request: {CASE_PLACEHOLDER} people ask who need {{name}}
    expect: {{name}}
  - request: {CASE_PLACEHOLDER} people ask who need something close to it, but not {{name}}
    expect: nothing
"""


def skills_below(path: str) -> Iterator[tuple[str, SkillFiles]]:
    """Yield every skill at a path or below it, with its folder, sorted; links are not followed.

    A path that is neither a skill nor a folder ends the command.
    """
    if os.path.isfile(path) and os.path.basename(path) in OVERVIEWS:
        path = os.path.dirname(path) or "."
    if not os.path.isdir(path):
        fail(f"{path} is neither a skill nor a folder")
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if _is_entered(name))
        # Below the path, index.md may be the page of anything: only SKILL.md says that a skill is meant.
        if any(name in files for name in (OVERVIEWS if folder == path else OVERVIEWS[:2])):
            yield folder, SkillFiles(os.path.basename(os.path.realpath(folder)), read_contents(folder))


def read_contents(folder: str) -> dict[str, FileContent]:
    """Read every file of a skill; the content of links, devices and unreadable files is empty."""
    root = os.path.realpath(folder)
    files: dict[str, FileContent] = {}
    for below, names, inner in os.walk(root):
        names[:] = sorted(name for name in names if _is_entered(name))
        for name in sorted(inner):
            if not name.startswith("."):
                path = os.path.relpath(os.path.join(below, name), root)
                files[path] = _content(root, path)
    return files


def write_skeleton(skills_folder: str, name: str) -> str:
    """Write a new skill with placeholders to fill in, and return the path of its SKILL.md."""
    if skill_name_of(name) is None:
        fail(
            f"'{name}' is not a valid name for a skill: use lowercase letters, digits and single hyphens,"
            f" {limits.MAX_SKILL_NAME_CHARS} at most"
        )
    try:
        check_new_skill_id(name)
    except DirectoryError as error:
        fail(error.problem)
    if path_to_id(f"{name}/{OVERVIEW}").is_prompt:
        fail(f"in a folder called '{name}' every file is a prompt: choose another name")
    folder = os.path.join(skills_folder, name)
    path = os.path.join(folder, OVERVIEW)
    title = name.replace("-", " ").capitalize()
    try:
        os.makedirs(skills_folder, exist_ok=True)
        os.mkdir(folder)
        os.mkdir(os.path.join(folder, os.path.dirname(CASES_FILE)))
        for inner, text in ((OVERVIEW, _SKELETON), (CASES_FILE, _CASES)):
            with open(os.path.join(folder, inner), "x", encoding="utf-8") as file:
                file.write(text.format(name=name, title=title))
    except FileExistsError:
        fail(f"'{name}' exists already in {skills_folder}")
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")
    return path


def _is_entered(name: str) -> bool:
    return name in _HOSTS or not (name.startswith(".") or name == "node_modules")


def _content(root: str, path: str) -> FileContent:
    try:
        with regular_below(root, path) as file:
            state = os.fstat(file)
            raw = os.read(file, limits.MAX_FACT_FILE_BYTES + 1)
    except (RefusedError, OSError):
        return FileContent(b"", is_whole=False)
    is_executable = bool(state.st_mode & stat.S_IXUSR)
    return FileContent(
        raw[: limits.MAX_FACT_FILE_BYTES], is_executable, len(raw) <= limits.MAX_FACT_FILE_BYTES
    )
