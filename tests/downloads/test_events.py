"""§7: who is told of downloads, of what, and when not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.downloads.stage import GITHUB, PROMPT, TYPES, V1, V2, event
from tests.registered.stage import until
from tests.support.git import make_repo
from tests.support.installs import put

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.downloads.stage import Depot
    from tests.registered.stage import Listener

SKILLS, PROMPTS = TYPES[:2], TYPES[2:]
ONLY_SKILLS = {"skills/SKILL.md": "# only skills\n"}
ONLY_PROMPTS = {"prompts/say.md": PROMPT}
LAST = event("last")


def last_of_all(depot: Depot) -> None:
    """A download that everybody hears of, after whatever must not be heard of."""
    depot.world.publish("last", "1.0.0", V1)
    depot.call("skills::download", worker="last")


def next_download(listener: Listener) -> dict[str, Any]:
    """The next event that is not of edits on disk, which the newest types have words for."""
    while (heard := listener.next())["op"] == "external":
        pass
    return heard


@pytest.mark.parametrize(
    ("files", "told"),
    [(V1, TYPES), (ONLY_SKILLS, SKILLS), (ONLY_PROMPTS, PROMPTS)],
    ids=["both", "skills", "prompts"],
)
def test_a_download_is_told_in_pairs_to_those_whom_it_concerns(
    depot: Depot, files: dict[str, str], told: tuple[str, ...]
) -> None:
    listeners = depot.listeners()
    depot.world.publish("db", "1.0.0", files)

    depot.call("skills::download", worker="db")
    last_of_all(depot)

    for kind, listener in listeners.items():
        assert listener.next() == (event("db") if kind in told else LAST), kind


def test_a_download_from_a_repository_says_so(depot: Depot) -> None:
    make_repo(depot.world.mirror / "anthropics" / "skills", {"skills/web/SKILL.md": b"# web\n"})
    listeners = depot.listeners()

    depot.call("skills::download", repo=GITHUB, skill="web")
    last_of_all(depot)

    for kind, listener in listeners.items():
        assert listener.next() == (event("web", "repo") if kind in SKILLS else LAST), kind


def test_the_documents_are_there_when_the_event_comes(depot: Depot) -> None:
    listener = depot.listener("skills::on-change")
    depot.world.publish("db", "1.0.0", V1)

    depot.command("skills", "add", "db")

    assert listener.next() == event("db")
    assert depot.ids() == ["db", "db/get"]


def test_what_another_process_installs_updates_and_removes_is_seen_and_told(depot: Depot) -> None:
    listeners = depot.listeners()
    depot.world.publish("db", "1.0.0", V1)

    depot.command("skills", "add", "db")
    for listener in listeners.values():
        assert listener.next() == event("db")

    depot.world.publish("db", "2.0.0", V2)
    depot.command("skills", "update")
    for listener in listeners.values():
        assert listener.next() == event("db")
    assert depot.title("db") == "db two"

    depot.command("skills", "update")
    depot.command("skills", "remove", "db")
    assert depot.ids() == []
    last_of_all(depot)
    for listener in listeners.values():
        assert next_download(listener) == LAST


def test_edits_reads_and_failures_are_not_reported_as_downloads(depot: Depot) -> None:
    listeners = depot.listeners()
    put(depot.folder, {"db/index.md": b"# by hand\n", "db/prompts/p.md": PROMPT.encode()})
    assert depot.ids() == ["db"]
    put(depot.folder, {"db/index.md": b"# by hand again\n"})
    assert depot.title("db") == "by hand again"
    depot.refusal("skills::download", worker="nobody")
    depot.world.publish("db", "1.0.0", V1)
    put(depot.folder, {"db/get.md/in-the-way": b""})
    assert depot.refusal("skills::download", worker="db").startswith("D340 ")

    last_of_all(depot)

    for listener in listeners.values():
        assert next_download(listener) == LAST


def test_what_was_not_written_because_it_is_edited_is_not_told(start: Callable[..., Depot]) -> None:
    depot = start(auto_download=True)
    depot.world.publish("db", "1.0.0", {**ONLY_SKILLS, **ONLY_PROMPTS})
    depot.another_client(name="db")
    until(lambda: depot.ids() == ["db"], "the skills of db are there")
    put(depot.folder, {"db/SKILL.md": b"# edited\n"})
    listeners = depot.listeners()
    depot.world.publish("db", "2.0.0", {"skills/SKILL.md": "# newer\n", "prompts/say.md": f"{PROMPT}More.\n"})

    depot.command("skills", "update", "db")
    last_of_all(depot)

    assert depot.title("db") == "edited"
    for kind, listener in listeners.items():
        assert next_download(listener) == (event("db") if kind in PROMPTS else LAST), kind


def test_the_same_download_again_is_told_again(depot: Depot) -> None:
    listener = depot.listener("directory::skills::on-change")
    depot.world.publish("db", "1.0.0", V1)

    for _ in range(2):
        depot.call("skills::download", worker="db")

    assert listener.take(2) == [event("db"), event("db")]


def test_a_record_that_is_broken_and_repaired_by_hand_is_not_told(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.call("skills::download", worker="db")
    listener = depot.listener(*TYPES)
    record = depot.folder / "skills.lock.json"
    whole = record.read_bytes()

    record.write_bytes(whole[:-20])
    (finding,) = depot.findings("undecodable")
    assert finding["subject"] == "skills.lock.json"
    assert depot.refusal("skills::download", worker="db").startswith("D340 ")
    record.write_bytes(whole)
    assert depot.findings("undecodable") == []
    last_of_all(depot)

    assert listener.take(4) == [LAST] * 4


def test_what_was_installed_before_the_start_is_not_told(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", V1)
    depot.call("skills::download", worker="db")
    listener = depot.listener(*TYPES)

    depot.restart()
    until(lambda: len(depot.client.bindings(listener.function_id)) == 4, "the listener is bound again")
    last_of_all(depot)

    assert listener.next() == LAST


def test_a_command_that_finds_everything_current_announces_no_download(depot: Depot) -> None:
    depot.world.publish("db", "1.0.0", ONLY_SKILLS)
    depot.command("skills", "add", "db")
    installed = depot.world.lock()["db"]["installed_at"]
    depot.call("directory::skills::list")
    listener = depot.listener("directory::skills::on-change")

    assert "current" in depot.command("skills", "add", "db").stdout
    depot.call("directory::skills::list")
    last_of_all(depot)

    assert next_download(listener) == LAST
    assert depot.world.lock()["db"]["installed_at"] == installed
