"""§2: ids, names and URIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.requirements import requirement

if TYPE_CHECKING:
    from tests.support.reader import OtherWorker, Reader

DEEP = "/".join(["a"] * 32)


@pytest.mark.parametrize(
    "skill_id", ["a", "0", "_", "-x", "a_b-c9", "a/b/c", "a" * 64, f"{DEEP}/b", "docs/fn"]
)
@requirement("ids.grammar", "ids.fn-reserved", "uris.body")
def test_a_valid_id_is_served_everywhere(directory: Reader, skill_id: str) -> None:
    directory.skills.document(f"{skill_id}.md", "Here")

    assert directory.get(skill_id)["id"] == skill_id
    assert directory.read_uri(f"iii://{skill_id}")["text"].startswith("# Here")


REFUSED = {
    "": "id must be non-empty",
    "  ": "id must be non-empty",
    "iii://": "id must be non-empty",
    "a b": "lowercase",
    "a.b": "lowercase",
    "é": "lowercase",
    "a" * 65: "too long",
    "/".join(["a" * 64] * 16): "too long",
    "fn": "reserved",
    "fn/a": "reserved",
    "a//b": "empty segment",
    "/a": "empty segment",
    "http://a": "iii://",
}


@requirement("ids.grammar", "ids.fn-reserved", "messages.fragments")
def test_a_bad_id_is_refused_with_what_is_wrong(directory: Reader) -> None:
    for skill_id, fragment in REFUSED.items():
        sentence = directory.miss(skill_id)
        assert sentence.startswith("D111 invalid_input: "), skill_id
        assert fragment in sentence, skill_id


@requirement("names.grammar", "messages.fragments")
def test_a_bad_prompt_name_is_refused_with_what_is_wrong(directory: Reader) -> None:
    refused = {"": "name must be non-empty", "a/b": "lowercase", "A": "lowercase", "a" * 65: "too long"}
    for name, fragment in refused.items():
        for function in ("directory::prompts::get", "prompts::get"):
            sentence = directory.refusal(function, name=name)
            assert sentence.startswith("D211 invalid_input: "), name
            assert fragment in sentence, name


@requirement("uris.index")
def test_both_addresses_of_the_index_lead_there(directory: Reader) -> None:
    directory.skills.document("db.md", "DB")

    index = directory.read_uri("iii://skills")["text"]

    assert index.startswith("# Skills\n")
    assert "iii://db" in index
    assert directory.read_uri("iii://directory/skills")["text"] == index


@requirement("uris.section")
def test_a_section_calls_its_function_with_an_empty_object(directory: Reader, other: OtherWorker) -> None:
    asked: list[dict[str, Any]] = []
    other.offer("resend::email::health", lambda data: asked.append(data) or "all well")

    content = directory.read_uri("iii://fn/resend/email/health")

    assert content["text"] == "all well"
    assert [{key: value for key, value in data.items() if key[0] != "_"} for data in asked] == [{}]


@requirement("uris.scheme", "messages.fragments")
def test_an_address_has_one_spelling(directory: Reader) -> None:
    directory.skills.document("a/b.md", "Here")

    for uri in ("III://a/b", "Iii://a/b", "a/b", "http://a/b", " iii://a/b"):
        assert "does not start with iii://" in directory.refusal("skills::resources-read", uri=uri)
    for uri in ("iii://a%2fb", "iii://%61/b", "iii://a/b?x=1", "iii://a/b#x", "iii://a/b/"):
        assert directory.refusal("skills::resources-read", uri=uri).startswith("D111 "), uri


@requirement("uris.unreachable-functions", "messages.fragments")
def test_functions_with_other_letters_have_no_address(directory: Reader) -> None:
    for uri in ("iii://fn/Resend/health", "iii://fn/iii.on_foo", "iii://fn/resend//health", "iii://fn/a b"):
        assert directory.refusal("skills::resources-read", uri=uri).startswith("D111 "), uri
    for uri in ("iii://fn", "iii://fn/"):
        assert "missing a function path" in directory.refusal("skills::resources-read", uri=uri)


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("iii://anything/myworker::echo", "iii://fn/myworker/echo"),
        ("iii://brain/brain::deep::summarize", "iii://fn/brain/deep/summarize"),
        ("iii://a/b/c::d", "iii://fn/c/d"),
    ],
)
@requirement("uris.legacy-link")
def test_a_link_of_the_first_generation_shows_the_new_form(directory: Reader, link: str, shown: str) -> None:
    for function, payload in (("skills::resources-read", {"uri": link}), ("skill::fetch", {"uris": [link]})):
        sentence = directory.refusal(function, **payload)
        assert "not found" in sentence
        assert shown in sentence


@pytest.mark.parametrize("reserved", ["skills", "directory/skills"])
@requirement("uris.reserved-file")
def test_a_file_behind_the_index_is_readable_and_named(directory: Reader, reserved: str) -> None:
    directory.skills.document(f"{reserved}.md", "Mine")

    assert directory.body(reserved).startswith("# Mine")
    assert directory.read_uri(f"iii://{reserved}")["text"].startswith("# Skills\n")
    assert f"iii://{reserved}" not in {
        row["uri"] for row in directory.call("skills::resources-list")["resources"][1:]
    }
    (finding,) = directory.findings(f"{reserved}.md")
    assert finding["kind"] == "unreachable"
    assert reserved in finding["reason"]


@requirement("uris.exact")
def test_an_address_finds_the_id_or_its_overview_and_nothing_close(directory: Reader) -> None:
    directory.skills.document("resend/index.md", "Overview")
    directory.skills.document("resend/email.md", "Email")

    assert directory.read_uri("iii://resend")["text"].startswith("# Overview")
    assert directory.read_uri("iii://resend/index")["text"].startswith("# Overview")
    assert directory.read_uri("iii://resend/email")["text"].startswith("# Email")
    for close in ("iii://resen", "iii://end", "iii://Resend", "iii://resend/emai", "iii://resend.md"):
        assert directory.refusal("skills::resources-read", uri=close), close
