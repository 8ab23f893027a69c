"""The log and the health check."""

from __future__ import annotations

import pytest
from tests.engine.driver import VERSION, Driver

from iii_directory.engine.engine_state import Log


@pytest.mark.parametrize(
    ("name", "level"),
    [("trace", "debug"), ("debug", "debug"), ("info", "info"), ("warn", "warning"), ("error", "error")],
)
def test_a_line_goes_to_the_log_with_its_level_and_its_worker(name: str, level: str) -> None:
    driver = Driver()
    client = driver.connect("w")
    answer = client.call(f"engine::log::{name}", {"message": "hello", "data": {"x": 1}, "trace_id": "t"})

    assert "result" not in answer
    assert "error" not in answer
    assert Log(level, "w: hello") in driver.effects  # type: ignore[arg-type]


def test_a_line_names_the_service_if_it_is_given() -> None:
    driver = Driver()
    client = driver.connect()
    client.call("engine::log::info", {"message": "a", "service_name": "svc"})
    client.call("engine::log::info", {"message": "b", "service_name": None})

    assert driver.log == ["svc: a", "worker: b"]


def test_a_line_cannot_break_out_of_the_log() -> None:
    driver = Driver()
    driver.connect("w").call("engine::log::info", {"message": "a\nb\x1b[2J", "service_name": "x\ry"})

    assert driver.log == ["xy: ab[2J"]


def test_a_line_needs_a_message() -> None:
    client = Driver().connect("w")

    assert "missing field `message`" in client.error("engine::log::info", {})["message"]
    assert client.error("engine::log::info", {"message": 7})["code"] == "deserialization_error"


def test_the_health_check_counts_connections_and_calls() -> None:
    driver = Driver()
    worker = driver.connect("w")
    worker.register("w::f")
    worker.start("w::f")
    health = driver.connect("c").result("engine::health::check")

    assert health == {
        "status": "healthy",
        "components": {
            "engine": {"status": "healthy", "kind": "embedded"},
            "workers": {"status": "healthy", "connected": 2},
            "calls": {"status": "healthy", "open": 1},
        },
        "timestamp": 1_000,
        "version": VERSION,
    }
