"""Every text field of every function meets the hostile corpus: nothing outside the folder is read or told."""

from __future__ import annotations

import json
import os
import random
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from tests.hostile import HOSTILE, label
from tests.support.engine import EngineThread, RawClient
from tests.support.folders import Folder
from tests.support.reader import Reader

from iii_directory.catalog.catalogue import Catalogue
from iii_directory.catalog.folder_scanning import decodable_name as decodable
from iii_directory.catalog.folder_source import FolderSource
from iii_directory.catalog.resolve import Found, resolve_skill
from iii_directory.config import SURFACES
from iii_directory.errors import DirectoryError
from iii_directory.text import escaped, has_unsafe
from iii_directory.worker.surfaces import functions_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from iii_directory.catalog.snapshot import Snapshot

CANARY = "canary-6f1d0c52"
NO_REGISTRY = "http://127.0.0.1:1"
WINDOW = 64
NEIGHBOURS = ("outside.md", "skills2/secret.md", "skills.bak/secret.md", "skills_evil.md", "etc/passwd")
Call = tuple[str, dict[str, Any]]
# A repository is cloned from wherever it says; the tests of installs send it hostile addresses offline.
ELSEWHERE = {"repo"}
BENIGN = {
    "arguments": [],
    "capabilities": ["known"],
    "content": "# Known",
    "description": "x",
    "function_id": "a::b",
    "id": "known",
    "name": "known",
    "namespace": "known",
    "path": "known.md",
    "repo": "https://127.0.0.1:1/none",
    "skill": "known",
    "uri": "known",
    "worker": "known",
}


def fields() -> Iterator[tuple[str, str]]:
    """Every function of ours with every field of it that takes text."""
    for row in functions_of(SURFACES):
        for name, schema in row.request.get("properties", {}).items():
            kind = schema.get("type")
            texts = kind == "array" and schema["items"].get("type") == "string"
            if (kind == "string" or texts) and name not in ELSEWHERE:
                yield row.id, name


def payload_for(function: str, field: str, text: str) -> dict[str, Any]:
    row = next(row for row in functions_of(SURFACES) if row.id == function)
    payload = {name: BENIGN[name] for name in row.request.get("required", ())}
    is_list = row.request["properties"][field]["type"] == "array"
    return payload | {field: [text, "known"] if is_list else text}


def is_sendable(text: str) -> bool:
    """Whether JSON on a wire of UTF-8 can carry it."""
    return not any(0xD800 <= ord(letter) < 0xE000 for letter in text)


SENT = [text for text in HOSTILE if is_sendable(text)]


