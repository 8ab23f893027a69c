"""Search: how often it is right, how long it takes, and what it costs to keep.

Quality is counted on the public cases of function search, on this repository's own, and in five languages; it
is the same in every run. Times are of the processor; beside them stands a bare scan of every id for the words
of the question, which is what a list with a filter does.
"""

from __future__ import annotations

import gc
import multiprocessing
import random
import time
from functools import lru_cache
from itertools import cycle
from statistics import mean, median, quantiles
from typing import TYPE_CHECKING

from tests.search import corpora

from benchmarks.harness import Measurement, goal, measure, repeat
from iii_directory.search.fields import Document
from iii_directory.search.finding import find
from iii_directory.search.index import Index
from iii_directory.search.meaning import word_vectors
from iii_directory.search.search_request import parse_question
from iii_directory.search.words import thesaurus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Every other word of these documents is of the public functions or our own skills, the rest are made up.
STRANGE_WORDS = 40_000
BODY_WORDS = 250
PER_WORKER = 20
QUESTIONS = 60


def exactly(value: float, *notes: str) -> Measurement:
    return Measurement((value,), notes)


@goal("search.public-recall-at-12", at_least=0.96, unit="")
def public_recall() -> Measurement:
    return exactly(corpora.judged_public().recall)


@goal("search.public-reciprocal-rank", at_least=0.91, unit="")
def public_rank() -> Measurement:
    return exactly(corpora.judged_public().reciprocal_rank)


@goal("search.public-several-requests", at_least=10, unit="")
def public_multi() -> Measurement:
    return exactly(corpora.covered_multi(), "of 10")


@goal("search.public-nothing-said-to-fit", at_most=3, unit="")
def public_nothing() -> Measurement:
    wrong = [one for one in corpora.public_negatives() if corpora.ask(corpora.public(), one).fits]
    return exactly(corpora.judged_public().false + len(wrong), "of 15 + 10")


@goal("search.public-called-unfit", at_most=3, unit="")
def public_unfit() -> Measurement:
    return exactly(corpora.judged_public().unfit, "of 54")


@measure("search.public-exact-ids", unit="")
def public_exact() -> Measurement:
    known = [document.id for document in corpora.public_documents()]
    return exactly(mean(corpora.ids(corpora.ask(corpora.public(), one))[0] == one for one in known))


@measure("search.own-skills", unit="")
def own_skills() -> Measurement:
    quality = corpora.judged(
        corpora.own("skills"), corpora.cases(corpora.read_yaml("cases.yaml")["skills"]), "skill"
    )
    return exactly(quality.reciprocal_rank, _said(quality))


@measure("search.own-functions", unit="")
def own_functions() -> Measurement:
    asked = corpora.cases(corpora.read_yaml("cases.yaml")["functions"])
    quality = corpora.judged(corpora.own("functions"), asked, "function")
    return exactly(quality.reciprocal_rank, _said(quality))


@measure("search.other-languages-hit-at-5", unit="")
def other_languages() -> Measurement:
    found = {language: corpora.hits_at_five(language) for language in corpora.read_yaml("languages.yaml")}
    return exactly(min(found.values()), ", ".join(f"{name} {value:.2f}" for name, value in found.items()))


def _said(quality: corpora.Quality) -> str:
    recall = f"recall at 12: {quality.recall:.3f}"
    return f"{recall}; called unfit: {quality.unfit}; nothing said to fit: {quality.false}"


@goal("search.questions-about-functions", at_least=0.6, unit="")
def questions_about_functions() -> Measurement:
    return _ranked(["functions"])


@goal("search.questions-about-skills", at_least=0.75, unit="")
def questions_about_skills() -> Measurement:
    return _ranked(["skills"])


@goal("search.questions-by-meaning", at_least=0.4, unit="")
def questions_by_meaning() -> Measurement:
    return _ranked(_BOTH, "paraphrase")


@goal("search.questions-nothing-said-to-fit", at_most=0.12, unit="")
def questions_nothing() -> Measurement:
    return _by_half(lambda asked: mean(one.fits for one in asked if one.sort == "none"))


@goal("search.questions-called-unfit", at_most=0.2, unit="")
def questions_unfit() -> Measurement:
    return _by_half(lambda asked: mean(not one.fits for one in asked if one.sort != "none"))


@goal("search.questions-right-with-high-confidence", at_least=0.9, unit="")
def questions_high() -> Measurement:
    return _by_half(lambda asked: mean(one.first for one in asked if one.fits and one.high))


@goal("search.questions-right-with-fair-confidence", at_least=0.6, unit="")
def questions_fair() -> Measurement:
    return _by_half(lambda asked: mean(one.first for one in asked if one.fits and not one.high))


_BOTH = ("functions", "skills")


def _ranked(some: Sequence[str], sort: str = "") -> Measurement:
    """The reciprocal rank of the questions of one sort, or of all that have an answer."""

    def rank(asked: list[corpora.Asked]) -> float:
        chosen = [one for one in asked if one.sort == (sort or one.sort) != "none"]
        return mean(one.reciprocal_rank for one in chosen)

    return _by_half(rank, some)


