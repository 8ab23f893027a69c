"""Pack a skill for others to install: its SKILL.md, an archive of all its files, and an index of both.

The index is that of version 0.2.0 of the discovery draft for agent skills. Everything here depends on the
bytes of the skill alone, so the same skill has the same digest wherever it is served.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import unicodedata
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.documents import frontmatter
from iii_directory.documents.ids import OVERVIEW
from iii_directory.documents.parse import document_of
from iii_directory.limits import MAX_SKILL_DESCRIPTION_CHARS, MAX_SKILL_NAME_CHARS
from iii_directory.text import cut, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WELL_KNOWN: Final = "/.well-known/agent-skills/"
ARCHIVE_SUFFIX: Final = ".tar.gz"
_SCHEMA: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_NO_FENCE: Final = r"\u002d\u002d\u002d"
"""Three hyphens inside a JSON string that no reader takes for a fence."""
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")
# With the dots that stand for the rest it is as long as the standard allows.
DESCRIPTION_CHARS: Final = MAX_SKILL_DESCRIPTION_CHARS - 3


class PackedFile(NamedTuple):
    """A file of a skill, as an archive has it."""

    raw: bytes
    executable: bool = False


def slug(text: str) -> str:
    """Make a name of the Agent Skills standard out of any text."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return _NOT_IN_NAMES.sub("-", folded).strip("-")[:MAX_SKILL_NAME_CHARS].strip("-")


def overview_of(raw: bytes, name: str, description: str) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of a skill's SKILL.md and its front matter.

    A document whose front matter has this name and a description stays as it is. For any other a SKILL.md is
    generated: front matter with the two keys, and then the body.
    """
    text = raw.decode("utf-8", "replace")
    values, problem, _ = frontmatter.of_text(text)
    said = values.get("description")
    if problem is None and values.get("name") == name and isinstance(said, str) and said.strip():
        return raw, values
    made = {"name": name, "description": cut(visible(description), DESCRIPTION_CHARS)}
    # Quoted so that every YAML parser reads it alike and no reader takes it for a fence.
    written = {key: json.dumps(value, ensure_ascii=False) for key, value in made.items()}
    lines = (f"{key}: {value.replace('---', _NO_FENCE)}" for key, value in written.items())
    body = document_of(text).body
    return "\n".join(("---", *lines, "---", body)).encode(errors="surrogatepass"), made


def packed(files: Mapping[str, PackedFile]) -> bytes:
    """Pack the files of a skill into a ``.tar.gz`` that depends on their names, bytes and modes alone."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, file in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(file.raw)
            member.mode = 0o755 if file.executable else 0o644
            archive.addfile(member, io.BytesIO(file.raw))
    return gzip.compress(made.getvalue(), mtime=0)


def index_document(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Write the index; installers silently drop entries without a valid name, description or digest."""
    skills = [
        {
            "name": row["name"],
            "type": row["type"],
            "description": row["description"],
            "url": row["name"] + (ARCHIVE_SUFFIX if row["type"] == "archive" else f"/{OVERVIEW}"),
            "digest": row["digest"],
        }
        for row in rows
    ]
    return json.dumps({"$schema": _SCHEMA, "skills": skills}, ensure_ascii=False).encode()
