"""Whose a connection on loopback is. The kernel knows the user of the socket at its other end.

TCP on loopback has no password and no file mode: whoever is on the machine can connect. So the kernel is
asked, by ``sock_diag`` on a netlink socket, for one connection by its two addresses. That takes about a tenth
of a millisecond; in ``/proc/net/tcp`` it takes some 30 ms beside a thousand sockets, and more beside more.

A socket that its process has closed, or has not accepted yet, belongs to nobody the kernel could name. It
counts as unknown, never as root's: whoever sends a request and leaves at once is not let in by that.
"""

from __future__ import annotations

import os
import socket
import struct
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from iii_directory.access.policy import ROOT, is_loopback

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_ALL_STATES: Final = 0xFFFFFFFF
_NO_COOKIE: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBBI")
_PORTS: Final = struct.Struct(">HH")
_INTERFACE_AND_COOKIE: Final = struct.Struct("=III")
# Behind the header: four bytes, the two addresses, three counters; then the user and the inode.
_USER_AND_INODE: Final = struct.Struct("=II")
_USER_AT: Final = _HEADER.size + 4 + 48 + 12

Address = tuple[str, int]


def user_of(end: Address, other_end: Address) -> int | None:
    """The user id of the process that holds one end of a connection of this machine, if it can be told."""
    try:
        return _ask(end, other_end)
    except (OSError, ValueError, AttributeError, struct.error):
        return None


def user_listening(address: Address) -> int | None:
    """The user id of the process that listens at an address of this machine, if it can be told."""
    return user_of(address, ("::" if ":" in address[0] else "0.0.0.0", 0))  # noqa: S104 (any other end)


def is_strangers(url: str) -> bool:
    """Whether what listens at an address of this machine belongs to another user, who is not root.

    A secret that is sent there would be learned by whoever took the place of an engine.
    """
    parts = urlsplit(url)
    if not is_loopback(parts.hostname or ""):
        return False
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
    user = user_listening((host, parts.port or (443 if parts.scheme == "wss" else 80)))
    return user is not None and user not in (os.getuid(), ROOT)


@cache
def can_tell() -> bool:
    """Whether this system says whose a connection is: asked about one of our own."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()) as ours,
        ):
            return user_of(ours.getsockname(), server.getsockname()) == os.getuid()
    except (OSError, AttributeError):
        return False


def _ask(end: Address, other_end: Address) -> int | None:
    family = socket.AF_INET6 if ":" in end[0] else socket.AF_INET
    question = (
        _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES)
        + _PORTS.pack(end[1], other_end[1])
        + socket.inet_pton(family, end[0]).ljust(16, b"\0")
        + socket.inet_pton(family, other_end[0]).ljust(16, b"\0")
        + _INTERFACE_AND_COOKIE.pack(0, _NO_COOKIE, _NO_COOKIE)
    )
    header = _HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
    ) as kernel:
        kernel.settimeout(1.0)
        kernel.send(header + question)
        answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    user, inode = _USER_AND_INODE.unpack_from(answer, _USER_AT)
    return user if inode else None
