"""The examples, run as a reader would run them."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.registered.stage import House
from tests.sdk.installation import NODE, install_node
from tests.support.commands import running_program
from tests.support.reader import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.support.commands import Running
    from tests.support.engine import EngineThread

EXAMPLES = Path(__file__).parent.parent / "examples"


def started(command: list[str], cwd: Path, url: str) -> AbstractContextManager[Running]:
    return running_program(*command, cwd=cwd, III_URL=url, PYTHONUNBUFFERED="1", HOME=str(cwd))


@pytest.fixture
def open_house(engine: EngineThread, tmp_path: Path) -> Iterator[Callable[[], House]]:
    """Starts the directory when the test wants it."""
    with ExitStack() as opened:

        def start() -> House:
            running = House(engine.url, tmp_path / "skills")
            opened.callback(running.close)
            return running

        yield start


@pytest.fixture
def house(open_house: Callable[[], House]) -> House:
    return open_house()


def message(text: str) -> dict[str, object]:
    return {"role": "user", "content": {"type": "text", "text": text}}


def test_the_python_worker_publishes_its_folder_its_section_and_its_prompt(
    house: House, tmp_path: Path
) -> None:
    command = [sys.executable, str(EXAMPLES / "python_worker" / "worker.py")]
    with started(command, tmp_path, house.url) as example:
        until(lambda: "greet" in house.prompt_rows(), "the prompt, which comes last, is there")
        assert list(house.skill_rows()) == ["greeter", "greeter/how-to/greet"]
        assert house.call("directory::skills::get", id="greeter")["type"] == "index"
        assert house.skill_rows()["greeter/how-to/greet"]["function_id"] == "greeter::greet"
        assert house.read("iii://fn/greeter/status")["text"].startswith("# Status of the greeter")
        reply = house.call("prompts::mcp-get", name="greet", arguments={"name": "Ada"})
        assert reply["messages"] == [message("Greet Ada warmly, in one sentence.")]
        assert example.stop() == 0
    assert "Traceback" not in example.output


def test_every_link_in_the_documents_of_the_python_worker_leads_somewhere(
    house: House, tmp_path: Path
) -> None:
    command = [sys.executable, str(EXAMPLES / "python_worker" / "worker.py")]
    with started(command, tmp_path, house.url):
        until(lambda: "greet" in house.prompt_rows(), "everything is published")
        body = house.call("directory::skills::get", id="greeter")["body"]
        links = [part.partition(")")[0] for part in body.split("](")[1:]]
        assert links == ["iii://greeter/how-to/greet", "iii://fn/greeter/status"]
        assert all(house.read(link)["text"] for link in links)


def test_the_node_worker_may_be_started_before_the_directory(
    engine: EngineThread, open_house: Callable[[], House], tmp_path: Path
) -> None:
    place = tmp_path / "node_worker"
    shutil.copytree(EXAMPLES / "node_worker", place)
    (place / "node_modules").symlink_to(install_node() / "node_modules")
    with started([str(NODE), "worker.mjs"], place, engine.url) as example:
        example.wait_for("Worker registered")
        house = open_house()
        example.wait_for("published")
        example.wait_for("register node-greeter")
        assert list(house.skill_rows()) == ["node-greeter"]
        assert house.read("iii://fn/node-greeter/status")["text"].startswith("# Status of the greeter")
        reply = house.call("prompts::mcp-get", name="node-greet", arguments={"name": "Ada"})
        assert reply["messages"] == [message("Greet Ada warmly, in one sentence.")]
        assert example.stop() == 0
