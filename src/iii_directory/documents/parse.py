"""Parse Markdown files and registered texts into skills and prompts. Pure.

Lines end at ``\\n`` with an optional ``\\r`` before it, never at another Unicode separator. Functions that
read a body take the whole text and an offset, so that a body is never copied or split.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iii_directory.documents import frontmatter
from iii_directory.documents.ids import bare_id, path_to_id, prompt_name_problem, skill_name_of
from iii_directory.documents.model import (
    NO_AUTHOR,
    OPERATOR,
    Author,
    Finding,
    ParsedFile,
    Prompt,
    PromptArgument,
    Provenance,
    Skill,
    read_arguments,
)
from iii_directory.errors import BAD_BODY, RESERVED_PLACE, DirectoryError
from iii_directory.limits import MAX_BODY_BYTES, MAX_DESCRIPTION_CHARS
from iii_directory.shapes import is_text_list
from iii_directory.text import cut, escaped, has_unsafe, hides_text, one_line, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping


# Lines that do not belong to a paragraph: blank lines, headings, block quotes, table rows, images, fenced
# code and HTML comments. All quantifiers are possessive, so that matching a long body never backtracks.
_IMAGE: Final = r"!\[[^\]\n]*+\]\([^)\n]*+\)"
_IMAGES: Final = rf"(?:(?:\[{_IMAGE}\]\([^)\n]*+\)|{_IMAGE})[^\S\n]*+)++(?=\n|\Z)"
_FENCED: Final = r"(?P<fence>`{3,}+|~{3,}+)[^\n]*+(?:\n(?![^\S\n]*+(?P=fence))[^\n]*+)*+(?:\n[^\n]*+)?"
_COMMENT: Final = r"<!--(?:(?!-->)[\s\S])*+(?:-->[^\S\n]*+)?"
_LINE_APART: Final = rf"#{{1,6}}(?:[^\S\n][^\n]*+)?(?=\n|\Z)|>[^\n]*+|\|[^\n]*+|{_IMAGES}"
_APART: Final = rf"[^\S\n]*+(?:(?:{_LINE_APART}|{_FENCED}|{_COMMENT})?(?:\n|\Z)|{_COMMENT}(?=[^\n]))"
_ENDS: Final = rf"[^\S\n]*+(?:(?:{_LINE_APART})?(?:\n|\Z)|`{{3}}|~{{3}}|<!--)"
_PARAGRAPH: Final = re.compile(rf"(?:{_APART})*+(?P<words>(?:(?!{_ENDS})[^\n]*+(?:\n|\Z))*+)")
# Emphasis marks. Words may contain underscores, so an underscore counts only at the edge of a word.
_EMPHASIS: Final = re.compile(r"(\*{1,3}|~~|(?<!\w)_{1,3})(?=\S)((?:(?!\1)[^\n]){1,400}?)(?<=\S)\1(?!\w)")
# Code, which cannot contain links: fenced blocks and inline code.
_CODE: Final = re.compile(
    rf"^[^\S\n]*+{_FENCED}|(?P<ticks>`++)(?:(?!(?P=ticks))[^\n])*+(?P=ticks)", re.MULTILINE
)
# [words](target "title"), ![words](<target>) and [label]: target.
_TARGET: Final = re.compile(
    r"\]\([^\S\n]*+(?:<([^<>\n]*+)>|([^\s()<>]*+(?:\([^\s()]*+\)[^\s()<>]*+)*+))"
    r"|^[^\S\n]{0,3}\[[^\]\n]++\]:[^\S\n]++<?([^\s<>]++)",
    re.MULTILINE,
)
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKUP: Final = re.compile(r"[\\\[\]<>]")


def heading(text: str, start: int = 0) -> str:
    """Return the text of the first line starting with ``# ``, or an empty string."""
    if not text.startswith("# ", start):
        start = text.find("\n# ", start) + 1
        if start == 0:
            return ""
    end = text.find("\n", start)
    return (text[start + 2 :] if end < 0 else text[start + 2 : end]).strip()


def first_paragraph(text: str, start: int = 0) -> str:
    """Return the first paragraph as one line without emphasis marks.

    Blank lines, headings, block quotes, tables, images, fenced code and HTML comments are skipped.
    """
    found = _PARAGRAPH.match(text, start)
    words = found["words"].strip() if found else ""
    if "\n" in words:
        words = " ".join(map(str.strip, words.split("\n")))
    words = cut(words, MAX_DESCRIPTION_CHARS)
    if "*" in words or "_" in words or "~~" in words:
        words = _EMPHASIS.sub(r"\2", words)
    return words


def links_of(text: str) -> list[str]:
    """Return the targets of links and images as written, ignoring code."""
    # Most documents have no links; testing for that first makes a check of thousands three times as fast.
    if "](" not in text and "]:" not in text:
        return []
    found = _TARGET.findall(_CODE.sub(" ", text))
    return [target for match in found if (target := match[0] or match[1] or match[2])]


def plain_line(text: str, limit: int | None = None) -> str:
    """Make one line of a generated document: links become their words and markup is escaped."""
    line = one_line(_LINK.sub(r"\1", text))
    if limit is not None:
        line = cut(line, limit)
    return escaped(_MARKUP.sub(r"\\\g<0>", line))


