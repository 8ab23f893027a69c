"""Declare the functions that find what exists: search, and what is connected to the engine."""

from __future__ import annotations

from typing import Final

from iii_directory.limits import MAX_ANSWER_CHARS, MAX_CAPABILITIES, MAX_SEARCH_HITS
from iii_directory.search.search_request import DEFAULT_CHARS, DEFAULT_HITS, DETAILS, KINDS
from iii_directory.worker.surfaces import declare

_FUNCTION_ID: Final = "The id of the function, such as sandbox::create."
_NAME: Final = "The last segment of the id."
_WORKER_NAME: Final = declare.maybe("The worker that has it.")
_DESCRIPTION: Final = declare.maybe("What it is for, in its owner's words.")
_CONFIG: Final = declare.one_of_any("The configuration the subscriber gave.")
_SEARCH: Final = "Keep rows that have this in their id, name or description, in any case."
_PREFIX: Final = "Keep ids that start with this."
_WORKER: Final = "Keep rows of this worker."
_IN_NAMESPACE: Final = "Keep rows of this namespace of the engine; without it, of every one."
_FROM_NAMESPACE: Final = "The namespace of the engine to look in, where several have one of this name."
_NAMESPACE: Final = "The namespace of the engine it is registered in, where the engine has such."
_FILTERS: Final[declare.Fields] = {
    "search?": _SEARCH,
    "prefix?": _PREFIX,
    "worker?": _WORKER,
    "namespace?": _IN_NAMESPACE,
}

_OWNED: Final[declare.Fields] = {
    "name": _NAME,
    "worker_name": _WORKER_NAME,
    "description": _DESCRIPTION,
    "namespace?": _NAMESPACE,
}
_FUNCTION: Final[declare.Fields] = {"function_id": _FUNCTION_ID, **_OWNED}
_TRIGGER_TYPE: Final[declare.Fields] = {"id": "The id of the trigger type.", **_OWNED}
_BINDING: Final[declare.Fields] = {
    "id": "The id of the binding.",
    "trigger_type": "The trigger type it is bound to.",
    "function_id": "The function that is called.",
    "worker_name": declare.maybe("The worker that has the function."),
    "config": _CONFIG,
    "config_summary?": "The configuration as one short line.",
    "namespace?": _NAMESPACE,
}
_WORKER_ROW: Final[declare.Fields] = {
    "name": declare.maybe("The name it announced."),
    "description": _DESCRIPTION,
    "version": declare.maybe("Its version, or that of its SDK."),
    "id": declare.maybe("The id of its connection."),
    "runtime": declare.maybe("What it runs on, such as python, node or engine."),
    "status": declare.maybe("connected, or available for one inside the engine."),
    "function_count": declare.count("How many functions it registered."),
    "namespace?": _NAMESPACE,
}
_ABOUT: Final[declare.Fields] = {
    "id": "The id of the skill.",
    "title": "Its title.",
    "provenance": declare.PROVENANCE,
}


def _function_detail(named: declare.Fields) -> declare.Fields:
    return {
        "function_id": _FUNCTION_ID,
        **named,
        "worker_name?": _WORKER_NAME,
        "description?": _DESCRIPTION,
        "request_schema?": declare.one_of_any("The JSON Schema of its payload, or null."),
        "response_schema?": declare.one_of_any("The JSON Schema of its result, or null."),
        "metadata?": declare.one_of_any("What its owner attached, or null."),
        "registered_triggers": declare.table(
            {"id": "Binding.", "trigger_type": "Trigger type.", "config": _CONFIG},
            "The triggers that call it.",
        ),
        "namespace?": _NAMESPACE,
        "how_guide?": declare.obj(
            {
                "skill_id": "The id of the how-to.",
                "title": "Its title.",
                "body": "Its markdown.",
                "provenance": declare.PROVENANCE,
            },
            "The how-to about this function, when there is one.",
        ),
        "related_skills?": declare.table(_ABOUT, "What else is written about it."),
    }


_ONE_FUNCTION: Final[declare.Fields] = {"function_id": _FUNCTION_ID, "namespace?": _FROM_NAMESPACE}

