"""Find out which user owns the other end of a connection, and keep secrets in files of one user.

TCP on loopback has neither a password nor a file mode: every user of the machine can connect. So the kernel
is asked, by ``sock_diag`` on a netlink socket, for one connection by its two addresses. This takes about 0.1
ms; reading ``/proc/net/tcp`` takes some 30 ms with a thousand open sockets.

The kernel names no user for a socket that its process has closed or has not accepted yet. Its owner counts as
unknown, never as root, so a client that sends a request and leaves at once is not admitted by that.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
import struct
from contextlib import suppress
from functools import cache
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from iii_directory.limits import MAX_TOKEN_FILE_BYTES, MIN_TOKEN_CHARS
from iii_directory.wire.access import ROOT

if TYPE_CHECKING:
    from pathlib import Path


_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_ALL_STATES: Final = 0xFFFFFFFF
_NO_COOKIE: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBBI")
_PORTS: Final = struct.Struct(">HH")
_INTERFACE_AND_COOKIE: Final = struct.Struct("=III")
# After the header come four bytes, the two addresses, three counters, then the user and the inode.
_USER_AND_INODE: Final = struct.Struct("=II")
_USER_AT: Final = _HEADER.size + 4 + 48 + 12

Address = tuple[str, int]


def user_of(end: Address, other_end: Address) -> int | None:
    """Return the user id of the process at one end of a local connection, or None if it is unknown."""
    try:
        family = socket.AF_INET6 if ":" in end[0] else socket.AF_INET
        question = (
            _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES)
            + _PORTS.pack(end[1], other_end[1])
            + socket.inet_pton(family, end[0]).ljust(16, b"\0")
            + socket.inet_pton(family, other_end[0]).ljust(16, b"\0")
            + _INTERFACE_AND_COOKIE.pack(0, _NO_COOKIE, _NO_COOKIE)
        )
        header = _HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        with socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(1.0)
            kernel.send(header + question)
            answer = kernel.recv(4096)
        if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
            return None
        user, inode = _USER_AND_INODE.unpack_from(answer, _USER_AT)
    except (OSError, ValueError, AttributeError, struct.error):
        return None
    return user if inode else None


def user_listening(address: Address) -> int | None:
    """Return the user id of the process that listens at a local address, or None if it is unknown."""
    return user_of(address, ("::" if ":" in address[0] else "0.0.0.0", 0))  # noqa: S104 (any other end)


def is_strangers(url: str) -> bool:
    """Return whether another user, who is not root, listens where a connection to ``url`` may go.

    A secret sent there would be learned by a process that took the place of an engine. Every address that the
    host resolves to counts, however it is spelt. Resolving a name may take a while: not on an event loop.
    """
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "wss" else 80)
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    addresses = {_plain(str(address[0])) for *_, address in found}
    users = {user_listening((address, port)) for address in addresses if _is_here(address)}
    return bool(users - {None, os.getuid(), ROOT})


def _plain(address: str) -> str:
    """Drop the interface of an IPv6 address; an IPv4 address written as IPv6 is the IPv4 address."""
    if ":" not in address:
        return address
    found = IPv6Address(address.partition("%")[0])
    return str(found.ipv4_mapped or found)


def _is_here(address: str) -> bool:
    """Return whether an address belongs to this machine: only such addresses can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


@cache
def can_tell() -> bool:
    """Return whether this system reports the owner of a connection, tried with one of our own."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()) as ours,
        ):
            return user_of(ours.getsockname(), server.getsockname()) == os.getuid()
    except (OSError, AttributeError):
        return False


_RANDOM_BYTES: Final = 32


class ExposedError(Exception):
    """A file of a secret that other users may have read or written."""


def new_secret() -> str:
    """Make a secret of 32 random bytes."""
    return secrets.token_urlsafe(_RANDOM_BYTES)


def kept_secret(folder: Path, name: str) -> str:
    """Read the secret in a file of a folder; `ExposedError` if the file is not private, else an `OSError`."""
    path = folder / name
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        private = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
        secret = os.read(handle, MAX_TOKEN_FILE_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(handle)
    if not private or len(secret) < MIN_TOKEN_CHARS:
        raise ExposedError(f"{path} is not a {name} that you alone can read")
    return secret


def made_secret(folder: Path, name: str) -> str:
    """Return the secret in a file of a folder, which is made if it is missing."""
    with suppress(FileNotFoundError):
        return kept_secret(folder, name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The file is whole before it has its name. Two processes that make one at the same time use the first.
    draft = folder / f".{name}-{os.getpid()}"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, new_secret().encode())
        with suppress(FileExistsError):
            os.link(draft, folder / name)
    finally:
        os.close(handle)
        draft.unlink()
    return kept_secret(folder, name)
