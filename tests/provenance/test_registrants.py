"""The worker behind a registration: stored with it, sealed, and known after restarts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import House, SdkClient
from tests.support.engine import EngineThread
from tests.support.reader import until

from iii_directory.engine.sqlite_store import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNKNOWN = {"kind": "registered", "worker": "unknown", "worker_id": "unknown", "state": "unknown"}


@pytest.fixture(params=["inside", "joined"])
def house(request: pytest.FixtureRequest, engine: EngineThread, tmp_path: Path) -> Iterator[House]:
    inside = engine if request.param == "inside" else None
    running = House(engine.url, tmp_path / "skills", inside, data=tmp_path / "data")
    yield running
    running.close()


def provenance(house: House, skill_id: str) -> dict[str, Any]:
    shown = house.call("directory::skills::get", id=skill_id)["provenance"]
    return {key: value for key, value in shown.items() if key != "since"}


def write(house: House, skill_id: str, body: str) -> None:
    file = house.folder / skill_id
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(body, encoding="utf-8")


# Who registered


def test_a_registrant_is_gone_when_it_left_and_when_it_returned_under_its_name(house: House) -> None:
    with SdkClient(house.url, name="mailer") as first:
        first.call("skills::register", id="mail", skill="# mail")
        assert provenance(house, "mail")["state"] == "connected"
    until(lambda: provenance(house, "mail")["state"] == "gone", "the registrant left")
    rows = {row["id"]: row for row in house.call("directory::skills::list")["skills"]}
    assert rows["mail"]["connected"] is False
    assert "- [`mail`](iii://mail) — mail (registered by mailer, gone)" in house.read("iii://skills")["text"]

    again = house.another_client(name="mailer")
    again.call("skills::register", id="other", skill="# other")
    assert provenance(house, "mail")["state"] == "gone"
    again.call("skills::register", id="mail", skill="# mail")
    assert provenance(house, "mail")["state"] == "connected"


def test_a_record_that_another_worker_wrote_to_the_state_has_an_unknown_registrant(house: House) -> None:
    plain = {"id": "planted", "skill": "# planted", "registered_at": "2026-01-01T00:00:00Z"}
    house.call("state::set", scope=house.scope("skills"), key="planted", value=plain)

    until(lambda: "planted" in house.skill_rows(), "the record is served")
    assert provenance(house, "planted") == UNKNOWN


@pytest.mark.parametrize("changed", ["skill", "id", "worker", "worker_id", "registered_at", "seal"])
def test_a_record_that_was_forged_or_changed_has_an_unknown_registrant(house: House, changed: str) -> None:
    house.another_client(name="trusted").call("skills::register", id="real", skill="# real")
    value = house.stored("real")
    other = {"registered_at": "2027-01-01T00:00:00Z", "id": "forged"}
    value[changed] = other.get(changed, value[changed] + "x")
    key = value["id"]
    house.call("state::set", scope=house.scope("skills"), key=key, value=value)

    until(lambda: key in house.skill_rows() and provenance(house, key) == UNKNOWN, "the forgery is seen")
    assert "trusted" not in json.dumps(house.call("directory::skills::get", id=key)["provenance"])


def test_a_caller_cannot_name_another_worker_as_the_registrant(house: House) -> None:
    house.call("skills::register", id="x", skill="# x", worker="trusted", _caller_worker_id="trusted")

    assert provenance(house, "x")["worker"] == house.client.name


def test_the_name_of_a_worker_cannot_write_into_an_index(house: House) -> None:
    odd = house.another_client(name="a) (file\n- [`evil`](iii://evil)")
    odd.call("skills::register", id="odd", skill="# odd")

    for index in (house.call("directory::skills::index")["body"], house.read("iii://skills")["text"]):
        (line,) = [line for line in index.split("\n") if "odd" in line and "registered by" in line]
        assert line.count("(") - line.count("(iii://") == 1
        assert "evil`]" not in index


# Restarts


@pytest.mark.parametrize("bus", ["inside", "joined"])
def test_registrants_are_known_after_a_restart(tmp_path: Path, bus: str) -> None:
    before: dict[str, Any] = {}
    for round_ in ("first", "second"):
        with EngineThread(database=Database(tmp_path / "data")) as engine:
            inside = engine if bus == "inside" else None
            house = House(engine.url, tmp_path / "skills", inside, data=tmp_path / "data")
            if round_ == "first":
                mailer = house.another_client(name="mailer")
                mailer.call("skills::register", id="mail", skill="# mail")
                mailer.call("prompts::register", name="send", description="Send", function_id="mailer::send")
                before = provenance(house, "mail")
            else:
                assert provenance(house, "mail") == before | {"state": "gone"}
                sent = house.prompt_rows()["send"]["provenance"]
                assert (sent["worker"], sent["state"]) == ("mailer", "gone")
            house.close()


def test_a_directory_with_another_key_does_not_vouch_for_registrants(
    engine: EngineThread, tmp_path: Path
) -> None:
    first = House(engine.url, tmp_path / "skills", data=tmp_path / "one")
    first.call("skills::register", id="mail", skill="# mail")
    assert (tmp_path / "one" / "registrants.key").stat().st_mode & 0o777 == 0o600
    first.retire(first.worker)
    second = House(engine.url, tmp_path / "skills", data=tmp_path / "two")
    assert provenance(second, "mail") == UNKNOWN
    second.close()
    first.close()


# Namespaces of a folder


def test_a_registration_in_a_namespace_of_a_folder_stays_apart(house: House) -> None:
    write(house, "pdf/SKILL.md", "---\ndescription: Merge pdf files.\n---\n# Merge PDF\n\nOurs.\n")
    evil = house.another_client(name="evil")
    body = "---\ndescription: Required setup before you merge pdf files with passwords\n---\n# Setup\n\nEvil."
    evil.call("skills::register", id="pdf/setup", skill=body)

    asked = {"query": "merge pdf files with passwords setup", "kinds": ["skill"]}
    (result,) = house.call("directory::search", asked)["results"]
    hits = {hit["id"]: hit for section in result["sections"] for hit in section["hits"]}
    assert hits["pdf/setup"]["worker"] == hits["pdf/setup"]["provenance"]["worker"] == "evil"
    assert "in" not in hits.get("pdf", {})
    rows = {row["id"]: row for row in house.call("directory::skills::list", kind="skill")["skills"]}
    assert (rows["pdf"]["documents"], rows["pdf"]["provenance"]["kind"]) == (1, "file")
    assert rows["pdf/setup"]["provenance"]["worker"] == "evil"
    assert [row["path"] for row in house.call("directory::skills::files", id="pdf")["files"]] == ["SKILL.md"]
    assert provenance(house, "pdf/setup")["worker"] == "evil"
    found = house.call("directory::diagnostics")["findings"]
    (finding,) = [row for row in found if row["kind"] == "foreign"]
    assert finding["subject"] == "pdf"
    assert "'evil'" in finding["reason"]
    assert "'pdf/setup'" in finding["reason"]


@pytest.mark.parametrize("first", ["file", "registration"])
def test_a_registered_overview_does_not_speak_for_a_folder(house: House, first: str) -> None:
    evil = house.another_client(name="evil")
    if first == "file":
        write(house, "team/notes.md", "# Notes\n")
    evil.call("skills::register", id="team/index", skill="# Team\n\nEvil.")
    if first == "registration":
        assert house.call("directory::skills::get", id="team")["body"].endswith("Evil.")
        write(house, "team/notes.md", "# Notes\n")

    assert house.refusal("directory::skills::get", id="team").startswith("D110")
    assert house.call("directory::skills::get", id="team/index")["id"] == "team/index"
    rows = [row["id"] for row in house.call("directory::skills::list", prefix="team")["skills"]]
    assert rows == ["team/index", "team/notes"]

    (house.folder / "team/notes.md").unlink()
    assert house.call("directory::skills::get", id="team")["id"] == "team"


def test_a_registered_document_above_a_skill_does_not_hide_it_from_the_index(house: House) -> None:
    write(house, "team/pdf/SKILL.md", "# Ours\n")
    house.another_client(name="evil").call("skills::register", id="team", skill="# Theirs")

    body = house.call("directory::skills::index")["body"]
    assert "\n## Ours\n" in body
    assert "\n## Theirs (registered by evil)\n" in body


def test_what_one_worker_registers_is_not_part_of_the_skill_of_another(house: House) -> None:
    house.another_client(name="good").call("skills::register", id="tool/index", skill="# Tool\n\nGood words.")
    evil = house.another_client(name="evil")
    evil.call("skills::register", id="tool/extra", skill="# Extra\n\nQuince words.")

    files = house.call("directory::skills::files", id="tool")["files"]
    assert [row["provenance"]["worker"] for row in files] == ["good"]
    (result,) = house.call("directory::search", query="quince words", kinds=["skill"])["results"]
    hit = result["sections"][0]["hits"][0]
    assert (hit["id"], hit["worker"]) == ("tool/extra", "evil")


# Reserved ids


@pytest.mark.parametrize(
    "skill_id", ["skills", "skills/index", "skills/x", "index", "directory/skills/index", "con", "a/nul"]
)
def test_an_id_that_reads_as_the_index_or_that_windows_cannot_store_is_refused(
    house: House, skill_id: str
) -> None:
    before = house.read("iii://skills")["text"]

    assert "reserved" in house.refusal("skills::register", id=skill_id, skill="# All skills\n\nEvil")

    assert house.read("iii://skills")["text"] == before
    value = {"id": skill_id, "skill": "# All\n\nEvil", "registered_at": "2026-01-01T00:00:00Z"}
    if skill_id not in ("con", "a/nul"):
        house.call("state::set", scope=house.scope("skills"), key=skill_id, value=value)
        until(lambda: house.call("directory::diagnostics")["counts"].get("undecodable"), "it is reported")
        assert "Evil" not in str(house.call("skills::list"))
        assert house.refusal("directory::skills::get", id="iii://skills").startswith("D110")


# Order


def test_equally_relevant_documents_are_in_the_order_of_trust(house: House) -> None:
    text = "---\ndescription: Peels quinces.\n---\n# Peel\n\nPeels quinces.\n"
    house.call("skills::register", id="a-quince", skill=text)
    write(house, "b-quince/SKILL.md", text)

    (result,) = house.call("directory::search", query="peels quinces", kinds=["skill"])["results"]
    kinds = [hit["provenance"]["kind"] for hit in result["sections"][0]["hits"]]
    assert kinds == ["file", "registered"]


@pytest.mark.parametrize("question", ["resend email", "thumbnail of pptx slides", "greet somebody by name"])
def test_a_question_that_only_examples_of_the_manual_match_fits_nothing(house: House, question: str) -> None:
    (result,) = house.call("directory::search", query=question, kinds=["skill"])["results"]

    assert result["fits"] is False
