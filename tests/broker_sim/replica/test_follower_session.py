"""A follower's session, compared with a twin that begins a new session with each fetch.

The twin's leader reads all partitions at each fetch, and answers with all of them.
"""

import random

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata import PartitionState
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.replica import INITIAL_EPOCH, FetchIsolation, FetchParams, FetchPartition, FollowerFetch
from broker_sim.replica.leader_link import ReplicaServer

TOPIC, LEADER, ALL = "topic", 1, (1, 2, 3)
FOLLOWERS = (2, 3)
NUMBERS = (0, 1)
BROKER_EPOCH = 5
LAG_TIME_MAX_MS = 10_000


class Leader:
    """Broker 1, which leads two partitions, and the requests and responses of its followers."""

    def __init__(self, broker, *, has_sessions=True):
        self.broker = broker
        self.partitions = [broker.lead(number) for number in NUMBERS]
        self.server = ReplicaServer(broker.manager, broker.actions)
        self.has_sessions = has_sessions
        self.session_epochs = dict.fromkeys(FOLLOWERS, INITIAL_EPOCH)
        self.wanted = {}
        self.heard = {}
        self.epochs = dict.fromkeys(FOLLOWERS, BROKER_EPOCH)
        self.leader_epoch = 0
        self.partition_epoch = 0

    @property
    def partition(self):
        return self.partitions[0]

    def end_session(self, follower):
        """The follower forgets its session, as after a fetch without an answer."""
        self.session_epochs[follower] = INITIAL_EPOCH
        for number in NUMBERS:
            self.wanted.pop((follower, number), None)

    def register_again(self, follower):
        """The follower gets a new broker epoch, with which it begins a session."""
        self.epochs[follower] = BROKER_EPOCH + 1
        self.broker.set_broker(follower, epoch=BROKER_EPOCH + 1)
        self.end_session(follower)

    def fetch(self, follower, *offsets, log_start_offset=0, max_wait_ms=0):
        """Fetch the partitions, the next one for each of `offsets`; return the followers that were answered.

        Only what the session does not have is sent. A negative offset stands for none.
        """
        if not self.has_sessions:
            self.end_session(follower)
        to_send, to_forget = [], []
        for number, offset in enumerate(offsets):
            key, wanted = (follower, number), (offset, log_start_offset, self.leader_epoch)
            if self.wanted.get(key) == wanted:
                continue
            if offset < 0:
                if self.wanted.pop(key, None) is not None:
                    to_forget.append(TopicPartition(TOPIC, number))
                continue
            self.wanted[key] = wanted
            fetch = FetchPartition(
                fetch_offset=offset,
                max_bytes=1_000_000,
                log_start_offset=log_start_offset,
                current_leader_epoch=self.leader_epoch,
            )
            to_send.append((TopicPartition(TOPIC, number), fetch))
        params = FetchParams(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1_000_000,
            isolation=FetchIsolation.LOG_END,
            replica_id=follower,
            replica_epoch=self.epochs[follower],
        )
        request = FollowerFetch(params, self.session_epochs[follower], to_send, to_forget)
        self.session_epochs[follower] += 1
        answers = []

        def answered(results):
            answer = {key.partition: shown(data) for key, data in results}
            self.heard.update({(follower, number): data for number, data in answer.items()})
            answers.append(answer)

        self.server.serve_fetch(request, answered)
        return answers

    def assign(self, isr, leader=LEADER, epochs=0):
        self.leader_epoch += epochs
        self.partition_epoch += 1
        state = PartitionState(ALL, isr, leader, self.leader_epoch, self.partition_epoch)
        for partition in self.partitions:
            (partition.make_leader if leader == LEADER else partition.make_follower)(state)

    def accept(self):
        """Accept the proposed changes of the ISR."""
        for partition in self.partitions:
            pending = partition.isr_state
            if pending.is_inflight:
                epoch = pending.partition_epoch + 1
                partition.complete_alter_partition(pending, pending.proposed_isr, pending.leader_epoch, epoch)
                self.partition_epoch = max(self.partition_epoch, epoch)
        self.broker.actions.try_complete_actions()
        self.broker.proposals.clear()

    def state(self):
        return [self._state_of(partition) for partition in self.partitions]

    def _state_of(self, partition):
        log, replicas = partition.log, partition.replica_states
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
            {
                follower: [getattr(replica, name) for name in names]
                for follower, replica in sorted(replicas.followers.items())
            },
        )


