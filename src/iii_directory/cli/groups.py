"""Commands with commands below them: every summary whole, and a wrong word leads to the right one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from iii_directory.suggest import close_names
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

OTHER_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("install", "i"), "add"),
    **dict.fromkeys(("uninstall", "delete", "rm"), "remove"),
    **dict.fromkeys(("upgrade", "up"), "update"),
    **dict.fromkeys(("get", "read", "cat", "view"), "show"),
    **dict.fromkeys(("find", "search"), "list --search"),
    **dict.fromkeys(("publish",), "add"),
    "ls": "list",
    "check": "verify",
    "status": "verify",
    "reset": "restore",
}
"""Words of other programs for what a group of ours may have, and ours."""


def meant(word: str, commands: Collection[str], other_words: Mapping[str, str]) -> str | None:
    """The command that a word stands for which is none, if one can be told."""
    others = {
        other: ours
        for other, ours in other_words.items()
        if ours.split()[0] in commands and other not in commands
    }
    if word in others:
        return others[word]
    close = close_names(word, {*commands, *others})
    return others.get(close[0], close[0]) if close else None


class Group(click.Group):
    """A group of commands."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of each command's help, on as many lines as it needs."""
        named = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, _summary(found)) for name, found in named if found is not None and not found.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            close = meant(word, self.commands, OTHER_WORDS)
            hint = f" Did you mean: {ctx.command_path} {close}?" if close else ""
            ctx.fail(f"there is no command {quoted(word)} here.{hint}")
        return super().resolve_command(ctx, args)

    def group(self, *args: Any, **kwargs: Any) -> Any:
        return super().group(*args, **{"cls": Group, **kwargs})


def _summary(command: click.Command) -> str:
    text = " ".join((command.help or "").split())
    sentence, dot, _ = text.partition(". ")
    return sentence + dot.strip() if dot else text
