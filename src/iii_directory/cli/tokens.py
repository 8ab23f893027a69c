"""Who may connect: the options of listeners, the token a listener requires, and the token sent to an engine.

With ``--token auto`` a token is generated once and kept in a file of the data directory that only its owner
can read. Commands of the same user find it there; the owner gives it to everyone else who should connect.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import click

from iii_directory.cli.common import FOLDER, Command, fail
from iii_directory.cli.output import say
from iii_directory.cli.processes import all_runs
from iii_directory.config import DATA_FOLDER, DEFAULT_URL, TOKEN_VARIABLE
from iii_directory.limits import MIN_TOKEN_CHARS
from iii_directory.wire.access import KEPT_TOKEN, is_loopback
from iii_directory.wire.ownership import ExposedError, can_tell, kept_secret, made_secret

AUTO: Final = "auto"


class TokenRule(NamedTuple):
    """The token that a listener requires, and from whom."""

    token: str | None
    asks_everybody: bool = True
    """False if the user who started the listener, whom the kernel identifies, needs no token."""
    kept_in: Path | None = None
    """The file of a generated token."""

    def told(self) -> str:
        """Say where the token is."""
        return f"kept in {self.kept_in}; others send it as 'Authorization: Bearer …', you need none here"


token_option = click.option(
    "--token",
    default=None,
    help=f"Require this token, of at least {MIN_TOKEN_CHARS} characters, from every client. '{AUTO}' "
    "generates one, keeps it in the data directory where only you can read it, and requires it from "
    "other users.  [default: $III_TOKEN]",
)


def engine_options(command: Command) -> Command:
    """Add ``--host``, ``--data``, ``--in-memory`` and ``--token``, for commands that start an engine."""
    host = click.option(
        "--host",
        help="The address the embedded engine listens on. Beyond loopback a token is required.  "
        "[default: 127.0.0.1]",
    )
    data = click.option(
        "--data",
        type=FOLDER,
        help="Where the embedded engine keeps state.  [default: .iii-directory, beside the configuration]",
    )
    in_memory = click.option("--in-memory", is_flag=True, help="Keep state in memory only.")
    return host(data(in_memory(token_option(command))))


def rule_for(given: str | None, data: Path | None) -> TokenRule:
    """Decide what a listener requires; a token that cannot be kept ends the command with one sentence."""
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
    """Return the token to send to the engine at an address: $III_TOKEN, else the one generated for it.

    ``home`` is the folder of the configuration, by default the current one. Call this only for a connection
    that is about to be made: when the token is withheld, a line on stderr says so.
    """
    chosen = os.environ.get(TOKEN_VARIABLE)
    if chosen or not is_loopback(urlsplit(url).hostname or ""):
        return withheld_from_strangers(url, chosen or None, named=named)
    folders = [Path(run.data) for run in all_runs() if run.url == url and run.data is not None]
    if can_tell():
        # The usual place says nothing about who listens at the address now; the kernel must be able to tell.
        folders += [(home or Path()) / DATA_FOLDER, (home or Path()) / "data"]
    for folder in folders:
        with suppress(OSError, ExposedError):
            return kept_secret(folder, KEPT_TOKEN)
    return None


def withheld_from_strangers(url: str, token: str | None, *, named: bool) -> str | None:
    """Return ``token``, or None where another user might listen at the default address.

    Where the kernel says who listens, the connection itself checks that. Elsewhere an engine counts as ours
    only if its locked run file lies in the private folder of this user.
    """
    ours = (run.url for run in all_runs() if run.embedded)
    # An address that was not named and is not the default one comes from a run file of this user.
    known = named or url != DEFAULT_URL
    if token is None or known or can_tell() or url in ours:
        return token
    say(
        f"the token is not sent to {url}: this system does not say who listens there. "
        f"If it is your engine, name it: --url {url}",
        err=True,
    )
    return None
