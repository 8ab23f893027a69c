"""Decide who may connect, from the Host, Origin, token and path of a handshake. Pure.

A browser sends ``Host`` and ``Origin`` truthfully and a page cannot forge them. So a foreign Origin means a
page that is not ours, and a foreign Host means a name that was pointed at this machine (DNS rebinding).
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import parse_qs

from iii_directory.limits import MIN_TOKEN_CHARS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ROOT = 0
KEPT_TOKEN = "token"  # noqa: S105 (its name, not a token)
"""The file of a data directory that holds a generated token."""
REGISTRANTS_KEY = "registrants.key"
"""The file of a data directory with the key that seals registrations."""
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Admitted(NamedTuple):
    """An admitted handshake and its purpose."""

    purpose: Literal["worker", "otel", "channel"]
    channel_id: str = ""
    access_key: str = ""
    direction: str = ""


class Refused(NamedTuple):
    status: int
    text: str


def refused_token(host: str, token: str | None) -> str | None:
    """Return why a listener cannot start at an address with this token, or None if it can."""
    if not token:
        return None if is_loopback(host) else f"listening on {host} needs a token: others could reach it"
    if len(token) < MIN_TOKEN_CHARS:
        return f"a token has at least {MIN_TOKEN_CHARS} characters; this one has {len(token)}"
    return None


@lru_cache(maxsize=16)
def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address; False for names other than localhost."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Access(NamedTuple):
    """The rules of one listener. Beyond loopback the token decides and any Host is accepted."""

    host: str
    port: int
    token: str | None = None
    owner: int | None = None
    """The user whose processes (and root's) need no token on loopback; None if owners are unknown here."""
    asks_everybody: bool = True
    """Whether the owner must send the token too, if there is one."""

    @property
    def looks_at_users(self) -> bool:
        """Return whether the decision depends on the owner of the connection."""
        return self.owner is not None and (self.token is None or not self.asks_everybody)

    @property
    def everybody_s(self) -> str | None:
        """Return the warning for a listener that every user of this machine can use, or None."""
        if self.owner is not None or self.token is not None:
            return None
        return (
            "this system does not report who owns a connection, so every user of this machine can connect; "
            "set a token to keep others out"
        )

    def decide(
        self, path: str, headers: Mapping[str, Sequence[str]], user: int | None = None
    ) -> Admitted | Refused:
        """Admit or refuse a handshake. ``headers`` maps lower-case names to all values given."""
        wanted = purpose_of(path)
        # The key of a channel is a secret that only admitted workers receive. Older SDKs send nothing else,
        # and the real engine requires nothing else.
        keyed = isinstance(wanted, Admitted) and wanted.purpose == "channel"
        refused = self._foreign(headers) if keyed else self.refusal(headers, user)
        if refused is not None:
            return refused
        if "upgrade" not in ",".join(headers.get("connection", ())).lower():
            return Refused(400, "Connection header did not include 'upgrade'")
        return wanted

    def refusal(self, headers: Mapping[str, Sequence[str]], user: int | None = None) -> Refused | None:
        """Return why a request whose only secret is the token is refused, or None if it is admitted.

        ``user`` owns the connection, if the kernel knows; an unknown user is never the owner.
        """
        foreign = self._foreign(headers)
        if self.token is None:
            has_token = self.owner is None
        else:
            has_token = same_secret(_single(headers, "authorization") or "", f"Bearer {self.token}")
        if foreign is not None or has_token or (self.looks_at_users and user in (self.owner, ROOT)):
            return foreign
        if self.token is None:
            return Refused(401, "This belongs to another user of this machine, and no token is set.\n")
        return Refused(401, "A token is needed: Authorization: Bearer …\n")

    def _foreign(self, headers: Mapping[str, Sequence[str]]) -> Refused | None:
        host = _single(headers, "host")
        names = {*LOOPBACK_NAMES, f"[{self.host}]" if ":" in self.host else self.host}
        own = {f"{name}:{self.port}" for name in names}
        if self.port == 80:
            own |= names
        if host is None or (is_loopback(self.host) and host.lower() not in own):
            return Refused(421, "Nothing here answers to that Host.\n")
        origin = _single(headers, "origin") or ""
        ours = (f"http://{host.lower()}", f"https://{host.lower()}")
        if "origin" in headers and origin.lower() not in ours:
            return Refused(403, "Pages of that Origin may not connect.\n")
        return None


def purpose_of(path: str) -> Admitted | Refused:
    """Return the purpose of a path."""
    path, _, query_text = path.partition("?")
    if path == "/":
        return Admitted("worker")
    if path == "/otel":
        return Admitted("otel")
    prefix = "/ws/channels/"
    if path.startswith(prefix):
        query = parse_qs(query_text)
        key, direction = query.get("key", [""])[0], query.get("dir", [""])[0]
        if not key or direction not in ("read", "write"):
            return Refused(400, "key and dir=read|write are needed")
        return Admitted("channel", path[len(prefix) :], key, direction)
    return Refused(404, "")


def same_secret(given: str, expected: str) -> bool:
    """Compare in constant time; header bytes that are not ASCII arrive as surrogates."""
    return hmac.compare_digest(given.encode(errors="surrogateescape"), expected.encode())


def _single(headers: Mapping[str, Sequence[str]], name: str) -> str | None:
    values = headers.get(name, ())
    return values[0] if len(values) == 1 else None
