"""What a source offers for one namespace, checked in full before anything is written. Pure.

A `Bundle` only comes out of `make_bundle`, so whoever holds one may write every path in it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from iii_directory import limits
from iii_directory.documents import frontmatter
from iii_directory.documents.ids import prompt_name_problem
from iii_directory.documents.model import Finding
from iii_directory.errors import refused
from iii_directory.lockfile.format import content_hash
from iii_directory.lockfile.names import is_hidden, is_namespace, vet_path, vet_together
from iii_directory.text import one_line, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from iii_directory.lockfile.format import Source
    from iii_directory.registry.answers import BundleAnswer, PromptAnswer

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

    def resolved_as(self, resolved: str) -> Bundle:
        """The same files under the name of their state."""
        return replace(self, resolved=resolved)

    def prompt_name(self, path: str) -> str:
        """The name of the prompt in a file: what its front matter says, else the stem."""
        block, _ = frontmatter.split(self.files[path].decode("utf-8", "replace"))
        name = frontmatter.read(block).values.get("name") if block is not None else None
        return name if isinstance(name, str) and name else path.rpartition("/")[2].removesuffix(".md")


def make_bundle(
    namespace: str,
    source: Source,
    resolved: str,
    entries: Iterable[tuple[str, bytes]],
    executable: Collection[str] = (),
) -> Bundle:
    """Check names, sizes and counts; raise D340 for the first thing that is not right."""
    if not is_namespace(namespace):
        raise refused(f"{quoted(namespace)} cannot be the name of a namespace")
    found = list(entries)
    for path, _ in found:
        vet_path(path)
    wanted = [(path, content) for path, content in found if not is_hidden(path)]
    vet_together(path for path, _ in wanted)
    _check_sizes(wanted)
    files = dict(sorted(wanted))
    return Bundle(
        namespace=namespace,
        source=source,
        resolved=resolved,
        files=files,
        hashes={path: content_hash(content) for path, content in files.items()},
        executable=frozenset(executable) & files.keys(),
        left_out=tuple(sorted(path for path, _ in found if is_hidden(path))),
    )


def content_digest(bundle: Bundle) -> str:
    """Identify the content of a bundle whose source has no versions."""
    lines = sorted(
        f"{digest} {'x' if path in bundle.executable else '-'} {path}"
        for path, digest in bundle.hashes.items()
    )
    return content_hash("\n".join(lines).encode())[:19]


def check_count(count: int) -> None:
    if count > limits.MAX_BUNDLE_FILES:
        raise refused(f"the bundle has more than {limits.MAX_BUNDLE_FILES} files")


def check_total(size: int) -> None:
    if size > limits.MAX_BUNDLE_BYTES:
        raise refused(f"the bundle is larger than {limits.MAX_BUNDLE_BYTES // limits.MIB} MiB")


def check_file(path: str, size: int) -> None:
    if path.endswith(".md") and size > limits.MAX_BODY_BYTES:
        raise refused(f"{quoted(path)} is larger than {limits.MAX_BODY_BYTES // limits.KIB} KiB")


def _check_sizes(entries: list[tuple[str, bytes]]) -> None:
    if not entries:
        raise refused("the bundle is empty")
    check_count(len(entries))
    check_total(sum(len(content) for _, content in entries))
    for path, content in entries:
        check_file(path, len(content))


def registry_bundle(source: Source, namespace: str, answer: BundleAnswer) -> Bundle:
    """The bundle in a registry's answer; paths lose one leading ``skills/``, prompts become files."""
    entries = [
        (skill.path.removeprefix("skills/"), _encoded(skill.path, skill.content)) for skill in answer.skills
    ]
    findings: list[Finding] = []
    for prompt in answer.prompts:
        path = f"prompts/{prompt.name}.md"
        text, complete = prompt_file(prompt)
        entries.append((path, _encoded(path, text)))
        if not complete:
            findings.append(_without_arguments(f"{namespace}/{path}"))
    bundle = make_bundle(namespace, source, answer.version, entries)
    return replace(bundle, findings=tuple(findings))


def prompt_file(prompt: PromptAnswer) -> tuple[str, bool]:
    """The markdown of a registry's prompt, and whether its argument schema fitted into the front matter."""
    problem = prompt_name_problem(prompt.name)
    if problem is not None:
        raise refused(f"a prompt of the bundle cannot be installed: {problem}")
    block = f"name: {prompt.name}\ndescription: {_scalar(_description(prompt))}\n"
    complete = prompt.args_schema is None
    if not complete:
        longer = f"{block}args_schema: {_flow(prompt.args_schema)}\n"
        if frontmatter.read(longer).problem is None:
            block, complete = longer, True
    end = "" if prompt.content.endswith("\n") else "\n"
    return f"---\n{block}---\n{prompt.content}{end}", complete


def _description(prompt: PromptAnswer) -> str:
    """A folder prompt without a description is not listed, so one is made of what there is."""
    return one_line(prompt.description) or f"The prompt {prompt.name}"


def _scalar(text: str) -> str:
    """Plain when it reads back as the same string, quoted otherwise."""
    plain = frontmatter.read(f"description: {text}\n")
    same = plain.problem is None and plain.values == {"description": text}
    return text if same else _flow(text)


def _flow(value: object) -> str:
    """JSON on one line is YAML too, once the characters are escaped that only YAML takes for line breaks."""
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _encoded(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise refused(f"{quoted(name)} is not valid Unicode") from error


def _without_arguments(subject: str) -> Finding:
    reason = "the registry's args_schema is too large or too deep for front matter and was left out"
    return Finding("front_matter", subject, reason, "ask the publisher for a smaller schema")
