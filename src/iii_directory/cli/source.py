"""Answer a command's questions: from the directory on the engine, or from the folder without one.

Both answer the same functions with the same replies, so a command need not know which of them it asked.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from iii_directory.cli import common
from iii_directory.cli.output import no_pager_option, note
from iii_directory.cli.processes import directory_at
from iii_directory.cli.tokens import engine_token
from iii_directory.config import real_path
from iii_directory.errors import PROMPT_NOT_FOUND, SKILL_NOT_FOUND, DirectoryError, error_of
from iii_directory.text import quoted, shown_url
from iii_directory.wire.protocol import FUNCTION_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from iii_directory.catalog.view import CatalogueView
    from iii_directory.config import Settings
    from iii_directory.documents.model import Finding

    Answer = dict[str, Any]


class Where(NamedTuple):
    """The configuration file and the engine that a command line names."""

    config_path: Path
    url: str | None
    is_verbose: bool = False
    """Whether to say who answers."""


def reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--json`` as ``as_json``, where to read as ``where``, and options of the output."""

    @functools.wraps(command)
    def with_where(*args: Any, config_path: Path, url: str | None, verbose: bool, **options: Any) -> None:
        command(*args, where=Where(config_path, url, verbose), **options)

    as_json = click.option("--json", "as_json", is_flag=True, help="Print the whole reply as JSON.")
    verbose = click.option(
        "--verbose", is_flag=True, help="Also say whether the engine or the folder answers."
    )
    return as_json(
        no_pager_option(common.config_option(common.folder_options(common.url_option(verbose(with_where)))))
    )


def answer(where: Where, function_id: str, *, once_more: bool = False, **payload: Any) -> Answer:
    """Call a reading function of the directory; a failure ends the command.

    ``answered_by`` of the reply says whether the engine or the folder answered. With ``--verbose``, or when a
    named engine does not answer, a line on stderr says so as well, except for further calls (``once_more``).
    """
    given = {key: value for key, value in payload.items() if value is not None}
    url = common.engine_url(where.url, where.config_path.parent)
    is_verbose = where.is_verbose and not once_more
    # A sentence instead of a reply says why no directory on an engine answers.
    reply: Answer | str = ""
    if not common.is_named(where.url):
        if common.chosen_folder() is not None:
            reply = "a skills folder was chosen"
        elif (run := directory_at(url)) is not None and run.home != str(real_path(where.config_path).parent):
            reply = f"the directory at {shown_url(url)} is that of {run.home}"
    reply = reply or _ask_engine(where, url, function_id, given)
    if not isinstance(reply, str):
        if is_verbose:
            note(f"the directory at {shown_url(url)} answers")
        return {**reply, "answered_by": shown_url(url)}
    if where.url is not None:
        common.fail(f"{reply}; start one: {common.program()} up, or leave --url out to read the folder")
    settings = common.settings_from(where.config_path)
    if is_verbose or (common.is_named(None) and not once_more):
        note(f"{reply}; this is read from {settings.skills_folder}")
    return {**_answer_of_folder(settings, function_id, **given), "answered_by": str(settings.skills_folder)}


def _ask_engine(where: Where, url: str, function_id: str, payload: Answer) -> Answer | str:
    """Return the reply of the directory on an engine, or a sentence if no directory answers there."""
    if not common.listens(url):
        return f"no engine answers at {shown_url(url)}"
    from iii_directory.bus.client import EngineUnreachableError, RemoteError, call_function

    token = engine_token(url, where.config_path.parent, named=common.is_named(where.url))
    try:
        return call_function(url, function_id, payload, token=token)
    except EngineUnreachableError as error:
        common.fail(str(error))
    except RemoteError as error:
        if error.body.get("code") == FUNCTION_NOT_FOUND:
            return f"the engine at {shown_url(url)} has no directory"
        known = error_of(error.body.get("data"))
        common.fail(str(error) if known is None else known.sentence(common.as_command))