FUNCTIONS: Final = (
    *declare.function(
        ids={"directory::engine::functions::info": (declare.V08,)},
        handler=lambda services: services.engine.engine_function_info,
        description="Everything about one function before you call it: its schemas, the worker that has it, "
        "the triggers that call it, and the how-to and related skills about it when there are any. With "
        "function_ids, several in one call: {functions: [...]}.",
        request={
            **_ONE_FUNCTION,
            "function_ids?": declare.texts("Several, at most 32; wins over function_id."),
        },
        response=_function_detail({}),
        example={"function_id": "directory::skills::get"},
    ),
    *declare.function(
        ids={"directory::function-list": (declare.V04,)},
        handler=lambda services: services.engine.lister("functions"),
        description="List the functions registered on the engine; filter by search, prefix and worker.",
        request=_FILTERS,
        response={"functions": declare.table(_FUNCTION, "Sorted by id.")},
        example={"prefix": "greeter::"},
    ),
    *declare.function(
        ids={"directory::function-info": (declare.V04,)},
        handler=lambda services: services.engine.function_info,
        description="One function: schemas, owner, the triggers that call it, and the how-to about it.",
        request=_ONE_FUNCTION,
        response=_function_detail({"name": _NAME}),
        example={"function_id": "greeter::greet"},
    ),
    *declare.function(
        ids={"directory::trigger-list": (declare.V04,)},
        handler=lambda services: services.engine.lister("triggers"),
        description="List the trigger types of the engine; filter by search, prefix and worker.",
        request=_FILTERS,
        response={"triggers": declare.table(_TRIGGER_TYPE, "Sorted by id.")},
        example={"search": "change"},
    ),
    *declare.function(
        ids={"directory::trigger-info": (declare.V04,)},
        handler=lambda services: services.engine.trigger_info,
        description="One trigger type: the schema of its configuration and of its events, and how many use "
        "it.",
        request={"id": "The id of the trigger type.", "namespace?": _FROM_NAMESPACE},
        response={
            **_TRIGGER_TYPE,
            "configuration_schema": declare.one_of_any("The schema of a binding's configuration, or null."),
            "request_schema": declare.one_of_any("The schema of the event, or null."),
            "response_schema": declare.one_of_any("The schema of what a subscriber answers, or null."),
            "instance_count": declare.count("How many functions are bound to it."),
        },
        example={"id": "skills::on-change"},
    ),
    *declare.function(
        ids={"directory::registered-trigger-list": (declare.V04,)},
        handler=lambda services: services.engine.lister("registered_triggers"),
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
        response={"registered_triggers": declare.table(_BINDING, "Sorted by id.")},
        example={"trigger_type": "skills::on-change"},
    ),
    *declare.function(
        ids={"directory::registered-trigger-info": (declare.V04,)},
        handler=lambda services: services.engine.registered_info,
        description="One binding with its trigger type and its function in full.",
        request={"id": "The id of the binding."},
        response={
            **_BINDING,
            "metadata": declare.one_of_any("What the subscriber attached, or null."),
            "trigger": declare.one_of_any(
                "The trigger type, as directory::trigger-info answers it, or null."
            ),
            "function": declare.one_of_any("The function, as directory::function-info answers it, or null."),
        },
        example={"id": "greeter-hears-of-skills"},
    ),
    *declare.function(
        ids={"directory::worker-list": (declare.V04,)},
        handler=lambda services: services.engine.lister("workers"),
        description="List the workers on the engine, with the core fields of registry::worker-list; filter "
        "by search, prefix, runtime and status.",
        request={
            "search?": _SEARCH,
            "prefix?": "Keep names that start with this.",
            "runtime?": "Keep workers of this runtime.",
            "status?": "Keep workers of this status.",
            "namespace?": _IN_NAMESPACE,
        },
        response={"workers": declare.table(_WORKER_ROW, "Sorted by name.")},
        example={"prefix": "greeter"},
    ),
    *declare.function(
        ids={"directory::worker-info": (declare.V04,)},
        handler=lambda services: services.engine.worker_info,
        description="One worker with its version, its functions, trigger types and bindings, and the skills "
        "and prompts about it.",
        request={"name": "The name of the worker.", "namespace?": _FROM_NAMESPACE},
        response={
            "worker": declare.obj(_WORKER_ROW, "Its row, as directory::worker-list has it."),
            "functions": declare.table(_FUNCTION, "What it registered."),
            "trigger_types": declare.table(_TRIGGER_TYPE, "What it can tell of."),
            "registered_triggers": declare.table(_BINDING, "What calls it."),
            "skills": declare.table(_ABOUT, "The skills of its namespace."),
            "prompts": declare.table(
                {"name": "The name of the prompt.", "description": "What it is for."}, "Its prompts."
            ),
        },
        example={"name": "greeter"},
    ),
)


