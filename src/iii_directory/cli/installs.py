"""``iii-directory skills add`` and its kin: what is installed in the skills folder, and where it came from.

They work on the folder of the configuration itself, under the same locks as the worker's downloads. A worker
that runs sees what they change; none need run.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from iii_directory.cli.common import EXIT_CODES, config_option, fail, in_commands, set_up_log, settings_from
from iii_directory.cli.output import note, print_json, print_patch, print_table, print_text
from iii_directory.cli.progress import progress_shown
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from iii_directory.config import Settings
    from iii_directory.install.reports import Installation, Preview, Report
    from iii_directory.install.requests import DownloadRequest
    from iii_directory.install.service import Installer

Result = TypeVar("Result")

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


def options(command: Callable[..., None]) -> Callable[..., None]:
    """``--json`` and ``--config``, which arrive as ``as_json`` and ``settings``."""

    @functools.wraps(command)
    def with_settings(*args: Any, config_path: Path, **given: Any) -> None:
        set_up_log()
        command(*args, settings=settings_from(config_path), **given)

    as_json = click.option("--json", "as_json", is_flag=True, help="Print everything about it as JSON.")
    return as_json(config_option(with_settings))


def namespaces_argument(command: Callable[..., None]) -> Callable[..., None]:
    return click.argument("namespaces", metavar="[NAMESPACE]...", nargs=-1)(command)


def force_option(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--force", is_flag=True, help=text)


downgrade_option = click.option(
    "--allow-downgrade", is_flag=True, help="Take a version that is older than the installed one."
)


@click.command(
    help="Install skills and prompts: of a published worker (NAME, NAME@VERSION or NAME@TAG), or one folder "
    "below skills/ of a git repository (its address, with --skill). All of it is installed or nothing; files "
    "that were edited by hand are kept.",
    epilog=EXIT_CODES,
)
@click.argument("source", metavar="NAME|REPOSITORY")
@click.option("--version", help="An exact version of the worker.")
@click.option("--tag", help="A tag of the worker, instead of a version.  [default: latest]")
@click.option("--skill", help="The folder below skills/ of the repository.")
@click.option("--branch", help="A branch, a tag or a full commit id of the repository.  [default: main]")
@click.option("--dry-run", is_flag=True, help="Only show what would change, with a diff.")
@force_option("Replace files that were edited by hand, too.")
@downgrade_option
@options
def add(
    source: str,
    settings: Settings,
    dry_run: bool,
    force: bool,
    allow_downgrade: bool,
    as_json: bool,
    **fields: str | None,
) -> None:
    request = _request(source, settings, fields)
    edited = "overwrite" if force else "keep"
    if dry_run:
        preview = _run(
            settings,
            lambda installer: installer.preview(request, edited=edited, allow_downgrade=allow_downgrade),
        )
        print_json({"dry_run": True, **preview.as_dict()}) if as_json else _print_preview(preview)
        return
    words = {"fetch": f"fetching {source}", "write": f"writing {source}"}
    with progress_shown(words.__getitem__) as progress:
        done = _run(
            settings,
            lambda installer: installer.download(
                request, edited=edited, allow_downgrade=allow_downgrade, progress=progress
            ),
        )
    if as_json:
        found = [{"subject": one.subject, "reason": one.reason, "fix": one.fix} for one in done.findings]
        changes = done.changes.as_dict()
        print_json({**done.reply, "resolved": done.resolved, "changes": changes, "findings": found})
    else:
        _print_installed(done)


@click.command(
    help="Bring what is installed up to date: all of it, or some namespaces. Files that were edited by hand "
    "are kept; what is pinned to a version or a commit stays.",
    epilog=_UPKEEP_CODES,
)
@namespaces_argument
@click.option("--prune", is_flag=True, help="Remove unedited files that the source no longer has.")
@downgrade_option
@options
def update(
    namespaces: tuple[str, ...], settings: Settings, prune: bool, allow_downgrade: bool, as_json: bool
) -> None:
    with progress_shown(lambda name: f"update {name}") as progress:
        found = _run(
            settings,
            lambda installer: installer.upkeep.update(
                namespaces, prune=prune, allow_downgrade=allow_downgrade, progress=progress
            ),
        )
    _finish(found, as_json=as_json)


@click.command(
    help="Ask the sources whether they have something newer; nothing is changed.", epilog=_UPKEEP_CODES
)
@namespaces_argument
@options
def outdated(namespaces: tuple[str, ...], settings: Settings, as_json: bool) -> None:
    with progress_shown(lambda name: f"ask for {name}") as progress:
        found = _run(settings, lambda installer: installer.upkeep.outdated(namespaces, progress=progress))
    _finish(found, as_json=as_json)


@click.command(
    help="Bring back exactly what the lock file records, such as on a new machine. Files that were edited by "
    "hand are kept, unless forced.",
    epilog=_RESTORE_CODES,
)
@namespaces_argument
@force_option("Replace files that were edited by hand.")
@options
def restore(namespaces: tuple[str, ...], settings: Settings, force: bool, as_json: bool) -> None:
    with progress_shown(lambda name: f"restore {name}") as progress:
        found = _run(
            settings, lambda installer: installer.upkeep.restore(namespaces, force=force, progress=progress)
        )
    _finish(found, as_json=as_json, bad=("failed", "edited"))


@click.command(
    help="Recompute the hash of every installed file, and name what was edited or is missing.",
    epilog=_VERIFY_CODES,
)
@namespaces_argument
@options
def verify(namespaces: tuple[str, ...], settings: Settings, as_json: bool) -> None:
    rows = _run(settings, lambda installer: installer.upkeep.verify(namespaces))
    if as_json:
        print_json({"namespaces": rows})
    elif not rows:
        note("nothing is installed")
    else:
        print_table(("namespace", "status", "details"), [_verified(row) for row in rows], whole=True)
    if any(row["status"] != "clean" for row in rows):
        raise SystemExit(1)


@click.command(
    help="Show what was edited by hand since the install, as a patch. The sources are asked for what they "
    "had then.",
    epilog=EXIT_CODES,
)
@namespaces_argument
@options
def diff(namespaces: tuple[str, ...], settings: Settings, as_json: bool) -> None:
    patch = _run(settings, lambda installer: installer.upkeep.diff(namespaces))
    if as_json:
        print_json({"diff": patch})
    elif patch:
        print_patch(patch)
    else:
        note("nothing was edited")


@click.command(
    help="Remove what was installed of some namespaces. Files that were edited by hand, and files of your "
    "own, stay.",
    epilog=_UPKEEP_CODES,
)
@click.argument("namespaces", metavar="NAMESPACE...", nargs=-1, required=True)
@force_option("Remove files that were edited by hand, too.")
@options
def remove(namespaces: tuple[str, ...], settings: Settings, force: bool, as_json: bool) -> None:
    async def each(installer: Installer) -> list[Report]:
        return [await _removed(installer, name, force=force) for name in namespaces]

    _finish(_run(settings, each), as_json=as_json)


COMMANDS: Final = (add, update, outdated, diff, verify, remove, restore)


def _run(settings: Settings, act: Callable[[Installer], Awaitable[Result]]) -> Result:
    """What an installer answers; a failure ends the command."""
    import asyncio

    from iii_directory.install.service import Installer

    async def inside() -> Result:
        installer = Installer(settings, by_operator=True)
        try:
            await installer.recover()
            return await act(installer)
        finally:
            await installer.close()

    try:
        return asyncio.run(inside())
    except DirectoryError as error:
        fail(in_commands(str(error)))


async def _removed(installer: Installer, name: str, *, force: bool) -> Report:
    from iii_directory.install.reports import Report

    try:
        return await installer.upkeep.remove(name, force=force)
    except DirectoryError as error:
        return Report(name, "failed", reason=str(error))


def _request(source: str, settings: Settings, fields: dict[str, str | None]) -> DownloadRequest:
    """What is to be added; wrong usage ends the command."""
    from iii_directory.install.requests import any_download
    from iii_directory.registry.versions import is_version

    given = {name: value for name, value in fields.items() if value is not None}
    if "://" in source or source.startswith("git@"):
        given["repo"] = source
    else:
        name, at, wanted = source.partition("@")
        field = "version" if is_version(wanted) else "tag"
        if at and {"version", "tag"} & given.keys():
            fail(f"'{source}' names a version or a tag already; leave --version and --tag out", code=2)
        given.update({"worker": name, **({field: wanted} if at else {})})
    try:
        return any_download(given, allow_file=settings.allow_file_repos)
    except DirectoryError as error:
        fail(in_commands(str(error)), code=2)


def _finish(found: Sequence[Report], *, as_json: bool, bad: tuple[str, ...] = ("failed",)) -> None:
    """Show what became of each namespace; the exit code is 1 if something bad is among it."""
    if as_json:
        print_json({"namespaces": [report.as_dict() for report in found]})
    elif not found:
        note("nothing is installed")
    else:
        columns = ("namespace", "status", "installed", "available", "details")
        done = [report for report in found if report.status != "failed"]
        if done:
            print_table(columns, [_row(report) for report in done], whole=True)
        for report in found:
            if report.status == "failed":
                note(in_commands(f"{report.namespace}: {report.reason}"))
    if any(report.status in bad for report in found):
        raise SystemExit(1)


def _row(report: Report) -> tuple[str | None, ...]:
    details = report.reason or "; ".join(
        (*(["pinned"] if report.pinned else []), *_changes(report.changes.as_dict()))
    )
    return report.namespace, report.status, report.installed, report.available, details


def _changes(changes: dict[str, list[str]]) -> list[str]:
    """Files by name where somebody may want to look at them, else how many."""
    named = ("kept", "overwritten", "left_behind")
    words = {"kept": "kept, because edited", "left_behind": "no longer in the source"}
    return [
        f"{words.get(kind, kind)}: {', '.join(paths) if kind in named else len(paths)}"
        for kind, paths in changes.items()
        if kind != "unchanged"
    ]


def _verified(row: dict[str, Any]) -> tuple[str, str, str]:
    named = (f"{kind}: {', '.join(row[kind])}" for kind in ("edited", "missing", "own") if row[kind])
    return row["namespace"], row["status"], "; ".join((*named, f"clean: {len(row['clean'])}"))


def _print_preview(preview: Preview) -> None:
    changes = preview.changes.as_dict()
    print_text(f"{preview.namespace} {preview.resolved}: nothing is changed by a dry run")
    print_table(("change", "file"), [(kind, path) for kind, paths in changes.items() for path in paths])
    if preview.left_out:
        note(f"dot files are not installed: {', '.join(preview.left_out)}")
    if preview.diff:
        print_patch(f"\n{preview.diff}")


def _print_installed(done: Installation) -> None:
    counted = {kind: len(done.reply[f"{kind}s_written"]) for kind in ("skill", "prompt", "file")}
    written = (f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counted.items() if count)
    print_text(f"installed {done.reply['namespace']} {done.resolved}: {', '.join(written) or 'nothing'}")
    for finding in done.findings:
        note(f"{finding.subject}: {finding.reason}")
    if done.changes.kept:
        note("--force replaces what was edited by hand")
