"""Which version is newer."""

from __future__ import annotations

import itertools
import random

import pytest

from iii_directory.registry.registry_messages import highest_stable, is_older, is_version, order_of

IN_ORDER = [
    "0.0.0",
    "0.0.1",
    "0.9.10",
    "1.0.0-0",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0",
    "10.0.0",
]


def test_versions_sort_as_semver_says() -> None:
    shuffled = IN_ORDER.copy()
    random.Random(1).shuffle(shuffled)

    assert sorted(shuffled, key=lambda version: order_of(version) or ()) == IN_ORDER
    for earlier, later in itertools.pairwise(IN_ORDER):
        assert is_older(earlier, later)
        assert not is_older(later, earlier)


@pytest.mark.parametrize("version", ["1.0.0+build", "1.0.0-rc.1+5", "1.2.3-x-y.0", "1.2.3-0a"])
def test_labels_and_builds_are_part_of_a_version(version: str) -> None:
    assert is_version(version)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "1",
            "1.2",
            "v1.2.3",
            "1.2.3.4",
            "01.2.3",
            "1.02.3",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3-a..b",
            "1.2.3+",
        ),
        *("latest", " 1.2.3", "1.2.3\n", "1.2.x", "-1.2.3", "1.2.3-é", "../1.2.3", "1.0.0-" + "a" * 200),
    ],
)
def test_anything_else_is_not_a_version(text: str) -> None:
    assert not is_version(text)
    assert not is_older(text, "1.0.0")
    assert highest_stable([text]) is None


def test_the_highest_stable_version_is_not_a_pre_release() -> None:
    assert highest_stable(["1.9.0", "1.10.0", "2.0.0-rc.1", "nonsense"]) == "1.10.0"
    assert highest_stable(["2.0.0-rc.1"]) is None
    assert highest_stable([]) is None
