"""Find the skills of a source, and check the files of one in full before anything is written. Pure.

Only `make_bundle` makes a `Bundle`, so every path in one may be written.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory import limits
from iii_directory.disk.install_record import content_hash
from iii_directory.documents import frontmatter, ids
from iii_directory.documents.model import Finding
from iii_directory.errors import INSTALL_FAILED, SOURCE_REFUSED, DirectoryError, Step, refused
from iii_directory.limits import MAX_PLUGINS
from iii_directory.shapes import items_of, object_of, rows_of, text_of
from iii_directory.text import close_names, one_line, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from iii_directory.disk.install_record import Source
    from iii_directory.documents.facts import Accepted, Facts
    from iii_directory.registry.registry_messages import BundleAnswer, PromptAnswer

    Approve = Callable[[str, Mapping[str, list[str]]], bool]

# Where agents keep skills although the name of the folder starts with a dot.
_SHOWN: Final = ((".claude", "skills"), (".agents", "skills"))
_NOT_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of one namespace as the source has them now."""

    namespace: str
    source: Source
    resolved: str
    files: Mapping[str, bytes]
    hashes: Mapping[str, str]
    """Of every file, computed once."""
    executable: frozenset[str] = frozenset()
    """Which of them are programs."""
    left_out: tuple[str, ...] = ()
    """Dot files of the source, which are not installed."""
    findings: tuple[Finding, ...] = ()

    def prompt_name(self, path: str) -> str:
        """Return the name of the prompt in a file: from its front matter, else the stem."""
        name = frontmatter.of_text(self.files[path].decode("utf-8", "replace")).values.get("name")
        return name if isinstance(name, str) and name else path.rpartition("/")[2].removesuffix(".md")


def make_bundle(
    namespace: str,
    source: Source,
    resolved: str | None,
    entries: Iterable[tuple[str, bytes]],
    executable: Collection[str] = (),
) -> Bundle:
    """Check names, sizes and counts; raise D340 for the first thing that is not right.

    ``resolved`` is None where the source has no versions: then a digest of the content stands for one.
    """
    if not ids.is_namespace(namespace):
        raise refused(f"{quoted(namespace)} cannot be the name of a namespace")
    found = list(entries)
    for path, _ in found:
        ids.vet_path(path)
    wanted = [(path, content) for path, content in found if not ids.is_hidden(path)]
    ids.vet_together(path for path, _ in wanted)
    if not wanted:
        raise refused("the bundle is empty")
    check_count(len(wanted))
    check_total(sum(len(content) for _, content in wanted))
    for path, content in wanted:
        check_file(path, len(content))
    files = dict(sorted(wanted))
    hashes = {path: content_hash(content) for path, content in files.items()}
    programs = frozenset(executable) & files.keys()
    if resolved is None:
        lines = sorted(
            f"{digest} {'x' if path in programs else '-'} {path}" for path, digest in hashes.items()
        )
        resolved = content_hash("\n".join(lines).encode())[:19]
    return Bundle(
        namespace=namespace,
        source=source,
        resolved=resolved,
        files=files,
        hashes=hashes,
        executable=programs,
        left_out=tuple(sorted(path for path, _ in found if ids.is_hidden(path))),
    )


def bundle_facts(bundle: Bundle) -> Facts:
    """Collect what the files of a bundle can do."""
    # Only here, because a worker starts without it.
    from iii_directory.documents.facts import fact_content, facts_of

    return facts_of(
        {path: fact_content(raw, path in bundle.executable) for path, raw in bundle.files.items()}
    )


def news_of(bundle: Bundle, before: Facts, accepted: Accepted) -> dict[str, list[str]]:
    """List what a bundle can do that the installed files of its namespace cannot, and was not accepted."""
    from iii_directory.documents.facts import new_facts

    return new_facts(before, bundle_facts(bundle), accepted)


def check_approved(approve: Approve | None, namespace: str, news: Mapping[str, list[str]]) -> None:
    """Ask whether to go on with what a bundle can newly do; raise D340 if it is declined."""
    if news and approve is not None and not approve(namespace, news):
        problem = f"{namespace} was not approved; nothing was changed"
        raise DirectoryError(INSTALL_FAILED, problem, next_steps=())


