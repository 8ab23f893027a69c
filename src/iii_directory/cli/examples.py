"""Examples for the help of every command, in one place, so that the tests can read each as it is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "up": ("up", "up --port 50000 --skills-folder ~/skills", "up --in-memory"),
    "engine": ("engine", "engine --port 0 --in-memory"),
    "serve": ("serve", "serve --url ws://engine.example:49134"),
    "status": ("status", "status --json"),
    "open": ("open", "open --json"),
    "search": ("search fill in a form", "search send mail --kind function", "search excel --json"),
    "skills": ("skills list", "skills show iii-directory", "skills outdated"),
    "skills list": ("skills list", "skills list --all --search mail", "skills list --json"),
    "skills show": ("skills show iii-directory", "skills show pdf scripts/fill.py"),
    "skills files": ("skills files pdf", "skills files pdf --json"),
    "skills export": ("skills export pdf ./copy",),
    "skills path": ("skills path pdf", "skills path pdf scripts/fill.py"),
    "skills budget": ("skills budget", "skills budget --host codex"),
    "skills index": ("skills index",),
    "skills new": ("skills new order-coffee",),
    "skills eval": ("skills eval pdf", "skills eval cases.yaml"),
    "skills check": ("skills check", "skills check ./skills/order-coffee"),
    "skills hide": ("skills hide pdf", "skills hide 'draft-*' --off"),
    "skills enable": ("skills enable pdf",),
    "skills show-only": ("skills show-only pdf docx",),
    "skills usage": ("skills usage", "skills usage --unused"),
    "skills link": ("skills link --to claude-code", "skills link pdf --to codex --to cursor"),
    "skills unlink": ("skills unlink pdf", "skills unlink pdf --to codex"),
    "skills facts": ("skills facts pdf", "skills facts ./skills/order-coffee"),
    "skills add": (
        "skills add agent-memory",
        "skills add agent-memory@1.2.0",
        "skills add https://github.com/anthropics/skills --skill pdf --dry-run",
    ),
    "skills update": ("skills update", "skills update pdf --prune"),
    "skills outdated": ("skills outdated",),
    "skills verify": ("skills verify", "skills verify pdf"),
    "skills diff": ("skills diff pdf",),
    "skills restore": ("skills restore", "skills restore pdf --force"),
    "skills remove": ("skills remove pdf",),
    "prompts": ("prompts list", "prompts show standup"),
    "prompts list": ("prompts list", "prompts list --json"),
    "prompts show": ("prompts show standup",),
    "config": ("config show",),
    "config show": ("config show", "config show --json"),
    "config check": ("config check",),
    "config init": ("config init",),
    "config schema": ("config schema",),
    "doctor": ("doctor", "doctor --why coffee", "doctor --json"),
    "registry": (
        "registry search mail",
        "registry add ./my-worker --registry ./registry --version 1.0.0",
        "registry serve ./registry",
    ),
    "registry add": ("registry add ./my-worker --registry ./registry --version 1.0.0",),
    "registry list": ("registry list", "registry list --registry ./registry --json"),
    "registry search": ("registry search mail", "registry search send mail --registry ./registry"),
    "registry yank": (
        "registry yank my-worker 1.0.0 --registry ./registry",
        "registry yank my-worker 1.0.0 --registry ./registry --undo",
    ),
    "registry serve": ("registry serve ./registry", "registry serve ./registry --port 0"),
    "mcp": ("mcp", "mcp --http", "mcp --print-config claude-desktop --up", "mcp --expose 'mail::*'"),
    "completion": ("completion bash", "completion fish"),
    "trigger": (
        "trigger directory::skills::index",
        "trigger directory::skills::list search=mail",
        'trigger state::set --payload \'{"scope": "s", "key": "k"}\' value=1',
    ),
}
"""By the words of the command: command lines that begin with ``iii-directory``. Every command has some."""


def with_examples(command: click.Command, path: str) -> click.Command:
    """The command, and those below it, with their examples at the end of their help."""
    import click

    lines = [f"  iii-directory {line}" for line in EXAMPLES.get(path, ())]
    if lines:
        examples = "\n".join(("\b", "Examples:", *lines))
        command.epilog = f"{examples}\n\n{command.epilog}" if command.epilog else examples
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            with_examples(below, f"{path} {name}")
    return command
