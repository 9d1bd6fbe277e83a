"""Tests of the latest and the committed view of offsets."""

import random

from broker_sim.group import record_messages
from broker_sim.group.offsets import OffsetStore

KEY = ("g", "t", 0)


def put(store, offset, at, high_watermark, key=KEY):
    value = None if offset is None else record_messages.OffsetCommitValue(offset)
    store.replay(record_messages.OffsetCommitKey(*key), value, at, high_watermark)


def committed(store, high_watermark, key=KEY):
    entry = store.get_committed(*key, high_watermark)
    return None if entry is None else entry.offset


def test_offset_is_in_latest_view_at_once_and_committed_later():
    store = OffsetStore()
    put(store, 5, at=0, high_watermark=0)
    assert store.get(*KEY).offset == 5
    assert committed(store, 0) is None
    assert committed(store, 1) == 5


def test_older_offset_is_visible_until_newer_is_committed():
    store = OffsetStore()
    for at, offset in enumerate((10, 20, 30)):
        put(store, offset, at, high_watermark=1)
    assert [committed(store, high_watermark) for high_watermark in (1, 2, 3)] == [10, 20, 30]


def test_all_offsets_are_in_the_order_of_kafkas_hash_tables():
    # Seen on Kafka 4.3.1, whose offsets of a group are in a TimelineHashMap.
    store = OffsetStore()
    for at, partition in enumerate((3, 1, 4, 0, 2)):
        put(store, 5, at, high_watermark=0, key=("g", "t", partition))
    assert [partition for _, partition, _ in store.committed_of("g", 5)] == [2, 0, 4, 1, 3]
    topics = ("zzc79bb3", "aac79bb3", "mmc79bb3", "bbc79bb3")
    for topic in topics:
        for partition in (2, 0, 1):
            put(store, 5, at=0, high_watermark=0, key=("many", topic, partition))
    keys = [(topic, partition) for topic, partition, _ in store.committed_of("many", 1)]
    expected = ("mmc79bb3", "bbc79bb3", "aac79bb3", "zzc79bb3")
    assert keys == [(topic, partition) for topic in expected for partition in (0, 2, 1)]


def test_removed_offset_is_visible_until_removal_is_committed():
    store = OffsetStore()
    put(store, 5, at=0, high_watermark=1)
    put(store, None, at=1, high_watermark=1)
    assert store.get(*KEY) is None
    assert [committed(store, 1), committed(store, 2)] == [5, None]
    assert list(store.latest_of("g")) == []
    assert [offset.offset for _, _, offset in store.committed_of("g", 1)] == [5]
    assert list(store.committed_of("g", 2)) == []


def test_removed_offset_is_dropped_once_committed():
    store = OffsetStore()
    put(store, 5, at=0, high_watermark=1)
    put(store, None, at=1, high_watermark=1)
    assert store.group_ids() == ["g"]
    put(store, 7, at=2, high_watermark=2, key=("h", "t", 0))
    assert store.group_ids() == ["h"]


def test_offset_committed_after_its_removal_is_kept():
    store = OffsetStore()
    put(store, 5, at=0, high_watermark=0)
    put(store, None, at=1, high_watermark=0)
    put(store, 6, at=2, high_watermark=0)
    put(store, 1, at=3, high_watermark=3, key=("h", "t", 0))
    assert store.get(*KEY).offset == 6
    assert store.count() == 2


def test_old_versions_are_dropped():
    store = OffsetStore()
    for at in range(1000):
        put(store, at, at, high_watermark=max(0, at - 2))
    ((versions,),) = [list(partitions.values()) for partitions in store._groups.values()]
    assert len(versions) <= 4


def test_views_equal_replays_of_log_prefixes():
    rng = random.Random(3)
    log = [(("g" + str(rng.randrange(2)), "t", rng.randrange(2)), rng.choice([None, *range(5)])) for _ in range(300)]
    store = OffsetStore()
    high_watermark = 0
    for at, (key, offset) in enumerate(log):
        put(store, offset, at, high_watermark, key)
        high_watermark = rng.randint(high_watermark, at + 1)
        for end, view in (
            (high_watermark, lambda k, hw=high_watermark: store.get_committed(*k, hw)),
            (at + 1, lambda k: store.get(*k)),
        ):
            model = dict(log[:end])
            for model_key in {k for k, _ in log}:
                found = view(model_key)
                assert (None if found is None else found.offset) == model.get(model_key)
