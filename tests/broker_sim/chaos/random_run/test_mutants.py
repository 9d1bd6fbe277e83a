"""Defects that are put into the broker on purpose: random runs have to find each of them.

Each mutant takes pytest's `monkeypatch` and replaces one method of the product by a wrong one.
"""

import pytest

from broker_sim.chaos.faults.action import CONTROLLER, broker_name
from broker_sim.chaos.random_run import Action, Schedule, draw_schedule
from broker_sim.controller import partition_change_builder
from broker_sim.errors import ErrorCode
from broker_sim.log.partition_log import PartitionLog
from broker_sim.log.producer_state_manager import ProducerStateManager
from broker_sim.protocol.record_batch import parse_header
from broker_sim.replica.delayed_acks import DelayedAcks
from broker_sim.replica.fetcher import Outcome, ReplicaFetcher
from broker_sim.replica.leader_replicas import LeaderReplicas
from broker_sim.replica.partition import Partition

from .outcomes import failed_invariant


def high_watermark_ignores_the_slowest_follower(monkeypatch):
    """The high watermark moves one follower too early."""

    def candidate(self, leader_end_offset):
        isr = self.isr_state.maximal_isr
        ends = [f.log_end_offset for f in self.followers.values() if f.broker_id in isr]
        return min(leader_end_offset, *sorted([*ends, leader_end_offset])[1:])

    monkeypatch.setattr(LeaderReplicas, "high_watermark_candidate", candidate)


def pending_isr_uses_the_proposed_members(monkeypatch):
    """While the ISR is about to shrink, the high watermark already leaves the leaving member out."""
    original = LeaderReplicas.high_watermark_candidate

    def candidate(self, leader_end_offset):
        state = self.isr_state
        if not state.is_inflight or len(state.proposed_isr) >= len(state.isr):
            return original(self, leader_end_offset)
        ends = [self.followers[m].log_end_offset for m in state.proposed_isr if m in self.followers]
        return min([leader_end_offset, *ends])

    monkeypatch.setattr(LeaderReplicas, "high_watermark_candidate", candidate)


def follower_acknowledges_before_it_appends(monkeypatch):
    """A follower's next fetch names what it has received, which is appended 1 ms later."""

    def process(self, topic_partition, state, data):
        if data.size_bytes:
            last = parse_header(data.records[-1])
            end = last.base_offset + last.last_offset_delta + 1
            state.fetch = self._next_fetch(state.partition, end)
            state.fetch.last_fetched_epoch = last.partition_leader_epoch
            append = state.partition.append_records_to_follower
            self._process.call_later(1, append, data.records)
        return Outcome.APPLIED

    monkeypatch.setattr(ReplicaFetcher, "_process_data", process)


def isr_never_shrinks(monkeypatch):
    """A leader keeps followers in the ISR that lag behind."""
    monkeypatch.setattr(Partition, "maybe_shrink_isr", lambda self: None)


def isr_takes_followers_too_early(monkeypatch):
    """A follower joins the ISR without having reached the high watermark."""
    original = LeaderReplicas.may_join_isr
    monkeypatch.setattr(
        LeaderReplicas,
        "may_join_isr",
        lambda self, follower, high_watermark, epoch_start: original(self, follower, -1, -1),
    )


def any_live_replica_is_elected(monkeypatch):
    """The controller elects replicas that are not in the ISR."""

    def elect(self, target):
        for replica in (self.partition.leader, *target.replicas):
            if self.is_acceptable_leader(replica):
                return replica, replica not in target.isr
        return partition_change_builder.NO_LEADER, False

    monkeypatch.setattr(partition_change_builder.PartitionChangeBuilder, "_elect", elect)


def truncation_is_skipped(monkeypatch):
    """A follower keeps what its new leader does not have."""

    def truncate(self, state, leader_epoch, leader_end_offset):
        state.fetch = self._next_fetch(state.partition, state.partition.log.log_end_offset)
        state.fetch.last_fetched_epoch = -1

    monkeypatch.setattr(ReplicaFetcher, "_truncate", truncate)


def truncation_goes_too_far(monkeypatch):
    """A follower truncates to its high watermark, as before KIP-101."""

    original = PartitionLog.truncate_to
    monkeypatch.setattr(
        PartitionLog, "truncate_to", lambda self, offset: original(self, min(offset, max(self.high_watermark - 1, 0)))
    )


