"""Tests of session eviction, as in Kafka's FetchSessionTest and KIP-227."""

from random import Random

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session import NO_SESSION, CachedPartition
from broker_sim.fetch_session.cache import MIN_EVICTION_MS, FetchSessionCache, FetchSessionCacheShard
from broker_sim.replica import FetchPartition

LATER_MS = MIN_EVICTION_MS + 1


class Shard:
    """A shard with few slots."""

    def __init__(self, slots=1):
        self.shard = FetchSessionCacheShard(slots, 0, 1000, Random(1).randrange)

    def create(self, size=1, *, now_ms=0, follower=False):
        fetch = FetchPartition(fetch_offset=0, max_bytes=1)
        partitions = [CachedPartition(("t", number), "t", fetch) for number in range(size)]
        return self.shard.maybe_create_session(now_ms, partitions, privileged=follower, uses_topic_ids=False)

    def use(self, session_id, now_ms):
        self.shard.touch(self.shard.sessions[session_id], now_ms)


@pytest.fixture
def shard():
    return Shard()


def test_session_ids_are_in_the_shard_range_and_not_zero():
    shard = FetchSessionCacheShard(5, 0, 6, Random(1).randrange)
    made = {shard.maybe_create_session(0, [], privileged=False, uses_topic_ids=True) for _ in range(5)}
    assert made == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("old_follower", "old_size", "new_follower", "new_size", "room"),
    [
        (False, 1, False, 9, False),  # a consumer's young session is evicted for followers only
        (False, 9, True, 1, True),
        (True, 1, True, 9, False),  # a follower's young session is never evicted
        (True, 1, False, 9, False),
    ],
)
def test_eviction_of_young_sessions(shard, old_follower, old_size, new_follower, new_size, room):
    old = shard.create(old_size, follower=old_follower)
    new = shard.create(new_size, follower=new_follower, now_ms=1)
    assert (new != NO_SESSION) is room
    assert (old in shard.shard.sessions) is not room
    assert shard.shard.evictions == room


@pytest.mark.parametrize(
    ("old_follower", "old_size", "new_follower", "new_size", "room"),
    [
        (False, 2, False, 1, False),
        (False, 2, False, 2, False),  # same size: the id decides, and a new session has none yet
        (False, 2, False, 3, True),
        (True, 1, False, 9, False),
        (False, 9, True, 1, True),
        (True, 2, True, 1, False),
        (True, 2, True, 3, True),
    ],
)
def test_eviction_of_old_sessions_in_use(shard, old_follower, old_size, new_follower, new_size, room):
    old = shard.create(old_size, follower=old_follower)
    shard.use(old, LATER_MS)
    new = shard.create(new_size, follower=new_follower, now_ms=LATER_MS + 1)
    assert (new != NO_SESSION) is room
    assert (old in shard.shard.sessions) is not room


@pytest.mark.parametrize(("unused_ms", "room"), [(MIN_EVICTION_MS, False), (LATER_MS, True)])
@pytest.mark.parametrize("follower", [False, True])
def test_stale_session_is_evicted_for_any_other(shard, unused_ms, room, follower):
    shard.create(9, follower=follower)
    assert (shard.create(1, now_ms=unused_ms) != NO_SESSION) is room


def test_least_recently_used_session_is_evicted():
    shard = Shard(2)
    first, second = shard.create(), shard.create()
    shard.use(first, 10)
    shard.create(now_ms=LATER_MS + 10)
    assert first in shard.shard.sessions
    assert second not in shard.shard.sessions


def test_session_becomes_evictable_on_use_after_two_minutes(shard):
    """As in Kafka, age is evaluated only when the session is used."""
    old = shard.create(1)
    shard.use(old, MIN_EVICTION_MS - 1)
    assert shard.create(9, now_ms=MIN_EVICTION_MS + 5) == NO_SESSION
    shard.use(old, LATER_MS)
    assert shard.create(9, now_ms=LATER_MS) != NO_SESSION


def test_partition_count_is_updated_on_use():
    shard = Shard(2)
    one = shard.create(3)
    shard.create(4)
    assert shard.shard.partition_count == 7
    shard.shard.sessions[one].forget(("t", 0))
    assert shard.shard.partition_count == 7
    shard.use(one, 1)
    assert shard.shard.partition_count == 6
    shard.shard.remove(one)
    shard.shard.remove(one)
    assert shard.shard.partition_count == 4


@pytest.mark.parametrize(("slots", "sessions"), [(0, 0), (7, 0), (8, 8), (17, 16)])
def test_slots_are_divided_among_eight_shards(slots, sessions):
    cache = FetchSessionCache(slots, Random)
    for _ in range(20):
        shard = cache.next_shard()
        made = shard.maybe_create_session(0, [], privileged=False, uses_topic_ids=True)
        assert made == NO_SESSION or cache.shard_of(made) is shard
    assert cache.session_count == sessions


@pytest.mark.parametrize("session_id", [2147483640, 2147483647, -268435455])
def test_id_outside_all_shards_is_unknown_server_error(session_id):
    with pytest.raises(ApiError) as refusal:
        FetchSessionCache(8, Random).shard_of(session_id)
    assert refusal.value.error_code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("session_id", [-268435454, -5, 0, 1, 2147483639])
def test_other_ids_have_a_shard(session_id):
    assert FetchSessionCache(8, Random).shard_of(session_id).sessions == {}
