"""Many findings in few words, for people: those alike are counted, and some of them named. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from iii_directory.documents.model import Finding

# So many of a sort are named one by one; of more, so many stand for all.
FEW: Final = 3


def needs_attention(finding: Finding) -> bool:
    """Whether somebody should do something about it; the others are only good to know."""
    return not finding.fix.startswith("nothing")


class Group(NamedTuple):
    """Findings that differ in their subjects alone."""

    first: Finding
    subjects: tuple[str, ...]

    def named(self) -> str:
        """The subject of one; of several how many there are, and some of different folders."""
        if len(self.subjects) == 1:
            return self.subjects[0]
        folders: dict[str, str] = {}
        for subject in self.subjects:
            folders.setdefault(subject.rpartition("/")[0], subject)
        examples = list(dict.fromkeys([*folders.values(), *self.subjects]))[:FEW]
        return f"{len(self.subjects)}, such as {', '.join(examples)}"


def grouped(found: Iterable[Finding]) -> list[Group]:
    """What needs attention first; many findings of one kind for one reason are one group."""
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in found:
        alike.setdefault((finding.kind, finding.reason, finding.fix), []).append(finding)
    groups: list[Group] = []
    for same in alike.values():
        if len(same) > FEW:
            groups.append(Group(same[0], tuple(finding.subject for finding in same)))
        else:
            groups += [Group(finding, (finding.subject,)) for finding in same]
    return sorted(groups, key=lambda group: not needs_attention(group.first))


def log_lines(found: Iterable[Finding]) -> Iterator[tuple[bool, str]]:
    """A line for each finding, or for all of a kind if they are many; and whether it needs attention."""
    kinds: dict[tuple[bool, str], list[Finding]] = {}
    for finding in found:
        kinds.setdefault((needs_attention(finding), finding.kind), []).append(finding)
    for (urgent, kind), same in kinds.items():
        if len(same) <= FEW:
            yield from ((urgent, f"{one.subject}: {one.reason} ({one.fix})") for one in same)
        else:
            yield urgent, f"{kind}: {_counted(same)} (directory::diagnostics names them all)"


def _counted(found: list[Finding]) -> str:
    """How many they are, with an example for each of the first few reasons."""
    reasons: dict[str, Finding] = {}
    for finding in sorted(found, key=lambda finding: finding.subject):
        reasons.setdefault(finding.reason, finding)
    examples = [f"{one.subject}: {one.reason}" for one in reasons.values()][:FEW]
    return f"{len(found)} findings, such as {'; '.join(examples)}"
