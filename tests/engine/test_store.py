"""Values are kept in order, in memory as on disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iii_directory.engine.sqlite_store import Database
from iii_directory.engine.store import MemoryStore
from iii_directory.wire.json_text import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from iii_directory.engine.store import Store

NAMES = st.sampled_from(["", "a", "b", "a/b", "\x00", "é", "A", "'; DROP TABLE entries; --"]) | st.text(
    max_size=3
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
STEPS = st.lists(
    st.tuples(st.just("set"), NAMES, NAMES, VALUES)
    | st.tuples(st.just("delete"), NAMES, NAMES)
    | st.tuples(st.just("restart")),
    max_size=25,
)
Model = dict[str, dict[str, Any]]


class InMemory:
    """A store that cannot restart without forgetting, so it does not."""

    def __init__(self, _directory: Path) -> None:
        self.store: Store = MemoryStore()

    def restart(self) -> None:
        pass

    def close(self) -> None:
        pass


class OnDisk:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._database = Database(directory)
        self.store: Store = self._database.store("state")

    def restart(self) -> None:
        self._database.close()
        self._database = Database(self._directory)
        self.store = self._database.store("state")

    def close(self) -> None:
        self._database.close()


@pytest.fixture(params=[InMemory, OnDisk])
def kind(request: pytest.FixtureRequest) -> Callable[[Path], InMemory | OnDisk]:
    return request.param


@pytest.fixture
def kept(kind: Callable[[Path], InMemory | OnDisk], tmp_path: Path) -> Iterator[InMemory | OnDisk]:
    made = kind(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("kind", [InMemory, OnDisk])
@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_a_store_is_a_dictionary_of_dictionaries(
    kind: Callable[[Path], InMemory | OnDisk], steps: list[tuple[Any, ...]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        kept = kind(Path(directory))
        model: Model = {}
        try:
            for step in steps:
                apply(step, kept, model)
            compare(kept.store, model)
        finally:
            kept.close()


def apply(step: tuple[Any, ...], kept: InMemory | OnDisk, model: Model) -> None:
    match step:
        case ("set", scope, key, value):
            kept.store.set(scope, key, value)
            model.setdefault(scope, {})[key] = value
        case ("delete", scope, key):
            kept.store.delete(scope, key)
            model.get(scope, {}).pop(key, None)
        case _:
            kept.restart()


def compare(store: Store, model: Model) -> None:
    assert sorted(store.scopes()) == sorted(scope for scope, held in model.items() if held)
    for scope, held in model.items():
        assert store.values(scope) == list(held.values())
        for key, value in held.items():
            found = store.get(scope, key)
            assert found == value
            assert type(found) is type(value)
        assert store.get(scope, "never set") is ABSENT
    assert store.values("never set") == []


def test_a_value_set_again_keeps_its_place_and_one_deleted_loses_it(kept: InMemory | OnDisk) -> None:
    for key in "bac":
        kept.store.set("s", key, key)
    kept.store.set("s", "b", "B")
    kept.store.delete("s", "a")
    kept.store.set("s", "a", "A")
    kept.restart()

    assert kept.store.values("s") == ["B", "c", "A"]


def test_deleting_what_is_not_there_is_nothing(kept: InMemory | OnDisk) -> None:
    kept.store.delete("s", "k")

    assert kept.store.scopes() == []


@pytest.mark.parametrize("value", [2**64, -(2**63), 1.0, 0.1, 1e308, "\U0001f600", {"": [None]}, 10**300])
def test_values_come_back_as_they_were(kept: InMemory | OnDisk, value: Any) -> None:
    kept.store.set("s", "k", value)
    kept.restart()
    found = kept.store.get("s", "k")

    assert found == value
    assert type(found) is type(value)
