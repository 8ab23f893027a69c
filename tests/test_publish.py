"""The helper for worker authors: published as soon as a directory answers, and again whenever it must be."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.registered.stage import House, SdkClient
from tests.support.commands import free_port
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import until

import iii_directory.publish
from iii_directory.documents.ids import bare_id, path_to_id
from iii_directory.publish import publish, read_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iii_directory.publish import Publication

PROMPT = {"name": "greet", "description": "Say hello.", "function_id": "demo::greet"}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iii_directory.publish, "FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(iii_directory.publish, "LONGEST_PAUSE_SECONDS", 0.1)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    write(folder / "SKILL.md", "---\ntype: index\n---\n# demo\n\nA worker.\n")
    write(folder / "email" / "send.md", "# Send\n")
    return folder


@pytest.fixture
def author(engine: EngineThread) -> Iterator[SdkClient]:
    with SdkClient(engine.url) as client:
        yield client


@pytest.fixture
def house(engine: EngineThread, tmp_path: Path) -> Iterator[House]:
    running = House(engine.url, tmp_path / "skills")
    yield running
    running.close()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def published(*arguments: Any, **options: Any) -> Publication:
    publication = publish(*arguments, **options)
    assert publication.wait(WAIT)
    return publication


# Reading a folder


def test_ids_come_from_paths_and_front_matter_stays_in_the_body(docs: Path) -> None:
    assert read_folder(docs, "demo") == {
        "demo": "---\ntype: index\n---\n# demo\n\nA worker.\n",
        "demo/email/send": "# Send\n",
    }


def test_without_a_worker_the_paths_are_the_ids(docs: Path) -> None:
    write(docs / "email" / "index.md", "# Email\n")
    (docs / "SKILL.md").unlink()
    assert list(read_folder(docs)) == ["email", "email/send"]


def test_a_path_means_what_it_means_in_a_skills_folder(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    paths = ["index.md", "a/SKILLS.md", "a/b.md", "prompts/x.md", "a/prompts/y.md", "a/prompts/z/w.md"]
    for path in paths:
        write(docs / path, "# Title\n")
    (docs / "SKILL.md").unlink()

    places = [path_to_id(f"demo/{path.relative_to(docs).as_posix()}") for path in sorted(docs.rglob("*.md"))]

    assert set(read_folder(docs, "demo")) == {bare_id(place.key) for place in places if not place.is_prompt}
    assert caplog.text.count("is a prompt") == sum(place.is_prompt for place in places) == 3


def test_files_that_are_not_documents_are_left_out(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(docs / ".hidden.md", "# x")
    write(docs / ".git" / "x.md", "# x")
    write(docs / "script.py", "x")
    (docs / "link.md").symlink_to(docs / "SKILL.md")
    (docs / "binary.md").write_bytes(b"\xff\xfe")
    assert sorted(read_folder(docs, "demo")) == ["demo", "demo/email/send"]
    assert "binary.md" in caplog.text


def test_a_missing_folder_is_empty(tmp_path: Path) -> None:
    assert read_folder(tmp_path / "nowhere") == {}


# Publishing


def test_skills_and_prompts_are_registered(house: House, author: SdkClient, docs: Path) -> None:
    publication = published(author.sdk, docs, worker="demo", prompts=[PROMPT])
    assert list(house.skill_rows()) == ["demo", "demo/email/send"]
    assert list(house.prompt_rows()) == ["greet"]
    assert publication.refused == {}
    publication.stop()


def test_a_directory_that_comes_later_gets_everything(
    engine: EngineThread, author: SdkClient, docs: Path, tmp_path: Path
) -> None:
    publication = publish(author.sdk, docs, worker="demo", prompts=[PROMPT])
    assert not publication.wait(0.1)
    house = House(engine.url, tmp_path / "skills")
    assert publication.wait(WAIT)
    assert list(house.skill_rows()) == ["demo", "demo/email/send"]
    assert list(house.prompt_rows()) == ["greet"]
    house.close()
    publication.stop()


def test_an_engine_that_forgot_everything_gets_it_again_as_the_folder_is_now(
    docs: Path, tmp_path: Path
) -> None:
    port = free_port()
    with EngineThread(port=port) as engine:
        author = SdkClient(engine.url)
        house = House(engine.url, tmp_path / "skills")
        publication = published(author.sdk, docs, worker="demo")
    write(docs / "email" / "track.md", "# Track\n")
    with EngineThread(port=port) as engine, SdkClient(engine.url) as reader:

        def ids() -> list[str]:
            try:
                rows = reader.call("skills::list", timeout_ms=500)["skills"]
            except iii_directory.publish.InvocationError:
                return []
            return [row["id"] for row in rows if row["source"] == "registered"]

        wanted = ["demo", "demo/email/send", "demo/email/track"]
        until(lambda: ids() == wanted, "everything is registered again")
        publication.stop()
        house.close()
        author.__exit__(None, None, None)


def test_what_is_refused_is_told_and_the_rest_is_published(
    house: House, author: SdkClient, docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(docs / "README.md", "# x")
    write(docs / "empty.md", " \n")
    publication = published(author.sdk, docs, worker="demo", prompts=[{"name": "bad"}, PROMPT])
    assert list(house.skill_rows()) == ["demo", "demo/email/send"]
    assert list(house.prompt_rows()) == ["greet"]
    assert sorted(publication.refused) == ["bad", "demo/README", "demo/empty"]
    assert "lowercase" in publication.refused["demo/README"]
    assert "demo/empty is not published: D113" in caplog.text
    publication.stop()


def test_a_directory_in_another_namespace_can_be_meant(house: House, docs: Path) -> None:
    with SdkClient(house.url, namespace="elsewhere") as author:
        publication = published(author.sdk, docs, worker="demo", namespace="default")
        assert list(house.skill_rows()) == ["demo", "demo/email/send"]
        publication.stop()


def test_nothing_to_publish_is_published_at_once(author: SdkClient) -> None:
    published(author.sdk).stop()


def test_after_stop_nothing_more_is_registered(
    engine: EngineThread, author: SdkClient, docs: Path, tmp_path: Path
) -> None:
    publication = publish(author.sdk, docs, worker="demo")
    publication.stop()
    publication._thread.join(WAIT)
    assert not publication._thread.is_alive()
    house = House(engine.url, tmp_path / "skills")
    assert house.skill_rows() == {}
    house.close()


class Failing:
    """A client whose first calls fail in ways of the network or of the directory."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.requests: list[dict[str, Any]] = []

    def trigger(self, request: dict[str, Any]) -> None:
        self.requests.append(request)
        if self.failures:
            raise self.failures.pop(0)

    def add_connection_state_listener(self, handler: Any) -> Any:
        handler("connected")
        return lambda: None


