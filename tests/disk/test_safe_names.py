"""Names from outside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory.documents.ids import (
    is_hidden,
    is_namespace,
    is_safe_path,
    kind_of,
    vet_path,
    vet_together,
)
from iii_directory.errors import DirectoryError

HOSTILE = [
    "",
    ".",
    "..",
    "/",
    "//",
    "/etc/passwd",
    "../x.md",
    "a/../../x.md",
    "a/..",
    "./a.md",
    "a/./b.md",
    "a//b.md",
    "a/",
    "a\\b.md",
    "..\\x.md",
    "\\\\server\\share\\x.md",
    "C:\\x.md",
    "C:/x.md",
    "c:x.md",
    "x.md:stream",
    "file:/x",
    "a\0.md",
    "a\n.md",
    "a\r.md",
    "a\x1b[31m.md",
    "a\x7f.md",
    "a\x85.md",
    "a\u2028.md",
    "a\u202e.md",
    "a\u200b.md",
    "a\ufeff.md",
    "a\ud800.md",
    "%2e%2e/x.md",
    "a/%2E%2e/x.md",
    "a%2fb.md",
    "a%5cb.md",
    "a%00.md",
    "con",
    "CON.md",
    "a/nul.txt",
    "Aux",
    "prn.tar.gz",
    "COM1",
    "com¹.md",
    "lpt9.md",
    "conin$",
    "CON .md",
    "a.",
    "a ",
    "a./b.md",
    "a /b.md",
    "...",
    "a" * 256,
    "é" * 128,
    "/".join("a" * 17),
    "/".join(["a" * 200] * 6),
]


@pytest.mark.parametrize("path", HOSTILE, ids=ascii)
def test_a_hostile_path_is_refused(path: str) -> None:
    assert not is_safe_path(path)
    with pytest.raises(DirectoryError, match=r"D340 .*nothing was changed") as refusal:
        vet_path(path)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize(
    "path",
    ["a.md", "SKILL.md", "a/b/c.md", "LICENSE.txt", "grüße/日本.md", "a b.md", "console.md", "a..b", ".env"],
)
def test_a_plain_path_passes(path: str) -> None:
    vet_path(path)


@given(st.text(max_size=40))
def test_a_path_that_passes_stays_below_its_folder(path: str) -> None:
    if is_safe_path(path):
        assert not path.startswith("/")
        assert all(part not in ("", ".", "..") for part in path.split("/"))
        assert path.isprintable()
        path.encode()


@pytest.mark.parametrize(
    "paths",
    [
        ["a.md", "a.md"],
        ["A.md", "a.md"],
        ["SKILL.md", "Skill.md"],
        ["caf\u00e9.md", "cafe\u0301.md"],
        ["Dir/a.md", "dir/b.md"],
        ["x/caf\u00e9/a.md", "x/cafe\u0301/b.md"],
        ["stra\u00dfe.md", "strasse.md"],
        ["\ufb01le.md", "file.md"],
        ["\u212a.md", "k.md"],
        ["a", "a/b.md"],
        ["a/b/c.md", "a/b"],
        ["\u03c3.md", "\u03c2.md"],
        ["\u00c5.md", "\u212b.md"],
        ["\u2126.md", "\u03c9.md"],
        ["\uff21.md", "a.md"],
        ["\u01c4.md", "\u01c6.md"],
        ["\u1e9e.md", "SS.md"],
        ["\u0130.md", "i\u0307.md"],
        ["SCRIPTS/run.sh", "scripts/run.sh"],
        ["a/B/c/d.md", "a/b/c/e.md"],
    ],
    ids=ascii,
)
def test_paths_that_would_meet_on_some_disk_are_refused(paths: list[str]) -> None:
    with pytest.raises(DirectoryError, match=r"D340"):
        vet_together(paths)
    with pytest.raises(DirectoryError, match=r"D340"):
        vet_together(reversed(paths))


def test_paths_that_never_meet_pass_together() -> None:
    vet_together(["a.md", "a/b.md", "a/c.md", "b.md", "a.txt"])


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("index.md", "skill"),
        ("SKILL.md", "skill"),
        ("a/SKILLS.md", "skill"),
        ("a/b_c-1.md", "skill"),
        ("prompts/hello.md", "prompt"),
        ("a/prompts/b/c.md", "prompt"),
        ("prompts/hello.txt", "file"),
        ("README.md", "file"),
        ("a.MD", "file"),
        ("scripts/run.py", "file"),
    ],
)
def test_markdown_with_a_skill_id_is_a_skill_and_below_prompts_a_prompt(path: str, kind: str) -> None:
    assert kind_of("db", path) == kind


@pytest.mark.parametrize("name", ["db", "agent-memory", "a_b", "1", "a" * 64])
def test_a_segment_can_be_a_namespace(name: str) -> None:
    assert is_namespace(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "A", "fn", "a.b", ".iii-directory", "a" * 65, " "])
def test_a_name_that_is_not_a_segment_cannot_be_a_namespace(name: str) -> None:
    assert not is_namespace(name)


def test_a_dot_anywhere_on_the_way_hides_a_path() -> None:
    assert is_hidden(".env")
    assert is_hidden("a/.git/config")
    assert not is_hidden("a.b/c.md")
