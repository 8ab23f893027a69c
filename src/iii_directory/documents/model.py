"""Define the records that other packages exchange: skill, prompt, finding, provenance. Pure.

A first scan creates these records by the ten thousand; named tuples are created five times as fast as
dataclasses. The arguments of a prompt are read and filled in here as well.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from iii_directory.errors import BAD_PROMPT, DirectoryError, Step
from iii_directory.limits import MAX_MARKED_NAME_CHARS, MAX_RENDERED_CHARS
from iii_directory.shapes import is_list, is_object, object_of, text_of
from iii_directory.text import cut, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Skill(NamedTuple):
    """One skill in the catalogue, without its body.

    ``id`` is the canonical id: the path below the folder without ``.md`` (so ``db/index`` for
    ``db/SKILL.md``), or the id a worker registered. The snapshot derives display ids.
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
    """The function ids that a how-to declares in its front matter, besides ``function_id``."""
    path: str | None = None
    """The file below the folder, or None for a registered skill."""
    name: str | None = None
    """The name in its front matter, if that is valid in the Agent Skills standard."""
    disable_model_invocation: bool = False
    """True where the front matter says that only people call it."""
    keywords: tuple[str, ...] = ()
    """Further words by which its author wants it to be found."""


class PromptArgument(NamedTuple):
    name: str
    description: str | None = None
    required: bool = False


