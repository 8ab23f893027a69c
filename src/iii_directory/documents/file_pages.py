"""Determine the media type of a skill's file and cut its content into pages. Pure."""

from __future__ import annotations

import base64
import codecs
from typing import Final, NamedTuple

OCTETS: Final = "application/octet-stream"
# Media types by file extension; the list of the operating system differs from machine to machine.
_TYPES: Final = {
    "bash": "text/x-shellscript",
    "bat": "text/plain",
    "c": "text/x-c",
    "cfg": "text/plain",
    "cjs": "text/javascript",
    "conf": "text/plain",
    "cpp": "text/x-c++",
    "css": "text/css",
    "csv": "text/csv",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "dot": "text/vnd.graphviz",
    "env": "text/plain",
    "example": "text/plain",
    "gif": "image/gif",
    "go": "text/x-go",
    "graphql": "application/graphql",
    "gz": "application/gzip",
    "h": "text/x-c",
    "htm": "text/html",
    "html": "text/html",
    "ico": "image/vnd.microsoft.icon",
    "ini": "text/plain",
    "ipynb": "application/json",
    "java": "text/x-java",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "jsx": "text/javascript",
    "kt": "text/x-kotlin",
    "log": "text/plain",
    "lua": "text/x-lua",
    "md": "text/markdown",
    "mdx": "text/markdown",
    "mjs": "text/javascript",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "otf": "font/otf",
    "pdf": "application/pdf",
    "php": "text/x-php",
    "pl": "text/x-perl",
    "png": "image/png",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "proto": "text/plain",
    "ps1": "text/x-powershell",
    "py": "text/x-python",
    "rb": "text/x-ruby",
    "rs": "text/x-rust",
    "rst": "text/x-rst",
    "sh": "text/x-shellscript",
    "sql": "application/sql",
    "svelte": "text/html",
    "svg": "image/svg+xml",
    "swift": "text/x-swift",
    "tar": "application/x-tar",
    "template": "text/plain",
    "tex": "text/x-tex",
    "tf": "text/plain",
    "tgz": "application/gzip",
    "toml": "application/toml",
    "ts": "text/typescript",
    "tsx": "text/typescript",
    "ttf": "font/ttf",
    "txt": "text/plain",
    "vue": "text/html",
    "wasm": "application/wasm",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "xsd": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
    "zsh": "text/x-shellscript",
}
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
