"""The table of channels."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.driver import Driver

from iii_directory.limits import CHANNEL_IDLE_SECONDS, DEFAULT_CHANNEL_BUFFER, MAX_CHANNEL_BUFFER


def test_a_channel_has_two_ends_that_share_id_and_key() -> None:
    driver = Driver()
    made = driver.connect("c").result("engine::channels::create")
    reference = {key: made["writer"][key] for key in ("channel_id", "access_key")}

    assert made == {
        "writer": {**reference, "direction": "write"},
        "reader": {**reference, "direction": "read"},
    }
    assert reference["channel_id"] != reference["access_key"]
    assert driver.timers[-1] == (("channel-idle", reference["channel_id"]), CHANNEL_IDLE_SECONDS)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, DEFAULT_CHANNEL_BUFFER),
        (1, 1),
        (0, 1),
        (-5, 1),
        (1024, 1024),
        (10**30, MAX_CHANNEL_BUFFER),
    ],
)
def test_the_buffer_is_kept_within_bounds(asked: Any, given: int) -> None:
    driver = Driver()
    made = driver.connect("c").result("engine::channels::create", {"buffer_size": asked})
    channel = driver.router.channels.find(made["reader"]["channel_id"], made["reader"]["access_key"])

    assert channel is not None
    assert channel.buffer_size == given


@pytest.mark.parametrize("size", ["1", 1.5, True, []])
def test_the_buffer_is_an_integer(size: Any) -> None:
    error = Driver().connect("c").error("engine::channels::create", {"buffer_size": size})

    assert error["code"] == "deserialization_error"


def test_a_channel_is_found_by_id_and_key_only() -> None:
    driver = Driver()
    made = driver.connect("c").result("engine::channels::create")["reader"]
    find = driver.router.channels.find

    assert find(made["channel_id"], made["access_key"])
    assert find(made["channel_id"], made["access_key"].upper() + "x") is None
    assert find(made["channel_id"], "\udcff") is None
    assert find("other", made["access_key"]) is None


@pytest.mark.parametrize(
    ("taken", "stays"), [(set(), False), ({"read"}, False), ({"write"}, False), ({"read", "write"}, True)]
)
def test_a_channel_one_side_never_came_to_is_let_go(taken: Any, stays: bool) -> None:
    driver = Driver()
    made = driver.connect("c").result("engine::channels::create")["reader"]
    channel = driver.router.channels.find(made["channel_id"], made["access_key"])
    assert channel is not None
    channel.taken |= taken
    driver.run_timer("channel-idle")

    assert bool(driver.router.channels.find(made["channel_id"], made["access_key"])) is stays
    assert driver.ended_channels == ([] if stays else [made["channel_id"]])


def test_a_channel_that_ended_is_not_swept_again() -> None:
    driver = Driver()
    made = driver.connect("c").result("engine::channels::create")["reader"]
    driver.router.channels.forget(made["channel_id"])
    driver.run_timer("channel-idle")

    assert driver.router.channels.find(made["channel_id"], made["access_key"]) is None
