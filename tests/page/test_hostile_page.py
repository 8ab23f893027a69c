"""Sixty hostile texts as title, description, body, id, file name, error and worker: nothing is executed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from tests.page.test_views import Elements
from tests.support.engine import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.page.conftest import Site, Tab

RUN = "window.pwned=1"
HOSTILE = (
    f"<script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"[click](javascript:{RUN})",
    f"[click](data:text/html,<script>{RUN}</script>)",
    "![x](https://evil.example/pixel.png)",
    f"<a href='javascript:{RUN}'>x</a>",
    f"<iframe srcdoc='<script>{RUN}</script>'></iframe>",
    f'"><script>{RUN}</script>',
    f"'-{RUN}-'",
    "<style>body{display:none}</style>",
    "<form action=https://evil.example><input name=q></form>",
    "<base href=https://evil.example>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "{{ 7*7 }}{% raw %}{{ config }}",
    f"</main></body><script>{RUN}</script>",
    f"`<script>{RUN}</script>`",
    f"[ref]: javascript:{RUN}\n\n[ref]",
    "<https://evil.example/><javascript:alert(1)>",
    f"| a |\n|---|\n| <script>{RUN}</script> |",
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<script/src=data:,{RUN}></script>",
    f"<script\n>{RUN}</script>",
    f"<<script>{RUN}//<</script>",
    f"</title><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>",
    f"<object data='javascript:{RUN}'></object>",
    f"<embed src='javascript:{RUN}'>",
    f"<math><mtext><script>{RUN}</script></mtext></math>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><a xlink:href='javascript:{RUN}'><text>x</text></a></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<template><script>{RUN}</script></template>",
    f"<noscript><p title='</noscript><script>{RUN}</script>'>",
    f"<link rel=stylesheet href='data:text/css,*{{display:none}}' onload={RUN}>",
    f"<table background='javascript:{RUN}'><tr><td>x</table>",
    f"<div style='background:url(javascript:{RUN})'>x</div>",
    f"<button formaction='javascript:{RUN}'>x</button>",
    f"<a href='&#106;avascript:{RUN}'>x</a>",
    f"[x](&#106;avascript:{RUN})",
    f"[x](java\tscript:{RUN})",
    f"[x](  javascript:{RUN})",
    f"[x](JaVaScRiPt:{RUN})",
    f"[x](vbscript:{RUN})",
    f'[x](https://evil.example "onmouseover={RUN}")',
    f'![x" onerror="{RUN}](cup.png)',
    f"![x](javascript:{RUN})",
    f"<javascript:{RUN}>",
    f"[x](iii://<script>{RUN}</script>)",
    f'[x](iii://a"onclick="{RUN})',
    f'```<script>{RUN}</script>\n"><img src=x onerror={RUN}>\n```',
    f'" onmouseover="{RUN}" x="',
    f"\u202e<script>{RUN}</script>\u202c",
    f"\u2028<img src=x onerror={RUN}>",
    "> " * 60 + f"<script>{RUN}</script>",
)
DANGEROUS = {"iframe", "object", "embed", "base", "style", "svg", "math", "template", "video", "audio"}
ALLOWED_FORMS = ("/search", "/skills", "/prompts", "/registry")
# Links that could run something here are clicked, which they do in a later task; those that lead to a page
# are not. Then look for every trace that something executed or active leaves.
TRACES = """async () => [
  await (document.querySelectorAll(".document a").forEach(
    link => /^https?:$/.test(link.protocol) || link.click()), new Promise(done => setTimeout(done))),
  window.pwned,
  document.scripts.length - 1, document.querySelectorAll(
    "iframe, object, embed, base, style, svg, math, template, video, audio, meta[http-equiv]").length,
  [...document.querySelectorAll("*")].filter(one => [...one.attributes].some(
    ({name, value}) => /^on/i.test(name) || name === "style"
      || (name !== "value" && /^\\s*(javascript|vbscript|data):/i.test(value)))).length,
  [...document.querySelectorAll("img")].filter(one => !one.src.startsWith(location.origin)).length,
  [...document.forms].filter(one => new URL(one.action).origin !== location.origin).length,
]"""
NO_TRACES = [None, None, 0, 0, 0, 0, 0]


def document(text: str) -> str:
    quoted = text.replace("\n", " ").replace("'", "''").replace("\t", " ")
    return f"---\ntitle: '{quoted}'\ndescription: '{quoted}'\n---\n{text}\n"


def file_name(text: str) -> str:
    """Make a name of a file out of a text; only the slash and the line break cannot be in one."""
    return text.replace("/", "\u2215").replace("\n", " ")[:60] + ".txt"


@pytest.fixture(scope="module")
def filled(site: Site) -> Iterator[list[str]]:
    """Register each text in a document by a worker of that name, and have a file of that name.

    Gives the addresses of every view that shows one of them.
    """
    workers: list[RawClient] = []
    paths = [
        "/",
        "/skills",
        "/skills?page=2",
        "/skills?source=registered",
        "/workers",
        "/diagnostics",
        "/usage",
    ]
    site.write("zz-files/SKILL.md", "# Files\n\nOdd names.\n")
    for number, text in enumerate(HOSTILE):
        worker = RawClient(site.engine)
        workers.append(worker)
        worker.announce(f"{number}{text}"[:200])
        worker.result("skills::register", {"id": f"hostile-{number}", "skill": document(text)})
        site.write(f"zz-files/{file_name(text)}", text)
        asked = quote(text, safe="")
        paths += [f"/skills/hostile-{number}", f"/files/zz-files/{quote(file_name(text))}"]
        # As an id, a name, a query and a facet the text comes back in an error, a heading or a form.
        paths += [f"/skills/{asked}", f"/functions/{asked}", f"/search?q={asked}", f"/skills?search={asked}"]
    paths += ["/skills/zz-files", *(f"/prompts/{quote(text, safe='')}" for text in HOSTILE[:10])]
    yield paths
    for worker in workers:
        worker.__exit__(None, None, None)


def test_there_are_sixty_hostile_texts() -> None:
    assert len(set(HOSTILE)) == 60


def test_a_hostile_document_adds_no_active_element_to_any_view(site: Site, filled: list[str]) -> None:
    problems: list[tuple[str, str]] = []
    for path in filled:
        page = Elements(site.get(path).text)
        for tag, attributes in page.found:
            target = str(attributes.get("href") or attributes.get("src") or "").strip().lower()
            if (
                tag in DANGEROUS
                or [key for key in attributes if key.startswith("on") or key == "style"]
                or target.startswith(("javascript:", "data:", "vbscript:"))
                or (tag != "a" and target.startswith(("http", "//")))
                or (tag == "form" and not str(attributes["action"]).startswith(ALLOWED_FORMS))
            ):
                problems.append((path, tag))
        if len(page.named("script")) != 1:
            problems.append((path, "script"))

    assert not problems


def test_no_hostile_document_runs_anything(tab: Tab, site: Site, filled: list[str]) -> None:
    """Every document, every error and every list is opened; the view of a skill shows all its file names."""
    found: list[tuple[str, Any]] = []
    tab.expects_failures = True
    tab.page.route("**/events?*", lambda route: route.abort())
    for path in filled:
        if path.startswith(("/functions/", "/search", "/skills?search")) or "/files/" in path:
            continue
        tab.page.goto(site.url + path, wait_until="domcontentloaded")
        traces = tab.page.evaluate(TRACES)
        if traces != NO_TRACES:
            found.append((path, traces))

    assert not found
