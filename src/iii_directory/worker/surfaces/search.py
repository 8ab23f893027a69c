"""The rows about search."""

from __future__ import annotations

from typing import Final

from iii_directory.limits import MAX_ANSWER_CHARS, MAX_CAPABILITIES, MAX_SEARCH_HITS
from iii_directory.search.request import DEFAULT_CHARS, DEFAULT_HITS, DETAILS, KINDS
from iii_directory.worker.surfaces.schema import (
    PROVENANCE,
    V08,
    FunctionRow,
    Schema,
    count,
    flag,
    maybe,
    obj,
    one_of_any,
    request,
    rows,
    text,
)

_KIND: Final[Schema] = {"enum": list(KINDS), "description": "What sort of thing it is."}
_CALL: Final = {"function": text("What to call."), "payload": one_of_any("With what.")}
_READ: Final = obj(_CALL, description="The call that reads it.")
_HIT: Final = obj(
    {
        "id": text("Its id or name."),
        "provenance": PROVENANCE,
        "title": text("Its title, if it has one."),
        "description": text("What it is for, at most 160 characters of it."),
        "worker": maybe(text("The worker that registered it, else the worker it belongs to.")),
        "why": text("The words that led here and where they stand: photo→image, resize (name)."),
        "confidence": {"enum": ["high", "fair"], "description": "How much of the request it has."},
        "in": text("The document of a skill that matched, when it is not its overview."),
        "snippet": text("The line that matched, when nothing of id, title and description did."),
        "read": _READ,
        "schema": one_of_any("The JSON Schema of a function's payload, with detail full."),
    },
    optional=("provenance", "title", "description", "worker", "in", "snippet", "schema"),
)
_NEAR: Final = obj({"kind": _KIND, **_HIT["properties"]}, optional=tuple(_HIT["properties"]))
_RESULT: Final = obj(
    {
        "capability": text("What was asked."),
        "fits": {"type": "boolean", "description": "False: nothing here is good enough to act on."},
        "sections": rows(
            obj({"kind": _KIND, "hits": rows(_HIT, "Best first.")}), "One per kind, the best fitting first."
        ),
        "nearest": rows(_NEAR, "At most three that came nearest, when nothing fits."),
        "next": text("What to do when nothing fits."),
    }
)
_SIDE_ROW: Final = obj(
    {
        "id": text("Its id."),
        "title": text("Its title."),
        "description": text("What it is for."),
        "provenance": PROVENANCE,
    },
    optional=("provenance",),
)

FUNCTIONS: Final = (
    FunctionRow(
        id="directory::search",
        generations=(V08,),
        handler=lambda parts: parts.searching.search,
        long_fields=("query", "capabilities"),
        description="Find what helps with a task, over everything here: skills with their bodies, prompts, "
        "functions, triggers, workers, and workers that could be installed. Say it in words, in the language "
        "the documents are written in, or type an id. Every hit says why and has the call that reads it; "
        "fits false means that nothing is good enough. Several capabilities are answered in one call.",
        request=request(
            {
                "query": text("What is wanted, in words, or an id. Not together with capabilities."),
                "capabilities": rows(
                    {"type": "string"}, f"Up to {MAX_CAPABILITIES} of them, each answered for itself."
                ),
                "kinds": rows(_KIND, "Look only among these; all by default."),
                "worker": text("Keep what belongs to this worker."),
                "prefix": text("Keep ids that start with this."),
                "limit": {
                    **count(f"Hits of each kind; {DEFAULT_HITS} by default, at most {MAX_SEARCH_HITS}."),
                    "default": DEFAULT_HITS,
                },
                "detail": {
                    "enum": list(DETAILS),
                    "default": "brief",
                    "description": "ids leaves descriptions out; full adds the schemas of functions.",
                },
                "installable": flag(
                    "False leaves out what is not installed. True also has the registry's whole list fetched "
                    "in the background: ask again until complete is true.",
                    default=True,
                ),
                "budget_chars": {
                    **count(
                        "How long the answer may be: descriptions are shortened first, then rows dropped. "
                        f"At most {MAX_ANSWER_CHARS}."
                    ),
                    "default": DEFAULT_CHARS,
                },
            }
        ),
        response=obj(
            {
                "mode": text("Which ranking was used: lexical, or one with a better one on top."),
                "complete": flag("False while bodies are still being taken in after a start."),
                "results": rows(_RESULT, "One for each capability, in order."),
                "corrected": {
                    "type": "object",
                    "description": "Words that nothing has, and what they were taken for.",
                },
                "truncated": flag("Whether the budget cut something, or a request was too long."),
                "latency_ms": {"type": "number", "description": "How long it took."},
            }
        ),
        example={"query": "greet somebody"},
    ),
    FunctionRow(
        id="directory::search_functions",
        generations=(V08,),
        handler=lambda parts: parts.searching.search_functions,
        description="Find functions for capabilities you lack, each in a few words: candidates by worker, "
        "with skills, triggers and installable workers beside them. directory::search says why.",
        request=request(
            {"capabilities": rows({"type": "string"}, "One to six, each ranked for itself.")},
            required=("capabilities",),
        ),
        response=obj(
            {
                "guidance": text("What to call next."),
                "workers": rows(
                    obj(
                        {
                            "namespace": text("The first segment of the ids."),
                            "functions": rows(
                                obj(
                                    {
                                        "function_id": text("The id."),
                                        "description": text("At most 160 characters."),
                                    }
                                ),
                                "Best first.",
                            ),
                        }
                    ),
                    "At most six, with at most twelve functions together.",
                ),
                "skills": rows(_SIDE_ROW, "Skills that fit."),
                "triggers": rows(_SIDE_ROW, "Bindings that fit."),
                "installable": rows(
                    obj(
                        {
                            "name": text("The name of a published worker."),
                            "description": text("What it is for."),
                            "functions": rows({"type": "string"}, "What it is known to offer."),
                            "install": obj(_CALL, description="The call that installs its skills."),
                        }
                    ),
                    "At most two that are not installed.",
                ),
                "search_mode": text("lexical, or the ranking that was used."),
                "latency_ms": {"type": "number", "description": "How long it took."},
            },
            optional=("installable",),
        ),
        example={"capabilities": ["greet somebody"]},
    ),
)
