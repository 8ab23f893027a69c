"""Every document says where it comes from, in the same words at every door."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.downloads.stage import Depot
from tests.mcp.stage import http_bridge, session
from tests.support.commands import run
from tests.support.engine import EngineThread
from tests.support.world import World

from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mcp.stage import Session

META = "dev.iii.directory/provenance"
BRIEF = ("kind", "root", "from", "version", "worker", "state")
OWN = {"kind": "file", "root": "skills"}
SHOP = {
    "skills/SKILL.md": "# shop\n\nSells quinces.\n",
    "skills/tidy.md": "# tidy\n\nTidies quinces.\n",
    "prompts/buy.md": "---\ndescription: Buy quinces\n---\nBuy some.\n",
}


class Doors:
    """A directory with a document of each source, and everything a reader can ask it by."""

    def __init__(self, depot: Depot, mcp: Session, mailer_id: str) -> None:
        self.depot = depot
        self.mcp = mcp
        self.mailer_id = mailer_id

    def skills(self) -> dict[str, dict[str, Any]]:
        """The expected provenance of a skill of each source, by its id."""
        installed = {
            "kind": "installed",
            "root": "skills",
            "from": "registry",
            "address": self.depot.world.registry_url,
            "version": "1.0.0",
        }
        lock = json.loads((self.depot.folder / "skills.lock.json").read_text())["namespaces"]
        since = lock["shop"]["installed_at"]
        author = {
            "worker": self.depot.client.name,
            "worker_id": lock["note"]["authors"]["SKILL.md"]["worker_id"],
        }
        return {
            "own": OWN,
            "shop": {**installed, "since": since, "state": "verified"},
            "shop/tidy": {**installed, "since": since, "state": "edited"},
            "note": {"kind": "written", "root": "skills", **author, "state": "verified"},
            "mail": self.registered("mail", "skills"),
            "iii-directory": {"kind": "built-in"},
        }

    def prompts(self) -> dict[str, dict[str, Any]]:
        shop = self.skills()["shop"]
        return {"ask": OWN, "buy": shop, "send": self.registered("send", "prompts")}

    def registered(self, key: str, scope: str) -> dict[str, Any]:
        stored = self.depot.stored(key, scope)
        assert stored["worker_id"] == self.mailer_id
        return {
            "kind": "registered",
            "worker": "mailer",
            "worker_id": self.mailer_id,
            "since": stored["registered_at"],
            "state": "connected",
        }

    def command(self, *arguments: str) -> Any:
        """What a command prints as JSON."""
        done = run(*arguments, "--url", self.depot.url, "--json", cwd=self.depot.world.tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def printed(self, *arguments: str) -> tuple[str, str]:
        done = run(*arguments, "--url", self.depot.url, cwd=self.depot.world.tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr


@pytest.fixture(scope="module", params=["inside", "joined"])
def doors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    home = tmp_path_factory.mktemp("home")
    with ExitStack() as opened:
        registry = opened.enter_context(RegistryServer(home / "registry"))
        engine = opened.enter_context(EngineThread())
        world = World(home, registry.url)
        world.publish("shop", "1.0.0", SHOP)
        own = {"SKILL.md": "# own\n\nMine.\n", "prompts/ask.md": "---\ndescription: Ask\n---\nAsk.\n"}
        for path, text in own.items():
            (world.skills / "own" / path).parent.mkdir(parents=True, exist_ok=True)
            (world.skills / "own" / path).write_text(text)
        inside = engine if request.param == "inside" else None
        depot = Depot(engine.url, world, inside=inside, allow_writing=True)
        opened.callback(depot.close)
        depot.call("directory::skills::download_from_registry", worker="shop")
        (world.skills / "shop" / "tidy.md").write_text("# tidy\n\nTidies quinces well.\n")
        depot.call("directory::skills::create", id="note", content="# note\n\nWritten by a caller.\n")
        mailer = opened.enter_context(depot.visitor("mailer"))
        mailer.call("skills::register", id="mail", skill="# mail\n\nSends letters.\n")
        mailer.call("prompts::register", name="send", description="Send a letter", function_id="mailer::send")
        mailer.answer("mailer::send", "Send it.")
        rows = depot.call("engine::workers::list")["workers"]
        (mailer_id,) = [row["id"] for row in rows if row["name"] == "mailer"]
        address = opened.enter_context(
            http_bridge(engine.url, inside=inside, expose=("directory::skills::*",))
        )
        yield Doors(depot, opened.enter_context(session(address, "2025")), mailer_id)


@pytest.mark.parametrize("function", ["directory::skills::list", "skills::list"])
def test_rows_of_the_lists_of_skills_show_the_provenance(doors: Doors, function: str) -> None:
    rows = {row["id"]: row["provenance"] for row in doors.depot.call(function)["skills"]}

    assert {key: rows[key] for key in doors.skills()} == doors.skills()


@pytest.mark.parametrize("function", ["directory::prompts::list", "prompts::list"])
def test_rows_of_the_lists_of_prompts_show_the_provenance(doors: Doors, function: str) -> None:
    rows = {row["name"]: row["provenance"] for row in doors.depot.call(function)["prompts"]}

    assert rows == doors.prompts()


def test_reading_a_document_shows_its_provenance(doors: Doors) -> None:
    call = doors.depot.call
    for key, expected in doors.skills().items():
        assert call("directory::skills::get", id=key)["provenance"] == expected
        assert call("directory::skills::explain", id=key)["provenance"] == expected
    for name, expected in doors.prompts().items():
        assert call("directory::prompts::get", name=name)["provenance"] == expected
        assert call("prompts::get", name=name)["provenance"] == expected


def test_every_file_of_a_skill_shows_its_provenance(doors: Doors) -> None:
    expected, call = doors.skills(), doors.depot.call
    files = {row["path"]: row for row in call("directory::skills::files", id="shop")["files"]}

    assert files["SKILL.md"]["provenance"] == expected["shop"]
    assert files["tidy.md"]["provenance"] == expected["shop/tidy"]
    for key in ("own", "note", "mail", "iii-directory"):
        reply = call("directory::skills::files", id=key)
        overview = next(row for row in reply["files"] if row["document"] == key)
        assert reply["provenance"] == overview["provenance"] == expected[key]
        page = call("directory::skills::file", id=key, path=overview["path"])
        assert page["provenance"] == expected[key]


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("own", "own"),
        ("sells quinces", "shop"),
        ("tidies quinces well", "shop"),
        ("note", "note"),
        ("sends letters", "mail"),
        ("iii-directory", "iii-directory"),
    ],
)
def test_search_hits_show_the_provenance(doors: Doors, words: str, key: str) -> None:
    expected = doors.skills()[key]
    for detail, fields in (("ids", BRIEF), ("brief", BRIEF), ("full", tuple(expected))):
        asked = {"query": words, "kinds": ["skill"], "detail": detail}
        (result,) = doors.depot.call("directory::search", asked)["results"]
        found = [hit for section in result["sections"] for hit in section["hits"]] + result["nearest"]
        (hit,) = [hit for hit in found if hit["id"] == key]
        assert hit["provenance"] == {name: expected[name] for name in fields if name in expected}
    if expected["kind"] in ("registered", "written"):
        (result,) = doors.depot.call("directory::search", query=words, kinds=["skill"])["results"]
        assert result["sections"][0]["hits"][0]["worker"] == expected["worker"]


def test_search_for_prompts_and_for_functions_shows_the_provenance(doors: Doors) -> None:
    (result,) = doors.depot.call("directory::search", query="send a letter", kinds=["prompt"])["results"]
    hit = result["sections"][0]["hits"][0]
    assert (hit["id"], hit["worker"], hit["provenance"]["kind"]) == ("send", "mailer", "registered")

    reply = doors.depot.call("directory::search_functions", capabilities=["sends letters"])
    kinds = {row["id"]: row["provenance"]["kind"] for row in reply["skills"]}
    assert kinds["mail"] == "registered"


def test_both_indexes_mark_every_document_that_is_not_a_file_of_the_operator(doors: Doors) -> None:
    marks = {
        "own": "",
        "shop": f" (installed from {doors.depot.world.registry_url})",
        "note": f" (written by {doors.depot.client.name})",
        "mail": " (registered by mailer)",
        "iii-directory": " (built in)",
    }
    body = doors.depot.call("directory::skills::index")["body"]
    tree = doors.depot.call("skill::fetch", uri="iii://skills")
    for key, mark in marks.items():
        assert f"\n## {key}{mark}\n" in body
        (line,) = [line for line in tree.split("\n") if line.startswith(f"- [`{key}`]")]
        assert line.endswith(mark or "Mine.")
    assert f"(installed from {doors.depot.world.registry_url}, edited)" in tree


def test_the_fetching_functions_keep_their_shape(doors: Doors) -> None:
    for function in ("skill::fetch", "skills::fetch_skill", "directory::skills::fetch-skill"):
        assert doors.depot.call(function, uri="iii://mail") == "# iii://mail\n\n# mail\n\nSends letters."


def test_a_finding_about_a_document_shows_its_provenance(doors: Doors) -> None:
    (finding,) = doors.depot.findings("edited")

    assert finding["provenance"] == doors.skills()["shop/tidy"]


def test_the_shapes_for_bridges_have_the_provenance_in_their_meta(doors: Doors) -> None:
    call = doors.depot.call
    rows = {row["uri"]: row for row in call("skills::resources-list")["resources"]}
    for key, expected in doors.skills().items():
        uri = f"iii://{key}"
        assert rows[uri]["_meta"] == {META: expected}
        (content,) = call("skills::resources-read", uri=uri)["contents"]
        assert content["_meta"] == {META: expected}
    prompts = {row["name"]: row for row in call("prompts::mcp-list")["prompts"]}
    for name, expected in doors.prompts().items():
        assert prompts[name]["_meta"] == {META: expected}
        assert call("prompts::mcp-get", name=name)["_meta"] == {META: expected}


def test_mcp_clients_find_the_provenance_in_the_meta_of_resources_and_prompts(doors: Doors) -> None:
    resources = {row.uri: row for row in doors.mcp.ask("list_resources").resources}
    for key, expected in doors.skills().items():
        uri = f"iii://{key}"
        assert resources[uri].meta == {META: expected}
        (content,) = doors.mcp.ask("read_resource", uri).contents
        assert content.meta == {META: expected}
    for key in ("own", "shop", "note", "mail", "iii-directory"):
        uri = f"skill://{key}/SKILL.md"
        assert resources[uri].meta[META] == doors.skills()[key]
        (content,) = doors.mcp.ask("read_resource", uri).contents
        assert content.meta == {META: doors.skills()[key]}
    prompts = {row.name: row for row in doors.mcp.ask("list_prompts").prompts}
    for name, expected in doors.prompts().items():
        assert prompts[name].meta == {META: expected}
        assert doors.mcp.ask("get_prompt", name).meta[META] == expected


def test_mcp_clients_find_the_provenance_in_the_results_of_tools(doors: Doors) -> None:
    expected = doors.skills()
    uris = {f"iii://{key}": source for key, source in expected.items()}
    for tool in ("skill__fetch", "directory__skills__fetch-skill"):
        result = doors.mcp.ask("call_tool", tool, {"uris": list(uris)})
        assert result.meta[META] == uris
        assert result.content[0].text.startswith("# iii://own\n\n# own\n")
    for key, source in expected.items():
        result = doors.mcp.ask("call_tool", "directory__skills__get", {"id": key})
        assert result.meta[META] == source
        assert result.structured_content["provenance"] == source
    listed = doors.mcp.call("directory__skills__list", search="mail")
    assert "mail (registered by mailer): Sends letters." in listed
    found = doors.mcp.ask("call_tool", "search", {"query": "sends letters"})
    (link,) = [part for part in found.content if getattr(part, "uri", "") == "iii://mail"]
    assert link.meta[META]["worker"] == "mailer"
    assert "- skill mail (registered by mailer)" in found.content[0].text


def test_the_command_line_has_the_provenance_in_json(doors: Doors) -> None:
    expected, prompts = doors.skills(), doors.prompts()
    rows = {row["id"]: row for row in doors.command("skills", "list", "--all")["skills"]}
    assert {key: rows[key]["provenance"] for key in expected} == expected
    for key in ("own", "shop/tidy", "note", "mail", "iii-directory"):
        assert doors.command("skills", "show", key)["provenance"] == expected[key]
    assert doors.command("skills", "files", "note")["files"][0]["provenance"] == expected["note"]
    listed = {row["name"]: row["provenance"] for row in doors.command("prompts", "list")["prompts"]}
    assert listed == prompts
    assert doors.command("prompts", "show", "send")["provenance"] == prompts["send"]
    (result,) = doors.command("search", "sends", "letters")["results"]
    assert result["sections"][0]["hits"][0]["provenance"]["worker"] == "mailer"


def test_the_command_line_shows_the_provenance_to_people(doors: Doors) -> None:
    listed, _ = doors.printed("skills", "list")
    (row,) = [line for line in listed.split("\n") if line.startswith("mail\t")]
    assert row.endswith("\tregistered by mailer")
    body, beside = doors.printed("skills", "show", "mail")
    assert body.endswith("Sends letters.\n")
    assert "registered by mailer" in beside
    _, beside = doors.printed("prompts", "show", "send")
    assert "registered by mailer" in beside
    found, _ = doors.printed("search", "sends", "letters")
    assert "registered by mailer" in found
