"""``iii-directory skills facts`` and ``use``: what a skill can do, and its files without an install."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iii_directory.cli.add import options, print_offers, run_installer, sentence_of, typed_by
from iii_directory.cli.authoring_commands import skills_below
from iii_directory.cli.command_help import complete_skills
from iii_directory.cli.common import fail, settings_from
from iii_directory.cli.output import note, print_json, print_place, print_table
from iii_directory.cli.source import answer, reading_options
from iii_directory.documents import frontmatter
from iii_directory.documents.facts import facts_of
from iii_directory.documents.ids import OVERVIEW
from iii_directory.errors import DirectoryError
from iii_directory.limits import MAX_REASON_CHARS
from iii_directory.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from iii_directory.cli.source import Where
    from iii_directory.config import Settings
    from iii_directory.install.bundle import Bundle


@click.command(
    "facts",
    help="List what a skill can do, without a verdict: scripts, hosts, environment variables, tools, hooks, "
    "functions of the engine and whether they exist there. ID is a skill, PATH a folder with a SKILL.md, and "
    "SOURCE what skills add takes; nothing is installed. What benign skills almost never have is found; "
    "finding nothing does not mean that a skill is safe.",
)
@click.argument("skill", metavar="ID|PATH|SOURCE", shell_complete=complete_skills)
@click.option("--skill", "skills", multiple=True, metavar="NAME", help="A skill of the SOURCE; repeatable.")
@click.option(
    "--accept",
    is_flag=True,
    help="Record in the lock file that you accept what the installed skill can do: it is not new again.",
)
@click.option("--reason", metavar="TEXT", help="Why you accept it.")
@reading_options
def facts(
    skill: str, skills: tuple[str, ...], accept: bool, reason: str | None, as_json: bool, where: Where
) -> None:
    if accept != bool(reason and reason.strip()):
        fail("--accept and --reason go together", code=2)
    if reason is not None:
        _accept(skill, reason.strip(), where, as_json=as_json)
        return
    replies: list[dict[str, Any]]
    if _is_source(skill, where):
        from iii_directory.install.bundle import bundle_facts

        bundles = _fetched(skill, skills, settings_from(where.config_path), everything=not skills)
        replies = [{"id": bundle.namespace, **bundle_facts(bundle).as_dict()} for bundle in bundles]
    elif skills:
        fail("--skill is for a SOURCE, such as owner/repo", code=2)
    elif skill.startswith((".", "/", "~")) or skill.endswith(OVERVIEW):
        replies = [
            {"id": files.folder, **facts_of(files.contents).as_dict()}
            for _, files in skills_below(os.path.expanduser(skill))
        ]
        if not replies:
            fail(f"{skill} has no skill: a skill is a folder with a SKILL.md")
    else:
        replies = [answer(where, "directory::skills::facts", id=skill)]
    if as_json:
        print_json(replies[0] if len(replies) == 1 else {"skills": replies})
        return
    for reply in replies:
        print_table(("fact", "what"), list(fact_rows(reply)))
        count = sum("accepted" not in finding for finding in reply["findings"])
        note(f"{reply['id']}: {count or 'nothing'} to look at; that does not make it safe")
        if "accepted" in reply:
            note(f"{reply['id']}: accepted on {reply['accepted']['at']}: {reply['accepted']['reason']}")


def _is_source(text: str, where: Where) -> bool:
    """Return whether a word names a source rather than a skill or a folder of this machine."""
    from iii_directory.install.requests import DirectFile, typed_source

    if "://" in text or "@" in text:
        return not text.startswith(("iii://", "skill://"))
    if text.startswith((".", "/", "~")):
        return isinstance(typed_source(text), DirectFile)
    # An id may look like owner/repo; a skill that is there is meant.
    return "/" in text and not answer(where, "directory::skills::list", once_more=True, prefix=text)["skills"]


def _accept(skill: str, reason: str, where: Where, *, as_json: bool) -> None:
    if len(reason) > MAX_REASON_CHARS:
        fail(f"the reason is longer than {MAX_REASON_CHARS} characters", code=2)
    settings = settings_from(where.config_path)
    try:
        baseline = run_installer(settings, lambda installer: installer.upkeep.accept_facts(skill, reason))
    except DirectoryError as error:
        fail(sentence_of(error))
    if as_json:
        print_json({"id": skill, "facts-baseline": baseline._asdict()})
    else:
        facts_count = counted(sum(map(len, baseline.facts.values())), "fact")
        note(f"{skill}: {facts_count} accepted in {settings.skills_folder}")


def fact_rows(reply: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a row for each fact and finding of a reply."""
    for finding in reply["findings"]:
        place = f"{finding['path']}:{finding['line']}" if "line" in finding else finding["path"]
        kind = "accepted finding" if "accepted" in finding else "finding"
        yield kind, f"{place}: {finding['words']} ({finding['rule']})"
    for kind, values in reply["facts"].items():
        # The hosts of addresses are listed; the addresses are for --json.
        if kind != "urls":
            yield from ((kind.replace("_", " "), _words(value)) for value in values)
    for kind, count in reply.get("left_out", {}).items():
        yield kind.replace("_", " "), f"… {count} more"


