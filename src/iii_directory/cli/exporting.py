"""Writing a whole skill out of its archive into a folder of the user's."""

from __future__ import annotations

import base64
import io
import tarfile
from typing import TYPE_CHECKING

from iii_directory.cli.common import fail
from iii_directory.documents import frontmatter
from iii_directory.documents.ids import OVERVIEW

if TYPE_CHECKING:
    from pathlib import Path


def write_skill(content: str, folder: Path) -> tuple[Path, int]:
    """Write the files of an archive in base64 below ``folder``, in a folder of the skill's name.

    Nothing is written if a file there differs.
    """
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(content)), mode="r:gz") as archive:
        members = {member.name: member for member in archive if member.isreg()}
        files = {name: _bytes_of(archive, member) for name, member in members.items()}
        name = frontmatter.of_text(files[OVERVIEW].decode()).values["name"]
        place = folder / name
        differing = [path for path, raw in files.items() if _differs(place / path, raw)]
        if differing:
            fail(f"these files in {place} differ, and nothing was written: {', '.join(sorted(differing))}")
        # The archive is the directory's own, and the filter still refuses links and paths that lead outside.
        archive.extractall(place, members=members.values(), filter="data")
    return place, len(files)


def _bytes_of(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return b"" if file is None else file.read()


def _differs(path: Path, raw: bytes) -> bool:
    try:
        return path.is_symlink() or path.read_bytes() != raw
    except FileNotFoundError:
        return False
    except OSError:
        return True
