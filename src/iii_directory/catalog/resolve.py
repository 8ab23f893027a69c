"""How an id or a name that a caller wrote is found in the catalogue, with forgiveness where it is due.

Pure.

Addresses are exact: `find_exact` takes an id or the overview right below it. Only ``directory::skills::get``,
which is `resolve_skill`, offers a close match, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory.catalog.skills import every_skill, skill_at
from iii_directory.documents.ids import (
    OVERVIEWS,
    bare_id,
    check_prompt_name,
    check_skill_id,
    namespace_of,
    skill_id_problem,
)
from iii_directory.documents.uris import SCHEME, SKILL_SCHEME, skill_path
from iii_directory.errors import (
    BAD_SKILL_ID,
    FILE_NOT_FOUND,
    FUNCTION_ID_AS_SKILL,
    PROMPT_NOT_FOUND,
    SKILL_NOT_FOUND,
    DirectoryError,
)
from iii_directory.limits import MAX_SUGGESTIONS
from iii_directory.suggest import Names, close_names
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.documents.model import Prompt, Skill

# Where repositories of skills have them, and their documents say so.
_REPOSITORY_FOLDER: Final = "skills/"


class Found(NamedTuple):
    """A skill to serve, and the line that must open its body when it stands in for another."""

    skill: Skill
    note: str | None = None

    def opened(self, body: str) -> str:
        """The body as it is served: behind the note, if there is one."""
        return _behind(self.note, body)


class FoundFile(NamedTuple):
    """A file that is no document, by its path below the skills folder."""

    path: str


class Undocumented(NamedTuple):
    """An installed worker without a document: serve what the engine knows of it."""

    worker: str
    note: str | None = None

    def opened(self, body: str) -> str:
        """The body as it is served: behind the note, if there is one."""
        return _behind(self.note, body)


def resolve_skill(
    snapshot: Snapshot, asked: str, installed: AbstractSet[str] = frozenset()
) -> Found | FoundFile | Undocumented:
    """What ``directory::skills::get`` serves for an id, an address or a path as a caller wrote it."""
    skill = snapshot.find(asked)
    if skill is not None:
        return Found(skill)
    written = without_scheme(asked)
    if "::" in written:
        raise _error_for_function_id(snapshot, written)
    found = _at(snapshot, written)
    if found is None and written.startswith(_REPOSITORY_FOLDER):
        found = _at(snapshot, written.removeprefix(_REPOSITORY_FOLDER))
    if found is None:
        found = _named(snapshot, written)
    if found is not None:
        return found
    skill_id = normalise(asked)
    if skill_id_problem(skill_id) is not None and skill_at(snapshot, written) is not None:
        raise _no_such_file(snapshot, written)
    check_skill_id(skill_id)
    substitute = _substitute(snapshot, skill_id, installed)
    if substitute is None:
        raise _not_found(snapshot, skill_id, quoted(skill_id), installed)
    return substitute


def find_file(snapshot: Snapshot, path: str) -> str | None:
    """The path of a file of a skill as it is on disk, for one that was written in any case."""
    found = path if snapshot.file(path) is not None else _in_any_case(snapshot, path)
    return found if found is not None and skill_at(snapshot, found) is not None else None


def _in_any_case(snapshot: Snapshot, path: str) -> str | None:
    folded = path.casefold()
    first, slash, _ = folded.partition("/")
    wanted = snapshot.once(_folders_in_any_case).get(first if slash else "", ())
    return next(
        (known for folder in wanted for known in snapshot.paths_of(folder) if known.casefold() == folded),
        None,
    )


def _folders_in_any_case(snapshot: Snapshot) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for folder in snapshot.folders():
        folders.setdefault(folder.casefold(), []).append(folder)
    return folders


def find_exact(snapshot: Snapshot, skill_id: str) -> Skill:
    """The skill that ``iii://{skill_id}`` leads to."""
    skill = snapshot.find(skill_id)
    if skill is None:
        named = _named(snapshot, skill_id)
        skill = named.skill if isinstance(named, Found) else None
    if skill is None:
        raise _not_found(snapshot, skill_id, quoted(SCHEME + skill_id))
    return skill


def find_prompt(snapshot: Snapshot, name: str) -> Prompt:
    """The prompt of exactly this name."""
    check_prompt_name(name)
    prompt = snapshot.prompt(name)
    if prompt is None:
        close = close_names(name, snapshot.once(_prompt_names))
        raise DirectoryError(PROMPT_NOT_FOUND, f"prompt {quoted(name)} not found", did_you_mean=close)
    return prompt


def not_found(snapshot: Snapshot, asked: str) -> DirectoryError:
    """No document and no file answers to what a caller wrote."""
    return _not_found(snapshot, normalise(asked), quoted(asked))


def normalise(asked: str) -> str:
    """The id behind what a caller wrote: a path, an address or an id in any case."""
    text = without_scheme(asked)
    folder, slash, name = text.rpartition("/")
    if name in OVERVIEWS:
        text = f"{folder}{slash}index"
    # A letter beyond ASCII may fold into one of ours and stays as it is, for the grammar to refuse.
    text = text.lower() if text.isascii() else text
    return text.removesuffix(".md")


def without_scheme(asked: str) -> str:
    """What stands behind the scheme of an address, and between the marks of a path: ``./x/`` is ``x``."""
    text = asked.strip()
    if text.startswith(SKILL_SCHEME):
        text = skill_path(text)
    elif "://" in text and not text.startswith(SCHEME):
        raise DirectoryError(BAD_SKILL_ID, f"the address {quoted(text)} does not start with {SCHEME}")
    return text.removeprefix(SCHEME).strip().removeprefix("./").removesuffix("/")


