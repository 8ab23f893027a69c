"""``iii-directory doctor``: report what the directory left out, why, and what to do about it."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from iii_directory.catalog.diagnostics import finding_of, grouped
from iii_directory.cli.common import engine_url, is_named, listens, program
from iii_directory.cli.interpreter import interpreter_warning
from iii_directory.cli.output import note, print_json, print_rows, print_text
from iii_directory.cli.source import answer, reading_options
from iii_directory.config import load_settings, real_path
from iii_directory.documents.skill_check import CHECKED
from iii_directory.text import counted, escaped, shown_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from iii_directory.cli.source import Where
    from iii_directory.config import Settings

# Packages that another program may have replaced by an older version, and the version needed here.
_PACKAGES: Final = {"mcp": (2, 3), "websockets": (16, 0)}
_COLUMNS: Final = ("kind", "subject", "reason", "fix")
_OF_FIRST: Final = ("kind", "reason", "fix")
_CODES: Final = (
    "Exit codes: 0 nothing needs attention; 1 something does, or it failed, and then stdout is empty and one "
    "sentence on stderr says why; 2 wrong usage."
)


@click.command(
    help="Report what was left out or looks wrong: a broken configuration, a missing folder, program or "
    "package, skipped files, shadowed ids, broken front matter and the like, each with its reason and what "
    "to do. Findings that need no attention, such as those about the assets of a skill, do not change the "
    "exit code. On a terminal similar findings share a row; in a pipe and in JSON each has its own. The "
    "objections of skills check are one row; JSON has each.",
    epilog=_CODES,
)
@click.option(
    "--why",
    metavar="ID|PATH",
    help="Say whether one document or file is served, and which rules hid, cut, shadowed or skipped it.",
)
@reading_options
def command(why: str | None, as_json: bool, where: Where) -> None:
    if why is None:
        _examine(as_json, where)
        return
    settings, _ = load_settings(where.config_path)
    reply = answer(where, "directory::skills::explain", id=_below(settings, why))
    if as_json:
        print_json(reply)
    else:
        print_text(escaped(reply["summary"]))
        print_rows(reply["rules"], _COLUMNS, empty="no rule hid, cut, shadowed or skipped it", whole=True)
    if not reply["served"]:
        raise SystemExit(1)


def _below(settings: Settings, why: str) -> str:
    """Turn a path on this machine into the directory's name for it; return anything else unchanged."""
    path = os.path.realpath(why)
    folders = (settings.local_skills_folder, settings.skills_folder, *settings.roots)
    for folder in (os.path.realpath(folder) for folder in folders if folder is not None):
        if os.path.lexists(why) and path.startswith(f"{folder}/"):
            return os.path.relpath(path, folder)
    return why


def _examine(as_json: bool, where: Where) -> None:
    reply = answer(where, "directory::diagnostics", check=True)
    every = [finding_of(row) for row in reply["findings"]]
    found = [finding for finding in every if finding.kind != CHECKED]
    around = list(_problems(where.config_path, engine_url(where.url, where.config_path.parent)))
    urgent = sum(finding.urgent for finding in (*found, *around))
    if (warning := interpreter_warning()) is not None:
        note(warning)
    if as_json:
        print_json(reply)
        for problem in around:
            note(f"{problem.subject}: {problem.reason}; {problem.fix}")
    else:
        told = [row for row in reply["findings"] if row["kind"] != CHECKED]
        documents = told
        if sys.stdout.isatty():
            # Many skills have the same problem: a screen shows each problem once, with its subjects.
            documents = [
                {"subject": group.named(), **{name: getattr(group.first, name) for name in _OF_FIRST}}
                for group in grouped(found)
            ]
        rows = [*(problem._asdict() for problem in around), *documents]
        if objections := [finding for finding in every if finding.kind == CHECKED]:
            # The objections of skills check are advice for authors, and share one row.
            forbidden = sum(objection.forbidden for objection in objections)
            named = counted(len(objections), "objection")
            reason = f"the Agent Skills standard and hosts have {named}, {forbidden} of them forbidden"
            fix = f"{program()} skills check names each"
            rows.append({"kind": CHECKED, "subject": "skills", "reason": reason, "fix": fix})
        print_rows(rows, _COLUMNS, empty="nothing was left out and nothing is odd", whole=True)
        if len(documents) < len(found):
            note(f"needing attention: {urgent} of {len(found) + len(around)}; --json names every one")
        # Every engine of today has worker::list; only another source is worth a line.
        if reply.get("installed_by", "worker::list") != "worker::list":
            note(f"which workers are installed is told by {reply['installed_by']}")
    if urgent:
        raise SystemExit(1)


# What is wrong around the documents


class Problem(NamedTuple):
    """Something wrong outside the documents, in the columns of a finding."""

    kind: str
    subject: str
    reason: str
    fix: str
    urgent: bool = True


def _problems(config_path: Path, url: str) -> Iterator[Problem]:
    settings, warnings = load_settings(config_path)
    fix = "correct the file; see iii-directory config check"
    yield from (Problem("config", config_path.name, warning, fix) for warning in warnings)
    # The default folder may be missing: it is created with the first skill.
    usual = real_path(config_path).parent / "skills"
    chosen = {
        "skills_folder": None if settings.skills_folder == usual else settings.skills_folder,
        "local_skills_folder": settings.local_skills_folder,
    }
    for key, folder in chosen.items():
        if folder is not None and not folder.is_dir():
            yield Problem("folder", key, f"{folder} does not exist", f"create it, or correct {key}")

    if is_named(None) and not listens(url):
        reason = "no engine answers there, so only the folder can be seen"
        fix = f"nothing, or start one: {program()} up"
        yield Problem("engine", shown_url(url), reason, fix, urgent=False)
    for name, first in _PACKAGES.items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            yield Problem("package", name, "it is not installed", "install iii-directory again")
            continue
        if tuple(int(part) for part in installed.split(".")[:2] if part.isdigit()) < first:
            wanted = ".".join(map(str, first))
            reason = f"{installed} is older than {wanted}"
            yield Problem("package", name, reason, f"install {name} {wanted} or newer")
    if shutil.which("git") is None:
        reason = "it is not installed, so nothing can be installed from repositories"
        yield Problem("program", "git", reason, "nothing, or install git", urgent=False)
