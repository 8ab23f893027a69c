"""``directory::search`` and ``directory::search_functions``: from a payload to a reply. Pure.

The worker answers with them on an engine, and the command line where there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from iii_directory.documents.payload_fields import optional_texts
from iii_directory.errors import invalid_field
from iii_directory.limits import (
    MAX_QUESTION_CHARS,
)
from iii_directory.search.answers import result_of, row_of, shortened, size_of, snippet, within
from iii_directory.search.finding import Finding, Hit, find
from iii_directory.search.request import Request
from iii_directory.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.search.index import Index
    from iii_directory.search.request import Detail, Kind

    Payload = Mapping[str, Any]
    Row = dict[str, Any]

MODE: Final = "hybrid"
"""How results are ranked: by words and by meaning together."""
# Stands for the time a search takes until that is known, and is as long as it can be.
_LONGEST_MS: Final = 99999.9

_READS: Final[Mapping[Kind, tuple[str, str]]] = {
    "skill": ("directory::skills::get", "id"),
    "prompt": ("directory::prompts::get", "name"),
    "function": ("directory::engine::functions::info", "function_id"),
    "trigger": ("directory::registered-trigger-info", "id"),
    "worker": ("directory::worker-info", "name"),
    "installable": ("directory::registry::workers::info", "name"),
}
"""What to call about a hit of each kind, and the field its id goes into."""
_NOTHING_FITS: Final = (
    "nothing fits: ask in other words or by a part of a name; directory::registry::workers::list {search} "
    "has workers to install, directory::skills::index one line per worker"
)
_READ_PART: Final = f"only the first {MAX_QUESTION_CHARS} characters of it were read"


class Library(Protocol):
    """What can be searched at one moment."""

    @property
    def indexes(self) -> Mapping[Kind, Index]: ...

    @property
    def complete(self) -> bool:
        """Whether the bodies of all documents have been taken in."""
        ...

    def exactly(self, kind: Kind, typed: str) -> str | None:
        """The id that somebody wrote in another way, such as an address or a path."""
        ...

    def skill_of(self, document_id: str) -> str:
        """The skill that a document is part of: itself, if it is of none."""
        ...

    def body(self, kind: Kind, document_id: str) -> str:
        """The body of a document; empty where there is none."""
        ...

    def schema(self, function_id: str) -> object:
        """The schema of a function's payload."""
        ...


def found_by(library: Library, request: Request, capability: str) -> Finding:
    """Return what one capability of a request finds."""
    filtered = request.worker is not None or request.prefix is not None
    return find(
        library.indexes,
        capability,
        kinds=request.kinds,
        limit=request.limit,
        shown=request.shows if filtered else None,
        exactly=library.exactly,
        skill_of=library.skill_of,
    )


def reply(library: Library, request: Request, findings: Sequence[Finding]) -> Row:
    """``directory::search``, no longer than its budget; the time it took is for the caller to say."""

    def make_row(hit: Hit) -> Row:
        return _row(library, request.detail, hit)

    results = [result_of(finding, make_row, _next(finding)) for finding in findings]
    answer: Row = {
        "mode": MODE,
        "complete": library.complete,
        "results": results,
        "corrected": {typed: taken for finding in findings for typed, taken in finding.corrected.items()},
        "truncated": any(finding.unread for finding in findings),
        "latency_ms": _LONGEST_MS,
    }
    around = size_of(answer) - size_of(results)
    if within(results, request.budget - around):
        answer["truncated"] = True
    return answer


def _row(library: Library, detail: Detail, hit: Hit) -> Row:
    row = row_of(hit, detail, read_call(hit))
    if hit.only_body and detail != "ids":
        row["snippet"] = snippet(library.body(hit.kind, hit.inside or hit.document.id), hit.words)
    if hit.kind == "function" and detail == "full":
        row["schema"] = library.schema(hit.document.id)
    return row


