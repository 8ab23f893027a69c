"""Define every error that a caller of the directory can get: its code, its class and what to do next. Pure.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from iii_directory.shapes import is_list, is_object, is_text_list, object_of
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


_OR = "; or "


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One row of the error table: a stable code, its class, what it means, and the usual way out."""

    code: str
    name: str
    meaning: str
    """For the reference; the sentence of an error says what is wrong this time."""
    next_steps: tuple[Step, ...]
    """Empty where the sentence itself says what to change."""


KINDS: list[ErrorKind] = []
"""Every row of the table below, in the order of the codes."""


def _kind(code: str, name: str, meaning: str, *next_steps: Step) -> ErrorKind:
    kind = ErrorKind(code, name, meaning, next_steps)
    KINDS.append(kind)
    return kind


RETRY = Step("call it again later")
_SEE_SCHEMA = Step("with the function id to see its fields", "directory::engine::functions::info")
_SEARCH = Step("with words for what is wanted", "directory::search")
_LIST_SKILLS = Step("to see every skill id", "directory::skills::list")
_READ_RAW = Step("with raw to read what is there, and its sha256", "directory::skills::get")
_LIST_PROMPTS = Step("to see every prompt", "directory::prompts::list")
_LIST_REGISTRY = Step("to see what is published", "directory::registry::workers::list")

INVALID_FIELD = _kind(
    "D100",
    "invalid_input",
    "A field of the payload is missing or has the wrong type, or the payload is not an object.",
    _SEE_SCHEMA,
)
SKILL_NOT_FOUND = _kind(
    "D110",
    "not_found",
    "No skill has this id, and no id is close enough to be served instead.",
    _LIST_SKILLS,
    _SEARCH,
)
BAD_SKILL_ID = _kind(
    "D111", "invalid_input", "The value is not a valid skill id or iii:// address.", _LIST_SKILLS
)
FUNCTION_ID_AS_SKILL = _kind(
    "D112",
    "invalid_input",
    "The value is a function id, with '::' in it; a skill id or address is needed.",
    Step("to read about a function", "directory::engine::functions::info"),
    _LIST_SKILLS,
)
BAD_BODY = _kind(
    "D113",
    "invalid_input",
    "The text of a skill is empty, too large, not text, or has front matter that cannot be read.",
)
SKILL_EXISTS = _kind(
    "D114",
    "conflict",
    "A skill cannot be created: its id is taken, or another file is where its file belongs.",
    _READ_RAW,
    Step("to change it", "directory::skills::update"),
)
RESERVED_PLACE = _kind(
    "D115",
    "invalid_input",
    "A skill cannot be created here: it would not be recognised as a skill, would be hidden, or would hide "
    "other skills.",
    Step("choose an id in another namespace"),
)
READ_ONLY_SKILL = _kind(
    "D116", "read_only", "This worker may not write the skill, or writing is switched off."
)
NO_TEXT = _kind("D117", "not_text", "The file is binary, or too large to be read in one piece.")
SKILL_CHANGED = _kind(
    "D118",
    "conflict",
    "The skill was changed after the caller had read it. Nothing was overwritten.",
    _READ_RAW,
)
FILE_NOT_FOUND = _kind(
    "D119",
    "not_found",
    "The skill has no file at this path.",
    Step("to see every file of the skill", "directory::skills::files"),
)
GUARDED = _kind(
    "D120",
    "forbidden",
    "A document or a prompt names a function of an internal namespace, which reads must not call.",
    Step("call the function itself if you are allowed to"),
)
TOO_LARGE = _kind(
    "D121",
    "too_large",
    "The content exists, but is larger than one answer may be.",
    Step("ask for less at once"),
)
QUOTA = _kind(
    "D122",
    "quota_exceeded",
    "Callers have written as many skills, or as many bytes of skills, as the operator allows.",
    Step("to remove a skill that is not needed", "directory::skills::delete"),
    Step("raise max_written_skills or max_written_bytes in the configuration"),
)
PROMPT_NOT_FOUND = _kind("D210", "not_found", "No prompt has this name.", _LIST_PROMPTS)
BAD_PROMPT = _kind(
    "D211",
    "invalid_input",
    "The value is not a valid name of a prompt, or the prompt cannot be registered or rendered with it.",
    _LIST_PROMPTS,
)
PROMPT_SHAPE = _kind(
    "D212", "handler_error", "The function that renders a prompt answered with neither text nor messages."
)
REGISTRY_NOT_FOUND = _kind(
    "D310", "not_found", "The registry does not have this worker, version or tag.", _LIST_REGISTRY
)
BAD_REGISTRY_REQUEST = _kind(
    "D311", "invalid_input", "The value is not a valid worker name, version or tag.", _LIST_REGISTRY
)
REGISTRY_FAILED = _kind(
    "D320",
    "registry_error",
    "The registry cannot be reached, took too long, or its answer cannot be used.",
    RETRY,
    Step("check registry_url in the configuration"),
)
SOURCE_FAILED = _kind(
    "D330",
    "source_error",
    "A git repository cannot be fetched, or does not contain what was requested.",
    RETRY,
)
SOURCE_REFUSED = _kind(
    "D331", "invalid_input", "The source is not valid, or this kind of source is disabled."
)
INSTALL_FAILED = _kind(
    "D340",
    "install_error",
    "The download cannot be installed, or the skills folder cannot take it. Nothing was changed.",
    Step("to see the state of the folder", "directory::diagnostics"),
)
ENGINE_FAILED = _kind(
    "D410",
    "engine_error",
    "The engine, or a function that was called on behalf of the caller, failed or took too long.",
    RETRY,
)
ENGINE_NOT_FOUND = _kind(
    "D411",
    "not_found",
    "The engine does not have this function, trigger type, binding or worker.",
    Step("to see what is registered", "directory::function-list"),
)
OUTCOME_UNKNOWN = _kind(
    "D412",
    "outcome_unknown",
    "The engine's state did not answer a write in time. The write may have been done, or not.",
    Step("to read a skill back", "directory::skills::get"),
    Step("to read a prompt back", "directory::prompts::get"),
    Step("call it again: the same content twice does no harm"),
)
INTERNAL = _kind(
    "D500", "internal_error", "This worker has a defect. Please report it.", Step("see the worker's log")
)

