"""Skills from repositories, folders and sites: one fetch, each skill by itself, modes kept."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.git import commit, git, make_repo
from tests.support.installs import contents, put
from tests.support.registry import RawServer
from tests.support.world import World

from iii_directory.disk.install_record import content_hash
from iii_directory.errors import DirectoryError
from iii_directory.install.bundle import Wanted
from iii_directory.install.requests import LocalFolder, Site, typed_source

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

FILES = {
    "README.md": b"# A collection\n",
    "skills/pdf/SKILL.md": b"---\nname: pdf\ndescription: Reads PDF.\n---\n# PDF\n",
    "skills/pdf/scripts/run.sh": b"#!/bin/sh\necho run\n",
    "category/notes/SKILL.md": b"---\nname: takes-notes\ndescription: Takes notes.\n---\n# Notes\n",
    ".claude/skills/hidden-away/SKILL.md": b"# Hidden away\n",
    "link-free/twice/SKILL.md": b"# One\n",
    "other/twice/SKILL.md": b"# Two\n",
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, "http://127.0.0.1:1")


@pytest.fixture
def repo(world: World) -> Path:
    folder = world.mirror / "o" / "r"
    make_repo(folder, FILES)
    (folder / "skills/pdf/scripts/run.sh").chmod(0o755)
    commit(folder, {})
    return folder


def add(world: World, source: str, *names: str, everything: bool = False, **changes: Any) -> Any:
    typed: Any = typed_source(source, allow_file=True)
    return world.run(lambda installer: installer.add(typed, Wanted(names, everything=everything)), **changes)[
        1
    ]


def is_program(path: Path) -> bool:
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o111)


def test_every_skill_of_a_repository_comes_with_one_fetch(world: World, repo: Path, monkeypatch: Any) -> None:
    from iii_directory.install import git_program as module

    calls: list[str] = []
    really = module.run

    def counted(command: Any, **options: Any) -> Any:
        calls.append(
            next(word for word in command if word in ("init", "fetch", "ls-tree", "cat-file", "rev-parse"))
        )
        return really(command, **options)

    monkeypatch.setattr(module, "run", counted)

    added = add(world, "o/r", everything=True)

    assert [one.namespace for one in added.installed] == ["hidden-away", "notes", "pdf"]
    assert added.selection.ambiguous == {"twice": ("link-free/twice", "other/twice")}
    assert not added.is_complete
    assert calls == ["init", "fetch", "rev-parse", "ls-tree", "cat-file", "cat-file"]
    assert contents(world.skills / "pdf") == {
        "SKILL.md": FILES["skills/pdf/SKILL.md"],
        "scripts/run.sh": FILES["skills/pdf/scripts/run.sh"],
    }
    head = git(repo, "rev-parse", "HEAD")
    assert world.lock()["notes"]["source"] == {
        "kind": "repo",
        "repo": "https://github.com/o/r",
        "skill": "notes",
        "branch": "HEAD",
        "commit": head,
        "path": "category/notes",
    }
    assert "path" not in world.lock()["pdf"]["source"]


def test_a_program_stays_one_and_a_lost_mode_is_noticed_and_put_back(world: World, repo: Path) -> None:
    add(world, "o/r", "pdf")
    script = world.skills / "pdf/scripts/run.sh"
    assert is_program(script)
    assert not is_program(world.skills / "pdf/SKILL.md")
    assert world.lock()["pdf"]["executable"] == ["scripts/run.sh"]

    script.chmod(0o644)
    (row,) = world.run(lambda installer: installer.upkeep.verify())
    assert (row["status"], row["mode"], row["edited"]) == ("edited", ["scripts/run.sh"], [])
    (report,) = world.run(lambda installer: installer.upkeep.restore())
    assert report.status == "restored"
    assert is_program(script)

    script.chmod(0o644)
    world.run(lambda installer: installer.upkeep.update())
    assert is_program(script)


def test_an_installed_skill_of_the_same_version_is_current(world: World, repo: Path) -> None:
    (first,) = add(world, "o/r", "pdf").installed
    (again,) = add(world, "o/r", "pdf").installed

    assert (first.as_dict()["status"], again.as_dict()["status"]) == ("installed", "current")


def test_updates_follow_the_folder_a_skill_was_found_in(world: World, repo: Path) -> None:
    add(world, "o/r", "takes-notes")
    newer = commit(repo, {"category/notes/more.md": b"# More\n"})

    (stale,) = world.run(lambda installer: installer.upkeep.outdated())
    (report,) = world.run(lambda installer: installer.upkeep.update())

    assert (stale.status, report.status, report.available) == ("outdated", "updated", newer)
    assert (world.skills / "notes/more.md").exists()


def test_a_ref_with_a_slash_in_an_address_is_the_longest_that_fits(world: World, repo: Path) -> None:
    git(repo, "checkout", "--quiet", "-b", "feature/new")
    on_branch = commit(repo, {"skills/pdf/extra.md": b"# Extra\n"})
    git(repo, "checkout", "--quiet", "main")

    add(world, "https://github.com/o/r/tree/feature/new/skills/pdf")

    source = world.lock()["pdf"]["source"]
    assert (source["branch"], source["commit"]) == ("feature/new", on_branch)
    with pytest.raises(DirectoryError, match=r"^D331 .*no branch, tag or commit 'feature'"):
        add(world, "https://github.com/o/r/tree/feature/other/skills/pdf")
    with pytest.raises(DirectoryError, match=r"needs all digits"):
        add(world, f"o/r@{on_branch[:8]}")


def test_a_skill_at_the_root_is_called_by_its_own_name(world: World) -> None:
    make_repo(
        world.mirror / "o" / "single",
        {"SKILL.md": b"---\nname: own-name\n---\n# Own\n", "a.txt": b"a", ".github/x": b"x"},
    )

    (done,) = add(world, "o/single").installed

    assert done.namespace == "own-name"
    assert sorted(contents(world.skills / "own-name")) == ["SKILL.md", "a.txt"]
    (report,) = world.run(lambda installer: installer.upkeep.update())
    assert report.status == "current"


def test_a_skill_that_cannot_be_installed_does_not_hold_up_the_others(world: World, repo: Path) -> None:
    (repo / "skills/pdf/link").symlink_to("/etc/passwd")
    commit(repo, {})

    added = add(world, "o/r", "pdf", "notes")

    assert [one.namespace for one in added.installed] == ["notes"]
    assert "'skills/pdf/link' in the repository is a link" in str(added.failed["pdf"])
    assert world.lock().keys() == {"notes"}


def test_the_function_finds_the_one_folder_of_the_name_and_says_where(world: World, repo: Path) -> None:
    done = world.download(repo="https://github.com/o/r", skill="notes")

    assert done.reply["source"]["path"] == "category/notes"
    with pytest.raises(DirectoryError, match=r"several folders for 'twice': link-free/twice, other/twice"):
        world.download(repo="https://github.com/o/r", skill="twice")
    with pytest.raises(DirectoryError, match=r"no folder 'skills/note' .*Did you mean: notes"):
        world.download(repo="https://github.com/o/r", skill="note")


def test_a_folder_of_this_machine_is_copied_with_its_commit(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    at = make_repo(
        folder, {"a/SKILL.md": b"# A\n", "a/run.py": b"#!", "a/.cache/x": b"x", "b/SKILL.md": b"# B\n"}
    )
    (folder / "a/run.py").chmod(0o700)

    (done,) = add(world, str(folder), "a").installed

    assert contents(world.skills / "a") == {"SKILL.md": b"# A\n", "run.py": b"#!"}
    assert stat.S_IMODE((world.skills / "a/run.py").stat().st_mode) == 0o755
    assert world.lock()["a"]["source"] == {
        "kind": "folder",
        "path": f"{folder}/a",
        "skill": "a",
        "commit": at,
    }
    assert done.as_dict()["status"] == "installed"

    put(folder, {"a/SKILL.md": b"# A, newer\n"})
    (stale,) = world.run(lambda installer: installer.upkeep.outdated())
    (report,) = world.run(lambda installer: installer.upkeep.update())
    assert (stale.status, report.status) == ("outdated", "updated")
    assert (world.skills / "a/SKILL.md").read_bytes() == b"# A, newer\n"


def test_a_link_in_a_folder_is_refused_and_never_read(world: World, tmp_path: Path) -> None:
    put(tmp_path, {"mine/a/SKILL.md": b"# A\n", "secret": b"secret"})
    (tmp_path / "mine/a/leak.md").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "mine/pipe")

    added = add(world, str(tmp_path / "mine"), everything=True)

    assert "'leak.md' of the folder" in str(added.failed["a"])
    assert "links are not followed" in str(added.failed["a"])
    assert not world.skills.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to another user")
def test_git_does_not_read_the_settings_of_another_user_s_work_tree(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    make_repo(folder, {"a/SKILL.md": b"# A\n"})
    for path in (folder, folder / ".git"):
        os.chown(path, 65534, 65534)

    add(world, str(folder))

    assert "commit" not in world.lock()["a"]["source"]


@pytest.fixture
def site() -> Callable[[dict[str, bytes]], Any]:
    def serving(files: dict[str, bytes]) -> RawServer:
        def respond(path: str, connection: socket.socket) -> None:
            body = files.get(path)
            status = b"200 OK" if body is not None else b"404 Not Found"
            length = str(len(body or b"")).encode()
            connection.sendall(
                b"HTTP/1.1 "
                + status
                + b"\r\nconnection: close\r\ncontent-length: "
                + length
                + b"\r\n\r\n"
                + (body or b"")
            )

        return RawServer(respond)

    return serving


def archive(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755 if name.endswith(".sh") else 0o644
            packed.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_a_site_with_an_index_offers_its_skills(world: World, site: Callable[..., Any]) -> None:
    packed = archive({"SKILL.md": b"# Packed\n", "run.sh": b"#!"})
    rows = [
        {
            "name": "plain",
            "type": "skill-md",
            "description": "Plain.",
            "url": "plain/SKILL.md",
            "digest": content_hash(b"# Plain\n"),
        },
        {
            "name": "packed",
            "type": "archive",
            "description": "Packed.",
            "url": "/packed.tar.gz",
            "digest": content_hash(packed),
        },
        {
            "name": "forged",
            "type": "skill-md",
            "description": "Forged.",
            "url": "plain/SKILL.md",
            "digest": content_hash(b"other"),
        },
    ]
    files = {
        "/.well-known/agent-skills/index.json": json.dumps({"skills": rows}).encode(),
        "/.well-known/agent-skills/plain/SKILL.md": b"# Plain\n",
        "/packed.tar.gz": packed,
    }
    with site(files) as server:
        url = server.url
        offers = world.run(lambda installer: installer.offers(Site(server.url))).offers
        added = add(world, server.url, everything=True)
        (report,) = world.run(lambda installer: installer.upkeep.update(["packed"]))

    assert [(offer.name, offer.description) for offer in offers] == [
        ("plain", "Plain."),
        ("packed", "Packed."),
        ("forged", "Forged."),
    ]
    assert [one.namespace for one in added.installed] == ["plain", "packed"]
    assert "not what its index promises" in str(added.failed["forged"])
    assert is_program(world.skills / "packed/run.sh")
    assert world.lock()["plain"]["source"] == {"kind": "site", "url": url, "skill": "plain"}
    assert report.status == "current"


def test_the_older_place_of_an_index_is_asked_second(world: World, site: Callable[..., Any]) -> None:
    rows = [{"name": "old", "description": "Old.", "files": ["SKILL.md", "a/b.md"]}]
    files = {
        "/.well-known/skills/index.json": json.dumps({"skills": rows}).encode(),
        "/.well-known/skills/old/SKILL.md": b"# Old\n",
        "/.well-known/skills/old/a/b.md": b"# B\n",
    }
    with site(files) as server:
        add(world, server.url)
    with (
        site({}) as empty,
        pytest.raises(DirectoryError, match=r"an index of skills was not found in the site"),
    ):
        add(world, empty.url)

    assert contents(world.skills / "old") == {"SKILL.md": b"# Old\n", "a/b.md": b"# B\n"}


def test_a_source_that_is_not_a_folder_is_refused_in_one_sentence(world: World, tmp_path: Path) -> None:
    with pytest.raises(DirectoryError, match=r"^D331 invalid_input: the folder '.*none' does not exist"):
        world.run(lambda installer: installer.add(LocalFolder(str(tmp_path / "none")), Wanted()))


@pytest.fixture
def git_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The commands with which git asked a repository since the last look."""
    log, real = tmp_path / "git.log", shutil.which("git")
    program = tmp_path / "bin" / "git"
    put(tmp_path / "bin", {"git": f'#!/bin/sh\nprintf "%s\\n" "$@" >> {log}\nexec {real} "$@"\n'.encode()})
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)

    def taken() -> list[str]:
        said = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [word for word in said if word in ("fetch", "ls-remote")]

    return taken


