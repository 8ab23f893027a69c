"""What the tests search in, and how it is measured whether the right thing was found."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from iii_directory.search.fields import Document
from iii_directory.search.finding import Hit, SearchResult, find
from iii_directory.search.index import Index
from iii_directory.search.words import thesaurus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from iii_directory.search.search_request import Kind

DATA = Path(__file__).parent / "data"


class Case(NamedTuple):
    request: str
    expect: str
    """An id, or ``nothing``."""


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


@cache
def read_yaml(name: str) -> Any:
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def index_of(rows: Iterable[tuple[Document, str]]) -> Index:
    index = Index(thesaurus())
    for document, body in rows:
        index.put(document, body)
    return index


def public_documents(overrides: Mapping[str, str] | None = None) -> list[Document]:
    """The public functions but the engine's own and search itself, as the cases have it."""
    changed = overrides or {}
    return [
        Document(
            row["function_id"],
            description=changed.get(row["function_id"], row["description"] or ""),
            worker=row["function_id"].partition("::")[0],
            arguments=tuple(row["args"]),
        )
        for row in lines("catalog.jsonl")
        if not row["function_id"].startswith("engine::")
        and row["function_id"] != "directory::search_functions"
    ]


@cache
def public() -> Index:
    return index_of((document, "") for document in public_documents())


def documents(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Document, str]]:
    return [
        (
            Document(
                row["id"],
                title=row.get("title", ""),
                description=row.get("description", ""),
                worker=row["id"].replace("::", "/").partition("/")[0],
                keywords=tuple(row.get("keywords", ())),
                arguments=tuple(row.get("arguments", ())),
            ),
            row.get("body", ""),
        )
        for row in rows
    ]


@cache
def own(kind: str) -> Index:
    """The skills or functions that were written for these tests."""
    return index_of(documents(read_yaml(f"{kind}.yaml")))


@cache
def all_languages() -> Index:
    """Documents in five languages among the English ones."""
    foreign = [row for language in read_yaml("languages.yaml").values() for row in language["documents"]]
    return index_of([*documents(foreign), *documents(read_yaml("skills.yaml"))])


def cases(rows: Iterable[Mapping[str, str]]) -> list[Case]:
    return [Case(row["request"], row["expect"]) for row in rows]


def rows_of(finding: SearchResult) -> list[Hit]:
    """What a caller is shown, what fits or else what comes nearest."""
    return [hit for section in finding.sections for hit in section.hits] or list(finding.nearest)


def ids(finding: SearchResult) -> list[str]:
    return [hit.document.id for hit in rows_of(finding)]


def skill_of(document_id: str) -> str:
    """The skill that a document of ours is part of."""
    parts = {row["id"]: row["group"] for row in read_yaml("skills.yaml") if "group" in row}
    return parts.get(document_id, document_id)


def ask(index: Index, request: str, kind: Kind = "function", limit: int = 12) -> SearchResult:
    return find({kind: index}, request, limit=limit, skill_of=skill_of)


class Quality(NamedTuple):
    """How well some cases were answered, ``nearest`` counted."""

    recall: float
    """The share of right documents among the first twelve."""
    reciprocal_rank: float
    unfit: int
    """Cases with an answer of which it was said that nothing fits."""
    false: int
    """Cases without one of which it was said that something does."""


def judged(index: Index, some: Iterable[Case], kind: Kind) -> Quality:
    ranks: list[float] = []
    unfit = false = 0
    for case in some:
        finding = ask(index, case.request, kind)
        if case.expect == "nothing":
            false += finding.fits
            continue
        found = ids(finding)
        ranks.append(1 / (found.index(case.expect) + 1) if case.expect in found else 0.0)
        unfit += not finding.fits
    return Quality(mean(rank > 0 for rank in ranks), mean(ranks), unfit, false)


