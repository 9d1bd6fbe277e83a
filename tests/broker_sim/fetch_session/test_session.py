import pytest

from broker_sim.fetch_session import CachedPartition, FetchSession, next_epoch
from broker_sim.replica import FetchPartition


def fetch(offset=0):
    return FetchPartition(fetch_offset=offset, max_bytes=1)


def session_of(*numbers):
    partitions = [CachedPartition(("t", number), "t", fetch()) for number in numbers]
    return FetchSession(7, partitions, privileged=False, uses_topic_ids=False, now_ms=0)


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (1, 2), (2147483647, 1), (-1, -1), (-5, -1)])
def test_epoch_wraps_around_to_one(epoch, following):
    assert next_epoch(epoch) == following


def test_new_session_expects_epoch_one():
    assert session_of(0).epoch == 1


def test_partition_moves_to_the_end():
    session = session_of(0, 1, 2)
    session.move_to_end(("t", 0))
    assert [partition.key[1] for partition in session] == [1, 2, 0]


def test_partition_added_again_changes_only_its_position():
    session = session_of(0, 1)
    for number in (0, 5):
        session.add(CachedPartition(("t", number), "t", fetch(9)))
    assert [(p.key[1], p.fetch.fetch_offset) for p in session] == [(0, 9), (1, 0), (5, 9)]


def test_forgetting_an_unknown_partition_does_nothing():
    session = session_of(0, 1)
    for number in (0, 9):
        session.forget(("t", number))
    assert [partition.key[1] for partition in session] == [1]
    assert len(session) == 1
