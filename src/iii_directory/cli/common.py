"""What commands share: options, the project, the engine's address, the log, and how failures are printed."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import socket
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit

import click

from iii_directory.cli.processes import run_of
from iii_directory.config import (
    CONFIG_FILE,
    DATA_FOLDER,
    DEFAULT_URL,
    Settings,
    load_settings,
    nearest_project,
    real_path,
    user_skills_folder,
)
from iii_directory.errors import RETRY, Step
from iii_directory.text import escaped, quoted, shown_url

Command = TypeVar("Command", bound=Callable[..., Any])
log = logging.getLogger("iii_directory")
CONNECT_SECONDS: Final = 2.0

PROGRAM: Final = "iii-directory"
URL_VARIABLE: Final = "III_URL"

# The command that does the same as a function, for people who are told to call the function.
COMMAND_OF: Final = {
    "directory::search": "search WORDS",
    "directory::skills::list": "skills list",
    "directory::skills::index": "skills index",
    "directory::skills::get": "skills show ID",
    "directory::skills::files": "skills files ID",
    "directory::prompts::list": "prompts list",
    "directory::prompts::get": "prompts show NAME",
    "directory::diagnostics": "doctor",
    "directory::skills::explain": "doctor --why ID",
}
_FOLDER: Final = "iii_directory.skills_folder"
# The types of options: a folder, and a port of which 0 means a free one.
FOLDER: Final = click.Path(path_type=Path, file_okay=False)
PORT: Final = click.IntRange(0, 65535)

EXIT_CODES = "Exit codes: 0 done; 1 it failed, and one sentence on stderr says why; 2 wrong usage."


def default_config() -> Path:
    """Return the configuration file of the project that the current folder belongs to; it may be missing."""
    project = nearest_project(Path())
    return Path(CONFIG_FILE) if project == real_path(Path()) else project / CONFIG_FILE


config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=default_config,
    help=f"The configuration file.  [default: {CONFIG_FILE} of the project, found upward from here]",
)
url_option = click.option(
    "--url", default=None, help=f"The engine's address.  [default: $III_URL, else {DEFAULT_URL}]"
)


def folder_options(command: Command) -> Command:
    """Add ``--skills-folder`` and ``-g``, which `settings_from` applies."""

    def choose(context: click.Context, _option: click.Parameter, given: Path | bool | None) -> None:
        if given:
            folder = user_skills_folder() if given is True else given
            if folder is None:
                fail("this user has no home folder to keep skills in; use --skills-folder")
            context.meta[_FOLDER] = (real_path(folder.expanduser()), given is True)

    folder = click.option(
        "--skills-folder",
        type=FOLDER,
        expose_value=False,
        callback=choose,
        help="The skills folder to work on, instead of the project's.",
    )
    everywhere = click.option(
        "-g",
        "--global",
        is_flag=True,
        expose_value=False,
        callback=choose,
        help="Work on your own skills, which every project reads.",
    )
    return folder(everywhere(command))


def chosen_folder() -> tuple[Path, bool] | None:
    """Return the skills folder that options name, and whether it is the user's; None for the project's."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_FOLDER)


def engine_url(given: str | None, home: Path | None = None) -> str:
    """Return the engine's address: as given, else $III_URL, else the running directory's, else the default.

    ``home`` is the folder of the configuration, by default the current one.
    """
    url = given or os.environ.get(URL_VARIABLE)
    if not url:
        run = run_of(home or Path())
        url = run.url if run else DEFAULT_URL
    if not url.startswith(("ws://", "wss://")):
        fail(f"'{shown_url(url)}' is not an engine's address; it must start with ws:// or wss://", code=2)
    try:
        usable = bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        usable = False
    if not usable:
        fail(f"'{shown_url(url)}' is not an engine's address; it must look like {DEFAULT_URL}", code=2)
    return url


def is_named(given: str | None) -> bool:
    """Return whether the user chose the address, with an option or in the environment."""
    return bool(given or os.environ.get(URL_VARIABLE))


def listens(url: str) -> bool:
    """Return whether anything listens at the address, without importing the WebSocket library."""
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "wss" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class Project:
    """The project that a command serves. ``home`` is the folder of its configuration."""

    home: Path
    config: Path
    settings: Settings

    @property
    def data(self) -> Path:
        """Return the default folder for the state of an embedded engine, and for run files."""
        return default_data(self.home, self.settings.skills_folder)


