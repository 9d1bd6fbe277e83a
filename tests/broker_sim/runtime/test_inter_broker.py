"""Claims about requests between brokers: one at a time, answered once, and lost ones."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.runtime.inter_broker import InterBrokerSender

ME, OTHER = 1, 2
TIMEOUT_MS = 1_000


class Bench:
    """Broker 1; the test plays the links, time, and the brokers that serve."""

    def __init__(self):
        self.clock = VirtualClock()
        self.served = []
        self.linked = []
        self.answers = []
        self.sender = InterBrokerSender(ME, self.call_later, self.clock, self, TIMEOUT_MS, self.serve)

    def call_later(self, delay_ms, callback):
        assert delay_ms == TIMEOUT_MS
        self.expire = callback

    def call(self, source, target, procedure, on_result, on_failure):
        assert source == ME
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
def test_request_without_an_answer_is_told_once(bench, ends):
    ends(bench.send())
    assert bench.answers == [None]
    assert not bench.sender.is_busy(OTHER)
    bench.respond("late")
    assert bench.answers == [None]
