"""Those who have much to read: everything arrives, and others have the loop in between."""

from __future__ import annotations

import asyncio
import errno
import itertools
from typing import TYPE_CHECKING, Any

from tests.support.engine import EngineThread
from tests.support.raw_socket import RawSocket

from iii_directory.bus.message_bus import LocalBus
from iii_directory.bus.seam import Function
from iii_directory.limits import MIB, WRITTEN_PER_TURN_BYTES
from iii_directory.wire.message_socket import PIECE_BYTES, Outbox, Writers

if TYPE_CHECKING:
    from iii_directory.bus.seam import Handler

ASKED = 8
TEXT = "x" * 4 * MIB


class Taking(asyncio.Transport):
    """A transport whose socket takes whatever it is given, or as much as there is room for."""

    def __init__(self, name: str, log: list[tuple[str, int]], room: int | None = None) -> None:
        super().__init__()
        self.name, self.log, self.room = name, log, room
        self.taken, self.kept, self.closed = b"", b"", False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: Any) -> None:
        data = bytes(data)
        self.log.append((self.name, len(data)))
        fits = len(data) if self.room is None else self.room
        self.taken, self.kept = self.taken + data[:fits], data[fits:]

    def get_write_buffer_size(self) -> int:
        return len(self.kept)

    def is_closing(self) -> bool:
        return self.closed

    def can_write_eof(self) -> bool:
        return True

    def abort(self) -> None:
        self.closed = True

    def write_eof(self) -> None:
        self.log.append((self.name, 0))


def outbox(
    transport: Taking,
    writers: Writers,
    told: list[str] | None = None,
    most: int = 1 << 40,
    most_events: int = 1 << 40,
) -> Outbox:
    heard: list[str] = [] if told is None else told
    return Outbox(
        transport,
        writers,
        most=most,
        most_events=most_events,
        wrote=lambda: heard.append(transport.name),
        cut_off=transport.abort,
    )


def test_those_with_much_to_write_do_it_in_turns_and_others_have_the_loop_in_between() -> None:
    log: list[tuple[str, int]] = []

    async def main() -> None:
        writers, loop = Writers(), asyncio.get_running_loop()
        for name in "abc":
            outbox(Taking(name, log), writers).write([b"x" * 10 * PIECE_BYTES])
        log.clear()  # the first piece of each is written at once
        for _ in range(30):
            await asyncio.sleep(0)
            log.append(("-", 0))
        assert loop.is_running()

    asyncio.run(main())

    order = "".join(name for name, _ in log)
    assert order.replace("-", "") == "abc" * 9
    in_one_turn = WRITTEN_PER_TURN_BYTES // PIECE_BYTES
    assert max(map(len, order.split("-"))) == in_one_turn


def test_everything_is_written_in_its_order_whatever_its_size() -> None:
    pieces = [bytes([65 + number % 26]) * size for number, size in enumerate((1, 300_000, 7, 7, 900_000, 12))]
    taking, told = Taking("a", []), list[str]()

    async def main() -> None:
        box = outbox(taking, Writers(), told)
        box.write(pieces[:2])
        box.write([*pieces[2:], b""])
        assert box.unsent_bytes
        for _ in range(10):
            await asyncio.sleep(0)
        assert not box.unsent_bytes

    asyncio.run(main())

    assert taking.taken == b"".join(pieces)
    assert taking.log[-1] == ("a", 0)  # the end comes last
    assert told


def test_a_socket_that_is_full_is_given_more_when_it_says_so() -> None:
    taking = Taking("a", [], room=1000)

    async def main() -> None:
        box = outbox(taking, Writers())
        box.write([b"x" * 3 * PIECE_BYTES])
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(taking.log) == 1
        taking.kept, taking.room = b"", None
        box.go_on()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not box.unsent_bytes

    asyncio.run(main())
    assert len(taking.log) == 3


def test_what_is_unsent_counts_only_once_the_socket_was_given_all_that_it_takes() -> None:
    async def main() -> None:
        reading, deaf = Taking("a", []), Taking("b", [], room=1000)
        outbox(reading, Writers(), most=PIECE_BYTES).write([b"x" * 5 * PIECE_BYTES])
        outbox(deaf, Writers(), most=PIECE_BYTES).write([b"x" * 5 * PIECE_BYTES])
        assert (reading.closed, deaf.closed) == (False, True)

    asyncio.run(main())


def test_events_that_are_not_read_have_a_bound_of_their_own() -> None:
    async def main() -> None:
        transports = {name: Taking(name, [], room=1000) for name in ("answers", "events", "reads")}
        boxes = {
            name: outbox(transport, Writers(), most_events=4 * PIECE_BYTES)
            for name, transport in transports.items()
        }
        for _ in range(10):
            boxes["answers"].write([b"x" * PIECE_BYTES])
            boxes["events"].write([b"x" * PIECE_BYTES], event_bytes=PIECE_BYTES)
            boxes["reads"].write([b"x" * PIECE_BYTES], event_bytes=PIECE_BYTES)
            transports["reads"].kept = b""
            boxes["reads"].go_on()
            await asyncio.sleep(0)
        assert [name for name, transport in transports.items() if transport.closed] == ["events"]

    asyncio.run(main())


