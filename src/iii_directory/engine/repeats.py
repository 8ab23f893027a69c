"""Long lists that are answered again and again are written as JSON once. Pure.

A snapshot's rows are one and the same list until something changes, and what was answered is not changed
afterwards. So a list that comes a second time is kept as text from then on: a list of 10,000 rows then costs
a copy of its bytes (goals ``up.list-10000`` and ``beside.listing``).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from iii_directory.engine.wire_json import Unread, encode_message
from iii_directory.limits import KEPT_LISTS
from iii_directory.shapes import is_list, is_object

if TYPE_CHECKING:
    from iii_directory.engine.wire_json import Json

# Shorter ones are written faster than they are looked up and copied.
_LONG_ROWS: Final = 100


class Repeats:
    """The lists that were answered last, and the text of those that were answered twice."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[list[object], Unread | None]] = OrderedDict()

    def with_texts(self, result: object) -> object:
        """A result with the long lists among its fields as text, where they came before.

        Raises:
            TypeError, ValueError: such a list is no JSON.
        """
        if not is_object(result):
            return result
        long = {key: value for key, value in result.items() if is_list(value) and len(value) >= _LONG_ROWS}
        return {**result, **{key: self._text_of(rows) for key, rows in long.items()}} if long else result

    def message_with_texts(self, message: Json) -> Json:
        """The same for a message, which may carry a result."""
        carried = message.get("result")
        result = self.with_texts(carried) if is_object(carried) else carried
        return message if result is carried else {**message, "result": result}

    def _text_of(self, rows: list[object]) -> object:
        known, text = self._known.pop(id(rows), (None, None))
        # A number of its own only as long as it is there: another list may have it by now.
        came_before = known is rows
        if came_before and text is None:
            text = Unread(encode_message(rows))
        self._known[id(rows)] = (rows, text if came_before else None)
        if len(self._known) > KEPT_LISTS:
            self._known.popitem(last=False)
        return text if came_before and text is not None else rows
