"""A source that takes back what it brought: an older version, other bytes, an invalid version."""

from __future__ import annotations

import http.server
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.commands import free_port, run
from tests.support.world import World

from iii_directory.errors import DirectoryError
from iii_directory.install.requests import any_download
from iii_directory.limits import MAX_VERSION_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Turncoat:
    """A registry that has one worker, ``w``, in whatever version and with whatever text it says now."""

    def __init__(self) -> None:
        self.version, self.text = "2.0.0", "# good"
        told = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer: dict[str, Any] = {"worker": {"name": "w", "version": told.version}}
                if "/skills" in self.path:
                    skills = [{"path": "SKILL.md", "content": told.text}]
                    answer = {"name": "w", "version": told.version, "skills": skills, "prompts": []}
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def turncoat() -> Iterator[Turncoat]:
    registry = Turncoat()
    yield registry
    registry.server.shutdown()
    registry.server.server_close()


@pytest.fixture
def world(tmp_path: Path, turncoat: Turncoat) -> World:
    world = World(tmp_path, turncoat.url)
    world.download(worker="w")
    return world


def text_of(world: World) -> str:
    return (world.skills / "w" / "SKILL.md").read_text(encoding="utf-8")


def reason(world: World, act: Callable[[Any], Any]) -> str:
    """The sentence of an act that must fail, whether it raises or reports."""
    try:
        found = world.run(act)
    except DirectoryError as error:
        return str(error)
    (report,) = found if isinstance(found, list) else [found]
    assert report.status == "failed", report
    return str(report.error)


WAYS: dict[str, Callable[[World], str]] = {
    "call": lambda world: reason(world, lambda installer: installer.download(request())),
    "call with a version": lambda world: reason(world, lambda installer: installer.download(request("now"))),
    "preview": lambda world: reason(world, lambda installer: installer.preview(request())),
    "update": lambda world: reason(world, lambda installer: installer.upkeep.update()),
    "automatic": lambda world: reason(world, lambda installer: installer.auto_download("w")),
}


def add(world: World, registry: Turncoat, *arguments: str, command: str = "add") -> tuple[int, str]:
    """The exit code and the errors of a command that installs from a registry."""
    config = world.tmp_path / "config.yaml"
    config.write_text(f"skills_folder: {world.skills}\nregistry_url: {registry.url}\n", encoding="utf-8")
    url = f"ws://127.0.0.1:{free_port()}"
    done = run("skills", command, *arguments, "--config", str(config), III_URL=url)
    return done.returncode, done.stderr


NOW = {"version": "2.0.0"}


def request(version: str | None = None) -> Any:
    named = {"version": NOW["version"]} if version else {}
    return any_download({"worker": "w", **named}, allow_file=False)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "call with a version"])
@pytest.mark.parametrize("version", ["1.0.0", "2.0.0-rc.1", "weird", "2"])
def test_a_source_whose_newest_version_went_backwards_is_refused_by_every_way_in(
    world: World, turncoat: Turncoat, way: str, version: str
) -> None:
    turncoat.version, turncoat.text = version, "# old, vulnerable"
    NOW["version"] = version

    sentence = WAYS[way](world)

    assert "older than the installed '2.0.0'" in sentence
    assert "--allow-downgrade" in sentence
    assert text_of(world) == "# good"
    assert world.lock()["w"]["resolved"] == "2.0.0"


@pytest.mark.parametrize("named", [{"version": "1.0.0"}, {"tag": "stable"}])
def test_an_older_version_that_the_caller_names_is_installed(
    world: World, turncoat: Turncoat, named: dict[str, str]
) -> None:
    turncoat.version, turncoat.text = "1.0.0", "# one"

    world.download(worker="w", **named)

    assert (text_of(world), world.lock()["w"]["resolved"]) == ("# one", "1.0.0")


def test_an_older_version_typed_in_a_command_is_installed(world: World, turncoat: Turncoat) -> None:
    turncoat.version, turncoat.text = "1.0.0", "# one"

    assert add(world, turncoat, "w@1.0.0")[0] == 0
    assert text_of(world) == "# one"


def test_the_tag_latest_in_a_call_leaves_the_choice_to_the_source(world: World, turncoat: Turncoat) -> None:
    turncoat.version, turncoat.text = "1.0.0", "# one"

    with pytest.raises(DirectoryError, match=r"older than the installed '2\.0\.0'"):
        world.download(worker="w", tag="latest")


def test_an_update_does_not_follow_a_chosen_tag_backwards(world: World, turncoat: Turncoat) -> None:
    world.download(worker="w", tag="stable")
    turncoat.version, turncoat.text = "1.0.0", "# one"

    assert "older than" in reason(world, lambda installer: installer.upkeep.update())
    assert text_of(world) == "# good"


