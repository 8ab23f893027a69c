"""A registry of one's own, from the command line."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.commands import run, running
from tests.support.installs import put

from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    from pathlib import Path

WORKER = {
    "worker.yaml": b"name: db\ndescription: Tables\n",
    "README.md": b"# db\n",
    "skills/SKILL.md": b"# db\n",
    "prompts/ask.md": b"---\ndescription: Ask\n---\nAsk.\n",
}


def publish(folder: Path, version: str, *options: str) -> Any:
    arguments = ("worker", "--registry", "registry", "--version", version, *options)
    return run("registry", "add", *arguments, cwd=folder)


def get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)


def test_add_publishes_a_version_that_never_changes(tmp_path: Path) -> None:
    put(tmp_path / "worker", {**WORKER, "skills/.hidden": b"x"})

    done = publish(tmp_path, "1.0.0")
    assert (done.returncode, done.stdout) == (0, "published db 1.0.0 (latest): 4 files\n")
    assert "left out: skills/.hidden" in done.stderr
    assert (tmp_path / "registry" / "db" / "1.0.0" / "skills" / "SKILL.md").read_bytes() == b"# db\n"

    again = publish(tmp_path, "1.0.0")
    assert (again.returncode, again.stdout) == (0, "was published before: db 1.0.0 (latest): 4 files\n")

    put(tmp_path / "worker", {"README.md": b"# changed\n"})
    changed = publish(tmp_path, "1.0.0")
    assert changed.returncode == 1
    assert changed.stderr == (
        "iii-directory: D311 invalid_input: version 1.0.0 of db is published already, "
        "and versions never change.\n"
    )


def test_add_says_under_which_ids_the_skills_will_be(tmp_path: Path) -> None:
    skill = b"---\nname: mailer\ndescription: Sends mail.\n---\n# Mailer\n"
    put(tmp_path / "worker", {"worker.yaml": b"name: post\n", "skills/mailer/SKILL.md": skill})

    done = publish(tmp_path, "1.0.0")

    assert "a worker's skills are below its name: post/mailer; " in done.stderr
    with RegistryServer(tmp_path / "registry") as server:
        (tmp_path / "config.yaml").write_text(f"registry_url: {server.url}\n", encoding="utf-8")
        run("skills", "add", "post", cwd=tmp_path)
    assert run("skills", "show", "post/mailer", cwd=tmp_path).returncode == 0


def test_a_tag_moves_alone_and_json_has_everything(tmp_path: Path) -> None:
    put(tmp_path / "worker", WORKER)
    publish(tmp_path, "1.0.0")
    put(tmp_path / "worker", {"README.md": b"# newer\n"})

    done = publish(tmp_path, "2.0.0-rc.1", "--tag", "next", "--json")

    assert json.loads(done.stdout) == {
        "worker": "db",
        "version": "2.0.0-rc.1",
        "tags": {"latest": "1.0.0", "next": "2.0.0-rc.1"},
        "new": True,
        "files": sorted(WORKER),
        "left_out": [],
    }


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (("worker", "--registry", "registry"), 2, "--version"),
        (("worker", "--version", "1.0.0"), 2, "--registry"),
        (("worker", "--registry", "registry", "--version", "one"), 1, "'one' is not a semantic version"),
        (
            ("nowhere", "--registry", "registry", "--version", "1.0.0"),
            1,
            "that path is not a folder to publish",
        ),
    ],
)
def test_what_cannot_be_published_is_said(
    tmp_path: Path, arguments: tuple[str, ...], code: int, fragment: str
) -> None:
    put(tmp_path / "worker", WORKER)

    done = run("registry", "add", *arguments, cwd=tmp_path)

    assert done.returncode == code
    assert fragment in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "registry").exists()


def test_list_and_search_show_a_folder_of_workers_to_people_and_programs(tmp_path: Path) -> None:
    put(tmp_path / "worker", WORKER)
    publish(tmp_path, "1.0.0")
    put(tmp_path / "worker", {"worker.yaml": b"name: mailer\ndescription: Sends mail\n"})
    publish(tmp_path, "0.1.0")

    listed = run("registry", "list", "--registry", "registry", cwd=tmp_path)
    found = run("registry", "search", "mail", "--registry", "registry", "--json", cwd=tmp_path)
    nothing = run("registry", "search", "zzzzz", "--registry", "registry", cwd=tmp_path)

    rows = [line.split("\t") for line in listed.stdout.splitlines()]
    assert [(row[0], row[1], row[4]) for row in rows] == [
        ("db", "1.0.0", "Tables"),
        ("mailer", "0.1.0", "Sends mail"),
    ]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT[0-9:.]+Z", row[2]) for row in rows)
    (mailer,) = json.loads(found.stdout)["workers"]
    assert (mailer["name"], mailer["versions"], mailer["yanked"]) == ("mailer", ["0.1.0"], [])
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "no published worker matches" in nothing.stderr


def test_list_and_search_ask_the_registry_of_the_configuration(tmp_path: Path) -> None:
    put(tmp_path / "worker", WORKER)
    publish(tmp_path, "1.0.0")
    with running("registry", "serve", "registry", "--port", "0", cwd=tmp_path) as server:
        url = server.wait_for("Ctrl-C stops it").split(" at ")[1].removesuffix(". Ctrl-C stops it.")
        (tmp_path / "config.yaml").write_text(f"registry_url: {url}\n", encoding="utf-8")

        listed = run("registry", "list", cwd=tmp_path)
        found = run("registry", "search", "tables", cwd=tmp_path)

    assert listed.stdout == found.stdout == "db\t1.0.0\t0\tTables\n"
    away = run("registry", "list", cwd=tmp_path)
    assert (away.returncode, away.stdout, away.stderr.count("\n")) == (1, "", 1)
    assert "D320" in away.stderr


def test_a_yanked_version_is_not_offered_and_still_served_to_those_who_recorded_it(tmp_path: Path) -> None:
    put(tmp_path / "worker", WORKER)
    publish(tmp_path, "1.0.0")
    publish(tmp_path, "1.1.0")

    done = run("registry", "yank", "db", "1.1.0", "--registry", "registry", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "yanked: db 1.1.0; latest is 1.0.0\n")
    with running("registry", "serve", "registry", "--port", "0", cwd=tmp_path) as server:
        url = server.wait_for("Ctrl-C stops it").split(" at ")[1].removesuffix(". Ctrl-C stops it.")
        assert get(f"{url}/w")["workers"][0]["version"] == "1.0.0"
        assert get(f"{url}/w/db?version=1.1.0")["worker"]["version"] == "1.1.0"
        run("registry", "yank", "db", "1.0.0", "--registry", "registry", cwd=tmp_path)
        assert get(f"{url}/w")["workers"] == []

    undone = run("registry", "yank", "db", "1.1.0", "--registry", "registry", "--undo", cwd=tmp_path)
    assert undone.stdout == "offered again: db 1.1.0; latest is 1.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("db", "9.9.9"), "no version '9.9.9' of 'db': it has 1.0.0"),
        (("nobody", "1.0.0"), "no version '1.0.0' of 'nobody': it does not have that worker"),
        (("../x", "1.0.0"), "it does not have that worker"),
    ],
)
def test_what_was_never_published_cannot_be_yanked(
    tmp_path: Path, arguments: tuple[str, str], said: str
) -> None:
    put(tmp_path / "worker", WORKER)
    publish(tmp_path, "1.0.0")

    done = run("registry", "yank", *arguments, "--registry", "registry", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr


def test_a_running_server_shows_new_versions_at_once_and_skills_are_installed_from_it(tmp_path: Path) -> None:
    put(tmp_path / "worker", WORKER)
    with running("registry", "serve", "registry", "--port", "0", cwd=tmp_path) as server:
        line = server.wait_for("Ctrl-C stops it")
        url = line.split(" at ")[1].removesuffix(". Ctrl-C stops it.")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
        assert get(f"{url}/w")["workers"] == []

        publish(tmp_path, "1.0.0")
        assert [(row["name"], row["version"]) for row in get(f"{url}/w")["workers"]] == [("db", "1.0.0")]
        publish(tmp_path, "1.1.0")
        assert get(f"{url}/w/db")["worker"]["version"] == "1.1.0"

        (tmp_path / "config.yaml").write_text(f"registry_url: {url}\n", encoding="utf-8")
        installed = run("skills", "add", "db", cwd=tmp_path)
        assert installed.stdout == "installed db 1.1.0: 1 document, 1 prompt\n"
        assert get(f"{url}/w")["workers"][0]["total_downloads"] == 1
        assert server.stop() == 0

    assert "registry does not exist yet" in server.output
    assert server.lines[-1] == "stopped"
    assert "Traceback" not in server.output


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6 here")
def test_it_listens_where_it_is_told_to(tmp_path: Path) -> None:
    with running("registry", "serve", ".", "--host", "::1", "--port", "0", cwd=tmp_path) as server:
        url = server.wait_for("Ctrl-C stops it").split(" at ")[1].removesuffix(". Ctrl-C stops it.")

        assert url.startswith("http://[::1]:")
        assert get(f"{url}/w")["workers"] == []


def test_a_port_in_use_is_said_with_who_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        done = run("registry", "serve", "registry", "--port", str(port), cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr.startswith(f"iii-directory: port {port} on 127.0.0.1 is in use")
    assert done.stderr.count("\n") == 1
