"""Read front matter: the block between two ``---`` lines at the start of a document. Pure.

Most blocks are plain ``key: value`` lines and ``- item`` lists. A scanner for exactly that subset reads them
ten times faster than the C parser of PyYAML (goal ``catalogue.first-scan``); any other block goes to PyYAML.
Where the scanner returns a value, PyYAML returns the same. Only plain data is accepted: no tags, anchors,
aliases or duplicate keys. Keys keep the author's order, and scalars follow the core schema of YAML 1.2
(``No`` and dates stay strings, ``012`` is twelve); values that JSON cannot express (``.inf``, ``.nan``) stay
strings.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from iii_directory import limits
from iii_directory.shapes import is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class FrontMatter(NamedTuple):
    """The values of a block and a description of its problem, if it has one."""

    values: dict[str, Any]
    problem: str | None = None
    repaired: bool = False
    """True if the problem was worked around, so ``values`` is complete."""


class FrontMatterError(Exception):
    """The block is not plain data; the message says why."""


# Characters that YAML treats specially within a line: controls, tabs, other line breaks, the BOM. A block
# with one of them goes to the parser, which keeps the patterns below simple and quick to compile.
_ODD: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
# A letter of any script, or a slash: no character that has a meaning in YAML.
_FIRST: Final = r"[^\x00-.0-@\[-`{-\xa0]"
_VALUE: Final = (
    rf"{_FIRST}[^\n]*(?<![ :])"
    r"|\"[^\"\\\n]*\"|'[^'\n]*'"
    r"|[0-9]+\.[0-9]+\.[0-9]+|0|[1-9][0-9]{0,8}"
)
# A list on the line of its key, of unambiguous words: [a, b-c, some words].
_FLOW_WORDS: Final = r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*"
_FLOW: Final = rf"\[ *{_FLOW_WORDS}(?: *, *{_FLOW_WORDS})* *\]"
# A line is a key with a value, or a key with items on the lines below, or (last group) anything else.
_LINE: Final = re.compile(
    rf"([A-Za-z_][A-Za-z0-9_-]{{0,63}}):(?: +({_VALUE}|{_FLOW}) *\n| *\n((?: *- [^\n]*\n)*))|([^\n]*)\n"
)
_ITEM: Final = re.compile(rf"( *)- +({_VALUE}) *\n|[^\n]*\n")
_NOTHING: Final = re.compile(r" *(?:#.*)?")
# Words that some YAML versions read as a boolean or null.
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
# The numbers of YAML 1.2's core schema; longer ones are treated as strings.
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,64}")
_OCTAL_OR_HEX: Final = re.compile(r"0o[0-7]{1,64}|0x[0-9a-fA-F]{1,64}")
_DECIMAL: Final = re.compile(r"[-+]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})(?:[eE][-+]?[0-9]{1,3})?")
# A plain value on a single line that does not continue on the next.
_ONE_LINER: Final = re.compile(
    r"^([A-Za-z_][A-Za-z0-9_-]{0,63}: +)([A-Za-z][^\n]*)$(?!\n[ \t])", re.MULTILINE
)


def find(text: str) -> tuple[int, int, int] | None:
    """Return where the block starts and ends in a text, and where the body starts; None without a block."""
    if not text.startswith("---"):
        return None
    block_start = _fence_end(text, 0)
    if block_start is None:
        return None
    # The next line may already close an empty block, so the search starts at the end of the opening line.
    newline = text.find("\n---", block_start - 1)
    while newline >= 0:
        body_start = _fence_end(text, newline + 1)
        if body_start is not None:
            return block_start, newline + 1, body_start
        newline = text.find("\n---", newline + 4)
    return None


def split(text: str) -> tuple[str | None, str]:
    """Return the block (or None) and the body after it, without a BOM."""
    text = text.removeprefix("\ufeff")
    bounds = find(text)
    if bounds is None:
        return None, text
    block_start, block_end, body_start = bounds
    return text[block_start:block_end], text[body_start:]


def read(block: str) -> FrontMatter:
    """Read a block; if that fails, return no values and the reason."""
    if "\r" in block:
        block = block.replace("\r\n", "\n")
    if len(block) * 4 > limits.MAX_FRONT_MATTER_BYTES and len(block.encode()) > limits.MAX_FRONT_MATTER_BYTES:
        return FrontMatter({}, f"it is larger than {limits.MAX_FRONT_MATTER_BYTES} bytes")
    values = scan(block)
    if values is not None:
        return FrontMatter(values)
    try:
        return FrontMatter(load(block))
    except FrontMatterError as refused:
        problem = str(refused)
    # Once more with quotes around values like ``description: like: this``.
    quoted = _ONE_LINER.sub(_with_quotes, block)
    if quoted != block:
        with suppress(FrontMatterError):
            values = load(quoted)
            return FrontMatter(values, "a value with ': ' in it has no quotes around it", repaired=True)
    return FrontMatter({}, problem)


def of_text(text: str) -> FrontMatter:
    """Read the front matter of a document; empty if it has no block."""
    block, _ = split(text)
    return FrontMatter({}) if block is None else read(block)


def scan(block: str) -> dict[str, Any] | None:
    """Read a block of plain lines, or return None if it needs the YAML parser."""
    if len(block) * 4 > limits.MAX_FRONT_MATTER_BYTES or _ODD.search(block):
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
    """Read any block with the YAML parser; raise RefusedError if it is not plain data.

    ``first_line`` is the line number of the block in its document, where line one is the fence.
    """
    import yaml

    parse = cast("Callable[..., Iterator[Any]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
    events = parse(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        values = _document(events)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + first_line})" if mark is not None else ""
        raise FrontMatterError(f"it is not valid YAML{where}") from None
    size = len(json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode())
    if size > max(limits.MAX_FRONT_MATTER_GROWTH * len(block.encode()), limits.SMALL_FRONT_MATTER_BYTES):
        growth = limits.MAX_FRONT_MATTER_GROWTH
        raise FrontMatterError(f"it is more than {growth} times as large once it is JSON")
    return values


def _fence_end(text: str, start: int) -> int | None:
    """Return the start of the line after the ``---`` at ``start``, or None if other text follows it."""
    if text.startswith("\n", start + 3):
        return start + 4
    end = text.find("\n", start)
    rest = text[start + 3 :] if end < 0 else text[start + 3 : end]
    if rest.removesuffix("\r").strip(" \t"):
        return None
    return len(text) if end < 0 else end + 1


def _simple(value: str) -> str | int | list[str] | None:
    """Convert a scanned value, or return None if it needs the YAML parser."""
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


def _with_quotes(line: re.Match[str]) -> str:
    start, value = line[1], line[2].rstrip(" ")
    if (": " not in value and not value.endswith(":")) or " #" in value:
        return line[0]
    doubled = value.replace("'", "''")
    return f"{start}'{doubled}'"


def _document(events: Iterator[Any]) -> dict[str, Any]:
    """Read the single mapping in a stream of parser events."""
    import yaml

    values: Any = {}
    documents = 0
    events = _bounded(events)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise FrontMatterError("it holds more than one YAML document")
            values = _node(next(events), events, 1)
    if values is None:
        return {}
    if not is_object(values):
        raise FrontMatterError("it is not a mapping, not a list of 'key: value' lines")
    return values


def _bounded(events: Iterator[Any]) -> Iterator[Any]:
    for count, event in enumerate(events):
        # The stream itself has four events, and a value has one or two.
        if count > 2 * limits.MAX_FRONT_MATTER_VALUES + 4:
            raise FrontMatterError(f"it holds more than {limits.MAX_FRONT_MATTER_VALUES} values")
        yield event


def _node(event: Any, events: Iterator[Any], depth: int) -> Any:
    import yaml

    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise FrontMatterError("it uses YAML anchors or aliases")
    if event.tag is not None:
        raise FrontMatterError("it uses YAML tags")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if depth > limits.MAX_FRONT_MATTER_DEPTH:
        raise FrontMatterError(f"it is nested more than {limits.MAX_FRONT_MATTER_DEPTH} levels deep")
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(_node(event, events, depth + 1))
        return items
    found: dict[str, Any] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent):
            raise FrontMatterError("a key in it is not a word")
        _node(event, events, depth)
        if event.value in found:
            raise FrontMatterError("a key appears twice in it")
        found[event.value] = _node(next(events), events, depth + 1)
    return found


def _scalar(event: Any) -> Any:
    value: str = event.value
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise FrontMatterError("it holds half a Unicode character")
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
