"""The two indexes: one block a worker for system prompts, and one line a skill for those who look around.

Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.catalog.rows import address_of
from iii_directory.documents.markdown import plain_line
from iii_directory.limits import INDEX_BUDGET_BYTES, INDEX_DESCRIPTION_CHARS

if TYPE_CHECKING:
    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Skill

_WORKERS_HEAD: Final = "# Skills index\n"
_WORKERS_CUT: Final = "\nSome descriptions are left out here: `directory::skills::list` has them all.\n"
_TREE_HEAD: Final = (
    "# Skills\n\nEvery skill of this directory, parents before children. "
    "Read one by its link with `skill::fetch`, or by its id with `directory::skills::get`.\n\n"
)
_TREE_EMPTY: Final = "_No skills yet._\n"


class WorkersIndex(NamedTuple):
    """The answer of ``directory::skills::index``."""

    body: str
    workers_count: int


def workers_index(snapshot: Snapshot) -> WorkersIndex:
    """One block for each worker that has an overview."""
    return snapshot.once(_workers_index)


def tree_index(snapshot: Snapshot) -> str:
    """The body of ``iii://skills``."""
    return snapshot.once(_tree_index)


def _workers_index(snapshot: Snapshot) -> WorkersIndex:
    overviews = [
        (snapshot.display_id(skill), skill)
        for namespace in snapshot.namespaces()
        if (skill := snapshot.find(namespace)) is not None
    ]
    overviews.sort(key=lambda overview: overview[0])
    blocks = [(_heading(key, skill), _description(skill), _call(key)) for key, skill in overviews]
    return WorkersIndex(_within_budget(blocks), len(blocks))


def _within_budget(blocks: list[tuple[str, str, str]]) -> str:
    """The whole body if it fits; else as many descriptions as fit, in order, and a line that says so."""
    whole = _WORKERS_HEAD + "".join(heading + text + call for heading, text, call in blocks)
    if len(whole.encode()) <= INDEX_BUDGET_BYTES:
        return whole
    bare = _WORKERS_HEAD + "".join(heading + call for heading, _, call in blocks) + _WORKERS_CUT
    room = INDEX_BUDGET_BYTES - len(bare.encode())
    parts = [_WORKERS_HEAD]
    for heading, text, call in blocks:
        size = len(text.encode())
        kept = text if size <= room else ""
        room -= len(kept.encode())
        parts += (heading, kept, call)
    return "".join([*parts, _WORKERS_CUT])


def _heading(key: str, skill: Skill) -> str:
    return f"\n## {plain_line(skill.title) or key}\n"


def _description(skill: Skill) -> str:
    text = plain_line(skill.description)
    return f"\n{text}\n" if text else ""


def _call(key: str) -> str:
    return f'\n`directory::skills::get {{ "id": "{key}" }}`\n'


def _tree_index(snapshot: Snapshot) -> str:
    if not snapshot.skills.keys:
        return _TREE_HEAD + _TREE_EMPTY
    lines = snapshot.skills.column(_tree_line)
    # Below every letter of an id, so that a parent comes right before its children.
    order = sorted(range(len(lines)), key=lambda at: snapshot.skills.keys[at].replace("/", "\0"))
    return _TREE_HEAD + "".join([lines[at] for at in order])


def _tree_line(key: str, skill: Skill) -> str:
    address = address_of(key, skill)
    link = f"`{key}`" if address is None else f"[`{key}`]({address})"
    title = plain_line(skill.title) or key
    description = plain_line(skill.description, INDEX_DESCRIPTION_CHARS)
    words = f"{title} — {description}" if description else title
    return f"{'  ' * key.count('/')}- {link} — {words}\n"
