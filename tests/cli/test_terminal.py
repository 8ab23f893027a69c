"""What a person sees: the pager, tables as wide as the terminal, colour."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.support.folders import Folder
from tests.support.git import make_repo
from tests.support.terminal import at_a_terminal, on_a_terminal, words

from iii_directory.cli.output import _column_widths

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "ws://127.0.0.1:1"
LONG_ID = "claude-api/shared/managed-agents-self-hosted-sandboxes"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a skills folder: a long document, a long id, and a few others."""
    folder = Folder(tmp_path / "skills")
    body = "".join(f"Line {number} of **many**.\n\n" for number in range(60))
    folder.write("pptx/SKILL.md", f"# Slides\n\n{body}")
    folder.write(f"{LONG_ID}.md", f"# Sandboxes that you host\n\n{'Where agents run. ' * 20}\n")
    folder.write("mail/SKILL.md", "# Mail\n\nSends mail.\n")
    return tmp_path


def test_a_long_document_is_readable_in_a_plain_terminal(place: Path) -> None:
    with at_a_terminal("skills", "show", "pptx", cwd=place, III_URL=NOWHERE) as terminal:
        terminal.wait_for("Line 5 of many.")
        assert "Line 59" not in terminal.screen
        terminal.press("G")
        terminal.wait_for("Line 59 of many.")
        terminal.press("q")
        assert terminal.end() == 0

    # less shows the letters ESC where it was not told that colours are meant.
    assert "ESC" not in terminal.screen
    assert b"\x1b[1mmany" in terminal.raw


def test_without_colour_the_pager_gets_letters_alone(place: Path) -> None:
    with at_a_terminal(
        "skills", "show", "pptx", cwd=place, PAGER="sed s/^/paged:/", NO_COLOR="1", III_URL=NOWHERE
    ) as terminal:
        terminal.wait_for("paged:Line 59 of many.")
        assert terminal.end() == 0

    assert b"\x1b" not in terminal.raw


@pytest.mark.parametrize("arguments", [("--no-pager", "skills", "list"), ("skills", "list", "--no-pager")])
def test_the_pager_stays_off_when_it_is_declined(place: Path, arguments: tuple[str, ...]) -> None:
    with at_a_terminal(*arguments, cwd=place, lines=4, PAGER="sed s/^/paged:/", III_URL=NOWHERE) as terminal:
        assert terminal.end() == 0

    assert "paged:" not in terminal.screen
    assert "pptx" in terminal.screen


def test_a_pager_that_takes_no_colours_gets_none(place: Path) -> None:
    with at_a_terminal(
        "skills", "show", "pptx", cwd=place, PAGER="less", LESS="-EX", III_URL=NOWHERE
    ) as terminal:
        terminal.press("GGq")
        terminal.wait_for("Line 59 of many.")
        terminal.end()

    assert "ESC" not in terminal.screen


def test_a_list_at_80_columns_has_whole_ids_and_titles_to_read(place: Path) -> None:
    drawn = on_a_terminal(
        "skills", "list", "--all", "--prefix", "claude", cwd=place, columns=80, III_URL=NOWHERE
    )
    lines = words(drawn).rstrip().split("\n")

    assert lines[1] == LONG_ID
    assert lines[2].strip().startswith("Sandboxes that you host")
    assert all(len(line) <= 80 for line in lines)


def test_a_list_on_a_wide_terminal_uses_its_width(place: Path) -> None:
    drawn = on_a_terminal(
        "skills", "list", "--all", "--prefix", "claude", cwd=place, columns=200, III_URL=NOWHERE
    )
    head, row = words(drawn).rstrip().split("\n")

    assert head.split() == ["ID", "TITLE", "TYPE", "DESCRIPTION", "SOURCE"]
    assert row.startswith(f"{LONG_ID}  Sandboxes that you host")
    assert 190 < len(row) <= 200


CODE = 'messages.append(f"FAILURE: {first} and {second} meet, so the form cannot be filled in as it is")'


def test_lines_of_code_stay_whole_on_a_terminal(place: Path) -> None:
    (place / "skills/pptx/fill.py").write_text(f"{CODE}\n", encoding="utf-8")
    (place / "skills/pptx/SKILL.md").write_text(f"# Slides\n\n```python\n{CODE}\n```\n", encoding="utf-8")

    for shown in (("pptx", "fill.py"), ("pptx",)):
        drawn = on_a_terminal("skills", "show", *shown, cwd=place, columns=60, III_URL=NOWHERE)
        assert CODE in words(drawn).split("\n")


