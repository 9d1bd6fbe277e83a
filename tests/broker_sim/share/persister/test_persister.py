"""Claims about calls to the share coordinators: batched, sent again, given up."""

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
    """Return an image in which these brokers lead the partitions of the state topic."""
    partitions = tuple(PartitionState((1, 2), (1, 2), leader, 0, 0) for leader in leaders)
    topics = {}
    if leaders:
        topics[SHARE_GROUP_STATE_TOPIC] = TopicState(SHARE_GROUP_STATE_TOPIC, bytes(16), partitions)
    brokers = {
        broker_id: BrokerState(broker_id, (), None, epoch=1, fenced=broker_id not in alive) for broker_id in (1, 2)
    }
    return MetadataImage(1, "cluster", brokers=brokers, topics=topics)


class Sender:
    """Keeps what is sent until the test answers it."""

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
    """A persister whose coordinators, time and metadata are the test's."""

    def __init__(self):
        self.sender = Sender()
        self.image = image_of(1, 2)
        self.made_topics = 0
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
            self._make_topic,
        )

    def _make_topic(self):
        self.made_topics += 1

    def turn(self):
        while self.soon:
            self.soon.pop(0)()

    def write(self, key=KEY, written=WRITTEN):
        self.persister.write_state(key, written, self.done.append)
        self.turn()

    def pass_wait(self):
        """Let the one wait be over, and return its length."""
        ((delay_ms, (callback, *args)),) = self.waiting
        self.waiting.clear()
        callback(*args)
        self.turn()
        return delay_ms

    def answer(self, api, receiver=1, outcome=OK, only=None):
        """Answer the open request with that outcome for all that it asks; None loses it."""
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


def test_call_goes_to_the_leader_of_its_partition_of_the_topic(bench):
    bench.write()
    bench.write(KEY._replace(partition=1))
    assert bench.sent() == [(1, "g", [(0, WRITTEN)]), (2, "g", [(1, WRITTEN)])]
    bench.answer(WRITE)
    assert bench.done == [OK]
    bench.answer(WRITE, 2)
    assert bench.done == [OK, OK]


def test_calls_say_and_get_what_their_messages_have(bench):
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


def test_what_comes_while_a_request_is_open_goes_with_the_next(bench):
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


def test_writes_of_a_share_partition_that_wait_are_one(bench):
    """A leader has thousands of them when the locks of a fetch end; each one is outcomes of its outcome."""
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


def test_writes_of_another_epoch_keep_their_order(bench):
    second, third = WRITTEN._replace(state_epoch=2), WRITTEN._replace(leader_epoch=3)
    for written in (WRITTEN, second, third):
        bench.persister.write_state(KEY, written, bench.done.append)
    bench.turn()
    for _ in range(3):
        bench.answer(WRITE)
    assert bench.sent() == [(1, "g", [(0, each)]) for each in (WRITTEN, second, third)]


def test_joined_writes_that_fail_are_sent_again_as_one(bench):
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


def test_large_writes_go_in_turns(bench):
    """So that neither one request nor one turn of the loop has all that members have changed at a time."""
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
    """Also while one has more than goes in a request."""
    large = WRITTEN._replace(state_batches=batches_at(*range(6_000)))
    keys = [SharePartitionKey(group, TOPIC_ID, number) for group in "gh" for number in (0, 2)]
    for key in keys:
        bench.persister.write_state(key, large, bench.done.append)
    bench.turn()
    for _ in range(3):
        bench.answer(WRITE)
        bench.pass_wait()
    assert [group for _, group, _ in bench.sent()] == ["g", "h", "g", "h"]


def test_error_that_stays_is_told_at_once(bench):
    bench.write()
    bench.answer(WRITE, outcome=StateOutcome(ErrorCode.FENCED_STATE_EPOCH, "fenced"))
    assert bench.done == [(ErrorCode.FENCED_STATE_EPOCH, "Error in write state RPC. fenced")]
    assert bench.waiting == []


@pytest.mark.parametrize("key", [KEY._replace(group_id=""), KEY._replace(partition=-1)])
def test_call_that_names_no_share_partition_is_not_sent(bench, key):
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
def test_call_is_sent_again_to_the_coordinator_of_then(bench, outcome):
    bench.write()
    bench.answer(WRITE, outcome=outcome)
    bench.image = image_of(2, 1)
    bench.pass_wait()
    assert [receiver for receiver, *_ in bench.sent()] == [1, 2]
    bench.answer(WRITE, 2)
    assert bench.done == [OK]


def test_call_is_given_up_after_five_attempts_with_longer_waits(bench):
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


def test_share_partition_that_an_answer_leaves_out_has_failed(bench):
    bench.persister.write_state(KEY, WRITTEN, bench.done.append)
    bench.persister.write_state(KEY._replace(partition=2), WRITTEN, bench.done.append)
    bench.turn()
    bench.answer(WRITE, only=KEY)
    assert [outcome.error_code for outcome in bench.done] == [ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR]


def test_first_call_makes_the_topic_and_waits_for_it(bench):
    bench.image = image_of()
    bench.write()
    assert (bench.made_topics, bench.sent()) == (1, [])
    bench.image = image_of(1, 2)
    bench.pass_wait()
    bench.answer(WRITE)
    assert (bench.made_topics, bench.done) == (1, [OK])


def test_attempts_to_find_a_coordinator_begin_anew_once_it_was_found(bench):
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
def test_coordinator_that_is_not_found_five_times_is_given_up(bench, image):
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
def test_call_of_a_persister_that_keeps_nothing_succeeds_without_state(api):
    done = []
    NoOpStatePersister().enqueue(Call(api, KEY, api.arguments, done.append))
    assert done == [api.outcome()]
    assert done[0].error_code == ErrorCode.NONE
