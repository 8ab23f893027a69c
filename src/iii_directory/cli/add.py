"""``iii-directory skills add``: install skills from any kind of source.

The parts that all commands on installed skills share are here, too: options, progress, running an installer.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from iii_directory import errors
from iii_directory.cli import common
from iii_directory.cli.linking import host_folders, hosts_named, placed_for, to_option
from iii_directory.cli.output import note, print_json, print_patch, print_table, print_text, say, shown_commit
from iii_directory.errors import DirectoryError
from iii_directory.text import counted, escaped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from iii_directory.config import Settings
    from iii_directory.install.bundle import Approve, Offer, Offered
    from iii_directory.install.reports import Added, Installation, Preview
    from iii_directory.install.requests import SkillSource
    from iii_directory.install.service import Installer
    from iii_directory.install.tree import Progress
    from iii_directory.registry.registry_messages import WorkerRequest

Result = TypeVar("Result")

# What to do next, in commands: functions are for agents.
_NEXT: Final = {
    errors.BAD_REGISTRY_REQUEST.code: (
        errors.Step(
            "give NAME, NAME@VERSION, owner/repo, a git address, ./folder, an archive or https://host"
        ),
    ),
    errors.REGISTRY_NOT_FOUND.code: (errors.Step("check the name, and registry_url in the configuration"),),
}


def sentence_of(error: DirectoryError) -> str:
    """Put a failure into words for a person at a terminal."""
    steps = _NEXT.get(error.kind.code)
    if steps is not None and error.next_steps == error.kind.next_steps:
        error = DirectoryError(error.kind, error.problem, did_you_mean=error.did_you_mean, next_steps=steps)
    return error.sentence(common.as_command)


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--json`` and ``--config``, which arrive as ``as_json`` and ``settings``; failures are told."""

    @functools.wraps(command)
    def with_settings(*args: Any, config_path: Path, **given: Any) -> None:
        common.set_up_log()
        # Here, where every bar has ended: a sentence must not be drawn behind one.
        try:
            command(*args, settings=common.settings_from(config_path), **given)
        except DirectoryError as error:
            common.fail(sentence_of(error))

    as_json = click.option("--json", "as_json", is_flag=True, help="Print everything about it as JSON.")
    return as_json(common.config_option(common.folder_options(with_settings)))


downgrade_option = click.option(
    "--allow-downgrade", is_flag=True, help="Take a version that is older than the installed one."
)


_NEWS_SHOWN: Final = 5
_LINE_SECONDS: Final = 1.0
yes_option = click.option(
    "--yes", "-y", "goes_on", is_flag=True, help="Do not ask about what it can newly do; report it."
)


