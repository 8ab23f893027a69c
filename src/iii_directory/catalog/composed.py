"""Bodies that nobody wrote: the two indexes, the overview of a worker that ships no documents, and what a
prompt that a function renders is read as. Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.catalog.rows import address_of
from iii_directory.documents.markdown import plain_line
from iii_directory.limits import INDEX_BUDGET_BYTES, INDEX_DESCRIPTION_CHARS, MAX_OVERVIEW_FUNCTIONS
from iii_directory.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Prompt, PromptArgument, Skill

_WORKERS_HEAD: Final = '# Skills index\n\nFor a task: `directory::search { "query": "…" }`\n'
_WORKERS_CUT: Final = "\nSome descriptions are left out here: `directory::skills::list` has them all.\n"
_TREE_HEAD: Final = (
    "# Skills\n\nEvery skill of this directory, parents before children. "
    "Read one by its link with `skill::fetch`, or by its id with `directory::skills::get`.\n\n"
)
_TREE_EMPTY: Final = "_No skills yet._\n"


class WorkersIndex(NamedTuple):
    """The answer of ``directory::skills::index``."""

    body: str
    workers_count: int


def workers_index(snapshot: Snapshot) -> WorkersIndex:
    """One block for each worker that has an overview."""
    return snapshot.once(_workers_index)


def tree_index(snapshot: Snapshot) -> str:
    """The body of ``iii://skills``."""
    return snapshot.once(_tree_index)


def _workers_index(snapshot: Snapshot) -> WorkersIndex:
    overviews = [
        (snapshot.display_id(skill), skill)
        for namespace in snapshot.namespaces()
        if (skill := snapshot.find(namespace)) is not None
    ]
    overviews.sort(key=lambda overview: overview[0])
    blocks = [(_heading(key, skill), _description(skill), _call(key)) for key, skill in overviews]
    return WorkersIndex(_within_budget(blocks), len(blocks))


def _within_budget(blocks: list[tuple[str, str, str]]) -> str:
    """The whole body if it fits; else as many descriptions as fit, in order, and a line that says so."""
    whole = _WORKERS_HEAD + "".join(heading + text + call for heading, text, call in blocks)
    if len(whole.encode()) <= INDEX_BUDGET_BYTES:
        return whole
    bare = _WORKERS_HEAD + "".join(heading + call for heading, _, call in blocks) + _WORKERS_CUT
    room = INDEX_BUDGET_BYTES - len(bare.encode())
    parts = [_WORKERS_HEAD]
    for heading, text, call in blocks:
        size = len(text.encode())
        kept = text if size <= room else ""
        room -= len(kept.encode())
        parts += (heading, kept, call)
    return "".join([*parts, _WORKERS_CUT])


def _heading(key: str, skill: Skill) -> str:
    return f"\n## {plain_line(skill.title) or key}\n"


def _description(skill: Skill) -> str:
    text = plain_line(skill.description)
    return f"\n{text}\n" if text else ""


def _call(key: str) -> str:
    return f'\n`directory::skills::get {{ "id": "{key}" }}`\n'


def _tree_index(snapshot: Snapshot) -> str:
    if not snapshot.skills.keys:
        return _TREE_HEAD + _TREE_EMPTY
    lines = snapshot.skills.column(_tree_line)
    # Below every letter of an id, so that a parent comes right before its children.
    order = sorted(range(len(lines)), key=lambda at: snapshot.skills.keys[at].replace("/", "\0"))
    return _TREE_HEAD + "".join([lines[at] for at in order])


def _tree_line(key: str, skill: Skill) -> str:
    address = address_of(key, skill)
    link = f"`{key}`" if address is None else f"[`{key}`]({address})"
    title = plain_line(skill.title) or key
    description = plain_line(skill.description, INDEX_DESCRIPTION_CHARS)
    words = f"{title} — {description}" if description else title
    return f"{'  ' * key.count('/')}- {link} — {words}\n"


def registered_prompt_body(prompt: Prompt) -> str:
    """What reading a registered prompt answers: who renders it, with what, and the call to make."""
    example = {"name": prompt.name, "arguments": {argument.name: "…" for argument in prompt.arguments}}
    lines = [
        f"# {prompt.name}",
        "",
        plain_line(prompt.description),
        "",
        f"The function `{one_line(prompt.function_id or '')}` renders this prompt.",
        "",
        *(_argument_line(argument) for argument in prompt.arguments),
        *([""] if prompt.arguments else []),
        f"Render it: `prompts::mcp-get {json.dumps(example, ensure_ascii=False)}`",
        "",
    ]
    return "\n".join(lines)


def worker_overview(worker: str, description: str, functions: Iterable[tuple[str, str]]) -> str:
    """An overview of an installed worker without documents: the ids and descriptions of its functions."""
    lines = [f"# {plain_line(worker)}", "", plain_line(description) or "This worker ships no documents.", ""]
    rows = sorted(functions)
    if rows:
        lines += ["## Functions", ""]
        shown, more = rows[:MAX_OVERVIEW_FUNCTIONS], len(rows) - MAX_OVERVIEW_FUNCTIONS
        lines += [f"- `{one_line(function_id)}`{_dash(text)}" for function_id, text in shown]
        if more > 0:
            lines.append(f"- and {more} more: `directory::function-list` has them all")
        lines += ["", "Schemas: `directory::engine::functions::info` with the function id.", ""]
    else:
        lines += ["It has no functions on this engine right now.", ""]
    return "\n".join(lines)


def _argument_line(argument: PromptArgument) -> str:
    need = "required" if argument.required else "optional"
    return f"- `{one_line(argument.name)}` ({need}){_dash(argument.description or '')}"


def _dash(text: str) -> str:
    return f" — {plain_line(text)}" if text.strip() else ""
