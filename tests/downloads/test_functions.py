"""§7: the functions that download, by all of their names."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.downloads.stage import GITHUB, V1, V2, shell_environment
from tests.support.commands import COMMAND, START_SECONDS
from tests.support.git import commit, git, make_repo
from tests.support.installs import contents, hashes, put

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.downloads.stage import Depot

EITHER = ("directory::skills::download", "skills::download")
FROM_REGISTRY = (*EITHER, "directory::skills::download_from_registry")
FROM_REPO = (*EITHER, "directory::skills::download_from_repo")
RULE = "pass either worker with version or tag, or repo and skill with branch, not both"
WEB = {
    "skills/web/SKILL.md": b"# web\n\nDesigns.\n",
    "skills/web/scripts/run.sh": b"echo\n",
    "skills/web/prompts/draw.md": b"---\ndescription: Draw\n---\nDraw.\n",
    "skills/web/.hidden": b"x",
    "skills/other/SKILL.md": b"# other\n",
    "README.md": b"# not a skill\n",
}


@pytest.fixture
def repo(depot: Depot) -> Path:
    folder = depot.world.mirror / "anthropics" / "skills"
    make_repo(folder, WEB)
    return folder


@pytest.mark.parametrize("function", FROM_REGISTRY)
def test_a_published_worker_is_installed_and_listed_at_once(depot: Depot, function: str) -> None:
    depot.world.publish("db", "1.2.3", V1)

    reply = depot.call(function, worker="db")

    assert reply == {
        "namespace": "db",
        "skills_written": ["SKILL.md", "get.md"],
        "prompts_written": ["ask"],
        "files_written": ["run.py"],
        "source": {"kind": "registry", "worker": "db", "tag": "latest"},
        "new_facts": {"scripts": ["run.py (python)"]},
    }
    assert depot.ids() == ["db", "db/get"]
    assert depot.title("db") == "db one"
    assert depot.call("prompts::get", name="ask")["description"] == "Ask the database"
    schema = depot.call("engine::functions::info", function_id=function)["response_schema"]
    jsonschema.validate(reply, schema)


@pytest.mark.parametrize("function", FROM_REPO)
def test_a_folder_of_a_repository_is_installed_and_listed_at_once(
    depot: Depot, repo: Path, function: str
) -> None:
    reply = depot.call(function, repo=GITHUB, skill="web")

    assert reply == {
        "namespace": "web",
        "skills_written": ["SKILL.md"],
        "prompts_written": ["draw"],
        "files_written": ["scripts/run.sh"],
        "source": {
            "kind": "repo",
            "repo": GITHUB,
            "skill": "web",
            "branch": "main",
            "commit": git(repo, "rev-parse", "HEAD"),
        },
        "new_facts": {"scripts": ["scripts/run.sh (sh)"]},
    }
    assert depot.ids() == ["web"]
    (left_out,) = [row for row in depot.findings("skipped") if row["subject"] == "web/.hidden"]
    assert "dot file" in left_out["reason"]


def test_the_record_names_the_source_what_it_resolved_to_and_every_hash(depot: Depot, repo: Path) -> None:
    depot.world.publish("db", "1.2.3", V1)

    depot.call("skills::download", worker="db", tag="latest")
    depot.call("skills::download", repo=GITHUB, skill="web")

    lock = json.loads((depot.folder / "skills.lock.json").read_text())
    assert lock["version"] == 1
    db, web = lock["namespaces"]["db"], lock["namespaces"]["web"]
    assert (db["source"], db["resolved"], db["by"]) == (
        {"kind": "registry", "worker": "db", "tag": "latest", "registry": depot.world.registry_url},
        "1.2.3",
        "call",
    )
    assert web["resolved"] == web["source"]["commit"] == git(repo, "rev-parse", "HEAD")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", db["installed_at"])
    assert db["files"] == hashes(contents(depot.folder / "db"))


@pytest.mark.parametrize("function", FROM_REGISTRY)
def test_a_version_or_a_tag_can_be_named(depot: Depot, function: str) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.world.publish("db", "2.0.0", V2)
    depot.world.publish("db", "3.0.0-rc.1", {**V2, "skills/SKILL.md": "# db three\n"}, tag="next")

    pinned = depot.call(function, worker="db", version="1.0.0")
    assert pinned["source"] == {"kind": "registry", "worker": "db", "version": "1.0.0"}
    assert depot.title("db") == "db one"

    tagged = depot.call(function, worker="db", tag="next")
    assert tagged["source"] == {"kind": "registry", "worker": "db", "tag": "next"}
    assert depot.title("db") == "db three"


def test_a_branch_may_be_a_tag_or_a_commit(depot: Depot, repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "tag", "v1")
    git(repo, "branch", "old/one")
    last = commit(repo, {"skills/web/SKILL.md": b"# newer\n"})

    for branch, expected in (("v1", first), ("old/one", first), (first, first), ("main", last)):
        reply = depot.call("skills::download", repo=GITHUB, skill="web", branch=branch)

        assert (reply["source"]["branch"], reply["source"]["commit"]) == (branch, expected)
        assert depot.title("web") == ("newer" if expected == last else "web")


def test_fields_that_are_null_or_blank_are_not_there(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)

    reply = depot.call(
        "skills::download", worker=" db ", version=None, tag="", repo=None, skill=" ", branch=""
    )

    assert reply["source"] == {"kind": "registry", "worker": "db", "tag": "latest"}


@pytest.mark.parametrize("function", EITHER)
@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({}, "there is nothing to download"),
        ({"version": "1.0.0"}, "'version' needs 'worker'"),
        ({"tag": "latest"}, "'tag' needs 'worker'"),
        ({"repo": GITHUB}, "'repo' needs 'skill'"),
        ({"skill": "web"}, "'skill' needs 'repo'"),
        ({"branch": "main"}, "'branch' needs 'repo'"),
        ({"worker": "db", "repo": GITHUB, "skill": "web"}, "'worker' and 'repo' do not go together"),
        ({"worker": "db", "branch": "main"}, "'worker' and 'branch' do not go together"),
        ({"repo": GITHUB, "skill": "web", "tag": "latest"}, "'tag' and 'repo' do not go together"),
    ],
)
def test_mixed_and_half_requests_say_which_fields_go_together(
    depot: Depot, function: str, payload: dict[str, Any], problem: str
) -> None:
    sentence = depot.refusal(function, payload)

    assert sentence.startswith(f"D311 invalid_input: {problem}: {RULE}.")
    assert not depot.folder.exists()


@pytest.mark.parametrize("function", FROM_REGISTRY)
def test_a_version_and_a_tag_together_are_refused(depot: Depot, function: str) -> None:
    sentence = depot.refusal(function, worker="db", version="1.0.0", tag="latest")

    assert sentence.startswith("D311 invalid_input: pass either version or tag, not both.")


@pytest.mark.parametrize(
    ("function", "payload", "field"),
    [
        ("directory::skills::download_from_registry", {}, "worker"),
        ("directory::skills::download_from_registry", {"worker": 7}, "worker"),
        ("directory::skills::download_from_registry", {"worker": "db", "tag": ["latest"]}, "tag"),
        ("directory::skills::download_from_repo", {"skill": "web"}, "repo"),
        ("directory::skills::download_from_repo", {"repo": GITHUB}, "skill"),
        ("directory::skills::download_from_repo", {"repo": GITHUB, "skill": {}}, "skill"),
        ("directory::skills::download", {"worker": True}, "worker"),
        ("skills::download", {"repo": GITHUB, "skill": "web", "branch": 1}, "branch"),
    ],
)
def test_a_missing_or_wrong_field_is_named(
    depot: Depot, function: str, payload: dict[str, Any], field: str
) -> None:
    assert depot.refusal(function, payload).startswith(f"D100 invalid_input: field '{field}' must be ")


def test_files_of_the_answer_replace_those_of_the_same_path_and_others_stay(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.world.publish("db", "2.0.0", V2)
    depot.call("skills::download", worker="db", version="1.0.0")
    put(depot.folder, {"db/get.md": b"# edited\n", "db/own.md": b"# own\n"})

    reply = depot.call("skills::download", worker="db")

    assert reply["skills_written"] == ["SKILL.md", "get.md", "set.md"]
    assert depot.ids() == ["db", "db/get", "db/own", "db/set"]
    assert depot.title("db/get") == "get two"
    assert depot.title("db/own") == "own"


def test_prompts_of_the_registry_become_files_with_front_matter(depot: Depot) -> None:
    schema = {"type": "object", "properties": {"table": {"type": "string"}}, "required": ["table"]}
    text = f"---\nname: ask-db\ndescription: 'Ask: all of it'\nargs_schema: {json.dumps(schema)}\n---\nAsk.\n"
    depot.world.publish("db", "1.0.0", {"prompts/any.md": text})

    reply = depot.call("skills::download", worker="db")

    assert (reply["skills_written"], reply["prompts_written"]) == ([], ["ask-db"])
    (prompt,) = depot.call("prompts::mcp-list")["prompts"]
    assert prompt["description"] == "Ask: all of it"
    assert prompt["arguments"] == [{"name": "table", "required": True}]
    assert depot.call("directory::prompts::get", name="ask-db")["body"] == "Ask.\n"


def test_downloads_at_the_same_time_leave_one_whole_set(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.world.publish("db", "2.0.0", V2)
    versions = ["1.0.0", "2.0.0"] * 4
    replies: list[Any] = []

    def download(version: str) -> None:
        replies.append(depot.call("skills::download", worker="db", version=version))

    threads = [threading.Thread(target=download, args=[version]) for version in versions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    # Every caller named the version, so none is refused, and the last one counts.
    assert len(replies) == len(versions)
    entry = depot.world.lock()["db"]
    there = hashes(contents(depot.folder / "db"))
    # What only the other version has stays where it was.
    assert {path: there[path] for path in entry["files"]} == entry["files"]
    assert entry["resolved"] in versions


QUICK_START = """
iii trigger --function-id=skills::download \
  --payload='{"worker": "agent-memory", "version": "1.2.3"}'

