"""`kill -9` at random moments while a share group works, round after round on one directory.

What a member has heard to be accepted or rejected is never delivered again, what it has released comes with the next
delivery count, and in the end every record is done. `KILL_ROUNDS`, of which a quarter is played, and `KILL_SEED` are
those of `test_kill_rounds.py`.
"""

import os
import random
import signal
import threading
import time

import pytest
from confluent_kafka import AcknowledgeType, KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from .test_data_dir import TIMEOUT_S, Simulator

pytestmark = [pytest.mark.clients, pytest.mark.soak(part="kills")]

ROUNDS = int(os.environ.get("KILL_ROUNDS", "16")) // 4
SEED = int(os.environ.get("KILL_SEED", str(random.randrange(1 << 32))))
LONGEST_LIFE_S = 0.6
RECORDS = 40
LIMIT = 3
GROUP, TOPIC, PARTITIONS = "billing", "orders", 2
CONFIGS = (
    "group.share.heartbeat.interval.ms=200",
    "group.share.min.heartbeat.interval.ms=200",
    "group.share.min.session.timeout.ms=1000",
    "group.share.session.timeout.ms=2000",
    f"group.share.delivery.count.limit={LIMIT}",
    "share.coordinator.state.topic.num.partitions=2",
    "share.coordinator.snapshot.update.records.per.snapshot=5",
    "share.coordinator.state.topic.prune.interval.ms=500",
)
OPTIONS = tuple(word for config in CONFIGS for word in ("--config", config))
FINAL = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)
KINDS = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)


class ShareSimulator(Simulator):
    """One whose waits of share groups are short."""

    def start(self, *options):
        super().start(*OPTIONS, *options)


@pytest.fixture
def simulator(tmp_path):
    simulator = ShareSimulator(tmp_path / "data")
    yield simulator
    simulator.process.kill()
    simulator.process.communicate(timeout=TIMEOUT_S)


class Billing:
    """What the members of the group have seen, over all lives of the cluster."""

    def __init__(self, rng):
        self.rng = rng
        self.placed = set()
        self.settled = {}
        """The round in which a record was accepted or rejected, and that was answered."""
        self.released = {}
        """The delivery count with which a record was released, and that was answered."""
        self.doubtful = set()
        """What was acknowledged, and not answered."""
        self.last_deliveries = set()
        self.deliveries = 0

    def place(self, simulator):
        producer = simulator.client(Producer, **{"enable.idempotence": True})

        def delivered(error, message):
            assert error is None, error
            self.placed.add((message.partition(), message.offset()))

        for number in range(RECORDS):
            producer.produce(TOPIC, b"order", partition=number % PARTITIONS, on_delivery=delivered)
        assert not producer.flush(TIMEOUT_S)

    def consume(self, simulator, is_over, *, accepts_all=False):
        """Consume and acknowledge, until that is over."""
        config = {"group.id": GROUP, "share.acknowledgement.mode": "explicit"}
        consumer = simulator.client(ShareConsumer, **config)
        consumer.subscribe([TOPIC])
        while not is_over():
            try:
                messages = [each for each in consumer.poll(0.1) if each.error() is None]
            except KafkaException:
                continue
            given = [self._take(message) for message in messages]
            for message, (record, count) in zip(messages, given, strict=True):
                kind = AcknowledgeType.ACCEPT
                if not accepts_all:
                    (kind,) = self.rng.choices(KINDS, (6, 3, 1))
                consumer.acknowledge(message, kind)
                (self.settled if kind in FINAL else self.released)[record] = count
            records = {record for record, _ in given}
            outcomes = {}
            if records:
                outcomes = {partition.partition: error for partition, error in consumer.commit_sync().items()}
            for record in records:
                if outcomes.get(record[0], "no answer") is not None:
                    self.settled.pop(record, None)
                    self.released.pop(record, None)
                    self.doubtful.add(record)
        consumer.close()

    def _take(self, message):
        record, count = (message.partition(), message.offset()), message.delivery_count()
        self.deliveries += 1
        assert record not in self.settled, f"{record} again, accepted with {self.settled[record]}"
        assert count <= LIMIT
        if record not in self.doubtful:
            assert count == self.released.get(record, 0) + 1, (record, count, self.released)
        if count == LIMIT:
            self.last_deliveries.add(record)
        self.released.pop(record, None)
        return record, count

    def left(self):
        return self.placed.difference(self.settled, self.doubtful, self.last_deliveries)


def begin(simulator):
    admin = simulator.client(AdminClient)
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(TIMEOUT_S)
    group = ConfigResource(ResourceType.GROUP, GROUP)
    group.add_incremental_config(
        ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([group])[group].result(TIMEOUT_S)


def test_what_a_share_group_has_done_survives_every_kill(simulator):
    print(f"KILL_SEED={SEED}")
    rng = random.Random(SEED)
    begin(simulator)
    billing = Billing(rng)
    for _ in range(ROUNDS):
        billing.place(simulator)
        killed, failures = threading.Event(), []

        def consume(killed=killed, failures=failures):
            try:
                billing.consume(simulator, killed.is_set)
            except BaseException as failure:  # noqa: BLE001 - it is raised below
                failures.append(failure)

        member = threading.Thread(target=consume)
        before = billing.deliveries
        member.start()
        while billing.deliveries == before and member.is_alive():
            time.sleep(0.01)
        time.sleep(rng.random() * LONGEST_LIFE_S)
        simulator.end(signal.SIGKILL)
        killed.set()
        member.join(TIMEOUT_S)
        assert not failures, failures
        simulator.start()
    end = time.monotonic() + TIMEOUT_S
    billing.consume(simulator, lambda: not billing.left() or time.monotonic() > end, accepts_all=True)
    assert not billing.left()
    assert len(billing.placed) == ROUNDS * RECORDS
    assert len(billing.settled) > ROUNDS * RECORDS // 4
