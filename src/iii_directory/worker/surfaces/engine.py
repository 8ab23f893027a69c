"""The rows about the engine itself: what is connected, registered and bound."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.schema import (
    PROVENANCE,
    V04,
    V08,
    FunctionRow,
    Schema,
    count,
    maybe,
    obj,
    one_of_any,
    request,
    rows,
    text,
)

_FUNCTION_ID: Final = text("The id of the function, such as sandbox::create.")
_NAME: Final = text("The last segment of the id.")
_WORKER_NAME: Final = maybe(text("The worker that has it."))
_DESCRIPTION: Final = maybe(text("What it is for, in its owner's words."))
_CONFIG: Final = one_of_any("The configuration the subscriber gave.")
_SEARCH: Final = text("Keep rows that have this in their id, name or description, in any case.")
_PREFIX: Final = text("Keep ids that start with this.")
_WORKER: Final = text("Keep rows of this worker.")
_IN_NAMESPACE: Final = text("Keep rows of this namespace of the engine; without it, of every one.")
_FROM_NAMESPACE: Final = text("The namespace of the engine to look in, where several have one of this name.")
_NAMESPACE: Final = text("The namespace of the engine it is registered in, where the engine has such.")
_FILTERS: Final = request(
    {"search": _SEARCH, "prefix": _PREFIX, "worker": _WORKER, "namespace": _IN_NAMESPACE}
)

_FUNCTION: Final = obj(
    {
        "function_id": _FUNCTION_ID,
        "name": _NAME,
        "worker_name": _WORKER_NAME,
        "description": _DESCRIPTION,
        "namespace": _NAMESPACE,
    },
    optional=("namespace",),
)
_TRIGGER_TYPE: Final = obj(
    {
        "id": text("The id of the trigger type."),
        "name": _NAME,
        "worker_name": _WORKER_NAME,
        "description": _DESCRIPTION,
        "namespace": _NAMESPACE,
    },
    optional=("namespace",),
)
_BINDING: Final = obj(
    {
        "id": text("The id of the binding."),
        "trigger_type": text("The trigger type it is bound to."),
        "function_id": text("The function that is called."),
        "worker_name": maybe(text("The worker that has the function.")),
        "config": _CONFIG,
        "config_summary": text("The configuration as one short line."),
        "namespace": _NAMESPACE,
    },
    optional=("config_summary", "namespace"),
)
_WORKER_ROW: Final = obj(
    {
        "name": maybe(text("The name it announced.")),
        "description": _DESCRIPTION,
        "version": maybe(text("Its version, or that of its SDK.")),
        "id": maybe(text("The id of its connection.")),
        "runtime": maybe(text("What it runs on, such as python, node or engine.")),
        "status": maybe(text("connected, or available for one inside the engine.")),
        "function_count": count("How many functions it registered."),
        "namespace": _NAMESPACE,
    },
    optional=("namespace",),
)
_GUIDE: Final = obj(
    {
        "skill_id": text("The id of the how-to."),
        "title": text("Its title."),
        "body": text("Its markdown."),
        "provenance": PROVENANCE,
    },
    description="The how-to about this function, when there is one.",
)
_ABOUT: Final = obj(
    {"id": text("The id of the skill."), "title": text("Its title."), "provenance": PROVENANCE}
)
_RELATED: Final = rows(_ABOUT, "What else is written about it.")


def _function_detail(named: dict[str, Schema]) -> Schema:
    return obj(
        {
            "function_id": _FUNCTION_ID,
            **named,
            "worker_name": _WORKER_NAME,
            "description": _DESCRIPTION,
            "request_schema": one_of_any("The JSON Schema of its payload, or null."),
            "response_schema": one_of_any("The JSON Schema of its result, or null."),
            "metadata": one_of_any("What its owner attached, or null."),
            "registered_triggers": rows(
                obj({"id": text("Binding."), "trigger_type": text("Trigger type."), "config": _CONFIG}),
                "The triggers that call it.",
            ),
            "namespace": _NAMESPACE,
            "how_guide": _GUIDE,
            "related_skills": _RELATED,
        },
        optional=(
            "namespace",
            "worker_name",
            "description",
            "request_schema",
            "response_schema",
            "metadata",
            "how_guide",
            "related_skills",
        ),
    )


_ONE_FUNCTION: Final = request(
    {"function_id": _FUNCTION_ID, "namespace": _FROM_NAMESPACE}, required=("function_id",)
)
_FUNCTIONS_AT_ONCE: Final = request(
    {
        **_ONE_FUNCTION["properties"],
        "function_ids": rows({"type": "string"}, "Several, at most 32; wins over function_id."),
    },
    required=("function_id",),
)

FUNCTIONS: Final = (
    FunctionRow(
        id="directory::engine::functions::info",
        generations=(V08,),
        handler=lambda parts: parts.introspection.engine_function_info,
        description="Everything about one function before you call it: its schemas, the worker that has it, "
        "the triggers that call it, and the how-to and related skills about it when there are any. With "
        "function_ids, several in one call: {functions: [...]}.",
        request=_FUNCTIONS_AT_ONCE,
        response=_function_detail({}),
        example={"function_id": "directory::skills::get"},
    ),
    FunctionRow(
        id="directory::function-list",
        generations=(V04,),
        handler=lambda parts: parts.introspection.function_list,
        description="List the functions registered on the engine; filter by search, prefix and worker.",
        request=_FILTERS,
        response=obj({"functions": rows(_FUNCTION, "Sorted by id.")}),
        example={"prefix": "greeter::"},
    ),
    FunctionRow(
        id="directory::function-info",
        generations=(V04,),
        handler=lambda parts: parts.introspection.function_info,
        description="One function: schemas, owner, the triggers that call it, and the how-to about it.",
        request=_ONE_FUNCTION,
        response=_function_detail({"name": _NAME}),
        example={"function_id": "greeter::greet"},
    ),
    FunctionRow(
        id="directory::trigger-list",
        generations=(V04,),
        handler=lambda parts: parts.introspection.trigger_list,
        description="List the trigger types of the engine; filter by search, prefix and worker.",
        request=_FILTERS,
        response=obj({"triggers": rows(_TRIGGER_TYPE, "Sorted by id.")}),
        example={"search": "change"},
    ),
    FunctionRow(
        id="directory::trigger-info",
        generations=(V04,),
        handler=lambda parts: parts.introspection.trigger_info,
        description="One trigger type: the schema of its configuration and of its events, and how many use "
        "it.",
        request=request(
            {"id": text("The id of the trigger type."), "namespace": _FROM_NAMESPACE}, required=("id",)
        ),
        response=obj(
            {
                **_TRIGGER_TYPE["properties"],
                "configuration_schema": one_of_any("The schema of a binding's configuration, or null."),
                "request_schema": one_of_any("The schema of the event, or null."),
                "response_schema": one_of_any("The schema of what a subscriber answers, or null."),
                "instance_count": count("How many functions are bound to it."),
            },
            optional=("namespace",),
        ),
        example={"id": "skills::on-change"},
    ),
    FunctionRow(
        id="directory::registered-trigger-list",
        generations=(V04,),
        handler=lambda parts: parts.introspection.registered_list,
        description="List which functions are bound to which trigger types; filter by search, prefix, "
        "trigger_type, function_id, worker and namespace.",
        request=request(
            {
                "search": _SEARCH,
                "prefix": _PREFIX,
                "trigger_type": text("Keep bindings to this type."),
                "function_id": text("Keep bindings of this function."),
                "worker": _WORKER,
                "namespace": _IN_NAMESPACE,
            }
        ),
        response=obj({"registered_triggers": rows(_BINDING, "Sorted by id.")}),
        example={"trigger_type": "skills::on-change"},
    ),
    FunctionRow(
        id="directory::registered-trigger-info",
        generations=(V04,),
        handler=lambda parts: parts.introspection.registered_info,
        description="One binding with its trigger type and its function in full.",
        request=request({"id": text("The id of the binding.")}, required=("id",)),
        response=obj(
            {
                **_BINDING["properties"],
                "metadata": one_of_any("What the subscriber attached, or null."),
                "trigger": one_of_any("The trigger type, as directory::trigger-info answers it, or null."),
                "function": one_of_any("The function, as directory::function-info answers it, or null."),
            },
            optional=("config_summary", "namespace"),
        ),
        example={"id": "greeter-hears-of-skills"},
    ),
    FunctionRow(
        id="directory::worker-list",
        generations=(V04,),
        handler=lambda parts: parts.introspection.worker_list,
        description="List the workers on the engine, with the core fields of registry::worker-list; filter "
        "by search, prefix, runtime and status.",
        request=request(
            {
                "search": _SEARCH,
                "prefix": text("Keep names that start with this."),
                "runtime": text("Keep workers of this runtime."),
                "status": text("Keep workers of this status."),
                "namespace": _IN_NAMESPACE,
            }
        ),
        response=obj({"workers": rows(_WORKER_ROW, "Sorted by name.")}),
        example={"prefix": "greeter"},
    ),
    FunctionRow(
        id="directory::worker-info",
        generations=(V04,),
        handler=lambda parts: parts.introspection.worker_info,
        description="One worker with its version, its functions, trigger types and bindings, and the skills "
        "and prompts about it.",
        request=request(
            {"name": text("The name of the worker."), "namespace": _FROM_NAMESPACE}, required=("name",)
        ),
        response=obj(
            {
                "worker": {**_WORKER_ROW, "description": "Its row, as directory::worker-list has it."},
                "functions": rows(_FUNCTION, "What it registered."),
                "trigger_types": rows(_TRIGGER_TYPE, "What it can tell of."),
                "registered_triggers": rows(_BINDING, "What calls it."),
                "skills": rows(_ABOUT, "The skills of its namespace."),
                "prompts": rows(
                    obj({"name": text("The name of the prompt."), "description": text("What it is for.")}),
                    "Its prompts.",
                ),
            }
        ),
        example={"name": "greeter"},
    ),
)
