"""Who owns an id, what it is shown as, and what one change costs."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.catalog.worlds import of_paths, parsed, parsed_records

from iii_directory.catalog.diagnostics import findings
from iii_directory.catalog.persistent import sorted_by_key
from iii_directory.catalog.resolve import resolve_skill
from iii_directory.catalog.skill_replies import list_skills, plain_row
from iii_directory.catalog.snapshot import EMPTY, Snapshot, namespaces_of
from iii_directory.errors import DirectoryError


def with_records(snapshot: Snapshot, **bodies: str) -> Snapshot:
    return snapshot.changed(
        registered=parsed_records({key.replace("__", "/"): body for key, body in bodies.items()})
    )


def shadowed(snapshot: Snapshot) -> list[str]:
    return [finding.subject for finding in findings(snapshot) if finding.kind == "shadowed"]


# Owners


def test_a_file_wins_over_a_registration_and_the_loser_is_told() -> None:
    snapshot = with_records(of_paths("db.md"), db="# Registered")

    skill = snapshot.find("db")
    assert skill is not None
    assert skill.provenance.kind == "file"
    assert shadowed(snapshot) == ["registered skill db"]
    (finding,) = [finding for finding in findings(snapshot) if finding.kind == "shadowed"]
    assert "db.md has the same id 'db'" in finding.reason


def test_a_registration_comes_back_when_the_file_before_it_goes() -> None:
    snapshot = with_records(of_paths("db.md"), db="# Registered").changed({"db.md": None})

    skill = snapshot.find("db")
    assert skill is not None
    assert skill.provenance.kind == "registered"
    assert shadowed(snapshot) == []


@pytest.mark.parametrize(
    ("names", "winner"),
    [
        (("index", "SKILL", "SKILLS"), "SKILL"),
        (("index", "SKILLS"), "SKILLS"),
        (("index", "SKILL"), "SKILL"),
        (("SKILLS", "SKILL"), "SKILL"),
    ],
)
def test_of_several_files_for_one_overview_the_first_in_order_wins(
    names: tuple[str, ...], winner: str
) -> None:
    for order in (names, names[::-1]):
        snapshot = EMPTY
        for name in order:
            snapshot = snapshot.changed(parsed({f"db/{name}.md": b"# T\n"}))

        skill = snapshot.find("db/index")
        assert skill is not None
        assert skill.path == f"db/{winner}.md"
        assert sorted(shadowed(snapshot)) == sorted(f"db/{name}.md" for name in names if name != winner)


def test_a_prompt_where_it_lies_wins_over_one_that_only_claims_its_name() -> None:
    claim = b"---\ndescription: claim\nname: deploy\n---\nx"
    place = b"---\ndescription: place\n---\nx"
    snapshot = EMPTY.changed(parsed({"a/prompts/evil.md": claim, "z/prompts/deploy.md": place}))

    prompt = snapshot.prompt("deploy")
    assert prompt is not None
    assert prompt.path == "z/prompts/deploy.md"
    assert shadowed(snapshot) == ["a/prompts/evil.md"]


def test_of_two_prompts_in_their_place_the_first_path_wins() -> None:
    text = b"---\ndescription: x\n---\nx"
    snapshot = EMPTY.changed(parsed({"b/prompts/p.md": text, "a/prompts/p.md": text}))

    prompt = snapshot.prompt("p")
    assert prompt is not None
    assert prompt.path == "a/prompts/p.md"


def test_a_prompt_that_changes_its_name_leaves_the_old_one() -> None:
    before = EMPTY.changed(parsed({"a/prompts/p.md": b"---\ndescription: x\n---\nx"}))
    after = before.changed(parsed({"a/prompts/p.md": b"---\ndescription: x\nname: q\n---\nx"}))

    assert (before.prompts.keys, after.prompts.keys) == (["p"], ["q"])


# Display ids


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        (("db/index.md",), ["db"]),
        (("db/SKILL.md", "db/a.md"), ["db", "db/a"]),
        (("db/index.md", "db.md"), ["db", "db/index"]),
        (("index.md",), ["index"]),
        (("a/index/index.md",), ["a/index"]),
        (("a/index/index.md", "a/index.md"), ["a", "a/index/index"]),
        (("a/b/index.md", "a/b.md", "a/index.md"), ["a", "a/b", "a/b/index"]),
        (("skills/index.md",), ["skills"]),
    ],
)
def test_an_overview_is_shown_by_the_name_of_its_folder_unless_that_is_taken(
    paths: tuple[str, ...], shown: list[str]
) -> None:
    assert of_paths(*paths).skills.keys == shown


def test_a_registered_skill_does_not_take_the_name_of_a_folder_with_an_overview() -> None:
    assert with_records(of_paths("db/index.md"), db="# T").skills.keys == ["db"]
    assert with_records(of_paths("db/other.md"), db="# T").skills.keys == ["db", "db/other"]


def test_a_skill_that_comes_or_goes_renames_the_overview_below_it() -> None:
    alone = of_paths("db/index.md", *(f"w/doc-{number}.md" for number in range(40)))
    list_skills(alone)

    beside = alone.changed(parsed({"db.md": b"# Plain\n"}))
    again = beside.changed({"db.md": None})

    assert [row["id"] for row in list_skills(beside)][:2] == ["db", "db/index"]
    assert list_skills(again) == list_skills(alone)


def test_an_id_finds_itself_before_the_overview_below_it() -> None:
    snapshot = of_paths("db.md", "db/index.md", "x/index.md")

    assert [
        skill and skill.path for skill in map(snapshot.find, ("db", "db/index", "x", "x/index", "y"))
    ] == [
        "db.md",
        "db/index.md",
        "x/index.md",
        "x/index.md",
        None,
    ]


def test_the_skills_below_a_namespace_are_those_of_exactly_that_name() -> None:
    snapshot = of_paths("a/b.md", "a/c/d.md", "a-b/c.md", "ab/c.md", "a.md", "a0.md")

    assert [skill.id for skill in snapshot.skills_below("a")] == ["a/b", "a/c/d"]
    assert namespaces_of(snapshot) == {"a", "a-b", "ab", "a0"}


def test_a_lookup_that_is_repeated_keeps_nothing_more() -> None:
    snapshot = of_paths("a/b.md", "a/c.md")

    def kept_after_a_lookup() -> int:
        with suppress(DirectoryError):
            resolve_skill(snapshot, "a/missing-altogether")
        snapshot.skills_below("a")
        return sum(len(run.columns) for run in snapshot.skills._runs)

    assert len({kept_after_a_lookup() for _ in range(5)}) == 1


def test_the_skills_about_a_function_are_those_whose_front_matter_names_it() -> None:
    files = {
        "a.md": b"---\nfunction_id: db::query\n---\nx",
        "b.md": b"---\nfunctions: [db::query, db::x]\n---\nx",
        "c.md": b"db::query",
    }

    assert [skill.id for skill in EMPTY.changed(parsed(files)).documenting("db::query")] == ["a", "b"]


# What one change costs


def test_nothing_new_is_the_same_snapshot() -> None:
    snapshot = of_paths("a.md")

    assert snapshot.changed() is snapshot
    assert snapshot.changed({}, {}, snapshot.visibility) is snapshot


def test_one_changed_file_makes_one_new_row_and_keeps_the_others() -> None:
    paths = [f"w/doc-{number:03}.md" for number in range(100)]
    before = of_paths(*paths)
    rows = list_skills(before)

    after = before.changed(parsed({"w/doc-050.md": b"# New\n"}))

    fresh = [new for old, new in zip(rows, list_skills(after), strict=True) if new is not old]
    assert [row["title"] for row in fresh] == ["New"]
    assert list_skills(before) is rows
    assert list_skills(after) is list_skills(after)


def test_an_edit_that_hides_or_shows_nothing_keeps_all_it_can() -> None:
    before = of_paths(*(f"w/doc-{number}.md" for number in range(100)))
    after = before.changed(registered=parsed_records({"w/doc-1": "# Shadowed"}))

    assert after.skills is before.skills
    assert after.skills.column(plain_row) is before.skills.column(plain_row)


# The documents itself


def test_a_documents_inserts_replaces_and_removes_in_place_of_order() -> None:
    documents = sorted_by_key({"b": 1, "d": 2})
    documents.column(lambda key, item: key)

    changed = documents.changed({"a": 0, "b": None, "c": 3, "d": 4, "x": None})

    assert (changed.keys, changed.items) == (["a", "c", "d"], [0, 3, 4])
    assert (documents.keys, documents.items) == (["b", "d"], [1, 2])


def test_the_range_of_a_prefix_is_exact() -> None:
    documents = sorted_by_key(dict.fromkeys(["a", "a-", "a/", "a/b", "a/z", "a0", "b"], 0))

    assert documents.below("a/", lambda key, _: key) == ["a/", "a/b", "a/z"]
    assert documents.below("c", lambda key, _: key) == []
