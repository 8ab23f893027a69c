"""``iii-directory registry``: a workers registry of one's own, over a folder of published workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import EXIT_CODES, fail
from iii_directory.cli.groups import Group
from iii_directory.cli.output import note, print_json, print_text
from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from iii_directory.registry_server.release import Published
    from iii_directory.registry_server.server import RegistryServer

DEFAULT_PORT = 3118


@click.group(
    cls=Group,
    help="A workers registry of your own: publish workers into a folder, and serve it. Whoever has its "
    "address as registry_url installs from it.",
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
    click.echo("stopped")


@command.command(
    help="Publish the worker in a folder (worker.yaml or iii.worker.yaml, README.md, skills/, prompts/). A "
    "version never changes; the worker's name is that in the first, else that of the folder.",
    epilog=EXIT_CODES,
)
@click.argument("path", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--registry",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of published workers; made if it is missing.",
)
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
    click.echo(sentence)
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
