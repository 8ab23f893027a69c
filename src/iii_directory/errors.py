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

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iii_directory.text import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the error table: a stable code, its class, and the usual way out."""

    code: str
    name: str
    next_steps: tuple[str, ...] = ()


_SEE_SCHEMA = "call directory::engine::functions::info with the function id to see its fields"
_LIST_SKILLS = "call directory::skills::list to see every skill id"
_LIST_PROMPTS = "call directory::prompts::list to see every prompt"
_LIST_REGISTRY = "call directory::registry::workers::list to see what is published"
_RETRY = "call it again later"

INVALID_FIELD = Kind("D100", "invalid_input", (_SEE_SCHEMA,))
SKILL_NOT_FOUND = Kind(
    "D110", "not_found", (_LIST_SKILLS, "call directory::skills::index for one line per worker")
)
BAD_SKILL_ID = Kind("D111", "invalid_input", (_LIST_SKILLS,))
FUNCTION_ID_AS_SKILL = Kind(
    "D112",
    "invalid_input",
    ("call directory::engine::functions::info to read about a function", _LIST_SKILLS),
)
BAD_BODY = Kind("D113", "invalid_input")
GUARDED = Kind("D120", "forbidden", ("call the function itself if you are allowed to",))
PROMPT_NOT_FOUND = Kind("D210", "not_found", (_LIST_PROMPTS,))
BAD_PROMPT = Kind("D211", "invalid_input", (_LIST_PROMPTS,))
PROMPT_SHAPE = Kind("D212", "handler_error")
REGISTRY_NOT_FOUND = Kind("D310", "not_found", (_LIST_REGISTRY,))
BAD_REGISTRY_REQUEST = Kind("D311", "invalid_input", (_LIST_REGISTRY,))
REGISTRY_FAILED = Kind("D320", "registry_error", (_RETRY, "check registry_url in the configuration"))
SOURCE_FAILED = Kind("D330", "source_error", (_RETRY,))
SOURCE_REFUSED = Kind("D331", "invalid_input")
INSTALL_FAILED = Kind(
    "D340", "install_error", ("call directory::diagnostics to see the state of the folder",)
)
ENGINE_FAILED = Kind("D410", "engine_error", (_RETRY,))
ENGINE_NOT_FOUND = Kind("D411", "not_found", ("call directory::function-list to see what is registered",))
INTERNAL = Kind("D500", "internal_error", ("see the worker's log",))

KINDS: tuple[Kind, ...] = (
    INVALID_FIELD,
    SKILL_NOT_FOUND,
    BAD_SKILL_ID,
    FUNCTION_ID_AS_SKILL,
    BAD_BODY,
    GUARDED,
    PROMPT_NOT_FOUND,
    BAD_PROMPT,
    PROMPT_SHAPE,
    REGISTRY_NOT_FOUND,
    BAD_REGISTRY_REQUEST,
    REGISTRY_FAILED,
    SOURCE_FAILED,
    SOURCE_REFUSED,
    INSTALL_FAILED,
    ENGINE_FAILED,
    ENGINE_NOT_FOUND,
    INTERNAL,
)


class DirectoryError(Exception):
    """A failure with a code; ``str()`` is the whole sentence a caller sees."""

    def __init__(
        self,
        kind: Kind,
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
