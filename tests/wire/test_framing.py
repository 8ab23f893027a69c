"""Frames, however a socket cuts them: every message once, in order, and the library sees the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from iii_directory.wire.framing import Framing

if TYPE_CHECKING:
    from websockets.http11 import Request, Response
    from websockets.protocol import Protocol

LIMIT = 100_000
Message = tuple[bytes, bool]


class End:
    """One side of a connection, and what it was told."""

    def __init__(self, library: Protocol) -> None:
        self.library = library
        self.framing = Framing(library, frame_bytes=LIMIT)
        self.framing.on_handshake, self.framing.on_message = self.handshake, self.message
        self.told: list[Message] = []

    def handshake(self, event: Request | Response) -> None:
        pass

    def message(self, data: bytes, *, is_text: bool) -> None:
        self.told.append((data, is_text))


def server() -> End:
    return End(ServerProtocol(state=State.OPEN, max_size=LIMIT))


def client() -> End:
    return End(ClientProtocol(parse_uri("ws://localhost"), state=State.OPEN, max_size=LIMIT))


def wire(end: End) -> bytes:
    return b"".join(end.framing.to_send())


BODIES = st.binary(max_size=300) | st.sampled_from((125, 126, 65_535, 65_536)).map(lambda size: b"x" * size)
# A message in one frame or in several, and what may come between.
MESSAGES = st.lists(
    st.tuples(st.lists(BODIES, min_size=1, max_size=3), st.booleans(), st.booleans()), max_size=6
)


def frames(messages: list[tuple[list[bytes], bool, bool]]) -> tuple[bytes, list[Message]]:
    """The frames of messages as a client sends them, and what there is to be told."""
    sent, told = b"", []
    for parts, is_text, is_pinged in messages:
        kind = Opcode.TEXT if is_text else Opcode.BINARY
        for number, part in enumerate(parts):
            opcode, fin = (Opcode.CONT if number else kind), number == len(parts) - 1
            sent += Frame(opcode, part, fin=fin).serialize(mask=True)
            if is_pinged:
                sent += Frame(Opcode.PING, b"there?").serialize(mask=True)
        if sum(map(len, parts)) <= LIMIT:
            told.append((b"".join(parts), is_text))
    return sent, told


@given(MESSAGES.filter(lambda all_: all(sum(map(len, m[0])) <= LIMIT for m in all_)), st.data())
def test_messages_come_out_as_they_went_in_wherever_the_stream_is_cut(
    messages: list[tuple[list[bytes], bool, bool]], data: st.DataObject
) -> None:
    sent, expected = frames(messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=8)))
    end = server()

    for start, stop in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        end.framing.received(sent[start:stop])

    assert end.told == expected
    assert end.framing.unfinished_bytes == 0


@given(MESSAGES)
def test_a_byte_at_a_time_is_the_same(messages: list[tuple[list[bytes], bool, bool]]) -> None:
    small = [([part[:200] for part in parts], is_text, is_pinged) for parts, is_text, is_pinged in messages]
    sent, expected = frames(small)
    end = server()

    for byte in sent:
        end.framing.received(bytes((byte,)))

    assert end.told == expected


@given(st.lists(st.tuples(BODIES, st.booleans()), max_size=5))
def test_each_side_reads_what_the_other_writes(messages: list[Message]) -> None:
    here, there = client(), server()
    for data, is_text in messages:
        here.framing.send(data, is_text=is_text)
        there.framing.send(data, is_text=is_text)

    from_here, from_there = wire(here), wire(there)
    there.framing.received(from_here)
    here.framing.received(from_there)

    assert there.told == here.told == messages


@given(st.lists(BODIES, min_size=1, max_size=5))
def test_the_library_reads_what_is_written(messages: list[bytes]) -> None:
    end, library = client(), ServerProtocol(state=State.OPEN, max_size=LIMIT)
    for data in messages:
        end.framing.send(data)

    library.receive_data(wire(end))

    assert [frame.data for frame in library.events_received() if isinstance(frame, Frame)] == messages


def test_every_message_of_a_client_has_a_key_of_its_own() -> None:
    ends = (client(), client())
    for end in ends:
        for _ in range(600):
            end.framing.send(b"")

    # Two bytes of header, and the four of the key.
    sent = b"".join(map(wire, ends))
    keys = {sent[start + 2 : start + 6] for start in range(0, len(sent), 6)}
    assert len(sent) == 1200 * 6
    assert len(keys) > 1195, "four random bytes hardly ever come twice"


def test_a_ping_between_messages_is_answered_in_its_place() -> None:
    end = server()
    end.framing.send(b"before")
    end.framing.received(Frame(Opcode.PING, b"there?").serialize(mask=True))
    end.framing.send(b"after")

    sent = [b"\x81\x06before", b"\x8a\x06there?", b"\x81\x05after"]
    assert wire(end) == b"".join(sent)


def test_nothing_is_sent_behind_the_goodbye() -> None:
    end = server()
    end.library.send_close()
    end.framing.send(b"late")

    assert wire(end) == Frame(Opcode.CLOSE, b"").serialize(mask=False)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (b"\x81\x0anot masked", CloseCode.PROTOCOL_ERROR),
        (b"\xc1\x80\x00\x00\x00\x00", CloseCode.PROTOCOL_ERROR),
        (b"\x83\x80\x00\x00\x00\x00", CloseCode.PROTOCOL_ERROR),
        (b"\x80\x80\x00\x00\x00\x00", CloseCode.PROTOCOL_ERROR),
        (b"\x81\xff" + (LIMIT + 1).to_bytes(8, "big"), CloseCode.MESSAGE_TOO_BIG),
        (b"\x81\xff" + b"\xff" * 8, CloseCode.MESSAGE_TOO_BIG),
    ],
    ids=["not masked", "reserved bit", "unknown kind", "continues nothing", "too long", "endless"],
)
def test_what_is_wrong_ends_the_connection_and_nothing_more_is_read(wrong: bytes, code: CloseCode) -> None:
    end = server()
    whole = Frame(Opcode.TEXT, b"whole").serialize(mask=True)

    end.framing.received(whole + wrong + whole)
    end.framing.received(whole)

    assert end.told == [(b"whole", True)]
    assert wire(end)[2:4] == Close(code, "").serialize()[:2]


def test_a_message_within_fragments_is_wrong() -> None:
    end = server()
    end.framing.received(Frame(Opcode.TEXT, b"begun", fin=False).serialize(mask=True))
    end.framing.received(Frame(Opcode.TEXT, b"whole").serialize(mask=True))

    assert end.told == []
    assert not end.framing.is_open


def test_what_has_come_in_part_is_counted() -> None:
    end = server()
    whole = Frame(Opcode.TEXT, b"x" * 1000).serialize(mask=True)

    end.framing.received(whole[:500])
    assert end.framing.unfinished_bytes == 500
    end.framing.received(whole[500:] + Frame(Opcode.TEXT, b"y" * 300, fin=False).serialize(mask=True))
    assert end.framing.unfinished_bytes == 300