# Folders whose names start, end or look like that of the folder that is served.
SIBLINGS = (
    "skills2",
    "skills.bak",
    "skills_evil",
    "skills-old",
    "skills~",
    "skills.",
    "skills ",
    "Skills",
    "SKILLS",
    ".skills",
    "myskills",
    "skill",
    "ski\u217cls",
    "skills%2f..",
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A directory with secrets all around its folder."""
    root = tmp_path_factory.mktemp("house")
    for neighbour in ("outside.md", "etc/passwd", *(f"{sibling}/secret.md" for sibling in SIBLINGS)):
        path = root / neighbour
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {CANARY}\n\n{CANARY}\n", encoding="utf-8")
    with (
        EngineThread() as engine,
        Reader(
            engine.url, root, registry_url=NO_REGISTRY, download_timeout_ms=200, allow_writing=True
        ) as reader,
    ):
        reader.skills.document("known.md", "Known")
        reader.skills.document("a.md", "A")
        reader.skills.document("a/b.md", "B")
        reader.skills.write("a/prompts/known.md", "---\ndescription: x\n---\nBody.\n")
        reader.skills.write("a/.hidden.md", CANARY)
        reader.skills.write(".env", CANARY)
        reader.skills.write("a/asset.txt", CANARY)
        reader.skills.link("link.md", root / "outside.md")
        reader.skills.link("up", root)
        yield reader


def replies(
    url: str, calls: list[tuple[str, dict[str, Any]]]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each payload with its reply, many of them in flight."""
    with RawClient(url) as client:
        for start in range(0, len(calls), WINDOW):
            asked = {str(uuid.uuid4()): call for call in calls[start : start + WINDOW]}
            for call_id, (function, payload) in asked.items():
                client.send(type="invokefunction", function_id=function, invocation_id=call_id, data=payload)
            while asked:
                reply = client.receive_type("invocationresult")
                yield asked.pop(reply["invocation_id"])[1], reply


def test_the_corpus_is_large() -> None:
    assert len(SENT) >= 150
    assert len(set(HOSTILE)) == len(HOSTILE)


@pytest.mark.parametrize(("function", "field"), list(fields()), ids=lambda part: part.replace("::", "."))
def test_a_hostile_string_reads_nothing_and_is_told_nothing(house: Reader, function: str, field: str) -> None:
    calls = [(function, payload_for(function, field, text)) for text in SENT]
    secrets = (CANARY, str(house.skills.root.parent), 'File "', "Traceback", "site-packages")

    for payload, reply in replies(house.url, calls):
        case = f"{function} {label(json.dumps(payload))}"
        # What a caller sent may come back to it, so that it is not looked for there.
        told = json.dumps(reply.get("error") or reply.get("result"), ensure_ascii=False)
        assert [secret for secret in secrets if secret in told] == [], case
        if "error" in reply:
            sentence = reply["error"]["message"]
            assert sentence[0] == "D", case
            assert sentence[1:4].isdigit(), case
            assert not has_unsafe(sentence), case
            assert len(sentence) < 1000, case


def test_a_hostile_address_reads_nothing_behind_any_scheme(house: Reader) -> None:
    calls = [
        (function, {"uri": f"{scheme}{text}"})
        for text in SENT
        for scheme in ("iii://", "iii://a/", "iii://fn/")
        for function in ("skills::resources-read", "skill::fetch")
    ]

    for payload, reply in replies(house.url, calls):
        assert CANARY not in json.dumps(reply), label(payload["uri"])
        if "error" in reply:
            assert not has_unsafe(reply["error"]["message"]), label(payload["uri"])


@pytest.mark.parametrize("sibling", SIBLINGS)
def test_a_folder_that_is_called_almost_alike_is_not_ours(house: Reader, sibling: str) -> None:
    paths = [
        form.format(sibling)
        for form in (
            "../{0}/secret",
            "{0}/secret",
            "a/../../{0}/secret",
            "../skills/../{0}/secret",
            "./../{0}/secret",
            "..\\{0}\\secret",
            "%2e%2e/{0}/secret",
            "..%2f{0}%2fsecret",
        )
    ] + [str(house.skills.root.parent / sibling / "secret")]
    calls: list[tuple[str, dict[str, Any]]] = []
    for path in paths:
        calls += [
            ("directory::skills::get", {"id": path}),
            ("directory::skills::get", {"id": f"{path}.md"}),
            ("directory::skills::file", {"id": "a", "path": f"{path}.md"}),
            ("directory::skills::list", {"prefix": path}),
            ("skill::fetch", {"uri": f"iii://{path}"}),
            ("skills::resources-read", {"uri": f"skill://{path}.md"}),
        ]

    for payload, reply in replies(house.url, calls):
        assert CANARY not in json.dumps(reply), payload


def test_hostile_file_names_are_listed_or_in_the_diagnostics(tmp_path: Path, engine: EngineThread) -> None:
    with Reader(engine.url, tmp_path) as directory:
        made = {name for text in HOSTILE if (name := make(directory, text)) is not None}

        listed = set(directory.ids())
        reported = {finding["subject"] for finding in directory.findings()}
        lost = {name for name in made if id_of(name) not in listed and not reported & set(above(name))}
        assert len(made) > 150
        assert lost == set()
        assert not any(map(has_unsafe, reported))


def make(directory: Reader, text: str) -> str | None:
    """A file of that name in the folder, if the system takes it; its path below the folder."""
    name = f"{text}.md"
    path = os.path.normpath(os.path.join(directory.skills.root, name))
    if not path.startswith(f"{directory.skills.root}{os.sep}") or "\0" in name:
        return None
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("# x\n")
    except (OSError, ValueError):
        return None
    return os.path.relpath(path, directory.skills.root)


def id_of(name: str) -> str:
    return name.removesuffix(".md").replace("SKILL", "index").removesuffix("/index")


def above(name: str) -> Iterator[str]:
    """A file and the folders it lies in, each as the diagnostics show it."""
    parts = name.split("/")
    for count in range(len(parts), 0, -1):
        yield escaped(decodable("/".join(parts[:count])))


@pytest.mark.soak
def test_a_million_mutated_strings_find_nothing_but_what_is_there(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "skills")
    for name in ("a.md", "a/b.md", "known/index.md"):
        folder.document(name, "Inside")
    folder.link("up", tmp_path)
    catalogue = Catalogue(FolderSource(folder.root))
    snapshot = catalogue.load().snapshot
    inside = {None, *(skill.path for skill in snapshot.skills.items)}
    pieces = [*HOSTILE, "a", "a/b", "known", "iii://", "/", "..", ".md", "fn/"]
    pick = random.Random(20).choice

    for _ in range(1_000_000):
        text = "".join(pick(pieces) for _ in range(pick((1, 2, 3))))[: pick((20, 80, 2000))]
        path, sentence = outcome(snapshot, text)
        assert path in inside, label(text)
        assert not has_unsafe(sentence), label(text)


def outcome(snapshot: Snapshot, text: str) -> tuple[str | None, str]:
    """The path of the file that is served for an id, or None and the sentence that refuses it."""
    try:
        found = resolve_skill(snapshot, text)
    except DirectoryError as refused:
        return None, str(refused)
    assert isinstance(found, Found)
    return found.skill.path, found.note or ""


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_swapping_links_in_while_others_read_leaks_nothing(
    tmp_path: Path, engine: EngineThread, swapped: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "doc.md").write_text(CANARY, encoding="utf-8")
    with Reader(engine.url, tmp_path) as directory:
        skills = directory.skills
        skills.document("ns/doc.md", "Inside")
        ended = threading.Event()
        told: list[str] = []

        def read() -> None:
            with RawClient(engine.url) as client:
                while not ended.is_set():
                    for function, payload in (
                        ("directory::skills::get", {"id": "ns/doc"}),
                        ("skill::fetch", {"uri": "ns/doc"}),
                        ("directory::skills::list", {}),
                    ):
                        told.append(json.dumps(client.call(function, payload)))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        name, target = ("ns/doc.md", outside / "doc.md") if swapped == "file" else ("ns", outside)
        for _ in range(300):
            skills.move(name, "aside")
            skills.link(name, target)
            skills.remove(name)
            skills.move("aside", name)
        ended.set()
        for reader in readers:
            reader.join(30)

    assert len(told) > 20
    assert not any(CANARY in reply for reply in told)
    assert any("About Inside" in reply for reply in told)
