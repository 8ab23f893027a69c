"""A source that takes back what it brought: an older version, other bytes, a version that is none."""

from __future__ import annotations

import http.server
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.commands import free_port, run
from tests.support.world import World

from iii_directory.errors import DirectoryError
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
    return report.reason


WAYS: dict[str, Callable[[World], str]] = {
    "call": lambda world: reason(world, lambda installer: installer.download(request())),
    "call with a version": lambda world: reason(world, lambda installer: installer.download(request("now"))),
    "preview": lambda world: reason(world, lambda installer: installer.preview(request())),
    "update": lambda world: reason(world, lambda installer: installer.upkeep.update()),
    "automatic": lambda world: reason(world, lambda installer: installer.auto_download("w")),
}
NOW = {"version": "2.0.0"}


def request(version: str | None = None) -> Any:
    from iii_directory.install.requests import any_download

    named = {"version": NOW["version"]} if version else {}
    return any_download({"worker": "w", **named}, allow_file=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", ["1.0.0", "2.0.0-rc.1", "weird", "2"])
def test_an_older_version_or_none_is_refused_by_every_way_in(
    world: World, turncoat: Turncoat, way: str, version: str
) -> None:
    turncoat.version, turncoat.text = version, "# old, vulnerable"
    NOW["version"] = version

    sentence = WAYS[way](world)

    assert "older than the installed '2.0.0'" in sentence
    assert "--allow-downgrade" in sentence
    assert text_of(world) == "# good"
    assert world.lock()["w"]["resolved"] == "2.0.0"


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


def test_the_operator_may_go_back_and_still_not_to_other_bytes(world: World, turncoat: Turncoat) -> None:
    def add(*more: str) -> tuple[int, str]:
        config = world.tmp_path / "config.yaml"
        config.write_text(f"skills_folder: {world.skills}\nregistry_url: {turncoat.url}\n", encoding="utf-8")
        url = f"ws://127.0.0.1:{free_port()}"
        done = run("skills", "add", "w", *more, "--config", str(config), III_URL=url)
        return done.returncode, done.stderr

    turncoat.version, turncoat.text = "1.0.0", "# one"
    assert add()[0] == 1
    assert add("--allow-downgrade")[0] == 0
    assert text_of(world) == "# one"

    turncoat.text = "# evil"
    code, sentence = add("--allow-downgrade")
    assert (code, text_of(world)) == (1, "# one")
    assert "remove w first" in sentence


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
