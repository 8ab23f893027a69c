"""Every error a caller of the directory can meet: its code, its class and what to do next. Pure.

    DirectoryError
      D1xx  skills: ids, URIs, bodies, fields of any call
      D2xx  prompts
      D3xx  registry, git sources and installs
      D4xx  the engine

An error is one sentence for an agent or a person:
``<code> <class>: <what is wrong>. [Did you mean: a, b.] [Next: call F to …; or call G to ….]``
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One row of the error table: a stable code, its class, what it means, and the usual way out."""

    code: str
    name: str
    next_steps: tuple[str, ...] = ()
    """Empty where the sentence itself says what to change."""
    meaning: str = field(kw_only=True)
    """For the reference; the sentence of an error says what is wrong this time."""


_SEE_SCHEMA = "call directory::engine::functions::info with the function id to see its fields"
_SEARCH = "call directory::search with words for what is wanted"
_LIST_SKILLS = "call directory::skills::list to see every skill id"
_READ_RAW = "call directory::skills::get with raw to read what is there, and its sha256"
_LIST_PROMPTS = "call directory::prompts::list to see every prompt"
_LIST_REGISTRY = "call directory::registry::workers::list to see what is published"
_RETRY = "call it again later"

INVALID_FIELD = ErrorKind(
    "D100",
    "invalid_input",
    (_SEE_SCHEMA,),
    meaning="A field of the payload is missing or has the wrong type, or the payload is no object.",
)
SKILL_NOT_FOUND = ErrorKind(
    "D110",
    "not_found",
    (_LIST_SKILLS, _SEARCH),
    meaning="No skill has this id, and none is close enough to be served instead.",
)
BAD_SKILL_ID = ErrorKind(
    "D111", "invalid_input", (_LIST_SKILLS,), meaning="What was given as an id or an address can be none."
)
FUNCTION_ID_AS_SKILL = ErrorKind(
    "D112",
    "invalid_input",
    ("call directory::engine::functions::info to read about a function", _LIST_SKILLS),
    meaning="A function id, with '::' in it, was given where a skill's id or address is wanted.",
)
BAD_BODY = ErrorKind(
    "D113",
    "invalid_input",
    meaning="A skill cannot be registered or written with this text: empty, too large, no text, or "
    "with front matter that cannot be read.",
)
SKILL_EXISTS = ErrorKind(
    "D114",
    "conflict",
    (_READ_RAW, "call directory::skills::update to change it"),
    meaning="A skill cannot be created: something has its id, or lies where its file belongs.",
)
RESERVED_PLACE = ErrorKind(
    "D115",
    "invalid_input",
    ("choose an id in another namespace",),
    meaning="A skill cannot be created in this place: it would be no skill, not be seen, or hide others.",
)
READ_ONLY_SKILL = ErrorKind(
    "D116",
    "read_only",
    meaning="The skill is not this worker's to write, or writing is switched off.",
)
SKILL_CHANGED = ErrorKind(
    "D118",
    "conflict",
    (_READ_RAW,),
    meaning="The skill is not what the caller has read: somebody wrote it since. Nothing was overwritten.",
)
TOO_LARGE = ErrorKind(
    "D121",
    "too_large",
    ("ask for less at once",),
    meaning="What was asked for is there, but larger than one answer may be.",
)
NO_TEXT = ErrorKind(
    "D117",
    "not_text",
    meaning="The file is there, but it is binary, or too large to be read in one piece.",
)
FILE_NOT_FOUND = ErrorKind(
    "D119",
    "not_found",
    ("call directory::skills::files to see every file of the skill",),
    meaning="The skill has no file at this path.",
)
QUOTA = ErrorKind(
    "D122",
    "quota_exceeded",
    (
        "call directory::skills::delete to remove a skill that is not needed",
        "raise max_written_skills or max_written_bytes in the configuration",
    ),
    meaning="Callers have written as many skills, or as many bytes of them, as the operator allows.",
)
GUARDED = ErrorKind(
    "D120",
    "forbidden",
    ("call the function itself if you are allowed to",),
    meaning="A document or a prompt names a function of an internal namespace, which reads must not call.",
)
PROMPT_NOT_FOUND = ErrorKind("D210", "not_found", (_LIST_PROMPTS,), meaning="No prompt has this name.")
BAD_PROMPT = ErrorKind(
    "D211",
    "invalid_input",
    (_LIST_PROMPTS,),
    meaning="What was given is no name of a prompt, or a prompt cannot be registered or rendered with it.",
)
PROMPT_SHAPE = ErrorKind(
    "D212",
    "handler_error",
    meaning="The function that renders a prompt answered something that is neither text nor messages.",
)
REGISTRY_NOT_FOUND = ErrorKind(
    "D310", "not_found", (_LIST_REGISTRY,), meaning="The registry has no such worker, version or tag."
)
BAD_REGISTRY_REQUEST = ErrorKind(
    "D311", "invalid_input", (_LIST_REGISTRY,), meaning="What was given names no worker, version or tag."
)
REGISTRY_FAILED = ErrorKind(
    "D320",
    "registry_error",
    (_RETRY, "check registry_url in the configuration"),
    meaning="The registry cannot be reached, took too long, or answered what cannot be used.",
)
SOURCE_FAILED = ErrorKind(
    "D330",
    "source_error",
    (_RETRY,),
    meaning="A git repository cannot be fetched, or does not have what was asked of it.",
)
SOURCE_REFUSED = ErrorKind(
    "D331", "invalid_input", meaning="What was given as a source is none, or is one that is not allowed here."
)
INSTALL_FAILED = ErrorKind(
    "D340",
    "install_error",
    ("call directory::diagnostics to see the state of the folder",),
    meaning="What was fetched cannot be installed, or the skills folder cannot take it. Nothing was changed.",
)
ENGINE_FAILED = ErrorKind(
    "D410",
    "engine_error",
    (_RETRY,),
    meaning="The engine, or a function that was called on behalf of the caller, failed or took too long.",
)
OUTCOME_UNKNOWN = ErrorKind(
    "D412",
    "outcome_unknown",
    (
        "call directory::skills::get to read a skill back",
        "call directory::prompts::get to read a prompt back",
        "call it again: the same content twice does no harm",
    ),
    meaning="The state was told to write and did not answer in time. It may have been done, or not.",
)
ENGINE_NOT_FOUND = ErrorKind(
    "D411",
    "not_found",
    ("call directory::function-list to see what is registered",),
    meaning="The engine has no such function, trigger type, binding or worker.",
)
INTERNAL = ErrorKind(
    "D500", "internal_error", ("see the worker's log",), meaning="A defect of this worker. Please report it."
)

