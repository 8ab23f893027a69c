"""Skills as folders: every file of a skill is listed, read and addressed, and none of another place."""

from __future__ import annotations

import base64
import hashlib
import os
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.requirements import requirement
from tests.support.engine import REAL_ENGINE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.reader import Reader

SCRIPT = "#!/usr/bin/env python3\nprint('thumbnail')\n"
PICTURE = bytes(range(256)) * 4
SKILL = (
    "---\nname: pptx\ndescription: Makes slides.\nlicense: MIT\nmetadata:\n  b: 1\n  a: yes\n---\n# Slides\n"
)


@pytest.fixture
def slides(directory: Reader) -> Reader:
    """A directory with one skill of every sort of file."""
    skills = directory.skills
    skills.write("pptx/SKILL.md", SKILL)
    skills.write("pptx/scripts/thumbnail.py", SCRIPT)
    skills.path("pptx/scripts/thumbnail.py").chmod(0o755)
    skills.write("pptx/README.md", "# Read me\n")
    skills.write("pptx/ooxml.md", "# OOXML\n")
    skills.path("pptx/logo.png").write_bytes(PICTURE)
    skills.write("pptx/.secret", "x")
    skills.link("pptx/link.txt", skills.path("pptx/README.md"))
    return directory


def files(directory: Reader, skill_id: str) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in directory.call("directory::skills::files", id=skill_id)["files"]}


def file(directory: Reader, path: str, **fields: Any) -> dict[str, Any]:
    return directory.call("directory::skills::file", id="pptx", path=path, **fields)


@requirement("files.listed")
def test_every_file_of_a_skill_is_listed_with_what_it_is(slides: Reader) -> None:
    reply = slides.call("directory::skills::files", id="pptx")

    assert {key: value for key, value in reply.items() if key != "files"} == {
        "id": "pptx",
        "uri": "iii://pptx",
        "provenance": {"kind": "file", "root": "skills"},
    }
    fields = ("path", "bytes", "media_type", "executable", "document")
    assert [tuple(row[field] for field in fields) for row in reply["files"]] == [
        ("README.md", 10, "text/markdown", False, None),
        ("SKILL.md", len(SKILL), "text/markdown", False, "pptx"),
        ("logo.png", 1024, "image/png", False, None),
        ("ooxml.md", 8, "text/markdown", False, "pptx/ooxml"),
        ("scripts/thumbnail.py", len(SCRIPT), "text/x-python", True, None),
    ]
    assert files(slides, "pptx")["logo.png"]["sha256"] == hashlib.sha256(PICTURE).hexdigest()


@requirement("files.listed")
@pytest.mark.parametrize(
    "asked", ["pptx/ooxml", "pptx/scripts/thumbnail.py", "PPTX/", "skills/pptx/SKILL.md"]
)
def test_a_skill_is_found_by_any_of_its_pages_and_files(slides: Reader, asked: str) -> None:
    assert slides.call("directory::skills::files", id=asked)["id"] == "pptx"


@requirement("files.read")
def test_text_is_read_as_text_and_other_bytes_as_base64(slides: Reader) -> None:
    script, picture = file(slides, "scripts/thumbnail.py"), file(slides, "./logo.png")

    assert script == {
        "id": "pptx",
        "path": "scripts/thumbnail.py",
        "media_type": "text/x-python",
        "encoding": "utf-8",
        "content": SCRIPT,
        "bytes": len(SCRIPT),
        "sha256": hashlib.sha256(SCRIPT.encode()).hexdigest(),
        "next_offset": None,
        "provenance": {"kind": "file", "root": "skills"},
    }
    assert picture["encoding"] == "base64"
    assert base64.b64decode(picture["content"]) == PICTURE


@requirement("files.read")
@pytest.mark.parametrize("limit", [1, 4, 5, 7, 64])
def test_pages_put_together_are_the_file(slides: Reader, limit: int) -> None:
    text = "aé€😀" * 9
    slides.skills.write("pptx/wide.txt", text)
    pages: list[str] = []
    offset: int | None = 0

    while offset is not None:
        page = file(slides, "wide.txt", offset=offset, limit=limit)
        assert page["encoding"] == "utf-8"
        assert page["sha256"] == hashlib.sha256(text.encode()).hexdigest()
        pages.append(page["content"])
        offset = page["next_offset"]

    assert "".join(pages) == text
    assert len(pages) >= len(text.encode()) // max(limit, 4)


