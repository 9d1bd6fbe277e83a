"""The cleaner in a cluster in virtual time: configurations, steps, faults, memory."""

import pytest

from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.log.cleaner.log_cleaner import RECORDS_PER_STEP
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.records import Record, build_batch, iter_records

KEY = TopicPartition("topic", 0)
BACKOFF_MS = 15_000
SMALL = {"cleanup.policy": "compact", "internal.segment.bytes": "200"}


@pytest.fixture
def new_cluster():
    clusters = []

    def make(brokers=1, configs=None, **topic):
        cluster = VirtualCluster(brokers, seed=3, configs=configs or {})
        clusters.append(cluster)
        replicas = list(range(1, brokers + 1))
        named = SMALL | {name.replace("_", "."): value for name, value in topic.items()}
        cluster.create_topic("topic", assignments={0: replicas}, configs=named)
        return cluster

    yield make
    for cluster in clusters:
        cluster.close()


def append(cluster, count, keys=1, size=1, topic="topic"):
    log = log_of(cluster, topic=topic)
    for number in range(count):
        record = Record(b"v" * size, b"%d" % (number % keys), log.clock.wall_clock_ms())
        answer(cluster, produce_request((topic, 0), batch=build_batch([record])), PRODUCE_VERSION)


def answer(cluster, request, version):
    pending = cluster.client().send(1, request, version)
    cluster.run_until(lambda: pending.done)
    return pending.response


def log_of(cluster, broker=1, topic="topic"):
    topic_id = cluster.nodes.controller.image.topics[topic].topic_id
    return cluster.nodes.nodes[broker].logs.get(TopicPartition(topic, 0), topic_id)


def offsets(cluster, broker=1, topic="topic"):
    return [
        record.offset
        for segment in log_of(cluster, broker, topic).segments
        for _, batch in segment.batches_from(0)
        for record in iter_records(batch)
    ]


def test_next_log_is_cleaned_at_once(new_cluster):
    cluster = new_cluster()
    cluster.create_topic("other", assignments={0: [1]}, configs=SMALL)
    for topic in ("topic", "other"):
        append(cluster, 10, topic=topic)
    cluster.advance(BACKOFF_MS)
    assert all(len(offsets(cluster, topic=topic)) < 5 for topic in ("topic", "other"))


def test_log_is_cleaned_within_the_backoff(new_cluster):
    cluster = new_cluster()
    append(cluster, 10)
    cluster.advance(BACKOFF_MS)
    kept = offsets(cluster)
    assert kept[-1] == 9
    assert len(kept) < 5
    assert log_of(cluster).log_start_offset == 0


def test_disabled_cleaner_cleans_nothing(new_cluster):
    cluster = new_cluster(configs={"log.cleaner.enable": False})
    append(cluster, 10)
    cluster.advance(10 * BACKOFF_MS)
    assert offsets(cluster) == list(range(10))


def test_changed_backoff_holds_at_once(new_cluster):
    cluster = new_cluster(configs={"log.cleaner.backoff.ms": 3_600_000})
    append(cluster, 10)
    cluster.advance(BACKOFF_MS)
    assert offsets(cluster) == list(range(10))
    change = messages.IncrementalAlterConfigsRequest
    config = change.AlterableConfig("log.cleaner.backoff.ms", 0, "100")
    resource = change.AlterConfigsResource(4, "", [config])
    answer(cluster, change([resource], validate_only=False), 1)
    cluster.advance(500)
    assert len(offsets(cluster)) < 5


