"""Trees of skills as people really keep them: the oddities of many repositories, made up anew."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from iii_directory.catalog.skill_folders import every_skill, paths_of_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from iii_directory.catalog.catalogue import Catalogue

NAMES = (
    "pdf",
    "frontend-design",
    "web_artifacts",
    "K-Dense-AI--scientific-skills",
    "mcp server",
    "zh-CN",
    "日本語",
    "v1.2",
    "references",
    "scripts",
    "assets",
    "templates",
    "prompts",
    "Prompts",
    ".github",
    "node_modules",
    "fn",
    "skills",
    "679-AA-AACR-session-2026-05-22-to-2026-05-24-ci-hardening-campaign-notes",
)
PLAIN = tuple(f"skill-{number}" for number in range(40))
FILES = (
    "SKILL.md",
    "SKILLS.md",
    "Skill.md",
    "skill.md",
    "index.md",
    "README.md",
    "CHANGELOG.md",
    "AGENTS.md",
    "reference.md",
    "forms.MD",
    "how to.md",
    "overview.mdx",
    "overview.mdx.skill.md",
    "notes.markdown",
    "Über uns.md",
    "LICENSE.txt",
    "LICENSE",
    "run.py",
    "schema.xsd",
    ".DS_Store",
    ".hidden.md",
    "a&b.md",
    "emoji-🎉.md",
    "ask.md",
)
DESCRIPTION = "Comprehensive toolkit: use when the user wants to, e.g., fill a form; not for images. " * 12
FRONT_MATTER: tuple[bytes, ...] = (
    b"",
    b"---\nname: pdf\ndescription: Fills PDF forms\nlicense: Proprietary. LICENSE.txt has the terms\n---\n",
    f"---\nname: long\ndescription: {DESCRIPTION}\n---\n".encode(),
    f'---\nname: "quoted"\ndescription: "{DESCRIPTION}"\n---\n'.encode(),
    b"---\nname: folded\ndescription: >-\n  Over\n  several lines.\n---\n",
    b"---\nname: literal\ndescription: |\n  One\n  Two\n---\n",
    b"---\nname: tools\ndescription: x\nallowed-tools: Read, Write, Bash(git:*)\n---\n",
    b"---\nname: nested\ndescription: x\nmetadata:\n  version: 1.0\n  tags: [a, b]\n---\n",
    b"---\nname: colon\ndescription: Use when: the user asks\n---\n",
    b"---\nname: {{name}}\ndescription: {{description}}\n---\n",
    b"---\ntitle: [unclosed\n---\n",
    b"---\ntitle: 2024-01-01\ntype: 7\nfunction_id: true\ndescription: null\n---\n",
    b"---\nx: &a 1\ny: *a\n---\n",
    b"---\n---\n",
    b"---\ntitle: never closed\n",
    b"----\nnot: front matter\n----\n",
    b"+++\ntitle = 'toml'\n+++\n",
    b"\xef\xbb\xbf---\ntitle: with a mark\n---\n",
    b"---\r\ntitle: windows\r\ndescription: x\r\n---\r\n",
    b" ---\ntitle: indented\n---\n",
    b"---\t\ntitle: trailing space\n---  \n",
)
BODIES: tuple[bytes, ...] = (
    b"# Title\n\nFirst paragraph\ngoes on.\n\n## More\n\n- list\n",
    b"# Windows\r\n\r\nText.\r\n",
    b"No heading at all.\n",
    b"## Only deeper\n\n> quote\n",
    b"# T\n\n" + b"word " * 2000,
    b"# \xc3\x9cmlaut \xf0\x9f\x8e\x89\n",
    b"# latin \xfc\n",
    b"\xff\xfe#\x00 \x00u\x00t\x00f\x001\x006\x00",
    b"",
    b"   \n\t\n",
    b"# bidi \xe2\x80\xae txet\n",
    b"```\n# not a title\n```\n\n# title\n",
    b"x" * (256 * 1024 + 1),
    b"# nul \x00 byte\n",
)


def grow(root: Path, seed: int, files: int) -> None:
    """A tree below ``root``, the same for the same seed."""
    choice = random.Random(seed).choice
    folders = [root]
    for _ in range(files):
        parent = choice(folders)
        if choice((True, False, False)) and len(parent.relative_to(root).parts) < 5:
            parent /= choice((*NAMES, *PLAIN))
            folders.append(parent)
        parent.mkdir(parents=True, exist_ok=True)
        _plant(parent / choice(FILES), choice(FRONT_MATTER) + choice((*BODIES, *BODIES[:1] * 20)), choice)


def _plant(path: Path, content: bytes, choice: Callable[[tuple[int, ...]], int]) -> None:
    if path.exists() or path.is_symlink():
        return
    if choice(tuple(range(20))):
        path.write_bytes(content)
    else:
        path.symlink_to(_target(path))


def _target(path: Path) -> Path:
    """A link to a neighbour, or to nothing."""
    return next((other for other in path.parent.iterdir() if other != path), path.parent / "nothing")


def unaccounted(catalogue: Catalogue, root: Path) -> list[str]:
    """Files below ``root`` that the catalogue neither shows nor says anything about.

    Those that are neither documents nor of a skill it counts in one finding.
    """
    look = catalogue.load()
    snapshot = look.snapshot
    shown = {entry.path for entry in (*snapshot.skills.items, *snapshot.prompts.items)}
    shown |= {path for _, skill in every_skill(snapshot) for path in paths_of_skill(snapshot, skill)}
    told = {finding.subject for finding in look.findings()}
    others = [path for path in snapshot.files if path not in shown | told and snapshot.files[path].is_plain]
    counted = [finding.reason for finding in look.findings() if "of no skill" in finding.reason]
    assert [f"{len(others) + 1} files"] == [reason.split(" below")[0] for reason in counted]
    told.update(others)
    return [path for path in _files(root) if path not in shown and not told & set(_with_folders(path))]


def _files(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*files, *links):
            yield os.path.relpath(os.path.join(folder, name), root)


def _with_folders(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]
