"""``skills``, ``prompts`` and ``doctor``: the same answers from an engine and straight from the folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from tests.support.commands import environment, run
from tests.support.engine import EngineThread
from tests.support.folders import Folder
from tests.support.reader import Reader
from tests.support.terminal import is_harmless, on_a_terminal, words

from iii_directory.cli import doctor, skills_commands
from iii_directory.text import has_unsafe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import click

NOWHERE = "ws://127.0.0.1:1"
GROUPS: dict[str, click.Command] = {
    "skills": skills_commands.skills,
    "prompts": skills_commands.prompts,
    "doctor": doctor.command,
}
READS = (
    ("skills", "list"),
    ("skills", "list", "--all"),
    ("skills", "show", "db"),
    ("skills", "show", "db", "scripts/query.py"),
    ("skills", "show", "db", "QUERY.md"),
    ("skills", "files", "db/query"),
    ("skills", "budget"),
    ("skills", "budget", "--host", "codex"),
    ("skills", "index"),
    ("prompts", "list"),
    ("prompts", "show", "ask"),
    ("doctor",),
)
# What acts on a terminal, reorders or hides text; and one that only markdown would make of letters.
HOSTILE = (
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x1bP1;2q\x1b\\",
    "\x9b31m",
    "\x9d0;x\x9c",
    "\x07",
    "\x08\x08",
    "\x0b\x0c",
    "\x7f",
    "\x85",
    "\u202eabc\u202c",
    "\u2066abc\u2069",
    "\u200f",
    "\u061c",
    "z\u200bw",
    "z\u2060w",
    "\ufeffx",
    "a\u00adb",
    "x\U000e0041\U000e0042",
    "\ufff9a\ufffab\ufffb",
    "&#8238;entity",
    "&#x200b;&#x9b;&#27;[31m",
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A skills folder where the command looks for it."""
    monkeypatch.chdir(tmp_path)
    for name in ("III_URL", "III_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    folder = Folder(tmp_path / "skills")
    folder.write("db/SKILL.md", "---\ntype: index\n---\n# Database\n\nKeeps rows.\n")
    folder.write("db/query.md", "# Query\n\nReads rows.\n")
    folder.write("db/prompts/ask.md", "---\ndescription: Ask the database\n---\nAsk {{x}}.\n")
    folder.write("db/scripts/query.py", "print('rows')\n")
    folder.path("db/scripts/query.py").chmod(0o755)
    folder.write("Odd Name.md", "x")
    return folder


def invoke(*arguments: str, url: str = NOWHERE) -> Result:
    """A command within this process, its output in a pipe."""
    group, *rest = arguments
    return CliRunner().invoke(GROUPS[group], rest, env={"III_URL": url})


def code_of(read: tuple[str, ...]) -> int:
    """How a command ends in the folder of these tests, where one name is odd."""
    return 1 if read == ("doctor",) else 0


def findings_in(printed: str) -> list[str]:
    """What the doctor prints of the documents; without an engine it has a line about that too."""
    return [line for line in printed.splitlines() if not line.startswith("engine\t")]


@pytest.fixture(params=["joined", "inside"])
def directory(request: pytest.FixtureRequest, home: Folder, engine: EngineThread) -> Iterator[Reader]:
    """The directory joined to an engine, and inside one."""
    with Reader(engine.url, home.root.parent, engine if request.param == "inside" else None) as reader:
        yield reader


@pytest.mark.parametrize("read", READS, ids=" ".join)
def test_the_folder_and_the_engine_give_the_same(directory: Reader, read: tuple[str, ...]) -> None:
    from_engine = invoke(*read, url=directory.url)
    from_folder = invoke(*read)

    assert from_engine.exit_code == from_folder.exit_code == code_of(read)
    assert from_engine.stdout.splitlines() == findings_in(from_folder.stdout)
    assert from_engine.stdout or "--host" in read
    first, *notes = from_folder.stderr.splitlines()
    assert (
        first == f"iii-directory: no engine answers at {NOWHERE}; this is read from {directory.skills.root}"
    )
    assert from_engine.stderr.splitlines() == notes
    assert not notes or "budget" in read or "doctor" in read


@pytest.mark.parametrize("read", READS, ids=" ".join)
def test_json_is_the_reply_of_the_function(directory: Reader, read: tuple[str, ...]) -> None:
    from_engine = json.loads(invoke(*read, "--json", url=directory.url).stdout)
    from_folder = json.loads(invoke(*read, "--json").stdout)

    assert isinstance(from_engine, dict)
    from_engine.pop("installed_by", None)
    assert from_engine.pop("answered_by") == directory.url
    assert from_folder.pop("answered_by") == str(directory.skills.root)
    assert from_engine == from_folder


@pytest.mark.usefixtures("home")
def test_a_list_in_a_pipe_has_one_line_for_each_skill_or_for_each_document() -> None:
    assert invoke("skills", "list", "--prefix", "db").stdout == "db\tKeeps rows.\t2\t4\tfile\n"
    assert invoke("skills", "list", "--prefix", "db", "--no-description").stdout == "db\t2\t4\tfile\n"
    lines = invoke("skills", "list", "--all", "--prefix", "db").stdout.splitlines()
    assert lines == ["db\tDatabase\tindex\tKeeps rows.\tfile", "db/query\tQuery\t\tReads rows.\tfile"]


@pytest.mark.usefixtures("home")
def test_the_filters_of_the_list_are_options() -> None:
    def ids(*options: str) -> list[str]:
        listed = invoke("skills", "list", "--all", *options).stdout.splitlines()
        return [line.split("\t")[0] for line in listed if not line.startswith("iii-directory")]

    assert ids() == ["db", "db/query"]
    assert ids("--search", "READS") == ["db/query"]
    assert ids("--prefix", "db/q") == ["db/query"]
    assert ids("--type", "index") == ["db"]
    assert ids("--search", "reads", "--no-description") == []
    light = invoke("skills", "list", "--all", "--no-description", "--prefix", "db/q")
    assert light.stdout == "db/query\tQuery\t\tfile\n"
    missed = invoke("skills", "list", "--search", "reads rows")
    assert missed.stdout == ""
    assert "iii-directory: no skills; --all looks at every document; " in missed.stderr
    assert missed.stderr.endswith("search 'reads rows' looks for the words one by one\n")


@pytest.mark.usefixtures("home")
def test_files_are_listed_and_shown_as_they_are() -> None:
    assert invoke("skills", "files", "db").stdout.splitlines() == [
        "SKILL.md\t44\ttext/markdown\t\tdb\tfile",
        "prompts/ask.md\t49\ttext/markdown\t\t\tfile",
        "query.md\t21\ttext/markdown\t\tdb/query\tfile",
        "scripts/query.py\t14\ttext/x-python\texecutable\t\tfile",
    ]
    for asked in (("db", "scripts/query.py"), ("db/query", "./Scripts/QUERY.py"), ("db/scripts/query.py",)):
        assert invoke("skills", "show", *asked).stdout == "print('rows')\n"


def test_a_long_text_is_shown_whole_and_a_binary_file_says_where_it_is(home: Folder) -> None:
    text = "0123456789 äöü\n" * 40_000
    home.write("db/long.txt", text)
    home.path("db/logo bild.png").write_bytes(bytes(range(256)))
    home.write("db/huge.txt", "x" * (16 * 1024 * 1024 + 1))

    whole = invoke("skills", "show", "db", "long.txt")
    assert whole.stdout == text
    assert len(whole.stderr.splitlines()) == 1
    for asked, reason, name in (
        (("db", "logo bild.png"), "has 256 bytes and cannot be shown: it is not text; ", "'logo bild.png'"),
        (("db", "huge.txt"), "has 16777217 bytes and cannot be shown: it is too long; ", "huge.txt"),
        (("db/logo bild.png",), "D117 ", "'logo bild.png'"),
    ):
        refused = invoke("skills", "show", *asked)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert reason in refused.stderr
        assert f" skills path db {name} to see where it is" in refused.stderr.splitlines()[-1]


def test_the_place_of_a_skill_and_of_its_files_is_printed_for_scripts(home: Folder, tmp_path: Path) -> None:
    home.document("note.md", "Note")
    root = Folder(tmp_path / ".agents" / "skills")
    root.document("pdf/SKILL.md", "PDF")
    root.write("pdf/fill.sh", "echo filled\n")

    def place(*asked: str) -> str:
        found = invoke("skills", "path", *asked)
        assert (found.exit_code, found.stderr) == (0, "")
        return found.stdout.removesuffix("\n")

    assert place("db") == place("db/query") == str(home.path("db"))
    assert place("db", "Scripts/query.py") == str(home.path("db/scripts/query.py"))
    assert place("note") == place("note", "note.md") == str(home.path("note.md"))
    ran = subprocess.run(["sh", place("pdf", "fill.sh")], capture_output=True, text=True, check=True)
    assert ran.stdout == "filled\n"
    assert json.loads(invoke("skills", "path", "pdf", "--json").stdout) == {
        "id": "pdf",
        "path": str(root.path("pdf")),
    }


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("iii-directory",), "'iii-directory' has no path here: it comes with this program"),
        (("nope",), "D110 "),
        (("db", "nope"), "D119 "),
    ],
    ids=" ".join,
)
def test_what_lies_nowhere_is_said_in_one_sentence(asked: tuple[str, ...], said: str) -> None:
    refused = invoke("skills", "path", *asked)

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_an_engine_tells_the_place_of_a_skill_only_where_its_operator_wants_it(
    home: Folder, engine: EngineThread
) -> None:
    with Reader(engine.url, home.root.parent, show_paths=True):
        told = invoke("skills", "path", "db", "query.md", "--url", engine.url)
    with Reader(engine.url, home.root.parent):
        silent = invoke("skills", "path", "db", "--url", engine.url)

    assert told.stdout == f"{home.path('db/query.md')}\n"
    assert (silent.exit_code, silent.stdout) == (1, "")
    assert "'db' has no path here: it is registered, or its directory does not send paths" in silent.stderr


