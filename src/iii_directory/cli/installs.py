"""``iii-directory skills add`` and its kin: what is installed in the skills folder, and where it came from.

They work on the folder of the configuration itself, under the same locks as the worker's downloads. A worker
that runs sees what they change; none need run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from iii_directory.cli import add
from iii_directory.cli.command_help import complete_namespaces
from iii_directory.cli.linking import host_folders
from iii_directory.cli.output import note, print_json, print_patch, print_table
from iii_directory.documents.ids import OVERVIEW
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iii_directory.config import Settings
    from iii_directory.install.reports import Report
    from iii_directory.install.service import Installer

_KEPT: Final = "0 done, also where edited files were kept"
_EACH_FAILED: Final = "1 at least one namespace failed, and its reason says why"
_UPKEEP_CODES: Final = f"Exit codes: {_KEPT}; {_EACH_FAILED}; 2 wrong usage."
_VERIFY_CODES: Final = (
    "Exit codes: 0 every file is as it was installed; 1 files were edited or are missing, or it failed; "
    "2 wrong usage."
)
_RESTORE_CODES: Final = (
    "Exit codes: 0 every file is as it was installed; 1 edited files were kept, or a namespace failed; "
    "2 wrong usage."
)


namespaces_argument = click.argument(
    "namespaces", metavar="[NAMESPACE|SOURCE]...", nargs=-1, shell_complete=complete_namespaces
)


@click.command(
    help="Bring what is installed up to date: all of it, or some namespaces or sources. Files that were "
    "edited by hand are kept; what is pinned to a version or a commit stays.",
    epilog=_UPKEEP_CODES,
)
@namespaces_argument
@click.option("--prune", is_flag=True, help="Remove unedited files that the source no longer has.")
@click.option(
    "--merge",
    is_flag=True,
    help="Merge what you edited with what the source changed. Where both changed the same lines your file "
    "stays, and FILE.merge beside it has both.",
)
@add.downgrade_option
@add.yes_option
@add.options
def update(
    namespaces: tuple[str, ...],
    settings: Settings,
    prune: bool,
    merge: bool,
    allow_downgrade: bool,
    goes_on: bool,
    as_json: bool,
) -> None:
    approve = add.asking(goes_on=goes_on)
    with add.progress_shown(lambda name: f"update {name}", approve) as (progress, approve):
        how: dict[str, Any] = {"prune": prune, "merge": merge, "allow_downgrade": allow_downgrade}
        found = add.run_installer(
            settings,
            lambda installer: installer.upkeep.update(namespaces, **how, progress=progress),
            approve,
        )
    if any(report.status not in ("current", "failed") for report in found):
        note(f"wrote to {settings.skills_folder}")
    add.place_installed(settings, [report.namespace for report in found])
    _finish(found, as_json=as_json, bad=("failed", "conflict"), was_asked=approve is not None)


@click.command(
    help="Ask the sources whether the files of something installed differ there; nothing is changed.",
    epilog="Exit codes: 0 nothing is outdated; 1 something is, or a source failed; 2 wrong usage.",
)
@namespaces_argument
@click.option("--facts", is_flag=True, help="Say what the newer files can do that the installed ones cannot.")
@add.options
def outdated(namespaces: tuple[str, ...], settings: Settings, facts: bool, as_json: bool) -> None:
    with add.progress_shown(lambda name: f"ask for {name}") as (progress, _):
        found = add.run_installer(
            settings, lambda installer: installer.upkeep.outdated(namespaces, facts=facts, progress=progress)
        )
    _finish(found, as_json=as_json, bad=("failed", "outdated"))


@click.command(
    help="Bring back exactly what the lock file records, such as on a new machine. Files that were edited by "
    "hand are kept, unless forced.",
    epilog=_RESTORE_CODES,
)
@namespaces_argument
@click.option("--force", is_flag=True, help="Replace files that were edited by hand.")
@add.options
def restore(namespaces: tuple[str, ...], settings: Settings, force: bool, as_json: bool) -> None:
    with add.progress_shown(lambda name: f"restore {name}") as (progress, _):
        found = add.run_installer(
            settings, lambda installer: installer.upkeep.restore(namespaces, force=force, progress=progress)
        )
    if any(report.status == "restored" for report in found):
        note(f"wrote to {settings.skills_folder}")
    add.place_installed(settings, [report.namespace for report in found])
    _finish(found, as_json=as_json, bad=("failed", "edited"))


@click.command(
    help="Recompute the hash of every installed file, and name what was edited or is missing.",
    epilog=_VERIFY_CODES,
)
@namespaces_argument
@add.options
def verify(namespaces: tuple[str, ...], settings: Settings, as_json: bool) -> None:
    rows = add.run_installer(settings, lambda installer: installer.upkeep.verify(namespaces))
    if as_json:
        print_json({"namespaces": rows})
    elif not rows:
        note("nothing is installed")
    else:
        shown: list[tuple[str, str, str]] = []
        for row in rows:
            named = (f"{kind}: {', '.join(row[kind])}" for kind in ("edited", "missing", "own") if row[kind])
            details = "; ".join((*named, f"clean: {len(row['clean'])}"))
            shown.append((row["namespace"], row["status"], details))
        print_table(("namespace", "status", "details"), shown, whole=True)
    if any(row["status"] != "clean" for row in rows):
        raise SystemExit(1)


@click.command(
    help="Show what was edited by hand since the install, as a patch. The sources are asked for what they "
    "had then.",
)
@namespaces_argument
@click.option("--upstream", is_flag=True, help="Instead, what the source changed in the files you edited.")
@add.options
def diff(namespaces: tuple[str, ...], settings: Settings, upstream: bool, as_json: bool) -> None:
    patch = add.run_installer(
        settings, lambda installer: installer.upkeep.diff(namespaces, upstream=upstream)
    )
    if as_json:
        print_json({"diff": patch})
    elif patch:
        print_patch(patch)
    else:
        note("the source changed nothing in edited files" if upstream else "nothing was edited")


@click.command(
    help="Remove what was installed of some namespaces. Files that were edited by hand, and files of your "
    "own, stay.",
    epilog=_UPKEEP_CODES,
)
@click.argument(
    "namespaces", metavar="NAMESPACE|SOURCE...", nargs=-1, required=True, shell_complete=complete_namespaces
)
@click.option("--force", is_flag=True, help="Remove files that were edited by hand, too.")
@add.options
def remove(namespaces: tuple[str, ...], settings: Settings, force: bool, as_json: bool) -> None:
    async def each(installer: Installer) -> list[Report]:
        from iii_directory.install.reports import Report

        reports: list[Report] = []
        for name in await installer.upkeep.meant(namespaces):
            try:
                reports.append(await installer.upkeep.remove(name, force=force))
            except DirectoryError as error:
                reports.append(Report(name, "failed", error=error))
        return reports

    found = add.run_installer(settings, each)
    done = [report.namespace for report in found if report.status != "failed"]
    # A skill whose own SKILL.md was edited is still there, and so are its links.
    gone = [name for name in done if not (settings.skills_folder / name / OVERVIEW).is_file()]
    if done:
        note(f"removed from {settings.skills_folder}")
    for report in found:
        if report.changes.kept:
            note(f"{report.namespace}: the edited files that stay are yours now; delete them by hand")
    for placed in (one for name in gone for one in host_folders(settings).take_away(name)):
        note(f"{placed.outcome} {placed.place}{f': {placed.reason}' if placed.reason else ''}")
    _finish(found, as_json=as_json)


COMMANDS: Final = (add.add, update, outdated, diff, verify, remove, restore)


def _finish(
    found: Sequence[Report], *, as_json: bool, bad: tuple[str, ...] = ("failed",), was_asked: bool = False
) -> None:
    """Show what became of each namespace; the exit code is 1 if something bad is among it.

    What the user was asked about is not said again.
    """
    if as_json:
        print_json({"namespaces": [report.as_dict() for report in found]})
    elif not found:
        note("nothing is installed")
    else:
        columns = ("namespace", "status", "installed", "available", "details")
        current = [one for one in found if one.status == "current" and _details(one) in ([], ["pinned"])]
        done = [report for report in found if report.status != "failed" and report not in current]
        if done:
            rows = [
                (one.namespace, one.status, one.installed, one.available, "; ".join(_details(one)))
                for one in done
            ]
            print_table(columns, rows, whole=True)
        if current:
            others = "" if len(current) == len(found) else " others"
            note(f"{len(current)}{others} {'is' if len(current) == 1 else 'are'} current")
        for report in found:
            if not was_asked:
                add.say_news(report.namespace, report.new_facts)
            if report.error:
                note(f"{report.namespace}: {add.sentence_of(report.error)}")
    if any(report.status in bad for report in found):
        raise SystemExit(1)


def _details(report: Report) -> list[str]:
    """List changed files by name where a person may want to look at them, else count them."""
    named = ("kept", "overwritten", "left_behind", "merged", "conflicts")
    words = {
        "kept": "kept, because edited",
        "left_behind": "no longer in the source",
        "conflicts": "conflicts, see the .merge files beside",
    }
    details = ["pinned"] if report.pinned else []
    if report.behind:
        details.append(f"edited, newer upstream: {', '.join(report.behind)}")
    return details + [
        f"{words.get(kind, kind)}: {', '.join(paths) if kind in named else len(paths)}"
        for kind, paths in report.changes.as_dict().items()
        if kind != "unchanged"
    ]
