"""The process in which a published SDK runs: commands in, answers and events out."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from tests.support.engine import WAIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.sdk.sdks import Sdk


class SdkError(Exception):
    """What the SDK raised, by its code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class DriverProcess:
    """A driver script and the threads that listen to it."""

    def __init__(self, sdk: Sdk, home: Path, *, user: int | None = None) -> None:
        """With a user, which only root may choose, the SDK runs as that one."""
        self.sdk = sdk
        self._errors = home / "stderr"
        self._numbers = itertools.count()
        self._answers: dict[int, Future[Any]] = {}
        self._events: list[dict[str, Any]] = []
        self._news = threading.Condition()
        command, variables = sdk.command()
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                cwd=home,
                env=_environment(home) | variables | ({} if user is None else {"DRIVER_USER": str(user)}),
            )
        self._listener = threading.Thread(target=self._listen, name=f"driver {sdk.name}", daemon=True)
        self._listener.start()

    @property
    def process_id(self) -> int:
        return self._process.pid

    def start(self, do: str, client: str, **arguments: Any) -> Future[Any]:
        """Give a command; the future is the SDK's answer or its SdkError."""
        number = next(self._numbers)
        answer = self._answers[number] = Future()
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(json.dumps({"id": number, "do": do, "client": client, **arguments}) + "\n")
        stdin.flush()
        return answer

    def ask(self, do: str, client: str, **arguments: Any) -> Any:
        try:
            return self.start(do, client, **arguments).result(WAIT)
        except TimeoutError:
            raise AssertionError(f"{self.sdk.name} did not answer {do!r}.\n{self._last_words()}") from None

    def event(self, event: str, **fields: Any) -> dict[str, Any]:
        """The next event with these fields, taken off the list."""
        wanted = {"event": event, **fields}
        return self._next(lambda told: wanted.items() <= told.items(), str(wanted))

    def log(self, *words: str) -> str:
        """The next line of the SDK's own log that has all of these words."""
        heard = self._next(
            lambda told: told["event"] == "log" and all(word in told["text"] for word in words), str(words)
        )
        return heard["text"]

    def _next(self, fits: Callable[[dict[str, Any]], bool], wanted: str) -> dict[str, Any]:
        deadline = time.monotonic() + WAIT
        with self._news:
            while True:
                for index, told in enumerate(self._events):
                    if fits(told):
                        return self._events.pop(index)
                if not self._news.wait(deadline - time.monotonic()):
                    told = "\n".join(map(str, self._events))
                    raise AssertionError(
                        f"{self.sdk.name}: no {wanted}; there were:\n{told}\n{self._last_words()}"
                    )

    def forget_events(self) -> None:
        with self._news:
            self._events.clear()

    def stop(self) -> None:
        """End the script by ending its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(WAIT)
        finally:
            self._process.kill()
            self._listener.join(WAIT)
            assert self._process.stdout is not None
            self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._take(json.loads(line))
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(AssertionError(f"{self.sdk.name} ended.\n{self._last_words()}"))

    def _take(self, line: dict[str, Any]) -> None:
        if "event" in line:
            with self._news:
                self._events.append(line)
                self._news.notify_all()
            return
        answer = self._answers.pop(line["id"])
        if "error" in line:
            answer.set_exception(SdkError(**line["error"]))
        else:
            answer.set_result(line["value"])

    def _last_words(self) -> str:
        return self._errors.read_text(errors="replace")[-2000:]


def _environment(home: Path) -> dict[str, str]:
    """This machine's variables without those that would steer an SDK, and with a home of its own."""
    steering = ("III_", "OTEL_", "COV", "PYTHON", "NODE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    return kept | {"HOME": str(home), "OTEL_ENABLED": "false", "PYTHONUTF8": "1"}
