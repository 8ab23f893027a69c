"""For authors of workers: publish a folder of markdown, and slash-commands, whatever is started first.

    from iii import register_worker
    from iii_directory.publish import publish

    iii = register_worker()
    publish(iii, "docs", worker="resend", prompts=[{"name": "send-email", …}])

``docs/SKILL.md`` becomes the skill ``resend``, ``docs/email/send.md`` the skill ``resend/email/send``.
Everything is registered as soon as a directory answers, and again after every reconnect, because the engine
may have lost it. This module needs iii-sdk and nothing else, so it can be copied into any worker.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from iii import InvocationError, RegistrationRejectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

log = logging.getLogger("iii_directory.publish")

CALL_TIMEOUT_MS: Final = 5_000
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0

_OVERVIEWS: Final = ("index.md", "SKILL.md", "SKILLS.md")
# What the directory says of itself or of the engine passes; what it says of the entry does not.
_MAY_PASS: Final = re.compile(r"D[45]\d\d ")


class SdkClient(Protocol):
    """What is used of the SDK's client."""

    def trigger(self, request: dict[str, Any]) -> Any: ...

    def add_connection_state_listener(self, handler: Callable[[Any], None]) -> Callable[[], None]: ...


def publish(
    client: SdkClient,
    folder: str | os.PathLike[str] | None = None,
    *,
    worker: str | None = None,
    prompts: Sequence[Mapping[str, Any]] = (),
    namespace: str | None = None,
) -> Publication:
    """Keep a folder of markdown and some prompts registered, in the background.

    Args:
        client: what ``iii.register_worker`` gave you.
        folder: the markdown files; it is read anew every time they are registered.
        worker: the first segment of every id; without it the paths alone are the ids.
        prompts: what ``prompts::register`` takes, one each.
        namespace: where the directory is, if not in this worker's own namespace.
    """
    return Publication(client, None if folder is None else Path(folder), worker, prompts, namespace)


def read_folder(folder: Path, worker: str | None = None) -> dict[str, str]:
    """Return the skills in a folder by their ids: bodies as they are, front matter included.

    A path means here what it means in a skills folder. Hidden files and links are left out; what lies below
    ``prompts/`` and what is not UTF-8 is, too, and logged.
    """
    found: dict[str, str] = {}
    for path in sorted(_markdown_files(folder)):
        parts = path.relative_to(folder).with_suffix("").parts
        if "prompts" in parts[:-1]:
            log.warning("%s is a prompt, not a skill: pass it in prompts with its function", path)
            continue
        names = parts[:-1] if path.name in _OVERVIEWS else parts
        skill_id = "/".join((*([worker] if worker else []), *names))
        try:
            found[skill_id] = path.read_bytes().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            log.warning("%s is not published: %s", path, error)
    return found


class Publication:
    """What is being kept registered."""

    def __init__(
        self,
        client: SdkClient,
        folder: Path | None,
        worker: str | None,
        prompts: Sequence[Mapping[str, Any]],
        namespace: str | None,
    ) -> None:
        self.refused: dict[str, str] = {}
        """What the directory would not take, by id or name, and why."""
        self._client = client
        self._folder = folder
        self._worker = worker
        self._prompts = [dict(prompt) for prompt in prompts]
        self._namespace = namespace
        self._stopped = False
        self._published = threading.Event()
        self._news = threading.Event()
        # A daemon, because a worker must be able to end while no directory answers.
        self._thread = threading.Thread(target=self._run, name="publish", daemon=True)
        self._forget = client.add_connection_state_listener(
            lambda state: self._news.set() if state == "connected" else None
        )
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait so many seconds; return whether everything was registered, or refused, at least once."""
        return self._published.wait(seconds)

    def stop(self) -> None:
        """Register nothing more. What is registered stays."""
        self._forget()
        self._stopped = True
        self._news.set()

    def _run(self) -> None:
        while True:
            self._news.wait()
            self._news.clear()
            if self._stopped:
                return
            self._register_all()

    def _register_all(self) -> None:
        waiting, pause = list(self._entries()), FIRST_PAUSE_SECONDS
        while True:
            while waiting and not self._stopped and self._register(*waiting[0]):
                del waiting[0]
            if not waiting:
                self._published.set()
                return
            log.info("no directory takes registrations yet; trying again in %g s", pause)
            if self._news.wait(pause):
                return  # stopped, or connected anew: everything is to be registered again
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _entries(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield a function, an id or name, and the payload of each call to make."""
        if self._folder is not None:
            for skill_id, body in read_folder(self._folder, self._worker).items():
                yield "skills::register", skill_id, {"id": skill_id, "skill": body}
        for prompt in self._prompts:
            yield "prompts::register", str(prompt.get("name")), prompt

    def _register(self, function_id: str, key: str, payload: dict[str, Any]) -> bool:
        """Make one call; return False if it has to be made again later."""
        request = {"function_id": function_id, "payload": dict(payload), "timeout_ms": CALL_TIMEOUT_MS}
        if self._namespace is not None:
            request["namespace"] = self._namespace
        try:
            self._client.trigger(request)
        except InvocationError as error:
            if error.code != "invocation_failed" or _MAY_PASS.match(error.message):
                return False
            self.refused[key] = error.message
            log.warning("%s is not published: %s", key, error.message)
        except (ConnectionError, RegistrationRejectedError, RuntimeError) as error:
            log.warning("%s cannot be published now: %s", key, error)
            return False
        else:
            self.refused.pop(key, None)
        return True


def _markdown_files(folder: Path) -> Iterator[Path]:
    for path, directories, names in os.walk(folder):
        directories[:] = [name for name in directories if not name.startswith(".")]
        for name in names:
            file = Path(path) / name
            if name.endswith(".md") and not name.startswith(".") and not file.is_symlink():
                yield file
