"""Values of the state that are too large to be read on the way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.engine.driver import Driver, uuid_of

from iii_directory.engine.engine_state import Send
from iii_directory.engine.sqlite_store import Database
from iii_directory.shapes import items_of
from iii_directory.wire.codec import encode
from iii_directory.wire.json_text import read, whole
from iii_directory.wire.messages import InvocationResult, InvokeFunction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGE = [{"number": 2**70, "text": "é" * 50, "float": 1.0}] * 1_000


@pytest.fixture(params=["memory", "sqlite"])
def on_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    if request.param == "memory":
        yield Driver()
        return
    database = Database(tmp_path)
    yield Driver(state=database.store("state"))
    database.close()


def test_a_large_value_comes_out_as_it_went_in(on_store: Driver) -> None:
    client = on_store.connect("client")
    place = {"scope": "s", "key": "k"}

    assert client.result("state::set", {**place, "value": LARGE}) == {"old_value": None, "new_value": LARGE}
    assert client.result("state::set", {**place, "data": LARGE})["old_value"] == LARGE
    assert client.result("state::get", place) == LARGE
    assert client.result("state::list", {"scope": "s"}) == [LARGE]
    updated = client.result("state::update", {**place, "ops": [{"type": "set", "path": "a", "value": 1}]})
    assert updated["old_value"] == LARGE
    assert client.result("state::set", {**place, "value": LARGE})["new_value"] == LARGE
    assert client.result("state::delete", place) == LARGE


def test_a_large_value_is_kept_and_given_as_it_was_written(on_store: Driver) -> None:
    client = on_store.connect("client")
    value = json.dumps(LARGE, indent=1)
    about = f'"type":"invokefunction","function_id":"state::set","invocation_id":"{uuid_of(7)}"'
    client.frame(f'{{{about},"data":{{"scope":"s","key":"k","value":{value}}}}}')

    client.start("state::get", {"scope": "s", "key": "k"})

    sent = next(effect.message for effect in on_store.effects if isinstance(effect, Send))
    assert value.encode() in b"".join(encode(sent))


def test_a_large_value_is_decoded_for_a_worker_in_the_same_process(on_store: Driver) -> None:
    inside = on_store.connect("inside", inside=True)
    inside.register("inside::hear")
    inside.bind("b", "state", "inside::hear")
    outside = on_store.connect("outside")

    outside.start("state::set", {"scope": "s", "key": "k", "value": LARGE})

    heard = next(
        effect.message
        for effect in on_store.effects
        if isinstance(effect, Send) and effect.connection_id == inside.id
    )
    assert isinstance(heard, InvokeFunction)
    assert whole(heard.data)["new_value"] == LARGE  # pyright: ignore[reportIndexIssue]
    inside.start("state::get", {"scope": "s", "key": "k"})
    answer = next(effect.message for effect in on_store.effects if isinstance(effect, Send))
    assert isinstance(answer, InvocationResult)
    assert whole(answer.result) == LARGE


def test_a_worker_in_the_same_process_decodes_a_list_of_large_values_one_by_one(on_store: Driver) -> None:
    inside = on_store.connect("inside", inside=True)
    outside = on_store.connect("outside")
    for key in ("one", "two"):
        outside.start("state::set", {"scope": "s", "key": key, "value": LARGE})

    inside.start("state::list", {"scope": "s"})

    answer = next(effect.message for effect in on_store.effects if isinstance(effect, Send))
    assert isinstance(answer, InvocationResult)
    values = items_of(answer.result)
    assert all(isinstance(value, msgspec.Raw) for value in values)
    assert [read(value) for value in values] == [LARGE, LARGE]


def test_a_large_call_that_is_not_an_object_is_refused() -> None:
    client = Driver().connect("client")

    assert "expected an object" in client.error("state::set", LARGE)["message"]
