"""The rules of the catalogue once more, plainly and slowly, for the fast one to be compared with.

Nothing here is shared with the product: files are split into lines, YAML goes to PyYAML, and every question
is answered by looking at everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SEGMENT = re.compile(r"[a-z0-9_-]{1,64}")


@dataclass
class World:
    """What there is: files by path, registered bodies by id, and who may be seen."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    registered: dict[str, str] = field(default_factory=dict[str, str])
    installed: frozenset[str] | None = None
    recorded: dict[str, tuple[str, set[str]]] = field(default_factory=dict[str, tuple[str, set[str]]])
    """By namespace: ``call`` or ``auto``, and the files it was installed with."""


def is_prompt(path: str) -> bool:
    return "prompts" in path.split("/")[:-1]


def id_of(path: str) -> str | None:
    *folders, name = path.split("/")
    if not name.endswith(".md") or any(part.startswith(".") for part in (*folders, name)):
        return None
    stem = "index" if name in ("SKILL.md", "SKILLS.md") else name[: -len(".md")]
    parts = [*folders, stem]
    if parts[0] == "fn" or not all(SEGMENT.fullmatch(part) for part in parts):
        return None
    return "/".join(parts)


def text_of(raw: bytes) -> str | None:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text.removeprefix("\ufeff")


def front_matter_and_body(text: str) -> tuple[dict[str, Any], str]:
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip("\r") == "---"]
    if len(fences) < 2 or fences[0] != 0:
        return {}, text
    block, body = "\n".join(lines[1 : fences[1]]), "\n".join(lines[fences[1] + 1 :])
    try:
        values = yaml.safe_load(block)
    except yaml.YAMLError:
        values = None
    return (values if isinstance(values, dict) else {}), body


def word(values: dict[str, Any], key: str) -> str | None:
    value = values.get(key)
    return value.strip() or None if isinstance(value, str) else None


def paragraph(body: str) -> str:
    found: list[str] = []
    for line in body.split("\n"):
        words = line.strip()
        if not words or words[0] == ">" or re.match(r"#{1,6}(\s|$)", words):
            if found:
                break
        else:
            found.append(words)
    return " ".join(found)


def title_line(body: str) -> str:
    for line in body.split("\n"):
        if line.startswith("# "):
            return line[2:].strip()
    return ""


def skill_row(skill_id: str, text: str, size: int) -> dict[str, Any]:
    values, body = front_matter_and_body(text)
    bare = skill_id.removesuffix("/index")
    extra: dict[str, Any] = {}
    if isinstance(values.get("name"), str) and NAME.fullmatch(values["name"]):
        extra["name"] = values["name"]
    if values.get("disable-model-invocation") is True:
        extra["disable_model_invocation"] = True
    return extra | {
        "title": word(values, "title") or title_line(body) or bare,
        "type": word(values, "type"),
        "function_id": word(values, "function_id"),
        "description": word(values, "description") or paragraph(body),
        "bytes": size,
    }


def is_hidden(world: World, path: str) -> bool:
    if "/" not in path or world.installed is None:
        return False
    namespace = path.split("/", maxsplit=1)[0]
    if namespace in world.installed or namespace in ("iii", "iii-directory"):
        return False
    if namespace not in world.recorded or world.recorded[namespace][0] == "call":
        return False
    below = [
        other for other in world.files if other.startswith(f"{namespace}/") and is_document(world, other)
    ]
    return {other.split("/", 1)[1] for other in below} <= world.recorded[namespace][1]


def is_document(world: World, path: str) -> bool:
    text = text_of(world.files[path])
    if text is None:
        return False
    values, body = front_matter_and_body(text)
    if not body.strip():
        return False
    if not is_prompt(path):
        return id_of(path) is not None
    return prompt_name(path, values) is not None


def prompt_name(path: str, values: dict[str, Any]) -> str | None:
    *folders, file = path.split("/")
    if not file.endswith(".md") or any(part.startswith(".") for part in (*folders, file)):
        return None
    name = word(values, "name") or file[: -len(".md")]
    return name if SEGMENT.fullmatch(name) and word(values, "description") else None


def skills(world: World) -> list[dict[str, Any]]:
    """The rows of the listing, without times."""
    found: dict[str, dict[str, Any]] = {}
    for skill_id, body in world.registered.items():
        found[skill_id] = skill_row(skill_id, body, len(body.encode())) | {"source": "registered"}
    # The first path wins, so the last one to be written down must be the first.
    for path in sorted(world.files, reverse=True):
        skill_id = id_of(path)
        if is_prompt(path) or skill_id is None or not is_document(world, path) or is_hidden(world, path):
            continue
        raw = world.files[path]
        found[skill_id] = skill_row(skill_id, text_of(raw) or "", len(raw)) | {"source": "folder"}
    for skill_id in [key for key, row in found.items() if row["source"] == "registered"]:
        # To readers a folder and its overview are one address, and files come first.
        twin = skill_id.removesuffix("/index") if skill_id.endswith("/index") else f"{skill_id}/index"
        if found.get(twin, {}).get("source") == "folder":
            del found[skill_id]
    rows = [
        {"id": shown_as(skill_id, set(found), is_apart(world, skill_id, row)), **row}
        for skill_id, row in found.items()
    ]
    return sorted(rows, key=lambda row: row["id"])


