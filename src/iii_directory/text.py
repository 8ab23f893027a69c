"""Whether bytes are text, and making any text harmless for one line, a label, a log or a terminal. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from iii_directory.limits import QUOTED_CHARS

# Controls, line and paragraph separators, halves of characters, everything Unicode calls a format character
# (it hides or reorders text: zero-width, bidi, tags that spell ASCII invisibly), and letters that are blank.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]"
)

# Letters of other alphabets that are drawn like a Latin one, and digits that pass for a letter.
_LOOK_ALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04cf\u03bf\u03b9\u03b1\u03c1\u03bd\u0131\u01c0"
    "01l",
    "aeopcyxijsdloiapviloii",
)


# What nobody writes into a document to be seen: escapes of a terminal, zero-width and blank letters, bidi
# overrides and isolates, tags. Joiners and marks that scripts and emoji need are not among them.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u115f\u1160\u180e\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    "\u3164\uffa0\U000e0000-\U000e007f]"
)


def cut(text: str, limit: int) -> str:
    """``text``, or its first ``limit`` characters and an ellipsis."""
    return text if len(text) <= limit else text[:limit] + "..."


def cut_at_word(text: str, limit: int) -> str:
    """``text``, or as many whole words of it as ``limit`` characters hold, the ellipsis counted."""
    if len(text) <= limit:
        return text
    start = text[: limit - 1]
    if text[limit - 1] != " ":
        start = start.rpartition(" ")[0] or start
    return start.rstrip() + "…"


def is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def has_unsafe(text: str) -> bool:
    """Whether the text holds characters that a reader cannot see or that act on a terminal."""
    return not _is_plain(text) and _UNSAFE.search(text) is not None


def hides_text(text: str) -> bool:
    """Whether a document holds characters that hide something of it from whoever looks at it."""
    return "\x1b" in text if text.isascii() else _HIDDEN.search(text) is not None


def escaped(text: str) -> str:
    """``text`` for a terminal, a log or an error: controls, bidi and invisible characters as escapes."""
    return text if _is_plain(text) else _UNSAFE.sub(_escape, text)


def quoted(text: str) -> str:
    """What a caller sent, as an error may repeat it: one short, harmless line in quotes."""
    return f"'{escaped(cut(text, QUOTED_CHARS))}'"


def one_line(text: str) -> str:
    """``text`` as a single line of single spaces."""
    return " ".join(text.split())


def visible(text: str) -> str:
    """``text`` as a label: one line, without controls, bidi and invisible characters."""
    return without_controls(one_line(text))


def without_controls(text: str) -> str:
    """``text`` without the characters that break, hide or reorder it on a screen."""
    return text if _is_plain(text) else _UNSAFE.sub("", text)


def shown_url(url: str) -> str:
    """An address without the user and the password in it, as output, logs and errors may repeat it."""
    scheme, found, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{found}{place.rpartition('@')[2]}{slash}{path}"


def skeleton(text: str) -> str:
    """What a reader takes a name for: names with one skeleton cannot be told apart at a glance."""
    folded = unicodedata.normalize("NFKC", without_controls(text)).casefold().translate(_LOOK_ALIKES)
    return "".join(sign for sign in folded if sign.isalnum())


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
