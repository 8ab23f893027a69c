"""From the bytes of a file, or the text of a registered record, to a skill or a prompt, and what is odd."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from iii_directory.documents import frontmatter
from iii_directory.documents.arguments import read_arguments
from iii_directory.documents.ids import bare_id, path_to_id, prompt_name_problem
from iii_directory.documents.markdown import cut, first_paragraph, has_unsafe, heading
from iii_directory.documents.model import Finding, ParsedFile, Prompt, PromptArgument, Skill
from iii_directory.errors import BAD_BODY, DirectoryError
from iii_directory.limits import MAX_BODY_BYTES, MAX_DESCRIPTION_CHARS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.documents.ids import Place

_VISIBLE: Final = re.compile(r"\S")
_KEY_LINE: Final = re.compile(r"---[ \t]*\r?\n[A-Za-z_][A-Za-z0-9_-]*:(?:\s|$)")
_FIX_FRONT_MATTER: Final = "correct the front matter"


class _Document(NamedTuple):
    """A text with its front matter read; ``problems`` are sentences about the block."""

    text: str
    values: dict[str, Any]
    body_start: int
    problems: list[str]


def parse_file(relative_path: str, raw: bytes, size: int, modified_at: str) -> ParsedFile:
    """What the file at ``relative_path`` below the folder is.

    ``size`` is the size on disk; a file above the limit is refused by it alone, its bytes need not be read.
    """
    place = path_to_id(relative_path)
    if place.problem is not None:
        return _skipped(relative_path, place.problem, "rename or move it if it should be a skill or a prompt")
    if size > MAX_BODY_BYTES:
        reason = f"it is too large: {size} bytes, at most {MAX_BODY_BYTES}"
        return _skipped(relative_path, reason, "split it into several documents")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _skipped(relative_path, "it is not UTF-8", "save it as UTF-8")
    document = _read(text.removeprefix("\ufeff"))
    if _VISIBLE.search(document.text, document.body_start) is None:
        return _skipped(relative_path, "it is empty", "write a body, or delete it")
    if place.is_prompt:
        return _prompt(relative_path, place, document, modified_at)
    skill = _skill(place.key, document, size, modified_at, relative_path)
    return ParsedFile(skill, None, _findings(relative_path, document.problems, skill))


def body_of(raw: bytes) -> str:
    """The body a file is served with: what follows its front matter."""
    return frontmatter.split(raw.decode("utf-8"))[1]


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


def parse_registered_skill(skill_id: str, body: str, registered_at: str) -> ParsedFile:
    """What a registered body is; id and body must have passed their checks."""
    document = _read(body.removeprefix("\ufeff"))
    size = len(body.encode())
    skill = _skill(skill_id, document, size, registered_at, None)
    return ParsedFile(skill, None, _findings(skill_id, document.problems, skill))


def parse_registered_prompt(fields: Mapping[str, Any], registered_at: str) -> ParsedFile:
    """What a registered prompt is; its fields must have passed their checks."""
    arguments = tuple(
        PromptArgument(argument["name"], argument.get("description"), argument["required"])
        for argument in fields["arguments"]
    )
    description = cut(fields["description"].strip(), MAX_DESCRIPTION_CHARS)
    name, function_id = fields["name"], fields["function_id"].strip()
    prompt = Prompt(name, description, registered_at, "registered", None, function_id, arguments)
    return ParsedFile(None, prompt, _findings(name, [], prompt))


def _read(text: str) -> _Document:
    bounds = frontmatter.find(text)
    if bounds is None:
        problems = ["its front matter is not closed by a '---' line"] if _KEY_LINE.match(text) else []
        return _Document(text, {}, 0, problems)
    block_start, block_end, body_start = bounds
    block = text[block_start:block_end]
    values = frontmatter.scan(block)
    if values is not None:
        return _Document(text, values, body_start, [])
    values, problem, repaired = frontmatter.read(block)
    if problem is None:
        return _Document(text, values, body_start, [])
    effect = "it was read as if quoted" if repaired else "the block is ignored"
    problem = f"its front matter cannot be read: {problem}; {effect}"
    return _Document(text, values, body_start, [problem])


def _skill(skill_id: str, document: _Document, size: int, modified_at: str, path: str | None) -> Skill:
    text, values, body_start, problems = document
    title = kind = function_id = description = None
    functions: tuple[str, ...] = ()
    if values:
        title = _text(values, "title", problems)
        kind = _text(values, "type", problems)
        function_id = _text(values, "function_id", problems)
        description = _text(values, "description", problems)
        functions = _functions(values.get("functions"), problems)
    return Skill(
        skill_id,
        title or heading(text, body_start) or bare_id(skill_id),
        kind,
        function_id,
        cut(description, MAX_DESCRIPTION_CHARS) if description else first_paragraph(text, body_start),
        size,
        modified_at,
        "registered" if path is None else "folder",
        functions,
        path,
    )


def _prompt(path: str, place: Place, document: _Document, modified_at: str) -> ParsedFile:
    values, problems = document.values, document.problems
    name = _text(values, "name", problems) or place.key
    description = _text(values, "description", problems)
    arguments = read_arguments(values, problems)
    problem = prompt_name_problem(name)
    if problem is not None:
        problems.append(f"a prompt needs a valid name: {problem}")
    if description is None:
        problems.append("a prompt needs front matter with a description")
    if problem is not None or description is None:
        return _skipped(path, "; ".join(problems), _FIX_FRONT_MATTER)
    description = cut(description, MAX_DESCRIPTION_CHARS)
    prompt = Prompt(name, description, modified_at, "folder", path, None, arguments)
    return ParsedFile(None, prompt, _findings(path, problems, prompt))


def _text(values: dict[str, Any], key: str, problems: list[str]) -> str | None:
    """A key that must be text; a wrong type loses only this key."""
    value = values.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        problems.append(f"'{key}' in its front matter is not text and is ignored")
        return None
    return value.strip() or None


def _functions(value: Any, problems: list[str]) -> tuple[str, ...]:
    if isinstance(value, list):
        items = cast("list[object]", value)
        found = tuple(item for item in items if isinstance(item, str))
        if len(found) == len(items):
            return found
    if value is not None:
        problems.append("'functions' in its front matter is not a list of function ids and is ignored")
    return ()


def _findings(subject: str, problems: list[str], entry: Skill | Prompt) -> tuple[Finding, ...]:
    shown = entry.description if isinstance(entry, Prompt) else entry.title + entry.description
    if not problems and not has_unsafe(shown):
        return ()
    found = [Finding("front_matter", subject, problem, _FIX_FRONT_MATTER) for problem in problems]
    if has_unsafe(shown):
        reason = "its title or description holds characters that cannot be seen"
        found.append(Finding("invisible_text", subject, reason, "look at the document before trusting it"))
    return tuple(found)


def _skipped(path: str, reason: str, fix: str) -> ParsedFile:
    return ParsedFile(findings=(Finding("skipped", path, reason, fix),))
