"""Where the built-ins keep values: a store in memory, and the errors of every store. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.wire.json_text import ABSENT, encode_value

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from iii_directory.engine.sqlite_store import SqliteStore


class StoreError(Exception):
    """The store could not do what was asked; the text is fit for a caller."""


class UnreadableError(StoreError):
    """What is kept in a place cannot be read as a value."""


class MemoryStore:
    """Keeps values by scope and key until the process ends; a scope lists its values as they were first set.

    Values are JSON and must not be changed by those who get them. Large values may come and be given as
    :class:`msgspec.Raw`. Another store has these methods too.
    """

    large: AbstractSet[tuple[str, str]] = frozenset()
    """The scopes and keys of values that take long to read or to replace: in memory none does."""

    def __init__(self) -> None:
        self._scopes: dict[str, dict[str, object]] = {}
        self._sizes: dict[tuple[str, str], int] = {}

    def get(self, scope: str, key: str) -> object:
        """Return the value, or ABSENT."""
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
        """Return about how many bytes the values of a scope take as one JSON text."""
        return sum(self._sizes[scope, key] + 1 for key in self._scopes.get(scope, {}))

    def scopes(self) -> list[str]:
        return [scope for scope, values in self._scopes.items() if values]


if TYPE_CHECKING:
    Store = MemoryStore | SqliteStore
