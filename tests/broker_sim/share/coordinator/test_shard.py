"""Tests of the state of share partitions: initialize, write, read and delete it through records."""

from random import Random

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.share.coordinator import record_messages
from broker_sim.share.coordinator import shard as shard_module
from broker_sim.share.coordinator import share_coordinator as coordinator_module
from broker_sim.share.coordinator.records import serde
from broker_sim.share.share_state import (
    ReadState,
    SharePartitionKey,
    StateBatch,
    StateOutcome,
    StateSummary,
    WrittenState,
)
from broker_sim.share.state_apis import WRITE
from tests.broker_sim.share.named_values import ACKNOWLEDGED, AVAILABLE, state_batch

ACKED = state_batch(0, 4, ACKNOWLEDGED)
OK = StateOutcome()
OTHER = SharePartitionKey("other", bytes(16), 0)


def kinds(bench):
    """Return the log's records, one letter each: S for a snapshot, u for an update, - for a tombstone."""
    return "".join(
        "-" if record.value is None else "S" if isinstance(record.value, record_messages.ShareSnapshotValue) else "u"
        for record in bench.log.records
    )


def codes(outcome):
    return ErrorCode(outcome.error_code)


# -- state --------------------------------------------------------------------------------------


def test_initialized_share_partition_has_no_start_offset(bench):
    assert bench.initialize(state_epoch=3) == OK
    assert bench.read() == ReadState(state_epoch=3, start_offset=-1)
    assert bench.summary() == StateSummary(state_epoch=3, start_offset=-1)
    assert kinds(bench) == "S"


def test_initialize_with_start_offset_sets_delivery_complete_count_to_0(bench):
    bench.initialize(state_epoch=3, start_offset=10)
    assert bench.summary() == StateSummary(state_epoch=3, start_offset=10, delivery_complete_count=0)


def test_each_write_adds_an_update_record(bench):
    bench.initialize()
    assert bench.write(ACKED, complete=5) == OK
    assert bench.write(state_batch(5, 9, AVAILABLE), start_offset=-1, complete=5) == OK
    assert bench.read() == ReadState(state_epoch=1, start_offset=0, state_batches=(ACKED, state_batch(5, 9, AVAILABLE)))
    assert bench.summary().delivery_complete_count == 5
    assert kinds(bench) == "Suu"
    bench.write(start_offset=5, complete=0)
    assert bench.read().state_batches == (state_batch(5, 9, AVAILABLE),)


def test_batch_with_last_before_first_offset_is_rejected(bench):
    """Combining it with the previous batch would never terminate."""
    bench.initialize()
    bench.write(state_batch(8, 12, AVAILABLE))
    outcome = bench.write(state_batch(10, 3, AVAILABLE, deliveries=2))
    assert outcome == StateOutcome(ErrorCode.INVALID_REQUEST, "The batch from offset 10 to 3 ends before it begins.")
    assert bench.read().state_batches == (state_batch(8, 12, AVAILABLE),)
    assert bench.write(state_batch(10, 10, AVAILABLE, deliveries=2)) == OK


def test_snapshot_follows_the_configured_number_of_updates(make_bench):
    bench = make_bench(share_coordinator_snapshot_update_records_per_snapshot=2)
    bench.initialize()
    for offset in range(7):
        bench.write(state_batch(offset, offset, ACKNOWLEDGED))
    assert kinds(bench) == "SuuSuuSu"
    assert [record.value.snapshot_epoch for record in bench.log.records] == [*(0, 0, 0), *(1, 1, 1), *(2, 2)]
    assert bench.log.records[6].value.state_batches[0].last_offset == 5
    assert bench.read().state_batches == (state_batch(0, 6, ACKNOWLEDGED),)


def test_every_write_is_a_snapshot_if_no_updates_are_allowed(make_bench):
    bench = make_bench(share_coordinator_snapshot_update_records_per_snapshot=0)
    bench.initialize()
    bench.write(ACKED)
    assert kinds(bench) == "SS"


