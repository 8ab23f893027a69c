"""Installing from the command line, and looking after what is installed."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.commands import COMMAND, START_SECONDS, environment, run, running
from tests.support.git import commit, git, make_repo
from tests.support.installs import contents, put
from tests.support.registry import RawServer
from tests.support.world import World

from iii_directory.cli import skills_commands
from iii_directory.cli.installs import COMMANDS
from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

GITHUB = "https://github.com/anthropics/skills"
PROMPT = "---\ndescription: Ask\n---\nAsk.\n"
V1 = {
    "skills/SKILL.md": "# one\n",
    "skills/get.md": "get one\n",
    "skills/gone.md": "gone\n",
    "skills/run.py": "print(1)\n",
    "prompts/ask.md": PROMPT,
}
V2 = {"skills/SKILL.md": "# two\n", "skills/get.md": "get two\n", "prompts/ask.md": PROMPT}


class Desk(World):
    """A person at a terminal, in a folder with a configuration."""

    def __init__(self, tmp_path: Path, registry_url: str) -> None:
        super().__init__(tmp_path, registry_url)
        self.configure()

    def configure(self, **changes: Any) -> None:
        settings = {
            "registry_url": self.registry_url,
            "repo_mirrors": {"https://github.com/": f"{self.mirror}/"},
            "allow_file_repos": True,
            **changes,
        }
        (self.tmp_path / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")

    def has(self, name: str, version: str | None = None) -> None:
        """A worker's skills, installed before the test begins."""
        self.download(worker=name, **({"version": version} if version else {}))

    def has_web(self) -> None:
        self.download(repo=GITHUB, skill="web")

    def type(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """One of the commands, and the exit code it must end with."""
        done = run("skills", *arguments, cwd=self.tmp_path)
        assert done.returncode == code, done.stderr + done.stdout
        assert "Traceback" not in done.stderr
        return done

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.type(*arguments, "--json", code=code).stdout)

    def sentence(self, *arguments: str, code: int = 1) -> str:
        """Return the only line of a failed command that is not a log line."""
        done = self.type(*arguments, code=code)
        assert done.stdout == ""
        (line,) = [line for line in done.stderr.splitlines() if " INFO " not in line]
        return line.removeprefix("iii-directory: ")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """In memory, because installs sync every file."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=folder) as path, RegistryServer(Path(path) / "registry") as registry:
        yield Desk(Path(path), registry.url)


@pytest.fixture
def repo(desk: Desk) -> Path:
    folder = desk.mirror / "anthropics" / "skills"
    make_repo(folder, {"skills/web/SKILL.md": b"# web one\n", "skills/web/a.md": b"a one\n"})
    return folder


def test_add_installs_a_published_worker_and_says_what_it_wrote(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)

    done = desk.type("add", "db")

    assert done.stdout == "installed db 1.0.0: 3 documents, 1 prompt, 1 other file\n"
    *lines, where, news = done.stderr.splitlines()
    assert where == f"iii-directory: wrote to {desk.skills}"
    assert news == "iii-directory: db: new scripts: run.py (python)"
    told = [line.split(" INFO    ")[1] for line in lines]
    # On a slow disk there are more between them.
    assert (told[0], told[-1]) == ("fetching db", "writing db (5 of 5)")
    assert (desk.skills / "db" / "SKILL.md").read_text() == "# one\n"
    assert desk.lock()["db"]["by"] == "call"
    assert "db/get" in run("skills", "list", "--all", cwd=desk.tmp_path, III_URL="ws://127.0.0.1:1").stdout


def test_add_can_name_a_version_or_a_tag(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1, tag="old")
    desk.publish("db", "2.0.0", V2)

    for arguments, resolved in {
        ("db@1.0.0",): "1.0.0",
        ("db@old",): "1.0.0",
        ("db", "--version", "1.0.0"): "1.0.0",
        ("db", "--tag", "latest"): "2.0.0",
    }.items():
        assert desk.json("add", *arguments, "--dry-run")["resolved"] == resolved
    reply = desk.json("add", "db@1.0.0")
    assert reply["source"] == {"kind": "registry", "worker": "db", "version": "1.0.0"}
    assert reply["changes"]["added"] == ["SKILL.md", "get.md", "gone.md", "prompts/ask.md", "run.py"]
    assert reply["findings"] == []


def test_add_installs_a_folder_of_a_repository(desk: Desk, repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    commit(repo, {"skills/web/SKILL.md": b"# newer\n", "skills/web/.hidden": b"x"})

    pinned = desk.json("add", GITHUB, "--skill", "web", "--branch", first)
    assert pinned["source"]["commit"] == pinned["resolved"] == first

    done = desk.type("add", GITHUB, "--skill", "web")
    assert done.stdout == f"installed web {git(repo, 'rev-parse', 'HEAD')}: 2 documents\n"
    assert "iii-directory: web/.hidden: it is a dot file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (
            ("db", "--skill", "web"),
            "'db' is a worker of the registry; --list, --skill, --plugin and --all are for",
        ),
        (("db", "--branch", "main"), "'db' is a worker of the registry; --branch is for repositories"),
        ((GITHUB, "--tag", "beta"), "--version and --tag are for workers of the registry"),
        (("o/r@v1", "--branch", "main"), "'o/r@v1' names a branch already; leave --branch out"),
        (("o/r", "--all", "--skill", "x"), "--all and --skill do not go together"),
        (("http://example.com",), "D331 invalid_input: 'http://example.com' is not a source of skills"),
        (("db@1.0.0", "--tag", "latest"), "'db@1.0.0' names a version or a tag already"),
        (("db", "--version", "1.0.0", "--tag", "x"), "D311 invalid_input: pass either version or tag"),
        (("No Name",), "D311 invalid_input: 'No Name' is not the name of a worker"),
        (
            ("ext::sh -c true://", "--skill", "web"),
            "D331 invalid_input: 'ext::sh -c true://' is not a source",
        ),
        (("acme/../one",), "D331 invalid_input: 'acme/../one' is not a source of skills: "),
        (
            ("http://github.com/o/r",),
            "D331 invalid_input: 'http://github.com/o/r' is not a source of skills: ",
        ),
        (("https://me:secret@h.example/o/r",), "D331 invalid_input: 'https://h.example/o/r' is not a source"),
    ],
)
def test_wrong_usage_is_one_sentence_that_repeats_what_was_typed(
    desk: Desk, arguments: tuple[str, ...], fragment: str
) -> None:
    assert desk.sentence("add", *arguments, code=2).startswith(fragment)
    assert not desk.skills.exists()


def test_a_failed_add_is_one_sentence_and_exit_code_1(desk: Desk, repo: Path) -> None:
    assert desk.sentence("add", "nobody").startswith("D310 not_found: ")
    assert "has no skill 'none'. Did you mean: web" in desk.sentence("add", GITHUB, "--skill", "none")
    assert desk.sentence("add", "./nowhere") == "D331 invalid_input: the folder './nowhere' does not exist."
    desk.configure(registry_url="http://127.0.0.1:1")
    assert desk.sentence("add", "db", "--json").startswith("D320 registry_error: ")
    assert not desk.skills.exists()


def test_a_file_repository_is_refused_with_the_setting_that_allows_it(desk: Desk) -> None:
    desk.configure(allow_file_repos=False)

    sentence = desk.sentence("add", "file:///srv/skills", code=2)

    assert "'file:///srv/skills' is not a source of skills" in sentence
    assert "set allow_file_repos to use them" in sentence


COLLECTION = {
    "skills/pdf/SKILL.md": b"---\nname: pdf\ndescription: Reads PDF.\n---\n# PDF\n",
    "skills/notes/SKILL.md": b"---\nname: notes\ndescription: Takes notes.\n---\n# Notes\n",
}


def test_a_source_with_several_skills_is_listed_until_it_is_said_which(desk: Desk) -> None:
    make_repo(desk.mirror / "o" / "r", COLLECTION)

    listed = desk.type("add", "o/r", "--list").stdout
    assert listed == "notes\tskills/notes\tTakes notes.\npdf\tskills/pdf\tReads PDF.\n"
    unsaid = desk.type("add", "o/r", code=1)
    assert unsaid.stdout == listed
    assert "o/r has 2 skills: name some with --skill NAME, or take --all" in unsaid.stderr
    assert not desk.skills.exists()

    done = desk.type("add", "o/r", "--all").stdout.splitlines()
    assert [line.split()[:2] for line in done] == [["installed", "notes"], ["installed", "pdf"]]
    again = desk.json("add", "o/r", "--skill", "pdf", "--skill", "notes")
    assert {row["namespace"]: row["status"] for row in again["namespaces"]} == {
        "pdf": "current",
        "notes": "current",
    }
    assert desk.type("add", "o/r/skills/pdf").stdout.endswith(": current\n")
    assert desk.json("add", "o/r", "--list")["skills"][0]["name"] == "notes"


def test_two_of_one_name_are_named_the_others_installed_and_it_is_a_failure(desk: Desk) -> None:
    make_repo(desk.mirror / "o" / "r", {**COLLECTION, "old/pdf/SKILL.md": b"# Old\n", "Bad/SKILL.md": b""})

    done = desk.type("add", "o/r", "--all", code=1)

    assert done.stdout.startswith("installed notes ")
    assert "pdf is not installed: old/pdf and skills/pdf have that name" in done.stderr
    assert "'Bad' cannot be a name here" in done.stderr
    make_repo(desk.mirror / "o" / "named", {**COLLECTION, "skills/con/SKILL.md": b"# Con\n"})
    named = desk.type("add", "o/named", "--all", code=1).stderr
    assert "con is not installed: D340 install_error: nothing is installed under the name 'con'" in named
    assert "iii-directory doctor to see the state of the folder" in named
    desk.type("add", "o/r", "--skill", "old/pdf")
    assert (desk.skills / "pdf/SKILL.md").read_bytes() == b"# Old\n"


def test_ctrl_c_ends_an_add_at_once_while_a_host_is_silent(desk: Desk) -> None:
    asked = threading.Event()

    def silent(path: str, connection: socket.socket) -> None:
        asked.set()
        server.stopping.wait(START_SECONDS)

    with RawServer(silent) as server:
        desk.configure(repo_mirrors={"https://github.com/": f"{server.url}/"}, download_timeout_ms=600_000)
        with running("skills", "add", "o/r", cwd=desk.tmp_path) as adding:
            assert asked.wait(START_SECONDS)
            # The host stays silent for ten minutes unless the command ends git.
            assert adding.stop(signal.SIGINT) == 130, adding.output

    assert "Traceback" not in adding.output
    assert not desk.skills.exists()


def test_a_dry_run_shows_the_plan_and_a_diff_and_changes_nothing(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)
    first = desk.type("add", "db", "--dry-run")
    assert not desk.skills.exists()
    assert first.stdout.startswith("db 1.0.0: nothing is changed by a dry run\nadded\tSKILL.md\n")
    # Whole new files are no diff to read; skills use shows them.
    assert "+++" not in first.stdout
    assert "skills use" in first.stderr

    desk.has("db")
    put(desk.skills, {"db/get.md": b"by hand\n"})
    desk.publish("db", "2.0.0", V2)
    before = contents(desk.skills)
    plan = desk.json("add", "db", "--dry-run")

    assert contents(desk.skills) == before
    assert plan["dry_run"] is True
    assert plan["changes"] == {
        "replaced": ["SKILL.md"],
        "kept": ["get.md"],
        "left_behind": ["gone.md", "run.py"],
        "unchanged": ["prompts/ask.md"],
    }
    assert "-# one\n+# two\n" in plan["diff"]
    assert plan["diff"] in desk.type("add", "db", "--dry-run").stdout
    assert desk.json("add", "db", "--dry-run", "--force")["changes"]["overwritten"] == ["get.md"]


def test_add_keeps_what_was_edited_unless_forced(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)
    desk.has("db")
    put(desk.skills, {"db/get.md": b"by hand\n"})
    desk.publish("db", "2.0.0", V2)

    kept = desk.type("add", "db")
    assert (desk.skills / "db" / "get.md").read_text() == "by hand\n"
    assert (desk.skills / "db" / "SKILL.md").read_text() == "# two\n"
    assert "db/get.md: it was edited by hand" in kept.stderr
    assert "--force replaces what was edited by hand" in kept.stderr

    desk.type("add", "db", "--force")
    assert (desk.skills / "db" / "get.md").read_text() == "get two\n"


def test_verify_names_what_was_edited_and_is_not_0_then(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)
    desk.has("db")
    assert desk.type("verify").stdout == "db\tclean\tclean: 5\n"

    put(desk.skills, {"db/get.md": b"by hand\n", "db/own.md": b"mine"})
    (desk.skills / "db" / "gone.md").unlink()

    found = desk.type("verify", "db", code=1)
    assert found.stdout == "db\tedited\tedited: get.md; missing: gone.md; own: own.md; clean: 3\n"
    (row,) = desk.json("verify", code=1)["namespaces"]
    assert (row["status"], row["edited"], row["missing"], row["own"]) == (
        "edited",
        ["get.md"],
        ["gone.md"],
        ["own.md"],
    )
    assert desk.sentence("verify", "nope").startswith("D340 install_error: the namespace 'nope' is not in")


def test_doctor_names_what_was_edited_since(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)
    desk.has("db")
    put(desk.skills, {"db/get.md": b"mine\n"})

    done = run("doctor", "--json", cwd=desk.tmp_path, III_URL="ws://127.0.0.1:1")

    found = [row["subject"] for row in json.loads(done.stdout)["findings"] if row["kind"] == "edited"]
    assert found == ["db/get.md"]


def test_diff_shows_edits_as_a_patch(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)
    desk.has("db")
    assert desk.type("diff").stderr == "iii-directory: nothing was edited\n"

    put(desk.skills, {"db/get.md": b"by hand\n"})
    desk.publish("db", "2.0.0", V2)

    patch = "--- a/db/get.md\n+++ b/db/get.md\n@@ -1 +1 @@\n-get one\n+by hand\n"
    assert desk.type("diff").stdout == patch
    assert desk.json("diff", "db") == {"diff": patch}


def test_update_reports_each_namespace_as_what_became_of_it(desk: Desk, repo: Path) -> None:
    for name in ("current", "edited", "failed", "pinned", "updated"):
        desk.publish(name, "1.0.0", V1)
        desk.has(name, "1.0.0" if name == "pinned" else None)
    desk.has_web()
    for name in ("edited", "pinned", "updated"):
        desk.publish(name, "2.0.0", V2)
    put(desk.skills, {"edited/get.md": b"by hand\n"})
    shutil.rmtree(desk.tmp_path / "registry" / "failed")
    newer = commit(repo, {"skills/web/a.md": b"a two\n"})

    stale = {row["namespace"]: row["status"] for row in desk.json("outdated", code=1)["namespaces"]}
    assert stale == {
        "current": "current",
        "edited": "outdated",
        "failed": "failed",
        "pinned": "outdated",
        "updated": "outdated",
        "web": "outdated",
    }
    reports = {row["namespace"]: row for row in desk.json("update", code=1)["namespaces"]}
    assert {name: row["status"] for name, row in reports.items()} == {
        "current": "current",
        "edited": "edited",
        "failed": "failed",
        "pinned": "current",
        "updated": "updated",
        "web": "updated",
    }
    assert reports["failed"]["reason"].startswith("D310 not_found: ")
    assert reports["edited"]["changes"]["kept"] == ["get.md"]
    assert (reports["updated"]["installed"], reports["updated"]["available"]) == ("1.0.0", "2.0.0")
    assert reports["web"]["available"] == newer
    assert (desk.skills / "edited" / "get.md").read_text() == "by hand\n"
    assert (desk.skills / "edited" / "SKILL.md").read_text() == "# two\n"
    assert (desk.skills / "pinned" / "SKILL.md").read_text() == "# one\n"

    done = desk.type("update", "current", "edited", "pinned")
    left = "no longer in the source: gone.md, run.py"
    assert done.stdout.splitlines() == [f"edited\tedited\t2.0.0\t2.0.0\tkept, because edited: get.md; {left}"]
    assert "2 others are current" in done.stderr


def test_update_removes_what_left_the_source_only_when_told_to(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)
    desk.has("db")
    desk.publish("db", "2.0.0", V2)
    assert "no longer in the source: gone.md, run.py" in desk.type("update").stdout
    assert (desk.skills / "db" / "gone.md").exists()

    desk.publish("db", "3.0.0", {"skills/SKILL.md": "# three\n"})
    (row,) = desk.json("update", "--prune")["namespaces"]

    # Also what an earlier update had left where it was.
    assert row["changes"]["removed"] == ["get.md", "gone.md", "prompts/ask.md", "run.py"]
    assert sorted(contents(desk.skills / "db")) == ["SKILL.md"]


def test_restore_on_an_empty_folder_is_byte_identical(desk: Desk, repo: Path) -> None:
    desk.publish("db", "1.0.0", V1)
    desk.has("db")
    desk.has_web()
    before = contents(desk.skills)
    desk.publish("db", "2.0.0", V2)
    commit(repo, {"skills/web/a.md": b"a two\n"})
    for name in ("db", "web"):
        shutil.rmtree(desk.skills / name)

    done = desk.type("restore")

    assert contents(desk.skills) == before
    told = [line.split("\t")[:2] for line in done.stdout.splitlines()]
    assert told == [["db", "restored"], ["web", "restored"]]
    assert [row["status"] for row in desk.json("restore")["namespaces"]] == ["current", "current"]


def test_restore_keeps_what_was_edited_unless_forced(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)
    desk.has("db")
    before = contents(desk.skills)
    put(desk.skills, {"db/get.md": b"by hand\n"})
    (desk.skills / "db" / "gone.md").unlink()

    kept = desk.type("restore", code=1)
    assert "kept, because edited: get.md" in kept.stdout
    assert (desk.skills / "db" / "gone.md").exists()

    assert desk.json("restore", "--force")["namespaces"][0]["status"] == "restored"
    assert contents(desk.skills) == before


def test_remove_takes_away_what_was_installed_and_leaves_the_rest(desk: Desk) -> None:
    for name in ("db", "mail"):
        desk.publish(name, "1.0.0", V1)
        desk.has(name)
    put(desk.skills, {"db/get.md": b"by hand\n", "db/own.md": b"mine"})

    found = {row["namespace"]: row for row in desk.json("remove", "db", "nope", "mail", code=1)["namespaces"]}

    assert contents(desk.skills / "db") == {"get.md": b"by hand\n", "own.md": b"mine"}
    assert found["db"]["changes"]["kept"] == ["get.md"]
    assert "is not in the record" in found["nope"]["reason"]
    assert not (desk.skills / "mail").exists()
    assert desk.lock() == {}


def test_remove_takes_edited_files_too_when_forced(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)
    desk.has("db")
    put(desk.skills, {"db/get.md": b"by hand\n"})

    assert desk.type("remove", "db", "--force").stdout == "db\tremoved\t1.0.0\t\tremoved: 5\n"
    assert not (desk.skills / "db").exists()


@pytest.mark.parametrize("name", ["update", "outdated", "verify", "restore"])
def test_nothing_installed_is_said_and_no_failure(desk: Desk, name: str) -> None:
    assert desk.type(name).stderr == "iii-directory: nothing is installed\n"
    assert desk.json(name) == {"namespaces": []}
    assert not desk.skills.exists()


def test_a_record_that_cannot_be_read_is_a_failure_and_not_an_empty_one(desk: Desk) -> None:
    put(desk.skills, {"skills.lock.json": b"{"})
    for name in ("update", "verify"):
        assert "skills.lock.json cannot be read" in desk.sentence(name)

    put(desk.skills, {"skills.lock.json": b'{"version": 1, "namespaces": {"db": 7}}'})
    assert "the record of the namespace 'db' is malformed" in desk.sentence("verify")
    assert "malformed" in desk.json("update", code=1)["namespaces"][0]["reason"]


def test_a_terminal_gets_a_bar_instead_of_lines(desk: Desk) -> None:
    desk.publish("db", "1.0.0", V1)

    output = on_a_terminal(desk, "skills", "add", "db", "--yes")

    assert "writing db" in output
    assert "5/5" in output
    assert "INFO" not in output
    assert "installed db 1.0.0: 3 documents, 1 prompt, 1 other file" in output


@pytest.mark.parametrize(("answered", "code"), [("y\n", 0), ("n\n", 1), ("\x04", 1)])
def test_a_terminal_is_asked_about_what_an_install_can_newly_do(desk: Desk, answered: str, code: int) -> None:
    desk.publish("db", "1.0.0", V1)

    output = on_a_terminal(desk, "skills", "add", "db", answered=answered, code=code)

    bar, asked = output.split("iii-directory: db: new scripts: run.py (python)", 1)
    assert "\u2501" in bar
    assert bar.endswith("\x1b[2K")  # the bar was cleared before the question
    assert "\u2501" not in asked.split("go on with db?")[0]
    assert (desk.skills / "db/SKILL.md").exists() == (answered == "y\n")
    # What was asked about is not said again, and a no needs no advice.
    assert "new scripts" not in asked
    if code:
        last = output.rstrip().splitlines()[-1]
        assert last.endswith("iii-directory: D340 install_error: db was not approved; nothing was changed.")
    assert output.count("nothing was changed") == bool(code)


def on_a_terminal(desk: Desk, *arguments: str, answered: str = "", code: int = 0) -> str:
    """What a command shows on a terminal of its own."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=desk.tmp_path,
        env=environment(TERM="xterm-256color", COLUMNS="120", NO_COLOR="1"),
        stdin=its,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    os.write(ours, answered.encode() or b"\n")
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass  # how Linux says that the other end is closed
    finally:
        os.close(ours)
        assert process.wait(START_SECONDS) == code
    return shown.decode()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_json_and_documents_its_exit_codes(command: Any) -> None:
    assert skills_commands.skills.commands[command.name] is command
    assert "\n  Exit codes: 0 " in run("skills", command.name, "--help").stdout
    assert "--json" in {option for parameter in command.params for option in parameter.opts}