def _answer_of_folder(settings: Settings, function_id: str, **payload: Any) -> Answer:
    """Answer a reading function from the folder alone, without an engine."""
    from iii_directory.catalog import skill_replies
    from iii_directory.catalog.file_replies import skill_file, skill_files
    from iii_directory.catalog.skill_manifests import Publisher

    answers: dict[str, Callable[[CatalogueView, Answer], object]] = {
        "directory::skills::list": skill_replies.skills_list,
        "directory::skills::get": skill_replies.skill,
        "directory::skills::files": skill_files,
        "directory::skills::file": skill_file,
        "directory::skills::archive": lambda look, asked: Publisher().archive(look, asked["id"]),
        "directory::skills::index": skill_replies.skills_index,
        "directory::prompts::list": skill_replies.prompts_list,
        "directory::prompts::get": skill_replies.prompt,
    }
    try:
        with loaded(settings) as look:
            if function_id in answers:
                return cast("Answer", answers[function_id](look, payload))
            return _answer_slowly(look, settings, function_id, payload)
    except DirectoryError as error:
        is_missing = error.kind in (SKILL_NOT_FOUND, PROMPT_NOT_FOUND) and not common.is_named(None)
        hint = " Documents that running workers register are not searched here." if is_missing else ""
        common.fail(f"{error.sentence(common.as_command)}{hint}")


def _answer_slowly(look: CatalogueView, settings: Settings, function_id: str, payload: Answer) -> Answer:
    """Answer a function that takes more than the catalogue; what it takes is imported only then."""
    match function_id:
        case "directory::search":
            from iii_directory.search.kept_index import search_documents

            return search_documents(look, payload, data_folder(settings))
        case "directory::skills::budget":
            from iii_directory.worker.handlers.inspect_handlers import tool_rows
            from iii_directory.worker.served_skills import budget
            from iii_directory.worker.surfaces import functions_of

            return budget(look, tool_rows(functions_of(settings.surfaces)))
        case "directory::skills::usage":
            from iii_directory.catalog.skill_folders import every_skill
            from iii_directory.worker.usage import FILE_NAME, read_usage

            table = read_usage(data_folder(settings) / FILE_NAME)
            return table.reply(key for key, _ in every_skill(look.snapshot))
        case "directory::skills::facts":
            from iii_directory.worker.served_skills import facts

            return facts(look, payload)
        case "directory::skills::explain":
            from iii_directory.catalog.explain import explanation

            return explanation(look, payload, _edited(look, settings))
        case "directory::diagnostics":
            from iii_directory.worker.served_skills import objections

            checked = objections(look) if payload.get("check") else ()
            return look.report([*look.findings(), *_edited(look, settings), *checked], payload)
        case _:
            raise KeyError(function_id)


def place_of(where: Where, skill_id: str, path: str | None) -> Answer:
    """Return the path of a skill, or of a file in it; an engine is asked only if ``--url`` names one."""
    if where.url is None:
        settings = common.settings_from(where.config_path)
        ask = functools.partial(_answer_of_folder, replace(settings, show_paths=True))
        why = "it comes with this program"
    else:
        ask = functools.partial(answer, where)
        why = "it is registered, or its directory does not send paths (show_paths in its configuration)"
    skill = ask("directory::skills::files", id=skill_id)
    if "path" not in skill:
        common.fail(f"{quoted(skill['id'])} has no path here: {why}; {common.program()} skills show reads it")
    place: str = skill["path"]
    if path is not None:
        inner = ask("directory::skills::file", id=skill_id, path=path, limit=1)["path"]
        # The path of a skill that is a single document is the document's; skill folders have no dot in them.
        is_document = inner.endswith(".md") and place.endswith(f"/{inner}")
        place = place if is_document else f"{place}/{inner}"
    return {"id": skill["id"], "path": place}


@contextlib.contextmanager
def loaded(settings: Settings) -> Generator[CatalogueView]:
    """Load the documents of the folder; bodies can be read until the end of the block."""
    from iii_directory.catalog.catalogue import Catalogue
    from iii_directory.catalog.folder_source import layers_of
    from iii_directory.catalog.origins import Levels

    # `doctor` shows what the catalogue objects to; other commands keep it off stderr.
    logging.getLogger("iii_directory.catalog").addHandler(logging.NullHandler())
    folders = layers_of(settings)
    catalogue = Catalogue(folders, show_paths=settings.show_paths is True, levels=Levels(settings.visibility))
    try:
        yield catalogue.load()
    finally:
        catalogue.close()


def data_folder(settings: Settings) -> Path:
    """Return the data folder of the project that a command is about."""
    home = real_path(click.get_current_context().params["config_path"]).parent
    return common.default_data(home, settings.skills_folder)


def _edited(look: CatalogueView, settings: Settings) -> list[Finding]:
    from iii_directory.install.writes import Edits

    return Edits(settings.skills_folder).findings(look.lockfile)
