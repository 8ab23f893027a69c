"""How a caller's words lead to a document, a substitute, or an error that helps."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.worlds import of_files, of_paths, parsed, parsed_records
from tests.hostile import HOSTILE, is_harmless, label, outcome

from iii_directory.catalog.resolve import (
    Found,
    Undocumented,
    find_exact,
    find_prompt,
    normalise,
    resolve_skill,
)
from iii_directory.catalog.snapshot import EMPTY, Snapshot
from iii_directory.errors import DirectoryError


@pytest.fixture
def shop() -> Snapshot:
    return of_paths(
        "iii-sandbox/SKILL.md", "iii-sandbox/create.md", "db/index.md", "mail/send.md", "notes.md"
    )


def served(snapshot: Snapshot, asked: str, *installed: str) -> str:
    """The id on display of what is served; a star marks a substitute."""
    found = resolve_skill(snapshot, asked, frozenset(installed))
    assert isinstance(found, Found)
    return snapshot.display_id(found.skill) + ("*" if found.note else "")


def refused(snapshot: Snapshot, asked: str, *installed: str) -> DirectoryError:
    with pytest.raises(DirectoryError) as caught:
        resolve_skill(snapshot, asked, frozenset(installed))
    return caught.value


# Forgiving reads


@pytest.mark.parametrize(
    "asked",
    [
        "iii-sandbox",
        "iii-sandbox/index",
        "iii-sandbox/index.md",
        "iii-sandbox/SKILL.md",
        "iii-sandbox/SKILLS.md",
        "iii-sandbox.md",
        "iii://iii-sandbox",
        "iii://iii-sandbox/index",
        "iii://iii-sandbox/SKILL.md",
        "  iii-sandbox \n",
        "III-Sandbox",
        "III-SANDBOX/INDEX.MD",
    ],
)
def test_every_spelling_of_an_overview_reads_it(shop: Snapshot, asked: str) -> None:
    assert served(shop, asked) == "iii-sandbox"


@pytest.mark.parametrize("asked", ["iii-sandbox/create", "iii-sandbox/create.md", "iii://iii-sandbox/CREATE"])
def test_every_spelling_of_a_document_reads_it(shop: Snapshot, asked: str) -> None:
    assert served(shop, asked) == "iii-sandbox/create"


def test_a_file_called_skill_in_small_letters_is_a_document_of_its_own() -> None:
    snapshot = of_paths("db/SKILL.md", "db/skill.md")

    assert served(snapshot, "db/skill.md") == "db/skill"
    assert served(snapshot, "db/SKILL.md") == "db"


def test_documents_behind_the_index_can_be_read() -> None:
    snapshot = of_paths("skills.md", "directory/skills.md")

    assert served(snapshot, "skills") == "skills"
    assert served(snapshot, "iii://directory/skills") == "directory/skills"


def test_a_registered_skill_is_found_like_a_file() -> None:
    snapshot = EMPTY.changed(registered=parsed_records({"resend/email": "# Email"}))

    assert served(snapshot, "resend/email") == "resend/email"


# Substitutes


@pytest.mark.parametrize(
    "asked", ["sandbox", "Sandbox", "sandbox/index", "sandbox/SKILL.md", "iii://sandbox", "sand"]
)
def test_a_part_of_a_worker_name_serves_its_overview_and_says_so(shop: Snapshot, asked: str) -> None:
    found = resolve_skill(shop, asked)

    assert isinstance(found, Found)
    assert shop.display_id(found.skill) == "iii-sandbox"
    assert found.note is not None
    assert re.fullmatch(r"> .*`iii-sandbox`.*", found.note)


def test_the_shortest_worker_wins_if_it_is_the_only_one_that_short() -> None:
    snapshot = of_paths("mail/index.md", "mailer/index.md", "email/index.md", "emails/index.md")

    assert served(snapshot, "ema") == "email*"
    assert served(snapshot, "mai") == "mail*"
    assert refused(of_paths("mail-a/index.md", "mail-b/index.md"), "mail").code == "D110"


def test_the_exact_name_of_a_worker_wins_over_a_shorter_part() -> None:
    snapshot = of_paths("db/SKILL.md", "db-x/SKILL.md")

    assert served(snapshot, "db-x/missing") == "db-x*"


def test_a_path_below_a_worker_is_answered_by_its_overview_only_if_that_is_all_it_has(shop: Snapshot) -> None:
    assert served(shop, "db/anything/at/all") == "db*"
    assert refused(shop, "iii-sandbox/missing").code == "D110"
    assert refused(shop, "sandbox/missing").code == "D110"


def test_a_namespace_without_an_overview_names_what_it_has(shop: Snapshot) -> None:
    error = refused(shop, "mail")

    assert error.code == "D110"
    assert error.did_you_mean == ("mail/send",)
    assert refused(of_paths("mail/zz.md"), "mail/x").did_you_mean == ("mail/zz",)


def test_an_installed_worker_without_documents_gets_an_overview(shop: Snapshot) -> None:
    assert resolve_skill(shop, "iii-http", {"iii-http"}) == Undocumented("iii-http")
    assert resolve_skill(shop, "iii://iii-http/SKILL.md", {"iii-http"}) == Undocumented("iii-http")


def test_an_installed_worker_is_found_by_a_part_of_its_name_in_any_case(shop: Snapshot) -> None:
    for asked in ("http", "http/anything"):
        found = resolve_skill(shop, asked, {"My-HTTP"})
        assert isinstance(found, Undocumented)
        assert found.worker == "My-HTTP"
        assert found.note is not None
        assert "`My-HTTP`" in found.note


def test_an_installed_worker_with_documents_but_no_overview_is_not_made_up(shop: Snapshot) -> None:
    assert refused(shop, "mail", "mail").code == "D110"


# Errors


def test_a_miss_says_not_found_and_what_to_do(shop: Snapshot) -> None:
    sentence = str(refused(shop, "zzzz"))

    assert sentence.startswith("D110 not_found: skill 'zzzz' not found.")
    assert "Did you mean" not in sentence
    assert "Next: call directory::skills::list" in sentence


def test_a_slip_of_the_fingers_is_understood(shop: Snapshot) -> None:
    assert refused(shop, "iii-sanbox").did_you_mean == ("iii-sandbox",)
    assert "iii-sandbox/create" in refused(shop, "iii-sandbox/craete").did_you_mean
    assert "iii-http" in refused(shop, "iii-htp", "iii-http").did_you_mean


@pytest.mark.parametrize("asked", ["http://x/a", "file:///etc/passwd", "III://db", "x://db"])
def test_another_scheme_is_refused(shop: Snapshot, asked: str) -> None:
    error = refused(shop, asked)

    assert error.code == "D111"
    assert "iii://" in str(error)


@pytest.mark.parametrize(
    ("asked", "fragment"),
    [
        ("", "id must be non-empty"),
        ("iii://", "id must be non-empty"),
        (".md", "id must be non-empty"),
        ("a b", "lowercase"),
        ("/db", "empty segment"),
        ("fn/a", "reserved"),
        ("../db", "lowercase"),
        ("a" * 65, "too long"),
    ],
)
def test_an_id_that_breaks_the_grammar_is_refused(shop: Snapshot, asked: str, fragment: str) -> None:
    error = refused(shop, asked)

    assert error.code == "D111"
    assert fragment in str(error)


def test_a_function_id_is_told_from_a_skill_id_and_leads_to_its_document() -> None:
    snapshot = of_files(db__query="---\nfunction_id: db::runQuery\n---\nx")

    assert refused(snapshot, "db::runQuery").did_you_mean == ("db/query",)
    assert refused(snapshot, "iii://db::runQuery").code == "D112"
    assert refused(snapshot, "x::y").did_you_mean == ()


# Exact addresses


def test_an_address_finds_an_id_or_the_overview_below_it(shop: Snapshot) -> None:
    assert find_exact(shop, "iii-sandbox").id == "iii-sandbox/index"
    assert find_exact(shop, "iii-sandbox/create").id == "iii-sandbox/create"


@pytest.mark.parametrize("skill_id", ["sandbox", "db/other", "iii-sanbox"])
def test_an_address_never_finds_a_close_match(shop: Snapshot, skill_id: str) -> None:
    with pytest.raises(DirectoryError, match=rf"^D110 not_found: skill 'iii://{skill_id}' not found"):
        find_exact(shop, skill_id)


# Prompts


def test_a_prompt_is_found_by_its_exact_name_or_close_ones_are_named() -> None:
    text = b"---\ndescription: x\n---\nx"
    snapshot = EMPTY.changed(parsed({"a/prompts/send-email.md": text, "a/prompts/triage.md": text}))

    assert find_prompt(snapshot, "triage").name == "triage"
    with pytest.raises(DirectoryError, match=r"^D210 not_found: prompt 'send-emial' not found") as caught:
        find_prompt(snapshot, "send-emial")
    assert caught.value.did_you_mean == ("send-email",)
    with pytest.raises(DirectoryError, match=r"^D210") as caught:
        find_prompt(snapshot, "unrelated")
    assert caught.value.did_you_mean == ()
    with pytest.raises(DirectoryError, match=r"^D211"):
        find_prompt(snapshot, "No Such")


# Anything at all


@pytest.mark.parametrize("text", HOSTILE, ids=label)
def test_a_hostile_id_is_refused_in_one_harmless_line_or_means_a_document(shop: Snapshot, text: str) -> None:
    for asked in (text, f"iii://{text}", f"{text}.md", f"db/{text}", f"iii-sandbox/{text}"):
        found = outcome(lambda asked=asked: resolve_skill(shop, asked))
        if isinstance(found, DirectoryError):
            assert found.code in {"D110", "D111", "D112", "D119"}
            assert is_harmless(str(found))
        else:
            assert isinstance(found, Found)
            assert found.skill in shop.skills.items
            assert is_harmless(found.note or "")


@given(st.text(max_size=30))
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = outcome(lambda: normalise(text))

    if isinstance(once, str) and not once.endswith((".md", "SKILL", "SKILLS")) and "://" not in once:
        assert normalise(once) in (once, once.strip())


SHOP = of_paths("iii-sandbox/SKILL.md", "iii-sandbox/create.md", "db/index.md", "mail/send.md", "notes.md")


@given(st.text(st.sampled_from("abdnosx-/.:iIM "), max_size=14))
def test_any_text_is_a_document_or_a_known_error(text: str) -> None:
    found = outcome(lambda: resolve_skill(SHOP, text, {"iii-http"}))

    assert not isinstance(found, DirectoryError) or found.code in {"D110", "D111", "D112"}
