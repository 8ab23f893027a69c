"""Git sources: real repositories, hostile ones, and servers that mean harm."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.git import GitHttpServer, commit, git, make_odd_repo, make_repo
from tests.support.registry import RawServer, answer

from iii_directory import limits
from iii_directory.errors import DirectoryError
from iii_directory.install import process
from iii_directory.install.git import SCRATCH_PREFIX, GitSource
from iii_directory.install.git_program import Blob, reads
from iii_directory.install.requests import RepoRequest, repo_request

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILES = {
    "skills/x/SKILL.md": b"# x\n",
    "skills/x/scripts/run.sh": b"touch sentinel\n",
    "skills/x/logo.png": b"\x89PNG\0\xff",
    "skills/x/.hidden": b"hidden",
    "skills/y/SKILL.md": b"# y\n",
    "README.md": b"outside",
}


def source(**options: Any) -> GitSource:
    settings: dict[str, Any] = {"mirrors": {}, "allow_file": True, "timeout_ms": 20_000, **options}
    return GitSource(**settings)


def request(folder: Path, skill: str = "x", branch: str | None = None) -> RepoRequest:
    return repo_request(f"file://{folder}", skill, branch, allow_file=True)


@pytest.fixture(autouse=True)
def no_scratch_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield
    assert [name for name in os.listdir(scratch) if name.startswith(SCRATCH_PREFIX)] == []


def test_a_folder_of_a_repository_is_read_at_its_branch(tmp_path: Path) -> None:
    made = make_repo(tmp_path / "r", FILES)

    fetched = source().fetch(request(tmp_path / "r"))

    assert fetched.commit == made
    assert dict(fetched.entries) == {
        "SKILL.md": b"# x\n",
        "scripts/run.sh": b"touch sentinel\n",
        "logo.png": b"\x89PNG\0\xff",
        ".hidden": b"",
    }


def test_bare_and_other_repositories_are_found_with_and_without_their_suffix(tmp_path: Path) -> None:
    made = make_repo(tmp_path / "r", FILES)
    git(tmp_path, "clone", "--quiet", "--bare", str(tmp_path / "r"), str(tmp_path / "bare.git"))

    for name in ("r", "r/.git", "bare.git", "bare"):
        assert source().fetch(request(tmp_path / name)).commit == made


def test_branches_tags_and_commits_are_resolved_and_fetched(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    first = make_repo(folder, FILES)
    git(folder, "tag", "light")
    git(folder, "tag", "--annotate", "heavy", "--message=x")
    second = commit(folder, {"skills/x/SKILL.md": b"# second\n"})
    git(folder, "branch", "feature/two")
    git(folder, "tag", "feature/one", first)
    git(folder, "branch", "feature/one", second)

    wanted = {"main": second, "feature/two": second, "light": first, "heavy": first, first: first}
    # A name that is both stands for the branch.
    for ref, made in {**wanted, "feature/one": second}.items():
        assert source().fetch(request(folder, branch=ref)).commit == made
        assert source().resolve(request(folder, branch=ref)) == made


def test_a_repository_with_the_longer_object_names_is_read_too(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    git(folder, "init", "--quiet", "--object-format=sha256", "--initial-branch=main")
    made = commit(folder, FILES)

    assert len(made) == 64
    assert source().fetch(request(folder)).commit == made
    assert source().fetch(request(folder, branch=made)).commit == made


def test_only_one_commit_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "r"
    make_repo(folder, {"skills/x/old.bin": os.urandom(200_000)})
    git(folder, "rm", "--quiet", "skills/x/old.bin")
    commit(folder, FILES)
    monkeypatch.setattr(limits, "MAX_GIT_FETCH_BYTES", 150_000)

    assert dict(source().fetch(request(folder)).entries)["SKILL.md"] == b"# x\n"


def test_a_missing_branch_is_named_with_the_ones_that_are_close(tmp_path: Path) -> None:
    make_repo(tmp_path / "r", FILES, branch="master")

    with pytest.raises(
        DirectoryError, match=r"^D331 .*no branch, tag or commit 'mastr'.*Did you mean: master"
    ):
        source().fetch(request(tmp_path / "r", branch="mastr"))
    with pytest.raises(DirectoryError, match=r"^D331 .*'main'"):
        source().resolve(request(tmp_path / "r"))
    with pytest.raises(DirectoryError, match=r"^D331 .*no branch, tag or commit"):
        source().fetch(request(tmp_path / "r", branch="1" * 40))


def test_a_missing_folder_is_named_with_the_ones_that_are_close(tmp_path: Path) -> None:
    make_repo(tmp_path / "r", {"skills/frontend-design/SKILL.md": b"x"})

    with pytest.raises(
        DirectoryError, match=r"^D331 .*skills/frontend-desing.*Did you mean: frontend-design"
    ):
        source().fetch(request(tmp_path / "r", "frontend-desing"))


def test_a_mirror_folder_stands_in_for_a_host(tmp_path: Path) -> None:
    made = make_repo(tmp_path / "mirror" / "anthropics" / "skills", FILES)
    asked = repo_request("https://github.com/anthropics/skills", "x")

    for target in (f"{tmp_path}/mirror", f"{tmp_path}/mirror/", f"file://{tmp_path}/mirror/"):
        mirrored = source(mirrors={"https://github.com/": target})
        assert mirrored.fetch(asked).commit == made
        assert mirrored.resolve(asked) == made
    with pytest.raises(DirectoryError, match=r"^D331 .*mirror"):
        source(mirrors={"https://github.com/": str(tmp_path / "mirror")}, allow_file=False).fetch(asked)


def test_a_repository_over_http_is_read(tmp_path: Path) -> None:
    made = make_repo(tmp_path / "served" / "a" / "r", FILES)
    git(tmp_path, "clone", "--quiet", "--bare", str(tmp_path / "served/a/r"), str(tmp_path / "served/b.git"))
    asked = [
        repo_request("https://git.example/b.git", "x"),
        repo_request("https://git.example/b.git", "x", made),
    ]

    with GitHttpServer(tmp_path / "served") as server:
        mirrored = source(mirrors={"https://git.example/": f"{server.url}/"}, allow_file=False)
        for one in asked:
            assert mirrored.fetch(one).commit == made
        assert mirrored.resolve(asked[0]) == made
        with pytest.raises(DirectoryError, match=r"^D330 .*not there, or private") as error:
            mirrored.fetch(repo_request("https://git.example/none", "x"))
        assert "127.0.0.1" not in str(error.value)


def test_a_repository_that_is_not_there_is_an_error_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(DirectoryError, match=r"^D330 source_error: .*not there.*check the address") as error:
        source().fetch(request(tmp_path / "none"))
    assert str(tmp_path) not in str(error.value)


def test_a_missing_git_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(DirectoryError, match=r"^D330 .*git is not installed"):
        source().fetch(request(tmp_path))


TWIN = [("100644", b"A.md", b"1"), ("100644", b"a.md", b"2")]
ODD_TREES: dict[str, list[tuple[str, bytes, bytes]]] = {
    "a link to a file": [("120000", b"a.md", b"/etc/passwd")],
    "a link to a folder": [("120000", b"a", b"/etc")],
    "a link next to good files": [("100644", b"SKILL.md", b"x"), ("120000", b"b.md", b"../../../x")],
    "a hidden link": [("120000", b".a", b"/etc/passwd"), ("100644", b"SKILL.md", b"x")],
    "a submodule": [("160000", b"sub", b"1" * 40), ("100644", b"z.md", b"x")],
    "a climbing name": [("40000", b"..", b"x")],
    "a dot": [("40000", b".", b"x")],
    "a git folder": [("40000", b".git", b"x")],
    "a git folder in disguise": [("40000", b"GIT~1", b"x"), ("40000", b".GIT", b"x")],
    "a slash in a name": [("100644", b"../../escape.md", b"x")],
    "an absolute name": [("100644", b"/tmp/escape.md", b"x")],
    "an empty name": [("100644", b"", b"x")],
    "names that differ in case": TWIN,
    "names that differ in form": [
        ("100644", "e\u0301.md".encode(), b"1"),
        ("100644", "\u00e9.md".encode(), b"2"),
    ],
    "a name twice": [("100644", b"a.md", b"1"), ("100644", b"a.md", b"2")],
    "a backslash": [("100644", b"a\\..\\b.md", b"x")],
    "a drive": [("100644", b"C:a.md", b"x")],
    "a control character": [("100644", b"a\n.md", b"x")],
    "an escape sequence": [("100644", b"a\x1b[2J.md", b"x")],
    "no utf-8": [("100644", b"\xff.md", b"x")],
    "a device": [("100644", b"nul.md", b"x")],
    "a trailing dot": [("100644", b"a.", b"x")],
    "a large document": [("100644", b"a.md", b"x" * (limits.MAX_BODY_BYTES + 1))],
}


@pytest.mark.parametrize("name", ODD_TREES)
def test_an_odd_repository_is_refused_whole(tmp_path: Path, name: str) -> None:
    make_odd_repo(tmp_path / "r", ODD_TREES[name])

    with pytest.raises(DirectoryError, match=r"^(D340|D330|D331) ") as error:
        bundle_of(source().fetch(request(tmp_path / "r")))
    assert str(error.value).isprintable()
    assert not (tmp_path / "escape.md").exists()


def bundle_of(fetched: Any) -> Any:
    """Names that only meet on some disks are told apart when the bundle is made."""
    from iii_directory.disk.install_record import RepoSource
    from iii_directory.install.bundle import make_bundle

    return make_bundle("x", RepoSource("r", "x", "main", fetched.commit), fetched.commit, fetched.entries)


def test_too_many_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    files = {f"skills/x/{n}.txt": b"" for n in range(limits.MAX_BUNDLE_FILES + 1)}
    make_repo(tmp_path / "r", files)

    with pytest.raises(DirectoryError, match=r"^D340 .*512 files"):
        source().fetch(request(tmp_path / "r"))


def test_a_listing_without_end_is_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repo(tmp_path / "r", {f"skills/x/{n}.txt": b"" for n in range(600)})
    real = process.run

    def narrow(*arguments: Any, **options: Any) -> Any:
        return real(*arguments, **{**options, "max_output": 4096})

    monkeypatch.setattr("iii_directory.install.git_program.run", narrow)

    with pytest.raises(DirectoryError, match=r"^D340 .*512 files"):
        source().fetch(request(tmp_path / "r"))


def test_too_many_bytes_are_refused_before_they_are_read(tmp_path: Path) -> None:
    half = b"x" * (limits.MAX_BUNDLE_BYTES // 2 + 1)
    make_repo(tmp_path / "r", {"skills/x/a.bin": half, "skills/x/b.bin": half + b"y"})

    with pytest.raises(DirectoryError, match=r"^D340 .*16 MiB"):
        source().fetch(request(tmp_path / "r"))


@pytest.mark.parametrize("where", ["skills", "skills/x"])
def test_a_link_or_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "r"
    make_repo(folder, {"other/x/page.md": b"x"})
    (folder / where).parent.mkdir(exist_ok=True)
    (folder / where).symlink_to("other" if where == "skills" else "../other/x")
    commit(folder, {})
    with pytest.raises(DirectoryError, match=r"^D331 .*no folder"):
        source().fetch(request(folder))

    (folder / where).unlink()
    commit(folder, {where: b"a file"})
    with pytest.raises(DirectoryError, match=r"^D331 .*no folder"):
        source().fetch(request(folder))


def test_nothing_of_a_repository_is_executed(tmp_path: Path) -> None:
    """Hooks, filters, submodules, templates and configuration: all present, none heard."""
    sentinel = tmp_path / "sentinel"
    folder = tmp_path / "r"
    run = f"touch {sentinel}"
    make_repo(
        folder,
        {
            **FILES,
            ".gitattributes": b"* filter=evil\n*.md filter=lfs diff=lfs\n",
            ".gitmodules": b'[submodule "s"]\n\tpath = skills/s\n\turl = '
            + f"ext::sh -c {run}".encode()
            + b"\n",
            ".lfsconfig": b"[lfs]\n\turl = https://evil.example\n",
        },
    )
    for hook in ("post-checkout", "pre-receive", "post-upload-pack", "reference-transaction", "pre-auto-gc"):
        path = folder / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{run}\n")
        path.chmod(0o755)
    for name, value in {
        "filter.evil.smudge": run,
        "filter.evil.process": run,
        "core.fsmonitor": run,
        "core.sshCommand": run,
        "uploadpack.packObjectsHook": run,
        "core.hooksPath": str(folder / ".git" / "hooks"),
    }.items():
        git(folder, "config", name, value)

    source().fetch(request(folder))
    source().resolve(request(folder))

    assert not sentinel.exists()


def test_configuration_and_environment_of_the_user_take_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentinel = tmp_path / "sentinel"
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[core]\n\tfsmonitor = touch {sentinel}\n[url "file:///none/"]\n\tinsteadOf = file://\n'
    )
    make_repo(tmp_path / "r", FILES)
    for name, value in {
        "HOME": str(home),
        "GIT_DIR": str(tmp_path),
        "GIT_WORK_TREE": str(tmp_path),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_EXEC_PATH": str(tmp_path),
        "GIT_TEMPLATE_DIR": str(tmp_path),
        "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": f"touch {sentinel}",
        "GIT_SSH_COMMAND": f"touch {sentinel}",
        "GIT_PROXY_COMMAND": f"touch {sentinel}",
        "GIT_ASKPASS": f"touch {sentinel}",
    }.items():
        monkeypatch.setenv(name, value)

    assert source().fetch(request(tmp_path / "r")).entries

    assert not sentinel.exists()
    assert not (tmp_path / "trace").exists()


def test_a_repository_that_fills_the_disk_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repo(tmp_path / "r", {**FILES, "huge.bin": os.urandom(3_000_000)})
    monkeypatch.setattr(limits, "MAX_GIT_FETCH_BYTES", 100_000)

    with pytest.raises(DirectoryError, match=r"^D330 .*too large"):
        source().fetch(request(tmp_path / "r"))


def mirrored_at(server: RawServer, **options: Any) -> GitSource:
    return source(mirrors={"https://git.example/": f"{server.url}/"}, **options)


ASKED = repo_request("https://git.example/r", "x")


def test_a_server_that_asks_for_a_password_gets_none(tmp_path: Path) -> None:
    def respond(path: str, connection: socket.socket) -> None:
        connection.sendall(answer(b"", "401 Unauthorized", www_authenticate='Basic realm="x"'))

    with RawServer(respond) as server, pytest.raises(DirectoryError, match=r"^D330 .*needs credentials"):
        mirrored_at(server).fetch(ASKED)


def test_a_server_that_redirects_is_not_followed(tmp_path: Path) -> None:
    with RawServer(
        lambda path, connection: connection.sendall(answer(b"", "302 F", location="http://127.0.0.1:1/r"))
    ) as server:
        with pytest.raises(DirectoryError, match=r"^D330 .*(moved|could not be read)") as error:
            mirrored_at(server).fetch(ASKED)
        assert "127.0.0.1" not in str(error.value)
        assert len(server.asked) == 1


@pytest.mark.parametrize("drip", [False, True])
def test_a_server_that_never_ends_is_stopped_at_the_deadline(tmp_path: Path, drip: bool) -> None:
    def respond(path: str, connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-advertisement\r\n\r\n"
        )
        while not server.stopping.wait(0.05 if drip else 10):
            connection.sendall(b"0")

    with RawServer(respond) as server:
        start = time.monotonic()
        with pytest.raises(DirectoryError, match=r"^D330 .*took too long"):
            mirrored_at(server, timeout_ms=500).fetch(ASKED)
        while left_of_the_group() and time.monotonic() - start < 10:
            os.sched_yield()
        assert left_of_the_group() == []


def left_of_the_group() -> list[str]:
    """Processes of git that still run with our scratch folders as their homes."""
    found: list[str] = []
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except (OSError, ValueError):
            continue
        if SCRATCH_PREFIX.encode() in environment and state != "Z":
            found.append(pid)
    return found


@pytest.mark.parametrize(
    "act",
    [
        lambda connection: connection.sendall(b""),
        lambda connection: connection.sendall(b"not http"),
        lambda connection: connection.sendall(answer(b"<html>")),
        lambda connection: connection.sendall(answer(b"x" * 100_000, "500 Oops")),
        lambda connection: connection.sendall(answer(b"secret", "403 No")),
    ],
    ids=["nothing", "no http", "html", "500", "403"],
)
def test_a_server_that_does_not_speak_git_is_an_error(act: Callable[[socket.socket], None]) -> None:
    with RawServer(lambda path, connection: act(connection)) as server:
        with pytest.raises(DirectoryError, match=r"^D33[01] ") as error:
            mirrored_at(server).fetch(ASKED)
        assert "secret" not in str(error.value)
        assert "127.0.0.1" not in str(error.value)


def finished(command: list[str], **options: Any) -> process.Finished:
    settings: dict[str, Any] = {
        "environment": {"PATH": os.environ["PATH"]},
        "folder": "/",
        "max_output": 1000,
        "max_errors": 10,
        "deadline": time.monotonic() + 10,
        **options,
    }
    return process.run(command, **settings)


def test_a_program_gets_its_input_and_its_output_is_kept() -> None:
    done = finished(["sh", "-c", "cat; echo far too much >&2; exit 3"], sent=b"hello")

    assert (done.code, done.output, done.errors) == (3, b"hello", b"far too mu")


def test_a_program_that_does_not_read_its_input_is_not_an_error() -> None:
    assert finished(["true"], sent=b"x" * 60_000).code == 0


def test_a_program_that_says_too_much_is_stopped() -> None:
    with pytest.raises(process.ProcessStoppedError, match="too much"):
        finished(["sh", "-c", "yes"])


def test_a_program_that_hides_behind_a_child_is_stopped_with_it() -> None:
    with pytest.raises(process.ProcessStoppedError, match="too long"):
        finished(["sh", "-c", "sleep 60 & wait"], deadline=time.monotonic() + 0.3)
    with pytest.raises(process.ProcessStoppedError, match="too long"):
        finished(["sh", "-c", "exec >&- 2>&-; sleep 60"], deadline=time.monotonic() + 0.3)


def test_a_system_that_cannot_run_git_is_an_error_without_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").write_text("no program")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(DirectoryError, match=r"^D330 .*system refused \(Exec format error\)") as error:
        source().fetch(request(tmp_path))
    assert str(tmp_path / "git") not in str(error.value)


def test_a_tag_of_something_that_is_not_a_commit_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    make_repo(folder, FILES)
    git(folder, "tag", "blob", "HEAD:README.md")

    with pytest.raises(DirectoryError, match=r"^D331 .*'blob' does not name a commit"):
        source().fetch(request(folder, branch="blob"))


def test_a_blob_that_git_cannot_give_is_an_error() -> None:
    blob = Blob("a.md", "1" * 40, 5)

    for output in (b"", f"{blob.name} missing\n".encode(), f"{blob.name} blob 5\n123".encode()):
        with pytest.raises(DirectoryError, match=r"^D330 .*'a.md'"):
            reads(output, [blob])
