"""Write the documents that are generated: the two indexes, the overview of a worker without documents, and
the description of a prompt that a function renders. Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory import limits
from iii_directory.catalog.skill_folders import topmost_skills
from iii_directory.catalog.snapshot import once_per_snapshot
from iii_directory.documents.parse import plain_line
from iii_directory.documents.uris import address_of
from iii_directory.text import cut_at_word, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Prompt, Skill

_SEARCH: Final = 'For a task: `directory::search { "query": "…" }`\n'
# Files of the operator need no mark of their source; every other document has one.
_UNMARKED: Final = "Without a mark in parentheses: a file of the operator of this directory."
_WORKERS_HEAD: Final = f"# Skills index\n\n{_SEARCH}\n{_UNMARKED}\n"
_COMPACT_HEAD: Final = (
    f"# Skills index\n\n{_SEARCH}\nRead one by its id: "
    '`directory::skills::get { "id": "…" }`. Whole descriptions: `directory::skills::list`. '
    f"{_UNMARKED}\n\n"
)
_TREE_HEAD: Final = (
    "# Skills\n\nEvery skill of this directory, parents before children. "
    "Read one by its link with `skill::fetch`, or by its id with `directory::skills::get`. "
    f"{_UNMARKED}\n\n"
)
_TREE_EMPTY: Final = "_No skills yet._\n"


class WorkersIndex(NamedTuple):
    """The answer of ``directory::skills::index``."""

    body: str
    workers_count: int


@once_per_snapshot
def workers_index(snapshot: Snapshot) -> WorkersIndex:
    """Write a block for each skill that has none above it, or a line for each if blocks would be too long."""
    skills = topmost_skills(snapshot)
    whole = _WORKERS_HEAD
    for key, skill in skills:
        description = plain_line(skill.description)
        whole += f"\n## {plain_line(skill.title) or key}{_mark(skill)}\n"
        whole += f"\n{description}\n" if description else ""
        whole += f'\n`directory::skills::get {{ "id": "{key}" }}`\n'
    if len(whole.encode()) > limits.INDEX_BUDGET_BYTES:
        whole = _compact([(key + _mark(skill), plain_line(skill.description)) for key, skill in skills])
    return WorkersIndex(whole, len(skills))


def _compact(lines: list[tuple[str, str]]) -> str:
    """Write a line for each skill, every description cut to the same length: the longest that fits.

    No description is cut to less than `INDEX_LEAST_CHARS` and no skill is left out, whatever the budget.
    """

    def cut_to(room: int) -> str:
        rows = (f"- {key}: {cut_at_word(text, room)}" if text else f"- {key}" for key, text in lines)
        return _COMPACT_HEAD + "\n".join(rows) + "\n"

    shortest, longest = limits.INDEX_LEAST_CHARS, max(len(text) for _, text in lines)
    if len(cut_to(shortest).encode()) > limits.INDEX_BUDGET_BYTES:
        longest = shortest
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if len(cut_to(middle).encode()) <= limits.INDEX_BUDGET_BYTES:
            shortest = middle
        else:
            longest = middle - 1
    return cut_to(shortest)


@once_per_snapshot
def tree_index(snapshot: Snapshot) -> str:
    """Write the body of ``iii://skills``."""
    if not snapshot.skills.keys:
        return _TREE_HEAD + _TREE_EMPTY
    lines = snapshot.skills.column(_tree_line)
    # A zero byte sorts below every letter of an id, so that a parent comes right before its children.
    order = sorted(range(len(lines)), key=lambda at: snapshot.skills.keys[at].replace("/", "\0"))
    return _TREE_HEAD + "".join([lines[at] for at in order])


def _tree_line(key: str, skill: Skill) -> str:
    address = address_of(key, skill)
    link = f"`{key}`" if address is None else f"[`{key}`]({address})"
    title = plain_line(skill.title) or key
    description = plain_line(skill.description, limits.INDEX_DESCRIPTION_CHARS)
    words = f"{title} — {description}" if description else title
    return f"{'  ' * key.count('/')}- {link} — {words}{_mark(skill)}\n"


def _mark(skill: Skill) -> str:
    provenance = skill.provenance
    return "" if provenance.kind == "file" else f" ({provenance.mark()})"


def registered_prompt_body(prompt: Prompt) -> str:
    """Describe a registered prompt: the function that renders it, its arguments, and the call to make."""
    example = {"name": prompt.name, "arguments": {argument.name: "…" for argument in prompt.arguments}}
    lines = [
        f"# {prompt.name}",
        "",
        plain_line(prompt.description),
        "",
        f"The function `{one_line(prompt.function_id or '')}` renders this prompt.",
        "",
    ]
    for argument in prompt.arguments:
        need = "required" if argument.required else "optional"
        lines.append(f"- `{one_line(argument.name)}` ({need}){_dash(argument.description or '')}")
    if prompt.arguments:
        lines.append("")
    lines += [f"Render it: `prompts::mcp-get {json.dumps(example, ensure_ascii=False)}`", ""]
    return "\n".join(lines)


def worker_overview(worker: str, description: str, functions: Iterable[tuple[str, str]]) -> str:
    """Write an overview of an installed worker without documents: its functions and their descriptions."""
    lines = [f"# {plain_line(worker)}", "", plain_line(description) or "This worker ships no documents.", ""]
    rows = sorted(functions)
    if rows:
        lines += ["## Functions", ""]
        shown, more = rows[: limits.MAX_OVERVIEW_FUNCTIONS], len(rows) - limits.MAX_OVERVIEW_FUNCTIONS
        lines += [f"- `{one_line(function_id)}`{_dash(text)}" for function_id, text in shown]
        if more > 0:
            lines.append(f"- and {more} more: `directory::function-list` has them all")
        lines += ["", "Schemas: `directory::engine::functions::info` with the function id.", ""]
    else:
        lines += ["It has no functions on this engine right now.", ""]
    return "\n".join(lines)


def _dash(text: str) -> str:
    return f" — {plain_line(text)}" if text.strip() else ""
