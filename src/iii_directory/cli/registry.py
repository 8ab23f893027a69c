"""``iii-directory registry``: what a workers registry has, and one of one's own over a folder of workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import EXIT_CODES, as_command, config_option, fail, settings_from
from iii_directory.cli.groups import Group
from iii_directory.cli.output import note, print_json, print_table, print_text, say
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_PUBLISHED_WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.config import Settings
    from iii_directory.registry_server.release import Published
    from iii_directory.registry_server.server import RegistryServer
    from iii_directory.shapes import Json

DEFAULT_PORT = 3118


def _registry_option(text: str, *, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--registry",
        metavar="DIR",
        required=required,
        type=click.Path(path_type=Path, file_okay=False),
        help=text,
    )


@click.group(
    cls=Group,
    help="See what a workers registry has; and have one of your own: publish workers into a folder, and "
    "serve it. Whoever has its address as registry_url installs from it.",
    epilog=EXIT_CODES,
)
def command() -> None:
    """Nothing is common to its commands."""


@command.command(
    help="Serve a folder of published workers. What is published meanwhile is there at once.",
    epilog=EXIT_CODES,
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Where to listen; 0 takes a free port.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Beyond loopback everybody who reaches it may read everything in it.",
)
def serve(folder: Path, port: int, host: str) -> None:
    import asyncio

    with _listening(folder, host, port) as server:
        if not folder.is_dir():
            note(f"there is no {folder} yet; the first `iii-directory registry add` makes it")
        asyncio.run(_until_stopped(f"registry {folder} at {server.url}. Ctrl-C stops it."))
    say("stopped")


@command.command(
    help="Publish the worker in a folder (worker.yaml or iii.worker.yaml, README.md, skills/, prompts/). A "
    "version never changes; the worker's name is that in the first, else that of the folder.",
    epilog=EXIT_CODES,
)
@click.argument("path", type=click.Path(path_type=Path, file_okay=False))
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
        print_json(_as_dict(done))
    else:
        _print_published(done)


_of_folder = _registry_option(
    "A folder of published workers, instead of the registry that the configuration names.", required=False
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print everything known of each as JSON.")


@command.command(
    "list", help="List the workers that are published, the most downloaded first.", epilog=EXIT_CODES
)
@_of_folder
@_as_json
@config_option
def list_(registry: Path | None, as_json: bool, config_path: Path) -> None:
    _show(_found(registry, config_path, None), as_json, "nothing is published there")


@command.command(help="Find published workers by words of their names and descriptions.", epilog=EXIT_CODES)
@click.argument("words", nargs=-1, required=True)
@_of_folder
@_as_json
@config_option
def search(words: tuple[str, ...], registry: Path | None, as_json: bool, config_path: Path) -> None:
    _show(_found(registry, config_path, " ".join(words)), as_json, "no published worker is like that")


@command.command(
    help="Take a version of a worker back: it is listed no more, no tag leads to it, and nobody is updated "
    "to it. Whoever recorded it can still restore it, because what was published stays.",
    epilog=EXIT_CODES,
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
    """The rows of a registry, the best or the most downloaded first; past a bound the rest is named."""
    try:
        if registry is not None:
            return _in_folder(registry, search)
        import asyncio

        return asyncio.run(_published(settings_from(config_path), search))
    except DirectoryError as error:
        fail(error.sentence(as_command))


def _in_folder(registry: Path, search: str | None) -> list[Json]:
    from iii_directory.registry_server.ranking import search_rows
    from iii_directory.registry_server.store import RegistryStore

    store = RegistryStore(registry)
    rows = [row for _, row in search_rows(store.rows(), search)]
    return [
        {
            **row,
            "published_at": store.published_at(row["name"], row["version"]),
            "versions": store.versions(row["name"]),
            "yanked": sorted(store.yanked(row["name"])),
        }
        for row in rows
    ]


async def _published(settings: Settings, search: str | None) -> list[Json]:
    from iii_directory.registry.client import RegistryClient
    from iii_directory.registry.requests import page_request

    client = RegistryClient(
        settings.registry_url,
        timeout_ms=settings.download_timeout_ms,
        cache_ttl_ms=settings.registry_cache_ttl_ms,
    )
    rows: list[Json] = []
    cursor: str | None = None
    async with client:
        while len(rows) < MAX_PUBLISHED_WORKERS:
            page = await client.workers(page_request({"search": search, "cursor": cursor}))
            rows += page["workers"]
            cursor = page["pagination"].get("next_cursor")
            if not cursor or not page["workers"]:
                return rows
    note(f"there are more; these are the first {len(rows)}")
    return rows


def _show(rows: list[Json], as_json: bool, empty: str) -> None:
    if as_json:
        print_json({"workers": rows})
    elif not rows:
        note(empty)
    else:
        dated = any("published_at" in row for row in rows)
        columns = ("name", "version", *(("published",) if dated else ()), "downloads", "description")
        print_table(columns, [_cells(row, dated=dated) for row in rows])


def _cells(row: Json, *, dated: bool) -> list[str | None]:
    published = [row.get("published_at")] if dated else []
    return [
        row["name"],
        row["version"],
        *published,
        str(row.get("total_downloads", "")),
        row.get("description"),
    ]


def _listening(folder: Path, host: str, port: int) -> RegistryServer:
    from iii_directory.cli.running import cannot_listen
    from iii_directory.registry_server.server import RegistryServer

    try:
        return RegistryServer(folder, host=host, port=port)
    except OSError as error:
        fail(cannot_listen(host, port, error, "--port"))


async def _until_stopped(sentence: str) -> None:
    from iii_directory.cli.running import stop_signal

    stopped = stop_signal()
    say(sentence)
    await stopped.wait()


def _as_dict(done: Published) -> dict[str, object]:
    return {
        "worker": done.worker,
        "version": done.version,
        "tags": done.tags,
        "new": done.is_new,
        "files": list(done.files),
        "left_out": list(done.left_out),
    }


def _print_published(done: Published) -> None:
    tags = sorted(tag for tag, version in done.tags.items() if version == done.version)
    tagged = f" ({', '.join(tags)})" if tags else ""
    state = "published" if done.is_new else "was published before:"
    print_text(f"{state} {done.worker} {done.version}{tagged}: {len(done.files)} files")
    if done.left_out:
        note(f"hidden files and files that are no text are left out: {', '.join(done.left_out)}")
