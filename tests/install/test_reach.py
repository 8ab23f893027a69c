"""Where calls of download functions may lead git, and where only the operator may."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from iii_directory.errors import DirectoryError
from iii_directory.install.git import GitSource
from iii_directory.install.requests import RepoRequest, is_public

if TYPE_CHECKING:
    from collections.abc import Iterator

PRIVATE_HOSTS = (
    *("127.0.0.1", "localhost", "LOCALHOST", "127.1", "2130706433", "0x7f000001", "017700000001", "0"),
    *("0.0.0.0", "127.255.255.254"),
)
PRIVATE_ADDRESSES = (
    *("10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.1", "198.18.0.1"),
    *("224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%lo", "fc00::1", "fd12::1", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b::a00:1"),
    *("2001:db8::1", "2001:0:7f00:1:0:0:80ff:fffe"),
)
PUBLIC_ADDRESSES = ("8.8.8.8", "140.82.121.4", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")


@pytest.fixture
def nobody_is_called() -> Iterator[str]:
    """A port of this machine where a connection would be noticed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        yield str(listener.getsockname()[1])
        with pytest.raises(BlockingIOError):
            listener.accept()


def source(
    *, mirrors: dict[str, str] | None = None, private: bool = False, ssh_keys: bool = False
) -> GitSource:
    return GitSource(
        mirrors=mirrors or {}, allow_file=False, timeout_ms=5_000, private=private, ssh_keys=ssh_keys
    )


def refusal(git: GitSource, repo: str) -> str:
    with pytest.raises(DirectoryError) as failure:
        git.fetch(RepoRequest(repo, "a"))
    return str(failure.value)


@pytest.mark.parametrize("host", PRIVATE_HOSTS)
def test_this_machine_is_not_reached_by_any_spelling(nobody_is_called: str, host: str) -> None:
    sentence = refusal(source(), f"https://{host}:{nobody_is_called}/a/b")

    assert sentence.startswith("D331 ")
    assert "allow_private_repos" in sentence


@pytest.mark.parametrize("address", PRIVATE_ADDRESSES)
def test_a_name_that_means_a_private_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, nobody_is_called: str, address: str
) -> None:
    def resolved(host: str, port: int, **_: Any) -> list[Any]:
        return [(0, 0, 0, "", ("8.8.8.8", port)), (0, 0, 0, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)

    assert "private network" in refusal(source(), f"https://git.example:{nobody_is_called}/a/b")


@pytest.mark.parametrize("address", PUBLIC_ADDRESSES)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have been run; git counts as not installed."""
    commands: list[list[str]] = []

    def noted(command: list[str], **_: Any) -> Any:
        commands.append(command)
        raise FileNotFoundError

    monkeypatch.setattr("iii_directory.install.git_program.run", noted)
    return commands


def test_git_keeps_to_what_the_name_meant_when_it_was_checked(
    monkeypatch: pytest.MonkeyPatch, started: list[list[str]]
) -> None:
    # A name that is public when it is looked at and loopback when git looks: git is told what it means.
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("203.0.114.7", 443))])

    refusal(source(), "https://git.example/a/b")

    assert "http.curloptResolve=git.example:443:203.0.114.7" in started[0]


@pytest.mark.parametrize("repo", ["git@github.com:a/b", "ssh://git@github.com/a/b", "ssh://github.com/a/b"])
def test_keys_of_the_operator_are_not_used_for_callers(started: list[list[str]], repo: str) -> None:
    assert "allow_ssh_keys" in refusal(source(), repo)
    assert "allow_ssh_keys" in refusal(source(private=True), repo)
    assert started == []


def test_the_operator_may_reach_them_and_a_mirror_may(started: list[list[str]]) -> None:
    refusal(source(private=True), "https://127.0.0.1/a/b")
    refusal(source(private=True, ssh_keys=True), "git@127.0.0.1:a/b")
    refusal(source(mirrors={"https://m.example/": "http://127.0.0.1:1/"}), "https://m.example/a/b")
    refusal(source(mirrors={"https://m.example/": "git@127.0.0.1:"}), "https://m.example/a/b")

    assert len(started) == 4