def duplicates_are_not_detected(monkeypatch):
    """A retry of an idempotent producer is not recognised."""
    monkeypatch.setattr(ProducerStateManager, "find_duplicate_batch", lambda self, header: None)


def producers_are_forgotten_in_recovery(monkeypatch):
    """A killed broker comes back without the state of its producers."""
    original = PartitionLog.recover

    def recover(self):
        original(self)
        self.producer_state.forget()

    monkeypatch.setattr(PartitionLog, "recover", recover)


def sequences_are_not_checked(monkeypatch):
    """Retries are appended again: neither duplicates nor sequences are looked at."""
    duplicates_are_not_detected(monkeypatch)
    monkeypatch.setattr(ProducerStateManager, "check", lambda self, *args: None)


def produce_is_answered_twice(monkeypatch):
    """A parked produce sends its response twice."""
    original = DelayedAcks.on_complete

    def on_complete(self):
        original(self)
        original(self)

    monkeypatch.setattr(DelayedAcks, "on_complete", on_complete)


def expired_produce_is_never_answered(monkeypatch):
    """A produce whose time is over gets no response."""
    original = DelayedAcks.on_complete

    def on_complete(self):
        if self.error_code is not ErrorCode.REQUEST_TIMED_OUT:
            original(self)

    monkeypatch.setattr(DelayedAcks, "on_complete", on_complete)


def acks_all_does_not_wait(monkeypatch):
    """A produce with acks=all is answered as soon as the leader has it."""
    original = Partition.check_enough_replicas_reach_offset

    def check(self, required_offset):
        enough, error_code = original(self, required_offset)
        return (enough or self.is_leader), error_code

    monkeypatch.setattr(Partition, "check_enough_replicas_reach_offset", check)


def acks_1_is_answered_for_records_that_are_dropped(monkeypatch):
    """A leader answers acks=1, and sometimes the batch is not in its log afterwards."""
    original = Partition.append_records_to_leader

    def append(self, records, required_acks, *more):
        answer = original(self, records, required_acks, *more)
        info, _ = answer
        if required_acks == 1 and info.first_offset % 10 == 9:
            self.log.truncate_to(info.first_offset)
        return answer

    monkeypatch.setattr(Partition, "append_records_to_leader", append)


def min_isr_is_not_checked_after_the_append(monkeypatch):
    """The high watermark moves although the ISR is smaller than `min.insync.replicas`."""
    monkeypatch.setattr(Partition, "is_under_min_isr", property(lambda self: False))


def on_each(kind, at_ms, for_ms):
    """Return the same action on every broker."""
    return tuple(Action(at_ms, kind, (broker_name(broker),), for_ms) for broker in (1, 2, 3))


def deaf_follower_of(leader):
    """Return a run in which a follower leaves the ISR, of which the controller hears late."""
    return Schedule(
        1,
        producers=("acks_1", "acks_1"),
        duration_ms=4_000,
        actions=(
            Action(500, "cut_link", (broker_name(leader), broker_name(leader % 3 + 1)), 2_500),
            Action(510, "slow_link", (broker_name(leader), CONTROLLER), 2_500, "400"),
        ),
    )


def unheard_leader(leader):
    """Return a run in which a follower does not hear its leader; the controller hears both."""
    return Schedule(
        1,
        producers=("acks_1", "acks_all"),
        duration_ms=3_500,
        actions=(Action(500, "cut_link", (broker_name(leader), broker_name(leader % 3 + 1)), 2_500),),
    )


def leader_falls_soon(leader):
    """Return a run in which a follower does not hear its leader for less than two limits of the check."""
    return Schedule(
        1,
        producers=("acks_1",),
        duration_ms=2_500,
        actions=(
            Action(300, "cut_link", (broker_name(leader), broker_name(leader % 3 + 1)), 1_900),
            Action(2_200, "kill", (broker_name(leader),), 100),
        ),
    )


def lonely_follower(leader):
    """Return a run in which both in-sync replicas are killed, after the third has left the ISR."""
    follower, third = leader % 3 + 1, (leader + 1) % 3 + 1
    return Schedule(
        1,
        duration_ms=5_000,
        actions=(
            Action(500, "cut_link", (broker_name(leader), broker_name(follower)), 4_000),
            Action(2_200, "kill", (broker_name(leader),), 2_500),
            Action(2_200, "kill", (broker_name(third),), 2_500),
        ),
    )


