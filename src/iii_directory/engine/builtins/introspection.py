"""``engine::functions``, ``engine::triggers`` and ``engine::registered-triggers``: what is registered.

Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iii_directory.engine.builtins import table
from iii_directory.engine.builtins.table import ANY, BuiltinFunction, BuiltinType, provide, schema
from iii_directory.engine.calls import DEFERRED
from iii_directory.engine.engine_state import EngineFault
from iii_directory.engine.router import FUNCTIONS_AVAILABLE
from iii_directory.limits import MAX_FUNCTION_BATCH
from iii_directory.shapes import is_text_list
from iii_directory.wire.messages import RegisterTrigger
from iii_directory.wire.protocol import DEFAULT_NAMESPACE, ENGINE_PREFIX, INVALID_ARGUMENTS, NOT_FOUND

if TYPE_CHECKING:
    from iii_directory.engine.calls import BuiltinRequest
    from iii_directory.engine.engine_state import RegisteredFunction
    from iii_directory.engine.router import Router
    from iii_directory.wire.json_text import Json

_FILTERS: Final = {"search": "string", "prefix": "string", "worker": "string", "include_internal": "boolean"}


class EngineIntrospection:
    """Reads the functions and the triggers; changes nothing but durable bindings."""

    def __init__(self, router: Router) -> None:
        self._engine_state = router.engine_state
        self._triggers = router.triggers
        self._rows = router.rows

    def functions_list(self, request: BuiltinRequest) -> Json:
        search: str | None = table.optional(request, "search", str)
        prefix: str = table.optional(request, "prefix", str) or ""
        internal = table.optional(request, "include_internal", bool)
        workers: list[object] = list(table.optional(request, "workers", list) or [])
        worker = table.optional(request, "worker", str)
        if worker is not None:
            workers.append(worker)
        found = [
            function
            for function in self._engine_state.functions.values()
            if (internal or not function.is_hidden)
            and function.id.startswith(prefix)
            and (not workers or self._engine_state.worker_name(function) in workers)
            and table.contains(search, function.id, function.description)
        ]
        found.sort(key=lambda function: (_rank(function.id, search), function.id, function.namespace))
        return {"functions": [self._rows.function_summary(function) for function in found]}

    def functions_info(self, request: BuiltinRequest) -> Json:
        namespace: str | None = table.optional(request, "namespace", str)
        single: str | None = table.optional(request, "function_id", str)
        many: list[object] | None = table.optional(request, "function_ids", list)
        if (single is None) == (many is None):
            raise EngineFault(INVALID_ARGUMENTS, "Pass exactly one of function_id and function_ids.")
        if single is not None:
            return self._rows.function_detail(self._find(single, namespace))
        names = list(dict.fromkeys(many)) if is_text_list(many) else []
        if not 1 <= len(names) <= MAX_FUNCTION_BATCH:
            sentence = f"function_ids must be 1 to {MAX_FUNCTION_BATCH} function ids."
            raise EngineFault(INVALID_ARGUMENTS, sentence)
        details: list[Json] = []
        for name in names:
            try:
                details.append(self._rows.function_detail(self._find(name, namespace)))
            except EngineFault:
                details.append({"function_id": name, "error": "not_found"})
        return {"functions": details}

    def triggers_list(self, request: BuiltinRequest) -> Json:
        search, prefix = table.optional(request, "search", str), table.optional(request, "prefix", str)
        worker = table.optional(request, "worker", str)
        internal = table.optional(request, "include_internal", bool)
        rows = [
            self._rows.type_summary(kind)
            for kind in self._triggers.types.values()
            if (internal or not kind.id.startswith(ENGINE_PREFIX))
            and kind.id.startswith(prefix or "")
            and table.contains(search, kind.id, kind.description)
            and worker in (None, self._engine_state.worker_name(kind))
        ]
        return {"triggers": sorted(rows, key=lambda row: (row["id"], row["namespace"]))}

    def triggers_info(self, request: BuiltinRequest) -> Json:
        type_id = table.text(request, "id")
        namespace: str = table.optional(request, "namespace", str) or DEFAULT_NAMESPACE
        kind = self._triggers.types.get((namespace, type_id))
        if kind is None:
            sentence = f"Trigger type '{type_id}' is not registered in namespace '{namespace}'."
            raise EngineFault(NOT_FOUND, sentence)
        return self._rows.type_detail(kind)

    def registered_list(self, request: BuiltinRequest) -> Json:
        search, kind = table.optional(request, "search", str), table.optional(request, "trigger_type", str)
        function_id, worker = (
            table.optional(request, "function_id", str),
            table.optional(request, "worker", str),
        )
        internal = table.optional(request, "include_internal", bool)
        rows = [
            self._rows.binding_row(binding)
            for binding in self._triggers.live(kind)
            if function_id in (None, binding.function_id)
            and table.contains(search, binding.id, binding.trigger_type, binding.function_id)
            and (internal or not binding.function_id.startswith(ENGINE_PREFIX))
        ]
        rows = [row for row in rows if worker in (None, row["worker_name"])]
        return {"registered_triggers": sorted(rows, key=lambda row: row["id"])}

    def registered_info(self, request: BuiltinRequest) -> Json:
        binding_id = table.text(request, "id")
        binding = self._triggers.bindings.get(binding_id)
        if binding is None or binding.provider is None:
            raise EngineFault(NOT_FOUND, f"Registered trigger '{binding_id}' was not found.")
        detail = self._rows.binding_row(binding)
        del detail["config_summary"]
        if binding.metadata is not None:
            detail["metadata"] = binding.metadata
        function = self._engine_state.functions.get((binding.namespace, binding.function_id))
        detail["trigger"] = self._rows.type_detail(self._triggers.types[binding.provider])
        detail["function"] = self._rows.function_detail(function) if function else None
        return detail

    def register_trigger(self, request: BuiltinRequest) -> object:
        binding = RegisterTrigger(
            id=self._engine_state.new_id(),
            trigger_type=table.text(request, "trigger_type"),
            function_id=table.text(request, "function_id"),
            config=request.payload.get("config"),
            metadata=request.payload.get("metadata"),
            trigger_namespace=table.optional(request, "trigger_namespace", str),
        )
        self._triggers.bind_durably(binding, request.answer)
        return DEFERRED

    def unregister_trigger(self, request: BuiltinRequest) -> Json:
        caller = self._engine_state.connections.get(request.caller or "")
        return {"removed": self._triggers.unbind_for(caller, table.text(request, "id"))}

    def _find(self, function_id: str, namespace: str | None) -> RegisteredFunction:
        homes = self._engine_state.namespaces_with(function_id)
        if namespace is None:
            namespace = homes[0] if len(homes) == 1 else DEFAULT_NAMESPACE
        found = self._engine_state.functions.get((namespace, function_id))
        if found is not None:
            return found
        if homes:
            raise EngineFault(
                NOT_FOUND,
                f"Function '{function_id}' is ambiguous: it is registered in namespace(s): "
                f"{', '.join(homes)}. Pass `namespace` to choose one.",
            )
        raise EngineFault(NOT_FOUND, f"Function '{function_id}' is not registered.")


def _rank(function_id: str, search: str | None) -> int:
    if search is None:
        return 0
    term, lowered = search.lower(), function_id.lower()
    if lowered.startswith(term) or term in lowered.split("::"):
        return 0
    return 1 if term in lowered else 2


def provide_introspection(router: Router) -> None:
    """Put the introspection functions on the engine."""
    it = EngineIntrospection(router)
    ids = {"type": "array", "items": {"type": "string"}}
    functions = [
        BuiltinFunction(
            "engine::functions::list",
            "List registered functions, filtered by search, prefix and worker.",
            it.functions_list,
            schema(**_FILTERS, workers=ids),
        ),
        BuiltinFunction(
            "engine::functions::info",
            f"One function, or up to {MAX_FUNCTION_BATCH}, with schemas and the triggers bound to it.",
            it.functions_info,
            schema(function_id="string", function_ids=ids, namespace="string"),
        ),
        BuiltinFunction(
            "engine::triggers::list", "List trigger types.", it.triggers_list, schema(**_FILTERS)
        ),
        BuiltinFunction(
            "engine::triggers::info",
            "One trigger type with its schemas.",
            it.triggers_info,
            schema("id", namespace="string"),
        ),
        BuiltinFunction(
            "engine::registered-triggers::list",
            "List the functions bound to trigger types.",
            it.registered_list,
            schema(
                trigger_type="string",
                function_id="string",
                search="string",
                worker="string",
                include_internal="boolean",
            ),
        ),
        BuiltinFunction(
            "engine::registered-triggers::info",
            "One binding with its trigger type and its function.",
            it.registered_info,
            schema("id"),
        ),
        BuiltinFunction(
            "engine::register_trigger",
            "Bind a function to a trigger type, beyond the life of the caller.",
            it.register_trigger,
            schema("trigger_type", "function_id", config=ANY, metadata=ANY, trigger_namespace="string"),
        ),
        BuiltinFunction(
            "engine::unregister_trigger",
            "Remove a binding.",
            it.unregister_trigger,
            schema("id", trigger_type="string"),
        ),
    ]
    available = BuiltinType(
        FUNCTIONS_AVAILABLE,
        "Fires when the set of registered functions changed.",
        schema(),
        schema(event="string", functions="array"),
    )
    provide(router, "iii-engine-functions", "Introspection.", functions, [available])