def shown(data):
    """Return the fields of a response that a follower reads."""
    return (data.error_code, data.high_watermark, data.log_start_offset, b"".join(data.records), data.diverging_epoch)


def random_step(rng, leader):
    """Return an event to apply to each leader."""
    ends = [partition.log.log_end_offset for partition in leader.partitions]
    follower, number = rng.choice(FOLLOWERS), rng.choice(NUMBERS)
    some = [rng.choice([end, end, rng.randint(-1, end)]) for end in ends]
    return rng.choices(
        [
            ("fetch", follower, *ends),
            ("fetch", follower, *some),
            ("end session", follower),
            ("produce", number),
            ("advance", rng.choice([1, 500, LAG_TIME_MAX_MS + 1])),
            ("shrink",),
            ("accept",),
            ("delete", rng.randint(0, leader.partitions[number].log.high_watermark), number),
            ("assign", (1, *rng.sample(FOLLOWERS, rng.randint(0, 2))), LEADER, rng.randint(0, 1)),
            ("assign", ALL, follower, 1),
            ("registered", follower),
        ],
        [12, 3, 0.5, 3, 3, 1, 2, 1, 1, 0.5, 0.5],
    )[0]


def play(leader, step):
    """Apply the event."""
    what, *arguments = step
    broker = leader.broker
    if what == "fetch":
        assert len(leader.fetch(*arguments)) == 1
    elif what == "end session":
        leader.end_session(*arguments)
    elif what == "produce" and leader.partition.is_leader:
        broker.produce(*arguments, acks=1)
    elif what == "advance":
        broker.advance(*arguments)
    else:
        change(leader, what, *arguments)


def change(leader, what, *arguments):
    """Apply an event that does not come from a follower."""
    broker = leader.broker
    if what == "shrink":
        broker.manager.maybe_shrink_isr()
    elif what == "accept":
        leader.accept()
    elif what == "delete" and leader.partition.is_leader:
        broker.delete_records(*arguments)
    elif what == "assign":
        broker.proposals.clear()
        leader.assign(*arguments)
    elif what == "registered":
        leader.register_again(*arguments)


@pytest.mark.parametrize("seed", range(30))
def test_session_returns_and_changes_the_same_as_full_fetches(make_broker, seed):
    rng = random.Random(seed)
    twins = [Leader(make_broker()), Leader(make_broker(), has_sessions=False)]
    idle = 0
    for number in range(400):
        step = random_step(rng, twins[0])
        for leader in twins:
            play(leader, step)
        if step[0] == "fetch":
            for heard in [key for key in twins[1].heard if key not in twins[1].wanted]:
                del twins[1].heard[heard]
                del twins[0].heard[heard]
        assert twins[0].heard == twins[1].heard, (seed, number, step)
        states = [leader.state() for leader in twins]
        assert states[0] == states[1], (seed, number, step)
        idle += is_idle(twins[0], 2)
    assert idle > 20, seed


def is_idle(leader, follower, number=0):
    replica = leader.partitions[number].replica_states.followers.get(follower)
    return replica is not None and replica.idle is not None


@pytest.fixture
def leader(broker):
    """A leader whose followers have everything."""
    leader = Leader(broker)
    for follower in FOLLOWERS:
        assert list(leader.fetch(follower, 0, 0)[0]) == [0, 1]
        assert is_idle(leader, follower)
    return leader


