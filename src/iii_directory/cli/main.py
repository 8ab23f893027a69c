"""The front door: find the command, import only what it needs, hand over.

``--help``, ``--version`` and ``--manifest`` are answered here, before anything slow is imported.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NoReturn

from iii_directory import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("up", "run the directory here, on an engine of its own if none answers"),
    "engine": ("engine", "run the embedded engine alone"),
    "serve": ("serve", "run the worker alone, on an engine that is already there"),
    "status": ("status", "say what runs where, and whose folder it shows"),
    "open": ("open_page", "open the web page of the running directory"),
    "search": ("search", "find skills, prompts, functions and workers by words"),
    "skills": ("skills", "list, show, install and update skills, with or without an engine"),
    "prompts": ("prompts", "list or show the prompts, with or without an engine"),
    "config": ("config", "show or check the settings, or write a file to start from"),
    "doctor": ("doctor", "say what was left out of the catalogue, and what to do about it"),
    "registry": ("registry", "see what a registry has, or have one of your own"),
    "mcp": ("mcp", "show an engine's directory to MCP clients, over stdio or HTTP"),
    "completion": ("completion", "print what lets a shell complete commands, ids and names"),
    "trigger": ("trigger", "call any function on the engine"),
}
"""Each command: the module below iii_directory.cli that has it, and what it does."""

DESCRIPTION = (
    "Tells agents what an iii engine offers: skills, prompts, functions and the workers registry, "
    "with an engine of its own inside."
)

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
"""Words of other programs for what this one does, and its own."""

COMPLETE_VARIABLE = "_III_DIRECTORY_COMPLETE"
"""How a shell asks for words to complete with."""
HELP_COLUMNS = 100
INTERRUPTED = 130
"""What a shell calls the end by Ctrl-C: 128 and the number of the signal."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; ends the process with its exit code, and after Ctrl-C at once and without a trace."""
    args = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            _dispatch(args)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        end_at_once(INTERRUPTED)
    except OSError as error:
        if not _is_about_output(error):
            raise
        _no_more_output()
        sys.stderr.write(f"iii-directory: the output cannot be written: {error.strerror}\n")
        raise SystemExit(1) from None


def _dispatch(args: list[str]) -> None:
    if COMPLETE_VARIABLE in os.environ:
        from iii_directory.cli.completion import complete

        complete(os.environ[COMPLETE_VARIABLE])
    if args[:1] == ["--no-pager"]:
        from iii_directory.cli.terminal import use_no_pager

        use_no_pager()
        args = args[1:]
    if args[:1] in (["--help"], ["-h"], ["help"]):
        _help(args[1:])
    elif args[:1] in (["--version"], ["-V"]):
        _print(f"iii-directory {__version__}")
    elif "--manifest" in args:
        _print(manifest())
    elif not args and _wants_help():
        _print(help_text())
    elif not args or args[0].startswith("-"):
        _run("serve", args, "iii-directory")
    elif args[0] in COMMANDS:
        _run(args[0], args[1:], f"iii-directory {args[0]}")
    else:
        _unknown(args[0])


def help_text() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items())
    return f"""Usage: iii-directory COMMAND [OPTIONS]
       iii-directory [--config PATH] [--url URL]    the same as serve

Tells agents what an iii engine offers: skills, prompts, functions and the
workers registry, with an engine of its own inside.

Commands:
{rows}

Options:
  -h, --help     show this text; after a command, its own
  -V, --version  show the version
  --no-pager     print at once what is longer than the screen
  --manifest     describe this worker as JSON

Start with: iii-directory up"""


def manifest() -> str:
    """What a registry or a daemon wants to know of this worker, as JSON."""
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


def _help(words: list[str]) -> None:
    """The help of a command, or of all."""
    if not words or words[0].startswith("-"):
        _print(help_text())
    elif words[0] in COMMANDS:
        _run(words[0], [*words[1:], "--help"], f"iii-directory {words[0]}")
    else:
        _unknown(words[0])


def _wants_help() -> bool:
    """Whether a person typed the name alone, with no engine there that a worker could join."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    from iii_directory.cli.common import engine_url, listens

    return not listens(engine_url(None))


def _run(name: str, args: list[str], program: str) -> None:
    command = import_module(f"iii_directory.cli.{COMMANDS[name][0]}").command
    import click

    if not {"--help", "-h"}.isdisjoint(args):
        from iii_directory.cli.examples import with_examples

        command = with_examples(command, name)
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
    from iii_directory.cli.groups import meant
    from iii_directory.text import escaped

    close = meant(name, COMMANDS, OTHER_WORDS)
    hint = f" Did you mean: {close}?" if close else ""
    shown = escaped(name)
    sys.stderr.write(f"iii-directory: there is no command '{shown}'.{hint} See iii-directory --help.\n")
    raise SystemExit(2)


def _is_about_output(error: OSError) -> bool:
    """Whether what we print has no place to go; whatever else fails on a disk has its own sentence."""
    import errno

    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE)


def _no_more_output() -> None:
    """What Python still holds for stdout would fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def end_at_once(code: int) -> NoReturn:
    """Without waiting for threads: what they do is either done or put right at the next start."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
