"""What callers may ask to be downloaded, checked before anything is fetched. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iii_directory.documents.fields import optional_word
from iii_directory.errors import BAD_REGISTRY_REQUEST, DirectoryError, invalid_field
from iii_directory.install.repos import RepoRequest, repo_request
from iii_directory.registry.requests import WorkerRequest, worker_request

if TYPE_CHECKING:
    from collections.abc import Mapping

_REGISTRY_FIELDS: Final = ("worker", "version", "tag")
_REPO_FIELDS: Final = ("repo", "skill", "branch")
_RULE: Final = "pass either worker with version or tag, or repo and skill with branch, not both"

DownloadRequest = WorkerRequest | RepoRequest


def registry_download(payload: Mapping[str, Any]) -> WorkerRequest:
    """``{worker, version? xor tag?}``."""
    worker = optional_word(payload, "worker")
    if worker is None:
        raise invalid_field("worker", "the name of a worker in the registry")
    return worker_request(worker, optional_word(payload, "version"), optional_word(payload, "tag"))


def repo_download(payload: Mapping[str, Any], *, allow_file: bool) -> RepoRequest:
    """``{repo, skill, branch?}``."""
    repo, skill = optional_word(payload, "repo"), optional_word(payload, "skill")
    if repo is None:
        raise invalid_field("repo", "the address of a git repository")
    if skill is None:
        raise invalid_field("skill", "the name of a folder below skills/ in the repository")
    return repo_request(repo, skill, optional_word(payload, "branch"), allow_file=allow_file)


def any_download(payload: Mapping[str, Any], *, allow_file: bool) -> DownloadRequest:
    """Either of the two; mixing them, or half of one, says which fields go together."""
    registry = [field for field in _REGISTRY_FIELDS if optional_word(payload, field) is not None]
    repo = [field for field in _REPO_FIELDS if optional_word(payload, field) is not None]
    if registry and repo:
        raise _mixed(f"'{registry[0]}' and '{repo[0]}' do not go together")
    if "worker" in registry:
        return registry_download(payload)
    if "repo" in repo and "skill" in repo:
        return repo_download(payload, allow_file=allow_file)
    if registry:
        raise _mixed(f"'{registry[0]}' needs 'worker'")
    if repo:
        missing = "skill" if "repo" in repo else "repo"
        raise _mixed(f"'{repo[0]}' needs '{missing}'")
    raise _mixed("there is nothing to download")


def _mixed(problem: str) -> DirectoryError:
    return DirectoryError(BAD_REGISTRY_REQUEST, f"{problem}: {_RULE}")
