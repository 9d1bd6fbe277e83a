"""Claims about the state of share partitions in a cluster: found, kept by replicas, taken over."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import SHARE_GROUP_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.share.share_state import ReadState, SharePartitionKey, WrittenState
from broker_sim.share.state_apis import READ, WRITE, ReaderEpoch
from tests.broker_sim.share.named_values import ACKNOWLEDGED, state_batch

SHARE = 2
KEYS_VERSION = 4
PARTITIONS = 3
ACKED = state_batch(0, 4, ACKNOWLEDGED)


class User:
    """Asks three brokers for the state of the share partition `key`."""

    def __init__(self, **configs):
        self.cluster = VirtualCluster(
            seed=4,
            configs={
                "share.coordinator.state.topic.num.partitions": PARTITIONS,
                **{name.replace("_", "."): value for name, value in configs.items()},
            },
        )
        self.cluster.create_topic("t", partitions=2)
        self.client = self.cluster.client()
        topic = self.cluster.nodes.controller.image.topics["t"]
        self.key = SharePartitionKey("g", topic.topic_id, 0)

    def broker(self, broker_id):
        return self.cluster.nodes.alive(broker_id).broker

    def ask(self, broker, request, version):
        pending = self.client.send(broker, request, version)
        self.cluster.run_until(lambda: pending.done, 60_000)
        return pending.response

    def find(self, key=None, *, version=6, broker=1):
        key = self.key.coordinator_key() if key is None else key
        request = messages.FindCoordinatorRequest(key_type=SHARE)
        if version >= KEYS_VERSION:
            request.coordinator_keys = [key]
        else:
            request.key = key
        response = self.ask(broker, request, version)
        return response.coordinators[0] if version >= KEYS_VERSION else response

    def coordinator(self, broker=1):
        """Return the id of the broker that coordinates the share partition, once there is one."""
        for _ in range(30):
            coordinator = self.find(broker=broker)
            if not coordinator.error_code:
                return coordinator.node_id
            self.cluster.advance(500)
        raise AssertionError("no coordinator")

    def state(self, api, arguments, broker, version=0):
        request = api.request_of(self.key.group_id, [(self.key, arguments)])
        response = self.ask(broker, request, version)
        return api.outcomes_of(self.key.group_id, response)[self.key]

    def call(self, verb, *arguments, broker=1):
        """Call the persister of a broker, and return what it tells."""
        outcomes = []
        persister = self.broker(broker).persister
        process = self.broker(broker).process
        process.deliver(lambda: getattr(persister, verb)(self.key, *arguments, outcomes.append))
        self.cluster.run_until(lambda: outcomes, 120_000)
        return outcomes[0]


@pytest.fixture
def user():
    return User()


def test_first_question_makes_the_topic_with_its_configuration(user):
    assert user.find().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    leader = user.coordinator()
    image = user.cluster.nodes.controller.image
    topic = image.topics[SHARE_GROUP_STATE_TOPIC]
    assert [len(state.replicas) for state in topic.partitions] == [3] * PARTITIONS
    assert dict(topic.configs) == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "segment.bytes": "104857600",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
    }
    shard = user.broker(1).share_coordinator
    number = shard.partition_for(user.key.coordinator_key())
    assert image.partition(TopicPartition(SHARE_GROUP_STATE_TOPIC, number)).leader == leader


@pytest.mark.parametrize(("key", "version"), [("g", 6), ("g:x:0", 6), (None, 5), (None, 3)])
def test_other_keys_and_older_versions_have_no_share_coordinator(user, key, version):
    coordinator = user.find(key, version=version)
    assert (coordinator.error_code, coordinator.node_id) == (ErrorCode.INVALID_REQUEST, -1)


def test_persister_of_any_broker_reaches_the_coordinator(user):
    assert user.call("initialize_state", 1, -1, broker=1).error_code == 0
    written = WrittenState(1, 0, 0, 5, (ACKED,))
    assert user.call("write_state", written, broker=2).error_code == 0
    read = ReadState(state_epoch=1, start_offset=0, state_batches=(ACKED,))
    for broker in (1, 2, 3):
        assert user.call("read_state", 0, broker=broker) == read
    summary = user.call("read_summary", -1, broker=3)
    assert (summary.start_offset, summary.delivery_complete_count) == (0, 5)
    assert user.call("delete_state", broker=2).error_code == 0
    assert user.call("read_summary", -1).start_offset == -1


def test_clients_are_served_by_the_coordinator_only(user):
    user.call("initialize_state", 1, -1)
    leader = user.coordinator()
    written = WrittenState(1, 0, 0, 5, (ACKED,))
    assert user.state(WRITE, written, leader, version=1).error_code == 0
    assert user.state(READ, ReaderEpoch(0), leader).state_batches == (ACKED,)
    other = leader % 3 + 1
    refused = user.state(READ, ReaderEpoch(0), other)
    assert refused.error_code == ErrorCode.NOT_COORDINATOR


def test_state_survives_its_coordinator(user):
    user.call("initialize_state", 1, -1)
    user.call("write_state", WrittenState(1, 0, 0, 5, (ACKED,)))
    leader = user.coordinator()
    user.cluster.kill(leader)
    other = leader % 3 + 1
    read = user.call("read_state", 2, broker=other)
    assert read == ReadState(state_epoch=1, start_offset=0, state_batches=(ACKED,))
    assert user.coordinator(other) != leader
    fenced = user.call("write_state", WrittenState(1, 1, 0, 5, ()), broker=other)
    assert fenced.error_code is ErrorCode.FENCED_LEADER_EPOCH


def test_redundant_records_are_deleted_after_the_prune_interval():
    user = User(
        share_coordinator_snapshot_update_records_per_snapshot=0, share_coordinator_state_topic_prune_interval_ms=60_000
    )
    user.call("initialize_state", 1, -1)
    for _ in range(3):
        user.call("write_state", WrittenState(1, 0, 0, 5, (ACKED,)))
    leader = user.broker(user.coordinator())
    number = leader.share_coordinator.partition_for(user.key.coordinator_key())
    log = leader.replica_manager.partitions[TopicPartition(SHARE_GROUP_STATE_TOPIC, number)].log
    assert (log.log_start_offset, log.log_end_offset) == (0, 4)
    user.cluster.advance(60_000)
    assert (log.log_start_offset, log.log_end_offset) == (3, 4)


def test_deleted_topic_leaves_no_state(user):
    user.call("initialize_state", 1, -1)
    leader = user.broker(user.coordinator())
    assert [len(c.shard.states) for c in leader.share_coordinator.runtime.loaded()].count(1) == 1
    user.cluster.delete_topic("t")
    user.cluster.advance(1_000)
    assert not any(c.shard.states for c in leader.share_coordinator.runtime.loaded())
