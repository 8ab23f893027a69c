"""Merge two changes of one text line by line, and plan that for a namespace. Pure.

Both sides are compared with what they were made from. Where only one of them changed something, its lines are
taken; where both made the same change, it is made once; where they differ, that is a conflict, and the text
has both with markers around them, as git writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from iii_directory.disk.install_record import content_hash
from iii_directory.documents.ids import MERGE_SUFFIX
from iii_directory.install.plan import Disk, FileChanges, InstallPlan
from iii_directory.limits import MAX_MERGE_LINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from iii_directory.disk.install_record import Entry


class Sides(NamedTuple):
    """A file as it was installed, as it was edited by hand, and as its source has it now."""

    base: bytes
    mine: bytes
    theirs: bytes


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged text; with conflicts it holds their markers."""

    content: bytes
    conflicts: int = 0


def plan_merge(namespace: str, disk: Disk, known: Entry, sides: Mapping[str, Sides]) -> InstallPlan:
    """Write what can be merged; what cannot stays as it is, with the markers in a file beside it."""
    found = {path: merged(*three) for path, three in sides.items()}
    clean = {path: one.content for path, one in found.items() if one is not None and not one.conflicts}
    marked = {
        f"{path}{MERGE_SUFFIX}": one.content
        for path, one in found.items()
        if one is not None and one.conflicts and disk.nodes.get(f"{path}{MERGE_SUFFIX}", "file") == "file"
    }
    writes = {**clean, **marked}
    edited_from = {path: origin for path, origin in known.edited_from.items() if path not in clean}
    return InstallPlan(
        namespace=namespace,
        entry=known._replace(edited_from=edited_from),
        writes=writes,
        deletes=frozenset(
            f"{path}{MERGE_SUFFIX}" for path in clean if disk.nodes.get(f"{path}{MERGE_SUFFIX}") == "file"
        ),
        changes=FileChanges(
            merged=tuple(sorted(clean)), conflicts=tuple(sorted(path for path in found if path not in clean))
        ),
        edits_win=True,
        executable=disk.executable & clean.keys(),
        digests={path: content_hash(content) for path, content in writes.items()},
    )


def merged(base: bytes, mine: bytes, theirs: bytes) -> Merged | None:
    """Return the text with both changes; None if a side is binary or too long to compare."""
    old, own, new = _lines(base), _lines(mine), _lines(theirs)
    if old is None or own is None or new is None:
        return None
    out: list[str] = []
    conflicts = 0
    at = own_at = new_at = 0
    for start, end, own_start, new_start in _common(old, own, new):
        was, ours, others = old[at:start], own[own_at:own_start], new[new_at:new_start]
        if ours in (was, others):
            out += others
        elif others == was:
            out += ours
        else:
            conflicts += 1
            out += ["<<<<<<< yours\n", *_ended(ours), "=======\n", *_ended(others), ">>>>>>> upstream\n"]
        out += old[start:end]
        at, own_at, new_at = end, own_start + end - start, new_start + end - start
    return Merged("".join(out).encode(), conflicts)


def _lines(content: bytes) -> list[str] | None:
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        return None
    if len(lines) > MAX_MERGE_LINES or "\0" in content.decode():
        return None
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _ended(lines: list[str]) -> list[str]:
    """The lines, the last of which ends, so that a marker stands on a line of its own."""
    return lines if not lines or lines[-1].endswith("\n") else [*lines[:-1], f"{lines[-1]}\n"]


def _common(
    old: Sequence[str], mine: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield runs of old lines that both sides kept: start and end, and their starts on each side."""
    ours = SequenceMatcher(None, old, mine, autojunk=False).get_matching_blocks()
    others = SequenceMatcher(None, old, theirs, autojunk=False).get_matching_blocks()
    here = there = 0
    while here < len(ours) and there < len(others):
        a, b = ours[here], others[there]
        start, end = max(a.a, b.a), min(a.a + a.size, b.a + b.size)
        if start < end:
            yield start, end, a.b + start - a.a, b.b + start - b.a
        if a.a + a.size < b.a + b.size:
            here += 1
        else:
            there += 1
    yield len(old), len(old), len(mine), len(theirs)