def test_a_commit_that_touches_two_of_fourteen_skills_makes_two_outdated_with_one_question(
    world: World, git_calls: Callable[[], list[str]]
) -> None:
    names = [f"s{number:02}" for number in range(14)]
    repo = world.mirror / "o" / "r"
    make_repo(repo, {f"skills/{name}/SKILL.md": b"# one\n" for name in names})
    add(world, "o/r", everything=True)
    git_calls()
    commit(repo, {"skills/s03/SKILL.md": b"# two\n", "skills/s11/run.py": b"import os\n", "README.md": b"x"})

    outdated = world.run(lambda installer: installer.upkeep.outdated(facts=True))
    asked = git_calls()
    updated = world.run(lambda installer: installer.upkeep.update())

    # One word with the source about its commit, and one about its files.
    assert asked == ["ls-remote", "fetch"]
    assert git_calls() == ["fetch"]
    changed = ["s03", "s11"]
    assert [report.namespace for report in outdated if report.status == "outdated"] == changed
    assert [report.namespace for report in updated if report.status == "updated"] == changed
    assert {report.status for report in updated} == {"updated", "current"}
    news = {report.namespace: report.new_facts for report in outdated if report.new_facts}
    assert news == {"s11": {"scripts": ["run.py (python)"]}}
    assert {report.namespace: report.new_facts for report in updated if report.new_facts} == news
    assert contents(world.skills / "s03") == {"SKILL.md": b"# two\n"}


