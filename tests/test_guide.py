"""The guide's examples, run as printed."""

from __future__ import annotations

import configparser
import json
import plistlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.commands import START_SECONDS, environment, free_port, running
from tests.support.directory import client
from tests.support.git import make_repo
from tests.support.markdown import code_blocks

from iii_directory.cli.up import command as up_command
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

    assert printed.count('"--up"') == 2


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
