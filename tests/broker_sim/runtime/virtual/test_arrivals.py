"""Orders in which messages between brokers arrive."""

from collections import deque
from itertools import permutations
from types import SimpleNamespace

import pytest

from broker_sim.runtime.virtual.arrivals import ExploredArrivals, GivenArrivals
from broker_sim.runtime.virtual.task_order import ARRIVAL, Deviation

CLOCK = SimpleNamespace(now_ns=0)
TO_ONE_NODE = [(1, 9), (2, 9), (3, 9)]


def arrive(order, links):
    """Return the links in the order in which their messages arrive."""
    waiting, arrived = list(links), []
    while waiting:
        arrived.append(waiting.pop(order.choose(tuple(waiting))))
    return arrived


def explore(links):
    """Return the orders that are explored, each as often as it is."""
    orders, waiting = [], deque([({}, 0)])
    while waiting:
        first, behind = waiting.popleft()
        order = ExploredArrivals(CLOCK, first)
        orders.append(arrive(order, links))
        for at, sender, next_behind in order.changes(behind):
            waiting.append(({**first, at: sender}, next_behind))
    return orders


def test_every_order_of_three_senders_is_played_once():
    assert sorted(explore(TO_ONE_NODE)) == sorted(map(list, permutations(TO_ONE_NODE)))


def test_messages_to_different_nodes_do_not_meet():
    links = [(1, 8), (2, 9)]
    assert explore(links) == [links]


@pytest.mark.parametrize(
    "order",
    [
        ExploredArrivals(CLOCK, {(0, 0): "2"}),
        GivenArrivals(CLOCK, [Deviation(0, 0, 1, what=ARRIVAL)]),
        GivenArrivals(CLOCK, [Deviation(0, 0, 2, what=ARRIVAL)]),
    ],
    ids=["named", "given", "given_behind_another_one"],
)
def test_messages_of_a_link_keep_their_order(order):
    assert order.choose([(1, 9), (2, 9), (2, 9)]) == 1
    assert order.deviations == (Deviation(0, 0, 1, what=ARRIVAL),)


@pytest.mark.parametrize("place", [1, 2], ids=["another_node", "nothing_there"])
def test_oldest_message_arrives_where_the_given_one_cannot(place):
    order = GivenArrivals(CLOCK, [Deviation(0, 0, place, what=ARRIVAL)])
    assert order.choose([(1, 9), (2, 8)]) == 0
    assert order.deviations == ()
