"""Search a folder without an engine, with an index that is kept on disk beside the data.

Indexing takes a millisecond or two for each document, and a command that searches once should not do it
again. The file is only a cache: it is written whole under another name and then renamed, and it is ignored
when it is damaged, of another version, not this user's alone, or cannot be read or written. Documents are
compared by what is in them, and only those that changed are indexed again.
"""

from __future__ import annotations

import gc
import hashlib
import os
import stat
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from iii_directory import __version__
from iii_directory.disk.files import POSIX, closing_fd
from iii_directory.disk.safe_open import open_directory, read_regular
from iii_directory.limits import LEAST_KEPT_DOCUMENTS, MAX_KEPT_INDEX_BYTES
from iii_directory.search.fields import Document
from iii_directory.search.index import Index
from iii_directory.search.library import Library, document_kinds, records_of
from iii_directory.search.search_replies import found_by, reply
from iii_directory.search.search_request import parse_request
from iii_directory.search.words import thesaurus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from iii_directory.catalog.view import CatalogueView
    from iii_directory.search.library import IndexedKind

FILE_NAME: Final = "search-index"
_NEW_NAME: Final = "search-index.new"
# To be raised whenever the words or the vector of a document, or the layout of the file, change.
_FORMAT: Final = 2
_MADE_BY: Final = f"iii-directory {_FORMAT} {__version__}".encode()[:32].ljust(32, b"\0")
_HEADER: Final = struct.Struct("<32sII")
"""What the file is, its checksum, and the number of its blocks."""
_BLOCKS: Final = 13
"""The blocks of one index: its documents, and what `Index.blocks` returns."""
_KEY_CHARS: Final = 32


def search_documents(
    view: CatalogueView, payload: Mapping[str, Any], data: Path | None = None
) -> dict[str, Any]:
    """Answer ``directory::search`` from the documents of a view."""
    started = time.perf_counter()
    request = parse_request(payload)
    library = library_of(view, data)
    found = [found_by(library, request, capability) for capability in request.capabilities]
    return {**reply(library, request, found), "latency_ms": round((time.perf_counter() - started) * 1000, 1)}


def library_of(view: CatalogueView, data: Path | None = None) -> Library:
    """Index all documents of a view, with the help of the index that is kept in the folder ``data``."""
    # Indexing frees little, and collections would scan all that was loaded, for a third of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return Library(_filled(view, data), view)
    finally:
        if was_enabled:
            # Freezing and unfreezing makes everything old without a look at it, which `enable` alone would
            # cause at once, with all that was made meanwhile.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def _filled(view: CatalogueView, data: Path | None) -> tuple[IndexedKind, IndexedKind]:
    """Index all documents of a view, and keep the index where it changed."""
    kept = [] if data is None else _read(data)
    kinds, is_same, keys_of = document_kinds(), bool(kept), list[dict[str, str]]()
    for at, (kind, records) in enumerate(zip(kinds, records_of(view), strict=True)):
        found = {key: kind.document_of(key, record) for key, record in records.items()}
        keys = {key: _content_key(view, records[key].path, document) for key, document in found.items()}
        keys_of.append(keys)
        if kept:
            rows = str(kept[at * _BLOCKS], "utf-8").splitlines()
            known = {row[_KEY_CHARS:]: row[:_KEY_CHARS] for row in rows}
            with suppress(ValueError):
                blocks = kept[at * _BLOCKS + 1 : (at + 1) * _BLOCKS]
                listed = [found.get(key) or Document(key) for key in known]
                kind.index = Index.restored(thesaurus(), blocks, listed)
            same = {key for key in kind.index.numbers if known[key] == keys.get(key)}
            for key in kind.index.numbers.keys() - same:
                kind.index.drop(key)
            kind.known |= {key: records[key] for key in same}
            is_same = is_same and len(same) == len(known) == len(records)
        for key in records.keys() - kind.known.keys():
            kind.put(key, records[key], view)
    if data is not None and not is_same and sum(map(len, keys_of)) >= LEAST_KEPT_DOCUMENTS:
        _write(data, kinds, keys_of)
    return kinds


def _content_key(view: CatalogueView, path: str | None, document: Document) -> str:
    """Return a key that differs when anything differs that is indexed of a document."""
    file = None if path is None else view.snapshot.files.get(path)
    digest = b"" if file is None or file.digest is None else file.digest
    # Settings may leave out a description that is in the file, so the hash of the file alone is not enough.
    shown = "\0".join((document.title, document.description, *document.keywords, "", *document.arguments))
    return hashlib.sha256(digest + shown.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_CHARS]


def _read(data: Path) -> list[memoryview]:
    """Return the blocks of the kept file, none if it cannot be used."""
    try:
        with closing_fd(open_directory(str(data))) as folder:
            state, raw = read_regular(folder, FILE_NAME, MAX_KEPT_INDEX_BYTES)
    except OSError:
        return []
    # A file that came with a cloned project is readable by others: what it says may be anything.
    if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o077 or len(raw) < _HEADER.size:
        return []
    made_by, checksum, count = _HEADER.unpack_from(raw)
    content = memoryview(raw)[_HEADER.size :]
    if made_by != _MADE_BY or count != 2 * _BLOCKS or crc32(content) != checksum:
        return []
    at = 8 * count
    blocks: list[memoryview] = []
    for length in struct.unpack_from(f"<{count}Q", content):
        blocks.append(content[at : at + length])
        at += length
    return blocks


def _write(data: Path, kinds: tuple[IndexedKind, IndexedKind], keys_of: Sequence[Mapping[str, str]]) -> None:
    """Write the file for the next command; if that is not possible, the next command indexes again."""
    blocks: list[bytes] = []
    for kind, keys in zip(kinds, keys_of, strict=True):
        rows = [f"{keys[key]}{key}" for key in kind.index.numbers]
        if any(len(row.splitlines()) != 1 for row in rows):
            return
        blocks += ["\n".join(rows).encode("utf-8", "surrogatepass"), *kind.index.blocks()]
    content = struct.pack(f"<{len(blocks)}Q", *map(len, blocks)) + b"".join(blocks)
    if len(content) + _HEADER.size > MAX_KEPT_INDEX_BYTES:
        return
    header = _HEADER.pack(_MADE_BY, crc32(content), len(blocks))
    with suppress(OSError):
        # A hidden folder is ours to make; another one would be seen among the skills.
        if data.name.startswith(".") and not os.path.lexists(data):
            os.mkdir(data, 0o700)
        with closing_fd(open_directory(str(data))) as folder:
            with suppress(FileNotFoundError):
                POSIX.unlink(_NEW_NAME, folder)
            with closing_fd(POSIX.create(_NEW_NAME, folder, 0o600)) as opened:
                POSIX.write(opened, header)
                POSIX.write(opened, content)
            POSIX.rename(_NEW_NAME, folder, FILE_NAME, folder)
