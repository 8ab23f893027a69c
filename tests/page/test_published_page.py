"""Published workers on the page: what an install would change, installing, updating and removing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from tests.page.conftest import Site, Tab, served
from tests.support.engine import RawClient
from tests.support.registry import publish_worker

from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

README = "# memory\n\nRemembers **facts** between sessions.\n"
FIRST = {"README.md": README, "skills/SKILL.md": "# Memory\n\nOne fact a sentence.\n"}
SECOND = {
    **FIRST,
    "skills/SKILL.md": "# Memory\n\nOne fact a sentence, and its source.\n",
    "skills/sync.sh": "#!/bin/sh\ncurl https://sync.example\n",
}


class Shop:
    """A page beside a registry of its own."""

    def __init__(self, site: Site, home: Path, registry: Path) -> None:
        self.site = site
        self._home = home
        self._registry = registry

    def publish(self, name: str, version: str, files: dict[str, str]) -> None:
        functions = [{"name": f"{name}::recall", "description": "Find facts."}]
        about: Any = {"description": "Remembers facts.", "functions": functions}
        publish_worker(self._home, self._registry, name, version, files, **about)

    def installed(self, path: str) -> str | None:
        place = self.site.folder / path
        return place.read_text() if place.exists() else None


@pytest.fixture(scope="module", params=[True])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A page that may change things, unless a test asks for one that may not."""
    home = tmp_path_factory.mktemp("shop")
    (home / "registry").mkdir()
    (home / "page").mkdir()
    options = ("--allow-changes",) if request.param else ()
    with RegistryServer(home / "registry") as registry:
        settings = f"registry_url: {registry.url}\nregistry_cache_ttl_ms: 0\n"
        with served(home / "page", *options, settings=settings) as site:
            yield Shop(site, home, home / "registry")


def form(client: httpx2.Client, shop: Shop, name: str, **fields: str) -> httpx2.Response:
    """Send the form of a published worker, with the token that its page gives this session."""
    address = f"{shop.site.url}/registry/{name}"
    token = re.search(r'name="token" value="([0-9a-f]+)"', client.get(address).text)
    return client.post(address, data={"token": token[1] if token else "", **fields})


def test_a_published_worker_is_shown_with_readme_functions_versions_and_what_it_brings(shop: Shop) -> None:
    shop.publish("shown", "1.0.0", FIRST)
    shop.publish("shown", "1.1.0", SECOND)

    data = shop.site.get("/registry/shown.json").json()
    page = shop.site.get("/registry/shown").text

    assert data["state"] == "not installed"
    assert [(row["version"], row["tags"]) for row in data["versions"]] == [
        ("1.1.0", ["latest"]),
        ("1.0.0", []),
    ]
    assert "<strong>facts</strong>" in page
    assert "shown::recall" in page
    assert "sync.sh" in page
    assert 'href="/registry/shown?version=1.0.0"' in page
    assert "not installed" in page
    assert shop.site.get("/registry/shown.md").text.startswith("# shown 1.1.0")


def test_installing_shows_the_plan_first_and_then_the_version_that_is_installed(
    browser: Any, shop: Shop
) -> None:
    shop.publish("bought", "1.0.0", FIRST)
    opened = Tab(browser, shop.site.url)
    page = opened.page
    page.goto(f"{shop.site.url}/registry")
    page.get_by_role("link", name="bought").click()
    page.get_by_role("button", name="Show the plan").click()
    page.locator(".diff .plus", has_text="One fact a sentence.").wait_for()
    assert shop.installed("bought/SKILL.md") is None

    page.get_by_role("button", name="Install", exact=True).click()
    page.get_by_text("installed, current").wait_for()
    assert shop.installed("bought/SKILL.md") == FIRST["skills/SKILL.md"]

    shop.publish("bought", "2.0.0", SECOND)
    page.goto(f"{shop.site.url}/registry/bought")
    page.get_by_text("1.0.0 installed").wait_for()
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("heading", name="From 1.0.0 to 2.0.0").wait_for()
    assert "sync.example" in page.get_by_text("It can do something new").locator("..").inner_text()
    assert page.locator(".diff .minus", has_text="One fact a sentence.").count()
    page.get_by_role("button", name="Update", exact=True).click()
    page.get_by_text("installed, current").wait_for()

    page.get_by_role("button", name="Remove").click()
    page.get_by_text("It was removed.").wait_for()
    assert shop.installed("bought/SKILL.md") is None
    opened.context.close()
    assert not opened.problems


