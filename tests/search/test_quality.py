"""How often the right thing is found: the public cases, this repository's own, and five languages."""

from __future__ import annotations

import pytest
from tests.search.corpora import (
    ask,
    cases,
    covered_multi,
    hits_at_five,
    ids,
    index_of,
    judged,
    judged_public,
    lines,
    own,
    public,
    public_documents,
    public_negatives,
    read_yaml,
)


def test_the_public_cases_are_answered() -> None:
    quality = judged_public()

    assert quality.recall >= 0.95
    assert quality.reciprocal_rank >= 0.89
    assert quality.unfit <= 6


def test_public_requests_that_nothing_answers_are_said_to_fit_nothing() -> None:
    said_to_fit = [request for request in public_negatives() if ask(public(), request).fits]

    assert judged_public().false + len(said_to_fit) <= 3


def test_each_of_several_public_requests_has_an_answer() -> None:
    assert covered_multi() == 10


@pytest.mark.parametrize("row", lines("catalog.jsonl")[::7], ids=lambda row: row["function_id"])
def test_an_id_typed_whole_comes_first(row: dict[str, str]) -> None:
    typed = row["function_id"]
    known = public().find(typed) is not None

    finding = ask(public(), typed)

    assert finding.fits == known
    assert not known or ids(finding)[0] == typed


def test_hostile_descriptions_of_the_public_cases_change_nothing() -> None:
    hostile = [case for case in lines("jev_cases.jsonl") if "description_overrides" in case]

    for case in hostile:
        attacked = index_of((one, "") for one in public_documents(case["description_overrides"]))
        for request in case["capabilities"]:
            assert ids(ask(attacked, request))[:5] == ids(ask(public(), request))[:5]
            assert ask(attacked, request).fits == ask(public(), request).fits


@pytest.mark.parametrize(("corpus", "kind"), [("skills", "skill"), ("functions", "function")])
def test_our_own_cases_are_answered(corpus: str, kind: str) -> None:
    asked = cases(read_yaml("cases.yaml")[corpus])

    quality = judged(own(corpus), asked, "skill" if kind == "skill" else "function")

    assert quality.recall >= 0.93
    assert quality.reciprocal_rank >= 0.9
    assert quality.false == 0


@pytest.mark.parametrize("language", ["german", "spanish", "chinese", "japanese", "arabic"])
def test_documents_are_found_in_their_own_language(language: str) -> None:
    assert hits_at_five(language) >= 0.8
