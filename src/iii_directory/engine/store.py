"""Where the built-ins keep values: the interface of a store, and a store in memory. Pure."""

from __future__ import annotations

from typing import Protocol

from iii_directory.wire.json_text import ABSENT, encode_value


class Store(Protocol):
    """Values by scope and key; a scope lists its values in the order they were first set.

    Values are JSON and must not be changed by those who get them. Large values may come and be given as
    :class:`msgspec.Raw`.
    """

    def get(self, scope: str, key: str) -> object:
        """Return the value, or ABSENT."""
        ...

    def set(self, scope: str, key: str, value: object) -> None: ...

    def delete(self, scope: str, key: str) -> None: ...

    def values(self, scope: str) -> list[object]: ...

    def size(self, scope: str) -> int:
        """Return about how many bytes the values of a scope take as one JSON text."""
        ...

    def scopes(self) -> list[str]: ...

    def is_large(self, scope: str, key: str) -> bool:
        """Return whether it takes long to read or to replace a value."""
        ...


class StoreError(Exception):
    """The store could not do what was asked; the text is fit for a caller."""


class UnreadableError(StoreError):
    """What is kept in a place cannot be read as a value."""


class MemoryStore:
    """Keeps values until the process ends."""

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
