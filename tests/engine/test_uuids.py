"""Ids that nobody can guess and that every SDK can read."""

from __future__ import annotations

import uuid

from iii_directory.engine.uuids import Uuids


def test_every_id_is_a_random_uuid_as_the_rest_of_the_world_writes_it() -> None:
    ids = Uuids()
    for text in [ids.next() for _ in range(1000)]:
        read = uuid.UUID(text)
        assert str(read) == text
        assert (read.version, read.variant) == (4, uuid.RFC_4122)


def test_no_id_comes_twice_from_one_source_or_from_two() -> None:
    sources = [Uuids(), Uuids()]

    assert len({source.next() for source in sources for _ in range(1000)}) == 2000
