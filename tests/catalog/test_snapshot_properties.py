"""The snapshot against a plain model of the rules, and against itself however it came to be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog import slow_model
from tests.catalog.slow_model import World
from tests.catalog.worlds import (
    BODIES,
    CONTENTS,
    IDS,
    INSTALLED,
    PATHS,
    RECORDED,
    WORLDS,
    parsed,
    parsed_records,
    snapshot_of,
    visibility,
)

from iii_directory.catalog.diagnostics import findings
from iii_directory.catalog.skill_folders import every_skill, files_of, paths_of_skill
from iii_directory.catalog.skill_indexes import tree_index, workers_index
from iii_directory.catalog.skill_replies import (
    directory_prompt_row,
    list_skills,
    mcp_prompt_row,
    plain_prompt_row,
    plain_row,
    resource_rows,
)
from iii_directory.catalog.snapshot import EMPTY, Snapshot, namespaces_of
from iii_directory.documents.uris import SkillUri, parse_uri


def everything(snapshot: Snapshot) -> list[Any]:
    """All that a caller can see."""
    return [
        list_skills(snapshot),
        list_skills(snapshot, include_description=False),
        snapshot.skills.column(plain_row),
        resource_rows(snapshot),
        snapshot.prompts.column(directory_prompt_row),
        snapshot.prompts.column(plain_prompt_row),
        snapshot.prompts.column(mcp_prompt_row),
        tree_index(snapshot),
        workers_index(snapshot),
        list_skills(snapshot, skills_only=True),
        [files_of(snapshot, skill) for _, skill in every_skill(snapshot)],
        findings(snapshot),
        snapshot.hidden,
        namespaces_of(snapshot),
    ]


@settings(max_examples=400, deadline=None)
@given(WORLDS)
def test_any_world_gives_the_catalogue_of_the_plain_rules(world: World) -> None:
    snapshot = snapshot_of(world)

    times = ("modified_at", "registered_at", "provenance")
    rows = [
        {key: value for key, value in row.items() if key not in times}
        for row in snapshot.skills.column(plain_row)
    ]
    assert rows == slow_model.skills(world)
    assert [
        (row["name"], row["description"]) for row in snapshot.prompts.column(directory_prompt_row)
    ] == slow_model.prompts(world)


@settings(max_examples=300, deadline=None)
@given(WORLDS, st.data())
def test_a_prefix_lists_exactly_the_skills_whose_ids_start_so(world: World, data: st.DataObject) -> None:
    snapshot = snapshot_of(world)
    ids = [skill.id for skill in snapshot.skills.items]
    whole = data.draw(st.sampled_from([*ids, "db/index", "nobody"]))
    prefix = whole[: data.draw(st.integers(1, len(whole)))]

    rows = list_skills(snapshot)
    assert list_skills(snapshot, prefix=prefix) == [
        row for row, skill_id in zip(rows, ids, strict=True) if skill_id.startswith(prefix)
    ]


@settings(max_examples=300, deadline=None)
@given(WORLDS)
def test_every_file_that_is_left_out_has_a_finding(world: World) -> None:
    snapshot = snapshot_of(world)

    said = {finding.subject for finding in findings(snapshot) if finding.kind in ("skipped", "shadowed")}
    served = {entry.path for entry in (*snapshot.skills.items, *snapshot.prompts.items) if entry.path}
    hidden = {path for path in world.files if path.split("/")[0] in snapshot.hidden}
    plain = {path for path in world.files if slow_model.is_plain(path)}
    assert slow_model.left_out(world) - hidden <= said
    assert set(world.files) == served | hidden | plain | (said & set(world.files))
    assert not served & said


@settings(max_examples=300, deadline=None)
@given(WORLDS)
def test_plain_files_are_of_a_skill_or_counted_together(world: World) -> None:
    snapshot = snapshot_of(world)

    others = [
        path
        for path in sorted(world.files)
        if slow_model.is_plain(path)
        and not path.endswith(".md")
        and not slow_model.in_skill(world, path)
        and path.split("/")[0] not in snapshot.hidden
    ]
    counted = [finding for finding in findings(snapshot) if "of no skill" in finding.reason]
    assert [finding.subject for finding in counted] == others[:1]
    if len(others) > 1:
        assert counted[0].reason.startswith(f"{len(others)} files ")


@settings(max_examples=400, deadline=None)
@given(WORLDS)
def test_skills_and_their_files_are_those_of_the_plain_rules(world: World) -> None:
    snapshot = snapshot_of(world)

    rows = list_skills(snapshot, skills_only=True)
    assert {row["id"]: (row["documents"], row["files"]) for row in rows} == slow_model.skill_rows(world)
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    for folder in slow_model.skill_folders(world):
        overview = snapshot.find(f"{folder}/index")
        assert overview is not None
        assert paths_of_skill(snapshot, overview) == slow_model.files_of(world, folder)


@settings(max_examples=200, deadline=None)
@given(WORLDS)
def test_every_address_and_every_id_on_display_leads_back_to_its_skill(world: World) -> None:
    snapshot = snapshot_of(world)

    for key, skill in zip(snapshot.skills.keys, snapshot.skills.items, strict=True):
        assert snapshot.find(key) is skill
        assert snapshot.display_id(skill) == key
    for row in resource_rows(snapshot)[1:]:
        uri = parse_uri(row["uri"])
        assert isinstance(uri, SkillUri)
        found = snapshot.find(uri.id)
        assert found is not None
        assert found.title == row["name"]


# However it came to be

# Files that get in each other's way: the same id, the name of a folder, the same prompt.
_RIVALS = st.sampled_from(
    ["a.md", "a/index.md", "a/SKILL.md", "a/b.md", "a/index/index.md", "a/prompts/p.md", "b/prompts/p.md"]
)
_GOOD = st.none() | st.sampled_from(
    [b"---\ndescription: One.\n---\n# One\n", b"---\ndescription: Two.\n---\nTwo."]
)
_STEPS = st.one_of(
    st.tuples(st.just("file"), PATHS, st.none() | CONTENTS),
    st.tuples(st.just("file"), _RIVALS, _GOOD),
    st.tuples(st.just("file"), _RIVALS, _GOOD),
    st.tuples(st.just("record"), IDS, st.none() | BODIES),
    st.tuples(st.just("rule"), INSTALLED, RECORDED),
)
# Enough documents for one more not to be a large part of them.
_GROUND = {
    **{f"ns{number // 8}/doc-{number}.md": b"# Ground\n\nText.\n" for number in range(40)},
    **{f"ns{number}/prompts/p{number}.md": b"---\ndescription: x\n---\nText.\n" for number in range(24)},
}


def apply(world: World, snapshot: Snapshot, step: tuple[str, Any, Any]) -> Snapshot:
    """One change to the world, and the snapshot derived for it."""
    kind, where, what = step
    if kind == "rule":
        world.installed, world.recorded = where, what
        return snapshot.changed(visibility=visibility(world))
    content: dict[str, Any] = world.files if kind == "file" else world.registered
    if what is None:
        content.pop(where, None)
    else:
        content[where] = what
    if kind == "file":
        return snapshot.changed(parsed({where: what}))
    return snapshot.changed(registered=parsed_records({where: what}))


@settings(max_examples=100, deadline=None)
@given(st.lists(_STEPS, max_size=12), st.booleans())
def test_any_sequence_of_single_changes_ends_where_a_fresh_start_does(
    steps: list[tuple[str, Any, Any]], looking: bool
) -> None:
    world = World(dict(_GROUND))
    snapshot = snapshot_of(world)

    for step in steps:
        if looking:
            everything(snapshot)
        snapshot = apply(world, snapshot, step)

    assert everything(snapshot) == everything(snapshot_of(world))


@settings(max_examples=100, deadline=None)
@given(WORLDS, st.lists(_STEPS, max_size=6))
def test_a_small_catalogue_changes_step_by_step_into_the_same_too(
    world: World, steps: list[tuple[str, Any, Any]]
) -> None:
    snapshot = snapshot_of(world)

    for step in steps:
        snapshot = apply(world, snapshot, step)

    assert everything(snapshot) == everything(snapshot_of(world))


@settings(max_examples=100, deadline=None)
@given(WORLDS, WORLDS)
def test_many_changes_at_once_end_where_a_fresh_start_does(before: World, after: World) -> None:
    gone = dict.fromkeys(before.files) | after.files
    unregistered = dict.fromkeys(before.registered) | after.registered

    snapshot = snapshot_of(before).changed(parsed(gone), parsed_records(unregistered), visibility(after))

    assert everything(snapshot) == everything(snapshot_of(after))


@settings(max_examples=100, deadline=None)
@given(WORLDS, _STEPS)
def test_a_snapshot_stays_what_it_was_whatever_is_derived_from_it(
    world: World, step: tuple[str, Any, Any]
) -> None:
    snapshot = snapshot_of(world)
    before = repr(everything(snapshot))

    everything(apply(World(dict(world.files), dict(world.registered)), snapshot, step))

    assert repr(everything(snapshot)) == before


@pytest.mark.soak
@settings(max_examples=3_000, deadline=None)
@given(st.lists(_STEPS, max_size=40))
def test_long_sequences_of_changes_end_where_a_fresh_start_does(steps: list[tuple[str, Any, Any]]) -> None:
    world, snapshot = World(dict(_GROUND)), EMPTY.changed(parsed(_GROUND))
    for step in steps:
        everything(snapshot)
        snapshot = apply(world, snapshot, step)
    assert everything(snapshot) == everything(snapshot_of(world))
