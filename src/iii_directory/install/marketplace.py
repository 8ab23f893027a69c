"""Tell which plugins the skills of a source belong to. Pure.

A source may have ``.claude-plugin/marketplace.json``, which lists plugins, and the folder of a plugin may
have ``.claude-plugin/plugin.json``. A plugin's skills are the folders that either file names, by default
those below ``skills``. A plugin of a marketplace can also lie in another repository, which is only named.
"""

from __future__ import annotations

import json
import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iii_directory.install.bundle import Offered
from iii_directory.limits import MAX_PLUGINS
from iii_directory.shapes import items_of, object_of, rows_of, text_of
from iii_directory.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from iii_directory.install.bundle import Offer

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
    marked = [
        replace(
            offer, plugins=tuple(name for name, places in folders.items() if _lies_in(offer.path, places))
        )
        for offer in offers
    ]
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


def _lies_in(folder: str, places: Iterable[str]) -> bool:
    return any(
        folder == place.removeprefix("=") or place == "." or folder.startswith(f"{place}/")
        for place in places
    )


def _address(source: Mapping[str, object]) -> str:
    """Return what to give ``skills add`` for the source of a plugin that lies in another place."""
    repo = one_line(text_of(source.get("repo")) or text_of(source.get("url")) or "")
    path, ref = text_of(source.get("path")), text_of(source.get("ref"))
    if "://" not in repo and path:
        repo = f"{repo}/{one_line(path).strip('./')}"
    return f"{repo}@{one_line(ref)}" if repo and ref else repo
