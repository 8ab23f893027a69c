"""Declare the functions of the workers registry, and the downloads that write to the skills folder."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces import declare

_VERSION: Final = "An exact version. Not together with tag."
_TAG: Final = "A tag, such as latest, which is the default. Not together with version."

_AUTHOR: Final[declare.Fields] = {
    "name?": declare.maybe("What the publisher is called."),
    "pfp?": declare.maybe("The address of a picture, or null."),
    "verified?": declare.flag("Whether the registry verified the author."),
}
_WORKER: Final[declare.Fields] = {
    "name": "The name of the worker.",
    "description?": declare.maybe("What it does."),
    "version?": declare.maybe("The newest version, or the one that was asked for."),
    "type?": declare.maybe("binary, image or engine."),
    "author?": declare.maybe(declare.obj(_AUTHOR, "Who published it, or null.")),
    "config?": declare.one_of_any("Its configuration as published."),
    "dependencies?": declare.table(
        {"name": "A worker it needs.", "version": "Which version of it."}, "The workers it needs."
    ),
    "image?": "The container image, for type image.",
    "repo?": declare.maybe("Where its source is."),
    "supported_targets?": declare.texts("The platforms it runs on."),
    "total_downloads?": declare.count("How often it was downloaded."),
}
_API_FUNCTION: Final[declare.Fields] = {
    "name": "The id of the function.",
    "description?": declare.maybe("What it does."),
    "request_schema?": declare.one_of_any("The JSON Schema of its payload."),
    "response_schema?": declare.one_of_any("The JSON Schema of its result."),
    "metadata?": declare.one_of_any("What its owner attached."),
}
_API_TRIGGER: Final[declare.Fields] = {
    "name": "The id of the trigger type.",
    "description?": declare.maybe("When it fires."),
    "invocation_schema?": declare.one_of_any("The JSON Schema of the event."),
    "return_schema?": declare.one_of_any("The JSON Schema of what a subscriber answers."),
    "metadata?": declare.one_of_any("What its owner attached."),
}
_INFO: Final[declare.Fields] = {
    "worker": declare.obj(_WORKER, "Its row, as directory::registry::workers::list has it."),
    "readme?": "Its README, in markdown.",
    "api_reference": declare.obj(
        {
            "functions?": declare.table(_API_FUNCTION, "The functions it registers."),
            "triggers?": declare.table(_API_TRIGGER, "The trigger types it provides."),
        },
        "What it offers, with schemas: the same as after installing it.",
    ),
    "skills_tree": declare.obj(
        {
            "skills?": declare.table(
                {"path": "The path of a document."}, "The documents a download would bring."
            ),
            "prompts?": declare.table(
                {"name": "The name of a prompt.", "description?": declare.maybe("What it is for.")},
                "The prompts a download would bring.",
            ),
        },
        "What directory::skills::download_from_registry would install.",
    ),
    "versions?": declare.table(
        {
            "version": "A version that is offered.",
            "tags": declare.texts("The tags that lead to it."),
            "published_at": declare.maybe("When it was published: RFC 3339, UTC."),
        },
        "The versions, newest first; left out where the registry does not name them.",
    ),
}
_WORKER_NAME: Final = "The name of a worker in the registry. Goes with version or tag."
_REPO: Final = (
    "The address of a git repository: https://, ssh:// or git@; or of a SKILL.md, .zip or .tar.gz. Goes with "
    "skill."
)
_FOLDER: Final = "The folder below skills/ in the repository; also the namespace it is installed as."
_BRANCH: Final = "A branch, a tag or a full commit id; main by default. Goes with repo."
_WHICH: Final[declare.Fields] = {"version?": _VERSION, "tag?": _TAG}
_PUBLISHED: Final[declare.Fields] = {"worker": _WORKER_NAME, **_WHICH}
_INSTALLED: Final[declare.Fields] = {
    "namespace": "The folder below the skills folder that was written.",
    "skills_written": declare.texts("The paths of the skills, below the namespace."),
    "prompts_written": declare.texts("The names of the prompts."),
    "files_written?": declare.texts("The paths of other files: scripts, assets."),
    "new_facts?": declare.some_object(
        "What it can do that what was installed before could not, by kind as in directory::skills::facts; "
        "left out where nothing is new."
    ),
    "source": declare.one_of_any(
        "Where it came from, with the version or tag, or the branch and the commit."
    ),
}
_CHANGES: Final = declare.some_object(
    "Paths by what happens to them: added, replaced, overwritten, kept (edited by hand), left_behind, "
    "removed, unchanged; only those that there are."
)
_ALL_OR_NOTHING: Final = (
    "All or nothing; what it brings replaces files of the same path and leaves the others."
)

FUNCTIONS: Final = (
    *declare.function(
        ids={"directory::registry::workers::list": (declare.V08,), "registry::worker-list": (declare.V04,)},
        handler=lambda services: services.registry.workers,
        description="Browse or search the public workers registry, a page at a time: pass "
        "pagination.next_cursor back as cursor for the next. Answers are kept for registry_cache_ttl_ms.",
        request={
            "search?": "Free text; the registry ranks by similarity. Leave it out to browse by downloads.",
            "cursor?": "pagination.next_cursor of the page before. Leave it out for the first page.",
        },
        response={
            "workers": declare.table(_WORKER, "The rows of this page."),
            "pagination": declare.obj(
                {
                    "next_cursor?": declare.maybe(
                        "What to pass as cursor for the next page; null on the last."
                    ),
                    "has_more?": declare.flag("Whether there is a next page."),
                    "page_size?": declare.count("How many rows a page has; the registry decides."),
                },
                "Where this page stands.",
            ),
        },
        example={"search": "memory"},
    ),
    *declare.function(
        ids={"directory::registry::workers::info": (declare.V08,), "registry::worker-info": (declare.V04,)},
        handler=lambda services: services.registry.worker_info,
        description="Everything published about one worker, installed or not: its row, README, functions and "
        "triggers with schemas, and the documents a download would bring. Pass version or tag; latest is the "
        "default.",
        request={
            "name": "The name of the worker in the registry.",
            **_WHICH,
            "schemas?": declare.flag(
                "False leaves the schemas and metadata of its functions out.", default=True
            ),
            "readme?": declare.flag("False leaves the README out.", default=True),
        },
        response=_INFO,
        example={"name": "agent-memory"},
    ),
    *declare.function(
        ids={"directory::skills::download_from_registry": (declare.V08,)},
        handler=lambda services: services.downloads.from_registry,
        description="Install a published worker's skills and prompts. Pass version for an exact one, or tag "
        f"(latest). {_ALL_OR_NOTHING} To see first what there is, call directory::registry::workers::info.",
        request=_PUBLISHED,
        response=_INSTALLED,
        example={"worker": "agent-memory"},
    ),
    *declare.function(
        ids={"directory::skills::plan": ()},
        handler=lambda services: services.downloads.plan,
        description="Say what directory::skills::install would change, as a patch, and what the new version "
        "can do that the installed one cannot. Nothing is written.",
        request=_PUBLISHED,
        response={
            "namespace": "The folder below the skills folder that would be written.",
            "installed": declare.maybe("The version that is installed now; null where none is."),
            "resolved": "The version that would be installed.",
            "changes": _CHANGES,
            "left_out": declare.texts("Files that would not be installed."),
            "diff": "The changes of the files as a patch, cut where it grows long.",
            "new_facts": declare.some_object(
                "What it can do that the installed version cannot, by kind; may be empty."
            ),
        },
        example={"worker": "agent-memory"},
    ),
    *declare.function(
        ids={"directory::skills::install": ()},
        handler=lambda services: services.downloads.install,
        description="Install or update the skills of a published worker; files that were edited by hand "
        "stay as they are. Call directory::skills::plan first to see what would change.",
        request=_PUBLISHED,
        response=_INSTALLED,
        example={"worker": "agent-memory"},
    ),
    *declare.function(
        ids={"directory::skills::remove": ()},
        handler=lambda services: services.downloads.remove,
        description="Remove what was installed under a namespace; files that were edited by hand stay. Only "
        "for the web page of this directory, or where allow_writing is set.",
        request={"namespace": "The namespace that was installed."},
        response={
            "namespace": "The namespace.",
            "status": declare.choice("edited: some files stayed.", "removed", "edited"),
            "changes": _CHANGES,
        },
        example={"namespace": "agent-memory"},
    ),
    *declare.function(
        ids={"directory::skills::download_from_repo": (declare.V08,)},
        handler=lambda services: services.downloads.from_repo,
        description=f"Install one folder of skills from a git repository. {_ALL_OR_NOTHING} The commit is "
        "recorded.",
        request={"repo": _REPO, "skill": _FOLDER, "branch?": _BRANCH},
        response=_INSTALLED,
        example={"repo": "https://github.com/anthropics/skills", "skill": "pdf"},
    ),
    *declare.function(
        ids={"directory::skills::download": (declare.V08,), "skills::download": (declare.V04,)},
        handler=lambda services: services.downloads.download,
        description="Install skills and prompts from one of two sources: {repo, skill, branch?} or {worker, "
        f"version?|tag?}}. {_ALL_OR_NOTHING} The two explicit functions, download_from_registry and "
        "download_from_repo, cannot be mixed up.",
        request={"repo?": _REPO, "skill?": _FOLDER, "branch?": _BRANCH, "worker?": _WORKER_NAME, **_WHICH},
        response=_INSTALLED,
        example={"worker": "agent-memory", "tag": "latest"},
    ),
    *declare.function(
        ids={"directory::__on_worker_added": (declare.V08,)},
        handler=lambda services: services.downloads.on_worker_added,
        description="Internal: fetches the skills of a worker that was just added.",
        request="The event of the engine's worker trigger; anything else is ignored.",
        response={"ok": declare.flag("Always true.")},
        metadata={"internal": True},
    ),
)
