"""Skills that callers write: what is accepted is read back as it was sent, and nothing is lost."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.requirements import requirement
from tests.registered.stage import Listener, SdkClient
from tests.support.engine import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.reader import Reader

PAGE = "---\ntitle: Backups\ndescription: When to run them.\n---\n# Backups\r\n\nAt night. \u2713\n"


@pytest.fixture
def writer(start: Callable[..., Reader]) -> Reader:
    return start(allow_writing=True)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def fields(function: str, skill_id: str, content: str) -> dict[str, str]:
    """What a call of the function takes: a deletion has no content."""
    return {"id": skill_id} | ({} if function == "delete" else {"content": content})


def raw(reader: Reader, skill_id: str) -> str:
    found = reader.call("directory::skills::get", id=skill_id, raw=True)
    assert found["sha256"] == sha256(found["raw"])
    return found["raw"]


def lock_of(reader: Reader) -> dict[str, Any]:
    file = reader.skills.root / "skills.lock.json"
    return json.loads(file.read_text())["namespaces"] if file.exists() else {}


@requirement("writing.off")
@pytest.mark.parametrize("function", ["create", "update", "delete"])
def test_writing_is_off_by_default_and_the_reply_names_the_setting(directory: Reader, function: str) -> None:
    directory.skills.write("notes/backups.md", PAGE)

    said = directory.refusal(
        f"directory::skills::{function}", **fields(function, "notes/backups", "# Other\n")
    )

    assert said.startswith("D116 read_only: writing skills is switched off here.")
    assert "allow_writing: true" in said
    assert raw(directory, "notes/backups") == PAGE


@requirement("writing.create", "writing.record")
@pytest.mark.parametrize(
    ("skill_id", "path"),
    [
        ("notes/backups", "notes/backups.md"),
        ("notes", "notes/SKILL.md"),
        ("notes/index", "notes/SKILL.md"),
        ("notes/deep/down", "notes/deep/down.md"),
        ("notes/deep/index", "notes/deep/SKILL.md"),
    ],
)
def test_a_created_skill_is_listed_and_read_back_byte_for_byte(
    writer: Reader, skill_id: str, path: str
) -> None:
    shown = skill_id.removesuffix("/index")

    reply = writer.call("directory::skills::create", id=skill_id, content=PAGE)

    row = writer.rows()[shown]
    # A page without an overview above it belongs to no skill, and the caller is told.
    assert ("note" in reply) is not path.endswith("SKILL.md")
    assert {key: value for key, value in reply.items() if key != "note"} == {
        "id": shown,
        "uri": f"iii://{shown}",
        "bytes": len(PAGE.encode()),
        "sha256": sha256(PAGE),
        "modified_at": row["modified_at"],
    }
    assert row["title"] == "Backups"
    assert raw(writer, shown) == PAGE
    assert (writer.skills.root / path).read_bytes() == PAGE.encode()
    entry = lock_of(writer)["notes"]
    assert (entry["by"], entry["source"]) == ("create", {"kind": "written"})
    assert entry["files"] == {path.removeprefix("notes/"): f"sha256:{sha256(PAGE)}"}
    assert writer.findings() == []


@requirement("writing.taken")
def test_create_replaces_nothing_that_has_the_id_or_the_place(writer: Reader) -> None:
    writer.skills.write("notes/backups.md", PAGE)
    writer.skills.write("mail/index.md", PAGE)
    writer.skills.write("plain.md", PAGE)
    writer.skills.write("broken/page.md", "")
    (writer.skills.root / "broken/page.md").write_bytes(b"\xff\xfe")
    writer.skills.write("folder/page.md/inner.txt", "x")
    writer.call("skills::register", id="theirs/page", skill="# Theirs\n")

    for taken in (
        "notes/backups",
        "mail",
        "mail/index",
        "plain",
        "broken/page",
        "folder/page",
        "theirs/page",
    ):
        said = writer.refusal("directory::skills::create", id=taken, content="# Mine\n")
        assert said.startswith("D114 conflict: "), taken
        assert "directory::skills::update" in said
    assert raw(writer, "notes/backups") == raw(writer, "mail") == raw(writer, "plain") == PAGE
    assert (writer.skills.root / "broken/page.md").read_bytes() == b"\xff\xfe"


@requirement("writing.reserved")
def test_create_begins_nothing_in_a_place_where_it_would_not_be_seen(
    start: Callable[..., Reader], tmp_path: Path
) -> None:
    root, local = tmp_path / "agents" / "skills", tmp_path / "local"
    for folder, name in ((root, "pdf"), (local, "mine")):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text("# There\n")
    writer = start(allow_writing=True, roots=(root,), local_skills_folder=local)
    reasons = {
        "notes/prompts/ask": "is a prompt",
        "prompts": "is a prompt",
        "skills": "index of all skills",
        "directory/skills": "index of all skills",
        "iii/page": "speaks for itself",
        "iii-directory/page": "speaks for itself",
        "pdf/page": "comes from agents/skills, which is only read",
        "mine/page": "comes from local_skills_folder, which is only read",
        "notes/con": "Windows reserves",
        "/".join(["deep"] * 20): "too long",
    }

    for reserved, reason in reasons.items():
        said = writer.refusal("directory::skills::create", id=reserved, content=PAGE)
        assert said.startswith("D115 invalid_input: "), reserved
        assert reason in said
    assert list(writer.skills.root.iterdir()) == []


@requirement("writing.reserved")
@pytest.mark.parametrize(
    ("wrong", "code"), [("Notes", "D111"), ("a//b", "D111"), ("fn/x", "D111"), ("a::b", "D112"), ("", "D111")]
)
def test_a_skill_with_an_invalid_id_is_not_created(writer: Reader, wrong: str, code: str) -> None:
    assert writer.refusal("directory::skills::create", id=wrong, content=PAGE).startswith(code)


@requirement("writing.readable")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is empty"),
        ("---\ntitle: x\n---\n  \n", "it is empty"),
        ("# x\n" + "x" * 256 * 1024, "too large"),
        ("---\ntitle: [\n---\n# x\n", "front matter cannot be read"),
        ("---\ntitle: x\n# never closed\n", "not closed"),
        ("---\ntitle: 5\n---\n# x\n", "'title' in its front matter is not text"),
    ],
)
def test_a_text_the_reader_would_object_to_is_not_accepted(writer: Reader, content: str, reason: str) -> None:
    writer.skills.write("notes/there.md", PAGE)

    for function, skill_id in (("create", "notes/new"), ("update", "notes/there")):
        said = writer.refusal(f"directory::skills::{function}", id=skill_id, content=content)
        assert said.startswith("D113 invalid_input: content cannot be a skill: ")
        assert reason in said
    assert writer.ids() == ["notes/there"]
    assert raw(writer, "notes/there") == PAGE


@requirement("writing.update")
def test_an_update_replaces_the_whole_text_wherever_its_file_lies(writer: Reader) -> None:
    writer.skills.write("notes/SKILLS.md", PAGE)
    writer.skills.write("notes/run.sh", "true\n")

    reply = writer.call("directory::skills::update", id="notes", content="# Shorter\n")

    assert reply["sha256"] == sha256("# Shorter\n")
    assert raw(writer, "notes") == "# Shorter\n"
    assert sorted(path.name for path in (writer.skills.root / "notes").iterdir()) == ["SKILLS.md", "run.sh"]
    written = lock_of(writer)["notes"]["files"]
    assert written == {"SKILLS.md": f"sha256:{sha256('# Shorter' + chr(10))}"}, (
        "files by hand are not recorded"
    )


@requirement("writing.update", "writing.delete")
@pytest.mark.parametrize("function", ["update", "delete"])
def test_what_is_not_there_is_neither_updated_nor_deleted(writer: Reader, function: str) -> None:
    writer.skills.write("notes/backups.md", PAGE)

    said = writer.refusal(f"directory::skills::{function}", **fields(function, "notes/backup", PAGE))

    assert said.startswith("D110 not_found: ")
    assert "Did you mean: notes/backups." in said
    assert writer.ids() == ["notes/backups"]


@requirement("writing.lock")
@pytest.mark.parametrize("function", ["update", "delete"])
def test_a_write_based_on_an_outdated_read_changes_nothing(writer: Reader, function: str) -> None:
    read = writer.call("directory::skills::create", id="notes/backups", content=PAGE)["sha256"]
    theirs = writer.call("directory::skills::update", id="notes/backups", content="# Theirs\n")["sha256"]
    mine = fields(function, "notes/backups", "# Mine\n")

    said = writer.refusal(f"directory::skills::{function}", **mine, expected_sha256=read)

    assert said.startswith("D118 conflict: ")
    assert "directory::skills::get with raw" in said
    assert raw(writer, "notes/backups") == "# Theirs\n"
    assert writer.call(f"directory::skills::{function}", **mine, expected_sha256=f"sha256:{theirs}")
    wrong = writer.refusal(f"directory::skills::{function}", **mine, expected_sha256="abc")
    assert wrong.startswith("D100 invalid_input: field 'expected_sha256' must be 64 hex digits")


@requirement("writing.delete", "writing.record")
def test_delete_takes_the_file_and_the_folders_it_leaves_empty(writer: Reader) -> None:
    for skill_id in ("notes", "notes/deep/down/page"):
        writer.call("directory::skills::create", id=skill_id, content=PAGE)

    gone = writer.call("directory::skills::delete", id="notes/deep/down/page")

    assert (gone["id"], gone["bytes"], gone["sha256"]) == (
        "notes/deep/down/page",
        len(PAGE.encode()),
        sha256(PAGE),
    )
    assert writer.ids() == ["notes"]
    assert [path.name for path in (writer.skills.root / "notes").iterdir()] == ["SKILL.md"]
    assert list(lock_of(writer)["notes"]["files"]) == ["SKILL.md"]
    writer.call("directory::skills::delete", id="notes")
    assert not (writer.skills.root / "notes").exists()
    assert lock_of(writer) == {}
    assert writer.call("directory::skills::create", id="notes", content=PAGE)["id"] == "notes"


@requirement("writing.read-only")
def test_what_is_not_the_folders_own_is_not_written(start: Callable[..., Reader], tmp_path: Path) -> None:
    root = tmp_path / "agents" / "skills"
    (root / "pdf").mkdir(parents=True)
    (root / "pdf" / "SKILL.md").write_text("# PDF\n")
    writer = start(allow_writing=True, roots=(root,))
    writer.skills.write("plain.md", PAGE)
    writer.call("skills::register", id="theirs/page", skill="# Theirs\n")
    reasons = {
        "pdf": "it comes from agents/skills, which is only read",
        "plain": "move it to plain/SKILL.md",
        "theirs/page": "it is registered by a worker",
        "iii-directory": "it comes from this package",
    }

    for skill_id, reason in reasons.items():
        for function in ("update", "delete"):
            said = writer.refusal(f"directory::skills::{function}", **fields(function, skill_id, "# Mine\n"))
            assert said.startswith("D116 read_only: "), skill_id
            assert reason in said
    assert (root / "pdf" / "SKILL.md").read_text() == "# PDF\n"


@requirement("writing.events")
def test_the_newest_type_tells_of_writes_and_the_older_one_does_not(writer: Reader) -> None:
    with SdkClient(writer.url) as client:
        older, newest = (
            Listener(client, "skills::on-change"),
            Listener(client, "directory::skills::on-change"),
        )

        writer.call("directory::skills::create", id="notes/backups", content=PAGE)
        writer.call("directory::skills::update", id="notes/backups", content="# Other\n")
        writer.call("directory::skills::delete", id="notes/backups")
        writer.call("skills::register", id="last", skill="# Last\n")

        assert older.heard_nothing_before({"op": "register", "id": "last"})
        assert newest.take(3) == [
            {"op": op, "namespace": "notes", "id": "notes/backups"} for op in ("create", "update", "delete")
        ]


@requirement("writing.fields")
@pytest.mark.parametrize("function", ["create", "update", "delete"])
def test_a_field_that_the_function_does_not_have_is_an_error_and_nothing_is_written(
    writer: Reader, function: str
) -> None:
    writer.skills.write("notes/backups.md", PAGE)
    skill_id = "notes/new" if function == "create" else "notes/backups"
    given = fields(function, skill_id, "# Other\n")

    said = writer.refusal(f"directory::skills::{function}", **given, mode="0755")

    assert said.startswith("D100 invalid_input: field 'mode' is not one of id")
    assert raw(writer, "notes/backups") == PAGE
    assert writer.ids() == ["notes/backups"]
    writer.call(f"directory::skills::{function}", **given, _caller_worker_id="forged")


@requirement("writing.quota")
def test_callers_write_so_many_skills_and_bytes_and_no_more(start: Callable[..., Reader]) -> None:
    writer = start(allow_writing=True, max_written_skills=3, max_written_bytes=1000)
    writer.skills.write("mine/one.md", PAGE * 20)
    for number in range(3):
        writer.call("directory::skills::create", id=f"n{number}/page", content="# x\n" + "x" * 296)

    more = writer.refusal("directory::skills::create", id="other", content="# x\n")
    longer = writer.refusal("directory::skills::update", id="n0/page", content="# x\n" + "x" * 500)
    mine = writer.refusal("directory::skills::update", id="mine/one", content="# Theirs\n")

    assert more.startswith("D122 quota_exceeded: callers have written 3 skills, as many as they may.")
    assert longer.startswith(
        "D122 quota_exceeded: with this the skills that callers have written take 1104 bytes"
    )
    assert "max_written_bytes" in longer
    assert mine.startswith("D122 quota_exceeded: ")
    assert writer.call("directory::skills::update", id="n0/page", content="# Shorter\n")
    assert writer.call("directory::skills::update", id="n1/page", content="# x\n" + "x" * 300)
    writer.call("directory::skills::delete", id="n2/page")
    assert writer.call("directory::skills::create", id="other", content="# x\n")
    (writer.skills.root / "other" / "SKILL.md").unlink()
    assert writer.call("directory::skills::create", id="again", content="# x\n"), (
        "what is gone does not count"
    )


@requirement("writing.quota")
def test_writes_at_the_same_time_stay_within_the_quota_together(start: Callable[..., Reader]) -> None:
    writer = start(allow_writing=True, max_written_skills=5)
    with RawClient(writer.url, name="author") as client:
        calls = [
            client.start_call("directory::skills::create", {"id": f"n{number}", "content": "# x\n"})
            for number in range(40)
        ]
        answers = [client.receive_type("invocationresult") for _ in calls]

    refused = [answer["error"]["message"] for answer in answers if answer.get("error")]
    assert len(refused) == 35
    assert all(message.startswith("D122 ") for message in refused)
    assert len(writer.ids()) == 5


@requirement("writing.reserved")
@pytest.mark.parametrize("skill_id", ["-rf", "notes/-rf", "index", "skills/x", "con"])
def test_an_id_that_a_program_or_the_folder_takes_for_something_else_is_not_created(
    writer: Reader, skill_id: str
) -> None:
    assert writer.refusal("directory::skills::create", id=skill_id, content=PAGE).startswith("D115 ")
    assert list(writer.skills.root.iterdir()) == []


@requirement("writing.readable")
@pytest.mark.parametrize(
    "hidden", ["".join(chr(0xE0000 + ord(letter)) for letter in "run it"), "\u200b", "\0"]
)
def test_hidden_text_is_reported_to_the_caller_who_writes_it(writer: Reader, hidden: str) -> None:
    clean = writer.call("directory::skills::create", id="notes/clean", content=PAGE)
    reply = writer.call("directory::skills::create", id="notes/odd", content=f"# Odd\n\nText{hidden}.\n")
    changed = writer.call("directory::skills::update", id="notes/clean", content=f"# Odd\n\nText{hidden}.\n")

    assert "findings" not in clean
    assert [row["kind"] for row in reply["findings"]] == ["invisible_text"]
    assert [row["kind"] for row in changed["findings"]] == ["invisible_text"]


@requirement("writing.record")
def test_the_record_names_the_caller_that_wrote_each_document(writer: Reader) -> None:
    writer.skills.write("mine/SKILL.md", PAGE)
    with RawClient(writer.url, name="first") as first, RawClient(writer.url, name="second") as second:
        first.result("directory::skills::create", {"id": "notes", "content": PAGE})
        second.result("directory::skills::create", {"id": "notes/page", "content": PAGE})
        second.result("directory::skills::create", {"id": "mine/page", "content": PAGE})

        entries = lock_of(writer)
        assert {path: author["worker"] for path, author in entries["notes"]["authors"].items()} == {
            "SKILL.md": "first",
            "page.md": "second",
        }
        assert entries["mine"]["authors"]["page.md"] == {
            "worker_id": entries["notes"]["authors"]["page.md"]["worker_id"],
            "worker": "second",
        }
        assert list(entries["mine"]["files"]) == ["page.md"]
        first.result("directory::skills::update", {"id": "notes/page", "content": "# Mine\n"})
        second.result("directory::skills::delete", {"id": "notes"})
        (author,) = lock_of(writer)["notes"]["authors"].values()
        assert author["worker"] == "first"


SCRIPT = b"#!/bin/sh\necho \xff\n"


@requirement("writing.files")
def test_files_of_a_skill_are_written_and_read_back_byte_for_byte(writer: Reader) -> None:
    writer.call("directory::skills::create", id="notes", content=PAGE)

    made = writer.call(
        "directory::skills::create",
        id="notes",
        path="scripts/run.sh",
        content=base64.b64encode(SCRIPT).decode(),
        encoding="base64",
        executable=True,
    )
    page = writer.call("directory::skills::create", id="notes", path="FORMS.md", content="Fill in.\n")

    assert (made["id"], made["path"], made["bytes"]) == ("notes", "scripts/run.sh", len(SCRIPT))
    assert made["sha256"] == hashlib.sha256(SCRIPT).hexdigest()
    assert made["executable"] is True
    assert page["executable"] is False
    rows = {row["path"]: row for row in writer.call("directory::skills::files", id="notes")["files"]}
    assert sorted(rows) == ["FORMS.md", "SKILL.md", "scripts/run.sh"]
    assert rows["scripts/run.sh"]["executable"] is True
    assert (writer.skills.root / "notes/scripts/run.sh").read_bytes() == SCRIPT
    assert lock_of(writer)["notes"]["executable"] == ["scripts/run.sh"]


@requirement("writing.files", "writing.lock")
def test_an_updated_file_keeps_its_mode_and_the_lock_against_lost_writes(writer: Reader) -> None:
    writer.call("directory::skills::create", id="notes", content=PAGE)
    first = writer.call(
        "directory::skills::create", id="notes", path="run.sh", content="echo one\n", executable=True
    )

    second = writer.call(
        "directory::skills::update",
        id="notes",
        path="run.sh",
        content="echo two\n",
        expected_sha256=first["sha256"],
    )
    said = writer.refusal(
        "directory::skills::update",
        id="notes",
        path="run.sh",
        content="lost",
        expected_sha256=first["sha256"],
    )

    assert second["executable"] is True
    assert said.startswith("D118")
    assert (writer.skills.root / "notes/run.sh").read_text() == "echo two\n"
    plain = writer.call(
        "directory::skills::update", id="notes", path="run.sh", content="echo two\n", executable=False
    )
    assert plain["executable"] is False
    assert lock_of(writer)["notes"].get("executable") is None


@requirement("writing.files")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"path": "../other/x.py"}, "D115"),
        ({"path": "/etc/passwd"}, "D115"),
        ({"path": "a/../../x"}, "D115"),
        ({"path": ".hidden"}, "D115"),
        ({"path": "a/.git/hooks"}, "D115"),
        ({"path": "SKILL.md"}, "D115"),
        ({"path": "x.merge"}, "D115"),
        ({"path": "prompts/ask.md"}, "D115"),
        ({"path": "con.py"}, "D115"),
        ({"path": "big.md", "content": "x" * (256 * 1024 + 1)}, "D113"),
        ({"path": "x.py", "content": "not base64!", "encoding": "base64"}, "D100"),
        ({"path": "x.py", "encoding": "hex"}, "D100"),
        ({"path": "x.py", "mode": "0755"}, "D100"),
        ({"path": "x.py", "executable": "yes"}, "D100"),
        ({"executable": True, "id": "notes/page"}, "D100"),
        ({"id": "nosuch", "path": "x.py"}, "D110"),
        ({"id": "notes/page", "path": "x.py"}, "D115"),
    ],
)
def test_a_file_that_may_not_be_written_is_one_sentence_and_leaves_nothing(
    writer: Reader, change: dict[str, Any], said: str
) -> None:
    writer.call("directory::skills::create", id="notes", content=PAGE)
    writer.call("directory::skills::create", id="notes/page", content="# Page\n")
    before = writer.skills.root / "notes"
    files = sorted(before.rglob("*"))

    sentence = writer.refusal("directory::skills::create", **({"id": "notes", "content": "x\n"} | change))

    assert sentence.startswith(said), sentence
    assert sorted(before.rglob("*")) == files
    assert sorted(path.name for path in writer.skills.root.iterdir()) == ["notes", "skills.lock.json"]


@requirement("writing.files")
def test_a_skill_has_at_most_as_many_files_as_are_served(writer: Reader) -> None:
    writer.skills.write("notes/SKILL.md", PAGE)
    for number in range(511):
        writer.skills.write(f"notes/data/{number}.txt", "x")

    said = writer.refusal("directory::skills::create", id="notes", path="one-more.txt", content="x")

    assert "512 files and 16 MiB" in said
    assert not (writer.skills.root / "notes/one-more.txt").exists()


@requirement("writing.create")
def test_a_document_that_belongs_to_no_skill_is_told_so(writer: Reader) -> None:
    lonely = writer.call("directory::skills::create", id="notes/backups", content=PAGE)
    writer.call("directory::skills::create", id="notes", content=PAGE)
    member = writer.call("directory::skills::create", id="notes/restoring", content=PAGE)

    assert lonely["note"].startswith("notes has no overview, so notes/backups is not in the list of skills")
    assert "note" not in member
