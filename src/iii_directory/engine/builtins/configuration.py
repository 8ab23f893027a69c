"""``configuration::*``: settings of workers, checked against a schema, with ``${VAR}`` placeholders."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, cast

from iii_directory.engine.builtins.table import (
    ANY,
    BuiltinFunction,
    BuiltinType,
    BuiltinWorker,
    missing,
    optional,
    provide,
    schema,
    text,
)
from iii_directory.engine.kernel import EngineFault
from iii_directory.engine.messages import ABSENT
from iii_directory.engine.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iii_directory.engine.calls import Request
    from iii_directory.engine.messages import Json
    from iii_directory.engine.router import Router
    from iii_directory.engine.store import Store

SCOPE: Final = "configuration"
_ID: Final = re.compile(r"[a-z0-9_-]{1,64}")
_PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\}")


class Configuration:
    """Values are kept; schemas are not: an owner registers its entry again after a restart."""

    def __init__(
        self,
        router: Router,
        store: Store,
        environment: Mapping[str, str],
        problem_with: Callable[[object, object], str | None],
    ) -> None:
        self._fire = router.triggers.fire
        self._store = store
        self._environment = environment
        self._problem_with = problem_with
        self._entries: dict[str, Json] = {}

    def register(self, request: Request) -> Json:
        entry_id = _checked_id(request)
        if "schema" not in request.payload:
            raise missing(request, "schema")
        entry: Json = {
            "id": entry_id,
            "name": text(request, "name"),
            "description": text(request, "description"),
            "schema": request.payload["schema"],
        }
        if request.payload.get("metadata") is not None:
            entry["metadata"] = request.payload["metadata"]
        known = entry_id in self._entries
        old = self._stored(entry_id)
        new = old
        if request.payload.get("initial_value") is not None:
            new = request.payload["initial_value"]
            self._check(entry["schema"], new)
            self._keep(entry_id, new)
        self._entries[entry_id] = entry
        self._changed("configuration:updated" if known else "configuration:registered", entry, old, new)
        return {**entry, "value": self._shown(new)}

    def set(self, request: Request) -> Json:
        entry_id = text(request, "id")
        if "value" not in request.payload:
            raise missing(request, "value")
        new, old = request.payload["value"], self._stored(entry_id)
        entry = self._entries.get(entry_id)
        if entry is None:
            if old is ABSENT:
                raise EngineFault("NOT_REGISTERED", f"Configuration '{entry_id}' is not registered.")
            raise EngineFault(
                "SCHEMA_UNAVAILABLE", f"The owner of '{entry_id}' has not registered it since the start."
            )
        self._check(entry["schema"], new)
        self._keep(entry_id, new)
        self._changed("configuration:updated", entry, old, new)
        return {"old_value": self._shown(old), "new_value": self._shown(new)}

    def get(self, request: Request) -> Json:
        entry_id, raw = text(request, "id"), optional(request, "raw", bool)
        value, entry = self._stored(entry_id), self._entries.get(entry_id)
        if value is ABSENT and entry is None:
            raise EngineFault("NOT_FOUND", f"Configuration '{entry_id}' not found.")
        if value is ABSENT and entry is not None:
            self._check(entry["schema"], None)
        return {"id": entry_id, "value": _null(value) if raw else self._shown(value)}

    def list(self, request: Request) -> Json:  # noqa: ARG002 (it takes no fields)
        return {"configurations": [self._entries[key] for key in sorted(self._entries)]}

    def schema(self, request: Request) -> Json:
        entry_id = text(request, "id")
        if entry_id not in self._entries:
            raise EngineFault("NOT_FOUND", f"Configuration '{entry_id}' not found.")
        return self._entries[entry_id]

    def _stored(self, entry_id: str) -> object:
        try:
            return self._store.get(SCOPE, entry_id)
        except StoreError as error:
            raise EngineFault("ADAPTER_ERROR", str(error)) from None

    def _keep(self, entry_id: str, value: object) -> None:
        try:
            self._store.set(SCOPE, entry_id, value)
        except StoreError as error:
            raise EngineFault("ADAPTER_ERROR", str(error)) from None

    def _check(self, expected: object, value: object) -> None:
        problem = self._problem_with(expected, self._shown(value))
        if problem is not None:
            raise EngineFault("SCHEMA_INVALID", problem)

    def _shown(self, value: object) -> object:
        return expand(_null(value), self._environment)

    def _changed(self, event_type: str, entry: Json, old: object, new: object) -> None:
        event: Json = {
            **entry,
            "type": "configuration",
            "event_type": event_type,
            "old_value": self._shown(old),
            "new_value": self._shown(new),
        }
        self._fire("configuration", event, lambda config: _matches(config, event))


def expand(value: object, environment: Mapping[str, str]) -> object:
    """The value with ``${VAR}`` and ``${VAR:default}`` filled in; a lone placeholder is typed anew."""
    if isinstance(value, dict):
        return {key: expand(item, environment) for key, item in cast("Json", value).items()}
    if isinstance(value, list):
        return [expand(item, environment) for item in cast("list[object]", value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole is not None:
        return _typed(_filled(whole, environment))
    return _PLACEHOLDER.sub(lambda match: _filled(match, environment), value)


def _filled(match: re.Match[str], environment: Mapping[str, str]) -> str:
    name, default = cast("tuple[str, str | None]", match.groups())
    found = environment.get(name) if default is None else environment.get(name, default)
    if found is None:
        raise EngineFault("EXPAND_FAILED", f"Environment variable {name} is not set and has no default.")
    return found


def _typed(text_value: str) -> object:
    try:
        parsed = json.loads(text_value)
    except ValueError:
        return text_value
    return parsed if isinstance(parsed, (int, float, bool)) else text_value


def _null(value: object) -> object:
    return None if value is ABSENT else value


def _checked_id(request: Request) -> str:
    entry_id = text(request, "id")
    if _ID.fullmatch(entry_id) is None:
        raise EngineFault("INVALID_ID", "id must be 1 to 64 of a-z, 0-9, '_' and '-'")
    return entry_id


def _matches(config: Json, event: Json) -> bool:
    kinds = config.get("event_types")
    return config.get("configuration_id") in (None, event["id"]) and (
        not isinstance(kinds, list) or event["event_type"] in kinds
    )


def _check_config(config: object) -> str | None:
    if not isinstance(config, dict):
        return "the config of a configuration trigger is an object"
    fields = cast("Json", config)
    for key in ("configuration_id", "condition_function_id"):
        if fields.get(key) is not None and not isinstance(fields[key], str):
            return f"'{key}' must be a string"
    if fields.get("event_types") is not None and not isinstance(fields["event_types"], list):
        return "'event_types' must be a list"
    return None


def install(
    router: Router,
    store: Store,
    environment: Mapping[str, str],
    problem_with: Callable[[object, object], str | None],
) -> None:
    """Put configuration on the engine; ``problem_with(schema, value)`` says what does not fit."""
    it = Configuration(router, store, environment, problem_with)
    one = schema(["id"], id="string")
    functions = [
        BuiltinFunction(
            "configuration::register",
            "Declare an entry with its schema, and a value to start with.",
            it.register,
            schema(
                ["id", "name", "description", "schema"],
                id="string",
                name="string",
                description="string",
                schema=ANY,
                initial_value=ANY,
                metadata=ANY,
            ),
        ),
        BuiltinFunction(
            "configuration::set",
            "Replace the value of an entry.",
            it.set,
            schema(["id", "value"], id="string", value=ANY),
        ),
        BuiltinFunction(
            "configuration::get",
            "Read the value of an entry, placeholders filled in unless raw.",
            it.get,
            schema(["id"], id="string", raw="boolean"),
        ),
        BuiltinFunction("configuration::list", "All entries, without values.", it.list, schema()),
        BuiltinFunction("configuration::schema", "One entry, without its value.", it.schema, one),
    ]
    changed = BuiltinType(
        "configuration",
        "Fires when an entry is registered or its value changes.",
        schema(configuration_id="string", event_types="array", condition_function_id="string"),
        schema(event_type="string", id="string", old_value=ANY, new_value=ANY),
        _check_config,
    )
    provide(router, BuiltinWorker("configuration", "Settings of workers.", functions, [changed]))
