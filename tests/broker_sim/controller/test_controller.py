"""Claims that hold after any order of requests, heartbeats and passing time."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from broker_sim.controller import CreatableTopic, ElectionType, Reassignment
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import changes_between
from broker_sim.metadata.topic_partition import TopicPartition

BROKERS = st.integers(1, 4)
TOPICS = st.sampled_from(["a", "b"])


class ControllerMachine(RuleBasedStateMachine):
    def __init__(self, make_cluster):
        super().__init__()
        self.make_cluster = make_cluster

    @initialize(elr=st.booleans(), seed=st.integers(0, 2**16))
    def start(self, elr, seed):
        self.elr = elr
        self.cluster = self.make_cluster(seed=seed, elr=elr)
        self.seen = self.cluster.image
        self.heard_ms = {}
        self.replicas = {}

    @rule(broker=BROKERS, clean=st.booleans(), again=st.booleans())
    def register(self, broker, clean, again):
        known = broker in self.cluster.epochs
        before = self.cluster.image.brokers.get(broker)
        new_incarnation = not (known and again)
        session_lasts = (
            before is not None
            and new_incarnation
            and broker in self.heard_ms
            and self.cluster.clock.now_ms() - self.heard_ms[broker] <= 9_000
        )
        if session_lasts:
            with pytest.raises(ApiError) as refused:
                self.cluster.register(broker)
            assert refused.value.error_code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
            return
        epoch = self.cluster.register(broker, clean=clean, new_incarnation=new_incarnation)
        if before is not None and epoch != before.epoch:
            assert epoch > before.epoch
        if epoch == self.cluster.image.version:
            self.heard_ms.pop(broker, None)

    @rule(broker=BROKERS, shutdown=st.booleans(), lag=st.integers(0, 2))
    def heartbeat(self, broker, shutdown, lag):
        if broker not in self.cluster.epochs:
            return
        version = self.cluster.image.version - lag
        reply = self.cluster.heartbeat(broker, shutdown=shutdown, version=version)
        self.heard_ms[broker] = self.cluster.clock.now_ms()
        assert self.cluster.image.brokers[broker].fenced == reply.is_fenced

    @rule(broker=BROKERS)
    def stay_in_touch(self, broker):
        if broker in self.cluster.epochs:
            self.cluster.heartbeat(broker)
            self.heard_ms[broker] = self.cluster.clock.now_ms()

    @rule(ms=st.sampled_from([1, 10, 500, 1_125, 4_000, 9_001, 30_000, 300_000]))
    def time_passes(self, ms):
        end_ms = self.cluster.clock.now_ms() + ms
        while self.cluster.controller.next_deadline_ms() <= end_ms:
            self.cluster.clock.advance_to(self.cluster.controller.next_deadline_ms())
            self.cluster.controller.tick()
        self.cluster.clock.advance_to(end_ms)

    @rule(
        name=TOPICS,
        partitions=st.integers(1, 3),
        factor=st.integers(1, 3),
        minimum=st.integers(1, 3),
        unclean=st.booleans(),
    )
    def create(self, name, partitions, factor, minimum, unclean):
        configs = {"min.insync.replicas": str(minimum), "unclean.leader.election.enable": str(unclean).lower()}
        topic = CreatableTopic(name, partitions, factor, configs=configs)
        (result,) = self.cluster.controller.create_topics([topic])
        assert result.outcome.error_code in {
            ErrorCode.NONE,
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.INVALID_REPLICATION_FACTOR,
        }

    @rule(name=TOPICS)
    def delete(self, name):
        self.cluster.controller.delete_topics([name])

    @rule(name=TOPICS, number=st.integers(0, 2), keep=st.sets(BROKERS), old=st.booleans())
    def alter_partition(self, name, number, keep, old):
        state = self._partition(name, number)
        if state is None or not state.has_leader:
            return
        isr = [r for r in state.replicas if r in keep or r == state.leader]
        epochs = {"partition_epoch": state.partition_epoch - 1} if old else {}
        result = self.cluster.alter(name, isr, number=number, **epochs)
        if old:
            assert result.error_code is ErrorCode.INVALID_UPDATE_VERSION
        elif result.error_code is ErrorCode.NONE:
            assert not result.state.recovering
        else:
            assert result.error_code in {ErrorCode.INELIGIBLE_REPLICA, ErrorCode.NEW_LEADER_ELECTED}

    @rule(election_type=st.sampled_from(ElectionType))
    def elect(self, election_type):
        self.cluster.controller.elect_leaders(election_type, None)

    @rule(name=TOPICS, number=st.integers(0, 2), leader=BROKERS)
    def transfer_leadership(self, name, number, leader):
        before, image = self._partition(name, number), self.cluster.image
        in_sync = before is not None and leader in before.isr
        can_lead = in_sync and leader in image.brokers and image.brokers[leader].is_active
        if can_lead:
            self.cluster.controller.transfer_leadership(TopicPartition(name, number), leader)
            assert self._partition(name, number).leader == leader
        else:
            with pytest.raises(ApiError):
                self.cluster.controller.transfer_leadership(TopicPartition(name, number), leader)

    @rule(
        name=TOPICS, number=st.integers(0, 2), wanted=st.none() | st.lists(BROKERS, min_size=1, max_size=3, unique=True)
    )
    def reassign(self, name, number, wanted):
        self.cluster.controller.alter_partition_reassignments([Reassignment(name, number, wanted)])

    @invariant()
    def partitions_are_sound(self):
        image = self.cluster.image
        for _, state in image.each_partition():
            assert set(state.isr) <= set(state.replicas)
            assert not set(state.isr) & set(state.elr)
            assert self.elr or (state.isr and not state.elr)
            if state.has_leader:
                assert state.leader in state.isr
                assert image.brokers[state.leader].is_active
            if self.elr and not state.has_leader:
                # Cancelling a reassignment puts one old replica into an ISR of new ones, alive or not.
                assert len(state.isr) <= 1
            elif self.elr:
                assert all(image.brokers[r].is_active for r in state.isr)
            elif len(state.isr) > 1:
                assert any(image.brokers[r].is_active for r in state.isr)

    @invariant()
    def epochs_only_grow_and_by_the_rules(self):
        before, self.seen = self.seen, self.cluster.image
        assert self.seen.version >= before.version
        for tp, topic, state in changes_between(before, self.seen).partitions:
            old = before.partition(tp)
            if old is None or before.topics[tp.topic].topic_id != topic.topic_id:
                self.replicas[tp] = set(state.replicas)
                continue
            # Replicas that a reassignment removed may stay in the ELR, as in Kafka.
            self.replicas[tp] |= set(state.replicas)
            assert set(state.elr) <= self.replicas[tp]
            assert state.partition_epoch > old.partition_epoch
            assert state.leader_epoch >= old.leader_epoch
            if state.leader != old.leader:
                assert state.leader_epoch > old.leader_epoch

    @invariant()
    def silent_brokers_get_fenced_in_time(self):
        now_ms = self.cluster.clock.now_ms()
        for broker in self.cluster.image.alive_brokers():
            # One check may be due, one broker is fenced at a time.
            silent_ms = now_ms - self.heard_ms[broker.broker_id]
            assert silent_ms <= 9_000 + 1_125 + 4 * 10

    @invariant()
    def every_image_was_published(self):
        if self.cluster.images:
            assert self.cluster.images[-1] is self.cluster.image

    def _partition(self, name, number):
        topic = self.cluster.image.topics.get(name)
        return None if topic is None else topic.partition(number)


def test_partitions_and_epochs_stay_sound_in_any_order_of_events(make_cluster):
    run_state_machine_as_test(
        lambda: ControllerMachine(make_cluster),
        settings=settings(max_examples=60, stateful_step_count=40, deadline=None),
    )