def _by_half(value: Callable[[list[corpora.Asked]], float], some: Sequence[str] = _BOTH) -> Measurement:
    """A value of half b, which was kept out of the choices, beside those of the other questions.

    The last ones were written after the ranking: nothing was chosen by them.
    """

    def of(half: str) -> float:
        return value([one for name in some for one in corpora.questions(name, half)])

    return exactly(
        of("b"), f"half a: {of('a'):.3f}; later ones: {of('later'):.3f}; last ones: {of('last'):.3f}"
    )


@goal("search.tasks-recall-at-12", at_least=0.5, unit="")
def tasks_recall() -> Measurement:
    return exactly(corpora.live_tasks().recall)


@goal("search.tasks-called-unfit", at_most=15, unit="")
def tasks_unfit() -> Measurement:
    return exactly(corpora.live_tasks().unfit, "of 94")


# Size and speed


@goal("search.import-of-the-table", at_most=25, unit="ms")
def table_import() -> Measurement:
    def load() -> float:
        word_vectors.cache_clear()
        start = time.process_time()
        word_vectors()
        return (time.process_time() - start) * 1e3

    return repeat(load, rounds=11)


@lru_cache
def real_words() -> list[str]:
    """Words as they come in public descriptions and in bodies of skills: the common ones often."""
    texts = [document.description for document in corpora.public_documents()]
    texts += [row["body"] for row in corpora.read_yaml("skills.yaml")]
    return [word for text in texts for word in text.split()]


def documents(count: int) -> list[tuple[Document, str]]:
    chance = random.Random(count)
    real, public = real_words(), corpora.public_documents()

    def word() -> str:
        # Zipf's law: the word of rank n comes as often as 1 in n.
        return chance.choice(real) if chance.random() < 0.5 else f"w{int(STRANGE_WORDS ** chance.random())}q"

    def text(length: int) -> str:
        return " ".join(word() for _ in range(length))

    made: list[tuple[Document, str]] = []
    for number in range(count):
        like = chance.choice(public)
        worker = f"worker-{number // PER_WORKER}"
        kept = [one if chance.random() < 0.85 else word() for one in like.description.split()]
        document = Document(
            f"{worker}/{like.id.replace('::', '-')}-{number}", text(3), " ".join(kept), worker
        )
        made.append((document, f"# {text(4)}\n{text(BODY_WORDS)}\n## {text(3)}\n{text(30)}"))
    return made


@lru_cache(maxsize=2)
def filled(count: int, *, with_bodies: bool = True) -> Index:
    index = Index(thesaurus())
    for document, body in documents(count):
        index.put(document, body if with_bodies else "")
    index.make_vectors()
    index.vocabulary()
    return index


def questions() -> list[str]:
    asked = [request for case in corpora.lines("qrels.jsonl") for request in case["capabilities"]]
    return asked[:: max(1, len(asked) // QUESTIONS)]


def asked_of(index: Index) -> Measurement:
    """How long a question takes of the processor: the median of all questions, once a round."""
    asked, known = questions(), list(index.numbers)
    words = [parse_question(question).words for question in asked]
    taken: list[float] = []

    def searching() -> float:
        some: list[float] = []
        for question in asked:
            began = time.thread_time()
            find({"skill": index}, question)
            some.append((time.thread_time() - began) * 1e3)
        taken.extend(some)
        return median(some)

    began = time.thread_time()
    for some in words:
        [one for one in known if any(word in one for word in some)]
    scan = (time.thread_time() - began) * 1e3 / len(asked)
    measured = repeat(searching, rounds=5)
    slow = quantiles(taken, n=20)[-1]
    notes = f"p95 {slow:.2f} ms, longest {max(taken):.1f} ms; a scan of every id for the words: {scan:.2f} ms"
    return Measurement(measured.values, (notes,))


@goal("search.512-documents", at_most=1.5, unit="ms")
def small() -> Measurement:
    return asked_of(filled(512))


@goal("search.10000-documents", at_most=3, unit="ms")
def large() -> Measurement:
    return asked_of(filled(10_000))


@goal("search.100000-documents", at_most=8, unit="ms")
def huge() -> Measurement:
    before, began = resident(), time.thread_time()
    index = filled(100_000, with_bodies=False)
    built = f"built in {time.thread_time() - began:.0f} s with its texts"
    grown_by = f"{(resident() - before) / 1e6:.0f} MB with its texts"
    measured = asked_of(index)
    return Measurement(measured.values, (*measured.notes, f"{built}, {grown_by}"))


@goal("search.changed-document", at_most=3, unit="ms")
def changed() -> Measurement:
    index = filled(10_000)
    changes = cycle(documents(512))

    def change() -> float:
        document, body = next(changes)
        start = time.thread_time()
        index.put(document, body)
        index.make_vectors()
        return (time.thread_time() - start) * 1e3

    return repeat(change, rounds=101)


@goal("search.memory-of-10000", at_most=60, unit="MB")
def memory() -> Measurement:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        megabytes, words = pool.apply(grown)
    return exactly(megabytes, f"{words} words")


def grown() -> tuple[float, int]:
    """How much a fresh process grows by an index, in megabytes, and how many words it has."""
    made = documents(10_000)
    gc.collect()
    before = resident()
    index = Index(thesaurus())
    for document, body in made:
        index.put(document, body)
    index.make_vectors()
    words = len(index.vocabulary())
    gc.collect()
    return (resident() - before) / 1e6, words


def resident() -> int:
    """The memory of this process that is in use, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
