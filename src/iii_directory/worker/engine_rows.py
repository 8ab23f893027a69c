"""What engines of every generation answer about themselves, brought to one shape. Pure.

Engines before 0.13 name things otherwise: their ``engine::triggers::list`` lists bindings, their functions
carry schemas in the list, their workers carry their functions, and nothing has a detail call.
"""

from __future__ import annotations

from typing import Any, Final

from iii_directory.shapes import items_of, object_of, rows_of
from iii_directory.wire.protocol import first_segment

Row = dict[str, Any]


def last_segment(identifier: str) -> str:
    return identifier.rsplit("::", 1)[-1]


def function_row(row: Row) -> Row:
    """A function as ``directory::function-list`` shows it."""
    function_id = str(row.get("function_id") or row.get("id") or "")
    return {
        "function_id": function_id,
        "name": last_segment(function_id),
        "worker_name": row.get("worker_name") or first_segment(function_id),
        "description": row.get("description"),
        **_namespace(row),
    }


def _namespace(row: Row) -> Row:
    """Where it is registered, if the engine says so; before 0.18 there was one place for all."""
    namespace = row.get("namespace")
    return {"namespace": namespace} if isinstance(namespace, str) else {}


def function_detail(row: Row, bindings: list[Row]) -> Row:
    """A function in full. ``bindings`` are used where the engine's own detail has none."""
    return {
        **row,
        **function_row(row),
        "request_schema": row.get("request_schema", row.get("request_format")),
        "response_schema": row.get("response_schema", row.get("response_format")),
        "metadata": row.get("metadata"),
        "registered_triggers": [
            {"id": b.get("id"), "trigger_type": b.get("trigger_type"), "config": b.get("config")}
            for b in row.get("registered_triggers", bindings)
        ],
    }


def trigger_type_row(row: Row) -> Row:
    type_id = str(row.get("id") or "")
    return {
        "id": type_id,
        "name": last_segment(type_id),
        "worker_name": row.get("worker_name") or first_segment(type_id),
        "description": row.get("description"),
        **_namespace(row),
    }


def trigger_type_detail(row: Row, instances: int) -> Row:
    """A trigger type in full."""
    return {
        **row,
        **trigger_type_row(row),
        "configuration_schema": row.get("configuration_schema", row.get("trigger_request_format")),
        "request_schema": row.get("request_schema", row.get("call_request_format")),
        "response_schema": row.get("response_schema"),
        "instance_count": row.get("instance_count", instances),
    }


def binding_row(row: Row, summary: str) -> Row:
    """A binding as ``directory::registered-trigger-list`` shows it."""
    function_id = str(row.get("function_id") or "")
    return {
        "id": row.get("id"),
        "trigger_type": row.get("trigger_type"),
        "function_id": function_id,
        "worker_name": row.get("worker_name") or first_segment(function_id),
        "config": row.get("config"),
        "config_summary": row.get("config_summary", summary),
        **_namespace(row),
    }


def worker_row(row: Row) -> Row:
    """A worker; its first fields are those of the registry's rows."""
    return {
        "name": row.get("name"),
        "description": row.get("description"),
        "version": row.get("version"),
        "id": row.get("id") or row.get("worker_id"),
        "runtime": row.get("runtime"),
        "status": row.get("status"),
        "function_count": row.get("function_count", len(items_of(row.get("functions")))),
        **_namespace(row),
    }


def is_of(row: Row, worker: Row) -> bool:
    """Whether a worker registered it: several may have one name, each in a namespace of its own."""
    there, home = row.get("namespace"), worker.get("namespace")
    return row["worker_name"] == worker["name"] and (there == home or None in (there, home))


def worker_detail(answer: Row) -> Row:
    """An engine's own detail of a worker, its rows in the shape of our lists."""
    envelope = object_of(answer.get("worker"))
    return {
        "worker": {**envelope, **worker_row(envelope)},
        "functions": [function_row(row) for row in rows_of(answer, "functions")],
        "trigger_types": [trigger_type_row(row) for row in rows_of(answer, "trigger_types")],
        "registered_triggers": [binding_row(row, "") for row in rows_of(answer, "registered_triggers")],
    }


_SEARCHED: Final = ("id", "function_id", "name", "description", "trigger_type")


def matches(row: Row, filters: dict[str, str | None], identifier: str) -> bool:
    """Whether a row passes: ``search`` in any text, ``prefix`` of its identifier, the others exactly."""
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
