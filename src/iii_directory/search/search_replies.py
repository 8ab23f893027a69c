"""Write the replies of ``directory::search`` and ``directory::search_functions``, within a budget. Pure.

Descriptions are shortened before rows are dropped, the last rows of the longest sections are dropped first,
and whole sections only where their best rows alone are too much. The worker gives these replies on an engine,
and the command line without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from iii_directory.documents.payload_fields import optional_texts
from iii_directory.errors import invalid_field
from iii_directory.limits import MAX_QUESTION_CHARS
from iii_directory.search.finding import find
from iii_directory.search.search_request import SearchRequest
from iii_directory.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from iii_directory.search.finding import Hit, SearchResult
    from iii_directory.search.library import Library
    from iii_directory.search.search_request import Detail, Kind

    Payload = Mapping[str, Any]

Row = dict[str, Any]
DESCRIPTION_CHARS: Final = 160
TITLE_CHARS: Final = 80
SNIPPET_CHARS: Final = 120
# A request is repeated as far as tells it from the others.
_REQUEST_CHARS: Final = 160
# Descriptions are cut to these, one after another. A shorter one says too little to choose by: then rows go.
_SHORTER_CHARS: Final = (130, 100, 80, 60, 40)
# The times are not known yet when a reply is made to fit its budget; this is as long as one can be.
_LONGEST_MS: Final = 99999.9

MODE: Final = "hybrid"
"""How results are ranked: by words and by meaning together."""
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


def found_by(library: Library, request: SearchRequest, capability: str) -> SearchResult:
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


def reply(library: Library, request: SearchRequest, found: Sequence[SearchResult]) -> Row:
    """Write the reply of ``directory::search``, within its budget; the caller adds the time it took."""

    def make_row(hit: Hit) -> Row:
        row = row_of(hit, request.detail)
        if hit.only_body and request.detail != "ids":
            row["snippet"] = snippet(library.body(hit.kind, hit.inside or hit.document.id), hit.words)
        if hit.kind == "function" and request.detail == "full":
            row["schema"] = library.schema(hit.document.id)
        return row

    results = [result_of(one, make_row) for one in found]
    answer: Row = {
        "mode": MODE,
        "complete": library.complete,
        "results": results,
        "corrected": {typed: taken for one in found for typed, taken in one.corrected.items()},
        "truncated": any(one.unread for one in found),
        "latency_ms": _LONGEST_MS,
    }
    around = len(orjson.dumps(answer)) - len(orjson.dumps(results))
    if within(results, request.budget - around):
        answer["truncated"] = True
    return answer


def result_of(found: SearchResult, make_row: Callable[[Hit], Row]) -> Row:
    """Write one request's part of the answer."""
    steps = [_READ_PART] if found.unread else []
    return {
        "capability": shortened(found.request, _REQUEST_CHARS),
        "fits": found.fits,
        "sections": [
            {"kind": section.kind, "hits": [make_row(hit) for hit in section.hits]}
            for section in found.sections
        ],
        "nearest": [{"kind": hit.kind, **make_row(hit)} for hit in found.nearest],
        "next": "; ".join(steps if found.fits else [*steps, _NOTHING_FITS]),
    }


def row_of(hit: Hit, detail: Detail) -> Row:
    """Write a hit as a caller sees it: a page of a skill has the skill's id and its own description."""
    row: Row = {"id": hit.document.id}
    if hit.document.provenance is not None:
        whole = detail == "full"
        row["provenance"] = hit.document.provenance.as_json() if whole else hit.document.provenance.brief()
    if detail != "ids":
        row |= {
            "title": shortened(hit.page.title, TITLE_CHARS),
            "description": shortened(hit.page.description, DESCRIPTION_CHARS),
            "worker": hit.document.worker or None,
        }
    row |= {"why": hit.why, "confidence": "high" if hit.high else "fair"}
    if hit.inside:
        row["in"] = hit.inside
    if hit.document.switched_off:
        row["callable"] = False
    function, field = _READS[hit.kind]
    # Of a skill the document that matched is read, which may be a page of it.
    return {**row, "read": {"function": function, "payload": {field: hit.inside or hit.document.id}}}


def shortened(text: str, limit: int) -> str:
    """Return ``text`` in one line, cut at a word where there is one."""
    line = one_line(text)
    if len(line) <= limit:
        return line
    cut = line[: max(limit - 1, 0)]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > limit // 2 else cut).rstrip(" ,;:.") + "…"


