"""Claims about requests between brokers: one at a time, answered once, and lost ones."""

from random import Random

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.runtime.inter_broker import InterBrokerQueue, InterBrokerSender, backoff_ms

ME, OTHER = 1, 2
TIMEOUT_MS = 1_000


class Bench:
    """Broker 1; the test plays the links, time, and the brokers that serve."""

    def __init__(self):
        self.clock = VirtualClock()
        self.served = []
        self.linked = []
        self.answers = []
        self.sender = InterBrokerSender(
            ME, self.call_later, self.clock, self, TIMEOUT_MS, self.serve, lambda _: "Fetch"
        )

    def call_later(self, delay_ms, callback):
        assert delay_ms == TIMEOUT_MS
        self.expire = callback

    def call(self, source, target, procedure, on_result, on_failure, api):
        assert source == ME
        assert api == "Fetch"
        self.linked.append(target)
        self.lose = on_failure
        procedure(on_result)

    def serve(self, receiver, request, respond):
        self.served.append((receiver, request))
        self.respond = respond

    def send(self, receiver=OTHER):
        self.sender.send(receiver, "request", self.answers.append)
        return self

    def time_out(self):
        self.clock.advance(TIMEOUT_MS)
        self.expire()


@pytest.fixture
def bench():
    return Bench()


@pytest.mark.parametrize("receiver", [ME, OTHER])
def test_receiver_is_busy_until_it_answers(bench, receiver):
    bench.send(receiver)
    assert bench.served == [(receiver, "request")]
    assert bench.sender.is_busy(receiver)
    assert not bench.sender.is_busy(3)
    bench.respond("answer")
    assert not bench.sender.is_busy(receiver)
    assert bench.answers == ["answer"]


def test_link_is_for_other_brokers_only(bench):
    bench.send(ME).send(OTHER)
    assert bench.linked == [OTHER]


@pytest.mark.parametrize("ends", [Bench.time_out, lambda bench: bench.lose()])
def test_request_without_a_response_is_reported_once(bench, ends):
    ends(bench.send())
    assert bench.answers == [None]
    assert not bench.sender.is_busy(OTHER)
    bench.respond("late")
    assert bench.answers == [None]


# -- what waits -----------------------------------------------------------------------------------


class QueueBench(Bench):
    """A queue of words, all of which for one broker go together."""

    def __init__(self, **options):
        super().__init__()
        self.soon = []
        self.queue = InterBrokerQueue(self.sender, list, self._take, self.soon.append, **options)

    def _take(self, waiting):
        words = [word for word in waiting if word != "dropped"]
        waiting.clear()
        return ("-".join(words), self.answers.append) if words else None

    def add(self, *words, receiver=OTHER):
        self.queue.waiting_for(receiver).extend(words)
        self.queue.send_soon()
        return self

    def turn(self):
        while self.soon:
            self.soon.pop(0)()


def test_what_waits_for_a_broker_goes_together_after_the_handler():
    bench = QueueBench().add("a").add("b")
    assert bench.served == []
    assert len(bench.soon) == 1
    bench.turn()
    assert bench.served == [(OTHER, "a-b")]
    assert not bench.queue


def test_what_becomes_due_meanwhile_goes_with_the_next_request():
    bench = QueueBench().add("a")
    bench.turn()
    bench.add("b").turn()
    assert bench.served == [(OTHER, "a")]
    assert bench.queue
    bench.respond("answer")
    bench.queue.send_all()
    assert bench.served[1:] == [(OTHER, "b")]


def test_nothing_is_sent_if_nothing_is_left_to_send():
    bench = QueueBench().add("dropped")
    bench.turn()
    assert bench.served == []
    assert not bench.queue
    assert not bench.sender.is_busy(OTHER)


@pytest.mark.parametrize(("options", "order"), [({}, [3, 2]), ({"order": sorted}, [2, 3])])
def test_brokers_get_their_requests_in_order(options, order):
    bench = QueueBench(**options).add("a", receiver=3).add("b", receiver=2)
    bench.turn()
    assert [receiver for receiver, _ in bench.served] == order


def test_what_is_looked_up_before_sending_goes_too():
    bench = QueueBench(before_sending=lambda: bench.queue.waiting_for(OTHER).append("late"))
    bench.add("a").turn()
    assert bench.served == [(OTHER, "a-late")]


def test_requests_of_another_kind_do_not_wait_for_each_other(bench):
    bench.sender.send(OTHER, "read", bench.answers.append, "reads")
    assert bench.sender.is_busy(OTHER, "reads")
    assert not bench.sender.is_busy(OTHER, "writes")


def test_wait_doubles_up_to_half_a_minute():
    rng = Random(1)
    waits = [backoff_ms(attempts, rng) for attempts in range(1, 7)]
    for wait_ms, middle_ms in zip(waits[:4], (2_000, 4_000, 8_000, 16_000), strict=True):
        assert middle_ms * 0.8 <= wait_ms <= middle_ms * 1.2
    assert waits[5] == 30_000
