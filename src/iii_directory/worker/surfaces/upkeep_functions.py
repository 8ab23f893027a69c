"""Declare the functions for operators of a directory, and those that write skills."""

from __future__ import annotations

from typing import Final

from iii_directory.documents.uris import WRITING
from iii_directory.limits import KIB, MAX_BODY_BYTES
from iii_directory.worker.surfaces import declare

_FINDING: Final[declare.Fields] = {
    "kind": "What sort of finding it is, such as skipped, shadowed or front_matter.",
    "subject": "The path below the skills folder, the id or the namespace it is about.",
    "reason": "What is wrong or odd.",
    "fix": "What to do about it.",
    "attention?": declare.flag("Whether it needs attention; else it is good to know."),
    "forbidden?": declare.flag("True where the Agent Skills standard forbids it; else left out."),
    "provenance?": declare.PROVENANCE,
}


def _size(of_what: str) -> declare.Schema:
    return declare.obj(
        {"chars": declare.count("Characters."), "tokens": declare.count("About so many tokens.")}, of_what
    )


_HOST: Final[declare.Fields] = {
    "name": "What the host is called here.",
    "limit_chars": declare.count("How many characters it keeps for the list of skills."),
    "used_chars": declare.count("How many the lines of all skills have that a model may call."),
    "fits": declare.flag("Whether they fit."),
    "cut": {
        "type": "array",
        "items": declare.SKILL_ID,
        "description": "The skills that do not, where the list is taken in order.",
    },
}
_FACTS: Final[declare.Fields] = {
    "scripts": declare.table({"path": "The script.", "interpreter": "What runs it."}, "Scripts it brings."),
    "executables": declare.texts("Files of machine code."),
    "bytecode": declare.texts("Compiled files that cannot be read."),
    "hosts": declare.texts("Hosts whose addresses it names."),
    "urls": declare.texts("The addresses."),
    "environment": declare.texts("Environment variables it names."),
    "allowed_tools": declare.texts("Tools it asks to use without a question."),
    "hooks": declare.texts("Hooks it declares, with what they run."),
    "shell_directives": declare.texts("Commands that a host runs when it loads the document."),
    "functions": declare.table(
        {
            "id": "A function it names.",
            "exists": declare.maybe(
                declare.flag("Whether the engine has it now; null where no engine was asked.")
            ),
        },
        "Functions of the engine it names.",
    ),
    "skills": declare.texts("Other skills it names."),
    "unread": declare.table(
        {"path": "The file.", "reason": "Why it was not read."}, "Files that could not be looked into."
    ),
}
_COST: Final[declare.Fields] = {
    "id": declare.SKILL_ID,
    "line": _size("Its line of a list: id and description."),
    "overview": _size("The document that stands for it, front matter included."),
    "whole": _size(
        "All its texts of at most 256 KiB each. Of a skill of more than 512 files, bytes are counted."
    ),
}

