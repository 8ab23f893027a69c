"""Declare the functions of the workers registry, and the downloads that write to the skills folder."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.function_row import (
    V04,
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
    text,
    texts,
)

_VERSION: Final = text("An exact version. Not together with tag.")
_TAG: Final = text("A tag, such as latest, which is the default. Not together with version.")

_AUTHOR: Final[Fields] = {
    "name?": maybe("What the publisher is called."),
    "pfp?": maybe("The address of a picture, or null."),
    "verified?": flag("Whether the registry verified the author."),
}
_WORKER: Final[Fields] = {
    "name": "The name of the worker.",
    "description?": maybe("What it does."),
    "version?": maybe("The newest version, or the one that was asked for."),
    "type?": maybe("binary, image or engine."),
    "author?": maybe(obj(_AUTHOR, "Who published it, or null.")),
    "config?": one_of_any("Its configuration as published."),
    "dependencies?": table(
        {"name": "A worker it needs.", "version": "Which version of it."}, "The workers it needs."
    ),
    "image?": "The container image, for type image.",
    "repo?": maybe("Where its source is."),
    "supported_targets?": texts("The platforms it runs on."),
    "total_downloads?": count("How often it was downloaded."),
}
_PAGE: Final[Fields] = {
    "workers": table(_WORKER, "The rows of this page."),
    "pagination": obj(
        {
            "next_cursor?": maybe("What to pass as cursor for the next page; null on the last."),
            "has_more?": flag("Whether there is a next page."),
            "page_size?": count("How many rows a page has; the registry decides."),
        },
        "Where this page stands.",
    ),
}
_API_FUNCTION: Final[Fields] = {
    "name": "The id of the function.",
    "description?": maybe("What it does."),
    "request_schema?": one_of_any("The JSON Schema of its payload."),
    "response_schema?": one_of_any("The JSON Schema of its result."),
    "metadata?": one_of_any("What its owner attached."),
}
_API_TRIGGER: Final[Fields] = {
    "name": "The id of the trigger type.",
    "description?": maybe("When it fires."),
    "invocation_schema?": one_of_any("The JSON Schema of the event."),
    "return_schema?": one_of_any("The JSON Schema of what a subscriber answers."),
    "metadata?": one_of_any("What its owner attached."),
}
_TREE: Final = obj(
    {
        "skills?": table({"path": "The path of a document."}, "The documents a download would bring."),
        "prompts?": table(
            {"name": "The name of a prompt.", "description?": maybe("What it is for.")},
            "The prompts a download would bring.",
        ),
    },
    "What directory::skills::download_from_registry would install.",
)
_INFO: Final[Fields] = {
    "worker": obj(_WORKER, "Its row, as directory::registry::workers::list has it."),
    "readme?": "Its README, in markdown.",
    "api_reference": obj(
        {
            "functions?": table(_API_FUNCTION, "The functions it registers."),
            "triggers?": table(_API_TRIGGER, "The trigger types it provides."),
        },
        "What it offers, with schemas: the same as after installing it.",
    ),
    "skills_tree": _TREE,
    "versions?": table(
        {
            "version": "A version that is offered.",
            "tags": texts("The tags that lead to it."),
            "published_at": maybe("When it was published: RFC 3339, UTC."),
        },
        "The versions, newest first; left out where the registry does not name them.",
    ),
}
_LIST_REQUEST: Final[Fields] = {
    "search?": "Free text; the registry ranks by similarity. Leave it out to browse by downloads.",
    "cursor?": "pagination.next_cursor of the page before. Leave it out for the first page.",
}
_INFO_REQUEST: Final[Fields] = {
    "name": "The name of the worker in the registry.",
    "version?": _VERSION,
    "tag?": _TAG,
    "schemas?": flag("False leaves the schemas and metadata of its functions out.", default=True),
    "readme?": flag("False leaves the README out.", default=True),
}

_WORKER_NAME: Final = text("The name of a worker in the registry. Goes with version or tag.")
_REPO: Final = text(
    "The address of a git repository: https://, ssh:// or git@; or of a SKILL.md, .zip or .tar.gz. Goes with "
    "skill."
)
_FOLDER: Final = text("The folder below skills/ in the repository; also the namespace it is installed as.")
_BRANCH: Final = text("A branch, a tag or a full commit id; main by default. Goes with repo.")
_PUBLISHED: Final[Fields] = {"worker": _WORKER_NAME, "version?": _VERSION, "tag?": _TAG}
_EITHER: Final[Fields] = {
    "repo?": _REPO,
    "skill?": _FOLDER,
    "branch?": _BRANCH,
    "worker?": _WORKER_NAME,
    "version?": _VERSION,
    "tag?": _TAG,
}
_INSTALLED: Final[Fields] = {
    "namespace": "The folder below the skills folder that was written.",
    "skills_written": texts("The paths of the skills, below the namespace."),
    "prompts_written": texts("The names of the prompts."),
    "files_written?": texts("The paths of other files: scripts, assets."),
    "new_facts?": some_object(
        "What it can do that what was installed before could not, by kind as in directory::skills::facts; "
        "left out where nothing is new."
    ),
    "source": one_of_any("Where it came from, with the version or tag, or the branch and the commit."),
}
_CHANGES: Final = some_object(
    "Paths by what happens to them: added, replaced, overwritten, kept (edited by hand), left_behind, "
    "removed, unchanged; only those that there are."
)
_PLAN: Final[Fields] = {
    "namespace": "The folder below the skills folder that would be written.",
    "installed": maybe("The version that is installed now; null where none is."),
    "resolved": "The version that would be installed.",
    "changes": _CHANGES,
    "left_out": texts("Files that would not be installed."),
    "diff": "The changes of the files as a patch, cut where it grows long.",
    "new_facts": some_object("What it can do that the installed version cannot, by kind; may be empty."),
}
_ALL_OR_NOTHING: Final = (
    "All or nothing; what it brings replaces files of the same path and leaves the others."
)

FUNCTIONS: Final = (
    *function(
        ids={"directory::registry::workers::list": (V08,), "registry::worker-list": (V04,)},
        handler=lambda services: services.registry.workers,
        description="Browse or search the public workers registry, a page at a time: pass "
        "pagination.next_cursor back as cursor for the next. Answers are kept for registry_cache_ttl_ms.",
        request=_LIST_REQUEST,
        response=_PAGE,
        example={"search": "memory"},
    ),
    *function(
        ids={"directory::registry::workers::info": (V08,), "registry::worker-info": (V04,)},
        handler=lambda services: services.registry.worker_info,
        description="Everything published about one worker, installed or not: its row, README, functions and "
        "triggers with schemas, and the documents a download would bring. Pass version or tag; latest is the "
        "default.",
        request=_INFO_REQUEST,
        response=_INFO,
        example={"name": "agent-memory"},
    ),
    *function(
        ids={"directory::skills::download_from_registry": (V08,)},
        handler=lambda services: services.downloads.from_registry,
        description="Install a published worker's skills and prompts. Pass version for an exact one, or tag "
        f"(latest). {_ALL_OR_NOTHING} To see first what there is, call directory::registry::workers::info.",
        request={"worker": _WORKER_NAME, "version?": _VERSION, "tag?": _TAG},
        response=_INSTALLED,
        example={"worker": "agent-memory"},
    ),
    *function(
        ids={"directory::skills::plan": ()},
        handler=lambda services: services.downloads.plan,
        description="Say what directory::skills::install would change, as a patch, and what the new version "
        "can do that the installed one cannot. Nothing is written.",
        request=_PUBLISHED,
        response=_PLAN,
        example={"worker": "agent-memory"},
    ),
    *function(
        ids={"directory::skills::install": ()},
        handler=lambda services: services.downloads.install,
        description="Install or update the skills of a published worker; files that were edited by hand "
        "stay as they are. Call directory::skills::plan first to see what would change.",
        request=_PUBLISHED,
        response=_INSTALLED,
        example={"worker": "agent-memory"},
    ),
    *function(
        ids={"directory::skills::remove": ()},
        handler=lambda services: services.downloads.remove,
        description="Remove what was installed under a namespace; files that were edited by hand stay. Only "
        "for the web page of this directory, or where allow_writing is set.",
        request={"namespace": "The namespace that was installed."},
        response={
            "namespace": "The namespace.",
            "status": choice("edited: some files stayed.", "removed", "edited"),
            "changes": _CHANGES,
        },
        example={"namespace": "agent-memory"},
    ),
    *function(
        ids={"directory::skills::download_from_repo": (V08,)},
        handler=lambda services: services.downloads.from_repo,
        description=f"Install one folder of skills from a git repository. {_ALL_OR_NOTHING} The commit is "
        "recorded.",
        request={"repo": _REPO, "skill": _FOLDER, "branch?": _BRANCH},
        response=_INSTALLED,
        example={"repo": "https://github.com/anthropics/skills", "skill": "pdf"},
    ),
    *function(
        ids={"directory::skills::download": (V08,), "skills::download": (V04,)},
        handler=lambda services: services.downloads.download,
        description="Install skills and prompts from one of two sources: {repo, skill, branch?} or {worker, "
        f"version?|tag?}}. {_ALL_OR_NOTHING} The two explicit functions, download_from_registry and "
        "download_from_repo, cannot be mixed up.",
        request=_EITHER,
        response=_INSTALLED,
        example={"worker": "agent-memory", "tag": "latest"},
    ),
    *function(
        ids={"directory::__on_worker_added": (V08,)},
        handler=lambda services: services.downloads.on_worker_added,
        description="Internal: fetches the skills of a worker that was just added.",
        request="The event of the engine's worker trigger; anything else is ignored.",
        response={"ok": flag("Always true.")},
        metadata={"internal": True},
    ),
)
