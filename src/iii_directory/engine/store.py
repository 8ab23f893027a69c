"""What the built-ins keep values in: a seam with two sides, memory here and SQLite next door. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from iii_directory.wire.json_text import ABSENT, encode_value

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Store(Protocol):
    """Values by scope and key; a scope lists its values in the order they were first set.

    A value that :meth:`set` returned from is kept; how well is the implementation's promise.
    Values are JSON and must not be changed by whoever gets them. Large ones may come as
    :class:`msgspec.Raw`, and may be given as that.
    """

    def get(self, scope: str, key: str) -> object:
        """The value, or ABSENT."""
        ...

    def set(self, scope: str, key: str, value: object) -> None: ...

    def delete(self, scope: str, key: str) -> None: ...

    def values(self, scope: str) -> list[object]: ...

    def size(self, scope: str) -> int:
        """About how many bytes the values of a scope take as one JSON text."""
        ...

    def scopes(self) -> list[str]: ...

    def is_large(self, scope: str, key: str) -> bool:
        """Whether it takes long to read or to replace a value."""
        ...


class Errands(Protocol):
    """How work that takes long is done: one piece after the other, in the order in which it came."""

    @property
    def under_way(self) -> bool:
        """Whether there is work that is not done yet; what comes now has to wait for it."""
        ...

    def run(self, work: Callable[[], T], then: Callable[[Callable[[], T]], None]) -> None:
        """Do some work, and then something that is given the way to what came of it."""
        ...


class AtOnce:
    """Errands of whoever can wait for each."""

    under_way = False

    def run(self, work: Callable[[], T], then: Callable[[Callable[[], T]], None]) -> None:
        then(work)


class StoreError(Exception):
    """The store could not do what was asked; the text is fit for a caller."""


class UnreadableError(StoreError):
    """What is kept in a place is no value any more."""


class MemoryStore:
    """Forgets everything when it goes."""

    def __init__(self) -> None:
        self._scopes: dict[str, dict[str, object]] = {}
        self._sizes: dict[tuple[str, str], int] = {}

    def get(self, scope: str, key: str) -> object:
        return self._scopes.get(scope, {}).get(key, ABSENT)

    def set(self, scope: str, key: str, value: object) -> None:
        self._scopes.setdefault(scope, {})[key] = value
        self._sizes[scope, key] = len(encode_value(value))

    def delete(self, scope: str, key: str) -> None:
        self._scopes.get(scope, {}).pop(key, None)
        self._sizes.pop((scope, key), None)

    def values(self, scope: str) -> list[object]:
        return list(self._scopes.get(scope, {}).values())

    def size(self, scope: str) -> int:
        return sum(self._sizes[scope, key] + 1 for key in self._scopes.get(scope, {}))

    def scopes(self) -> list[str]:
        return [scope for scope, values in self._scopes.items() if values]

    def is_large(self, scope: str, key: str) -> bool:  # noqa: ARG002 (what is in memory already is at hand)
        return False
