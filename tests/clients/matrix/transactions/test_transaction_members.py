"""Consume, transform, produce, exactly once: each client, by each protocol it has, on both sides.

The rebalances come in the middle of a flow of records, one member is killed (SIGKILL) in a transaction, and one with
its name and transactional id comes back. See conftest.py for what members do.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count

import pytest
from broker_sim_integration.cluster_under_test.polling import poll_until
from confluent_kafka import Producer

PARTITIONS = 4
HALF = PARTITIONS // 2
RECORDS = 5
AT_A_TIME = 3
"""So many groups live at the same time: most of the time each waits for the killed one's session."""
SESSION_MS = 6000
"""Of a member that is to die, and of all members of the consumer protocol."""
LONG_SESSION_MS = 45_000
"""Of a member that lives: below `PATIENCE_S`, because librdkafka that closes while it looks for the
coordinator says nothing to the group, and its session ends by time."""
TRANSACTION_MS = 8000
"""Of the member that is to die: its coordinator aborts what it has left open."""
LONG_TRANSACTION_MS = 240_000
PATIENCE_S = 120
FLOW_INTERVAL_S = 0.1
HOLD_INTERVAL_S = 0.1

CLIENTS = [
    ("confluent", "range"),
    ("confluent", "cooperative-sticky"),
    ("java", "consumer"),
    ("kafka_python", "range"),
    ("aiokafka", "range"),
    ("franz_go", "range"),
]


class Source:
    """The topic to be transformed, with the values that count."""

    def __init__(self, side, transactions, topic):
        side.create_topic(topic, PARTITIONS)
        self._side = side
        self._transactions = transactions
        self._topic = topic
        self._producer = transactions.producer(f"source of {topic}")
        self._numbers = count(1)
        self.values = []

    def produce(self, values=None):
        """Append some values to each partition, or these by partition; others are aborted."""
        if values is None:
            values = {partition: [str(next(self._numbers)) for _ in range(RECORDS)] for partition in range(PARTITIONS)}
        dropped = {partition: ["dropped"] for partition in values}
        self._transactions.send(self._producer, self._topic, dropped, end="abort")
        self._transactions.send(self._producer, self._topic, values)
        self.values += [value for of_partition in values.values() for value in of_partition]

    @contextmanager
    def flowing(self):
        """Append to each partition again and again, until the block ends."""
        ended = threading.Event()
        producer = Producer({"bootstrap.servers": self._side.bootstrap_servers})

        def flow():
            while not ended.wait(FLOW_INTERVAL_S):
                for partition in range(PARTITIONS):
                    self.values.append(str(next(self._numbers)))
                    producer.produce(self._topic, self.values[-1], partition=partition)
            assert producer.flush(PATIENCE_S) == 0

        with ThreadPoolExecutor(1) as pool:
            flown = pool.submit(flow)
            try:
                yield
            finally:
                ended.set()
            flown.result()


def hold(source, member, reader, value):
    """Let a member keep a transaction open. On a busy machine its session may end: then again."""
    for attempt in count(1):
        source.produce({max(member.owned, default=0): [value]})
        while reader.values.count(f"done {value}") < attempt:
            if member.has_told("open"):
                return
            reader.read_for(HOLD_INTERVAL_S)


def live(side, transactions, members, alter_group, kind, strategy):
    """Let a group transform a topic, and count what committed readers find."""
    topic, group = side.names()
    sink = f"{topic}-done"
    side.create_topic(sink, PARTITIONS)
    source = Source(side, transactions, topic)

    def start(name, session_ms=LONG_SESSION_MS, transaction_ms=LONG_TRANSACTION_MS):
        times = {"session_ms": session_ms, "transaction_ms": transaction_ms}
        return members.start(kind, strategy, group, topic, sink, f"{group}-{name}", **times)

    with transactions.reader(sink, PARTITIONS) as reader:

        def read_all():
            reader.read_until(len(source.values))

        source.produce()
        first = start("first")
        first.wait_until_owns(PARTITIONS)
        read_all()

        with source.flowing():
            second = start("second", SESSION_MS, TRANSACTION_MS)
            second.wait_until_owns(HALF)
            first.wait_until_owns(HALF)
        source.produce()
        read_all()

        hold(source, second, reader, f"hold {group}-second")
        assert transactions.open_partitions(sink, PARTITIONS)
        second.kill()
        source.produce()
        first.wait_until_owns(PARTITIONS)
        read_all()
        poll_until(
            lambda: not transactions.open_partitions(sink, PARTITIONS), "the killed member's transaction is aborted"
        )

        # From here on nobody is lost by a session's end: whoever leaves has said so.
        if strategy == "consumer":
            long = {"consumer.session.timeout.ms": LONG_SESSION_MS}
            alter_group(side.bootstrap_servers, group, long)
        with source.flowing():
            again = start("second")
            again.wait_until_owns(HALF)
            first.wait_until_owns(HALF)
            first.leave()
            again.wait_until_owns(PARTITIONS)
        source.produce()
        read_all()
        again.leave()

        poll_until(lambda: not transactions.open_partitions(sink, PARTITIONS), "no transaction is open")
        reader.read_to_end()
        assert sorted(reader.values) == sorted(f"done {value}" for value in source.values)


@pytest.fixture(scope="module")
def lives(side, transactions, open_members, alter_group, request):
    """Return the outcomes of all clients that are tested here, by client and strategy."""

    def outcome(kind, strategy):
        with closing(open_members()) as members:
            live(side, transactions, members, alter_group, kind, strategy)

    chosen = [
        (item.callspec.params["kind"], item.callspec.params["strategy"])
        for item in request.session.items
        if item.path == request.path and item.callspec.params["side"] == side.name
    ]
    pool = ThreadPoolExecutor(AT_A_TIME)
    yield {one: pool.submit(outcome, *one) for one in chosen}
    pool.shutdown(cancel_futures=True)


@pytest.mark.threads
@pytest.mark.parametrize(("kind", "strategy"), CLIENTS, ids=lambda value: value)
def test_each_record_is_transformed_once(lives, kind, strategy):
    lives[kind, strategy].result()
