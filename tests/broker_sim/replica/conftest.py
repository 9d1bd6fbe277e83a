"""A virtual cluster of three brokers with one topic, led by broker 1; and broker 1 alone."""

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, SystemTimer, VirtualClock

from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.config import BrokerConfig, TopicConfig
from broker_sim.log import LogManager
from broker_sim.metadata import BrokerState, MetadataDelta, MetadataImage, PartitionState, TopicState
from broker_sim.metadata.cache import MetadataCache
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch
from broker_sim.quota import ReplicationQuotas
from broker_sim.replica import FetchIsolation, FetchParams, FetchPartition, Partition, Purgatories, ReplicaManager
from broker_sim.runtime.action_queue import ActionQueue

TOPIC = "topic"
TOPIC_ID = b"t" * 16
KEY = (TOPIC, 0)
LEADER, FIRST_FOLLOWER, SECOND_FOLLOWER = ALL = (1, 2, 3)
BROKER_EPOCH = 5
LAG_TIME_MAX_MS = 10_000


class Bench:
    """Verbs of the tests, all in virtual time."""

    def __init__(self, configs=None, topic_configs=None, partitions=1):
        self.cluster = VirtualCluster(seed=11, configs={"replica.lag.time.max.ms": "10000", **(configs or {})})
        self.cluster.create_topic(
            TOPIC,
            configs=topic_configs,
            assignments={n: [LEADER, FIRST_FOLLOWER, SECOND_FOLLOWER] for n in range(partitions)},
        )
        self.client = self.cluster.client()
        self.leader_id = LEADER
        self.key = KEY

    def produce(self, *keys, broker=LEADER, client=None, **options):
        request = produce_request(*(keys or (KEY,)), **options)
        return (client or self.client).send(broker, request, PRODUCE_VERSION)

    def fetch(self, *keys, broker=LEADER, client=None, version=FETCH_VERSION, **options):
        request = fetch_request(*(keys or (KEY,)), **options)
        return (client or self.client).send(broker, request, version)

    def settle(self):
        """Run all events that are due now."""
        self.cluster.advance(0)

    def wait(self, pending, timeout_ms=120_000):
        self.cluster.run_until(lambda: pending.done, timeout_ms)
        return pending

    def produced(self, **options):
        """Produce, wait, and return the answer of the one partition."""
        return self.partition_answer(self.wait(self.produce(**options)))

    @staticmethod
    def partition_answer(pending, index=0):
        response = pending.response
        if hasattr(response.responses[0], "partition_responses"):
            return response.responses[index].partition_responses[0]
        return response.responses[index].partitions[0]

    def partition(self, broker=LEADER, number=0):
        manager = self.cluster.nodes.brokers[broker].replica_manager
        return manager.partitions[TopicPartition(TOPIC, number)]

    def isr(self, number=0):
        return set(self.cluster.nodes.controller.image.topics[TOPIC].partitions[number].isr)

    def leader(self, number=0):
        return self.cluster.nodes.controller.image.topics[TOPIC].partitions[number].leader

    def parked(self, name, broker=LEADER):
        purgatories = self.cluster.nodes.brokers[broker].purgatories
        return getattr(purgatories, name).num_delayed()


@pytest.fixture
def make_bench():
    return Bench


@pytest.fixture
def bench():
    return Bench()


