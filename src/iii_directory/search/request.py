"""What somebody asks of search, checked: for what, of which kinds, how much they want to hear. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from iii_directory.documents.payload_fields import flag, optional_text, optional_texts
from iii_directory.errors import invalid_field
from iii_directory.limits import MAX_ANSWER_CHARS, MAX_ASKED_CHARS, MAX_CAPABILITIES, MAX_SEARCH_HITS
from iii_directory.shapes import is_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from iii_directory.search.fields import Document

    Payload = Mapping[str, Any]

Kind = Literal["skill", "prompt", "function", "trigger", "worker", "installable"]
KINDS: Final[tuple[Kind, ...]] = ("skill", "prompt", "function", "trigger", "worker", "installable")
Detail = Literal["ids", "brief", "full"]
DETAILS: Final[tuple[Detail, ...]] = ("ids", "brief", "full")
DEFAULT_HITS: Final = 5
DEFAULT_CHARS: Final = 4000
# One request answered with all defaults: what an agent can afford to ask on a mere suspicion.
_BRIEF_CHARS: Final = 1500


class Request(NamedTuple):
    """What somebody looks for, and how much they want to hear."""

    capabilities: Sequence[str]
    kinds: Sequence[Kind] = KINDS
    worker: str | None = None
    prefix: str | None = None
    limit: int = DEFAULT_HITS
    detail: Detail = "brief"
    budget: int = DEFAULT_CHARS
    """For the whole reply, in bytes."""
    asks_registry: bool = False
    """Whether what could be installed was asked for by name, so that its list may be fetched meanwhile."""

    def shows(self, _kind: Kind, document: Document) -> bool:
        """Whether a document passes the filters."""
        of_worker = self.worker is None or document.worker == self.worker
        return of_worker and (self.prefix is None or document.id.startswith(self.prefix))


def parse_request(payload: Payload) -> Request:
    """What ``directory::search`` is asked; D100 with the field that is wrong."""
    limit = _number(payload, "limit", DEFAULT_HITS, MAX_SEARCH_HITS)
    capabilities = _capabilities(payload)
    brief = payload.get("limit") is None and len(capabilities) == 1 and payload.get("detail") != "full"
    usual = _BRIEF_CHARS if brief else DEFAULT_CHARS
    return Request(
        capabilities,
        _kinds(payload),
        optional_text(payload, "worker"),
        optional_text(payload, "prefix"),
        limit,
        _detail(payload),
        _number(payload, "budget_chars", usual, MAX_ANSWER_CHARS),
        _asks_registry(payload),
    )


def _capabilities(payload: Payload) -> list[str]:
    query, several = optional_text(payload, "query"), optional_texts(payload, "capabilities")
    if (query is None) == (several is None):
        raise invalid_field("query", "given, as a string, or capabilities as a list of them, but not both")
    asked = [query] if query is not None else several or []
    field = "query" if query is not None else "capabilities"
    if any(len(text) > MAX_ASKED_CHARS for text in asked):
        raise invalid_field(field, f"at most {MAX_ASKED_CHARS} characters long")
    if not 1 <= len(asked) <= MAX_CAPABILITIES or not all(text.strip() for text in asked):
        words = "in words" if query is not None else f"1 to {MAX_CAPABILITIES} strings of words"
        raise invalid_field(field, words)
    return asked


def _kinds(payload: Payload) -> Sequence[Kind]:
    given = optional_texts(payload, "kinds")
    kinds: list[Kind] = [kind for kind in KINDS if given is None or kind in given]
    if not kinds or (given is not None and not set(given) <= set(KINDS)):
        raise invalid_field("kinds", f"any of {', '.join(KINDS)}")
    with_installable = flag(payload, "installable", default=True)
    return [kind for kind in kinds if with_installable or kind != "installable"]


def _asks_registry(payload: Payload) -> bool:
    by_name = payload.get("installable") is True or "installable" in (payload.get("kinds") or ())
    return by_name and payload.get("installable") is not False


def _detail(payload: Payload) -> Detail:
    given = optional_text(payload, "detail") or "brief"
    if given not in DETAILS:
        raise invalid_field("detail", f"one of {', '.join(DETAILS)}")
    return given


def _number(payload: Payload, key: str, default: int, most: int) -> int:
    value = payload.get(key)
    if value is None:
        return default
    if not is_count(value) or not 1 <= value <= most:
        raise invalid_field(key, f"a whole number from 1 to {most}")
    return value
