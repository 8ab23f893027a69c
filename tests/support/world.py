"""Everything a download needs: a registry, a mirror of github.com and a skills folder."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from tests.support.registry import publish_worker

from iii_directory.config import Settings
from iii_directory.install.requests import any_download
from iii_directory.install.service import Installer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


class World:
    """The places, and an installer for each run of a test."""

    def __init__(self, tmp_path: Path, registry_url: str) -> None:
        self.tmp_path = tmp_path
        self.registry_url = registry_url
        self.skills = tmp_path / "skills"
        self.mirror = tmp_path / "mirror"

    def publish(self, name: str, version: str, files: dict[str, str], tag: str | None = None) -> None:
        publish_worker(self.tmp_path, self.tmp_path / "registry", name, version, files, tag=tag)

    def run(self, act: Callable[[Installer], Awaitable[Any]], **changes: Any) -> Any:
        async def inside() -> Any:
            options: dict[str, Any] = {
                "skills_folder": self.skills,
                "registry_url": self.registry_url,
                "download_timeout_ms": 20_000,
                "repo_mirrors": {"https://github.com/": str(self.mirror)},
                "allow_file_repos": True,
                **changes,
            }
            installer = Installer(Settings(**options), now=lambda: "2026-01-01T00:00:00.000000Z")
            try:
                return await act(installer)
            finally:
                await installer.close()

        return asyncio.run(inside())

    def download(self, **fields: str) -> Any:
        """What a call with these fields installs."""
        return self.run(lambda installer: installer.download(any_download(fields, allow_file=True)))

    def lock(self) -> dict[str, Any]:
        return json.loads((self.skills / "skills.lock.json").read_text())["namespaces"]
