"""The directory as its readers meet it: a worker on an engine, a folder to edit, and a client of the SDK."""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Self

from iii import InvocationError
from tests.support.directory import Client, directory
from tests.support.engine import WAIT
from tests.support.folders import Folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from tests.support.engine import EngineThread

LOOK_AGAIN_SECONDS = 0.02


class OtherWorker(Client):
    """A worker of another party; a context manager."""

    def __init__(self, url: str, name: str | None = None) -> None:
        # In digits: letters by chance could hold the name of a document that a test asks for in vain.
        self.name = name or f"client-{uuid.uuid4().int % 10**12}"
        super().__init__(url, self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def offer(
        self,
        function_id: str,
        answer: Callable[[dict[str, Any]], Any],
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Register a function and wait until it can be called; the answer may be awaited."""

        async def handler(data: dict[str, Any]) -> Any:
            result = answer(data)
            return await result if hasattr(result, "__await__") else result

        self.sdk.register_function(function_id, handler, metadata=metadata)
        until(lambda: self._knows(function_id), f"{function_id} is registered")

    def _knows(self, function_id: str) -> bool:
        try:
            self.call("engine::functions::info", function_id=function_id)
        except InvocationError:
            return False
        return True


class Reader(OtherWorker):
    """A reader of the directory, with the directory's worker and the folder that it serves."""

    def __init__(self, url: str, root: Path, inside: EngineThread | None = None, **settings: Any) -> None:
        self.url = url
        self.skills = Folder(root / "skills")
        self.skills.root.mkdir(parents=True, exist_ok=True)
        self._running = directory(url, settings.pop("skills_folder", self.skills.root), inside, **settings)
        self.worker = self._running.__enter__()
        super().__init__(url)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._running.__exit__(None, None, None)

    # What tests ask most

    def get(self, skill_id: str) -> dict[str, Any]:
        return self.call("directory::skills::get", id=skill_id)

    def body(self, skill_id: str) -> str:
        return self.get(skill_id)["body"]

    def rows(self, **filters: Any) -> dict[str, dict[str, Any]]:
        """The rows of the folder's documents by id; those the package brings are left out."""
        found = self.call("directory::skills::list", **filters)["skills"]
        return {row["id"]: row for row in found if not row["id"].startswith("iii-directory")}

    def ids(self, **filters: Any) -> list[str]:
        return list(self.rows(**filters))

    def miss(self, skill_id: str) -> str:
        """The sentence a read that fails is answered with."""
        return self.refusal("directory::skills::get", id=skill_id)

    def refusal(self, function_id: str, **fields: Any) -> str:
        """The sentence any call that fails is answered with."""
        return self.failure(function_id, **fields).message

    def read_uri(self, uri: str) -> dict[str, Any]:
        """The one content of a resource."""
        (content,) = self.call("skills::resources-read", uri=uri)["contents"]
        return content

    def findings(self, subject: str | None = None) -> list[dict[str, str]]:
        found = self.call("directory::diagnostics")["findings"]
        return [row for row in found if subject is None or row["subject"] == subject]

    def reason(self, subject: str) -> str:
        """Why one thing was left out."""
        (finding,) = self.findings(subject)
        return finding["reason"]


def until(look: Callable[[], bool], what: str) -> None:
    """Wait until something is so, for what no event announces."""
    deadline, pause = time.monotonic() + WAIT, threading.Event()
    while not look():
        if time.monotonic() > deadline:
            raise AssertionError(f"it never came about that {what}")
        pause.wait(LOOK_AGAIN_SECONDS)
