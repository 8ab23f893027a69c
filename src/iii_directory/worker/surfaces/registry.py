"""The rows about the public workers registry: v0.8's names, and v0.4's for the same. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.table import (
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

VERSION: Final = text("An exact version. Not together with tag.")
TAG: Final = text("A tag, such as latest, which is the default. Not together with version.")

_AUTHOR: Final[Schema] = {
    "type": ["object", "null"],
    "properties": {
        "name": text("Who published it."),
        "pfp": maybe(text("The address of a picture, or null.")),
        "verified": flag("Whether the registry verified the author."),
    },
    "description": "Who published it, or null.",
}
_DEPENDENCY: Final = obj({"name": text("A worker it needs."), "version": text("Which version of it.")})
_WORKER: Final = obj(
    {
        "name": text("The name of the worker."),
        "description": text("What it does."),
        "version": text("The newest version, or the one that was asked for."),
        "type": text("binary, image or engine."),
        "author": _AUTHOR,
        "config": one_of_any("Its configuration as published."),
        "dependencies": rows(_DEPENDENCY, "The workers it needs."),
        "image": text("The container image, for type image."),
        "repo": text("Where its source is."),
        "supported_targets": rows({"type": "string"}, "The platforms it runs on."),
        "total_downloads": count("How often it was downloaded."),
    },
    optional=(
        "description",
        "version",
        "type",
        "author",
        "config",
        "dependencies",
        "image",
        "repo",
        "supported_targets",
        "total_downloads",
    ),
)
_PAGE: Final = obj(
    {
        "workers": rows(_WORKER, "The rows of this page."),
        "pagination": obj(
            {
                "next_cursor": maybe(text("What to pass as cursor for the next page; null on the last.")),
                "has_more": flag("Whether there is a next page."),
                "page_size": count("How many rows a page has; the registry decides."),
            },
            optional=("next_cursor", "has_more", "page_size"),
            description="Where this page stands.",
        ),
    }
)
_API_FUNCTION: Final = obj(
    {
        "name": text("The id of the function."),
        "description": text("What it does."),
        "request_schema": one_of_any("The JSON Schema of its payload."),
        "response_schema": one_of_any("The JSON Schema of its result."),
        "metadata": one_of_any("What its owner attached."),
    },
    optional=("description", "request_schema", "response_schema", "metadata"),
)
_API_TRIGGER: Final = obj(
    {
        "name": text("The id of the trigger type."),
        "description": text("When it fires."),
        "invocation_schema": one_of_any("The JSON Schema of the event."),
        "return_schema": one_of_any("The JSON Schema of what a subscriber answers."),
        "metadata": one_of_any("What its owner attached."),
    },
    optional=("description", "invocation_schema", "return_schema", "metadata"),
)
_TREE: Final = obj(
    {
        "skills": rows(
            obj({"path": text("The path of a document.")}), "The documents a download would bring."
        ),
        "prompts": rows(
            obj(
                {"name": text("The name of a prompt."), "description": text("What it is for.")},
                optional=("description",),
            ),
            "The prompts a download would bring.",
        ),
    },
    optional=("skills", "prompts"),
    description="What directory::skills::download_from_registry would install.",
)
_INFO: Final = obj(
    {
        "worker": {**_WORKER, "description": "Its row, as directory::registry::workers::list has it."},
        "readme": text("Its README, in markdown."),
        "api_reference": obj(
            {
                "functions": rows(_API_FUNCTION, "The functions it registers."),
                "triggers": rows(_API_TRIGGER, "The trigger types it provides."),
            },
            optional=("functions", "triggers"),
            description="What it offers, with schemas: the same as after installing it.",
        ),
        "skills_tree": _TREE,
    },
    optional=("readme",),
)
_LIST_REQUEST: Final = request(
    {
        "search": text("Free text; the registry ranks by similarity. Leave it out to browse by downloads."),
        "cursor": text("pagination.next_cursor of the page before. Leave it out for the first page."),
    }
)
_INFO_REQUEST: Final = request(
    {"name": text("The name of the worker in the registry."), "version": VERSION, "tag": TAG},
    required=("name",),
)

V08_ROWS: Final = (
    FunctionRow(
        "directory::registry::workers::list",
        lambda h: h.registry.workers,
        "Browse or search the public workers registry, a page at a time: pass pagination.next_cursor back as "
        "cursor for the next. Answers are kept for registry_cache_ttl_ms.",
        _LIST_REQUEST,
        _PAGE,
    ),
    FunctionRow(
        "directory::registry::workers::info",
        lambda h: h.registry.worker_info,
        "Everything published about one worker, installed or not: its row, README, functions and triggers "
        "with schemas, and the documents a download would bring. Pass version or tag; latest is the default.",
        _INFO_REQUEST,
        _INFO,
    ),
)
V04_ROWS: Final = (
    FunctionRow(
        "registry::worker-list",
        lambda h: h.registry.workers,
        "Search published workers; the rows share their first fields with directory::worker-list.",
        _LIST_REQUEST,
        _PAGE,
    ),
    FunctionRow(
        "registry::worker-info",
        lambda h: h.registry.worker_info,
        "One published worker: its row, README, functions, triggers, and the tree of its documents.",
        _INFO_REQUEST,
        _INFO,
    ),
)
