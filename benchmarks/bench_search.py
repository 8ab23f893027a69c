"""Search: how often it is right, how long it takes, and what it costs to keep.

Quality is counted on the public cases of function search, on this repository's own, and in five languages; it
is the same in every run. Times are ratios to a bare scan of every id for the words of the question, which is
what a list with a filter does; the lines below each verdict have them in milliseconds.
"""

from __future__ import annotations

import gc
import multiprocessing
import random
import time
from functools import lru_cache
from itertools import cycle
from statistics import mean, quantiles

from tests.search import corpora

from benchmarks.harness import Measurement, goal, interleave, measure, repeat
from iii_directory.search.fields import Document
from iii_directory.search.finding import find
from iii_directory.search.index import Index
from iii_directory.search.meaning import word_vectors
from iii_directory.search.search_request import parse_question
from iii_directory.search.words import thesaurus

# Every other word of these documents is of the public functions or our own skills, the rest are made up.
STRANGE_WORDS = 40_000
BODY_WORDS = 250
PER_WORKER = 20
QUESTIONS = 60


def exactly(value: float, *notes: str) -> Measurement:
    return Measurement((value,), notes)


@goal("search.public-recall-at-12", at_least=0.96, unit="")
def public_recall() -> Measurement:
    quality = corpora.judged_public()
    return exactly(quality.recall, f"called unfit: {quality.unfit} of 54")


@goal("search.public-reciprocal-rank", at_least=0.91, unit="")
def public_rank() -> Measurement:
    return exactly(corpora.judged_public().reciprocal_rank)


@measure("search.public-several-requests", unit="")
def public_multi() -> Measurement:
    return exactly(corpora.covered_multi(), "of 10")


@measure("search.public-nothing-said-to-fit", unit="")
def public_nothing() -> Measurement:
    wrong = [one for one in corpora.public_negatives() if corpora.ask(corpora.public(), one).fits]
    return exactly(corpora.judged_public().false + len(wrong), "of 15 + 10")


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


@measure("search.questions-about-functions", unit="")
def questions_about_functions() -> Measurement:
    return exactly(_rank("functions", "b"), f"half a: {_rank('functions', 'a'):.3f}")


@measure("search.questions-about-skills", unit="")
def questions_about_skills() -> Measurement:
    return exactly(_rank("skills", "b"), f"half a: {_rank('skills', 'a'):.3f}")


def _rank(corpus: str, half: str) -> float:
    return mean(one.reciprocal_rank for one in corpora.questions(corpus, half) if one.sort != "none")


@measure("search.tasks-recall-at-12", unit="")
def tasks_recall() -> Measurement:
    return exactly(corpora.live_tasks().recall)


@measure("search.tasks-called-unfit", unit="")
def tasks_unfit() -> Measurement:
    return exactly(corpora.live_tasks().unfit, "of 94")


# Size and speed


@measure("search.import-of-the-table", unit="ms")
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


def against_a_scan(index: Index, must: str) -> Measurement:
    """All questions once, against looking for their words in every id; the times are of the processor."""
    asked, known = questions(), index.ids()
    words = [parse_question(question).words for question in asked]
    taken: list[float] = []

    def searching() -> float:
        start = time.perf_counter()
        for question in asked:
            began = time.thread_time()
            find({"skill": index}, question)
            taken.append(time.thread_time() - began)
        return time.perf_counter() - start

    def scanning() -> float:
        start = time.perf_counter()
        for some in words:
            [one for one in known if any(word in one for word in some)]
        return time.perf_counter() - start

    measured = interleave(searching, scanning, rounds=5)
    middle, *_, slow = quantiles(taken, n=20)[9:19]
    times = f"p50 {middle * 1e3:.2f} ms, p95 {slow * 1e3:.2f} ms, longest {max(taken) * 1e3:.1f} ms"
    return Measurement(measured.values, (f"{times}; an idle machine must have {must}",))


@measure("search.512-documents")
def small() -> Measurement:
    return against_a_scan(filled(512), "1.5 and 5")


@goal("search.10000-documents", at_most=0.5)
def large() -> Measurement:
    return against_a_scan(filled(10_000), "3 and 12")


@measure("search.100000-documents")
def huge() -> Measurement:
    before, began = resident(), time.thread_time()
    index = filled(100_000, with_bodies=False)
    built = f"built in {time.thread_time() - began:.0f} s with its texts"
    grown_by = f"{(resident() - before) / 1e6:.0f} MB with its texts"
    measured = against_a_scan(index, "8 and 25")
    return Measurement(measured.values, (*measured.notes, f"{built}, {grown_by}"))


@measure("search.changed-document", unit="ms")
def changed() -> Measurement:
    index = filled(10_000)
    changes = cycle(documents(512))

    def change() -> float:
        document, body = next(changes)
        start = time.perf_counter()
        index.put(document, body)
        index.make_vectors()
        return (time.perf_counter() - start) * 1e3

    return repeat(change, rounds=101)


@measure("search.memory-of-10000", unit="MB")
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
