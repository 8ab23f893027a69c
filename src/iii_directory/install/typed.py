"""What people type to name a source of skills, and the skills that are found in one. Pure.

agent-memory, agent-memory@1.2.3      a worker of the registry
owner/repo, owner/repo/path, …@ref    a repository of GitHub, or one folder of it
https://github.com/o/r/tree/ref/path  the same, as a browser shows it
https://…, ssh://…, git@…:…           any git repository
./folder, /folder                     a folder of this machine
https://host                          the well-known index of a site
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.documents import frontmatter
from iii_directory.documents.ids import OVERVIEW
from iii_directory.errors import SOURCE_REFUSED, DirectoryError, Step
from iii_directory.install.requests import LocalFolder, RepoTree, Site, repo_tree
from iii_directory.lockfile.names import is_namespace
from iii_directory.registry.requests import WorkerRequest, worker_request
from iii_directory.registry.versions import is_version
from iii_directory.suggest import close_names
from iii_directory.text import one_line, quoted, shown_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Typed = WorkerRequest | RepoTree | LocalFolder | Site

_GITHUB: Final = "https://github.com/"
_OWNER: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_SHORT: Final = re.compile(rf"({_OWNER}/[A-Za-z0-9._-]+)((?:/[^/@\s]+)*)/?(?:@(\S+))?")
_TREE: Final = re.compile(rf"https://github\.com/({_OWNER}/[A-Za-z0-9._-]+?)(?:\.git)?/(?:tree|blob)/(\S+)")
_SITE: Final = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?/?")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
# Where agents keep skills although the name of the folder starts with a dot.
_SHOWN: Final = ((".claude", "skills"), (".agents", "skills"))
_FORMS: Final = "NAME, NAME@VERSION, owner/repo, a git address, ./folder or https://host"


def typed_source(text: str, *, allow_file: bool = False) -> Typed:
    """Return the source that a person typed; D311 or D331 with what was typed when it is not a source."""
    try:
        return _source_of(text, allow_file=allow_file)
    except DirectoryError as error:
        typed = quoted(shown_url(text))
        if typed in error.problem:
            raise
        problem = f"{typed} is not a source of skills: {error.problem}"
        raise DirectoryError(error.kind, problem, next_steps=(Step(f"give {_FORMS}"),)) from None


def _source_of(text: str, *, allow_file: bool) -> Typed:
    if text.startswith(("./", "../", "/", "~/")) or text in (".", ".."):
        return LocalFolder(text)
    tree = _TREE.fullmatch(text)
    if tree is not None:
        return repo_tree(f"{_GITHUB}{tree[1]}", tree=tree[2].strip("/").removesuffix(f"/{OVERVIEW}"))
    site = _SITE.fullmatch(text)
    if site is not None:
        if site[1] == "http" and site[2] not in _LOOPBACK:
            raise DirectoryError(SOURCE_REFUSED, "plain http is not secure: use https://")
        return Site(text.rstrip("/"))
    if "://" in text or text.startswith("git@"):
        return _repository(text, allow_file=allow_file)
    short = _SHORT.fullmatch(text)
    if short is not None:
        return repo_tree(f"{_GITHUB}{short[1]}", ref=short[3], path=short[2].strip("/"))
    return _worker(text)


def _repository(text: str, *, allow_file: bool) -> RepoTree:
    """An address, perhaps with ``@ref`` at its end; ``git@host:…`` has its own ``@``."""
    at = text.rfind("@")
    has_ref = at > max(text.rfind("/"), text.rfind(":"))
    address, ref = (text[:at], text[at + 1 :]) if has_ref else (text, None)
    return repo_tree(address, ref=ref, allow_file=allow_file)


def _worker(text: str) -> WorkerRequest:
    name, at, wanted = text.partition("@")
    if not at:
        return worker_request(name)
    return worker_request(name, wanted) if is_version(wanted) else worker_request(name, tag=wanted)


@dataclass(frozen=True, slots=True)
class Offer:
    """A skill that a source has."""

    name: str
    """What it will be called: the name of its folder; at the root of a source, what it calls itself."""
    path: str
    """Its folder, ``.`` for the root."""
    description: str = ""
    declared: str | None = None
    """The name in its front matter, by which it can be asked for, too."""

    @property
    def is_installable(self) -> bool:
        return is_namespace(self.name)


def offer_of(folder: str, overview: bytes, root_name: str) -> Offer:
    """The offer in a folder's SKILL.md; ``root_name`` is for a skill at the root that has no name."""
    block, _ = frontmatter.split(overview.decode("utf-8-sig", "replace"))
    values = frontmatter.read(block).values if block is not None else {}
    declared, description = values.get("name"), values.get("description")
    own_name = declared if isinstance(declared, str) else None
    name = folder.rpartition("/")[2]
    if folder == ".":
        name = own_name if own_name is not None and is_namespace(own_name) else root_name
    return Offer(name, folder, one_line(description) if isinstance(description, str) else "", own_name)


