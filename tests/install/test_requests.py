"""What may be downloaded."""

from __future__ import annotations

from typing import Any

import pytest

from iii_directory.errors import DirectoryError
from iii_directory.install.requests import RepoRequest, any_download, registry_download, repo_download
from iii_directory.registry.registry_messages import WorkerRequest

REPO = "https://github.com/anthropics/skills"


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"worker": "db"}, WorkerRequest("db", tag="latest")),
        ({"worker": " db ", "tag": "latest\n"}, WorkerRequest("db", tag="latest")),
        ({"worker": "db", "version": "1.2.3"}, WorkerRequest("db", version="1.2.3")),
        ({"worker": "db", "repo": None, "skill": ""}, WorkerRequest("db", tag="latest")),
        ({"repo": REPO, "skill": "x"}, RepoRequest(REPO, "x", "main")),
        (
            {"repo": REPO, "skill": "x", "branch": "dev", "_caller_worker_id": "w"},
            RepoRequest(REPO, "x", "dev"),
        ),
    ],
)
def test_either_set_of_fields_is_taken(payload: dict[str, Any], expected: Any) -> None:
    assert any_download(payload, allow_file=False) == expected


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ({}, "nothing to download"),
        ({"repo": REPO, "skill": "x", "worker": "db"}, "'worker' and 'repo' do not go together"),
        ({"worker": "db", "branch": "main"}, "'worker' and 'branch'"),
        ({"repo": REPO, "skill": "x", "tag": "latest"}, "'tag' and 'repo'"),
        ({"repo": REPO}, "'repo' needs 'skill'"),
        ({"skill": "x"}, "'skill' needs 'repo'"),
        ({"branch": "x"}, "'branch' needs 'repo'"),
        ({"version": "1.0.0"}, "'version' needs 'worker'"),
        ({"tag": "latest"}, "'tag' needs 'worker'"),
    ],
)
def test_mixed_or_half_sets_say_which_fields_go_together(payload: dict[str, Any], says: str) -> None:
    with pytest.raises(
        DirectoryError, match=f"^D311 invalid_input: .*{says}.*worker.*repo and skill.*not both"
    ):
        any_download(payload, allow_file=False)


def test_version_and_tag_together_are_refused() -> None:
    with pytest.raises(DirectoryError, match=r"^D311 .*not both"):
        any_download({"worker": "db", "version": "1.0.0", "tag": "latest"}, allow_file=False)


@pytest.mark.parametrize("field", ["worker", "version", "tag", "repo", "skill", "branch"])
def test_a_field_of_the_wrong_type_is_named(field: str) -> None:
    with pytest.raises(DirectoryError, match=f"^D100 .*'{field}'"):
        any_download({"worker": "db", field: 7}, allow_file=False)


def test_the_explicit_forms_name_what_they_miss_and_ignore_the_rest() -> None:
    assert registry_download({"worker": "db", "repo": 7}) == WorkerRequest("db", tag="latest")
    assert repo_download({"repo": REPO, "skill": "x", "tag": 7}, allow_file=False) == RepoRequest(REPO, "x")
    with pytest.raises(DirectoryError, match=r"^D100 .*'worker'"):
        registry_download({})
    with pytest.raises(DirectoryError, match=r"^D100 .*'repo'"):
        repo_download({"skill": "x"}, allow_file=False)
    with pytest.raises(DirectoryError, match=r"^D100 .*'skill'"):
        repo_download({"repo": REPO}, allow_file=False)
