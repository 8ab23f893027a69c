"""The catalogue at one moment: every visible document of both sources, immutable, and cheap to derive anew.

Pure.

A snapshot is made from what the folder and the registrations say, path by path and record by record. It is
never changed: `Snapshot.changed` gives the next one, and one edited file costs some microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from iii_directory.catalog.shelf import Claims, Pages, Shelf, shelve
from iii_directory.catalog.visibility import Visibility
from iii_directory.documents.ids import INDEX_SUFFIX, bare_id, namespace_of
from iii_directory.documents.model import ParsedFile, Prompt, Skill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Changes = Mapping[str, ParsedFile | None]

T = TypeVar("T")

# Past this share of changed keys, sorting anew is cheaper than one insertion after another.
_BULK: Final = 8


class Snapshot:
    """Every document by its id or name. ``skills`` and ``prompts`` are in the order of what callers see."""

    __slots__ = (
        "_computed",
        "_namespaces",
        "_paths",
        "_sorted",
        "files",
        "hidden",
        "prompt_claims",
        "prompts",
        "registered",
        "skill_claims",
        "skills",
        "visibility",
    )

    def __init__(self) -> None:
        self.files: Pages[ParsedFile] = Pages()
        """What each file of the folder is, by its path."""
        self.registered: Pages[ParsedFile] = Pages()
        """What each registered record is, by any key that tells one from another."""
        self.visibility = Visibility()
        self.hidden: frozenset[str] = frozenset()
        """Namespaces of the folder that are not shown."""
        self.skill_claims: Claims[Skill] = Claims(_rank)
        self.prompt_claims: Claims[Prompt] = Claims(_rank)
        self.skills: Shelf[Skill] = Shelf([])
        """By display id."""
        self.prompts: Shelf[Prompt] = Shelf([])
        self._namespaces: Pages[Pages[Literal[True]]] = Pages()
        """The paths of the documents in each namespace of the folder."""
        self._paths: Pages[Pages[Literal[True]]] = Pages()
        """The paths of all its files, documents or not."""
        self._sorted: dict[str, tuple[Pages[Literal[True]], list[str]]] = {}
        """Those in order, of the namespaces that were asked for; snapshots hand it on."""
        self._computed: dict[Any, Any] = {}

    def changed(
        self,
        files: Changes | None = None,
        registered: Changes | None = None,
        visibility: Visibility | None = None,
    ) -> Snapshot:
        """The next snapshot: files or records are new, other, or (None) gone, or another rule hides some."""
        if not files and not registered and (visibility is None or visibility is self.visibility):
            return self
        after = Snapshot()
        after.files = self.files.changed(files or {})
        after.registered = self.registered.changed(registered or {})
        after.visibility = visibility or self.visibility
        after._namespaces = _moved_paths(self._namespaces, self.files, files or {}, _is_document)
        after._paths = _moved_paths(self._paths, self.files, files or {}, _is_file)
        after._sorted = self._sorted
        after.hidden = after._hide(self, files or {})
        removed = self._entries(files or {}, registered or {}, self.hidden ^ after.hidden)
        added = after._entries(files or {}, registered or {}, self.hidden ^ after.hidden)
        after._shelve_skills(self, removed, added)
        after._shelve_prompts(self, removed, added)
        return after

    def find(self, skill_id: str) -> Skill | None:
        """The skill an address leads to: of this id, or the overview right below it."""
        winners = self.skill_claims.winners
        found = _shown(winners, skill_id)
        if found is not None:
            return found
        overview = _shown(winners, skill_id + INDEX_SUFFIX)
        return None if overview is None or self.is_apart(overview) else overview

    def closes(self, namespace: str) -> bool:
        """Whether a folder has documents of a namespace, so that no registration speaks for it."""
        if namespace in self._namespaces:
            return True
        document = self.skill_claims.winners.get(namespace)
        return document is not None and document.path is not None

    def is_apart(self, skill: Skill) -> bool:
        """Whether a skill is registered in a namespace of a folder, so that its own id alone leads to it."""
        return skill.path is None and self.closes(namespace_of(skill.id))

    def paths_in(self, namespace: str) -> Iterable[str]:
        """The path of every document that a folder has in a namespace, in no order."""
        return self._namespaces.get(namespace) or ()

    def file(self, path: str) -> ParsedFile | None:
        """The file at a path below the folder, document or not, unless it is hidden."""
        entry = self.files.get(path)
        return None if entry is None or entry.size is None or self._hides(path) else entry

    def paths_of(self, namespace: str) -> list[str]:
        """The path of every file of a namespace, or with no name of those at the root, in order."""
        paths = None if namespace in self.hidden else self._paths.get(namespace)
        if paths is None:
            return []
        known = self._sorted.get(namespace)
        if known is None or known[0] is not paths:
            known = self._sorted[namespace] = (paths, sorted(paths))
        return known[1]

    def folders(self) -> list[str]:
        """The namespaces that have files and are shown; one without a name is the root."""
        return [namespace for namespace in self._paths if namespace not in self.hidden]

    def prompt(self, name: str) -> Prompt | None:
        return self.prompt_claims.winners.get(name)

    def display_id(self, skill: Skill) -> str:
        """The id callers see: an overview goes by the name of its folder, unless another skill has that."""
        return self._display_id(skill.id)

    def skills_below(self, namespace: str) -> list[Skill]:
        """Every skill of a namespace but the one that is called like it."""
        return self.skills.below(f"{namespace}/", _itself)

    def rows_of(self, prefix: str, make: Callable[[str, Skill], T]) -> list[T]:
        """The rows of the skills whose ids start with ``prefix``, in the order of their display ids."""
        rows = self.skills.below(prefix, make)
        # An overview that goes by the name of its folder may still have an id that starts so.
        folder, slash, rest = prefix.rpartition("/")
        overview = self.skill_claims.winners.get(folder + INDEX_SUFFIX)
        if (
            overview is not None
            and INDEX_SUFFIX.startswith(slash + rest)
            and folder == self.display_id(overview)
        ):
            rows.insert(0, make(folder, overview))
        return rows

    def namespaces(self) -> frozenset[str]:
        """The first segments of every id."""
        return self.once(_namespaces_of)

    def documenting(self, function_id: str) -> list[Skill]:
        """The skills whose front matter names a function."""
        return [
            skill
            for skill in self.skills.items
            if skill.function_id == function_id or function_id in skill.functions
        ]

    def once(self, compute: Callable[[Snapshot], T]) -> T:
        """What ``compute`` makes of this snapshot, computed at the first call. Never change the result."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        return cast("T", self._computed[compute])

    def _hide(self, before: Snapshot, files: Changes) -> frozenset[str]:
        if self.visibility.installed is None:
            return frozenset()
        if self.visibility is before.visibility:
            asked = {_folder(path) for path in files}
            hidden = set(before.hidden - asked)
        else:
            asked = set(self._namespaces)
            hidden = set[str]()
        for namespace in asked:
            paths = self._namespaces.get(namespace)
            if paths and not self.visibility.shows(namespace, paths):
                hidden.add(namespace)
        return frozenset(hidden)

    def _entries(self, files: Changes, registered: Changes, toggled: frozenset[str]) -> list[ParsedFile]:
        """What this snapshot shows at some paths, in some records, and in namespaces that come or go."""
        paths = set(files).union(*(self._namespaces.get(namespace) or () for namespace in toggled))
        found = [self.files[path] for path in paths if path in self.files and not self._hides(path)]
        found += [self.registered[key] for key in registered if key in self.registered]
        return found

    def _hides(self, path: str) -> bool:
        return bool(self.hidden) and _folder(path) in self.hidden

    def _shelve_skills(self, before: Snapshot, removed: list[ParsedFile], added: list[ParsedFile]) -> None:
        self.skill_claims, moved = before.skill_claims.changed(_skills(removed), _skills(added))
        old, new = before.skill_claims.winners, self.skill_claims.winners
        if len(moved) * _BULK > len(new):
            self.skills = shelve(
                {self._display_id(key): skill for key in new if (skill := _shown(new, key)) is not None}
            )
            return
        # Whether an overview is shown, and by the name of its folder, depends on the skill of that name.
        affected = moved | {_twin(skill_id) for skill_id in moved}
        affected |= {skill_id + INDEX_SUFFIX for skill_id in affected}
        affected |= self._overviews_moved_apart(before, [*removed, *added])
        edits: dict[str, Skill | None] = {before._display_id(key): None for key in affected if key in old}
        edits.update(
            {self._display_id(key): skill for key in affected if (skill := _shown(new, key)) is not None}
        )
        self.skills = before.skills.changed(edits)

    def _overviews_moved_apart(self, before: Snapshot, changed: list[ParsedFile]) -> set[str]:
        """The registered overviews in namespaces that a folder has now and had not before, or reversely."""
        documents = [document for entry in changed if (document := entry.skill or entry.prompt) is not None]
        paths = [document.path for document in documents if document.path is not None]
        names = {namespace_of(path.removesuffix(".md")) for path in paths}
        return {
            skill.id
            for name in names
            if before.closes(name) != self.closes(name)
            for skill in before.skills.below(name, _itself)
            if skill.path is None and skill.id.endswith(INDEX_SUFFIX)
        }

    def _display_id(self, skill_id: str) -> str:
        bare, winners = bare_id(skill_id), self.skill_claims.winners
        if bare == skill_id:
            return bare
        overview = winners.get(skill_id)
        taken = _shown(winners, bare) is not None or (overview is not None and self.is_apart(overview))
        return skill_id if taken else bare

    def _shelve_prompts(self, before: Snapshot, removed: list[ParsedFile], added: list[ParsedFile]) -> None:
        self.prompt_claims, moved = before.prompt_claims.changed(_prompts(removed), _prompts(added))
        winners = self.prompt_claims.winners
        if len(moved) * _BULK > len(winners):
            self.prompts = shelve(dict(winners.items()))
        else:
            self.prompts = before.prompts.changed({name: winners.get(name) for name in moved})


