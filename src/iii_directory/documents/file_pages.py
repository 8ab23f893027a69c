"""Determine the media type of a skill's file and cut its content into pages. Pure."""

from __future__ import annotations

import base64
import codecs
from typing import Final, NamedTuple

OCTETS: Final = "application/octet-stream"
# File extensions by media type; the list of the operating system differs from machine to machine.
_ENDINGS: Final = {
    "application/graphql": "graphql",
    "application/gzip": "gz tgz",
    "application/json": "ipynb json",
    "application/jsonl": "jsonl",
    "application/pdf": "pdf",
    "application/sql": "sql",
    "application/toml": "toml",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/wasm": "wasm",
    "application/x-tar": "tar",
    "application/xml": "xml xsd",
    "application/yaml": "yaml yml",
    "application/zip": "zip",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "font/otf": "otf",
    "font/ttf": "ttf",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "image/gif": "gif",
    "image/jpeg": "jpeg jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/vnd.microsoft.icon": "ico",
    "image/webp": "webp",
    "text/css": "css",
    "text/csv": "csv",
    "text/html": "htm html svelte vue",
    "text/javascript": "cjs js jsx mjs",
    "text/markdown": "md mdx",
    "text/plain": "bat cfg conf env example ini log proto template tf txt",
    "text/typescript": "ts tsx",
    "text/vnd.graphviz": "dot",
    "text/x-c": "c h",
    "text/x-c++": "cpp",
    "text/x-go": "go",
    "text/x-java": "java",
    "text/x-kotlin": "kt",
    "text/x-lua": "lua",
    "text/x-perl": "pl",
    "text/x-php": "php",
    "text/x-powershell": "ps1",
    "text/x-python": "py",
    "text/x-rst": "rst",
    "text/x-ruby": "rb",
    "text/x-rust": "rs",
    "text/x-shellscript": "bash sh zsh",
    "text/x-swift": "swift",
    "text/x-tex": "tex",
    "video/mp4": "mp4",
    "video/webm": "webm",
}
_TYPES: Final = {ending: type_ for type_, endings in _ENDINGS.items() for ending in endings.split()}
_UTF_8: Final = codecs.getincrementaldecoder("utf-8")
LONGEST_CHARACTER: Final = 4
"""The bytes of the longest character in UTF-8; a page must have room for one."""


class FilePart(NamedTuple):
    """Some bytes of a file with the size, digest and time of the whole file at that moment."""

    raw: bytes
    size: int
    sha256: str | None
    """None for a file larger than a whole skill may be."""
    modified_at: str


class FilePage(NamedTuple):
    """A part of a file as it is sent in a reply."""

    encoding: str
    """``utf-8`` for text, else ``base64``."""
    content: str
    taken: int
    """The number of bytes of the file that the part covers."""


def media_type(path: str) -> str:
    """Return the media type for a file name; a name like LICENSE, in capitals without extension, is text."""
    name = path.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem:
        return "text/plain" if name.isupper() else OCTETS
    return _TYPES.get(ending.lower(), OCTETS)


def text_of(raw: bytes) -> str | None:
    """Decode bytes as text, or return None if they are binary."""
    if b"\0" in raw:
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def page_of(part: bytes, *, is_last: bool) -> FilePage:
    """Make a page of a part of a file: text cut between characters, or base64 for binary content."""
    decoder = _UTF_8()
    try:
        text = None if b"\0" in part else decoder.decode(part, final=is_last)
    except UnicodeDecodeError:
        text = None
    if text or not part:
        # The decoder holds the bytes of a character that the next page completes.
        return FilePage("utf-8", text or "", len(part) - len(decoder.getstate()[0]))
    return FilePage("base64", base64.b64encode(part).decode("ascii"), len(part))
