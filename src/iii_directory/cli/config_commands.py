"""``iii-directory config``: the settings in force, what is wrong with the file, and a file to start from."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from iii_directory import config
from iii_directory.cli import common
from iii_directory.cli.command_help import CommandGroup
from iii_directory.cli.output import note, print_json, print_table, print_text
from iii_directory.cli.processes import directories, run_of
from iii_directory.cli.tokens import engine_token
from iii_directory.shapes import object_of
from iii_directory.text import shown_url

if TYPE_CHECKING:
    from pathlib import Path

    from iii_directory.cli.processes import Run
    from iii_directory.shapes import Json


@click.group(
    cls=CommandGroup,
    help="The settings: what is in force and where it comes from, what is wrong with the file, a file to "
    "start from, and a schema for editors.",
)
def command() -> None:
    """Group the commands; each reads the file itself, because a broken file is what it reports on."""


@command.command(
    help="Show every setting, its value and where that comes from: the default, the file, the start of the "
    "directory that runs for this folder, or the engine it is on. What the file changes at the next start "
    "says so.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@common.config_option
@common.url_option
def show(as_json: bool, config_path: Path, url: str | None) -> None:
    rows, problems = _in_force(config_path, url)
    if as_json:
        print_json({"settings": [{"key": row.key, "value": row.value, "from": row.origin} for row in rows]})
    else:
        cells = (
            (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), origin)
            for key, value, origin in rows
        )
        print_table(("key", "value", "from"), cells, whole=True)
    _warn(config_path)
    for problem in problems:
        note(f"{problem}; it is not used")


@command.command(help="Say what is wrong with the file; nothing is started.")
@common.config_option
def check(config_path: Path) -> None:
    if not os.path.lexists(config_path):
        common.fail(f"{config_path} does not exist; write one: iii-directory config init")
    if _warn(config_path):
        raise SystemExit(1)
    note(f"{config_path} is fine")


@command.command(help="Write a file with every setting, its default and what it is for.")
@common.config_option
def init(config_path: Path) -> None:
    try:
        with config_path.open("x", encoding="utf-8") as file:
            file.write(config.sample())
    except FileExistsError:
        common.fail(f"there is a {config_path} already; it was left as it is")
    except OSError as error:
        common.fail(f"{config_path} cannot be written: {error.strerror}")
    note(f"wrote {config_path}: every line is a default and commented out")


@command.command(help="Print a JSON Schema of the file, for editors.")
def schema() -> None:
    print_text(json.dumps(config.json_schema(), indent=2))


def _in_force(config_path: Path, url: str | None) -> tuple[list[config.CurrentSetting], list[str]]:
    """Return every setting, and a sentence for each value from outside the file that cannot be used."""
    from iii_directory.bus.client import EngineUnreachableError, RemoteError
    from iii_directory.bus.seam import is_embedded

    home, file = config_path.parent, str(config_path)
    document, _ = config.read_document(config_path)
    now, _ = config.parse_settings(document, config.real_path(config_path).parent)
    run, address = run_of(home), common.engine_url(url, home)
    homes = [run.home for run in directories() if run.url == address]
    # Without --url, an engine that only other folders use is not asked.
    is_of_others = bool(homes) and str(config.real_path(home)) not in homes
    is_asked = url is not None or (not is_of_others and common.listens(address))
    waiting = _waiting(now, run)
    said = config.Origin(file, {key: value for key, value in document.items() if key not in waiting})
    usual: list[config.Origin] = []
    elsewhere: list[config.Origin] = []
    if run is not None:
        # An option of the running directory may have named another folder.
        other = run.skills_folder != str(now.skills_folder)
        folder = {"skills_folder": run.skills_folder} if other else {}
        elsewhere.append(config.Origin(f"the start of pid {run.pid}", {**waiting, **folder}))
    if is_asked:
        token = engine_token(address, home, named=common.is_named(url))
        # `_configuration` reports an engine that does not answer.
        with suppress(EngineUnreachableError, RemoteError):
            if is_embedded(_ask(address, token, "engine::health::check", {})):
                usual.append(config.Origin("default on the embedded engine", {"auto_download": False}))
        values, alone = config.set_on_engine(_configuration(address, token))
        for sentence in alone:
            note(f"the engine: {sentence}")
        elsewhere.append(config.Origin(f"the engine at {shown_url(address)}", values))
    rows, _ = config.in_force((*usual, said, *elsewhere))
    later = f"what {file} says takes effect at the next start"
    rows = [row._replace(origin=f"{row.origin}; {later}") if row.key in waiting else row for row in rows]
    return rows, config.in_force(elsewhere)[1]


def _waiting(now: config.Settings, run: Run | None) -> Json:
    """Return what a running directory started with, where the file now says something else."""
    before = (run.at_start if run else None) or {}
    return {
        key: before[key]
        for key, value in config.at_next_start(now).items()
        if before.get(key, value) != value
    }


def _ask(address: str, token: str | None, function_id: str, payload: Json) -> object:
    from iii_directory.bus.client import call_function
    from iii_directory.wire.protocol import DEFAULT_NAMESPACE

    return call_function(
        address,
        function_id,
        payload,
        timeout=common.CONNECT_SECONDS,
        token=token,
        namespace=DEFAULT_NAMESPACE,
    )


def _configuration(url: str, token: str | None) -> object:
    """Ask the engine for its configuration of this worker; None, with a note, if it cannot be used."""
    from iii_directory.bus.client import EngineUnreachableError, RemoteError
    from iii_directory.wire.protocol import FUNCTION_NOT_FOUND, NOT_FOUND

    get, asked = "configuration::get", {"id": config.CONFIGURATION_ID}
    try:
        # Before anything is set, only the raw value can be read: null does not match the schema.
        kept = _ask(url, token, get, {**asked, "raw": True})
        return kept if object_of(kept).get("value") is None else _ask(url, token, get, asked)
    except EngineUnreachableError as error:
        note(f"{error}; what is set there is not shown")
    except RemoteError as error:
        # The engine has no configuration, or has nothing set for this worker.
        if error.body.get("code") not in (FUNCTION_NOT_FOUND, NOT_FOUND):
            note(f"what is set on the engine cannot be used: {error}")
    return None


def _warn(config_path: Path) -> list[str]:
    _, warnings = config.load_settings(config_path)
    for warning in warnings:
        note(warning)
    return warnings