def test_reading_stays_quick() -> None:
    program = (
        "import sys, iii_directory.cli.skills_commands\n"
        "print([name for name in ('asyncio', 'httpx2', 'rich', 'yaml') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=START_SECONDS
    )

    assert done.stdout == "[]\n"


# Edited files and their source


@pytest.fixture
def edited(desk: Desk) -> Desk:
    """A skill that was edited here and changed at its source, in different lines and in one both changed."""
    repo = desk.mirror / "anthropics" / "skills"
    make_repo(repo, {"skills/web/SKILL.md": b"one\n\ntwo\n\nthree\n", "skills/web/b.md": b"b\n"})
    desk.has_web()
    put(desk.skills, {"web/SKILL.md": b"my one\n\ntwo\n\nthree\n", "web/b.md": b"my b\n"})
    commit(repo, {"skills/web/SKILL.md": b"one\n\ntwo\n\nnew three\n"})
    return desk


def test_an_edited_file_hears_of_its_source_on_the_command_line(edited: Desk) -> None:
    assert edited.json("update")["namespaces"][0]["status"] == "edited"
    assert edited.json("outdated")["namespaces"][0]["behind"] == ["SKILL.md"]

    mine, theirs = edited.type("diff").stdout, edited.type("diff", "--upstream").stdout

    assert "-one\n+my one\n" in mine
    assert "new three" not in mine
    assert "-three\n+new three\n" in theirs
    assert "my" not in theirs


