"""Every view answers as a page, as JSON and as Markdown, with headers that keep documents harmless."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import httpx2
import pytest
from tests.page.conftest import TOKEN, served
from tests.support.commands import free_port, run, running
from tests.support.reader import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.page.conftest import Site
    from tests.support.engine import RawClient

VIEWS = (
    *("/", "/search?q=order+coffee", "/skills", "/skills/coffee", "/prompts", "/prompts/order", "/functions"),
    *("/functions/directory%3A%3Askills%3A%3Aget", "/workers", "/workers/iii-directory", "/registry"),
    *("/diagnostics", "/usage"),
)
MAIN_VIEWS = ("/", "/skills", "/prompts", "/functions", "/workers", "/registry", "/usage", "/diagnostics")


class Elements(HTMLParser):
    """Counts the elements of a page and collects their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def twin(view: str, ending: str) -> str:
    path, mark, query = view.partition("?")
    return f"{'/index' if path == '/' else path}.{ending}{mark}{query}"


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_a_whole_page_with_a_title_a_heading_a_search_form_and_links_to_all_views(
    site: Site, view: str
) -> None:
    answer = site.get(view)
    page = Elements(answer.text)

    assert answer.status_code == 200
    assert page.named("html") == [{"lang": "en"}]
    assert len(page.named("main")) == len(page.named("h1")) == len(page.named("title")) == 1
    assert {"type": "search", "name": "q"}.items() <= page.named("input")[0].items()
    assert set(MAIN_VIEWS) <= {link.get("href") for link in page.named("a")}
    assert not [attributes for _, attributes in page.found if "style" in attributes]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_a_json_and_a_markdown_twin(site: Site, view: str) -> None:
    data, text = site.get(twin(view, "json")), site.get(twin(view, "md"))

    assert data.headers["content-type"] == "application/json"
    assert isinstance(data.json(), dict)
    assert text.headers["content-type"].startswith("text/markdown")
    assert text.text.strip()


@pytest.mark.parametrize(
    "path", [*VIEWS, "/nowhere", "/static/page.css", "/files/coffee/scripts/brew.py?raw=1"]
)
def test_no_answer_lets_a_document_run_or_load_anything(site: Site, path: str) -> None:
    headers = site.get(path).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_the_markdown_twin_of_a_skill_is_the_document_itself(site: Site) -> None:
    assert site.get("/skills/coffee.md").text.strip() == (site.folder / "coffee/SKILL.md").read_text().strip()


def test_links_between_documents_lead_to_views_and_pictures_to_files(site: Site) -> None:
    page = Elements(site.get("/skills/coffee").text)

    hrefs = {link.get("href") for link in page.named("a")}
    assert "/skills/coffee/machines" in hrefs
    assert [image.get("src") for image in page.named("img")] == ["/files/coffee/cup.png?raw=1"]
    assert {"class": "right"} in page.named("td")


def test_a_file_is_shown_highlighted_and_sent_byte_for_byte(site: Site) -> None:
    shown, raw = site.get("/files/coffee/scripts/brew.py"), site.get("/files/coffee/scripts/brew.py?raw=1")

    assert "brewing" in shown.text
    assert raw.content == b"print('brewing')\n"
    assert raw.headers["content-disposition"] == "attachment"
    assert raw.headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_a_page_that_does_not_exist_is_404_and_says_so(site: Site) -> None:
    for path in (
        "/nowhere",
        "/skills/no-such-skill",
        "/prompts/none",
        "/functions/a%3A%3Ab",
        "/files/coffee/x",
    ):
        answer = site.get(path)
        assert answer.status_code == 404, path
        assert "<h1>" in answer.text
        assert "directory::" not in answer.text


def test_a_view_of_something_that_does_not_exist_leads_on_to_a_search_for_it(site: Site) -> None:
    answer = site.get("/skills/cofee/machine")

    assert "Did you mean: " in answer.text
    assert "/search?q=cofee%2Fmachine" in {link.get("href") for link in Elements(answer.text).named("a")}


def test_a_search_without_an_answer_says_that_nothing_fits(site: Site) -> None:
    assert "Nothing fits" in site.get("/search?q=zqxv+wvut").text


def test_a_long_list_comes_in_pages(site: Site, worker: RawClient) -> None:
    for number in range(70):
        worker.result("skills::register", {"id": f"many{number}", "skill": f"# Many {number}\n\nText.\n"})

    first = Elements(site.get("/skills").text)
    following = next(link["href"] for link in first.named("a") if link.get("rel") == "next")
    assert following is not None
    second = site.get(following)

    assert second.status_code == 200
    assert "many69" in site.get("/skills.json?page=2").text
    assert site.get("/skills.json?search=many69").json()["total"] == 1


def form_of(site: Site, client: httpx2.Client) -> str:
    page = client.get(f"{site.url}/prompts/order").text
    found = re.search(r'name="token" value="([0-9a-f]+)"', page)
    assert found
    return found[1]


