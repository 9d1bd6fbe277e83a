"""A follower that sends the same fetch again, beside a twin whose leader reads everything anew.

A fetch is the same one if it is the same object, so the twin gets a copy each time.
"""

import random

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata import PartitionState
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.replica import FetchIsolation, FetchParams, FetchPartition
from broker_sim.replica.idle_fetch import idle_replica

TOPIC, LEADER, ALL = "topic", 1, (1, 2, 3)
FOLLOWERS = (2, 3)
BROKER_EPOCH = 5
LAG_TIME_MAX_MS = 10_000


class Leader:
    """Broker 1, which leads one partition, and what its followers ask of it."""

    def __init__(self, broker, *, copies):
        self.broker = broker
        self.partition = broker.lead()
        self.copies = copies
        self.wanted = {}
        self.epochs = dict.fromkeys(FOLLOWERS, BROKER_EPOCH)
        self.leader_epoch = 0
        self.partition_epoch = 0

    def fetch(self, follower, offset, log_start_offset=0):
        """Fetch as the follower does: with the same object as long as it asks for the same."""
        key = (offset, log_start_offset, self.leader_epoch)
        if self.copies or self.wanted.get(follower, (None,))[0] != key:
            fetch = FetchPartition(
                fetch_offset=offset,
                max_bytes=1_000_000,
                log_start_offset=log_start_offset,
                current_leader_epoch=self.leader_epoch,
            )
            self.wanted[follower] = key, fetch
        params = FetchParams(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1_000_000,
            isolation=FetchIsolation.LOG_END,
            replica_id=follower,
            replica_epoch=self.epochs[follower],
        )
        infos = [(TopicPartition(TOPIC, 0), self.wanted[follower][1])]
        results = []
        self.broker.manager.fetch_messages(params, infos, results.extend)
        self.broker.actions.try_complete_actions()
        ((_, data),) = results
        return data

    def is_idle(self, follower):
        _, fetch = self.wanted[follower]
        return idle_replica(self.partition, follower, fetch) is not None

    def assign(self, isr, leader=LEADER, epochs=0):
        self.leader_epoch += epochs
        self.partition_epoch += 1
        state = PartitionState(ALL, isr, leader, self.leader_epoch, self.partition_epoch)
        make = self.partition.make_leader if leader == LEADER else self.partition.make_follower
        make(state)

    def accept(self):
        """Accept the last proposal of a change of the ISR, if there is a new one."""
        if self.broker.proposals:
            self.broker.accept(self.partition)
            self.partition_epoch = self.partition.partition_epoch
            self.broker.proposals.clear()

    def state(self):
        log, replicas = self.partition.log, self.partition.replica_states
        names = (
            "log_end_offset",
            "log_start_offset",
            "last_caught_up_time_ms",
            "last_fetch_time_ms",
            "last_fetch_leader_log_end_offset",
            "broker_epoch",
        )
        return (
            log.high_watermark,
            log.log_end_offset,
            log.log_start_offset,
            sorted(replicas.isr_state.isr),
            replicas.isr_state.is_inflight,
            [pending.proposed_isr for pending in self.broker.proposals],
            {
                follower: [getattr(replica, name) for name in names]
                for follower, replica in sorted(replicas.followers.items())
            },
        )


def shown(data):
    return (
        data.error_code,
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        b"".join(data.records),
        data.size_bytes,
        data.diverging_epoch,
    )


@pytest.fixture
def leader(broker):
    leader = Leader(broker, copies=False)
    for follower in FOLLOWERS:
        leader.fetch(follower, 0)
    assert leader.is_idle(2)
    return leader


