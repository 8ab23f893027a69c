"""``configuration::*``: settings of workers, checked against a schema, with ``${VAR}`` placeholders. Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from iii_directory.engine.builtins import table
from iii_directory.engine.builtins.table import ANY, BuiltinFunction, BuiltinType, provide, schema
from iii_directory.engine.engine_state import EngineFault
from iii_directory.engine.store import StoreError
from iii_directory.shapes import is_list, is_object
from iii_directory.wire import protocol
from iii_directory.wire.codec import parse
from iii_directory.wire.json_text import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.engine.calls import BuiltinRequest
    from iii_directory.engine.router import Router
    from iii_directory.engine.store import Store
    from iii_directory.wire.json_text import Json

SCOPE: Final = "configuration"
_ID: Final = re.compile(r"[a-z0-9_-]{1,64}")
_PLACEHOLDER: Final = re.compile(r"\$\{([^}:]+)(?::([^}]*))?\}")
_LONE_PLACEHOLDER: Final = re.compile(r"\s*\$\{[^}]*\}\s*")


class Configuration:
    """Values are kept as they were given; schemas are not: an owner registers again after a restart."""

    def __init__(self, router: Router, store: Store, environment: Mapping[str, str]) -> None:
        self._fire = router.events.fire
        self._store = store
        self._environment = environment
        self._entries: dict[str, Json] = {}
        try:
            for entry in map(read, store.values(SCOPE)):
                if is_object(entry):
                    self._entries[entry["id"]] = {**entry, "schema": None}
        except StoreError as error:
            router.engine_state.log("error", f"configuration could not be read: {error}")

    def register(self, request: BuiltinRequest) -> Json:
        entry_id = _checked_id(request)
        if "schema" not in request.payload:
            raise table.missing(request, "schema")
        before = self._entries.get(entry_id)
        old = before["value"] if before is not None else None
        entry: Json = {
            "id": entry_id,
            "name": table.text(request, "name"),
            "description": table.text(request, "description"),
            "schema": request.payload["schema"],
            "value": old,
        }
        if request.payload.get("metadata") is not None:
            entry["metadata"] = request.payload["metadata"]
        if request.payload.get("initial_value") is not None:
            entry["value"] = request.payload["initial_value"]
            self._checked(entry["schema"], entry["value"])
        self._keep(entry)
        self._changed("configuration:registered" if before is None else "configuration:updated", entry, old)
        return entry

    def set(self, request: BuiltinRequest) -> Json:
        entry_id = _checked_id(request)
        if "value" not in request.payload:
            raise table.missing(request, "value")
        before = self._entries.get(entry_id)
        if before is None:
            raise EngineFault(protocol.NOT_REGISTERED, f"Configuration '{entry_id}' is not registered.")
        if before["schema"] is None:
            sentence = f"The owner of '{entry_id}' has not registered it since the start."
            raise EngineFault(protocol.SCHEMA_UNAVAILABLE, sentence)
        self._checked(before["schema"], request.payload["value"])
        entry = {**before, "value": request.payload["value"]}
        self._keep(entry)
        self._changed("configuration:updated", entry, before["value"])
        return {"old_value": before["value"], "new_value": entry["value"]}

    def get(self, request: BuiltinRequest) -> Json:
        entry_id, raw = table.text(request, "id"), table.optional(request, "raw", bool)
        entry = self._find(entry_id)
        if raw:
            return {"id": entry_id, "value": entry["value"]}
        value, unset = self._checked(entry["schema"], entry["value"])
        if unset:
            raise EngineFault(
                protocol.EXPAND_FAILED,
                f"Configuration '{entry_id}' needs {', '.join(unset)}, which is not set here. "
                "The engine fills in only variables that its operator lists as configuration_env in "
                "config.yaml.",
            )
        return {"id": entry_id, "value": value}

    def list(self, request: BuiltinRequest) -> Json:  # noqa: ARG002 (it takes no fields)
        return {"configurations": [_without(self._entries[key], "value") for key in sorted(self._entries)]}

    def schema(self, request: BuiltinRequest) -> Json:
        return _without(self._find(table.text(request, "id")), "value")

    def _find(self, entry_id: str) -> Json:
        entry = self._entries.get(entry_id)
        if entry is None:
            raise EngineFault(protocol.NOT_FOUND, f"Configuration '{entry_id}' not found.")
        return entry

    def _keep(self, entry: Json) -> None:
        try:
            self._store.set(SCOPE, entry["id"], _without(entry, "schema"))
        except StoreError as error:
            raise EngineFault(protocol.ADAPTER_ERROR, str(error)) from None
        self._entries[entry["id"]] = entry

    def _checked(self, expected: object, value: object) -> tuple[object, Sequence[str]]:
        """Check a value with its placeholders filled in; return it, and the variables without a value.

        With such variables it is not checked before they are set and it is read.
        """
        unset: list[str] = []
        expanded = expand(value, self._environment, unset)
        if not unset and expected is not None:
            from iii_directory.engine.schemas import schema_problem  # the library for it is large

            if (problem := schema_problem(expected, expanded)) is not None:
                raise EngineFault(protocol.SCHEMA_INVALID, problem)
        return expanded, unset

    def _changed(self, event_type: str, entry: Json, old: object) -> None:
        event: Json = {
            **_without(entry, "value"),
            "type": "configuration",
            "event_type": event_type,
            "old_value": expand(old, self._environment, []),
            "new_value": expand(entry["value"], self._environment, []),
        }

        def matches(config: Json) -> bool:
            kinds = config.get("event_types")
            is_wanted = not isinstance(kinds, list) or event_type in kinds
            return is_wanted and config.get("configuration_id") in (None, entry["id"])

        self._fire("configuration", event, matches, has_conditions=True)


def expand(value: object, environment: Mapping[str, str], unset: list[str]) -> object:
    """Return the value with ``${VAR}`` and ``${VAR:default}`` filled in; a lone placeholder is typed anew.

    A variable without a value and a default stays as it is, and its name goes into ``unset``.
    """
    if is_object(value):
        return {key: expand(item, environment, unset) for key, item in value.items()}
    if is_list(value):
        return [expand(item, environment, unset) for item in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    # Behind the last brace no placeholder ends: to look for one from every "${" there could take for ever.
    placed, brace, rest = value.rpartition("}")
    filled = _PLACEHOLDER.sub(lambda match: _filled(match, environment, unset), placed + brace) + rest
    if _LONE_PLACEHOLDER.fullmatch(value):
        with suppress(ValueError):
            return parse(filled.strip())
    return filled


def _filled(match: re.Match[str], environment: Mapping[str, str], unset: list[str]) -> str:
    name, default = cast("tuple[str, str | None]", match.groups())
    found = environment.get(name, default)
    if found is None:
        unset.append(name)
        return match[0]
    # The environment may hold bytes that are not text.
    return found.encode(errors="surrogateescape").decode(errors="replace")


def _without(entry: Json, key: str) -> Json:
    return {name: value for name, value in entry.items() if name != key}


def _checked_id(request: BuiltinRequest) -> str:
    entry_id = table.text(request, "id")
    if _ID.fullmatch(entry_id) is None:
        raise EngineFault(protocol.INVALID_ID, "id must be 1 to 64 of a-z, 0-9, '_' and '-'")
    return entry_id


def provide_configuration(router: Router, store: Store, environment: Mapping[str, str]) -> None:
    """Put configuration on the engine."""
    it = Configuration(router, store, environment)
    functions = [
        BuiltinFunction(
            "configuration::register",
            "Declare an entry with its schema, and a value to start with.",
            it.register,
            schema(*("id", "name", "description", "schema"), schema=ANY, initial_value=ANY, metadata=ANY),
        ),
        BuiltinFunction(
            "configuration::set", "Replace the value of an entry.", it.set, schema("id", "value", value=ANY)
        ),
        BuiltinFunction(
            "configuration::get",
            "Read the value of an entry, placeholders filled in unless raw.",
            it.get,
            schema("id", raw="boolean"),
        ),
        BuiltinFunction("configuration::list", "All entries, without values.", it.list, schema()),
        BuiltinFunction("configuration::schema", "One entry, without its value.", it.schema, schema("id")),
    ]
    changed = BuiltinType(
        "configuration",
        "Fires when an entry is registered or its value changes.",
        schema(configuration_id="string", event_types="array", condition_function_id="string"),
        schema(event_type="string", id="string", old_value=ANY, new_value=ANY),
        is_checked=True,
    )
    provide(router, "configuration", "Settings of workers.", functions, [changed])