def test_a_prompt_is_rendered_by_its_form_and_never_by_a_get(site: Site) -> None:
    with httpx2.Client(timeout=30.0) as client:
        fields = {"token": form_of(site, client), "arg.drink": "<b>tea</b>"}
        answer = client.post(f"{site.url}/prompts/order", data=fields)

    assert "Bring me &lt;b&gt;tea&lt;/b&gt;." in answer.text
    assert "Bring me tea" not in site.get("/prompts/order?arg.drink=tea").text


def test_a_form_needs_the_token_of_its_own_session(site: Site) -> None:
    with httpx2.Client(timeout=30.0) as client, httpx2.Client(timeout=30.0) as other:
        token = form_of(site, client)
        other.get(f"{site.url}/prompts/order")
        stolen = other.post(f"{site.url}/prompts/order", data={"token": token, "arg.drink": "tea"})
        missing = client.post(f"{site.url}/prompts/order", data={"arg.drink": "tea"})

    assert (stolen.status_code, missing.status_code) == (403, 403)


def test_a_missing_argument_is_named_beside_the_form(site: Site) -> None:
    with httpx2.Client(timeout=30.0) as client:
        answer = client.post(f"{site.url}/prompts/order", data={"token": form_of(site, client)})

    assert answer.status_code == 200
    assert "needs the argument" in answer.text


def test_a_form_of_another_origin_is_refused(site: Site) -> None:
    for origin in ("http://evil.example", "null"):
        answer = httpx2.post(f"{site.url}/prompts/order", data={}, headers={"origin": origin})
        assert answer.status_code == 403, origin


def test_another_host_name_is_refused(site: Site) -> None:
    assert site.get("/", host="rebound.example").status_code == 421


def test_the_token_is_asked_for_once_and_kept_in_a_cookie(guarded: Site) -> None:
    asked = guarded.get("/skills")
    assert asked.status_code == 401
    assert 'type="password"' in asked.text
    assert "coffee" not in asked.text
    with httpx2.Client(timeout=30.0) as client:
        wrong = client.post(f"{guarded.url}/login", data={"token": "not-the-token-at-all"})
        assert wrong.status_code == 401
        right = client.post(f"{guarded.url}/login", data={"token": TOKEN})
        assert right.status_code == 303
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert TOKEN not in str(right.headers.get("location"))
        assert "coffee" in client.get(f"{guarded.url}/skills").text


def test_the_command_open_knows_the_page_of_the_running_directory(site: Site) -> None:
    done = run("open", "--json", cwd=site.folder.parent)

    assert json.loads(done.stdout) == {"url": f"{site.url}/"}


def test_the_command_open_says_what_to_start_where_nothing_runs(tmp_path: Path) -> None:
    done = run("open", cwd=tmp_path, XDG_RUNTIME_DIR=str(tmp_path), TMPDIR=str(tmp_path))

    assert done.returncode == 1
    assert "start one here" in done.stderr


def test_probes_learn_that_the_directory_lives_and_is_ready(site: Site) -> None:
    assert site.get("/healthz").json() == {"status": "ok"}
    ready = site.get("/readyz")

    assert ready.status_code == 200
    assert ready.json().keys() == {"status", "engine", "worker", "folder", "state", "registry"}


def test_a_probe_without_the_token_learns_no_detail(guarded: Site) -> None:
    assert guarded.get("/healthz").json() == {"status": "ok"}
    assert guarded.get("/readyz").json() == {"status": "ok"}
    assert "engine" in guarded.get("/readyz", authorization=f"Bearer {TOKEN}").json()


def test_a_prometheus_client_reads_the_metrics(site: Site, worker: RawClient) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    worker.result("directory::skills::get", {"id": "coffee"})
    worker.call("directory::skills::get", {"id": "there-is-none"})
    worker.result("directory::search", {"query": "order coffee"})

    families = {
        family.name: family for family in parser.text_string_to_metric_families(site.get("/metrics").text)
    }
    calls = {
        (sample.labels["function"], sample.labels["outcome"]): sample.value
        for sample in families["iii_directory_calls"].samples
    }
    assert calls["directory::skills::get", "ok"] >= 1
    assert calls["directory::skills::get", "not_found"] >= 1
    assert families["iii_directory_call_seconds"].type == "histogram"
    assert families["iii_directory_documents"].samples[0].value >= 2
    assert families["iii_directory_searches"].samples
    assert families["iii_directory_connections"].samples[0].value >= 1
    assert families["iii_directory_installed_namespaces"].samples


def test_a_skill_shows_what_links_to_it_what_it_documents_and_what_it_costs(site: Site) -> None:
    skill = site.get("/skills/coffee.json").json()
    shown = site.get("/skills/coffee").text

    assert [row["id"] for row in skill["links"]] == ["tea"]
    assert {"id": "directory::skills::list", "exists": True} in skill["functions"]
    assert 0 < skill["tokens"]["line"] < skill["tokens"]["read"] < skill["tokens"]["whole"]
    assert 'href="/skills/tea"' in shown
    assert 'href="/skills/coffee.md"' in shown
    assert 'href="/functions/directory%3A%3Askills%3A%3Alist"' in shown
    assert [row["id"] for row in site.get("/skills/coffee/machines.json").json()["links"]] == ["coffee"]


