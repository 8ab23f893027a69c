"""The guide's examples of publishing, run as printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.commands import START_SECONDS, environment, free_port, running
from tests.support.directory import client
from tests.support.markdown import code_blocks

if TYPE_CHECKING:
    from collections.abc import Generator

PUBLISHING = Path(__file__).parent.parent / "docs" / "guide" / "publishing.md"


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
