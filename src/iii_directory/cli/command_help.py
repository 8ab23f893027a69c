"""Help for people who type: groups of commands, examples in every help, and completion for shells."""

from __future__ import annotations

import contextlib
import importlib
import io
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from iii_directory.cli.common import EXIT_CODES, PROGRAM, default_config, engine_url, is_named, listens
from iii_directory.cli.main import COMMANDS, COMPLETE_VARIABLE, command_of
from iii_directory.cli.tokens import engine_token
from iii_directory.text import has_unsafe, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    Completer = Callable[[click.Context, click.Parameter, str], list[str]]

# Words of other programs, and the command of a group here that does the same.
OTHER_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("install", "i"), "add"),
    **dict.fromkeys(("uninstall", "delete", "rm"), "remove"),
    **dict.fromkeys(("upgrade", "up"), "update"),
    **dict.fromkeys(("get", "read", "cat", "view"), "show"),
    **dict.fromkeys(("publish",), "add"),
    "ls": "list",
    "check": "verify",
    "status": "verify",
    "reset": "restore",
}
# The commands of a large group under headings; a test checks that each command stands under one.
SECTIONS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "skills": {
        "Read": ("list", "show", "files", "path", "export", "index"),
        "Install and update": ("add", "use", "outdated", "update", "verify", "diff", "restore", "remove"),
        "Write": ("new", "check", "eval", "facts"),
        "Decide what agents see": ("hide", "enable", "show-only", "link", "unlink", "budget", "usage"),
    }
}
SHELLS: Final = ("bash", "zsh", "fish")
_WAIT_SECONDS: Final = 2.0
# Command lines for the help of every command, without `iii-directory`; a test parses each one.
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
        "skills add anthropics/skills --list",
        "skills add anthropics/skills --skill pdf --dry-run",
        "skills add agent-memory@1.2.0",
    ),
    "skills use": ("skills use anthropics/skills pdf",),
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
    "mcp": ("mcp", "mcp --http", "mcp --print-config claude-desktop", "mcp --expose 'mail::*'"),
    "completion": ("completion bash", "completion fish"),
    "trigger": (
        "trigger directory::skills::index",
        "trigger directory::skills::list search=mail",
        'trigger state::set --payload \'{"scope": "s", "key": "k"}\' value=1',
    ),
}


def meant(word: str, commands: Collection[str], other_words: Mapping[str, str]) -> str | None:
    """Guess the command that an unknown word stands for."""
    others = {
        other: ours
        for other, ours in other_words.items()
        if ours.split()[0] in commands and other not in commands
    }
    if word in others:
        return others[word]
    from difflib import get_close_matches

    close = get_close_matches(word, [*commands, *others], 1)
    return others.get(close[0], close[0]) if close else None


class CommandGroup(click.Group):
    """A group whose help shows each command's whole first sentence, and whose errors suggest a command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in SECTIONS.get(self.name or "", {"Commands": self.list_commands(ctx)}).items():
            with formatter.section(heading):
                rows: list[tuple[str, str]] = []
                for name in names:
                    sentence, dot, _ = " ".join((self.commands[name].help or "").split()).partition(". ")
                    rows.append((name, sentence + dot.strip()))
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            if word in ("find", "search"):
                close: str | None = f"{PROGRAM} search"
            else:
                close = meant(word, self.commands, OTHER_WORDS)
                close = close and f"{ctx.command_path} {close}"
            hint = f" Did you mean: {close}?" if close else ""
            ctx.fail(f"there is no command {quoted(word)} here.{hint}")
        return super().resolve_command(ctx, args)


def complete_help(command: click.Command, path: str) -> None:
    """Add examples and exit codes to the help of a command and of the commands below it."""
    lines = [f"  {PROGRAM} {line}" for line in EXAMPLES.get(path, ())]
    examples = "\n".join(("\b", "Examples:", *lines, "\n")) if lines else ""
    command.epilog = examples + (command.epilog or EXIT_CODES)
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            complete_help(below, f"{path} {name}")


# Completion

# bash breaks words at colons. Divide the line anew, and do not repeat the part before the last colon.
_WHOLE_WORDS: Final = """\
    local before="${COMP_LINE:0:COMP_POINT}" word="" split=""
    [[ $before == *[[:space:]] ]] || word="${before##*[[:space:]]}"
    [[ $COMP_WORDBREAKS == *:* && $word == *:* ]] && split="${word%:*}:"
    local -a words
    IFS=$' \\t\\n' read -ra words <<< "$before"
    [[ -n $word ]] || words+=("''")
"""


class _AllCommands(click.Group):
    """All commands as one group, each imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (its signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return command_of(cmd_name) if cmd_name in COMMANDS else None


@click.command(
    help="Print a completion script for a shell: put it into ~/.bashrc, ~/.zshrc or "
    "~/.config/fish/completions/iii-directory.fish.",
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click knows all three
    script = found(_AllCommands(PROGRAM), {}, PROGRAM, COMPLETE_VARIABLE).source()
    if shell == "bash":
        for theirs, ours in (
            ("    local response\n", f"    local response\n{_WHOLE_WORDS}"),
            ('"${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD', '"${words[*]}" COMP_CWORD=$((${#words[@]} - 1))'),
            ("COMPREPLY+=($value)", 'COMPREPLY+=("${value#"$split"}")'),
        ):
            script = script.replace(theirs, ours)
    click.echo(script)


def complete(instruction: str) -> NoReturn:
    """Answer a shell that asks for words, and end."""
    from click.shell_completion import shell_complete

    raise SystemExit(shell_complete(_AllCommands(PROGRAM), {}, PROGRAM, COMPLETE_VARIABLE, instruction))


def _completer(words: Callable[[click.Context], Iterator[str]]) -> Completer:
    def found(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        # The user is typing: an error must not be printed into the line, so nothing is suggested then.
        with contextlib.suppress(Exception, SystemExit), contextlib.redirect_stderr(io.StringIO()):
            return [word for word in words(context) if word.startswith(incomplete) and not has_unsafe(word)]
        return []

    return found


def _rows(function_id: str, key: str, field: str, **payload: Any) -> Iterator[str]:
    from iii_directory.cli.source import Where, answer

    reply = answer(Where(default_config(), None), function_id, **payload)
    return (row[field] for row in reply[key])


def _installed(_context: click.Context) -> Iterator[str]:
    from iii_directory.config import load_settings
    from iii_directory.disk.lock_files import InstallRecord

    settings, _ = load_settings(default_config())
    record = InstallRecord(str(settings.skills_folder))
    record.read()
    return iter(record.namespaces)


def _functions(_context: click.Context) -> Iterator[str]:
    url = engine_url(None)
    if not listens(url):
        return iter(())
    from iii_directory.bus.client import call_function

    token = engine_token(url, named=is_named(None))
    reply: Any = call_function(url, "engine::functions::list", {}, timeout=_WAIT_SECONDS, token=token)
    return (row["function_id"] for row in reply["functions"])


complete_skills: Final = _completer(lambda _: _rows("directory::skills::list", "skills", "id"))
complete_prompts: Final = _completer(lambda _: _rows("directory::prompts::list", "prompts", "name"))
# The files of the skill that was typed before.
complete_files: Final = _completer(
    lambda typed: _rows("directory::skills::files", "files", "path", id=typed.params["skill_id"])
)
complete_hosts: Final = _completer(
    lambda _: iter(importlib.import_module("iii_directory.worker.served_skills").HOSTS)
)
complete_namespaces: Final = _completer(_installed)
complete_functions: Final = _completer(_functions)
