"""Reading a little of a Markdown body. Pure.

Lines end at ``\\n`` with an optional ``\\r`` before it, never at another Unicode separator.
Every function takes the whole text and an offset: a body is never copied or split just to be looked at.
"""

from __future__ import annotations

import re
from typing import Final

from iii_directory.limits import MAX_DESCRIPTION_CHARS
from iii_directory.text import cut, escaped, one_line

# A line that is no part of a paragraph: blank, a heading, or a block quote.
_APART: Final = r"[^\S\n]*+(?:#{1,6}(?:[^\S\n][^\n]*+)?|>[^\n]*+)?(?:\n|\Z)"
# Possessive, because a long body would otherwise leave a trail of places to come back to.
_PARAGRAPH: Final = re.compile(rf"(?:{_APART})*+((?:(?!{_APART})[^\n]*+(?:\n|\Z))*+)")
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKUP: Final = re.compile(r"[\\\[\]<>]")


def heading(text: str, start: int = 0) -> str:
    """The text of the first line starting with ``# ``, or nothing."""
    if not text.startswith("# ", start):
        start = text.find("\n# ", start) + 1
        if start == 0:
            return ""
    end = text.find("\n", start)
    return (text[start + 2 :] if end < 0 else text[start + 2 : end]).strip()


def first_paragraph(text: str, start: int = 0) -> str:
    """The first lines that are neither blank, nor headings, nor block quotes, joined by single spaces."""
    found = _PARAGRAPH.match(text, start)
    words = found[1].strip() if found else ""
    if "\n" in words:
        words = " ".join(map(str.strip, words.split("\n")))
    return cut(words, MAX_DESCRIPTION_CHARS)


def plain_line(text: str, limit: int | None = None) -> str:
    """``text`` for one line of a generated document: links become their words, nothing can open one."""
    line = one_line(_LINK.sub(r"\1", text))
    if limit is not None:
        line = cut(line, limit)
    return escaped(_MARKUP.sub(r"\\\g<0>", line))