def _words(value: str | dict[str, Any]) -> str:
    if isinstance(value, str):
        return value
    if "exists" in value:
        return f"{value['id']}{' (does not exist on this engine)' if value['exists'] is False else ''}"
    return f"{value['path']} ({value.get('interpreter') or value.get('reason')})"


def _fetched(source: str, skills: Sequence[str], settings: Settings, *, everything: bool) -> list[Bundle]:
    """Fetch skills of a source; where it has several and none was named, list them and end the command."""
    from iii_directory.install.bundle import Wanted

    typed, wanted = typed_by(source, settings, {}), Wanted(skills, everything=everything)
    try:
        found, bundles = run_installer(settings, lambda installer: installer.fetch(typed, wanted))
    except DirectoryError as error:
        fail(sentence_of(error))
    if not bundles:
        print_offers(found, source, as_json=False)
        fail(f"{source} has {len(found.offers)} skills: name one of them behind it")
    return bundles


@click.command(
    help="Write the files of one skill to a temporary folder and print its path; nothing is installed. "
    "SOURCE is what skills add takes; SKILL may be left out where it has one.",
)
@click.argument("source", metavar="SOURCE")
@click.argument("skill", metavar="[SKILL]", required=False)
@options
def use(source: str, skill: str | None, settings: Settings, as_json: bool) -> None:
    import tempfile

    bundle, *others = _fetched(source, [skill] if skill else [], settings, everything=False)
    if others:
        fail(f"{source} has several skills {skill}; give the folder of one of them")
    # Only its owner may enter the new folder, so no other user can put a link in the way.
    place = Path(tempfile.mkdtemp(prefix="iii-directory-use-")) / bundle.namespace
    for path, content in bundle.files.items():
        file = place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o755 if path in bundle.executable else 0o644)
    if as_json:
        files = sorted(bundle.files)
        print_json(
            {"skill": bundle.namespace, "path": str(place), "resolved": bundle.resolved, "files": files}
        )
    else:
        print_place(str(place))


def write_skill(content: str, folder: Path) -> tuple[Path, int]:
    """Write the files of an archive in base64 below ``folder``, in a folder of the skill's name.

    Nothing is written if a file there differs.
    """
    import base64
    import io
    import tarfile

    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(content)), mode="r:gz") as archive:
        members = {member.name: member for member in archive if member.isreg()}
        files: dict[str, bytes] = {}
        for name, member in members.items():
            opened = archive.extractfile(member)
            files[name] = b"" if opened is None else opened.read()
        place = folder / frontmatter.of_text(files[OVERVIEW].decode()).values["name"]
        differing = [path for path, raw in files.items() if _differs(place / path, raw)]
        if differing:
            fail(f"these files in {place} differ, and nothing was written: {', '.join(sorted(differing))}")
        # The archive is the directory's own, and the filter still refuses links and paths that lead outside.
        archive.extractall(place, members=members.values(), filter="data")
    return place, len(files)


def _differs(path: Path, raw: bytes) -> bool:
    try:
        return path.is_symlink() or path.read_bytes() != raw
    except FileNotFoundError:
        return False
    except OSError:
        return True
