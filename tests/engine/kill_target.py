"""An engine to be killed: starts one on a data directory for every line it reads, as cheaply as can be.

Everything is imported once; each engine is a fork. Written to stdout: the process id and the port.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from iii_directory.engine.server import EngineServer
from iii_directory.engine.sqlite_store import Database


async def serve(directory: Path) -> None:
    server = EngineServer(port=0, database=Database(directory))
    await server.start()
    sys.stdout.write(f"{os.getpid()} {server.port}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(serve(Path(sys.argv[1])))
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