def test_rate_is_held(new_cluster):
    cluster = new_cluster(configs={"log.cleaner.io.max.bytes.per.second": 100.0, "log.cleaner.io.buffer.size": 2})
    append(cluster, 30)
    size_bytes = log_of(cluster).size_bytes
    cluster.advance(BACKOFF_MS)
    assert len(offsets(cluster)) == 30
    cluster.advance(1000 * 3 * size_bytes // 100)
    assert len(offsets(cluster)) < 5


def test_steps_are_small_whatever_the_batch(new_cluster):
    cluster = new_cluster(internal_segment_bytes="100000")
    log = log_of(cluster)
    records = [Record(b"v", b"%d" % number, log.clock.wall_clock_ms()) for number in range(3000)]
    log.append_as_leader(build_batch(records), 0)
    log.offsets.update_high_watermark(log.log_end_offset)
    log.roll()
    throttler = cluster.nodes.brokers[1].background_work.log_cleaner.throttler
    steps, observe = [], throttler.observe
    cluster.nodes.brokers[1].background_work.log_cleaner.throttler = Counting(steps, observe)
    cluster.advance(BACKOFF_MS)
    # Each record is read twice.
    assert len(steps) >= 2 * 3000 // RECORDS_PER_STEP


class Counting:
    """A throttler that never pauses."""

    def __init__(self, steps, observe):
        self.steps = steps
        self.observe_bytes = observe

    def observe(self, size_bytes):
        self.steps.append(size_bytes)
        return self.observe_bytes(size_bytes)


def test_every_replica_is_cleaned_and_a_restarted_one_continues(new_cluster):
    cluster = new_cluster(3)
    append(cluster, 10)
    cluster.advance(2 * BACKOFF_MS)
    kept = offsets(cluster)
    assert len(kept) < 5
    assert [offsets(cluster, broker) for broker in (2, 3)] == [kept, kept]
    logs = cluster.nodes.nodes[3].logs
    first_dirty = logs.cleaner.first_dirty_offsets[KEY]
    assert first_dirty >= 8
    cluster.kill(3)
    cluster.start(3)
    cluster.run_until(lambda: cluster.nodes.is_ready)
    append(cluster, 4)
    cluster.advance(2 * BACKOFF_MS)
    assert logs.cleaner.first_dirty_offsets[KEY] > first_dirty
    assert len(offsets(cluster, 3)) < 5


def test_broker_killed_during_a_cleaning_cleans_again(new_cluster):
    cluster = new_cluster(configs={"log.cleaner.io.max.bytes.per.second": 100.0, "log.cleaner.io.buffer.size": 2})
    append(cluster, 30)
    cluster.advance(BACKOFF_MS)
    manager = cluster.nodes.nodes[1].logs.cleaner
    assert manager.deletable_logs([log_of(cluster)]) == []  # it is in progress
    cluster.kill(1)
    assert manager.deletable_logs([log_of(cluster)]) == [log_of(cluster)]
    assert offsets(cluster) == list(range(30))


def test_commits_to_few_keys_take_bounded_memory(new_cluster):
    cluster = new_cluster(
        configs={
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.segment.bytes": 1_048_576,
        }
    )
    found = messages.FindCoordinatorRequest(coordinator_keys=["group"], key_type=0)
    while answer(cluster, found, 4).coordinators[0].error_code:
        cluster.advance(100)
    per_request, commits, largest = 500, 100_000, 0
    request = messages.OffsetCommitRequest
    for number in range(commits // per_request):
        partitions = [request.OffsetCommitRequestPartition(0, number)] * per_request
        topic = request.OffsetCommitRequestTopic(name="topic", partitions=partitions)
        done = answer(cluster, request(group_id="group", topics=[topic]), 8)
        assert {one.error_code for one in done.topics[0].partitions} == {0}
        if number % 20 == 19:
            cluster.advance(BACKOFF_MS)
            largest = max(largest, cluster.nodes.memory.used_bytes)
    topic_id = cluster.nodes.controller.image.topics[GROUP_METADATA_TOPIC].topic_id
    log = cluster.nodes.nodes[1].logs.get(TopicPartition(GROUP_METADATA_TOPIC, 0), topic_id)
    assert log.log_end_offset >= commits
    assert largest < 3 * 1_048_576
    assert log.position(log.log_end_offset) > 5 * 1_048_576  # what was written, by and by


def flip_a_bit(batch):
    return batch[:-1] + bytes([batch[-1] ^ 1])


@pytest.mark.parametrize(
    ("damage", "why"),
    [(flip_a_bit, "Record is corrupt"), (lambda _batch: 5, "TypeError")],
    ids=["flipped bit", "any error"],
)
def test_log_that_cannot_be_cleaned_is_left_alone_and_the_others_are_cleaned(new_cluster, caplog, damage, why):
    cluster = new_cluster()
    cluster.create_topic("other", assignments={0: [1]}, configs=SMALL)
    append(cluster, 10)
    append(cluster, 10, topic="other")
    batches = log_of(cluster).segments[0]._batches._batches
    batches[0] = damage(batches[0])
    cluster.advance(3 * BACKOFF_MS)  # an error that reaches the loop ends the test here
    assert cluster.nodes.nodes[1].logs.cleaner.uncleanable_partitions == {KEY}
    assert log_of(cluster).log_end_offset == 10
    assert len(log_of(cluster).segments) > 3
    assert len(offsets(cluster, topic="other")) < 5
    lines = [line for line in caplog.text.splitlines() if "partition_uncleanable" in line]
    assert len(lines) == 1
    assert "partition='topic-0'" in lines[0]
    assert why in lines[0]


def test_cleaning_is_an_event_and_counted_in_metrics(new_cluster, caplog):
    metrics = pytest.importorskip("broker_sim.cluster.status.metrics")
    pytest.importorskip("prometheus_client")
    cluster = new_cluster()
    append(cluster, 10)
    with caplog.at_level("INFO", "broker_sim.log"):
        cluster.advance(BACKOFF_MS)
    assert "log_cleaned" in caplog.text
    assert "partition='topic-0' dirty_section=[0, " in caplog.text
    lines = metrics.metrics_text(cluster.nodes).splitlines()
    figures = dict(line.rsplit(" ", 1) for line in lines if line.startswith("kafka_log_"))
    assert 0 < float(figures['kafka_log_logcleaner_cleaner_recopy_percent{broker="1"}']) < 50
    assert 'kafka_log_logcleanermanager_max_dirty_percent{broker="1"}' in figures
    uncleanable = 'kafka_log_logcleanermanager_uncleanable_bytes{broker="1"}'
    assert float(figures[uncleanable]) == 0
    cluster.nodes.nodes[1].logs.cleaner.mark_uncleanable(KEY)
    append(cluster, 10)
    lines = metrics.metrics_text(cluster.nodes).splitlines()
    (line,) = (line for line in lines if line.startswith(uncleanable))
    assert float(line.rsplit(" ", 1)[1]) > 0
