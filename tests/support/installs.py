"""A disk that fails on demand, and what tests of installs look at."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iii_directory.disk.files import FileOps
from iii_directory.disk.install_record import RegistrySource, content_hash
from iii_directory.install.bundle import Bundle, make_bundle
from iii_directory.install.plan import InstallPlan, plan_install, plan_remove, plan_write
from iii_directory.install.skills_folder import SkillsFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from iii_directory.install.plan import EditedFiles

Contents = dict[str, bytes]


class WatchedFiles(FileOps):
    """The real disk, with a look at every operation before it happens: its number, name and arguments."""

    def __init__(self, act: Callable[[int, str, tuple[Any, ...]], None]) -> None:
        self._act = act
        self.count = 0

    def __getattribute__(self, name: str) -> Any:
        real = super().__getattribute__(name)
        if name.startswith("_") or name == "count":
            return real

        def watched(*arguments: Any) -> Any:
            self.count += 1
            self._act(self.count, name, arguments)
            return real(*arguments)

        return watched


def disk_without(mode: str, name: str, arguments: tuple[Any, ...]) -> None:
    """A disk that lacks something: the exchange of names, hard links, or the moving of folders."""
    if mode == "no-exchange" and name == "exchange":
        raise OSError(errno.EINVAL, "no exchange")
    moves_old = name == "rename" and arguments[2] == "old" and arguments[0] != "old.part"
    if mode == "overlay" and (name == "exchange" or moves_old):
        raise OSError(errno.EXDEV, "a folder of a lower layer")
    if mode == "no-links" and name == "link":
        raise OSError(errno.EPERM, "no hard links")


MODES = ("plain", "no-exchange", "overlay", "no-links")


def contents(folder: Path) -> Contents:
    """Every file below a folder, by its path."""
    found: Contents = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def put(folder: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def bundle_of(files: Contents, version: str = "1.0.0", namespace: str = "db") -> Bundle:
    return make_bundle(namespace, RegistrySource(namespace, tag="latest"), version, files.items())


def install(
    folder: Path,
    bundle: Bundle,
    *,
    files: FileOps | None = None,
    edited: EditedFiles = "overwrite",
    wait: float = 10.0,
    prune: bool = False,
    allow_downgrade: bool = False,
) -> InstallPlan:
    skills = SkillsFolder(folder, files=files, wait=wait)
    with skills.locked(bundle.namespace, bundle.files) as namespace:
        plan = plan_install(
            bundle,
            namespace.disk,
            namespace.known,
            edited=edited,
            by="call",
            now="2026-01-01T00:00:00Z",
            prune=prune,
            allow_downgrade=allow_downgrade,
        )
        namespace.commit(plan)
    return plan


def remove(
    folder: Path, namespace: str = "db", *, files: FileOps | None = None, force: bool = False
) -> InstallPlan:
    with SkillsFolder(folder, files=files).locked(namespace) as found:
        assert found.known is not None
        plan = plan_remove(namespace, found.disk, found.known, force=force)
        found.commit(plan)
    return plan


def write(folder: Path, path: str, content: bytes | None, files: FileOps | None = None) -> InstallPlan:
    """One document of the namespace written, or (None) deleted."""
    with SkillsFolder(folder, files=files).locked("db", (path,)) as found:
        plan = plan_write("db", path, content, found.disk, found.known, now="2026-01-01T00:00:00Z")
        found.commit(plan)
    return plan


def hashes(files: Contents) -> dict[str, str]:
    return {path: content_hash(content) for path, content in files.items()}