def _at(snapshot: Snapshot, written: str) -> Found | FoundFile | None:
    """The document or the file that a path, or an id in any case, leads to."""
    skill = snapshot.find(normalise(written)) if written else None
    if skill is not None:
        return Found(skill)
    path = find_file(snapshot, written)
    if path is None:
        return None
    document = snapshot.files[path].skill
    # A path of a document whose id another one has leads to the file itself.
    shown = document is not None and snapshot.find(document.id) is document
    return Found(document) if document is not None and shown else FoundFile(path)


def _named(snapshot: Snapshot, written: str) -> Found | FoundFile | None:
    """Find a skill, or a file of it, by the name that its front matter gives it."""
    name, slash, rest = written.partition("/")
    owners = snapshot.once(_owners_of_names).get(name.lower(), ())
    if len(owners) > 1:
        ids = ", ".join(map(quoted, owners))
        raise DirectoryError(
            SKILL_NOT_FOUND, f"{len(owners)} skills are called {quoted(name)}: {ids}", did_you_mean=owners
        )
    return _at(snapshot, f"{owners[0]}{slash}{rest}") if owners else None


def _owners_of_names(snapshot: Snapshot) -> dict[str, list[str]]:
    """Map the names that skills give themselves, and that are not ids, to the ids of those skills."""
    owners: dict[str, list[str]] = {}
    taken = snapshot.namespaces()
    for key, skill in every_skill(snapshot):
        if skill.name is not None and skill.name != key and skill.name not in taken:
            owners.setdefault(skill.name, []).append(key)
    return owners


def _no_such_file(snapshot: Snapshot, written: str) -> DirectoryError:
    known = [
        path for path in snapshot.paths_of(namespace_of(written)) if skill_at(snapshot, path) is not None
    ]
    named_so = [path for path in known if path.endswith(f"/{written.rpartition('/')[2]}")]
    close = close_names(written, frozenset(known)) or named_so[:MAX_SUGGESTIONS]
    return DirectoryError(FILE_NOT_FOUND, f"file {quoted(written)} not found", did_you_mean=close)


def _substitute(
    snapshot: Snapshot, skill_id: str, installed: AbstractSet[str]
) -> Found | Undocumented | None:
    """The overview of the worker that the first segment of a missing id means, if that is a fair answer."""
    name, is_bare = namespace_of(skill_id), "/" not in bare_id(skill_id)
    worker = _worker_called(name, installed | snapshot.namespaces())
    if worker is None:
        return None
    overview, others = snapshot.find(worker), snapshot.skills_below(worker)
    if overview is not None and snapshot.is_apart(overview):
        # A registration does not speak for a namespace of a folder.
        return None
    if overview is None:
        note = None if worker == bare_id(skill_id) else _note(skill_id, worker)
        return Undocumented(worker, note) if worker in installed and not others else None
    if is_bare or all(other is overview for other in others):
        return Found(overview, _note(skill_id, snapshot.display_id(overview)))
    return None


def _worker_called(name: str, workers: AbstractSet[str]) -> str | None:
    """The worker a name means: its own, or the only or the one shortest that holds it."""
    if name in workers:
        return name
    holding = sorted((worker for worker in workers if name in worker.lower()), key=len)
    if len(holding) > 1 and len(holding[0]) == len(holding[1]):
        return None
    return holding[0] if holding else None


def _behind(note: str | None, body: str) -> str:
    return body if note is None else f"{note}\n\n{body}"


def _note(asked: str, served: str) -> str:
    return f"> There is no skill `{asked}`; this is the overview of `{served}`."


def _error_for_function_id(snapshot: Snapshot, asked: str) -> DirectoryError:
    documents = snapshot.documenting(asked)[:MAX_SUGGESTIONS]
    return DirectoryError(
        FUNCTION_ID_AS_SKILL,
        f"{quoted(asked)} is a function id, not a skill id: skill ids have '/' between their segments",
        did_you_mean=[snapshot.display_id(skill) for skill in documents],
    )


def _not_found(
    snapshot: Snapshot, skill_id: str, shown: str, installed: AbstractSet[str] = frozenset()
) -> DirectoryError:
    close = close_names(skill_id, snapshot.once(_KnownNames).beside(installed))
    if not close:
        close = _first_below(snapshot, namespace_of(skill_id))
    return DirectoryError(SKILL_NOT_FOUND, f"skill {shown} not found", did_you_mean=close)


def _first_below(snapshot: Snapshot, namespace: str) -> list[str]:
    """Some skills of the namespace that was meant, when it has no overview to offer."""
    return snapshot.skills.below(f"{namespace}/", _key)[:MAX_SUGGESTIONS]


def _key(key: str, _: Skill) -> str:
    return key


class _KnownNames:
    """What a missing skill may have been called; put in order once for all who miss one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._ids = frozenset(snapshot.skills.keys)
        self._installed: AbstractSet[str] = frozenset()
        self._names = Names(self._ids)

    def beside(self, installed: AbstractSet[str]) -> Names:
        """The ids of the skills, and the names of the installed workers."""
        if installed != self._installed:
            self._installed, self._names = installed, Names(self._ids | installed)
        return self._names


def _prompt_names(snapshot: Snapshot) -> Names:
    return Names(frozenset(snapshot.prompts.keys))
