"""Calls between nodes: order, cut and slow links, dead nodes."""

import random
from collections import deque

import pytest

from broker_sim.runtime.links import MAX_PER_TURN, LinkFault, Links, drawn_latency
from broker_sim.runtime.process import Process
from broker_sim.runtime.virtual.run import VirtualScheduler


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
        self.links.listen(node)

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


def test_messages_do_not_overtake_each_other_when_timers_of_the_same_millisecond_do():
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


def test_mended_link_is_as_fast_as_before(net):
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


def test_mended_link_delivers_held_messages_in_order(net):
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


def test_cut_acts_in_one_direction(net):
    got = []
    net.links.set_fault(1, 2, LinkFault(drop=True))
    net.links.send(2, 1, got.append, "back")
    net.settle()
    assert got == ["back"]


def test_slow_link_delays_each_message(net):
    got = []
    net.links.set_fault(1, 2, LinkFault(delay_ms=40))
    net.links.send(1, 2, lambda: got.append(net.scheduler.clock.now_ms()))
    net.settle()
    assert got == [40]


def test_call_returns_its_result(net):
    answers = []
    net.links.call(1, 2, lambda send_result: send_result("yes"), answers.append, answers.clear)
    net.settle()
    assert answers == ["yes"]


def test_call_to_a_dead_node_fails_at_once(net):
    net.processes[2].kill()
    net.links.detach(2)
    failures = []
    net.links.call(1, 2, lambda send_result: send_result(1), failures.append, lambda: failures.append("no"))
    net.settle()
    assert failures == ["no"]


def test_call_to_a_node_that_does_not_listen_yet_fails_but_it_can_be_sent_to(net):
    net.links.detach(2)
    net.links.attach(2, net.processes[2])
    got = []
    net.links.call(1, 2, lambda answer: answer("yes"), got.append, lambda: got.append("refused"))
    net.settle()
    assert got == ["refused"]
    net.links.send(1, 2, got.append, "sent")
    net.settle()
    net.links.listen(2)
    net.links.call(1, 2, lambda answer: answer("yes"), got.append, lambda: got.append("refused"))
    net.settle()
    assert got == ["refused", "sent", "yes"]


def test_unanswered_call_to_a_dying_node_fails_once_even_if_it_answers_later(net):
    outcomes, senders = [], []
    net.links.call(1, 2, senders.append, outcomes.append, lambda: outcomes.append("failed"))
    net.settle()
    net.processes[2].kill()
    net.links.detach(2)
    senders[0]("too late")
    net.settle()
    assert outcomes == ["failed"]


def test_restarted_node_gets_no_messages_sent_before_its_restart(net):
    got = []
    net.links.set_fault(1, 2, LinkFault(delay_ms=10))
    net.links.send(1, 2, got.append, "old")
    net.processes[2].kill()
    net.links.detach(2)
    net.attach(2)
    net.links.send(1, 2, got.append, "new")
    net.settle()
    assert got == ["new"]


def test_paused_node_gets_its_messages_when_it_is_resumed(net):
    got = []
    net.processes[2].pause()
    net.links.send(1, 2, got.append, "a")
    net.settle()
    assert got == []
    net.processes[2].resume()
    assert got == ["a"]


def test_messages_that_answer_each_other_arrive_in_one_turn(net):
    got = []

    def ask(send_result):
        got.append("asked")
        net.scheduler.call_soon(got.append, "next turn")
        send_result("answered")

    net.links.call(1, 2, ask, got.append, pytest.fail)
    net.scheduler.call_soon(got.append, "same turn")
    net.settle()
    assert got == ["asked", "answered", "same turn", "next turn"]


def test_endless_exchange_leaves_turns_to_others(net):
    got = []

    def pass_on(target):
        got.append(target)
        if len(got) < 3 * MAX_PER_TURN:
            net.links.send(target, 3 - target, pass_on, 3 - target)

    net.links.send(1, 2, pass_on, 2)
    net.scheduler.call_soon(got.append, "other")
    net.settle()
    assert got.index("other") == MAX_PER_TURN
    assert len(got) == 3 * MAX_PER_TURN


def test_failing_message_does_not_hold_up_those_behind_it(net):
    got = []

    def fail():
        raise LookupError("on purpose")

    net.links.send(1, 2, fail)
    net.links.send(1, 2, got.append, "behind it")
    with pytest.raises(LookupError):
        net.settle()
    net.settle()
    net.links.send(1, 2, got.append, "later")
    net.settle()
    assert got == ["behind it", "later"]


@pytest.mark.parametrize("most_ms", [1, 2, 7, 8, 20, 1_000])
def test_drawn_latency_equals_that_of_randint(most_ms):
    draw, rng = drawn_latency(random.Random(7), most_ms), random.Random(7)
    assert [draw(1, 2) for _ in range(500)] == [rng.randint(0, most_ms) for _ in range(500)]


def test_recorded_calls_have_their_times_and_their_api(net):
    net.links.calls = deque(maxlen=2)
    for api in ("Produce", "Fetch"):
        net.links.call(1, 2, lambda send_result: net.scheduler.call_later(30, send_result, "yes"), list, list, api)
    net.settle()
    net.links.call(2, 1, lambda _: None, list, list, "ListOffsets")
    net.settle()
    first, second = net.links.calls
    assert (first.source, first.callee, first.api, first.ended_ms - first.begun_ms) == (1, 2, "Fetch", 30)
    assert (second.api, second.begun_ms, second.ended_ms) == ("ListOffsets", 30, None)
