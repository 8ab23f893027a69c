"""Plugins of marketplaces: which skills belong to them, and installing those of one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.git import make_repo
from tests.support.installs import put
from tests.support.world import World

from iii_directory.errors import DirectoryError
from iii_directory.install.bundle import Offer, Wanted, manifest_paths, with_plugins
from iii_directory.install.requests import typed_source

if TYPE_CHECKING:
    from pathlib import Path

MARKETPLACE = {
    "name": "team",
    "plugins": [
        {"name": "office", "source": "./", "strict": False, "skills": ["./skills/pdf", "./skills/docx"]},
        {"name": "testing", "source": "./plugins/testing"},
        {"name": "remote", "source": {"source": "github", "repo": "other/place", "ref": "v1"}},
        {"name": "climbing", "source": "../../etc"},
        {"source": "./nameless"},
        "not a plugin",
    ],
}
FILES = {
    ".claude-plugin/marketplace.json": json.dumps(MARKETPLACE).encode(),
    "skills/pdf/SKILL.md": b"---\nname: pdf\ndescription: Reads.\n---\n# pdf\n",
    "skills/docx/SKILL.md": b"---\nname: docx\ndescription: Writes.\n---\n# docx\n",
    "skills/other/SKILL.md": b"# other\n",
    "plugins/testing/.claude-plugin/plugin.json": b'{"name": "testing", "skills": "./more"}',
    "plugins/testing/skills/unit/SKILL.md": b"# unit\n",
    "plugins/testing/more/fuzz/SKILL.md": b"# fuzz\n",
    "plugins/own/.claude-plugin/plugin.json": b'{"name": "own"}',
    "plugins/own/skills/solo/SKILL.md": b"# solo\n",
}
MEMBERS = {
    "docx": ("office",),
    "fuzz": ("testing",),
    "other": (),
    "pdf": ("office",),
    "solo": ("own",),
    "unit": ("testing",),
}


@pytest.fixture(params=["repository", "folder"])
def source(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> Any:
    if request.param == "folder":
        put(tmp_path / "collection", FILES)
        return typed_source(str(tmp_path / "collection"))
    make_repo(world.mirror / "o" / "r", FILES)
    return typed_source("o/r")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, "http://127.0.0.1:1")


def test_every_skill_says_which_plugins_it_belongs_to(world: World, source: Any) -> None:
    found = world.run(lambda installer: installer.offers(source))

    assert {offer.name: offer.plugins for offer in found.offers} == MEMBERS
    assert found.elsewhere == {"remote": "other/place@v1"}


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (Wanted(plugins=["office"]), ["docx", "pdf"]),
        (Wanted(plugins=["testing", "own"]), ["fuzz", "solo", "unit"]),
        (Wanted(["pdf"], plugins=["office"]), ["pdf"]),
    ],
)
def test_a_plugin_is_installed_with_its_skills_alone(
    world: World, source: Any, wanted: Wanted, names: list[str]
) -> None:
    _, added = world.run(lambda installer: installer.add(source, wanted))

    assert sorted(done.namespace for done in added.installed) == names
    assert sorted(world.lock()) == names


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ofice", "has no plugin 'ofice'. Did you mean: office"),
        ("remote", "lies in another place. Next: skills add other/place@v1"),
    ],
)
def test_a_plugin_that_is_not_in_the_source_says_what_to_do(
    world: World, source: Any, name: str, said: str
) -> None:
    with pytest.raises(DirectoryError) as error:
        world.run(lambda installer: installer.add(source, Wanted(plugins=[name])))
    assert said in str(error.value)
    assert not world.skills.exists()


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"not json",
        b'{"plugins": 3}',
        b'{"plugins": [{"name": 3}, {"name": "x"}]}',
        b"[" * 100_000,
    ],
)
def test_a_manifest_that_says_nothing_changes_nothing(manifest: bytes) -> None:
    offers = [Offer("pdf", "skills/pdf")]

    found = with_plugins(
        offers, {".claude-plugin/marketplace.json": manifest, "a/.claude-plugin/plugin.json": manifest}
    )

    assert found.offers == offers
    assert found.elsewhere == {}


def test_the_folder_of_plugins_is_counted_and_the_number_of_manifests_is_bounded() -> None:
    market = {"metadata": {"pluginRoot": "./plugins"}, "plugins": [{"name": "a", "source": "a"}]}
    found = with_plugins(
        [Offer("x", "plugins/a/skills/x"), Offer("a", "plugins/a"), Offer("y", "a/skills/y")],
        {".claude-plugin/marketplace.json": json.dumps(market).encode()},
    )

    assert [offer.plugins for offer in found.offers] == [("a",), ("a",), ()]
    assert len(manifest_paths(f"{number}/.claude-plugin/plugin.json" for number in range(10_000))) == 500
