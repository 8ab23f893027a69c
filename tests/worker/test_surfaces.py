"""The table of functions: whole, without contradictions, and true; every example in it is sent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from tests.registered.stage import SdkClient
from tests.support.commands import running_program
from tests.support.engine import EngineThread, RawClient
from tests.support.git import make_repo
from tests.support.reader import Reader, until
from tests.support.world import World

from iii_directory.config import SURFACES
from iii_directory.registry_server.registry_http import RegistryServer
from iii_directory.worker.surfaces import FUNCTIONS, GENERATIONS, TRIGGER_TYPES, functions_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.worker.surfaces.declare import FunctionRow

EXAMPLE_WORKER = Path(__file__).parents[2] / "examples" / "python_worker" / "worker.py"
PUBLISHED = {"skills/SKILL.md": "# agent-memory\n\nRemembers what agents tell it.\n"}


def test_no_function_and_no_trigger_type_is_in_the_table_twice() -> None:
    ids = [row.id for row in (*FUNCTIONS, *TRIGGER_TYPES)]

    assert len(ids) == len(set(ids))


def test_the_generations_of_the_table_are_those_an_operator_can_choose() -> None:
    named = {generation for row in (*FUNCTIONS, *TRIGGER_TYPES) for generation in row.generations}

    assert named == set(GENERATIONS) == set(SURFACES)


def test_with_no_generation_on_only_what_is_of_none_is_left() -> None:
    assert [row.id for row in functions_of(())] == [row.id for row in FUNCTIONS if not row.generations]


@pytest.fixture(scope="module", params=["inside", "joined"])
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Reader, SdkClient]]:
    """A directory with the worker of the examples beside it, a registry, and a mirror of a git host."""
    root = tmp_path_factory.mktemp("house")
    make_repo(root / "mirror" / "anthropics" / "skills", {"skills/pdf/SKILL.md": b"# pdf\n"})
    with RegistryServer(root / "registry") as registry, EngineThread() as engine:
        World(root, registry.url).publish("agent-memory", "1.2.0", PUBLISHED)
        sources = {
            "registry_url": registry.url,
            "repo_mirrors": {"https://github.com/": f"{root / 'mirror'}/"},
            "allow_file_repos": True,
            "allow_writing": True,
        }
        inside = engine if request.param == "inside" else None
        with (
            Reader(engine.url, root, inside, **sources) as reader,
            running_program(sys.executable, str(EXAMPLE_WORKER), cwd=root, III_URL=engine.url),
            RawClient(engine.url, name="follower") as follower,
            SdkClient(engine.url) as caller,
        ):
            for page in ("restoring", "outdated"):
                reader.skills.write(f"notes/{page}.md", f"# {page}\n")
            until(lambda: "greeter" in reader.ids(), "the example has published")
            until(lambda: bool(caller.call("prompts::list")["prompts"]), "and its prompt")
            follower.send(
                type="registertrigger",
                id="greeter-hears-of-skills",
                trigger_type="skills::on-change",
                function_id="greeter::status",
                config={},
            )
            follower.result("engine::functions::list")
            yield reader, caller


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.id.replace("::", "."))
def test_the_example_of_a_function_is_answered_as_its_schemas_say(
    house: tuple[Reader, SdkClient], row: FunctionRow
) -> None:
    _, caller = house
    jsonschema.validate(dict(row.example), row.request)
    if row.id == "directory::skills::remove":
        caller.call("directory::skills::install", {"worker": row.example["namespace"]})

    answer = caller.call(row.id, dict(row.example))

    assert answer is not None
    if row.response is not None:
        jsonschema.validate(answer, row.response)
