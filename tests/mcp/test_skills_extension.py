"""Skills over MCP (SEP-2640): what is listed, what is read, and that digests and bytes always agree."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from pydantic import ConfigDict
from tests.mcp.stage import Session, http_bridge, session
from tests.support.engine import WAIT, EngineThread
from tests.support.reader import Reader

from iii_directory.documents.skill_package import slug
from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ERAS = ("2025", "2026")
VERBATIM = "---\nname: pdf\ndescription: Fills PDF forms. Use it for forms.\nlicense: MIT\n---\n# PDF\n"
BINARY = bytes(range(256))


class Anything(types.Result):
    """A result with every field that the server sent."""

    model_config = ConfigDict(extra="allow")


class Host:
    """A client that uses the extension's methods."""

    def __init__(self, client: Session) -> None:
        self.client = client

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        async def bounded() -> Anything:
            with anyio.fail_after(WAIT):
                request = types.Request[dict[str, Any], Any](method=method, params=params)
                return await self.client.client.session.send_request(request, Anything)

        return self.client.portal.call(bounded).model_dump(by_alias=True, mode="json", exclude_unset=True)

    def skills(self) -> dict[str, dict[str, Any]]:
        """Every page of ``skills/list``, by the addresses of the skills."""
        found: dict[str, dict[str, Any]] = {}
        cursor: dict[str, str] = {}
        while True:
            page = self.ask("skills/list", **cursor)
            found |= {entry["uri"]: entry for entry in page["skills"]}
            if page.get("nextCursor") is None:
                return found
            cursor = {"cursor": page["nextCursor"]}

    def entry(self, uri: str) -> dict[str, Any]:
        return self.ask("skills/get", uri=uri)["skill"]

    def read(self, uri: str) -> bytes:
        (content,) = self.client.ask("read_resource", uri).contents
        return content.text.encode() if hasattr(content, "text") else base64.b64decode(content.blob)

    def refused(self, method: str, **params: Any) -> int:
        try:
            answer = self.ask(method, **params)
        except MCPError as error:
            return error.code
        raise AssertionError(f"{method} answered {answer}")


def digest(raw: bytes) -> str:
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


@contextmanager
def host_of(place: Path, era: Any = "2026", **settings: Any) -> Generator[tuple[Host, Reader]]:
    with (
        EngineThread() as engine,
        Reader(engine.url, place, **settings) as reader,
        http_bridge(engine.url) as url,
        session(url, era) as client,
    ):
        yield Host(client), reader


@pytest.fixture(scope="module", params=ERAS)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Host, Reader]]:
    with host_of(tmp_path_factory.mktemp("host"), request.param) as (host, reader):
        write = reader.skills.write
        write("pdf/SKILL.md", VERBATIM)
        write("pdf/scripts/fill.py", "print('filled')\n")
        (reader.skills.root / "pdf" / "logo.bin").write_bytes(BINARY)
        write("pdf/inner/SKILL.md", "---\nname: inner\ndescription: Inside.\n---\n# Inner\n")
        write("pdf/prompts/ask.md", "---\ndescription: Ask\n---\nAsk.\n")
        write("coffee/index.md", "# Coffee\r\n\r\nHow to order --- coffee 😀.\r\n")
        write("coffee/notes/beans.md", "# Beans\n\nWhere from.\n")
        write("weather/SKILL.md", "---\nname: forecast\ndescription: Tells the weather.\n---\n# W\n")
        write("odd_name/SKILL.md", "# Odd\n\nHas a name that no host takes.\n")
        write("lone_doc.md", "# Lone\n\nA lone document.\n")
        write("mute/SKILL.md", "# Mute\n")
        reader.call("skills::register", id="tea", skill="# Tea\n\nHow to make tea.\n")
        reader.call("skills::register", id="tea/green", skill="# Green\n\nNot too hot.\n")
        reader.call("skills::register", id="pdf/foreign", skill="# Foreign\n\nNot the operator's.\n")
        yield host, reader


def test_every_listed_file_has_the_digest_and_size_of_its_bytes(world: tuple[Host, Reader]) -> None:
    host, _ = world
    for uri, entry in host.skills().items():
        assert entry == host.entry(uri)
        for row in entry["resources"]:
            raw = host.read(row["uri"])
            assert (row["digest"], row["size"]) == (digest(raw), len(raw)), row["uri"]


def test_every_kind_of_skill_has_an_address_that_ends_with_its_name(world: tuple[Host, Reader]) -> None:
    host, _ = world
    found = host.skills()

    expected = ("pdf", "pdf/inner", "coffee", "forecast", "odd-name", "lone-doc", "tea")
    assert {f"skill://{path}/SKILL.md" for path in expected} <= set(found)
    assert "skill://mute/SKILL.md" not in found
    for uri, entry in found.items():
        assert entry["frontmatter"]["name"] == uri.split("/")[-2]
        assert entry["frontmatter"]["description"]


