"""The front door: find the command, import only what it needs, hand over.

``--help``, ``--version`` and ``--manifest`` are answered here, before anything slow is imported.
"""

from __future__ import annotations

import sys

from iii_directory import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("up", "run the directory here, on an engine of its own if none answers"),
    "engine": ("engine", "run the embedded engine alone"),
    "serve": ("serve", "run the worker alone, on an engine that is already there"),
    "skills": ("skills", "list, show, install and update skills, with or without an engine"),
    "prompts": ("prompts", "list or show the prompts, with or without an engine"),
    "doctor": ("doctor", "say what was left out of the catalogue, and what to do about it"),
    "registry": ("registry", "publish workers into a registry of one's own, and serve it"),
    "mcp": ("mcp", "show an engine's directory to MCP clients, over stdio or HTTP"),
    "trigger": ("trigger", "call any function on the engine"),
}
"""Each command: the module below iii_directory.cli that has it, and what it does."""

DESCRIPTION = (
    "Tells agents what an iii engine offers: skills, prompts, functions and the workers registry, "
    "with an engine of its own inside."
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; ends the process with its exit code."""
    args = sys.argv[1:] if arguments is None else arguments
    if args[:1] in (["--help"], ["-h"], ["help"]):
        _print(help_text())
    elif args[:1] == ["--version"]:
        _print(f"iii-directory {__version__}")
    elif "--manifest" in args:
        _print(manifest())
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

{DESCRIPTION}

Commands:
{rows}

Options:
  --help      show this text; after a command, its own
  --version   show the version
  --manifest  describe this worker as JSON

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


def _run(name: str, args: list[str], program: str) -> None:
    from importlib import import_module

    command = import_module(f"iii_directory.cli.{COMMANDS[name][0]}").command
    command.main(args=args, prog_name=program)


def _unknown(name: str) -> None:
    from iii_directory.suggest import close_names
    from iii_directory.text import escaped

    close = close_names(name, COMMANDS.keys())
    hint = f" Did you mean: {close[0]}?" if close else ""
    shown = escaped(name)
    sys.stderr.write(f"iii-directory: there is no command '{shown}'.{hint} See iii-directory --help.\n")
    raise SystemExit(2)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
