"""Every error a caller of the directory can meet: its code, its class and what to do next. Pure.

    DirectoryError
      D1xx  skills: ids, URIs, bodies, fields of any call
      D2xx  prompts
      D3xx  registry, git sources and installs
      D4xx  the engine

An error is one sentence for an agent or a person:
``<code> <class>: <what is wrong>. [Did you mean: a, b.] [Next: call F to …; or call G to ….]``
The next steps are data: callers on the engine read function ids, MCP clients the names of tools, and people
at a terminal commands.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Step(NamedTuple):
    """One thing to do next: a function to call, what with and what for; or words alone."""

    words: str
    function: str = ""
    payload: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        """Render it for callers on the engine."""
        if not self.function:
            return self.words
        given = () if self.payload is None else (json.dumps(self.payload, ensure_ascii=False),)
        return " ".join(("call", self.function, *given, self.words))


def read_step(text: str) -> Step:
    """Read back what `Step.__str__` rendered."""
    found = _CALL.match(text)
    if found is None:
        return Step(text)
    function, rest = found[1], text[found.end() :]
    if not rest.startswith("{"):
        return Step(rest, function)
    try:
        payload, end = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return Step(rest, function)
    return Step(rest[end:].lstrip(), function, payload)


def retold(sentence: str, told: Callable[[Step], str]) -> str:
    """Render the next steps of an error that came over the engine for another reader."""
    head, found, steps = sentence.rpartition(_NEXT)
    if not found or not _ERROR.match(sentence):
        return sentence
    return f"{head}{_NEXT}{_OR.join(told(read_step(step)) for step in steps.removesuffix('.').split(_OR))}."


_CALL = re.compile(r"call ([a-z][a-z0-9_-]*(?:::[a-z0-9_-]+)+) ?")
_ERROR = re.compile(r"D\d{3} \w+: ")
_NEXT = " Next: "
_OR = "; or "


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One row of the error table: a stable code, its class, what it means, and the usual way out."""

    code: str
    name: str
    next_steps: tuple[Step, ...] = ()
    """Empty where the sentence itself says what to change."""
    meaning: str = field(kw_only=True)
    """For the reference; the sentence of an error says what is wrong this time."""


_SEE_SCHEMA = Step("with the function id to see its fields", "directory::engine::functions::info")
_SEARCH = Step("with words for what is wanted", "directory::search")
_LIST_SKILLS = Step("to see every skill id", "directory::skills::list")
_READ_RAW = Step("with raw to read what is there, and its sha256", "directory::skills::get")
_LIST_PROMPTS = Step("to see every prompt", "directory::prompts::list")
_LIST_REGISTRY = Step("to see what is published", "directory::registry::workers::list")
RETRY = Step("call it again later")

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
    (Step("to read about a function", "directory::engine::functions::info"), _LIST_SKILLS),
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
    (_READ_RAW, Step("to change it", "directory::skills::update")),
    meaning="A skill cannot be created: something has its id, or lies where its file belongs.",
)
RESERVED_PLACE = ErrorKind(
    "D115",
    "invalid_input",
    (Step("choose an id in another namespace"),),
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
    (Step("ask for less at once"),),
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
    (Step("to see every file of the skill", "directory::skills::files"),),
    meaning="The skill has no file at this path.",
)
QUOTA = ErrorKind(
    "D122",
    "quota_exceeded",
    (
        Step("to remove a skill that is not needed", "directory::skills::delete"),
        Step("raise max_written_skills or max_written_bytes in the configuration"),
    ),
    meaning="Callers have written as many skills, or as many bytes of them, as the operator allows.",
)
GUARDED = ErrorKind(
    "D120",
    "forbidden",
    (Step("call the function itself if you are allowed to"),),
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
    (RETRY, Step("check registry_url in the configuration")),
    meaning="The registry cannot be reached, took too long, or answered what cannot be used.",
)
SOURCE_FAILED = ErrorKind(
    "D330",
    "source_error",
    (RETRY,),
    meaning="A git repository cannot be fetched, or does not have what was asked of it.",
)
SOURCE_REFUSED = ErrorKind(
    "D331", "invalid_input", meaning="What was given as a source is none, or is one that is not allowed here."
)
INSTALL_FAILED = ErrorKind(
    "D340",
    "install_error",
    (Step("to see the state of the folder", "directory::diagnostics"),),
    meaning="What was fetched cannot be installed, or the skills folder cannot take it. Nothing was changed.",
)
ENGINE_FAILED = ErrorKind(
    "D410",
    "engine_error",
    (RETRY,),
    meaning="The engine, or a function that was called on behalf of the caller, failed or took too long.",
)
OUTCOME_UNKNOWN = ErrorKind(
    "D412",
    "outcome_unknown",
    (
        Step("to read a skill back", "directory::skills::get"),
        Step("to read a prompt back", "directory::prompts::get"),
        Step("call it again: the same content twice does no harm"),
    ),
    meaning="The state was told to write and did not answer in time. It may have been done, or not.",
)
ENGINE_NOT_FOUND = ErrorKind(
    "D411",
    "not_found",
    (Step("to see what is registered", "directory::function-list"),),
    meaning="The engine has no such function, trigger type, binding or worker.",
)
INTERNAL = ErrorKind(
    "D500",
    "internal_error",
    (Step("see the worker's log"),),
    meaning="A defect of this worker. Please report it.",
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
        next_steps: Sequence[Step] | None = None,
    ) -> None:
        self.kind = kind
        self.problem = problem
        self.did_you_mean = tuple(did_you_mean)
        self.next_steps = kind.next_steps if next_steps is None else tuple(next_steps)
        super().__init__(self.sentence())

    @property
    def code(self) -> str:
        return self.kind.code

    def sentence(self, told: Callable[[Step], str] = str) -> str:
        """Render the whole sentence, with its next steps as ``told`` renders each."""
        parts = [f"{self.kind.code} {self.kind.name}: {self.problem.rstrip('.')}."]
        if self.did_you_mean:
            parts.append(f"Did you mean: {', '.join(self.did_you_mean)}.")
        if self.next_steps:
            parts.append(f"Next: {_OR.join(map(told, self.next_steps))}.")
        # Whatever of others' words is in it, the sentence is one line and cannot act on a terminal.
        return escaped(" ".join(parts))


def invalid_field(field: str, expected: str) -> DirectoryError:
    """A field is missing or of the wrong type."""
    return DirectoryError(INVALID_FIELD, f"field '{field}' must be {expected}")


def refused(problem: str) -> DirectoryError:
    """A bundle or a folder that cannot be installed as it is."""
    return DirectoryError(INSTALL_FAILED, f"{problem}; nothing was changed")