ADVICE: Final = (
    *declare.function(
        ids={"directory::skills::explain": ()},
        handler=lambda services: services.upkeep.explain,
        description="Why a document is served as it is, or is not: every rule that hid, cut, shadowed or "
        "skipped it, each with what to do. Call it when something is missing or looks wrong.",
        request={"id": "The id, address, prompt name or path that was asked for."},
        response={
            "asked": "What was asked for.",
            "served": declare.flag("Whether a reader is given just that."),
            "id": declare.maybe("What a reader is given: an id, a name or a path; null for nothing."),
            "summary": "That in one sentence.",
            "provenance": declare.maybe(declare.PROVENANCE),
            "rules": declare.table(_FINDING, "Every rule that touched it."),
        },
        example={"id": "greeter"},
    ),
    *declare.function(
        ids={"directory::diagnostics": ()},
        handler=lambda services: services.upkeep.diagnostics,
        description="What the directory left out or found odd, each with its reason and what to do: skipped "
        "files, shadowed ids, broken front matter, records that cannot be read, failed downloads, installed "
        "files that were edited by hand. Call it when something is missing, with attention and a limit at "
        "first, because the whole can be long. Of one document, directory::skills::explain says more.",
        request={
            "attention?": declare.flag("Only what needs attention.", default=False),
            "limit?": declare.count("At most so many findings, what needs attention first."),
            "check?": declare.flag(
                "True adds what the Agent Skills standard and hosts object to in each skill.", default=False
            ),
        },
        response={
            "counts": declare.some_object("How many findings there are of each kind."),
            "attention": declare.count("How many of them need attention."),
            "findings": declare.table(_FINDING, "The findings that were asked for."),
            "left_out?": declare.count("How many findings there are beside those; left out where none."),
            "installed_by?": (
                "The function of the engine that says which workers are installed, such as "
                "compose::status; left out where no function can say, and then no document is hidden for it."
            ),
        },
        example={"attention": True, "limit": 20},
    ),
    *declare.function(
        ids={"directory::metrics": ()},
        handler=lambda services: services.upkeep.metrics,
        description="Counters for monitoring: calls of the directory's functions by outcome and duration, "
        "searches by whether anything fitted, documents, prompts, connections and installs. The HTTP "
        "listener offers them at /metrics as Prometheus text.",
        response={
            "metrics": declare.table(
                {
                    "name": "The name of the metric.",
                    "type": "counter, gauge or histogram.",
                    "help": "What it counts.",
                    "samples": declare.table(
                        {
                            "labels": declare.some_object("Labels by name."),
                            "value": {"type": "number", "description": "The value."},
                        },
                        "The values.",
                    ),
                },
                "Every metric.",
            )
        },
    ),
    *declare.function(
        ids={"directory::skills::budget": ()},
        handler=lambda services: services.upkeep.budget,
        description="What skills cost a model that reads them, in characters and estimated tokens: the line, "
        "the overview and the whole of each, the index, the tools and resources of MCP; and which skills "
        "hosts would cut from their lists. For choosing which skills to keep.",
        response={
            "estimate": "How tokens are estimated.",
            "index": _size("The text of directory::skills::index."),
            "tools": _size("What MCP clients are told of the tools offered by themselves, as JSON."),
            "resources": _size("The list of resources, as JSON."),
            "hosts": declare.table(_HOST, "What known hosts allow."),
            "skills": declare.table(_COST, "Every skill, the longest line first."),
        },
    ),
    *declare.function(
        ids={"directory::skills::usage": ()},
        handler=lambda services: services.usage.reply,
        description="How often each skill was offered, read and used here, and which searches found nothing. "
        "Counted on this machine alone; empty where the setting usage is off.",
        response={
            "skills": declare.table(
                {
                    "id": declare.SKILL_ID,
                    "offered": declare.count("Calls of lists, the index and search that had it."),
                    "read": declare.count("Calls that read a document of it."),
                    "used": declare.count("Calls that read another file of it."),
                },
                "Every skill, the most used first.",
            ),
            "misses": declare.table(
                {
                    "words": "What was searched for.",
                    "count": declare.count("How often."),
                    "last": "When last: RFC 3339, UTC.",
                },
                "Searches for which nothing fitted, the newest first.",
            ),
            "since": declare.maybe("The first day that is counted; null where nothing is."),
        },
    ),
    *declare.function(
        ids={"directory::skills::facts": ()},
        handler=lambda services: services.upkeep.facts,
        description="List what a skill can do, without a verdict: its scripts, the hosts and environment "
        "variables it names, the tools and hooks it asks for, and whether the functions it names exist "
        "here. Findings are content that benign skills almost never have. No finding does not mean safe.",
        request={"id": declare.SKILL_ID},
        response={
            "id": declare.SKILL_ID,
            "facts": declare.obj(_FACTS, "What the skill brings and names."),
            "findings": declare.table(
                {
                    "rule": "What was looked for, such as hidden-characters.",
                    "path": "The file of the skill.",
                    "line?": declare.count("The first line of it."),
                    "words": "What is there.",
                    "accepted?": declare.flag("True if the operator accepted it."),
                },
                "Content to look at.",
            ),
            "left_out?": declare.some_object("How many rows a list has beside those."),
            "accepted?": declare.obj(
                {"at": "When: RFC 3339, UTC.", "reason": "Why."},
                "When and why the operator accepted what it can do.",
            ),
        },
        example={"id": "greeter"},
    ),
    *declare.function(
        ids={"directory::skills::links": ()},
        handler=lambda services: services.upkeep.links,
        description="Which documents link to a document, by an iii:// address or by its path. Call it before "
        "moving, renaming or deleting one.",
        request={"id": "The document, as in directory::skills::get."},
        response={
            "id": declare.SKILL_ID,
            "documents": declare.table(
                {"id": declare.SKILL_ID, "title": "Its title.", "provenance": declare.PROVENANCE},
                "The documents that link to it, sorted by id.",
            ),
            "left_out?": declare.count("How many there are beside those; left out where none."),
        },
        example={"id": "greeter"},
    ),
)


