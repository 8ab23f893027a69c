"""``directory::search`` and ``directory::search_functions`` on an engine."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import jsonschema
import orjson
import pytest
from tests.support.directory import Client, client, directory
from tests.support.engine import WAIT, EngineThread, RawClient
from tests.support.registry import RawServer, publish_worker

from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.folder_source import layers_of
from iii_directory.config import Settings
from iii_directory.limits import INDEX_PAUSE_SECONDS
from iii_directory.registry_server.registry_http import RegistryServer
from iii_directory.search import document_indexes
from iii_directory.search.document_indexes import DocumentIndexes
from iii_directory.search.meaning import word_vectors
from iii_directory.search.searching import EngineIndexes
from iii_directory.worker.engine_view import EngineView
from iii_directory.worker.surfaces import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from iii_directory.registry.registry_client import RegistryClient
    from iii_directory.worker.engine_view import EngineCalls

PDF = "---\ndescription: Extract text and tables from PDF files.\n---\n# PDF\n\nSplit and merge.\n"
FORMS = "# Filling forms\n\nFirst look for fields.\n\nBates numbering of exhibits stands at the end.\n"
CHARTS = "---\ndescription: Draw charts.\nkeywords: [histogram, box plot]\n---\n# Charts\n\nBars and lines.\n"
REVIEW = "---\ndescription: Review a change before it is merged.\n---\nLook at $1.\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "pdf/SKILL.md": PDF,
        "pdf/references/forms.md": FORMS,
        "charts/SKILL.md": CHARTS,
        "tools/prompts/review-change.md": REVIEW,
    }
    write(tmp_path, files)
    return tmp_path


@pytest.fixture
def engine(folder: Path) -> Generator[EngineThread]:
    with EngineThread() as started, directory(started.url, folder):
        yield started


@pytest.fixture
def caller(engine: EngineThread) -> Generator[Client]:
    with client(engine.url) as connected:
        yield connected


@pytest.fixture
def mailer(engine: EngineThread) -> Generator[RawClient]:
    """A worker that sends mail, and has a function that searches must not show."""
    with RawClient(engine.url, name="mailer") as worker:
        register(worker)
        yield worker


def register(worker: RawClient) -> None:
    worker.send(
        type="registerfunction",
        id="mailer::send",
        description="Send an e-mail.",
        request_format={"type": "object", "properties": {"recipient": {"type": "string"}}},
        metadata={"keywords": ["postbox"]},
    )
    worker.send(type="registerfunction", id="mailer::x", description="postbox", metadata={"internal": True})
    worker.send(
        type="registertrigger",
        id="on-change",
        trigger_type="skills::on-change",
        function_id="mailer::send",
        config={},
    )
    worker.result("engine::functions::info", {"function_id": "mailer::send"})


def until(answers: Callable[[], bool]) -> bool:
    """Whether something comes true within the time a test waits."""
    deadline = time.monotonic() + WAIT
    while not answers():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def search(caller: Client, **payload: Any) -> dict[str, Any]:
    reply = caller.call("directory::search", payload)
    response = next(row.response for row in FUNCTIONS if row.id == "directory::search")
    jsonschema.validate(reply, response or {})
    return reply


def hits(reply: dict[str, Any], kind: str | None = None) -> list[dict[str, Any]]:
    return [
        hit
        for result in reply["results"]
        for section in result["sections"]
        if kind in (None, section["kind"])
        for hit in section["hits"]
    ]


def ids(reply: dict[str, Any], kind: str | None = None) -> list[str]:
    return [hit["id"] for hit in hits(reply, kind)]


def test_a_skill_is_found_with_the_reason_and_the_call_that_reads_it(caller: Client) -> None:
    reply = search(caller, query="merge pdf files")

    best = hits(reply)[0]
    assert best["id"] == "pdf"
    assert best["why"] == "pdf (name); merge (body); files (description)"
    read = best["read"]
    assert caller.call(read["function"], read["payload"])["title"] == "PDF"


def test_a_document_of_a_skill_counts_for_it_and_is_what_is_read(caller: Client) -> None:
    reply = search(caller, query="bates numbering")

    (hit,) = hits(reply, "skill")
    assert (hit["id"], hit["in"]) == ("pdf", "pdf/references/forms")
    assert hit["snippet"] == "Bates numbering of exhibits stands at the end."
    assert "Filling forms" in caller.call(hit["read"]["function"], hit["read"]["payload"])["body"]


def test_functions_prompts_triggers_and_workers_have_sections_of_their_own(
    mailer: RawClient, caller: Client
) -> None:
    assert ids(search(caller, query="send an email"), "function")[0] == "mailer::send"
    assert ids(search(caller, query="recipient"), "function") == ["mailer::send"]
    assert ids(search(caller, query="postbox")) == ["mailer::send"]
    assert "on-change" in ids(search(caller, query="skills on-change mailer", kinds=["trigger"]))
    assert ids(search(caller, query="mailer", kinds=["worker"])) == ["mailer"]
    assert ids(search(caller, query="review a change"), "prompt") == ["review-change"]


def test_a_function_is_found_with_the_next_search_and_gone_with_its_worker(
    engine: EngineThread, caller: Client
) -> None:
    assert "mailer::send" not in ids(search(caller, query="mailer::send"))

    with RawClient(engine.url, name="mailer") as worker:
        register(worker)
        assert ids(search(caller, query="mailer::send"), "function")[:1] == ["mailer::send"]

        describe(worker, "Deliver a pigeon.")
        assert ids(search(caller, query="pigeon"), "function") == ["mailer::send"]
        assert not search(caller, query="postbox")["results"][0]["fits"]

    assert until(lambda: "mailer" not in {row["name"] for row in workers(caller)})
    assert not search(caller, query="mailer::send")["results"][0]["fits"]


def describe(worker: RawClient, description: str) -> None:
    """Register a function anew, of which the engine sends no event."""
    worker.send(type="registerfunction", id="mailer::send", description=description)
    worker.result("engine::functions::info", {"function_id": "mailer::send"})


def workers(caller: Client) -> list[dict[str, Any]]:
    return caller.call("directory::worker-list")["workers"]


def test_a_skill_for_people_to_call_is_not_found_nor_what_is_part_of_it(caller: Client, folder: Path) -> None:
    kept = (
        "---\ndescription: Deploy with a trebuchet.\ndisable-model-invocation: true\n---\n# Siege\n\nAim.\n"
    )
    write(folder, {"siege/SKILL.md": kept, "siege/references/stones.md": "# Stones\n\nA trebuchet throws.\n"})

    for typed in ("deploy with a trebuchet", "siege", "iii://siege", "siege/references/stones"):
        assert "siege" not in {hit["id"].partition("/")[0] for hit in everything(search(caller, query=typed))}
    assert caller.call("directory::skills::get", {"id": "siege"})["title"] == "Siege"

    write(folder, {"siege/SKILL.md": kept.replace("true", "false")})
    assert ids(search(caller, query="trebuchet"))[:1] == ["siege"]
    assert hits(search(caller, query="trebuchet throws stones"))[0]["in"] == "siege/references/stones"


def everything(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """What fits and what only comes near."""
    return hits(reply) + [hit for result in reply["results"] for hit in result["nearest"]]


def test_what_could_be_installed_is_listed_in_the_background_when_asked_for_by_name(
    tmp_path: Path, engine: EngineThread, caller: Client
) -> None:
    store = tmp_path / "registry"
    for number in range(25):
        said = "Sail a catamaran." if number == 24 else "Row."
        publish_worker(tmp_path, store, f"boat{number:02}", "1.0.0", {"skills/a.md": "x"}, description=said)
    with RegistryServer(store) as registry, EngineThread() as other:
        none = tmp_path / "none"
        with directory(other.url, none, registry_url=registry.url), client(other.url) as asking:
            assert not hits(search(asking, query="catamaran"))
            assert search(asking, query="catamaran")["complete"]

            first = search(asking, query="catamaran", kinds=["installable"])

            assert not first["complete"]
            assert until(lambda: ids(search(asking, query="catamaran"), "installable") == ["boat24"])
            found = search(asking, query="catamaran", installable=True)
            assert found["complete"]
            assert hits(found)[0]["read"]["function"] == "directory::registry::workers::info"
            assert not hits(search(asking, query="catamaran", installable=False))


def test_a_registry_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    asked, over = threading.Event(), threading.Event()

    def silent(_path: str, _socket: object) -> None:
        asked.set()
        over.wait(WAIT)

    with (
        RawServer(silent) as registry,
        EngineThread() as engine,
        directory(engine.url, tmp_path, registry_url=registry.url),
        client(engine.url) as caller,
    ):
        assert not search(caller, query="catamaran", installable=True)["complete"]
        assert asked.wait(WAIT)
        # It is still silent, and searches are answered.
        assert not search(caller, query="catamaran", installable=True)["complete"]
        over.set()


def test_what_was_just_written_is_found_and_what_was_deleted_is_not(caller: Client, folder: Path) -> None:
    write(folder, {"knots/SKILL.md": "# Knots\n\nTie a bowline.\n"})
    assert ids(search(caller, query="bowline")) == ["knots"]

    (folder / "knots/SKILL.md").write_text("# Knots\n\nTie a sheepshank.\n", encoding="utf-8")
    assert ids(search(caller, query="sheepshank")) == ["knots"]
    assert not search(caller, query="bowline")["results"][0]["fits"]

    (folder / "knots/SKILL.md").unlink()
    assert not search(caller, query="sheepshank")["results"][0]["fits"]


def test_many_documents_are_found_by_what_lists_show_before_their_bodies_are_taken_in(
    caller: Client, folder: Path
) -> None:
    write(
        folder, {f"bulk/doc-{n}.md": f"# Zebra {n}\n\nStripes.\n\nbody word okapi{n}\n" for n in range(150)}
    )

    first = search(caller, query="zebra 149")

    assert ids(first, "skill")
    assert until(lambda: search(caller, query="okapi149")["complete"])
    assert ids(search(caller, query="okapi149")) == ["bulk/doc-149"]


async def taken_in(folder: Path, activity: Callable[[], int] = lambda: 0) -> DocumentIndexes:
    """What a start indexes, once that is complete."""
    write(folder, {f"bulk/doc-{n}.md": f"# Zebra {n}\n\nbody word okapi{n}\n" for n in range(150)})
    catalogue = Catalogue(layers_of(Settings(skills_folder=folder)), filter_unregistered=False)
    look, indexes = await catalogue.current(), DocumentIndexes(activity)
    others = asyncio.all_tasks()
    indexes.follow(look)
    async with asyncio.timeout(WAIT):
        await asyncio.gather(*(asyncio.all_tasks() - others))
    assert indexes.snapshot is look.snapshot
    assert indexes.complete
    catalogue.close()
    return indexes


def test_the_table_of_word_vectors_is_read_by_the_first_search_and_not_before(folder: Path) -> None:
    async def searched() -> None:
        indexes = await taken_in(folder)
        assert word_vectors.cache_info().currsize == 0
        catalogue = Catalogue(layers_of(Settings(skills_folder=folder)), filter_unregistered=False)
        await indexes.catch_up(await catalogue.current())
        indexes.close()
        catalogue.close()

    word_vectors.cache_clear()
    asyncio.run(searched())

    assert word_vectors.cache_info().currsize == 1


def test_the_collector_does_not_look_through_what_a_start_took_in(folder: Path) -> None:
    """Looking through the indexes of 10,000 documents holds the loop for longer than a turn may."""
    try:
        indexes = asyncio.run(taken_in(folder))
        looked_through = set(map(id, gc.get_objects()))
        parts = gc.get_referents(vars(indexes.kinds[0].index))
        assert len(parts) > 5
        assert not [part for part in (*parts, *gc.get_referents(*parts)) if id(part) in looked_through]
    finally:
        gc.unfreeze()


def test_garbage_of_the_time_of_a_start_is_freed_once_the_directory_is_closed(folder: Path) -> None:
    ring: list[Any] = [threading.Event()]
    ring.append(ring)
    freed = weakref.ref(ring[0])
    gc.disable()
    try:
        del ring
        asyncio.run(taken_in(folder)).close()
        assert freed() is not None
        gc.collect()
        assert freed() is None
    finally:
        gc.enable()


def test_work_that_the_machine_held_up_is_not_followed_by_a_pause_many_times_as_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count(step=10.0)
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def paused(delay: float) -> None:
        pauses.append(delay)
        await sleep(0)

    monkeypatch.setattr(document_indexes, "time", SimpleNamespace(monotonic=seconds.__next__))
    monkeypatch.setattr(asyncio, "sleep", paused)

    asyncio.run(taken_in(folder, itertools.count().__next__)).close()

    assert len(pauses) > 100
    assert max(pauses) <= INDEX_PAUSE_SECONDS


def test_changes_are_indexed_when_calls_pause_or_a_search_asks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.search.document_indexes.INDEX_PAUSE_SECONDS", 0.001)
    calls = itertools.count()
    paused = False
    asked = 0

    def activity() -> int:
        nonlocal asked
        asked += 1
        return -1 if paused else next(calls)

    async def follow() -> None:
        nonlocal paused
        catalogue = Catalogue(layers_of(Settings(skills_folder=folder)), filter_unregistered=False)
        indexes = DocumentIndexes(activity)
        indexes.follow(await catalogue.current())
        while asked < 20:  # noqa: ASYNC110 (nothing happens that could be waited for)
            await asyncio.sleep(0)
        assert len(indexes.kinds[0].index) == 0

        write(folder, {"knots/SKILL.md": "# Knots\n"})
        await indexes.catch_up(await catalogue.current())
        assert indexes.kinds[0].index.find("knots")

        write(folder, {"ropes/SKILL.md": "# Ropes\n"})
        newest = await catalogue.current()
        indexes.follow(newest)
        paused = True
        while indexes.snapshot is not newest.snapshot:  # noqa: ASYNC110 (it works in the background)
            await asyncio.sleep(0)
        assert indexes.kinds[0].index.find("knots")
        assert indexes.kinds[0].index.find("ropes")
        indexes.close()
        catalogue.close()

    async def bounded() -> None:
        async with asyncio.timeout(WAIT):
            await follow()

    asyncio.run(bounded())


def test_a_search_asks_the_engine_for_one_list_while_nothing_changes() -> None:
    functions = [{"function_id": "a::b", "worker_name": "a"}]
    asked: list[str] = []
    now = 0.0

    class Engine:
        async def call(self, function_id: str, _payload: object) -> dict[str, Any]:
            asked.append(function_id)
            return {"functions": functions, "registered_triggers": [], "workers": [{"name": "a"}]}

    async def searches() -> None:
        nonlocal now
        registry = cast("RegistryClient", SimpleNamespace(seen={}))
        indexes = EngineIndexes(EngineView(cast("EngineCalls", Engine())), registry, lambda: now)

        async def lists() -> set[str]:
            asked.clear()
            assert await indexes.catch_up()
            return {name for name in asked if name.endswith("::list")}

        of_functions, every = {"engine::functions::list"}, await lists()
        assert len(every) == 3
        assert await lists() == of_functions
        functions.append({"function_id": "a::c", "worker_name": "a"})
        assert await lists() == every
        assert await lists() == of_functions
        indexes.changed()
        assert await lists() == every
        assert await lists() == of_functions
        now = 5.0
        assert await lists() == every
        assert asked.count("engine::workers::list") == 1

    asyncio.run(searches())


def test_keywords_of_the_front_matter_are_found_like_a_title(caller: Client) -> None:
    reply = search(caller, query="histogram")

    assert [(hit["id"], hit["why"]) for hit in hits(reply)] == [("charts", "histogram (keyword)")]


@pytest.mark.parametrize(
    "typed", ["pdf", "PDF", "iii://pdf", "pdf/SKILL.md", "pdf/index", " pdf ", "pdf/references/forms.md"]
)
def test_an_id_in_any_spelling_that_get_forgives_is_exact(caller: Client, typed: str) -> None:
    best = hits(search(caller, query=typed), "skill")[0]

    assert best["why"] == "exact id"
    assert caller.call("directory::skills::get", {"id": typed})["id"] == best["read"]["payload"]["id"]


def test_each_capability_is_answered_for_itself_in_order(caller: Client) -> None:
    reply = search(caller, capabilities=["draw charts", "zxqv blorp", "merge pdf files"])

    assert [result["capability"] for result in reply["results"]] == [
        "draw charts",
        "zxqv blorp",
        "merge pdf files",
    ]
    assert [result["fits"] for result in reply["results"]] == [True, False, True]


def test_nothing_that_fits_says_what_to_try(caller: Client) -> None:
    (result,) = search(caller, query="knit a scarf from merino wool")["results"]

    assert (result["fits"], result["sections"]) == (False, [])
    assert "directory::registry::workers::list" in result["next"]


def test_filters_keep_what_belongs_to_a_worker_or_starts_so(caller: Client) -> None:
    assert ids(search(caller, query="files", worker="charts")) == []
    assert ids(search(caller, query="draw", prefix="char")) == ["charts"]


def test_a_default_answer_is_at_most_1500_bytes(caller: Client, folder: Path) -> None:
    long = "Resize, crop and convert pictures of every kind, for the web and for print. " * 4
    write(
        folder,
        {f"img{n}/SKILL.md": f"---\ndescription: {long}\n---\n# Pictures {n}\n\nx\n" for n in range(8)},
    )

    reply = search(caller, query="resize pictures for the web")

    assert len(ids(reply)) >= 3
    assert len(orjson.dumps(reply)) <= 1500
    assert reply["truncated"]


@pytest.mark.parametrize(
    "request_",
    ["resize pictures " * 300, "größe der bilder ändern 图片 " * 20, "pictures files mail change charts pdf"],
    ids=["long", "other scripts", "every kind"],
)
def test_a_default_answer_to_any_request_is_at_most_1500_bytes(
    mailer: RawClient, caller: Client, folder: Path, request_: str
) -> None:
    title = "Pictures of every kind, larger and smaller, größer und kleiner, 图片 " * 5
    text = f"---\ntitle: {title}\ndescription: {title}\n---\nx pictures mail change\n"
    write(folder, {f"img-{'x' * 60}-{n}/SKILL.md": text for n in range(9)})
    write(folder, {f"tools/prompts/pictures-{n}.md": text for n in range(6)})

    reply = search(caller, query=request_)

    assert len(orjson.dumps(reply)) <= 1500
    assert ids(reply) or reply["results"][0]["nearest"]


def test_full_detail_has_the_schema_of_a_function(mailer: RawClient, caller: Client) -> None:
    hit = hits(search(caller, query="send an email", detail="full"), "function")[0]

    assert hit["schema"]["properties"] == {"recipient": {"type": "string"}}


def test_ids_alone_come_without_descriptions(caller: Client) -> None:
    hit = hits(search(caller, query="draw charts", detail="ids"))[0]

    assert set(hit) == {"id", "provenance", "why", "confidence", "read"}


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({}, "query"),
        ({"query": " "}, "query"),
        ({"query": 7}, "query"),
        ({"query": "a", "capabilities": ["b"]}, "query"),
        ({"capabilities": []}, "capabilities"),
        ({"capabilities": ["x"] * 9}, "capabilities"),
        ({"query": "a", "kinds": ["cat"]}, "kinds"),
        ({"query": "a", "limit": 0}, "limit"),
        ({"query": "a", "limit": 26}, "limit"),
        ({"query": "a", "detail": "some"}, "detail"),
        ({"query": "a", "budget_chars": -1}, "budget_chars"),
        ({"query": "a", "installable": "yes"}, "installable"),
    ],
)
def test_a_wrong_field_is_named(caller: Client, payload: dict[str, Any], field: str) -> None:
    failure = caller.failure("directory::search", payload)

    assert f"D100 invalid_input: field '{field}' must be" in str(failure)


def test_the_references_door_groups_functions_by_their_workers(mailer: RawClient, caller: Client) -> None:
    reply = caller.call("directory::search_functions", {"capabilities": ["send an email", "merge pdf files"]})

    assert reply["workers"][0] == {
        "namespace": "mailer",
        "functions": [{"function_id": "mailer::send", "description": "Send an e-mail."}],
    }
    assert "pdf" in [row["id"] for row in reply["skills"]]
    assert reply["search_mode"] == "hybrid"


def test_the_references_door_tells_when_nothing_fits(caller: Client) -> None:
    reply = caller.call("directory::search_functions", {"capabilities": ["knit a scarf from merino wool"]})

    assert (reply["workers"], reply["skills"], reply["triggers"]) == ([], [], [])
    assert "Nothing on this engine fits" in reply["guidance"]