@pytest.fixture
def stranger() -> Iterator[Turncoat]:
    """A second registry, which has a newer version of the same worker."""
    registry = Turncoat()
    registry.version, registry.text = "2.0.1", "# evil"
    yield registry
    registry.server.shutdown()
    registry.server.server_close()


@pytest.mark.parametrize("named", [{}, {"version": "2.0.1"}, {"tag": "stable"}])
@pytest.mark.parametrize("way", ["call", "preview", "update", "outdated", "automatic"])
def test_an_installed_namespace_does_not_come_from_another_registry(
    world: World, stranger: Turncoat, way: str, named: dict[str, str]
) -> None:
    asked = any_download({"worker": "w", **named}, allow_file=False)
    ways: dict[str, Callable[[Any], Any]] = {
        "call": lambda installer: installer.download(asked),
        "preview": lambda installer: installer.preview(asked),
        "update": lambda installer: installer.upkeep.update(),
        "outdated": lambda installer: installer.upkeep.outdated(),
        "automatic": lambda installer: installer.auto_download("w"),
    }
    recorded = world.registry_url
    world.registry_url = stranger.url

    sentence = reason(world, ways[way])

    assert f"was installed from the registry '{recorded}', not from '{stranger.url}'" in sentence
    assert "--allow-downgrade" in sentence
    assert text_of(world) == "# good"


@pytest.mark.parametrize("command", ["add", "update"])
def test_the_operator_may_move_a_namespace_to_another_registry(
    world: World, stranger: Turncoat, command: str
) -> None:
    names = ["w"] if command == "add" else []

    assert add(world, stranger, *names, command=command)[0] == 1
    assert add(world, stranger, *names, "--allow-downgrade", command=command)[0] == 0
    assert text_of(world) == "# evil"
    assert world.lock()["w"]["source"]["registry"] == stranger.url


def test_a_record_without_an_address_takes_the_configured_registry(world: World, stranger: Turncoat) -> None:
    place = world.skills / "skills.lock.json"
    document = json.loads(place.read_text(encoding="utf-8"))
    del document["namespaces"]["w"]["source"]["registry"]
    place.write_text(json.dumps(document), encoding="utf-8")
    world.registry_url = stranger.url

    world.download(worker="w")

    assert text_of(world) == "# evil"
    assert world.lock()["w"]["source"]["registry"] == stranger.url


def test_credentials_of_the_registry_address_are_not_recorded(world: World, turncoat: Turncoat) -> None:
    world.registry_url = turncoat.url.replace("://", "://me:secret@")
    turncoat.version = "2.0.1"

    world.download(worker="w")

    assert world.lock()["w"]["source"]["registry"] == turncoat.url


@pytest.mark.parametrize("way", [way for way in WAYS if way != "automatic"])
def test_other_bytes_under_the_same_version_are_refused_by_every_way_in(
    world: World, turncoat: Turncoat, way: str
) -> None:
    turncoat.text = "# evil"
    NOW["version"] = "2.0.0"

    assert "other content for '2.0.0'" in WAYS[way](world)
    assert text_of(world) == "# good"


def test_other_bytes_are_not_restored_and_not_brought_by_themselves(world: World, turncoat: Turncoat) -> None:
    turncoat.text = "# evil"
    assert world.run(lambda installer: installer.auto_download("w")) is None
    (world.skills / "w" / "SKILL.md").unlink()

    assert "other content for '2.0.0'" in reason(world, lambda installer: installer.upkeep.restore())
    assert not (world.skills / "w" / "SKILL.md").exists()


def test_the_operator_may_accept_an_older_version_and_other_bytes(world: World, turncoat: Turncoat) -> None:
    turncoat.version, turncoat.text = "1.0.0", "# one"
    assert add(world, turncoat, "w")[0] == 1
    assert add(world, turncoat, "w", "--allow-downgrade")[0] == 0
    assert text_of(world) == "# one"

    turncoat.text = "# evil"
    code, sentence = add(world, turncoat, "w")
    assert (code, text_of(world)) == (1, "# one")
    assert "--allow-downgrade" in sentence
    assert add(world, turncoat, "w", "--allow-downgrade")[0] == 0
    assert text_of(world) == "# evil"


@pytest.mark.parametrize(
    "version", ["x" * (MAX_VERSION_CHARS + 1), "\x1b[31m1.0.0", "1.0.0\n", "../1", "1.0.0\u202e", "", " "]
)
def test_a_version_that_can_be_none_is_not_installed(world: World, turncoat: Turncoat, version: str) -> None:
    turncoat.version, turncoat.text = version, "# x"

    with pytest.raises(DirectoryError) as refusal:
        world.download(worker="w")

    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 400
    assert text_of(world) == "# good"
