"""What the engine knows, through the directory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.support.directory import Client, client, directory
from tests.support.engine import EngineThread, RawClient
from tests.support.reader import until

from iii_directory import __version__
from iii_directory.bus.seam import CallError
from iii_directory.config import Settings
from iii_directory.errors import DirectoryError
from iii_directory.worker.engine_view import EngineCalls, EngineView

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from iii_directory.bus.seam import Subscription

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Generator[Client]:
    """A client beside the directory, a mail worker with a trigger type, and a subscriber of it."""
    folder = tmp_path_factory.mktemp("skills")
    write(folder, "mail/SKILL.md", "# mail\n\nSends mail.\n")
    write(
        folder, "mail/send.md", "---\ntype: how-to\nfunction_id: mail::send\n---\n# Send a mail\n\nLike so.\n"
    )
    write(folder, "mail/about.md", "---\nfunctions: [mail::send]\n---\n# About sending\n")
    write(folder, "mail/track.md", "---\ntype: how-to\n---\n# Track\n\nSee [it](iii://fn/mail/track).\n")
    write(folder, "mail/prompts/write.md", "---\ndescription: Write a mail\n---\nWrite one.\n")
    with EngineThread() as engine, directory(engine.url, folder), RawClient(engine.url, name="mail") as mail:
        mail.send(
            type="registerfunction",
            id="mail::send",
            description="Send one mail",
            request_format=SCHEMA,
            metadata={"k": 1},
        )
        mail.send(type="registerfunction", id="mail::track")
        mail.send(type="registertriggertype", id="mail::arrived", description="Mail came in")
        mail.send(
            type="registertrigger",
            id="binding-1",
            trigger_type="mail::arrived",
            function_id="mail::track",
            config={"box": "in"},
            metadata={"m": 1},
        )
        mail.result("engine::functions::info", {"function_id": "mail::track"})
        with client(engine.url) as connected:
            yield connected


def write(folder: Path, name: str, content: str) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(content, encoding="utf-8")


def test_functions_are_listed_by_worker_sorted_by_id(caller: Client) -> None:
    assert caller.call("directory::function-list", worker="mail") == {
        "functions": [
            {
                "function_id": "mail::send",
                "name": "send",
                "worker_name": "mail",
                "description": "Send one mail",
                "namespace": "default",
            },
            {
                "function_id": "mail::track",
                "name": "track",
                "worker_name": "mail",
                "description": None,
                "namespace": "default",
            },
        ]
    }


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"prefix": "mail::t"}, ["mail::track"]),
        ({"search": "ONE MAIL"}, ["mail::send"]),
        ({"search": "mail", "prefix": "mail::", "worker": "nobody"}, []),
    ],
)
def test_filters_of_the_function_list_all_hold(
    caller: Client, filters: dict[str, str], expected: list[str]
) -> None:
    rows = caller.call("directory::function-list", filters)["functions"]

    assert [row["function_id"] for row in rows] == expected


def test_a_function_comes_with_its_schema_its_how_to_and_what_else_is_written(caller: Client) -> None:
    detail = caller.call("directory::function-info", function_id="mail::send")

    assert detail["name"] == "send"
    assert detail["request_schema"] == SCHEMA
    assert detail["response_schema"] is None
    assert detail["metadata"] == {"k": 1}
    assert detail["how_guide"] == {
        "skill_id": "mail/send",
        "title": "Send a mail",
        "body": "# Send a mail\n\nLike so.\n",
        "provenance": {"kind": "file", "root": "skills"},
    }
    assert detail["related_skills"] == [
        {"id": "mail/about", "title": "About sending", "provenance": {"kind": "file", "root": "skills"}},
        {"id": "mail", "title": "mail", "provenance": {"kind": "file", "root": "skills"}},
    ]


def test_a_how_to_that_only_links_a_function_is_its_guide_when_none_names_it(caller: Client) -> None:
    detail = caller.call("directory::engine::functions::info", function_id="mail::track")

    assert detail["how_guide"]["skill_id"] == "mail/track"
    assert "name" not in detail
    assert detail["registered_triggers"] == [
        {"id": "binding-1", "trigger_type": "mail::arrived", "config": {"box": "in"}}
    ]


def test_a_function_without_documents_has_no_guide(caller: Client) -> None:
    detail = caller.call("directory::engine::functions::info", function_id="state::get")

    assert "how_guide" not in detail
    assert "related_skills" not in detail


def test_trigger_types_are_listed_and_told_in_full(caller: Client) -> None:
    row = {
        "id": "mail::arrived",
        "name": "arrived",
        "worker_name": "mail",
        "description": "Mail came in",
        "namespace": "default",
    }

    assert caller.call("directory::trigger-list", worker="mail") == {"triggers": [row]}
    detail = caller.call("directory::trigger-info", id="mail::arrived")
    assert {key: detail[key] for key in row} == row
    assert detail["instance_count"] == 1


def test_bindings_are_listed_and_told_with_their_type_and_function(caller: Client) -> None:
    rows = caller.call("directory::registered-trigger-list", trigger_type="mail::arrived")
    detail = caller.call("directory::registered-trigger-info", id="binding-1")

    assert rows["registered_triggers"] == [
        {
            "id": "binding-1",
            "trigger_type": "mail::arrived",
            "function_id": "mail::track",
            "worker_name": "mail",
            "config": {"box": "in"},
            "config_summary": '{"box":"in"}',
            "namespace": "default",
        }
    ]
    assert detail["metadata"] == {"m": 1}
    assert detail["trigger"]["description"] == "Mail came in"
    assert detail["function"]["function_id"] == "mail::track"
    assert detail["function"]["how_guide"]["skill_id"] == "mail/track"


def test_workers_are_listed_with_the_fields_of_the_registry(caller: Client) -> None:
    (row,) = caller.call("directory::worker-list", search="mail")["workers"]

    shared = ["name", "description", "version", "id", "runtime", "status", "function_count"]
    assert list(row) == [*shared, "namespace"]
    assert (row["name"], row["status"], row["function_count"]) == ("mail", "connected", 2)
    assert caller.call("directory::worker-list", runtime="no-such") == {"workers": []}


def test_a_worker_comes_with_what_it_registered(caller: Client) -> None:
    detail = caller.call("directory::worker-info", name="mail")

    assert detail["worker"]["name"] == "mail"
    assert [row["function_id"] for row in detail["functions"]] == ["mail::send", "mail::track"]
    assert [row["id"] for row in detail["trigger_types"]] == ["mail::arrived"]
    assert [row["id"] for row in detail["registered_triggers"]] == ["binding-1"]


def test_a_worker_comes_with_its_version_and_what_is_written_about_it(caller: Client) -> None:
    detail = caller.call("directory::worker-info", name="mail")

    assert [(row["id"], row["title"]) for row in detail["skills"]] == [
        ("mail", "mail"),
        ("mail/about", "About sending"),
        ("mail/send", "Send a mail"),
        ("mail/track", "Track"),
    ]
    assert all(row["provenance"] == {"kind": "file", "root": "skills"} for row in detail["skills"])
    assert detail["prompts"] == [{"name": "write", "description": "Write a mail"}]
    own = caller.call("directory::worker-info", name="iii-directory")
    assert own["worker"]["version"] == __version__
    assert own["skills"][0]["id"] == "iii-directory"
    assert own["skills"][0]["provenance"] == {"kind": "built-in"}
    assert own["prompts"] == []


def test_several_functions_are_told_at_once(caller: Client) -> None:
    ids = ["mail::send", "mail::nothing", "mail::track"]

    send, nothing, track = caller.call("directory::engine::functions::info", function_ids=ids)["functions"]

    alone = caller.call("directory::engine::functions::info", function_id="mail::send")
    assert send == alone
    assert nothing == {"function_id": "mail::nothing", "error": "not_found"}
    assert track["how_guide"]["skill_id"] == "mail/track"
    said = caller.failure("directory::engine::functions::info", function_ids=["mail::send"] * 33).message
    assert said.startswith("D100 invalid_input: field 'function_ids' must be a list of at most 32")


def test_functions_of_one_name_are_told_apart_by_their_namespaces(
    engine: EngineThread, tmp_path: Path
) -> None:
    with (
        directory(engine.url, tmp_path),
        RawClient(engine.url, name="mail") as here,
        RawClient(engine.url, name="mail", namespace="elsewhere") as there,
        client(engine.url) as caller,
    ):
        for worker, home, words in ((here, "default", "Here"), (there, "elsewhere", "Elsewhere")):
            worker.send(type="registerfunction", id="mail::send", description=words)
            worker.send(type="registertriggertype", id="mail::came", description=words)
            bound = {"trigger_type": "state", "function_id": "mail::send", "config": {"scope": "mail"}}
            worker.send(type="registertrigger", id=f"binding-{words}", namespace=home, **bound)
            worker.result("engine::functions::list")

        for namespace, words in (("default", "Here"), ("elsewhere", "Elsewhere")):
            for function, key in (("function-list", "functions"), ("trigger-list", "triggers")):
                rows = caller.call(f"directory::{function}", prefix="mail::", namespace=namespace)[key]
                assert [(row["namespace"], row["description"]) for row in rows] == [(namespace, words)]
            for function, field, one in (
                ("function-info", "function_id", "mail::send"),
                ("engine::functions::info", "function_id", "mail::send"),
                ("trigger-info", "id", "mail::came"),
            ):
                detail = caller.call(f"directory::{function}", {field: one, "namespace": namespace})
                assert detail["description"] == words
            rows = caller.call("directory::registered-trigger-list", worker="mail", namespace=namespace)
            assert [(row["namespace"], row["id"]) for row in rows["registered_triggers"]] == [
                (namespace, f"binding-{words}")
            ]
            worker_info = caller.call("directory::worker-info", name="mail", namespace=namespace)
            assert worker_info["worker"]["namespace"] == namespace
            assert [row["description"] for row in worker_info["functions"]] == [words]
        rows = caller.call("directory::worker-list", prefix="mail", namespace="elsewhere")["workers"]
        assert [row["namespace"] for row in rows] == ["elsewhere"]
        bindings = caller.call("directory::registered-trigger-list", namespace="nowhere")
        assert bindings == {"registered_triggers": []}
        said = caller.failure("directory::worker-info", name="mail", namespace="nowhere").message
        assert said.startswith("D411 not_found: worker 'mail' not found in the namespace 'nowhere'; ")
        assert "; it is in 'default', 'elsewhere'. " in said


def test_a_worker_of_which_there_are_two_is_told_of_once_it_is_said_which_is_meant(
    engine: EngineThread, tmp_path: Path
) -> None:
    with (
        directory(engine.url, tmp_path),
        RawClient(engine.url, name="mail", namespace="a") as one,
        RawClient(engine.url, name="mail", namespace="b") as other,
        client(engine.url) as caller,
    ):
        for worker, home in ((one, "a"), (other, "b")):
            worker.send(type="registerfunction", id=f"mail::in-{home}")
            worker.result("engine::functions::list")

        said = caller.failure("directory::worker-info", name="mail").message
        assert said.startswith(
            "D100 invalid_input: field 'namespace' must be one of those that have a worker 'mail': 'a', 'b'. "
        )
        for home in ("a", "b"):
            detail = caller.call("directory::worker-info", name="mail", namespace=home)
            assert [row["function_id"] for row in detail["functions"]] == [f"mail::in-{home}"]


LISTS = {
    "directory::function-list": ("functions", "function_id"),
    "directory::trigger-list": ("triggers", "id"),
    "directory::registered-trigger-list": ("registered_triggers", "id"),
    "directory::worker-list": ("workers", "name"),
}


@pytest.mark.parametrize(
    ("function_id", "filters", "expected"),
    [
        ("directory::trigger-list", {"prefix": "mail::"}, ["mail::arrived"]),
        ("directory::trigger-list", {"search": "MAIL CAME"}, ["mail::arrived"]),
        ("directory::trigger-list", {"prefix": "mail::", "worker": "nobody"}, []),
        ("directory::registered-trigger-list", {"prefix": "binding-"}, ["binding-1"]),
        ("directory::registered-trigger-list", {"search": "BINDING"}, ["binding-1"]),
        ("directory::registered-trigger-list", {"search": "arrived"}, ["binding-1"]),
        ("directory::registered-trigger-list", {"function_id": "mail::track"}, ["binding-1"]),
        ("directory::registered-trigger-list", {"worker": "mail"}, ["binding-1"]),
        ("directory::registered-trigger-list", {"worker": "mail", "function_id": "mail::send"}, []),
        ("directory::worker-list", {"prefix": "mai"}, ["mail"]),
        ("directory::worker-list", {"prefix": "ail"}, []),
        ("directory::worker-list", {"status": "connected", "runtime": "test"}, ["mail"]),
        ("directory::worker-list", {"status": "available", "prefix": "mail"}, []),
    ],
)
def test_every_filter_of_the_other_lists_holds(
    caller: Client, function_id: str, filters: dict[str, str], expected: list[str]
) -> None:
    key, identifier = LISTS[function_id]

    assert [row[identifier] for row in caller.call(function_id, filters)[key]] == expected


@pytest.mark.parametrize("function_id", LISTS)
def test_a_whole_list_is_sorted_and_a_wrong_filter_is_named(caller: Client, function_id: str) -> None:
    key, identifier = LISTS[function_id]
    found = [row[identifier] for row in caller.call(function_id)[key]]

    assert found == sorted(found)
    assert len(found) > 1
    message = caller.failure(function_id, search=7).message
    assert message.startswith("D100 invalid_input: field 'search' must be a string")


@pytest.mark.parametrize(
    ("function_id", "payload"),
    [
        *((name, {}) for name in LISTS),
        ("directory::function-info", {"function_id": "mail::send"}),
        ("directory::engine::functions::info", {"function_id": "mail::track"}),
        ("directory::trigger-info", {"id": "mail::arrived"}),
        ("directory::registered-trigger-info", {"id": "binding-1"}),
        ("directory::worker-info", {"name": "mail"}),
    ],
)
def test_answers_fit_the_schemas_they_were_promised_by(
    caller: Client, function_id: str, payload: dict[str, str]
) -> None:
    info = caller.call("engine::functions::info", function_id=function_id)

    jsonschema.validate(payload, info["request_schema"])
    jsonschema.validate(caller.call(function_id, payload), info["response_schema"])


def test_the_documents_of_a_function_are_those_of_now(engine: EngineThread, tmp_path: Path) -> None:
    link = "[x](iii://fn/state/get)\n"

    def documents(connected: Client) -> tuple[str | None, list[str]]:
        detail = connected.call("directory::engine::functions::info", function_id="state::get")
        guide = detail.get("how_guide", {}).get("skill_id")
        return guide, [row["id"] for row in detail.get("related_skills", [])]

    with directory(engine.url, tmp_path), client(engine.url) as connected:
        assert documents(connected) == (None, [])
        # A link is enough; one that names the function among others is closer, one about it alone closest.
        write(tmp_path, "a/one.md", f"---\ntype: how-to\n---\n{link}")
        assert documents(connected) == ("a/one", [])
        write(tmp_path, "a/two.md", f"---\ntype: how-to\nfunctions: [state::set, state::get]\n---\n{link}")
        assert documents(connected) == ("a/two", ["a/one"])
        write(tmp_path, "a/zero.md", f"---\ntype: how-to\nfunction_id: state::get\n---\n{link}")
        assert documents(connected) == ("a/zero", ["a/two", "a/one"])

        write(tmp_path, "a/zero.md", "---\ntype: reference\nfunction_id: state::get\n---\nNo how-to now.\n")
        assert documents(connected) == ("a/two", ["a/zero", "a/one"])
        (tmp_path / "a" / "two.md").unlink()
        assert documents(connected) == ("a/one", ["a/zero"])


@pytest.mark.parametrize(
    ("function_id", "payload", "fragment"),
    [
        ("directory::function-info", {"function_id": "mail::sent"}, "Did you mean: mail::send."),
        ("directory::engine::functions::info", {"function_id": "mail::sent"}, "Did you mean: mail::send."),
        ("directory::trigger-info", {"id": "mail::arived"}, "Did you mean: mail::arrived."),
        ("directory::registered-trigger-info", {"id": "binding-2"}, "Did you mean: binding-1."),
        ("directory::worker-info", {"name": "male"}, "worker 'male' not found"),
    ],
)
def test_a_miss_is_d411_with_what_was_probably_meant(
    caller: Client, function_id: str, payload: dict[str, str], fragment: str
) -> None:
    message = caller.failure(function_id, payload).message

    assert message.startswith("D411 not_found: ")
    assert fragment in message
    assert " not found on the engine. " in message


@pytest.mark.parametrize(
    "function_id",
    [
        "directory::function-info",
        "directory::engine::functions::info",
        "directory::trigger-info",
        "directory::registered-trigger-info",
        "directory::worker-info",
    ],
)
def test_a_missing_field_is_named(caller: Client, function_id: str) -> None:
    assert caller.failure(function_id).message.startswith("D100 invalid_input: field '")


class ListingEngine:
    """An engine as the bus sees it, with fixed answers."""

    ANSWERS: Mapping[str, Any] = {}

    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        if function_id not in self.ANSWERS:
            raise CallError("function_not_found", f"Function {function_id} not found in namespace default.")
        return self.ANSWERS[function_id]

    async def tell(self, subscription: Subscription, event: Mapping[str, Any]) -> None:
        raise AssertionError("introspection tells nobody anything")


class FailingEngine(ListingEngine):
    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        raise CallError("TIMEOUT", "no answer")


class EngineOfTwins(ListingEngine):
    """An engine with two workers of one name, and no details of either."""

    ANSWERS: Mapping[str, Any] = {
        "engine::workers::list": {"workers": [{"id": h, "name": "mail", "namespace": h} for h in "ab"]},
    }


def test_of_workers_with_one_name_the_namespace_must_be_named() -> None:
    view = EngineView(EngineCalls(EngineOfTwins(), Settings()))

    with pytest.raises(DirectoryError, match="D100 invalid_input: field 'namespace' must be one of"):
        asyncio.run(view.worker("mail"))
    with pytest.raises(DirectoryError, match="D411 not_found: worker 'mail' not found in the namespace 'c'"):
        asyncio.run(view.worker("mail", "c"))


def test_an_engine_that_does_not_answer_is_d410() -> None:
    view = EngineView(EngineCalls(FailingEngine(), Settings()))

    with pytest.raises(DirectoryError, match="D410 engine_error: the engine's engine::workers::list failed"):
        asyncio.run(view.workers())


class DenyingEngine(ListingEngine):
    async def call(
        self, function_id: str, payload: Mapping[str, Any], *, timeout_ms: int, namespace: str | None = None
    ) -> Any:
        raise CallError("FORBIDDEN", "policy p-17 at /etc/iii/rbac.yaml:3 says no")


def test_an_engine_that_denies_its_own_functions_is_d410_in_one_sentence() -> None:
    view = EngineView(EngineCalls(DenyingEngine(), Settings()))

    for ask in (view.workers(), view.functions(), view.function("mail::send"), view.bindings()):
        with pytest.raises(DirectoryError) as refused:
            asyncio.run(ask)
        said = str(refused.value)
        assert said.startswith("D410 engine_error: the engine does not let the directory call engine::")
        assert "rbac.yaml" not in said


def test_skills_of_a_worker_that_left_say_so_until_it_is_back(engine: EngineThread, tmp_path: Path) -> None:
    write(tmp_path, "mail/SKILL.md", "# mail\n")
    write(tmp_path, "notes/SKILL.md", "# notes\n")

    def marks(caller: Client) -> dict[str, bool | None]:
        rows = caller.call("directory::skills::list")["skills"]
        return {row["id"]: row.get("connected") for row in rows if row["id"] in ("mail", "notes")}

    with directory(engine.url, tmp_path), client(engine.url) as caller:
        assert marks(caller) == {"mail": None, "notes": None}
        for _ in range(2):
            with RawClient(engine.url, name="mail"):
                until(lambda: marks(caller) == {"mail": None, "notes": None}, "its worker is there")
            until(lambda: marks(caller) == {"mail": False, "notes": None}, "its worker left")
