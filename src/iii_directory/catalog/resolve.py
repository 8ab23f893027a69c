"""Find the document that a caller means by an id, a name or a path, and where callers may write. Pure.

Addresses are exact: `find_exact` takes an id or the overview right below it. Only ``directory::skills::get``,
which is `resolve_skill`, offers a close match, and its answer says so.

Callers write to the skills folder only. A new document that would hide others, or be hidden itself, is
refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from iii_directory import errors, limits
from iii_directory.catalog.skill_folders import every_skill, files_of, folder_of, skill_at
from iii_directory.catalog.snapshot import namespaces_of, once_per_snapshot
from iii_directory.documents.ids import (
    COPY_MARKER,
    MERGE_SUFFIX,
    OVERVIEW,
    OVERVIEWS,
    RESERVED_IDS,
    RESERVED_NAMESPACES,
    bare_id,
    check_prompt_name,
    check_skill_id,
    is_hidden,
    kind_of,
    namespace_of,
    new_namespace_problem,
    skill_id_problem,
    vet_path,
)
from iii_directory.documents.parse import written_document
from iii_directory.documents.uris import SCHEME, SKILL_SCHEME, skill_path
from iii_directory.errors import DirectoryError
from iii_directory.text import Names, close_names, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from iii_directory.catalog.snapshot import Snapshot
    from iii_directory.catalog.view import CatalogueView
    from iii_directory.documents.model import Prompt, Skill

# Repositories keep skills in this folder, and their documents write paths with it.
_REPOSITORY_FOLDER: Final = "skills/"


class Found(NamedTuple):
    """A skill to serve, and the line that must open its body when it stands in for another."""

    skill: Skill
    note: str | None = None


class FoundFile(NamedTuple):
    """A file that is not a document, by its path below the skills folder."""

    path: str


class Undocumented(NamedTuple):
    """An installed worker without a document: the answer is what the engine knows of the worker."""

    worker: str
    note: str | None = None


def resolve_skill(
    snapshot: Snapshot, asked: str, installed: AbstractSet[str] = frozenset()
) -> Found | FoundFile | Undocumented:
    """Find what ``directory::skills::get`` serves for an id, an address or a path as a caller wrote it."""
    skill = snapshot.find(asked)
    if skill is not None:
        return Found(skill)
    written = without_scheme(asked)
    if "::" in written:
        documents = snapshot.documenting(written)[: limits.MAX_SUGGESTIONS]
        raise DirectoryError(
            errors.FUNCTION_ID_AS_SKILL,
            f"{quoted(written)} is a function id, not a skill id: skill ids have '/' between their segments",
            did_you_mean=[snapshot.display_id(document) for document in documents],
        )
    # From the most to the least exact reading of what the caller wrote.
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
        raise not_found(snapshot, skill_id, installed=installed)
    return substitute


def find_file(snapshot: Snapshot, path: str) -> str | None:
    """Return the path of a skill's file as it is on disk, for one written in any case; None if missing."""
    found = path if snapshot.file(path) is not None else None
    if found is None:
        folded = path.casefold()
        first, slash, _ = folded.partition("/")
        folders = _folders_in_any_case(snapshot).get(first if slash else "", ())
        paths = (known for folder in folders for known in snapshot.paths_of(folder))
        found = next((known for known in paths if known.casefold() == folded), None)
    return found if found is not None and skill_at(snapshot, found) is not None else None


def find_exact(snapshot: Snapshot, skill_id: str) -> Skill:
    """Find the skill that ``iii://{skill_id}`` leads to."""
    skill = snapshot.find(skill_id)
    if skill is None:
        named = _named(snapshot, skill_id)
        skill = named.skill if isinstance(named, Found) else None
    if skill is None:
        raise not_found(snapshot, skill_id, shown=SCHEME + skill_id)
    return skill


def find_prompt(snapshot: Snapshot, name: str) -> Prompt:
    """Find the prompt of exactly this name."""
    check_prompt_name(name)
    prompt = snapshot.prompt(name)
    if prompt is None:
        close = close_names(name, _prompt_names(snapshot))
        raise DirectoryError(errors.PROMPT_NOT_FOUND, f"prompt {quoted(name)} not found", did_you_mean=close)
    return prompt


