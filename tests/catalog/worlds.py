"""Strategies and helpers: worlds of files and registrations, and the snapshot of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hypothesis import strategies as st
from tests.catalog.slow_model import World

from iii_directory.catalog.origins import Visibility
from iii_directory.catalog.snapshot import EMPTY, Snapshot
from iii_directory.disk.install_record import By, Entry, RegistrySource
from iii_directory.documents.parse import parse_file, parse_registered_skill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.documents.model import ParsedFile

WHEN = "2025-01-31T12:00:00Z"

_FOLDERS = ["a", "b", "ab", "skills", "directory", "prompts", "index", "fn", "A", ".h", "x y", "iii"]
_NAMES = [
    "a.md",
    "b.md",
    "index.md",
    "SKILL.md",
    "SKILLS.md",
    "skills.md",
    "prompts.md",
    "fn.md",
    "a.txt",
    ".a.md",
    "Q.md",
]
PATHS = st.tuples(st.lists(st.sampled_from(_FOLDERS), max_size=3), st.sampled_from(_NAMES)).map(
    lambda parts: "/".join((*parts[0], parts[1]))
)
_BLOCKS = [
    "",
    "---\n---\n",
    "---\ntitle: From front matter\ntype: how-to\nfunction_id: db::query\n---\n",
    "---\ndescription: Described.\n---\n",
    "---\ndescription: Described.\nname: b\n---\n",
    "---\ndescription: 'Quoted: yes'\nname: Bad Name\n---\n",
    "---\ndescription: For people.\nname: a-b\ndisable-model-invocation: true\n---\n",
    "---\ntitle: [a]\ndescription: Kept.\n---\n",
    "---\ntitle: 7\ntype: ''\n---\n",
    "---\ntitle: [\n---\n",
    "---\ntitle: never closed\n",
    "---\r\ndescription: Windows.\r\n---\r\n",
]
_BODIES = [
    "",
    " \n",
    "# Heading\n\nFirst paragraph\nof two lines.\n\nMore.\n",
    "Text only.",
    "\r\n# Heading\r\n\r\nText.\r\n",
    "## Second level\n> quote\n\nAfter the quote.\n",
    "# \n\n#notaheading\n",
]
_RAW = [b"", b"\xff\xfe", b"\xef\xbb\xbf# Marked\n", b"\xef\xbb\xbf---\ndescription: Marked.\n---\nText\n"]
CONTENTS = st.one_of(
    st.tuples(st.sampled_from(_BLOCKS), st.sampled_from(_BODIES)).map(lambda parts: "".join(parts).encode()),
    st.sampled_from(_RAW),
)
IDS = st.lists(st.sampled_from(["a", "b", "ab", "index", "skills", "directory"]), min_size=1, max_size=3).map(
    "/".join
)
BODIES = st.sampled_from(
    [block + body for block in _BLOCKS[:10] for body in _BODIES if (block + body).strip()]
)
INSTALLED = st.none() | st.frozensets(st.sampled_from(["a", "b", "ab", "skills"]))
RECORDED = st.dictionaries(
    st.sampled_from(["a", "b", "ab", "iii"]),
    st.tuples(
        st.sampled_from(["call", "auto", "auto"]),
        st.sets(st.sampled_from(["a.md", "b.md", "index.md", "SKILL.md", "prompts/a.md", "a/b.md"])),
    ),
)
WORLDS = st.builds(
    World,
    files=st.dictionaries(PATHS, CONTENTS, max_size=12),
    registered=st.dictionaries(IDS, BODIES, max_size=4),
    installed=INSTALLED,
    recorded=RECORDED,
)


def recorded(by: By, files: Mapping[str, str]) -> Entry:
    """What the lock file says of a namespace."""
    return Entry(RegistrySource("w"), "1.0.0", "2026-01-01T00:00:00Z", by, files)


def parsed(files: Mapping[str, bytes | None]) -> dict[str, ParsedFile | None]:
    return {
        path: None if raw is None else parse_file(path, raw, len(raw), WHEN) for path, raw in files.items()
    }


def parsed_records(bodies: Mapping[str, str | None]) -> dict[str, ParsedFile | None]:
    return {
        f"skill:{key}": None if body is None else parse_registered_skill({"id": key, "skill": body}, WHEN)
        for key, body in bodies.items()
    }


def visibility(world: World) -> Visibility:
    records = {
        name: recorded(cast("By", by), dict.fromkeys(files, ""))
        for name, (by, files) in world.recorded.items()
    }
    return Visibility(world.installed, records)


def snapshot_of(world: World) -> Snapshot:
    """Built at once."""
    return EMPTY.changed(parsed(world.files), parsed_records(world.registered), visibility(world))


def of_files(**texts: str) -> Snapshot:
    """A snapshot of files, given as ``path_with__for_slash="text"``."""
    files = {f"{name.replace('__', '/')}.md": text.encode() for name, text in texts.items()}
    return EMPTY.changed(parsed(files))


def of_paths(*paths: str) -> Snapshot:
    """A snapshot of files with a little text each."""
    return EMPTY.changed(parsed({path: f"# {path}\n\nAbout {path}.\n".encode() for path in paths}))
