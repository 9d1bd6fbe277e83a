"""Brokers in virtual time: with transactions written by hand, and with a client of their coordinator."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.coordinator.runtime import partition_of_hash
from broker_sim.errors import ErrorCode
from broker_sim.hash_order.hash_codes import java_hash_code
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.protocol import messages
from broker_sim.protocol.records import build_batch

PRODUCE_VERSION = 11
TX = "tx"
PARTITIONS = 5
ADD = messages.AddPartitionsToTxnRequest
SMALL = {"transaction.state.log.num.partitions": str(PARTITIONS), "offsets.topic.num.partitions": "1"}


class ByHand:
    """A topic `t` of two partitions, led by brokers 1 and 2 and followed by the other; broker 3 has no replica."""

    def __init__(self, configs=None):
        self.cluster = VirtualCluster(
            seed=3, configs={"transaction.partition.verification.enable": "false", **(configs or {})}
        )
        self.cluster.create_topic("t", assignments={0: [1, 2], 1: [2, 1]})
        self.client = self.cluster.client()

    def ask(self, broker, request, version):
        pending = self.client.send(broker, request, version)
        self.cluster.run_until(lambda: pending.done, 60_000)
        return pending.response

    def write(self, producer_id, sequence=0, *, epoch=0, partition=0, is_transactional=True):
        """Append one record; return the error code."""
        request = messages.ProduceRequest
        batch = build_batch(
            [b"v"],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        data = request.TopicProduceData(name="t", partition_data=[request.PartitionProduceData(partition, batch)])
        response = self.ask(
            partition + 1,
            request(transactional_id="id", acks=-1, timeout_ms=10_000, topic_data=[data]),
            PRODUCE_VERSION,
        )
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    def markers(self, *markers, broker=1, version=2):
        """Send markers `(producer, epoch, is commit, partitions, coordinator epoch, version)`."""
        response = self.ask(broker, self.marker_request(*markers), version)
        return {
            (marker.producer_id, partition.partition_index): ErrorCode(partition.error_code)
            for marker in response.markers
            for topic in marker.topics
            for partition in topic.partitions
        }

    @staticmethod
    def marker_request(*markers, topic="t"):
        request = messages.WriteTxnMarkersRequest
        return request(
            [
                request.WritableTxnMarker(
                    producer_id, epoch, is_commit, [request.WritableTxnMarkerTopic(topic, list(partitions))], *rest
                )
                for producer_id, epoch, is_commit, partitions, *rest in markers
            ]
        )

    def leader(self):
        return self.cluster.nodes.controller.image.topics["t"].partitions[0].leader

    def isr(self):
        return set(self.cluster.nodes.controller.image.topics["t"].partitions[0].isr)

    def log(self, broker=1, partition=0):
        manager = self.cluster.nodes.brokers[broker].replica_manager
        return manager.partitions["t", partition].log


@pytest.fixture
def make_by_hand():
    return ByHand


@pytest.fixture
def by_hand():
    return ByHand()


class TxnUser:
    """Sends requests of the producer of "tx" to three brokers, which have the topic t."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.client = cluster.client()

    def until(self, condition, timeout_ms=60_000):
        """Advance the time until a condition holds that asks requests of its own."""
        end_ms = self.cluster.now_ms + timeout_ms
        while not condition():
            assert self.cluster.now_ms < end_ms, "not reached"
            self.cluster.advance(10)

    def find(self):
        request = messages.FindCoordinatorRequest(key_type=1, coordinator_keys=[TX])
        return self.ask(request, 4, 1).coordinators[0]

    @property
    def partition(self):
        return partition_of_hash(java_hash_code(TX), PARTITIONS)

    @property
    def coordinator(self):
        image = self.cluster.nodes.controller.image
        return image.topics[TRANSACTION_STATE_TOPIC].partitions[self.partition].leader

    def another(self):
        return self.coordinator % 3 + 1

    def ask(self, request, version, broker=None):
        pending = self.client.send(broker or self.coordinator, request, version)
        self.cluster.run_until(lambda: pending.done)
        assert not pending.disconnected
        return pending.response

    def init(self, version=5, broker=None, timeout_ms=60_000, **fields):
        request = messages.InitProducerIdRequest(TX, timeout_ms, **fields)
        response = None

        def answered():
            nonlocal response
            response = self.ask(request, version, broker)
            return response.error_code not in {
                ErrorCode.CONCURRENT_TRANSACTIONS,
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            }

        self.until(answered)
        return response

    def producer(self, **fields):
        response = self.init(**fields)
        assert response.error_code == ErrorCode.NONE
        return response.producer_id, response.producer_epoch

    def add(self, producer, topics=(("t", [0]),), version=3):
        """Return the errors by topic and partition, as a client adds them."""
        request = ADD([], TX, *producer, [ADD.AddPartitionsToTxnTopic(*topic) for topic in topics])
        response = self.ask(request, version)
        return errors_of(response.results_by_topic_v3_and_below)

    def batch(self, *transactions, version=5):
        """Return the errors by transactional id, topic and partition, as a broker adds them."""
        request = ADD(
            [
                ADD.AddPartitionsToTxnTransaction(
                    transactional_id, *producer, verify_only, [ADD.AddPartitionsToTxnTopic(*topic) for topic in topics]
                )
                for transactional_id, producer, verify_only, topics in transactions
            ]
        )
        response = self.ask(request, version)
        assert response.error_code == ErrorCode.NONE
        return {result.transactional_id: errors_of(result.topic_results) for result in response.results_by_transaction}

    def add_offsets(self, producer, group="group", version=3):
        """Return the error of adding a group's offsets."""
        request = messages.AddOffsetsToTxnRequest(TX, *producer, group)
        return self.ask(request, version).error_code

    def end(self, producer, commit=True, version=5, broker=None):
        request = messages.EndTxnRequest(TX, *producer, commit)
        response = self.ask(request, version, broker)
        return response.error_code, response.producer_id, response.producer_epoch

    def describe(self, transactional_id=TX, broker=None):
        request = messages.DescribeTransactionsRequest([transactional_id])
        return self.ask(request, 0, broker).transaction_states[0]

    def list(self, version=2, broker=None, **filters):
        return self.ask(messages.ListTransactionsRequest(**filters), version, broker)

    def settle(self, state):
        """Wait until the transactional id is in that state."""
        self.until(lambda: self.describe().transaction_state == state)

    def markers(self, topic="t", partition=0):
        """Return the offset of the next record: markers take one each."""
        return self.cluster.high_watermark(topic, partition)


def errors_of(topics):
    return {
        (topic.name, part.partition_index): part.partition_error_code
        for topic in topics
        for part in topic.results_by_partition
    }


@pytest.fixture
def make_txn():
    """Make a client of a new cluster, which has the topic t with two partitions."""
    clusters = []

    def make(**configs):
        configs = {key.replace("_", "."): str(value) for key, value in configs.items()}
        cluster = VirtualCluster(3, topics=["t:2:3"], configs={**SMALL, **configs})
        clusters.append(cluster)
        cluster.wait_until_in_sync()
        user = TxnUser(cluster)
        user.until(lambda: not user.find().error_code)
        cluster.wait_until_in_sync()
        return user

    yield make
    for cluster in clusters:
        cluster.close()


@pytest.fixture
def txn(make_txn):
    return make_txn()
