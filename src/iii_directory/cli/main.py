"""Entry point: find the command, import only what it needs, and run it.

``--help``, ``--version`` and ``--manifest`` are answered here, before anything slow is imported.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from iii_directory import __version__

if TYPE_CHECKING:
    import click

# Each command: the module and variable below iii_directory.cli that have it, and what it does.
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("up:command", "run the directory of this folder, with an engine if none answers"),
    "search": ("search_commands:command", "find skills, prompts, functions and workers by words"),
    "skills": ("skills_commands:skills", "list, show, write, install and update skills"),
    "prompts": ("skills_commands:prompts", "list or show prompts"),
    "open": ("engine_commands:open_page", "open the web page of the running directory"),
    "mcp": ("mcp_commands:command", "serve this folder's skills to MCP clients, over stdio or HTTP"),
    "doctor": ("doctor:command", "say what was left out of the catalogue, and what to do about it"),
    "status": ("engine_commands:status", "say what runs where, and which folder it serves"),
    "config": ("config_commands:command", "show or check the settings, or write a file to start from"),
    "trigger": ("engine_commands:trigger", "call any function on the engine"),
    "registry": ("registry_commands:command", "see what a registry has, or publish one of your own"),
    "serve": ("engine_commands:serve", "run the worker alone, on an engine that already runs"),
    "engine": ("engine_commands:engine", "run the embedded engine alone"),
    "completion": ("command_help:completion", "print a completion script for a shell"),
}

DESCRIPTION = (
    "Tells agents what an iii engine offers: skills, prompts, functions and the workers registry, "
    "with an engine of its own inside."
)

# Words of other programs, and the command that does the same here.
OTHER_WORDS: dict[str, str] = {
    **dict.fromkeys(("run", "start"), "up"),
    **dict.fromkeys(("add", "install"), "skills add"),
    **dict.fromkeys(("list", "ls"), "skills list"),
    "find": "search",
    **dict.fromkeys(("show", "get", "read"), "skills show"),
    **dict.fromkeys(("call", "invoke"), "trigger"),
    **dict.fromkeys(("diagnostics", "diagnose", "check"), "doctor"),
    "upgrade": "skills update",
    "publish": "registry add",
}

# A shell that asks for completions sets this variable.
COMPLETE_VARIABLE = "_III_DIRECTORY_COMPLETE"
HELP_COLUMNS = 100
# The exit code that shells use for Ctrl-C: 128 and the number of the signal.
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run a command and end the process with its exit code; Ctrl-C ends it at once, without a traceback."""
    args = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            _dispatch(args)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        end_at_once(INTERRUPTED)
    except OSError as error:
        import errno

        # Commands report errors of other files themselves; these are about stdout.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE):
            raise
        # What Python still buffers for stdout would fail again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stderr.write(f"iii-directory: the output cannot be written: {error.strerror}\n")
        raise SystemExit(1) from None


def _dispatch(args: list[str]) -> None:
    if COMPLETE_VARIABLE in os.environ:
        from iii_directory.cli.command_help import complete

        complete(os.environ[COMPLETE_VARIABLE])
    if args[:1] == ["--no-pager"]:
        os.environ["PAGER"] = "cat"
        args = args[1:]
    if args[:1] in (["--config"], ["--url"]) and not COMMANDS.keys().isdisjoint(args[2:3]):
        # Other programs take such options before the command.
        args = [*args[2:], *args[:2]]
    if args[:1] in (["--help"], ["-h"], ["help"]):
        # `help COMMAND` is `COMMAND --help`; alone it is the help of everything.
        args = [*args[1:], "--help"]
        is_answered = args[0].startswith("-")
    else:
        is_answered = not args and _wants_help()
    if is_answered:
        _print(help_text())
    elif args[:1] in (["--version"], ["-V"]):
        _print(f"iii-directory {__version__}")
    elif "--manifest" in args:
        _print(manifest())
    elif not args or args[0].startswith("-"):
        _run("serve", args, "iii-directory")
    elif args[0] in COMMANDS:
        _run(args[0], args[1:], f"iii-directory {args[0]}")
    else:
        _unknown(args[0])


def command_of(name: str) -> click.Command:
    """Import the command called ``name``."""
    module, _, variable = COMMANDS[name][0].partition(":")
    return getattr(import_module(f"iii_directory.cli.{module}"), variable)


def help_text() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items())
    return f"""Usage: iii-directory COMMAND [OPTIONS]
       iii-directory [--config PATH] [--url URL]    short for serve

Tells agents which skills, prompts and functions exist and how to use them.
Most commands read the skills folder of this project and need no engine.

Commands:
{rows}

Options:
  -h, --help     show this text; after a command, its own
  -V, --version  show the version
  --no-pager     print long output at once instead of page by page
  --manifest     describe this worker as JSON

Start with: iii-directory up"""


def manifest() -> str:
    """Describe this worker as JSON, for registries and daemons that start workers."""
    import json

    from iii_directory.config import default_document

    return json.dumps(
        {
            "name": "iii-directory",
            "version": __version__,
            "description": DESCRIPTION,
            "default_config": default_document(),
            "supported_targets": ["any"],
        },
        indent=2,
    )


def _wants_help() -> bool:
    """Return whether a person typed the name alone and no engine answers that the worker could join."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    from iii_directory.cli.common import engine_url, listens

    return not listens(engine_url(None))


def _run(name: str, args: list[str], program: str) -> None:
    command = command_of(name)
    import click

    if not args or not {"--help", "-h"}.isdisjoint(args):
        from iii_directory.cli.command_help import complete_help

        complete_help(command, name)
    try:
        code = command.main(
            args=args,
            prog_name=program,
            standalone_mode=False,
            help_option_names=["-h", "--help"],
            max_content_width=HELP_COLUMNS,
        )
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    raise SystemExit(code or 0)


def _unknown(name: str) -> None:
    from iii_directory.cli.command_help import meant
    from iii_directory.text import escaped

    close = meant(name, COMMANDS, OTHER_WORDS)
    hint = f" Did you mean: {close}?" if close else ""
    shown = escaped(name)
    sys.stderr.write(f"iii-directory: there is no command '{shown}'.{hint} See iii-directory --help.\n")
    raise SystemExit(2)


def end_at_once(code: int) -> NoReturn:
    """End the process without waiting for threads: unfinished work is put right at the next start."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
