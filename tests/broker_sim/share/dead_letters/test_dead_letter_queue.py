"""Dead letters are written, tried again or given up; the test plays the other brokers."""

from itertools import pairwise

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.config import BrokerConfig
from broker_sim.errors import ConfigError, ErrorCode
from broker_sim.metadata.topic_partition import TopicIdPartition
from broker_sim.runtime.inter_broker import MAX_ATTEMPTS
from broker_sim.share.dead_letters.dead_letter_queue import REJECTED, DeadLetterQueue, DeadLetters

GROUP, QUEUE = "group", "dlq.orders"
SOURCE = TopicIdPartition(b"o" * 16, 4, "orders")
LETTERS = DeadLetters(GROUP, SOURCE, 10, 12, 1, REJECTED)
NO_ANSWER = None
WAITS_MS = (2_000, 4_000, 8_000, 16_000)
JITTER = 0.2
WHOLE_MS = 60_000


class Peers:
    """The other brokers: they answer at once, as the test says; without words left all is well."""

    def __init__(self, cluster, make_answer):
        self.answers = []
        self.sent = []
        """The time in ms and the content of each request."""
        self._cluster = cluster
        self._make_answer = make_answer

    def is_busy(self, _receiver, _kind=None):
        return False

    def send(self, _receiver, request, on_answer, _kind=None, **_):
        self.sent.append((self._cluster.now_ms, request))
        error = self.answers.pop(0) if self.answers else ErrorCode.NONE
        on_answer(NO_ANSWER if error is NO_ANSWER else self._make_answer(request, error))

    @property
    def waits_ms(self):
        times = [now_ms for now_ms, _ in self.sent]
        return [later - earlier for earlier, later in pairwise(times)]


class Bench:
    """One broker with the queue of a group."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.broker = cluster.nodes.brokers[1]
        self.appends = Peers(cluster, dict.fromkeys)
        self.creations = Peers(cluster, lambda _, error: error)
        own = self.broker.share_partitions.dead_letters
        self.queue = DeadLetterQueue(own._broker, own._settings, own._read_log, self.appends, self.creations)
        self.done = 0

    def enqueue(self):
        self.broker.process.actions.serve(self.queue.enqueue, LETTERS, self._on_done)

    def _on_done(self):
        self.done += 1

    def counts(self):
        return self.queue.records[GROUP], self.queue.given_up[GROUP], self.queue.failed_requests[GROUP]


@pytest.fixture
def bench():
    with VirtualCluster(1, configs={"errors.deadletterqueue.auto.create.topics.enable": True}) as cluster:
        cluster.set_group_configs(GROUP, {"errors.deadletterqueue.topic.name": QUEUE})
        cluster.advance(100)
        yield Bench(cluster)


@pytest.fixture
def with_topic(bench):
    bench.cluster.create_topic(QUEUE, 3, 1, {"errors.deadletterqueue.group.enable": True})
    bench.cluster.advance(100)
    return bench


def assert_waits(waits_ms):
    assert len(waits_ms) == len(WAITS_MS)
    for wait_ms, expected_ms in zip(waits_ms, WAITS_MS, strict=True):
        assert abs(wait_ms - expected_ms) <= expected_ms * JITTER


def test_letters_go_to_the_partition_of_their_source_modulo_the_number_of_partitions(with_topic):
    with_topic.enqueue()
    ((_, request),) = with_topic.appends.sent
    assert [(key.topic, key.partition) for key in request] == [(QUEUE, SOURCE.partition % 3)]
    assert with_topic.done == 1
    assert with_topic.counts() == (3, 0, 0)


@pytest.mark.parametrize("answer", [NO_ANSWER, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_letters_are_tried_five_times_and_each_wait_doubles(with_topic, answer):
    with_topic.appends.answers = [answer] * MAX_ATTEMPTS
    with_topic.enqueue()
    with_topic.cluster.advance(WHOLE_MS)
    assert_waits(with_topic.appends.waits_ms)
    assert with_topic.done == 1
    assert with_topic.counts() == (0, 3, 1)


def test_last_attempt_may_succeed(with_topic):
    with_topic.appends.answers = [NO_ANSWER] * (MAX_ATTEMPTS - 1)
    with_topic.enqueue()
    with_topic.cluster.advance(WHOLE_MS)
    assert_waits(with_topic.appends.waits_ms)
    assert with_topic.done == 1
    assert with_topic.counts() == (3, 0, 0)


@pytest.mark.parametrize("error", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE])
def test_other_errors_give_letters_up_at_once(with_topic, error):
    with_topic.appends.answers = [error]
    with_topic.enqueue()
    assert with_topic.done == 1
    assert with_topic.counts() == (0, 3, 1)


def test_group_whose_queue_is_taken_away_gives_up_before_the_next_attempt(with_topic):
    with_topic.appends.answers = [NO_ANSWER]
    with_topic.enqueue()
    with_topic.cluster.set_group_configs(GROUP, {"errors.deadletterqueue.topic.name": ""})
    with_topic.cluster.advance(WHOLE_MS)
    assert len(with_topic.appends.sent) == 1
    assert with_topic.done == 1
    assert with_topic.counts() == (0, 3, 0)


@pytest.mark.parametrize("answer", [NO_ANSWER, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE])
def test_topic_that_does_not_appear_is_asked_for_five_times(bench, answer):
    bench.creations.answers = [answer] * MAX_ATTEMPTS
    bench.enqueue()
    bench.cluster.advance(WHOLE_MS)
    assert_waits(bench.creations.waits_ms)
    assert {request for _, request in bench.creations.sent} == {QUEUE}
    assert bench.done == 1
    assert bench.counts() == (0, 3, 0)


def test_topic_that_cannot_be_created_gives_letters_up_at_once(bench):
    bench.creations.answers = [ErrorCode.INVALID_REPLICATION_FACTOR]
    bench.enqueue()
    assert bench.done == 1
    assert bench.counts() == (0, 3, 0)


def test_letters_are_written_once_the_topic_is_there(bench):
    bench.creations.answers = [NO_ANSWER]
    bench.enqueue()
    bench.cluster.create_topic(QUEUE, 1, 1, {"errors.deadletterqueue.group.enable": True})
    bench.cluster.advance(WHOLE_MS)
    assert len(bench.creations.sent) == 1
    assert bench.done == 1
    assert bench.counts() == (3, 0, 0)


NO_OP = "org.apache.kafka.server.share.dlq.NoOpShareGroupDLQManager"


@pytest.mark.parametrize("name", ["", NO_OP])
def test_manager_of_no_letters_ends_them_at_once(name):
    with VirtualCluster(1, configs={"group.share.dlq.manager.class.name": name}) as cluster:
        queue = cluster.nodes.brokers[1].share_partitions.dead_letters
        done = []
        queue.enqueue(LETTERS, lambda: done.append(True))
        assert done == [True]
        assert queue.given_up == {GROUP: 3}


def test_other_classes_of_managers_are_refused():
    with pytest.raises(ConfigError, match=r"group\.share\.dlq\.manager\.class\.name='x' must be one of Kafka's"):
        BrokerConfig.from_mapping({"group.share.dlq.manager.class.name": "x"})
