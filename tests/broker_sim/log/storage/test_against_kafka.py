"""Kafka reads the files of our logs, and our log reads those of a real broker.

Kafka's own `DumpLogSegments` checks each kind of file and prints what is in it. A real broker, started
on ports of its own, writes the directory that our log opens.
"""

import re
import shutil

import pytest
from broker_sim_integration.reference.clusters.jvm import JvmCluster
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_purgatory import VirtualClock
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker_sim.config import TopicConfig
from broker_sim.log import LogDirectory, LogManager, PartitionLog, ProducerStateManagerConfig
from broker_sim.log.storage import FileStorage
from broker_sim.log.storage.deletions import DelayedDeletions
from broker_sim.log.storage.open_files import OpenFiles
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch, build_end_txn_marker, iter_records

pytestmark = [pytest.mark.real_kafka, pytest.mark.soak(part="kafka_classes")]

START_MS = 1_700_000_000_000
KEY = TopicPartition("topic", 0)
TIMEOUT_S = 120
CONFIG = TopicConfig(internal_segment_bytes=3_000, index_interval_bytes=300)
UNVERIFIED = ProducerStateManagerConfig(86_400_000, False)


def write(log, clock):
    """Write plain records, two transactions and their markers into several segments."""

    def data(count, **header):
        at = clock.wall_clock_ms()
        records = [Record(b"value %d" % n, timestamp=at + n) for n in range(count)]
        return build_batch(records, **header)

    def transactional(producer_id, sequence):
        return data(2, producer_id=producer_id, producer_epoch=3, base_sequence=sequence, is_transactional=True)

    def end(producer_id, *, commit):
        return build_end_txn_marker(
            producer_id=producer_id,
            producer_epoch=3,
            coordinator_epoch=5,
            is_commit=commit,
            timestamp=clock.wall_clock_ms(),
        )

    for number in range(30):
        clock.advance(7)
        log.append_as_leader(data(3), number // 10)
        log.append_as_leader(transactional(7, 2 * number), number // 10)
        log.append_as_leader(transactional(8, 2 * number), number // 10)
        log.append_as_leader(end(7, commit=False), number // 10, "coordinator")
        log.append_as_leader(end(8, commit=True), number // 10, "coordinator")
    log.offsets.update_high_watermark(log.log_end_offset)


@pytest.fixture
def written(tmp_path):
    """A closed directory of ours, and the log as it was."""
    clock = VirtualClock(wall_start_ms=START_MS)
    directory = LogDirectory(tmp_path / "broker-1", "cluster", 1)
    logs = LogManager(clock, UNVERIFIED, directories=[directory])
    log = logs.get_or_create(KEY, bytes(range(16)), CONFIG)
    write(log, clock)
    logs.shutdown(1)
    yield tmp_path / "broker-1" / "topic-0", log
    directory.close()


def names(directory, suffix):
    return ",".join(map(str, sorted(directory.glob(f"*{suffix}"))))


def test_kafka_reads_our_batches(written, dump):
    directory, log = written
    text = dump("--deep-iteration", "--print-data-log", "--files", names(directory, ".log"))
    assert "isvalid: false" not in text
    spans = re.findall(r"^baseOffset: (\d+) lastOffset: (\d+) .*isvalid: true", text, re.MULTILINE)
    assert [int(first) for first, _ in spans] == sorted(int(first) for first, _ in spans)
    assert int(spans[-1][1]) + 1 == log.log_end_offset
    assert len(spans) == 150
    assert text.count("payload: value") == 30 * 7
    assert text.count("endTxnMarker: ABORT") == 30


def test_kafka_finds_our_indexes_in_order(written, dump):
    directory, log = written
    assert len(log.segments) > 3
    text = dump("--verify-index-only", "--files", names(directory, ".index"))
    assert "Mismatches" not in text
    entries = dump("--files", names(directory, ".index"))
    assert entries.count("offset: ") >= len(log.segments)
    assert "index sanity check passed" not in entries
    passed = dump("--index-sanity-check", "--files", names(directory, ".index"))
    assert passed.count("passed sanity check") == len(log.segments)


def test_kafka_finds_our_time_indexes_in_order(written, dump):
    directory, log = written
    text = dump("--verify-index-only", "--files", names(directory, ".timeindex"))
    assert "Found timestamp mismatch" not in text
    assert "Found out of order" not in text
    entries = dump("--files", names(directory, ".timeindex"))
    newest = log.segments[-1].max_timestamp
    assert f"timestamp: {newest} offset: " in entries
    passed = dump("--index-sanity-check", "--files", names(directory, ".timeindex"))
    assert passed.count("passed sanity check") == len(log.segments)


def test_kafka_reads_our_aborted_transactions(written, dump):
    directory, log = written
    text = dump("--files", names(directory, ".txnindex"))
    found = re.findall(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", text)
    aborted = log.producer_state.transaction_index.collect(0, log.log_end_offset)
    assert len(aborted) == 30
    assert [tuple(map(int, row)) for row in found] == [tuple(entry) for entry in aborted]


def test_kafka_reads_our_snapshots(written, dump):
    directory, _log = written
    text = dump("--files", str(max(directory.glob("*.snapshot"))))
    for producer_id in (7, 8):
        assert re.search(
            rf"producerId: {producer_id} producerEpoch: 3 coordinatorEpoch: 5 "
            r"currentTxnFirstOffset: OptionalLong.empty lastTimestamp: \d+ firstSequence: 58 lastSequence: 59",
            text,
        ), text


@pytest.fixture(scope="module")
def kafka_directory(require_or_skip, tmp_path_factory):
    """A log directory that a real broker wrote, and the values that it acknowledged."""
    copy = tmp_path_factory.mktemp("kafka") / "data"
    cluster = JvmCluster({"log.index.interval.bytes": "300", "log.roll.jitter.ms": "0"})
    try:
        cluster.open()
    except ReferenceUnavailableError as unavailable:
        require_or_skip(str(unavailable))
    try:
        values = _write_to(cluster)
        home = cluster._node_directory(1)
        cluster.stop(1)
        shutil.copytree(home / "data", copy)
    finally:
        cluster.close()
    return copy, values


def _write_to(cluster):
    config = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
    values = {"aborted": [], "committed": []}
    admin = AdminClient(config)
    topic = NewTopic("topic", 1, 3, config={"segment.bytes": "1048576"})
    admin.create_topics([topic])["topic"].result(TIMEOUT_S)
    producer = Producer({**config, "transactional.id": "mover", "linger.ms": 0})
    producer.init_transactions(TIMEOUT_S)
    for number in range(40):
        kind = "aborted" if number % 4 == 0 else "committed"
        producer.begin_transaction()
        for _ in range(3):
            value = b"%d " % number + bytes(20_000)
            producer.produce("topic", value, partition=0)
            values[kind].append(value)
            assert producer.flush(TIMEOUT_S) == 0
        if kind == "aborted":
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
    return values


@pytest.fixture
def opened(kafka_directory, tmp_path):
    """Our log on a copy of the directory of a real broker; the values; and the untouched directory."""
    source, values = kafka_directory
    shutil.copytree(source / "topic-0", tmp_path / "topic-0")
    files = OpenFiles()
    storage = FileStorage(tmp_path / "topic-0", DelayedDeletions(files))
    clock = VirtualClock(wall_start_ms=START_MS)
    log = PartitionLog(KEY, TopicConfig(), clock, producers=UNVERIFIED, storage=storage)
    log.recover()
    yield log, values, source / "topic-0"
    files.close_all()


def test_our_log_opens_the_directory_of_a_real_broker(opened):
    log, values, source = opened
    bases = [int(path.stem) for path in sorted(source.glob("*.log"))]
    assert len(bases) > 1
    assert [segment.base_offset for segment in log.segments] == bases
    for segment in log.segments[:-1]:  # found by the indexes that the real broker wrote
        assert segment.uses_index_files
        for suffix in (".index", ".timeindex"):
            name = f"{segment.base_offset:020d}{suffix}"
            assert (log.storage.directory / name).read_bytes() == (source / name).read_bytes()
    found = [
        record.value
        for segment in log.segments
        for header, batch in segment.batches_from(0)
        if not header.is_control
        for record in iter_records(batch)
    ]
    assert sorted(found) == sorted(values["aborted"] + values["committed"])
    log.offsets.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == log.log_end_offset
    aborted = log.producer_state.transaction_index.collect(0, log.log_end_offset)
    assert len(aborted) == 10


def test_our_indexes_are_those_of_the_real_broker(opened):
    log, _values, source = opened
    for segment in log.segments[:-1]:
        aborted = log.producer_state.transaction_index.between(segment.base_offset, segment.end_offset)
        indexes = segment.entries().indexes(aborted)
        log.storage.seal(segment.base_offset, indexes, segment.end_offset)
        for suffix in (".index", ".timeindex", ".txnindex"):
            name = f"{segment.base_offset:020d}{suffix}"
            theirs = source / name
            ours = log.storage.directory / name
            expected = theirs.read_bytes() if theirs.exists() else b""
            assert (ours.read_bytes() if ours.exists() else b"") == expected, name
    assert log.leader_epoch_cache.entries