def test_initialize_again_resets_the_state(bench):
    bench.initialize(state_epoch=1)
    bench.write(ACKED, complete=5)
    assert bench.initialize(state_epoch=2, start_offset=7) == OK
    assert bench.read() == ReadState(state_epoch=2, start_offset=7)
    assert bench.log.records[-1].value.snapshot_epoch == 1


def test_deleted_state_is_gone(bench):
    bench.initialize()
    bench.write(ACKED)
    assert bench.delete() == OK
    assert bench.summary() == StateSummary()
    assert codes(bench.read()) is ErrorCode.INVALID_REQUEST
    assert bench.delete() == OK
    assert kinds(bench) == "Su-"


def test_new_coordinator_loads_the_same_state(make_bench, key):
    bench = make_bench(share_coordinator_snapshot_update_records_per_snapshot=2)
    gone = key._replace(partition=1)
    bench.initialize()
    bench.initialize(key=gone)
    for offset in range(4):
        bench.write(state_batch(offset * 2, offset * 2, ACKNOWLEDGED), leader_epoch=3)
    bench.read(leader_epoch=5)
    bench.delete(key=gone)
    before = bench.shard
    bench.coordinator = bench.new_coordinator()
    after = bench.shard
    assert after is not before
    assert after.states == before.states
    assert (after.leader_epochs, after.state_epochs) == (before.leader_epochs, before.state_epochs)
    assert after.leader_epochs == {key: 5}
    bench.write(ACKED, leader_epoch=5)
    assert kinds(bench)[-3:] == "u-S"


# -- epochs -------------------------------------------------------------------------------------


def test_read_with_new_leader_epoch_fences_older_leaders(bench):
    bench.initialize()
    bench.read(leader_epoch=2)
    assert kinds(bench) == "Su"
    assert bench.summary().leader_epoch == 2
    bench.read(leader_epoch=2)
    assert kinds(bench) == "Su"
    assert codes(bench.read(leader_epoch=1)) is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.write(leader_epoch=1) == (
        ErrorCode.FENCED_LEADER_EPOCH,
        "The leader epoch in the request is older than the epoch on the broker.",
    )


LEADER, STATE = (f"The {what} epoch cannot be a negative number." for what in ("leader", "state"))


@pytest.mark.parametrize("is_initialized", [False, True])
def test_epochs_must_not_be_negative_whatever_else_is_wrong(bench, is_initialized):
    if is_initialized:
        bench.initialize(state_epoch=2)
        bench.read(leader_epoch=2)
    assert bench.initialize(state_epoch=-1) == (ErrorCode.INVALID_REQUEST, STATE)
    assert bench.write(leader_epoch=-1, state_epoch=-1) == (ErrorCode.INVALID_REQUEST, LEADER)
    assert bench.write(leader_epoch=1, state_epoch=-1) == (ErrorCode.INVALID_REQUEST, STATE)
    assert bench.read(leader_epoch=-1)[:2] == (ErrorCode.INVALID_REQUEST, LEADER)
    assert codes(bench.summary()) is ErrorCode.NONE  # it has a leader epoch of -1


def test_before_4_4_negative_epochs_fence_nobody(make_bench):
    bench = make_bench("4.3")
    bench.initialize(state_epoch=2)
    bench.read(leader_epoch=2)
    assert codes(bench.read(leader_epoch=-1)) is ErrorCode.NONE
    assert bench.write(leader_epoch=-1, state_epoch=-1) == OK
    assert codes(bench.initialize(state_epoch=-1)) is ErrorCode.NONE


def test_read_with_new_leader_epoch_keeps_the_rest_of_the_state(bench):
    bench.initialize()
    bench.write(ACKED, complete=5)
    before = bench.read()
    assert bench.read(leader_epoch=4) == before
    assert bench.read(leader_epoch=4) == before
    assert bench.summary().delivery_complete_count == 5