def check_count(count: int) -> None:
    if count > limits.MAX_BUNDLE_FILES:
        raise refused(f"the bundle has more than {limits.MAX_BUNDLE_FILES} files")


def check_total(size: int) -> None:
    if size > limits.MAX_BUNDLE_BYTES:
        raise refused(f"the bundle is larger than {limits.MAX_BUNDLE_BYTES // limits.MIB} MiB")


def check_file(path: str, size: int) -> None:
    if path.endswith(".md") and size > limits.MAX_BODY_BYTES:
        raise refused(f"{quoted(path)} is larger than {limits.MAX_BODY_BYTES // limits.KIB} KiB")


def registry_bundle(source: Source, namespace: str, answer: BundleAnswer) -> Bundle:
    """Make the bundle of a registry's answer; paths lose one leading ``skills/``, prompts become files."""
    entries = [
        (skill.path.removeprefix("skills/"), _encoded(skill.path, skill.content)) for skill in answer.skills
    ]
    findings: list[Finding] = []
    for prompt in answer.prompts:
        path = f"prompts/{prompt.name}.md"
        text, complete = prompt_file(prompt)
        entries.append((path, _encoded(path, text)))
        if not complete:
            reason = "the registry's args_schema is too large or too deep for front matter and was left out"
            fix = "ask the publisher for a smaller schema"
            findings.append(Finding("front_matter", f"{namespace}/{path}", reason, fix))
    bundle = make_bundle(namespace, source, answer.version, entries)
    return replace(bundle, findings=tuple(findings))


def prompt_file(prompt: PromptAnswer) -> tuple[str, bool]:
    """Return the markdown of a registry's prompt, and whether its argument schema fitted into it."""
    problem = ids.prompt_name_problem(prompt.name)
    if problem is not None:
        raise refused(f"a prompt of the bundle cannot be installed: {problem}")
    # Without a description a prompt of a folder is not listed.
    description = one_line(prompt.description) or f"The prompt {prompt.name}"
    plain = frontmatter.read(f"description: {description}\n")
    if plain.problem is not None or plain.values != {"description": description}:
        description = _flow(description)
    block = f"name: {prompt.name}\ndescription: {description}\n"
    complete = prompt.args_schema is None
    if not complete:
        longer = f"{block}args_schema: {_flow(prompt.args_schema)}\n"
        if frontmatter.read(longer).problem is None:
            block, complete = longer, True
    end = "" if prompt.content.endswith("\n") else "\n"
    return f"---\n{block}---\n{prompt.content}{end}", complete


