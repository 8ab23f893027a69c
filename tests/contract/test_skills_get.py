"""§4: ``directory::skills::get``, and how it forgives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.places import embedded_only
from tests.contract.requirements import requirement
from tests.support.reader import OtherWorker

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.reader import Reader


@requirement("get.reply")
def test_the_reply_has_the_body_and_no_description(directory: Reader) -> None:
    directory.skills.write(
        "sandbox/create.md",
        "---\ntitle: Create\ntype: how-to\nfunction_id: sandbox::create\n---\nText.\n",
    )

    reply = directory.get("sandbox/create")

    assert reply == {
        "id": "sandbox/create",
        "title": "Create",
        "type": "how-to",
        "function_id": "sandbox::create",
        "body": "Text.\n",
        "modified_at": directory.rows()["sandbox/create"]["modified_at"],
        "provenance": {"kind": "file", "root": "skills"},
        "skill": None,
        "front_matter": {},
    }


@requirement("get.normalises", "get.index")
def test_an_id_is_understood_the_way_it_was_found(directory: Reader) -> None:
    directory.skills.document("iii-sandbox/SKILL.md", "Sandbox")
    directory.skills.document("iii-sandbox/create.md", "Create")

    overview = (
        "iii-sandbox",
        "iii-sandbox/index",
        "iii-sandbox/SKILL.md",
        "iii-sandbox/SKILLS.md",
        "iii-sandbox/index.md",
        "iii-sandbox.md",
        "iii://iii-sandbox",
        "iii://iii-sandbox/SKILL.md",
        "  iii-sandbox \n",
        "III-Sandbox",
        "III-SANDBOX/INDEX.MD",
    )
    for asked in overview:
        assert directory.get(asked)["id"] == "iii-sandbox", asked
        assert directory.body(asked) == "# Sandbox\n\nAbout Sandbox.\n", asked
    for asked in ("iii-sandbox/create", "iii://iii-sandbox/Create.md", "iii-sandbox/CREATE"):
        assert directory.get(asked)["id"] == "iii-sandbox/create", asked


@requirement("get.normalises")
def test_another_scheme_is_refused(directory: Reader) -> None:
    directory.skills.document("db.md", "DB")

    for asked in ("http://db", "https://db", "file:///db", "III://db"):
        assert directory.miss(asked).startswith("D111 invalid_input: "), asked
        assert "iii://" in directory.miss(asked), asked


@requirement("get.function-id")
def test_a_function_id_is_told_from_a_skill_id(directory: Reader) -> None:
    directory.skills.write("sandbox/create.md", "---\nfunction_id: sandbox::create\n---\nText.\n")

    for asked in ("sandbox::create", "iii://sandbox::create", "a/b::c"):
        assert directory.miss(asked).startswith("D112 invalid_input: "), asked
    assert "Did you mean: sandbox/create." in directory.miss("sandbox::create")


@requirement("get.exact-first")
def test_an_exact_id_comes_before_the_overview_and_the_substring(directory: Reader) -> None:
    directory.skills.document("mail.md", "Bare")
    directory.skills.document("mail/index.md", "Overview")
    directory.skills.document("mailer/index.md", "Other")

    assert directory.body("mail").startswith("# Bare")
    assert directory.body("mail/index").startswith("# Overview")


@requirement("get.substring", "get.substitute-says-so")
def test_part_of_a_workers_name_finds_its_overview_and_says_so(directory: Reader) -> None:
    directory.skills.document("iii-sandbox/index.md", "Sandbox")
    directory.skills.document("iii-sandbox/create.md", "Create")

    for asked in ("sandbox", "SANDBOX", "sandbox/index", "iii://sandbox"):
        reply = directory.get(asked)
        first, blank, rest = reply["body"].split("\n", 2)
        assert reply["id"] == "iii-sandbox"
        assert first.startswith("> ")
        assert "sandbox" in first
        assert "iii-sandbox" in first
        assert blank == ""
        assert rest == "# Sandbox\n\nAbout Sandbox.\n"


@requirement("get.substring")
def test_the_single_or_uniquely_shortest_name_is_meant(directory: Reader) -> None:
    for name in ("iii-mail", "iii-mail-sender", "aa-db", "bb-db", "long-db-name"):
        directory.skills.document(f"{name}/index.md", name)

    assert directory.get("mail")["id"] == "iii-mail"
    assert directory.get("sender")["id"] == "iii-mail-sender"
    # Two are equally short, so neither is served.
    assert directory.miss("db").startswith("D110 not_found: ")


@requirement("get.sub-path", "get.substitute-says-so")
def test_a_sub_path_is_substituted_only_where_the_overview_is_all_there_is(directory: Reader) -> None:
    directory.skills.document("alone/index.md", "Alone")
    directory.skills.document("family/index.md", "Family")
    directory.skills.document("family/child.md", "Child")

    assert directory.get("alone/deeper/thing")["id"] == "alone"
    assert directory.body("alone/deeper/thing").startswith("> ")
    assert directory.miss("family/missing").startswith("D110 not_found: ")


@embedded_only
@requirement("get.undocumented")
def test_an_installed_worker_without_documents_gets_an_overview(
    start: Callable[..., Reader], engine_url: str
) -> None:
    with OtherWorker(engine_url, "silent-worker") as silent:
        silent.offer("silent::work", lambda _: "done")
        directory = start()

        reply = directory.get("silent-worker")
        by_part = directory.get("silent")

    assert (reply["id"], reply["title"]) == ("silent-worker", "silent-worker")
    assert set(reply) == {"id", "title", "type", "function_id", "body", "modified_at"}
    assert "silent::work" in reply["body"]
    assert by_part["body"].startswith("> ")
    assert "silent::work" in by_part["body"]


@requirement("get.not-found", "errors.typo")
def test_a_miss_names_close_ids_and_what_to_call(directory: Reader) -> None:
    directory.skills.document("iii-sandbox/index.md", "Sandbox")
    directory.skills.document("iii-sandbox/create.md", "Create")
    directory.skills.document("weather/index.md", "Weather")

    typo = directory.miss("iii-sanbox")
    deeper = directory.miss("iii-sandbox/creat")
    nothing = directory.miss("zzzzzz")

    assert typo.startswith("D110 not_found: skill 'iii-sanbox' not found. Did you mean: iii-sandbox")
    assert "Did you mean: iii-sandbox/create" in deeper
    assert "weather" not in typo
    assert "Did you mean" not in nothing
    for sentence in (typo, deeper, nothing):
        assert "Next: call directory::skills::list" in sentence


@requirement("errors.typo")
def test_no_more_than_three_close_ids_are_named(directory: Reader) -> None:
    for letter in "abcdef":
        directory.skills.document(f"sandbox-{letter}/index.md", letter)

    named = directory.miss("sandbox-x").split("Did you mean: ")[1].split(".")[0]

    assert len(named.split(", ")) == 3