class Prompt(NamedTuple):
    """One prompt in the catalogue, without its body.

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


class Finding(NamedTuple):
    """One line of the diagnostics: what was left out or looks wrong, why, and what to do about it."""

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
    """Whether the finding needs action; others, such as about assets of a skill, are only information."""
    forbidden: bool = False
    """Whether the Agent Skills standard forbids it."""


class ParsedFile(NamedTuple):
    """The result of parsing one file or one registered record: a document, a file, or only findings."""

    skill: Skill | None = None
    prompt: Prompt | None = None
    findings: tuple[Finding, ...] = ()
    size: int | None = None
    """The size in bytes of a regular file; None for a record, and for a file that is not read."""
    executable: bool = False
    digest: bytes | None = None
    """The SHA-256 of a file that is a document."""

    @property
    def is_plain(self) -> bool:
        """Return whether the file is not a document and has no findings: a script, an asset, a README."""
        return self.size is not None and self.skill is None and self.prompt is None and not self.findings


Kind = Literal["file", "installed", "written", "registered", "built-in"]
State = Literal["verified", "edited", "connected", "gone", "unknown"]
# Equally relevant documents are shown in this order.
_ORDER: Final[tuple[Kind, ...]] = ("file", "installed", "written", "registered", "built-in")
UNKNOWN: Final = "unknown"
META_KEY: Final = "dev.iii.directory/provenance"
"""The key under which MCP clients find the source of a document in ``_meta``."""
# A worker chooses its own name, which must not look like the end of a mark, or like Markdown.
_UNSAFE_IN_MARK: Final = re.compile(r"[^\w.@/:+ -]")


class Author(NamedTuple):
    """The worker that registered or wrote a document, as the engine named the caller."""

    worker_id: str = UNKNOWN
    worker: str = UNKNOWN


NO_AUTHOR: Final = Author()


class Provenance(NamedTuple):
    """The source of one document. Only the fields that the kind of source has are set."""

    kind: Kind
    root: str | None = None
    """The folder that holds the file: skills, local, or the last two names of a root."""
    origin: str | None = None
    """The kind of source of an install: registry, repo, site, archive or folder."""
    address: str | None = None
    """The address of that registry, repository or site, or the path of that folder."""
    version: str | None = None
    """The version or the commit that was installed."""
    worker: str | None = None
    worker_id: str | None = None
    since: str | None = None
    """When it was registered, written or installed, in RFC 3339."""
    state: State | None = None
    """Whether the file is as it was installed or written, or whether the registrant is still connected."""

    def as_json(self) -> dict[str, Any]:
        """Return every field that is set, by the names that replies show."""
        return {_NAMES.get(name, name): value for name, value in self._asdict().items() if value is not None}

    def brief(self) -> dict[str, Any]:
        """Return the fields of `as_json` that fit a row of a search."""
        whole = self.as_json()
        return {name: whole[name] for name in _BRIEF if name in whole}

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Provenance:
        """Read the provenance in a row of a reply; missing or wrong fields are left out."""
        known = {field: row.get(_NAMES.get(field, field)) for field in cls._fields}
        texts = {field: value for field, value in known.items() if isinstance(value, str)}
        kind = texts.pop("kind", None)
        return cls(kind if kind in _ORDER else "file", **cast("dict[str, Any]", texts))

    @property
    def author(self) -> str:
        """Return the worker id of the registrant; empty for a file."""
        return (self.worker_id or UNKNOWN) if self.kind == "registered" else ""

    @property
    def order(self) -> int:
        """Return the rank of this source among equally relevant documents, lowest first."""
        return _ORDER.index(self.kind)

    def mark(self) -> str:
        """Describe the source in a few words for an index: its kind and its name."""
        tail = f", {self.state}" if self.state in ("edited", "gone") else ""
        match self.kind:
            case "file":
                return "file" if self.root in (None, "skills") else f"file in {_plain(self.root)}"
            case "installed":
                return f"installed from {_plain(self.address or self.origin)}{tail}"
            case "written" | "registered":
                return f"{self.kind} by {_plain(self.worker)}{tail}"
            case "built-in":
                return "built in"


_NAMES: Final = {"origin": "from"}
_BRIEF: Final = ("kind", "root", "from", "version", "worker", "state")
OPERATOR: Final = Provenance("file")
"""The provenance of a file in a folder without a name, such as a folder that is only checked."""


def _plain(name: str | None) -> str:
    return cut(_UNSAFE_IN_MARK.sub("?", name or UNKNOWN), MAX_MARKED_NAME_CHARS)


# The placeholders of common hosts: an argument by name, by position, or all of them.
_PLACEHOLDER: Final = re.compile(r"\{\{ *([^{}\s]{1,64}) *\}\}|\$([1-9][0-9]?)(?![0-9])|\$ARGUMENTS\b")


def read_arguments(values: dict[str, Any], problems: list[str]) -> tuple[PromptArgument, ...]:
    """Read ``arguments`` (a list of names or mappings) or else ``args_schema`` (a JSON Schema)."""
    for key, reader in (("arguments", _from_list), ("args_schema", _from_schema)):
        value = values.get(key)
        if value is None:
            continue
        arguments = reader(value)
        if arguments is not None:
            return arguments
        problems.append(f"'{key}' in its front matter does not describe arguments and is ignored")
    return ()


def _from_list(value: object) -> tuple[PromptArgument, ...] | None:
    if not is_list(value):
        return None
    found: dict[str, PromptArgument] = {}
    for item in value:
        # A plain string is the name of an optional argument.
        row = {"name": item} if isinstance(item, str) else object_of(item)
        name, required = text_of(row.get("name")), row.get("required", False)
        name = None if name is None else name.strip()
        if not name or name in found or not isinstance(required, bool):
            return None
        found[name] = PromptArgument(name, text_of(row.get("description")), required)
    return tuple(found.values())


def _from_schema(value: object) -> tuple[PromptArgument, ...] | None:
    if not is_object(value):
        return None
    properties, required = value.get("properties", {}), value.get("required", [])
    if not is_object(properties) or not is_list(required):
        return None
    return tuple(
        PromptArgument(name, text_of(object_of(field).get("description")), name in required)
        for name, field in properties.items()
        if name.strip()
    )


def rendered(
    name: str, template: str, declared: Sequence[PromptArgument], given: Mapping[str, object]
) -> str:
    """Render the template of a prompt with the caller's values.

    ``{{name}}`` stands for an argument by name, ``$1`` for one by position, ``$ARGUMENTS`` for all values in
    order. A missing optional argument renders as an empty string; a missing required one is an error.
    Placeholders without a declared argument stay as written, and values are not rendered again.
    """
    missing = [one.name for one in declared if one.required and given.get(one.name) is None]
    if missing:
        names = ", ".join(map(quoted, missing))
        plural = "s" if len(missing) > 1 else ""
        raise DirectoryError(
            BAD_PROMPT,
            f"prompt '{name}' needs the argument{plural} {names}",
            next_steps=(Step(f"with the argument{plural} in 'arguments'", "prompts::mcp-get"),),
        )
    values = {argument.name: _as_text(given.get(argument.name)) for argument in declared}
    others = {key: _as_text(value) for key, value in given.items() if key not in values}

    size = len(template)

    def filled(found: re.Match[str]) -> str:
        nonlocal size
        if found[1] is not None:
            value = values.get(found[1], found[0])
        elif found[2] is not None:
            place = int(found[2]) - 1
            value = list(values.values())[place] if place < len(values) else found[0]
        else:
            every = filter(None, (*values.values(), *others.values()))
            value = " ".join(every) if values or others else found[0]
        size += len(value)
        if size > MAX_RENDERED_CHARS:
            raise DirectoryError(
                BAD_PROMPT,
                f"prompt '{name}' with these arguments is longer than {MAX_RENDERED_CHARS} characters",
                next_steps=(Step("with shorter arguments", "prompts::mcp-get"),),
            )
        return value

    return _PLACEHOLDER.sub(filled, template)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
