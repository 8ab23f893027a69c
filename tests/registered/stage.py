"""Workers and callers around registrations: the directory on an engine, and SDK clients that use it."""

from __future__ import annotations

import asyncio
import threading
import uuid
import warnings
from collections import deque
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pytest
from iii import InitOptions, InvocationError
from iii.iii import III
from tests.support.directory import started
from tests.support.engine import REAL_ENGINE, TIMEOUT_MS, WAIT, answer_of, clear, own_scopes
from tests.support.reader import until

from iii_directory.config import Settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from types import TracebackType

    from tests.support.engine import EngineThread

    from iii_directory.worker.directory_worker import DirectoryWorker

on_every_engine = pytest.mark.parametrize(
    "engine_url", ["embedded", *(["real"] if REAL_ENGINE else [])], indirect=True
)
"""For tests that leave nothing behind on an engine: run on the embedded one, and a real one that is named."""


def unique(word: str) -> str:
    """An id that no other test uses, where tests share an engine; in digits, which spell nothing."""
    return f"{word}-{uuid.uuid4().int % 10**12}"


class SdkClient:
    """The published SDK as a worker or a caller uses it; a context manager."""

    def __init__(self, url: str, *, name: str | None = None, namespace: str | None = None) -> None:
        self.url = url
        self.name = name or unique("client")
        options = InitOptions(worker_name=self.name, namespace=namespace, otel={"enabled": False})
        self.sdk: Any = III(url, options)
        self.sdk._wait_until_connected()
        self._bound: dict[tuple[str, str], Any] = {}
        self._closing = asyncio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sdk._loop.call_soon_threadsafe(self._closing.set)
        self.sdk.shutdown()
        self.sdk._loop.close()

    async def hold(self, data: Any) -> None:
        """A handler that does not answer as long as anybody listens."""
        await self._closing.wait()

    def call(
        self,
        function_id: str,
        payload: Any = None,
        /,
        *,
        to: str = "default",
        timeout_ms: int = TIMEOUT_MS,
        **fields: Any,
    ) -> Any:
        """The result of a call with a payload, or with fields, to the directory of a namespace."""
        request = {
            "function_id": function_id,
            "payload": fields if payload is None else payload,
            "namespace": to,
        }
        return answer_of(
            self.url, lambda limit: self.sdk.trigger({**request, "timeout_ms": limit}), timeout_ms
        )

    def refusal(self, function_id: str, payload: Any = None, /, **fields: Any) -> str:
        """The sentence of a call that must fail."""
        try:
            result = self.call(function_id, payload, **fields)
        except InvocationError as error:
            return error.message
        raise AssertionError(f"{function_id} answered {result!r}")

    def offer(self, function_id: str, handler: Callable[..., Awaitable[Any]]) -> None:
        """Register a function and wait until it can be called."""
        self.sdk.register_function(function_id, handler)
        known = {"function_id": function_id}
        until(lambda: self._answers("engine::functions::info", known), f"{function_id} is registered")

    def answer(self, function_id: str, value: Any) -> str:
        """A function that always answers the same; gives its id."""

        async def handler(data: Any) -> Any:
            return value

        self.offer(function_id, handler)
        return function_id

    def subscribe(self, trigger_type: str, function_id: str, **fields: Any) -> None:
        """Bind a function to a trigger type, and wait until the engine has the binding."""
        self._bound[trigger_type, function_id] = self.start_subscribing(trigger_type, function_id, **fields)
        until(lambda: trigger_type in self.bindings(function_id), f"{function_id} is bound to {trigger_type}")

    def start_subscribing(self, trigger_type: str, function_id: str, **fields: Any) -> Any:
        """Bind a function to a trigger type that may not be there yet."""
        binding = {"type": trigger_type, "function_id": function_id, "config": {}, **fields}
        with warnings.catch_warnings():
            # Engines before 0.25 know no other way.
            warnings.simplefilter("ignore", DeprecationWarning)
            return self.sdk.register_trigger(binding)

    def unsubscribe(self, trigger_type: str, function_id: str) -> None:
        self._bound.pop((trigger_type, function_id)).unregister()
        until(lambda: trigger_type not in self.bindings(function_id), f"{function_id} is not bound any more")

    def bindings(self, function_id: str, timeout_ms: int = TIMEOUT_MS) -> list[str]:
        asked = {"function_id": function_id}
        listed = self.call("engine::registered-triggers::list", asked, timeout_ms=timeout_ms)
        return [row["trigger_type"] for row in listed["registered_triggers"]]

    def _answers(self, function_id: str, payload: dict[str, Any]) -> bool:
        try:
            self.call(function_id, payload)
        except InvocationError:
            return False
        return True


