"""Downloads, end to end: a real registry, real repositories, a real folder."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.git import commit, make_repo
from tests.support.installs import contents, hashes, put
from tests.support.registry import RawServer, answer
from tests.support.world import World

from iii_directory import limits
from iii_directory.config import Settings
from iii_directory.disk.install_record import changed_namespaces, parse_lock
from iii_directory.errors import DirectoryError
from iii_directory.install.requests import repo_request
from iii_directory.install.service import Installer
from iii_directory.registry.registry_client import RegistryClient
from iii_directory.registry.registry_messages import worker_request
from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

GITHUB = "https://github.com/anthropics/skills"
V1 = {
    "skills/SKILL.md": "# db one\n",
    "skills/get.md": "get one\n",
    "skills/run.py": "print(1)\n",
    "prompts/ask.md": "---\ndescription: Ask the database\n---\nAsk one.\n",
}
V2 = {**V1, "skills/SKILL.md": "# db two\n", "skills/get.md": "get two\n", "skills/set.md": "set two\n"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with RegistryServer(tmp_path / "registry") as registry:
        yield World(tmp_path, registry.url)


def test_a_download_from_the_registry_lands_and_says_what_it_wrote(world: World) -> None:
    world.publish("db", "1.2.3", V1)

    done = world.download(worker="db")

    assert done.reply == {
        "namespace": "db",
        "skills_written": ["SKILL.md", "get.md"],
        "prompts_written": ["ask"],
        "files_written": ["run.py"],
        "source": {"kind": "registry", "worker": "db", "tag": "latest"},
        "new_facts": {"scripts": ["run.py (python)"]},
    }
    assert contents(world.skills / "db") == {
        "SKILL.md": b"# db one\n",
        "get.md": b"get one\n",
        "run.py": b"print(1)\n",
        "prompts/ask.md": b"---\nname: ask\ndescription: Ask the database\n---\nAsk one.\n",
    }
    assert world.lock()["db"] == {
        "source": {"kind": "registry", "worker": "db", "tag": "latest", "registry": world.registry_url},
        "resolved": "1.2.3",
        "installed_at": "2026-01-01T00:00:00.000000Z",
        "by": "call",
        "files": hashes(contents(world.skills / "db")),
    }


def test_a_version_can_be_named(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    world.publish("db", "2.0.0", V2)

    done = world.download(worker="db", version="1.0.0")

    assert done.reply["source"] == {"kind": "registry", "worker": "db", "version": "1.0.0"}
    assert (world.skills / "db" / "SKILL.md").read_text() == "# db one\n"


def test_the_quick_start_runs_as_printed(world: World) -> None:
    made = make_repo(
        world.mirror / "anthropics" / "skills",
        {
            "skills/frontend-design/SKILL.md": b"# Frontend\n",
            "skills/frontend-design/LICENSE.txt": b"MIT",
            "skills/frontend-design/.gitignore": b"x",
            "skills/frontend-design/prompts/hello.md": b"---\nname: say-hello\ndescription: d\n---\nHi\n",
            "skills/other/SKILL.md": b"# Other\n",
        },
    )

    done = world.download(repo=GITHUB, skill="frontend-design")

    assert done.reply == {
        "namespace": "frontend-design",
        "skills_written": ["SKILL.md"],
        "prompts_written": ["say-hello"],
        "files_written": ["LICENSE.txt"],
        "source": {
            "kind": "repo",
            "repo": GITHUB,
            "skill": "frontend-design",
            "branch": "main",
            "commit": made,
        },
    }
    assert contents(world.skills / "frontend-design").keys() == {
        "SKILL.md",
        "LICENSE.txt",
        "prompts/hello.md",
    }
    assert world.lock()["frontend-design"]["resolved"] == made
    assert [finding.subject for finding in done.findings] == ["frontend-design/.gitignore"]


def test_an_explicit_call_replaces_files_of_the_same_path_and_leaves_the_others(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    world.download(worker="db")
    put(world.skills, {"db/SKILL.md": b"by hand", "db/own.md": b"mine"})
    world.publish("db", "2.0.0", {"skills/SKILL.md": "# db two\n"})

    done = world.download(worker="db")

    assert contents(world.skills / "db").keys() == {
        "SKILL.md",
        "get.md",
        "run.py",
        "prompts/ask.md",
        "own.md",
    }
    assert (world.skills / "db" / "SKILL.md").read_text() == "# db two\n"
    assert done.changes.overwritten == ("SKILL.md",)
    assert done.changes.left_behind == ("get.md", "prompts/ask.md", "run.py")
    assert done.reply["skills_written"] == ["SKILL.md"]
    assert done.reply["prompts_written"] == []
    assert world.lock()["db"]["files"].keys() == {"SKILL.md"}


def test_an_automatic_download_keeps_what_was_edited_and_still_counts_it_as_edited(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    world.run(lambda installer: installer.auto_download("db"))
    put(world.skills, {"db/SKILL.md": b"by hand"})
    world.publish("db", "2.0.0", V2)

    done = world.run(lambda installer: installer.auto_download("db"))

    assert (world.skills / "db" / "SKILL.md").read_bytes() == b"by hand"
    assert (world.skills / "db" / "get.md").read_text() == "get two\n"
    assert done.reply["skills_written"] == ["get.md", "set.md"]
    assert [(finding.kind, finding.subject) for finding in done.findings] == [("edited", "db/SKILL.md")]
    assert world.lock()["db"]["files"]["SKILL.md"] == hashes({"x": b"# db two\n"})["x"]
    assert world.lock()["db"]["by"] == "auto"

    world.publish("db", "3.0.0", {**V2, "skills/SKILL.md": "# db three\n"})
    again = world.run(lambda installer: installer.auto_download("db"))

    assert (world.skills / "db" / "SKILL.md").read_bytes() == b"by hand"
    assert again.changes.kept == ("SKILL.md",)


def test_a_namespace_that_is_current_is_left_alone(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    assert world.run(lambda installer: installer.auto_download("db")) is not None
    before = contents(world.skills)

    assert world.run(lambda installer: installer.auto_download("db")) is None
    assert contents(world.skills) == before


def test_whether_it_is_current_is_asked_without_fetching_the_bundle(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "iii_directory.registry_server.registry_http")

    def asked() -> list[str]:
        caplog.clear()
        world.run(lambda installer: installer.auto_download("db"))
        return [line.split()[1] for line in caplog.messages if "GET" in line]

    world.publish("db", "1.0.0", V1)
    assert asked() == ["/w/db/skills?version=latest"]
    assert asked() == ["/w/db?version=latest"]
    world.publish("db", "2.0.0", V2)
    assert asked() == ["/w/db?version=latest", "/w/db/skills?version=latest"]
    assert asked() == ["/w/db?version=latest"]


@pytest.mark.parametrize(
    "detail",
    [
        answer({}, "404 Not Found"),
        answer({}, "500 Oops"),
        answer(b"no JSON"),
        answer({"worker": {"name": "db"}}),
    ],
    ids=["none", "failing", "garbled", "without a version"],
)
def test_a_registry_that_cannot_say_what_is_current_is_asked_for_the_bundle(
    world: World, detail: bytes
) -> None:
    bundle = {"name": "db", "version": "1.0.0", "skills": [{"path": "SKILL.md", "content": "# db\n"}]}

    def respond(path: str, connection: socket.socket) -> None:
        connection.sendall(answer(bundle) if "/skills" in path else detail)

    with RawServer(respond) as server:
        world.run(lambda installer: installer.auto_download("db"), registry_url=server.url)
        bundle["version"] = "2.0.0"
        world.run(lambda installer: installer.auto_download("db"), registry_url=server.url)

    assert world.lock()["db"]["resolved"] == "2.0.0"


def test_a_namespace_whose_folder_is_gone_is_brought_back(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    world.run(lambda installer: installer.auto_download("db"))
    import shutil

    shutil.rmtree(world.skills / "db")

    assert world.run(lambda installer: installer.auto_download("db")) is not None
    assert (world.skills / "db" / "SKILL.md").exists()


def test_what_someone_pinned_or_took_from_a_repository_is_not_touched_by_itself(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    world.publish("db", "2.0.0", V2)
    world.publish("web", "1.0.0", V1)
    make_repo(world.mirror / "anthropics" / "skills", {"skills/web/SKILL.md": b"mine"})
    world.download(worker="db", version="1.0.0")
    world.download(repo=GITHUB, skill="web")
    before = contents(world.skills)

    assert world.run(lambda installer: installer.auto_download("db")) is None
    assert world.run(lambda installer: installer.auto_download("web")) is None
    assert contents(world.skills) == before


def test_an_automatic_update_follows_the_tag_someone_chose_and_leaves_it_theirs(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    world.publish("db", "2.0.0-rc.1", V1, tag="next")
    world.download(worker="db", tag="next")
    world.publish("db", "2.0.0-rc.2", V2, tag="next")

    world.run(lambda installer: installer.auto_download("db"))

    assert world.lock()["db"]["resolved"] == "2.0.0-rc.2"
    assert world.lock()["db"]["source"] == {
        "kind": "registry",
        "worker": "db",
        "tag": "next",
        "registry": world.registry_url,
    }
    assert world.lock()["db"]["by"] == "call"


def test_an_automatic_update_does_not_go_back(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    world.publish("db", "2.0.0", V2)
    world.run(lambda installer: installer.auto_download("db"))
    world.publish("db", "1.0.0", V1, tag="latest")

    with pytest.raises(DirectoryError, match=r"^D340 .*older"):
        world.run(lambda installer: installer.auto_download("db"))
    assert world.lock()["db"]["resolved"] == "2.0.0"


def test_a_worker_without_skills_is_not_asked_for_again(world: World) -> None:
    def respond(path: str, connection: socket.socket) -> None:
        connection.sendall(answer({}, "404 Not Found"))

    async def twice(installer: Installer) -> None:
        for _ in range(3):
            assert await installer.auto_download("db") is None
        with pytest.raises(DirectoryError, match=r"^D310"):
            await installer.download(worker_request("db"))

    with RawServer(respond) as server:
        world.run(twice, registry_url=server.url)
        assert len(server.asked) == 2


def test_the_same_download_again_changes_only_the_record(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    world.download(worker="db")
    inode = (world.skills / "db").stat().st_ino

    done = world.download(worker="db")

    assert (world.skills / "db").stat().st_ino == inode
    assert done.reply["skills_written"] == ["SKILL.md", "get.md"]


def test_a_preview_shows_the_plan_and_changes_nothing(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    request = worker_request("db")
    first = world.run(lambda installer: installer.preview(request))
    assert not world.skills.exists()
    assert first.changes.added == ("SKILL.md", "get.md", "prompts/ask.md", "run.py")
    world.run(lambda installer: installer.download(request))
    put(world.skills, {"db/get.md": b"by hand\n"})
    world.publish("db", "2.0.0", V2)
    before = contents(world.skills)

    preview = world.run(lambda installer: installer.preview(request))

    assert contents(world.skills) == before
    assert preview.as_dict()["changes"] == {
        "added": ["set.md"],
        "replaced": ["SKILL.md"],
        "overwritten": ["get.md"],
        "unchanged": ["prompts/ask.md", "run.py"],
    }
    assert "-# db one\n+# db two\n" in preview.diff
    assert "-by hand\n+get two\n" in preview.diff
    assert "+++ b/db/set.md" in preview.diff
    assert "run.py" not in preview.diff
    done = world.run(lambda installer: installer.download(request))
    assert done.changes == preview.changes


def test_progress_goes_from_fetching_to_the_last_file(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    told: list[tuple[str, int, int]] = []

    world.run(
        lambda installer: installer.download(
            worker_request("db"), progress=lambda phase, done, total: told.append((phase, done, total))
        )
    )

    assert told == [("fetch", 0, 0), *(("write", number, 4) for number in range(1, 5))]


def test_the_event_loop_stays_free_while_git_works(world: World) -> None:
    released = asyncio.Event()

    def respond(path: str, connection: socket.socket) -> None:
        assert server.stopping.wait(20)

    async def both(installer: Installer) -> None:
        request = repo_request("https://git.example/r", "x", allow_file=False)
        stuck = asyncio.ensure_future(installer.download(request))
        asyncio.get_running_loop().call_later(0.05, released.set)
        await asyncio.wait_for(released.wait(), 10)
        assert not stuck.done()
        with pytest.raises(DirectoryError, match=r"^D330"):
            await stuck

    with RawServer(respond) as server:
        mirrors = {"https://git.example/": f"{server.url}/"}
        world.run(both, repo_mirrors=mirrors, download_timeout_ms=500)


def test_a_client_that_was_given_is_not_closed(world: World) -> None:
    world.publish("db", "1.0.0", V1)

    async def run() -> None:
        async with aclosing(RegistryClient(world.registry_url, timeout_ms=5000, cache_ttl_ms=0)) as client:
            settings = Settings(skills_folder=world.skills)
            installer = Installer(settings, registry=client)
            await installer.download(worker_request("db"))
            await installer.close()
            assert (await client.bundle(worker_request("db"))).version == "1.0.0"

    asyncio.run(run())


def test_another_process_sees_what_was_installed_in_the_record(world: World) -> None:
    world.publish("db", "1.0.0", V1)
    before = parse_lock(None)
    world.download(worker="db")

    rows = changed_namespaces(
        before, parse_lock((world.skills / "skills.lock.json").read_bytes()), lambda _path, _digest: True
    )

    assert [(row.namespace, row.source, row.skills, row.prompts) for row in rows] == [
        ("db", "registry", True, True)
    ]


def test_what_a_crash_left_is_put_right_at_the_start(world: World) -> None:
    put(world.skills, {".iii-directory/db.work/new/half.md": b"x"})

    world.run(lambda installer: installer.recover())

    assert list(world.skills.iterdir()) == []


HOSTILE_BUNDLES: dict[str, dict[str, Any]] = {
    "climbing": {"skills": [{"path": "../../canary.md", "content": "x"}]},
    "climbing late": {
        "skills": [{"path": "ok.md", "content": "x"}, {"path": "a/../../canary.md", "content": "x"}]
    },
    "climbing behind the prefix": {"skills": [{"path": "skills/../../canary.md", "content": "x"}]},
    "absolute": {"skills": [{"path": "/tmp/canary.md", "content": "x"}]},
    "absolute behind the prefix": {"skills": [{"path": "skills//tmp/canary.md", "content": "x"}]},
    "drive": {"skills": [{"path": "C:\\canary.md", "content": "x"}]},
    "backslash": {"skills": [{"path": "..\\canary.md", "content": "x"}]},
    "nul": {"skills": [{"path": "a\0.md", "content": "x"}]},
    "empty": {"skills": [{"path": "", "content": "x"}]},
    "only a prefix": {"skills": [{"path": "skills/", "content": "x"}]},
    "case twins": {"skills": [{"path": "A.md", "content": "x"}, {"path": "a.md", "content": "x"}]},
    "form twins": {"skills": [{"path": "e\u0301.md", "content": "x"}, {"path": "\u00e9.md", "content": "x"}]},
    "twice": {"skills": [{"path": "a.md", "content": "1"}, {"path": "skills/a.md", "content": "2"}]},
    "file and folder": {"skills": [{"path": "a", "content": "1"}, {"path": "a/b.md", "content": "2"}]},
    "the record": {"skills": [{"path": "../skills.lock.json", "content": "{}"}]},
    "prompt name": {"prompts": [{"name": "../../canary", "content": "x"}]},
    "prompt twice": {"prompts": [{"name": "a", "content": "x"}, {"name": "a", "content": "y"}]},
    "prompt and skill": {
        "skills": [{"path": "prompts/a.md", "content": "x"}],
        "prompts": [{"name": "a", "content": "y"}],
    },
    "large document": {"skills": [{"path": "a.md", "content": "x" * (limits.MAX_BODY_BYTES + 1)}]},
    "large bundle": {"skills": [{"path": f"{n}.txt", "content": "x" * limits.MIB} for n in range(17)]},
    "many files": {
        "skills": [{"path": f"{n}.md", "content": ""} for n in range(limits.MAX_BUNDLE_FILES + 1)]
    },
    "deep": {"skills": [{"path": "/".join(["a"] * 300) + ".md", "content": ""}]},
    "long name": {"skills": [{"path": "a" * 300 + ".md", "content": ""}]},
    "lone surrogate": {"skills": [{"path": "a.md", "content": "\ud800"}]},
    "nothing": {"skills": [], "prompts": []},
    "only hidden": {"skills": [{"path": ".env", "content": "x"}]},
    "wrong name": {"name": "other", "skills": [{"path": "a.md", "content": "x"}]},
    "no content": {"skills": [{"path": "a.md"}]},
}


@pytest.mark.parametrize("name", HOSTILE_BUNDLES)
def test_a_hostile_bundle_is_refused_before_the_first_write(world: World, name: str) -> None:
    put(
        world.tmp_path, {"canary.md": b"canary", "skills/db/SKILL.md": b"mine", "skills/canary.md": b"canary"}
    )
    bundle = {"name": "db", "version": "1.0.0", **HOSTILE_BUNDLES[name]}
    before = contents(world.tmp_path)

    with RawServer(lambda path, connection: connection.sendall(answer(bundle))) as server:
        with pytest.raises(DirectoryError, match=r"^(D340|D320) ") as error:
            world.run(lambda installer: installer.download(worker_request("db")), registry_url=server.url)
        assert server.url not in str(error.value)
    assert str(world.tmp_path) not in str(error.value)
    assert contents(world.tmp_path) == before


@pytest.mark.parametrize(
    ("repo", "skill", "branch", "code"),
    [
        ("ext::sh -c touch% sentinel", "x", "main", "D331"),
        ("--upload-pack=touch sentinel", "x", "main", "D331"),
        ("https://user:secret@github.com/a/b", "x", "main", "D331"),
        (GITHUB, "../x", "main", "D331"),
        (GITHUB, "x", "--upload-pack=touch", "D331"),
        (GITHUB, "missing", "main", "D331"),
        (GITHUB, "x", "missing", "D331"),
        (GITHUB, "linked", "main", "D340"),
        ("https://github.com/none/none", "x", "main", "D330"),
    ],
)
def test_a_repository_that_cannot_be_used_changes_nothing(
    world: World, repo: str, skill: str, branch: str, code: str
) -> None:
    folder = world.mirror / "anthropics" / "skills"
    make_repo(folder, {"skills/x/SKILL.md": b"x", "skills/linked/SKILL.md": b"x"})
    (folder / "skills" / "linked" / "b.md").symlink_to("/etc/passwd")
    commit(folder, {})
    before = contents(world.tmp_path)

    with pytest.raises(DirectoryError, match=f"^{code} ") as error:
        world.download(repo=repo, skill=skill, branch=branch)
    assert "secret" not in str(error.value)
    assert str(world.tmp_path) not in str(error.value)
    assert contents(world.tmp_path) == before
    assert not world.skills.exists()


def test_file_addresses_work_when_allowed(world: World) -> None:
    make_repo(world.mirror / "r", {"skills/x/SKILL.md": b"x"})
    address = f"file://{world.mirror}/r"

    request = repo_request(address, "x", allow_file=True)

    done = world.run(lambda installer: installer.download(request))
    assert done.reply["source"]["repo"] == address
    with pytest.raises(DirectoryError, match=r"^D331"):
        world.run(lambda installer: installer.download(request), allow_file_repos=False)


def test_a_failing_registry_fails_an_automatic_download(world: World) -> None:
    with RawServer(lambda path, connection: connection.sendall(answer({}, "500 Oops"))) as server:
        with pytest.raises(DirectoryError, match=r"^D320"):
            world.run(lambda installer: installer.auto_download("db"), registry_url=server.url)
        assert len(server.asked) == 1


@pytest.mark.parametrize("name", ["..", "../x", "A", ""])
def test_an_automatic_download_of_no_worker_reaches_neither_disk_nor_registry(
    world: World, name: str
) -> None:
    with pytest.raises(DirectoryError, match=r"^D311"):
        world.run(lambda installer: installer.auto_download(name))
    assert not world.skills.exists()


def test_a_registry_without_versions_is_restored_by_its_tag(world: World) -> None:
    bundle = {"skills": [{"path": "a.md", "content": "one"}]}
    with RawServer(lambda path, connection: connection.sendall(answer(bundle))) as server:
        world.run(lambda installer: installer.download(worker_request("db")), registry_url=server.url)
        assert world.lock()["db"]["resolved"] == "latest"
        (world.skills / "db" / "a.md").unlink()
        found = world.run(lambda installer: installer.upkeep.restore(), registry_url=server.url)
    assert found[0].status == "restored"
