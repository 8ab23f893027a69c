"""The rows about skills as hosts load and install them."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.schema import (
    META,
    NOTHING,
    SKILL_ID,
    FunctionRow,
    count,
    maybe,
    obj,
    one_of_any,
    request,
    rows,
    text,
)

_MANIFEST: Final = obj(
    {
        "uri": text("The skill:// address of its SKILL.md."),
        "frontmatter": {"type": "object", "description": "The whole front matter."},
        "resources": one_of_any(
            "One {uri, digest, size} for each file of the skill, SKILL.md first; 'dynamic' where a skill has "
            "more than 512 files or 16 MiB."
        ),
        "_meta": META,
    }
)
_RESOURCE: Final = obj(
    {
        "uri": text("The address to read it by."),
        "name": text("The name of the skill, the title of the document, or the name of the file."),
        "description": text("What it is about."),
        "mimeType": text("What kind of file it is; inode/directory for a folder."),
        "size": count("Its size in bytes."),
        "annotations": {"type": "object", "description": "For whom it is, and when it was last changed."},
        "_meta": {
            "type": "object",
            "description": "The iii:// address of the skill, and its source.",
        },
    },
    optional=("description", "mimeType", "size", "annotations", "_meta"),
)
FUNCTIONS: Final = (
    FunctionRow(
        id="directory::skills::archive",
        generations=(),
        handler=lambda parts: parts.publishing.archive,
        description="Get a whole skill as one .tar.gz, to unpack and run its scripts. The same skill always "
        "has the same bytes. directory::skills::files names what is in it.",
        request=request({"id": text("The skill, as in directory::skills::get.")}, required=("id",)),
        response=obj(
            {
                "id": SKILL_ID,
                "content": text("The archive, in base64."),
                "encoding": {"enum": ["base64"], "description": "How content is written."},
                "bytes": count("The size of the archive."),
                "sha256": text("The hash of the archive's bytes."),
            }
        ),
        example={"id": "iii-directory"},
    ),
    FunctionRow(
        id="directory::mcp::skills",
        generations=(),
        handler=lambda parts: parts.publishing.skills,
        description="For MCP bridges: the skills in pages, each with its front matter and the digests of its "
        "files (SEP-2640); with uri, the one whose SKILL.md has that address.",
        request=request(
            {
                "uri": text("The skill:// address of one SKILL.md."),
                "cursor": text("next_cursor of the page before."),
            }
        ),
        response=obj(
            {
                "skills": rows(_MANIFEST, "One page of skills, in the order of their addresses."),
                "skill": {**_MANIFEST, "description": "The skill, where uri names one."},
                "next_cursor": maybe(text("What to pass for the next page; left out on the last.")),
            },
            optional=("skills", "skill", "next_cursor"),
        ),
        example={},
    ),
    FunctionRow(
        id="directory::mcp::folder",
        generations=(),
        handler=lambda parts: parts.publishing.folder,
        description="For MCP bridges: the files and folders right below a skill:// address.",
        request=request({"uri": text("The address of a folder, such as skill://pdf.")}, required=("uri",)),
        response=obj({"resources": rows(_RESOURCE, "One row each, in the order of their names.")}),
        example={"uri": "skill://iii-directory"},
    ),
    FunctionRow(
        id="directory::mcp::resources",
        generations=(),
        handler=lambda parts: parts.publishing.resources,
        description="For MCP bridges: the index, the SKILL.md of every skill, and every document.",
        request=NOTHING,
        response=obj({"resources": rows(_RESOURCE, "The index, then skills, then documents.")}),
        example={},
    ),
    FunctionRow(
        id="directory::mcp::index",
        generations=(),
        handler=lambda parts: parts.publishing.index,
        description="For MCP bridges: the skills of a well-known index, each with the digest of what it is "
        "installed from.",
        request=NOTHING,
        response=obj(
            {
                "skills": rows(
                    obj(
                        {
                            "id": SKILL_ID,
                            "path": text("Its path behind skill://."),
                            "name": text("Its name, which no other row has."),
                            "description": text("Its description, of at most 1,024 characters."),
                            "type": {"enum": ["skill-md", "archive"], "description": "What is installed."},
                            "digest": text("sha256: and the hash of the SKILL.md or of the archive."),
                        }
                    ),
                    "One row per skill.",
                )
            }
        ),
        example={},
    ),
)