def normalise(asked: str) -> str:
    """Return the id behind a path, an address, or an id in any case."""
    text = without_scheme(asked)
    folder, slash, name = text.rpartition("/")
    if name in OVERVIEWS:
        text = f"{folder}{slash}index"
    # A letter beyond ASCII may fold into an ASCII one. It stays as it is, and the grammar refuses it.
    text = text.lower() if text.isascii() else text
    return text.removesuffix(".md")


def without_scheme(asked: str) -> str:
    """Strip the scheme of an address and the decoration of a path: ``./x/`` becomes ``x``."""
    text = asked.strip()
    if text.startswith(SKILL_SCHEME):
        text = skill_path(text)
    elif "://" in text and not text.startswith(SCHEME):
        raise DirectoryError(errors.BAD_SKILL_ID, f"the address {quoted(text)} does not start with {SCHEME}")
    return text.removeprefix(SCHEME).strip().removeprefix("./").removesuffix("/")


def _at(snapshot: Snapshot, written: str) -> Found | FoundFile | None:
    """Find the document or the file at a path, or under an id in any case."""
    skill = snapshot.find(normalise(written)) if written else None
    if skill is not None:
        return Found(skill)
    path = find_file(snapshot, written)
    if path is None:
        return None
    document = snapshot.files[path].skill
    # The path of a document whose id another document has leads to the file itself.
    shown = document is not None and snapshot.find(document.id) is document
    return Found(document) if document is not None and shown else FoundFile(path)


def _named(snapshot: Snapshot, written: str) -> Found | FoundFile | None:
    """Find a skill, or a file of it, by the name that its front matter gives it."""
    name, slash, rest = written.partition("/")
    owners = _owners_of_names(snapshot).get(name.lower(), ())
    if len(owners) > 1:
        problem = f"{len(owners)} skills are called {quoted(name)}: {', '.join(map(quoted, owners))}"
        raise DirectoryError(errors.SKILL_NOT_FOUND, problem, did_you_mean=owners)
    return _at(snapshot, f"{owners[0]}{slash}{rest}") if owners else None


@once_per_snapshot
def _owners_of_names(snapshot: Snapshot) -> dict[str, list[str]]:
    """Map the names that skills give themselves, and that are not ids, to the ids of those skills."""
    owners: dict[str, list[str]] = {}
    taken = namespaces_of(snapshot)
    for key, skill in every_skill(snapshot):
        if skill.name is not None and skill.name != key and skill.name not in taken:
            owners.setdefault(skill.name, []).append(key)
    return owners


@once_per_snapshot
def _folders_in_any_case(snapshot: Snapshot) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for folder in snapshot.folders():
        folders.setdefault(folder.casefold(), []).append(folder)
    return folders


@once_per_snapshot
def _prompt_names(snapshot: Snapshot) -> Names:
    return Names(frozenset(snapshot.prompts.keys))


def _no_such_file(snapshot: Snapshot, written: str) -> DirectoryError:
    paths = snapshot.paths_of(namespace_of(written))
    known = [path for path in paths if skill_at(snapshot, path) is not None]
    named_so = [path for path in known if path.endswith(f"/{written.rpartition('/')[2]}")]
    close = close_names(written, frozenset(known)) or named_so[: limits.MAX_SUGGESTIONS]
    return DirectoryError(errors.FILE_NOT_FOUND, f"file {quoted(written)} not found", did_you_mean=close)


def _substitute(
    snapshot: Snapshot, skill_id: str, installed: AbstractSet[str]
) -> Found | Undocumented | None:
    """Return the overview of the worker that the first segment of a missing id means, if it is a fit answer.

    The name of a worker means that worker; otherwise the only or the one shortest name that contains it.
    """
    name, workers = namespace_of(skill_id), installed | namespaces_of(snapshot)
    holding = sorted((worker for worker in workers if name in worker.lower()), key=len)
    if name not in workers and (not holding or (len(holding) > 1 and len(holding[0]) == len(holding[1]))):
        return None
    worker = name if name in workers else holding[0]
    note = f"> The skill `{skill_id}` does not exist; this is the overview of `{{}}`."
    overview, others = snapshot.find(worker), snapshot.skills_below(worker)
    if overview is None:
        if worker not in installed or others:
            return None
        return Undocumented(worker, None if worker == bare_id(skill_id) else note.format(worker))
    # A registration does not speak for a namespace of a folder.
    if snapshot.is_apart(overview):
        return None
    if "/" not in bare_id(skill_id) or all(other is overview for other in others):
        return Found(overview, note.format(snapshot.display_id(overview)))
    return None


