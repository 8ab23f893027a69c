"""The rows about prompts, about registering prompts and skills, and the trigger types that tell of both."""

from __future__ import annotations

from typing import Final

from iii_directory.catalog import replies
from iii_directory.documents.registering import PROMPTS_CHANGED, SKILLS_CHANGED
from iii_directory.worker.events import PROMPTS, PROMPTS_WRITTEN, SKILLS, SKILLS_WRITTEN
from iii_directory.worker.surfaces.schema import (
    CONNECTED,
    META,
    MODIFIED_AT,
    NOTHING,
    PROVENANCE,
    SKILL_ID,
    SOURCE,
    V02,
    V04,
    V08,
    FunctionRow,
    Schema,
    TriggerTypeRow,
    count,
    flag,
    maybe,
    obj,
    one_of_any,
    request,
    rows,
    text,
)

_NAME: Final = text("The name of the prompt: what a person types after the slash.")
_DESCRIPTION: Final = text("What the prompt is for.")
_ROW: Final = obj(
    {
        "name": _NAME,
        "description": _DESCRIPTION,
        "modified_at": MODIFIED_AT,
        "provenance": PROVENANCE,
    }
)
_LISTED: Final = obj({**_ROW["properties"], "connected": CONNECTED}, optional=("connected",))
_PLAIN_ROW: Final = obj(
    {
        **_ROW["properties"],
        "function_id": maybe(text("The function that renders it; null for a template in the folder.")),
        "arguments": count("How many arguments it declares."),
        "registered_at": MODIFIED_AT,
        "source": SOURCE,
    }
)
_PROMPT: Final = obj(
    {
        "name": _NAME,
        "description": _DESCRIPTION,
        "body": text("The template; for a registered prompt, how to have it rendered."),
        "modified_at": MODIFIED_AT,
        "provenance": PROVENANCE,
    }
)
_ARGUMENTS: Final = rows(
    obj(
        {
            "name": text("The name of the argument."),
            "description": text("What to give for it."),
            "required": flag("Whether a client must ask for it.", default=False),
        },
        optional=("description", "required"),
    ),
    "What a client asks the person for.",
)
_MCP_ROW: Final = obj({"name": _NAME, "description": _DESCRIPTION, "arguments": _ARGUMENTS, "_meta": META})
_NAMED: Final = request({"name": _NAME}, required=("name",))
_NEW_ID: Final = text(
    "Segments of lowercase letters, digits, '-' and '_' joined by '/', such as resend/email/send. The first "
    "is your worker's name; it may not be 'fn'."
)
_REMOVED: Final = flag("False when there was nothing to remove.")

