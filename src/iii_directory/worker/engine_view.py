"""What the engine knows: functions, trigger types, bindings and workers, on engines before and after 0.13."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from iii_directory.bus.seam import CallError
from iii_directory.documents.model import Finding
from iii_directory.errors import ENGINE_FAILED, ENGINE_NOT_FOUND, DirectoryError, Step, invalid_field
from iii_directory.limits import CONFIG_SUMMARY_CHARS, MAX_FUNCTION_BATCH, MAX_SUGGESTIONS
from iii_directory.shapes import is_object, rows_of
from iii_directory.suggest import close_names
from iii_directory.text import escaped, quoted
from iii_directory.wire.protocol import FUNCTION_NOT_FOUND, NOT_FOUND
from iii_directory.worker import engine_rows as shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.worker.engine_calls import EngineCalls
    from iii_directory.worker.engine_rows import Row

_ABSENT_CODES = (FUNCTION_NOT_FOUND, NOT_FOUND)
# As engines, and proxies in front of them, say that a caller has no right to something.
_DENIED_CODES = frozenset(("forbidden", "unauthorized", "permission_denied", "access_denied", "not_allowed"))


class EngineView:
    """Asks the engine. Whether it is an old one is found out once and forgotten on reconnect."""

    def __init__(self, engine: EngineCalls) -> None:
        self._engine = engine
        self._modern: bool | None = None

    def forget(self) -> None:
        """The engine may be another one now."""
        self._modern = None

    async def functions(self) -> list[Row]:
        answer = await self._ask("engine::functions::list", {"include_internal": False})
        return [shape.function_row(row) for row in rows_of(answer, "functions")]

    async def listed_functions(self) -> list[Row]:
        """Every function as the engine itself lists it, under our names of the fields."""
        answer = await self._ask("engine::functions::list", {"include_internal": False})
        return [{**row, **shape.function_row(row)} for row in rows_of(answer, "functions")]

    async def described(self, listed: Mapping[str, Row], wanted: Sequence[str]) -> dict[str, Row]:
        """Some of the listed functions with their schemas and metadata, where the engine tells of them."""
        found = {function_id: listed[function_id] for function_id in wanted}
        if wanted and await self._is_modern():
            for start in range(0, len(wanted), MAX_FUNCTION_BATCH):
                ids = wanted[start : start + MAX_FUNCTION_BATCH]
                answer = await self._find("engine::functions::info", {"function_ids": ids})
                details = {str(row.get("function_id")): row for row in rows_of(answer, "functions")}
                found |= {one: details[one] for one in ids if one in details}
        return {function_id: shape.function_detail(row, []) for function_id, row in found.items()}

    async def function(self, function_id: str, namespace: str | None = None) -> Row:
        if await self._is_modern():
            asked = {"function_id": function_id, **_in(namespace)}
            found = await self._find("engine::functions::info", asked)
            if found is not None:
                return shape.function_detail(found, [])
        else:
            answer = await self._ask("engine::functions::list", {})
            for row in rows_of(answer, "functions"):
                if shape.function_row(row)["function_id"] == function_id:
                    bindings = [b for b in await self.bindings() if b["function_id"] == function_id]
                    return shape.function_detail(row, bindings)
        known = {row["function_id"] for row in await self.functions()}
        raise _not_found("function", function_id, known, "directory::function-list")

    async def functions_at_once(self, function_ids: list[str], namespace: str | None) -> list[Row]:
        """Several in one call; one that the engine does not have is ``{function_id, error}``."""
        if not await self._is_modern():
            found = [await _or_none(self.function, function_id) for function_id in function_ids]
            return [
                row or {"function_id": function_id, "error": "not_found"}
                for function_id, row in zip(function_ids, found, strict=True)
            ]
        answer = await self._ask("engine::functions::info", {"function_ids": function_ids, **_in(namespace)})
        return [
            row if "error" in row else shape.function_detail(row, [])
            for row in shape.rows_of(answer, "functions")
        ]

    async def trigger_types(self) -> list[Row]:
        if await self._is_modern():
            answer = await self._ask("engine::triggers::list", {})
            return [shape.trigger_type_row(row) for row in rows_of(answer, "triggers")]
        return [shape.trigger_type_row(row) for row in await self._old_trigger_types()]

    async def trigger_type(self, type_id: str, namespace: str | None = None) -> Row:
        if await self._is_modern():
            found = await self._find("engine::triggers::info", {"id": type_id, **_in(namespace)})
            if found is not None:
                return shape.trigger_type_detail(found, 0)
        else:
            for row in await self._old_trigger_types():
                if row.get("id") == type_id:
                    bindings = [b for b in await self.bindings() if b["trigger_type"] == type_id]
                    return shape.trigger_type_detail(row, len(bindings))
        known = {row["id"] for row in await self.trigger_types()}
        raise _not_found("trigger type", type_id, known, "directory::trigger-list")

    async def listed_bindings(self) -> list[Row]:
        """Return every binding as the engine lists it; some engines leave out its namespace."""
        name, key = (
            ("engine::registered-triggers::list", "registered_triggers")
            if await self._is_modern()
            else ("engine::triggers::list", "triggers")
        )
        answer = await self._ask(name, {})
        return [shape.binding_row(row, _summary(row.get("config"))) for row in rows_of(answer, key)]

    async def bindings(self) -> list[Row]:
        """Return every binding with its namespace, if the engine has namespaces."""
        found = await self.listed_bindings()
        if all("namespace" in row for row in found):
            return found
        homes = await self._homes(found)
        return [row | _in(homes.get(str(row["id"]))) for row in found]

    async def binding(self, binding_id: str) -> Row:
        """One binding with its trigger type and its function, each null if it is gone."""
        found: Row | None = None
        if await self._is_modern():
            found = await self._find("engine::registered-triggers::info", {"id": binding_id})
        rows = await self.bindings()
        row = next((row for row in rows if row["id"] == binding_id), None)
        if row is None:
            known = {str(row["id"]) for row in rows}
            raise _not_found("registered trigger", binding_id, known, "directory::registered-trigger-list")
        detail = {**row, "metadata": (found or {}).get("metadata")}
        detail["trigger"] = await _or_none(self.trigger_type, str(row["trigger_type"]))
        detail["function"] = await _or_none(self.function, str(row["function_id"]))
        return detail

    async def workers(self) -> list[Row]:
        answer = await self._ask("engine::workers::list", {})
        return [shape.worker_row(row) for row in rows_of(answer, "workers")]

    async def worker(self, name: str, namespace: str | None = None) -> Row:
        """One worker with what it registered."""
        if await self._is_modern():
            found = await self._find("engine::workers::info", {"name": name, **_in(namespace)})
            if found is not None:
                return shape.worker_detail(found)
        row = _only_worker(await self.workers(), name, namespace)
        return {
            "worker": row,
            "functions": [f for f in await self.functions() if shape.is_of(f, row)],
            "trigger_types": [t for t in await self.trigger_types() if shape.is_of(t, row)],
            "registered_triggers": [b for b in await self.bindings() if shape.is_of(b, row)],
        }

    # Inner workings

    async def findings(self) -> list[Finding]:
        """What the engine says is wrong with itself: a file of state that it had to set aside."""
        try:
            name = _set_aside(await self._engine.call("engine::health::check", {}))
        except CallError:
            return []
        return [] if name is None else [_state_set_aside(name)]

    async def _homes(self, bindings: list[Row]) -> dict[str, str]:
        """The namespaces of bindings by their ids, of an engine that tells them of workers alone.

        A worker's bindings are in its own namespace. Where several have one name, each is asked for its own.
        """
        names: dict[str, set[str]] = {str(row["worker_name"]): set() for row in bindings}
        for worker in await self.workers():
            if worker["name"] in names and "namespace" in worker:
                names[worker["name"]].add(worker["namespace"])
        homes: dict[str, str] = {}
        for name, spaces in names.items():
            for space in spaces:
                asked = None if len(spaces) == 1 else await self._find_worker(name, space)
                own = bindings if asked is None else asked["registered_triggers"]
                homes |= {str(row["id"]): space for row in own if row["worker_name"] == name}
        return homes

    async def _find_worker(self, name: str, namespace: str) -> Row:
        """A worker that has just been listed; without anything if it has gone since."""
        found = await self._find("engine::workers::info", {"name": name, "namespace": namespace})
        return shape.worker_detail(found or {})

    async def _is_modern(self) -> bool:
        if self._modern is None:
            self._modern = await self._find("engine::registered-triggers::list", {}) is not None
        return self._modern

    async def _old_trigger_types(self) -> list[Row]:
        answer = await self._find("engine::trigger-types::list", {})
        return rows_of(answer, "trigger_types")

    async def _find(self, function_id: str, payload: Row) -> Row | None:
        """An answer, or None when the engine has no such thing."""
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


def _in(namespace: str | None) -> Row:
    return {} if namespace is None else {"namespace": namespace}


async def _or_none(ask: Any, identifier: str) -> Row | None:
    try:
        return await ask(identifier)
    except DirectoryError as error:
        if error.kind is ENGINE_NOT_FOUND:
            return None
        raise


def _summary(config: object) -> str:
    text = json.dumps(config, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= CONFIG_SUMMARY_CHARS else text[:CONFIG_SUMMARY_CHARS] + "…"


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


def _only_worker(rows: list[Row], name: str, namespace: str | None) -> Row:
    """The row of the worker that is meant, if it is clear which one."""
    named = [row for row in rows if row["name"] == name]
    here = [row for row in named if namespace in (None, row.get("namespace"))]
    homes = sorted({row["namespace"] for row in named if "namespace" in row})
    if here and (namespace is not None or len(homes) < 2):
        return here[0]
    if here:
        raise invalid_field("namespace", f"one of those that have a worker {quoted(name)}: {_listed(homes)}")
    if namespace is not None and homes:
        raise _elsewhere(name, namespace, homes)
    known = {str(row["name"]) for row in rows if row["name"] and namespace in (None, row.get("namespace"))}
    raise _not_found("worker", name, known, "directory::worker-list")


def _elsewhere(name: str, namespace: str, homes: list[str]) -> DirectoryError:
    return DirectoryError(
        ENGINE_NOT_FOUND,
        f"worker {quoted(name)} not found in the namespace {quoted(namespace)}; it is in {_listed(homes)}",
        next_steps=(Step("pass the namespace that is meant"),),
    )


def _listed(namespaces: list[str]) -> str:
    more = len(namespaces) - MAX_SUGGESTIONS
    shown = ", ".join(quoted(namespace) for namespace in namespaces[:MAX_SUGGESTIONS])
    return f"{shown} and {more} more" if more > 0 else shown


def _set_aside(health: object) -> str | None:
    """The name of a file of state that was set aside, in an answer of the engine about its health."""
    found: object = health
    for key in ("components", "state", "set_aside"):
        found = found.get(key) if is_object(found) else None
    return found if isinstance(found, str) else None


def _state_set_aside(name: str) -> Finding:
    return Finding(
        "unavailable",
        "iii-state",
        f"the engine's state database was not as it had left it; what was found is kept as {escaped(name)} "
        "in the data directory, and what could be read goes on",
        "look whether registrations are missing, register them again, and then delete the file",
    )