KIND_OF_CODE: Mapping[str, ErrorKind] = {kind.code: kind for kind in KINDS}


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
        self.code = kind.code
        self.problem = problem
        self.did_you_mean = tuple(did_you_mean)
        self.next_steps = kind.next_steps if next_steps is None else tuple(next_steps)
        super().__init__(self.sentence())

    def sentence(self, told: Callable[[Step], str] = str) -> str:
        """Render the whole sentence, with its next steps as ``told`` renders each."""
        parts = [f"{self.code} {self.kind.name}: {self.problem.rstrip('.')}."]
        if self.did_you_mean:
            parts.append(f"Did you mean: {', '.join(self.did_you_mean)}.")
        if self.next_steps:
            parts.append(f"Next: {_OR.join(map(told, self.next_steps))}.")
        # The words of other authors in it must neither break the line nor act on a terminal.
        return escaped(" ".join(parts))

    def data(self) -> dict[str, Any]:
        """Make JSON of the error, from which `error_of` makes the error again."""
        return {
            "code": self.code,
            "problem": self.problem,
            "did_you_mean": list(self.did_you_mean),
            "next_steps": [step._asdict() for step in self.next_steps],
        }


def error_of(data: object) -> DirectoryError | None:
    """Make an error of what `DirectoryError.data` gave; None for anything else."""
    told = object_of(data)
    kind = KIND_OF_CODE.get(str(told.get("code")))
    problem, meant, steps = told.get("problem"), told.get("did_you_mean", []), told.get("next_steps", [])
    if kind is None or not isinstance(problem, str) or not is_text_list(meant) or not is_list(steps):
        return None
    next_steps = [
        Step(words, function, payload if is_object(payload := step.get("payload")) else None)
        for step in map(object_of, steps)
        if isinstance(words := step.get("words"), str) and isinstance(function := step.get("function"), str)
    ]
    return DirectoryError(kind, problem, did_you_mean=meant, next_steps=next_steps)


def invalid_field(field: str, expected: str) -> DirectoryError:
    """Return the error for a field that is missing or has the wrong type."""
    return DirectoryError(INVALID_FIELD, f"field '{field}' must be {expected}")


def refused(problem: str) -> DirectoryError:
    """Return the error for a bundle or a folder that cannot be installed."""
    return DirectoryError(INSTALL_FAILED, f"{problem}; nothing was changed")
