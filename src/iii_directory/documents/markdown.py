"""Extract heading, first paragraph and links from a Markdown body. Pure.

Lines end at ``\\n`` with an optional ``\\r`` before it, never at another Unicode separator. Every function
takes the whole text and an offset, so that a body is never copied or split.
"""

from __future__ import annotations

import re
from typing import Final

from iii_directory.limits import MAX_DESCRIPTION_CHARS
from iii_directory.text import cut, escaped, one_line

# Lines that do not belong to a paragraph: blank lines, headings, block quotes, table rows, images, fenced
# code and HTML comments. All quantifiers are possessive, so that matching a long body never backtracks.
_IMAGE: Final = r"!\[[^\]\n]*+\]\([^)\n]*+\)"
_IMAGES: Final = rf"(?:(?:\[{_IMAGE}\]\([^)\n]*+\)|{_IMAGE})[^\S\n]*+)++(?=\n|\Z)"
_FENCED: Final = r"(?P<fence>`{3,}+|~{3,}+)[^\n]*+(?:\n(?![^\S\n]*+(?P=fence))[^\n]*+)*+(?:\n[^\n]*+)?"
_COMMENT: Final = r"<!--(?:(?!-->)[\s\S])*+(?:-->[^\S\n]*+)?"
_LINE_APART: Final = rf"#{{1,6}}(?:[^\S\n][^\n]*+)?(?=\n|\Z)|>[^\n]*+|\|[^\n]*+|{_IMAGES}"
_APART: Final = rf"[^\S\n]*+(?:(?:{_LINE_APART}|{_FENCED}|{_COMMENT})?(?:\n|\Z)|{_COMMENT}(?=[^\n]))"
_ENDS: Final = rf"[^\S\n]*+(?:(?:{_LINE_APART})?(?:\n|\Z)|`{{3}}|~{{3}}|<!--)"
_PARAGRAPH: Final = re.compile(rf"(?:{_APART})*+(?P<words>(?:(?!{_ENDS})[^\n]*+(?:\n|\Z))*+)")
# Emphasis marks. Words may contain underscores, so an underscore counts only at the edge of a word.
_EMPHASIS: Final = re.compile(r"(\*{1,3}|~~|(?<!\w)_{1,3})(?=\S)((?:(?!\1)[^\n]){1,400}?)(?<=\S)\1(?!\w)")
# Code, which cannot contain links: fenced blocks and inline code.
_CODE: Final = re.compile(
    rf"^[^\S\n]*+{_FENCED}|(?P<ticks>`++)(?:(?!(?P=ticks))[^\n])*+(?P=ticks)", re.MULTILINE
)
# [words](target "title"), ![words](<target>) and [label]: target.
_TARGET: Final = re.compile(
    r"\]\([^\S\n]*+(?:<([^<>\n]*+)>|([^\s()<>]*+(?:\([^\s()]*+\)[^\s()<>]*+)*+))"
    r"|^[^\S\n]{0,3}\[[^\]\n]++\]:[^\S\n]++<?([^\s<>]++)",
    re.MULTILINE,
)
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKUP: Final = re.compile(r"[\\\[\]<>]")


def heading(text: str, start: int = 0) -> str:
    """Return the text of the first line starting with ``# ``, or an empty string."""
    if not text.startswith("# ", start):
        start = text.find("\n# ", start) + 1
        if start == 0:
            return ""
    end = text.find("\n", start)
    return (text[start + 2 :] if end < 0 else text[start + 2 : end]).strip()


def first_paragraph(text: str, start: int = 0) -> str:
    """Return the first paragraph as one line without emphasis marks.

    Blank lines, headings, block quotes, tables, images, fenced code and HTML comments are skipped.
    """
    found = _PARAGRAPH.match(text, start)
    words = found["words"].strip() if found else ""
    if "\n" in words:
        words = " ".join(map(str.strip, words.split("\n")))
    words = cut(words, MAX_DESCRIPTION_CHARS)
    if "*" in words or "_" in words or "~~" in words:
        words = _EMPHASIS.sub(r"\2", words)
    return words


def links_of(text: str) -> list[str]:
    """Return the targets of links and images as written, ignoring code."""
    # Most documents have no links; testing for that first makes a check of thousands three times as fast.
    if "](" not in text and "]:" not in text:
        return []
    found = _TARGET.findall(_CODE.sub(" ", text))
    return [target for match in found if (target := match[0] or match[1] or match[2])]


def plain_line(text: str, limit: int | None = None) -> str:
    """Make one line of a generated document: links become their words and markup is escaped."""
    line = one_line(_LINK.sub(r"\1", text))
    if limit is not None:
        line = cut(line, limit)
    return escaped(_MARKUP.sub(r"\\\g<0>", line))