def test_a_budget_names_what_costs_most_and_what_a_host_would_cut(home: Folder) -> None:
    for number in range(90):
        home.write(f"s{number:02}/SKILL.md", f"---\ndescription: {'word ' * (20 + number % 2)}\n---\n# S\n")

    every, codex = invoke("skills", "budget"), invoke("skills", "budget", "--host", "codex")

    first = [line.split("\t")[0] for line in every.stdout.splitlines()]
    assert first[:3] == ["iii-directory", "s01", "s03"]
    assert first[-3:] == ["the index", "MCP tools", "MCP resources"]
    assert "codex has room for 8000 characters, the list has 10118: 2" in every.stderr
    cut = [line.split("\t")[0] for line in codex.stdout.splitlines()]
    assert cut[-1] == "s89"
    assert f"{len(cut)} skills are cut" in codex.stderr
    assert json.loads(invoke("skills", "budget", "--host", "codex", "--json").stdout)["cut"] == cut
    unknown = invoke("skills", "budget", "--host", "nobody")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "'nobody' is not a known host; the known ones are codex" in unknown.stderr


def test_the_doctor_counts_objections_in_one_line_and_json_names_them(home: Folder) -> None:
    home.path("Odd Name.md").unlink()
    home.write("pdf/SKILL.md", "---\nname: other\ndescription: Fills.\n---\n# PDF\n")

    found, answered = invoke("doctor"), json.loads(invoke("doctor", "--json").stdout)

    (line,) = findings_in(found.stdout)
    objections = [row for row in answered["findings"] if row["kind"] == "check"]
    said = f"the Agent Skills standard and hosts have {len(objections)} objections, 3 of them forbidden"
    assert line.startswith(f"check\tskills\t{said}\t")
    assert line.endswith(" skills check names each")
    assert found.exit_code == 0
    assert answered["counts"] == {"check": len(objections)}
    assert {
        "kind": "check",
        "subject": "pdf/SKILL.md",
        "reason": "its name 'other' is not that of its folder, 'pdf' (forbidden)",
        "fix": "give both the same name",
        "attention": False,
        "forbidden": True,
        "provenance": {"kind": "file", "root": "skills"},
    } in objections