class OneBroker:
    """Broker 1 alone, with its replica manager, logs and purgatories, in virtual time.

    The test plays the controller, which assigns partitions and answers proposals, and the followers
    on the brokers 2 and 3.
    """

    def __init__(self, configs=None):
        self.clock = VirtualClock(wall_start_ms=1_000_000)
        self.config = BrokerConfig.from_mapping({"replica.lag.time.max.ms": str(LAG_TIME_MAX_MS), **(configs or {})})
        delta = MetadataDelta(MetadataImage(0, "cluster"))
        for broker_id in (LEADER, FIRST_FOLLOWER, SECOND_FOLLOWER):
            delta.set_broker(BrokerState(broker_id, (), None, epoch=BROKER_EPOCH, fenced=False))
        state = PartitionState(ALL, ALL, LEADER, 0, 0)
        delta.set_topic(TopicState(TOPIC, TOPIC_ID, (state,) * 3))
        self.metadata = MetadataCache(LEADER, self.config, delta.apply())
        self.purgatories = Purgatories(self._make_purgatory, self.config)
        self.actions = ActionQueue()
        self.logs = LogManager(self.clock)
        quotas = ReplicationQuotas(self.config, self.clock, LEADER, lambda _: {})
        self.manager = ReplicaManager(
            self.purgatories,
            self.actions,
            self.metadata.is_known,
            quotas.leader,
            offline_partitions=self.logs.offline,
        )
        self.proposals = []

    def _make_purgatory(self, name, _):
        timer = SystemTimer(name, self.clock, InlineExecutor())
        return DelayedOperationPurgatory(name, timer, reaper_enabled=False)

    # -- the controller ---------------------------------------------------------------------------

    def set_broker(self, broker_id, *, fenced=False, epoch=BROKER_EPOCH):
        delta = MetadataDelta(self.metadata.image)
        delta.set_broker(BrokerState(broker_id, (), None, epoch=epoch, fenced=fenced))
        self.metadata.image = delta.apply()

    def open(self, number=0, **topic_configs):
        """Return the hosted partition without a role."""
        key = TopicPartition(TOPIC, number)
        config = TopicConfig(**topic_configs)
        partition = Partition(
            key,
            TOPIC_ID,
            LEADER,
            self.logs.get_or_create(key, TOPIC_ID, config),
            config,
            clock=self.clock,
            replica_lag_time_max_ms=self.config.replica_lag_time_max_ms,
            metadata=self.metadata,
            submit_alter_partition=lambda partition, pending: self.proposals.append(pending),
            complete_delayed_requests=self.manager.complete_delayed_requests,
        )
        self.manager.partitions[key] = partition
        return partition

    def lead(self, number=0, *, isr=ALL, replicas=ALL, leader_epoch=0, **topic_configs):
        """Return a partition that broker 1 leads; the others in the ISR have fetched from it once."""
        partition = self.open(number, **topic_configs)
        partition.make_leader(PartitionState(replicas, isr, LEADER, leader_epoch, 0))
        for follower in isr:
            if follower != LEADER:
                self.replicate(follower, 0, number)
        return partition

    def accept(self, partition):
        """Accept the last proposal, as the controller does."""
        pending = self.proposals[-1]
        partition.complete_alter_partition(
            pending, pending.proposed_isr, pending.leader_epoch, pending.partition_epoch + 1
        )
        self.actions.try_complete_actions()

    # -- requests ---------------------------------------------------------------------------------

    def produce(self, *numbers, acks=-1, timeout_ms=1_000, values=(b"value",)):
        """Append one batch to each partition; the list gets the statuses by number when answered."""
        answers = []
        self.manager.append_records(
            {TopicPartition(TOPIC, number): build_batch(values) for number in numbers or (0,)},
            lambda statuses: answers.append({key.partition: s for key, s in statuses.items()}),
            timeout_ms=timeout_ms,
            required_acks=acks,
        )
        self.actions.try_complete_actions()
        return answers

    def fetch(
        self,
        *numbers,
        offset=0,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1_000_000,
        partition_max_bytes=1_000_000,
        isolation=FetchIsolation.HIGH_WATERMARK,
        replica_id=-1,
        replica_epoch=BROKER_EPOCH,
        has_client_metadata=True,
        **fields,
    ):
        """Fetch from each partition; the list gets the results by number when answered."""
        answers = []
        params = FetchParams(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation=isolation,
            replica_id=replica_id,
            replica_epoch=replica_epoch,
            has_client_metadata=has_client_metadata,
        )
        self.manager.fetch_messages(
            params,
            [
                (
                    TopicPartition(TOPIC, number),
                    FetchPartition(fetch_offset=offset, max_bytes=partition_max_bytes, **fields),
                )
                for number in numbers or (0,)
            ],
            lambda results: answers.append({key.partition: data for key, data in results}),
        )
        self.actions.try_complete_actions()
        return answers

    def replicate(self, follower, offset, number=0, **fields):
        """Let the follower fetch from `offset`, which shows that it has everything before."""
        ((_, result),) = self.fetch(
            number, offset=offset, max_wait_ms=0, isolation=FetchIsolation.LOG_END, replica_id=follower, **fields
        )[0].items()
        return result

    def delete_records(self, offset, number=0, timeout_ms=1_000):
        answers = []
        self.manager.delete_records(
            {TopicPartition(TOPIC, number): offset},
            lambda statuses: answers.append(statuses[TopicPartition(TOPIC, number)]),
            timeout_ms=timeout_ms,
        )
        return answers

    def advance(self, by_ms):
        self.clock.advance(by_ms)
        for purgatory in self.purgatories:
            purgatory.advance_clock(0)


@pytest.fixture
def make_broker():
    return OneBroker


@pytest.fixture
def broker():
    return OneBroker()
