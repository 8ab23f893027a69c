"""Downloads by functions from every kind of source that callers may use, inside an engine and joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.contract.requirements import requirement
from tests.install.test_direct_files import PDF, Host, tarred, zipped
from tests.support.git import make_repo
from tests.support.registry import publish_worker

from iii_directory.registry_server.registry_http import RegistryServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.reader import Reader

GITHUB = "https://github.com/team/skills"
KIT = {"kit/pdf/SKILL.md": PDF, "kit/pdf/run.sh": b"#!/bin/sh\n", "kit/mail/SKILL.md": b"# Mail\n"}


@requirement("downloads.sources")
@pytest.mark.parametrize("function", ["directory::skills::download_from_repo", "skills::download"])
def test_a_skill_is_installed_from_a_repository(
    start: Callable[..., Reader], tmp_path: Path, function: str
) -> None:
    make_repo(
        tmp_path / "mirror/team/skills", {"skills/pdf/SKILL.md": PDF, "skills/pdf/run.sh": b"#!/bin/sh\n"}
    )
    directory = start(repo_mirrors={"https://github.com/": f"{tmp_path}/mirror/"}, allow_file_repos=True)

    reply = directory.call(function, repo=GITHUB, skill="pdf")

    assert (reply["namespace"], reply["skills_written"]) == ("pdf", ["SKILL.md"])
    assert reply["source"]["kind"] == "repo"
    assert "# PDF" in directory.call("directory::skills::get", id="pdf")["body"]


@requirement("downloads.sources")
@pytest.mark.parametrize("place_of_it", ["kit.zip", "kit.tar.gz", "pdf/SKILL.md"])
def test_a_skill_is_installed_from_a_file_at_an_address(
    start: Callable[..., Reader], place_of_it: str
) -> None:
    directory = start(allow_private_repos=True)
    files = {"/kit.zip": zipped(KIT), "/kit.tar.gz": tarred(KIT), "/pdf/SKILL.md": PDF}

    with Host(dict(files)) as host:
        address = f"{host.url}/{place_of_it}"
        reply = directory.call("directory::skills::download_from_repo", repo=address, skill="pdf")

    assert reply["source"] == {"kind": "file", "url": address, "skill": "pdf"}
    assert "# PDF" in directory.call("directory::skills::get", id="pdf")["body"]
    assert "pdf" in {row["id"] for row in directory.call("directory::skills::list")["skills"]}


@requirement("downloads.sources")
def test_a_worker_is_installed_from_the_registry(start: Callable[..., Reader], tmp_path: Path) -> None:
    publish_worker(tmp_path, tmp_path / "registry", "mailer", "1.0.0", {"skills/SKILL.md": "# Mailer\n"})

    with RegistryServer(tmp_path / "registry") as registry:
        directory = start(registry_url=registry.url)
        reply = directory.call("directory::skills::download_from_registry", worker="mailer")

    assert reply["source"]["kind"] == "registry"
    assert directory.call("directory::skills::get", id="mailer")["title"] == "Mailer"


@requirement("downloads.sources")
def test_what_a_download_can_newly_do_is_in_its_report(start: Callable[..., Reader], tmp_path: Path) -> None:
    make_repo(tmp_path / "mirror/team/skills", {"skills/pdf/SKILL.md": PDF + b"Read https://pdf.example/x\n"})
    directory = start(repo_mirrors={"https://github.com/": f"{tmp_path}/mirror/"}, allow_file_repos=True)

    reply = directory.call("directory::skills::download_from_repo", repo=GITHUB, skill="pdf")

    assert reply["new_facts"] == {"hosts": ["pdf.example"]}
