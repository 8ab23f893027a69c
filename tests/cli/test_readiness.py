"""``up`` over a worker that does not answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from iii_directory.cli import up
from iii_directory.cli.tokens import TokenRule
from iii_directory.config import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine import EngineThread


def test_a_worker_that_does_not_answer_is_not_announced_as_ready(
    tmp_path: Path, engine: EngineThread, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(up, "READY_SECONDS", 0)
    options = up.UpOptions(
        settings=Settings(skills_folder=tmp_path),
        config=tmp_path / "config.yaml",
        url=engine.url,
        host=None,
        data=None,
        http_host="127.0.0.1",
        http_port=0,
        rule=TokenRule(None),
        allow_changes=False,
        at_start={},
    )

    with pytest.raises(SystemExit) as ended:
        asyncio.run(up._start(options))

    said = capsys.readouterr()
    assert ended.value.code == 1
    assert said.out == ""
    assert said.err.strip().endswith(
        f"the worker does not answer on the engine at {engine.url}; it was given 0 seconds"
    )
