"""Declare the functions of prompts and of registering, and the trigger types that report changes."""

from __future__ import annotations

from typing import Final

from iii_directory.catalog import skill_replies
from iii_directory.documents.payload_fields import PROMPTS_CHANGED, SKILLS_CHANGED
from iii_directory.worker.change_events import PROMPTS, PROMPTS_WRITTEN, SKILLS, SKILLS_WRITTEN
from iii_directory.worker.surfaces import declare

_NAME: Final = "The name of the prompt: what a person types after the slash."
_DESCRIPTION: Final = "What the prompt is for."
_ROW: Final[declare.Fields] = {
    "name": _NAME,
    "description": _DESCRIPTION,
    "modified_at": declare.MODIFIED_AT,
    "provenance": declare.PROVENANCE,
}
_PLAIN_ROW: Final[declare.Fields] = {
    **_ROW,
    "function_id": declare.maybe("The function that renders it; null for a template in the folder."),
    "arguments": declare.count("How many arguments it declares."),
    "registered_at": declare.MODIFIED_AT,
    "source": declare.SOURCE,
}
_PROMPT: Final[declare.Fields] = {
    "name": _NAME,
    "description": _DESCRIPTION,
    "body": "The template; for a registered prompt, how to have it rendered.",
    "modified_at": declare.MODIFIED_AT,
    "provenance": declare.PROVENANCE,
}
_ARGUMENTS: Final = declare.table(
    {
        "name": "The name of the argument.",
        "description?": "What to give for it.",
        "required?": declare.flag("Whether a client must ask for it.", default=False),
    },
    "What a client asks the person for.",
)
_MCP_ROW: Final[declare.Fields] = {
    "name": _NAME,
    "description": _DESCRIPTION,
    "arguments": _ARGUMENTS,
    "_meta": declare.META,
}
_NAMED: Final[declare.Fields] = {"name": _NAME}
_NEW_ID: Final = (
    "Segments of lowercase letters, digits, '-' and '_' joined by '/', such as resend/email/send. The first "
    "is your worker's name; it may not be 'fn'."
)
_REMOVED: Final = declare.flag("False when there was nothing to remove.")

