"""RFC 3339 in UTC: written to the microsecond, read to the nanosecond so that two of them can be compared.

Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

NANOSECONDS: Final = 1_000_000_000
_LAST_SECOND: Final = 253_402_300_799  # of year 9999, the last that RFC 3339 can write
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 (the offset is taken off before it is compared)
_FORM: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def rfc3339(nanoseconds: int) -> str:
    """A time since 1970 as text."""
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    return f"{_second(seconds)}.{rest // 1000:06}Z"


@lru_cache(maxsize=256)  # one registration is looked at several times
def nanoseconds_of(text: str) -> int | None:
    """The time since 1970 that a text says, or None if it says none."""
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


@lru_cache(maxsize=256)  # the files of one install, or the registrations of one boot, share a few seconds
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), UTC).strftime("%Y-%m-%dT%H:%M:%S")