def random_step(rng, leaders):
    """Return an event, to be given to each leader."""
    end_offset = leaders[0].partition.log.log_end_offset
    high_watermark = leaders[0].partition.log.high_watermark
    follower = rng.choice(FOLLOWERS)
    return rng.choices(
        [
            ("fetch", follower, end_offset),
            ("fetch", follower, rng.randint(0, end_offset)),
            ("produce",),
            ("advance", rng.choice([1, 500, LAG_TIME_MAX_MS + 1])),
            ("shrink",),
            ("accept",),
            ("delete", rng.randint(0, high_watermark)),
            ("assign", (1, *rng.sample(FOLLOWERS, rng.randint(0, 2))), LEADER, rng.randint(0, 1)),
            ("assign", ALL, follower, 1),
            ("registered", follower),
        ],
        [12, 3, 3, 3, 1, 2, 1, 1, 0.5, 0.5],
    )[0]


def play(leader, step):
    """Let the event happen; return what the follower was told, None for other events."""
    what, *arguments = step
    broker = leader.broker
    if what == "fetch":
        return shown(leader.fetch(*arguments))
    if what == "produce" and leader.partition.is_leader:
        broker.produce(acks=1)
    elif what == "advance":
        broker.advance(*arguments)
    elif what == "shrink":
        leader.partition.maybe_shrink_isr()
    elif what == "accept":
        leader.accept()
    elif what == "delete" and leader.partition.is_leader:
        broker.delete_records(*arguments)
    elif what == "assign":
        broker.proposals.clear()
        leader.assign(*arguments)
    elif what == "registered":
        (follower,) = arguments
        broker.set_broker(follower, epoch=BROKER_EPOCH + 1)
        leader.epochs[follower] = BROKER_EPOCH + 1
    return None


@pytest.mark.parametrize("seed", range(30))
def test_fetch_again_tells_and_changes_the_same_as_a_fetch_that_reads(make_broker, seed):
    rng = random.Random(seed)
    leaders = [Leader(make_broker(), copies=False), Leader(make_broker(), copies=True)]
    idle = 0
    for number in range(400):
        step = random_step(rng, leaders)
        if step[0] == "fetch" and step[1] in leaders[0].wanted:
            idle += leaders[0].is_idle(step[1])
        told = [play(leader, step) for leader in leaders]
        assert told[0] == told[1], (number, step)
        states = [leader.state() for leader in leaders]
        assert states[0] == states[1], (number, step)
    assert idle > 20


def test_fetch_again_is_not_read_and_counts_as_caught_up(broker, leader):
    first = leader.fetch(2, 0)
    broker.advance(700)
    assert leader.fetch(2, 0) is first
    replica = leader.partition.replica_states.followers[2]
    assert replica.last_caught_up_time_ms == broker.clock.now_ms()


def test_fetch_again_of_an_old_epoch_is_refused(broker, leader):
    broker.set_broker(2, epoch=BROKER_EPOCH + 1)
    assert leader.is_idle(2)
    assert leader.fetch(2, 0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_fetch_again_of_a_follower_that_left_the_isr_lets_it_back(broker, leader):
    leader.assign((1, 3))
    assert not leader.is_idle(2)
    leader.fetch(2, 0)
    assert [pending.proposed_isr for pending in broker.proposals] == [{1, 2, 3}]


def test_fetch_is_read_again_after_an_append(broker, leader):
    broker.produce(acks=1)
    assert not leader.is_idle(2)


def test_fetch_is_read_again_after_a_new_high_watermark(broker, leader):
    broker.produce(acks=1)
    for _ in range(2):
        leader.fetch(2, 1)
    assert leader.is_idle(2)
    leader.fetch(3, 1)
    assert not leader.is_idle(2)
    assert leader.fetch(2, 1).high_watermark == 1


def test_fetch_is_read_again_after_a_new_log_start(broker, leader):
    broker.produce(acks=1)
    for follower in (*FOLLOWERS, *FOLLOWERS):
        leader.fetch(follower, 1)
    assert leader.is_idle(2)
    broker.delete_records(1)
    assert leader.fetch(2, 1).log_start_offset == 1


@pytest.mark.parametrize("new_leader", [LEADER, 2])
def test_fetch_is_read_again_after_a_new_epoch(leader, new_leader):
    leader.assign(ALL, leader=new_leader, epochs=1)
    _, fetch = leader.wanted[2]
    assert idle_replica(leader.partition, 2, fetch) is None
