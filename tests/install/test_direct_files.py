"""Skills from one file: a SKILL.md at an address, and archives there or on this machine."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.installs import contents
from tests.support.registry import RawServer
from tests.support.world import World

from iii_directory import limits
from iii_directory.errors import DirectoryError
from iii_directory.install.bundle import Wanted
from iii_directory.install.requests import DirectFile, LocalFolder, any_download, typed_source

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

PDF = b"---\nname: pdf\ndescription: Reads PDF. Use for PDF.\n---\n# PDF\n"
FILES = {
    "kit-1.0/skills/pdf/SKILL.md": PDF,
    "kit-1.0/skills/pdf/scripts/run.sh": b"#!/bin/sh\necho run\n",
    "kit-1.0/skills/docx/SKILL.md": b"---\nname: docx\ndescription: Writes.\n---\n# DOCX\n",
    "kit-1.0/README.md": b"# Kit\n",
}


def tarred(files: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(content), kind, "/etc/passwd"
            info.mode = 0o755 if name.endswith(".sh") else 0o644
            packed.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o100755 if name.endswith(".sh") else 0o100644) << 16
            packed.writestr(info, content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


class Host(RawServer):
    """A web server with files; a value that is text redirects to that address."""

    def __init__(self, files: dict[str, bytes | str]) -> None:
        self.files = files
        super().__init__(self._answer)

    def _answer(self, path: str, connection: socket.socket) -> None:
        found = self.files.get(path)
        head, body = b"HTTP/1.1 404 Not Found\r\n", b""
        if isinstance(found, str):
            head = f"HTTP/1.1 302 Found\r\nlocation: {found}\r\n".encode()
        elif found is not None:
            head, body = b"HTTP/1.1 200 OK\r\n", found
        connection.sendall(head + f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, "http://127.0.0.1:1")


def add(world: World, source: str, *names: str, everything: bool = False) -> Any:
    typed: Any = typed_source(source)
    return world.run(
        lambda installer: installer.add(typed, Wanted(names, everything=everything)), allow_private_repos=True
    )[1]


def reports(world: World, act: str) -> dict[str, str]:
    found = world.run(lambda installer: getattr(installer.upkeep, act)(), allow_private_repos=True)
    return {report.namespace: report.status for report in found}


@pytest.mark.parametrize(
    ("typed", "source"),
    [
        ("https://example.com/a/pdf/SKILL.md", DirectFile("https://example.com/a/pdf/SKILL.md")),
        ("https://example.com/kit.zip", DirectFile("https://example.com/kit.zip")),
        ("https://example.com/kit.tar.gz", DirectFile("https://example.com/kit.tar.gz")),
        ("http://127.0.0.1:8000/kit.tgz", DirectFile("http://127.0.0.1:8000/kit.tgz")),
        ("./kit.zip", DirectFile("./kit.zip")),
        ("~/kit.tar.gz", DirectFile("~/kit.tar.gz")),
        # The overview of a folder of this machine stands for the whole skill.
        ("./pdf/SKILL.md", LocalFolder("./pdf")),
    ],
)
def test_a_file_is_known_by_its_address(typed: str, source: object) -> None:
    assert typed_source(typed) == source


@pytest.mark.parametrize(
    "address",
    ["http://example.com/kit.zip", "https://user:secret@example.com/a/SKILL.md", "https://e.com/a b.zip"],
)
def test_an_address_that_may_not_be_fetched_is_refused_at_once(address: str) -> None:
    with pytest.raises(DirectoryError, match=r"^D331") as error:
        typed_source(address)
    assert "secret" not in str(error.value)


def test_a_skill_file_at_an_address_goes_by_its_own_name_and_is_updated_by_content(world: World) -> None:
    with Host({"/some/where/SKILL.md": PDF}) as host:
        url = f"{host.url}/some/where/SKILL.md"
        assert [done.namespace for done in add(world, url).installed] == ["pdf"]
        assert reports(world, "outdated") == {"pdf": "current"}
        host.files["/some/where/SKILL.md"] = PDF + b"more\n"
        assert reports(world, "outdated") == {"pdf": "outdated"}
        assert reports(world, "update") == {"pdf": "updated"}

    assert contents(world.skills / "pdf") == {"SKILL.md": PDF + b"more\n"}
    assert world.lock()["pdf"]["source"] == {"kind": "file", "url": url, "skill": "pdf"}


@pytest.mark.parametrize(("name", "pack"), [("kit.zip", zipped), ("kit.tar.gz", tarred)])
def test_an_archive_at_an_address_brings_its_skills_with_one_request(
    world: World, name: str, pack: Callable[..., bytes]
) -> None:
    with Host({f"/{name}": pack(FILES)}) as host:
        added = add(world, f"{host.url}/{name}", everything=True)
        assert sorted(done.namespace for done in added.installed) == ["docx", "pdf"]
        assert host.asked == [f"/{name}"]
        # The next release has another top folder and changes one of the two.
        news = {path.replace("kit-1.0", "kit-1.1"): content for path, content in FILES.items()}
        host.files[f"/{name}"] = pack(
            {**news, "kit-1.1/skills/docx/SKILL.md": b"---\nname: docx\n---\n# New\n"}
        )
        assert reports(world, "outdated") == {"docx": "outdated", "pdf": "current"}
        assert reports(world, "update") == {"docx": "updated", "pdf": "current"}
        assert host.asked == [f"/{name}"] * 3

    script = world.skills / "pdf/scripts/run.sh"
    assert script.stat().st_mode & 0o111
    assert contents(world.skills / "docx") == {"SKILL.md": b"---\nname: docx\n---\n# New\n"}


def test_an_archive_of_this_machine_is_installed_and_found_again_by_an_update(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    archive = tmp_path / "pdf.zip"
    archive.write_bytes(zipped({"SKILL.md": b"# No name\n"}))

    assert [done.namespace for done in add(world, "./pdf.zip").installed] == ["pdf"]
    monkeypatch.chdir("/")
    archive.write_bytes(zipped({"SKILL.md": b"# Newer\n"}))

    assert reports(world, "update") == {"pdf": "updated"}
    assert world.lock()["pdf"]["source"]["url"] == str(archive)


BAD: dict[str, tuple[bytes, str]] = {
    "link": (tarred({"a/SKILL.md": b""}, tarfile.SYMTYPE), "is not a regular file"),
    "device": (tarred({"a/SKILL.md": b""}, tarfile.CHRTYPE), "is not a regular file"),
    "climbing": (zipped({"a/SKILL.md": b"# a", "../b": b""}), "is not a plain relative path"),
    "absolute": (tarred({"a/SKILL.md": b"# a", "/b": b""}), "is not relative"),
    "twice": (zipped({"a/SKILL.md": b"# a", "a/skill.md": b"# b"}), "differ only in case"),
    "files": (
        zipped({f"a/{number}": b"" for number in range(limits.MAX_ARCHIVE_FILES + 1)}),
        "more than 1000",
    ),
    "unpacked": (zipped({"a/SKILL.md": b"0" * (limits.MAX_ARCHIVE_BYTES + 1)}), "larger than 25 MiB"),
    "packed": (b"PK" + bytes(limits.MAX_PACKED_BYTES), "larger than 10 MiB"),
    "broken": (b"PK\x03\x04 no zip", "cannot be unpacked"),
    "empty": (zipped({"a/README.md": b""}), r"has no folder with a SKILL\.md"),
}


@pytest.mark.parametrize("kind", BAD)
def test_an_archive_that_is_not_right_is_one_sentence_and_leaves_nothing(
    world: World, tmp_path: Path, kind: str
) -> None:
    content, said = BAD[kind]
    (tmp_path / "bad.zip").write_bytes(content)

    with pytest.raises(DirectoryError, match=said):
        add(world, str(tmp_path / "bad.zip"), everything=True)
    assert not world.skills.exists()


def test_an_archive_at_an_address_that_is_too_large_is_not_read_to_the_end(world: World) -> None:
    with (
        Host({"/kit.zip": b"PK" + bytes(limits.MAX_PACKED_BYTES)}) as host,
        pytest.raises(DirectoryError, match="answer is too large"),
    ):
        add(world, f"{host.url}/kit.zip")


def test_a_caller_installs_from_an_address_but_not_from_this_machine(world: World) -> None:
    with Host({"/kit.zip": zipped(FILES), "/moved.zip": "/kit.zip"}) as host:
        url = f"{host.url}/moved.zip"
        request = any_download({"repo": url, "skill": "pdf"}, allow_file=False)
        with pytest.raises(DirectoryError, match="on this machine or a private network"):
            world.run(lambda installer: installer.download(request))
        assert host.asked == []
        done = world.run(lambda installer: installer.download(request), allow_private_repos=True)

    assert done.namespace == "pdf"
    assert done.reply["source"] == {"kind": "file", "url": url, "skill": "pdf"}


def test_a_redirect_to_a_place_without_encryption_is_not_followed(world: World) -> None:
    with (
        Host({"/kit.zip": "http://example.com/kit.zip"}) as host,
        pytest.raises(DirectoryError, match="leads to an address that is not https"),
    ):
        add(world, f"{host.url}/kit.zip")


def test_a_public_name_is_fetched_from_the_address_that_was_checked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is looked up once, so it cannot mean a private address a moment later."""
    lookups: list[str] = []

    def look_up(host: str, *_: Any, **__: Any) -> list[Any]:
        lookups.append(host)
        return [(2, 1, 6, "", ("93.184.216.34" if len(lookups) == 1 else "127.0.0.1", 443))]

    sent: list[Any] = []

    async def get_bytes(_: Any, url: str, __: Any, *, host: Any, **___: Any) -> bytes:
        import httpx2

        sent.append(await host.route(httpx2.URL(url)))
        return PDF

    monkeypatch.setattr("iii_directory.install.direct_file.socket.getaddrinfo", look_up)
    monkeypatch.setattr("iii_directory.install.direct_file.get_bytes", get_bytes)
    request = any_download({"repo": "https://example.com/pdf/SKILL.md", "skill": "pdf"}, allow_file=False)

    world.run(lambda installer: installer.download(request))

    (call,) = sent
    assert str(call["url"]) == "https://93.184.216.34/pdf/SKILL.md"
    assert call["headers"] == {"host": "example.com"}
    assert call["extensions"] == {"sni_hostname": "example.com"}
    assert lookups == ["example.com"]
