"""§9: what goes wrong with a download is one sentence, tells nothing of the machine and changes nothing."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pytest
from iii import InvocationError
from tests.downloads.stage import GITHUB, V1
from tests.support.engine import RawClient
from tests.support.git import make_odd_repo, make_repo
from tests.support.installs import contents, put
from tests.support.registry import RawServer, answer

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from tests.downloads.stage import Depot

SENTENCE = re.compile(
    r"(?P<code>D\d{3}) (?P<kind>[a-z_]+): [^\n]+?\."
    r"(?: Did you mean: [^\n]+?\.)?(?: Next: call [^\n]+?\.)?"
)
INFO = "directory::registry::workers::info"


def refused(depot: Depot, function: str, payload: dict[str, Any], *secrets: str) -> str:
    """The sentence of a call that fails, after a look at all that comes back on the wire."""
    with RawClient(depot.url) as client:
        error = client.call(function, payload)["error"]
    wire = f"{error['message']}\n{error.get('stacktrace') or ''}"
    for secret in (str(depot.world.tmp_path), "127.0.0.1", 'File "', "Traceback", "site-packages", *secrets):
        assert secret not in wire
    assert SENTENCE.fullmatch(error["message"]), error["message"]
    return error["message"]


def bundle(**fields: Any) -> bytes:
    skills = [{"path": "SKILL.md", "content": "# db\n"}]
    return answer({"name": "db", "version": "1.0.0", "skills": skills, **fields})


def skills(*paths: str) -> bytes:
    return bundle(skills=[{"path": path, "content": "# x\n"} for path in paths])


def drip(connection: socket.socket, stopping: Any) -> None:
    """A byte now and then, for ever: only a deadline for the whole answer ends it."""
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while not stopping.wait(0.05):
        connection.sendall(b" ")


ANSWERS: dict[str, tuple[bytes, str]] = {
    "not there": (
        answer({}, "404 Not Found"),
        "D310 not_found: a bundle of skills for the worker 'db'",
    ),
    "a failure": (answer({}, "500 Oops"), "D320 registry_error: the registry answered with status 500"),
    "not JSON": (answer(b"<html>"), "D320 registry_error: the registry's answer is not JSON"),
    "not an object": (answer(b"[]"), "D320 registry_error: "),
    "another worker": (bundle(name="other"), "D320 registry_error: "),
    "no content": (bundle(skills=[{"path": "a.md"}]), "D320 registry_error: "),
    "cut short": (answer(b"{}", length=10), "D320 registry_error: "),
    "too large": (answer(b" " * (40 << 20)), "D320 registry_error: the registry's answer is too large"),
    "elsewhere": (
        answer({}, "302 Found", location="http://169.254.169.254/w/db/skills"),
        "D320 registry_error: the registry redirected to another place",
    ),
    "another scheme": (answer({}, "302 Found", location="file:///etc/passwd"), "D320 registry_error: "),
    "climbing": (skills("../../canary.md"), "D340 install_error: "),
    "absolute": (skills("/etc/canary.md"), "D340 install_error: "),
    "case twins": (skills("a.md", "A.md"), "D340 install_error: "),
    "empty": (bundle(skills=[]), "D340 install_error: the bundle is empty"),
    "a large file": (bundle(skills=[{"path": "a.md", "content": "x" * 300_000}]), "D340 install_error: "),
    "many files": (
        skills(*(f"{n}.md" for n in range(513))),
        "D340 install_error: the bundle has more than",
    ),
    "a bad prompt": (bundle(prompts=[{"name": "A b", "content": "x"}]), "D340 install_error: "),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_registry_that_cannot_be_used_changes_nothing(start: Callable[..., Depot], name: str) -> None:
    body, expected = ANSWERS[name]

    with RawServer(lambda path, connection: connection.sendall(body)) as registry:
        depot = start(registry_url=registry.url)
        before = contents(depot.world.tmp_path)
        sentence = refused(depot, "directory::skills::download_from_registry", {"worker": "db"}, "169.254")

    assert sentence.startswith(expected)
    assert contents(depot.world.tmp_path) == before
    assert not depot.folder.exists()


def test_a_registry_that_is_too_slow_is_given_up(start: Callable[..., Depot]) -> None:
    with RawServer(lambda path, connection: drip(connection, registry.stopping)) as registry:
        depot = start(registry_url=registry.url, download_timeout_ms=300)

        sentence = refused(depot, "skills::download", {"worker": "db"})

    assert sentence.startswith("D320 registry_error: the registry did not finish its answer within 300 ms")


@pytest.mark.parametrize(
    ("function", "payload"),
    [
        ("skills::download", {"worker": "db"}),
        (INFO, {"name": "db"}),
        ("registry::worker-list", {}),
    ],
)
def test_a_registry_that_is_not_there_is_said_without_its_address(
    start: Callable[..., Depot], function: str, payload: dict[str, Any]
) -> None:
    depot = start(registry_url="http://user:s3cret@127.0.0.1:1/private")

    sentence = refused(depot, function, payload, "s3cret", "private")

    assert sentence.startswith("D320 registry_error: the registry could not be reached")


@pytest.fixture
def repo(depot: Depot) -> Path:
    folder = depot.world.mirror / "anthropics" / "skills"
    make_repo(folder, {"skills/web/SKILL.md": b"# web\n", "skills/frontend-design/SKILL.md": b"# design\n"})
    return folder


REPOS: dict[str, tuple[dict[str, Any], str]] = {
    "no repository": ({"repo": "https://github.com/acme/none", "skill": "web"}, "D330 source_error: "),
    "no branch": ({"repo": GITHUB, "skill": "web", "branch": "mian"}, "D331 invalid_input: "),
    "no commit": ({"repo": GITHUB, "skill": "web", "branch": "0" * 40}, "D331 invalid_input: "),
    "no folder": ({"repo": GITHUB, "skill": "frontend-desing"}, "D331 invalid_input: "),
    "http": ({"repo": "http://github.com/a/b", "skill": "web"}, "D331 invalid_input: "),
    "a helper": ({"repo": "ext::sh -c touch% canary", "skill": "web"}, "D331 invalid_input: "),
    "an option": ({"repo": "--upload-pack=touch canary", "skill": "web"}, "D331 invalid_input: "),
    "credentials": ({"repo": "https://me:s3cret@github.com/a/b", "skill": "web"}, "D331 invalid_input: "),
    "a path": ({"repo": "/srv/repo", "skill": "web"}, "D331 invalid_input: "),
    "branch option": ({"repo": GITHUB, "skill": "web", "branch": "--all"}, "D331 invalid_input: "),
    "branch grammar": ({"repo": GITHUB, "skill": "web", "branch": "a..b"}, "D331 invalid_input: "),
    "climbing": ({"repo": GITHUB, "skill": "../.."}, "D331 invalid_input: "),
    "upper case": ({"repo": GITHUB, "skill": "Web"}, "D331 invalid_input: "),
}


@pytest.mark.parametrize("name", REPOS)
def test_a_repository_that_cannot_be_used_changes_nothing(depot: Depot, repo: Path, name: str) -> None:
    payload, expected = REPOS[name]

    sentence = refused(depot, "directory::skills::download_from_repo", payload, "s3cret")

    assert sentence.startswith(expected)
    assert not depot.folder.exists()
    assert ("Did you mean: frontend-design." in sentence) is (name == "no folder")
    assert ("Did you mean: main." in sentence) is (name == "no branch")


def test_a_link_in_a_repository_is_refused(depot: Depot) -> None:
    make_odd_repo(
        depot.world.mirror / "anthropics" / "skills",
        [("100644", b"SKILL.md", b"# x\n"), ("120000", b"link.md", b"/etc/passwd")],
    )

    sentence = refused(depot, "skills::download", {"repo": GITHUB, "skill": "x"}, "passwd")

    assert sentence.startswith("D340 install_error: ")
    assert not depot.folder.exists()


def test_file_addresses_need_to_be_allowed(start: Callable[..., Depot]) -> None:
    depot = start(allow_file_repos=False, repo_mirrors={"https://github.com/": "/srv/secret-mirror/"})
    for repo in (f"file://{depot.world.mirror}/anthropics/skills", GITHUB):
        sentence = refused(depot, "skills::download", {"repo": repo, "skill": "web"}, "secret-mirror")

        assert sentence.startswith("D331 invalid_input: ")


@pytest.mark.parametrize("in_the_way", ["a file", "a link", "a folder"])
def test_an_entry_in_the_way_is_not_written_over(depot: Depot, in_the_way: str) -> None:
    depot.world.publish("db", "1.0.0", V1)
    place = depot.folder / "db" / "get.md"
    canary = depot.world.tmp_path / "canary"
    canary.write_text("untouched")
    if in_the_way == "a file":
        depot.folder.mkdir()
        (depot.folder / "db").write_text("mine")
    elif in_the_way == "a link":
        place.parent.mkdir(parents=True)
        place.symlink_to(canary)
    else:
        place.mkdir(parents=True)

    sentence = refused(depot, "skills::download", {"worker": "db"})

    assert sentence.startswith("D340 install_error: ")
    assert canary.read_text() == "untouched"
    assert not (depot.folder / "skills.lock.json").exists()
    assert sorted(os.listdir(depot.folder)) == ["db"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_said_without_its_path(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.folder.mkdir(mode=0o500)

    sentence = refused(depot, "skills::download", {"worker": "db"})

    assert sentence.startswith("D340 install_error: the disk refused (Permission denied)")


def test_the_directory_starts_though_its_folder_is_not_a_directory(
    start: Callable[..., Depot], tmp_path: Path
) -> None:
    (tmp_path / "skills").write_text("a file")

    depot = start()

    assert depot.ids() == []
    assert {row["subject"] for row in depot.findings("download")} == {"skills_folder"}
    depot.world.publish("db", "1.0.0", V1)
    assert refused(depot, "skills::download", {"worker": "db"}).startswith(
        "D340 install_error: the disk refused"
    )


def _to_itself(skills: Path) -> None:
    skills.rename(skills.with_name("moved"))
    skills.symlink_to("moved")


def _to_another(skills: Path) -> None:
    skills.rename(skills.with_name("moved"))
    skills.with_name("outside").mkdir()
    skills.symlink_to("outside")


@pytest.mark.parametrize("exchange", [_to_itself, _to_another])
@pytest.mark.parametrize("at_start", [True, False])
def test_a_skills_folder_exchanged_for_a_link_is_refused_and_reported(
    depot: Depot, exchange: Callable[[Path], None], at_start: bool
) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.folder.mkdir(exist_ok=True)
    if at_start:
        depot.restart()
    put(depot.folder, {"a/x.md": b"# x\n"})
    depot.call("directory::skills::get", id="a/x")
    exchange(depot.folder)
    before = contents(depot.folder)

    with pytest.raises(InvocationError, match="the skills folder is another one than at the start"):
        depot.call("skills::download", worker="db")

    assert contents(depot.folder) == before
    assert any("link" in row["reason"] for row in depot.call("directory::diagnostics")["findings"])
