"""Ids nobody can guess, many to one question to the system: every call through the engine needs some."""

from __future__ import annotations

import os
from typing import Final

_BYTES: Final = 16
_AT_ONCE: Final = 256


class Uuids:
    """Random UUIDs (version 4) as text. Not for use by two threads at once."""

    def __init__(self) -> None:
        self._random = b""
        self._used = 0

    def next(self) -> str:
        if self._used == len(self._random):
            self._random, self._used = os.urandom(_BYTES * _AT_ONCE), 0
        digits = self._random[self._used : self._used + _BYTES].hex()
        self._used += _BYTES
        # Two of the digits say which version this is.
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
