"""§8: the registry, through the directory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.downloads.stage import V1
from tests.registered.stage import until
from tests.support.registry import RawServer, answer, publish_worker

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tests.downloads.stage import Depot
    from tests.support.world import World

LISTS = ("directory::registry::workers::list", "registry::worker-list")
INFOS = ("directory::registry::workers::info", "registry::worker-info")
ROW = {
    "name": "db",
    "description": "Tables and queries",
    "type": "binary",
    "version": "1.0.0",
    "repo": "https://github.com/acme/db",
    "config": {"port": 1},
    "supported_targets": ["x86_64-unknown-linux-gnu"],
    "total_downloads": 0,
    "dependencies": [{"name": "mail", "version": "^1"}],
    "author": {"name": "acme", "pfp": None, "verified": True},
}
FUNCTION = {
    "name": "db::query",
    "description": "Query",
    "request_schema": {"type": "object"},
    "response_schema": None,
    "metadata": {"k": 1},
}
TRIGGER = {
    "name": "db::changed",
    "description": "A row changed",
    "invocation_schema": {"type": "object"},
    "return_schema": None,
    "metadata": None,
}


def publish_db(world: World) -> None:
    given = ("name", "version", "total_downloads")
    published: dict[str, Any] = {key: value for key, value in ROW.items() if key not in given}
    publish_worker(
        world.tmp_path,
        world.tmp_path / "registry",
        "db",
        "1.0.0",
        {**V1, "README.md": "# db\n"},
        functions=[FUNCTION, {"description": "has no name"}, "no object"],
        triggers=[TRIGGER, None],
        **published,
    )


@pytest.mark.parametrize("function", LISTS)
def test_a_page_has_rows_and_says_where_the_next_one_starts(depot: Depot, function: str) -> None:
    publish_db(depot.world)

    reply = depot.call(function)

    assert reply["workers"] == [ROW]
    assert reply["pagination"] == {"next_cursor": None, "has_more": False, "page_size": 20}
    jsonschema.validate(reply, depot.call("engine::functions::info", function_id=function)["response_schema"])


def test_every_page_follows_from_the_one_before(depot: Depot) -> None:
    names = [f"worker-{number:02}" for number in range(45)]
    for name in names:
        depot.world.publish(name, "1.0.0", {})

    found: list[str] = []
    sizes: list[int] = []
    payload: dict[str, Any] = {}
    while True:
        page = depot.call(LISTS[0], payload)
        found += [row["name"] for row in page["workers"]]
        sizes.append(len(page["workers"]))
        if not page["pagination"]["has_more"]:
            break
        payload = {"cursor": page["pagination"]["next_cursor"]}

    assert found == names
    assert sizes == [20, 20, 5]
    assert page["pagination"]["next_cursor"] is None


def test_a_search_finds_by_likeness_and_browsing_goes_by_downloads(depot: Depot) -> None:
    for name in ("agent-memory", "mail", "zebra"):
        depot.world.publish(name, "1.0.0", V1)
    depot.call("skills::download", worker="zebra")

    assert [row["name"] for row in depot.call(LISTS[0], search="memori")["workers"]] == ["agent-memory"]
    assert [row["name"] for row in depot.call(LISTS[1])["workers"]] == ["zebra", "agent-memory", "mail"]


@pytest.mark.parametrize("function", INFOS)
def test_one_worker_is_told_in_full_and_malformed_entries_lose_only_themselves(
    depot: Depot, function: str
) -> None:
    publish_db(depot.world)

    reply = depot.call(function, name="db")

    # Both halves are asked for at once, and asking for the documents counts.
    assert reply["worker"].pop("total_downloads") in (0, 1)
    assert [(one["version"], one["tags"]) for one in reply.pop("versions")] == [("1.0.0", ["latest"])]
    assert reply == {
        "worker": {key: value for key, value in ROW.items() if key != "total_downloads"},
        "readme": "# db\n",
        "api_reference": {"functions": [FUNCTION], "triggers": [TRIGGER]},
        "skills_tree": {
            "skills": [{"path": "SKILL.md"}, {"path": "get.md"}, {"path": "run.py"}],
            "prompts": [{"name": "ask", "description": "Ask the database"}],
        },
    }
    assert not depot.folder.exists()


@pytest.mark.parametrize("asked", [{"version": "1.0.0"}, {"tag": "old"}])
def test_a_version_or_a_tag_is_told_about_on_request(depot: Depot, asked: dict[str, str]) -> None:
    depot.world.publish("db", "1.0.0", V1, tag="old")
    depot.world.publish("db", "2.0.0", {"skills/SKILL.md": "# two\n"})

    reply = depot.call(INFOS[0], name="db", **asked)

    assert reply["worker"]["version"] == "1.0.0"
    assert len(reply["skills_tree"]["skills"]) == 3
    assert depot.call(INFOS[0], name="db")["worker"]["version"] == "2.0.0"


def test_a_worker_without_skills_has_an_empty_tree(depot: Depot) -> None:
    depot.world.publish("bare", "1.0.0", {})

    reply = depot.call(INFOS[0], name="bare")

    assert reply["skills_tree"] == {"skills": [], "prompts": []}
    assert "readme" not in reply
    schema = depot.call("engine::functions::info", function_id=INFOS[0])["response_schema"]
    jsonschema.validate({**reply, "worker": {"name": "bare"}}, schema)


def test_a_registry_with_the_older_envelope_is_understood(start: Callable[..., Depot]) -> None:
    def respond(path: str, connection: socket.socket) -> None:
        if "/skills" in path:
            connection.sendall(answer({"error": "none"}, "404 Not Found"))
        else:
            connection.sendall(answer({**ROW, "functions": [FUNCTION], "triggers": [7], "readme": "# db\n"}))

    with RawServer(respond) as registry:
        reply = start(registry_url=registry.url).call(INFOS[0], name="db")

    assert reply["worker"] == ROW
    assert reply["api_reference"] == {"functions": [FUNCTION], "triggers": []}
    assert reply["readme"] == "# db\n"


class Gate:
    """A registry that answers when it is let; every request is counted by `RawServer.asked`."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.body: bytes = answer({"workers": [ROW], "pagination": {}})

    def __call__(self, path: str, connection: socket.socket) -> None:
        assert self.open.wait(10)
        connection.sendall(self.body)


