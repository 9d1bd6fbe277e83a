"""Verifications that a leader sends to coordinators: batched, one request at a time, and lost ones."""

from types import SimpleNamespace

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.errors import ErrorCode
from broker_sim.metadata import MetadataImage
from broker_sim.metadata.image import BrokerState, PartitionState, TopicState
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.replica.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from broker_sim.runtime.inter_broker import InterBrokerSender

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
RESPONSE = messages.AddPartitionsToTxnResponse
TIMEOUT_MS = 30_000


class Bench:
    """Broker 1, whose verifications all go to broker 2; the test plays time, links and the coordinator."""

    def __init__(self):
        self.requests = []
        self.timers = []
        self.clock = VirtualClock()
        self.leader = 2
        self.manager = AddPartitionsToTxnManager(
            InterBrokerSender(
                1, self.call_later, self.clock, self, TIMEOUT_MS, self.serve, lambda _: "AddPartitionsToTxn"
            ),
            lambda action: self.call_later(0, action),
            self.image,
            lambda _: 0,
        )

    def image(self):
        states = (PartitionState((2,), (2,), self.leader, 1, 1),)
        return MetadataImage(
            1,
            "c",
            brokers={2: BrokerState(2, (), None, epoch=1, fenced=False)},
            topics={TRANSACTION_STATE_TOPIC: TopicState("x", b"x" * 16, states)},
        )

    def call_later(self, delay_ms, callback, *args):
        timer = SimpleNamespace(delay_ms=delay_ms, run=lambda: callback(*args), is_cancelled=False)
        timer.cancel = lambda: setattr(timer, "is_cancelled", True)
        self.timers.append(timer)
        return timer

    def turn(self):
        """Run what is due at once."""
        due = [timer for timer in self.timers if not timer.delay_ms]
        self.timers = [timer for timer in self.timers if timer.delay_ms]
        for timer in due:
            timer.run()

    def time_out(self):
        (timer,) = [timer for timer in self.timers if not timer.is_cancelled]
        assert timer.delay_ms == TIMEOUT_MS
        self.clock.advance(TIMEOUT_MS)
        timer.run()

    def call(self, source, target, procedure, on_result, on_failure, api):
        assert (source, target) == (1, 2)
        procedure(on_result)
        self.requests[-1].lose = on_failure

    def serve(self, coordinator, request, send_result):
        assert coordinator == 2
        self.requests.append(SimpleNamespace(message=request, answer=send_result))

    def ask(self, name="tx", epoch=0, partitions=(T0,), adds=False):
        results = []
        self.manager.verify(name, 7, epoch, partitions, results.append, adds=adds)
        return results


def response(**codes):
    """Return an answer with one code for t-0 and t-1 of each transactional id."""
    part = RESPONSE.AddPartitionsToTxnPartitionResult
    return RESPONSE(
        results_by_transaction=[
            RESPONSE.AddPartitionsToTxnResult(
                name, [RESPONSE.AddPartitionsToTxnTopicResult("t", [part(0, code), part(1, code)])]
            )
            for name, code in codes.items()
        ]
    )


@pytest.fixture
def bench():
    return Bench()


def test_verifications_of_one_turn_are_sent_together(bench):
    first = bench.ask("a", partitions=(T0, T1))
    second = bench.ask("b", adds=True)
    bench.turn()
    (request,) = bench.requests
    one, other = request.message.transactions
    assert (one.transactional_id, one.producer_id, one.verify_only) == ("a", 7, True)
    assert [(topic.name, topic.partitions) for topic in one.topics] == [("t", [0, 1])]
    assert (other.transactional_id, other.verify_only) == ("b", False)
    request.answer(response(a=0, b=ErrorCode.TRANSACTION_ABORTABLE))
    assert first == [{}]
    aborted = ErrorCode.TRANSACTION_ABORTABLE
    assert second == [{T0: aborted, T1: aborted}]


def test_verifications_wait_for_the_previous_response(bench):
    bench.ask("a")
    bench.turn()
    later = bench.ask("b")
    bench.turn()
    assert len(bench.requests) == 1
    bench.requests[0].answer(response(a=0))
    assert len(bench.requests) == 2
    bench.requests[1].answer(response(b=0))
    assert later == [{}]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_errors_are_those_of_the_coordinator(bench, code, error):
    answers = bench.ask("a")
    bench.turn()
    bench.requests[0].answer(response(a=code))
    assert answers == [{T0: error, T1: error}]


def test_missing_coordinator_is_a_retriable_error(bench):
    bench.leader = -1
    assert bench.ask() == [{T0: ErrorCode.COORDINATOR_NOT_AVAILABLE}]


@pytest.mark.parametrize("lost", ["lose", "time out"])
def test_lost_request_fails_its_verifications_once(bench, lost):
    results = bench.ask(partitions=(T0, T1))
    bench.turn()
    if lost == "lose":
        bench.requests[0].lose()
    else:
        bench.time_out()
    error = ErrorCode.NETWORK_EXCEPTION
    assert results == [{T0: error, T1: error}]
    bench.requests[0].answer(response(tx=0))
    assert len(results) == 1
    again = bench.ask()
    bench.turn()
    bench.requests[1].answer(response(tx=0))
    assert again == [{}]


def test_transactional_id_missing_from_the_response_fails(bench):
    results = bench.ask("a")
    bench.turn()
    bench.requests[0].answer(response())
    assert results == [{T0: ErrorCode.NETWORK_EXCEPTION}]


def test_repeated_verification_replaces_the_one_that_waits(bench):
    first, second = bench.ask(), bench.ask()
    assert first == [{T0: ErrorCode.NETWORK_EXCEPTION}]
    bench.turn()
    bench.requests[0].answer(response(tx=0))
    assert second == [{}]
    assert len(bench.requests) == 1


def test_newer_epoch_replaces_an_older_one(bench):
    old, new = bench.ask(epoch=1), bench.ask(epoch=2)
    assert old == [{T0: ErrorCode.INVALID_PRODUCER_EPOCH}]
    late = bench.ask(epoch=1)
    assert late == [{T0: ErrorCode.INVALID_PRODUCER_EPOCH}]
    bench.turn()
    assert [t.producer_epoch for t in bench.requests[0].message.transactions] == [2]
    bench.requests[0].answer(response(tx=0))
    assert new == [{}]
