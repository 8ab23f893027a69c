"""Every view answers as a page, as JSON and as Markdown, with headers that keep documents harmless."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx2
import pytest
from tests.page.conftest import TOKEN
from tests.support.commands import run

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
    assert [image.get("src") for image in page.named("img")] == ["/files/coffee/cup.png"]
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


HOSTILE = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "[click](javascript:window.pwned=1)",
    "[click](data:text/html,<script>window.pwned=1</script>)",
    "![x](https://evil.example/pixel.png)",
    "<a href='javascript:window.pwned=1'>x</a>",
    "<iframe srcdoc='<script>window.pwned=1</script>'></iframe>",
    '"><script>window.pwned=1</script>',
    "'-window.pwned=1-'",
    "<style>body{display:none}</style>",
    "<form action=https://evil.example><input name=q></form>",
    "<base href=https://evil.example>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "{{ 7*7 }}{% raw %}{{ config }}",
    "</main></body><script>window.pwned=1</script>",
    "`<script>window.pwned=1</script>`",
    "[ref]: javascript:window.pwned=1\n\n[ref]",
    "<https://evil.example/><javascript:alert(1)>",
    "| a |\n|---|\n| <script>window.pwned=1</script> |",
)
DANGEROUS = {"script", "iframe", "object", "embed", "base", "style", "svg", "math", "form"}


@pytest.mark.parametrize("place", ["title", "description", "body"])
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_hostile_document_adds_no_active_element_to_any_view(
    site: Site, worker: RawClient, place: str, number: int
) -> None:
    text = HOSTILE[number]
    quoted = text.replace("\n", " ").replace("'", "''")
    head = f"---\ntitle: '{quoted if place == 'title' else 'T'}'\n"
    head += f"description: '{quoted if place == 'description' else 'D'}'\n---\n"
    body = text if place == "body" else "# H\n\nText.\n"
    name = f"hostile-{place}-{number}"
    worker.result("skills::register", {"id": name, "skill": f"{head}{body}\n"})
    usual = len(Elements(site.get("/workers").text).named("script"))
    try:
        for path in (f"/skills/{name}", f"/skills?search={name}", f"/search?q={quote(name)}", "/"):
            page = Elements(site.get(path).text)
            active = [tag for tag, _ in page.found if tag in DANGEROUS - {"form", "script"}]
            assert not active, path
            assert len(page.named("script")) == usual
            assert all(form["action"] in ("/search", "/skills") for form in page.named("form"))
            for tag, attributes in page.found:
                assert not [key for key in attributes if key.startswith("on")], (path, tag)
                target = str(attributes.get("href") or attributes.get("src") or "").strip().lower()
                assert not target.startswith(("javascript:", "data:", "vbscript:")), (path, tag)
                assert tag == "a" or not target.startswith("http"), (path, tag)
    finally:
        worker.result("skills::unregister", {"id": name})