def test_past_the_total_the_connections_that_hold_the_most_are_cut_off_and_the_rest_go_on() -> None:
    async def main() -> None:
        writers = Writers(10 * PIECE_BYTES)
        transports = [Taking(str(number), [], room=1000) for number in range(4)]
        boxes = [outbox(transport, writers) for transport in transports]
        for number, box in enumerate(boxes):
            box.write([b"x" * (number + 1) * PIECE_BYTES])
        assert not any(transport.closed for transport in transports)
        boxes[0].write([b"x" * PIECE_BYTES])
        assert [transport.closed for transport in transports] == [False, False, False, True]
        assert writers.unsent_bytes == sum(box.unsent_bytes for box in boxes[:3])
        for box in boxes:
            box.discard()
        assert writers.unsent_bytes == 0

    asyncio.run(main())


def test_past_the_total_a_client_that_reads_is_written_to_and_not_cut_off() -> None:
    async def main() -> None:
        writers = Writers(4 * PIECE_BYTES)
        taking = Taking("a", [])
        outbox(taking, writers).write([b"x" * 20 * PIECE_BYTES])
        assert not taking.closed
        assert writers.unsent_bytes <= 4 * PIECE_BYTES

    asyncio.run(main())


def test_nothing_is_kept_for_a_socket_that_is_gone() -> None:
    taking = Taking("a", [])

    async def main() -> None:
        box = outbox(taking, Writers())
        box.write([b"x" * 5 * PIECE_BYTES])
        taking.closed = True
        await asyncio.sleep(0)
        assert not box.unsent_bytes

    asyncio.run(main())
    assert len(taking.log) == 1


def test_a_client_that_reads_as_fast_as_is_written_does_not_keep_the_engine_busy() -> None:
    """Eight large answers at once: in no turn of the loop is more written than one turn may have."""
    unsent: list[int] = []

    async def large(_payload: dict[str, Any]) -> str:
        return TEXT

    with EngineThread() as engine, RawSocket(engine.server.port) as greedy:
        provide(engine, large)
        greedy.receive()

        def look() -> None:
            unsent.append(unsent_bytes(engine))
            if unsent[-1] or not max(unsent):
                engine.loop.call_soon(look)

        engine.on_loop(look)
        for number in range(ASKED):
            ask(greedy, number)
        answers = [greedy.receive_message() for _ in range(ASKED)]

    assert all(answer["result"] == TEXT for answer in answers)
    # A turn's worth, and the rest of a piece that the socket did not take in an earlier turn.
    assert max(before - after for before, after in itertools.pairwise(unsent)) <= (
        WRITTEN_PER_TURN_BYTES + 2 * PIECE_BYTES
    )


def test_a_long_list_becomes_text_while_others_have_their_turns() -> None:
    rows = [{"number": number, "text": "x" * 100} for number in range(10_000)]
    turns = 0

    def look() -> None:
        nonlocal turns
        turns += 1
        if not unsent_bytes(engine):
            engine.loop.call_soon(look)

    async def many(_payload: dict[str, Any]) -> dict[str, Any]:
        engine.loop.call_soon(look)
        return {"rows": rows}

    with EngineThread() as engine, RawSocket(engine.server.port) as reader:
        provide(engine, many)
        reader.receive()
        ask(reader, 1)
        assert reader.receive_message()["result"] == {"rows": rows}

    # Some hundred rows in each of them.
    assert turns > len(rows) / 500


def unsent_bytes(engine: EngineThread) -> int:
    return max(peer._outbox.unsent_bytes for peer in engine.server._peers)


def ask(client: RawSocket, number: int) -> None:
    call_id = f"0b8f3c1e-9d7a-4c55-8f10-{number:012d}"
    client.send_message(type="invokefunction", function_id="test::large", invocation_id=call_id)


def provide(engine: EngineThread, handler: Handler) -> None:
    """Let a worker inside the engine answer."""

    def register() -> None:
        bus = LocalBus(engine.server, name="large", description="")
        bus.register_function(Function(id="test::large", description="", request={}, response=None), handler)

    engine.on_loop(register)


def test_an_end_that_cannot_be_told_to_a_client_that_is_gone_is_not_an_error() -> None:
    class Gone(Taking):
        def write_eof(self) -> None:
            super().write_eof()
            raise OSError(errno.ENOTCONN, "gone")

    log: list[tuple[str, int]] = []
    outbox(Gone("a", log), Writers()).write([b"goodbye", b""])

    assert log == [("a", len(b"goodbye")), ("a", 0)]
