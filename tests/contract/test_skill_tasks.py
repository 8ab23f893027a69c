"""Three tasks that need more than documents, done by function calls alone: no path of the machine."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest
from tests.contract.requirements import requirement
from tests.support.engine import WAIT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.reader import Reader

FORMS = """---
name: forms
description: Fills in the fields of paper forms. Use when somebody has a form to fill in, such as a PDF.
---
# Forms

Filling in a form has steps of its own: read [FIELDS.md](FIELDS.md) and follow it.
"""
FIELDS = """# Fields

1. Run `scripts/list_fields.py FORM` to see which fields there are.
2. Write the values as JSON, and run `scripts/fill.py FORM VALUES OUT`.
"""
LIST_FIELDS = """import re, sys
print("\\n".join(re.findall(r"\\[(\\w+)\\]", open(sys.argv[1]).read())))
"""
FILL = """import json, sys
from common import filled
form, values, out = sys.argv[1:]
open(out, "w").write(filled(open(form).read(), json.load(open(values))))
"""
COMMON = """def filled(text, values):
    for name, value in values.items():
        text = text.replace(f"[{name}]", value)
    return text
"""
COMPANION = """---
name: companion
description: Shows sketches beside a conversation. Use when ideas are easier to see than to read.
---
# Companion

Start it with `scripts/start.sh`: it prints the address. What it serves is in `scripts/page.html`.
"""
START = """#!/bin/sh
exec "$PYTHON" "$(dirname "$0")/serve.py"
"""
SERVE = """import http.server, os
here = os.path.dirname(os.path.abspath(__file__))
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(open(os.path.join(here, "page.html"), "rb").read())
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Page)
print(f"http://127.0.0.1:{server.server_port}/", flush=True)
server.handle_request()
"""
PICTURE = bytes(range(256))
API = """---
name: messages-api
description: Calls the messages API. Use when a program should talk to a model.
---
# Messages

Pick the language of the project and read `{lang}/messages-api/README.md`.
"""
README = "# Python\n\nUse `client.stream(...)` and read the events in a loop.\n"


@pytest.fixture
def agent(directory: Reader) -> Reader:
    write = directory.skills.write
    write("forms/SKILL.md", FORMS)
    write("forms/FIELDS.md", FIELDS)
    write("forms/scripts/list_fields.py", LIST_FIELDS)
    write("forms/scripts/fill.py", FILL)
    write("forms/scripts/common.py", COMMON)
    write("companion/SKILL.md", COMPANION)
    write("companion/scripts/start.sh", START)
    directory.skills.path("companion/scripts/start.sh").chmod(0o755)
    write("companion/scripts/serve.py", SERVE)
    directory.skills.path("companion/scripts/page.html").write_bytes(b"<p>" + PICTURE)
    write("messages-api/SKILL.md", API)
    write("messages-api/python/messages-api/README.md", README)
    return directory


def best_skill(agent: Reader, task: str) -> str:
    """The id an agent goes on with: the first that a search for its task names."""
    (result,) = agent.call("directory::search", query=task, kinds=["skill"])["results"]
    return result["sections"][0]["hits"][0]["id"]


def fetched(agent: Reader, skill: str, folder: Path) -> Path:
    """Every file of a skill where an agent works, checked against its hash, and runnable if it should be."""
    for row in agent.call("directory::skills::files", id=skill)["files"]:
        raw, offset = b"", 0
        while offset is not None:
            page = agent.call("directory::skills::file", id=skill, path=row["path"], offset=offset, limit=100)
            content = page["content"].encode()
            raw += base64.b64decode(content) if page["encoding"] == "base64" else content
            offset = page["next_offset"]
        assert hashlib.sha256(raw).hexdigest() == row["sha256"]
        path = folder / row["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        path.chmod(0o755 if row["executable"] else 0o644)
    return folder


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=WAIT)
    return done.stdout


@requirement("files.tasks")
def test_a_form_is_filled_in(agent: Reader, tmp_path: Path) -> None:
    skill = best_skill(agent, "fill in a PDF form")
    assert "FIELDS.md" in agent.body(skill)
    assert "scripts/fill.py" in agent.body(f"{skill}/FIELDS.md")
    here = fetched(agent, skill, tmp_path / "work")
    form, values, out = tmp_path / "form.txt", tmp_path / "values.json", tmp_path / "out.txt"
    form.write_text("Name: [name]\nCity: [city]\n")

    fields = run(sys.executable, here / "scripts/list_fields.py", form).split()
    values.write_text(json.dumps(dict(zip(fields, ("Ada", "London"), strict=True))))
    run(sys.executable, here / "scripts/fill.py", form, values, out)

    assert out.read_text() == "Name: Ada\nCity: London\n"


@requirement("files.tasks")
def test_the_companion_is_started(agent: Reader, tmp_path: Path) -> None:
    skill = best_skill(agent, "show my ideas as sketches beside the conversation")
    assert "scripts/start.sh" in agent.body(skill)
    here = fetched(agent, skill, tmp_path / "work")

    with subprocess.Popen(
        [here / "scripts/start.sh"],
        env={**os.environ, "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        with urllib.request.urlopen(server.stdout.readline().strip(), timeout=WAIT) as page:
            shown = page.read()
        assert server.wait(WAIT) == 0

    assert shown == b"<p>" + PICTURE


@requirement("files.tasks")
def test_the_readme_that_an_overview_names_is_read(agent: Reader) -> None:
    skill = best_skill(agent, "stream the messages API in a Python program")
    assert "{lang}/messages-api/README.md" in agent.body(skill)

    assert agent.body(f"{skill}/python/messages-api/README.md") == README
    uri = f"skill://{skill}/python/messages-api/README.md"
    assert agent.call("skill::fetch", uri=uri).endswith(README.rstrip())
