"""Ask the engine what it knows: functions, trigger types, bindings and workers, with our field names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from iii_directory.bus.seam import CallError, Subscription
from iii_directory.documents.model import Finding
from iii_directory.errors import ENGINE_FAILED, ENGINE_NOT_FOUND, DirectoryError, Step, invalid_field
from iii_directory.limits import CONFIG_SUMMARY_CHARS, MAX_FUNCTION_BATCH, MAX_SUGGESTIONS
from iii_directory.shapes import object_of, rows_of, text_of
from iii_directory.text import close_names, escaped, quoted
from iii_directory.wire.protocol import DEFAULT_NAMESPACE, FUNCTION_NOT_FOUND, NOT_FOUND, first_segment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from iii_directory.bus.seam import Bus
    from iii_directory.config import Settings

Row = dict[str, Any]
_ABSENT_CODES: Final = (FUNCTION_NOT_FOUND, NOT_FOUND)
# The codes by which engines, and proxies in front of them, refuse a caller that lacks a right.
_DENIED_CODES: Final = frozenset(
    ("forbidden", "unauthorized", "permission_denied", "access_denied", "not_allowed")
)
_SEARCHED: Final = ("id", "function_id", "name", "description", "trigger_type")


class EngineCalls:
    """Calls functions of the engine's default namespace, with the timeout of the current settings."""

    def __init__(self, bus: Bus, settings: Settings) -> None:
        self._bus = bus
        self._settings = settings

    def call(self, function_id: str, payload: Mapping[str, Any]) -> Awaitable[Any]:
        """Return the answer to await; it raises CallError if the engine does not give one."""
        return self._bus.call(
            function_id, payload, timeout_ms=self._settings.state_timeout_ms, namespace=DEFAULT_NAMESPACE
        )

    async def find(self, function_id: str, payload: Mapping[str, Any]) -> Any:
        """Return the answer, or None when the engine does not give one."""
        try:
            return await self.call(function_id, payload)
        except CallError:
            return None

    async def send(self, function_id: str, payload: Mapping[str, Any]) -> None:
        """Call a function without waiting for an answer."""
        await self._bus.tell(Subscription("", function_id, None, DEFAULT_NAMESPACE), payload)