def _flow(value: object) -> str:
    """Write a value as JSON on one line, which is YAML once YAML's own line breaks are escaped."""
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _encoded(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise refused(f"{quoted(name)} is not valid Unicode") from error


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
    plugins: tuple[str, ...] = ()
    """The plugins of the source's marketplace that it belongs to."""


def offer_of(folder: str, overview: bytes, root_name: str) -> Offer:
    """Read the offer in a folder's SKILL.md; ``root_name`` is for a skill at the root without a name."""
    values = frontmatter.of_text(overview.decode("utf-8-sig", "replace")).values
    declared, description = values.get("name"), values.get("description")
    own_name = declared if isinstance(declared, str) else None
    name = folder.rpartition("/")[2]
    if folder == ".":
        name = own_name if own_name is not None and ids.is_namespace(own_name) else root_name
    return Offer(name, folder, one_line(description) if isinstance(description, str) else "", own_name)


class Offered(NamedTuple):
    """The skills that a source has, and the plugins that it only names."""

    offers: Sequence[Offer]
    elsewhere: Mapping[str, str] = MappingProxyType({})
    """Where the plugins lie that are not in this source, by name: what to give ``skills add``."""
    hidden: Sequence[str] = ()
    """Folders with skills whose names start with a dot: they are searched only when they are named."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What of the offers is meant, and what is not clear."""

    chosen: tuple[Offer, ...]
    ambiguous: dict[str, tuple[str, ...]]
    """Names that several folders have, with the folders."""
    unfit: tuple[Offer, ...]
    """Those whose names cannot be names here."""


def skill_folders(paths: Iterable[str], below: str = "") -> list[str]:
    """List the folders with a SKILL.md, given all files of a source; ``.`` is the root.

    A skill inside another one comes with it and is not named; inside the root's, which is the whole source,
    it stands for itself as well.
    """
    found = sorted(
        path.rpartition("/")[0] or "." for path in paths if path.rpartition("/")[2] == ids.OVERVIEW
    )
    tops: list[str] = []
    for folder in found:
        if below and folder != below and not folder.startswith(f"{below}/"):
            continue
        # What the caller named is meant, hidden or not; below it agents' hidden folders alone are searched.
        parts = [] if folder == "." else folder[len(below) :].split("/")
        hidden = [number for number, part in enumerate(parts) if part.startswith(".")]
        is_shown = "node_modules" not in parts and all(tuple(parts[at : at + 2]) in _SHOWN for at in hidden)
        if is_shown and not any(top != "." and folder.startswith(f"{top}/") for top in tops):
            tops.append(folder)
    return tops


class Wanted(NamedTuple):
    """Which skills of a source are meant: some, those of plugins, or all; by default the only one."""

    skills: Sequence[str] = ()
    plugins: Sequence[str] = ()
    everything: bool = False


def select(found: Offered, asked: Wanted, source: str) -> Selection:
    """Choose what is to be installed; nothing when a source has several skills and none was asked for."""
    offers = found.offers if not asked.plugins else _of_plugins(asked.plugins, found, source)
    if not offers:
        raise DirectoryError(
            SOURCE_REFUSED,
            f"{source} has no folder with a {ids.OVERVIEW}",
            next_steps=[
                *(
                    Step(f"skills add {place} for the plugin {name}")
                    for name, place in found.elsewhere.items()
                ),
                *(
                    Step(f"name its hidden folder {quoted(folder)} behind the source")
                    for folder in found.hidden
                ),
            ],
        )
    meant: dict[Offer, None] = {}
    for name in asked.skills:
        of_name = [offer for offer in offers if name in (offer.name, offer.declared, offer.path)]
        if not of_name:
            raise _missing("skill", name, {offer.name for offer in offers}, source)
        meant.update(dict.fromkeys(of_name))
    if not asked.skills and (asked.everything or asked.plugins or len(offers) == 1):
        meant = dict.fromkeys(offers)
    by_name: dict[str, list[Offer]] = {}
    for offer in meant:
        by_name.setdefault(offer.name, []).append(offer)
    single = [found[0] for found in by_name.values() if len(found) == 1]
    return Selection(
        chosen=tuple(offer for offer in single if ids.is_namespace(offer.name)),
        ambiguous={
            name: tuple(offer.path for offer in found) for name, found in by_name.items() if len(found) > 1
        },
        unfit=tuple(offer for offer in single if not ids.is_namespace(offer.name)),
    )


def _of_plugins(names: Iterable[str], found: Offered, source: str) -> list[Offer]:
    """Choose the skills of plugins; raise D331 for a plugin that is not in the source."""
    chosen: dict[Offer, None] = {}
    for name in names:
        members = [offer for offer in found.offers if name in offer.plugins]
        if not members and name in found.elsewhere:
            problem = f"the plugin {quoted(name)} of {source} lies in another place"
            next_steps = (Step(f"skills add {found.elsewhere[name]}"),)
            raise DirectoryError(SOURCE_REFUSED, problem, next_steps=next_steps)
        if not members:
            known = {plugin for offer in found.offers for plugin in offer.plugins}
            raise _missing("plugin", name, known, source)
        chosen.update(dict.fromkeys(members))
    return list(chosen)


def _missing(kind: str, name: str, known: set[str], source: str) -> DirectoryError:
    return DirectoryError(
        SOURCE_REFUSED,
        f"{source} has no {kind} {quoted(name)}",
        did_you_mean=close_names(name, known) or sorted(known)[: limits.MAX_SUGGESTIONS],
        next_steps=(Step("add --list to see every skill of it"),),
    )


def offered(
    paths: Sequence[str],
    read: Callable[[Iterable[str]], Mapping[str, bytes]],
    root_name: str,
    below: str = "",
) -> Offered:
    """Find the skills of a source, or of one of its folders; ``read`` reads several of its files at once."""
    folders = skill_folders(paths, below)
    overviews = {folder: f"{folder}/{ids.OVERVIEW}".removeprefix("./") for folder in folders}
    manifests = manifest_paths(paths)
    texts = read([*overviews.values(), *manifests])
    offers = [offer_of(folder, texts.get(path, b""), root_name) for folder, path in overviews.items()]
    found = with_plugins(offers, {path: texts[path] for path in manifests if path in texts})
    # Those of a folder are named where the source has no others.
    hidden = {
        path.rsplit("/", 2)[0] for path in paths if path.endswith(f"/{ids.OVERVIEW}") and "/." in f"/{path}"
    }
    return found._replace(hidden=[] if offers else sorted(hidden)[: limits.MAX_SUGGESTIONS])


# Plugins


PLUGIN_FOLDER: Final = ".claude-plugin"
MARKETPLACE: Final = f"{PLUGIN_FOLDER}/marketplace.json"
PLUGIN: Final = f"{PLUGIN_FOLDER}/plugin.json"


def manifest_paths(paths: Iterable[str]) -> list[str]:
    """Choose the files to read for `with_plugins`, of all files of a source."""
    found = [path for path in paths if path == MARKETPLACE or f"/{path}".endswith(f"/{PLUGIN}")]
    return sorted(found, key=len)[:MAX_PLUGINS]


def with_plugins(offers: Iterable[Offer], manifests: Mapping[str, bytes]) -> Offered:
    """Note at each skill the plugins that it belongs to; a file that is not JSON counts as missing."""
    folders: dict[str, list[str]] = {}
    elsewhere: dict[str, str] = {}
    own = {
        path.removesuffix(PLUGIN).rstrip("/") or ".": _parsed(raw)
        for path, raw in manifests.items()
        if path != MARKETPLACE
    }
    market = _parsed(manifests.get(MARKETPLACE, b""))
    base = text_of(object_of(market.get("metadata")).get("pluginRoot")) or "."
    for row in rows_of(market, "plugins")[:MAX_PLUGINS]:
        name, source = _name(row), row.get("source")
        if name is None:
            continue
        if not isinstance(source, str):
            elsewhere[name] = _address(object_of(source))
        elif (root := _below(base, source)) is not None:
            # What the marketplace lists replaces the default folder: several plugins may share one root.
            folders.setdefault(name, []).extend(_folders(root, row) or _default(root, own.pop(root, {})))
    for root, manifest in own.items():
        if (name := _name(manifest)) is not None and name not in folders:
            folders[name] = _default(root, manifest)
    marked: list[Offer] = []
    for offer in offers:
        # A place after "=" is one folder; any other one stands for all below it, too.
        above = {f"={offer.path}", offer.path, ".", *ids.folders_above(offer.path)}
        names = tuple(name for name, places in folders.items() if not above.isdisjoint(places))
        marked.append(replace(offer, plugins=names))
    return Offered(marked, {name: place for name, place in elsewhere.items() if place})


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        return object_of(json.loads(raw.decode("utf-8-sig")))
    except (ValueError, RecursionError):
        return {}


def _name(row: Mapping[str, object]) -> str | None:
    name = one_line(text_of(row.get("name")) or "")
    return name if name.isprintable() and name else None


def _default(root: str, manifest: Mapping[str, object]) -> list[str]:
    """Return the folders of a plugin: its own if it is a skill, its ``skills``, and those it names."""
    return [f"={root}", *filter(None, (_below(root, "skills"), *_folders(root, manifest)))]


def _folders(root: str, row: Mapping[str, object]) -> list[str]:
    named = row.get("skills")
    texts = [named] if isinstance(named, str) else [one for one in items_of(named) if isinstance(one, str)]
    return [place for text in texts if (place := _below(root, text)) is not None]


def _below(root: str, path: str) -> str | None:
    """Return the path of a folder named relative to another; None if it leads out of the source."""
    place = posixpath.normpath(posixpath.join(root, path))
    return None if place.startswith(("/", "../")) or place == ".." else place


def _address(source: Mapping[str, object]) -> str:
    """Return what to give ``skills add`` for the source of a plugin that lies in another place."""
    repo = one_line(text_of(source.get("repo")) or text_of(source.get("url")) or "")
    path, ref = text_of(source.get("path")), text_of(source.get("ref"))
    if "://" not in repo and path:
        repo = f"{repo}/{one_line(path).strip('./')}"
    return f"{repo}@{one_line(ref)}" if repo and ref else repo
