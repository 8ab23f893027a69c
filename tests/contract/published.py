"""The fields of the v0.8 functions as they were published, field by field: type, and ``*`` for required.

``raw``, ``kind``, ``schemas``, ``readme``, ``function_ids`` and ``namespace`` came later.

A dot leads into an object, ``[]`` into the items of a list.
"""

from __future__ import annotations

from typing import Final

REQUEST: Final[dict[str, dict[str, str]]] = {
    "directory::skills::get": {"id": "string*", "raw": "boolean"},
    "directory::skills::list": {
        "include_description": "boolean",
        "kind": "anything",
        "prefix": "string",
        "search": "string",
        "type": "string",
    },
    "directory::skills::index": {},
    "directory::prompts::list": {},
    "directory::prompts::get": {"name": "string*"},
    "directory::skills::download_from_registry": {
        "tag": "string",
        "version": "string",
        "worker": "string*",
    },
    "directory::skills::download_from_repo": {"branch": "string", "repo": "string*", "skill": "string*"},
    "directory::skills::download": {
        "branch": "string",
        "repo": "string",
        "skill": "string",
        "tag": "string",
        "version": "string",
        "worker": "string",
    },
    "directory::registry::workers::list": {"cursor": "string", "search": "string"},
    "directory::registry::workers::info": {
        "name": "string*",
        "readme": "boolean",
        "schemas": "boolean",
        "tag": "string",
        "version": "string",
    },
    "directory::engine::functions::info": {
        "function_id": "string*",
        "function_ids": "array",
        "namespace": "string",
    },
}

_SKILL: Final = {
    "function_id": "string",
    "id": "string*",
    "modified_at": "string*",
    "title": "string*",
    "type": "string",
}
_PROMPT: Final = {"description": "string*", "modified_at": "string*", "name": "string*"}
_DOWNLOADED: Final = {
    "namespace": "string*",
    "prompts_written": "array*",
    "prompts_written[]": "string",
    "skills_written": "array*",
    "skills_written[]": "string",
    "source": "anything*",
}
_WORKER: Final = {
    "author.name": "string",
    "author.pfp": "string",
    "author.verified": "boolean",
    "config": "anything",
    "dependencies": "array",
    "dependencies[].name": "string*",
    "dependencies[].version": "string*",
    "description": "string",
    "image": "string",
    "name": "string*",
    "repo": "string",
    "supported_targets": "array",
    "supported_targets[]": "string",
    "total_downloads": "integer",
    "type": "string",
    "version": "string",
}

RESPONSE: Final[dict[str, dict[str, str]]] = {
    "directory::skills::get": {**_SKILL, "body": "string*"},
    "directory::skills::list": {
        "skills": "array*",
        "skills[].bytes": "integer*",
        "skills[].description": "string*",
        **{f"skills[].{field}": kind for field, kind in _SKILL.items()},
    },
    "directory::skills::index": {"body": "string*", "workers_count": "integer*"},
    "directory::prompts::list": {
        "prompts": "array*",
        **{f"prompts[].{field}": kind for field, kind in _PROMPT.items()},
    },
    "directory::prompts::get": {**_PROMPT, "body": "string*"},
    "directory::skills::download_from_registry": _DOWNLOADED,
    "directory::skills::download_from_repo": _DOWNLOADED,
    "directory::skills::download": _DOWNLOADED,
    "directory::registry::workers::list": {
        "pagination": "object*",
        "pagination.has_more": "boolean",
        "pagination.next_cursor": "string",
        "pagination.page_size": "integer",
        "workers": "array*",
        **{f"workers[].{field}": kind for field, kind in _WORKER.items()},
    },
    "directory::registry::workers::info": {
        "api_reference": "object*",
        "api_reference.functions": "array",
        "api_reference.functions[].description": "string",
        "api_reference.functions[].metadata": "anything",
        "api_reference.functions[].name": "string*",
        "api_reference.functions[].request_schema": "anything",
        "api_reference.functions[].response_schema": "anything",
        "api_reference.triggers": "array",
        "api_reference.triggers[].description": "string",
        "api_reference.triggers[].invocation_schema": "anything",
        "api_reference.triggers[].metadata": "anything",
        "api_reference.triggers[].name": "string*",
        "api_reference.triggers[].return_schema": "anything",
        "readme": "string",
        "skills_tree": "object*",
        "skills_tree.prompts": "array",
        "skills_tree.prompts[].description": "string",
        "skills_tree.prompts[].name": "string*",
        "skills_tree.skills": "array",
        "skills_tree.skills[].path": "string*",
        **{f"worker.{field}": kind for field, kind in _WORKER.items()},
    },
    "directory::engine::functions::info": {
        "description": "string",
        "function_id": "string*",
        "metadata": "anything",
        "registered_triggers": "array*",
        "registered_triggers[].config": "anything*",
        "registered_triggers[].id": "string*",
        "registered_triggers[].trigger_type": "string*",
        "request_schema": "anything",
        "response_schema": "anything",
        "worker_name": "string",
    },
}
