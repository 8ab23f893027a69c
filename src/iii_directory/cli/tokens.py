"""Tokens of commands: what a listener asks for, and what is shown to an engine.

A token that nobody chose is made once and kept in a file of the data directory that its owner alone can read.
Our own commands find it there; whoever else should connect is given it by the owner.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import click

from iii_directory.access.kept_secret import ExposedError, kept_secret, made_secret
from iii_directory.access.ownership import can_tell
from iii_directory.access.policy import KEPT_TOKEN, is_loopback
from iii_directory.cli.common import Command, fail
from iii_directory.cli.output import say
from iii_directory.cli.runs import all_runs
from iii_directory.config import DATA_FOLDER, DEFAULT_URL, TOKEN_VARIABLE
from iii_directory.limits import MIN_TOKEN_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterator

AUTO: Final = "auto"


class TokenRule(NamedTuple):
    """What a listener asks for."""

    token: str | None
    asks_everybody: bool = True
    """Whether also of the user who started it, whom the kernel knows."""
    kept_in: Path | None = None
    """The file of a token that nobody chose."""

    def told(self) -> str:
        """Where the token is, in words."""
        return f"kept in {self.kept_in}; others show it as 'Authorization: Bearer …', you need none here"


def token_option(command: Command) -> Command:
    return click.option(
        "--token",
        default=None,
        help=f"Ask every client for this token, of at least {MIN_TOKEN_CHARS} characters. '{AUTO}' makes one "
        "that only you can read, keeps it in the data directory, and asks others for it.  "
        "[default: $III_TOKEN]",
    )(command)


def rule_for(given: str | None, data: Path | None) -> TokenRule:
    """What a listener asks for, or one sentence about why that cannot be."""
    if given != AUTO:
        return TokenRule(given or os.environ.get(TOKEN_VARIABLE) or None)
    if data is None:
        fail("--token auto keeps the token in the data directory; leave --in-memory out", code=2)
    try:
        return TokenRule(made_secret(data, KEPT_TOKEN), asks_everybody=False, kept_in=data / KEPT_TOKEN)
    except OSError as error:
        fail(f"the token cannot be kept in {data}: {error.strerror}")
    except ExposedError as error:
        fail(f"{error}; delete it, and a new token is made")


def engine_token(url: str, home: Path | None = None, *, named: bool) -> str | None:
    """What to show the engine at an address: the token of the environment, else one that was made for it.

    The folder is that of the configuration; without one, where we stand. Ask for a connection that is to be
    made: if the token is kept from it, that is said.
    """
    chosen = os.environ.get(TOKEN_VARIABLE)
    if chosen or not is_loopback(urlsplit(url).hostname or ""):
        return kept_from_squatters(url, chosen or None, named=named)
    for folder in _data_folders(url, home or Path()):
        with suppress(OSError, ExposedError):
            return kept_secret(folder, KEPT_TOKEN)
    return None


def kept_from_squatters(url: str, token: str | None, *, named: bool) -> str | None:
    """A token for an address that was named; for the usual one else, unless anybody might listen there.

    Where the kernel says who listens, it is asked when there is a connection to make. Where it does not, only
    an engine that has said so in the private folder of our runs, and holds its file locked, is known as ours.
    """
    ours = (run.url for run in all_runs() if run.embedded)
    # Nobody named it here, but it is not the usual one: then it is that of a directory of ours.
    known = named or url != DEFAULT_URL
    if token is None or known or can_tell() or url in ours:
        return token
    say(
        f"the token is not sent to {url}: this system does not say who listens there. "
        f"If it is your engine, name it: --url {url}",
        err=True,
    )
    return None


def _data_folders(url: str, home: Path) -> Iterator[Path]:
    """Where the engine at an address may keep its state: as it says, or where it usually does.

    The usual place says nothing of who listens at the address now: that, the kernel must be able to tell.
    """
    for run in all_runs():
        if run.url == url and run.data is not None:
            yield Path(run.data)
    if can_tell():
        yield home / DATA_FOLDER
        yield home / "data"
