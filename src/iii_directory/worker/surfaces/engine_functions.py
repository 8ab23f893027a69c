"""Declare the functions about the engine itself: what is connected, registered and bound."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.function_row import (
    PROVENANCE,
    V04,
    V08,
    Fields,
    count,
    function,
    maybe,
    obj,
    one_of_any,
    table,
    text,
    texts,
)

_FUNCTION_ID: Final = text("The id of the function, such as sandbox::create.")
_NAME: Final = text("The last segment of the id.")
_WORKER_NAME: Final = maybe("The worker that has it.")
_DESCRIPTION: Final = maybe("What it is for, in its owner's words.")
_CONFIG: Final = one_of_any("The configuration the subscriber gave.")
_SEARCH: Final = text("Keep rows that have this in their id, name or description, in any case.")
_PREFIX: Final = text("Keep ids that start with this.")
_WORKER: Final = text("Keep rows of this worker.")
_IN_NAMESPACE: Final = text("Keep rows of this namespace of the engine; without it, of every one.")
_FROM_NAMESPACE: Final = text("The namespace of the engine to look in, where several have one of this name.")
_NAMESPACE: Final = text("The namespace of the engine it is registered in, where the engine has such.")
_FILTERS: Final[Fields] = {
    "search?": _SEARCH,
    "prefix?": _PREFIX,
    "worker?": _WORKER,
    "namespace?": _IN_NAMESPACE,
}

_FUNCTION: Final[Fields] = {
    "function_id": _FUNCTION_ID,
    "name": _NAME,
    "worker_name": _WORKER_NAME,
    "description": _DESCRIPTION,
    "namespace?": _NAMESPACE,
}
_TRIGGER_TYPE: Final[Fields] = {
    "id": "The id of the trigger type.",
    "name": _NAME,
    "worker_name": _WORKER_NAME,
    "description": _DESCRIPTION,
    "namespace?": _NAMESPACE,
}
_BINDING: Final[Fields] = {
    "id": "The id of the binding.",
    "trigger_type": "The trigger type it is bound to.",
    "function_id": "The function that is called.",
    "worker_name": maybe("The worker that has the function."),
    "config": _CONFIG,
    "config_summary?": "The configuration as one short line.",
    "namespace?": _NAMESPACE,
}
_WORKER_ROW: Final[Fields] = {
    "name": maybe("The name it announced."),
    "description": _DESCRIPTION,
    "version": maybe("Its version, or that of its SDK."),
    "id": maybe("The id of its connection."),
    "runtime": maybe("What it runs on, such as python, node or engine."),
    "status": maybe("connected, or available for one inside the engine."),
    "function_count": count("How many functions it registered."),
    "namespace?": _NAMESPACE,
}
_GUIDE: Final = obj(
    {
        "skill_id": "The id of the how-to.",
        "title": "Its title.",
        "body": "Its markdown.",
        "provenance": PROVENANCE,
    },
    "The how-to about this function, when there is one.",
)
_ABOUT: Final[Fields] = {"id": "The id of the skill.", "title": "Its title.", "provenance": PROVENANCE}


def _function_detail(named: Fields) -> Fields:
    return {
        "function_id": _FUNCTION_ID,
        **named,
        "worker_name?": _WORKER_NAME,
        "description?": _DESCRIPTION,
        "request_schema?": one_of_any("The JSON Schema of its payload, or null."),
        "response_schema?": one_of_any("The JSON Schema of its result, or null."),
        "metadata?": one_of_any("What its owner attached, or null."),
        "registered_triggers": table(
            {"id": "Binding.", "trigger_type": "Trigger type.", "config": _CONFIG},
            "The triggers that call it.",
        ),
        "namespace?": _NAMESPACE,
        "how_guide?": _GUIDE,
        "related_skills?": table(_ABOUT, "What else is written about it."),
    }


_ONE_FUNCTION: Final[Fields] = {"function_id": _FUNCTION_ID, "namespace?": _FROM_NAMESPACE}
_FUNCTIONS_AT_ONCE: Final[Fields] = {
    **_ONE_FUNCTION,
    "function_ids?": texts("Several, at most 32; wins over function_id."),
}

FUNCTIONS: Final = (
    *function(
        ids={"directory::engine::functions::info": (V08,)},
        handler=lambda services: services.engine.engine_function_info,
        description="Everything about one function before you call it: its schemas, the worker that has it, "
        "the triggers that call it, and the how-to and related skills about it when there are any. With "
        "function_ids, several in one call: {functions: [...]}.",
        request=_FUNCTIONS_AT_ONCE,
        response=_function_detail({}),
        example={"function_id": "directory::skills::get"},
    ),
    *function(
        ids={"directory::function-list": (V04,)},
        handler=lambda services: services.engine.function_list,
        description="List the functions registered on the engine; filter by search, prefix and worker.",
        request=_FILTERS,
        response={"functions": table(_FUNCTION, "Sorted by id.")},
        example={"prefix": "greeter::"},
    ),
    *function(
        ids={"directory::function-info": (V04,)},
        handler=lambda services: services.engine.function_info,
        description="One function: schemas, owner, the triggers that call it, and the how-to about it.",
        request=_ONE_FUNCTION,
        response=_function_detail({"name": _NAME}),
        example={"function_id": "greeter::greet"},
    ),
    *function(
        ids={"directory::trigger-list": (V04,)},
        handler=lambda services: services.engine.trigger_list,
        description="List the trigger types of the engine; filter by search, prefix and worker.",
        request=_FILTERS,
        response={"triggers": table(_TRIGGER_TYPE, "Sorted by id.")},
        example={"search": "change"},
    ),
    *function(
        ids={"directory::trigger-info": (V04,)},
        handler=lambda services: services.engine.trigger_info,
        description="One trigger type: the schema of its configuration and of its events, and how many use "
        "it.",
        request={"id": "The id of the trigger type.", "namespace?": _FROM_NAMESPACE},
        response={
            **_TRIGGER_TYPE,
            "configuration_schema": one_of_any("The schema of a binding's configuration, or null."),
            "request_schema": one_of_any("The schema of the event, or null."),
            "response_schema": one_of_any("The schema of what a subscriber answers, or null."),
            "instance_count": count("How many functions are bound to it."),
        },
        example={"id": "skills::on-change"},
    ),
    *function(
        ids={"directory::registered-trigger-list": (V04,)},
        handler=lambda services: services.engine.registered_list,
        description="List which functions are bound to which trigger types; filter by search, prefix, "
        "trigger_type, function_id, worker and namespace.",
        request={
            "search?": _SEARCH,
            "prefix?": _PREFIX,
            "trigger_type?": "Keep bindings to this type.",
            "function_id?": "Keep bindings of this function.",
            "worker?": _WORKER,
            "namespace?": _IN_NAMESPACE,
        },
        response={"registered_triggers": table(_BINDING, "Sorted by id.")},
        example={"trigger_type": "skills::on-change"},
    ),
    *function(
        ids={"directory::registered-trigger-info": (V04,)},
        handler=lambda services: services.engine.registered_info,
        description="One binding with its trigger type and its function in full.",
        request={"id": "The id of the binding."},
        response={
            **_BINDING,
            "metadata": one_of_any("What the subscriber attached, or null."),
            "trigger": one_of_any("The trigger type, as directory::trigger-info answers it, or null."),
            "function": one_of_any("The function, as directory::function-info answers it, or null."),
        },
        example={"id": "greeter-hears-of-skills"},
    ),
    *function(
        ids={"directory::worker-list": (V04,)},
        handler=lambda services: services.engine.worker_list,
        description="List the workers on the engine, with the core fields of registry::worker-list; filter "
        "by search, prefix, runtime and status.",
        request={
            "search?": _SEARCH,
            "prefix?": "Keep names that start with this.",
            "runtime?": "Keep workers of this runtime.",
            "status?": "Keep workers of this status.",
            "namespace?": _IN_NAMESPACE,
        },
        response={"workers": table(_WORKER_ROW, "Sorted by name.")},
        example={"prefix": "greeter"},
    ),
    *function(
        ids={"directory::worker-info": (V04,)},
        handler=lambda services: services.engine.worker_info,
        description="One worker with its version, its functions, trigger types and bindings, and the skills "
        "and prompts about it.",
        request={"name": "The name of the worker.", "namespace?": _FROM_NAMESPACE},
        response={
            "worker": obj(_WORKER_ROW, "Its row, as directory::worker-list has it."),
            "functions": table(_FUNCTION, "What it registered."),
            "trigger_types": table(_TRIGGER_TYPE, "What it can tell of."),
            "registered_triggers": table(_BINDING, "What calls it."),
            "skills": table(_ABOUT, "The skills of its namespace."),
            "prompts": table(
                {"name": "The name of the prompt.", "description": "What it is for."},
                "Its prompts.",
            ),
        },
        example={"name": "greeter"},
    ),
)
