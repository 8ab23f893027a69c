"""The directory with sources to download from: a registry, a mirror of github.com, and the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.registered.stage import House, SdkClient, until
from tests.support.commands import environment, run
from tests.support.installs import contents

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.registered.stage import Listener
    from tests.support.engine import EngineThread
    from tests.support.world import World

GITHUB: Final = "https://github.com/anthropics/skills"
TYPES: Final = (
    "skills::on-change",
    "directory::skills::on-change",
    "prompts::on-change",
    "directory::prompts::on-change",
)
PROMPT: Final = "---\ndescription: Ask the database\n---\nAsk one.\n"
V1: Final = {
    "skills/SKILL.md": "# db one\n\nAll about db.\n",
    "skills/get.md": "# get one\n",
    "skills/run.py": "print(1)\n",
    "prompts/ask.md": PROMPT,
}
V2: Final = {
    **V1,
    "skills/SKILL.md": "# db two\n",
    "skills/get.md": "# get two\n",
    "skills/set.md": "# set\n",
}


def event(namespace: str, source: str = "registry") -> dict[str, str]:
    return {"op": "download", "namespace": namespace, "source": source}


class Depot(House):
    """The directory on an engine, with a world of sources around it."""

    def __init__(self, url: str, world: World, inside: EngineThread | None = None, **settings: Any) -> None:
        self.world = world
        self.sources: dict[str, Any] = {
            "registry_url": world.registry_url,
            "download_timeout_ms": 20_000,
            "repo_mirrors": {"https://github.com/": f"{world.mirror}/"},
            "allow_file_repos": True,
            **settings,
        }
        super().__init__(url, world.skills, inside, **self.sources)

    def ids(self) -> list[str]:
        """The skills of the folder; those the package brings are left out."""
        rows = self.call("directory::skills::list")["skills"]
        return [row["id"] for row in rows if not row["id"].startswith("iii-directory")]

    def title(self, skill_id: str) -> str:
        return self.call("directory::skills::get", id=skill_id)["title"]

    def findings(self, kind: str) -> list[dict[str, str]]:
        return [row for row in self.call("directory::diagnostics")["findings"] if row["kind"] == kind]

    def files(self) -> dict[str, bytes]:
        return contents(self.folder)

    def listeners(self) -> dict[str, Listener]:
        """One for each of the four types."""
        return {kind: self.listener(kind) for kind in TYPES}

    def visitor(self, name: str) -> SdkClient:
        """A worker that leaves again; a context manager."""
        return SdkClient(self.url, name=name)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, in another process, on the same folder and the same sources."""
        done = run(*arguments, "--config", str(self.write_config()))
        assert done.returncode == 0, done.stderr
        return done

    def write_config(self) -> Path:
        """The settings of this directory as a file."""
        config = self.world.tmp_path / "config.yaml"
        config.write_text(json.dumps({"skills_folder": str(self.folder), **self.sources}), encoding="utf-8")
        return config

    def verified(self) -> list[dict[str, Any]]:
        return self.world.run(lambda installer: installer.upkeep.verify())

    def restart(self) -> None:
        """A new directory in the place of the first."""
        self.retire(self.worker)
        self.worker = self.directory()

    def settle(self) -> None:
        """Wait until every automatic download was tried."""
        until(lambda: not self.worker.auto_download._tasks._running, "the automatic downloads are done")


def shell_environment(url: str) -> dict[str, str]:
    return environment(III_URL=url)