def snippet(body: str, words: Sequence[str]) -> str:
    """Return the piece of a body around the first line that has one of these words."""
    for line in body.splitlines():
        folded = line.casefold()
        at = min((folded.find(word) for word in words if word in folded), default=-1)
        if at >= 0:
            start = max(0, line.rfind(" ", 0, max(0, at - SNIPPET_CHARS // 3)) + 1)
            return shortened(line[start:].lstrip("#-* "), SNIPPET_CHARS)
    return ""


def within(results: Sequence[Row], budget: int) -> bool:
    """Cut results in place so that they take no more than ``budget`` bytes; return whether it was needed."""

    def size(value: object) -> int:
        return len(orjson.dumps(value))

    if (excess := size(results) - budget) <= 0:
        return False
    lists = [section["hits"] for result in results for section in result["sections"]]
    lists += [result["nearest"] for result in results]
    for limit in _SHORTER_CHARS:
        for row in (row for rows in lists for row in rows if row.get("description")):
            row["description"] = shortened(row["description"], limit)
        if (excess := size(results) - budget) <= 0:
            return True
    # From here on only what goes is measured: there may be a thousand rows. A comma goes with each.
    # The last row of the longest list is missed least, of the last of those.
    while excess > 0 and (longest := max(map(len, lists), default=0)) > 1:
        excess -= size([rows for rows in lists if len(rows) == longest][-1].pop()) + 1
    for row in (row for rows in lists for row in rows):
        # Of best rows alone the description says least: the id and the title stay.
        if excess > 0 and row.get("description"):
            excess -= size(row["description"]) - size("")
            row["description"] = ""
    # Then the kind that fits least goes, of the request with most of them.
    while excess > 0 and (most := max((len(one["sections"]) for one in results), default=0)) > 1:
        excess -= size([one for one in results if len(one["sections"]) == most][-1]["sections"].pop()) + 1
    return True


# The reply in the shape of the reference worker, from the same ranking

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


def parse_functions_request(payload: Payload) -> SearchRequest:
    """Read the payload of ``directory::search_functions``."""
    asked = optional_texts(payload, "capabilities")
    if asked is None or not 1 <= len(asked) <= _MOST_WORKERS or not all(text.strip() for text in asked):
        raise invalid_field("capabilities", f"a list of 1 to {_MOST_WORKERS} strings of words")
    return SearchRequest(asked, _LANES, limit=_MOST_FUNCTIONS)


def functions_reply(found: Sequence[SearchResult]) -> Row:
    """Write functions by their workers, and beside them skills, triggers and workers to install."""
    workers: dict[str, list[Row]] = {}
    functions = [
        hit.document
        for hit in _in_turn(found, "function")
        if not hit.document.id.startswith("engine::") and hit.document.id != _ITSELF
    ]
    for document in functions[:_MOST_FUNCTIONS]:
        namespace = document.id.partition("::")[0]
        if namespace in workers or len(workers) < _MOST_WORKERS:
            said = shortened(document.description, DESCRIPTION_CHARS)
            workers.setdefault(namespace, []).append({"function_id": document.id, "description": said})
    installable: list[Row] = [
        {
            "name": hit.document.id,
            "description": shortened(hit.document.description, DESCRIPTION_CHARS),
            "functions": [],
            "install": {
                "function": "directory::skills::download_from_registry",
                "payload": {"worker": hit.document.id},
            },
        }
        for hit in _in_turn(found, "installable")[:_MOST_INSTALLABLE]
    ]
    return {
        "guidance": _GUIDANCE if workers else _GUIDANCE_NOTHING,
        "workers": [{"namespace": name, "functions": rows} for name, rows in workers.items()],
        "skills": [_side_row(hit) for hit in _in_turn(found, "skill")[:_MOST_SIDE_ROWS]],
        "triggers": [_side_row(hit) for hit in _in_turn(found, "trigger")[:_MOST_SIDE_ROWS]],
        **({"installable": installable} if installable else {}),
        "search_mode": MODE,
    }


def _in_turn(found: Sequence[SearchResult], kind: Kind) -> list[Hit]:
    """Return the hits of a kind, each once: the best of each capability, then the second, and so on."""
    lists = [section.hits for one in found for section in one.sections if section.kind == kind]
    turns = (hits[at] for at in range(_MOST_FUNCTIONS) for hits in lists if at < len(hits))
    return list({hit.document.id: hit for hit in turns}.values())


def _side_row(hit: Hit) -> Row:
    document = hit.document
    return {
        "id": document.id,
        "title": document.title,
        "description": shortened(document.description, DESCRIPTION_CHARS),
        **({} if document.provenance is None else {"provenance": document.provenance.brief()}),
    }
