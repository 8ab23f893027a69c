"""A running directory with documents of several kinds, and a browser where there is one."""

from __future__ import annotations

import base64
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from tests.support.commands import free_port, running
from tests.support.engine import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator
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

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(f"{self.url}{path}", headers=headers, timeout=30.0)

    def write(self, name: str, text: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def _fill(site: Site) -> None:
    site.write(
        "coffee/SKILL.md",
        "---\nname: coffee\ndescription: How to order coffee.\n---\n# Coffee\n\n"
        "See [the machines](machines.md), iii://tea or ![a picture](cup.png).\n\n"
        "| left | right |\n|---|--:|\n| a | 1 |\n\n```python\nprint('hi')\n```\n",
    )
    site.write("coffee/machines.md", "# Machines\n\nThere are two.\n")
    site.write("coffee/cup.png", base64.b64decode(PIXEL))
    site.write("coffee/scripts/brew.py", "print('brewing')\n")
    site.write(
        "coffee/prompts/order.md",
        "---\nname: order\ndescription: Order a drink.\narguments:\n  - name: drink\n    required: true\n"
        "---\nBring me {{drink}}.\n",
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("page")
    port, http = free_port(), free_port()
    made = Site(f"http://127.0.0.1:{http}", f"ws://127.0.0.1:{port}", home / "skills")
    _fill(made)
    with running("up", "--in-memory", "--port", str(port), "--http-port", str(http), cwd=home) as up:
        up.wait_for("Ctrl-C stops")
        yield made
        # Not killed, so that the lines that the command ran are counted.
        up.stop()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A page that asks every client for a token."""
    home = tmp_path_factory.mktemp("guarded")
    port, http = free_port(), free_port()
    made = Site(f"http://127.0.0.1:{http}", f"ws://127.0.0.1:{port}", home / "skills")
    _fill(made)
    options = ("--in-memory", "--port", str(port), "--http-port", str(http))
    with running("up", *options, cwd=home, III_TOKEN=TOKEN) as up:
        up.wait_for("Ctrl-C stops")
        yield made
        # Not killed, so that the lines that the command ran are counted.
        up.stop()


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