class Listener:
    """A function that keeps what it is told."""

    def __init__(self, client: SdkClient, *trigger_types: str, **fields: Any) -> None:
        self.function_id = f"{unique('listener')}::heard"
        self.metadata: list[Any] = []
        self._client = client
        self._heard: deque[dict[str, Any]] = deque()
        self._news = threading.Condition()

        async def heard(data: dict[str, Any], metadata: Any = None) -> None:
            data.pop("_caller_worker_id", None)
            with self._news:
                self.metadata.append(metadata)
                self._heard.append(data)
                self._news.notify_all()

        client.offer(self.function_id, heard)
        for trigger_type in trigger_types:
            client.subscribe(trigger_type, self.function_id, **fields)

    def next(self) -> dict[str, Any]:
        with self._news:
            assert self._news.wait_for(lambda: self._heard, WAIT), "nothing was heard"
            return self._heard.popleft()

    def take(self, count: int) -> list[dict[str, Any]]:
        with self._news:
            heard = self._news.wait_for(lambda: len(self._heard) >= count, WAIT * 3)
            assert heard, f"only {len(self._heard)} of {count} were heard"
            return [self._heard.popleft() for _ in range(count)]

    def heard_nothing_before(self, event: dict[str, Any]) -> bool:
        """Whether the next thing heard is this, which was caused after whatever must not be heard."""
        return self.next() == event


class House:
    """An engine's address, the directory on it, and a caller."""

    def __init__(
        self,
        url: str,
        folder: Path,
        inside: EngineThread | None = None,
        *,
        worker_url: str | None = None,
        data: Path | None = None,
        **settings: Any,
    ) -> None:
        self.url = url
        self._data = data
        self._worker_url = worker_url or url
        self._inside = inside
        self.folder = folder
        self._scopes = own_scopes(url)
        self._settings = {**self._scopes, **settings}
        self._open = ExitStack()
        self._workers: list[DirectoryWorker] = []
        self.worker = self.directory()
        self.client = self._open.enter_context(SdkClient(url))

    def directory(
        self, *, namespace: str | None = None, ready: bool = True, joined: bool = False
    ) -> DirectoryWorker:
        """One more directory worker."""
        settings = replace(Settings(skills_folder=self.folder), **self._settings)
        worker = started(settings, self._worker_url, None if joined else self._inside, namespace, self._data)
        self._workers.append(worker)
        assert not ready or worker.wait_ready(WAIT)
        return worker

    def is_back(self, function_id: str) -> bool:
        """Whether the directory answers and a function of our client is bound, after the engine was away."""
        try:
            self.client.call("skills::list", timeout_ms=500)
            return bool(self.client.bindings(function_id, timeout_ms=500))
        except InvocationError:
            return False

    def retire(self, worker: DirectoryWorker) -> None:
        self._workers.remove(worker)
        worker.stop()

    def another_client(self, **options: Any) -> SdkClient:
        return self._open.enter_context(SdkClient(self.url, **options))

    def listener(self, *trigger_types: str, **fields: Any) -> Listener:
        return Listener(self.client, *trigger_types, **fields)

    def close(self) -> None:
        self._open.close()
        while self._workers:
            self._workers.pop().stop()
        clear(self.url, self._scopes)

    # What tests ask most

    def call(self, function_id: str, payload: Any = None, /, **fields: Any) -> Any:
        return self.client.call(function_id, payload, **fields)

    def refusal(self, function_id: str, payload: Any = None, /, **fields: Any) -> str:
        return self.client.refusal(function_id, payload, **fields)

    def scope(self, kind: str) -> str:
        """Where the skills or prompts of this house are in the state."""
        return getattr(self._scopes.get("scopes"), kind, kind)

    def state(self, scope: str = "skills") -> list[Any]:
        """What iii-state holds."""
        return self.call("state::list", scope=self.scope(scope))

    def stored(self, key: str, scope: str = "skills") -> Any:
        return self.call("state::get", scope=self.scope(scope), key=key)

    def skill_rows(self, **where: Any) -> dict[str, dict[str, Any]]:
        rows = self.call("skills::list", **where)["skills"]
        return {row["id"]: row for row in rows if row["source"] == "registered"}

    def worker_count(self) -> int:
        """How many directories the engine knows."""
        workers = self.call("engine::workers::list")["workers"]
        return sum(row["name"] == "iii-directory" for row in workers)

    def prompt_rows(self, **where: Any) -> dict[str, dict[str, Any]]:
        return {row["name"]: row for row in self.call("prompts::list", **where)["prompts"]}

    def read(self, uri: str) -> dict[str, Any]:
        (content,) = self.call("skills::resources-read", uri=uri)["contents"]
        return content