@requirement("files.read")
def test_a_large_file_is_read_in_pages_of_a_quarter_of_a_megabyte(slides: Reader) -> None:
    slides.skills.path("pptx/large.bin").write_bytes(os.urandom(300_000))

    first = file(slides, "large.bin")
    last = file(slides, "large.bin", offset=first["next_offset"], limit=10**9)

    assert (first["next_offset"], last["next_offset"]) == (262_144, None)
    whole = base64.b64decode(first["content"]) + base64.b64decode(last["content"])
    assert hashlib.sha256(whole).hexdigest() == first["sha256"] == last["sha256"]


@requirement("files.read")
@pytest.mark.parametrize("size", [1000, 17 * 1024 * 1024], ids=["hashed", "too large to be hashed"])
@pytest.mark.parametrize("offset", [2**31, 2**63 - 2, 2**63 - 1, 2**63, 2**70])
def test_an_offset_beyond_the_end_is_a_clear_error(slides: Reader, size: int, offset: int) -> None:
    with slides.skills.path("pptx/sparse.bin").open("wb") as sparse:
        sparse.truncate(size)

    for _ in range(2):
        said = slides.refusal("directory::skills::file", id="pptx", path="sparse.bin", offset=offset)
        # Numbers beyond 64 bits come as decimals from an engine elsewhere.
        expected = "a whole number" if "whole" in said else f"at most {size}, the size of the file"
        assert said.startswith(f"D100 invalid_input: field 'offset' must be {expected}")
        assert "whole" not in said or offset > 2**64


@requirement("files.read")
def test_a_page_of_no_bytes_is_refused(slides: Reader) -> None:
    said = slides.refusal("directory::skills::file", id="pptx", path="logo.png", limit=0)

    assert said.startswith("D100 invalid_input: field 'limit' must be at least 1")


@requirement("files.read")
def test_a_file_that_is_not_there_is_named_with_those_that_are_close(slides: Reader) -> None:
    missing = slides.refusal("directory::skills::file", id="pptx", path="scripts/thumbnial.py")
    beyond = slides.refusal("directory::skills::file", id="pptx", path="logo.png", offset=2000)

    assert missing.startswith("D119 not_found: file 'scripts/thumbnial.py' not found in the skill 'pptx'.")
    assert "Did you mean: scripts/thumbnail.py." in missing
    assert beyond.startswith("D100 invalid_input: field 'offset' must be at most 1024")
    for path in (".secret", "link.txt", "../pptx/.secret", "/etc/passwd", "scripts", ""):
        assert slides.refusal("directory::skills::file", id="pptx", path=path).startswith("D119 "), path


@requirement("files.by-path")
@pytest.mark.parametrize(
    "asked",
    [
        "pptx/scripts/thumbnail.py",
        "./pptx/scripts/thumbnail.py",
        "skills/pptx/scripts/thumbnail.py",
        "PPTX/Scripts/Thumbnail.PY",
        "iii://pptx/scripts/thumbnail.py",
        "skill://pptx/scripts/thumbnail.py",
    ],
)
def test_a_path_as_documents_write_it_is_read(slides: Reader, asked: str) -> None:
    reply = slides.get(asked)

    assert (reply["id"], reply["type"], reply["body"]) == ("pptx/scripts/thumbnail.py", "file", SCRIPT)
    assert (reply["title"], reply["skill"]) == ("thumbnail.py", "pptx")


@requirement("files.by-path")
@pytest.mark.parametrize(
    "asked", ["pptx/", "./pptx", "skills/pptx/SKILL.md", "skill://pptx/SKILL.md", "PPTX/skill.md"]
)
def test_a_folder_and_its_overview_mean_the_skill(slides: Reader, asked: str) -> None:
    assert slides.get(asked)["id"] == "pptx"


@requirement("files.by-path")
def test_a_document_in_capitals_is_read_by_the_path_that_an_overview_names(slides: Reader) -> None:
    assert slides.get("pptx/README.md")["body"] == slides.get("pptx/readme.md")["body"] == "# Read me\n"
    assert "pptx/README" not in slides.ids()
    assert slides.miss("pptx/lgoo.png").startswith(
        "D119 not_found: file 'pptx/lgoo.png' not found. Did you mean: "
    )
    assert "pptx/logo.png" in slides.miss("pptx/lgoo.png")


@requirement("files.no-text")
def test_a_binary_or_larger_file_says_what_to_call(slides: Reader) -> None:
    slides.skills.write("pptx/long.txt", "x" * (256 * 1024 + 1))

    for path in ("logo.png", "long.txt"):
        sentence = slides.miss(f"pptx/{path}")
        assert sentence.startswith(f"D117 not_text: file 'pptx/{path}' is binary or larger")
        assert f'call directory::skills::file {{"id": "pptx", "path": "{path}"}}' in sentence


