"""``iii-directory registry``: search a workers registry, publish workers into a folder, and serve it."""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from iii_directory.cli.command_help import CommandGroup
from iii_directory.cli.common import FOLDER, PORT, as_command, config_option, fail, settings_from
from iii_directory.cli.output import note, print_json, print_rows, print_text, say
from iii_directory.documents.ids import OVERVIEW
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_PUBLISHED_WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from iii_directory.config import Settings
    from iii_directory.shapes import Json


DEFAULT_PORT = 3118


def _registry_option(text: str, *, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--registry", metavar="DIR", required=required, type=FOLDER, help=text)


@click.group(
    cls=CommandGroup,
    help="Search a workers registry; or make one of your own: publish workers into a folder, and "
    "serve it. Users who set registry_url to its address install from it.",
)
def command() -> None:
    """Group the commands; they have no option in common."""


@command.command(help="Serve a folder of published workers. New versions appear at once.")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--port", type=PORT, default=DEFAULT_PORT, show_default=True, help="Where to listen; 0 takes a free port."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Beyond loopback, everyone who reaches it may read everything.",
)
def serve(folder: Path, port: int, host: str) -> None:
    import asyncio

    from iii_directory.cli.processes import cannot_listen, stop_signal
    from iii_directory.registry_server.registry_http import RegistryServer

    async def until_stopped(url: str) -> None:
        stopped = stop_signal()
        say(f"serving {folder} at {url}. Ctrl-C stops it.")
        await stopped.wait()

    try:
        server = RegistryServer(folder, host=host, port=port)
    except OSError as error:
        fail(cannot_listen(host, port, error, "--port"))
    with server:
        if not folder.is_dir():
            note(f"{folder} does not exist yet; the first `iii-directory registry add` creates it")
        asyncio.run(until_stopped(server.url))
    say("stopped")


@command.command(
    help="Publish the worker in a folder (worker.yaml or iii.worker.yaml, README.md, skills/, prompts/). A "
    "published version never changes. The name comes from worker.yaml, else from the folder.",
)
@click.argument("path", type=FOLDER)
@_registry_option("The folder of published workers; made if it is missing.", required=True)
@click.option("--version", required=True, help="The version to publish, such as 1.2.3.")
@click.option("--tag", help="Move this tag to it; without one, latest follows the highest stable version.")
@click.option("--json", "as_json", is_flag=True, help="Print what was published as JSON.")
def add(path: Path, registry: Path, version: str, tag: str | None, as_json: bool) -> None:
    from iii_directory.registry_server.release import publish

    try:
        done = publish(path, registry, version, tag)
    except DirectoryError as error:
        fail(str(error))
    if as_json:
        fields = ("worker", "version", "tags", "files", "left_out")
        print_json({**{name: getattr(done, name) for name in fields}, "new": done.is_new})
        return
    tags = sorted(name for name, tagged in done.tags.items() if tagged == done.version)
    tagged = f" ({', '.join(tags)})" if tags else ""
    state = "published" if done.is_new else "was published before:"
    print_text(f"{state} {done.worker} {done.version}{tagged}: {len(done.files)} files")
    inside = [name.split("/")[1] for name in done.files if re.fullmatch(rf"skills/[^/]+/{OVERVIEW}", name)]
    if inside:
        ids = ", ".join(f"{done.worker}/{name}" for name in inside)
        note(f"a worker's skills are below its name: {ids}; skills/{OVERVIEW} alone would be {done.worker}")
    if done.left_out:
        note(f"hidden files and binary files are left out: {', '.join(done.left_out)}")


_of_folder = _registry_option(
    "A folder of published workers, instead of the registry that the configuration names.", required=False
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print everything known of each as JSON.")


@command.command("list", help="List the workers that are published, the most downloaded first.")
@_of_folder
@_as_json
@config_option
def list_(registry: Path | None, as_json: bool, config_path: Path) -> None:
    _show(_found(registry, config_path, None), as_json, "nothing is published there")


@command.command(help="Find published workers by words of their names and descriptions.")
@click.argument("words", nargs=-1, required=True)
@_of_folder
@_as_json
@config_option
def search(words: tuple[str, ...], registry: Path | None, as_json: bool, config_path: Path) -> None:
    _show(_found(registry, config_path, " ".join(words)), as_json, "no published worker matches")


@command.command(
    help="Withdraw a version of a worker: it is no longer listed, tagged or installed by updates. Lock files "
    "that record it can still restore it, because published files stay.",
)
@click.argument("worker")
@click.argument("version")
@_registry_option("The folder of published workers.", required=True)
@click.option("--undo", is_flag=True, help="Offer it again.")
def yank(worker: str, version: str, registry: Path, undo: bool) -> None:
    from iii_directory.registry_server.release import yank as yank_version

    try:
        tags = yank_version(registry, worker, version, undo=undo)
    except DirectoryError as error:
        fail(str(error))
    latest = f"latest is {tags['latest']}" if "latest" in tags else "no version is left to offer"
    print_text(f"{'offered again' if undo else 'yanked'}: {worker} {version}; {latest}")


def _found(registry: Path | None, config_path: Path, search: str | None) -> list[Json]:
    """List the workers of a registry, the best match or the most downloaded first."""
    try:
        if registry is None:
            import asyncio

            return asyncio.run(_published(settings_from(config_path), search))
        from iii_directory.registry_server.published_workers import RegistryStore, search_rows

        store = RegistryStore(registry)
        return [
            {
                **row,
                "published_at": store.published_at(row["name"], row["version"]),
                "versions": store.versions(row["name"]),
                "yanked": sorted(store.yanked(row["name"])),
            }
            for _, row in search_rows(store.rows(), search)
        ]
    except DirectoryError as error:
        fail(error.sentence(as_command))


async def _published(settings: Settings, search: str | None) -> list[Json]:
    """Ask the configured registry, page by page, for up to ``MAX_PUBLISHED_WORKERS`` workers."""
    from iii_directory.registry.registry_client import RegistryClient
    from iii_directory.registry.registry_messages import page_request

    client = RegistryClient(
        settings.registry_url,
        timeout_ms=settings.download_timeout_ms,
        cache_ttl_ms=settings.registry_cache_ttl_ms,
    )
    rows: list[Json] = []
    cursor: str | None = None
    async with aclosing(client):
        while len(rows) < MAX_PUBLISHED_WORKERS:
            page = await client.workers(page_request({"search": search, "cursor": cursor}))
            rows += page["workers"]
            cursor = page["pagination"].get("next_cursor")
            # A registry that repeats an empty page would keep this loop going for ever.
            if not cursor or not page["workers"]:
                return rows
    note(f"the registry has more; these are the first {len(rows)}")
    return rows


def _show(rows: list[Json], as_json: bool, empty: str) -> None:
    if as_json:
        print_json({"workers": rows})
        return
    # A folder records when a version was published; a registry over HTTP does not say.
    dated = ("published",) if any("published_at" in row for row in rows) else ()
    shown = [
        {
            "description": None,
            **row,
            "published": row.get("published_at"),
            "downloads": str(row.get("total_downloads", "")),
        }
        for row in rows
    ]
    print_rows(shown, ("name", "version", *dated, "downloads", "description"), empty=empty)