_VISIBLE: Final = re.compile(r"\S")
_KEY_LINE: Final = re.compile(r"---[ \t]*\r?\n[A-Za-z_][A-Za-z0-9_-]*:(?:\s|$)")
_FIX_FRONT_MATTER: Final = "correct the front matter"
_SKILL_KEYS: Final = ("title", "type", "function_id", "description")
_PROMPT_KEYS: Final = ("name", "description")
_FOR_PEOPLE: Final = "disable-model-invocation"


# The values of the front matter, the start of the body, and sentences about problems of the block.
_Head = tuple[dict[str, Any], int, list[str]]


def parse_file(
    relative_path: str, raw: bytes, size: int, modified_at: str, provenance: Provenance = OPERATOR
) -> ParsedFile:
    """Parse the file at ``relative_path`` below a folder; ``provenance`` says which folder that is.

    ``size`` is the size on disk; a file above the limit is refused by its size, whatever ``raw`` holds.
    """
    place = path_to_id(relative_path)
    if place.problem is not None:
        if relative_path.startswith(".") or "/." in relative_path:
            fix = "nothing, if that is meant"
            return ParsedFile(findings=(Finding("skipped", relative_path, place.problem, fix, urgent=False),))
        # Whether this is a mistake depends on the folder, which the catalogue knows.
        return ParsedFile(size=size)
    if size > MAX_BODY_BYTES:
        reason = f"it is too large: {size} bytes, at most {MAX_BODY_BYTES}"
        return _skipped(relative_path, size, reason, "split it into several documents")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _skipped(relative_path, size, "it is not UTF-8", "save it as UTF-8")
    text = text.removeprefix("\ufeff")
    head = _read(text)
    if _VISIBLE.search(text, head[1]) is None:
        return _skipped(relative_path, size, "it is empty", "write a body, or delete it")
    if place.is_prompt:
        parsed = _prompt(place.key, text, head, size, modified_at, relative_path, provenance)
    else:
        parsed = _skill(place.key, text, head, size, modified_at, relative_path, provenance)
    return parsed._replace(digest=hashlib.sha256(raw).digest())


class DocumentText(NamedTuple):
    """The text of a document and its parts."""

    raw: str
    """The whole text as its author wrote it."""
    body: str
    """The text after the front matter."""
    front_matter: dict[str, Any]
    """All values of the front matter."""


def document_of(text: str) -> DocumentText:
    block, body = frontmatter.split(text)
    return DocumentText(text, body, {} if block is None else frontmatter.read(block).values)


def check_body(body: str) -> None:
    """Refuse a body that cannot be registered."""
    if not body.strip():
        raise DirectoryError(BAD_BODY, "skill must be non-empty")
    try:
        size = len(body.encode())
    except UnicodeEncodeError:
        raise DirectoryError(BAD_BODY, "skill must be text that UTF-8 can carry") from None
    if size > MAX_BODY_BYTES:
        raise DirectoryError(BAD_BODY, f"skill is too large: {size} bytes, at most {MAX_BODY_BYTES}")


def written_document(path: str, text: str) -> bytes:
    """Encode the text of a skill's file after checking that it parses as a skill without findings.

    Raises D115 if a file at this path is not a skill.
    """
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise DirectoryError(BAD_BODY, "content must be text that UTF-8 can carry") from None
    read = parse_file(path, raw, len(raw), "")
    if read.prompt is not None or path_to_id(path).is_prompt:
        problem = "a file below a folder called 'prompts' is a prompt, not a skill"
        raise DirectoryError(RESERVED_PLACE, problem)
    for finding in read.findings:
        # Invisible text is reported by the diagnostics only; it may be intended, as in an emoji.
        if finding.kind != "invisible_text":
            raise DirectoryError(BAD_BODY, f"content cannot be a skill: {finding.reason}")
    if read.skill is None:
        raise DirectoryError(RESERVED_PLACE, f"a file at {quoted(path)} is not a skill")
    return raw


def parse_registered_skill(
    fields: Mapping[str, Any], registered_at: str, author: Author = NO_AUTHOR
) -> ParsedFile:
    """Parse a registered skill whose fields were checked."""
    text = fields["skill"].removeprefix("\ufeff")
    size, provenance = len(fields["skill"].encode()), _registered_by(author, registered_at)
    return _skill(fields["id"], text, _read(text), size, registered_at, None, provenance)


def parse_registered_prompt(
    fields: Mapping[str, Any], registered_at: str, author: Author = NO_AUTHOR
) -> ParsedFile:
    """Parse a registered prompt whose fields were checked."""
    given = fields["arguments"]
    arguments = tuple(PromptArgument(one["name"], one.get("description"), one["required"]) for one in given)
    description = cut(fields["description"].strip(), MAX_DESCRIPTION_CHARS)
    name, function_id = fields["name"], fields["function_id"].strip()
    provenance = _registered_by(author, registered_at)
    prompt = Prompt(name, description, registered_at, provenance, None, function_id, arguments)
    return ParsedFile(None, prompt, _findings(name, [], description, ""))


