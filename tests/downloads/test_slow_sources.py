"""Sources that hang: only the caller that asked for one waits."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.support.reader import Reader, until

from iii_directory.limits import MAX_DOWNLOADS_AT_ONCE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine import EngineThread


def test_a_host_that_hangs_holds_up_no_reader_and_takes_only_so_many_downloads(
    engine: EngineThread, tmp_path: Path
) -> None:
    # It takes every connection and never says anything; when it goes, git knows.
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    mirrors = {"https://slow.example/": f"http://127.0.0.1:{listener.getsockname()[1]}/"}
    with (
        listener,
        Reader(engine.url, tmp_path, engine, repo_mirrors=mirrors, download_timeout_ms=15_000) as reader,
        ThreadPoolExecutor(MAX_DOWNLOADS_AT_ONCE) as callers,
    ):

        def download(number: int) -> str:
            repo, skill = f"https://slow.example/a/r{number}", f"s{number}"
            return str(reader.failure("directory::skills::download_from_repo", repo=repo, skill=skill))

        hanging = [callers.submit(download, number) for number in range(MAX_DOWNLOADS_AT_ONCE)]
        until(lambda: "are under way already" in download(99), "no room is left")
        for number in range(40):
            reader.skills.write(f"new/n{number}.md", f"# n{number}")

        read = [reader.call("directory::skills::get", id=f"new/n{number}")["title"] for number in range(40)]

        assert read == [f"n{number}" for number in range(40)]
        assert not any(one.done() for one in hanging)
        reader.call("directory::diagnostics")
        assert not any(one.done() for one in hanging)
        listener.close()
