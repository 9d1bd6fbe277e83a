"""Defects of transactions that are put into the broker on purpose: random runs find each of them.

Each mutant takes pytest's `monkeypatch` and replaces one method of the product by a wrong one.
"""

from itertools import permutations

import pytest

from broker_sim.chaos.faults.action import broker_name, broker_names
from broker_sim.chaos.random_run import Action, Schedule, draw_schedule
from broker_sim.coordinator import storage
from broker_sim.errors import ErrorCode
from broker_sim.group.shard import GroupShard
from broker_sim.log.log_offsets import LogOffsets
from broker_sim.log.partition_log import PartitionLog
from broker_sim.protocol.records import build_end_txn_marker
from broker_sim.replica.fetch_params import FetchIsolation
from broker_sim.replica.partition import Partition
from broker_sim.transaction import coordinator
from broker_sim.transaction.coordinator import TransactionCoordinator
from broker_sim.transaction.marker_channel import TransactionMarkerChannelManager
from broker_sim.transaction.state_manager import TransactionStateManager

from .outcomes import failed_invariant


def fetch_ignores_the_last_stable_offset(monkeypatch):
    """A read_committed fetch goes on to the high watermark."""
    original = Partition.fetch_end_offset

    def fetch_end_offset(self, isolation):
        if isolation is FetchIsolation.TXN_COMMITTED:
            isolation = FetchIsolation.HIGH_WATERMARK
        return original(self, isolation)

    monkeypatch.setattr(Partition, "fetch_end_offset", fetch_end_offset)


def open_transactions_are_stable(monkeypatch):
    """The last stable offset is the high watermark, whatever is open."""
    stable = property(lambda self: self.high_watermark)
    monkeypatch.setattr(LogOffsets, "last_stable_offset", stable)


def aborted_transactions_are_not_listed(monkeypatch):
    """Consumers are not told which records are of no use."""
    monkeypatch.setattr(PartitionLog, "aborted_transactions", lambda *_: [])


def marker_is_written_to_one_partition_only(monkeypatch):
    """The other partitions of a transaction count as done."""
    original = TransactionMarkerChannelManager.add

    def add(self, transaction):
        transaction.metadata.remove_partitions(sorted(transaction.metadata.partitions)[1:])
        original(self, transaction)

    monkeypatch.setattr(TransactionMarkerChannelManager, "add", add)


def every_marker_commits(monkeypatch):
    """What was aborted is committed."""
    monkeypatch.setattr(
        storage,
        "build_end_txn_marker",
        lambda **arguments: build_end_txn_marker(**{**arguments, "is_commit": True}),
    )


def failed_markers_are_not_sent_again(monkeypatch):
    """A marker that a leader has refused counts as written."""
    original = TransactionMarkerChannelManager._complete_marker
    monkeypatch.setattr(
        TransactionMarkerChannelManager,
        "_complete_marker",
        lambda self, marker, errors: original(
            self,
            marker,
            {(marker.transaction.metadata.producer_id, partition): ErrorCode.NONE for partition in marker.partitions},
        ),
    )


def offsets_count_without_a_marker(monkeypatch):
    """Offsets of a transaction count as soon as they are written."""
    original = GroupShard.replay
    monkeypatch.setattr(
        GroupShard, "replay", lambda self, record, offset, producer_id=-1: original(self, record, offset)
    )


def aborted_offsets_count_too(monkeypatch):
    """Whatever marker comes commits the offsets."""
    original = GroupShard.replay_marker

    def replay_marker(self, producer_id, marker_offset, *, is_commit):
        original(self, producer_id, marker_offset, is_commit=True)

    monkeypatch.setattr(GroupShard, "replay_marker", replay_marker)


def committed_offsets_are_dropped(monkeypatch):
    """Whatever marker comes drops the offsets."""
    original = GroupShard.replay_marker

    def replay_marker(self, producer_id, marker_offset, *, is_commit):
        original(self, producer_id, marker_offset, is_commit=False)

    monkeypatch.setattr(GroupShard, "replay_marker", replay_marker)


def producers_are_not_fenced(monkeypatch):
    """The coordinator serves old epochs of a producer id as the new one."""

    def check(metadata, producer):
        if metadata.state.is_prepared:
            raise coordinator.ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)

    def end_transaction(self, end, on_done):
        metadata = self.states.partition_of(end.transactional_id).transactions.get(end.transactional_id)
        if metadata is not None and end.is_from_client:
            end = end._replace(producer_epoch=metadata.producer_epoch)
        original(self, end, on_done)

    original = TransactionCoordinator.end_transaction
    monkeypatch.setattr(coordinator, "_check_producer", check)
    monkeypatch.setattr(TransactionCoordinator, "end_transaction", end_transaction)