@click.command(
    help="Install skills of a repository, a folder, an archive, a site or a published worker. SOURCE is "
    "owner/repo, owner/repo/path (either with @REF), a tree address of GitHub, any git address, ./folder, a "
    ".zip or .tar.gz (here or at an address), the address of a SKILL.md, https://host of a site with an "
    "index, or NAME, NAME@VERSION or NAME@TAG of a published worker. One skill is installed; of several, "
    "name some with --skill or --plugin, or take --all. Each is installed whole or not at all; files edited "
    "by hand are kept.",
    epilog=f"{common.EXIT_CODES} 1 also when a source has several skills and it was not said which.",
)
@click.argument("source", metavar="SOURCE")
@click.option("--list", "only_list", is_flag=True, help="Show what the source has, and install nothing.")
@click.option("--skill", "skills", multiple=True, metavar="NAME", help="A skill of the source; repeatable.")
@click.option(
    "--plugin", "plugins", multiple=True, metavar="NAME", help="Every skill of a plugin of it; repeatable."
)
@click.option("--all", "everything", is_flag=True, help="Every skill of the source.")
@click.option("--version", help="An exact version of the worker.")
@click.option("--tag", help="A tag of the worker, instead of a version.  [default: latest]")
@click.option("--branch", help="A branch, a tag or a full commit id of the repository.")
@click.option("--dry-run", is_flag=True, help="Only show what would change, with a diff of what is there.")
@click.option("--force", is_flag=True, help="Replace files that were edited by hand, too.")
@downgrade_option
@to_option("Make what is installed appear in the folder of a host as well, repeatable")
@yes_option
@options
def add(
    source: str,
    settings: Settings,
    goes_on: bool,
    hosts: tuple[str, ...],
    only_list: bool,
    skills: tuple[str, ...],
    plugins: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    force: bool,
    allow_downgrade: bool,
    as_json: bool,
    **fields: str | None,
) -> None:
    from iii_directory.install.bundle import Wanted
    from iii_directory.registry.registry_messages import WorkerRequest

    given = {name: value for name, value in fields.items() if value is not None}
    if hosts:
        hosts_named(hosts)
    if everything and (skills or plugins):
        common.fail(f"--all and {'--skill' if skills else '--plugin'} do not go together", code=2)
    typed = typed_by(source, settings, given)
    edited, approve = "overwrite" if force else "keep", asking(goes_on=goes_on)
    words = {"fetch": f"fetching {source}", "write": f"{'comparing' if dry_run else 'writing'} {source}"}
    if isinstance(typed, WorkerRequest):
        if only_list or skills or plugins or everything:
            options = "--list, --skill, --plugin and --all are for repositories, folders, archives and sites"
            common.fail(f"'{source}' is a worker of the registry; {options}", code=2)
        how: dict[str, Any] = {"edited": edited, "allow_downgrade": allow_downgrade}
        if dry_run:
            preview = run_installer(settings, lambda installer: installer.preview(typed, **how))
            print_json({"dry_run": True, **preview.as_dict()}) if as_json else _print_preview(preview)
            return
        with progress_shown(words.__getitem__, approve) as (progress, approve):
            how["progress"] = progress
            done = run_installer(settings, lambda installer: installer.download(typed, **how), approve)
        note(f"wrote to {settings.skills_folder}")
        print_json(done.as_dict()) if as_json else _print_installed(done, was_asked=approve is not None)
        place_installed(settings, [typed.worker], hosts)
    elif only_list:
        found = run_installer(settings, lambda installer: installer.offers(typed))
        print_offers(found, source, as_json=as_json)
    else:
        with progress_shown(words.__getitem__, approve) as (progress, approve):
            how = {"dry_run": dry_run, "edited": edited, "progress": progress}
            wanted = Wanted(skills, plugins, everything)
            found, added = run_installer(
                settings, lambda installer: installer.add(typed, wanted, **how), approve
            )
        names = [done.namespace for done in added.installed]
        if names:
            note(f"wrote to {settings.skills_folder}")
            place_installed(settings, names, hosts)
        _print_added(found, added, source, as_json=as_json, was_asked=approve is not None)


def place_installed(settings: Settings, names: Sequence[str], hosts: Sequence[str] = ()) -> None:
    """Put installed skills into the folders of hosts, and refresh the copies that are there."""
    placed = placed_for(settings, names, hosts) if hosts else []
    for one in [*placed, *host_folders(settings).refresh(names)]:
        if one.outcome != "current":
            note(f"{one.outcome} {one.place}{f': {one.reason}' if one.reason else ''}")


def typed_by(source: str, settings: Settings, given: dict[str, str]) -> WorkerRequest | SkillSource:
    """Return the source that was typed, with what options say of it; wrong usage ends the command."""
    from iii_directory.install.requests import HEAD, RepoTree, checked_ref, typed_source
    from iii_directory.registry.registry_messages import WorkerRequest, worker_request

    try:
        typed = typed_source(source, allow_file=settings.allow_file_repos)
        if isinstance(typed, WorkerRequest):
            if "branch" in given:
                common.fail(f"'{source}' is a worker of the registry; --branch is for repositories", code=2)
            if given and "@" in source:
                common.fail(
                    f"'{source}' names a version or a tag already; leave --version and --tag out", code=2
                )
            return worker_request(typed.worker, given.get("version"), given.get("tag")) if given else typed
        if "version" in given or "tag" in given:
            common.fail("--version and --tag are for workers of the registry", code=2)
        if "branch" not in given:
            return typed
        if not isinstance(typed, RepoTree):
            common.fail("--branch is for repositories", code=2)
        if typed.branch != HEAD or typed.tree is not None:
            common.fail(f"'{source}' names a branch already; leave --branch out", code=2)
        return replace(typed, branch=checked_ref(given["branch"]))
    except DirectoryError as error:
        common.fail(sentence_of(error), code=2)


