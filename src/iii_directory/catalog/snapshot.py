"""Hold the catalogue at one moment: every visible document of both sources, immutable. Pure.

A snapshot is made from what the folder and the registrations hold, path by path and record by record. It is
never changed: `Snapshot.changed` returns the next one, and one edited file costs some microseconds.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from iii_directory.catalog.origins import Visibility
from iii_directory.catalog.persistent import Claims, PagedMap, SortedDocuments, sorted_by_key
from iii_directory.documents.ids import INDEX_SUFFIX, bare_id, namespace_of
from iii_directory.documents.model import ParsedFile, Prompt, Skill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Changes = Mapping[str, ParsedFile | None]

T = TypeVar("T")

# Past this share of changed keys, sorting anew is cheaper than one insertion after another.
_BULK: Final = 8


def once_per_snapshot(compute: Callable[[Snapshot], T]) -> Callable[[Snapshot], T]:
    """Make a function of a snapshot compute once for each snapshot. Callers must not change the result."""

    @wraps(compute)
    def computed(snapshot: Snapshot) -> T:
        if compute not in snapshot.computed:
            snapshot.computed[compute] = compute(snapshot)
        return cast("T", snapshot.computed[compute])

    return computed


class Snapshot:
    """Every document by its id or name. ``skills`` and ``prompts`` are sorted by what callers see."""

    def __init__(self) -> None:
        self.files: PagedMap[ParsedFile] = PagedMap()
        """Every file of the folder by its path."""
        self.registered: PagedMap[ParsedFile] = PagedMap()
        """Every registered record, by any key that tells one from another."""
        self.visibility = Visibility()
        self.hidden: frozenset[str] = frozenset()
        """Namespaces of the folder that are not shown."""
        self.skill_claims: Claims[Skill] = Claims(_rank)
        self.prompt_claims: Claims[Prompt] = Claims(_rank)
        self.skills: SortedDocuments[Skill] = SortedDocuments([])
        """By display id."""
        self.prompts: SortedDocuments[Prompt] = SortedDocuments([])
        self._namespaces: PagedMap[PagedMap[Literal[True]]] = PagedMap()
        """The paths of the documents in each namespace of the folder."""
        self._paths: PagedMap[PagedMap[Literal[True]]] = PagedMap()
        """The paths of all files in each namespace, documents or not."""
        self._sorted: dict[str, tuple[PagedMap[Literal[True]], list[str]]] = {}
        """``_paths`` in order, for the namespaces that were asked for; the next snapshot shares it."""
        self.computed: dict[Any, Any] = {}
        """The results of functions that are `once_per_snapshot`."""

    def changed(
        self,
        files: Changes | None = None,
        registered: Changes | None = None,
        visibility: Visibility | None = None,
    ) -> Snapshot:
        """Return the next snapshot, with new, changed or (None) removed files and records."""
        if visibility is None or visibility == self.visibility:
            visibility = self.visibility
        if not files and not registered and visibility is self.visibility:
            return self
        files, registered = files or {}, registered or {}
        after = Snapshot()
        after.files = self.files.changed(files)
        after.registered = self.registered.changed(registered)
        after.visibility = visibility
        after._namespaces = _moved_paths(
            self._namespaces, self.files, files, lambda entry: (entry.skill or entry.prompt) is not None
        )
        after._paths = _moved_paths(self._paths, self.files, files, lambda entry: entry.size is not None)
        after._sorted = self._sorted
        after.hidden = after._hidden_after(self, files)
        # What is shown differently: the changed entries, and all of a namespace that is hidden or shown anew.
        removed = self._entries(files, registered, self.hidden ^ after.hidden)
        added = after._entries(files, registered, self.hidden ^ after.hidden)
        after._sort_skills(self, removed, added)
        after._sort_prompts(self, removed, added)
        return after

    def find(self, skill_id: str) -> Skill | None:
        """Return the skill that an address leads to: of this id, or the overview right below it."""
        winners = self.skill_claims.winners
        found = _shown(winners, skill_id)
        if found is not None:
            return found
        overview = _shown(winners, skill_id + INDEX_SUFFIX)
        return None if overview is None or self.is_apart(overview) else overview

    def closes(self, namespace: str) -> bool:
        """Return whether a folder has documents of a namespace, so that no registration speaks for it."""
        if namespace in self._namespaces:
            return True
        document = self.skill_claims.winners.get(namespace)
        return document is not None and document.path is not None

    def is_apart(self, skill: Skill) -> bool:
        """Return whether a skill is registered in a namespace of a folder: only its own id leads to it."""
        return skill.path is None and self.closes(namespace_of(skill.id))

    def paths_in(self, namespace: str) -> Iterable[str]:
        """Return the paths of the documents that a folder has in a namespace, without an order."""
        return self._namespaces.get(namespace) or ()

    def file(self, path: str) -> ParsedFile | None:
        """Return the file at a path below the folder, document or not, unless it is hidden."""
        entry = self.files.get(path)
        return None if entry is None or entry.size is None or self._hides(path) else entry

    def paths_of(self, namespace: str) -> list[str]:
        """Return the sorted paths of all files of a namespace; an empty name means the root."""
        paths = None if namespace in self.hidden else self._paths.get(namespace)
        if paths is None:
            return []
        known = self._sorted.get(namespace)
        if known is None or known[0] is not paths:
            known = self._sorted[namespace] = (paths, sorted(paths))
        return known[1]

    def folders(self) -> list[str]:
        """Return the shown namespaces that have files; an empty name means the root."""
        return [namespace for namespace in self._paths if namespace not in self.hidden]

    def prompt(self, name: str) -> Prompt | None:
        return self.prompt_claims.winners.get(name)

    def display_id(self, skill: Skill) -> str:
        """Return the id callers see: an overview has the name of its folder, unless another skill has it."""
        return self._display_id(skill.id)

    def skills_below(self, namespace: str) -> list[Skill]:
        """Return the skills of a namespace without the one that has its name."""
        return self.skills.below(f"{namespace}/", _itself)

    def rows_of(self, prefix: str, make: Callable[[str, Skill], T]) -> list[T]:
        """Return the rows of the skills whose ids start with ``prefix``, sorted by display id."""
        rows = self.skills.below(prefix, make)
        # An overview shown by the name of its folder has an id that may start with the prefix nevertheless.
        folder, slash, rest = prefix.rpartition("/")
        overview = self.skill_claims.winners.get(folder + INDEX_SUFFIX)
        if (
            overview is not None
            and INDEX_SUFFIX.startswith(slash + rest)
            and folder == self.display_id(overview)
        ):
            rows.insert(0, make(folder, overview))
        return rows

    def documenting(self, function_id: str) -> list[Skill]:
        """Return the skills whose front matter names a function."""
        items = self.skills.items
        return [one for one in items if one.function_id == function_id or function_id in one.functions]

    def _hidden_after(self, before: Snapshot, files: Changes) -> frozenset[str]:
        """Return the hidden namespaces, asking the rule only for those that changed."""
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
        """Return what this snapshot shows at some paths, in some records, and in toggled namespaces."""
        paths = set(files).union(*(self._namespaces.get(namespace) or () for namespace in toggled))
        found = [self.files[path] for path in paths if path in self.files and not self._hides(path)]
        found += [self.registered[key] for key in registered if key in self.registered]
        return found

    def _hides(self, path: str) -> bool:
        return bool(self.hidden) and _folder(path) in self.hidden

    def _sort_skills(self, before: Snapshot, removed: list[ParsedFile], added: list[ParsedFile]) -> None:
        self.skill_claims, moved = before.skill_claims.changed(
            *(((e.skill.id, e.skill) for e in entries if e.skill is not None) for entries in (removed, added))
        )
        old, new = before.skill_claims.winners, self.skill_claims.winners
        if len(moved) * _BULK > len(new):
            shown = ((key, _shown(new, key)) for key in new)
            self.skills = sorted_by_key({self._display_id(key): one for key, one in shown if one is not None})
            return
        # Whether an overview is shown, and by the name of its folder, depends on the skill of that name.
        affected = moved | {_twin(skill_id) for skill_id in moved}
        affected |= {skill_id + INDEX_SUFFIX for skill_id in affected}
        affected |= self._overviews_moved_apart(before, [*removed, *added])
        edits: dict[str, Skill | None] = {before._display_id(key): None for key in affected if key in old}
        for key in affected:
            if (skill := _shown(new, key)) is not None:
                edits[self._display_id(key)] = skill
        self.skills = before.skills.changed(edits)

    def _overviews_moved_apart(self, before: Snapshot, changed: list[ParsedFile]) -> set[str]:
        """Return the registered overviews in namespaces that a folder has gained or lost."""
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

    def _sort_prompts(self, before: Snapshot, removed: list[ParsedFile], added: list[ParsedFile]) -> None:
        self.prompt_claims, moved = before.prompt_claims.changed(
            *(
                ((e.prompt.name, e.prompt) for e in entries if e.prompt is not None)
                for entries in (removed, added)
            )
        )
        winners = self.prompt_claims.winners
        if len(moved) * _BULK > len(winners):
            self.prompts = sorted_by_key(dict(winners.items()))
        else:
            self.prompts = before.prompts.changed({name: winners.get(name) for name in moved})


@once_per_snapshot
def namespaces_of(snapshot: Snapshot) -> frozenset[str]:
    """Return the first segments of all ids."""
    return frozenset(map(namespace_of, snapshot.skills.keys))


def outranked_by(winners: PagedMap[Skill], skill: Skill) -> Skill | None:
    """Return the file served instead of a registration: to readers ``x`` and ``x/index`` are one id."""
    if skill.path is not None:
        return None
    twin = winners.get(_twin(skill.id))
    return twin if twin is not None and twin.path is not None else None


def _rank(entry: Skill | Prompt) -> tuple[bool, bool, str]:
    """Order claims to a key, best first: files before registrations, and a file's place before its claim."""
    path = entry.path or ""
    claimed = isinstance(entry, Prompt) and not path.endswith(f"/{entry.name}.md")
    return entry.path is None, claimed, path


