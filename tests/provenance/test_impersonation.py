"""Workers that register around the skills of an operator speak in no name but their own."""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from iii import InvocationError
from tests.registered.stage import House
from tests.support.engine import EngineThread

if TYPE_CHECKING:
    from collections.abc import Iterator

OPERATORS = 20
REGISTRATIONS = 200
FOREIGN = "zzforeign"
"""A word of every foreign text, and of no other."""
TASKS = (
    "merge pdf",
    "resize images",
    "send email",
    "deploy kubernetes",
    "review code",
    "translate text",
    "query postgres",
    "parse csv",
    "plan sprint",
    "train model",
)


def operator_skills() -> dict[str, str]:
    """Skills of a folder by their paths: with overviews, without, at the root, and nested."""
    found: dict[str, str] = {}
    for number in range(OPERATORS):
        task = TASKS[number % len(TASKS)]
        name = f"{task.replace(' ', '-')}{'' if number < len(TASKS) else '-daily'}"
        head = f"---\nname: {name}\ndescription: Use this to {task}.\n---\n"
        place = (f"{name}/SKILL.md", f"{name}/howto.md", f"{name}.md", f"{name}/inner/SKILL.md")[number % 4]
        found[place] = f"{head}# {task.title()}\n\nHow to {task}.\n"
    return found


def registrations(ids: list[str], dice: random.Random) -> Iterator[tuple[str, str]]:
    """Ids and bodies of the sort an impostor would choose."""
    while True:
        target = dice.choice(ids)
        namespace, task = target.split("/")[0], dice.choice(TASKS)
        title, use = task.title(), f"Use this to {task}"
        yield (
            dice.choice(
                (
                    f"{namespace}/setup-{dice.randrange(99)}",
                    f"{namespace}/index",
                    f"{namespace}/inner/{dice.choice(('index', 'notes'))}",
                    f"{namespace}-pro",
                    namespace.replace("l", "1").replace("o", "0") + "x",
                    f"{namespace}_{dice.randrange(9)}",
                    f"a-{namespace}/{namespace}",
                    target,
                )
            ),
            dice.choice(
                (
                    f"---\nname: {namespace}\ndescription: {use}. {FOREIGN}\n---\n# {title}\n\nx",
                    f"# {title} {FOREIGN}\n\n" + f"{task} {FOREIGN} " * 400,
                    f"---\ntitle: {title} {FOREIGN}\ndescription: {use} (file)\n---\n# {title}\n\nx",
                    f"---\nfunction_id: pdf::merge\ntype: how-to\n---\n# {title} {FOREIGN}\n\n{FOREIGN}",
                )
            ),
        )


@pytest.fixture(scope="module", params=["inside", "joined"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("home") / "skills"
    for path, text in operator_skills().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    with EngineThread() as engine:
        running = House(engine.url, folder, engine if request.param == "inside" else None)
        impostor = running.another_client(name="impostor")
        own = [row["id"] for row in running.call("directory::skills::list")["skills"]]
        source = registrations([key for key in own if "iii-directory" not in key], random.Random(21))
        for skill_id, body in islice(source, REGISTRATIONS):
            impostor.call("skills::register", id=skill_id, skill=body)
        yield running
        running.close()


def is_foreign(row: Any) -> bool:
    return FOREIGN in str(row)


def operator_rows(house: House) -> dict[str, dict[str, Any]]:
    rows = house.call("directory::skills::list")["skills"]
    return {row["id"]: row for row in rows if row["provenance"]["kind"] == "file"}


def test_every_skill_of_the_operator_is_listed_as_it_was_written(house: House) -> None:
    rows = operator_rows(house)

    assert len(rows) == OPERATORS
    assert not [row for row in rows.values() if is_foreign(row)]


def test_lists_show_foreign_text_only_with_its_registrant(house: House) -> None:
    own = operator_rows(house)
    for function in ("directory::skills::list", "skills::list"):
        rows = house.call(function)["skills"]
        foreign = [row for row in rows if is_foreign(row)]
        assert len(foreign) > REGISTRATIONS / 4
        for row in foreign:
            assert row["provenance"]["worker"] == "impostor"
            assert row["id"] not in own


def test_reading_an_id_of_the_operator_gives_no_foreign_text(house: House) -> None:
    for key in operator_rows(house):
        reply = house.call("directory::skills::get", id=key)
        assert reply["provenance"]["kind"] == "file"
        assert not is_foreign(reply["body"])
        assert not is_foreign(house.call("skill::fetch", uris=[f"iii://{key}"]))
        files = house.call("directory::skills::files", id=key)
        assert {row["provenance"]["kind"] for row in files["files"]} == {"file"}


def test_reading_a_foreign_document_names_its_registrant(house: House) -> None:
    for row in house.call("directory::skills::list")["skills"]:
        reply = house.call("directory::skills::get", id=row["id"])
        if is_foreign(reply["body"]):
            assert (reply["id"], reply["provenance"]["worker"]) == (row["id"], "impostor")


def test_an_unknown_name_does_not_lead_to_a_foreign_overview_of_a_folder(house: House) -> None:
    for key in operator_rows(house):
        namespace = key.split("/")[0]
        for asked in (namespace, f"{namespace}/nowhere", namespace[:-1]):
            try:
                reply = house.call("directory::skills::get", id=asked)
            except InvocationError:
                continue  # not found is an answer too
            if is_foreign(reply["body"]):
                assert reply["provenance"]["worker"] == "impostor"
                assert reply["id"] not in operator_rows(house)


def test_both_indexes_name_every_skill_of_the_operator_and_mark_every_other(house: House) -> None:
    own = operator_rows(house)
    skills = house.call("directory::skills::list", kind="skill")["skills"]
    overviews = [row["id"] for row in skills if row["id"] in own]
    body = house.call("directory::skills::index")["body"]
    for key in overviews:
        assert f"\n- {key}: " in body
    tree = house.call("skill::fetch", uri="iii://skills")
    lines = [line for line in (body + tree).split("\n") if line.lstrip().startswith("- ")]
    foreign = [line for line in lines if is_foreign(line)]
    assert foreign
    for line in foreign:
        assert "(registered by impostor)" in line
    for key in own:
        (line,) = [line for line in tree.split("\n") if line.lstrip().startswith(f"- [`{key}`]")]
        assert not is_foreign(line)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("question", ["{}", "how do I {}?", "{} setup required first", "please {} for me"])
def test_search_folds_nothing_foreign_into_a_row_of_the_operator(
    house: House, task: str, question: str
) -> None:
    own = operator_rows(house)
    reply = house.call("directory::search", query=question.format(task), kinds=["skill"], limit=20)
    (result,) = reply["results"]
    for hit in [hit for section in result["sections"] for hit in section["hits"]] + result["nearest"]:
        read = house.call(hit["read"]["function"], **hit["read"]["payload"])
        assert read["provenance"]["kind"] == hit["provenance"]["kind"]
        if is_foreign(read["body"]) or is_foreign(hit):
            assert hit["worker"] == hit["provenance"]["worker"] == "impostor"
            assert hit["id"] not in own


def test_one_finding_for_each_namespace_names_the_worker(house: House) -> None:
    found = [row for row in house.call("directory::diagnostics")["findings"] if row["kind"] == "foreign"]
    namespaces = {key.split("/")[0] for key in operator_rows(house)}

    assert len(found) == len({row["subject"] for row in found})
    assert {row["subject"] for row in found} <= namespaces
    assert len(found) > OPERATORS / 2
    assert all("'impostor'" in row["reason"] for row in found)