def test_an_update_keeps_files_that_were_edited_by_hand(shop: Shop) -> None:
    shop.publish("edited", "1.0.0", FIRST)
    with httpx2.Client(timeout=30.0) as client:
        form(client, shop, "edited", action="install")
        shop.site.write("edited/SKILL.md", "# Memory\n\nMine.\n")
        shop.publish("edited", "2.0.0", SECOND)
        plan = form(client, shop, "edited", action="plan")
        done = form(client, shop, "edited", action="install", resolved="2.0.0")

    assert "kept" in plan.text
    assert done.status_code == 303
    listed = shop.site.get("/workers.json").json()["installed"]
    assert [(row["name"], row["state"]) for row in listed if row["name"] == "edited"] == [
        ("edited", "edited")
    ]
    assert "Installed from a registry, and not connected" in shop.site.get("/workers").text
    assert shop.installed("edited/SKILL.md") == "# Memory\n\nMine.\n"
    assert shop.installed("edited/sync.sh") is not None


def test_a_version_that_was_published_after_the_plan_is_shown_before_it_is_installed(shop: Shop) -> None:
    shop.publish("moving", "1.0.0", FIRST)
    with httpx2.Client(timeout=30.0) as client:
        form(client, shop, "moving", action="plan")
        shop.publish("moving", "2.0.0", SECOND)
        answer = form(client, shop, "moving", action="install", resolved="1.0.0")

    assert "Another version was published meanwhile" in answer.text
    assert "Install 2.0.0" in answer.text
    assert shop.installed("moving/SKILL.md") is None


def test_an_install_without_the_token_of_the_page_is_refused(shop: Shop) -> None:
    shop.publish("guarded", "1.0.0", FIRST)
    address = f"{shop.site.url}/registry/guarded"

    answers = [
        httpx2.post(address, data={"action": "install"}),
        httpx2.post(address, data={"action": "install", "token": "0" * 64}),
        httpx2.post(address, data={}, headers={"origin": "http://evil.example"}),
        httpx2.get(f"{address}?action=install"),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403, 200]
    assert shop.installed("guarded/SKILL.md") is None


def test_an_unpublished_worker_is_not_found(shop: Shop) -> None:
    assert shop.site.get("/registry/never-published").status_code == 404


@pytest.mark.parametrize("shop", [False], indirect=True)
def test_without_allow_changes_the_page_shows_the_command_and_installs_nothing(shop: Shop) -> None:
    shop.publish("looked-at", "1.0.0", FIRST)
    with httpx2.Client(timeout=30.0) as client:
        page = shop.site.get("/registry/looked-at").text
        plan = form(client, shop, "looked-at", action="plan").text
        form(client, shop, "looked-at", action="install")
        form(client, shop, "looked-at", action="remove")

    assert "iii-directory skills add looked-at" in page
    assert "One fact a sentence." in plan
    assert "up --allow-changes" in plan
    assert 'value="install"' not in plan
    assert shop.installed("looked-at/SKILL.md") is None


def test_another_worker_cannot_remove_what_is_installed(shop: Shop) -> None:
    shop.publish("staying", "1.0.0", FIRST)
    with httpx2.Client(timeout=30.0) as client, RawClient(shop.site.engine) as worker:
        form(client, shop, "staying", action="install")
        worker.announce("stranger")
        answers = [
            worker.call("directory::skills::remove", {"namespace": "staying", **shown})
            for shown in ({}, {"local": "a guess"})
        ]

    assert all("switched off" in str(answer["error"]) for answer in answers)
    assert shop.installed("staying/SKILL.md") is not None


def test_a_registry_that_does_not_answer_is_named_in_one_sentence(tmp_path: Path) -> None:
    with served(tmp_path, settings="registry_url: http://127.0.0.1:9\ndownload_timeout_ms: 2000\n") as site:
        page = site.get("/registry").text

    assert 'role="alert"' in page
    assert "could not be reached" in page
