"""Semantic versions: which is newer, and which may be called the latest. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from iii_directory import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBER: Final = r"(?:0|[1-9][0-9]{0,17})"
_LABEL: Final = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_LABEL}(?:\.{_LABEL})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)

_WORD: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]*")

# A release sorts after its pre-releases; within one, numbers sort before words.
_Label = tuple[int, int, str]
Order = tuple[int, int, int, bool, tuple[_Label, ...]]


def order_of(version: str) -> Order | None:
    """A key by which versions sort as semver.org says, or None when it is no version."""
    found = _VERSION.fullmatch(version) if len(version) <= limits.MAX_VERSION_CHARS else None
    if found is None:
        return None
    major, minor, patch, labels = found.groups()
    rest = tuple(_label(label) for label in labels.split(".")) if labels else ()
    return int(major), int(minor), int(patch), not labels, rest


def _label(label: str) -> _Label:
    return (0, int(label), "") if label.isdecimal() else (1, 0, label)


def is_version(text: str) -> bool:
    return order_of(text) is not None


def can_be_version(text: str) -> bool:
    """Whether a registry may call a release so: a short word, though not always a semantic version."""
    return len(text) <= limits.MAX_VERSION_CHARS and _WORD.fullmatch(text) is not None


def is_stable(version: str) -> bool:
    order = order_of(version)
    return order is not None and order[3]


def is_older(version: str, than: str) -> bool:
    """Whether both are versions and the first comes before the second."""
    first, second = order_of(version), order_of(than)
    return first is not None and second is not None and first < second


def highest_stable(versions: Iterable[str]) -> str | None:
    stable = [(order, version) for version in versions if (order := order_of(version)) and order[3]]
    return max(stable)[1] if stable else None