def deposed_leader(broker):
    """Return a run in which a broker is cut off, and written to by clients that do not know it."""
    return Schedule(
        1,
        producers=("acks_1", "acks_1"),
        duration_ms=5_000,
        actions=(Action(500, "isolate", (broker_name(broker),), 2_500),),
    )


UNHEARD_RESPONSES = [
    Schedule(
        seed,
        producers=("idempotent",) * 3,
        duration_ms=4_000,
        actions=(*on_each("mute", 500, 2_000), *on_each("kill", 1_500, 100)),
    )
    for seed in range(1, 9)
]
TWO_ARE_KILLED = Schedule(
    1,
    producers=("acks_1", "acks_all"),
    duration_ms=5_000,
    actions=(Action(500, "kill", ("broker-1",), 4_000), Action(900, "kill", ("broker-2",), 3_500)),
)
CALM = Schedule(1, producers=("acks_1", "acks_all"), duration_ms=1_000)
DRAWN = [draw_schedule(seed) for seed in range(20)]
DEPOSED = [deposed_leader(broker) for broker in (1, 2, 3)]
UNHEARD_LEADERS = [unheard_leader(broker) for broker in (1, 2, 3)]
FALLING_LEADERS = [leader_falls_soon(broker) for broker in (1, 2, 3)]

FOUND_BY = [
    (high_watermark_ignores_the_slowest_follower, DRAWN, {"high-watermark-within-isr"}),
    (
        pending_isr_uses_the_proposed_members,
        [deaf_follower_of(broker) for broker in (1, 2, 3)],
        {"high-watermark-within-isr"},
    ),
    (follower_acknowledges_before_it_appends, DRAWN, {"high-watermark-within-isr"}),
    (isr_never_shrinks, UNHEARD_LEADERS, {"isr-shrinks"}),
    (isr_never_shrinks, FALLING_LEADERS, {"isr-shrinks"}),
    (isr_takes_followers_too_early, DRAWN, {"high-watermark-within-isr"}),
    (any_live_replica_is_elected, [lonely_follower(broker) for broker in (1, 2, 3)], {"leader-is-eligible"}),
    (truncation_is_skipped, DEPOSED, {"replicas-agree"}),
    (truncation_goes_too_far, DEPOSED, {"high-watermark-within-isr", "replicas-agree"}),
    (duplicates_are_not_detected, UNHEARD_RESPONSES, {"sequence-goes-on"}),
    (producers_are_forgotten_in_recovery, UNHEARD_RESPONSES, {"no-duplicates"}),
    (sequences_are_not_checked, UNHEARD_RESPONSES, {"no-duplicates"}),
    (produce_is_answered_twice, DRAWN, {"AssertionError", "answered-once"}),
    (expired_produce_is_never_answered, DRAWN, {"requests-are-answered", "transactions-end"}),
    (
        acks_all_does_not_wait,
        DRAWN,
        {
            "acknowledged-records-are-replicated",
            "acknowledged-records-stay",
            "sequence-goes-on",
            "one-owner-per-generation",
            "committed-offsets-stay",
        },
    ),
    (acks_1_is_answered_for_records_that_are_dropped, [CALM], {"acknowledged-records-stay"}),
    (min_isr_is_not_checked_after_the_append, [TWO_ARE_KILLED], {"high-watermark-waits-for-min-isr"}),
]


@pytest.mark.parametrize(
    ("mutant", "schedules", "invariants"), FOUND_BY, ids=lambda each: getattr(each, "__name__", "")
)
def test_defect_is_found_by_its_invariant(mutant, schedules, invariants, monkeypatch):
    mutant(monkeypatch)
    found = next(filter(None, map(failed_invariant, schedules)), None)
    assert found in invariants


@pytest.mark.parametrize(
    "schedule",
    [*DEPOSED, *UNHEARD_LEADERS, *FALLING_LEADERS, CALM, *UNHEARD_RESPONSES[:2], TWO_ARE_KILLED, deaf_follower_of(1)],
)
def test_sound_broker_passes_where_the_mutants_are_found(schedule):
    assert failed_invariant(schedule) is None
