"""Look after what is installed: newer versions, lost files, files edited by hand."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from iii_directory import limits
from iii_directory.disk import install_record
from iii_directory.documents.facts import listed_facts
from iii_directory.documents.ids import is_namespace
from iii_directory.errors import INSTALL_FAILED, DirectoryError, refused
from iii_directory.install.bundle import check_approved, news_of
from iii_directory.install.plan import (
    Disk,
    FileChanges,
    InstallPlan,
    is_pinned,
    plan_install,
    plan_remove,
    plan_restore,
    verify_entry,
)
from iii_directory.install.reports import Report, Sides, plan_merge, unified_diff, with_merges
from iii_directory.install.sources import AskedOnce
from iii_directory.install.tree import silent
from iii_directory.registry.registry_messages import is_older
from iii_directory.text import close_names, quoted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from iii_directory.disk.install_record import Entry, LockFile
    from iii_directory.install.bundle import Approve, Bundle
    from iii_directory.install.plan import EditedFiles
    from iii_directory.install.process import Threads
    from iii_directory.install.skills_folder import SkillsFolder
    from iii_directory.install.sources import Sources
    from iii_directory.install.tree import Progress


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Look after what the record names: all of it, or some namespaces."""

    folder: SkillsFolder
    sources: Sources
    threads: Threads
    now: Callable[[], str]
    approve: Approve | None = None

    async def update(
        self,
        namespaces: Sequence[str] = (),
        *,
        prune: bool = False,
        merge: bool = False,
        allow_downgrade: bool = False,
        progress: Progress = silent,
    ) -> list[Report]:
        """Bring namespaces up to date: clean files are replaced, edited ones kept or merged."""

        rules = {"prune": prune, "allow_downgrade": allow_downgrade}

        async def one(name: str, entry: Entry, asked: AskedOnce) -> Report:
            try:
                report = await self._update(name, entry, asked, **rules)
            except DirectoryError as error:
                if not merge:
                    raise
                # What was edited is merged without the source.
                report = Report(name, "failed", entry.resolved, error=error)
            return with_merges(report, await self.threads.run(self._merge, name)) if merge else report

        return await self._each(namespaces, one, progress)

    async def outdated(
        self, namespaces: Sequence[str] = (), *, facts: bool = False, progress: Progress = silent
    ) -> list[Report]:
        """Ask whether the sources have something newer, with ``facts`` also what that can newly do."""
        return await self._each(
            namespaces, lambda name, entry, asked: self._outdated(name, entry, asked, facts=facts), progress
        )

    async def restore(
        self, namespaces: Sequence[str] = (), *, force: bool = False, progress: Progress = silent
    ) -> list[Report]:
        """Bring back exactly what the record names; edited files are kept unless forced."""
        edited: EditedFiles = "overwrite" if force else "keep"
        return await self._each(
            namespaces, lambda name, entry, _: self._restore(name, entry, edited), progress
        )

    async def verify(self, namespaces: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Recompute every hash: ``{namespace, status, clean, edited, missing, own}`` each."""
        lock = await self._lock()
        rows: list[dict[str, Any]] = []
        for name in _meant(lock, namespaces):
            entry = _recorded(lock, name)
            found = verify_entry(entry, (await self.threads.run(self.folder.look, name))[0])
            status = "edited" if found["edited"] or found["missing"] or found["mode"] else "clean"
            rows.append({"namespace": name, "status": status, **found})
        return rows

    async def diff(self, namespaces: Sequence[str] = (), *, upstream: bool = False) -> str:
        """Show as a patch what was edited by hand, or what the source changed in those files."""
        if upstream:
            lock = await self._lock()
            entries = {name: _recorded(lock, name) for name in _meant(lock, namespaces)}
            async with AskedOnce(self.sources, entries.values()) as asked:
                return "".join([await self._news(name, entry, asked) for name, entry in entries.items()])
        edited = [row for row in await self.verify(namespaces) if row["status"] == "edited"]
        texts = [await self._edits(row["namespace"], row["edited"] + row["missing"]) for row in edited]
        return "".join(texts)

    async def meant(self, words: Sequence[str]) -> list[str]:
        """Return the namespaces that names, and addresses of sources, stand for."""
        return _meant(await self._lock(), words)

    async def remove(self, namespace: str, *, force: bool = False) -> Report:
        """Remove what the record names of a namespace; edited files stay unless forced."""
        entry = _recorded(await self._lock(), namespace)
        changes = await self.threads.run(self._remove, namespace, force=force)
        status = "edited" if changes.kept else "removed"
        return Report(namespace, status, installed=entry.resolved, changes=changes)

    async def accept_facts(self, namespace: str, reason: str) -> install_record.FactsBaseline:
        """Record as accepted what the installed files of a namespace can do, beside what was before."""
        return await self.threads.run(self._accept_facts, namespace, reason)

    def _accept_facts(self, name: str, reason: str) -> install_record.FactsBaseline:
        facts, before = self.folder.facts(name)
        now = listed_facts(facts)
        accepted: dict[str, list[str]] = {}
        for kind in {**now, **before}:
            if rows := dict.fromkeys((*now.get(kind, ()), *before.get(kind, ()))):
                accepted[kind] = list(rows)[: limits.MAX_ACCEPTED_FACTS]
        baseline = install_record.FactsBaseline(self.now(), reason, accepted)
        with self.folder.locked(name) as namespace:
            entry = _known(namespace.known, name)._replace(facts_baseline=baseline)
            namespace.commit(InstallPlan(name, entry, {}, frozenset(), FileChanges(), edits_win=True))
        return baseline

    def _remove(self, name: str, *, force: bool) -> FileChanges:
        with self.folder.locked(name) as namespace:
            plan = plan_remove(name, namespace.disk, _known(namespace.known, name), force=force)
            namespace.commit(plan)
            namespace.forget_others(())
        return plan.changes

    async def _lock(self) -> LockFile:
        return install_record.unbroken(await self.threads.run(self.folder.lock))

    async def _each(
        self,
        namespaces: Sequence[str],
        act: Callable[[str, Entry, AskedOnce], Awaitable[Report]],
        progress: Progress,
    ) -> list[Report]:
        """Act on each namespace, some at a time; one that fails does not affect the others."""
        lock = await self._lock()
        names = _meant(lock, namespaces)
        turn = asyncio.Semaphore(limits.PARALLEL_DOWNLOADS)
        done = 0

        async def attempt(name: str) -> Report:
            try:
                return await act(name, _recorded(lock, name), asked)
            except DirectoryError as error:
                entry = lock.namespaces.get(name)
                resolved = entry.resolved if entry is not None else None
                return Report(name, "failed", installed=resolved, error=error)

        async def one(name: str) -> Report:
            nonlocal done
            async with turn:
                report = await attempt(name)
            done += 1
            progress(name, done, len(names))
            return report

        entries = (lock.namespaces[name] for name in names if name in lock.namespaces)
        async with AskedOnce(self.sources, entries) as asked:
            return await asyncio.gather(*(one(name) for name in names))

    async def _update(self, name: str, entry: Entry, asked: AskedOnce, **rules: bool) -> Report:
        if is_pinned(entry):
            disk, _ = await self.threads.run(self.folder.look, name, ())
            kept = FileChanges(kept=tuple(verify_entry(entry, disk)["edited"]))
            status = "edited" if kept.kept else "current"
            return Report(name, status, entry.resolved, entry.resolved, pinned=True, changes=kept)
        bundle = await asked.bundle(entry)
        news = await self.threads.run(self._new_facts, name, entry, bundle)
        await self.threads.run(check_approved, self.approve, name, news)
        before = await self._originals(name, entry, bundle)
        changes = await self.threads.run(self._bring, bundle, entry, before, **rules)
        moved = bool(changes.added or changes.replaced or changes.removed)
        if isinstance(entry.source, install_record.RegistrySource):
            moved = moved or bundle.resolved != entry.resolved
        status = "edited" if changes.kept else "updated" if moved else "current"
        return Report(name, status, entry.resolved, bundle.resolved, changes=changes, new_facts=news)

    def _new_facts(self, name: str, entry: Entry, bundle: Bundle) -> dict[str, list[str]]:
        return {} if bundle.hashes == entry.files else news_of(bundle, *self.folder.facts(name))

    def _bring(self, bundle: Bundle, entry: Entry, before: dict[str, bytes], **rules: bool) -> FileChanges:
        """Install what the source has now; ``before`` are texts that edited files were made from."""
        with self.folder.locked(bundle.namespace, bundle.files) as namespace:
            known, now = namespace.known, self.now()
            plan = plan_install(bundle, namespace.disk, known, edited="keep", by=entry.by, now=now, **rules)
            edited_from: Mapping[str, str] = {} if plan.entry is None else plan.entry.edited_from
            after = {bundle.hashes[path]: bundle.files[path] for path in edited_from}
            wanted = {*edited_from.values(), *after}
            namespace.remember({key: text for key, text in (before | after).items() if key in wanted})
            namespace.commit(plan)
            namespace.forget_others(wanted)
        return plan.changes

    async def _originals(self, name: str, entry: Entry, bundle: Bundle) -> dict[str, bytes]:
        """Return the texts that edited files were made from, where the source changed them.

        They come from the source; texts that are kept here already are left out.
        """
        disk, _ = await self.threads.run(self.folder.look, name, ())
        origins = {
            path: entry.edited_from.get(path, entry.files[path])
            for path in verify_entry(entry, disk)["edited"]
            if bundle.hashes.get(path) != entry.files[path]
        }
        kept = [await self._original(name, digest) for digest in origins.values()]
        if None not in kept:
            return {}
        if (old := await self._before(entry)) is None:
            return {}
        return {old.hashes[path]: old.files[path] for path in origins if path in old.files}

    async def _before(self, entry: Entry) -> Bundle | None:
        """Fetch what was installed before, if its source still has it."""
        try:
            return await self.sources.recorded(entry)
        except DirectoryError:
            return None

    def _merge(self, name: str) -> FileChanges:
        with self.folder.locked(name) as namespace:
            known = _known(namespace.known, name)
            sides: dict[str, Sides] = {}
            lost: list[str] = []
            for path in _behind(known, namespace.disk):
                base = self.folder.read_original(name, known.edited_from[path])
                theirs = self.folder.read_original(name, known.files[path])
                mine = self.folder.read(name, path)
                if base is None or mine is None or theirs is None:
                    lost.append(path)
                else:
                    sides[path] = Sides(base, mine, theirs)
            plan = plan_merge(name, namespace.disk, known, sides)
            namespace.commit(plan)
            origins: Mapping[str, str] = {} if plan.entry is None else plan.entry.edited_from
            # The texts that edited files are compared with.
            namespace.forget_others({*origins.values(), *(known.files[path] for path in origins)})
        return replace(plan.changes, conflicts=tuple(sorted((*plan.changes.conflicts, *lost))))

    async def _outdated(self, name: str, entry: Entry, asked: AskedOnce, *, facts: bool) -> Report:
        available = await asked.current(entry)
        # A registry's pre-release may be newer than what its latest tag names.
        newer = available != entry.resolved and not is_older(available, entry.resolved)
        if newer and not isinstance(entry.source, install_record.RegistrySource) and not is_pinned(entry):
            # Another commit need not have changed this skill.
            bundle = await asked.bundle(entry)
            newer = bundle.hashes != entry.files or bundle.executable != frozenset(entry.executable)
        news: dict[str, list[str]] = {}
        if newer and facts and not is_pinned(entry):
            news = await self.threads.run(self._new_facts, name, entry, await asked.bundle(entry))
        disk, _ = await self.threads.run(self.folder.look, name, ())
        behind = _behind(entry, disk)
        status = "outdated" if newer else "edited" if behind else "current"
        return Report(
            name, status, entry.resolved, available, pinned=is_pinned(entry), behind=behind, new_facts=news
        )

    async def _restore(self, name: str, entry: Entry, edited: EditedFiles) -> Report:
        disk, _ = await self.threads.run(self.folder.look, name, ())
        found = verify_entry(entry, disk)
        if not found["missing"] and not found["mode"] and (edited == "keep" or not found["edited"]):
            kept = FileChanges(kept=tuple(found["edited"]))
            return Report(name, "edited" if found["edited"] else "current", entry.resolved, changes=kept)
        bundle = await self.sources.recorded(entry)
        changes = await self.threads.run(self._put_back, bundle, edited)
        status = "edited" if changes.kept else "restored"
        return Report(name, status, entry.resolved, bundle.resolved, changes=changes)

    def _put_back(self, bundle: Bundle, edited: EditedFiles) -> FileChanges:
        with self.folder.locked(bundle.namespace, bundle.files) as namespace:
            known = _known(namespace.known, bundle.namespace)
            plan = plan_restore(bundle, namespace.disk, known, edited=edited)
            namespace.commit(plan)
        return plan.changes

    async def _edits(self, name: str, paths: list[str]) -> str:
        entry = _recorded(await self._lock(), name)
        was = {path: await self._original(name, entry.edited_from.get(path)) for path in paths}
        if None in was.values():
            bundle = await self.sources.recorded(entry)
            was = {path: text if text is not None else bundle.files.get(path) for path, text in was.items()}
        here = {path: await self.threads.run(self.folder.read, name, path) for path in paths}
        return unified_diff(name, [(path, was[path], here[path]) for path in paths])

    async def _news(self, name: str, entry: Entry, asked: AskedOnce) -> str:
        """Show what the source has changed by now in files that are edited here, since they were edited."""
        disk, _ = await self.threads.run(self.folder.look, name, ())
        origins = {
            path: entry.edited_from.get(path, entry.files[path])
            for path in verify_entry(entry, disk)["edited"]
        }
        if not origins or isinstance(entry.source, install_record.WrittenSource):
            return ""
        try:
            now = await asked.bundle(entry)
            digests, files = now.hashes, now.files
        except DirectoryError:
            if not entry.edited_from:
                raise
            # Without its source, what an update has brought is known all the same.
            origins = dict(entry.edited_from)
            digests = entry.files
            kept = {path: await self._original(name, digests[path]) for path in origins}
            files = {path: text for path, text in kept.items() if text is not None}
        was = {path: await self._original(name, digest) for path, digest in origins.items()}
        if None in was.values() and (old := await self._before(entry)) is not None:
            was = {path: text if text is not None else old.files.get(path) for path, text in was.items()}
        changes = [
            (path, was[path], files.get(path))
            for path, digest in origins.items()
            if digests.get(path) != digest
        ]
        return unified_diff(name, changes)

    async def _original(self, name: str, digest: str | None) -> bytes | None:
        return None if digest is None else await self.threads.run(self.folder.read_original, name, digest)


def _behind(known: Entry, disk: Disk) -> tuple[str, ...]:
    """List files that are still edited and that the source changed since."""
    return tuple(
        sorted(
            path
            for path in known.edited_from
            if disk.hashes.get(path) is not None and disk.hashes[path] != known.files[path]
        )
    )


def _meant(lock: LockFile, words: Sequence[str]) -> list[str]:
    """Return the namespaces that words stand for: a name, or the address of a source; all without words."""
    if not words:
        # Also those whose entry cannot be read.
        return sorted({*lock.namespaces, *lock.carried})
    meant: dict[str, None] = {}
    for word in words:
        found = (
            []
            if word in lock.namespaces
            else [name for name, entry in lock.namespaces.items() if _is_from(entry, word)]
        )
        meant.update(dict.fromkeys(found or [word]))
    return list(meant)


def _is_from(entry: Entry, word: str) -> bool:
    """Return whether a source is meant by a word: owner/repo, its address, its folder or its site."""
    source = entry.source
    if isinstance(source, install_record.RepoSource):
        address = source.repo.rstrip("/").removesuffix(".git")
        wanted = word.rstrip("/").removesuffix(".git")
        return address == wanted or ("/" in wanted and address.endswith((f"/{wanted}", f":{wanted}")))
    if isinstance(source, install_record.SiteSource | install_record.FileSource) and "://" in source.url:
        return source.url.rstrip("/") == word.rstrip("/")
    if "/" not in word or not isinstance(source, install_record.FileSource | install_record.LocalSource):
        return False
    path = os.path.abspath(os.path.expanduser(word))
    if isinstance(source, install_record.FileSource):
        return source.url == path
    # The folder of a skill, or one above it.
    return f"{source.path}/".startswith(f"{os.path.realpath(path)}/")


def _recorded(lock: LockFile, namespace: str) -> Entry:
    if namespace in lock.carried:
        raise refused(f"the record of the namespace {quoted(namespace)} is malformed; download it again")
    return _known(lock.namespaces.get(namespace), namespace, lock.namespaces.keys())


def _known(entry: Entry | None, namespace: str, others: AbstractSet[str] = frozenset()) -> Entry:
    if entry is not None:
        return entry
    if not is_namespace(namespace):
        problem = f"nothing that is installed is called {quoted(namespace)} or came from there"
    else:
        yours = f"what was put there by hand, or lies in a root, is its owner's (skills path {namespace})"
        problem = f"the namespace {quoted(namespace)} is not in the record of downloads"
        problem = f"{problem}: only what was installed is looked after, and {yours}"
    close = close_names(namespace, others)
    raise DirectoryError(INSTALL_FAILED, f"{problem}; nothing was changed", did_you_mean=close)
