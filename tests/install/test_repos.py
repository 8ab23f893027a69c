"""Addresses and names of git sources."""

from __future__ import annotations

import pytest

from iii_directory.errors import DirectoryError
from iii_directory.install.requests import RepoAddress, RepoRequest, address_of, is_commit, repo_request

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "https://github.com/anthropics/skills"

HOSTILE_ADDRESSES = [
    "",
    " ",
    "-",
    "--upload-pack=touch sentinel",
    "-u./run",
    "ext::sh -c touch% sentinel",
    "ext::https://example.org/r",
    "https::https://example.org/r",
    "fd::17",
    "file:///etc",
    "/etc",
    "../r",
    "./r",
    "~/r",
    "C:\\r",
    "http://example.org/r",
    "git://example.org/r",
    "ftp://example.org/r",
    "HTTPS://example.org/r",
    "https://user@example.org/r",
    "https://user:secret@example.org/r",
    "https://:secret@example.org/r",
    "https://example.org",
    "https://example.org/",
    "https:///r",
    "https://-example.org/r",
    "https://example.org:port/r",
    "https://example.org/-r",
    "https://example.org//r",
    "https://example.org/../r",
    "https://example.org/a/../../r",
    "https://example.org/%2e%2e/r",
    "https://example.org/a%2fb",
    "https://example.org/a%00",
    "https://example.org/a%0ab",
    "https://example.org/a%",
    "https://example.org/a b",
    "https://example.org/a\nb",
    "https://example.org/a\0b",
    "https://example.org/a\x1b",
    "https://example.org/a\\b",
    "https://example.org/r?access_token=secret",
    "https://example.org/r#x",
    "https://exa\u200bmple.org/r",
    "https://example.org/" + "a" * 2048,
    "ssh://-oProxyCommand=touch/r",
    "ssh://-x@example.org/r",
    "ssh://user:secret@example.org/r",
    "ssh://example.org",
    "git@-example.org:r",
    "git@example.org:-r",
    "git@example.org:",
    "git@example.org",
    "git@example.org:a/../../b",
    "root@example.org:r",
    "example.org:r",
    "git@example.org:r:s",
    "git@[::1]:r",
]
HOSTILE_REFS = [
    *("-", "--upload-pack=x", "-b", "a..b", "a b", "a~1", "a^", "a^{}", "a:b", "a?", "a*", "a[", "a\\b", "@"),
    *("@{-1}", "a@{1}", "/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a\n", "a\0", "a\x7f"),
    *("a\u202eb", "x" * 245),
]
HOSTILE_SKILLS = [
    "",
    ".",
    "..",
    "a/b",
    "../a",
    "A",
    "a b",
    "-a/",
    "a\n",
    "fn",
    "a.b",
    "a\0",
    "x" * 65,
    "é",
    "*",
    ":(glob)a",
]


@pytest.mark.parametrize("repo", HOSTILE_ADDRESSES, ids=ascii)
def test_what_is_not_plainly_a_repository_is_refused_and_not_repeated(repo: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D331 invalid_input: ") as error:
        repo_request(repo, "x")
    assert "secret" not in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("ref", HOSTILE_REFS, ids=ascii)
def test_a_ref_that_git_would_not_take_is_refused(ref: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D331 "):
        repo_request(REPO, "x", ref)


@pytest.mark.parametrize("skill", HOSTILE_SKILLS, ids=ascii)
def test_a_skill_that_is_not_a_segment_is_refused(skill: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D331 "):
        repo_request(REPO, skill)


@pytest.mark.parametrize(
    "repo",
    [
        REPO,
        "https://github.com/anthropics/skills.git",
        "https://git.example.org:8443/group/sub/repo",
        "https://example.org/~user/r",
        "ssh://git@github.com/a/b.git",
        "ssh://example.org:2222/a/b",
        "git@github.com:a/b.git",
        "git@github.com:/srv/b.git",
    ],
)
def test_https_ssh_and_git_at_addresses_are_taken(repo: str) -> None:
    assert repo_request(repo, "frontend-design") == RepoRequest(repo, "frontend-design", "main")


@pytest.mark.parametrize(
    "ref", ["main", "release/1.2", "v1.0.0", "feature_x", "a-b", "日本", COMMIT, "a" * 64]
)
def test_branches_tags_and_commit_ids_are_taken(ref: str) -> None:
    assert repo_request(REPO, "x", ref).branch == ref


def test_a_commit_id_is_taken_in_any_case() -> None:
    assert repo_request(REPO, "x", COMMIT.upper()).branch == COMMIT
    assert is_commit("a" * 64)
    assert not is_commit("a" * 41)
    assert not is_commit("main")


def test_file_addresses_need_leave() -> None:
    assert repo_request("file:///srv/r", "x", allow_file=True).repo == "file:///srv/r"
    for repo in ("file://host/srv/r", "file:///srv/../r", "file:/srv/r", "file:///-r", "file://"):
        with pytest.raises(DirectoryError, match=r"^D331 "):
            repo_request(repo, "x", allow_file=True)


@pytest.mark.parametrize(
    ("mirrors", "address"),
    [
        ({}, RepoAddress(REPO, "https")),
        ({"https://example.org/": "https://m.example/"}, RepoAddress(REPO, "https")),
        (
            {"https://github.com/": "https://m.example/gh/"},
            RepoAddress("https://m.example/gh/anthropics/skills", "https", True),
        ),
        (
            {"https://github.com": "https://m.example/gh"},
            RepoAddress("https://m.example/gh/anthropics/skills", "https", True),
        ),
        (
            {"https://github.com/": "git@m.example:"},
            RepoAddress("git@m.example:anthropics/skills", "ssh", True),
        ),
        (
            {"https://github.com/": "http://m.example/"},
            RepoAddress("http://m.example/anthropics/skills", "http", True),
        ),
        (
            {"https://github.com/": "file:///srv/m"},
            RepoAddress("file:///srv/m/anthropics/skills", "file", True),
        ),
        (
            {"https://github.com/": "/srv/a b"},
            RepoAddress("file:///srv/a%20b/anthropics/skills", "file", True),
        ),
        (
            {
                "https://github.com/": "https://one.example/",
                "https://github.com/anthropics/": "https://two.example/",
            },
            RepoAddress("https://two.example/skills", "https", True),
        ),
    ],
)
def test_a_mirror_takes_the_place_of_a_prefix_and_the_longest_wins(
    mirrors: dict[str, str], address: RepoAddress
) -> None:
    assert address_of(REPO, mirrors, allow_file=True) == address


@pytest.mark.parametrize("repo", ["https://github.com.evil.example/a/b", "https://github.community/a/b"])
def test_a_longer_host_does_not_pass_for_a_mirrored_one(repo: str) -> None:
    for prefix in ("https://github.com", "https://github.com/"):
        assert address_of(repo, {prefix: "/srv/m"}, allow_file=True) == RepoAddress(repo, "https")


@pytest.mark.parametrize("target", ["file:///srv/m/", "/srv/m/", "relative/", "ext::x/", "-x/", ""])
def test_a_mirror_that_cannot_be_used_is_refused_without_its_address(target: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D331 .*mirror") as error:
        address_of(REPO, {"https://github.com/": target}, allow_file=False)
    assert "/srv/m" not in str(error.value)