def test_a_merge_on_the_command_line_makes_both_changes(edited: Desk) -> None:
    (report,) = edited.json("update", "--merge")["namespaces"]

    assert (report["changes"]["merged"], report["changes"]["kept"]) == (["SKILL.md"], ["b.md"])
    assert (edited.skills / "web/SKILL.md").read_text() == "my one\n\ntwo\n\nnew three\n"
    assert (edited.skills / "web/b.md").read_text() == "my b\n"
    assert edited.type("diff", "--upstream").stdout == ""


def test_a_merge_with_a_conflict_says_which_file_and_leaves_both_beside_it(edited: Desk) -> None:
    commit(edited.mirror / "anthropics" / "skills", {"skills/web/b.md": b"their b\n"})

    done = edited.type("update", "web", "--merge", code=1)

    assert "b.md" in done.stdout + done.stderr
    assert (edited.skills / "web/b.md").read_text() == "my b\n"
    beside = (edited.skills / "web/b.md.merge").read_text()
    assert all(side in beside for side in ("<<<<<<<", "my b", "=======", "their b", ">>>>>>>"))
    assert (edited.skills / "web/SKILL.md").read_text() == "my one\n\ntwo\n\nnew three\n"
    listed = run("skills", "files", "web", cwd=edited.tmp_path, III_URL="ws://127.0.0.1:1").stdout
    assert "b.md\t" in listed
    assert ".merge" not in listed