def judged_public(asking: Callable[[str], SearchResult] | None = None) -> Quality:
    """The 79 cases as their authors count: recall over all graded ids, the rank of the best graded one."""
    answered = asking or (lambda request: ask(public(), request))
    recalls: list[float] = []
    ranks: list[float] = []
    unfit = false = 0
    for case in lines("qrels.jsonl"):
        finding = answered(case["capabilities"][0])
        if case["kind"] == "no_match":
            false += finding.fits
        elif case["kind"] == "match":
            grades: dict[str, int] = case["qrels"]
            found = ids(finding)
            recalls.append(mean(one in found for one in grades))
            best = [at for at, one in enumerate(found, 1) if grades.get(one) == max(grades.values())]
            ranks.append(1 / best[0] if best else 0.0)
            unfit += not finding.fits
    return Quality(mean(recalls), mean(ranks), unfit, false)


def covered_multi() -> int:
    """Public cases of several requests in which each has a right answer."""
    return sum(
        all(
            any(at in wanted and one in ids(ask(public(), request)) for one, wanted in case["covers"].items())
            for at, request in enumerate(case["capabilities"])
        )
        for case in lines("qrels.jsonl")
        if case["kind"] == "multi"
    )


def public_negatives() -> list[str]:
    """Requests of the 37 cases that nothing answers."""
    return [
        request
        for case in lines("jev_cases.jsonl")
        for request, wanted in zip(case["capabilities"], case["qrels"], strict=True)
        if wanted["expect_empty"]
    ]


class Asked(NamedTuple):
    """How one of our own questions was answered."""

    sort: str
    """What sort of question it is, such as ``paraphrase`` or ``none``."""
    fits: bool
    high: bool
    first: bool
    """Whether the first row is right."""
    reciprocal_rank: float


@cache
def public_skills() -> Index:
    """The facts about public skills; the words of a body stand for the body."""
    rows = lines("public_skills.jsonl")
    return index_of((Document(row["id"], row["title"], row["description"]), row["words"]) for row in rows)


@cache
def questions(corpus: str, half: str) -> list[Asked]:
    """The answers to our questions over public functions or skills: half a or b, later or last ones."""
    index, kind = (public(), "function") if corpus == "functions" else (public_skills(), "skill")
    asked: list[Asked] = []
    file = "questions.yaml" if half in ("a", "b") else f"{half}_questions.yaml"
    for sort, rows in read_yaml(file)[corpus].items():
        for row in rows:
            if half in ("later", "last", half_of(row["ask"])):
                finding = ask(index, row["ask"], kind)
                hits, found = rows_of(finding), ids(finding)
                ranks = [1 / (found.index(one) + 1) for one in row["expect"] if one in found]
                best = max(ranks, default=0.0)
                asked.append(Asked(sort, finding.fits, bool(hits) and hits[0].high, best == 1.0, best))
    return asked


def half_of(question: str) -> str:
    return "b" if int(hashlib.sha256(question.encode()).hexdigest(), 16) % 2 else "a"


class Tasks(NamedTuple):
    """How well tasks of several steps were answered."""

    recall: float
    """The share of the tools of a task among the first twelve."""
    unfit: int


@cache
def live_tasks() -> Tasks:
    """The tasks of LiveMCPBench over its 527 tools."""
    facts = json.loads((DATA / "livemcp.json").read_text(encoding="utf-8"))
    index = index_of(documents_of_tools(facts["tools"]))
    recalls: list[float] = []
    unfit = 0
    for task in facts["tasks"]:
        finding = ask(index, task["ask"])
        found = {one.partition("::")[2] for one in ids(finding)}
        recalls.append(mean(tool in found for tool in task["tools"]))
        unfit += not finding.fits
    return Tasks(mean(recalls), unfit)


def documents_of_tools(rows: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Document, str]]:
    for row in rows:
        yield Document(row["id"], "", row["description"], arguments=tuple(row["arguments"])), ""


def hits_at_five(language: str) -> float:
    asked = cases(read_yaml("languages.yaml")[language]["cases"])
    return mean(case.expect in ids(ask(all_languages(), case.request, "skill", 5)) for case in asked)
