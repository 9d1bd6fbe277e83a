from random import Random

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session import CachedPartition, FetchManager
from broker_sim.replica import FetchPartition

KEY = ("t", 0)


@pytest.fixture
def manager():
    return FetchManager(VirtualClock(), 8, Random)


def create(manager):
    fetch = FetchPartition(fetch_offset=0, max_bytes=1)
    return manager.maybe_create_session([CachedPartition(KEY, "t", fetch)], privileged=False, uses_topic_ids=False)


def refusal(manager, session_id, epoch, *, uses_topic_ids=False):
    with pytest.raises(ApiError) as refused:
        manager.resume(session_id, epoch, uses_topic_ids=uses_topic_ids)
    return refused.value.error_code


def test_session_is_resumed_epoch_by_epoch(manager):
    session_id = create(manager)
    for epoch in (1, 2, 3):
        session = manager.resume(session_id, epoch, uses_topic_ids=False)
        assert manager.advance(session)
        assert refusal(manager, session_id, epoch) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert session.epoch == 4


def test_rejected_request_does_not_change_the_session(manager):
    session_id = create(manager)
    assert refusal(manager, session_id + 1, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refusal(manager, 0, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refusal(manager, session_id, 2) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    named = refusal(manager, session_id, 1, uses_topic_ids=True)
    assert named is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert manager.resume(session_id, 1, uses_topic_ids=False).session_id == session_id


def test_session_without_partitions_is_closed(manager):
    session_id = create(manager)
    session = manager.resume(session_id, 1, uses_topic_ids=False)
    session.forget(KEY)
    assert not manager.advance(session)
    assert refusal(manager, session_id, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert manager.cache.partition_count == 0


def test_closing_an_unknown_session_does_nothing(manager):
    session_id = create(manager)
    manager.close(0)
    manager.close(session_id + 1)
    assert manager.cache.session_count == 1
    manager.close(session_id)
    assert manager.cache.session_count == 0
