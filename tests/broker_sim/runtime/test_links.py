"""Calls between nodes: order, cuts, delays, deaths."""

import pytest

from broker_sim.runtime.links import LinkFault, Links
from broker_sim.runtime.process import Process
from broker_sim.runtime.virtual.scheduler import VirtualScheduler


class Net:
    def __init__(self, latency_ms=None):
        self.scheduler = VirtualScheduler()
        self.links = Links(self.scheduler, latency_ms)
        self.processes = {}
        for node in (1, 2):
            self.attach(node)

    def attach(self, node):
        self.processes[node] = Process(str(node), self.scheduler)
        self.links.attach(node, self.processes[node])

    def settle(self):
        while self.scheduler.step():
            pass


@pytest.fixture
def net():
    return Net()


def test_messages_do_not_overtake_each_other_when_the_latency_shrinks():
    latencies = iter([50, 10, 0])
    net, got = Net(lambda *_: next(latencies)), []
    for number in range(3):
        net.links.send(1, 2, got.append, number)
    net.settle()
    assert got == [0, 1, 2]
    assert net.scheduler.clock.now_ms() == 50


def test_messages_do_not_overtake_each_other_when_timers_of_one_millisecond_run_in_any_order():
    class Manual(VirtualScheduler):
        """Leaves it to the test in which order its timers run."""

        def __init__(self):
            super().__init__()
            self.timers = []

        def call_later(self, delay_ms, callback, *args):
            self.timers.append((self.clock.now_ms() + delay_ms, callback, args))

    net, got = Net(), []
    net.scheduler = Manual()
    net.links = Links(net.scheduler)
    net.attach(1)
    net.attach(2)
    net.links.set_fault(1, 2, LinkFault(delay_ms=40))
    for number in range(3):
        net.links.send(1, 2, got.append, number)
    assert {due_ms for due_ms, _, _ in net.scheduler.timers} == {40}
    for _, callback, args in reversed(net.scheduler.timers):
        callback(*args)
    assert got == [0, 1, 2]


def test_a_link_that_was_slow_is_as_fast_as_ever_once_it_is_mended(net):
    got = []
    net.links.set_fault(1, 2, LinkFault(delay_ms=40))
    net.links.send(1, 2, got.append, "slow")
    net.links.set_fault(1, 2, LinkFault())
    net.links.send(1, 2, got.append, "behind it")
    net.settle()
    assert (got, net.scheduler.clock.now_ms()) == (["slow", "behind it"], 40)
    net.links.send(1, 2, got.append, "fast")
    net.settle()
    assert net.scheduler.clock.now_ms() == 40


def test_a_cut_link_holds_messages_and_delivers_them_in_order_when_it_is_mended(net):
    got = []
    net.links.set_fault(1, 2, LinkFault(drop=True))
    net.links.send(1, 2, got.append, "a")
    net.links.send(1, 2, got.append, "b")
    net.settle()
    assert got == []
    net.links.set_fault(1, 2, LinkFault())
    net.settle()
    assert got == ["a", "b"]
    assert net.links.faults == {}


def test_a_cut_goes_one_way(net):
    got = []
    net.links.set_fault(1, 2, LinkFault(drop=True))
    net.links.send(2, 1, got.append, "back")
    net.settle()
    assert got == ["back"]


def test_a_slow_link_delays_each_message(net):
    got = []
    net.links.set_fault(1, 2, LinkFault(delay_ms=40))
    net.links.send(1, 2, lambda: got.append(net.scheduler.clock.now_ms()))
    net.settle()
    assert got == [40]


def test_a_call_brings_its_answer_back(net):
    answers = []
    net.links.call(1, 2, lambda send_result: send_result("yes"), answers.append, answers.clear)
    net.settle()
    assert answers == ["yes"]


def test_a_call_to_a_dead_node_fails_at_once(net):
    net.processes[2].kill()
    net.links.detach(2)
    failures = []
    net.links.call(
        1, 2, lambda send_result: send_result(1), failures.append, lambda: failures.append("no")
    )
    net.settle()
    assert failures == ["no"]


def test_a_call_that_a_dying_node_has_not_answered_fails_once_even_if_it_answers_later(net):
    outcomes, senders = [], []
    net.links.call(1, 2, senders.append, outcomes.append, lambda: outcomes.append("failed"))
    net.settle()
    net.processes[2].kill()
    net.links.detach(2)
    senders[0]("too late")
    net.settle()
    assert outcomes == ["failed"]


def test_a_restarted_node_gets_nothing_that_was_sent_to_its_former_life(net):
    got = []
    net.links.set_fault(1, 2, LinkFault(delay_ms=10))
    net.links.send(1, 2, got.append, "old")
    net.processes[2].kill()
    net.links.detach(2)
    net.attach(2)
    net.links.send(1, 2, got.append, "new")
    net.settle()
    assert got == ["new"]


def test_a_paused_node_takes_its_messages_when_it_goes_on(net):
    got = []
    net.processes[2].pause()
    net.links.send(1, 2, got.append, "a")
    net.settle()
    assert got == []
    net.processes[2].resume()
    assert got == ["a"]