@dataclass(frozen=True, slots=True)
class Selection:
    """What of the offers is meant, and what is not clear."""

    chosen: tuple[Offer, ...] = ()
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Names that several folders have, with the folders."""
    unfit: tuple[Offer, ...] = ()
    """Those whose names cannot be names here."""


def skill_folders(paths: Iterable[str], below: str = "") -> list[str]:
    """The folders with a SKILL.md, of all files of a source; ``.`` is the root.

    A skill inside another one comes with it and is not named; inside the root's, which is the whole source,
    it stands for itself as well.
    """
    found = sorted(_folder_of(path) for path in paths if path.rpartition("/")[2] == OVERVIEW)
    wanted = [folder for folder in found if _is_below(folder, below) and _is_shown(folder)]
    tops: list[str] = []
    for folder in wanted:
        if not any(top != "." and folder.startswith(f"{top}/") for top in tops):
            tops.append(folder)
    return tops


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _is_below(folder: str, below: str) -> bool:
    return not below or folder == below or folder.startswith(f"{below}/")


def _is_shown(folder: str) -> bool:
    """Not below a hidden folder, those of agents excepted, and not below what a package manager fetched."""
    parts = [] if folder == "." else folder.split("/")
    hidden = [number for number, part in enumerate(parts) if part.startswith(".")]
    return "node_modules" not in parts and all(tuple(parts[at : at + 2]) in _SHOWN for at in hidden)


def select(offers: Sequence[Offer], wanted: Sequence[str], *, everything: bool, source: str) -> Selection:
    """What is to be installed: the wanted, all, or the only one; nothing when it is not said which."""
    if not offers:
        raise DirectoryError(SOURCE_REFUSED, f"{source} has no folder with a {OVERVIEW}", next_steps=())
    if not wanted:
        return _selection(offers if everything or len(offers) == 1 else ())
    chosen: list[Offer] = []
    for name in wanted:
        found = [offer for offer in offers if name in (offer.name, offer.declared, offer.path)]
        if not found:
            raise _no_skill(name, offers, source)
        chosen.extend(offer for offer in found if offer not in chosen)
    return _selection(chosen)


def _selection(offers: Iterable[Offer]) -> Selection:
    by_name: dict[str, list[Offer]] = {}
    for offer in offers:
        by_name.setdefault(offer.name, []).append(offer)
    single = [found[0] for found in by_name.values() if len(found) == 1]
    several = {
        name: tuple(offer.path for offer in found) for name, found in by_name.items() if len(found) > 1
    }
    return Selection(
        chosen=tuple(offer for offer in single if offer.is_installable),
        ambiguous=several,
        unfit=tuple(offer for offer in single if not offer.is_installable),
    )


def _no_skill(name: str, offers: Iterable[Offer], source: str) -> DirectoryError:
    names = {offer.name for offer in offers}
    return DirectoryError(
        SOURCE_REFUSED,
        f"{source} has no skill {quoted(name)}",
        did_you_mean=close_names(name, names) or sorted(names)[: limits.MAX_SUGGESTIONS],
        next_steps=(Step("add --list to see every skill of it"),),
    )
