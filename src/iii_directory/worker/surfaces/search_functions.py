"""Declare the functions that search."""

from __future__ import annotations

from typing import Final

from iii_directory.limits import MAX_ANSWER_CHARS, MAX_CAPABILITIES, MAX_SEARCH_HITS
from iii_directory.search.search_request import DEFAULT_CHARS, DEFAULT_HITS, DETAILS, KINDS
from iii_directory.worker.surfaces.function_row import (
    PROVENANCE,
    V08,
    Fields,
    choice,
    count,
    flag,
    function,
    maybe,
    obj,
    one_of_any,
    some_object,
    table,
    texts,
)

_KIND: Final = choice("What sort of thing it is.", *KINDS)
_CALL: Final[Fields] = {"function": "What to call.", "payload": one_of_any("With what.")}
_HIT: Final[Fields] = {
    "id": "Its id or name.",
    "provenance?": PROVENANCE,
    "title?": "Its title, if it has one.",
    "description?": "What it is for, at most 160 characters of it.",
    "worker?": maybe("The worker that registered it, else the worker it belongs to."),
    "why": "The words that led here and where they stand: photo→image, resize (name).",
    "confidence": choice("How much of the request it has.", "high", "fair"),
    "in?": "The document of a skill that matched, when it is not its overview.",
    "snippet?": "The line that matched, when nothing of id, title and description did.",
    "read": obj(_CALL, "The call that reads it."),
    "schema?": one_of_any("The JSON Schema of a function's payload, with detail full."),
}
_NEAR: Final[Fields] = {
    "kind": _KIND,
    **{f"{name.removesuffix('?')}?": field for name, field in _HIT.items()},
}
_RESULT: Final[Fields] = {
    "capability": "What was asked.",
    "fits": {"type": "boolean", "description": "False: nothing here is good enough to act on."},
    "sections": table(
        {"kind": _KIND, "hits": table(_HIT, "Best first.")}, "One per kind, the best fitting first."
    ),
    "nearest": table(_NEAR, "At most three that came nearest, when nothing fits."),
    "next": "What to do when nothing fits.",
}
_SIDE_ROW: Final[Fields] = {
    "id": "Its id.",
    "title": "Its title.",
    "description": "What it is for.",
    "provenance?": PROVENANCE,
}

FUNCTIONS: Final = (
    *function(
        ids={"directory::search": (V08,)},
        handler=lambda services: services.searching.search,
        long_fields=("query", "capabilities"),
        description="Find what helps with a task, over everything here: skills with their bodies, prompts, "
        "functions, triggers, workers, and workers that could be installed. Say it in words, in the language "
        "the documents are written in, or type an id. Every hit says why and has the call that reads it; "
        "fits false means that nothing is good enough. Several capabilities are answered in one call.",
        request={
            "query?": "What is wanted, in words, or an id. Not together with capabilities.",
            "capabilities?": texts(f"Up to {MAX_CAPABILITIES} of them, each answered for itself."),
            "kinds?": {
                "type": "array",
                "items": _KIND,
                "description": "Look only among these; all by default.",
            },
            "worker?": "Keep what belongs to this worker.",
            "prefix?": "Keep ids that start with this.",
            "limit?": count(f"Hits of each kind; {DEFAULT_HITS} by default, at most {MAX_SEARCH_HITS}.")
            | {"default": DEFAULT_HITS},
            "detail?": choice("ids leaves descriptions out; full adds the schemas of functions.", *DETAILS)
            | {"default": "brief"},
            "installable?": flag(
                "False leaves out what is not installed. True also has the registry's whole list fetched "
                "in the background: ask again until complete is true.",
                default=True,
            ),
            "budget_chars?": {
                **count(
                    "How long the answer may be: descriptions are shortened first, then rows dropped. "
                    f"At most {MAX_ANSWER_CHARS}."
                ),
                "default": DEFAULT_CHARS,
            },
        },
        response={
            "mode": "Which ranking was used: lexical, or one with a better one on top.",
            "complete": flag("False while bodies are still being taken in after a start."),
            "results": table(_RESULT, "One for each capability, in order."),
            "corrected": some_object("Words that nothing has, and what they were taken for."),
            "truncated": flag("Whether the budget cut something, or a request was too long."),
            "latency_ms": {"type": "number", "description": "How long it took."},
        },
        example={"query": "greet somebody"},
    ),
    *function(
        ids={"directory::search_functions": (V08,)},
        handler=lambda services: services.searching.search_functions,
        description="Find functions for capabilities you lack, each in a few words: candidates by worker, "
        "with skills, triggers and installable workers beside them. directory::search says why.",
        request={"capabilities": texts("One to six, each ranked for itself.")},
        response={
            "guidance": "What to call next.",
            "workers": table(
                {
                    "namespace": "The first segment of the ids.",
                    "functions": table(
                        {
                            "function_id": "The id.",
                            "description": "At most 160 characters.",
                        },
                        "Best first.",
                    ),
                },
                "At most six, with at most twelve functions together.",
            ),
            "skills": table(_SIDE_ROW, "Skills that fit."),
            "triggers": table(_SIDE_ROW, "Bindings that fit."),
            "installable?": table(
                {
                    "name": "The name of a published worker.",
                    "description": "What it is for.",
                    "functions": texts("What it is known to offer."),
                    "install": obj(_CALL, "The call that installs its skills."),
                },
                "At most two that are not installed.",
            ),
            "search_mode": "lexical, or the ranking that was used.",
            "latency_ms": {"type": "number", "description": "How long it took."},
        },
        example={"capabilities": ["greet somebody"]},
    ),
)
