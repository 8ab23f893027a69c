"""``engine::functions``, ``engine::triggers`` and ``engine::registered-triggers``: what is registered.

Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from iii_directory.engine.builtins.table import (
    ANY,
    BuiltinFunction,
    BuiltinType,
    BuiltinWorker,
    contains,
    optional,
    provide,
    schema,
    text,
)
from iii_directory.engine.calls import DEFERRED, Request
from iii_directory.engine.engine_state import EngineFault, Function
from iii_directory.engine.router import FUNCTIONS_AVAILABLE
from iii_directory.limits import MAX_FUNCTION_BATCH
from iii_directory.wire.messages import RegisterTrigger
from iii_directory.wire.protocol import DEFAULT_NAMESPACE, ENGINE_PREFIX, INVALID_ARGUMENTS, NOT_FOUND

if TYPE_CHECKING:
    from iii_directory.engine.router import Router
    from iii_directory.wire.json_text import Json

_FILTERS: Final = {"search": "string", "prefix": "string", "worker": "string", "include_internal": "boolean"}


class Introspection:
    """Reads the engine_state and the triggers; changes nothing but durable bindings."""

    def __init__(self, router: Router) -> None:
        self._engine_state = router.engine_state
        self._triggers = router.triggers
        self._rows = router.rows

    def functions_list(self, request: Request) -> Json:
        search = cast("str | None", optional(request, "search", str))
        rows = [f for f in self._engine_state.functions.values() if self._wanted(request, f, search)]
        rows.sort(key=lambda f: (_rank(f.id, search), f.id, f.namespace))
        return {"functions": [self._rows.function_summary(f) for f in rows]}

    def functions_info(self, request: Request) -> Json:
        namespace = cast("str | None", optional(request, "namespace", str))
        single = cast("str | None", optional(request, "function_id", str))
        many = cast("list[object] | None", optional(request, "function_ids", list))
        if single is not None and many is None:
            return self._rows.function_detail(self._find(single, namespace))
        if many is not None and single is None:
            return {"functions": [self._one_of_many(item, namespace) for item in _batch(many)]}
        raise EngineFault(INVALID_ARGUMENTS, "Pass exactly one of function_id and function_ids.")

    def triggers_list(self, request: Request) -> Json:
        search, prefix = optional(request, "search", str), optional(request, "prefix", str)
        worker, internal = optional(request, "worker", str), optional(request, "include_internal", bool)
        rows = [
            self._rows.type_summary(kind)
            for kind in self._triggers.types.values()
            if (internal or not kind.id.startswith(ENGINE_PREFIX))
            and kind.id.startswith(prefix or "")
            and contains(search, kind.id, kind.description)
            and worker in (None, self._engine_state.worker_name(kind))
        ]
        return {"triggers": sorted(rows, key=lambda row: (row["id"], row["namespace"]))}

    def triggers_info(self, request: Request) -> Json:
        type_id = text(request, "id")
        namespace = cast("str", optional(request, "namespace", str) or DEFAULT_NAMESPACE)
        kind = self._triggers.types.get((namespace, type_id))
        if kind is None:
            raise EngineFault(
                NOT_FOUND, f"Trigger type '{type_id}' is not registered in namespace '{namespace}'."
            )
        return self._rows.type_detail(kind)

    def registered_list(self, request: Request) -> Json:
        search, kind = optional(request, "search", str), optional(request, "trigger_type", str)
        function_id, worker = optional(request, "function_id", str), optional(request, "worker", str)
        internal = optional(request, "include_internal", bool)
        rows = [
            self._rows.binding_row(binding)
            for binding in self._triggers.live(kind)
            if function_id in (None, binding.function_id)
            and contains(search, binding.id, binding.trigger_type, binding.function_id)
            and (internal or not binding.function_id.startswith(ENGINE_PREFIX))
        ]
        rows = [row for row in rows if worker in (None, row["worker_name"])]
        return {"registered_triggers": sorted(rows, key=lambda row: row["id"])}

    def registered_info(self, request: Request) -> Json:
        binding_id = text(request, "id")
        binding = self._triggers.bindings.get(binding_id)
        if binding is None or binding.provider is None:
            raise EngineFault(NOT_FOUND, f"Registered trigger '{binding_id}' was not found.")
        detail = self._rows.binding_row(binding)
        del detail["config_summary"]
        if binding.metadata is not None:
            detail["metadata"] = binding.metadata
        function = self._engine_state.function(binding.namespace, binding.function_id)
        detail["trigger"] = self._rows.type_detail(self._triggers.types[binding.provider])
        detail["function"] = self._rows.function_detail(function) if function else None
        return detail

    def register_trigger(self, request: Request) -> object:
        binding = RegisterTrigger(
            id=self._engine_state.new_id(),
            trigger_type=text(request, "trigger_type"),
            function_id=text(request, "function_id"),
            config=request.payload.get("config"),
            metadata=request.payload.get("metadata"),
            trigger_namespace=optional(request, "trigger_namespace", str),
        )
        self._triggers.bind_durably(binding, request.answer)
        return DEFERRED

    def unregister_trigger(self, request: Request) -> Json:
        caller = self._engine_state.connections.get(request.caller or "")
        return {"removed": self._triggers.unbind_for(caller, text(request, "id"))}

    # Inner workings

    def _wanted(self, request: Request, function: Function, search: str | None) -> bool:
        if not optional(request, "include_internal", bool) and _hidden(function):
            return False
        if not function.id.startswith(optional(request, "prefix", str) or ""):
            return False
        return self._of_wanted_worker(request, function) and contains(
            search, function.id, function.description
        )

    def _of_wanted_worker(self, request: Request, function: Function) -> bool:
        """Whether ``worker`` or ``workers`` names its worker, or neither is given."""
        wanted: list[object] = list(optional(request, "workers", list) or [])
        worker = optional(request, "worker", str)
        if worker is not None:
            wanted.append(worker)
        return not wanted or self._engine_state.worker_name(function) in wanted

    def _find(self, function_id: str, namespace: str | None) -> Function:
        engine_state = self._engine_state
        homes = engine_state.namespaces_with(function_id)
        if namespace is None:
            namespace = homes[0] if len(homes) == 1 else DEFAULT_NAMESPACE
        found = engine_state.function(namespace, function_id)
        if found is None and homes:
            raise EngineFault(
                NOT_FOUND,
                f"Function '{function_id}' is ambiguous: it is registered in namespace(s): "
                f"{', '.join(homes)}. Pass `namespace` to choose one.",
            )
        if found is None:
            raise EngineFault(NOT_FOUND, f"Function '{function_id}' is not registered.")
        return found

    def _one_of_many(self, function_id: str, namespace: str | None) -> Json:
        try:
            return self._rows.function_detail(self._find(function_id, namespace))
        except EngineFault:
            return {"function_id": function_id, "error": "not_found"}


def _hidden(function: Function) -> bool:
    engine_own = function.id.startswith(ENGINE_PREFIX) and not function.id.startswith("engine::queue::")
    return engine_own or function.internal


def _rank(function_id: str, search: str | None) -> int:
    if search is None:
        return 0
    term, lowered = search.lower(), function_id.lower()
    if lowered.startswith(term) or term in lowered.split("::"):
        return 0
    return 1 if term in lowered else 2


def _batch(items: list[object]) -> list[str]:
    names = list(dict.fromkeys(item for item in items if isinstance(item, str)))
    if not all(isinstance(item, str) for item in items) or not 1 <= len(names) <= MAX_FUNCTION_BATCH:
        raise EngineFault(INVALID_ARGUMENTS, f"function_ids must be 1 to {MAX_FUNCTION_BATCH} function ids.")
    return names


def provide_introspection(router: Router) -> None:
    """Put the introspection functions on the engine."""
    it = Introspection(router)
    functions = [*_about_functions(it), *_about_triggers(it), *_about_bindings(it)]
    available = BuiltinType(
        FUNCTIONS_AVAILABLE,
        "Fires when the set of registered functions changed.",
        schema(),
        schema(event="string", functions="array"),
    )
    provide(router, BuiltinWorker("iii-engine-functions", "Introspection.", functions, [available]))


def _about_functions(it: Introspection) -> list[BuiltinFunction]:
    ids = {"type": "array", "items": {"type": "string"}}
    return [
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
    ]


def _about_triggers(it: Introspection) -> list[BuiltinFunction]:
    return [
        BuiltinFunction(
            "engine::triggers::list", "List trigger types.", it.triggers_list, schema(**_FILTERS)
        ),
        BuiltinFunction(
            "engine::triggers::info",
            "One trigger type with its schemas.",
            it.triggers_info,
            schema(["id"], id="string", namespace="string"),
        ),
    ]


def _about_bindings(it: Introspection) -> list[BuiltinFunction]:
    binding = {"trigger_type": "string", "function_id": "string"}
    return [
        BuiltinFunction(
            "engine::registered-triggers::list",
            "List the functions bound to trigger types.",
            it.registered_list,
            schema(**binding, search="string", worker="string", include_internal="boolean"),
        ),
        BuiltinFunction(
            "engine::registered-triggers::info",
            "One binding with its trigger type and its function.",
            it.registered_info,
            schema(["id"], id="string"),
        ),
        BuiltinFunction(
            "engine::register_trigger",
            "Bind a function to a trigger type, beyond the life of the caller.",
            it.register_trigger,
            schema(list(binding), **binding, config=ANY, metadata=ANY, trigger_namespace="string"),
        ),
        BuiltinFunction(
            "engine::unregister_trigger",
            "Remove a binding.",
            it.unregister_trigger,
            schema(["id"], id="string", trigger_type="string"),
        ),
    ]
