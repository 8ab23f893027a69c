"""Make text safe for a line, a label, a log or a terminal, and suggest names close to one that was not found;
read and write RFC 3339 times. Pure."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from iii_directory.limits import MAX_SUGGESTIONS, QUOTED_CHARS

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

# Control characters, line and paragraph separators, surrogates, all Unicode format characters (which hide or
# reorder text: zero-width, bidi, tags that spell ASCII invisibly), and letters that are drawn blank.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]"
)

# Letters of other alphabets that look like a Latin letter, and digits that look like one.
_LOOK_ALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04cf\u03bf\u03b9\u03b1\u03c1\u03bd\u0131\u01c0"
    "01l",
    "aeopcyxijsdloiapviloii",
)


# Characters that only serve to hide text in a document: terminal escapes, zero-width and blank letters, bidi
# overrides and isolates, tags. Joiners and marks that scripts and emoji need are left out.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u115f\u1160\u180e\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    "\u3164\uffa0\U000e0000-\U000e007f]"
)

NANOSECONDS: Final = 1_000_000_000
_LAST_SECOND: Final = 253_402_300_799  # of year 9999, the last year that RFC 3339 can express
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 (offsets are subtracted before comparing)
_FORM: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def cut(text: str, limit: int) -> str:
    """Cut text to its first ``limit`` characters and an ellipsis, if it is longer."""
    return text if len(text) <= limit else text[:limit] + "..."


def cut_at_word(text: str, limit: int) -> str:
    """Cut text at a word boundary to at most ``limit`` characters, including the ellipsis."""
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
    """Return whether text holds invisible characters or characters that control a terminal."""
    return not _is_plain(text) and _UNSAFE.search(text) is not None


def hides_text(text: str) -> bool:
    """Return whether a document holds characters that hide part of it from a reader."""
    return "\x1b" in text if text.isascii() else _HIDDEN.search(text) is not None


def escaped(text: str) -> str:
    """Escape control, bidi and invisible characters for a terminal, a log or an error."""
    return text if _is_plain(text) else _UNSAFE.sub(_escape, text)


def quoted(text: str) -> str:
    """Quote input of a caller for an error: one short, escaped line."""
    return f"'{escaped(cut(text, QUOTED_CHARS))}'"


def counted(number: int, noun: str) -> str:
    """Write a number and its noun, in the plural unless the number is one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    """Join text into a single line with single spaces."""
    return " ".join(text.split())


def visible(text: str) -> str:
    """Make a label of text: one line without control, bidi and invisible characters."""
    return without_controls(one_line(text))


def without_controls(text: str) -> str:
    """Remove the characters that break, hide or reorder text on a screen."""
    return text if _is_plain(text) else _UNSAFE.sub("", text)


def shown_url(url: str) -> str:
    """Remove user and password from an address, for output, logs and errors."""
    scheme, found, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{found}{place.rpartition('@')[2]}{slash}{path}"


def skeleton(text: str) -> str:
    """Fold look-alike letters: names with equal skeletons look the same to a reader."""
    folded = unicodedata.normalize("NFKC", without_controls(text)).casefold().translate(_LOOK_ALIKES)
    return "".join(sign for sign in folded if sign.isalnum())


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def rfc3339(nanoseconds: int) -> str:
    """Format nanoseconds since 1970 as RFC 3339 in UTC, to the microsecond."""
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    return f"{_second(seconds)}.{rest // 1000:06}Z"