def prepared_transactions_are_not_completed_after_a_failover(monkeypatch):
    """A new coordinator leaves what the one before has decided as it is."""
    monkeypatch.setattr(TransactionCoordinator, "_loaded", lambda *_: None)


def transactions_do_not_time_out(monkeypatch):
    """What a producer leaves open stays open."""
    monkeypatch.setattr(TransactionCoordinator, "abort_timed_out_transactions", lambda *_: None)


def transactions_are_not_loaded(monkeypatch):
    """A new coordinator begins with nothing."""
    original = TransactionStateManager.loaded

    def loaded(self, context):
        context.shard.transactions.clear()
        original(self, context)

    monkeypatch.setattr(TransactionStateManager, "loaded", loaded)


def ends_are_not_written(monkeypatch):
    """A commit is acknowledged, and its markers are sent, although no log has heard of it."""
    original = TransactionStateManager.append

    def append(self, transactional_id, coordinator_epoch, values, on_done, **keep):
        if values.state.is_prepared:
            partition = self.partition_for(transactional_id)
            known = self.find_in(partition, transactional_id, coordinator_epoch)
            known.complete_transition_to(values)
            on_done(ErrorCode.NONE)
        else:
            original(self, transactional_id, coordinator_epoch, values, on_done, **keep)

    monkeypatch.setattr(TransactionStateManager, "append", append)


def busy(seed, *actions):
    """Return a run of three producers with two ids, whose messages take some time."""
    return Schedule(
        seed,
        partitions=2,
        producers=(),
        consumers=0,
        transactional=(0, 1, 1),
        latency_ms=20,
        duration_ms=4_000,
        actions=actions,
    )


def moved(seed):
    """Return a run whose transactions get one coordinator after the other, with slow links."""
    links = permutations(broker_names(3), 2)
    return busy(
        seed,
        *(Action(400, "slow_link", link, 3_600, "40") for link in links),
        *(Action(500 + 200 * index, "move_transactions", (broker_name(index % 3 + 1),)) for index in range(16)),
    )


def led_anew(seed):
    """Return a run whose partitions get one leader after the other, with slow links."""
    links = permutations(broker_names(3), 2)
    return busy(
        seed,
        *(Action(400, "slow_link", link, 3_600, "40") for link in links),
        *(
            Action(500 + 100 * index, "transfer", (broker_name(index // 2 % 3 + 1),), value=str(index % 2))
            for index in range(32)
        ),
    )


DRAWN = [each for each in map(draw_schedule, range(30)) if each.transactional][:10]
MOVED = [moved(seed) for seed in range(4)]
LED_ANEW = [led_anew(seed) for seed in range(12)]

FOUND_BY = [
    (fetch_ignores_the_last_stable_offset, DRAWN, {"reads-end-at-the-last-stable-offset"}),
    (open_transactions_are_stable, DRAWN, {"open-transactions-are-not-read", "aborted-transactions-are-not-read"}),
    (aborted_transactions_are_not_listed, DRAWN, {"aborted-transactions-are-not-read"}),
    (marker_is_written_to_one_partition_only, DRAWN, {"transactions-end", "aborted-transactions-are-not-read"}),
    (every_marker_commits, DRAWN, {"aborted-transactions-are-not-read"}),
    (
        failed_markers_are_not_sent_again,
        LED_ANEW,
        {"transactions-end", "no-offset-without-its-records", "aborted-transactions-are-not-read"},
    ),
    (offsets_count_without_a_marker, DRAWN, {"no-offset-without-its-records"}),
    (aborted_offsets_count_too, DRAWN, {"no-offset-without-its-records"}),
    (committed_offsets_are_dropped, DRAWN, {"committed-offsets-stay"}),
    (producers_are_not_fenced, DRAWN, {"fenced-producers-stay-fenced"}),
    (prepared_transactions_are_not_completed_after_a_failover, MOVED, {"transactions-end"}),
    (transactions_do_not_time_out, DRAWN, {"transactions-end"}),
    (transactions_are_not_loaded, MOVED, {"transactional-ids-keep-their-producer-id"}),
    (ends_are_not_written, MOVED, {"committed-transactions-are-read"}),
]


@pytest.mark.parametrize(
    ("mutant", "schedules", "invariants"), FOUND_BY, ids=lambda each: getattr(each, "__name__", "")
)
def test_defect_is_found_by_its_invariant(mutant, schedules, invariants, monkeypatch):
    mutant(monkeypatch)
    found = next(filter(None, map(failed_invariant, schedules)), None)
    assert found in invariants


def test_sound_broker_passes_where_the_mutants_are_found():
    for schedule in (*MOVED[:2], *LED_ANEW[:2], *DRAWN[:3]):
        assert failed_invariant(schedule) is None
