"""The rows about the public workers registry, and about downloads: what alone writes to the skills folder."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.schema import (
    V04,
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

_VERSION: Final = text("An exact version. Not together with tag.")
_TAG: Final = text("A tag, such as latest, which is the default. Not together with version.")

_AUTHOR: Final[Schema] = {
    "type": ["object", "null"],
    "properties": {
        "name": maybe(text("What the publisher is called.")),
        "pfp": maybe(text("The address of a picture, or null.")),
        "verified": flag("Whether the registry verified the author."),
    },
    "description": "Who published it, or null.",
}
_DEPENDENCY: Final = obj({"name": text("A worker it needs."), "version": text("Which version of it.")})
_WORKER: Final = obj(
    {
        "name": text("The name of the worker."),
        "description": maybe(text("What it does.")),
        "version": maybe(text("The newest version, or the one that was asked for.")),
        "type": maybe(text("binary, image or engine.")),
        "author": _AUTHOR,
        "config": one_of_any("Its configuration as published."),
        "dependencies": rows(_DEPENDENCY, "The workers it needs."),
        "image": text("The container image, for type image."),
        "repo": maybe(text("Where its source is.")),
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
        "description": maybe(text("What it does.")),
        "request_schema": one_of_any("The JSON Schema of its payload."),
        "response_schema": one_of_any("The JSON Schema of its result."),
        "metadata": one_of_any("What its owner attached."),
    },
    optional=("description", "request_schema", "response_schema", "metadata"),
)
_API_TRIGGER: Final = obj(
    {
        "name": text("The id of the trigger type."),
        "description": maybe(text("When it fires.")),
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
                {"name": text("The name of a prompt."), "description": maybe(text("What it is for."))},
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
    {
        "name": text("The name of the worker in the registry."),
        "version": _VERSION,
        "tag": _TAG,
        "schemas": flag("False leaves the schemas and metadata of its functions out.", default=True),
        "readme": flag("False leaves the README out.", default=True),
    },
    required=("name",),
)

_WORKER_NAME: Final = text("The name of a worker in the registry. Goes with version or tag.")
_REPO: Final = text("The address of a git repository: https://, ssh:// or git@. Goes with skill.")
_FOLDER: Final = text("The folder below skills/ in the repository; also the namespace it is installed as.")
_BRANCH: Final = text("A branch, a tag or a full commit id; main by default. Goes with repo.")
_EITHER: Final = request(
    {
        "repo": _REPO,
        "skill": _FOLDER,
        "branch": _BRANCH,
        "worker": _WORKER_NAME,
        "version": _VERSION,
        "tag": _TAG,
    }
)
_INSTALLED: Final = obj(
    {
        "namespace": text("The folder below the skills folder that was written."),
        "skills_written": rows({"type": "string"}, "The paths of the skills, below the namespace."),
        "prompts_written": rows({"type": "string"}, "The names of the prompts."),
        "files_written": rows({"type": "string"}, "The paths of other files: scripts, assets."),
        "new_facts": {
            "type": "object",
            "description": "What it can do that what was installed before could not, by kind as in "
            "directory::skills::facts; left out where nothing is new.",
        },
        "source": one_of_any("Where it came from, with the version or tag, or the branch and the commit."),
    },
    optional=("files_written", "new_facts"),
)
_ALL_OR_NOTHING: Final = (
    "All or nothing; what it brings replaces files of the same path and leaves the others."
)

FUNCTIONS: Final = (
    FunctionRow(
        id="directory::registry::workers::list",
        generations=(V08,),
        handler=lambda parts: parts.registry_proxy.workers,
        description="Browse or search the public workers registry, a page at a time: pass "
        "pagination.next_cursor back as cursor for the next. Answers are kept for registry_cache_ttl_ms.",
        request=_LIST_REQUEST,
        response=_PAGE,
        example={"search": "memory"},
    ),
    FunctionRow(
        id="directory::registry::workers::info",
        generations=(V08,),
        handler=lambda parts: parts.registry_proxy.worker_info,
        description="Everything published about one worker, installed or not: its row, README, functions and "
        "triggers with schemas, and the documents a download would bring. Pass version or tag; latest is the "
        "default.",
        request=_INFO_REQUEST,
        response=_INFO,
        example={"name": "agent-memory"},
    ),
    FunctionRow(
        id="registry::worker-list",
        generations=(V04,),
        handler=lambda parts: parts.registry_proxy.workers,
        description="Search published workers; the rows share their first fields with "
        "directory::worker-list.",
        request=_LIST_REQUEST,
        response=_PAGE,
        example={"search": "memory"},
    ),
    FunctionRow(
        id="registry::worker-info",
        generations=(V04,),
        handler=lambda parts: parts.registry_proxy.worker_info,
        description="One published worker: its row, README, functions, triggers, and the tree of its "
        "documents.",
        request=_INFO_REQUEST,
        response=_INFO,
        example={"name": "agent-memory", "version": "1.2.0"},
    ),
    FunctionRow(
        id="directory::skills::download_from_registry",
        generations=(V08,),
        handler=lambda parts: parts.downloads.from_registry,
        description="Install a published worker's skills and prompts. Pass version for an exact one, or tag "
        f"(latest). {_ALL_OR_NOTHING} To see first what there is, call directory::registry::workers::info.",
        request=request(
            {"worker": _WORKER_NAME, "version": _VERSION, "tag": _TAG},
            required=("worker",),
        ),
        response=_INSTALLED,
        example={"worker": "agent-memory"},
    ),
    FunctionRow(
        id="directory::skills::download_from_repo",
        generations=(V08,),
        handler=lambda parts: parts.downloads.from_repo,
        description=f"Install one folder of skills from a git repository. {_ALL_OR_NOTHING} The commit is "
        "recorded.",
        request=request({"repo": _REPO, "skill": _FOLDER, "branch": _BRANCH}, required=("repo", "skill")),
        response=_INSTALLED,
        example={"repo": "https://github.com/anthropics/skills", "skill": "pdf"},
    ),
    FunctionRow(
        id="directory::skills::download",
        generations=(V08,),
        handler=lambda parts: parts.downloads.download,
        description="Install skills and prompts from one of two sources: {repo, skill, branch?} or {worker, "
        f"version?|tag?}}. {_ALL_OR_NOTHING} The two explicit functions, download_from_registry and "
        "download_from_repo, cannot be mixed up.",
        request=_EITHER,
        response=_INSTALLED,
        example={"worker": "agent-memory", "tag": "latest"},
    ),
    FunctionRow(
        id="skills::download",
        generations=(V04,),
        handler=lambda parts: parts.downloads.download,
        description="Install skills and prompts: {repo, skill, branch?} from a git repository, or {worker, "
        f"version?|tag?}} from the registry. {_ALL_OR_NOTHING}",
        request=_EITHER,
        response=_INSTALLED,
        example={"repo": "https://github.com/anthropics/skills", "skill": "pdf", "branch": "main"},
    ),
    FunctionRow(
        id="directory::__on_worker_added",
        generations=(V08,),
        handler=lambda parts: parts.downloads.on_worker_added,
        description="Internal: fetches the skills of a worker that was just added.",
        request=one_of_any("The event of the engine's worker trigger; anything else is ignored."),
        response=obj({"ok": {"type": "boolean", "description": "Always true."}}),
        metadata={"internal": True},
        example={},
    ),
)
