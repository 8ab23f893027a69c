"""The port that MCP is served at over HTTP, taken before anything slow is imported or started for it."""

from __future__ import annotations

import socket
from typing import Final

from iii_directory.access.policy import Access, is_loopback

PATH: Final = "/mcp"
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 3117
_BACKLOG: Final = 512


def endpoint_url(host: str, port: int) -> str:
    """Where clients ask."""
    named = f"[{host}]" if ":" in host else host
    return f"http://{named}:{port}{PATH}"


class Listener:
    """A port of ours, and who may ask there. Beyond loopback a token is needed, and then by everybody."""

    def __init__(self, host: str, port: int, token: str | None) -> None:
        """Take the port, so that one in use is known before anything is started for it; 0 takes a free one.

        Raises:
            ValueError: the address is not loopback and there is no token.
            OSError: the address cannot be had.
        """
        if not is_loopback(host) and not token:
            raise ValueError(f"listening on {host} needs a token: others could reach it")
        self.socket = _listening_socket(host, port)
        self.port: int = self.socket.getsockname()[1]
        self.access = Access(host, self.port, token or None)

    @property
    def url(self) -> str:
        return endpoint_url(self.access.host, self.port)


def _listening_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named: asyncio sends small packets at once only on sockets that say they are TCP, and
    # without that every answer waits forty milliseconds for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