class EngineView:
    """Asks the engine about itself; every failure is a `DirectoryError`."""

    def __init__(self, engine: EngineCalls) -> None:
        self._engine = engine

    async def functions(self) -> list[Row]:
        """Return every function as ``directory::function-list`` shows it."""
        return [function_row(row) for row in await self.listed_functions()]

    async def listed_functions(self) -> list[Row]:
        """Return every function with all fields of the engine's list, under our names."""
        answer = await self._ask("engine::functions::list", {"include_internal": False})
        return [{**row, **function_row(row)} for row in rows_of(answer, "functions")]

    async def described(self, listed: Mapping[str, Row], wanted: Sequence[str]) -> dict[str, Row]:
        """Return some of the listed functions with their schemas and metadata, if the engine has them."""
        found = {function_id: listed[function_id] for function_id in wanted}
        for start in range(0, len(wanted), MAX_FUNCTION_BATCH):
            ids = wanted[start : start + MAX_FUNCTION_BATCH]
            answer = await self._find("engine::functions::info", {"function_ids": ids})
            details = {str(row.get("function_id")): row for row in rows_of(answer, "functions")}
            found |= {one: details[one] for one in ids if one in details}
        return {function_id: _function_detail(row) for function_id, row in found.items()}

    async def function(self, function_id: str, namespace: str | None = None) -> Row:
        """Return one function in full."""
        found = await self._find("engine::functions::info", {"function_id": function_id, **_in(namespace)})
        if found is not None:
            return _function_detail(found)
        known = {row["function_id"] for row in await self.functions()}
        raise _not_found("function", function_id, known, "directory::function-list")

    async def functions_at_once(self, function_ids: list[str], namespace: str | None) -> list[Row]:
        """Return several functions; one that the engine does not have is ``{function_id, error}``."""
        answer = await self._ask("engine::functions::info", {"function_ids": function_ids, **_in(namespace)})
        rows = rows_of(answer, "functions")
        return [row if "error" in row else _function_detail(row) for row in rows]

    async def trigger_types(self) -> list[Row]:
        answer = await self._ask("engine::triggers::list", {})
        return [function_row(row, "id") for row in rows_of(answer, "triggers")]

    async def trigger_type(self, type_id: str, namespace: str | None = None) -> Row:
        """Return one trigger type in full."""
        found = await self._find("engine::triggers::info", {"id": type_id, **_in(namespace)})
        if found is not None:
            schemas = ("configuration_schema", "request_schema", "response_schema")
            row = {**found, **function_row(found, "id"), **{key: found.get(key) for key in schemas}}
            return {**row, "instance_count": found.get("instance_count", 0)}
        known = {row["id"] for row in await self.trigger_types()}
        raise _not_found("trigger type", type_id, known, "directory::trigger-list")

    async def listed_bindings(self) -> list[Row]:
        """Return every binding as the engine lists it; some engines leave out its namespace."""
        answer = await self._ask("engine::registered-triggers::list", {})
        return [_binding_row(row) for row in rows_of(answer, "registered_triggers")]

    async def bindings(self) -> list[Row]:
        """Return every binding with its namespace, if the engine has namespaces."""
        found = await self.listed_bindings()
        if all("namespace" in row for row in found):
            return found
        homes = await self._namespaces_of(found)
        return [row | _in(homes.get(str(row["id"]))) for row in found]

    async def binding(self, binding_id: str) -> Row:
        """Return one binding with its trigger type and its function, each null if it is gone."""
        found = await self._find("engine::registered-triggers::info", {"id": binding_id})
        rows = await self.bindings()
        row = next((row for row in rows if row["id"] == binding_id), None)
        if row is None:
            known = {str(row["id"]) for row in rows}
            raise _not_found("registered trigger", binding_id, known, "directory::registered-trigger-list")
        return {
            **row,
            "metadata": (found or {}).get("metadata"),
            "trigger": await _or_none(self.trigger_type, str(row["trigger_type"])),
            "function": await _or_none(self.function, str(row["function_id"])),
        }

    async def workers(self) -> list[Row]:
        answer = await self._ask("engine::workers::list", {})
        return [_worker_row(row) for row in rows_of(answer, "workers")]

    async def worker(self, name: str, namespace: str | None = None) -> Row:
        """Return one worker with what it registered, its rows in the shape of our lists."""
        found = await self._find("engine::workers::info", {"name": name, **_in(namespace)})
        if found is None:
            raise _no_worker(await self.workers(), name, namespace)
        envelope = object_of(found.get("worker"))
        return {
            "worker": {**envelope, **_worker_row(envelope)},
            "functions": [function_row(row) for row in rows_of(found, "functions")],
            "trigger_types": [function_row(row, "id") for row in rows_of(found, "trigger_types")],
            "registered_triggers": [_binding_row(row) for row in rows_of(found, "registered_triggers")],
        }

    async def findings(self) -> list[Finding]:
        """Return what the engine reports about itself: a state database that it had to set aside."""
        health: object = await self._engine.find("engine::health::check", {})
        for key in ("components", "state", "set_aside"):
            health = object_of(health).get(key)
        name = text_of(health)
        if name is None:
            return []
        reason = (
            f"the engine's state database was damaged; what was found is kept as {escaped(name)} in the data "
            "directory, and what could be read goes on"
        )
        fix = "look whether registrations are missing, register them again, and then delete the file"
        return [Finding("unavailable", "iii-state", reason, fix)]

    # Inner workings

    async def _namespaces_of(self, bindings: list[Row]) -> dict[str, str]:
        """Return the namespaces of bindings by their ids, on an engine that tells them of workers alone.

        A worker's bindings are in its own namespace. If workers of several namespaces have one name, each is
        asked for its own bindings.
        """
        names: dict[str, set[str]] = {str(row["worker_name"]): set() for row in bindings}
        for worker in await self.workers():
            if worker["name"] in names and "namespace" in worker:
                names[worker["name"]].add(worker["namespace"])
        homes: dict[str, str] = {}
        for name, spaces in names.items():
            for space in spaces:
                own = bindings
                if len(spaces) > 1:
                    asked = await self._find("engine::workers::info", {"name": name, "namespace": space})
                    own = [_binding_row(row) for row in rows_of(asked, "registered_triggers")]
                homes |= {str(row["id"]): space for row in own if row["worker_name"] == name}
        return homes

    async def _find(self, function_id: str, payload: Row) -> Row | None:
        """Return an answer, or None when the engine does not have the thing."""
        try:
            return await self._engine.call(function_id, payload)
        except CallError as error:
            if error.code in _ABSENT_CODES:
                return None
            raise _failed(function_id, error) from None

    async def _ask(self, function_id: str, payload: Row) -> Any:
        try:
            return await self._engine.call(function_id, payload)
        except CallError as error:
            raise _failed(function_id, error) from None