def test_a_new_link_is_found_at_the_next_look(site: Site) -> None:
    site.write("mate/SKILL.md", "# Mate\n\nNothing.\n")
    assert site.get("/skills/mate.json").json()["links"] == []

    site.write("tea/more.md", "# More\n\nSee [mate](../mate/SKILL.md).\n")

    assert [row["id"] for row in site.get("/skills/mate.json").json()["links"]] == ["tea/more"]


def test_a_skill_whose_loading_runs_a_command_says_so_in_a_banner(site: Site) -> None:
    shown = site.get("/skills/tea").text

    assert "Runs commands when it is loaded" in shown
    assert "Runs commands when it is loaded" not in site.get("/skills/coffee").text


def test_hidden_skills_are_counted_and_can_be_looked_at(site: Site) -> None:
    listed = site.get("/skills").text

    assert "1 hidden by visibility" in listed
    assert "recipe" not in [row["id"] for row in site.get("/skills.json").json()["skills"]]
    assert [row["id"] for row in site.get("/skills.json?hidden=1").json()["skills"]] == ["recipe"]
    assert site.get("/skills/recipe").status_code == 200


def test_facets_narrow_the_list_by_source_and_worker(site: Site, worker: RawClient) -> None:
    worker.result("skills::register", {"id": "faceted", "skill": "# Faceted\n\nText.\n"})

    def ids(query: str) -> set[str]:
        return {row["id"] for row in site.get(f"/skills.json?{query}").json()["skills"]}

    assert {"coffee", "tea"} <= ids("source=file")
    assert "faceted" in ids("worker=another-worker")
    assert ids("source=file").isdisjoint(ids("source=registered"))
    assert "another-worker" in dict(site.get("/skills.json").json()["facets"]["worker"])


def test_what_a_person_looks_at_on_the_page_is_not_counted_as_usage(site: Site, worker: RawClient) -> None:
    def counted() -> tuple[int, int, int]:
        row = next(row for row in site.get("/usage.json").json()["skills"] if row["id"] == "tea")
        return row["offered"], row["read"], row["used"]

    before = counted()
    for path in ("/skills/tea", "/skills", "/search?q=tea", "/files/tea/SKILL.md"):
        site.get(path)
    assert counted() == before

    worker.result("directory::skills::get", {"id": "tea"})
    assert counted() == (before[0], before[1] + 1, before[2])


def test_the_overview_has_the_lines_that_connect_an_agent_and_the_commands(site: Site) -> None:
    copied = [one.get("data-copy") for one in Elements(site.get("/").text).named("button")]

    assert f"{site.url}/mcp" in copied
    assert {'iii-directory search "what you need"', "iii-directory doctor"} <= set(copied)


def test_the_pages_of_an_engine_of_its_own_and_of_a_joined_one_are_the_same(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The page calls functions and nothing else, so it does not matter whose engine they are on."""
    home = tmp_path_factory.mktemp("engine")
    port = free_port()
    with running("engine", "--in-memory", "--port", str(port), cwd=home) as engine:
        engine.wait_for("engine at")
        with served(tmp_path_factory.mktemp("joined"), joins=f"ws://127.0.0.1:{port}") as joined:
            for view in VIEWS:
                ours, theirs = Elements(site.get(view).text), joined.get(view)
                assert theirs.status_code == 200, view
                assert set(joined.get(twin(view, "json")).json()) == set(site.get(twin(view, "json")).json())
                assert len(Elements(theirs.text).named("h1")) == len(ours.named("h1")) == 1
            assert joined.get("/readyz").json()["engine"] == "ok"


def first_news(site: Site, seen: int, **headers: str) -> int:
    """Open the stream of events and return the number of the first event, which is not waited for long."""
    with site.client.stream("GET", f"{site.url}/events?seen={seen}", headers=headers) as stream:
        return next(int(line.removeprefix("id: ")) for line in stream.iter_lines() if line.startswith("id: "))


def test_a_change_between_a_page_and_its_event_stream_is_told(site: Site, worker: RawClient) -> None:
    def seen() -> int:
        return int(Elements(site.get("/skills").text).named("script")[0]["data-seen"] or 0)

    before = seen()
    worker.result("skills::register", {"id": "between", "skill": "# Between\n\nNews.\n"})
    until(lambda: seen() > before, "the registration is told to pages")
    now = seen()

    assert first_news(site, before) >= now
    # A stream that broke before the change, and the page of an earlier process.
    assert first_news(site, now, **{"last-event-id": str(before)}) >= now
    assert first_news(site, 1) >= now
