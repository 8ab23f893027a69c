"""``iii-directory skills hide``, ``enable`` and ``show-only``: how much of each skill is offered.

They edit the table ``visibility`` of the configuration and keep the rest of the file as it was.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import click

from iii_directory.catalog.origins import FULL, MANUAL, OFF, Levels
from iii_directory.cli.command_help import complete_skills
from iii_directory.cli.common import config_option, fail, replace_file, settings_from
from iii_directory.cli.output import note
from iii_directory.cli.source import loaded
from iii_directory.config import read_document, read_values, real_path
from iii_directory.documents import frontmatter
from iii_directory.documents.ids import INDEX_SUFFIX
from iii_directory.shapes import object_of
from iii_directory.text import close_names, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    Table = Mapping[str, str]

_KEY: Final = "visibility"
_NO_WRAPPING: Final = 1 << 20
_SKILLS = click.argument("skills", metavar="ID...", nargs=-1, required=True, shell_complete=complete_skills)


@click.command(
    help="Offer skills only to those who ask for them by name: they are in no list, index or search. ID may "
    "be a pattern as in shells.",
)
@_SKILLS
@click.option("--off", is_flag=True, help="Serve them to no one.")
@config_option
def hide(skills: tuple[str, ...], off: bool, config_path: Path) -> None:
    level = OFF if off else MANUAL
    _edit(config_path, lambda table: {**dict.fromkeys(skills, level), **_without(table, skills)})
    _note_unknown(config_path, skills)


@click.command(help="Offer skills in full again.")
@_SKILLS
@config_option
def enable(skills: tuple[str, ...], config_path: Path) -> None:
    def enabled(table: Table) -> Table:
        rest = _without(table, skills)
        # A pattern may still hide one of them; a rule of its own comes first.
        levels = Levels(rest)
        own = {skill: FULL for skill in skills if (levels.rule_for(skill) or ("", FULL))[1] != FULL}
        return {**own, **rest}

    _edit(config_path, enabled)


@click.command(
    "show-only", help="Offer these skills in full, and all others only to those who ask for them by name."
)
@_SKILLS
@config_option
def show_only(skills: tuple[str, ...], config_path: Path) -> None:
    def alone(table: Table) -> Table:
        off = {pattern: level for pattern, level in _without(table, skills).items() if level == OFF}
        return {**dict.fromkeys(skills, FULL), **off, "*": MANUAL}

    _edit(config_path, alone)
    _note_unknown(config_path, skills)


COMMANDS: Final = (hide, enable, show_only)


def _note_unknown(path: Path, patterns: Sequence[str]) -> None:
    """Say which of the patterns fit no skill that is there now; a rule may also be for a skill to come."""
    with loaded(settings_from(path)) as view:
        snapshot = view.snapshot
        names = {name.removesuffix(INDEX_SUFFIX) for name in snapshot.skill_claims.winners}
        names |= {*snapshot.prompt_claims.winners, *snapshot.files}
    for pattern in patterns:
        fits = Levels({pattern: FULL})
        if not any(fits.rule_for(name) for name in names):
            close = close_names(pattern, names)
            hint = f" Did you mean: {', '.join(close)}?" if close else ""
            note(f"no skill here is called {quoted(pattern)} now.{hint}")


def _without(table: Table, skills: tuple[str, ...]) -> dict[str, str]:
    return {pattern: level for pattern, level in table.items() if pattern not in skills}


def _edit(path: Path, change: Callable[[Table], Table]) -> None:
    """Change the table in the file; everything else in it, comments too, stays as it is."""
    document, problem = read_document(path)
    if problem is not None:
        fail(f"{path} {problem}; correct it first")
    values, wrong, _ = read_values({_KEY: document.get(_KEY)})
    if wrong:
        fail(f"{path}: '{_KEY}' must be {wrong[_KEY]}; correct it first")
    table = change(values.get(_KEY, {}))
    _, wrong, _ = read_values({_KEY: table})
    if wrong:
        fail(f"'{_KEY}' must be {wrong[_KEY]}", code=2)
    try:
        before = path.read_bytes().decode("utf-8") if path.exists() else ""
        after = _edited(before, table)
        if not _says(after, {**document, _KEY: dict(table)}):
            fail(f"{path} is written in a way that cannot be edited here; change '{_KEY}' in it by hand")
        replace_file(real_path(path), after)
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{path} cannot be written: {error}")
    note(f"wrote {path}")


def _says(text: str, expected: Mapping[str, Any]) -> bool:
    """Return whether a file says just this; a table without rules may be left out."""
    try:
        found = object_of(frontmatter.load(text.replace("\r\n", "\n"), first_line=1))
    except frontmatter.FrontMatterError:
        return False
    return {_KEY: {}, **found} == expected


def _edited(text: str, table: Table) -> str:
    """Give the file with another table: its lines are written anew, and no others."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    yaml = YAML()
    yaml.preserve_quotes = True
    document: Any = yaml.load(text)  # pyright: ignore[reportUnknownMemberType] - untyped library
    known: Any = document.get(_KEY) if document else None
    if document and document.fa.flow_style():
        document[_KEY] = CommentedMap(table)
        return _dumped(yaml, document)
    rules: Any = known if isinstance(known, CommentedMap) else CommentedMap()
    for pattern in [pattern for pattern in rules if pattern not in table]:
        del rules[pattern]
    for place, (pattern, level) in enumerate(table.items()):
        if pattern not in rules:
            rules.insert(place, pattern, level)
        rules[pattern] = level
    if list(rules) != list(table):
        rules = CommentedMap(table)
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    first = document.lc.key(_KEY)[0] if known is not None else len(lines)
    after = _end_of_key(lines, first)
    if lines and first == len(lines) and not lines[-1].endswith("\n"):
        lines[-1] += end
    made = [f"{line}{end}" for line in _dumped(yaml, {_KEY: rules}).splitlines()]
    made = made[: _end_of_key(made, 0)] if table else []
    return "".join((*lines[:first], *made, *lines[after:]))


def _dumped(yaml: Any, document: object) -> str:
    yaml.width = _NO_WRAPPING
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def _end_of_key(lines: list[str], first: int) -> int:
    """Find where the lines of a top-level key end: comments and blank lines before the next are not its."""
    last = first
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if line.strip() and line[0] not in " \t#":
            break
        if line.strip() and line[0] != "#":
            last = number
    return min(last + 1, len(lines))
