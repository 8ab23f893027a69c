"""The index of workers within its budget, and the tree of skills that no title can break."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.worlds import of_files, of_paths, parsed, parsed_records

from iii_directory.catalog.skill_indexes import tree_index, workers_index
from iii_directory.catalog.snapshot import EMPTY, Snapshot
from iii_directory.limits import INDEX_BUDGET_BYTES

# The index of workers


def test_each_worker_has_its_title_its_description_and_the_call_that_reads_it() -> None:
    snapshot = of_files(
        db__SKILL="# Database\n\nStores things.\n\nMore.\n",
        db__query="# Query\n",
        mail__send="# No overview\n",
        app__index="---\ntitle: App\n---\n## Only headings\n",
    )

    body, count = workers_index(snapshot)

    assert count == 2
    assert body == (
        "# Skills index\n"
        '\nFor a task: `directory::search { "query": "…" }`\n'
        "\nWithout a mark in parentheses: a file of the operator of this directory.\n"
        "\n## App\n"
        '\n`directory::skills::get { "id": "app" }`\n'
        "\n## Database\n"
        "\nStores things.\n"
        '\n`directory::skills::get { "id": "db" }`\n'
    )


def test_a_registered_worker_is_in_the_index_and_counted_once() -> None:
    snapshot = of_paths("db/index.md").changed(registered=parsed_records({"db": "# Registered", "x": "# X"}))

    body, count = workers_index(snapshot)

    assert count == 2
    assert [line for line in body.split("\n") if line.startswith("## ")] == [
        "## db/index.md",
        "## X (registered by unknown)",
    ]


def test_an_empty_catalogue_has_an_empty_index() -> None:
    body, count = workers_index(EMPTY)

    assert count == 0
    assert body == (
        '# Skills index\n\nFor a task: `directory::search { "query": "…" }`\n'
        "\nWithout a mark in parentheses: a file of the operator of this directory.\n"
    )


def many(count: int, description: str) -> Snapshot:
    return EMPTY.changed(
        parsed({f"worker-{n:03}/SKILL.md": f"# Worker {n}\n\n{description}\n".encode() for n in range(count)})
    )


def lines_of(body: str) -> dict[str, str]:
    """The words of each skill in the compact form."""
    rows = [line.removeprefix("- ").partition(": ") for line in body.split("\n") if line.startswith("- ")]
    return {key: text for key, _, text in rows}


def test_past_the_budget_every_skill_keeps_a_line_and_the_call_is_said_once() -> None:
    body, count = workers_index(many(20, "several words " * 30))

    assert count == len(lines_of(body)) == 20
    assert len(body.encode()) <= INDEX_BUDGET_BYTES
    assert body.count("directory::skills::get {") == 1
    assert "`directory::skills::list`" in body
    lengths = {len(text) for text in lines_of(body).values()}
    assert len(lengths) == 1
    assert min(lengths) > 60
    assert all(text.endswith(("words…", "several…")) for text in lines_of(body).values())


def test_one_long_description_does_not_cost_the_others_theirs() -> None:
    files = {"a/SKILL.md": b"# A\n\n" + b"x" * 4000, "b/SKILL.md": b"# B\n\nShort.\n"}

    body, _ = workers_index(EMPTY.changed(parsed(files)))

    assert lines_of(body)["b"] == "Short."
    assert lines_of(body)["a"].startswith("xxx")
    assert len(body.encode()) <= INDEX_BUDGET_BYTES


def test_more_skills_than_the_budget_holds_all_keep_the_least_of_a_description() -> None:
    body, count = workers_index(many(200, "some word or other " * 9))

    assert count == len(lines_of(body)) == 200
    assert set(lines_of(body).values()) == {"some word or other some word or other…"}


def test_the_index_has_the_topmost_skills_whatever_folder_they_lie_in() -> None:
    snapshot = of_paths(
        "cat/one/SKILL.md", "cat/two/index.md", "cat/two/deep/SKILL.md", "note.md", "x/page.md"
    )

    body, count = workers_index(snapshot)

    assert count == 3
    assert re.findall(r'"id": "([^"]+)"', body) == ["cat/one", "cat/two", "note"]


def test_an_index_just_within_the_budget_is_whole() -> None:
    room = INDEX_BUDGET_BYTES - len(workers_index(many(1, "")).body.encode()) - 2
    body, _ = workers_index(many(1, "d" * room))

    assert len(body.encode()) == INDEX_BUDGET_BYTES
    assert "directory::skills::list" not in body
    assert "directory::skills::list" in workers_index(many(1, "d" * (room + 1))).body


# The tree


def entries(snapshot: Snapshot) -> list[str]:
    return tree_index(snapshot).split("\n\n", 2)[2].rstrip("\n").split("\n")


def test_the_tree_has_one_line_a_skill_parents_before_children() -> None:
    snapshot = of_files(
        a="# A\n\nAbout a.\n",
        a__b="# B\n",
        a__b__c="text of c",
        **{"a-b": "# Dash\n"},
        z__y="# Y\n\nAbout y.\n",
    )

    assert entries(snapshot) == [
        "- [`a`](iii://a) — A — About a.",
        "  - [`a/b`](iii://a/b) — B",
        "    - [`a/b/c`](iii://a/b/c) — a/b/c — text of c",
        "- [`a-b`](iii://a-b) — Dash",
        "  - [`z/y`](iii://z/y) — Y — About y.",
    ]


def test_the_tree_starts_with_a_heading_and_an_intro_without_links() -> None:
    head, intro = tree_index(of_paths("a.md")).split("\n\n")[:2]

    assert head == "# Skills"
    assert intro
    assert "](" not in intro


def test_an_empty_tree_says_so_in_italics() -> None:
    assert re.fullmatch(r"_.+_", entries(EMPTY)[0])


def test_a_description_in_the_tree_is_cut_at_140_characters() -> None:
    assert entries(of_files(a="# A\n\n" + "x" * 140))[0].endswith(" — " + "x" * 140)
    assert entries(of_files(a="# A\n\n" + "x" * 141))[0].endswith(" — " + "x" * 140 + "...")


def test_a_skill_behind_the_index_is_listed_but_not_linked_there() -> None:
    assert entries(of_paths("skills.md")) == ["- `skills` — skills.md — About skills.md."]
    assert entries(of_paths("skills/index.md"))[0].startswith("- [`skills`](iii://skills/index) — ")


@settings(deadline=None)
@given(
    st.lists(
        st.text(st.sampled_from("ab[]()<>\\`!#-*_\n\r\u2028\x85\x1b\u202e "), max_size=30),
        min_size=2,
        max_size=2,
    )
)
def test_no_title_or_description_breaks_its_line_or_opens_a_link(words: list[str]) -> None:
    title, description = (repr(word)[1:-1] for word in words)
    snapshot = EMPTY.changed(
        parsed({"a/SKILL.md": f'---\ntitle: "{title}"\ndescription: "{description}"\n---\nx'.encode()}),
        parsed_records({"b": f"# {words[0]}\n\n{words[1]}\n.\n"}),
    )

    lines = entries(snapshot)
    assert [line.split(" — ")[0] for line in lines] == ["- [`a`](iii://a)", "- [`b`](iii://b)"]
    for line in lines:
        rest = line.split(" — ", 1)[1]
        assert not re.search(r"[\[\]<>]", re.sub(r"\\.", "", rest))
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202e]", line)
    assert workers_index(snapshot).body.count("\n## ") == 2


def test_both_indexes_are_made_once_a_snapshot() -> None:
    snapshot = of_paths("a.md")

    assert tree_index(snapshot) is tree_index(snapshot)
    assert workers_index(snapshot) is workers_index(snapshot)
