"""A controller with a clock that the test moves, and brokers whose requests the test sends."""

from random import Random

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import BrokerConfig, Endpoint
from broker_sim.controller import DEFAULT_FEATURES, Controller, CreatableTopic, IsrMember, PartitionAlteration
from broker_sim.metadata.feature_names import ELIGIBLE_LEADER_REPLICAS_VERSION
from broker_sim.metadata.topic_partition import TopicPartition


class ControlledCluster:
    """Brokers send heartbeats only when told, or while time passes as `alive`."""

    def __init__(self, configs=None, *, seed=1, elr=True, features=DEFAULT_FEATURES, **options):
        self.clock = VirtualClock()
        self.images = []
        if not elr:
            features = {**features, ELIGIBLE_LEADER_REPLICAS_VERSION: 0}
        self.controller = Controller(
            self.clock,
            Random(seed),
            BrokerConfig.from_mapping(configs or {}),
            publish=self.images.append,
            cluster_id="cluster",
            features=features,
            **options,
        )
        self.epochs = {}
        self.incarnations = {}

    @property
    def image(self):
        return self.controller.image

    def register(self, broker_id, *, rack=None, new_incarnation=True, clean=False):
        incarnation = self.incarnations.get(broker_id, 0) + new_incarnation
        previous = self.epochs.get(broker_id, -1) if clean else -1
        epoch = self.controller.register_broker(
            broker_id,
            endpoints=(Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id),),
            rack=rack,
            incarnation_id=_uuid(broker_id, incarnation),
            previous_broker_epoch=previous,
        )
        self.incarnations[broker_id] = incarnation
        self.epochs[broker_id] = epoch
        return epoch

    def heartbeat(self, broker_id, *, epoch=None, shutdown=False, version=None):
        version = self.image.version if version is None else version
        return self.controller.broker_heartbeat(
            broker_id,
            self.epochs[broker_id] if epoch is None else epoch,
            wants_shutdown=shutdown,
            current_metadata_version=version,
        )

    def start(self, *broker_ids, rack=None):
        for broker_id in broker_ids:
            self.register(broker_id, rack=rack)
            assert not self.heartbeat(broker_id).is_fenced
        return self

    def pass_time(self, ms, alive=()):
        """Let time pass in steps of at most 500 ms, with heartbeats of the brokers alive."""
        end_ms = self.clock.now_ms() + ms
        while self.clock.now_ms() < end_ms:
            self.clock.advance_to(min(end_ms, self.clock.now_ms() + 500))
            for broker_id in alive:
                self.heartbeat(broker_id)
            if self.controller.next_deadline_ms() <= self.clock.now_ms():
                self.controller.tick()

    def kill(self, *broker_ids):
        """Let the sessions of these brokers end while all others stay in touch."""
        others = [b.broker_id for b in self.image.alive_brokers() if b.broker_id not in broker_ids]
        self.pass_time(12_000, alive=others)

    def create(self, name, *replicas, configs=None):
        """Create a topic whose partitions have exactly these replicas."""
        (result,) = self.controller.create_topics(
            [CreatableTopic(name, assignments=list(enumerate(replicas)), configs=configs or {})]
        )
        assert result.outcome.ok, result
        return result.topic_id

    def partition(self, name, number=0):
        return self.image.partition(TopicPartition(name, number))

    def alter(self, name, isr, *, leader=None, number=0, **epochs):
        """Propose an ISR as the leader does, with the current epochs unless given."""
        state = self.partition(name, number)
        leader = state.leader if leader is None else leader
        change = PartitionAlteration(
            topic_id=self.image.topics[name].topic_id,
            partition=number,
            leader_epoch=epochs.get("leader_epoch", state.leader_epoch),
            partition_epoch=epochs.get("partition_epoch", state.partition_epoch),
            new_isr=[m if isinstance(m, IsrMember) else IsrMember(m) for m in isr],
        )
        (result,) = self.controller.alter_partition(leader, self.epochs[leader], [change])
        return result


def _uuid(broker_id, incarnation):
    return broker_id.to_bytes(8, "big") + incarnation.to_bytes(8, "big")


@pytest.fixture
def make_cluster():
    return ControlledCluster


@pytest.fixture
def cluster():
    """Three running brokers 1, 2 and 3."""
    return ControlledCluster().start(1, 2, 3)
