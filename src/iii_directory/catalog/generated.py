"""Bodies that nobody wrote: of a prompt that a function renders, and of a worker that ships no documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from iii_directory.documents.markdown import plain_line
from iii_directory.limits import MAX_OVERVIEW_FUNCTIONS
from iii_directory.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iii_directory.documents.model import Prompt, PromptArgument


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