# The worker replaces the value by its setting allow_writing.
_METADATA: Final = {WRITING: False}
_CONTENT: Final = declare.text(
    f"The whole file: markdown, with front matter if wanted; at most {MAX_BODY_BYTES // KIB} KiB."
)
_EXPECTED: Final = declare.text(
    "The sha256 of what was read before. If the skill was written since, nothing is changed (D118)."
)
_WRITTEN: Final[declare.Fields] = {
    "id": declare.SKILL_ID,
    "uri": "Its address.",
    "bytes": declare.count("The size of the file."),
    "sha256": "The hash of the file, 64 hex digits: what the next write of it can expect.",
    "modified_at": declare.MODIFIED_AT,
    "path?": "The file of the skill, where one was written.",
    "executable?": declare.flag("Whether that file is a program."),
    "note?": "What the caller may not expect: the new document belongs to no skill.",
    "findings?": declare.table(
        {"kind": "Its kind.", "reason": "Why.", "fix": "What to do."},
        "What readers will be warned of, such as hidden text; left out where there is nothing.",
    ),
}
_FILE: Final[declare.Fields] = {
    "path?": "A file of the skill, relative to its folder; without it the document itself.",
    "encoding?": declare.choice("How content is written; without it, it is text.", "base64"),
    "executable?": declare.flag("Whether the file is a program; without it, an update keeps what it is."),
}
_ALLOWED: Final = "Only where the operator set allow_writing."

WRITING_SKILLS: Final = (
    *declare.function(
        ids={"directory::skills::create": ()},
        handler=lambda services: services.writing.create,
        long_fields=("content",),
        description="Write a new skill into the skills folder. The id says where: 'notes' becomes the "
        "overview notes/SKILL.md, 'notes/backups' the page notes/backups.md. With path, a new file of a "
        "skill that exists, such as scripts/run.py. Never replaces anything: for what is there call "
        f"directory::skills::update. {_ALLOWED}",
        request={
            "id": "The id of the new skill: lowercase segments of a-z 0-9 _ - joined by '/'.",
            "content": _CONTENT,
            **_FILE,
        },
        accepts_others=False,
        response=_WRITTEN,
        metadata=_METADATA,
        example={"id": "notes/backups", "content": "# Backups\n\nRun them at night.\n"},
    ),
    *declare.function(
        ids={"directory::skills::update": ()},
        handler=lambda services: services.writing.update,
        long_fields=("content",),
        description="Replace the whole text of a skill of the skills folder, or with path a file of it. Read "
        "it first with "
        "directory::skills::get and raw, and pass its sha256 as expected_sha256, so that nothing is lost "
        f"when two write. Never creates: for that call directory::skills::create. {_ALLOWED}",
        request={"id": declare.SKILL_ID, "content": _CONTENT, **_FILE, "expected_sha256?": _EXPECTED},
        accepts_others=False,
        response=_WRITTEN,
        metadata=_METADATA,
        example={"id": "notes/restoring", "content": "# Restoring\n\nAsk before you do.\n"},
    ),
    *declare.function(
        ids={"directory::skills::delete": ()},
        handler=lambda services: services.writing.delete,
        description="Delete a skill's file from the skills folder, with the folders it leaves empty. "
        "Other files of the skill stay. The reply tells what was there; to see what there is call "
        f"directory::skills::list. {_ALLOWED}",
        request={"id": declare.SKILL_ID, "expected_sha256?": _EXPECTED},
        accepts_others=False,
        response=_WRITTEN,
        metadata=_METADATA,
        example={"id": "notes/outdated"},
    ),
)