@contextmanager
def progress_shown(
    say: Callable[[str], str], approve: Approve | None = None
) -> Generator[tuple[Progress, Approve | None]]:
    """Yield a function that shows progress, and ``approve`` such that no bar is drawn while it asks.

    On a terminal progress is a bar, otherwise lines in the log. ``say`` puts a phase into words.
    """
    if not sys.stderr.isatty():
        yield _lines(say), approve
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    # The words may hold an address that a person typed; it must not be read as markup.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    turn = threading.Lock()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(phase: str, done: int, total: int) -> None:
            bar.update(task, description=escaped(say(phase)), completed=done, total=total or None)

        def ask(name: str, news: Mapping[str, list[str]]) -> bool:
            # One question at a time, with the bar taken off the terminal meanwhile.
            with turn:
                bar.stop()
                answer = approve is None or approve(name, news)
                bar.start()
            return answer

        yield show, ask if approve else None


def _lines(say: Callable[[str], str]) -> Progress:
    """Log a line at the start and the end of a phase, and now and then between them."""
    last = 0.0

    def show(phase: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done in (0, total) or now - last >= _LINE_SECONDS:
            last = now
            common.log.info("%s%s", say(phase), f" ({done} of {total})" if total else "")

    return show


def asking(*, goes_on: bool) -> Approve | None:
    """Give the question about what an install or update can newly do; None where no person can be asked."""
    if goes_on or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(name: str, news: Mapping[str, list[str]]) -> bool:
        say_news(name, news)
        try:
            return click.confirm(f"go on with {name}?", err=True)
        except click.Abort:
            # The end of the input (Ctrl-D) is not a yes.
            say("", err=True)
            return False

    return ask


def say_news(name: str, news: Mapping[str, list[str]]) -> None:
    """Tell what a skill can do that it could not do before."""
    for kind, values in news.items():
        more = f" and {len(values) - _NEWS_SHOWN} more" if len(values) > _NEWS_SHOWN else ""
        note(f"{name}: new {kind.replace('_', ' ')}: {', '.join(values[:_NEWS_SHOWN])}{more}")


def run_installer(
    settings: Settings, act: Callable[[Installer], Awaitable[Result]], approve: Approve | None = None
) -> Result:
    """Do one thing with an installer of its own."""
    # Only here, because most commands start without them.
    import asyncio

    from iii_directory.install.service import with_installer

    return asyncio.run(with_installer(settings, act, approve))


def print_offers(found: Offered, source: str, *, as_json: bool) -> None:
    """Show the skills of a source, by plugin where it has plugins."""
    if as_json:
        elsewhere = {"plugins_elsewhere": dict(found.elsewhere)} if found.elsewhere else {}
        print_json({"source": source, "skills": _offer_rows(found.offers), **elsewhere})
        return
    if not found.offers:
        note(f"{source} has no folder with a SKILL.md")
        for folder in found.hidden:
            note(f"it has skills in the hidden folder {folder}: name it behind the source, {source}/{folder}")
    elif any(offer.plugins for offer in found.offers):
        rows = [
            (plugin, offer.name, offer.path, offer.description)
            for offer in found.offers
            for plugin in offer.plugins or ("",)
        ]
        # Skills of no plugin come last.
        rows.sort(key=lambda row: (not row[0], row[0]))
        print_table(("plugin", "skill", "folder", "description"), rows)
    else:
        rows = [(offer.name, offer.path, offer.description) for offer in found.offers]
        print_table(("skill", "folder", "description"), rows)
    for name, place in found.elsewhere.items():
        note(f"the plugin {name} lies in another place: skills add {place}")


def _offer_rows(offers: Sequence[Offer]) -> list[dict[str, Any]]:
    return [
        {"name": offer.name, "path": offer.path, "description": offer.description}
        | ({"plugins": list(offer.plugins)} if offer.plugins else {})
        for offer in offers
    ]


def _print_added(found: Offered, added: Added, source: str, *, as_json: bool, was_asked: bool) -> None:
    selection = added.selection
    nothing_said = not (selection.chosen or selection.ambiguous or selection.unfit)
    if as_json:
        print_json(_added_json(found.offers, added, source, nothing_said=nothing_said))
    elif nothing_said:
        print_offers(found, source, as_json=False)
        note(f"{source} has {len(found.offers)} skills: name some with --skill NAME, or take --all")
    else:
        for preview in added.previews:
            _print_preview(preview)
        for done in added.installed:
            _print_installed(done, was_asked=was_asked)
        for name, error in added.failed.items():
            note(f"{name} is not installed: {sentence_of(error)}")
        for name, paths in selection.ambiguous.items():
            which = f"{' and '.join(paths)} have that name; add one by its folder, with --skill"
            note(f"{name} is not installed: {which}")
        for offer in selection.unfit:
            rule = "cannot be a name here (lowercase letters, digits, '-' and '_')"
            note(f"{offer.path} of {source} is not installed: '{offer.name}' {rule}")
    if nothing_said or not added.is_complete:
        raise SystemExit(1)


def _added_json(offers: Sequence[Offer], added: Added, source: str, *, nothing_said: bool) -> dict[str, Any]:
    if nothing_said:
        return {"source": source, "skills": _offer_rows(offers), "namespaces": []}
    if len(added.installed) == 1 and len(added.selection.chosen) == 1 and added.is_complete:
        return added.installed[0].as_dict()
    if len(added.previews) == 1 and len(added.selection.chosen) == 1 and added.is_complete:
        return {"dry_run": True, **added.previews[0].as_dict()}
    return {
        "source": source,
        "namespaces": [
            *(done.as_dict() for done in added.installed),
            *({"dry_run": True, **preview.as_dict()} for preview in added.previews),
            *(
                {"namespace": name, "status": "failed", "reason": str(why)}
                for name, why in added.failed.items()
            ),
        ],
        "ambiguous": {name: list(paths) for name, paths in added.selection.ambiguous.items()},
        "unfit": [offer.path for offer in added.selection.unfit],
    }


def _print_preview(preview: Preview) -> None:
    changes = preview.changes.as_dict()
    resolved = shown_commit(preview.resolved)
    print_text(f"{preview.namespace} {resolved}: nothing is changed by a dry run")
    unchanged = len(changes.pop("unchanged", ()))
    is_new = set(changes) == {"added"}
    print_table(("change", "file"), [(kind, path) for kind, paths in changes.items() for path in paths])
    if unchanged:
        note(f"{counted(unchanged, 'file')} would stay as they are")
    say_news(preview.namespace, preview.new_facts)
    if preview.left_out:
        note(f"dot files are not installed: {', '.join(preview.left_out)}")
    if is_new:
        note("all files are new, so no diff is shown; skills use writes them to a temporary folder")
    elif preview.diff:
        print_patch(f"\n{preview.diff}")


def _print_installed(done: Installation, *, was_asked: bool) -> None:
    kinds = {"document": "skills_written", "prompt": "prompts_written", "other file": "files_written"}
    written = (counted(len(done.reply[field]), kind) for kind, field in kinds.items() if done.reply[field])
    named = f"{done.namespace} {shown_commit(done.resolved)}"
    if done.is_current:
        print_text(f"{named}: current")
    else:
        print_text(f"installed {named}: {', '.join(written) or 'nothing'}")
    if not was_asked:
        say_news(done.namespace, done.reply.get("new_facts", {}))
    for finding in done.findings:
        note(f"{finding.subject}: {finding.reason}")
    if done.changes.kept:
        note("--force replaces what was edited by hand")
