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
from iii_directory.documents.facts import LOOK, facts_of
from iii_directory.documents.file_pages import text_of
from iii_directory.documents.frontmatter import of_text, split
from iii_directory.documents.ids import OVERVIEW, OVERVIEWS, skill_name_of
from iii_directory.documents.markdown import links_of
from iii_directory.shapes import is_text_map
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from iii_directory.documents.facts import FileContent

# Six keys are the standard's; several hosts read the next three; this directory reads the others.
_KNOWN_KEYS: Final = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    | {"disable-model-invocation", "user-invocable", "argument-hint"}
    | {"title", "type", "function_id", "functions", "keywords"}
)
# "Use when …", "for tasks that …", "before …": a reader can tell from it when to take the skill up.
_WHEN: Final = re.compile(
    r"\b(when|whenever|if|before|after|while|during|for|any ?time|use (this|it|to|as|proactively|by)"
    r"|should be used|triggers? (on|by)|invoke)\b|\btriggers?:",
    re.IGNORECASE,
)
_PLACEHOLDER: Final = re.compile(
    r"\b(todo|tbd|fixme|lorem ipsum)\b|^(replace|change|fill in|write|add) (this|with|your|me)\b"
    r"|\[[^\]]*(description|what|when)[^\]]*\]|\bsays in a sentence what\b|\bdescribe in a sentence\b"
    r"|\bdescription of the skill and when\b",
    re.IGNORECASE,
)
_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_TEMPLATE: Final = re.compile(r"[{}<>*…$]|\.\.\.|^path/to/")
# Files that people, hosts and package managers find by their names.
_FOUND_BY_NAME: Final = re.compile(
    r"(.*/)?((license|licence|notice|readme|changelog|copying|authors|contributing|security)([._-][^/]*)?"
    r"|__init__\.py|conftest\.py|py\.typed|requirements[^/]*\.txt|setup\.(py|cfg)|pyproject\.toml|uv\.lock"
    r"|poetry\.lock|package(-lock)?\.json|pnpm-lock\.yaml|yarn\.lock|tsconfig[^/]*\.json|go\.(mod|sum)"
    r"|cargo\.(toml|lock)|gemfile(\.lock)?|makefile|dockerfile|(agents|claude|gemini)\.md)"
    r"|agents/openai\.yaml|evals/.*|(.*/)?(tests?|__tests__|__pycache__)/.*",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[\w-]+")


CASES_FILE: Final = "evals/search.yaml"
"""Where ``skills eval`` looks for the requests by which a skill should be found."""
CASE_PLACEHOLDER: Final = "write here what"
"""What the requests of a new skill begin with until its author replaces them."""
CHECKED: Final = "check"
"""The kind of a finding that is an objection."""


@dataclass(frozen=True, slots=True)
class Objection:
    """One thing that the standard or a host objects to, where, and what to do about it."""

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
        return f"{self.problem} (forbidden)" if self.forbidden else self.problem


class SkillFiles:
    """A skill as it lies in its folder."""

    def __init__(self, folder: str, contents: Mapping[str, FileContent]) -> None:
        self.folder = folder
        """The name of the folder."""
        self.contents = contents
        self.texts = {
            path: text
            for path, content in contents.items()
            if content.is_whole and (text := text_of(content.raw)) is not None
        }
        nested = {path.rpartition("/")[0] for path in contents if path.endswith(f"/{OVERVIEW}")}
        self.own = [path for path in contents if nested.isdisjoint(_parents(path))]
        """The files that belong to no skill further inside."""

    @property
    def overview(self) -> str | None:
        return next((name for name in OVERVIEWS if name in self.texts), None)


def check(skill: SkillFiles) -> list[Objection]:
    """List every objection to a skill, those about its overview first."""
    overview = skill.overview
    if overview is None:
        return [
            Objection(
                "overview", "", "it has no SKILL.md", "write one: it stands for the skill", forbidden=True
            )
        ]
    text = skill.texts[overview]
    return [
        *_about_front_matter(overview, text, skill.folder),
        *_about_size(overview, text),
        *_about_whole(skill, overview),
        *_about_links(skill),
        *_about_unlinked(skill, overview),
        *_about_placeholders(skill),
        *(
            Objection(
                finding.rule, finding.path, finding.words, "remove it, or say in the skill what it is for"
            )
            for finding in facts_of({path: skill.contents[path] for path in skill.own}).findings
            if finding.rule not in LOOK
        ),
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
    if path == OVERVIEWS[-1]:
        # Only this directory takes index.md for a skill, and asks nothing of its front matter.
        return
    yield from _about_name(path, values.get("name"), folder)
    yield from _about_description(
        path, values.get("description"), is_chosen=values.get("disable-model-invocation") is not True
    )
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


def _about_description(path: str, description: object, *, is_chosen: bool) -> Iterator[Objection]:
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
    if _PLACEHOLDER.search(description):
        yield Objection(
            "placeholder",
            path,
            "its description is a placeholder",
            "say what the skill does and when to use it",
        )
    elif is_chosen and not _WHEN.search(description):
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
    unknown = sorted(values.keys() - _KNOWN_KEYS)
    if unknown:
        yield Objection(
            "keys",
            path,
            f"the standard does not have the key {', '.join(map(quoted, unknown))}",
            "move it below metadata, unless it is meant for the hosts that read it",
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
    if len(skill.contents) > limits.MAX_BUNDLE_FILES:
        yield Objection(
            "size",
            overview,
            f"the skill has {len(skill.contents)} files; hosts need not take more than"
            f" {limits.MAX_BUNDLE_FILES}",
            "divide it, or leave out what is not needed",
        )


def _about_links(skill: SkillFiles) -> Iterator[Objection]:
    folders = {parent for path in skill.contents for parent in _parents(path)}
    known = {path.lower() for path in (*skill.contents, *folders)}
    for path in skill.own:
        text = skill.texts.get(path) if path.lower().endswith(".md") else None
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
            elif not any(
                found.lower() in known for found in (_joined(path, place), posixpath.normpath(place))
            ):
                # A link is relative to its document or, as the standard says it, to the skill.
                yield Objection(
                    "link-broken",
                    path,
                    f"the link {quoted(target)} leads nowhere",
                    "correct the path, or remove it",
                )


def _place_of(target: str) -> str | None:
    """Give the path that a link names; None for another site, a heading, a pattern or a single word."""
    if _ELSEWHERE.match(target):
        return None
    place = unquote(target.partition("#")[0].partition("?")[0])
    is_word = "/" not in place and "." not in place
    return None if not place or is_word or _TEMPLATE.search(place) else place


def _joined(path: str, place: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), place))


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return [".", *("/".join(parts[: length + 1]) for length in range(len(parts)))]


def _about_unlinked(skill: SkillFiles, overview: str) -> Iterator[Objection]:
    """Name the files that no text of the skill names: by name, by stem, or by a folder above them."""
    if len(skill.contents) > limits.MAX_BUNDLE_FILES:
        return
    said = "\n".join(skill.texts.values()).lower()
    if len(said) > limits.MAX_CHECKED_CHARS:
        problem = f"its texts have {len(said)} characters in all; in so many no file is looked for"
        yield Objection("size", overview, problem, "divide it, or leave out what is not needed")
        return
    words = set(_WORD.findall(said))
    for path in skill.own:
        if path == overview or _FOUND_BY_NAME.fullmatch(path):
            continue
        *folders, name = path.lower().split("/")
        stem = name.rpartition(".")[0] or name
        if words.isdisjoint((stem, *folders)) and name not in said:
            yield Objection(
                "unlinked", path, "nothing in the skill speaks of this file", "link it, or remove it"
            )


def _about_placeholders(skill: SkillFiles) -> Iterator[Objection]:
    cases = skill.texts.get(CASES_FILE)
    if cases is not None and CASE_PLACEHOLDER in cases:
        yield Objection(
            "placeholder",
            CASES_FILE,
            "its requests are placeholders",
            "write what people ask who need the skill",
        )