KINDS: tuple[ErrorKind, ...] = tuple(
    kind for kind in tuple(globals().values()) if isinstance(kind, ErrorKind)
)
"""Every row above, in its order."""


class DirectoryError(Exception):
    """A failure with a code; ``str()`` is the whole sentence a caller sees."""

    def __init__(
        self,
        kind: ErrorKind,
        problem: str,
        *,
        did_you_mean: Sequence[str] = (),
        next_steps: Sequence[str] | None = None,
    ) -> None:
        self.kind = kind
        self.problem = problem
        self.did_you_mean = tuple(did_you_mean)
        self.next_steps = kind.next_steps if next_steps is None else tuple(next_steps)
        super().__init__(self.sentence())

    @property
    def code(self) -> str:
        return self.kind.code

    def sentence(self) -> str:
        parts = [f"{self.kind.code} {self.kind.name}: {self.problem.rstrip('.')}."]
        if self.did_you_mean:
            parts.append(f"Did you mean: {', '.join(self.did_you_mean)}.")
        if self.next_steps:
            parts.append(f"Next: {'; or '.join(self.next_steps)}.")
        # Whatever of others' words is in it, the sentence is one line and cannot act on a terminal.
        return escaped(" ".join(parts))


def invalid_field(field: str, expected: str) -> DirectoryError:
    """A field is missing or of the wrong type."""
    return DirectoryError(INVALID_FIELD, f"field '{field}' must be {expected}")


def refused(problem: str) -> DirectoryError:
    """A bundle or a folder that cannot be installed as it is."""
    return DirectoryError(INSTALL_FAILED, f"{problem}; nothing was changed")
