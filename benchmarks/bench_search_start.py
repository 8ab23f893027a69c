"""Measure what search costs others: a start with 10,000 documents, reads beside it, the loop; and commands.

A is the directory as it is, inside its engine; B the same without indexes of documents, as before there was
search. Each has a process of its own, and both are asked over a socket in turn. The last goal compares two
commands in a folder without an engine: a search, and a list of the skills.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import subprocess
import sys
import time
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.bench_reading import answer_to, median
from benchmarks.bench_search import resident
from benchmarks.harness import Measurement, goal, interleave, measure
from benchmarks.processes import call_frame, process
from benchmarks.trees import path_of, tree
from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.folder_source import layers_of
from iii_directory.config import Settings
from iii_directory.search.document_indexes import DocumentIndexes
from iii_directory.search.meaning import word_vectors
from iii_directory.wire.protocol import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from iii_directory.catalog.view import CatalogueView

DOCUMENTS = 10_000
STARTS = 5
ROUNDS = 21
CALLS = 60
READY_SECONDS = 120.0
GET, LIST, SEARCH = "directory::skills::get", "directory::skills::list", "directory::search"


def up(report: Connection, root: Path, searching: bool) -> None:
    """The directory inside its engine; reports its address and the seconds until its first answer."""
    from iii_directory.engine.server import EngineServer
    from iii_directory.worker.directory_worker import DirectoryWorker, bus_inside

    logging.disable()
    if not searching:
        DocumentIndexes.follow = not_followed

    async def main() -> None:
        server = EngineServer(port=0)
        bus = bus_inside(server)
        await server.start()
        began = time.perf_counter()
        worker = await asyncio.to_thread(DirectoryWorker.run_on, bus, Settings(skills_folder=root))
        await asyncio.to_thread(worker.wait_ready, READY_SECONDS)
        await bus.call(LIST, {"prefix": "worker-7/"}, timeout_ms=60_000, namespace=DEFAULT_NAMESPACE)
        report.send((server.url, time.perf_counter() - began))
        await asyncio.Future()

    asyncio.run(main())


def not_followed(self: DocumentIndexes, view: CatalogueView) -> None:
    """As it was before there was search."""


def started(root: Path, *, searching: bool) -> float:
    with process(up, root, searching) as (_, seconds):
        return seconds


@goal("search.start-to-first-answer", at_most=1.1)
def start_to_first_answer() -> Measurement:
    root = tree(DOCUMENTS)
    taken: list[float] = []

    def with_search() -> float:
        taken.append(started(root, searching=True))
        return taken[-1]

    measured = interleave(with_search, lambda: started(root, searching=False), rounds=STARTS)
    return Measurement(measured.values, (f"fastest start with search: {min(taken):.2f} s",))


@measure("search.get-beside-it")
def get_beside_it() -> Measurement:
    return beside([call_frame({"id": path_of(at).removesuffix(".md")}, GET) for at in range(CALLS)])


@measure("search.list-beside-it")
def list_beside_it() -> Measurement:
    return beside([call_frame({"prefix": f"worker-{at}/"}, LIST) for at in range(CALLS)])


def beside(calls: list[str]) -> Measurement:
    """The median of reads once every body is taken in, against a directory that takes none in."""
    root = tree(DOCUMENTS)
    with process(up, root, True) as (here, _), process(up, root, False) as (there, _):
        meanwhile = asyncio.run(median(here, calls))
        until_complete(here)
        return interleave(
            lambda: asyncio.run(median(here, calls)),
            lambda: asyncio.run(median(there, calls)),
            rounds=ROUNDS,
            notes=(f"while bodies are taken in: {meanwhile * 1e3:.2f} ms",),
        )


def until_complete(url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not answer_to(url, call_frame({"query": "step"}, SEARCH))["complete"]:
        if time.monotonic() > deadline:
            raise TimeoutError("bodies are still being taken in")
        time.sleep(0.25)


@measure("search.longest-turn", unit="ms")
def longest_turn() -> Measurement:
    """The longest that taking 10,000 documents in keeps the event loop from others, of processor time."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        longest, seconds, megabytes = pool.apply(turns, (tree(DOCUMENTS),))
    notes = (
        f"complete after {seconds:.1f} s, half of them left to others; {megabytes:.0f} MB more than before"
    )
    return Measurement((longest * 1e3,), (notes,))


def turns(root: Path) -> tuple[float, float, float]:
    """Takes documents in as the worker does after a start: the longest turn, how long it took, the memory."""
    return asyncio.run(_turns(root))


async def _turns(root: Path) -> tuple[float, float, float]:
    catalogue = Catalogue(layers_of(Settings(skills_folder=root)), filter_unregistered=False)
    look = await catalogue.current()
    before, began, last, longest = resident(), time.perf_counter(), time.thread_time(), 0.0
    indexes = DocumentIndexes()
    indexes.follow(look)
    while indexes.snapshot is not look.snapshot:
        await asyncio.sleep(0.001)
        now = time.thread_time()
        longest, last = max(longest, now - last), now
    assert not word_vectors.cache_info().currsize, "the table is read only when a search asks"
    await indexes.catch_up(look)
    while not indexes.complete:
        await asyncio.sleep(0.001)
        now = time.thread_time()
        longest, last = max(longest, now - last), now
    catalogue.close()
    return longest, time.perf_counter() - began, (resident() - before) / 1e6


@goal("search.second-command-in-a-folder", at_most=1.3)
def second_command() -> Measurement:
    """A search by the index that the first one left, against ``skills list`` of the same 10,000 documents."""
    with TemporaryDirectory() as folder:
        run = partial(command, folder, tree(DOCUMENTS))
        first = run("search", "take a step")
        measured = interleave(
            lambda: run("search", "take a step"), lambda: run("skills", "list"), rounds=STARTS
        )
    return Measurement(measured.values, (f"the first search, which indexes: {first:.1f} s",))


def command(folder: str, root: Path, *words: str) -> float:
    """Run a command in a folder without an engine, and return the seconds it took."""
    written = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "iii_directory", *words, "--skills-folder", str(root)],
        cwd=folder,
        env=written,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - began
