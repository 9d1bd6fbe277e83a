"""Clients of librdkafka that work while a cluster has faults, and remember what they were told.

Each is a thread. `done` counts what it has finished, `at` says in which call it is: one that stands still
is seen by its count and found by its place.
"""

import json
import random
import threading
import time
from collections import defaultdict

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

CALL_TIMEOUT_S = 10
MOST_RECORDS = 50
MOST_IN_FLIGHT = 500
PARTITIONS = 3


class Client(threading.Thread):
    """One client; `work` is called again and again until `stop`, and may leave the client in any state."""

    def __init__(self, name, settings, seed):
        super().__init__(name=name, daemon=True)
        self.settings = settings | {"client.id": name, "statistics.interval.ms": 1_000, "stats_cb": self._counted}
        self.request_timeouts = 0
        """How many requests librdkafka has given up, because no answer came within `socket.timeout.ms`."""
        self._timeouts_of = {}
        self.random = random.Random(f"{seed}/{name}")
        self.done = 0
        self.at = "new"
        self.errors = defaultdict(int)
        """How often an application saw which error, by call and name."""
        self.crash = None
        self._stopping = threading.Event()

    def run(self):
        try:
            while not self._stopping.is_set():
                self.work()
            self.at = "closing"
            self.close()
            self.at = "ended"
        except BaseException as error:
            self.crash = error
            raise

    def _counted(self, text):
        told = json.loads(text)
        for broker in told["brokers"].values():
            self._timeouts_of[told["name"], broker["name"]] = broker["req_timeouts"]
        self.request_timeouts = sum(self._timeouts_of.values())

    def stop(self):
        """Let it end after what it does now."""
        self._stopping.set()

    def wait(self, seconds):
        """Wait, but not beyond `stop`."""
        self._stopping.wait(seconds)

    def call(self, method, *arguments):
        """Call a method of a client until it does not ask for another try; returns the last error or None."""
        self.at = method.__name__
        while True:
            try:
                method(*arguments)
            except KafkaException as exception:
                error = exception.args[0]
                self.saw(method.__name__, error)
                if not error.retriable() or self._stopping.is_set():
                    return error
                self.wait(0.05)
            else:
                return None

    def saw(self, place, error):
        """Note an error."""
        self.errors[f"{place} {error.name()}"] += 1


class IdempotentProducer(Client):
    """Writes numbered records to `input`, and keeps those that were acknowledged in order."""

    def __init__(self, name, settings, seed, *, rate):
        super().__init__(name, settings | {"enable.idempotence": True, "linger.ms": 2}, seed)
        self.acknowledged = defaultdict(list)
        """By partition: offset and value."""
        self.failed = []
        self._rate = rate
        self._sent = 0
        self._producer = Producer(self.settings)

    def work(self):
        self.at = "produce"
        if len(self._producer) < MOST_IN_FLIGHT:
            value = b"%s-%d" % (self.name.encode(), self._sent)
            self._producer.produce("input", value, partition=self._sent % PARTITIONS, on_delivery=self._delivered)
            self._sent += 1
        self._producer.poll(0)
        self.wait(1 / self._rate)

    def close(self):
        while self._producer.flush(1):
            pass

    def _delivered(self, error, message):
        if error is None:
            self.acknowledged[message.partition()].append((message.offset(), message.value()))
            self.done += 1
        else:
            self.saw("delivery", error)
            self.failed.append((error.name(), message.value()))


class TransactionalClient(Client):
    """What has a transactional producer; one that has failed for good is replaced by a new one."""

    def __init__(self, name, settings, seed, *, timeout_ms):
        own = {"transactional.id": name, "transaction.timeout.ms": timeout_ms, "linger.ms": 1}
        super().__init__(name, settings, seed)
        self._producer_settings = self.settings | own
        self._producer = None
        self.replaced = 0
        self.committed = []
        """Partition, offset and value of each record of a committed transaction, as its report said."""
        self._told = []
        """The same of the transaction that goes on."""

    def producer(self):
        """Return a producer that can begin a transaction; None when there is none before `stop`."""
        while self._producer is None and not self._stopping.is_set():
            producer = Producer(self._producer_settings)
            error = self.call(producer.init_transactions, CALL_TIMEOUT_S)
            if error is None:
                self._producer = producer
            else:
                self.replaced += 1
                self.wait(0.2)
        return self._producer

    def begin(self):
        """Begin a transaction; returns the error or None."""
        self._told = []
        return self.call(self._producer.begin_transaction)

    def produce(self, topic, value, partition):
        """Send a record; returns the error or None."""
        try:
            self._producer.produce(topic, value, partition=partition, on_delivery=self._delivered)
        except KafkaException as exception:
            self.saw("produce", exception.args[0])
            return exception.args[0]
        return None

    def _delivered(self, error, message):
        if error is None:
            self._told.append((message.partition(), message.offset(), message.value()))
        else:
            self.saw("delivery", error)

    def commit(self):
        """Return True, False, or None where the outcome is not known."""
        outcome = self.end(self.call(self._producer.commit_transaction, CALL_TIMEOUT_S))
        if outcome:
            self.committed += self._told
        return outcome

    def end(self, error):
        """Return whether it is committed when the last call said so; else abort it, or give the producer up."""
        if error is None:
            return True
        if error.txn_requires_abort():
            return False if self.abort() else None
        self._give_up()
        return None

    def abort(self):
        """Abort; returns whether that is sure."""
        if self.call(self._producer.abort_transaction, CALL_TIMEOUT_S) is None:
            return True
        self._give_up()
        return False

    def _give_up(self):
        self._producer = None
        self.replaced += 1

    def close(self):
        self._producer = None


