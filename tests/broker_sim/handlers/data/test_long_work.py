"""Records that take long to read are read beside the loop; the answer is the same as at once."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.handlers.support import slow_searches
from broker_sim.log import find_record
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.messages import ListOffsetsRequest, ProduceRequest
from broker_sim.protocol.record_batch import encode_batch, parse_header
from broker_sim.protocol.records import Record, build_batch

GZIP = CompressionCodec.GZIP
KEYED = [Record(b"v" * 10, b"k", timestamp) for timestamp in range(2_000)]


class Setup:
    """A broker whose long work waits until `do_work`, once `waits` is set."""

    def __init__(self, make_frame_client, monkeypatch):
        self.cluster = VirtualCluster(1)
        self.broker = self.cluster.nodes.brokers[1]
        self.client = make_frame_client(self.broker.dispatcher.handle_frame)
        self.waiting = []
        self.are_short = []
        monkeypatch.setattr(self.broker, "run_beside", self.run_beside)

    def run_beside(self, work, on_done, *, is_short=False):
        self.waiting.append((work, on_done))
        self.are_short.append(is_short)

    def create(self, topic, **configs):
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.cluster.create_topic(topic, assignments={0: [1]}, configs=named)

    def produce(self, batch, topic="t"):
        """Return a list that gets the response."""
        return self.produce_to([topic], batch)

    def produce_to(self, topics, batch, version=9):
        """Produce the same to several topics."""
        partition = ProduceRequest.PartitionProduceData(0, batch)
        known = self.broker.image.topics
        entries = [ProduceRequest.TopicProduceData(topic, known[topic].topic_id, [partition]) for topic in topics]
        request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=entries)
        return self.client.send(request, version)

    def offsets_since(self, *timestamps):
        """Look times up in partitions 0, 1 and so on; return a list that gets the response."""
        partition = ListOffsetsRequest.ListOffsetsPartition
        asked = [partition(index, timestamp=time) for index, time in enumerate(timestamps)]
        topic = ListOffsetsRequest.ListOffsetsTopic("t", asked)
        return self.client.send(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)

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


@pytest.mark.parametrize(("batches", "is_short"), [(8, True), (9, False)])
def test_batches_of_many_records_do_not_hold_up_smaller_ones(setup, batches, is_short):
    topics = [f"t{number}" for number in range(batches)]
    for topic in topics:
        setup.create(topic, cleanup_policy="compact")
    assert not setup.produce_to(topics, build_batch(KEYED[:1_000]))
    assert setup.are_short == [is_short]


def test_batches_that_are_slow_together_are_validated_on_another_thread(setup):
    for topic in ("t", "other", "any"):
        setup.create(topic, cleanup_policy="delete" if topic == "any" else "compact")
    batch = build_batch(KEYED[:600])
    for topics in (["t"], ["t", "any"]):
        assert setup.produce_to(topics, batch)
    answers = setup.produce_to(["t", "other", "any"], batch)
    assert not answers
    setup.do_work()
    assert [topic.partition_responses[0].error_code for topic in answers[0].responses] == [0, 0, 0]


def test_batch_with_a_time_too_far_ahead_is_read_beside_the_loop(setup):
    setup.create("t")
    ahead = [*KEYED, Record(b"v", b"k", 1 << 60)]
    answers = setup.produce(build_batch(ahead, codec=GZIP))
    assert not answers
    setup.do_work()
    assert code_of(answers) == ErrorCode.INVALID_TIMESTAMP


def test_batch_that_is_quick_to_validate_is_appended_at_once(setup):
    setup.create("t", cleanup_policy="compact")
    setup.create("any")
    assert code_of(setup.produce(build_batch(KEYED[:100], codec=GZIP))) == ErrorCode.NONE
    assert code_of(setup.produce(build_batch(KEYED, codec=GZIP), "any")) == ErrorCode.NONE
    assert not setup.waiting


def test_topic_reconfigured_during_validation_uses_the_new_configuration(setup):
    setup.create("t", compression_type="gzip")
    answers = setup.produce(build_batch([Record(b"v" * 70_000, None, 5)]))
    log = setup.broker.replica_manager.partitions[TopicPartition("t", 0)].log
    log.update_config(type(log.config)(cleanup_policy="compact"))
    setup.do_work()
    assert code_of(answers) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("version", [9, 13])
def test_records_for_a_topic_recreated_during_validation_are_refused(setup, version):
    for topic in ("t", "other"):
        setup.create(topic, cleanup_policy="compact")
    answers = setup.produce_to(["t", "other"], build_batch(KEYED, codec=GZIP), version)
    setup.cluster.delete_topic("t")
    setup.create("t", cleanup_policy="compact")
    setup.do_work()
    (response,) = answers
    codes = {topic.partition_responses[0].error_code for topic in response.responses}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE}
    ends = {
        key.topic: partition.log.log_end_offset for key, partition in setup.broker.replica_manager.partitions.items()
    }
    assert ends == {"t": 0, "other": len(KEYED)}


def test_record_in_a_long_batch_is_looked_up_beside_the_loop(setup):
    setup.create("t")
    assert code_of(setup.produce(build_batch(KEYED, codec=GZIP))) == ErrorCode.NONE
    answers = setup.offsets_since(1_500, 1_500)
    assert not answers
    setup.do_work()
    found, unknown = answers[0].topics[0].partitions
    assert (found.offset, found.timestamp) == (1_500, 1_500)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not setup.waiting


def seemingly_later(records):
    """Return a batch whose header says that it has a record of the time 9."""
    batch = build_batch([Record(b"v", b"k", 1)] * records)
    return encode_batch(parse_header(batch)._replace(max_timestamp=9), batch[61:])


@pytest.fixture
def searched(monkeypatch):
    """The numbers of records in the batches that were searched."""
    counts = []

    def counted(batch, wanted):
        counts.append(parse_header(batch).records_count)
        return find_record(batch, wanted)

    monkeypatch.setattr(slow_searches, "find_record", counted)
    return counts


@pytest.mark.parametrize(("last_ms", "offset", "searches"), [(5, 4_000, 11), (4, -1, 10)])
def test_each_of_many_batches_is_searched_once_and_only_a_few_at_once(
    setup, searched, monkeypatch, last_ms, offset, searches
):
    monkeypatch.setattr(slow_searches, "MAX_BATCHES", 3)
    setup.create("t")
    for _ in range(10):
        setup.produce(seemingly_later(400))
    for count in (400, 1):
        setup.produce(build_batch([Record(b"v", b"k", last_ms)] * count))
    answers = setup.offsets_since(5)
    assert searched == [400] * 2
    rounds = 0
    while not answers:
        setup.do_work()
        rounds += 1
    assert answers[0].topics[0].partitions[0].offset == offset
    assert searched == [400] * searches
    assert rounds == 3


def test_bytes_of_batches_that_wait_are_limited(setup, searched, monkeypatch):
    monkeypatch.setattr(slow_searches, "MAX_BYTES", 10_000)
    setup.create("t")
    for _ in range(6):
        setup.produce(seemingly_later(1_000))
    answers = setup.offsets_since(5)
    setup.do_work()
    assert len(searched) == 3
    assert not answers


def test_newest_record_is_looked_up_in_long_batches_too(setup):
    setup.create("t")
    setup.produce(build_batch(KEYED))
    answers = setup.offsets_since(-3)
    setup.do_work()
    assert answers[0].topics[0].partitions[0].offset == 1_999


def test_newest_record_that_no_batch_has_is_looked_up_once(setup):
    setup.create("t")
    setup.produce(seemingly_later(1_001))
    answers = setup.offsets_since(-3)
    setup.do_work()
    assert answers[0].topics[0].partitions[0].offset == -1
