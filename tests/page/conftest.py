"""A running directory with documents of several kinds, and a browser where there is one."""

from __future__ import annotations

import base64
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from tests.support.commands import free_port, running
from tests.support.engine import RawClient

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-quic"),
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOKEN = "a-token-of-this-test"


@dataclass
class Site:
    """The page of one ``iii-directory up``."""

    url: str
    engine: str
    folder: Path

    def __post_init__(self) -> None:
        self.client = httpx2.Client(timeout=30.0)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """Ask as a client that is seen for the first time, without cookies."""
        self.client.cookies.clear()
        return self.client.get(f"{self.url}{path}", headers=headers)

    def write(self, name: str, text: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def _fill(site: Site, settings: str) -> None:
    site.write(
        "coffee/SKILL.md",
        "---\nname: coffee\ndescription: How to order coffee.\n---\n# Coffee\n\n"
        "See [the machines](machines.md), iii://tea or ![a picture](cup.png).\n\n"
        "| left | right |\n|---|--:|\n| a | 1 |\n\n```python\nprint('hi')\n```\n\n"
        "Ask `directory::skills::list` first.\n",
    )
    site.write("coffee/machines.md", "---\ntype: how-to\n---\n# Machines\n\nThere are two.\n")
    site.write("coffee/cup.png", base64.b64decode(PIXEL))
    site.write("coffee/scripts/brew.py", "print('brewing')\n")
    site.write(
        "coffee/prompts/order.md",
        "---\nname: order\ndescription: Order a drink.\narguments:\n  - name: drink\n    required: true\n"
        "---\nBring me {{drink}}.\n",
    )
    site.write("tea/SKILL.md", "# Tea\n\nBeside iii://coffee there is tea. Today is !`date`.\n")
    site.write("recipe/SKILL.md", "# Recipe\n\nKept for people.\n")
    (site.folder.parent / "config.yaml").write_text(f"visibility:\n  recipe: manual\n{settings}")


@contextmanager
def served(
    home: Path, *options: str, joins: str | None = None, settings: str = "", **env: str
) -> Generator[Site]:
    """Run ``iii-directory up`` with the documents of these tests; ``joins`` is an engine that runs."""
    engine, http = joins or f"ws://127.0.0.1:{free_port()}", free_port()
    made = Site(f"http://127.0.0.1:{http}", engine, home / "skills")
    _fill(made, settings)
    with running(
        "up", "--in-memory", "--url", engine, "--http-port", str(http), *options, cwd=home, **env
    ) as up:
        up.wait_for("Ctrl-C stops")
        with made.client:
            yield made
        # Not killed, so that the lines that the command ran are counted.
        up.stop()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(tmp_path_factory.mktemp("page")) as made:
        yield made


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A page that asks every client for a token."""
    with served(tmp_path_factory.mktemp("guarded"), III_TOKEN=TOKEN) as made:
        yield made


@pytest.fixture
def worker(site: Site) -> Iterator[RawClient]:
    """Another worker on the engine of the page."""
    with RawClient(site.engine) as client:
        client.announce("another-worker")
        yield client


# Not for the whole session: while it is open, an event loop runs in this thread and asyncio.run fails.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine; `make browser` installs it")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


WAIT_MS = 45_000


class Tab:
    """A browser tab that remembers console errors, dialogs and requests to other origins."""

    def __init__(self, browser: Any, origin: str, **options: Any) -> None:
        self.context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.problems: list[str] = []
        self.expects_failures = False
        """Whether answers such as 404, which the console notes, are part of the test."""
        self.page.on("console", lambda message: self._note(message.type == "error", message.text))
        self.page.on("pageerror", lambda error: self._note(True, str(error)))
        self.page.on("dialog", lambda dialog: self._note(True, f"dialog {dialog.message}"))
        self.page.on("request", lambda asked: self._note(not asked.url.startswith(origin), asked.url))

    def _note(self, is_problem: bool, text: str) -> None:
        if is_problem and not (self.expects_failures and text.startswith("Failed to load resource")):
            self.problems.append(text)


@pytest.fixture
def tab(browser: Any, site: Site) -> Iterator[Tab]:
    opened = Tab(browser, site.url)
    yield opened
    opened.context.close()
    assert not opened.problems
