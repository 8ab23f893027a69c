"""Take the pictures of the web page in docs/pictures: `make pictures`.

A directory is started in a temporary folder with skills, prompts, a worker and a registry of its own, and a
Chromium opens its views. `python -m tools.pictures FOLDER` writes every view in three widths and both colour
schemes to FOLDER instead, to look at after a change of a template or of the style sheet.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import textwrap
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright
from tests.support.commands import free_port, run, running
from tests.support.engine import RawClient
from tests.support.registry import publish_worker

from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    from collections.abc import Generator

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
SCHEMES = ("light", "dark")
WIDTHS = (360, 1280, 1600)
GALLERY = {
    "overview": "/",
    "search": "/search?q=fill+in+a+pdf+form",
    "skill": "/skills/pdf-forms",
    "function": "/functions/mailer%3A%3Asend",
    "diagnostics": "/diagnostics",
    "usage": "/usage",
    "install": "/registry/agent-memory",
}
OTHERS = {
    "skills": "/skills",
    "prompts": "/prompts",
    "prompt": "/prompts/review",
    "functions": "/functions",
    "workers": "/workers",
    "worker": "/workers/mailer",
    "registry": "/registry",
    "published": "/registry/image-tools",
    "file": "/files/pdf-forms/scripts/fill.py",
    "nothing": "/search?q=zebra+crossing+qwxz",
    "missing": "/skills/no-such-skill",
}
FOLDER = {
    "incident-response/SKILL.md": """
        ---
        name: incident-response
        description: Use when production is down or slow. Who to call, what to look at, how to write it up.
        ---
        # Incident response

        Say in the channel that you have it, then work through this list. Times matter more than style.

        1. Open the dashboard and note when the graphs changed.
        2. Compare with the list of deployments: `deploy list --since 2h`.
        3. Roll back first, ask later. See [rollback](rollback.md).

        | severity | who is woken | first answer |
        |---|---|--:|
        | 1 | everyone on call | 5 min |
        | 2 | owner of the service | 30 min |

        ## Afterwards

        Write the timeline the same day with iii://weekly-report, and send it by `mailer::send`.
    """,
    "incident-response/rollback.md": """
        ---
        type: how-to
        ---
        # Rollback

        How to go back to the last good version without losing writes.
    """,
    "pdf-forms/SKILL.md": """
        ---
        name: pdf-forms
        description: Fill in PDF forms, read their fields and check the result. Use when someone sends a form.
        license: Apache-2.0
        allowed-tools: Bash(python:*)
        ---
        # PDF forms

        Forms have named fields. Read the names first, then fill them in and look at the result as a picture.

        ```python
        from scripts.fill import fill

        fill("form.pdf", {"name": "Ada Lovelace", "born": "1815-12-10"}, out="filled.pdf")
        ```

        ## Rules

        - Never guess a date. Ask for it.
        - A signature field stays empty; see [signing](references/signing.md).
        - Check the result with `scripts/check.py`: it compares every field with what was asked for.

        The functions for mail are described in iii://mailer.
    """,
    "pdf-forms/scripts/fill.py": """
        #!/usr/bin/env python3
        \"\"\"Fill in the fields of a PDF form.\"\"\"

        import sys
        from pathlib import Path


        def fill(source: str, values: dict[str, str], out: str) -> int:
            \"\"\"Write a copy of a form with values in its fields; return how many were filled.\"\"\"
            known = {name for name in values if name.strip()}
            Path(out).write_bytes(Path(source).read_bytes())
            return len(known)


        if __name__ == "__main__":
            print(fill(sys.argv[1], {}, sys.argv[2]))
    """,
    "pdf-forms/scripts/check.py": "import sys\n\nsys.exit(0)\n",
    "pdf-forms/references/signing.md": "# Signing\n\nWho may sign what, and with which key.\n",
    "pdf-forms/prompts/form.md": """
        ---
        name: form
        description: Fill in a form from a few notes.
        arguments:
          - name: notes
            description: What is known, in any order
            required: true
        ---
        Fill in the form with these notes: {{notes}}
    """,
    "weekly-report/SKILL.md": """
        ---
        name: weekly-report
        description: Write the weekly report from merged changes, incidents and numbers. Use on Fridays.
        ---
        # Weekly report

        One page. What changed for customers, what broke, what comes next. See iii://incident-response.
    """,
    "sql-style/SKILL.md": """
        ---
        name: sql-style
        description: House style for SQL and migrations. Use before writing a query that others will read.
        ---
        # SQL style

        Lower case, one clause a line, names in full.
    """,
    "release-notes/SKILL.md": """
        ---
        name: release-notes
        description: Turn a list of commits into release notes that customers understand.
        ---
        # Release notes

        Group by what a reader can do now. Today's date is !`date +%F`.
    """,
    "prompts/review.md": """
        ---
        name: review
        description: Review a change the way this team does.
        arguments:
          - name: change
            description: A branch, a commit or a link
            required: true
          - name: focus
            description: What to look at most
        ---
        Review {{change}}. Look at {{focus}} first. Follow iii://sql-style for queries.
    """,
    "onboarding/SKILL.md": "---\ndescription: [not, a, text\n---\n# Onboarding\n\nThe first week.\n",
    "sql-style/notes.md": "# Notes\n\nText without a home.\n",
}
MEMORY = """
    ---
    name: agent-memory
    description: Remember facts about people and projects between sessions, and recall them by meaning.
    ---
    # Agent memory

    Call `memory::remember` with one fact a sentence. Recall with `memory::recall` before answering.
"""
MEMORY_NEXT = (
    MEMORY.replace("one fact a sentence", "one fact a sentence and its source")
    + """
    ## Sharing

    Memories can be shared with a team through https://sync.example.com; set `MEMORY_TOKEN` first.