def test_a_valid_skill_is_served_as_it_is_and_others_get_front_matter(world: tuple[Host, Reader]) -> None:
    host, _ = world
    coffee = host.read("skill://coffee/SKILL.md").decode()

    assert host.read("skill://pdf/SKILL.md") == VERBATIM.encode()
    assert host.entry("skill://pdf/SKILL.md")["frontmatter"]["license"] == "MIT"
    assert coffee.startswith('---\nname: "coffee"\ndescription: "How to order \\u002d')
    assert coffee.endswith("# Coffee\r\n\r\nHow to order --- coffee 😀.\r\n")
    assert host.read("skill://pdf/logo.bin") == BINARY


def test_a_manifest_has_every_file_once_and_no_foreign_one(world: tuple[Host, Reader]) -> None:
    host, _ = world
    pdf = [row["uri"] for row in host.entry("skill://pdf/SKILL.md")["resources"]]
    tea = [row["uri"] for row in host.entry("skill://tea/SKILL.md")["resources"]]

    inside = ("SKILL.md", "inner/SKILL.md", "logo.bin", "scripts/fill.py")
    assert pdf == [f"skill://pdf/{path}" for path in inside]
    assert tea == ["skill://tea/SKILL.md", "skill://tea/green.md"]


def test_a_folder_is_listed_with_its_direct_children(world: tuple[Host, Reader]) -> None:
    host, _ = world
    children = host.ask("resources/directory/read", uri="skill://pdf")["resources"]

    assert [(row["name"], row["mimeType"]) for row in children] == [
        ("SKILL.md", "text/markdown"),
        ("inner", "inode/directory"),
        ("logo.bin", "application/octet-stream"),
        ("scripts", "inode/directory"),
    ]
    for uri in ("skill://pdf/SKILL.md", "skill://nothing", "skill://pdf/scripts/fill.py", "iii://pdf"):
        assert host.refused("resources/directory/read", uri=uri) == -32602


def test_an_unknown_skill_or_cursor_is_a_mistake_of_the_client(world: tuple[Host, Reader]) -> None:
    host, _ = world
    for uri in ("skill://nothing/SKILL.md", "skill://pdf", "skill://pdf/scripts/fill.py", "iii://pdf"):
        assert host.refused("skills/get", uri=uri) == -32602
    assert host.refused("skills/list", cursor="0000-1") == -32602


def test_only_clients_of_2026_are_told_how_long_to_keep_a_list(world: tuple[Host, Reader]) -> None:
    host, _ = world
    for answer in (host.ask("skills/list"), host.ask("skills/get", uri="skill://pdf/SKILL.md")):
        modern = host.client.era == "2026"
        assert ("ttlMs" in answer, "cacheScope" in answer) == (modern, modern)


