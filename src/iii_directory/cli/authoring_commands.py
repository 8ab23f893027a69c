"""``iii-directory skills check``, ``skills new`` and ``skills eval``: for authors. No engine needed."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from iii_directory import limits
from iii_directory.cli.common import EXIT_CODES, config_option, fail, folder_options, settings_from
from iii_directory.cli.output import note, print_json, print_table
from iii_directory.documents.facts import FileContent
from iii_directory.documents.ids import OVERVIEW, OVERVIEWS, check_new_skill_id, path_to_id, skill_name_of
from iii_directory.documents.skill_check import CASE_PLACEHOLDER, CASES_FILE, SkillFiles
from iii_directory.errors import DirectoryError
from iii_directory.text import counted, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from iii_directory.documents.skill_check import Objection


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


@click.command(
    help="Check skills against the Agent Skills standard and the hosts that load them: the skills at PATH, "
    "or every skill of the skills folder. Only what the standard forbids fails the command.",
    epilog=f"{EXIT_CODES} Here 1 also means that something is forbidden.",
)
@click.argument("paths", metavar="[PATH…]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the objections as JSON.")
@config_option
@folder_options
def check(paths: tuple[Path, ...], as_json: bool, config_path: Path) -> None:
    from iii_directory.documents.skill_check import check as objections_to

    if not paths:
        paths = (settings_from(config_path).skills_folder,)
    found = {folder: objections_to(skill) for path in paths for folder, skill in skills_below(str(path))}
    if not found:
        fail(f"{', '.join(map(str, paths))} has no skill: a skill is a folder with a SKILL.md")
    rows = [(folder, objection) for folder, objections in found.items() for objection in objections]
    if as_json:
        print_json({"skills": len(found), "objections": [{"skill": f, **asdict(o)} for f, o in rows]})
    elif rows:
        print_table(("file", "objection", "fix"), list(_shown(found)), whole=True)
    forbidden = sum(objection.forbidden for _, objection in rows)
    if not as_json:
        note(f"{counted(len(found), 'skill')}, {counted(len(rows), 'objection')}, {forbidden} forbidden")
    raise SystemExit(1 if forbidden else 0)


@click.command(
    help="Create a new skill in the skills folder, with example requests for skills eval. skills check "
    "objects until its placeholders are replaced."
)
@click.argument("name")
@config_option
@folder_options
def new(name: str, config_path: Path) -> None:
    skills_folder = settings_from(config_path).skills_folder
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
    path = skills_folder / name / OVERVIEW
    try:
        skills_folder.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir()
        for file, text in ((path, _SKELETON), (path.parent / CASES_FILE, _CASES)):
            file.parent.mkdir(exist_ok=True)
            written = text.format(name=name, title=name.replace("-", " ").capitalize())
            file.write_text(written, encoding="utf-8")
    except FileExistsError:
        fail(f"'{name}' exists already in {skills_folder}")
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")
    note(f"wrote {path}: fill it in, then run iii-directory skills check")


@click.command(
    "eval",
    help="Search as agents would, and say at which rank each expected skill is found. The file has a list "
    "called cases; each case has a request and what to expect: the id of a skill (NAME by default) or the "
    f"word nothing. By default the file is {CASES_FILE} of the skill NAME, or of the skills folder.",
    epilog=f"{EXIT_CODES} Here 1 also means that an expected skill was not found.",
)
@click.argument("name", required=False)
@click.argument("cases_path", metavar="[CASES.yaml]", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as JSON.")
@config_option
@folder_options
def evaluate(name: str | None, cases_path: Path | None, as_json: bool, config_path: Path) -> None:
    if name is not None and cases_path is None and name.endswith((".yaml", ".yml")):
        name, cases_path = None, Path(name)
    settings = settings_from(config_path)
    chosen = cases_path or settings.skills_folder / (name or "") / CASES_FILE
    if not chosen.is_file():
        fail(f"{chosen} does not exist; write a list called cases, each with a request and the id to expect")
    from iii_directory.cli.source import data_folder, loaded
    from iii_directory.config import read_document
    from iii_directory.search.kept_index import library_of
    from iii_directory.search.library import NOTHING, collisions, confusions, judge, parse_cases

    document, problem = read_document(chosen)
    cases = parse_cases(document, name) if problem is None else problem
    if isinstance(cases, str):
        fail(f"{chosen.name}: {cases}")
    with loaded(settings) as look:
        library = library_of(look, data_folder(settings))
    outcomes = [judge(library, case) for case in cases]
    expected = dict.fromkeys(case.expect for case in cases if case.expect != NOTHING)
    colliding = collisions(library, [name] if name else list(expected))
    confused = confusions(outcomes)
    missed = [outcome for outcome in outcomes if not outcome.passed]
    if as_json:
        judged = [
            {**o.case._asdict(), "passed": o.passed, "rank": o.rank, "first": o.winner, "why": o.why}
            for o in outcomes
        ]
        others = {
            "confusions": [c._asdict() for c in confused],
            "collisions": [c._asdict() for c in colliding],
        }
        print_json({"cases": judged, **others})
    else:
        print_table(
            ("request", "expected", "rank", "first", "why"),
            [(o.case.request, o.case.expect, str(o.rank or "-"), o.winner, o.why) for o in outcomes],
            whole=True,
        )
        for one in confused:
            requests = ", ".join(map(quoted, one.requests))
            note(f"{one.returned} was returned instead of {one.expected} for {requests}")
        for collision in colliding:
            note(f"the description of {collision.skill} is also that of {collision.other}: {collision.why}")
        note(f"{len(outcomes) - len(missed)} of {len(outcomes)} found")
    raise SystemExit(1 if missed else 0)


COMMANDS = (check, new, evaluate)


def _shown(found: Mapping[str, Sequence[Objection]]) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of each skill: below its name on a terminal, each with its whole path in a pipe."""
    is_grouped = sys.stdout.isatty()
    for folder, objections in found.items():
        below = os.path.relpath(folder)
        if is_grouped and objections:
            yield below, "", ""
        for one in objections:
            yield f"  {one.path}" if is_grouped else os.path.join(below, one.path), one.words, one.fix


# Finding skills


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
            yield folder, SkillFiles(os.path.basename(os.path.realpath(folder)), _contents(folder))


def _contents(folder: str) -> dict[str, FileContent]:
    """Read every file of a skill; the content of links, devices and unreadable files is empty."""
    from iii_directory.disk.safe_open import RefusedError, regular_below

    root, most = os.path.realpath(folder), limits.MAX_FACT_FILE_BYTES
    files: dict[str, FileContent] = {}
    for below, names, inner in os.walk(root):
        names[:] = sorted(name for name in names if _is_entered(name))
        for name in sorted(inner):
            if not name.startswith("."):
                path = os.path.relpath(os.path.join(below, name), root)
                try:
                    with regular_below(root, path) as file:
                        state = os.fstat(file)
                        raw = os.read(file, most + 1)
                    is_executable = bool(state.st_mode & stat.S_IXUSR)
                    files[path] = FileContent(raw[:most], is_executable, len(raw) <= most)
                except (RefusedError, OSError):
                    files[path] = FileContent(b"", is_whole=False)
    return files


def _is_entered(name: str) -> bool:
    return name in _HOSTS or not (name.startswith(".") or name == "node_modules")
