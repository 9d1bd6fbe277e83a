"""Tests of calls to the share coordinators: how they are batched, retried and given up."""

from random import Random

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata import BrokerState, MetadataImage, PartitionState, TopicState
from broker_sim.metadata.topic_name import SHARE_GROUP_STATE_TOPIC
from broker_sim.share.persister.persister import Call, DefaultStatePersister, NoOpStatePersister
from broker_sim.share.share_state import (
    ReadState,
    SharePartitionKey,
    StateOutcome,
    StateSummary,
    WrittenState,
)
from broker_sim.share.state_apis import INITIALIZE, READ, STATE_APIS, SUMMARY, WRITE
from tests.broker_sim.broker_contexts import broker_context
from tests.broker_sim.share.named_values import ACKNOWLEDGED, state_batch

TOPIC_ID = Random(1).randbytes(16)
KEY = SharePartitionKey("g", TOPIC_ID, 0)
WRITTEN = WrittenState(1, 2, 3, 4, (state_batch(3, 5, ACKNOWLEDGED),))
OK = StateOutcome()


def image_of(*leaders, alive=(1, 2)):
    """Return an image whose share state topic has a partition led by each of the given brokers."""
    partitions = tuple(PartitionState((1, 2), (1, 2), leader, 0, 0) for leader in leaders)
    topics = {}
    if leaders:
        topics[SHARE_GROUP_STATE_TOPIC] = TopicState(SHARE_GROUP_STATE_TOPIC, bytes(16), partitions)
    brokers = {
        broker_id: BrokerState(broker_id, (), None, epoch=1, fenced=broker_id not in alive) for broker_id in (1, 2)
    }
    return MetadataImage(1, "cluster", brokers=brokers, topics=topics)


class Sender:
    """Collects the requests until the test responds to them."""

    def __init__(self):
        self.open = {}
        self.sent = []

    def is_busy(self, receiver, api):
        return (api, receiver) in self.open

    def send(self, receiver, call, on_answer, api):
        assert call[0] is api
        self.open[api, receiver] = (call[1], on_answer)
        self.sent.append((api, receiver, call[1]))


class Bench:
    """A persister whose coordinators, time and metadata are controlled by the test."""

    def __init__(self):
        self.sender = Sender()
        self.image = image_of(1, 2)
        self.created_topics = 0
        self.waiting = []
        self.soon = []
        self.done = []
        self.persister = DefaultStatePersister(
            broker_context(
                self,
                random=Random(5),
                call_later=lambda delay_ms, *call: self.waiting.append((delay_ms, call)),
                after_serving=self.soon.append,
            ),
            self.sender,
            lambda key: int(key.rpartition(":")[2]) % 2,
            self._create_topic,
        )

    def _create_topic(self):
        self.created_topics += 1

    def turn(self):
        while self.soon:
            self.soon.pop(0)()

    def write(self, key=KEY, written=WRITTEN):
        self.persister.write_state(key, written, self.done.append)
        self.turn()

    def pass_wait(self):
        """Finish the only pending wait and return its length in milliseconds."""
        ((delay_ms, (callback, *args)),) = self.waiting
        self.waiting.clear()
        callback(*args)
        self.turn()
        return delay_ms

    def answer(self, api, receiver=1, outcome=OK, only=None):
        """Respond to the open request with this outcome for all its share partitions; None means a lost connection."""
        request, on_answer = self.sender.open.pop((api, receiver))
        response = None
        if outcome is not None:
            keys = [key for key, _ in api.arguments_of(request)]
            response = api.response_of({key: outcome for key in keys if only in {None, key}})
        on_answer(response)
        self.turn()

    def sent(self, api=WRITE):
        return [
            (receiver, request.group_id, [(key.partition, each) for key, each in arguments])
            for sent, receiver, request in self.sender.sent
            if sent is api
            for arguments in [api.arguments_of(request)]
        ]


@pytest.fixture
def bench():
    return Bench()


def test_call_goes_to_the_leader_of_its_state_partition(bench):
    bench.write()
    bench.write(KEY._replace(partition=1))
    assert bench.sent() == [(1, "g", [(0, WRITTEN)]), (2, "g", [(1, WRITTEN)])]
    bench.answer(WRITE)
    assert bench.done == [OK]
    bench.answer(WRITE, 2)
    assert bench.done == [OK, OK]


