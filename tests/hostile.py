"""Hostile strings, which the tests give to every door that takes a name, a path or an address.

`HOSTILE` is the whole corpus. None of them is a valid skill id, and none may lead outside.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final, TypeVar

from iii_directory.errors import DirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

TRAVERSAL: Final = (
    "..",
    "../",
    "../etc/passwd",
    "../../etc/passwd",
    "../../../../../../../../etc/passwd",
    "./",
    "./a",
    "a/..",
    "a/../b",
    "a/./b",
    "a/../../etc/passwd",
    "a/b/../../../c",
    "....//....//etc/passwd",
    "..;/etc/passwd",
    "...",
    ".../...",
    "a/...",
    "..a",
    "a..",
    "..\\",
    "..\\..\\windows\\win.ini",
    "a\\..\\b",
    "a/..\\b",
    "..%2f",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/",
    "%2e%2e%2fetc%2fpasswd",
    "%252e%252e%252fetc",
    "..%c0%af..%c0%afetc",
    "..%ef%bc%8fetc",
    "%2e",
    "a%2fb",
    "a%5cb",
    "%00",
    "a%00.md",
    "..%00/",
    "..%0d/",
    "skills2/../skills",
    "skills/../skills.bak/secret",
)

ABSOLUTE: Final = (
    "/",
    "//",
    "///",
    "/etc/passwd",
    "//etc/passwd",
    "/home/somebody/.ssh/id_rsa",
    "/proc/self/environ",
    "/dev/null",
    "/dev/stdin",
    "~",
    "~/",
    "~root",
    "~/.ssh/id_rsa",
    "$HOME",
    "$HOME/.ssh",
    "${HOME}",
    "%HOME%",
    "%USERPROFILE%",
)

WINDOWS: Final = (
    "C:",
    "C:\\",
    "c:/windows",
    "C:\\windows\\system32",
    "c:a",
    "\\\\server\\share",
    "//server/share",
    "\\\\?\\C:\\windows",
    "\\\\.\\PhysicalDrive0",
    "\\etc\\passwd",
    "CON",
    "NUL",
    "COM1",
    "LPT1.md",
    "aux.md",
    "a.md::$DATA",
    "a:stream",
    "a.",
    "a ",
    "a. . .",
    "PROGRA~1",
)

SEPARATORS: Final = (
    "/a",
    "a/",
    "a//b",
    "a///b",
    "//a",
    "a/ /b",
    "a/\t/b",
    "a|b",
    "a;b",
    "a&b",
    "a`b`",
    "$(touch x)",
    "a b",
    " a",
    "a\tb",
    "a,b",
    "a*",
    "a?",
    "[a]",
    "{a,b}",
    "a#fragment",
    "a?query=1",
    "a@host",
    "user:pass@host",
    "-rf/..",
    "--help me",
    "'; drop table skills; --",
    '" or 1=1 --',
    "<script>alert(1)</script>",
    "{{7*7}}",
    "${7*7}",
    "%s%s%s%n",
)

SCHEMES: Final = (
    "http://example.com/a",
    "https://example.com/a",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "ftp://a/b",
    "data:text/markdown,a",
    "javascript:alert(1)",
    "III://a",
    "Iii://a",
    "iii:/a",
    "iii:a",
    "iii:///a",
    "iii:////a",
    "iii://",
    "iii://iii://a",
    "iii://../a",
    "iii://a/../b",
    "iii://a/",
    "iii://a//b",
    "iii://%61",
    "iii://a%2fb",
    "iii://fn",
    "iii://fn/",
    "iii://fn//a",
    "iii://fn/a/",
    "iii://fn/a.b",
    "iii://fn/A",
    "iii://fn/state::set",
    "iii://fn/../state/set",
    "iii://x/state::set",
    "iii://a::b",
    "iii://a?x=1",
    "iii://a#b",
    "iii://user@a",
    "iii://a:80",
    "iii://\u0430",
    " iii:// a/..",
    "xiii://a",
    "view-source:iii://a",
)

CONTROLS: Final = (
    "\x00",
    "a\x00b",
    "a\x00.md",
    "a\nb",
    "a\r\nb",
    "a\n# injected",
    "\n",
    "a\x1b[31mred",
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x07",
    "a\x08b",
    "a\x7fb",
    "a\x85b",
    "\x9b31m",
    "a\x0bb",
    "a\x0cb",
    "a\u2028b",
    "a\u2029b",
    "a\u00adb",
    "a\u200bb",
    "a\u200db",
    "a\u2060b",
    "\ufeffa",
    "a\ufeff",
    "a\u202eb",
    "\u202dabc",
    "\u2066abc\u2069",
    "a\u061cb",
    "a\U000e0061\U000e0062",
    "a\ufff9b",
    "\ud800",
    "a\udc80",
)

TWINS: Final = (
    "\u0430bc",  # Cyrillic a
    "a\u0301",  # a letter and an accent of its own
    "\u00e1",
    "\uff41\uff42",  # full width
    "\u2024\u2024/\u2024\u2024/etc",  # one dot leader
    "..\u2215etc",  # division slash
    "..\u2044etc",  # fraction slash
    "\uff0e\uff0e\uff0fetc",
    "a\u2013b",  # en dash
    "a\u2212b",  # minus
    "de\u017f\u212a",  # long s and the Kelvin sign, which fold to sk
    "\u0131nde\u0445",
    "\u1e9e",
    "\u01c5",
    "a\u0661",  # Arabic digit
    "\u00b2",
    "\U0001d41a",  # mathematical a
    "\U0001f600",
    "\u4e2d\u6587",
    "\u0f0b",
)

CASE: Final = ("A", "aB", "SKILL", "SKILL.MD/..", "Index/", "A/b", "a/B", "FN/a", "Fn", "PROMPTS/A.md")

RESERVED: Final = ("fn", "fn/", "fn/a", "fn/state/set", "fn/a/b/c", "fn//")

LONG: Final = (
    "a" * 65,
    "a" * 1025,
    "a" * 100_000,
    "a/" * 512 + "a",
    "a/" * 600 + "a",
    "/" * 2000,
    "../" * 500,
    ("a" * 64 + "/") * 16 + "a",
    "\u00e9" * 600,
    "%2e" * 400,
)

EMPTY: Final = (
    "",
    " ",
    "   ",
    "\t",
    "\u00a0",
    "\u3000",
    ".",
    ".md",
    "/.md",
    ".git/config",
    ".env",
    "a/.hidden",
)

HOSTILE: Final = (
    *TRAVERSAL,
    *ABSOLUTE,
    *WINDOWS,
    *SEPARATORS,
    *SCHEMES,
    *CONTROLS,
    *TWINS,
    *CASE,
    *RESERVED,
    *LONG,
    *EMPTY,
)


def label(text: str) -> str:
    """A name for a parametrised test that no terminal trips over."""
    return ascii(text)[1:41]


def is_harmless(text: str) -> bool:
    """Whether a text is one line that neither acts on a terminal nor hides or reorders anything."""
    return not any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in text)


def outcome(call: Callable[[], T]) -> T | DirectoryError:
    """What a call returns, or the error a caller would see."""
    try:
        return call()
    except DirectoryError as refused:
        return refused
