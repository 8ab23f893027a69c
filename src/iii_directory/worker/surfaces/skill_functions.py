"""Declare the functions that read skills, one by one, as lists, and as hosts load and install them."""

from __future__ import annotations

from typing import Final

from iii_directory.catalog import skill_replies
from iii_directory.worker.surfaces import declare

_TITLE: Final = "The front matter's title, else the first heading, else the id."
_TYPE: Final = declare.maybe("The front matter's type, such as index, how-to or reference; null without one.")
_FUNCTION_ID: Final = declare.maybe(
    "The function this skill documents: what to call. Null when it is about more than one, or none."
)
_PLACE: Final = "Where it is on the worker's machine; only with show_paths in the configuration."
_OF_SKILL: Final = "The skill, as in directory::skills::get."
_ROW: Final[declare.Fields] = {
    "id": declare.SKILL_ID,
    "title": _TITLE,
    "type?": _TYPE,
    "function_id?": _FUNCTION_ID,
    "description": (
        "The front matter's description, else the first paragraph. Empty when it was not asked for."
    ),
    "bytes": declare.count("The size of the file, or of the registered body, in bytes."),
    "modified_at": declare.MODIFIED_AT,
    "provenance": declare.PROVENANCE,
    "name?": "The front matter's name, where it is one of the Agent Skills standard.",
    "disable_model_invocation?": declare.flag("True where the skill is for people to call; else left out."),
    "root?": "Which folder it lies in: skills, local, or the last two names of a root; left out of others.",
    "connected?": declare.CONNECTED,
    "documents?": declare.count("How many documents the skill has. With kind skill."),
    "files?": declare.count("How many files the skill has. With kind skill."),
}
_PLAIN_ROW: Final[declare.Fields] = {**_ROW, "registered_at": declare.MODIFIED_AT, "source": declare.SOURCE}
_SKILL: Final[declare.Fields] = {
    "id": declare.SKILL_ID,
    "title": _TITLE,
    "type?": _TYPE,
    "function_id?": _FUNCTION_ID,
    "body": "The markdown after the front matter. A substitute says so in its first quoted line.",
    "modified_at": declare.MODIFIED_AT,
    "provenance?": declare.PROVENANCE,
    "skill?": declare.maybe("The id of the skill it is part of; null if it is not part of a skill."),
    "files?": declare.count("On the overview of a skill: how many files that has."),
    "front_matter?": declare.some_object("The other keys of the front matter."),
    "raw?": "The whole file, front matter included. With raw.",
    "sha256?": "The hash of its bytes, which a write of it can name as expected_sha256. With raw.",
    "path?": _PLACE,
}
_FILE: Final[declare.Fields] = {
    "path": "The path below the skill's folder.",
    "bytes": declare.count("Its size."),
    "media_type": "What kind of file its name says it is.",
    "executable": declare.flag("Whether it is meant to be run."),
    "sha256": declare.maybe(
        "The hash of its bytes, 64 hex digits; null where a skill is too large to be served whole."
    ),
    "document": declare.maybe("The id to read it by with directory::skills::get; null for other files."),
    "provenance": declare.PROVENANCE,
}
_PART: Final[declare.Fields] = {
    "id": declare.SKILL_ID,
    "path": "The path below the skill's folder.",
    "media_type": "What kind of file its name says it is.",
    "encoding": declare.choice("How content is written: text as it is.", "utf-8", "base64"),
    "content": "The part of the file that was asked for.",
    "bytes": declare.count("The size of the whole file."),
    "sha256": declare.maybe("The hash of the whole file; null of one larger than 16 MiB."),
    "next_offset": declare.maybe(
        declare.count("What to pass as offset for the next page; null on the last.")
    ),
    "provenance": declare.PROVENANCE,
}
_FETCH: Final[declare.Fields] = {
    "uri?": "One iii:// or skill:// URI, or a bare skill id.",
    "uris?": declare.texts("Several of them; wins over uri when it holds anything."),
}
_MIME: Final = declare.text(
    "text/markdown, application/json for a section that answers data, or what kind a file is."
)
_RESOURCE: Final[declare.Fields] = {
    "uri": "The iii:// address.",
    "name": "The title.",
    "description?": "What is there.",
    "mimeType": _MIME,
    "_meta?": declare.META,
}
_CONTENT: Final[declare.Fields] = {
    "uri": "The URI as it was given.",
    "mimeType": _MIME,
    "text?": "The content, where it is text.",
    "blob?": "The content as base64, where it is not text.",
    "_meta?": declare.META,
}
_TEMPLATE: Final[declare.Fields] = {
    "uriTemplate": "An RFC 6570 template.",
    "name": "What it leads to.",
    "description": "How to fill it.",
    "mimeType": _MIME,
}
READING: Final = (
    *declare.function(
        ids={"directory::skills::index": (declare.V08,)},
        reply=skill_replies.skills_index,
        description="One short markdown block per worker: title, first paragraph, and the call that reads "
        "its overview. Made for system prompts; start here. For single skills call directory::skills::list.",
        response={
            "body": (
                "The markdown, sorted by id. When it grows long it has one line per skill, with every "
                "description cut to the same length."
            ),
            "workers_count": declare.count("How many workers it covers."),
        },
    ),
    *declare.function(
        ids={"directory::skills::list": (declare.V08,)},
        reply=skill_replies.skills_list,
        description="List skills, one row each, without bodies. Narrow with search (substring of id, title "
        "and description), prefix (ids below a worker, its overview included) and type (exact). "
        "include_description: false makes rows light; kind: skill gives one row per skill. A row's id goes "
        "to directory::skills::get; its function_id is what to call. For one block per worker call "
        "directory::skills::index.",
        request={
            "search?": "Keep rows whose id, title or (while included) description has this, in any case.",
            "prefix?": "Keep ids that start with this, such as 'db/'; finds the overview of db too.",
            "type?": "Keep rows of exactly this type.",
            "include_description?": declare.flag("False leaves descriptions empty.", default=True),
            "kind?": declare.choice(
                "skill: one row per skill, with counts of its documents and files.", "skill", "document"
            ),
        },
        response={
            "skills": declare.table(_ROW, "One row per skill, sorted by id."),
            "next?": "What to call when search found nothing.",
            "hidden?": declare.count(
                "How many skills the setting visibility keeps out; left out where none."
            ),
        },
        example={"search": "greet"},
    ),
    *declare.function(
        ids={"directory::skills::hidden": ()},
        reply=skill_replies.skills_hidden,
        description="List the skills that the setting visibility keeps out of lists, the index and search. "
        "They are read by their names, with directory::skills::get.",
        response={"skills": declare.table(_ROW, "One row per skill, sorted by id.")},
    ),
    *declare.function(
        ids={"directory::skills::get": (declare.V08,)},
        handler=lambda services: services.reading.get,
        description="Read one skill: its markdown body with id, title, type, function_id and modified_at. A "
        "worker's overview goes by the worker's bare name. Forgiving: 'x/index', 'x/SKILL.md', 'x.md', "
        "'iii://x' and other case all find x, and a name that is only part of a worker's finds that worker. "
        "So is the path of a text file of a skill, such as pptx/scripts/thumbnail.py. A miss names close ids "
        "and what to call next. For teasers without bodies call "
        "directory::skills::list.",
        request={
            "id": (
                "The skill to read, as a list prints it. A trailing .md, a file name SKILL.md or "
                "SKILLS.md, an iii:// or skill:// in front and the path of a file as documents write it "
                "are understood; other schemes are not."
            ),
            "raw?": declare.flag("True adds the whole file and its hash to the reply.", default=False),
        },
        response=_SKILL,
        example={"id": "greeter"},
    ),
    *declare.function(
        ids={"directory::skills::files": ()},
        handler=lambda services: services.reading.files,
        description="Every file of a skill with its size, kind and hash: documents, scripts, references, "
        "assets. Ask with the id of the skill or of any of its pages. Read one with directory::skills::file.",
        request={"id": _OF_SKILL},
        response={
            "id": declare.SKILL_ID,
            "uri": "The address of its overview.",
            "provenance": declare.PROVENANCE,
            "files": declare.table(_FILE, "One row per file, sorted by path."),
            "path?": _PLACE,
        },
        example={"id": "iii-directory"},
    ),
    *declare.function(
        ids={"directory::skills::file": ()},
        handler=lambda services: services.reading.file,
        description="Read one file of a skill, text or binary, in pages: scripts and references that its "
        "documents speak of. directory::skills::files names them. To run a script, use the folder itself.",
        request={
            "id": _OF_SKILL,
            "path?": "The path below the skill's folder, such as scripts/thumbnail.py. Without it the id is "
            "that of the skill with the path behind it, such as pptx/scripts/thumbnail.py.",
            "offset?": declare.count("The byte to start at: next_offset of the page before."),
            "limit?": declare.count("At most so many bytes, from 1 to 262144, the default.") | {"minimum": 1},
        },
        response=_PART,
        example={"id": "iii-directory", "path": "index.md"},
    ),
    *declare.function(
        ids={"skill::fetch": (declare.V02, declare.V04)},
        handler=lambda services: services.reading.fetch,
        description="Follow iii:// links: pass uri for one, or uris for several in one round trip, and get "
        "one markdown text back. Works for skills (iii://resend/email), the index (iii://skills) and live "
        "sections (iii://fn/a/b).",
        request=_FETCH,
        # A bridge would promise structured output for what is plain text.
        response=None,
        metadata={"mcp.expose": True, "mcp": {"expose": True}},
        example={"uris": ["iii://greeter", "iii://fn/greeter/status"]},
    ),
    *declare.function(
        ids={
            "skills::fetch_skill": (declare.V02, declare.V04),
            "directory::skills::fetch-skill": (declare.V05,),
        },
        handler=lambda services: services.reading.fetch,
        description="Read one or more skills and get one markdown text back. Pass uri, or uris for several "
        "at once; each is an iii:// URI or a bare skill id. iii://directory/skills is the index, "
        "iii://fn/a/b the output of a::b.",
        request=_FETCH,
        response="One markdown text: a section per URI, headed by it, with a rule between them.",
        example={"uri": "iii://greeter"},
    ),
    *declare.function(
        ids={"skills::list": (declare.V02, declare.V04)},
        reply=skill_replies.plain_skills,
        description="List every skill, from the folder and from registrations, without bodies: id, title, "
        "type, function_id, description, bytes, registered_at, modified_at, source. Read one with "
        "directory::skills::get.",
        response={"skills": declare.table(_PLAIN_ROW, "One row per skill, sorted by id; never a body.")},
    ),
    *declare.function(
        ids={"skills::resources-list": (declare.V02,)},
        reply=skill_replies.resources,
        description="For MCP bridges: every skill at every depth as a resource, the index first.",
        response={"resources": declare.table(_RESOURCE, "The index, then every skill, sorted by id.")},
    ),
    *declare.function(
        ids={"skills::resources-read": (declare.V02,)},
        handler=lambda services: services.reading.resource,
        description="For MCP bridges: read one iii:// URI, a skill, the index or a section.",
        request={"uri": "The URI to read."},
        response={"contents": declare.table(_CONTENT, "One entry.")},
        example={"uri": "iii://greeter"},
    ),
    *declare.function(
        ids={"skills::resources-templates": (declare.V02,)},
        reply=skill_replies.resource_templates,
        description="For MCP bridges: the two templates of iii:// URIs.",
        response={
            "resourceTemplates": declare.table(_TEMPLATE, "A skill by its id, and a section by its function.")
        },
    ),
)