def project_of(config: Path | None, skills_folder: Path | None) -> Project:
    """Find the project that the options name, else the nearest one from the current folder upward."""
    folder = None if skills_folder is None else real_path(skills_folder.expanduser())
    if config is None:
        home = folder.parent if folder else nearest_project(Path.cwd())
        config = home / CONFIG_FILE
    config = real_path(config)
    settings = settings_from(config)
    if folder is not None:
        settings = replace(settings, skills_folder=folder)
    return Project(config.parent, config, settings)


def default_data(beside: Path, skills_folder: Path | None = None) -> Path:
    """Return the default data directory: hidden, unless the older ``data`` already has a database.

    A skills folder keeps its locks in a folder of the same name; where both would be one, ``data`` is used.
    """
    from iii_directory.engine.sqlite_store import FILE_NAME

    older = beside / "data"
    is_skills_folder = skills_folder is not None and skills_folder == real_path(beside)
    return older if is_skills_folder or (older / FILE_NAME).exists() else beside / DATA_FOLDER


def program() -> str:
    """Return how this command is typed here: by its name where the shell finds it, else as it was started."""
    if shutil.which(PROGRAM):
        return PROGRAM
    started = Path(sys.argv[0])
    if started.name != PROGRAM:
        return f"{sys.executable} -m iii_directory"
    below = Path(os.path.relpath(started))
    return str(started if below.parts[:1] == ("..",) else below)


def settings_from(path: Path) -> Settings:
    """Read the settings of a file; wrong values are reported in the log and replaced by defaults.

    A missing file ends the command if the user named it: running on defaults is not what they asked for.
    """
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source("config_path") if context else None
    if source is click.core.ParameterSource.COMMANDLINE and not path.exists():
        fail(
            f"{path} does not exist; leave --config out for defaults, or write one: {program()} config init",
            code=2,
        )
    settings, warnings = load_settings(path)
    for warning in warnings:
        log.warning("%s", warning if warning.startswith(path.name) else f"{path.name}: {warning}")
    chosen = chosen_folder()
    if chosen is None:
        return settings
    folder, is_user = chosen
    others = {"local_skills_folder": None, "roots": (), "user_folders": ()} if is_user else {}
    return replace(settings, skills_folder=folder, **others)


def set_up_log() -> None:
    """Write the log of this program to stderr, one line per record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_EscapedLines("%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    log.setLevel(logging.INFO)
    logging.getLogger("iii").setLevel(logging.ERROR)
    wanted = os.environ.get("III_DIRECTORY_LOG", "INFO")
    levels = logging.getLevelNamesMapping()
    if wanted.upper() in levels:
        log.setLevel(levels[wanted.upper()])
    else:
        log.warning("III_DIRECTORY_LOG is not a log level: %s; INFO is used", quoted(wanted))


class _EscapedLines(logging.Formatter):
    """Keeps each record on one line, and escapes what could act on a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is the library's
        return escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return "\n".join(map(escaped, super().formatException(ei).split("\n")))


def fail(sentence: str, *, code: int = 1) -> NoReturn:
    """End the command with one sentence on stderr, escaped so that quoted text cannot act on a terminal."""
    click.echo(f"iii-directory: {escaped(sentence)}", err=True)
    raise SystemExit(code)


def replace_file(path: Path, text: str) -> None:
    """Write a file beside the old one and put it in its place, so that no reader gets half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("xb") as file:
        file.write(text.encode())
    if path.exists():
        draft.chmod(stat.S_IMODE(path.stat().st_mode))
    draft.replace(path)


def as_command(step: Step) -> str:
    """Render a next step for a person at a terminal."""
    if step == RETRY:
        return "try again later"
    if not step.function:
        return step.words
    if step.function == "directory::skills::file" and step.payload is not None:
        typed = shlex.join(("skills", "path", str(step.payload["id"]), str(step.payload["path"])))
        return f"run {program()} {typed} to see where it is"
    return f"run {program()} {COMMAND_OF.get(step.function, f'trigger {step.function}')} {step.words}"