@requirement("files.uris")
def test_skill_addresses_are_read_whole_and_verbatim(slides: Reader) -> None:
    slides.skills.write("pptx/a b.txt", "spaced")

    assert slides.read_uri("skill://pptx/SKILL.md")["text"] == SKILL
    assert (
        slides.read_uri("skill://pptx/a%20b.txt")["text"] == slides.read_uri("skill://pptx/a b.txt")["text"]
    )
    picture = slides.read_uri("skill://pptx/logo.png")
    assert picture["mimeType"] == "image/png"
    assert base64.b64decode(picture["blob"]) == PICTURE
    for door in ("skill::fetch", "skills::fetch_skill", "directory::skills::fetch-skill"):
        uri = "skill://pptx/scripts/thumbnail.py"
        assert slides.call(door, uri=uri) == f"# {uri}\n\n{SCRIPT.rstrip()}"
        assert slides.refusal(door, uri="skill://pptx/logo.png").startswith("D117 ")
    for uri in (
        "skill://pptx/.secret",
        "skill://pptx/link.txt",
        "skill://pptx/../x",
        "skill://",
        "skill://none/a",
    ):
        assert slides.refusal("skills::resources-read", uri=uri)[:4] in ("D111", "D119"), uri


@requirement("files.no-findings")
def test_files_of_a_skill_are_not_findings_and_files_outside_skills_are_one(slides: Reader) -> None:
    assert {row["subject"] for row in slides.findings()} == {"pptx/.secret", "pptx/link.txt"}
    for number in range(30):
        slides.skills.write(f"pictures/{number:02}.png", "x")

    (finding,) = slides.findings("pictures/00.png")
    assert finding["reason"].startswith("30 files below no folder with a SKILL.md")
    assert len(slides.findings()) == 3


@requirement("files.no-findings")
def test_a_file_outside_of_skills_is_not_read_by_its_path(directory: Reader) -> None:
    directory.skills.write("pictures/readme.txt", "of no skill")
    directory.skills.document("cat/page.md", "Page")

    assert directory.miss("pictures/readme.txt").startswith("D111 ")
    assert directory.refusal("skills::resources-read", uri="skill://pictures/readme.txt").startswith("D119 ")
    assert directory.get("cat/page")["skill"] is None
    directory.skills.document("cat/other.md", "Other")
    assert [*files(directory, "cat/page")] == ["cat/page.md"]


@requirement("files.registered")
def test_a_registered_skill_answers_its_documents_as_files(directory: Reader) -> None:
    directory.call("skills::register", id="mailer", skill="# Mailer\n")
    directory.call("skills::register", id="mailer/how/send", skill="---\ntitle: T\n---\n# Send\n")

    rows = files(directory, "mailer/how/send")

    assert {path: row["document"] for path, row in rows.items()} == {
        "SKILL.md": "mailer",
        "how/send.md": "mailer/how/send",
    }
    part = directory.call("directory::skills::file", id="mailer", path="how/send.md")
    assert part["content"] == "---\ntitle: T\n---\n# Send\n"
    assert part["sha256"] == rows["how/send.md"]["sha256"]
    assert directory.get("mailer/how/send")["skill"] == "mailer"
    assert directory.get("mailer/how/send")["body"] == "# Send\n"


@requirement("files.paths")
def test_paths_are_told_only_where_the_operator_wants_it(
    start: Callable[..., Reader], tmp_path: Path
) -> None:
    directory = start(show_paths=True)
    directory.skills.write("a/SKILL.md", "# A\n")
    directory.skills.write("a/b.txt", "b")

    assert directory.get("a")["path"] == str(directory.skills.path("a/SKILL.md"))
    assert directory.get("a/b.txt")["path"] == str(directory.skills.path("a/b.txt"))
    assert directory.call("directory::skills::files", id="a")["path"] == str(directory.skills.path("a"))


@requirement("files.paths")
def test_no_path_of_the_machine_is_told_by_itself(slides: Reader, tmp_path: Path) -> None:
    replies = [
        slides.get("pptx"),
        slides.get("pptx/README.md"),
        slides.call("directory::skills::files", id="pptx"),
    ]

    assert not any("path" in reply for reply in replies)
    assert str(tmp_path) not in str(replies)