def test_skills_of_three_sources_are_three_questions(
    world: World, git_calls: Callable[[], list[str]]
) -> None:
    for source in ("a", "b", "c"):
        repo = world.mirror / "o" / source
        make_repo(repo, {f"skills/{source}{number}/SKILL.md": b"# one\n" for number in range(13)})
        add(world, f"o/{source}", everything=True)
    git_calls()

    reports = world.run(lambda installer: installer.upkeep.outdated())

    assert git_calls() == ["ls-remote"] * 3
    assert [report.status for report in reports] == ["current"] * 39


def test_namespaces_are_named_by_their_source_too(world: World) -> None:
    for source in ("a", "b"):
        repo = world.mirror / "o" / source
        make_repo(repo, {f"skills/{source}{number}/SKILL.md": b"# one\n" for number in range(2)})
        add(world, f"o/{source}", everything=True)
    commit(world.mirror / "o" / "a", {f"skills/a{number}/SKILL.md": b"# two\n" for number in range(2)})

    reports = world.run(lambda installer: installer.upkeep.update(["o/a"]))
    meant = world.run(lambda installer: installer.upkeep.meant(["https://github.com/o/b", "a1", "nothing"]))

    assert [(report.namespace, report.status) for report in reports] == [("a0", "updated"), ("a1", "updated")]
    assert meant == ["b0", "b1", "a1", "nothing"]