@pytest.mark.parametrize(
    ("release", "start_offset", "complete", "expected"),
    [
        ("4.4", 3, 9, (5, 2)),
        ("4.4", -1, -1, (5, 2)),
        ("4.4", 5, 1, (5, 2)),
        ("4.4", 5, 4, (5, 4)),
        ("4.4", 6, 0, (6, 0)),
        ("4.3", 3, 9, (3, 9)),
        ("4.3", -1, -1, (5, -1)),
        ("4.3", 5, 1, (5, 1)),
    ],
)
def test_start_offset_and_its_count_do_not_go_back_from_4_4_on(make_bench, release, start_offset, complete, expected):
    bench = make_bench(release)
    bench.initialize(start_offset=5)
    bench.write(complete=2, start_offset=5)
    bench.write(start_offset=start_offset, complete=complete)
    summary = bench.summary()
    assert (summary.start_offset, summary.delivery_complete_count) == expected


def test_older_state_epochs_are_fenced(bench):
    bench.initialize(state_epoch=4)
    assert codes(bench.write(state_epoch=3)) is ErrorCode.FENCED_STATE_EPOCH
    assert codes(bench.initialize(state_epoch=3)) is ErrorCode.FENCED_STATE_EPOCH
    assert bench.initialize(state_epoch=4) == OK
    bench.delete()
    assert bench.initialize(state_epoch=1) == OK


# -- errors -------------------------------------------------------------------------------------


def test_uninitialized_share_partition_cannot_be_read_or_written(bench):
    assert bench.read() == ReadState(
        ErrorCode.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed."
    )
    assert bench.write() == (ErrorCode.INVALID_REQUEST, "Write operation on uninitialized share partition not allowed.")
    assert bench.summary() == StateSummary()
    assert kinds(bench) == ""


