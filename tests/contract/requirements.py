"""What the contract requires of reading, statement by statement, and the marker that ties tests to it.

``tests/contract/test_requirements.py`` checks both ways: no requirement without a test, no test without one.
Tests elsewhere may carry the marker too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pytest

ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One statement: what must be so, the section that says it, and the generation it came with."""

    what: str
    section: str
    generation: str = ALL


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Marks a test as showing these requirements."""
    for name in ids:
        REQUIREMENTS[name]  # an unknown one fails here, with its name
    return pytest.mark.requirement(*ids)


def _section(section: str, generation: str, **statements: str) -> dict[str, Requirement]:
    return {
        name.replace("__", ".").replace("_", "-"): Requirement(what, section, generation)
        for name, what in statements.items()
    }


REQUIREMENTS: Final[dict[str, Requirement]] = {
    **_section(
        "1",
        ALL,
        catalogue__one="a document of the folder is found through the doors of every generation",
        catalogue__functions="the 38 functions of the generations are registered, and those of ours",
        surfaces__all_by_default="all generations are on by default",
        surfaces__switch_off="a generation can be switched off; an id shared with one that is on stays",
        payload__caller_and_unknown_fields="_caller_worker_id and unknown fields are ignored",
        payload__none="a null or missing payload is {}",
        payload__wrong_type="a field of a wrong type is an error that names it and what was expected",
        payload__missing_field="a missing required field is an error that names it and what was expected",
        functions__described="every function has a description and request and response schemas",
        skill_fetch__no_response_schema="skill::fetch has no response schema; its description has its fields",
        skill_fetch__exposed="skill::fetch is exposed to MCP bridges by both spellings of the metadata",
    ),
    **_section(
        "2",
        ALL,
        ids__grammar="segments of 1-64 of [a-z0-9_-] joined by single slashes, at most 1024 bytes",
        ids__fn_reserved="the first segment is not fn; a deeper one may be",
        names__grammar="a prompt's name is one segment",
        uris__index="iii://skills and iii://directory/skills are the tree index",
        uris__body="iii://{id} is the body, at any depth",
        uris__section="iii://fn/a/b calls a::b with {}",
        uris__scheme="the scheme is iii://, case-sensitive, and nothing is percent-decoded",
        uris__unreachable_functions="a function id with uppercase, '.' or '::' in a segment is not reachable",
        uris__legacy_link="iii://x/worker::fn says 'not found' and shows iii://fn/worker/fn",
        uris__reserved_file="a file called like the index is read by get and named in the diagnostics",
        uris__exact="iii://{id} finds {id} or {id}/index, never a close match",
        messages__fragments="messages contain the agreed fragments",
    ),
    **_section(
        "3",
        ALL,
        front_matter__keys="title, type, function_id and description are taken from the front matter",
        front_matter__bom="a BOM before the front matter is allowed",
        front_matter__crlf="CRLF is accepted",
        front_matter__empty="an empty block is a block",
        front_matter__wrong_type="one wrong-typed key loses only that key",
        front_matter__broken="broken YAML loses the block, keeps the body, and is reported",
        front_matter__no_tags="tags, anchors and aliases are refused",
        front_matter__other_keys="other keys do no harm",
        documents__title="title: front matter, else the first '# ' line, else the id",
        documents__description="description: front matter, else the first paragraph, joined by single spaces",
        documents__teaser="in the tree index a description is cut at 140 characters plus '...'",
        documents__body_limit="a body is at most 256 KiB",
        documents__file_body="a file's body is what follows the front matter",
        documents__lines="lines end at \\n with an optional \\r, never at other separators",
        folder__ids="the id is the path without .md; SKILL.md and SKILLS.md mean index.md",
        folder__prompts="a .md below a folder called prompts is a prompt; name overrides the file's stem",
        folder__prompt_description="a prompt without a description is skipped with a reason",
        folder__skipped="hidden, other, linked, badly named, duplicate, oversize, empty, unreadable and "
        "non-UTF-8 files are skipped with a recorded reason",
        folder__is_a_link="skills_folder itself may be a link; it is resolved once at start",
        folder__display_id="a trailing /index is dropped unless a document has that bare id",
        folder__local="a namespace of local_skills_folder replaces the whole namespace",
        folder__missing="a missing folder is an empty catalogue, and one that appears is seen",
        folder__fresh="an edit is visible to the next read, also of the same size and with the time put back",
        folder__structure_fresh="deleting, renaming and replacing folders is seen by the next read",
    ),
    **_section(
        "3",
        "v0.8",
        visibility__installed="with the filter on, a namespace nobody asked for needs an installed worker",
        visibility__always="iii and iii-directory are always shown",
        visibility__asked_for="what a call downloaded, or a hand wrote, is shown",
        visibility__unreachable="if worker::list cannot be reached nothing is hidden",
        visibility__off="filter_unregistered: false hides nothing",
        visibility__told="what is hidden is in the diagnostics",
    ),
    **_section(
        "4",
        "v0.8",
        list__row="a row has id, title, type, function_id, description, bytes, modified_at",
        list__search="search: substring of id, title and description in any case",
        list__search_without_description="search leaves descriptions alone while they are not included",
        list__prefix="prefix: against the id on disk, so db/ finds the overview shown as db",
        list__type="type: exact",
        list__and="filters are ANDed",
        list__sorted="rows are sorted by id",
        list__no_description="include_description: false leaves the key with an empty string",
        list__bytes="bytes is the file's size on disk",
        list__broken_front_matter="a document with broken front matter still gives a row",
        get__reply="id, title, type, function_id, body, modified_at, and no description",
        get__normalises="white space, iii://, SKILL.md, .md and case are understood; other schemes refused",
        get__function_id="'::' inside is D112",
        get__exact_first="an exact id comes before anything else",
        get__index="then <id>/index",
        get__substring="then the name of a worker by substring: exact first, else single or shortest hit",
        get__sub_path="a sub-path is substituted only if the overview is the worker's only document",
        get__undocumented="an installed worker without documents answers with a generated overview",
        get__substitute_says_so="a substitute says so in a first quoted line",
        get__not_found="else D110",
        index__blocks="# Skills index, then per overview ## title, description and the call, sorted by id",
        index__budget="past 3,000 bytes descriptions go, never a worker, and the last line says so",
        index__count="workers_count is the number of blocks",
        index__only_overviews="a worker without an overview has no block",
    ),
    **_section(
        "4",
        "v0.2",
        fetch__sections="'# {uri}', a blank line, the body without trailing white space, joined by rules",
        fetch__uris_win="uris wins when it is not empty; blanks are dropped",
        fetch__nothing_left="nothing left, also of blank uris, is 'Provide uri'",
        fetch__other_scheme="another scheme is refused before anything is read",
        fetch__one_failure="one failure fails the call and names the URI",
        fetch__concurrent="reads run concurrently and keep their order",
        sections__markdown="a string or {content: string} is text/markdown",
        sections__json="anything else is pretty JSON, application/json",
        sections__timeout="a section times out after state_timeout_ms",
        sections__failure="a failing or missing function is one sentence",
        guard__on="functions of internal namespaces cannot back a section",
        guard__off="section_guard: off opens them",
        resources__list="the index, then every skill at all depths, sorted by id; no nulls",
        resources__read="contents: one entry with the uri as given, mimeType and text",
        resources__templates="exactly two templates",
        tree__lines="'# Skills', an intro without links, one line per skill, parents before children",
        tree__empty="an empty index says so in italics",
    ),
    **_section("4", "v0.5", fetch__bare_path="bare paths get iii:// in front, under all three names"),
    **_section(
        "5",
        "v0.2 and v0.4",
        shared__skills_list="skills::list rows carry the fields of both generations and never the body",
        shared__prompts_list="prompts::list rows carry the fields of both generations",
    ),
    **_section(
        "6",
        "v0.4 and v0.8",
        prompts__list="rows by name",
        prompts__get="name, description, body, modified_at, under both ids",
        prompts__arguments="a folder's prompt takes its declared arguments; a missing one is named",
        prompts__miss="a miss is D210 with close names and nothing unrelated",
    ),
    **_section(
        "9",
        ALL,
        errors__sentence="an error is one sentence: code, class, what, did you mean, next",
        errors__codes="reading's codes: D100 D110 D111 D112 D120 D210 D211 D410 D411",
        errors__typo="a typo of a single-segment id is suggested; at most three close ids",
        errors__nothing_leaks="no path outside the folder, no stack trace, in message or stacktrace",
        diagnostics__all="every skipped file, shadowed id and oddity, with its reason and what to do",
        diagnostics__few="only what needs attention, or so many, with the counts of everything",
        diagnostics__why="of one document every rule that hid, cut, shadowed or skipped it",
        diagnostics__shadowed="of two documents with one id the loser is reported",
        diagnostics__log="the worker's log says each once",
    ),
    **_section(
        "10",
        ALL,
        config__defaults="a missing or broken file means defaults, never a failed start",
        config__unknown_keys="unknown keys are warned about",
        config__folder="skills_folder is relative to the config file; ~ and absolute paths work",
        cli__flags="--config, --url, --manifest, --help and --version",
        cli__signals="SIGINT and SIGTERM stop it cleanly",
        worker__name="on the engine it is called iii-directory",
        worker__no_telemetry="telemetry of the SDK is off unless asked for",
    ),
    **_section(
        "seed 002",
        "v0.8",
        schemas__fields="the schemas have the published fields, types and required marks",
        schemas__descriptions="every field is described",
        schemas__answers="what a function answers fits its own schema",
    ),
    **_section(
        "whole skills",
        ALL,
        files__listed="every file of a skill is listed with size, kind, mode and hash; no link, none hidden",
        files__read="every file of a skill is read byte for byte, in pages that are cut between characters",
        files__by_path="directory::skills::get understands the path of a text file as documents write it",
        files__no_text="a binary or larger file is D117 with the call to make",
        files__uris="skill:// addresses are read by every function that fetches or reads",
        files__no_findings="files of a skill are no findings; what is of no skill is one",
        files__registered="a registered skill answers its documents as files",
        files__paths="functions tell no path unless show_paths says so",
        files__hostile="whatever lies in a skill is served byte for byte or is a finding; nothing outside is",
        files__tasks="what a skill sends its reader to is had by function calls alone, and runs",
        files__fresh="an edit of a file is seen by the next read, and a hash is that of the bytes beside it",
        skills__kind="one row for each skill, with counts of its documents and files",
        skills__oversized="a skill of more than 512 files or 16 MiB is a finding, and its files are read",
        skills__check="diagnostics say on request what the standard and hosts object to, and quietly",
        skills__budget="what lists, overviews and wholes cost, and what hosts would cut of a list",
        skills__root="rows say which folder a skill lies in, by a label and not by a path",
        skills__name="rows have the front matter's name where it is one, and who may call it",
        get__front_matter="the other keys of the front matter, the skill it is part of, raw on request",
    ),
    **_section(
        "daily use",
        ALL,
        downloads__sources="functions install from a registry, a repository, an archive and a SKILL.md",
        facts__listed="what a skill can do is listed, with the functions it names and whether they exist",
        visibility__levels="lists, indexes, search and reads honour the operator's visibility of each skill",
        usage__counted="what is offered, read and used is counted here, within bounds and for a while",
        names__addresses="the name that a skill gives itself is an address where no id has that name",
    ),
    **_section(
        "writing",
        ALL,
        writing__off="off unless allow_writing; the reply says which setting",
        writing__create="a created document is read back byte for byte and listed, wherever its id says",
        writing__taken="create never replaces: D114 where the id resolves or the path is taken",
        writing__reserved="D115 where it would not be a skill, would be hidden, or would hide others",
        writing__readable="an accepted write is a readable document: D113 for what the reader would refuse",
        writing__update="update replaces the whole text, never creates",
        writing__delete="delete takes the file and the folders it leaves empty",
        writing__lock="D118 where expected_sha256 is not that of what is there; nothing is changed",
        writing__read_only="D116 for what lies in another folder, at the root, or is registered",
        writing__events="create, update and delete are told to directory::skills::on-change, and only there",
        writing__record="a namespace that only create made is recorded so; in an installed one it is an edit",
        writing__files="create and update write files of a skill by path, within the bounds of served files",
        writing__fields="a field that a writing function does not have is refused",
        writing__quota="callers write at most 256 skills and 32 MiB, unless the operator says otherwise",
    ),
}
