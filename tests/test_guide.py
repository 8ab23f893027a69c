"""The guide's examples, run as printed."""

from __future__ import annotations

import configparser
import fnmatch
import json
import plistlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.sdk.installation import NODE, install_node
from tests.support.commands import START_SECONDS, environment, free_port, running
from tests.support.directory import client
from tests.support.git import make_repo
from tests.support.markdown import code_blocks

from iii_directory.cli.up import command as up_command
from iii_directory.registry_server.registry_http import RegistryServer
from iii_directory.registry_server.release import publish
from iii_directory.worker.surfaces import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Generator

GUIDE = Path(__file__).parent.parent / "docs" / "guide"
PUBLISHING = GUIDE / "publishing.md"


@pytest.fixture
def place(tmp_path: Path) -> Generator[tuple[Path, str]]:
    """A folder with the directory running in it, and the engine's address."""
    url = f"ws://127.0.0.1:{free_port()}"
    with running("up", "--url", url, "--http-port", "0", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        yield tmp_path, url


def run(command: list[str], place: tuple[Path, str]) -> str:
    folder, url = place
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(III_URL=url, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin"),
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(url: str) -> dict[str, Any]:
    """What the directory lists of what was registered."""
    with client(url) as reader:
        skills = reader.call("skills::list")["skills"]
        prompts = reader.call("prompts::mcp-list")["prompts"]
    return {
        "skills": [row["id"] for row in skills if row["source"] == "registered"],
        "prompts": [row["name"] for row in prompts],
    }


def test_the_calls_publish_a_skill_and_a_slash_command(place: tuple[Path, str]) -> None:
    printed = "".join(run(["sh", "-e", "-c", block], place) for block in code_blocks(PUBLISHING, "sh"))

    assert "Sends email." in printed
    assert '"name": "send-email"' in printed
    assert shown(place[1]) == {"skills": ["resend", "resend/email"], "prompts": ["send-email"]}


def test_the_helper_publishes_a_folder(place: tuple[Path, str]) -> None:
    (example,) = code_blocks(PUBLISHING, "python")
    docs = place[0] / "docs"
    (docs / "email").mkdir(parents=True)
    (docs / "SKILL.md").write_text("# resend\n\nSends email.\n")
    (docs / "email" / "send.md").write_text("# Send an email\n")

    printed = run([sys.executable, "-c", example], place)

    assert printed.splitlines()[-1] == "{}"
    assert shown(place[1]) == {"skills": ["resend", "resend/email/send"], "prompts": ["send"]}


def test_the_words_are_shown_by_commands_that_work(place: tuple[Path, str]) -> None:
    printed = "".join(
        run(["sh", "-e", "-c", block], place) for block in code_blocks(GUIDE / "concepts.md", "sh")
    )

    assert "coffee/machines/left" in printed
    assert "It needs a kick." in printed
    assert "How to order coffee on this floor." in printed


def test_the_system_prompt_names_functions_that_there_are() -> None:
    (prompt,) = code_blocks(GUIDE / "concepts.md", "text")
    known = {row.id for row in FUNCTIONS}

    named = set(re.findall(r"[a-z]+(?:::[a-z-]+)+", prompt))

    assert len(named) == 5
    assert named <= known


def test_the_commands_of_the_page_on_running_work(place: tuple[Path, str]) -> None:
    printed = "".join(
        run(["sh", "-e", "-c", block], place) for block in code_blocks(GUIDE / "running.md", "sh")
    )

    assert "needs a token" in printed
    assert "Usage: iii-directory serve" in printed


def test_the_command_of_the_page_about_the_web_page_works(place: tuple[Path, str]) -> None:
    (block,) = code_blocks(GUIDE / "page.md", "sh")

    assert "--allow-changes" in run(["sh", "-e", "-c", block], place)


def test_the_services_of_the_guide_start_what_there_is() -> None:
    (unit,) = code_blocks(GUIDE / "running.md", "ini")
    (plist,) = code_blocks(GUIDE / "running.md", "xml")
    systemd = configparser.ConfigParser(interpolation=None)
    systemd.read_string(unit)

    for command in (
        shlex.split(systemd["Service"]["ExecStart"]),
        plistlib.loads(plist.encode())["ProgramArguments"],
    ):
        program, name, *options = command
        assert (Path(program).name, name) == ("iii-directory", "up")
        up_command.make_context("up", options)


def test_what_the_page_on_mcp_prints_is_printed(place: tuple[Path, str]) -> None:
    blocks = [block for block in code_blocks(GUIDE / "mcp.md", "sh") if "--print-config" in block]

    printed = "".join(run(["sh", "-e", "-c", block], place) for block in blocks)

    assert printed.count('"iii-directory": {') == 2


def test_the_commands_install_from_a_repository_and_a_folder(tmp_path: Path) -> None:
    (example,) = [
        block
        for block in code_blocks(PUBLISHING.with_name("installing.md"), "sh")
        if "skills add anthropics/skills" in block
    ]
    settings = {"repo_mirrors": {"https://github.com/": f"{tmp_path}/mirror/"}, "allow_file_repos": True}
    (tmp_path / "config.yaml").write_text(json.dumps(settings))
    skills = {f"skills/{name}/SKILL.md": f"# {name}\n".encode() for name in ("pdf", "docx", "xlsx")}
    make_repo(tmp_path / "mirror" / "anthropics" / "skills", skills)
    (tmp_path / "my-skills" / "notes").mkdir(parents=True)
    (tmp_path / "my-skills" / "notes" / "SKILL.md").write_text("# Notes\n")

    run(["sh", "-e", "-c", example], (tmp_path, ""))

    installed = json.loads((tmp_path / "skills" / "skills.lock.json").read_text())["namespaces"]
    assert sorted(installed) == ["notes", "pdf", "xlsx"]


def test_a_skill_with_a_script_is_made_checked_and_read(place: tuple[Path, str]) -> None:
    skills = PUBLISHING.with_name("skills.md")

    printed = "".join(run(["sh", "-e", "-c", block], place) for block in code_blocks(skills, "sh"))

    assert '"executable": true' in printed
    assert "echo filled" in printed
    assert "What to do, step by step" in printed


def test_a_skill_is_written_corrected_and_deleted_by_calls(tmp_path: Path) -> None:
    page = PUBLISHING.with_name("writing.md")
    (setting,) = code_blocks(page, "yaml")
    (tmp_path / "config.yaml").write_text(setting)
    url = f"ws://127.0.0.1:{free_port()}"
    with running("up", "--url", url, "--http-port", "0", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")

        written, corrected, deleted = (
            run(["sh", "-e", "-c", block], (tmp_path, url)) for block in code_blocks(page, "sh")
        )

    assert "They run at night." in written
    assert '"id": "notes/backups"' in corrected
    assert '"uri": "iii://notes/backups"' in deleted
    assert not (tmp_path / "skills" / "notes").exists()


def test_the_bridges_of_the_page_on_mcp_start_as_printed(place: tuple[Path, str]) -> None:
    folder, url = place
    over_http, over_stdio = (
        shlex.split(block) for block in code_blocks(GUIDE / "mcp.md", "sh") if "--print-config" not in block
    )
    # The same lines, on an engine and a port that are free here.
    moved = {"ws://127.0.0.1:49134": url, "3117": str(free_port())}

    with running(*(moved.get(word, word) for word in over_http[1:]), cwd=folder) as bridge:
        bridge.wait_for(f":{moved['3117']}/mcp")

    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _CLIENT}
    done = subprocess.run(
        [str(Path(sys.executable).parent / over_stdio[0]), *over_stdio[1:]],
        cwd=folder,
        env=environment(III_URL=url),
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
    )
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "iii-directory"


_CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "guide", "version": "1"},
}


