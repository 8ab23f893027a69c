"""What was found as the rows a caller gets, within a budget. Pure.

Descriptions are shortened before rows are dropped, the last rows of the last sections are dropped first, and
whole sections only where their best rows alone are too much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from iii_directory.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iii_directory.search.finding import Finding, Hit
    from iii_directory.search.request import Detail

Row = dict[str, Any]
DESCRIPTION_CHARS: Final = 160
TITLE_CHARS: Final = 80
# Of a request as much is said again as tells it from the others.
_REQUEST_CHARS: Final = 160
# A shorter description says too little to choose by; with less room than this for each, rows go.
_SHORT_DESCRIPTION_CHARS: Final = 40
SNIPPET_CHARS: Final = 120


def shortened(text: str, limit: int) -> str:
    """``text`` in one line, cut at a word where there is one."""
    line = one_line(text)
    if len(line) <= limit:
        return line
    cut = line[: max(limit - 1, 0)]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > limit // 2 else cut).rstrip(" ,;:.") + "…"


def snippet(body: str, words: Sequence[str]) -> str:
    """The piece of a body around the first line that has one of these words."""
    for line in body.splitlines():
        folded = line.casefold()
        at = min((folded.find(word) for word in words if word in folded), default=-1)
        if at >= 0:
            start = max(0, line.rfind(" ", 0, max(0, at - SNIPPET_CHARS // 3)) + 1)
            return shortened(line[start:].lstrip("#-* "), SNIPPET_CHARS)
    return ""


def row_of(hit: Hit, detail: Detail, read: Row) -> Row:
    """Return a hit as a caller sees it: a page of a skill with the skill's id and its own description."""
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
    return {**row, "read": read}


def result_of(finding: Finding, make_row: Callable[[Hit], Row], next_step: str) -> Row:
    """One request's part of the answer."""
    return {
        "capability": shortened(finding.request, _REQUEST_CHARS),
        "fits": finding.fits,
        "sections": [
            {"kind": section.kind, "hits": [make_row(hit) for hit in section.hits]}
            for section in finding.sections
        ],
        "nearest": [{"kind": hit.kind, **make_row(hit)} for hit in finding.nearest],
        "next": next_step,
    }


def within(results: Sequence[Row], budget: int) -> bool:
    """Cut results in place so that they take no more than ``budget`` bytes; whether anything had to go."""
    over = size_of(results) - budget
    if over <= 0:
        return False
    rows = [row for result in results for row in _rows(result) if row.get("description")]
    room = sum(len(row["description"].encode()) for row in rows) - over
    each = max(room // len(rows), 0) if rows else 0
    while over > 0 and each < _SHORT_DESCRIPTION_CHARS and _drop_row(results):
        over = size_of(results) - budget
        rows = [row for result in results for row in _rows(result) if row.get("description")]
        each = (sum(len(row["description"].encode()) for row in rows) - over) // max(len(rows), 1)
    if over > 0:
        _shorten(rows, sum(len(row["description"].encode()) for row in rows) - over)
    while size_of(results) > budget and _drop_kind(results):
        pass
    return True


def _shorten(rows: Sequence[Row], room: int) -> None:
    """Leave descriptions ``room`` bytes together: short ones stay whole, long ones share what is left."""
    waiting = sorted(rows, key=lambda row: len(row["description"].encode()))
    for at, row in enumerate(waiting):
        share = max(room // (len(waiting) - at), 0)
        row["description"] = _in_bytes(row["description"], share)
        room -= len(row["description"].encode())


def _in_bytes(text: str, limit: int) -> str:
    if len(text.encode()) <= limit:
        return text
    bytes_each = len(text.encode()) / len(text)
    chars = int(limit / bytes_each)
    while chars > 0 and len(shortened(text, chars).encode()) > limit:
        chars -= 1
    return shortened(text, chars) if chars > 1 else ""


def _rows(result: Row) -> list[Row]:
    return [hit for section in result["sections"] for hit in section["hits"]] + result["nearest"]


def _drop_row(results: Sequence[Row]) -> bool:
    """Drop the row that is missed least: the last of the longest list, of the last of those."""
    lists = [section["hits"] for result in results for section in result["sections"]]
    lists += [result["nearest"] for result in results]
    longest = max(map(len, lists), default=0)
    if longest > 1:
        [hits for hits in lists if len(hits) == longest][-1].pop()
    return longest > 1


def _drop_kind(results: Sequence[Row]) -> bool:
    """Where best rows alone are too much, the kind that fits least goes, of the request with most of them."""
    most = max((len(result["sections"]) for result in results), default=0)
    if most > 1:
        [result for result in results if len(result["sections"]) == most][-1]["sections"].pop()
    return most > 1


def size_of(answer: object) -> int:
    """How many bytes a part of an answer takes."""
    return len(orjson.dumps(answer))