@requirement("files.fresh")
def test_an_edit_of_a_file_is_seen_by_the_next_call(slides: Reader) -> None:
    path = slides.skills.path("pptx/scripts/thumbnail.py")
    before = files(slides, "pptx")["scripts/thumbnail.py"]
    for number in range(50):
        text = f"print({number})\n"
        path.write_text(text, encoding="utf-8")
        row, part = files(slides, "pptx")["scripts/thumbnail.py"], file(slides, "scripts/thumbnail.py")
        assert part["content"] == text
        assert row["sha256"] == part["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    path.chmod(0o644)
    after = files(slides, "pptx")["scripts/thumbnail.py"]
    assert (before["executable"], after["executable"]) == (True, False)
    path.unlink()
    assert "scripts/thumbnail.py" not in files(slides, "pptx")


@requirement("skills.kind")
def test_one_row_for_each_skill_says_how_much_it_has(slides: Reader) -> None:
    slides.skills.document("cat/one/SKILL.md", "One")
    slides.skills.document("cat/one/inner/SKILL.md", "Inner")
    slides.skills.document("cat/loose.md", "Loose")
    slides.skills.document("note.md", "Note")

    rows = {row["id"]: row for row in slides.call("directory::skills::list", kind="skill")["skills"]}
    rows.pop("iii-directory")

    assert {key: (row["documents"], row["files"]) for key, row in rows.items()} == {
        "cat/one": (2, 2),
        "cat/one/inner": (1, 1),
        "note": (1, 1),
        "pptx": (2, 5),
    }
    assert slides.ids(kind="document") == slides.ids()
    assert "cat/loose" in slides.ids()
    assert slides.refusal("directory::skills::list", kind="folder").startswith(
        "D100 invalid_input: field 'kind' must be 'skill' or 'document'"
    )


@requirement("skills.name")
def test_rows_have_the_name_of_the_front_matter_and_who_may_call(slides: Reader) -> None:
    slides.skills.write("a/SKILL.md", "---\nname: Not A Name\ndisable-model-invocation: true\n---\nText.\n")

    rows = slides.rows()

    assert rows["pptx"]["name"] == "pptx"
    assert "disable_model_invocation" not in rows["pptx"]
    assert "name" not in rows["a"]
    assert rows["a"]["disable_model_invocation"] is True


@requirement("get.front-matter")
def test_a_read_has_the_rest_of_the_front_matter_and_the_whole_file_on_request(slides: Reader) -> None:
    reply = slides.call("directory::skills::get", id="pptx", raw=True)

    assert reply["front_matter"] == {"name": "pptx", "license": "MIT", "metadata": {"b": 1, "a": "yes"}}
    if slides.url != REAL_ENGINE:  # which sorts the keys of whatever passes
        assert list(reply["front_matter"]["metadata"]) == ["b", "a"]
    assert (reply["raw"], reply["body"]) == (SKILL, "# Slides\n")
    assert (reply["skill"], reply["files"]) == ("pptx", 5)
    page = slides.get("pptx/ooxml")
    assert page["skill"] == "pptx"
    assert "files" not in page
    assert "raw" not in page


@requirement("skills.root")
def test_rows_say_which_folder_a_skill_lies_in(start: Callable[..., Reader], tmp_path: Path) -> None:
    for folder in ("local", "home/.agents/skills", "more"):
        skill = tmp_path / folder / folder.rpartition("/")[2] / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("# T\n", encoding="utf-8")
    directory = start(
        local_skills_folder=tmp_path / "local",
        roots=(tmp_path / "home" / ".agents" / "skills", tmp_path / "more"),
    )
    directory.skills.document("ours/SKILL.md", "Ours")
    directory.skills.document("ours/page.md", "Page")
    directory.call("skills::register", id="mailer", skill="# Mailer\n")

    roots = {key: row.get("root") for key, row in directory.rows().items()}

    assert roots == {
        "local": "local",
        "mailer": None,
        "more": f"{tmp_path.name}/more",
        "ours": "skills",
        "ours/page": "skills",
        "skills": ".agents/skills",
    }
    directory.skills.document("more/SKILL.md", "Ours instead")
    assert directory.rows(kind="skill")["more"]["root"] == "skills"


@requirement("skills.oversized")
def test_a_skill_too_large_to_be_served_whole_is_a_finding_and_its_files_are_read(slides: Reader) -> None:
    for number in range(507):
        slides.skills.write(f"pptx/many/{number}.txt", f"{number}")
    assert (len(files(slides, "pptx")), slides.findings("pptx")) == (512, [])
    assert files(slides, "pptx")["many/7.txt"]["sha256"] == hashlib.sha256(b"7").hexdigest()

    slides.skills.write("pptx/many/507.txt", "507")

    (finding,) = slides.findings("pptx")
    assert finding["kind"] == "oversized"
    assert finding["reason"].startswith("the skill has 513 files, and one that is served whole at most 512;")
    assert finding["attention"] is False
    assert len(files(slides, "pptx")) == 513
    assert file(slides, "many/507.txt")["content"] == "507"
    slides.skills.remove("pptx/many")
    with slides.skills.path("pptx/big.bin").open("wb") as big:
        big.truncate(16 * 1024 * 1024)
    assert slides.reason("pptx").startswith("the skill has 1677")
    assert file(slides, "big.bin", offset=16 * 1024 * 1024 - 1)["next_offset"] is None


@requirement("skills.check")
def test_what_the_standard_and_hosts_object_to_is_told_on_request(slides: Reader) -> None:
    slides.skills.write("bad/SKILL.md", "---\nname: other\n---\n# T\n\nSee [it](missing.md).\n")
    slides.skills.document("cat/page.md", "Of no skill")

    plain = slides.call("directory::diagnostics")
    checked = slides.call("directory::diagnostics", check=True)

    assert "check" not in plain["counts"]
    objections = [row for row in checked["findings"] if row["kind"] == "check"]
    assert [row for row in checked["findings"] if row["kind"] != "check"] == plain["findings"]
    assert not any(row["attention"] for row in objections)
    assert [row["reason"] for row in objections if row["subject"] == "bad/SKILL.md"] == [
        "its name 'other' is not that of its folder, 'bad' (forbidden)",
        "it has no description (forbidden)",
        "the link 'missing.md' leads nowhere",
    ]
    assert not any(row["subject"].startswith(("cat", "iii-directory")) for row in objections)
    assert slides.refusal("directory::diagnostics", check="yes").startswith("D100 ")


@requirement("skills.budget")
def test_a_budget_says_what_everything_costs_and_what_hosts_would_cut(slides: Reader) -> None:
    slides.skills.write("hidden/SKILL.md", "---\ndisable-model-invocation: true\n---\n# H\n\nFor people.\n")
    before = slides.call("directory::skills::budget")
    for number in range(60):
        words = "w" * (200 + number)
        slides.skills.write(f"s{number:02}/SKILL.md", f"---\ndescription: {words}\n---\n# S\n")
    slides.call("skills::register", id="mailer", skill="# Mailer\n\nSends mail.\n")

    reply = slides.call("directory::skills::budget")

    assert set(reply) == {"estimate", "index", "tools", "resources", "hosts", "skills"}
    assert reply["estimate"] == "characters / 4"
    costs = {row["id"]: row for row in reply["skills"]}
    overview = {"chars": len(SKILL), "tokens": -(-len(SKILL) // 4)}
    assert costs["pptx"]["line"]["chars"] == len("- pptx: Makes slides.\n")
    assert costs["pptx"]["overview"] == overview
    # The picture is not text.
    assert costs["pptx"]["whole"]["chars"] == len(SKILL) + len(SCRIPT) + len("# Read me\n# OOXML\n")
    assert costs["mailer"]["whole"]["chars"] == len("# Mailer\n\nSends mail.\n")
    lines = [row["line"]["chars"] for row in reply["skills"]]
    assert lines == sorted(lines, reverse=True)
    index = slides.call("directory::skills::index")["body"]
    assert reply["index"]["chars"] == len(index)
    assert reply["tools"] == before["tools"]
    assert reply["tools"]["chars"] > 5_000
    assert reply["resources"]["chars"] > before["resources"]["chars"]
    assert all(host["fits"] and host["cut"] == [] for host in before["hosts"])
    hosts = {host["name"]: host for host in reply["hosts"]}
    listed = sum(lines) - costs["hidden"]["line"]["chars"]
    assert {host["used_chars"] for host in hosts.values()} == {listed}
    assert hosts["codex-2-percent"]["limit_chars"] == 5_440
    assert not hosts["codex"]["fits"]
    ends = dict(zip(sorted(costs), accumulate(_listed(costs[key]) for key in sorted(costs)), strict=True))
    assert hosts["codex"]["cut"] == [key for key, end in ends.items() if end > 8_000]
    assert set(hosts["codex"]["cut"]) < set(hosts["codex-2-percent"]["cut"])
    assert hosts["claude-code-2-percent"]["cut"] == []


def _listed(cost: dict[str, Any]) -> int:
    """What a skill takes of a host's list, which leaves out what only people may call."""
    return 0 if cost["id"] == "hidden" else cost["line"]["chars"]