FUNCTIONS: Final = (
    FunctionRow(
        id="directory::prompts::list",
        generations=(V08,),
        reply=replies.prompts_list,
        description="List the prompts, slash-command templates for people: name, description, modified_at.",
        request=NOTHING,
        response=obj({"prompts": rows(_LISTED, "One row per prompt, sorted by name.")}),
        example={},
    ),
    FunctionRow(
        id="directory::prompts::get",
        generations=(V08,),
        reply=replies.prompt,
        description="Read one prompt by name: its template with name, description and modified_at. A prompt "
        "that a function renders answers with how to have it rendered.",
        request=_NAMED,
        response=_PROMPT,
        example={"name": "greet"},
    ),
    FunctionRow(
        id="prompts::list",
        generations=(V02, V04),
        reply=replies.plain_prompts,
        description="List every prompt, from the folder and from registrations: name, description, "
        "function_id, how many arguments, registered_at, modified_at, source.",
        request=NOTHING,
        response=obj({"prompts": rows(_PLAIN_ROW, "One row per prompt, sorted by name.")}),
        example={},
    ),
    FunctionRow(
        id="prompts::get",
        generations=(V04,),
        reply=replies.prompt,
        description="Read one prompt by name: its template with name, description and modified_at, as plain "
        "fields.",
        request=_NAMED,
        response=_PROMPT,
        example={"name": "greet"},
    ),
    FunctionRow(
        id="prompts::mcp-list",
        generations=(V02,),
        reply=replies.mcp_prompts,
        description="For MCP bridges: every prompt with its arguments, as prompts/list wants it.",
        request=NOTHING,
        response=obj({"prompts": rows(_MCP_ROW, "One entry per prompt, sorted by name.")}),
        example={},
    ),
    FunctionRow(
        id="prompts::mcp-get",
        generations=(V02,),
        handler=lambda parts: parts.reading.mcp_prompt,
        description="For MCP bridges: render a prompt. Calls the function of a registered one with the "
        "arguments; a file is one user message with its text, the arguments in their places.",
        request=request(
            {
                "name": _NAME,
                "arguments": {"type": "object", "description": "By the names that prompts::mcp-list gives."},
            },
            required=("name",),
        ),
        response=obj(
            {
                "description": _DESCRIPTION,
                "messages": rows(one_of_any("An MCP prompt message."), "What to put into the conversation."),
                "_meta": META,
            }
        ),
        example={"name": "greet", "arguments": {"name": "Ada"}},
    ),
    FunctionRow(
        id="skills::register",
        generations=(V02,),
        handler=lambda parts: parts.registering.register_skill,
        long_fields=("skill",),
        description="Publish a markdown document, readable at iii://{id} and by directory::skills::get. Call "
        "it at every start of your worker: the same id again replaces the body. It is kept over restarts. "
        "Begin the body with '# Title' and a short paragraph; lists show both.",
        request=request(
            {"id": _NEW_ID, "skill": text("The markdown, at most 256 KiB; served as it is given.")},
            required=("id", "skill"),
        ),
        response=obj({"id": SKILL_ID, "registered_at": MODIFIED_AT}),
        example={"id": "greeter/tone", "skill": "# Tone\n\nHow warm a greeting may be.\n"},
    ),
    FunctionRow(
        id="skills::unregister",
        generations=(V02,),
        handler=lambda parts: parts.registering.unregister_skill,
        description="Remove a registered skill. Removing one that is not there is no error. Files of the "
        "folder stay.",
        request=request({"id": SKILL_ID}, required=("id",)),
        response=obj({"id": SKILL_ID, "removed": _REMOVED}),
        example={"id": "greeter/tone"},
    ),
    FunctionRow(
        id="prompts::register",
        generations=(V02,),
        handler=lambda parts: parts.registering.register_prompt,
        long_fields=("description",),
        description="Publish a slash-command. Your function renders it: it is called with the arguments and "
        "answers a string, {content} or {messages}. It need not exist yet. Call it at every start of your "
        "worker.",
        request=request(
            {
                "name": _NAME,
                "description": _DESCRIPTION,
                "function_id": text("The function that renders it; not one of an internal namespace."),
                "arguments": _ARGUMENTS,
            },
            required=("name", "description", "function_id"),
        ),
        response=obj({"name": _NAME, "registered_at": MODIFIED_AT}),
        example={
            "name": "farewell",
            "description": "Say goodbye.",
            "function_id": "greeter::greet",
            "arguments": [{"name": "name", "required": True}],
        },
    ),
    FunctionRow(
        id="prompts::unregister",
        generations=(V02,),
        handler=lambda parts: parts.registering.unregister_prompt,
        description="Remove a registered prompt. Removing one that is not there is no error. Files of the "
        "folder stay.",
        request=_NAMED,
        response=obj({"name": _NAME, "removed": _REMOVED}),
        example={"name": "farewell"},
    ),
)


_OLDER_OPS: Final = ("register", "unregister", "download")


def _event(key: str, description: str) -> Schema:
    """The changes that every generation tells of."""
    return obj(
        {
            "op": {"enum": [*_OLDER_OPS], "description": "What happened."},
            key: text(f"{description} For register and unregister."),
            "namespace": text("The namespace that was written. For download."),
            "source": {"enum": ["repo", "registry"], "description": "Where it came from. For download."},
        },
        optional=(key, "namespace", "source"),
    )


def _newest_event(key: str, description: str, ops: tuple[str, ...]) -> Schema:
    """Those, and what is written in the folders."""
    older = _event(key, description)["properties"]
    return obj(
        {
            "op": {"enum": [*_OLDER_OPS, *ops], "description": "What happened."},
            key: text(f"{description} For all but download and external."),
            "namespace": text("The namespace that was written. For download, create, update and delete."),
            "source": older["source"],
            "namespaces": rows({"type": "string"}, "The namespaces edited on disk. For external."),
        },
        optional=(key, "namespace", "source", "namespaces"),
    )


def _types(
    names: tuple[str, str], topics: tuple[str, str], events: tuple[Schema, Schema], what: str
) -> _Types:
    older, newest = names
    fires = f"Fires after a {what} was registered or unregistered, or {what}s were downloaded"
    return (
        TriggerTypeRow(
            id=older,
            generations=(V02, V04),
            topics=topics[:1],
            description=f"{fires}.",
            event=events[0],
        ),
        TriggerTypeRow(
            id=newest,
            generations=(V08,),
            topics=topics,
            description=f"{fires}, written by a call, or edited on disk.",
            event=events[1],
        ),
    )


_Types = tuple[TriggerTypeRow, TriggerTypeRow]
_SKILL_KEY: Final = ("id", "The id of the skill.")
_PROMPT_KEY: Final = ("name", "The name of the prompt.")
_WRITTEN: Final = ("create", "update", "delete", "external")
TRIGGER_TYPES: Final = (
    *_types(
        SKILLS_CHANGED,
        (SKILLS, SKILLS_WRITTEN),
        (_event(*_SKILL_KEY), _newest_event(*_SKILL_KEY, _WRITTEN)),
        "skill",
    ),
    *_types(
        PROMPTS_CHANGED,
        (PROMPTS, PROMPTS_WRITTEN),
        (_event(*_PROMPT_KEY), _newest_event(*_PROMPT_KEY, ("external",))),
        "prompt",
    ),
)
