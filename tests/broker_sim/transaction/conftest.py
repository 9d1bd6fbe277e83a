"""The transaction coordinator alone, in virtual time, with fake clients, log and leaders."""

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.errors import ErrorCode
from broker_sim.metadata import MetadataImage, changes_between
from broker_sim.metadata.image import BrokerState, PartitionState, TopicState
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.inter_broker import InterBrokerSender
from broker_sim.transaction.coordinator import ProducerIdAndEpoch, TransactionCoordinator
from broker_sim.transaction.end_transaction import EndOfTransaction
from broker_sim.transaction.state import TransactionVersion
from tests.broker_sim.broker_contexts import broker_context
from tests.broker_sim.transaction.surroundings import Call, Log, Timers

ME = 1
NOBODY = 0  # so that no marker goes to the sender itself
TXN = "txn"
TIMEOUT_MS = 60_000
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class Bench:
    """One coordinator, which leads all partitions of `__transaction_state` from the start."""

    def __init__(self, level=2, partitions=1, **configs):
        self.timers = Timers()
        self.log = Log()
        self.calls = []
        self.at_once = set()
        """Brokers that answer synchronously, while the request is still being sent."""
        self.next_ids = iter(range(1_000, 2_000))
        self.image = MetadataImage(0, "c", features={"transaction.version": level})
        self.config = BrokerConfig.from_mapping(
            {
                "transaction.state.log.num.partitions": str(partitions),
                **{key.replace("_", "."): str(value) for key, value in configs.items()},
            }
        )
        self.coordinator = self.new_coordinator()
        self.leaders = {T0: 1, T1: 2, U0: 2}
        self.dead = set()
        self.epoch = 5
        self.publish()
        self.advance()

    def new_coordinator(self):
        timers = self.timers
        context = broker_context(
            self,
            broker_id=ME,
            config=self.config,
            clock=timers.clock,
            call_later=timers.call_later,
            after_serving=lambda action: timers.call_later(0, action),
            storage=lambda topic, read_bytes: self.log,
        )
        markers = InterBrokerSender(
            NOBODY,
            timers.call_later,
            timers.clock,
            self,
            self.config.request_timeout_ms,
            self.serve_markers,
            lambda _: "WriteTxnMarkers",
        )
        return TransactionCoordinator(context, lambda: next(self.next_ids, None), markers)

    # -- what the coordinator uses ----------------------------------------------------------------

    def call(self, source, target, procedure, on_result, on_failure, api):
        procedure(on_result)
        self.calls[-1].lose = on_failure

    def serve_markers(self, broker_id, request, respond):
        self.calls.append(Call(broker_id, request, respond))
        if broker_id in self.at_once:
            self.calls[-1].answer()
            self.advance()

    # -- what the test does -----------------------------------------------------------------------

    def publish(self, leader=ME, level=None):
        """Publish metadata with the current `leaders`."""
        parts = {}
        for (topic, number), leader_id in self.leaders.items():
            parts.setdefault(topic, {})[number] = leader_id
        state = dict.fromkeys(range(self.config.transaction_state_log_num_partitions), leader)
        parts[TRANSACTION_STATE_TOPIC] = state
        features = dict(self.image.features)
        if level is not None:
            features["transaction.version"] = level
        image = MetadataImage(
            self.image.version + 1,
            "c",
            brokers={node: BrokerState(node, (), None, epoch=1, fenced=node in self.dead) for node in (1, 2, 3)},
            topics={
                name: TopicState(
                    name,
                    name.encode().ljust(16),
                    tuple(
                        PartitionState((1, 2, 3), (1, 2, 3), numbers.get(n, 3), self.epoch, 1)
                        for n in range(max(numbers) + 1)
                    ),
                )
                for name, numbers in parts.items()
            },
            features=features,
        )
        changes = changes_between(self.image, image)
        self.image = image
        self.coordinator.on_image(changes, image)

    def reelect(self):
        """Re-elect this broker in a new leader epoch."""
        self.epoch += 1
        self.publish()
        self.advance()

    def advance(self, delay_ms=0):
        self.timers.advance(delay_ms)

    def metadata(self, transactional_id=TXN):
        states = self.coordinator.states
        return states.partition_of(transactional_id).transactions.get(transactional_id)

    @property
    def state(self):
        return self.metadata().state

    def init(self, transactional_id=TXN, timeout_ms=TIMEOUT_MS, expected=None, **two_phase_commit):
        """Return the answer (error code, producer id, epoch), or the empty list that will receive it."""
        answers = []
        expected = None if expected is None else ProducerIdAndEpoch(*expected)
        self.coordinator.init_producer_id(
            transactional_id, timeout_ms, expected, lambda *answer: answers.append(answer), **two_phase_commit
        )
        return answers[0] if answers else answers

    def add(self, producer, *partitions, version=2, transactional_id=TXN):
        """Return the error code, or the empty list that will receive it."""
        answers = []
        self.coordinator.add_partitions(
            transactional_id,
            ProducerIdAndEpoch(*producer),
            partitions or (T0,),
            TransactionVersion(version),
            answers.append,
        )
        return answers[0] if answers else answers

    def verify(self, producer, *partitions, transactional_id=TXN):
        return self.coordinator.verify_partitions(transactional_id, ProducerIdAndEpoch(*producer), partitions)

    def end(self, producer, commit=True, version=2, transactional_id=TXN):
        """Return the answer (error code, producer id, epoch), or the empty list that will receive it."""
        answers = []
        self.coordinator.end_transaction(
            EndOfTransaction(transactional_id, *producer, commit, TransactionVersion(version)),
            lambda *answer: answers.append(answer),
        )
        return answers[0] if answers else answers

    def producer(self, **options):
        """Return the producer id and epoch of a new producer."""
        error_code, *producer = self.init(**options)
        assert error_code is ErrorCode.NONE
        return tuple(producer)

    def answer_markers(self):
        """Let the leaders acknowledge all markers, including those sent meanwhile."""
        self.advance()
        while self.calls:
            self.calls.pop(0).answer()
            self.advance()


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture
def make_bench():
    return Bench
