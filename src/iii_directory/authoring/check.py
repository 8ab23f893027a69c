"""What the Agent Skills standard and the hosts that load skills object to in a skill. Pure.

Nothing here keeps a skill from being served: an objection is advice with its fix. Only what the standard
itself forbids is marked so.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from iii_directory import limits
from iii_directory.documents.frontmatter import of_text, split
from iii_directory.documents.ids import OVERVIEWS, skill_name_of
from iii_directory.documents.markdown import links_of
from iii_directory.shapes import is_text_map
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Six keys are the standard's; the others of this list are read by this directory.
_STANDARD_KEYS: Final = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
)
_OUR_KEYS: Final = frozenset({"title", "type", "function_id", "functions", "keywords"})
# "Use when …", "for tasks that …", "before …": a reader can tell from it when to take the skill up.
_WHEN: Final = re.compile(
    r"\b(when|whenever|if|before|after|while|during|for|any ?time|use (this|it)|should be used)\b",
    re.IGNORECASE,
)
_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_NEED_NO_WORD: Final = frozenset({"license", "license.txt", "license.md", "readme.md"})
_TEMPLATE: Final = re.compile(r"[{}<>*…]|\.\.\.")


CHECKED: Final = "check"
"""The kind of a finding that is an objection."""
FORBIDDEN: Final = " (forbidden)"
"""What ends the words of one that the standard makes."""


@dataclass(frozen=True, slots=True)
class Objection:
    """One thing that somebody objects to, where, and what to do about it."""

    rule: str
    path: str
    """The file of the skill it is about."""
    problem: str
    fix: str
    forbidden: bool = False
    """The standard forbids it; else it is advice."""

    @property
    def words(self) -> str:
        """The problem, and whether it is more than advice."""
        return f"{self.problem}{FORBIDDEN}" if self.forbidden else self.problem


@dataclass(frozen=True, slots=True)
class SkillFiles:
    """A skill as it lies in its folder."""

    folder: str
    """The name of the folder."""
    files: Mapping[str, str | None]
    """Every file below it: the text of a markdown file, None of any other."""

    @property
    def overview(self) -> str | None:
        return next((name for name in OVERVIEWS if self.files.get(name) is not None), None)


def check(skill: SkillFiles) -> list[Objection]:
    """Every objection to a skill, those about its overview first."""
    overview = skill.overview
    if overview is None:
        return [
            Objection(
                "overview", "", "it has no SKILL.md", "write one: it stands for the skill", forbidden=True
            )
        ]
    text = skill.files[overview] or ""
    return [
        *_about_front_matter(overview, text, skill.folder),
        *_about_size(overview, text),
        *_about_whole(skill, overview),
        *_about_links(skill),
        *_about_unlinked(skill, overview),
    ]


def _about_front_matter(path: str, text: str, folder: str) -> Iterator[Objection]:
    values, problem, repaired = of_text(text)
    if problem is not None and not repaired:
        yield Objection(
            "front-matter", path, f"its front matter cannot be read: {problem}", "correct it", forbidden=True
        )
        return
    if repaired:
        yield Objection("front-matter", path, problem or "", "put quotes around the value", forbidden=True)
    yield from _about_name(path, values.get("name"), folder)
    yield from _about_description(path, values.get("description"))
    yield from _about_other_keys(path, values)


def _about_name(path: str, name: object, folder: str) -> Iterator[Objection]:
    if not isinstance(name, str) or not name.strip():
        yield Objection(
            "name", path, "it has no name", f"add the line name: {folder} to its front matter", forbidden=True
        )
    elif skill_name_of(name) is None:
        yield Objection(
            "name",
            path,
            f"the name {quoted(name)} is not made of lowercase letters, digits and single hyphens,"
            f" {limits.MAX_SKILL_NAME_CHARS} at most",
            "rename it, and its folder with it",
            forbidden=True,
        )
    elif name != folder:
        yield Objection(
            "name",
            path,
            f"its name {quoted(name)} is not that of its folder, {quoted(folder)}",
            "give both the same name",
            forbidden=True,
        )


def _about_description(path: str, description: object) -> Iterator[Objection]:
    if not isinstance(description, str) or not description.strip():
        yield Objection(
            "description",
            path,
            "it has no description",
            "say what it does and when to use it",
            forbidden=True,
        )
        return
    if len(description) > limits.MAX_SKILL_DESCRIPTION_CHARS:
        yield Objection(
            "description",
            path,
            f"its description has {len(description)} characters; the limit is"
            f" {limits.MAX_SKILL_DESCRIPTION_CHARS}",
            "move the details to the body",
            forbidden=True,
        )
    if not _WHEN.search(description):
        yield Objection(
            "when", path, "its description does not say when to use it", 'add a sentence "Use when …"'
        )


def _about_other_keys(path: str, values: dict[str, Any]) -> Iterator[Objection]:
    compatibility = values.get("compatibility")
    if compatibility is not None and not _is_text(compatibility, limits.MAX_COMPATIBILITY_CHARS):
        yield Objection(
            "compatibility",
            path,
            f"compatibility is not a text of 1 to {limits.MAX_COMPATIBILITY_CHARS} characters",
            "shorten it",
            forbidden=True,
        )
    metadata = values.get("metadata")
    if metadata is not None and not is_text_map(metadata):
        yield Objection(
            "metadata",
            path,
            "metadata holds something else than texts",
            "put quotes around its values",
            forbidden=True,
        )
    tools = values.get("allowed-tools")
    if tools is not None and not isinstance(tools, str):
        yield Objection(
            "allowed-tools",
            path,
            "allowed-tools is a list, which not every host reads",
            "write the tools in one line, with spaces between them",
        )
    unknown = sorted(values.keys() - _STANDARD_KEYS - _OUR_KEYS)
    if unknown:
        yield Objection(
            "keys",
            path,
            f"only some hosts read {', '.join(map(quoted, unknown))}",
            "nothing, if it is meant for those; else move it below metadata",
        )


def _is_text(value: object, at_most: int) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= at_most


def _about_size(path: str, text: str) -> Iterator[Objection]:
    body = split(text)[1]
    lines = body.count("\n") + 1
    if lines > limits.ADVISED_BODY_LINES:
        yield Objection(
            "size",
            path,
            f"its body has {lines} lines, more than {limits.ADVISED_BODY_LINES}",
            "move parts to files of their own and link them",
        )
    tokens = len(body) // limits.CHARS_PER_TOKEN
    if tokens > limits.ADVISED_BODY_TOKENS:
        yield Objection(
            "size",
            path,
            f"its body costs about {tokens} tokens, more than {limits.ADVISED_BODY_TOKENS}",
            "move parts to files of their own and link them",
        )


def _about_whole(skill: SkillFiles, overview: str) -> Iterator[Objection]:
    if len(skill.files) > limits.MAX_BUNDLE_FILES:
        yield Objection(
            "size",
            overview,
            f"the skill has {len(skill.files)} files; no host need take more than {limits.MAX_BUNDLE_FILES}",
            "divide it, or leave out what is not needed",
        )


def _about_links(skill: SkillFiles) -> Iterator[Objection]:
    folders = {parent for path in skill.files for parent in _parents(path)}
    for path, text in skill.files.items():
        for target in dict.fromkeys(links_of(text or "")):
            place = _place_of(target)
            if place is None:
                continue
            if place.startswith("/") or _joined(path, place).startswith("../"):
                yield Objection(
                    "link-leaves",
                    path,
                    f"the link {quoted(target)} leads out of the skill",
                    "copy what it needs",
                )
            elif not any(found in skill.files or found in folders for found in _meanings(path, place)):
                yield Objection(
                    "link-broken",
                    path,
                    f"the link {quoted(target)} leads nowhere",
                    "correct the path, or remove it",
                )


def _place_of(target: str) -> str | None:
    """The path that a link names; None of one that leads to another site, a heading, or is a pattern."""
    if _ELSEWHERE.match(target):
        return None
    place = unquote(target.partition("#")[0].partition("?")[0])
    return None if not place or _TEMPLATE.search(place) else place


def _meanings(path: str, place: str) -> tuple[str, str]:
    """A link is relative to its document or, as the standard says it, to the skill."""
    return _joined(path, place), posixpath.normpath(place)


def _joined(path: str, place: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), place))


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return [".", *("/".join(parts[: length + 1]) for length in range(len(parts)))]


def _about_unlinked(skill: SkillFiles, overview: str) -> Iterator[Objection]:
    said = "\n".join(text for text in skill.files.values() if text)
    if len(skill.files) > limits.MAX_BUNDLE_FILES:
        return
    if len(said) > limits.MAX_CHECKED_CHARS:
        problem = f"its markdown has {len(said)} characters in all; in so many no file is looked for"
        yield Objection("size", overview, problem, "divide it, or leave out what is not needed")
        return
    for path in skill.files:
        if path == overview or path.lower() in _NEED_NO_WORD:
            continue
        # By its path or its name, by a folder it lies in, or by the id that it is read by.
        folders = (f"{parent}/" for parent in _parents(path)[1:])
        if not any(word in said for word in (posixpath.basename(path), *folders, _id_in(skill, path))):
            yield Objection(
                "unlinked", path, "nothing in the skill speaks of this file", "link it, or remove it"
            )


def _id_in(skill: SkillFiles, path: str) -> str:
    return f"{skill.folder}/{path.removesuffix('.md')}"