def test_the_reference_validator_accepts_every_listed_skill(
    world: tuple[Host, Reader], tmp_path: Path
) -> None:
    host, _ = world
    for uri, entry in host.skills().items():
        root = uri.removesuffix("SKILL.md")
        folder = tmp_path / uri.split("/")[-2]
        for row in entry["resources"]:
            place = folder / row["uri"].removeprefix(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(host.read(row["uri"]))
        program = Path(sys.executable).with_name("agentskills")
        done = subprocess.run([program, "validate", folder], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (uri, done.stdout, done.stderr)


def test_a_client_is_told_of_a_changed_resource_it_subscribed_to(world: tuple[Host, Reader]) -> None:
    host, reader = world
    uri = "skill://pdf/scripts/fill.py"
    if host.client.era == "2025":
        host.ask("resources/subscribe", uri=uri)
        reader.skills.write("pdf/scripts/fill.py", "print('filled again')\n")
        host.client.told(uri)
        host.ask("resources/unsubscribe", uri=uri)
        return
    with host.client.portal.wrap_async_context_manager(
        host.client.client.listen(resource_subscriptions=[uri])
    ):
        reader.skills.write("pdf/scripts/fill.py", "print('filled once more')\n")
        host.client.told(uri)


def test_a_cursor_is_void_once_a_listed_skill_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.limits.MAX_MANIFEST_PAGE_SKILLS", 2)
    with host_of(tmp_path) as (host, reader):
        for number in range(5):
            reader.skills.write(f"s{number}/SKILL.md", f"# S\n\nNumber {number}.\n")
        cursor = host.ask("skills/list")["nextCursor"]

        assert len(host.skills()) == 6
        reader.skills.write("s3/SKILL.md", "# S\n\nAnother number.\n")
        assert host.refused("skills/list", cursor=cursor) == -32602


def test_nothing_is_hashed_twice_while_it_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise the files are new for a while, and read again to be sure.
    monkeypatch.setattr("iii_directory.limits.RACY_SECONDS", 0)
    files = {f"s{one}/SKILL.md": VERBATIM.replace("pdf", f"s{one}") for one in range(20)}
    files |= {f"s{one}/file.txt": f"The text of {one}." for one in range(20)}
    changed = "The text after a change."
    hashed: list[bytes] = []
    sha256 = hashlib.sha256

    def counting(raw: bytes = b"", **options: Any) -> Any:
        if raw.decode("utf-8", "replace") in (*files.values(), changed):
            hashed.append(raw)
        return sha256(raw, **options)

    with host_of(tmp_path) as (host, reader):
        for path, text in files.items():
            reader.skills.write(path, text)
        listed = host.skills()
        monkeypatch.setattr(hashlib, "sha256", counting)
        for _ in range(3):
            assert host.skills() == listed
            host.entry("skill://s3/SKILL.md")
            host.read("skill://s3/SKILL.md")
            host.read("skill://s3/file.txt")
            host.ask("resources/directory/read", uri="skill://s3")
        assert hashed == []

        reader.skills.write("s3/file.txt", changed)
        rows = host.skills()["skill://s3/SKILL.md"]["resources"]
        monkeypatch.undo()

        assert rows[1]["digest"] == digest(changed.encode())
        assert hashed == [changed.encode()]


RACED = ("race/SKILL.md", "race/data.bin", "race/deep/note.md", "other/index.md")


def _edit(reader: Reader, edits: int, done: threading.Event) -> None:
    """Write files in place and by renaming, each time with bytes that no file had before."""
    chance = random.Random(7)
    for number in range(edits):
        path = chance.choice(RACED)
        text = f"# {path}\n\nEdit {number}. {'x' * chance.randrange(300)}\n"
        if number % 3:
            reader.skills.write(path, text)
        else:
            new = reader.skills.root / f".new-{number}"
            new.write_text(text, encoding="utf-8")
            new.rename(reader.skills.root / path)
    done.set()


def _race(place: Path, edits: int) -> None:
    """Edit files while a host lists, gets and reads: two equal digests enclose only bytes of that digest."""
    with host_of(place) as (host, reader):
        for path in RACED:
            reader.skills.write(path, f"# {path}\n\nAbout it.\n")
        done = threading.Event()
        editing = threading.Thread(target=_edit, args=(reader, edits, done))
        editing.start()
        compared = 0
        while not done.is_set() or not compared:
            for uri in host.skills():
                # A file that is being written in place is empty for a moment, and then not a skill.
                with suppress(MCPError):
                    compared += _compared(host, uri)
        editing.join(WAIT)
        for uri, entry in host.skills().items():
            assert _compared(host, uri) == len(entry["resources"])


def _compared(host: Host, uri: str) -> int:
    """How many files of a skill had one digest before and after they were read; each must be of the bytes."""
    compared = 0
    for row in host.entry(uri)["resources"]:
        raw = host.read(row["uri"])
        again = {one["uri"]: one["digest"] for one in host.entry(uri)["resources"]}
        # A file is empty at the start of every write in place, so that alone can come twice.
        if again.get(row["uri"]) == row["digest"] != digest(b""):
            assert digest(raw) == row["digest"], row["uri"]
            compared += 1
    return compared


def test_no_digest_differs_from_its_bytes_in_ten_thousand_edits(tmp_path: Path) -> None:
    _race(tmp_path, 10_000)


@pytest.mark.parametrize(
    ("text", "made"),
    [("Odd_Name", "odd-name"), ("--a  b--", "a-b"), ("ﬁne", "fine"), ("x" * 80, "x" * 64), ("日本", "")],
)
def test_a_name_is_made_of_any_text(text: str, made: str) -> None:
    assert slug(text) == made


def test_a_name_with_blanks_is_read_by_its_encoded_and_by_its_plain_address(tmp_path: Path) -> None:
    with host_of(tmp_path) as (host, reader):
        reader.skills.write("pdf/SKILL.md", VERBATIM)
        reader.skills.write("pdf/my file é.txt", "odd")
        listed = [row["uri"] for row in host.entry("skill://pdf/SKILL.md")["resources"]]

        assert listed == ["skill://pdf/SKILL.md", "skill://pdf/my%20file%20%C3%A9.txt"]
        assert host.read(listed[1]) == host.read("skill://pdf/my file é.txt") == b"odd"


def test_a_skill_that_is_only_offered_by_name_is_not_listed_and_still_answered(tmp_path: Path) -> None:
    with host_of(tmp_path, visibility={"quiet": "manual"}) as (host, reader):
        reader.skills.write("quiet/SKILL.md", "# Quiet\n\nIs not offered.\n")
        reader.skills.write("here/SKILL.md", "# Here\n\nIs offered.\n")

        assert "skill://here/SKILL.md" in host.skills()
        assert "skill://quiet/SKILL.md" not in host.skills()
        assert host.entry("skill://quiet/SKILL.md")["frontmatter"]["name"] == "quiet"


def test_a_skill_of_too_many_files_is_listed_without_a_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_directory.limits.MAX_BUNDLE_FILES", 3)
    with host_of(tmp_path) as (host, reader):
        reader.skills.write("big/SKILL.md", "# Big\n\nHas many files.\n")
        for number in range(3):
            reader.skills.write(f"big/{number}.txt", "x")

        assert host.entry("skill://big/SKILL.md")["resources"] == "dynamic"
        assert "skill://big/SKILL.md" in host.skills()
        assert json.loads(json.dumps(host.skills()))