def _registered_by(author: Author, registered_at: str) -> Provenance:
    return Provenance(
        "registered", worker=author.worker, worker_id=author.worker_id, since=registered_at, state="unknown"
    )


def _read(text: str) -> _Head:
    bounds = frontmatter.find(text)
    if bounds is None:
        problems = ["its front matter is not closed by a '---' line"] if _KEY_LINE.match(text) else []
        return {}, 0, problems
    block_start, block_end, body_start = bounds
    block = text[block_start:block_end]
    # Almost every block is settled by the scanner alone (goal ``catalogue.first-scan``).
    values = frontmatter.scan(block)
    if values is not None:
        return values, body_start, []
    values, problem, repaired = frontmatter.read(block)
    if problem is None:
        return values, body_start, []
    effect = "it was read as if quoted" if repaired else "the block is ignored"
    problem = f"its front matter cannot be read: {problem}; {effect}"
    return values, body_start, [problem]


def _skill(
    skill_id: str,
    text: str,
    head: _Head,
    size: int,
    modified_at: str,
    path: str | None,
    provenance: Provenance,
) -> ParsedFile:
    values, body_start, problems = head
    title, kind, function_id, description = _texts(values, _SKILL_KEYS, problems)
    title = title or heading(text, body_start) or bare_id(skill_id)
    if description is None:
        description = first_paragraph(text, body_start)
    elif len(description) > MAX_DESCRIPTION_CHARS:
        description = cut(description, MAX_DESCRIPTION_CHARS)
    functions = _list(values, "functions", "function ids", problems) if "functions" in values else ()
    keywords: tuple[str, ...] = ()
    if "keywords" in values:
        given = values["keywords"]
        # Words in one line, with commas between them, are a list too.
        keywords = (
            tuple(filter(None, map(str.strip, given.split(","))))
            if isinstance(given, str)
            else _list(values, "keywords", "words", problems)
        )
    name, for_people = None, False
    if "name" in values or _FOR_PEOPLE in values:
        name, for_people = skill_name_of(values.get("name")), values.get(_FOR_PEOPLE) is True
    skill = Skill(
        skill_id,
        title,
        kind,
        function_id,
        description,
        size,
        modified_at,
        provenance,
        functions,
        path,
        name,
        for_people,
        keywords,
    )
    found = _findings(path or skill_id, problems, title + description, text)
    return ParsedFile(skill, None, found, None if path is None else size)


def _prompt(
    stem: str, text: str, head: _Head, size: int, modified_at: str, path: str, provenance: Provenance
) -> ParsedFile:
    values, _, problems = head
    name, description = _texts(values, _PROMPT_KEYS, problems)
    arguments = read_arguments(values, problems)
    problem = prompt_name_problem(name or stem)
    if problem is not None:
        problems.append(f"a prompt needs a valid name: {problem}")
    if description is None:
        problems.append("a prompt needs front matter with a description")
    if problem is not None or description is None:
        return _skipped(path, size, "; ".join(problems), _FIX_FRONT_MATTER)
    description = cut(description, MAX_DESCRIPTION_CHARS)
    prompt = Prompt(name or stem, description, modified_at, provenance, path, None, arguments)
    return ParsedFile(None, prompt, _findings(path, problems, description, text), size)


def _texts(values: dict[str, Any], keys: tuple[str, ...], problems: list[str]) -> list[str | None]:
    """Return the values of text keys; a value of another type is ignored with a problem."""
    found: list[str | None] = []
    for key in keys:
        value = values.get(key)
        if isinstance(value, str):
            found.append(value.strip() or None)
        else:
            found.append(None)
            if value is not None:
                problems.append(f"'{key}' in its front matter is not text and is ignored")
    return found


def _list(values: dict[str, Any], key: str, what: str, problems: list[str]) -> tuple[str, ...]:
    """Read a list of strings; a value of another type is ignored with a problem."""
    value = values[key]
    if is_text_list(value):
        return tuple(value)
    if value is not None:
        problems.append(f"'{key}' in its front matter is not a list of {what} and is ignored")
    return ()


def _findings(subject: str, problems: list[str], shown: str, text: str) -> tuple[Finding, ...]:
    """Make findings of front matter problems and of hidden text in a document or its title."""
    # Line breaks do not count as hidden: a long description may span several lines.
    is_disguised = has_unsafe(shown) and has_unsafe(one_line(shown))
    hides = not is_disguised and hides_text(text)
    if not problems and not is_disguised and not hides:
        return ()
    found = [Finding("front_matter", subject, problem, _FIX_FRONT_MATTER) for problem in problems]
    if is_disguised:
        reason = "its title or description holds characters that cannot be seen"
        found.append(Finding("invisible_text", subject, reason, "look at the document before trusting it"))
    if hides:
        reason = "its text holds characters that cannot be seen"
        fix = "look at the document before trusting it"
        found.append(Finding("invisible_text", subject, reason, fix, urgent=False))
    return tuple(found)


def _skipped(path: str, size: int, reason: str, fix: str) -> ParsedFile:
    return ParsedFile(None, None, (Finding("skipped", path, reason, fix),), size)