iii trigger --function-id=skills::download \
  --payload='{"worker": "agent-memory", "tag": "latest"}'

iii trigger --function-id=skills::download \
  --payload='{
    "repo": "https://github.com/anthropics/skills",
    "skill": "frontend-design"
  }'
"""


def test_the_quick_start_of_v0_4_works_as_printed(depot: Depot) -> None:
    depot.world.publish("agent-memory", "1.2.3", V1)
    make_repo(
        depot.world.mirror / "anthropics" / "skills",
        {"skills/frontend-design/SKILL.md": b"---\nname: frontend-design\n---\n# Design\n"},
    )

    done = subprocess.run(
        ["sh", "-e", "-c", f'iii() {{ "{COMMAND}" "$@"; }}\n{QUICK_START}'],
        env=shell_environment(depot.url),
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
    )

    assert done.returncode == 0, done.stderr
    replies = [json.loads(text) for text in re.split(r"(?<=^})\n", done.stdout, flags=re.MULTILINE) if text]
    assert [reply["namespace"] for reply in replies] == ["agent-memory", "agent-memory", "frontend-design"]
    for reply in replies:
        assert {"namespace", "skills_written", "prompts_written", "source"} <= reply.keys()
    assert depot.ids() == ["agent-memory", "agent-memory/get", "frontend-design"]
    assert depot.call("directory::skills::get", id="frontend-design")["body"] == "# Design\n"


def test_a_download_makes_the_folder(start: Callable[..., Depot]) -> None:
    depot = start()
    depot.world.publish("db", "1.0.0", V1)
    assert not depot.folder.exists()
    assert depot.ids() == []

    depot.call("skills::download", worker="db")

    assert depot.ids() == ["db", "db/get"]


@pytest.mark.parametrize("function", [*EITHER, *FROM_REGISTRY[2:], *FROM_REPO[2:]])
def test_the_schema_describes_what_it_takes(depot: Depot, function: str) -> None:
    info = depot.call("engine::functions::info", function_id=function)

    assert info["description"]
    registry = {"worker", "version", "tag"} if function not in FROM_REPO[2:] else set[str]()
    repo = {"repo", "skill", "branch"} if function not in FROM_REGISTRY[2:] else set[str]()
    assert set(info["request_schema"]["properties"]) == registry | repo
