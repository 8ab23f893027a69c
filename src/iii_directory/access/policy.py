"""Who may connect: the handshake's Host, Origin, token and path, decided without touching a socket. Pure.

A browser sends ``Host`` and ``Origin`` truthfully and a page cannot forge them. So a foreign Origin is a page
that is not ours, and a foreign Host is a name that was pointed at this machine behind a page's back.
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
"""The file of a data directory with a token that nobody chose."""
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Admitted(NamedTuple):
    """A handshake that may go on, and what it is for."""

    purpose: Literal["worker", "otel", "channel"]
    channel_id: str = ""
    access_key: str = ""
    direction: str = ""


class Refused(NamedTuple):
    status: int
    text: str


def refused_token(host: str, token: str | None) -> str | None:
    """Why a listener at an address cannot go on with a token, or without one; None if it can."""
    if not token:
        return None if is_loopback(host) else f"listening on {host} needs a token: others could reach it"
    if len(token) < MIN_TOKEN_CHARS:
        return f"a token has at least {MIN_TOKEN_CHARS} characters; this one has {len(token)}"
    return None


@lru_cache(maxsize=16)
def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine alone; other names cannot be told."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Access(NamedTuple):
    """The rules of one listener. Beyond loopback the token decides, and any Host may be asked for."""

    host: str
    port: int
    token: str | None = None
    owner: int | None = None
    """The user whose processes, and root's, need no token on loopback; None where users cannot be told."""
    asks_everybody: bool = True
    """Whether a token, where there is one, is asked of the owner too."""

    @property
    def looks_at_users(self) -> bool:
        """Whether it makes a difference whose a connection is."""
        return self.owner is not None and (self.token is None or not self.asks_everybody)

    @property
    def everybody_s(self) -> str | None:
        """What to say at the start where every user of this machine can connect."""
        if self.owner is not None or self.token is not None:
            return None
        return (
            "this system does not say whose a connection is: every user of this machine can connect; "
            "a token keeps others out"
        )

    def decide(
        self, path: str, headers: Mapping[str, Sequence[str]], user: int | None = None
    ) -> Admitted | Refused:
        """What a handshake may go on to be. ``headers`` has lower-case names and every value given."""
        wanted = purpose_of(path)
        # A channel's key is a secret of its own, which only an admitted worker can be given. Older SDKs send
        # nothing else there, and the real engine asks for nothing else.
        keyed = isinstance(wanted, Admitted) and wanted.purpose == "channel"
        refused = self._foreign(headers) if keyed else self.refusal(headers, user)
        if refused is not None:
            return refused
        if "upgrade" not in ",".join(headers.get("connection", ())).lower():
            return Refused(400, "Connection header did not include 'upgrade'")
        return wanted

    def refusal(self, headers: Mapping[str, Sequence[str]], user: int | None = None) -> Refused | None:
        """Why a request without another secret than the token is none of ours, or None.

        ``user`` is whose the connection is, if the kernel says; an unknown one is nobody's.
        """
        foreign = self._foreign(headers)
        if foreign is not None or self._token_given(headers) or self._is_owners(user):
            return foreign
        if self.token is None:
            return Refused(401, "This belongs to another user of this machine, who asks for no token yet.\n")
        return Refused(401, "A token is needed: Authorization: Bearer …\n")

    def _is_owners(self, user: int | None) -> bool:
        return self.looks_at_users and user in (self.owner, ROOT)

    def _foreign(self, headers: Mapping[str, Sequence[str]]) -> Refused | None:
        host = _single(headers, "host")
        if host is None or (is_loopback(self.host) and host.lower() not in self._own_hosts()):
            return Refused(421, "Nothing here answers to that Host.\n")
        if not self._origin_allowed(host, headers):
            return Refused(403, "Pages of that Origin may not connect.\n")
        return None

    def _own_hosts(self) -> set[str]:
        named = f"[{self.host}]" if ":" in self.host else self.host
        names = {*LOOPBACK_NAMES, named}
        own = {f"{name}:{self.port}" for name in names}
        return own | names if self.port == 80 else own

    def _origin_allowed(self, host: str, headers: Mapping[str, Sequence[str]]) -> bool:
        if "origin" not in headers:
            return True
        origin = _single(headers, "origin")
        return origin is not None and origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")

    def _token_given(self, headers: Mapping[str, Sequence[str]]) -> bool:
        if self.token is None:
            return self.owner is None
        return same_secret(_single(headers, "authorization") or "", f"Bearer {self.token}")


def purpose_of(path: str) -> Admitted | Refused:
    """What a path is for."""
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
    """Compare in a time that tells nothing; bytes of a header that are no ASCII come as surrogates."""
    return hmac.compare_digest(given.encode(errors="surrogateescape"), expected.encode())


def _single(headers: Mapping[str, Sequence[str]], name: str) -> str | None:
    values = headers.get(name, ())
    return values[0] if len(values) == 1 else None
