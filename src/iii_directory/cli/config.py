"""``iii-directory config``: the settings in force, what is wrong with the file, and a file to start from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from iii_directory.cli.common import EXIT_CODES, config_option, fail
from iii_directory.cli.output import note, print_json, print_table, print_text

if TYPE_CHECKING:
    from pathlib import Path


@click.group(
    help="The settings: what is in force and where it comes from, what is wrong with the file, a file to "
    "start from, and a schema for editors.",
    epilog=EXIT_CODES,
)
def command() -> None:
    """The commands read the file themselves: a broken one is what they are asked about."""


@command.command(help="Show every setting, its value and where that comes from.", epilog=EXIT_CODES)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_option
def show(as_json: bool, config_path: Path) -> None:
    from iii_directory.config import SETTINGS, read_document

    document, _ = read_document(config_path)
    rows = [_row(setting.key, setting.default, document, str(config_path)) for setting in SETTINGS]
    if as_json:
        print_json({"settings": rows})
    else:
        print_table(
            ("key", "value", "from"),
            [(row["key"], _written(row["value"]), row["from"]) for row in rows],
            whole=True,
        )
    _warn(config_path)


@command.command(help="Say what is wrong with the file; nothing is started.", epilog=EXIT_CODES)
@config_option
def check(config_path: Path) -> None:
    if not config_path.exists():
        fail(f"there is no {config_path}; write one: iii-directory config init")
    if _warn(config_path):
        raise SystemExit(1)
    note(f"{config_path} is fine")


@command.command(help="Write a file with every setting, its default and what it is for.", epilog=EXIT_CODES)
@config_option
def init(config_path: Path) -> None:
    from iii_directory.config import sample

    try:
        with config_path.open("x", encoding="utf-8") as file:
            file.write(sample())
    except FileExistsError:
        fail(f"there is a {config_path} already; it was left as it is")
    except OSError as error:
        fail(f"{config_path} cannot be written: {error.strerror}")
    note(f"wrote {config_path}: every line is a default and commented out")


@command.command(help="Print a JSON Schema of the file, for editors.", epilog=EXIT_CODES)
def schema() -> None:
    from iii_directory.config import json_schema

    print_text(json.dumps(json_schema(), indent=2))


def _row(key: str, default: object, document: dict[str, Any], path: str) -> dict[str, Any]:
    is_set = document.get(key) is not None
    return {"key": key, "value": document[key] if is_set else default, "from": path if is_set else "default"}


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _warn(config_path: Path) -> list[str]:
    from iii_directory.config import load_settings

    _, warnings = load_settings(config_path)
    for warning in warnings:
        note(warning)
    return warnings
