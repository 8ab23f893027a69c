"""Front matter: the block between two ``---`` lines at the start of a document. Pure.

Most blocks are plain ``key: value`` lines and ``- item`` lists. A scanner for exactly that subset reads them
ten times faster than the C parser of PyYAML, which is asked as soon as a block steps outside. Wherever the
scanner answers, both give the same value. Only plain data is accepted, whichever of the two reads it: no
tags, no anchors, no aliases, no duplicate keys. Keys keep the author's order at every level, and scalars
follow the core schema of YAML 1.2 (``No`` and dates stay strings, ``012`` is twelve), so that the block as
JSON equals what a YAML 1.2 parser gives; what JSON cannot carry (``.inf``, ``.nan``) stays as it is written.
The scanner is paid for by the goal ``catalogue.first-scan``.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from iii_directory.limits import (
    MAX_FRONT_MATTER_BYTES,
    MAX_FRONT_MATTER_DEPTH,
    MAX_FRONT_MATTER_GROWTH,
    MAX_FRONT_MATTER_VALUES,
    SMALL_FRONT_MATTER_BYTES,
)
from iii_directory.shapes import is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class FrontMatter(NamedTuple):
    """The keys of a block and, in words, what is wrong with it."""

    values: dict[str, Any]
    problem: str | None = None
    repaired: bool = False
    """The problem was worked around, so that ``values`` holds everything."""


class RefusedError(Exception):
    """A block that is not the plain data we accept; the text says why."""


# What some YAML reader takes for more than a character of a line: controls, tabs, other line breaks, the BOM.
# A block with one of them is the parser's, and the patterns below are left with sets that compile quickly.
_ODD: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
# A letter of any script, or the slash of a path: nothing that has a meaning to a YAML reader.
_FIRST: Final = r"[^\x00-.0-@\[-`{-\xa0]"
_VALUE: Final = (
    rf"{_FIRST}[^\n]*(?<![ :])"
    r"|\"[^\"\\\n]*\"|'[^'\n]*'"
    r"|[0-9]+\.[0-9]+\.[0-9]+|0|[1-9][0-9]{0,8}"
)
# A list on the line of its key, of words that mean the same to every reader: [a, b-c, some words].
_FLOW_WORDS: Final = r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*"
_FLOW: Final = rf"\[ *{_FLOW_WORDS}(?: *, *{_FLOW_WORDS})* *\]"
# A line is a key with its value or with the items on the lines below it, or (last group) something else.
_LINE: Final = re.compile(
    rf"([A-Za-z_][A-Za-z0-9_-]{{0,63}}):(?: +({_VALUE}|{_FLOW}) *\n| *\n((?: *- [^\n]*\n)*))|([^\n]*)\n"
)
_ITEM: Final = re.compile(rf"( *)- +({_VALUE}) *\n|[^\n]*\n")
_NOTHING: Final = re.compile(r" *(?:#.*)?")
# Words that one YAML reader or another takes for a boolean or for nothing.
_WORDS: Final = frozenset(
    form
    for word in ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
    for form in (word, word.capitalize(), word.upper())
)
_QUOTES_AND_DIGITS: Final = frozenset("\"'0123456789")
_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# The numbers of YAML 1.2's core schema. Longer ones than this are names made of digits to any reader.
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,64}")
_OCTAL_OR_HEX: Final = re.compile(r"0o[0-7]{1,64}|0x[0-9a-fA-F]{1,64}")
_DECIMAL: Final = re.compile(r"[-+]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})(?:[eE][-+]?[0-9]{1,3})?")
# A value on one line that starts like a plain one and does not go on below.
_ONE_LINER: Final = re.compile(
    r"^([A-Za-z_][A-Za-z0-9_-]{0,63}: +)([A-Za-z][^\n]*)$(?!\n[ \t])", re.MULTILINE
)


def find(text: str) -> tuple[int, int, int] | None:
    """Where the front matter starts and ends in a text, and where its body starts."""
    if not text.startswith("---"):
        return None
    block_start = _fence_end(text, 0)
    if block_start is None:
        return None
    # An empty block is closed by the very next line, so the search starts at the end of the opening one.
    newline = text.find("\n---", block_start - 1)
    while newline >= 0:
        body_start = _fence_end(text, newline + 1)
        if body_start is not None:
            return block_start, newline + 1, body_start
        newline = text.find("\n---", newline + 4)
    return None


def split(text: str) -> tuple[str | None, str]:
    """The block, or None when there is none, and the body after it; a BOM belongs to neither."""
    text = text.removeprefix("\ufeff")
    bounds = find(text)
    if bounds is None:
        return None, text
    block_start, block_end, body_start = bounds
    return text[block_start:block_end], text[body_start:]


def read(block: str) -> FrontMatter:
    """The keys of a block; one that cannot be read has none, and says why."""
    if "\r" in block:
        block = block.replace("\r\n", "\n")
    if len(block) * 4 > MAX_FRONT_MATTER_BYTES and len(block.encode()) > MAX_FRONT_MATTER_BYTES:
        return FrontMatter({}, f"it is larger than {MAX_FRONT_MATTER_BYTES} bytes")
    values = scan(block)
    if values is not None:
        return FrontMatter(values)
    try:
        return FrontMatter(load(block))
    except RefusedError as refused:
        return _read_repaired(block, str(refused))


def of_text(text: str) -> FrontMatter:
    """The whole front matter of a document; none where it has no block."""
    block, _ = split(text)
    return FrontMatter({}) if block is None else read(block)


def scan(block: str) -> dict[str, Any] | None:
    """The keys of a block of whole, plain lines, or None when it takes a YAML parser to tell."""
    if len(block) * 4 > MAX_FRONT_MATTER_BYTES or _ODD.search(block):
        return None
    values: dict[str, Any] = {}
    for key, value, items, other in _LINE.findall(block):
        if key:
            if key in values:
                return None
            values[key] = found = _simple(value) if value else _scan_items(items) if items else None
            if found is None and (value or items):
                return None
        elif other and not _NOTHING.fullmatch(other):
            return None
    return values if _WORDS.isdisjoint(values) else None


def load(block: str, first_line: int = 2) -> dict[str, Any]:
    """The keys of any block, by the YAML parser, or a RefusedError that counts lines from ``first_line``.

    The block of a document starts on its second line, after the fence.
    """
    import yaml

    parse = cast("Callable[..., Iterator[Any]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
    events = parse(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        values = _document(events)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + first_line})" if mark is not None else ""
        raise RefusedError(f"it is not valid YAML{where}") from None
    if _json_bytes(values) > max(MAX_FRONT_MATTER_GROWTH * len(block.encode()), SMALL_FRONT_MATTER_BYTES):
        raise RefusedError(f"it is more than {MAX_FRONT_MATTER_GROWTH} times as large once it is JSON")
    return values


def _json_bytes(values: dict[str, Any]) -> int:
    return len(json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode())


def _fence_end(text: str, start: int) -> int | None:
    """The start of the line after the ``---`` at ``start``, or None when more than white space follows it."""
    if text.startswith("\n", start + 3):
        return start + 4
    end = text.find("\n", start)
    rest = text[start + 3 :] if end < 0 else text[start + 3 : end]
    if rest.removesuffix("\r").strip(" \t"):
        return None
    return len(text) if end < 0 else end + 1


def _simple(value: str) -> str | int | list[str] | None:
    """A value as the scanner found it, or None when it takes a YAML parser to tell."""
    if value[0] == "[":
        words = [word.strip() for word in value[1:-1].split(",")]
        return words if _WORDS.isdisjoint(words) else None
    if value[0] in _QUOTES_AND_DIGITS:
        return value[1:-1] if value[0] in "\"'" else int(value) if value.isdigit() else value
    if ": " in value or " #" in value or value in _WORDS:
        return None
    return value


def _scan_items(lines: str) -> list[str | int | list[str]] | None:
    found = _ITEM.findall(lines)
    values = [_simple(value) for _, value in found if value]
    if len(values) < len(found) or len({indent for indent, _ in found}) > 1:
        return None
    kept = [value for value in values if value is not None]
    return kept if len(kept) == len(found) else None


def _read_repaired(block: str, problem: str) -> FrontMatter:
    """A second try at a refused block: ``description: like: this`` can only have been meant one way."""
    quoted = _ONE_LINER.sub(_with_quotes, block)
    try:
        values = load(quoted) if quoted != block else None
    except RefusedError:
        values = None
    if values is None:
        return FrontMatter({}, problem)
    return FrontMatter(values, "a value with ': ' in it has no quotes around it", repaired=True)


def _with_quotes(line: re.Match[str]) -> str:
    start, value = line[1], line[2].rstrip(" ")
    if (": " not in value and not value.endswith(":")) or " #" in value:
        return line[0]
    doubled = value.replace("'", "''")
    return f"{start}'{doubled}'"


def _document(events: Iterator[Any]) -> dict[str, Any]:
    """The one mapping in a stream of parser events."""
    import yaml

    values: Any = {}
    documents = 0
    events = _bounded(events)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise RefusedError("it holds more than one YAML document")
            values = _node(next(events), events, 1)
    if values is None:
        return {}
    if not is_object(values):
        raise RefusedError("it is not a mapping, not a list of 'key: value' lines")
    return values


def _bounded(events: Iterator[Any]) -> Iterator[Any]:
    for count, event in enumerate(events):
        # A stream has four events of its own, and a value is an event or two.
        if count > 2 * MAX_FRONT_MATTER_VALUES + 4:
            raise RefusedError(f"it holds more than {MAX_FRONT_MATTER_VALUES} values")
        yield event


def _node(event: Any, events: Iterator[Any], depth: int) -> Any:
    import yaml

    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise RefusedError("it uses YAML anchors or aliases")
    if event.tag is not None:
        raise RefusedError("it uses YAML tags")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if depth > MAX_FRONT_MATTER_DEPTH:
        raise RefusedError(f"it is nested more than {MAX_FRONT_MATTER_DEPTH} levels deep")
    if isinstance(event, yaml.SequenceStartEvent):
        return _sequence(events, depth)
    return _mapping(events, depth)


def _sequence(events: Iterator[Any], depth: int) -> list[Any]:
    import yaml

    found: list[Any] = []
    while not isinstance(event := next(events), yaml.SequenceEndEvent):
        found.append(_node(event, events, depth + 1))
    return found


def _mapping(events: Iterator[Any], depth: int) -> dict[str, Any]:
    import yaml

    found: dict[str, Any] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent):
            raise RefusedError("a key in it is not a word")
        _node(event, events, depth)
        if event.value in found:
            raise RefusedError("a key appears twice in it")
        found[event.value] = _node(next(events), events, depth + 1)
    return found


def _scalar(event: Any) -> Any:
    value: str = event.value
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise RefusedError("it holds half a Unicode character")
    if not event.implicit[0]:
        return value
    if value in _CONSTANTS:
        return _CONSTANTS[value]
    if _INTEGER.fullmatch(value):
        return int(value)
    if _OCTAL_OR_HEX.fullmatch(value):
        return int(value, 0)
    if _DECIMAL.fullmatch(value) and math.isfinite(number := float(value)):
        return number
    return value
