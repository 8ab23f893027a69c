"""The page in a real Chromium: typing, keys, live updates, copying, colours, widths and accessibility."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.page.conftest import TOKEN, Tab
from tests.page.test_views import VIEWS

if TYPE_CHECKING:
    from tests.page.conftest import Site
    from tests.support.engine import RawClient

MORE = ("/skills?hidden=1", "/search?q=zqxv+wvut", "/files/coffee/scripts/brew.py", "/skills/coffee/machines")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_any_view(browser: Any, site: Site, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    opened = Tab(browser, site.url, color_scheme=scheme)

    for view in (*VIEWS, *MORE):
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

    for view in (*VIEWS, *MORE):
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


def test_typing_in_any_view_shows_results_and_back_leads_to_the_view(tab: Tab, site: Site) -> None:
    tab.page.goto(f"{site.url}/workers")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("order coffee")
    tab.page.wait_for_url("**/search?q=order+coffee")
    tab.page.locator(".hits li", has_text="coffee").first.wait_for()
    assert tab.page.locator(".views [aria-current]").count() == 0

    tab.page.go_back()
    tab.page.get_by_role("heading", name="Workers", exact=True).wait_for()
    assert tab.page.locator(".views [aria-current]").inner_text() == "Workers"


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


def test_what_a_reader_opened_and_focused_stays_when_a_view_refreshes(
    tab: Tab, site: Site, worker: RawClient
) -> None:
    tab.page.goto(f"{site.url}/skills/coffee")
    tab.page.locator("details summary").click()
    tab.page.get_by_role("link", name="scripts/brew.py").focus()
    worker.result("skills::register", {"id": "news-of", "skill": "# News\n\nSee iii://coffee.\n"})
    tab.page.get_by_role("link", name="news-of").wait_for()

    assert tab.page.locator("details[open]").count() == 1
    assert tab.page.evaluate("document.activeElement.textContent") == "scripts/brew.py"


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


def test_a_picture_of_a_skill_is_shown(tab: Tab, site: Site) -> None:
    tab.page.goto(f"{site.url}/skills/coffee")

    assert tab.page.locator(".document img").evaluate(
        "image => image.decode().then(() => image.naturalWidth)"
    )


def test_copy_offers_a_command_for_a_person_and_a_sentence_for_an_agent(tab: Tab, site: Site) -> None:
    tab.page.goto(f"{site.url}/skills/coffee")
    tabs = tab.page.locator(".tabs").first
    tabs.get_by_role("button", name="Copy for you").click()
    tab.page.get_by_text("Copied").first.wait_for()
    command = tab.page.evaluate("navigator.clipboard.readText()")
    tabs.get_by_text("For an agent").click()
    tabs.get_by_role("button", name="Copy for an agent").click()
    tab.page.wait_for_function(
        "navigator.clipboard.readText().then(text => text.startsWith('Read the skill'))"
    )

    assert command == "iii-directory skills show coffee"
