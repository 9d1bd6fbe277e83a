"""Equal elements leave in the order of `java.util.PriorityQueue`; the expected orders were printed by it."""

from random import Random

from broker_sim.hash_order.priority_queue import PriorityQueue


def drained(queue):
    elements = []
    while (least := queue.poll()) is not None:
        elements.append(least)
    return "".join(elements)


def test_equal_elements_leave_in_javas_order():
    queue = PriorityQueue(lambda _: 0)
    for letter in "abcdefgh":
        queue.add(letter)
    assert len(queue) == 8
    assert drained(queue) == "ahgfedcb"


def test_readded_element_comes_after_its_equals():
    queue = PriorityQueue(lambda _: 0)
    for letter in "abcde":
        queue.add(letter)
    polled = []
    for _ in range(8):
        polled.append(queue.poll())
        queue.add(polled[-1])
    assert "".join(polled) == "aeaeaeae"


def test_least_element_is_always_polled_first():
    rng = Random(1)
    numbers = [rng.randrange(50) for _ in range(200)]
    queue = PriorityQueue(lambda number: number)
    for number in numbers:
        queue.add(number)
    assert [queue.poll() for _ in numbers] == sorted(numbers)
    assert queue.poll() is None
