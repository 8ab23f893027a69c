"""A worker that says what it can do: documents from a folder, a live section, and a slash-command.

iii-directory up                          # in one terminal
python examples/python_worker/worker.py   # in another; the order does not matter
iii-directory trigger directory::skills::get id=greeter
iii-directory trigger prompts::mcp-get name=greet 'arguments={"name": "Ada"}'
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from iii import InitOptions, register_worker

from iii_directory.publish import publish


async def status(_: dict[str, Any]) -> dict[str, Any]:
    """Served at iii://fn/greeter/status, made anew for every reader."""
    return {"content": "# Status of the greeter\n\nAll greetings are in stock.\n"}


async def greet(arguments: dict[str, Any]) -> str:
    """Renders the slash-command; a string is one message of the user."""
    return f"Greet {arguments.get('name', 'the world')} warmly, in one sentence."


def main() -> None:
    # The address is $III_URL, or ws://127.0.0.1:49134.
    iii = register_worker(options=InitOptions(worker_name="greeter", otel={"enabled": False}))
    iii.register_function("greeter::status", status, description="How the greeter is doing.")
    iii.register_function("greeter::greet", greet, description="Renders the greet prompt.")
    publish(
        iii,
        Path(__file__).parent / "docs",
        worker="greeter",
        prompts=[
            {
                "name": "greet",
                "description": "Compose a greeting.",
                "arguments": [{"name": "name", "description": "Who to greet", "required": True}],
                "function_id": "greeter::greet",
            }
        ],
    )
    stop = threading.Event()

    def on_signal(*_: object) -> None:
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    stop.wait()
    iii.shutdown()


if __name__ == "__main__":
    main()
