"""``iii-directory skills check``, ``skills new`` and ``skills eval``: for authors. No engine needed."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import EXIT_CODES, config_option, fail, folder_options, settings_from
from iii_directory.cli.output import counted, note, print_json, print_table
from iii_directory.documents.skill_check import CASES_FILE
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from iii_directory.config import Settings
    from iii_directory.documents.skill_check import Objection
    from iii_directory.search.library import Case, Collision, Outcome


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
    from iii_directory.cli.authored_skills import skills_below
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
    "objects until its placeholders are replaced.",
)
@click.argument("name")
@config_option
@folder_options
def new(name: str, config_path: Path) -> None:
    from iii_directory.cli.authored_skills import write_skeleton

    path = write_skeleton(str(settings_from(config_path).skills_folder), name)
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
    outcomes, colliding = _evaluated(settings, name, _cases(settings, name, cases_path))
    from iii_directory.search.library import confusions

    confused = confusions(outcomes)
    missed = [outcome for outcome in outcomes if not outcome.passed]
    if as_json:
        print_json(
            {
                "cases": [
                    {
                        **one.case._asdict(),
                        "passed": one.passed,
                        "rank": one.rank,
                        "first": one.winner,
                        "why": one.why,
                    }
                    for one in outcomes
                ],
                "confusions": [one._asdict() for one in confused],
                "collisions": [c._asdict() for c in colliding],
            }
        )
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


def _cases(settings: Settings, name: str | None, path: Path | None) -> list[Case]:
    from iii_directory.config import read_document
    from iii_directory.search.library import parse_cases

    chosen = path or settings.skills_folder / (name or "") / CASES_FILE
    if not chosen.is_file():
        fail(f"{chosen} does not exist; write a list called cases, each with a request and the id to expect")
    document, problem = read_document(chosen)
    cases = parse_cases(document, name) if problem is None else problem
    if isinstance(cases, str):
        fail(f"{chosen.name}: {cases}")
    return cases


def _evaluated(
    settings: Settings, name: str | None, cases: list[Case]
) -> tuple[list[Outcome], list[Collision]]:
    from iii_directory.cli.source import data_folder, loaded
    from iii_directory.search.kept_index import library_of
    from iii_directory.search.library import NOTHING, collisions, judge

    with loaded(settings) as look:
        library = library_of(look, data_folder(settings))
    expected = dict.fromkeys(case.expect for case in cases if case.expect != NOTHING)
    return [judge(library, case) for case in cases], collisions(library, [name] if name else list(expected))