def _rank(entry: Skill | Prompt) -> tuple[bool, bool, str]:
    """Who wins a key, lowest first: files before registrations, then a file's place before its claim."""
    path = entry.path or ""
    claimed = isinstance(entry, Prompt) and not path.endswith(f"/{entry.name}.md")
    return entry.source != "folder", claimed, path


def outranked_by(winners: Pages[Skill], skill: Skill) -> Skill | None:
    """The file that is served instead of a registration: to readers ``x`` and ``x/index`` are one id."""
    if skill.source == "folder":
        return None
    twin = winners.get(_twin(skill.id))
    return twin if twin is not None and twin.source == "folder" else None


def _twin(skill_id: str) -> str:
    """The other id by which readers mean the same document."""
    bare = bare_id(skill_id)
    return bare if bare != skill_id else skill_id + INDEX_SUFFIX


def _shown(winners: Pages[Skill], skill_id: str) -> Skill | None:
    skill = winners.get(skill_id)
    return None if skill is None or outranked_by(winners, skill) is not None else skill


def _moved_paths(
    namespaces: Pages[Pages[Literal[True]]],
    files: Pages[ParsedFile],
    changes: Changes,
    counts: Callable[[ParsedFile | None], bool],
) -> Pages[Pages[Literal[True]]]:
    """The paths of each namespace that count, after some changes; edits of what stays cost nothing."""
    moved: dict[str, dict[str, Literal[True] | None]] = {}
    for path, entry in changes.items():
        if counts(files.get(path)) != counts(entry):
            moved.setdefault(_folder(path), {})[path] = True if counts(entry) else None
    edited: dict[str, Pages[Literal[True]] | None] = {}
    for namespace, paths in moved.items():
        edited[namespace] = (namespaces.get(namespace) or Pages()).changed(paths) or None
    return namespaces.changed(edited)


def _is_document(entry: ParsedFile | None) -> bool:
    return entry is not None and (entry.skill or entry.prompt) is not None


def _is_file(entry: ParsedFile | None) -> bool:
    return entry is not None and entry.size is not None


def _folder(path: str) -> str:
    """The namespace a file belongs to: the folder at the root it lies in, or none, which nothing hides."""
    namespace, slash, _ = path.partition("/")
    return namespace if slash else ""


def _skills(entries: Iterable[ParsedFile]) -> list[tuple[str, Skill]]:
    return [(entry.skill.id, entry.skill) for entry in entries if entry.skill is not None]


def _prompts(entries: Iterable[ParsedFile]) -> list[tuple[str, Prompt]]:
    return [(entry.prompt.name, entry.prompt) for entry in entries if entry.prompt is not None]


def _itself(_: str, skill: Skill) -> Skill:
    return skill


def _namespaces_of(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(map(namespace_of, snapshot.skills.keys))


EMPTY: Final = Snapshot()
