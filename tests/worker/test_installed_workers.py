"""Which workers are installed: who is asked, and what the answers mean."""

from __future__ import annotations

from typing import Any

import pytest

from iii_directory.worker.installed_workers import (
    COMPOSE,
    LIST,
    Way,
    composed_names,
    every_spelling,
    ways,
    worker_names,
)


def test_compose_is_asked_where_it_was_started_then_here_then_the_older_list() -> None:
    here = ways("team", {})
    there = ways("team", {"III_COMPOSE_NAMESPACE": "daemon", "III_COMPOSE_FILE": "/w/compose.yaml"})

    assert here == (Way(COMPOSE, "team", {}), Way(LIST, "default", {}))
    file = {"file": "/w/compose.yaml"}
    assert there == (Way(COMPOSE, "daemon", file), Way(COMPOSE, "team", file), Way(LIST, "default", {}))
    assert ways("team", {"III_COMPOSE_NAMESPACE": "team"}) == here


@pytest.mark.parametrize(
    ("worker", "package"),
    [
        ("package://registry.example/mailer", "mailer"),
        ("mailer@1.2.3", "mailer"),
        ("mailer", "mailer"),
        ("path://./workers/x", "box"),
        (None, "box"),
        (7, "box"),
        ("", "box"),
        ("package://host/", "box"),
    ],
)
def test_a_container_is_its_package_or_for_a_path_itself(worker: object, package: str) -> None:
    status = {"containers": [{"container": "box", "state": "ready"}]}

    assert composed_names(status, {"box": {"worker": worker}}) == {package}


@pytest.mark.parametrize("answer", [None, [], {}, {"containers": 1, "workers": "x"}, "no"])
def test_an_answer_of_another_shape_says_nothing(answer: Any) -> None:
    assert worker_names(answer) is None
    assert composed_names(answer, {}) is None


def test_a_row_of_another_shape_loses_only_itself() -> None:
    assert worker_names({"workers": [{"name": "a"}, {"name": 1}, 7, {}]}) == {"a"}
    assert composed_names({"containers": [{"container": "a"}, 7, {"container": None}]}, {"a": 7}) == {"a"}


def test_workers_that_lost_their_prefix_are_known_by_both_names() -> None:
    assert every_spelling(frozenset({"state", "iii-cron", "iii-sandbox"})) == {
        *("state", "iii-state"),
        *("cron", "iii-cron"),
        "iii-sandbox",
    }