class PairProducer(TransactionalClient):
    """Writes the same number to two partitions of `pairs` in one transaction, and aborts some at once."""

    def __init__(self, name, settings, seed, *, timeout_ms, abort_share=0.15):
        super().__init__(name, settings, seed, timeout_ms=timeout_ms)
        self.outcomes = {}
        """By value: True for committed, False for aborted, None where it is not known."""
        self._abort_share = abort_share
        self._sent = 0

    def work(self):
        if self.producer() is None:
            return
        if (error := self.begin()) is not None:
            self.end(error)
            return
        value = b"%s-%d" % (self.name.encode(), self._sent)
        self._sent += 1
        self.outcomes[value] = None
        for partition in self.random.sample(range(PARTITIONS), 2):
            if (error := self.produce("pairs", value, partition)) is not None:
                self.outcomes[value] = self.end(error)
                return
        if self.random.random() < self._abort_share:
            self.wait(self.random.choice((0, 0.005, 0.02)))
            self.outcomes[value] = False if self.abort() else None
        else:
            self.outcomes[value] = self.commit()
        self.done += 1
        self.wait(self.random.random() * 0.04)


class Copier(TransactionalClient):
    """Consumes `input` in a group and writes each record to the same partition of `output`, exactly once."""

    def __init__(self, name, settings, seed, *, timeout_ms, session_ms):
        super().__init__(name, settings, seed, timeout_ms=timeout_ms)
        self._consumer = Consumer(
            self.settings
            | {
                "group.id": "copiers",
                "session.timeout.ms": session_ms,
                "heartbeat.interval.ms": session_ms // 6,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._read = []
        self.assignments = []
        """When it was told which partitions it has from now on, and which not."""
        self._consumer.subscribe(["input"], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def _assigned(self, _, partitions):
        self.assignments.append((time.time(), "has", [each.partition for each in partitions]))

    def _revoked(self, _, partitions):
        self.assignments.append((time.time(), "has not", [each.partition for each in partitions]))
        # Another member reads these again: its generation would hide that they are not ours.
        self._read.clear()

    def work(self):
        if self.producer() is None:
            return
        self.at = "consume"
        self._read = []
        wait_s = 0.2
        while len(self._read) < MOST_RECORDS and (message := self._consumer.poll(wait_s)):
            if message.error() is None:
                self._read.append(message)
            else:
                self.saw("consume", message.error())
                # Its offsets were not told, and librdkafka does not ask again: docs/recipes/transactions.md.
                self._consumer.assign(self._consumer.assignment())
            wait_s = 0
        records = list(self._read)
        if not records:
            return
        error = self.begin() or self._copy(records)
        if self.end(error) if error is not None else self.commit():
            self.done += 1
        else:
            self._rewind()

    def _copy(self, records):
        offsets = {}
        for record in records:
            if error := self.produce("output", record.value(), record.partition()):
                return error
            offsets[record.partition()] = record.offset() + 1
        positions = [TopicPartition("input", *each) for each in offsets.items()]
        group = self._consumer.consumer_group_metadata()
        return self.call(self._producer.send_offsets_to_transaction, positions, group, CALL_TIMEOUT_S)

    def _rewind(self):
        """Go on from what is committed; again and again, until all partitions could be asked for."""
        self.producer()  # a new one first decides what the old one has left open
        self.at = "rewind"
        while not self._stopping.is_set():
            assigned = self._consumer.assignment()
            if not assigned:
                return
            try:
                self._seek_committed(assigned)
            except KafkaException as exception:
                self.saw("rewind", exception.args[0])
                self.wait(0.1)
            else:
                return

    def _seek_committed(self, assigned):
        for each in self._consumer.committed(assigned, CALL_TIMEOUT_S):
            if each.error is not None:
                raise KafkaException(each.error)
            offset = max(each.offset, 0)  # what stands for "none" is below
            self._consumer.seek(TopicPartition(each.topic, each.partition, offset))

    def close(self):
        super().close()
        self._consumer.close()


class Reader(Client):
    """Reads what is committed, in a group that commits by itself; sees that nothing comes out of order."""

    def __init__(self, name, settings, seed, *, topics):
        super().__init__(name, settings, seed)
        self._consumer = Consumer(
            self.settings
            | {
                "group.id": name,
                "session.timeout.ms": 6_000,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._consumer.subscribe(topics)

    def work(self):
        self.at = "consume"
        for message in self._consumer.consume(500, 0.2):
            if message.error() is None:
                self.done += 1
            elif message.error().code() != KafkaError._PARTITION_EOF:
                self.saw("consume", message.error())

    def close(self):
        self._consumer.close()