def test_a_list_cuts_descriptions_between_words_and_ends_no_line_with_blanks(place: Path) -> None:
    head = "---\nname: tea\ndescription: Extraordinarily knowledgeable considerations about tea.\n---\n"
    Folder(place / "skills").write("tea/SKILL.md", f"{head}# Tea\n")

    drawn = words(on_a_terminal("skills", "list", cwd=place, columns=70, III_URL=NOWHERE))

    assert re.search(r"^tea +Extraordinarily( knowledgeable)?… ", drawn, re.MULTILINE)
    assert not re.search(r" $", drawn, re.MULTILINE)


def test_long_requests_leave_room_for_the_other_columns(place: Path) -> None:
    request = "send the slides of the last meeting to all who could not come, and remind them of the next"
    (place / "cases.yaml").write_text(f"cases:\n  - request: {request}\n    expect: mail\n", encoding="utf-8")

    drawn = words(
        on_a_terminal("skills", "eval", "cases.yaml", cwd=place, columns=80, code=1, III_URL=NOWHERE)
    )

    assert drawn.split("\n")[0].split() == ["REQUEST", "EXPECTED", "RANK", "FIRST", "WHY"]
    assert len(drawn.split("\n")) < 12


def test_what_search_found_stands_indented_below_its_id(place: Path) -> None:
    drawn = words(on_a_terminal("search", "agents", "run", cwd=place, columns=60, III_URL=NOWHERE))
    head, *rows = drawn.rstrip("\n").split("\n")

    assert head == "skills"
    assert len(rows) > 2
    assert all(row.startswith("  ") and len(row) <= 60 for row in rows)


def test_ids_stand_out_in_a_list_unless_colour_is_not_wanted(place: Path) -> None:
    coloured = on_a_terminal("skills", "list", cwd=place, III_URL=NOWHERE)
    plain = on_a_terminal("skills", "list", cwd=place, NO_COLOR="1", III_URL=NOWHERE)

    assert "\x1b[36mmail" in coloured
    assert "\x1b" not in plain
    assert words(coloured) == words(plain)


@pytest.mark.parametrize(
    ("natural", "available", "widths"),
    [
        # Everything fits: nothing is cut.
        ([4, 5, 4, 10], 80, [4, 5, 4, 10]),
        # An id longer than half of the width leaves room for the rest.
        ([66, 30, 5, 400], 80, [41, 30, 5]),
        ([30, 30, 5, 400], 80, [30, 30, 5]),
        # What needs more shares what is left.
        ([10, 30, 5, 400], 100, [10, 30, 5, 49]),
        ([10, 90, 5, 400], 100, [10, 40, 5, 39]),
        # An only column is cut nowhere before the edge.
        ([66], 80, [66]),
        ([90], 80, [80]),
    ],
)
def test_columns_share_the_width_and_none_is_cut_below_twenty(
    natural: list[int], available: int, widths: list[int]
) -> None:
    assert _column_widths(natural, available) == widths


def test_a_failure_stands_on_a_line_of_its_own_below_no_bar(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("registry_url: http://127.0.0.1:1\n", encoding="utf-8")

    with at_a_terminal("skills", "add", "agent-memory", cwd=tmp_path, columns=200) as terminal:
        terminal.wait_for("D320")
        assert terminal.end() == 1
        drawn = terminal.raw.decode()

    before, after = drawn.split("iii-directory: D320")
    assert "\u2501" in before  # there was a bar
    assert before.endswith("\x1b[2K")  # and its line was cleared
    assert "\u2501" not in after


def test_a_commit_is_short_on_a_terminal(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    text = b"---\nname: tea\ndescription: Tea.\n---\nText.\n"
    commit = make_repo(repo, {"skills/tea/SKILL.md": text})
    (tmp_path / "config.yaml").write_text("allow_file_repos: true\n", encoding="utf-8")

    drawn = words(on_a_terminal("skills", "add", repo.as_uri(), cwd=tmp_path))

    assert f"installed tea {commit[:7]}" in drawn
    assert commit not in drawn
