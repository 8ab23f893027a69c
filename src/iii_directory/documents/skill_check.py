"""Check a skill against the Agent Skills standard and the hosts that load skills. Pure.

An objection never keeps a skill from being served: it is advice with its fix. It is marked ``forbidden`` only
where the standard itself forbids something.
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
from iii_directory.documents.ids import OVERVIEW, OVERVIEWS, folders_above, skill_name_of
from iii_directory.documents.parse import links_of
from iii_directory.shapes import is_text_map
from iii_directory.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from iii_directory.documents.facts import FileContent

# The first six keys are in the standard, several hosts read the next three, this directory reads the rest.
_KNOWN_KEYS: Final = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    | {"disable-model-invocation", "user-invocable", "argument-hint"}
    | {"title", "type", "function_id", "functions", "keywords"}
)
# Words that tell a reader when to use a skill: "Use when …", "for tasks that …", "before …".
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
_DIVIDE: Final = "divide it, or leave out what is not needed"

CASES_FILE: Final = "evals/search.yaml"
"""The file in which ``skills eval`` looks for the requests by which a skill should be found."""
CASE_PLACEHOLDER: Final = "write here what"
"""The start of each request in a new skill, until its author replaces it."""
CHECKED: Final = "check"
"""The kind of the findings that are objections."""


@dataclass(frozen=True, slots=True)
class Objection:
    """A problem that the standard or a host has with a skill, the file it is in, and how to mend it."""

    rule: str
    path: str
    problem: str
    fix: str
    forbidden: bool = False
    """True where the standard forbids it; False for advice."""

    @property
    def words(self) -> str:
        """Return the problem, marked if the standard forbids it."""
        return f"{self.problem} (forbidden)" if self.forbidden else self.problem


class SkillFiles:
    """The files of a skill by their paths below its folder, whose name is ``folder``."""

    def __init__(self, folder: str, contents: Mapping[str, FileContent]) -> None:
        self.folder = folder
        self.contents = contents
        texts = ((path, text_of(content.raw)) for path, content in contents.items() if content.is_whole)
        self.texts = {path: text for path, text in texts if text is not None}
        nested = {path.rpartition("/")[0] for path in contents if path.endswith(f"/{OVERVIEW}")}
        self.own = [path for path in contents if nested.isdisjoint(folders_above(path))]
        """The files that do not belong to a skill further inside."""
        self.overview = next((name for name in OVERVIEWS if name in self.texts), None)


def check(skill: SkillFiles) -> list[Objection]:
    """List every objection to a skill, those about its overview first."""
    overview = skill.overview
    if overview is None:
        fix = "write one: it stands for the skill"
        return [Objection("overview", "", "it has no SKILL.md", fix, forbidden=True)]
    found = [
        *_about_front_matter(overview, skill.texts[overview], skill.folder),
        *_about_size(skill, overview),
        *_about_links(skill),
        *_about_unlinked(skill, overview),
    ]
    if CASE_PLACEHOLDER in skill.texts.get(CASES_FILE, ""):
        fix = "write what people ask who need the skill"
        found.append(Objection("placeholder", CASES_FILE, "its requests are placeholders", fix))
    facts = facts_of({path: skill.contents[path] for path in skill.own})
    fix = "remove it, or say in the skill what it is for"
    doubted = (one for one in facts.findings if one.rule not in LOOK)
    return found + [Objection(one.rule, one.path, one.words, fix) for one in doubted]


def _about_front_matter(path: str, text: str, folder: str) -> Iterator[Objection]:
    values, problem, repaired = of_text(text)
    if problem is not None and not repaired:
        problem = f"its front matter cannot be read: {problem}"
        yield Objection("front-matter", path, problem, "correct it", forbidden=True)
        return
    if repaired:
        yield Objection("front-matter", path, problem or "", "put quotes around the value", forbidden=True)
    # Only this directory takes index.md for a skill, and it requires nothing of its front matter.
    if path != OVERVIEWS[-1]:
        yield from _about_name(path, values.get("name"), folder)
        yield from _about_description(path, values)
        yield from _about_other_keys(path, values)


def _about_name(path: str, name: object, folder: str) -> Iterator[Objection]:
    if not isinstance(name, str) or not name.strip():
        problem, fix = "it has no name", f"add the line name: {folder} to its front matter"
    elif skill_name_of(name) is None:
        problem = (
            f"the name {quoted(name)} is not made of lowercase letters, digits and single hyphens,"
            f" {limits.MAX_SKILL_NAME_CHARS} at most"
        )
        fix = "rename it, and its folder with it"
    elif name != folder:
        problem = f"its name {quoted(name)} is not that of its folder, {quoted(folder)}"
        fix = "give both the same name"
    else:
        return
    yield Objection("name", path, problem, fix, forbidden=True)


def _about_description(path: str, values: Mapping[str, Any]) -> Iterator[Objection]:
    description = values.get("description")
    if not isinstance(description, str) or not description.strip():
        fix = "say what it does and when to use it"
        yield Objection("description", path, "it has no description", fix, forbidden=True)
        return
    has, most = len(description), limits.MAX_SKILL_DESCRIPTION_CHARS
    if has > most:
        problem = f"its description has {has} characters; the limit is {most}"
        yield Objection("description", path, problem, "move the details to the body", forbidden=True)
    if _PLACEHOLDER.search(description):
        fix = "say what the skill does and when to use it"
        yield Objection("placeholder", path, "its description is a placeholder", fix)
    # A skill that models do not choose by themselves need not say when to use it.
    elif values.get("disable-model-invocation") is not True and not _WHEN.search(description):
        problem = "its description does not say when to use it"
        yield Objection("when", path, problem, 'add a sentence "Use when …"')


def _about_other_keys(path: str, values: dict[str, Any]) -> Iterator[Objection]:
    compatibility, most = values.get("compatibility", "any"), limits.MAX_COMPATIBILITY_CHARS
    is_text = isinstance(compatibility, str) and compatibility.strip() and len(compatibility) <= most
    if compatibility is not None and not is_text:
        problem = f"compatibility is not a text of 1 to {most} characters"
        yield Objection("compatibility", path, problem, "shorten it", forbidden=True)
    metadata = values.get("metadata")
    if metadata is not None and not is_text_map(metadata):
        problem, fix = "metadata holds something else than texts", "put quotes around its values"
        yield Objection("metadata", path, problem, fix, forbidden=True)
    if not isinstance(values.get("allowed-tools"), str | None):
        problem = "allowed-tools is a list, which not every host reads"
        fix = "write the tools in one line, with spaces between them"
        yield Objection("allowed-tools", path, problem, fix)
    unknown = sorted(values.keys() - _KNOWN_KEYS)
    if unknown:
        problem = f"the standard does not have the key {', '.join(map(quoted, unknown))}"
        fix = "move it below metadata, unless it is meant for the hosts that read it"
        yield Objection("keys", path, problem, fix)


def _about_size(skill: SkillFiles, overview: str) -> Iterator[Objection]:
    body = split(skill.texts[overview])[1]
    lines, tokens = body.count("\n") + 1, len(body) // limits.CHARS_PER_TOKEN
    fix = "move parts to files of their own and link them"
    if lines > limits.ADVISED_BODY_LINES:
        problem = f"its body has {lines} lines, more than {limits.ADVISED_BODY_LINES}"
        yield Objection("size", overview, problem, fix)
    if tokens > limits.ADVISED_BODY_TOKENS:
        problem = f"its body costs about {tokens} tokens, more than {limits.ADVISED_BODY_TOKENS}"
        yield Objection("size", overview, problem, fix)
    has, most = len(skill.contents), limits.MAX_BUNDLE_FILES
    if has > most:
        problem = f"the skill has {has} files; hosts need not take more than {most}"
        yield Objection("size", overview, problem, _DIVIDE)


def _about_links(skill: SkillFiles) -> Iterator[Objection]:
    folders = {".", *(folder for path in skill.contents for folder in folders_above(path))}
    known = {path.lower() for path in (*skill.contents, *folders)}
    for path in skill.own:
        text = skill.texts.get(path) if path.lower().endswith(".md") else None
        for target in dict.fromkeys(links_of(text or "")):
            place = _place_of(target)
            if place is None:
                continue
            # A link is relative to its document or, as the standard says, to the folder of the skill.
            joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), place))
            if place.startswith("/") or joined.startswith("../"):
                problem = f"the link {quoted(target)} leads out of the skill"
                yield Objection("link-leaves", path, problem, "copy what it needs")
            elif known.isdisjoint((joined.lower(), posixpath.normpath(place).lower())):
                problem = f"the link {quoted(target)} leads nowhere"
                yield Objection("link-broken", path, problem, "correct the path, or remove it")


def _place_of(target: str) -> str | None:
    """Return the path that a link names; None for another site, a heading, a pattern or a single word."""
    if _ELSEWHERE.match(target):
        return None
    place = unquote(target.partition("#")[0].partition("?")[0])
    is_word = "/" not in place and "." not in place
    return None if not place or is_word or _TEMPLATE.search(place) else place


def _about_unlinked(skill: SkillFiles, overview: str) -> Iterator[Objection]:
    """Object to each file that the skill's texts name neither by name, nor by stem, nor by its folder."""
    if len(skill.contents) > limits.MAX_BUNDLE_FILES:
        return
    said = "\n".join(skill.texts.values()).lower()
    if len(said) > limits.MAX_CHECKED_CHARS:
        problem = f"its texts have {len(said)} characters in all, too many to look for links to each file"
        yield Objection("size", overview, problem, _DIVIDE)
        return
    words = set(_WORD.findall(said))
    for path in skill.own:
        if path == overview or _FOUND_BY_NAME.fullmatch(path):
            continue
        *folders, name = path.lower().split("/")
        stem = name.rpartition(".")[0] or name
        if words.isdisjoint((stem, *folders)) and name not in said:
            problem = "no text of the skill mentions this file"
            yield Objection("unlinked", path, problem, "link it, or remove it")