def shown_as(skill_id: str, known: set[str], apart: bool = False) -> str:
    if not apart and skill_id.endswith("/index") and skill_id[: -len("/index")] not in known:
        return skill_id[: -len("/index")]
    return skill_id


def is_apart(world: World, skill_id: str, row: dict[str, Any]) -> bool:
    """Whether a registration lies in a namespace that the folder has, and goes by its own id alone."""
    documents = [path for path in world.files if is_document(world, path)]
    below = {path.split("/")[0] for path in documents if "/" in path}
    beside = {id_of(path) for path in documents if "/" not in path}
    return row["source"] == "registered" and skill_id.split("/", maxsplit=1)[0] in below | beside


def prompts(world: World) -> list[tuple[str, str]]:
    """Names and descriptions."""
    claims: dict[str, list[tuple[bool, str, str]]] = {}
    for path, raw in world.files.items():
        if not is_prompt(path) or not is_document(world, path) or is_hidden(world, path):
            continue
        values, _ = front_matter_and_body(text_of(raw) or "")
        name = prompt_name(path, values)
        assert name is not None
        only_claimed = path.split("/")[-1] != f"{name}.md"
        claims.setdefault(name, []).append((only_claimed, path, word(values, "description") or ""))
    return sorted((name, min(claimed)[2]) for name, claimed in claims.items())


def left_out(world: World) -> set[str]:
    """The files that are not documents and need a finding: all but plain files of skills."""
    found = {path for path in world.files if not is_document(world, path)}
    return {
        path for path in found if not is_plain(path) or (path.endswith(".md") and not in_skill(world, path))
    }


# Skills as folders


def is_dotted(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def is_plain(path: str) -> bool:
    """Not meant as a document: a script, an asset, a README."""
    if is_dotted(path):
        return False
    return not path.endswith(".md") or (not is_prompt(path) and id_of(path) is None)


def skill_folders(world: World) -> set[str]:
    """The folders with an overview that is served."""
    found: set[str] = set()
    for path in world.files:
        skill_id = id_of(path)
        if skill_id is None or not skill_id.endswith("/index") or is_prompt(path):
            continue
        if is_document(world, path) and not is_hidden(world, path):
            found.add(skill_id[: -len("/index")])
    return found


def in_skill(world: World, path: str) -> bool:
    return any(path.startswith(f"{folder}/") for folder in skill_folders(world))


def files_of(world: World, folder: str) -> list[str]:
    """Every file of a skill, by its path below the folder."""
    return sorted(path for path in world.files if path.startswith(f"{folder}/") and not is_dotted(path))


def skill_rows(world: World) -> dict[str, tuple[int, int]]:
    """Each skill by its id on display: how many documents it has, and how many files."""
    rows = skills(world)
    known = {row["id"]: row["source"] for row in rows}
    ids = {canonical(world, row["id"], row["source"]): row for row in rows}
    found: dict[str, tuple[int, int]] = {}
    for folder in skill_folders(world):
        documents = [i for i, row in ids.items() if i.startswith(f"{folder}/") and row["source"] == "folder"]
        found[shown_as(f"{folder}/index", set(ids))] = len(documents), len(files_of(world, folder))
    for path in world.files:
        skill_id = id_of(path)
        if "/" not in path and skill_id in ids and is_document(world, path) and known[skill_id] == "folder":
            found[skill_id] = 1, 1
    registered = {i for i, row in ids.items() if row["source"] == "registered"}
    for skill_id in registered:
        parts = skill_id.split("/")
        above = {"/".join(parts[:count]) for count in range(1, len(parts))}
        if (above | {f"{one}/index" for one in above}) & (registered - {skill_id}):
            continue
        bare = skill_id.removesuffix("/index")
        documents = {other for other in registered if other.startswith(f"{bare}/")} | {skill_id}
        shown = shown_as(skill_id, set(ids), is_apart(world, skill_id, ids[skill_id]))
        found[shown] = len(documents), len(documents)
    return found


def canonical(world: World, shown: str, source: str) -> str:
    """The id behind one on display."""
    if source == "registered":
        return shown if shown in world.registered else f"{shown}/index"
    ids = {id_of(path) for path in world.files if is_document(world, path) and not is_prompt(path)}
    return shown if shown in ids else f"{shown}/index"