@lru_cache(maxsize=256)  # each registration is compared several times
def nanoseconds_of(text: str) -> int | None:
    """Parse an RFC 3339 time to nanoseconds since 1970; return None if it is not valid."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, sign, hours, minutes = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}") - _EPOCH
    except ValueError:
        return None
    if sign is not None:
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        moment = moment - offset if sign == "+" else moment + offset
    return (moment.days * 86_400 + moment.seconds) * NANOSECONDS + int((fraction or "0").ljust(9, "0"))


@lru_cache(maxsize=256)  # the files of one install fall into a few seconds
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), UTC).strftime("%Y-%m-%dT%H:%M:%S")


# Suggesting names

# Every name one typo away is suggested, and nothing unrelated. rapidfuzz compares all names by its fastest
# distance first and the remaining ones by the distance that knows swapped letters; a suggestion out of 10,000
# names takes a millisecond (goal ``beside.missing``). It is imported with the first suggestion, because that
# takes about 20 ms and most runs need none.

# Half of all workers are called iii-something, and people omit the prefix.
_COMMON_PREFIX: Final = "iii-"
# A shorter name is one typo away from too many others; a longer one was not typed by hand.
_SLIP_LENGTHS: Final = range(4, 121)
_MOST_SLIPS: Final = 3
_LETTERS_PER_SLIP: Final = 4
_MIN_PART: Final = 3
# No valid name contains it, so a match cannot reach from one name into the next.
_BETWEEN: Final = "\0"
_BEFORE_A_WORD: Final = f"{_BETWEEN}/_-"


class Names:
    """The known names, prepared for searching: shortest first."""

    def __init__(self, names: AbstractSet[str]) -> None:
        self.all = names
        ordered = _BETWEEN.join(sorted(sorted(name for name in names if _BETWEEN not in name), key=len))
        self.text = f"{_BETWEEN}{ordered}{_BETWEEN}"
        # Splitting makes copies that lie side by side in memory, which are read several times as fast.
        self.shortest_first = ordered.split(_BETWEEN)


def close_names(asked: str, known: AbstractSet[str] | Names) -> list[str]:
    """Return a few names of ``known`` that the caller may have meant, the most likely first."""
    names = known if isinstance(known, Names) else Names(known)
    asked = asked.strip().casefold()
    one_slip, some_slips = _slips_away(asked, names)
    # Last the nearest known name above the wanted one, such as `a` for `a/b`.
    parts = asked.split("/")
    above = ("/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
    nearest = [name for name in above if name in names.all][:1]
    likeliest_first = (*one_slip, *_starting_a_word(asked, names), *some_slips, *nearest)
    return list(dict.fromkeys(likeliest_first))[:MAX_SUGGESTIONS]


def _slips_away(asked: str, names: Names) -> tuple[list[str], list[str]]:
    """Return the names one typo away and those a few typos away.

    A typo is one letter dropped, added, mistaken or swapped. For names one typo away the common prefix may be
    missing or superfluous as well.
    """
    if len(asked) not in _SLIP_LENGTHS:
        return [], []
    stem = asked.removeprefix(_COMMON_PREFIX)
    other = stem if stem != asked else _COMMON_PREFIX + asked
    most = max(1, min(len(asked) // _LETTERS_PER_SLIP, _MOST_SLIPS))
    distances = _distances(asked, names, most)
    one_slip = {name for name, slips in distances.items() if slips <= 1}
    if len(stem) in _SLIP_LENGTHS:
        one_slip |= _distances(other, names, 1).keys()
    return sorted(one_slip), sorted(distances, key=lambda name: (distances[name], name))


def _distances(asked: str, names: Names, most: int) -> dict[str, int]:
    """Return the number of typos for each name with at most ``most``."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA, Indel

    # A typo is at most one deletion and one insertion, which Indel counts in half of the time.
    start = bisect_left(names.shortest_first, len(asked) - most, key=len)
    end = bisect_right(names.shortest_first, len(asked) + most, lo=start, key=len)
    alike = names.shortest_first[start:end]
    near = process.extract(asked, alike, scorer=Indel.distance, score_cutoff=2 * most, limit=None)
    alike = [name for name, _, _ in near]
    close = process.extract(asked, alike, scorer=OSA.distance, score_cutoff=most, limit=None)
    return {name: slips for name, slips, _ in close}


def _starting_a_word(asked: str, names: Names) -> list[str]:
    """Return the names with a word that starts like the wanted one, shortest first."""
    found: list[str] = []
    if len(asked) < _MIN_PART or _BETWEEN in asked:
        return found
    at = names.text.find(asked)
    while at >= 0 and len(found) < MAX_SUGGESTIONS:
        end = at
        if names.text[at - 1] in _BEFORE_A_WORD:
            end = names.text.index(_BETWEEN, at)
            found.append(names.text[names.text.rindex(_BETWEEN, 0, at) + 1 : end])
        at = names.text.find(asked, end + 1)
    return found
