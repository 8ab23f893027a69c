"""The page in a real Chromium: typing, keys, live updates, copying, colours, widths and accessibility."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.page.conftest import TOKEN
from tests.page.test_views import HOSTILE, VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.page.conftest import Site
    from tests.support.engine import RawClient

WAIT_MS = 15_000


class Tab:
    """A browser tab that remembers console errors, dialogs and requests to other origins."""

    def __init__(self, browser: Any, origin: str, **options: Any) -> None:
        self.context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.problems: list[str] = []
        self.page.on("console", lambda message: self._note(message.type == "error", message.text))
        self.page.on("pageerror", lambda error: self._note(True, str(error)))
        self.page.on("dialog", lambda dialog: self._note(True, f"dialog {dialog.message}"))
        self.page.on("request", lambda asked: self._note(not asked.url.startswith(origin), asked.url))

    def _note(self, is_problem: bool, text: str) -> None:
        if is_problem:
            self.problems.append(text)


@pytest.fixture
def tab(browser: Any, site: Site) -> Iterator[Tab]:
    opened = Tab(browser, site.url)
    yield opened
    opened.context.close()
    assert not opened.problems


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_any_view(browser: Any, site: Site, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    opened = Tab(browser, site.url, color_scheme=scheme)

    for view in VIEWS:
        opened.page.goto(site.url + view)
        faults = axe.run(opened.page).response["violations"]
        serious = [
            (fault["id"], fault["nodes"][0]["html"])
            for fault in faults
            if fault["impact"] in ("serious", "critical")
        ]
        assert not serious, (view, serious)

    opened.context.close()
    assert not opened.problems


@pytest.mark.parametrize("width", [360, 1600])
def test_no_view_is_wider_than_its_window(browser: Any, site: Site, width: int) -> None:
    opened = Tab(browser, site.url, viewport={"width": width, "height": 800})

    for view in VIEWS:
        opened.page.goto(site.url + view)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, view

    opened.context.close()


def test_results_appear_while_typing_and_are_announced(tab: Tab, site: Site) -> None:
    tab.page.goto(f"{site.url}/search")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("order coffee")

    tab.page.wait_for_url("**/search?q=order+coffee")
    tab.page.locator(".hits li", has_text="coffee").first.wait_for()
    assert tab.page.locator("#status").inner_text()
    assert tab.page.locator(".find input").evaluate("box => box === document.activeElement")


def test_arrows_and_enter_open_a_result(tab: Tab, site: Site) -> None:
    tab.page.goto(f"{site.url}/search?q=order+coffee")
    tab.page.locator(".find input").focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")

    tab.page.wait_for_url("**/skills/**")


def test_a_registration_and_an_edit_appear_without_a_reload(tab: Tab, site: Site, worker: RawClient) -> None:
    tab.page.goto(f"{site.url}/skills")
    tab.page.evaluate("window.untouched = true")
    worker.result("skills::register", {"id": "live-news", "skill": "# Live\n\nNews.\n"})
    tab.page.locator(".rows b", has_text="live-news").wait_for()

    site.write("freshly-written/SKILL.md", "# Fresh\n\nWritten.\n")
    tab.page.locator(".rows b", has_text="freshly-written").wait_for()
    assert tab.page.evaluate("window.untouched")


def test_a_copy_button_copies_and_says_so(tab: Tab, site: Site) -> None:
    tab.page.goto(f"{site.url}/skills/coffee")
    tab.page.get_by_role("button", name="Copy address").click()

    tab.page.get_by_text("Copied").first.wait_for()
    assert tab.page.evaluate("navigator.clipboard.readText()") == "iii://coffee"


def test_a_prompt_is_filled_in_and_rendered(tab: Tab, site: Site) -> None:
    tab.page.goto(f"{site.url}/prompts/order")
    tab.page.get_by_label("drink").fill("an espresso")
    tab.page.get_by_role("button", name="Render").click()

    tab.page.get_by_text("Bring me an espresso.").wait_for()


def test_logging_in_with_the_token_opens_the_page(browser: Any, guarded: Site) -> None:
    opened = Tab(browser, guarded.url)
    opened.page.goto(f"{guarded.url}/skills")
    opened.page.get_by_label("Token").fill(TOKEN)
    opened.page.get_by_role("button", name="Open").click()

    opened.page.get_by_role("heading", name="What can my agents do here?").wait_for()
    opened.context.close()


def test_the_page_reads_well_without_javascript(browser: Any, site: Site) -> None:
    opened = Tab(browser, site.url, java_script_enabled=False)
    opened.page.goto(f"{site.url}/search?q=order+coffee")

    assert opened.page.locator(".hits li").count() >= 1
    opened.context.close()


def test_no_hostile_document_runs_anything(tab: Tab, site: Site, worker: RawClient) -> None:
    """Each text is the title, the description and the body of a document, and part of a file name."""
    for number, text in enumerate(HOSTILE):
        quoted = text.replace("\n", " ").replace("'", "''")
        body = f"---\ntitle: '{quoted}'\ndescription: '{quoted}'\n---\n{text}\n"
        worker.result("skills::register", {"id": f"zz-hostile-{number}", "skill": body})
    names = ["<img src=x onerror=window.pwned=1>.txt", "'\"><script>.md"]
    for name in names:
        site.write(f"zz-files/{name}", HOSTILE[0])
    site.write("zz-files/SKILL.md", "# Files\n\nOdd names.\n")

    for path in ("/", "/skills", "/search?q=window.pwned", "/skills/zz-files", "/diagnostics"):
        tab.page.goto(site.url + path)
        assert tab.page.evaluate("window.pwned") is None, path
    for number in range(len(HOSTILE)):
        tab.page.goto(f"{site.url}/skills/zz-hostile-{number}")
        for link in tab.page.locator(".document a").all():
            link.dispatch_event("click") if "evil" not in str(link.get_attribute("href")) else None
        assert tab.page.evaluate("window.pwned") is None, number