def read_call(hit: Hit) -> Row:
    """The call that reads what was found: of a skill the document of it that matched."""
    function, field = _READS[hit.kind]
    return {"function": function, "payload": {field: hit.inside or hit.document.id}}


def _next(finding: Finding) -> str:
    steps = [_READ_PART] if finding.unread else []
    return "; ".join(steps if finding.fits else [*steps, _NOTHING_FITS])


# The reference's door to the same ranking

_MOST_WORKERS: Final = 6
_MOST_FUNCTIONS: Final = 12
_MOST_INSTALLABLE: Final = 2
_MOST_SIDE_ROWS: Final = 5
_LANES: Final[tuple[Kind, ...]] = ("function", "skill", "trigger", "installable")
_ITSELF: Final = "directory::search_functions"
_GUIDANCE: Final = (
    "Read the schemas of what you want to call in one go: engine::functions::info "
    '{"function_ids": [...]}. Read a skill with directory::skills::get {"id": ...}.'
)
_GUIDANCE_NOTHING: Final = (
    "Nothing on this engine fits. Do it yourself if you can, or look for a worker to install with "
    "directory::registry::workers::list."
)


def parse_functions_request(payload: Payload) -> Request:
    """What ``directory::search_functions`` is asked."""
    asked = optional_texts(payload, "capabilities")
    if asked is None or not 1 <= len(asked) <= _MOST_WORKERS or not all(text.strip() for text in asked):
        raise invalid_field("capabilities", f"a list of 1 to {_MOST_WORKERS} strings of words")
    return Request(asked, _LANES, limit=_MOST_FUNCTIONS)


def functions_reply(findings: Sequence[Finding]) -> Row:
    """The reference's shape: functions by their workers, and beside them skills, triggers and workers."""
    functions = [hit for hit in _in_turn(findings, "function") if not _is_left_out(hit.document.id)]
    workers: dict[str, list[Row]] = {}
    for hit in functions[:_MOST_FUNCTIONS]:
        namespace = hit.document.id.partition("::")[0]
        if namespace in workers or len(workers) < _MOST_WORKERS:
            said = shortened(hit.document.description, 160)
            workers.setdefault(namespace, []).append({"function_id": hit.document.id, "description": said})
    installable = [_published(hit) for hit in _in_turn(findings, "installable")[:_MOST_INSTALLABLE]]
    return {
        "guidance": _GUIDANCE if workers else _GUIDANCE_NOTHING,
        "workers": [{"namespace": name, "functions": rows} for name, rows in workers.items()],
        "skills": [_side_row(hit) for hit in _in_turn(findings, "skill")[:_MOST_SIDE_ROWS]],
        "triggers": [_side_row(hit) for hit in _in_turn(findings, "trigger")[:_MOST_SIDE_ROWS]],
        **({"installable": installable} if installable else {}),
        "search_mode": MODE,
    }


def _in_turn(findings: Sequence[Finding], kind: Kind) -> list[Hit]:
    """The hits of a kind: the best of each capability, then the second of each, and so on, each once."""
    lists = [section.hits for finding in findings for section in finding.sections if section.kind == kind]
    turns = (hits[at] for at in range(_MOST_FUNCTIONS) for hits in lists if at < len(hits))
    return list({hit.document.id: hit for hit in turns}.values())


def _is_left_out(function_id: str) -> bool:
    return function_id.startswith("engine::") or function_id == _ITSELF


def _side_row(hit: Hit) -> Row:
    document = hit.document
    return {
        "id": document.id,
        "title": document.title,
        "description": shortened(one_line(document.description), 160),
        **({} if document.provenance is None else {"provenance": document.provenance.brief()}),
    }


def _published(hit: Hit) -> Row:
    return {
        "name": hit.document.id,
        "description": shortened(hit.document.description, 160),
        "functions": [],
        "install": {
            "function": "directory::skills::download_from_registry",
            "payload": {"worker": hit.document.id},
        },
    }