def failed(code: str, message: str) -> Exception:
    return iii_directory.publish.InvocationError(code=code, message=message)


@pytest.mark.parametrize(
    "failure",
    [
        failed("TIMEOUT", "too slow"),
        failed("function_not_found", "not here"),
        failed("invocation_stopped", "gone"),
        failed("invocation_failed", "D410 engine_error: iii-state did not do it."),
        ConnectionError("no engine"),
    ],
)
def test_what_may_pass_is_tried_again(failure: Exception) -> None:
    client = Failing(failure, failure)
    publication = published(client, prompts=[PROMPT])
    assert len(client.requests) == 3
    assert publication.refused == {}
    publication.stop()


def test_what_will_not_pass_is_not_tried_again() -> None:
    client = Failing(failed("invocation_failed", "D211 invalid_input: name must be non-empty."))
    publication = published(client, prompts=[PROMPT])
    assert len(client.requests) == 1
    assert publication.refused == {"greet": "D211 invalid_input: name must be non-empty."}
    publication.stop()


def test_it_imports_nothing_but_the_standard_library_and_the_sdk() -> None:
    tree = ast.parse(Path(iii_directory.publish.__file__).read_text(encoding="utf-8"))
    modules = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
    }
    assert modules - sys.stdlib_module_names == {"iii"}
