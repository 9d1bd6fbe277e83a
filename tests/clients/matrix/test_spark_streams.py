"""Spark's Kafka connector on both sides: with a subscription, and as a reader of committed transactions.

Spark asks for partitions and offsets by the admin client, or, as before 3.1, by a consumer that is a
member of a group. Both are here.
"""

import json
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest
from broker_sim_integration.cluster_under_test.polling import poll_until
from confluent_kafka import Producer

PROGRAM = Path(__file__).parent / "members" / "spark_streams.py"
ROOT = Path(__file__).parents[3]
START_TIMEOUT_S = 600
PATIENCE_S = 120
PARTITIONS = 2
RECORDS = 5

pytestmark = [pytest.mark.spark, pytest.mark.threads]


class Spark:
    """A process with a Spark session. What its queries have read is collected by a thread."""

    def __init__(self, log):
        self._read = {}
        self._stopped = {}
        self._is_ready = False
        self._changed = threading.Condition()
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self._wait(lambda: self._is_ready, START_TIMEOUT_S)

    def _listen(self):
        for line in self._process.stdout:
            if not line.startswith("{"):  # Ivy's first line: it goes where this process's output does
                continue
            with self._changed:
                self._take(json.loads(line))
                self._changed.notify_all()

    def _take(self, event):
        if "read" in event:
            self._read.setdefault(event["read"], []).extend(map(tuple, event["records"]))
        elif "stopped" in event:
            self._stopped[event["stopped"]] = event["error"]
        else:
            self._is_ready = event["ready"]

    def _wait(self, condition, timeout_s=PATIENCE_S):
        with self._changed:
            reached = self._changed.wait_for(condition, timeout_s)
            assert reached, f"{self._read} {Path(self._log.name).read_text()[-2000:]}"

    def _say(self, **command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def start(self, name, **more):
        self._say(start=name, **more)

    def batch(self, name, **options):
        """Read all there is, once."""
        self._say(batch=name, options=options)

    def stop(self, name):
        """Stop a query, which has not failed."""
        self._say(stop=name)
        self._wait(lambda: name in self._stopped)
        assert self._stopped[name] is None

    def wait_until_read(self, name, records):
        """Wait until the query has read these records, and see that it has read each only once."""
        self._wait(lambda: set(self._read.get(name, ())) >= records)
        assert sorted(self._read[name]) == sorted(records)

    def close(self):
        """End it; returns the exit code."""
        self._process.stdin.close()
        code = self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        self._process.stdout.close()
        self._log.close()
        return code


@pytest.fixture(scope="module")
def spark(require_or_skip, tmp_path_factory):
    if find_spec("pyspark") is None:
        require_or_skip("pyspark is not installed: make setup-spark")
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.spark.session import require_java

    try:
        require_java()
    except PipelineError as error:
        require_or_skip(str(error))
    running = Spark(tmp_path_factory.mktemp("spark") / "log")
    yield running
    assert running.close() == 0


def records(topics, offsets):
    """Return what Spark tells of all records of the topics with these offsets."""
    return set(product(topics, range(PARTITIONS), offsets))


@pytest.mark.parametrize("how", ["subscribe", "subscribePattern"])
def test_streams_read_all_and_go_on_from_their_checkpoints(side, spark, tmp_path, how):
    name, prefix = side.names()
    topics, later = [f"{name}-a", f"{name}-b"], f"{name}-c"
    subscribed = [*topics, later] if how == "subscribePattern" else topics

    def create_and_produce(*created):
        for topic in created:
            side.create_topic(topic, PARTITIONS)
        for topic in sorted({*topics, *created}):
            side.produce(topic, PARTITIONS, RECORDS)

    def start(number):
        for by in ("admin", "consumer"):
            options = {
                "kafka.bootstrap.servers": side.bootstrap_servers,
                how: f"{name}-." if how == "subscribePattern" else ",".join(topics),
                "startingOffsets": "earliest",
                "groupIdPrefix": f"{prefix}-{by}",
                "kafka.metadata.max.age.ms": "500",
            }
            query = f"{side.name} {name} {by} {number}"
            spark.start(query, options=options, checkpoint=str(tmp_path / by), by=by)
            yield query

    def wait_until_read(queries, wanted):
        for query in queries:
            spark.wait_until_read(query, wanted)

    def stop(queries):
        for query in queries:
            spark.stop(query)

    create_and_produce(*topics)
    first = list(start(1))
    wait_until_read(first, records(topics, range(RECORDS)))

    create_and_produce(later)
    of_later = records(subscribed[2:], range(RECORDS))
    wait_until_read(first, records(topics, range(2 * RECORDS)) | of_later)
    groups = [group for group in side.groups() if group.startswith(prefix)]
    assert all(group.startswith(f"{prefix}-consumer") for group in groups)
    # Where an offset could not be had at once, Spark has left a group and begun another.
    (group,) = [group for group in groups if side.state(group) == "STABLE"]
    stop(first)
    poll_until(lambda: side.state(group) == "EMPTY", f"{group} is empty")

    create_and_produce()
    again = list(start(2))
    wait_until_read(again, records(topics, range(2 * RECORDS, 3 * RECORDS)))
    stop(again)


def produce_in_transactions(side, topic):
    """Commit some records of each partition, abort some, commit some, abort some.

    Returns what Spark tells of the committed ones. A transaction ends with a marker, which has an offset too.
    """
    servers = {"bootstrap.servers": side.bootstrap_servers}
    producer = Producer(servers | {"transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for end in [producer.commit_transaction, producer.abort_transaction] * 2:
        producer.begin_transaction()
        for partition, number in product(range(PARTITIONS), range(RECORDS)):
            producer.produce(topic, f"value-{number}", partition=partition)
        assert producer.flush(PATIENCE_S) == 0
        end(PATIENCE_S)
    second = 2 * (RECORDS + 1)
    return records([topic], [*range(RECORDS), *range(second, second + RECORDS)])


def test_committed_records_are_read_and_copied_once(side, spark, tmp_path):
    topic, _ = side.names()
    sink = f"{topic}-done"
    for created in (topic, sink):
        side.create_topic(created, PARTITIONS)
    committed = produce_in_transactions(side, topic)
    name = f"{side.name} {topic}"
    servers = {"kafka.bootstrap.servers": side.bootstrap_servers}
    options = servers | {"startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}

    spark.batch(f"{name} batch", **options, subscribe=topic)
    spark.wait_until_read(f"{name} batch", committed)

    streamed = options | {"subscribe": topic}
    spark.start(name, options=streamed, checkpoint=str(tmp_path), by="admin", sink=sink)
    spark.wait_until_read(name, committed)
    spark.stop(name)
    spark.batch(f"{name} sink", **options, subscribe=sink)
    spark.wait_until_read(f"{name} sink", records([sink], range(2 * RECORDS)))