def _twin(skill_id: str) -> str:
    """Return the other id by which readers mean the same document."""
    bare = bare_id(skill_id)
    return bare if bare != skill_id else skill_id + INDEX_SUFFIX


def _shown(winners: PagedMap[Skill], skill_id: str) -> Skill | None:
    skill = winners.get(skill_id)
    return None if skill is None or outranked_by(winners, skill) is not None else skill


def _moved_paths(
    namespaces: PagedMap[PagedMap[Literal[True]]],
    files: PagedMap[ParsedFile],
    changes: Changes,
    counts: Callable[[ParsedFile], bool],
) -> PagedMap[PagedMap[Literal[True]]]:
    """Return the paths that count in each namespace, after some changes."""
    moved: dict[str, dict[str, Literal[True] | None]] = {}
    for path, entry in changes.items():
        known = files.get(path)
        counted = entry is not None and counts(entry)
        if counted != (known is not None and counts(known)):
            moved.setdefault(_folder(path), {})[path] = True if counted else None
    edited: dict[str, PagedMap[Literal[True]] | None] = {}
    for namespace, paths in moved.items():
        edited[namespace] = (namespaces.get(namespace) or PagedMap()).changed(paths) or None
    return namespaces.changed(edited)


def _folder(path: str) -> str:
    """Return the folder at the root in which a file lies; empty, which nothing hides, at the root itself."""
    namespace, slash, _ = path.partition("/")
    return namespace if slash else ""


def _itself(_: str, skill: Skill) -> Skill:
    return skill


EMPTY: Final = Snapshot()
