"""The rows about downloads: the only functions that write to the skills folder. Pure."""

from __future__ import annotations

from typing import Final

from iii_directory.worker.surfaces.registry import TAG, VERSION
from iii_directory.worker.surfaces.table import FunctionRow, obj, one_of_any, request, rows, text

_WORKER: Final = text("The name of a worker in the registry. Goes with version or tag.")
_REPO: Final = text("The address of a git repository: https://, ssh:// or git@. Goes with skill.")
_SKILL: Final = text("The folder below skills/ in the repository; also the namespace it is installed as.")
_BRANCH: Final = text("A branch, a tag or a full commit id; main by default. Goes with repo.")
_INSTALLED: Final = obj(
    {
        "namespace": text("The folder below the skills folder that was written."),
        "skills_written": rows({"type": "string"}, "The paths of the skills, below the namespace."),
        "prompts_written": rows({"type": "string"}, "The names of the prompts."),
        "files_written": rows({"type": "string"}, "The paths of other files: scripts, assets."),
        "source": one_of_any("Where it came from, with the version or tag, or the branch and the commit."),
    },
    optional=("files_written",),
)
_ALL_OR_NOTHING: Final = (
    "All or nothing; what it brings replaces files of the same path and leaves the others. "
)
_EITHER: Final = request(
    {"repo": _REPO, "skill": _SKILL, "branch": _BRANCH, "worker": _WORKER, "version": VERSION, "tag": TAG}
)

DOWNLOAD: Final = FunctionRow(
    "directory::skills::download",
    lambda h: h.downloads.download,
    "Install skills and prompts from one of two sources: {repo, skill, branch?} or {worker, version?|tag?}. "
    + _ALL_OR_NOTHING
    + "The two explicit functions, download_from_registry and download_from_repo, cannot be mixed up.",
    _EITHER,
    _INSTALLED,
)
FROM_REGISTRY: Final = FunctionRow(
    "directory::skills::download_from_registry",
    lambda h: h.downloads.from_registry,
    "Install a published worker's skills and prompts. Pass version for an exact one, or tag (latest). "
    + _ALL_OR_NOTHING
    + "To see first what there is, call directory::registry::workers::info.",
    request({"worker": _WORKER, "version": VERSION, "tag": TAG}, required=("worker",)),
    _INSTALLED,
)
FROM_REPO: Final = FunctionRow(
    "directory::skills::download_from_repo",
    lambda h: h.downloads.from_repo,
    "Install one folder of skills from a git repository. " + _ALL_OR_NOTHING + "The commit is recorded.",
    request({"repo": _REPO, "skill": _SKILL, "branch": _BRANCH}, required=("repo", "skill")),
    _INSTALLED,
)
ON_WORKER_ADDED: Final = FunctionRow(
    "directory::__on_worker_added",
    lambda h: h.downloads.on_worker_added,
    "Internal: fetches the skills of a worker that was just added.",
    one_of_any("The event of the engine's worker trigger; anything else is ignored."),
    obj({"ok": {"type": "boolean", "description": "Always true."}}),
    {"internal": True},
)
V04_DOWNLOAD: Final = FunctionRow(
    "skills::download",
    lambda h: h.downloads.download,
    "Install skills and prompts: {repo, skill, branch?} from a git repository, or {worker, version?|tag?} "
    "from the registry. " + _ALL_OR_NOTHING.rstrip(),
    _EITHER,
    _INSTALLED,
)
V08_ROWS: Final = (DOWNLOAD, FROM_REGISTRY, FROM_REPO, ON_WORKER_ADDED)