def test_a_folder_stands_for_what_came_from_below_it_and_for_no_neighbour(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("mine", "mine-too"):
        put(tmp_path / folder, {f"{folder}-a/SKILL.md": b"# A\n"})
        add(world, str(tmp_path / folder))
    monkeypatch.chdir(tmp_path)

    def meant(word: str) -> list[str]:
        return world.run(lambda installer: installer.upkeep.meant([word]))

    assert meant("./mine") == meant(f"{tmp_path}/mine/") == meant("./mine/mine-a") == ["mine-a"]
    assert meant("./mi") == ["./mi"]
    assert meant("/nowhere") == ["/nowhere"]


def test_a_name_that_is_not_installed_brings_the_close_ones(world: World, repo: Path) -> None:
    add(world, "o/r", "pdf")

    (report,) = world.run(lambda installer: installer.upkeep.update(["pdff"]))
    (other,) = world.run(lambda installer: installer.upkeep.update(["o/none"]))

    assert report.error.did_you_mean == ("pdf",)
    assert "nothing that is installed is called 'o/none' or came from there" in str(other.error)


def test_a_hidden_folder_is_searched_when_it_is_named_and_named_when_nothing_else_is_there(
    world: World,
) -> None:
    repo = world.mirror / "o" / "hidden"
    make_repo(repo, {"skills/.curated/pdf/SKILL.md": b"# PDF\n", "README.md": b"x"})

    with pytest.raises(DirectoryError, match=r"name its hidden folder 'skills/\.curated' behind the source"):
        add(world, "o/hidden")
    (done,) = add(world, "o/hidden/skills/.curated").installed
    commit(repo, {"skills/.curated/pdf/SKILL.md": b"# PDF, newer\n"})
    (report,) = world.run(lambda installer: installer.upkeep.update())

    assert done.namespace == "pdf"
    assert report.status == "updated"
    assert contents(world.skills / "pdf") == {"SKILL.md": b"# PDF, newer\n"}


def test_a_site_of_several_installed_skills_is_asked_once(world: World, site: Callable[..., Any]) -> None:
    text = {name: f"# {name}\n".encode() for name in ("a", "b", "c")}
    rows = [
        {"name": name, "type": "skill-md", "url": f"/{name}", "digest": content_hash(content)}
        for name, content in text.items()
    ]
    index = "/.well-known/agent-skills/index.json"
    files = {index: json.dumps({"skills": rows}).encode(), **{f"/{name}": one for name, one in text.items()}}
    with site(files) as server:
        add(world, server.url, everything=True)
        for act in ("outdated", "update"):
            before = len(server.asked)
            reports = world.run(lambda installer, act=act: getattr(installer.upkeep, act)())
            assert [report.status for report in reports] == ["current"] * 3
            assert server.asked[before:].count(index) == 1