def test_what_is_empty_is_said_beside_the_output(home: Folder, engine: EngineThread) -> None:
    home.remove("db")
    home.remove("Odd Name.md")

    for arguments, said in (
        (("skills", "list", "--search", "nothing has this"), "no skills"),
        (("prompts", "list"), "no prompts"),
        (("doctor",), "nothing was left out"),
    ):
        result = invoke(*arguments, url=engine.url)
        assert (result.exit_code, result.stdout) == (0, "")
        assert said in result.stderr.splitlines()[-1]


def test_a_body_in_a_pipe_is_verbatim(home: Folder) -> None:
    body = "# T\r\n\r\n" + "\r\n".join(HOSTILE) + "\ttab and no end of line"
    home.path("raw.md").write_bytes(b"---\ntitle: x\n---\n" + body.encode())

    result = invoke("skills", "show", "raw")

    assert result.stdout_bytes == body.encode()


@pytest.mark.usefixtures("home")
def test_a_failure_is_one_sentence_and_exit_code_1() -> None:
    for arguments, code in (
        (("skills", "show", "db/quary"), "D110"),
        (("skills", "show", "A B"), "D111"),
        (("skills", "show", "a::b"), "D112"),
        (("prompts", "show", "aks"), "D210"),
        (("prompts", "show", "A"), "D211"),
    ):
        result = invoke(*arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.splitlines()[-1].startswith(f"iii-directory: {code} ")
        assert len(result.stderr.splitlines()) == 2


def test_a_failure_on_the_engine_is_the_same_sentence(directory: Reader) -> None:
    on_engine = invoke("skills", "show", "db/quary", url=directory.url)
    on_folder = invoke("skills", "show", "db/quary")

    assert (on_engine.exit_code, on_engine.stdout) == (1, "")
    assert on_engine.stderr.splitlines() == on_folder.stderr.splitlines()[1:]


@pytest.mark.usefixtures("home")
def test_wrong_usage_is_exit_code_2() -> None:
    assert invoke("skills", "show").exit_code == 2
    assert invoke("skills", "nonsense").exit_code == 2
    assert invoke("skills", "list", "--nonsense").exit_code == 2
    assert invoke("doctor", url="http://127.0.0.1:1").exit_code == 2


@pytest.mark.usefixtures("home")
def test_an_engine_without_a_directory_is_named(engine: EngineThread) -> None:
    result = invoke("skills", "list", url=engine.url)

    assert result.exit_code == 0
    assert result.stderr.startswith(f"iii-directory: the engine at {engine.url} has no directory; ")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("read", READS, ids=" ".join)
def test_an_address_that_was_named_is_not_replaced_by_the_folder(read: tuple[str, ...]) -> None:
    group, *rest = read

    result = CliRunner().invoke(GROUPS[group], [*rest, "--url", NOWHERE])

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"iii-directory: no engine answers at {NOWHERE}; start one: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.usefixtures("home")
def test_an_engine_that_asks_for_a_token_is_not_passed_over() -> None:
    with EngineThread(token="a-secret-of-sixteen") as closed:
        result = invoke("skills", "list", url=closed.url)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "III_TOKEN" in result.stderr
    assert "secret" not in result.stderr


def test_the_configuration_says_where_the_folder_is(home: Folder, tmp_path: Path) -> None:
    elsewhere = Folder(tmp_path / "etc" / "docs")
    elsewhere.document("mail.md", "Mail")
    (tmp_path / "etc" / "my.yaml").write_text("skills_folder: docs\n", encoding="utf-8")

    result = invoke("skills", "list", "--config", "etc/my.yaml", "--prefix", "mail")

    assert result.stdout == "mail\tAbout Mail.\t1\t1\tfile\n"
    assert str(elsewhere.root) in result.stderr


@pytest.mark.parametrize("command", [*GROUPS, "skills list", "skills show", "prompts list"])
def test_every_help_names_the_exit_codes(command: str) -> None:
    text = " ".join(run(*command.split(), "--help").stdout.split())

    assert re.search(r"Exit codes: 0 (done|nothing needs attention); 1 .*it failed, .*; 2 wrong usage", text)


def test_listing_a_folder_imports_nothing_slow(home: Folder) -> None:
    program = (
        "import sys\n"
        "from iii_directory.cli.main import main\n"
        "try:\n"
        "    main(['skills', 'list'])\n"
        "except SystemExit:\n"
        "    slow = ('iii', 'asyncio', 'rich', 'httpx2', 'websockets', 'mcp', 'pydantic', 'yaml', 'ssl')\n"
        "    print('slow:', [name for name in slow if name in sys.modules])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(III_URL=NOWHERE),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert done.stdout.splitlines()[-1] == "slow: []"


# On a terminal


def test_a_list_on_a_terminal_is_a_table_with_one_line_for_each_row(home: Folder, tmp_path: Path) -> None:
    home.write("db/long.md", f"# {'Long title ' * 20}\n\n{'long words ' * 50}\n")

    few = words(on_a_terminal("skills", "list", cwd=tmp_path, III_URL=NOWHERE))
    screen = words(on_a_terminal("skills", "list", "--all", cwd=tmp_path, III_URL=NOWHERE))
    lines = [line for line in screen.split("\n") if line]

    assert few.split("\n")[0].split() == ["ID", "DESCRIPTION", "DOCUMENTS", "FILES", "SOURCE"]
    assert len([line for line in few.split("\n") if line]) == 1 + 2
    assert all(len(line) <= 100 for line in few.split("\n"))

    assert lines[0].split() == ["ID", "TITLE", "TYPE", "DESCRIPTION", "SOURCE"]
    assert len(lines) == 1 + 3 + 7
    assert lines[1].startswith("db ")
    assert all(len(line) <= 100 for line in lines)


def test_a_document_on_a_terminal_is_rendered(home: Folder, tmp_path: Path) -> None:
    home.write("a.md", "# Title\n\nSome **bold** words and a [link](https://example.com/x).\n")

    drawn = on_a_terminal("skills", "show", "a", cwd=tmp_path, III_URL=NOWHERE)

    assert "\x1b[1mbold" in drawn
    # The address of a link is shown, not hidden behind its words.
    assert "https://example.com/x" in words(drawn)
    assert "\x1b]8" not in drawn


def test_the_doctor_shows_every_word_on_a_terminal(home: Folder, tmp_path: Path) -> None:
    screen = words(on_a_terminal("doctor", cwd=tmp_path, III_URL=NOWHERE, columns=60, code=1))

    shown = " ".join(screen.split())
    assert "Odd Name.md" in shown
    for word in ("lowercase", "letters,", "rename"):
        assert word in shown


def test_the_doctor_counts_what_is_alike_on_a_terminal_and_names_each_elsewhere(
    home: Folder, tmp_path: Path
) -> None:
    for number in range(40):
        home.write(f"db/.assets-{number:02}", "x")

    screen = words(on_a_terminal("doctor", cwd=tmp_path, III_URL=NOWHERE, columns=400, code=1))
    shown = " ".join(screen.split())
    listed = findings_in(invoke("doctor").stdout)
    answered = json.loads(invoke("doctor", "--json").stdout)

    assert shown.index("Odd Name.md") < shown.index("40, such as db/.assets-00, db/.assets-01,")
    assert "db/.assets-09" not in shown
    assert len([line for line in listed if not line.startswith("check\t")]) == 41
    assert len([row for row in answered["findings"] if row["kind"] != "check"]) == 41
    assert len([line for line in listed if "db/.assets-" in line]) == 40


def test_the_doctor_fails_only_where_something_needs_attention(home: Folder) -> None:
    assert invoke("doctor").exit_code == invoke("doctor", "--json").exit_code == 1
    home.path("Odd Name.md").unlink()
    for path in ("db/logo.png", "README.md", "db/.hidden", "db/prompts/LICENSE.txt"):
        home.write(path, "x")

    found = invoke("doctor")

    kinds = [line.split("\t")[0] for line in findings_in(found.stdout)]
    assert (found.exit_code, kinds) == (0, ["skipped", "skipped", "check"])
    home.write("db/broken.md", "---\n[\n---\nx")
    assert invoke("doctor").exit_code == 1


def test_what_is_longer_than_the_screen_goes_through_the_pager(home: Folder, tmp_path: Path) -> None:
    pager = "sed s/^/paged:/"
    short = on_a_terminal("prompts", "list", cwd=tmp_path, III_URL=NOWHERE, lines=24, PAGER=pager)
    long = on_a_terminal("skills", "list", "--all", cwd=tmp_path, III_URL=NOWHERE, lines=5, PAGER=pager)

    assert "paged:" not in short
    assert long.startswith("paged:")


@pytest.mark.parametrize(
    "read",
    [
        ("skills", "list"),
        ("skills", "show", "evil"),
        ("skills", "show", "evil", "evil.md"),
        ("skills", "files", "evil/index"),
        ("skills", "path", "evil/index", "\u202egnp.txt"),
        ("skills", "index"),
        ("doctor",),
    ],
    ids=lambda read: "-".join(read[:2]),
)
def test_hostile_text_does_nothing_to_a_terminal(home: Folder, tmp_path: Path, read: tuple[str, ...]) -> None:
    spread_hostile_text(home)

    for options in ((), ("--json",)):
        drawn = on_a_terminal(*read, *options, cwd=tmp_path, III_URL=NOWHERE, code=code_of(read))
        assert is_harmless(drawn)
    # It is shown, not swallowed.
    assert "u202e" in drawn.lower()


@pytest.mark.parametrize(
    "read",
    [("skills", "list"), ("skills", "files", "evil/index"), ("prompts", "list"), ("doctor",)],
    ids=" ".join,
)
def test_hostile_text_is_escaped_in_lists_also_in_a_pipe(home: Folder, read: tuple[str, ...]) -> None:
    spread_hostile_text(home)

    listed = invoke(*read).stdout

    assert not has_unsafe(listed.replace("\n", "").replace("\t", ""))
    assert "\\u202e" in listed


def spread_hostile_text(folder: Folder) -> None:
    """Hostile text in every place that a document has."""
    front = '"' + "".join(f"\\U{ord(letter):08x}" for letter in " ".join(HOSTILE)) + '"'
    body = "# x\n\n" + "\n\n".join(HOSTILE) + "\n\n| a |\n|---|\n| \u202e |\n"
    folder.write("evil.md", f"---\ntitle: {front}\n---\n{body}")
    folder.write("evil/index.md", f"---\ntitle: {front}\ndescription: {front}\n---\nText.\n")
    folder.write("evil/prompts/bad.md", f"---\ndescription: {front}\n---\nText.\n")
    for name in ("\u202egnp.txt", "new\nline.txt", "a\x1b[31mb.txt"):
        folder.write(f"evil/{name}", "x")
    folder.write("\u202egnp.md", "x")
    folder.write("a\x1b[31mb.md", "x")


def test_the_output_survives_a_reader_that_leaves(home: Folder, tmp_path: Path) -> None:
    for number in range(300):
        home.document(f"many/document-{number}.md", "x" * 1000)
    command = f"{sys.executable} -m iii_directory skills list | head -n 1"

    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=environment(III_URL=NOWHERE),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.startswith("db\t")
    assert "Traceback" not in done.stderr


def test_the_installed_command_reads(home: Folder, tmp_path: Path) -> None:
    done = run("skills", "show", "DB/SKILL.md", cwd=tmp_path, III_URL=NOWHERE)

    assert (done.returncode, done.stdout) == (0, "# Database\n\nKeeps rows.\n")
