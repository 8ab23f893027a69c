"""``iii-directory completion``: what lets a shell complete commands, options, ids and names."""

from __future__ import annotations

import contextlib
import io
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from iii_directory.cli.common import EXIT_CODES, PROGRAM, default_config, engine_url, is_named, listens
from iii_directory.cli.main import COMMANDS, COMPLETE_VARIABLE
from iii_directory.cli.tokens import engine_token
from iii_directory.text import has_unsafe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Completer = Callable[[click.Context, click.Parameter, str], list[str]]

SHELLS = ("bash", "zsh", "fish")
_WHOLE_WORDS = """\
    local before="${COMP_LINE:0:COMP_POINT}" word="" split=""
    [[ $before == *[[:space:]] ]] || word="${before##*[[:space:]]}"
    [[ $COMP_WORDBREAKS == *:* && $word == *:* ]] && split="${word%:*}:"
    local -a words
    IFS=$' \\t\\n' read -ra words <<< "$before"
    [[ -n $word ]] || words+=("''")
"""
"""For bash, which breaks words at colons: the line is divided anew, and what stands there is not repeated."""
_WAIT_SECONDS = 2.0


@click.command(
    help="Print a script for the shell: put it into ~/.bashrc, ~/.zshrc or "
    "~/.config/fish/completions/iii-directory.fish.",
    epilog=EXIT_CODES,
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click knows all three
    script = found(_Everything(PROGRAM), {}, PROGRAM, COMPLETE_VARIABLE).source()
    click.echo(_with_whole_words(script) if shell == "bash" else script)


def _with_whole_words(script: str) -> str:
    """The script for bash, such that ids of functions complete too."""
    for theirs, ours in (
        ("    local response\n", f"    local response\n{_WHOLE_WORDS}"),
        ('"${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD', '"${words[*]}" COMP_CWORD=$((${#words[@]} - 1))'),
        ("COMPREPLY+=($value)", 'COMPREPLY+=("${value#"$split"}")'),
    ):
        script = script.replace(theirs, ours)
    return script


def complete(instruction: str) -> NoReturn:
    """Answer a shell that asks for words."""
    from click.shell_completion import shell_complete

    raise SystemExit(shell_complete(_Everything(PROGRAM), {}, PROGRAM, COMPLETE_VARIABLE, instruction))


def skill_ids() -> Completer:
    return _completer(lambda _: _rows("directory::skills::list", "skills", "id"))


def file_paths() -> Completer:
    """The files of the skill whose id was typed before."""
    return _completer(
        lambda typed: _rows("directory::skills::files", "files", "path", id=typed.params["skill_id"])
    )


def hosts() -> Completer:
    return _completer(_hosts)


def prompt_names() -> Completer:
    return _completer(lambda _: _rows("directory::prompts::list", "prompts", "name"))


def namespaces() -> Completer:
    return _completer(_installed)


def function_ids() -> Completer:
    return _completer(_functions)


class _Everything(click.Group):
    """All commands as one group, each imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (its signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        return import_module(f"iii_directory.cli.{COMMANDS[cmd_name][0]}").command


def _completer(words: Callable[[click.Context], Iterator[str]]) -> Completer:
    def found(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        # Somebody is typing: whatever is wrong, there are just no words.
        with contextlib.suppress(Exception, SystemExit), contextlib.redirect_stderr(io.StringIO()):
            return [word for word in words(context) if word.startswith(incomplete) and not has_unsafe(word)]
        return []

    return found


def _rows(function_id: str, key: str, field: str, **payload: Any) -> Iterator[str]:
    from iii_directory.cli.source import Where, answer

    reply = answer(Where(default_config(), None), function_id, **payload)
    return (row[field] for row in reply[key])


def _hosts(_: click.Context) -> Iterator[str]:
    from iii_directory.authoring.served import HOSTS

    return iter(HOSTS)


def _installed(_context: click.Context) -> Iterator[str]:
    from iii_directory.config import load_settings
    from iii_directory.lockfile.reading import InstallRecord

    settings, _ = load_settings(default_config())
    record = InstallRecord(str(settings.skills_folder))
    record.read()
    return iter(record.namespaces)


def _functions(_: click.Context) -> Iterator[str]:
    url = engine_url(None)
    if not listens(url):
        return iter(())
    from iii_directory.bus.client import call_function

    token = engine_token(url, named=is_named(None))
    reply: Any = call_function(url, "engine::functions::list", {}, timeout=_WAIT_SECONDS, token=token)
    return (row["function_id"] for row in reply["functions"])