def test_calls_send_their_arguments_and_return_the_outcome(bench):
    bench.persister.initialize_state(KEY, 4, -1, bench.done.append)
    bench.persister.read_state(KEY, 6, bench.done.append)
    bench.persister.delete_state(KEY, bench.done.append)
    bench.persister.read_summary(KEY, 7, bench.done.append)
    bench.turn()
    assert [bench.sent(api) for api in STATE_APIS if api is not WRITE] == [
        [(1, "g", [(0, arguments)])] for arguments in ((4, -1), (6,), (), (7,))
    ]
    bench.answer(INITIALIZE)
    read = ReadState(state_epoch=4, start_offset=3, state_batches=(state_batch(3, 5, ACKNOWLEDGED),))
    bench.answer(READ, outcome=read)
    summary = StateSummary(state_epoch=4, leader_epoch=6, start_offset=3, delivery_complete_count=9)
    bench.answer(SUMMARY, outcome=summary)
    assert bench.done == [OK, read, summary]


def test_calls_during_an_open_request_are_sent_in_the_next(bench):
    other = SharePartitionKey("h", TOPIC_ID, 0)
    bench.write()
    for key in (KEY._replace(partition=2), other, KEY._replace(partition=4)):
        bench.write(key)
    bench.persister.read_state(KEY, 1, bench.done.append)
    bench.turn()
    assert len(bench.sent(WRITE)) == len(bench.sent(READ)) == 1
    bench.answer(WRITE)
    bench.answer(WRITE)
    bench.answer(WRITE)
    assert bench.sent()[1:] == [(1, "g", [(2, WRITTEN), (4, WRITTEN)]), (1, "h", [(0, WRITTEN)])]
    assert len(bench.done) == 4


def batches_at(*offsets):
    return tuple(state_batch(offset, offset, ACKNOWLEDGED) for offset in offsets)


def test_waiting_writes_of_a_share_partition_are_combined(bench):
    """A leader has thousands of writes when the locks of a fetch expire; each callback gets the outcome."""
    bench.write()
    outcomes = []
    for offset in range(3_000):
        written = WRITTEN._replace(start_offset=offset, state_batches=batches_at(offset))
        bench.persister.write_state(KEY, written, outcomes.append)
    bench.turn()
    bench.answer(WRITE)
    whole = WRITTEN._replace(start_offset=2_999, state_batches=batches_at(*range(3_000)))
    assert bench.sent()[1:] == [(1, "g", [(0, whole)])]
    bench.answer(WRITE)
    assert outcomes == [OK] * 3_000


def test_writes_with_different_epochs_keep_their_order(bench):
    second, third = WRITTEN._replace(state_epoch=2), WRITTEN._replace(leader_epoch=3)
    for written in (WRITTEN, second, third):
        bench.persister.write_state(KEY, written, bench.done.append)
    bench.turn()
    for _ in range(3):
        bench.answer(WRITE)
    assert bench.sent() == [(1, "g", [(0, each)]) for each in (WRITTEN, second, third)]


def test_combined_writes_are_retried_as_one(bench):
    for _ in range(2):
        bench.persister.write_state(KEY, WRITTEN, bench.done.append)
    bench.turn()
    bench.answer(WRITE, outcome=StateOutcome(ErrorCode.NOT_COORDINATOR))
    bench.pass_wait()
    bench.answer(WRITE)
    assert [arguments for _, _, [(_, arguments)] in bench.sent()] == [
        WRITTEN._replace(state_batches=WRITTEN.state_batches * 2)
    ] * 2
    assert bench.done == [OK, OK]


def test_large_writes_are_spread_over_several_requests(bench):
    """This limits the size of a request and the work in one turn of the event loop."""
    large = WRITTEN._replace(state_batches=batches_at(*range(4_000)))
    keys = [KEY._replace(partition=number) for number in (0, 2, 4)]
    for key in keys:
        bench.persister.write_state(key, large, bench.done.append)
    bench.turn()
    assert bench.sent() == [(1, "g", [(0, large), (2, large)])]
    bench.answer(WRITE)
    assert len(bench.sent()) == 1
    assert bench.pass_wait() == 0
    assert bench.sent()[1:] == [(1, "g", [(4, large)])]