def function_row(row: Row, key: str = "function_id") -> Row:
    """Return a function as ``directory::function-list`` shows it; trigger types differ in the key alone."""
    identifier = str(row.get(key) or "")
    return {
        key: identifier,
        "name": identifier.rsplit("::", 1)[-1],
        "worker_name": row.get("worker_name") or first_segment(identifier),
        "description": row.get("description"),
        **_in(row.get("namespace")),
    }


def matches(row: Row, filters: dict[str, str | None], identifier: str) -> bool:
    """Return whether a row passes: ``search`` in any text, ``prefix`` of its id, the others exactly."""
    for key, wanted in filters.items():
        if wanted is None:
            continue
        if key == "search":
            texts = (str(row.get(field) or "") for field in _SEARCHED)
            if not any(wanted.casefold() in text.casefold() for text in texts):
                return False
        elif key == "prefix":
            if not str(row.get(identifier) or "").startswith(wanted):
                return False
        elif row.get("worker_name" if key == "worker" else key) != wanted:
            return False
    return True


def _function_detail(row: Row) -> Row:
    return {
        **row,
        **function_row(row),
        **{key: row.get(key) for key in ("request_schema", "response_schema", "metadata")},
        "registered_triggers": [
            {key: binding.get(key) for key in ("id", "trigger_type", "config")}
            for binding in rows_of(row, "registered_triggers")
        ],
    }


def _binding_row(row: Row) -> Row:
    """Return a binding as ``directory::registered-trigger-list`` shows it."""
    function_id = str(row.get("function_id") or "")
    summary = json.dumps(row.get("config"), ensure_ascii=False, separators=(",", ":"))
    if len(summary) > CONFIG_SUMMARY_CHARS:
        summary = summary[:CONFIG_SUMMARY_CHARS] + "…"
    return {
        "id": row.get("id"),
        "trigger_type": row.get("trigger_type"),
        "function_id": function_id,
        "worker_name": row.get("worker_name") or first_segment(function_id),
        "config": row.get("config"),
        "config_summary": row.get("config_summary", summary),
        **_in(row.get("namespace")),
    }


def _worker_row(row: Row) -> Row:
    """Return a worker; its first fields are those of the registry's rows."""
    copied = ("name", "description", "version", "id", "runtime", "status")
    return {
        **{key: row.get(key) for key in copied},
        "function_count": row.get("function_count", 0),
        **_in(row.get("namespace")),
    }


def _in(namespace: object) -> Row:
    return {"namespace": namespace} if isinstance(namespace, str) else {}


async def _or_none(ask: Callable[[str], Awaitable[Row]], identifier: str) -> Row | None:
    try:
        return await ask(identifier)
    except DirectoryError as error:
        if error.kind is ENGINE_NOT_FOUND:
            return None
        raise


def _failed(function_id: str, error: CallError) -> DirectoryError:
    if error.code.casefold() in _DENIED_CODES:
        way = Step("ask the operator of the engine to let this worker call it")
        problem = f"the engine does not let the directory call {function_id}"
        return DirectoryError(ENGINE_FAILED, problem, next_steps=(way,))
    return DirectoryError(ENGINE_FAILED, f"the engine's {function_id} failed: {error}")


def _not_found(what: str, identifier: str, known: set[str], lister: str) -> DirectoryError:
    return DirectoryError(
        ENGINE_NOT_FOUND,
        f"{what} {quoted(identifier)} not found on the engine",
        did_you_mean=close_names(identifier, known),
        next_steps=(Step("to see what is registered", lister),),
    )


def _no_worker(rows: list[Row], name: str, namespace: str | None) -> DirectoryError:
    """Return why a worker is not described: it is unknown, elsewhere, or in several namespaces."""
    homes = sorted({row["namespace"] for row in rows if row["name"] == name and "namespace" in row})
    more = len(homes) - MAX_SUGGESTIONS
    listed = ", ".join(map(quoted, homes[:MAX_SUGGESTIONS])) + (f" and {more} more" if more > 0 else "")
    if namespace is None and len(homes) > 1:
        return invalid_field("namespace", f"one of those that have a worker {quoted(name)}: {listed}")
    if namespace is not None and homes:
        return DirectoryError(
            ENGINE_NOT_FOUND,
            f"worker {quoted(name)} not found in the namespace {quoted(namespace)}; it is in {listed}",
            next_steps=(Step("pass the namespace that is meant"),),
        )
    known = {str(row["name"]) for row in rows if row["name"] and namespace in (None, row.get("namespace"))}
    return _not_found("worker", name, known, "directory::worker-list")
