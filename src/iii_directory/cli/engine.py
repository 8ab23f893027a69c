"""``iii-directory engine``: the embedded engine alone."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iii_directory.cli.common import config_option, default_data, set_up_log, settings_from
from iii_directory.cli.output import say
from iii_directory.cli.runs import Run, announced
from iii_directory.cli.tokens import rule_for, token_option
from iii_directory.config import real_path

if TYPE_CHECKING:
    from iii_directory.cli.tokens import TokenRule
    from iii_directory.engine.builtins.workers import Dialect
    from iii_directory.engine.server import EngineServer


@click.command(help="Run the embedded engine alone. Workers and clients connect to it as to any iii engine.")
@config_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Beyond loopback a token is needed.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=49134, show_default=True, help="0 takes a free one."
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where state is kept.  [default: .iii-directory here]",
)
@click.option("--in-memory", is_flag=True, help="Keep state in memory only.")
@token_option
@click.option(
    "--dialect",
    type=click.Choice(["0.22", "0.23", "0.25"]),
    default="0.22",
    show_default=True,
    help="Speak as engines up to 0.22 do; from 0.23 on installed workers are told of by compose::status, and "
    "from 0.25 on functions can be observed.",
)
def command(
    config_path: Path,
    host: str,
    port: int,
    data: Path | None,
    in_memory: bool,
    token: str | None,
    dialect: Dialect,
) -> None:
    from iii_directory.cli.running import new_engine, open_database

    set_up_log()
    settings = settings_from(config_path)
    kept = None if in_memory else data or default_data(config_path.parent, settings.skills_folder)
    rule = rule_for(token, kept)
    server = new_engine(
        settings,
        host=host,
        port=port,
        rule=rule,
        database=open_database(kept),
        dialect=dialect,
    )
    asyncio.run(_serve(server, real_path(config_path).parent, kept, rule))


async def _serve(server: EngineServer, home: Path, kept: Path | None, rule: TokenRule) -> None:
    from iii_directory.cli.running import listen, stop_signal

    stopped = stop_signal()
    await listen(server)
    if rule.kept_in is not None:
        say(f"token {rule.told()}")
    with announced(_run(server, home, kept)):
        say(f"engine at {server.url}, state {f'in {kept}' if kept else 'in memory'}. Ctrl-C stops it.")
        await stopped.wait()
        await server.stop()
    say("stopped")


def _run(server: EngineServer, home: Path, kept: Path | None) -> Run:
    return Run(
        pid=os.getpid(),
        home=str(home),
        # As our commands on this machine write it, by which they know it.
        url=server.url.replace("//0.0.0.0:", "//127.0.0.1:"),
        embedded=True,
        skills_folder=None,
        data=str(real_path(kept)) if kept else None,
        mcp=None,
    )
