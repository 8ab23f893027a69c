"""Skills in the folders of hosts: found where each host looks, kept current, and removed without a trace."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from iii_directory.documents.ids import COPY_MARKER
from iii_directory.errors import DirectoryError
from iii_directory.install.hosts import HOSTS, HostFolders, KnownHost, host_named

FOREIGN = ("pdf", "docx", "other")


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def tree(folder: Path) -> dict[str, str]:
    """Every entry below a folder: the bytes of files, the targets of links."""
    found: dict[str, str] = {}
    for below, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(below, name)
            kind = (
                f"-> {path.readlink()}"
                if path.is_symlink()
                else "folder"
                if path.is_dir()
                else path.read_text()
            )
            found[str(path.relative_to(folder))] = kind
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    put(tmp_path / "p/skills/pdf", SKILL_DOT_md="# PDF\n", scripts__run_DOT_sh="echo\n")
    (tmp_path / "p/skills/pdf/scripts/run.sh").chmod(0o755)
    (tmp_path / "home").mkdir()
    return tmp_path / "p"


def folders_of(project: Path) -> HostFolders:
    return HostFolders(project / "skills", project, project.parent / "home")


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
@pytest.mark.parametrize("is_user", [False, True])
def test_a_skill_is_found_where_the_host_looks(project: Path, host: KnownHost, is_user: bool) -> None:
    (placed,) = folders_of(project).place("pdf", [host], is_user=is_user)

    base = project.parent / "home" if is_user else project
    place = base / (host.user if is_user else host.project) / "pdf"
    assert placed.outcome == ("linked" if host.follows_links else "copied")
    assert (place / "SKILL.md").read_text() == "# PDF\n"
    assert os.access(place / "scripts/run.sh", os.X_OK)
    if place.is_symlink():
        assert not os.path.isabs(place.readlink())


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_links_and_copies_show_what_an_update_brought(project: Path, host: KnownHost) -> None:
    folders = folders_of(project)
    folders.place("pdf", [host])

    put(project / "skills/pdf", SKILL_DOT_md="# PDF 2\n", more_DOT_md="new\n")
    (project / "skills/pdf/scripts/run.sh").unlink()
    folders.refresh(["pdf"])

    place = project / host.project / "pdf"
    assert (place / "SKILL.md").read_text() == "# PDF 2\n"
    assert (place / "more.md").read_text() == "new\n"
    assert not (place / "scripts/run.sh").exists()


def test_a_folder_that_two_hosts_read_holds_what_both_can_read(project: Path) -> None:
    folders = folders_of(project)
    codex, cursor = host_named("codex"), host_named("cursor")

    assert [one.outcome for one in folders.place("pdf", [codex])] == ["linked"]
    assert [one.outcome for one in folders.place("pdf", [codex, cursor])] == ["copied"]
    assert [one.outcome for one in folders.place("pdf", [codex])] == ["current"]
    assert not (project / ".agents/skills/pdf").is_symlink()


def test_an_edited_copy_is_kept(project: Path) -> None:
    folders = folders_of(project)
    folders.place("pdf", [host_named("cursor")])
    copy = project / ".agents/skills/pdf"
    (copy / "SKILL.md").write_text("mine\n")
    put(project / "skills/pdf", SKILL_DOT_md="# PDF 2\n")

    assert [one.outcome for one in folders.refresh(["pdf"])] == ["kept"]
    assert [one.outcome for one in folders.take_away("pdf")] == ["kept"]
    assert tree(copy) == {"SKILL.md": "mine\n"}


def test_a_host_folder_that_leads_out_of_the_project_is_not_written_to(project: Path) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (project / ".claude").mkdir()
    (project / ".claude/skills").symlink_to(outside)

    with pytest.raises(DirectoryError, match="leads out of"):
        folders_of(project).place("pdf", [host_named("claude-code")])

    assert tree(outside) == {}


@pytest.mark.parametrize(
    "marker", ["{", "[]", '{"copy_of": "../x", "files": {"../../a": "b"}}', '{"copy_of": 1}']
)
def test_a_folder_with_a_marker_that_we_did_not_write_is_foreign(project: Path, marker: str) -> None:
    place = project / ".agents/skills/pdf"
    put(place, SKILL_DOT_md="theirs\n", **{COPY_MARKER.replace(".", "_DOT_"): marker})
    before = tree(place)
    folders = folders_of(project)

    assert [one.outcome for one in folders.place("pdf", [host_named("cursor")])] == ["refused"]
    assert folders.take_away("pdf") == []
    assert tree(place) == before


def test_a_name_with_a_path_in_it_is_refused(project: Path) -> None:
    with pytest.raises(DirectoryError, match="no skill"):
        folders_of(project).place("../skills/pdf", HOSTS)


def test_what_was_linked_goes_without_a_trace_in_a_thousand_folders(tmp_path: Path) -> None:
    for seed in range(1000):
        dice = random.Random(seed)
        project = tmp_path / str(seed)
        for name in ("pdf", "docx"):
            put(project / "p/skills" / name, SKILL_DOT_md=f"# {name}\n", a__b_DOT_md="x\n")
        put(project / "home", kept="x")
        _scatter(dice, project)
        before = tree(project)
        folders = HostFolders(project / "p/skills", project / "p", project / "home")

        for _ in range(dice.randint(1, 4)):
            _use(dice, folders)
        for name in ("pdf", "docx"):
            folders.take_away(name)

        assert tree(project) == before, seed


def _scatter(dice: random.Random, project: Path) -> None:
    """Put entries into hosts' folders that are not ours, some with the names of our skills."""
    for host in dice.sample(HOSTS, dice.randint(0, 5)):
        for base, inner in ((project / "p", host.project), (project / "home", host.user)):
            folder, name = base / inner, dice.choice(FOREIGN)
            if (folder / name).is_symlink() or (folder / name).exists():
                continue
            folder.mkdir(parents=True, exist_ok=True)
            kind = dice.choice(("folder", "file", "link", "broken"))
            if kind == "folder":
                put(folder / name, SKILL_DOT_md="theirs\n")
            elif kind == "file":
                (folder / name).write_text("theirs\n")
            else:
                (folder / name).symlink_to("/nowhere" if kind == "broken" else project / "home")


def _use(dice: random.Random, folders: HostFolders) -> None:
    skill = dice.choice(("pdf", "docx"))
    chosen = dice.sample(HOSTS, dice.randint(1, len(HOSTS)))
    act = dice.choice(("place", "place", "refresh", "take"))
    if act == "place":
        folders.place(skill, chosen, is_user=dice.random() < 0.5)
    elif act == "refresh":
        folders.refresh([skill])
    else:
        folders.take_away(skill, chosen)