def not_found(
    snapshot: Snapshot, asked: str, *, shown: str | None = None, installed: AbstractSet[str] = frozenset()
) -> DirectoryError:
    """Return the error for an id or path that leads neither to a document nor to a file."""
    skill_id = normalise(asked)
    workers = frozenset(installed)
    # Only the last names are kept: the installed workers may change while the snapshot stays.
    known: tuple[frozenset[str], Names] | None = snapshot.computed.get(not_found)
    if known is None or known[0] != workers:
        known = snapshot.computed[not_found] = workers, Names(frozenset(snapshot.skills.keys) | workers)
    close = close_names(skill_id, known[1])
    if not close:
        # Some skills of the namespace that was meant, when it has no overview to offer.
        below = snapshot.skills_below(namespace_of(skill_id))[: limits.MAX_SUGGESTIONS]
        close = [snapshot.display_id(skill) for skill in below]
    problem = f"skill {quoted(shown or asked)} not found"
    return DirectoryError(errors.SKILL_NOT_FOUND, problem, did_you_mean=close)


# Where callers may write


class WritablePlace(NamedTuple):
    """The place of a document in the skills folder."""

    id: str
    """The display id."""
    namespace: str
    path: str
    """Below the namespace's folder."""

    @property
    def whole_path(self) -> str:
        """Return the path below the skills folder."""
        return f"{self.namespace}/{self.path}"


def place_of_new(view: CatalogueView, skill_id: str, content: str) -> tuple[WritablePlace, bytes]:
    """Return where a skill of this id is created, and the bytes of its file; else D111 to D115."""
    _check_writable_id(skill_id)
    bare, namespace = bare_id(skill_id), namespace_of(skill_id)
    why = _why_not_here(view, bare, namespace)
    if why is not None:
        raise DirectoryError(errors.RESERVED_PLACE, f"skill {quoted(bare)} cannot be created: {why}")
    if view.snapshot.find(bare) is not None:
        raise DirectoryError(errors.SKILL_EXISTS, f"there is a skill {quoted(bare)} already")
    path = f"{bare}.md" if bare == skill_id and bare != namespace else f"{bare}/{OVERVIEW}"
    place = WritablePlace(bare, namespace, path.removeprefix(f"{namespace}/"))
    try:
        vet_path(place.path)
        vet_path(namespace)
    except DirectoryError as error:
        raise DirectoryError(errors.RESERVED_PLACE, error.problem) from None
    return place, written_document(path, content)


def place_of_known(view: CatalogueView, skill_id: str) -> WritablePlace:
    """Return the file of a skill that may be written; D110 if it is missing, D116 if it is read-only."""
    _check_writable_id(skill_id)
    skill = view.snapshot.find(skill_id)
    if skill is None:
        raise not_found(view.snapshot, skill_id)
    shown = view.snapshot.display_id(skill)
    namespace, inside, path = (skill.path or "").partition("/")
    if skill.path is None:
        why = "it is registered by a worker, which alone can change it"
    elif (layer := view.files.folders.layer_of(skill.path)) is not None:
        why = f"it comes from {layer}, which is only read"
    elif not inside:
        why = f"its file lies in no folder; move it to {shown}/{OVERVIEW} to have it written"
    else:
        return WritablePlace(shown, namespace, path)
    raise DirectoryError(errors.READ_ONLY_SKILL, f"skill {quoted(shown)} cannot be written: {why}")


