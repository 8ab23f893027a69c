"""How functions, trigger types and bindings show in answers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iii_directory.limits import CONFIG_SUMMARY_CHARS
from iii_directory.wire.json_text import Json, encode_value
from iii_directory.wire.protocol import first_segment

if TYPE_CHECKING:
    from iii_directory.engine.bindings import Binding, TriggerType
    from iii_directory.engine.engine_state import EngineState, Function
    from iii_directory.engine.triggers import Triggers


class Rows:
    """Makes the rows and details that lists and infos consist of."""

    def __init__(self, engine_state: EngineState, triggers: Triggers) -> None:
        self._engine_state = engine_state
        self._triggers = triggers

    def function_summary(self, function: Function) -> Json:
        row: Json = {
            "function_id": function.id,
            "namespace": function.namespace,
            "worker_name": self._engine_state.worker_name(function),
        }
        if function.description is not None:
            row["description"] = function.description
        if function.metadata is not None:
            row["metadata"] = function.metadata
        return row

    def function_detail(self, function: Function) -> Json:
        detail = self.function_summary(function)
        if function.request_schema is not None:
            detail["request_schema"] = function.request_schema
        if function.response_schema is not None:
            detail["response_schema"] = function.response_schema
        detail["registered_triggers"] = [
            {"id": b.id, "trigger_type": b.trigger_type, "config": b.config}
            for b in self._triggers.live()
            if b.function_id == function.id and b.namespace == function.namespace
        ]
        return detail

    def type_summary(self, kind: TriggerType) -> Json:
        return {
            "id": kind.id,
            "namespace": kind.namespace,
            "worker_name": self._engine_state.worker_name(kind),
            "description": kind.description,
        }

    def type_detail(self, kind: TriggerType) -> Json:
        detail = self.type_summary(kind)
        if kind.configuration_schema is not None:
            detail["configuration_schema"] = kind.configuration_schema
        if kind.request_schema is not None:
            detail["request_schema"] = kind.request_schema
        detail["instance_count"] = sum(b.provider == kind.key for b in self._triggers.live(kind.id))
        return detail

    def binding_row(self, binding: Binding) -> Json:
        function = self._engine_state.function(binding.namespace, binding.function_id)
        worker_name = (
            self._engine_state.worker_name(function) if function else first_segment(binding.function_id)
        )
        summary = encode_value(binding.config).decode()
        if len(summary) > CONFIG_SUMMARY_CHARS:
            summary = summary[:CONFIG_SUMMARY_CHARS] + "…"
        return {
            "id": binding.id,
            "trigger_type": binding.trigger_type,
            "function_id": binding.function_id,
            "worker_name": worker_name,
            "config": binding.config,
            "config_summary": summary,
        }