"""
)


def plain(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def fill(home: Path) -> None:
    for path, text in FOLDER.items():
        target = home / "skills" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(plain(text))


def publish_demo(home: Path, registry: Path) -> None:
    about = {"description": "Remember facts between sessions and recall them by meaning.", "type": "binary"}
    readme = (
        "# agent-memory\n\nA memory for agents: **one fact a sentence**, recalled by meaning.\n\n"
        "```sh\niii worker add agent-memory\n```\n\nFacts stay on your machine.\n"
    )
    functions = [
        {"name": "memory::remember", "description": "Keep one fact."},
        {"name": "memory::recall", "description": "Find facts by meaning."},
    ]
    common: dict[str, Any] = {**about, "functions": functions, "repo": "https://github.com/example/memory"}
    files = {
        "README.md": readme,
        "skills/SKILL.md": plain(MEMORY),
        "skills/recall.md": "# Recall\n\nHow to ask.\n",
    }
    publish_worker(home, registry, "agent-memory", "1.2.0", files, **common)
    more = {
        **files,
        "skills/SKILL.md": plain(MEMORY_NEXT),
        "skills/sync.sh": "#!/bin/sh\ncurl https://sync.example.com\n",
    }
    publish_worker(home, registry, "agent-memory", "1.3.0", more, **common)
    for name, words in (
        ("image-tools", "Resize, crop and convert pictures."),
        ("calendar", "Read calendars and propose times."),
        ("sandbox", "Run code in a sandbox of its own."),
    ):
        skills = {"README.md": f"# {name}\n\n{words}\n", "skills/SKILL.md": f"# {name}\n\n{words}\n"}
        publish_worker(home, registry, name, "0.4.1", skills, description=words)


def register(worker: RawClient) -> None:
    worker.announce("mailer", runtime="python", version="2.1.0", description="Sends mail for the team.")
    address = {"type": "string", "description": "Where to, as name@host."}
    worker.send(
        type="registerfunction",
        id="mailer::send",
        description="Send one mail. Attachments are paths of files the worker can read.",
        request_format={
            "type": "object",
            "required": ["to", "subject"],
            "properties": {
                "to": address,
                "subject": {"type": "string", "description": "One line, without a full stop."},
                "body": {"type": "string", "description": "The text, in markdown."},
                "priority": {
                    "enum": ["low", "normal", "high"],
                    "default": "normal",
                    "description": "How soon.",
                },
            },
        },
        response_format={
            "type": "object",
            "properties": {"id": {"type": "string", "description": "The mail."}},
        },
    )
    worker.send(type="registerfunction", id="mailer::outbox", description="List what was not sent yet.")
    how = "---\ntype: how-to\nfunction_id: mailer::send\n---\n# Send a mail\n\nOne address a call.\n"
    worker.result("skills::register", {"id": "mailer", "skill": "# Mailer\n\nSends mail for the team.\n"})
    worker.result("skills::register", {"id": "mailer/send", "skill": how})


def use(worker: RawClient) -> None:
    for words in ("fill in a pdf form", "production is down", "write release notes", "send a mail"):
        worker.result("directory::search", {"query": words})
    for words in ("book a meeting room", "translate to Korean", "book a meeting room"):
        worker.result("directory::search", {"query": words})
    for name in ("pdf-forms", "pdf-forms", "incident-response", "agent-memory"):
        worker.result("directory::skills::get", {"id": name})
    worker.result("directory::skills::file", {"id": "pdf-forms", "path": "scripts/fill.py"})


@contextmanager
def demo() -> Generator[str]:
    """Run a directory with everything that the pictures show, and give the address of its page."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "orders"
        home.mkdir()
        fill(home)
        publish_demo(home.parent, home.parent / "registry")
        registry = stack.enter_context(RegistryServer(home.parent / "registry"))
        (home / "config.yaml").write_text(f"registry_url: {registry.url}\nvisibility:\n  sql-style: manual\n")
        done = run("skills", "add", "agent-memory@1.2.0", cwd=home)
        assert done.returncode == 0, done.stderr
        port, http = free_port(), free_port()
        options = ("--in-memory", "--allow-changes", "--port", str(port), "--http-port", str(http))
        up = stack.enter_context(running("up", *options, cwd=home))
        up.wait_for("Ctrl-C stops")
        worker = stack.enter_context(RawClient(f"ws://127.0.0.1:{port}"))
        register(worker)
        use(worker)
        yield f"http://127.0.0.1:{http}"
        up.stop()


def take(tab: Any, url: str, name: str, path: str, *, whole: bool) -> None:
    tab.goto(url)
    tab.wait_for_load_state("load")
    if "agent-memory" in url and tab.get_by_role("button", name="Show the plan").count():
        tab.get_by_role("button", name="Show the plan").click()
        tab.locator(".diff").first.wait_for()
    tab.screenshot(path=path, full_page=whole)
    print(name)


def main(folder: Path | None) -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.exit("there is no Chromium here; `make browser` installs it")
    target = folder or PICTURES
    target.mkdir(parents=True, exist_ok=True)
    views = GALLERY if folder is None else GALLERY | OTHERS
    with demo() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for scheme in SCHEMES:
            for width in (1280,) if folder is None else WIDTHS:
                size: Any = {"width": width, "height": 800}
                tab = browser.new_context(color_scheme=scheme, viewport=size).new_page()
                for name, path in views.items():
                    ending = scheme if folder is None else f"{width}-{scheme}"
                    place = str(target / f"{name}-{ending}.png")
                    take(tab, url + path, f"{name}-{ending}", place, whole=folder is not None)
                tab.context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
