"""Records that take long to read are read beside the loop; the answer is the same as at once."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.messages import ListOffsetsRequest, ProduceRequest
from broker_sim.protocol.records import Record, build_batch

GZIP = CompressionCodec.GZIP
KEYED = [Record(b"v" * 10, b"k", timestamp) for timestamp in range(2_000)]


class Setup:
    """A broker whose long work waits until `do_work`, once `waits` is set."""

    def __init__(self, make_frame_client, monkeypatch):
        self.cluster = VirtualCluster(1)
        self.broker = self.cluster.nodes.brokers[1]
        self.client = make_frame_client(self.broker.handle_frame)
        self.waiting = []
        monkeypatch.setattr(self.broker, "run_beside", lambda *work: self.waiting.append(work))

    def create(self, topic, **configs):
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.cluster.create_topic(topic, assignments={0: [1]}, configs=named)

    def produce(self, batch, topic="t"):
        """Return a list that gets the error code."""
        partition = ProduceRequest.PartitionProduceData(0, batch)
        entry = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
        request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[entry])
        return self.client.send(request, 9)

    def do_work(self):
        work, on_done = self.waiting.pop()
        on_done(work())


@pytest.fixture
def setup(make_frame_client, monkeypatch):
    return Setup(make_frame_client, monkeypatch)


def code_of(answers):
    (response,) = answers
    return response.responses[0].partition_responses[0].error_code


def test_long_batch_is_validated_beside_the_loop(setup):
    setup.create("t", cleanup_policy="compact")
    answers = setup.produce(build_batch(KEYED, codec=GZIP))
    assert not answers
    setup.do_work()
    assert code_of(answers) == ErrorCode.NONE
    answers = setup.produce(build_batch([*KEYED, Record(b"no key", None, 5)], codec=GZIP))
    setup.do_work()
    assert code_of(answers) == ErrorCode.INVALID_RECORD
    assert not setup.waiting


def test_batch_that_is_quick_to_validate_is_appended_at_once(setup):
    setup.create("t", cleanup_policy="compact")
    setup.create("any")
    assert code_of(setup.produce(build_batch(KEYED[:100], codec=GZIP))) == ErrorCode.NONE
    assert code_of(setup.produce(build_batch(KEYED, codec=GZIP), "any")) == ErrorCode.NONE
    assert not setup.waiting


def test_topic_that_is_configured_anew_meanwhile_counts_as_it_is_then(setup):
    setup.create("t", compression_type="gzip")
    answers = setup.produce(build_batch([Record(b"v" * 70_000, None, 5)]))
    log = setup.broker.replica_manager.partitions[TopicPartition("t", 0)].log
    log.update_config(type(log.config)(cleanup_policy="compact"))
    setup.do_work()
    assert code_of(answers) == ErrorCode.INVALID_RECORD


def test_record_in_a_long_batch_is_looked_up_beside_the_loop(setup):
    setup.create("t")
    assert code_of(setup.produce(build_batch(KEYED, codec=GZIP))) == ErrorCode.NONE
    partition = ListOffsetsRequest.ListOffsetsPartition
    asked = [partition(timestamp=1_500), partition(partition_index=9)]
    topic = ListOffsetsRequest.ListOffsetsTopic("t", asked)
    answers = setup.client.send(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    assert not answers
    setup.do_work()
    found, unknown = answers[0].topics[0].partitions
    assert (found.offset, found.timestamp) == (1_500, 1_500)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not setup.waiting