def test_agents_install_from_a_registry_and_a_repository_as_printed(tmp_path: Path) -> None:
    calls = next(
        block for block in code_blocks(GUIDE / "installing.md", "sh") if "download_from_registry" in block
    )
    make_repo(
        tmp_path / "mirror" / "anthropics" / "skills",
        {"skills/frontend-design/SKILL.md": b"# Design\n"},
    )
    (tmp_path / "memory" / "skills").mkdir(parents=True)
    (tmp_path / "memory" / "worker.yaml").write_text("name: agent-memory\n")
    (tmp_path / "memory" / "skills" / "SKILL.md").write_text("# Memory\n")
    publish(tmp_path / "memory", tmp_path / "registry", "1.2.3")
    url = f"ws://127.0.0.1:{free_port()}"
    with RegistryServer(tmp_path / "registry") as registry:
        settings = {
            "registry_url": registry.url,
            "repo_mirrors": {"https://github.com/": f"{tmp_path}/mirror/"},
            "allow_file_repos": True,
        }
        (tmp_path / "config.yaml").write_text(json.dumps(settings))
        with running("up", "--url", url, "--http-port", "0", cwd=tmp_path) as up:
            up.wait_for("Ctrl-C")
            run(["sh", "-e", "-c", calls], (tmp_path, url))
            with client(url) as reader:
                listed = {row["id"] for row in reader.call("directory::skills::list")["skills"]}

    assert {"agent-memory", "frontend-design"} <= listed


