"""The whole directory on an embedded engine, and a real SDK client to call it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iii import InitOptions, InvocationError
from iii.iii import III
from tests.support.engine import WAIT, answer_of, clear, own_scopes

from iii_directory.config import Settings
from iii_directory.worker.directory_worker import DirectoryWorker

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.support.engine import EngineThread


class Client:
    """The published SDK as a caller uses it."""

    def __init__(self, url: str, name: str = "caller") -> None:
        self.url = url
        self.sdk: Any = III(url, InitOptions(worker_name=name, otel={"enabled": False}))
        self.sdk._wait_until_connected()

    def call(self, function_id: str, payload: Any = None, /, **fields: Any) -> Any:
        """The result of a call with a payload, or with fields."""
        asked = {"function_id": function_id, "payload": payload if payload is not None else fields}
        return answer_of(self.url, lambda limit: self.sdk.trigger({**asked, "timeout_ms": limit}))

    def failure(self, function_id: str, payload: Any = None, /, **fields: Any) -> InvocationError:
        """The error of a call that must fail."""
        try:
            result = self.call(function_id, payload, **fields)
        except InvocationError as error:
            return error
        raise AssertionError(f"{function_id} answered {result!r}")

    def close(self) -> None:
        self.sdk.shutdown()
        self.sdk._loop.close()


def started(
    settings: Settings,
    url: str,
    inside: EngineThread | None,
    namespace: str | None = None,
    data: Path | None = None,
) -> DirectoryWorker:
    """A worker that joins the engine at an address, or one that is inside the engine, as ``up`` has it."""
    if inside is None:
        return DirectoryWorker.join(settings, url, namespace=namespace, data=data)
    return DirectoryWorker.run_on(inside.bus_inside(namespace), settings, data=data)


@contextlib.contextmanager
def directory(
    url: str, folder: Path, inside: EngineThread | None = None, **changes: Any
) -> Generator[DirectoryWorker]:
    """A worker for the folder, ready on the engine."""
    scopes = own_scopes(url)
    worker = started(replace(Settings(skills_folder=folder), **{**scopes, **changes}), url, inside)
    try:
        assert worker.wait_ready(WAIT)
        yield worker
    finally:
        worker.stop()
        clear(url, scopes)


@contextlib.contextmanager
def client(url: str, name: str = "caller") -> Generator[Client]:
    caller = Client(url, name)
    try:
        yield caller
    finally:
        caller.close()