def test_fetch_without_changes_returns_no_partitions_and_counts_for_all(broker, leader):
    broker.advance(700)
    assert leader.fetch(2, 0, 0) == [{}]
    for partition in leader.partitions:
        replica = partition.replica_states.followers[2]
        assert replica.last_caught_up_time_ms == broker.clock.now_ms()
        assert replica.last_fetch_time_ms == broker.clock.now_ms()


def test_follower_is_caught_up_as_of_its_last_fetch_before_the_append(broker, leader):
    broker.advance(700)
    leader.fetch(2, 0, 0)
    fetched_ms = broker.clock.now_ms()
    broker.advance(1)
    broker.produce(0, acks=1)
    leader.end_session(2)
    replica = leader.partition.replica_states.followers[2]
    assert replica.last_caught_up_time_ms == fetched_ms


def test_parked_fetch_is_answered_with_the_partition_that_was_appended_to(broker, leader):
    answers = leader.fetch(2, 0, 0, max_wait_ms=500)
    broker.produce(1, acks=1)
    ((answer,),) = [list(answer) for answer in answers]
    assert answer == 1


def test_expired_fetch_returns_the_high_watermark_that_it_read_at_first(broker, leader):
    broker.produce(0, acks=1)
    for follower in FOLLOWERS:
        leader.fetch(follower, 1, 0)
    answers = leader.fetch(2, 1, 0, max_wait_ms=500)
    assert is_idle(leader, 2)
    broker.advance(500)
    ((answer,),) = [list(answer.items()) for answer in answers]
    assert answer == (0, (ErrorCode.NONE, 1, 0, b"", None))


def test_fetch_with_an_old_broker_epoch_is_refused_for_every_partition(broker, leader):
    broker.set_broker(2, epoch=BROKER_EPOCH + 1)
    ((answer,),) = [leader.fetch(2, 0, 0)]
    assert [data[0] for data in answer.values()] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2


def test_follower_removed_from_the_isr_returns_with_its_next_fetch(broker, leader):
    leader.assign((1, 3))
    leader.fetch(2, 0, 0)
    assert [pending.proposed_isr for pending in broker.proposals] == [{1, 2, 3}] * 2


def test_follower_joins_the_isr_with_its_first_fetch_once_eligible(broker, leader):
    broker.set_broker(2, fenced=True)
    leader.assign((1, 3))
    leader.fetch(2, 0, 0)
    assert not broker.proposals
    broker.set_broker(2)
    leader.fetch(2, 0, 0)
    assert [pending.proposed_isr for pending in broker.proposals] == [{1, 2, 3}] * 2


def test_forgotten_partition_is_neither_returned_nor_counted_as_fetched(broker, leader):
    fetched_ms = broker.clock.now_ms()
    broker.advance(700)
    leader.fetch(2, -1, 0)
    broker.produce(0, acks=1)
    assert leader.fetch(2, -1, 0) == [{}]
    assert leader.partition.replica_states.followers[2].last_fetch_time_ms == fetched_ms


@pytest.mark.parametrize("epoch", [1, 3])
def test_fetch_with_another_epoch_than_the_next_one_has_no_session(leader, epoch):
    leader.fetch(2, 0, 0)
    leader.session_epochs[2] = epoch
    answers = []
    params = FetchParams(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1,
        isolation=FetchIsolation.LOG_END,
        replica_id=2,
        replica_epoch=BROKER_EPOCH,
    )
    leader.server.serve_fetch(FollowerFetch(params, epoch, []), answers.append)
    assert answers == [None]


def test_partitions_with_records_take_turns(broker, leader):
    """The partition fetched last is read last, so that a busy partition does not starve the others."""
    for number in NUMBERS:
        broker.produce(number, acks=1)
    assert list(leader.fetch(2, 0, 0)[0]) == [0, 1]
    broker.produce(0, acks=1)
    assert list(leader.fetch(2, 1, 0)[0]) == [1, 0]