@pytest.mark.parametrize("call", ["initialize", "delete", "summary"])
def test_calls_for_unknown_partitions_fail(bench, key, call):
    ask = getattr(bench, call)
    negative = ask(key=key._replace(partition=-1))
    assert negative[:2] == (ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")
    for unknown in (key._replace(partition=2), key._replace(topic_id=bytes(16))):
        assert codes(ask(key=unknown)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_deleted_topic_cannot_be_read_or_written(bench, make_image):
    bench.initialize()
    bench.image = make_image([])
    assert codes(bench.read()) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(bench.write()) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- limits -------------------------------------------------------------------------------------


def alternating(first_offset, count):
    """Return batches of one record each whose delivery counts alternate, so that none can be combined."""
    return [
        state_batch(offset, offset, ACKNOWLEDGED, deliveries=1 + offset % 2)
        for offset in range(first_offset, first_offset + count)
    ]


def test_state_is_limited_to_max_state_batches(bench, monkeypatch):
    monkeypatch.setattr(shard_module, "MAX_STATE_BATCHES", 10)
    bench.initialize()
    refused = ErrorCode.UNKNOWN_SERVER_ERROR
    assert codes(bench.write(*alternating(0, 11))) is refused
    assert codes(bench.write(*alternating(0, 10))) is ErrorCode.NONE
    assert codes(bench.write(*alternating(10, 1))) is refused
    assert codes(bench.write(*alternating(0, 10))) is ErrorCode.NONE  # already stored
    assert len(bench.read().state_batches) == 10
    assert codes(bench.write(*alternating(10, 3), start_offset=3)) is ErrorCode.NONE
    assert kinds(bench) == "Suuu"


def test_request_is_limited_to_max_state_batches(bench, key, monkeypatch):
    monkeypatch.setattr(coordinator_module, "MAX_STATE_BATCHES", 10)
    second = key._replace(partition=1)
    for each in (key, second):
        bench.initialize(key=each)
    written = WrittenState(1, 0, 0, 0, tuple(alternating(0, 6)))
    response = bench.ask(WRITE, [(key, written), (second, written)])
    outcomes = WRITE.outcomes_of(key.group_id, response)
    assert codes(outcomes[key]) is ErrorCode.NONE
    assert codes(outcomes[second]) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.read(key=second).state_batches == ()


# -- upkeep -------------------------------------------------------------------------------------


def test_cold_share_partition_gets_a_snapshot(make_bench, key):
    interval_ms = 60_000
    bench = make_bench(share_coordinator_cold_partition_snapshot_interval_ms=interval_ms)
    bench.initialize()
    bench.write(ACKED)
    bench.clock.advance(interval_ms - 1)
    bench.initialize(key=key._replace(partition=1))
    bench.coordinator.snapshot_cold_partitions()
    assert kinds(bench) == "SuS"
    bench.clock.advance(1)
    bench.coordinator.snapshot_cold_partitions()
    assert kinds(bench) == "SuSS"
    cold = bench.log.records[-1]
    assert (cold.key.partition, cold.value.snapshot_epoch) == (0, 1)
    assert cold.value.write_timestamp - cold.value.create_timestamp == interval_ms
    assert bench.read().state_batches == (ACKED,)


def test_no_snapshots_if_all_share_partitions_are_cold(make_bench):
    bench = make_bench(share_coordinator_cold_partition_snapshot_interval_ms=1)
    bench.initialize()
    for _ in range(3):
        bench.clock.advance(10)
        bench.coordinator.snapshot_cold_partitions()
    assert kinds(bench) == "SS"


def test_records_before_the_oldest_last_snapshot_are_pruned(make_bench, key):
    bench = make_bench(share_coordinator_snapshot_update_records_per_snapshot=1)
    second = key._replace(partition=1)
    bench.initialize()
    bench.coordinator.prune_records()
    assert bench.log.deleted == []  # offset 0
    bench.initialize(key=second)
    bench.write(ACKED)
    bench.write(ACKED)  # the snapshot at offset 3
    bench.coordinator.prune_records()
    bench.coordinator.prune_records()
    assert bench.log.deleted == [1]
    bench.delete(key=second)
    bench.coordinator.prune_records()
    assert bench.log.deleted == [1, 3]
    bench.delete()
    bench.coordinator.prune_records()
    assert bench.log.deleted == [1, 3, 5]


def test_records_are_not_pruned_before_their_replacement_is_committed(bench):
    bench.initialize()
    bench.log.is_held = True
    bench.initialize()
    bench.coordinator.prune_records()
    assert bench.log.deleted == []
    bench.log.release()
    bench.coordinator.prune_records()
    assert bench.log.deleted == [1]


def test_no_snapshots_or_pruning_without_share_groups(make_bench, key, make_image):
    bench = make_bench(share_coordinator_cold_partition_snapshot_interval_ms=1)
    bench.initialize()
    bench.initialize()
    bench.clock.advance(10)
    image = make_image([key.topic_id])
    image.features.clear()
    bench.image = image
    bench.coordinator.snapshot_cold_partitions()
    bench.coordinator.prune_records()
    assert (kinds(bench), bench.log.deleted) == ("SS", [])


# -- records ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_random_writes_survive_a_reload(make_bench, key, seed):
    rng = Random(seed)
    bench = make_bench(share_coordinator_snapshot_update_records_per_snapshot=3)
    keys = [key, key._replace(partition=1)]
    for number in range(60):
        chosen = rng.choice(keys)
        action = rng.random()
        if action < 0.1:
            bench.initialize(state_epoch=number, start_offset=rng.randrange(-1, 50), key=chosen)
        elif action < 0.15:
            bench.delete(key=chosen)
        elif action < 0.3:
            bench.read(leader_epoch=number // 10, key=chosen)
        else:
            first = rng.randrange(50)
            batch = StateBatch(first, first + rng.randrange(9), rng.choice((0, 2, 4)), rng.randrange(1, 5))
            start = rng.choice((-1, first // 2))
            bench.write(batch, key=chosen, state_epoch=number, leader_epoch=number // 10, start_offset=start)
    before = bench.shard
    bench.coordinator = bench.new_coordinator()
    assert bench.shard.states == before.states
    assert bench.shard.redundant.end_offset() == before.redundant.end_offset()


def test_update_without_a_snapshot_is_replayed(bench, key):
    value = record_messages.ShareUpdateValue(
        snapshot_epoch=2, leader_epoch=1, start_offset=3, delivery_complete_count=0
    )
    record = serde.decode_record(serde.encode_key(record_messages.ShareUpdateKey(*key)), serde.encode_value(value))
    bench.shard.replay(record, 0)
    assert bench.summary() == StateSummary(leader_epoch=1, start_offset=3, delivery_complete_count=0)
