"""Which workers are installed: who is asked, and what the answers mean."""

from __future__ import annotations

from typing import Any

import pytest

from iii_directory.worker.installed_workers import (
    COMPOSE,
    LIST,
    InstalledAnswer,
    InstalledQuery,
    composed,
    every_spelling,
    names_in,
    queries,
)


def test_compose_is_asked_where_it_was_started_then_here_then_the_older_list() -> None:
    here = queries("team", {})
    there = queries("team", {"III_COMPOSE_NAMESPACE": "daemon", "III_COMPOSE_FILE": "/w/compose.yaml"})

    assert here == (InstalledQuery(COMPOSE, "team", {}), InstalledQuery(LIST, "default", {}))
    file = {"file": "/w/compose.yaml"}
    assert there == (
        InstalledQuery(COMPOSE, "daemon", file),
        InstalledQuery(COMPOSE, "team", file),
        InstalledQuery(LIST, "default", {}),
    )
    assert queries("team", {"III_COMPOSE_NAMESPACE": "team"}) == here


def test_a_daemon_that_does_not_say_where_it_answers_is_asked_where_it_is_connected() -> None:
    found = queries("team", {}, "iii-directory", ["proud-willow", "team"])

    assert found == (
        InstalledQuery(COMPOSE, "team", {}),
        InstalledQuery(COMPOSE, "proud-willow", {}, "iii-directory"),
        InstalledQuery(LIST, "default", {}),
    )
    told = {"III_COMPOSE_NAMESPACE": "daemon"}
    assert queries("team", told, "iii-directory", ["proud-willow"]) == queries("team", told)


@pytest.mark.parametrize(
    ("worker", "package"),
    [
        ("package://registry.example/mailer", "mailer"),
        ("mailer@1.2.3", "mailer"),
        ("mailer", "mailer"),
        ("package://${HOST}/mailer@${VERSION}", "mailer"),
        ("path://./workers/x", "box"),
        ("path://${HERE}/x", "box"),
    ],
)
def test_a_container_is_its_package_or_for_a_path_itself(worker: object, package: str) -> None:
    status = {"containers": [{"container": "box", "state": "ready"}]}

    assert composed(status, {"box": {"worker": worker}}) == InstalledAnswer(frozenset({package}))
    assert composed({"containers": [{"container": "box", "worker": worker}]}, {}) == InstalledAnswer(
        frozenset({package})
    )


@pytest.mark.parametrize(
    "worker", [None, 7, "", "package://host/", "package://host/${NAME}", "package://${NAME:-host/mailer}"]
)
def test_a_container_without_a_known_package_is_unidentified(worker: object) -> None:
    status = {"containers": [{"container": "box", "state": "ready"}]}

    for declared in ({"box": {"worker": worker}}, {"box": 7}, {}):
        assert composed(status, declared) == InstalledAnswer(frozenset(), frozenset({"box"}))


@pytest.mark.parametrize("answer", [None, [], {}, {"containers": 1, "workers": "x"}, "no"])
def test_an_answer_of_another_shape_says_nothing(answer: Any) -> None:
    assert names_in(answer, "workers", "name") is None
    assert composed(answer, {}) is None


def test_a_row_of_another_shape_loses_only_itself() -> None:
    assert names_in({"workers": [{"name": "a"}, {"name": 1}, 7, {}]}, "workers", "name") == {"a"}
    status = {"containers": [{"container": "a", "worker": "a"}, 7, {"container": None}]}
    assert composed(status, {"a": 7}) == InstalledAnswer(frozenset({"a"}))


def test_workers_that_lost_their_prefix_are_known_by_both_names() -> None:
    assert every_spelling(frozenset({"state", "iii-cron", "iii-sandbox"})) == {
        *("state", "iii-state"),
        *("cron", "iii-cron"),
        "iii-sandbox",
    }