_MANIFEST: Final[declare.Fields] = {
    "uri": "The skill:// address of its SKILL.md.",
    "frontmatter": declare.some_object("The whole front matter."),
    "resources": declare.one_of_any(
        "One {uri, digest, size} for each file of the skill, SKILL.md first; 'dynamic' where a skill has "
        "more than 512 files or 16 MiB."
    ),
    "_meta": declare.META,
}
_HOST_RESOURCE: Final[declare.Fields] = {
    "uri": "The address to read it by.",
    "name": "The name of the skill, the title of the document, or the name of the file.",
    "description?": "What it is about.",
    "mimeType?": "What kind of file it is; inode/directory for a folder.",
    "size?": declare.count("Its size in bytes."),
    "annotations?": declare.some_object("For whom it is, and when it was last changed."),
    "_meta?": declare.some_object("The iii:// address of the skill, and its source."),
}
FOR_HOSTS: Final = (
    *declare.function(
        ids={"directory::skills::archive": ()},
        handler=lambda services: services.hosts.archive,
        description="Get a whole skill as one .tar.gz, to unpack and run its scripts. The same skill always "
        "has the same bytes. directory::skills::files names what is in it.",
        request={"id": _OF_SKILL},
        response={
            "id": declare.SKILL_ID,
            "content": "The archive, in base64.",
            "encoding": declare.choice("How content is written.", "base64"),
            "bytes": declare.count("The size of the archive."),
            "sha256": "The hash of the archive's bytes.",
        },
        example={"id": "iii-directory"},
    ),
    *declare.function(
        ids={"directory::mcp::skills": ()},
        handler=lambda services: services.hosts.skills,
        description="For MCP bridges: the skills in pages, each with its front matter and the digests of its "
        "files (SEP-2640); with uri, the one whose SKILL.md has that address.",
        request={
            "uri?": "The skill:// address of one SKILL.md.",
            "cursor?": "next_cursor of the page before.",
        },
        response={
            "skills?": declare.table(_MANIFEST, "One page of skills, in the order of their addresses."),
            "skill?": declare.obj(_MANIFEST, "The skill, where uri names one."),
            "next_cursor?": declare.maybe("What to pass for the next page; left out on the last."),
        },
    ),
    *declare.function(
        ids={"directory::mcp::folder": ()},
        handler=lambda services: services.hosts.folder,
        description="For MCP bridges: the files and folders right below a skill:// address.",
        request={"uri": "The address of a folder, such as skill://pdf."},
        response={"resources": declare.table(_HOST_RESOURCE, "One row each, in the order of their names.")},
        example={"uri": "skill://iii-directory"},
    ),
    *declare.function(
        ids={"directory::mcp::resources": ()},
        handler=lambda services: services.hosts.resources,
        description="For MCP bridges: the index, the SKILL.md of every skill, and every document.",
        response={"resources": declare.table(_HOST_RESOURCE, "The index, then skills, then documents.")},
    ),
    *declare.function(
        ids={"directory::mcp::index": ()},
        handler=lambda services: services.hosts.index,
        description="For MCP bridges: the skills of a well-known index, each with the digest of what it is "
        "installed from.",
        response={
            "skills": declare.table(
                {
                    "id": declare.SKILL_ID,
                    "path": "Its path behind skill://.",
                    "name": "Its name, which no other row has.",
                    "description": "Its description, of at most 1,024 characters.",
                    "type": declare.choice("What is installed.", "skill-md", "archive"),
                    "digest": "sha256: and the hash of the SKILL.md or of the archive.",
                },
                "One row per skill.",
            )
        },
    ),
)
