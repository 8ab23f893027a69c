"""Publishing into a registry folder, and what it holds afterwards."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.installs import contents, put
from tests.support.registry import publish_worker

from iii_directory import limits
from iii_directory.errors import DirectoryError
from iii_directory.registry_server.published_workers import RegistryStore, load_worker
from iii_directory.registry_server.release import publish

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"skills/SKILL.md": "# db\n", "README.md": "# readme\n"}


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "registry"


def add(tmp_path: Path, registry: Path, version: str, tag: str | None = None, **files: str) -> dict[str, str]:
    wanted = {**FILES, "skills/v.md": version, **files}
    return publish_worker(tmp_path, registry, "db", version, wanted, tag=tag).tags


def test_a_published_version_lies_in_the_folder_as_it_is(tmp_path: Path, registry: Path) -> None:
    files = {
        **FILES,
        "skills/a/b.md": "b",
        "prompts/p.md": "---\ndescription: d\n---\nText\n",
        "notes.txt": "not",
    }

    done = publish_worker(tmp_path, registry, "db", "1.0.0", files, description="A database")

    assert done.is_new
    assert done.worker == "db"
    assert done.files == ("README.md", "prompts/p.md", "skills/SKILL.md", "skills/a/b.md", "worker.yaml")
    assert contents(registry / "db" / "1.0.0").keys() == set(done.files)
    assert sorted(entry.name for entry in (registry / "db").iterdir()) == ["1.0.0", "tags.json"]
    store = RegistryStore(registry)
    assert store.bundle("db", "1.0.0") == {
        "name": "db",
        "version": "1.0.0",
        "skills": [{"path": "SKILL.md", "content": "# db\n"}, {"path": "a/b.md", "content": "b"}],
        "prompts": [{"name": "p", "description": "d", "content": "Text\n"}],
    }
    assert store.detail("db", "1.0.0")["worker"]["readme"] == "# readme\n"
    assert store.detail("db", "1.0.0")["worker"]["description"] == "A database"


def test_the_name_is_that_of_the_folder_when_worker_yaml_has_none(tmp_path: Path, registry: Path) -> None:
    put(tmp_path, {"my-worker/skills/SKILL.md": b"x"})

    assert publish(tmp_path / "my-worker", registry, "1.0.0").worker == "my-worker"


def test_latest_is_the_highest_stable_version(tmp_path: Path, registry: Path) -> None:
    assert add(tmp_path, registry, "1.0.0")["latest"] == "1.0.0"
    assert add(tmp_path, registry, "1.10.0")["latest"] == "1.10.0"
    assert add(tmp_path, registry, "1.9.0")["latest"] == "1.10.0"
    assert add(tmp_path, registry, "2.0.0-rc.1")["latest"] == "1.10.0"
    assert add(tmp_path, registry, "2.0.0")["latest"] == "2.0.0"


def test_with_a_tag_only_that_tag_moves(tmp_path: Path, registry: Path) -> None:
    add(tmp_path, registry, "1.0.0")

    assert add(tmp_path, registry, "2.0.0", "beta") == {"latest": "1.0.0", "beta": "2.0.0"}
    assert add(tmp_path, registry, "1.1.0") == {"latest": "1.1.0", "beta": "2.0.0"}
    assert add(tmp_path, registry, "1.0.0", "latest") == {"latest": "1.0.0", "beta": "2.0.0"}


def test_a_version_that_was_only_tagged_is_the_latest_without_another(tmp_path: Path, registry: Path) -> None:
    assert add(tmp_path, registry, "1.0.0", "beta") == {"latest": "1.0.0", "beta": "1.0.0"}
    assert RegistryStore(registry).resolve("db", "latest") == "1.0.0"


def test_a_worker_with_nothing_but_pre_releases_has_no_latest(tmp_path: Path, registry: Path) -> None:
    assert add(tmp_path, registry, "1.0.0-alpha") == {}
    store = RegistryStore(registry)
    assert store.resolve("db", "latest") is None
    assert store.resolve("db", "1.0.0-alpha") == "1.0.0-alpha"
    assert store.rows() == []


def test_a_published_version_never_changes(tmp_path: Path, registry: Path) -> None:
    add(tmp_path, registry, "1.0.0")
    before = contents(registry)

    with pytest.raises(DirectoryError, match=r"D311 .*never change"):
        add(tmp_path, registry, "1.0.0", **{"skills/SKILL.md": "# other\n"})
    assert contents(registry) == before


def test_publishing_again_is_not_an_error_and_may_add_a_tag(tmp_path: Path, registry: Path) -> None:
    add(tmp_path, registry, "1.0.0")

    assert add(tmp_path, registry, "1.0.0", "stable")["stable"] == "1.0.0"


@pytest.mark.parametrize("version", ["", "1", "v1.0.0", "latest", "../1.0.0", "1.0.0/x"])
def test_an_invalid_version_is_refused(tmp_path: Path, registry: Path, version: str) -> None:
    put(tmp_path, {"db/skills/SKILL.md": b"x"})

    with pytest.raises(DirectoryError, match=r"D311"):
        publish(tmp_path / "db", registry, version)
    assert not registry.exists()


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"notes.txt": b"only"},
        {"worker.yaml": b"name: ../up", "skills/a.md": b"x"},
        {"worker.yaml": b"name: [a]", "skills/a.md": b"x"},
        {"worker.yaml": b"- list", "skills/a.md": b"x"},
        {"worker.yaml": b"a: &x 1\nb: *x", "skills/a.md": b"x"},
        {"worker.yaml": b"x: 1\n" * 300_000, "skills/a.md": b"x"},
        {"skills/A.md": b"x", "skills/a.md": b"x"},
        {"skills/con.md": b"x"},
        {"skills/big.md": b"x" * (limits.MAX_BODY_BYTES + 1)},
        {"skills/big.txt": b"x" * (limits.MAX_BUNDLE_BYTES + 1)},
        {f"skills/{n}.md": b"x" for n in range(limits.MAX_BUNDLE_FILES + 1)},
        {"prompts/Bad Name.md": b"x"},
        {"prompts/a.md": b"---\nname: b\n---\n", "prompts/b.md": b"x"},
        {"prompts/a.md": b"---\nname: 7\n---\n"},
    ],
    ids=lambda files: ascii(next(iter(files), "nothing")),
)
def test_what_could_not_be_installed_is_not_published(
    tmp_path: Path, registry: Path, files: dict[str, bytes]
) -> None:
    (tmp_path / "db").mkdir()
    put(tmp_path / "db", files)

    with pytest.raises(DirectoryError, match=r"D311|D340"):
        publish(tmp_path / "db", registry, "1.0.0")
    assert not registry.exists()


@pytest.mark.parametrize(
    "place", ["skills/link.md", "skills/dir", "skills", "prompts", "worker.yaml", "README.md"]
)
def test_links_are_not_published(tmp_path: Path, registry: Path, place: str) -> None:
    put(tmp_path, {"outside/secret.md": b"secret", "db/skills/a.md": b"x", "db/prompts/p.md": b"p"})
    link = tmp_path / "db" / place
    if link.is_dir():
        for inner in link.iterdir():
            inner.unlink()
        link.rmdir()
    link.symlink_to(tmp_path / "outside" / ("" if "." not in place else "secret.md"))

    with pytest.raises(DirectoryError, match=r"D340 .*link"):
        publish(tmp_path / "db", registry, "1.0.0")
    assert not registry.exists()


def test_a_pipe_is_not_published(tmp_path: Path, registry: Path) -> None:
    put(tmp_path, {"db/skills/a.md": b"x"})
    os.mkfifo(tmp_path / "db" / "skills" / "pipe")

    with pytest.raises(DirectoryError, match=r"D340"):
        publish(tmp_path / "db", registry, "1.0.0")


def test_a_folder_that_is_not_there_is_an_error_without_its_path(tmp_path: Path, registry: Path) -> None:
    with pytest.raises(DirectoryError, match=r"D311") as error:
        publish(tmp_path / "nowhere", registry, "1.0.0")
    assert str(tmp_path) not in str(error.value)


def test_hidden_and_binary_files_are_left_out_and_named(tmp_path: Path, registry: Path) -> None:
    put(tmp_path, {"db/skills/a.md": b"x", "db/skills/.env": b"s", "db/skills/logo.png": b"\x89PNG\xff"})

    done = publish(tmp_path / "db", registry, "1.0.0")

    assert done.left_out == ("skills/.env", "skills/logo.png")
    assert contents(registry / "db" / "1.0.0").keys() == {"skills/a.md"}


def test_a_disk_that_refuses_is_an_error_without_a_path(tmp_path: Path) -> None:
    put(tmp_path, {"db/skills/a.md": b"x", "file": b""})

    with pytest.raises(DirectoryError, match=r"D340 .*nothing was published") as error:
        publish(tmp_path / "db", tmp_path / "file" / "registry", "1.0.0")
    assert str(tmp_path) not in str(error.value)


def test_several_publishers_at_once_lose_nothing(tmp_path: Path, registry: Path) -> None:
    versions = [f"1.{n}.0" for n in range(8)]
    errors: list[BaseException] = []

    def one(version: str) -> None:
        try:
            add(tmp_path, registry, version, f"t{version[2]}")
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=one, args=(version,)) for version in versions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert errors == []
    store = RegistryStore(registry)
    assert sorted(store.versions("db")) == versions
    assert {tag: version for tag, version in store.tags("db").items() if tag != "latest"} == {
        f"t{version[2]}": version for version in versions
    }


def test_what_a_crashed_publisher_left_is_not_served_and_blocks_no_publisher(
    tmp_path: Path, registry: Path
) -> None:
    put(
        registry,
        {"db/.iii-directory/publish.work/skills/half.md": b"x", "db/.iii-directory/PUBLISH.lock": b""},
    )

    add(tmp_path, registry, "1.0.0")

    assert sorted(entry.name for entry in (registry / "db").iterdir()) == ["1.0.0", "tags.json"]


@pytest.mark.parametrize("tags", [b"", b"[]", b"{", b'{"latest": 7, "beta": "9.9.9"}'])
def test_tags_that_cannot_be_read_or_point_nowhere_are_ignored(
    tmp_path: Path, registry: Path, tags: bytes
) -> None:
    add(tmp_path, registry, "1.0.0")
    put(registry, {"db/tags.json": tags})

    assert RegistryStore(registry).tags("db") == {"latest": "1.0.0"}


def test_downloads_are_counted_and_survive(tmp_path: Path, registry: Path) -> None:
    add(tmp_path, registry, "1.0.0")
    for _ in range(11):
        RegistryStore(registry).count_download("db")

    assert RegistryStore(registry).row("db", "1.0.0")["total_downloads"] == 11


def test_a_nested_folder_called_skills_keeps_its_name(tmp_path: Path, registry: Path) -> None:
    add(tmp_path, registry, "1.0.0", **{"skills/skills/x.md": "x"})

    bundle = RegistryStore(registry).bundle("db", "1.0.0")

    assert bundle is not None
    assert "skills/skills/x.md" in [skill["path"] for skill in bundle["skills"]]


@pytest.mark.parametrize(
    "text", ["", "- a", "a: &x [1]\nb: *x", "a: !!python/object x", "a: [", "\0", "a: .nan"]
)
def test_a_worker_yaml_that_is_not_a_plain_mapping_is_ignored(text: str) -> None:
    assert load_worker(text) is None


def test_dates_in_a_worker_yaml_are_texts() -> None:
    found: Any = load_worker("published: 2026-01-01\n1: one\n")

    assert found == {"published": "2026-01-01", "1": "one"}


def test_a_changed_worker_yaml_is_read_again(tmp_path: Path, registry: Path) -> None:
    add(tmp_path, registry, "1.0.0")
    store = RegistryStore(registry)
    assert store.row("db", "1.0.0")["description"] is None
    put(registry, {"db/1.0.0/worker.yaml": b"description: by hand\n"})

    assert store.row("db", "1.0.0")["description"] == "by hand"


def test_a_registry_that_cannot_be_written_serves_without_counting(tmp_path: Path, registry: Path) -> None:
    add(tmp_path, registry, "1.0.0")
    (registry / "db" / "downloads").mkdir()
    store = RegistryStore(registry)

    store.count_download("db")

    assert store.downloads("db") == 0
    assert store.bundle("db", "1.0.0") is not None


def test_a_version_folder_made_by_hand_is_served_without_what_is_odd_in_it(registry: Path) -> None:
    put(registry, {"db/1.0.0/skills/a.md": b"a", "db/1.0.0/skills/b.bin": b"\xff", "db/notes/x.md": b"x"})
    (registry / "db" / "1.0.0" / "skills" / "link.md").symlink_to("/etc/passwd")
    store = RegistryStore(registry)

    bundle = store.bundle("db", "1.0.0")

    assert bundle is not None
    assert [skill["path"] for skill in bundle["skills"]] == ["a.md"]
    assert store.versions("db") == ["1.0.0"]
    assert store.detail("db", "1.0.0")["worker"]["description"] is None


def test_the_manifest_that_workers_have_for_the_engine_names_them(tmp_path: Path, registry: Path) -> None:
    put(tmp_path / "here", {"iii.worker.yaml": b"iii: v1\nname: mailer\n", "skills/SKILL.md": b"# Mail\n"})

    done = publish(tmp_path / "here", registry, "1.0.0", None)

    assert done.worker == "mailer"
    assert (registry / "mailer" / "1.0.0" / "worker.yaml").read_text() == "iii: v1\nname: mailer\n"
