"""The rows of registering, of prompts for MCP bridges, and of the trigger types that tell of changes.

Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces import shapes
from iii_directory.worker.surfaces.table import (
    MODIFIED_AT,
    NOTHING,
    FunctionRow,
    Schema,
    TriggerTypeRow,
    flag,
    obj,
    one_of_any,
    request,
    rows,
    text,
)

_NEW_ID: Final = text(
    "Segments of lowercase letters, digits, '-' and '_' joined by '/', such as resend/email/send. The first "
    "is your worker's name; it may not be 'fn'."
)
_REMOVED: Final = flag("False when there was nothing to remove.")
_ARGUMENTS: Final = rows(shapes.PROMPT_ARGUMENT, "What a client asks the person for.")

REGISTERING_ROWS: Final = (
    FunctionRow(
        "skills::register",
        lambda h: h.registering.register_skill,
        "Publish a markdown document, readable at iii://{id} and by directory::skills::get. Call it at every "
        "start of your worker: the same id again replaces the body. It is kept over restarts. Begin the body "
        "with '# Title' and a short paragraph; lists show both.",
        request(
            {"id": _NEW_ID, "skill": text("The markdown, at most 256 KiB; served as it is given.")},
            required=("id", "skill"),
        ),
        obj({"id": shapes.SKILL_ID, "registered_at": MODIFIED_AT}),
    ),
    FunctionRow(
        "skills::unregister",
        lambda h: h.registering.unregister_skill,
        "Remove a registered skill. Removing one that is not there is no error. Files of the folder stay.",
        request({"id": shapes.SKILL_ID}, required=("id",)),
        obj({"id": shapes.SKILL_ID, "removed": _REMOVED}),
    ),
    FunctionRow(
        "prompts::register",
        lambda h: h.registering.register_prompt,
        "Publish a slash-command. Your function renders it: it is called with the arguments and answers a "
        "string, {content} or {messages}. It need not exist yet. Call it at every start of your worker.",
        request(
            {
                "name": shapes.PROMPT_NAME,
                "description": shapes.PROMPT_DESCRIPTION,
                "function_id": text("The function that renders it; not one of an internal namespace."),
                "arguments": _ARGUMENTS,
            },
            required=("name", "description", "function_id"),
        ),
        obj({"name": shapes.PROMPT_NAME, "registered_at": MODIFIED_AT}),
    ),
    FunctionRow(
        "prompts::unregister",
        lambda h: h.registering.unregister_prompt,
        "Remove a registered prompt. Removing one that is not there is no error. Files of the folder stay.",
        shapes.NAMED_PROMPT,
        obj({"name": shapes.PROMPT_NAME, "removed": _REMOVED}),
    ),
)

MCP_PROMPT_ROWS: Final = (
    FunctionRow(
        "prompts::mcp-list",
        lambda h: h.prompts.mcp_list,
        "For MCP bridges: every prompt with its arguments, as prompts/list wants it.",
        NOTHING,
        obj(
            {
                "prompts": rows(
                    obj(
                        {
                            "name": shapes.PROMPT_NAME,
                            "description": shapes.PROMPT_DESCRIPTION,
                            "arguments": _ARGUMENTS,
                        }
                    ),
                    "One entry per prompt, sorted by name.",
                )
            }
        ),
    ),
    FunctionRow(
        "prompts::mcp-get",
        lambda h: h.prompts.mcp_get,
        "For MCP bridges: render a prompt. Calls the function of a registered one with the arguments; a file "
        "is one user message with its text.",
        request(
            {
                "name": shapes.PROMPT_NAME,
                "arguments": {"type": "object", "description": "By the names that prompts::mcp-list gives."},
            },
            required=("name",),
        ),
        obj(
            {
                "description": shapes.PROMPT_DESCRIPTION,
                "messages": rows(one_of_any("An MCP prompt message."), "What to put into the conversation."),
            }
        ),
    ),
)


def _event(key: str, description: str) -> Schema:
    return obj(
        {
            "op": {"enum": ["register", "unregister", "download"], "description": "What happened."},
            key: text(f"{description} For register and unregister."),
            "namespace": text("The namespace that was written. For download."),
            "source": {"enum": ["repo", "registry"], "description": "Where it came from. For download."},
        },
        optional=(key, "namespace", "source"),
    )


_SKILLS_EVENT: Final = _event("id", "The id of the skill.")
_PROMPTS_EVENT: Final = _event("name", "The name of the prompt.")
_SKILLS_CHANGED: Final = "Fires after a skill was registered or unregistered, or skills were downloaded."
_PROMPTS_CHANGED: Final = "Fires after a prompt was registered or unregistered, or prompts were downloaded."

PLAIN_TRIGGER_TYPES: Final = (
    TriggerTypeRow("skills::on-change", "skills", _SKILLS_CHANGED, _SKILLS_EVENT),
    TriggerTypeRow("prompts::on-change", "prompts", _PROMPTS_CHANGED, _PROMPTS_EVENT),
)
DIRECTORY_TRIGGER_TYPES: Final = (
    TriggerTypeRow("directory::skills::on-change", "skills", _SKILLS_CHANGED, _SKILLS_EVENT),
    TriggerTypeRow("directory::prompts::on-change", "prompts", _PROMPTS_CHANGED, _PROMPTS_EVENT),
)
