"""What people type to name a source, and which skills are in one."""

from __future__ import annotations

import pytest

from iii_directory.errors import DirectoryError
from iii_directory.install.bundle import Offer, Offered, Wanted, offer_of, select, skill_folders
from iii_directory.install.requests import LocalFolder, RepoTree, Site, typed_source
from iii_directory.registry.registry_messages import WorkerRequest

HUB = "https://github.com/o/r"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("agent-memory", WorkerRequest("agent-memory", tag="latest")),
        ("agent-memory@1.2.3", WorkerRequest("agent-memory", version="1.2.3")),
        ("agent-memory@beta", WorkerRequest("agent-memory", tag="beta")),
        ("o/r", RepoTree(HUB)),
        ("o/r/", RepoTree(HUB)),
        ("o/r@v1.2", RepoTree(HUB, "v1.2")),
        ("o/r@feature/x", RepoTree(HUB, "feature/x")),
        ("o/r/skills/pdf", RepoTree(HUB, path="skills/pdf")),
        ("o/r/skills/pdf@main", RepoTree(HUB, "main", "skills/pdf")),
        (f"{HUB}/tree/main/skills/pdf", RepoTree(HUB, tree="main/skills/pdf")),
        (f"{HUB}/blob/main/skills/pdf/SKILL.md", RepoTree(HUB, tree="main/skills/pdf")),
        (f"{HUB}.git", RepoTree(f"{HUB}.git")),
        ("https://git.example.com/a/b/c", RepoTree("https://git.example.com/a/b/c")),
        ("https://git.example.com/a/b@v1", RepoTree("https://git.example.com/a/b", "v1")),
        ("git@github.com:o/r.git", RepoTree("git@github.com:o/r.git")),
        ("git@github.com:o/r.git@v1", RepoTree("git@github.com:o/r.git", "v1")),
        ("ssh://git@host/o/r", RepoTree("ssh://git@host/o/r")),
        ("./x", LocalFolder("./x")),
        ("../x", LocalFolder("../x")),
        ("/x", LocalFolder("/x")),
        ("~/x", LocalFolder("~/x")),
        (".", LocalFolder(".")),
        ("https://example.com", Site("https://example.com")),
        ("https://example.com:8443/", Site("https://example.com:8443")),
        ("http://127.0.0.1:8000", Site("http://127.0.0.1:8000")),
        ("http://[::1]:8000", Site("http://[::1]:8000")),
    ],
)
def test_each_form_means_one_thing(typed: str, meant: object) -> None:
    assert typed_source(typed) == meant


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "A Name",
        "o/r/../x",
        "o/r@-x",
        "o/r@a..b",
        "http://example.com",
        "http://localhost.example.com",
        "https://user:secret@example.com/o/r",
        "file:///etc",
        "ext::sh -c id",
        f"{HUB}/tree/main/../x",
        "https://example.com/a/%2e%2e/b",
        "o/r/\u202ex",
    ],
)
def test_a_text_that_is_not_a_source_is_refused_in_one_sentence(typed: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D3[13]1 invalid_input: ") as error:
        typed_source(typed)
    assert "directory::" not in str(error.value.problem)


def test_skills_are_found_wherever_a_folder_has_an_overview() -> None:
    paths = [
        "README.md",
        "skills/pdf/SKILL.md",
        "skills/pdf/scripts/run.py",
        "skills/pdf/inner/SKILL.md",
        "category/deep/x/SKILL.md",
        ".claude/skills/a/SKILL.md",
        "apps/web/.agents/skills/b/SKILL.md",
        ".claude/hooks/c/SKILL.md",
        ".github/skills/d/SKILL.md",
        "node_modules/e/SKILL.md",
        "skills/f/skill.md.bak",
    ]

    assert skill_folders(paths) == [
        ".claude/skills/a",
        "apps/web/.agents/skills/b",
        "category/deep/x",
        "skills/pdf",
    ]
    assert skill_folders(paths, "skills/pdf/inner") == ["skills/pdf/inner"]
    assert skill_folders(paths, "category") == ["category/deep/x"]
    assert skill_folders(paths, "cat") == []


def test_a_skill_at_the_root_does_not_hide_the_others() -> None:
    assert skill_folders(["SKILL.md", "skills/a/SKILL.md"]) == [".", "skills/a"]


def test_a_skill_is_called_by_its_folder_and_at_the_root_by_itself() -> None:
    overview = b"---\nname: own-name\ndescription: |\n  Does\n  things.\n---\n# Title\n"

    assert offer_of("a/folder", overview, "repo") == Offer("folder", "a/folder", "Does things.", "own-name")
    assert offer_of(".", overview, "repo").name == "own-name"
    assert offer_of(".", b"---\nname: Not Valid\n---\n", "repo").name == "repo"
    assert offer_of("x", b"\xff\xfe no front matter", "repo") == Offer("x", "x")


A, B, TWICE, UNFIT = (
    Offer("a", "skills/a"),
    Offer("b", "skills/b", declared="bee"),
    Offer("a", "other/a"),
    Offer("No", "No"),
)


def test_the_only_skill_is_meant_and_of_several_none_until_it_is_said() -> None:
    assert select(Offered([A]), Wanted([]), "it").chosen == (A,)
    assert select(Offered([A, B]), Wanted([]), "it").chosen == ()
    assert select(Offered([A, B]), Wanted([], everything=True), "it").chosen == (A, B)


def test_a_skill_is_asked_for_by_its_folder_its_own_name_or_its_path() -> None:
    for name in ("b", "bee", "skills/b"):
        assert select(Offered([A, B]), Wanted([name]), "it").chosen == (B,)
    assert select(Offered([A, B]), Wanted(["b", "bee"]), "it").chosen == (B,)


def test_two_of_one_name_are_named_and_not_chosen() -> None:
    found = select(Offered([A, TWICE, B, UNFIT]), Wanted([], everything=True), "it")

    assert found.chosen == (B,)
    assert found.ambiguous == {"a": ("skills/a", "other/a")}
    assert found.unfit == (UNFIT,)
    assert select(Offered([A, TWICE]), Wanted(["other/a"]), "it").chosen == (TWICE,)


def test_a_name_that_is_not_there_brings_the_close_ones() -> None:
    with pytest.raises(DirectoryError, match=r"it has no skill 'bea'\. Did you mean: a, b") as error:
        select(Offered([A, B]), Wanted(["bea"]), "it")
    assert "--list" in str(error.value)
    with pytest.raises(DirectoryError, match=r"it has no folder with a SKILL\.md"):
        select(Offered([]), Wanted([], everything=True), "it")