def test_a_registry_of_ones_own_is_filled_and_served_as_printed(tmp_path: Path) -> None:
    *first, serve = next(
        block for block in code_blocks(GUIDE / "installing.md", "sh") if "registry serve" in block
    ).splitlines()
    (tmp_path / "my-worker" / "skills").mkdir(parents=True)
    (tmp_path / "my-worker" / "skills" / "SKILL.md").write_text("# Mine\n")

    printed = run(["sh", "-e", "-c", "\n".join(first)], (tmp_path, ""))
    with running(*shlex.split(serve)[1:], "--port", "0", cwd=tmp_path) as server:
        server.wait_for("registry")

    assert printed.startswith("published my-worker 1.0.0 (latest)")
    assert "my-worker\t1.0.0\t" in printed


def test_searching_works_as_printed(place: tuple[Path, str]) -> None:
    skill = place[0] / "skills" / "paperwork"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: paperwork\ndescription: Fill in a PDF form.\n---\nText.\n")

    printed = "".join(
        run(["sh", "-e", "-c", block], place) for block in code_blocks(GUIDE / "finding.md", "sh")
    )

    assert printed.count("paperwork") >= 2


def test_the_commands_of_the_page_on_real_engines_work(place: tuple[Path, str]) -> None:
    printed = "".join(
        run(["sh", "-e", "-c", block], place) for block in code_blocks(GUIDE / "engines.md", "sh")
    )

    assert "Usage: iii-directory serve" in printed
    assert '"findings"' in printed
    assert '"skills"' in printed


def test_the_container_of_the_page_on_real_engines_starts_what_there_is() -> None:
    compose, adapters, rules = (yaml.safe_load(block) for block in code_blocks(GUIDE / "engines.md", "yaml"))
    manifest = yaml.safe_load((GUIDE.parents[1] / "iii.worker.yaml").read_text(encoding="utf-8"))

    (name, container), *others = compose["containers"].items()
    program, command, *options = shlex.split(container["scripts"]["run"])

    assert (name, others) == (manifest["name"], [])
    assert (program, command, options) == ("iii-directory", "serve", [])
    (one, other) = (row["config"]["adapter"] for row in adapters["workers"])
    assert [row["name"] for row in adapters["workers"]] == ["iii-state", "iii-pubsub"]
    assert one == other
    assert one["name"] == "redis"
    patterns = [
        rule.removeprefix('match("').removesuffix('")')
        for rule in rules["workers"][0]["config"]["rbac"]["expose_functions"]
    ]
    ids = {row.id for row in FUNCTIONS}
    assert all(fnmatch.filter(ids, pattern) for pattern in patterns)


def test_the_first_workers_examples_run_in_the_words_of_the_python_sdk(place: tuple[Path, str]) -> None:
    (example,) = code_blocks(GUIDE / "engines.md", "python")

    printed = run([sys.executable, "-W", "error::DeprecationWarning", "-c", example], place)

    assert "# iii://resend/email/send" in printed
    assert "API: ok. Quota: 73% remaining." in printed
    assert "Compose an email to ada@example.org." in printed
    assert shown(place[1]) == {"skills": ["resend", "resend/email/send"], "prompts": ["send-email"]}


def test_the_first_workers_examples_run_in_the_words_of_the_node_sdk(place: tuple[Path, str]) -> None:
    (example,) = code_blocks(GUIDE / "engines.md", "javascript")
    (place[0] / "node_modules").symlink_to(install_node() / "node_modules")
    (place[0] / "example.mjs").write_text(example)

    assert "# resend\n\nEmail, in Node." in run([str(NODE), "example.mjs"], place)


def test_every_page_with_commands_is_run_here() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")

    pages = {page.name for page in GUIDE.glob("*.md") if code_blocks(page, "sh")}

    assert {page for page in pages if f'"{page}"' not in tests} == set()
