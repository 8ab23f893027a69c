"""The rows for those who look after a directory: what was left out or is odd, and what it costs a reader."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.schema import (
    NOTHING,
    PROVENANCE,
    SKILL_ID,
    FunctionRow,
    Schema,
    count,
    flag,
    maybe,
    obj,
    request,
    rows,
    text,
)

_FINDING: Final = obj(
    {
        "kind": text("What sort of finding it is, such as skipped, shadowed or front_matter."),
        "subject": text("The path below the skills folder, the id or the namespace it is about."),
        "reason": text("What is wrong or odd."),
        "fix": text("What to do about it."),
        "attention": flag("Whether somebody should do something; else it is good to know."),
        "forbidden": flag("True where the Agent Skills standard forbids it; else left out."),
        "provenance": PROVENANCE,
    },
    optional=("attention", "forbidden", "provenance"),
)


def _size(of_what: str) -> Schema:
    sized = obj({"chars": count("Characters."), "tokens": count("About so many tokens.")})
    return {**sized, "description": of_what}


_HOST: Final = obj(
    {
        "name": text("What the host is called here."),
        "limit_chars": count("How many characters it keeps for the list of skills."),
        "used_chars": count("How many the lines of all skills have that a model may call."),
        "fits": flag("Whether they fit."),
        "cut": rows(SKILL_ID, "The skills that do not, where the list is taken in order."),
    }
)
_NAMES: Final = {"type": "string"}
_FACTS: Final = obj(
    {
        "scripts": rows(
            obj({"path": text("The script."), "interpreter": text("What runs it.")}), "Scripts it brings."
        ),
        "executables": rows(_NAMES, "Files of machine code."),
        "bytecode": rows(_NAMES, "Compiled files that cannot be read."),
        "hosts": rows(_NAMES, "Hosts whose addresses it names."),
        "urls": rows(_NAMES, "The addresses."),
        "environment": rows(_NAMES, "Environment variables it names."),
        "allowed_tools": rows(_NAMES, "Tools it asks to use without a question."),
        "hooks": rows(_NAMES, "Hooks it declares, with what they run."),
        "shell_directives": rows(_NAMES, "Commands that a host runs when it loads the document."),
        "functions": rows(
            obj(
                {
                    "id": text("A function it names."),
                    "exists": maybe(flag("Whether the engine has it now; null where no engine was asked.")),
                }
            ),
            "Functions of the engine it names.",
        ),
        "skills": rows(_NAMES, "Other skills it names."),
        "unread": rows(
            obj({"path": text("The file."), "reason": text("Why it was not read.")}),
            "Files that could not be looked into.",
        ),
    }
)
_COST: Final = obj(
    {
        "id": SKILL_ID,
        "line": _size("Its line of a list: id and description."),
        "overview": _size("The document that stands for it, front matter included."),
        "whole": _size(
            "All its texts of at most 256 KiB each. Of a skill of more than 512 files, bytes are counted."
        ),
    }
)

FUNCTIONS: Final = (
    FunctionRow(
        id="directory::skills::explain",
        generations=(),
        handler=lambda parts: parts.advice.explain,
        description="Why a document is served as it is, or is not: every rule that hid, cut, shadowed or "
        "skipped it, each with what to do. Call it when something is missing or looks wrong.",
        request=request(
            {"id": text("The id, address, prompt name or path that was asked for.")}, required=("id",)
        ),
        response=obj(
            {
                "asked": text("What was asked for."),
                "served": flag("Whether a reader is given just that."),
                "id": maybe(text("What a reader is given: an id, a name or a path; null for nothing.")),
                "summary": text("That in one sentence."),
                "provenance": maybe(PROVENANCE),
                "rules": rows(_FINDING, "Every rule that touched it."),
            }
        ),
        example={"id": "greeter"},
    ),
    FunctionRow(
        id="directory::diagnostics",
        generations=(),
        handler=lambda parts: parts.advice.diagnostics,
        description="What the directory left out or found odd, each with its reason and what to do: skipped "
        "files, shadowed ids, broken front matter, records that cannot be read, failed downloads, installed "
        "files that were edited by hand. Call it when something is missing, with attention and a limit at "
        "first, because the whole can be long. Of one document, directory::skills::explain says more.",
        request=request(
            {
                "attention": flag("Only what somebody should do something about.", default=False),
                "limit": count("At most so many findings, what needs attention first."),
                "check": flag(
                    "True adds what the Agent Skills standard and hosts object to in each skill.",
                    default=False,
                ),
            }
        ),
        response=obj(
            {
                "counts": {"type": "object", "description": "How many findings there are of each kind."},
                "attention": count("How many of them need attention."),
                "findings": rows(_FINDING, "The findings that were asked for."),
                "left_out": count("How many findings there are beside those; left out where none."),
                "installed_by": text(
                    "The function of the engine that says which workers are installed, such as "
                    "compose::status; left out where nobody can say, and then no document is hidden for it."
                ),
            },
            optional=("left_out", "installed_by"),
        ),
        example={"attention": True, "limit": 20},
    ),
    FunctionRow(
        id="directory::metrics",
        generations=(),
        handler=lambda parts: parts.advice.metrics,
        description="Counters for monitoring: calls of the directory's functions by outcome and duration, "
        "searches by whether anything fitted, documents, prompts, connections and installs. The HTTP "
        "listener offers them at /metrics as Prometheus text.",
        request=NOTHING,
        response=obj(
            {
                "metrics": rows(
                    obj(
                        {
                            "name": text("The name of the metric."),
                            "type": text("counter, gauge or histogram."),
                            "help": text("What it counts."),
                            "samples": rows(
                                obj(
                                    {
                                        "labels": {"type": "object", "description": "Labels by name."},
                                        "value": {"type": "number", "description": "The value."},
                                    }
                                ),
                                "The values.",
                            ),
                        }
                    ),
                    "Every metric.",
                )
            }
        ),
        example={},
    ),
    FunctionRow(
        id="directory::skills::budget",
        generations=(),
        handler=lambda parts: parts.advice.budget,
        description="What skills cost a model that reads them, in characters and estimated tokens: the line, "
        "the overview and the whole of each, the index, the tools and resources of MCP; and which skills "
        "hosts would cut from their lists. For whoever chooses which skills to keep.",
        request=NOTHING,
        response=obj(
            {
                "estimate": text("How tokens are estimated."),
                "index": _size("The text of directory::skills::index."),
                "tools": _size("What MCP clients are told of the tools offered by themselves, as JSON."),
                "resources": _size("The list of resources, as JSON."),
                "hosts": rows(_HOST, "What known hosts allow."),
                "skills": rows(_COST, "Every skill, the longest line first."),
            }
        ),
        example={},
    ),
    FunctionRow(
        id="directory::skills::usage",
        generations=(),
        handler=lambda parts: parts.usage.reply,
        description="How often each skill was offered, read and used here, and which searches found nothing. "
        "Counted on this machine alone; empty where the setting usage is off.",
        request=NOTHING,
        response=obj(
            {
                "skills": rows(
                    obj(
                        {
                            "id": SKILL_ID,
                            "offered": count("Calls of lists, the index and search that had it."),
                            "read": count("Calls that read a document of it."),
                            "used": count("Calls that read another file of it."),
                        }
                    ),
                    "Every skill, the most used first.",
                ),
                "misses": rows(
                    obj(
                        {
                            "words": text("What was searched for."),
                            "count": count("How often."),
                            "last": text("When last: RFC 3339, UTC."),
                        }
                    ),
                    "Searches for which nothing fitted, the newest first.",
                ),
                "since": maybe(text("The first day that is counted; null where nothing is.")),
            }
        ),
        example={},
    ),
    FunctionRow(
        id="directory::skills::facts",
        generations=(),
        handler=lambda parts: parts.advice.facts,
        description="List what a skill can do, without a verdict: its scripts, the hosts and environment "
        "variables it names, the tools and hooks it asks for, and whether the functions it names exist "
        "here. Findings are content that benign skills almost never have. No finding does not mean safe.",
        request=request({"id": SKILL_ID}, required=("id",)),
        response=obj(
            {
                "id": SKILL_ID,
                "facts": {**_FACTS, "description": "What the skill brings and names."},
                "findings": rows(
                    obj(
                        {
                            "rule": text("What was looked for, such as hidden-characters."),
                            "path": text("The file of the skill."),
                            "line": count("The first line of it."),
                            "words": text("What is there."),
                        },
                        optional=("line",),
                    ),
                    "Content to look at.",
                ),
                "left_out": {"type": "object", "description": "How many rows a list has beside those."},
            },
            optional=("left_out",),
        ),
        example={"id": "greeter"},
    ),
)