_KIND: Final = declare.choice("What sort of thing it is.", *KINDS)
_CALL: Final[declare.Fields] = {"function": "What to call.", "payload": declare.one_of_any("With what.")}
_HIT: Final[declare.Fields] = {
    "id": "Its id or name.",
    "provenance?": declare.PROVENANCE,
    "title?": "Its title, if it has one.",
    "description?": "What it is for, at most 160 characters of it.",
    "worker?": declare.maybe("The worker that registered it, else the worker it belongs to."),
    "why": "The words that led here and where they stand: photo→image, resize (name).",
    "confidence": declare.choice(
        "high: almost always what is meant, in at least 9 of 10 test questions; fair: in 6 of 10.",
        *("high", "fair"),
    ),
    "in?": "The document of a skill that matched, when it is not its overview.",
    "snippet?": "The line that matched, when nothing of id, title and description did.",
    "callable?": declare.flag("False for a function that the operator switched off."),
    "read": declare.obj(_CALL, "The call that reads it."),
    "schema?": declare.one_of_any("The JSON Schema of a function's payload, with detail full."),
}
_NEAR: Final[declare.Fields] = {
    "kind": _KIND,
    **{f"{name.removesuffix('?')}?": field for name, field in _HIT.items()},
}
_RESULT: Final[declare.Fields] = {
    "capability": "What was asked.",
    "fits": {"type": "boolean", "description": "False: nothing here is good enough to act on."},
    "sections": declare.table(
        {"kind": _KIND, "hits": declare.table(_HIT, "Best first.")}, "One per kind, the best fitting first."
    ),
    "nearest": declare.table(
        _NEAR, "What came nearest, at most limit rows, when nothing fits: too far to act on."
    ),
    "next": "What to do when nothing fits.",
}
_SIDE_ROW: Final[declare.Fields] = {
    "id": "Its id.",
    "title": "Its title.",
    "description": "What it is for.",
    "provenance?": declare.PROVENANCE,
}

SEARCH: Final = (
    *declare.function(
        ids={"directory::search": (declare.V08,)},
        handler=lambda services: services.searching.search,
        long_fields=("query", "capabilities"),
        description="Find what helps with a task, over everything here: skills with their bodies, prompts, "
        "functions, triggers, workers, and workers that could be installed. Say it in words, in the language "
        "the documents are written in, or type an id. Every hit says why and has the call that reads it; "
        "fits false means that nothing is good enough. Several capabilities are answered in one call.",
        request={
            "query?": "What is wanted, in words, or an id. Not together with capabilities.",
            "capabilities?": declare.texts(f"Up to {MAX_CAPABILITIES} of them, each answered for itself."),
            "kinds?": {
                "type": "array",
                "items": _KIND,
                "description": "Look only among these; all by default.",
            },
            "worker?": "Keep what belongs to this worker.",
            "prefix?": "Keep ids that start with this.",
            "limit?": declare.count(
                f"Hits of each kind; {DEFAULT_HITS} by default, at most {MAX_SEARCH_HITS}."
            )
            | {"default": DEFAULT_HITS},
            "detail?": declare.choice(
                "ids leaves descriptions out; full adds the schemas of functions.", *DETAILS
            )
            | {"default": "brief"},
            "installable?": declare.flag(
                "False leaves out what is not installed. True also has the registry's whole list fetched "
                "in the background: ask again until complete is true.",
                default=True,
            ),
            "budget_chars?": {
                **declare.count(
                    "How long the answer may be: descriptions are shortened first, then rows dropped. "
                    f"At most {MAX_ANSWER_CHARS}."
                ),
                "default": DEFAULT_CHARS,
            },
        },
        response={
            "mode": "How results are ranked: hybrid, by words and by meaning together.",
            "complete": declare.flag("False while bodies are still being taken in after a start."),
            "results": declare.table(_RESULT, "One for each capability, in order."),
            "corrected": declare.some_object("Words that nothing has, and what they were taken for."),
            "truncated": declare.flag("Whether the budget cut something, or a request was too long."),
            "latency_ms": {"type": "number", "description": "How long it took."},
        },
        example={"query": "greet a customer"},
    ),
    *declare.function(
        ids={"directory::search_functions": (declare.V08,)},
        handler=lambda services: services.searching.search_functions,
        description="Find functions for capabilities you lack, each in a few words: candidates by worker, "
        "with skills, triggers and installable workers beside them. directory::search says why.",
        request={"capabilities": declare.texts("One to six, each ranked for itself.")},
        response={
            "guidance": "What to call next.",
            "workers": declare.table(
                {
                    "namespace": "The first segment of the ids.",
                    "functions": declare.table(
                        {"function_id": "The id.", "description": "At most 160 characters."}, "Best first."
                    ),
                },
                "At most six, with at most twelve functions together.",
            ),
            "skills": declare.table(_SIDE_ROW, "Skills that fit."),
            "triggers": declare.table(_SIDE_ROW, "Bindings that fit."),
            "installable?": declare.table(
                {
                    "name": "The name of a published worker.",
                    "description": "What it is for.",
                    "functions": declare.texts("What it is known to offer."),
                    "install": declare.obj(_CALL, "The call that installs its skills."),
                },
                "At most two that are not installed.",
            ),
            "search_mode": "How results are ranked, as mode in directory::search.",
            "latency_ms": {"type": "number", "description": "How long it took."},
        },
        example={"capabilities": ["greet a customer"]},
    ),
)
