"""The words of the protocol: codes of failures, names with a meaning. Pure.

They stand here once. ``tests/engine/test_protocol.py`` finds the ones that are written out elsewhere.
"""

from __future__ import annotations

from typing import Final

DEFAULT_NAMESPACE: Final = "default"
ENGINE_PREFIX: Final = "engine::"
# The field in which the engine says who asks: a worker's calls have it, and the engine's own have not.
CALLER: Final = "_caller_worker_id"

# Types of messages, for those who look at JSON that is not read as a message.
INVOKE_FUNCTION: Final = "invokefunction"
INVOCATION_RESULT: Final = "invocationresult"
WORKER_REGISTERED: Final = "workerregistered"
# Engines and workers that have it observe functions instead of binding triggers.
OBSERVE_FEATURE: Final = "observe.v1"

# Every code of a failure that a caller can meet. The spelling is the real engine's.

FUNCTION_NOT_FOUND: Final = "function_not_found"  # No worker provides the function in that namespace.
INVOCATION_STOPPED: Final = "invocation_stopped"  # The worker left before it answered.
INVOCATION_FAILED: Final = "invocation_failed"  # The worker's function failed; the message is the worker's.
TIMEOUT: Final = "TIMEOUT"  # The caller did not wait longer. The engine never says this, callers do.
# The engine went away under a call: whether it was carried out is not known.
CONNECTION_LOST: Final = "connection_lost"
# A worker's answer, or a call, is larger than a message may be.
PAYLOAD_TOO_LARGE: Final = "payload_too_large"
# A message or the input of a built-in function cannot be understood.
DESERIALIZATION_ERROR: Final = "deserialization_error"
# A worker in the engine's process answered something that is not JSON.
SERIALIZATION_ERROR: Final = "serialization_error"
ENQUEUE_ERROR: Final = "enqueue_error"  # No queue worker is connected, or it refused the job.
# A binding was refused, by the owner of the trigger type or by the engine.
TRIGGER_REGISTRATION_FAILED: Final = "trigger_registration_failed"
TOPIC_NOT_SET: Final = "topic_not_set"  # A message to no topic.
INVALID_ARGUMENTS: Final = "INVALID_ARGUMENTS"  # Fields of a call contradict each other or are out of range.
INVALID_NAMESPACE: Final = "INVALID_NAMESPACE"  # A namespace is blank.
INVALID_ID: Final = "INVALID_ID"  # The id of a configuration entry has other characters than it may.
NOT_FOUND: Final = "NOT_FOUND"  # What was asked about is not registered.
NOT_REGISTERED: Final = "NOT_REGISTERED"  # A configuration entry was set before it was registered.
# The owner of a configuration entry has not registered it since the start.
SCHEMA_UNAVAILABLE: Final = "SCHEMA_UNAVAILABLE"
SCHEMA_INVALID: Final = "SCHEMA_INVALID"  # A value does not fit the schema of its configuration entry.
EXPAND_FAILED: Final = "EXPAND_FAILED"  # A configuration value names a variable that has no value here.
ADAPTER_ERROR: Final = "ADAPTER_ERROR"  # Configuration could not be written to the store.
# A value of the state is, or would become, larger than one that is updated may be.
VALUE_TOO_LARGE: Final = "VALUE_TOO_LARGE"
SET_ERROR: Final = "SET_ERROR"  # The store refused a write.
GET_ERROR: Final = "GET_ERROR"  # The store refused a read.
DELETE_ERROR: Final = "DELETE_ERROR"  # The store refused a deletion.
LIST_ERROR: Final = "LIST_ERROR"  # The store refused a list.
LIST_GROUPS_ERROR: Final = "LIST_GROUPS_ERROR"  # The store refused the list of scopes.
UPDATE_ERROR: Final = "UPDATE_ERROR"  # The store refused an update.
LIMIT_EXCEEDED: Final = "LIMIT_EXCEEDED"  # The connection holds or asks for more than one connection may.
# Another worker provides that function in that namespace, or it is past a limit.
FUNCTION_CONFLICT: Final = "FUNCTION_NAMESPACE_CONFLICT"
WORKER_CONFLICT: Final = "WORKER_NAMESPACE_CONFLICT"  # Another worker has that name in that namespace.


def first_segment(item_id: str) -> str:
    """Return the part of an id that names a worker, if nothing else does."""
    return item_id.split("::", 1)[0]
