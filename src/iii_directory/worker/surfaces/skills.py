"""The rows about reading skills, one by one and as lists."""

from __future__ import annotations

from typing import Final

from iii_directory.catalog import replies
from iii_directory.worker.surfaces.schema import (
    CONNECTED,
    META,
    MODIFIED_AT,
    NOTHING,
    PROVENANCE,
    SKILL_ID,
    SOURCE,
    V02,
    V04,
    V05,
    V08,
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

_TITLE: Final = text("The front matter's title, else the first heading, else the id.")
_TYPE: Final = maybe(text("The front matter's type, such as index, how-to or reference; null without one."))
_FUNCTION_ID: Final = maybe(
    text("The function this skill documents: what to call. Null when it is about more than one, or none.")
)
_DESCRIPTION: Final = text(
    "The front matter's description, else the first paragraph. Empty when it was not asked for."
)
_BYTES: Final = count("The size of the file, or of the registered body, in bytes.")

_PLACE: Final = text("Where it is on the worker's machine; only with show_paths in the configuration.")
_SOMETIMES: Final = (
    "type",
    "function_id",
    "name",
    "disable_model_invocation",
    "root",
    "connected",
    "documents",
    "files",
)
_ROW: Final = obj(
    {
        "id": SKILL_ID,
        "title": _TITLE,
        "type": _TYPE,
        "function_id": _FUNCTION_ID,
        "description": _DESCRIPTION,
        "bytes": _BYTES,
        "modified_at": MODIFIED_AT,
        "provenance": PROVENANCE,
        "name": text("The front matter's name, where it is one of the Agent Skills standard."),
        "disable_model_invocation": flag("True where the skill is for people to call; else left out."),
        "root": text(
            "Which folder it lies in: skills, local, or the last two names of a root; left out of others."
        ),
        "connected": CONNECTED,
        "documents": count("How many documents the skill has. With kind skill."),
        "files": count("How many files the skill has. With kind skill."),
    },
    optional=_SOMETIMES,
)
_PLAIN_ROW: Final = obj(
    {**_ROW["properties"], "registered_at": MODIFIED_AT, "source": SOURCE},
    optional=_SOMETIMES,
)
_SKILL: Final = obj(
    {
        "id": SKILL_ID,
        "title": _TITLE,
        "type": _TYPE,
        "function_id": _FUNCTION_ID,
        "body": text("The markdown after the front matter. A substitute says so in its first quoted line."),
        "modified_at": MODIFIED_AT,
        "provenance": PROVENANCE,
        "skill": maybe(text("The id of the skill it is part of; null where it is part of none.")),
        "files": count("On the overview of a skill: how many files that has."),
        "front_matter": {"type": "object", "description": "The other keys of the front matter."},
        "raw": text("The whole file, front matter included. With raw."),
        "sha256": text("The hash of its bytes, which a write of it can name as expected_sha256. With raw."),
        "path": _PLACE,
    },
    optional=("type", "function_id", "provenance", "skill", "files", "front_matter", "raw", "sha256", "path"),
)
_FILE: Final = obj(
    {
        "path": text("The path below the skill's folder."),
        "bytes": count("Its size."),
        "media_type": text("What kind of file its name says it is."),
        "executable": flag("Whether it is meant to be run."),
        "sha256": maybe(
            text("The hash of its bytes, 64 hex digits; null where a skill is too large to be served whole.")
        ),
        "document": maybe(text("The id to read it by with directory::skills::get; null for other files.")),
        "provenance": PROVENANCE,
    }
)
_PART: Final = obj(
    {
        "id": SKILL_ID,
        "path": text("The path below the skill's folder."),
        "media_type": text("What kind of file its name says it is."),
        "encoding": {"enum": ["utf-8", "base64"], "description": "How content is written: text as it is."},
        "content": text("The part of the file that was asked for."),
        "bytes": count("The size of the whole file."),
        "sha256": maybe(text("The hash of the whole file; null of one larger than 16 MiB.")),
        "next_offset": maybe(count("What to pass as offset for the next page; null on the last.")),
        "provenance": PROVENANCE,
    }
)
_FETCH: Final = request(
    {
        "uri": text("One iii:// or skill:// URI, or a bare skill id."),
        "uris": rows({"type": "string"}, "Several of them; wins over uri when it holds anything."),
    }
)
_FETCHED: Final[Schema] = {
    "type": "string",
    "description": "One markdown text: a section per URI, headed by it, with a rule between them.",
}
_MIME: Final = text(
    "text/markdown, application/json for a section that answers data, or what kind a file is."
)
_RESOURCE: Final = obj(
    {
        "uri": text("The iii:// address."),
        "name": text("The title."),
        "description": text("What is there."),
        "mimeType": _MIME,
        "_meta": META,
    },
    optional=("description", "_meta"),
)
_CONTENT: Final = obj(
    {
        "uri": text("The URI as it was given."),
        "mimeType": _MIME,
        "text": text("The content, where it is text."),
        "blob": text("The content as base64, where it is none."),
        "_meta": META,
    },
    optional=("text", "blob", "_meta"),
)
_TEMPLATE: Final = obj(
    {
        "uriTemplate": text("An RFC 6570 template."),
        "name": text("What it leads to."),
        "description": text("How to fill it."),
        "mimeType": _MIME,
    }
)
FUNCTIONS: Final = (
    FunctionRow(
        id="directory::skills::index",
        generations=(V08,),
        reply=replies.skills_index,
        description="One short markdown block per worker: title, first paragraph, and the call that reads "
        "its overview. Made for system prompts; start here. For single skills call directory::skills::list.",
        request=NOTHING,
        response=obj(
            {
                "body": text(
                    "The markdown, sorted by id. When it grows long it has one line per skill, with every "
                    "description cut to the same length."
                ),
                "workers_count": count("How many workers it covers."),
            }
        ),
        example={},
    ),
    FunctionRow(
        id="directory::skills::list",
        generations=(V08,),
        reply=replies.skills_list,
        description="List skills, one row each, without bodies. Narrow with search (substring of id, title "
        "and description), prefix (ids below a worker, its overview included) and type (exact). "
        "include_description: false makes rows light; kind: skill gives one row per skill. A row's id goes "
        "to directory::skills::get; its function_id is what to call. For one block per worker call "
        "directory::skills::index.",
        request=request(
            {
                "search": text(
                    "Keep rows whose id, title or (while included) description has this, in any case."
                ),
                "prefix": text("Keep ids that start with this, such as 'db/'; finds the overview of db too."),
                "type": text("Keep rows of exactly this type."),
                "include_description": flag("False leaves descriptions empty.", default=True),
                "kind": {
                    "enum": ["skill", "document"],
                    "description": "skill: one row per skill, with counts of its documents and files.",
                },
            }
        ),
        response=obj(
            {
                "skills": rows(_ROW, "One row per skill, sorted by id."),
                "next": text("What to call when search found nothing."),
            },
            optional=("next",),
        ),
        example={"search": "greet"},
    ),
    FunctionRow(
        id="directory::skills::get",
        generations=(V08,),
        handler=lambda parts: parts.reading.get,
        description="Read one skill: its markdown body with id, title, type, function_id and modified_at. A "
        "worker's overview goes by the worker's bare name. Forgiving: 'x/index', 'x/SKILL.md', 'x.md', "
        "'iii://x' and other case all find x, and a name that is only part of a worker's finds that worker. "
        "So is the path of a text file of a skill, such as pptx/scripts/thumbnail.py. A miss names close ids "
        "and what to call next. For teasers without bodies call "
        "directory::skills::list.",
        request=request(
            {
                "id": text(
                    "The skill to read, as a list prints it. A trailing .md, a file name SKILL.md or "
                    "SKILLS.md, an iii:// or skill:// in front and the path of a file as documents write it "
                    "are understood; other schemes are not."
                ),
                "raw": flag("True adds the whole file and its hash to the reply.", default=False),
            },
            required=("id",),
        ),
        response=_SKILL,
        example={"id": "greeter"},
    ),
    FunctionRow(
        id="directory::skills::files",
        generations=(),
        handler=lambda parts: parts.reading.files,
        description="Every file of a skill with its size, kind and hash: documents, scripts, references, "
        "assets. Ask with the id of the skill or of any of its pages. Read one with directory::skills::file.",
        request=request({"id": text("The skill, as in directory::skills::get.")}, required=("id",)),
        response=obj(
            {
                "id": SKILL_ID,
                "uri": text("The address of its overview."),
                "provenance": PROVENANCE,
                "files": rows(_FILE, "One row per file, sorted by path."),
                "path": _PLACE,
            },
            optional=("path",),
        ),
        example={"id": "iii-directory"},
    ),
    FunctionRow(
        id="directory::skills::file",
        generations=(),
        handler=lambda parts: parts.reading.file,
        description="Read one file of a skill, text or binary, in pages: scripts and references that its "
        "documents speak of. directory::skills::files names them. To run a script, use the folder itself.",
        request=request(
            {
                "id": text("The skill, as in directory::skills::get."),
                "path": text("The path below the skill's folder, such as scripts/thumbnail.py."),
                "offset": count("The byte to start at: next_offset of the page before."),
                "limit": count("At most so many bytes, from 1 to 262144, the default.") | {"minimum": 1},
            },
            required=("id", "path"),
        ),
        response=_PART,
        example={"id": "iii-directory", "path": "index.md"},
    ),
    FunctionRow(
        id="skill::fetch",
        generations=(V02, V04),
        handler=lambda parts: parts.reading.fetch,
        description="Follow iii:// links: pass uri for one, or uris for several in one round trip, and get "
        "one markdown text back. Works for skills (iii://resend/email), the index (iii://skills) and live "
        "sections (iii://fn/a/b).",
        request=_FETCH,
        # A bridge would promise structured output for what is plain text.
        response=None,
        metadata={"mcp.expose": True, "mcp": {"expose": True}},
        example={"uris": ["iii://greeter", "iii://fn/greeter/status"]},
    ),
    FunctionRow(
        id="skills::fetch_skill",
        generations=(V02, V04),
        handler=lambda parts: parts.reading.fetch,
        description="Read one or more iii:// URIs and get one markdown text back. Pass uri, or uris for "
        "several at once.",
        request=_FETCH,
        response=_FETCHED,
        example={"uri": "iii://greeter"},
    ),
    FunctionRow(
        id="directory::skills::fetch-skill",
        generations=(V05,),
        handler=lambda parts: parts.reading.fetch,
        description="Read one or more skills and get one markdown text back. Pass uri, or uris for several "
        "at once; each is an iii:// URI or a bare skill id. iii://directory/skills is the index, "
        "iii://fn/a/b the output of a::b.",
        request=_FETCH,
        response=_FETCHED,
        example={"uri": "iii://directory/skills"},
    ),
    FunctionRow(
        id="skills::list",
        generations=(V02, V04),
        reply=replies.plain_skills,
        description="List every skill, from the folder and from registrations, without bodies: id, title, "
        "type, function_id, description, bytes, registered_at, modified_at, source. Read one with "
        "directory::skills::get.",
        request=NOTHING,
        response=obj({"skills": rows(_PLAIN_ROW, "One row per skill, sorted by id; never a body.")}),
        example={},
    ),
    FunctionRow(
        id="skills::resources-list",
        generations=(V02,),
        reply=replies.resources,
        description="For MCP bridges: every skill at every depth as a resource, the index first.",
        request=NOTHING,
        response=obj({"resources": rows(_RESOURCE, "The index, then every skill, sorted by id.")}),
        example={},
    ),
    FunctionRow(
        id="skills::resources-read",
        generations=(V02,),
        handler=lambda parts: parts.reading.resource,
        description="For MCP bridges: read one iii:// URI, a skill, the index or a section.",
        request=request({"uri": text("The URI to read.")}, required=("uri",)),
        response=obj({"contents": rows(_CONTENT, "One entry.")}),
        example={"uri": "iii://greeter"},
    ),
    FunctionRow(
        id="skills::resources-templates",
        generations=(V02,),
        reply=replies.resource_templates,
        description="For MCP bridges: the two templates of iii:// URIs.",
        request=NOTHING,
        response=obj(
            {"resourceTemplates": rows(_TEMPLATE, "A skill by its id, and a section by its function.")}
        ),
        example={},
    ),
)