FUNCTIONS: Final = (
    *declare.function(
        ids={"directory::prompts::list": (declare.V08,)},
        reply=skill_replies.prompts_list,
        description="List the prompts, slash-command templates for people: name, description, modified_at.",
        response={
            "prompts": declare.table(
                {**_ROW, "connected?": declare.CONNECTED}, "One row per prompt, sorted by name."
            )
        },
    ),
    *declare.function(
        ids={"directory::prompts::get": (declare.V08,), "prompts::get": (declare.V04,)},
        reply=skill_replies.prompt,
        description="Read one prompt by name: its template with name, description and modified_at. A prompt "
        "that a function renders answers with how to have it rendered.",
        request=_NAMED,
        response=_PROMPT,
        example={"name": "greet"},
    ),
    *declare.function(
        ids={"prompts::list": (declare.V02, declare.V04)},
        reply=skill_replies.plain_prompts,
        description="List every prompt, from the folder and from registrations: name, description, "
        "function_id, how many arguments, registered_at, modified_at, source.",
        response={"prompts": declare.table(_PLAIN_ROW, "One row per prompt, sorted by name.")},
    ),
    *declare.function(
        ids={"prompts::mcp-list": (declare.V02,)},
        reply=skill_replies.mcp_prompts,
        description="For MCP bridges: every prompt with its arguments, as prompts/list wants it.",
        response={"prompts": declare.table(_MCP_ROW, "One entry per prompt, sorted by name.")},
    ),
    *declare.function(
        ids={"prompts::mcp-get": (declare.V02,)},
        handler=lambda services: services.reading.mcp_prompt,
        description="For MCP bridges: render a prompt. Calls the function of a registered one with the "
        "arguments; a file is one user message with its text, the arguments in their places.",
        request={
            "name": _NAME,
            "arguments?": declare.some_object("By the names that prompts::mcp-list gives."),
        },
        response={
            "description": _DESCRIPTION,
            "messages": {
                "type": "array",
                "items": declare.one_of_any("An MCP prompt message."),
                "description": "What to put into the conversation.",
            },
            "_meta": declare.META,
        },
        example={"name": "greet", "arguments": {"name": "Ada"}},
    ),
    *declare.function(
        ids={"skills::register": (declare.V02,)},
        handler=lambda services: services.registering.register_skill,
        long_fields=("skill",),
        description="Publish a markdown document, readable at iii://{id} and by directory::skills::get. Call "
        "it at every start of your worker: the same id again replaces the body. It is kept over restarts. "
        "Begin the body with '# Title' and a short paragraph; lists show both.",
        request={"id": _NEW_ID, "skill": "The markdown, at most 256 KiB; served as it is given."},
        response={"id": declare.SKILL_ID, "registered_at": declare.MODIFIED_AT},
        example={"id": "greeter/tone", "skill": "# Tone\n\nHow warm a greeting may be.\n"},
    ),
    *declare.function(
        ids={"skills::unregister": (declare.V02,)},
        handler=lambda services: services.registering.unregister_skill,
        description="Remove a registered skill. Removing a missing one is not an error. Files of the "
        "folder stay.",
        request={"id": declare.SKILL_ID},
        response={"id": declare.SKILL_ID, "removed": _REMOVED},
        example={"id": "greeter/tone"},
    ),
    *declare.function(
        ids={"prompts::register": (declare.V02,)},
        handler=lambda services: services.registering.register_prompt,
        long_fields=("description",),
        description="Publish a slash-command. Your function renders it: it is called with the arguments and "
        "answers a string, {content} or {messages}. It need not exist yet. Call it at every start of your "
        "worker.",
        request={
            "name": _NAME,
            "description": _DESCRIPTION,
            "function_id": "The function that renders it; not one of an internal namespace.",
            "arguments?": _ARGUMENTS,
        },
        response={"name": _NAME, "registered_at": declare.MODIFIED_AT},
        example={
            "name": "farewell",
            "description": "Say goodbye.",
            "function_id": "greeter::greet",
            "arguments": [{"name": "name", "required": True}],
        },
    ),
    *declare.function(
        ids={"prompts::unregister": (declare.V02,)},
        handler=lambda services: services.registering.unregister_prompt,
        description="Remove a registered prompt. Removing a missing one is not an error. Files of the "
        "folder stay.",
        request=_NAMED,
        response={"name": _NAME, "removed": _REMOVED},
        example={"name": "farewell"},
    ),
)


_OLDER_OPS: Final = ("register", "unregister", "download")


def _types(
    names: tuple[str, str], topics: tuple[str, str], what: str, key: str, written: tuple[str, ...]
) -> tuple[declare.TriggerTypeRow, declare.TriggerTypeRow]:
    """Declare an older trigger type and the newest one, which also reports ``written``."""
    fires = f"Fires after a {what} was registered or unregistered, or {what}s were downloaded"
    keyed = f"The {key} of the {what}."
    source = declare.choice("Where it came from. For download.", "repo", "registry")
    older: declare.Fields = {
        "op": declare.choice("What happened.", *_OLDER_OPS),
        f"{key}?": f"{keyed} For register and unregister.",
        "namespace?": "The namespace that was written. For download.",
        "source?": source,
    }
    newest: declare.Fields = {
        "op": declare.choice("What happened.", *_OLDER_OPS, *written),
        f"{key}?": f"{keyed} For all but download and external.",
        "namespace?": "The namespace that was written. For download, create, update and delete.",
        "source?": source,
        "namespaces?": declare.texts("The namespaces edited on disk. For external."),
    }
    more = f"{fires}, written by a call, or edited on disk."
    return (
        declare.TriggerTypeRow(
            names[0], (declare.V02, declare.V04), topics[:1], f"{fires}.", declare.obj(older)
        ),
        declare.TriggerTypeRow(names[1], (declare.V08,), topics, more, declare.obj(newest)),
    )


TRIGGER_TYPES: Final = (
    *_types(
        SKILLS_CHANGED, (SKILLS, SKILLS_WRITTEN), "skill", "id", ("create", "update", "delete", "external")
    ),
    *_types(PROMPTS_CHANGED, (PROMPTS, PROMPTS_WRITTEN), "prompt", "name", ("external",)),
)
