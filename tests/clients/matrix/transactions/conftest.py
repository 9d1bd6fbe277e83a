"""Members of groups that transform a topic into another in transactions.

Such a member is told, after what all are told (../conftest.py), the topic to produce to, its name, by which its
transactional id goes, and its transaction timeout in ms. It reads committed records from the earliest offset. For
what it has at once it produces `done VALUE` for each value, sends the offsets, and commits, in one transaction, and
tells `committed`; when that is not to be it aborts, with a new producer where it was fenced, goes back to the first
of them, and tells `aborted`. At a value `hold NAME` with its name it tells `open` once records and offsets have
been sent, and stays in that transaction until it is killed.
"""

from contextlib import closing

import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

HEARTBEAT_MS = 400
PATIENCE_S = 120


class Members:
    """Starts members of a cluster's groups, and ends at its end those that run."""

    def __init__(self, bootstrap_servers, processes):
        self._bootstrap_servers = bootstrap_servers
        self._processes = processes

    def start(self, kind, strategy, group, source, sink, name, *, session_ms, transaction_ms):
        """Start a member of a kind of client."""
        consuming = [self._bootstrap_servers, group, source, session_ms, HEARTBEAT_MS, strategy]
        told = [*consuming, sink, name, transaction_ms]
        return self._processes.start(kind, "transaction", *told)

    def close(self):
        self._processes.close()


class CommittedReader:
    """Reads all of a topic, and sees what is committed."""

    def __init__(self, bootstrap_servers, topic, partitions):
        self.values = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"reader of {topic}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        self._partitions = [TopicPartition(topic, number, 0) for number in range(partitions)]
        self._consumer.assign(self._partitions)

    def read_until(self, number):
        """Read until there are so many values. `TimeoutError` when nothing comes any more."""
        while len(self.values) < number:
            self._read()

    def read_for(self, seconds):
        """Read what comes, for at most so long."""
        message = self._consumer.poll(seconds)
        if message is not None:
            self._take(message)

    def read_to_end(self):
        """Read until every partition has said that there is no more. No transaction is open."""
        self._consumer.incremental_unassign(self._partitions)
        self.values.clear()
        self._consumer.incremental_assign(self._partitions)
        ended = set()
        while len(ended) < len(self._partitions):
            ended |= self._read()

    def _read(self):
        message = self._consumer.poll(PATIENCE_S)
        if message is None:
            raise TimeoutError(f"read so far: {sorted(self.values)}")
        return self._take(message)

    def _take(self, message):
        if message.error() is None:
            self.values.append(message.value().decode())
            return set()
        assert message.error().code() == KafkaError._PARTITION_EOF
        return {message.partition()}

    def close(self):
        self._consumer.close()


class Transactions:
    """What a test does with transactions beside the members."""

    def __init__(self, side):
        self.bootstrap_servers = side.bootstrap_servers
        self._admin = side.admin

    def producer(self, transactional_id, **configs):
        """Return a producer that has its id."""
        servers = {"bootstrap.servers": self.bootstrap_servers}
        producer = Producer({**servers, "transactional.id": transactional_id, **configs})
        producer.init_transactions(PATIENCE_S)
        return producer

    @staticmethod
    def send(producer, topic, values, end="commit"):
        """Append values by partition in a transaction, then `commit` or `abort` it."""
        errors = []
        producer.begin_transaction()
        for partition, of_partition in values.items():
            for value in of_partition:
                producer.produce(topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(PATIENCE_S) == 0
        assert set(errors) == {None}
        {"commit": producer.commit_transaction, "abort": producer.abort_transaction}[end](PATIENCE_S)

    def open_partitions(self, topic, partitions):
        """Return the partitions whose last stable offset is not their end."""
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
        stable, ends = (
            {
                where.partition: answer.result(PATIENCE_S).offset
                for where, answer in self._admin.list_offsets(asked, isolation_level=isolation).items()
            }
            for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        )
        return {number for number in range(partitions) if stable[number] != ends[number]}

    def reader(self, topic, partitions):
        """Return a reader of committed records, to be closed."""
        return closing(CommittedReader(self.bootstrap_servers, topic, partitions))


@pytest.fixture(scope="session")
def transactions(side):
    return Transactions(side)


@pytest.fixture(scope="session")
def open_members(side, open_processes):
    """Return a function that returns `Members`, to be closed."""
    return lambda: Members(side.bootstrap_servers, open_processes())