def place_of_file(view: CatalogueView, skill_id: str, path: str, raw: bytes) -> WritablePlace:
    """Return where a file of a skill belongs; D110, D113, D115 or D116 if it may not be written there."""
    place = place_of_known(view, skill_id)
    skill = view.snapshot.find(skill_id)
    folder = None if skill is None else folder_of(skill)
    if skill is None or folder is None:
        problem = f"{quoted(place.id)} is a page: name the skill it belongs to"
        raise DirectoryError(errors.RESERVED_PLACE, problem)
    try:
        vet_path(path)
    except DirectoryError as error:
        raise DirectoryError(errors.RESERVED_PLACE, error.problem) from None
    whole = f"{folder}/{path}"
    if is_hidden(path) or path.endswith((MERGE_SUFFIX, COPY_MARKER)):
        raise DirectoryError(errors.RESERVED_PLACE, f"a file called {quoted(path)} is never served")
    if whole == skill.path:
        raise DirectoryError(errors.RESERVED_PLACE, f"{quoted(path)} is the document itself: leave path out")
    place = place._replace(path=whole.removeprefix(f"{place.namespace}/"))
    if kind_of(place.namespace, place.path) != "file":
        # A page or a prompt of the skill: the rules for documents hold for its text.
        written_document(whole, raw.decode("utf-8", "surrogateescape"))
    elif path.endswith(".md") and len(raw) > limits.MAX_BODY_BYTES:
        problem = f"{quoted(path)} is larger than {limits.MAX_BODY_BYTES // limits.KIB} KiB"
        raise DirectoryError(errors.BAD_BODY, problem)
    sizes = {one.place: one.size for one in files_of(view.snapshot, skill)} | {whole: len(raw)}
    if len(sizes) > limits.MAX_BUNDLE_FILES or sum(sizes.values()) > limits.MAX_BUNDLE_BYTES:
        most = f"{limits.MAX_BUNDLE_FILES} files and {limits.MAX_BUNDLE_BYTES // limits.MIB} MiB"
        problem = f"with this the skill {quoted(place.id)} would have more than {most}"
        raise DirectoryError(errors.QUOTA, problem)
    return place


def written_sizes(view: CatalogueView) -> dict[str, int]:
    """Return the sizes of the documents that callers have written and that are still there, by path."""
    sizes: dict[str, int] = {}
    for namespace, entry in view.lockfile.namespaces.items():
        for path in {*entry.authors, *(entry.files if entry.by == "create" else ())}:
            file = view.snapshot.files.get(f"{namespace}/{path}")
            if file is not None:
                sizes[f"{namespace}/{path}"] = file.size or 0
    return sizes


def check_quota(sizes: Mapping[str, int], most_skills: int, most_bytes: int) -> None:
    """Refuse a write after which callers would have written more than the operator allows."""
    if len(sizes) > most_skills:
        raise DirectoryError(errors.QUOTA, f"callers have written {most_skills} skills, as many as they may")
    total = sum(sizes.values())
    if total > most_bytes:
        problem = f"with this the skills that callers have written take {total} bytes, at most {most_bytes}"
        raise DirectoryError(errors.QUOTA, problem)


def _check_writable_id(skill_id: str) -> None:
    if "::" in skill_id:
        problem = f"{quoted(skill_id)} is a function id, not a skill id"
        raise DirectoryError(errors.FUNCTION_ID_AS_SKILL, problem)
    check_skill_id(skill_id)


def _why_not_here(view: CatalogueView, skill_id: str, namespace: str) -> str | None:
    """Return why a skill of a valid id cannot be created, or None if it can."""
    if skill_id in RESERVED_IDS:
        return f"iii://{skill_id} is the index of all skills"
    if (problem := new_namespace_problem(namespace)) is not None:
        return problem
    if any(segment.startswith("-") for segment in skill_id.split("/")):
        return "programs take a name that begins with '-' for an option"
    if namespace in RESERVED_NAMESPACES:
        return f"the namespace {quoted(namespace)} speaks for itself"
    if namespace in view.snapshot.hidden:
        return f"the namespace {quoted(namespace)} is hidden, because its worker is not installed"
    if (layer := view.files.folders.layer_of(f"{namespace}/")) is not None:
        return f"the namespace {quoted(namespace)} comes from {layer}, which is only read"
    return None