def test_identical_calls_in_flight_share_one_request(start: Callable[..., Depot]) -> None:
    gate = Gate()
    with RawServer(gate) as registry:
        depot = start(registry_url=registry.url)
        replies: list[Any] = []
        threads = [
            threading.Thread(target=lambda id_=id_: replies.append(depot.call(id_, search="db")))
            for id_ in LISTS * 3
        ]
        for thread in threads:
            thread.start()
        until(lambda: len(registry.asked) > 0, "the registry was asked")
        gate.open.set()
        for thread in threads:
            thread.join(10)

        assert [reply["workers"] for reply in replies] == [[ROW]] * 6
        assert registry.asked == ["/w?search=db"]


def test_successes_are_kept_per_input_and_failures_are_not(start: Callable[..., Depot]) -> None:
    gate = Gate()
    gate.open.set()
    whole, gate.body = gate.body, answer(b"no JSON")
    with RawServer(gate) as registry:
        depot = start(registry_url=registry.url)
        assert depot.refusal(LISTS[0]).startswith("D320 ")
        gate.body = whole
        for _ in range(3):
            assert depot.call(LISTS[0])["workers"] == [ROW]
        gate.body = answer({"workers": [], "pagination": {}})
        assert depot.call(LISTS[0])["workers"] == [ROW]
        assert depot.call(LISTS[0], search="db")["workers"] == []
        assert depot.call(LISTS[0], cursor="x")["workers"] == []

        assert registry.asked == ["/w", "/w", "/w?search=db", "/w?cursor=x"]


def test_a_cached_answer_expires(start: Callable[..., Depot]) -> None:
    depot = start(registry_cache_ttl_ms=0)
    depot.world.publish("db", "1.0.0", V1)
    assert depot.call(INFOS[0], name="db")["worker"]["version"] == "1.0.0"

    depot.world.publish("db", "2.0.0", V1)

    assert depot.call(INFOS[0], name="db")["worker"]["version"] == "2.0.0"


@pytest.mark.parametrize(
    ("function", "payload", "start_of_it"),
    [
        (INFOS[0], {"name": "nobody"}, "D310 not_found: the worker 'nobody' at 'latest' was not found"),
        (
            INFOS[1],
            {"name": "db", "version": "9.9.9"},
            "D310 not_found: the worker 'db' at '9.9.9' was not found",
        ),
        (INFOS[0], {"name": "Db"}, "D311 invalid_input: 'Db' is not the name of a worker"),
        (INFOS[0], {"name": "-db"}, "D311 invalid_input: '-db' is not the name of a worker"),
        (INFOS[0], {"name": "../db"}, "D311 invalid_input: '../db' is not the name of a worker"),
        (INFOS[0], {"name": "db", "version": "1.0.0", "tag": "latest"}, "D311 invalid_input: pass either"),
        (INFOS[0], {}, "D100 invalid_input: field 'name' must be"),
        (INFOS[1], {"name": 7}, "D100 invalid_input: field 'name' must be a string"),
        (LISTS[0], {"search": ["db"]}, "D100 invalid_input: field 'search' must be a string"),
        (LISTS[1], {"cursor": 7}, "D100 invalid_input: field 'cursor' must be a string"),
        (LISTS[0], {"search": "x" * 2000}, "D100 invalid_input: field 'search' must be at most 1024"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    depot: Depot, function: str, payload: dict[str, Any], start_of_it: str
) -> None:
    depot.world.publish("db", "1.0.0", V1)

    assert depot.refusal(function, payload).startswith(start_of_it)


def test_a_missing_worker_is_suggested_a_way_on(depot: Depot) -> None:
    sentence = depot.refusal(INFOS[0], name="nobody")

    assert "Next: call directory::registry::workers::list" in sentence


def test_schemas_and_the_readme_are_left_out_for_a_caller_that_wants_names_only(depot: Depot) -> None:
    publish_db(depot.world)
    whole = depot.call("directory::registry::workers::info", name="db")

    card = depot.call("directory::registry::workers::info", name="db", schemas=False, readme=False)

    assert whole["readme"] == "# db\n"
    assert card == {
        "worker": whole["worker"],
        "versions": whole["versions"],
        "api_reference": {
            "functions": [{"name": "db::query", "description": "Query"}],
            "triggers": [{"name": "db::changed", "description": "A row changed"}],
        },
        "skills_tree": whole["skills_tree"],
    }
    assert depot.call("directory::registry::workers::info", name="db") == whole
    wrong = depot.refusal("directory::registry::workers::info", name="db", schemas="no")
    assert wrong.startswith("D100 invalid_input: field 'schemas' must be true or false")