def test_groups_take_turns(bench):
    """This holds even if one group has more writes than fit in one request."""
    large = WRITTEN._replace(state_batches=batches_at(*range(6_000)))
    keys = [SharePartitionKey(group, TOPIC_ID, number) for group in "gh" for number in (0, 2)]
    for key in keys:
        bench.persister.write_state(key, large, bench.done.append)
    bench.turn()
    for _ in range(3):
        bench.answer(WRITE)
        bench.pass_wait()
    assert [group for _, group, _ in bench.sent()] == ["g", "h", "g", "h"]


def test_error_without_retry_is_returned_at_once(bench):
    bench.write()
    bench.answer(WRITE, outcome=StateOutcome(ErrorCode.FENCED_STATE_EPOCH, "fenced"))
    assert bench.done == [(ErrorCode.FENCED_STATE_EPOCH, "Error in write state RPC. fenced")]
    assert bench.waiting == []


@pytest.mark.parametrize("key", [KEY._replace(group_id=""), KEY._replace(partition=-1)])
def test_call_with_an_invalid_share_partition_is_not_sent(bench, key):
    bench.write(key)
    (outcome,) = bench.done
    assert outcome.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.sent() == []


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        StateOutcome(ErrorCode.NOT_COORDINATOR),
        StateOutcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        StateOutcome(ErrorCode.COORDINATOR_NOT_AVAILABLE),
        StateOutcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_call_is_retried_at_the_current_coordinator(bench, outcome):
    bench.write()
    bench.answer(WRITE, outcome=outcome)
    bench.image = image_of(2, 1)
    bench.pass_wait()
    assert [receiver for receiver, *_ in bench.sent()] == [1, 2]
    bench.answer(WRITE, 2)
    assert bench.done == [OK]


def test_call_fails_after_five_attempts_with_exponential_backoff(bench):
    bench.write()
    waits = []
    for _ in range(4):
        bench.answer(WRITE, outcome=None)
        waits.append(bench.pass_wait())
    for wait_ms, middle_ms in zip(waits, (2_000, 4_000, 8_000, 16_000), strict=True):
        assert wait_ms == pytest.approx(middle_ms, rel=0.2)
    bench.answer(WRITE, outcome=None)
    assert bench.done == [
        (
            ErrorCode.NETWORK_EXCEPTION,
            "Error in write state RPC. Exhausted max retries to complete write state RPC without success.",
        )
    ]
    assert bench.waiting == []


def test_share_partition_missing_in_the_response_fails(bench):
    bench.persister.write_state(KEY, WRITTEN, bench.done.append)
    bench.persister.write_state(KEY._replace(partition=2), WRITTEN, bench.done.append)
    bench.turn()
    bench.answer(WRITE, only=KEY)
    assert [outcome.error_code for outcome in bench.done] == [ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR]


def test_first_call_creates_the_state_topic_and_waits_for_it(bench):
    bench.image = image_of()
    bench.write()
    assert (bench.created_topics, bench.sent()) == (1, [])
    bench.image = image_of(1, 2)
    bench.pass_wait()
    bench.answer(WRITE)
    assert (bench.created_topics, bench.done) == (1, [OK])


def test_finding_a_coordinator_resets_the_count_of_attempts(bench):
    bench.image = image_of()
    bench.write()
    for _ in range(3):
        bench.pass_wait()
    bench.image = image_of(1, 2)
    bench.pass_wait()
    bench.answer(WRITE, outcome=None)
    bench.image = image_of()
    bench.pass_wait()
    assert bench.done == []
    bench.image = image_of(1, 2)
    bench.pass_wait()
    bench.answer(WRITE)
    assert bench.done == [OK]


@pytest.mark.parametrize("image", [image_of(), image_of(-1, -1), image_of(1, 1, alive=(2,))])
def test_call_fails_after_five_attempts_to_find_the_coordinator(bench, image):
    bench.image = image
    bench.write()
    for _ in range(4):
        bench.pass_wait()
    assert bench.done == [
        (
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            "Error in find coordinator. Exhausted max retries to find coordinator without success.",
        )
    ]
    assert bench.waiting == []


@pytest.mark.parametrize("api", STATE_APIS)
def test_no_op_persister_returns_success_without_state(api):
    done = []
    NoOpStatePersister().enqueue(Call(api, KEY, api.arguments, done.append))
    assert done == [api.outcome()]
    assert done[0].error_code == ErrorCode.NONE
