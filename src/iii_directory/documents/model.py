"""The records everything else speaks of: a skill, a prompt, and a finding about either. Pure.

Those that a first scan makes by the ten thousand are named tuples, which are made five times faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from iii_directory.documents.provenance import Provenance

Source = Literal["folder", "registered"]


class Skill(NamedTuple):
    """What the catalogue knows of one skill without its body.

    ``id`` is the canonical id: the path below the folder without ``.md`` (so ``db/index`` for
    ``db/SKILL.md``), or the id a worker registered. Display ids are the snapshot's business.
    """

    id: str
    title: str
    type: str | None
    function_id: str | None
    description: str
    bytes: int
    modified_at: str
    provenance: Provenance
    functions: tuple[str, ...] = ()
    """Function ids a how-to declares in its front matter, ``function_id`` apart."""
    path: str | None = None
    """The file below the folder, or None for a registered skill."""
    name: str | None = None
    """What its front matter calls it, if that is a name as the Agent Skills standard has them."""
    disable_model_invocation: bool = False
    """True where the front matter keeps it for people to call."""
    keywords: tuple[str, ...] = ()
    """Other words its author wants it found by."""

    @property
    def source(self) -> Source:
        """Where it is kept, in the words of the older generations."""
        return "registered" if self.provenance.kind == "registered" else "folder"


class PromptArgument(NamedTuple):
    name: str
    description: str | None = None
    required: bool = False


class Prompt(NamedTuple):
    """What the catalogue knows of one prompt without its body.

    ``path`` is the file below the folder for a folder prompt, else None; ``function_id`` is the
    rendering function of a registered prompt, else None.
    """

    name: str
    description: str
    modified_at: str
    provenance: Provenance
    path: str | None = None
    function_id: str | None = None
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def source(self) -> Source:
        """Where it is kept, in the words of the older generations."""
        return "registered" if self.provenance.kind == "registered" else "folder"


class Finding(NamedTuple):
    """One line of the diagnostics: what was left out or is odd, why, and what to do about it."""

    kind: Literal[
        "skipped",
        "shadowed",
        "foreign",
        "front_matter",
        "invisible_text",
        "unreachable",
        "hidden",
        "undecodable",
        "download",
        "edited",
        "unavailable",
        "settings",
        "refused",
        "restored",
        "watch",
        "oversized",
        "check",
    ]
    subject: str
    """A path below the skills folder, an id, a state key or a namespace; never a path outside."""
    reason: str
    fix: str
    """What to do about it."""
    urgent: bool = True
    """Whether somebody should do something; others, such as of the assets of a skill, are good to know."""
    forbidden: bool = False
    """Whether the Agent Skills standard forbids it."""


class ParsedFile(NamedTuple):
    """What one file, or one registered record, turned out to be: a document, a file, or nothing; and why."""

    skill: Skill | None = None
    prompt: Prompt | None = None
    findings: tuple[Finding, ...] = ()
    size: int | None = None
    """In bytes, of a regular file, whatever is in it; None of a record, and of what is not read."""
    executable: bool = False
    digest: bytes | None = None
    """The SHA-256 of a file that is a document."""

    @property
    def is_plain(self) -> bool:
        """A file that is no document, with nothing to say about it: a script, an asset, a README."""
        return self.size is not None and self.skill is None and self.prompt is None and not self.findings
