"""Sockets that are read in turns: which reader gets its turn when, on real sockets."""

import asyncio
import socket
import sys
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest
import uvloop

from broker_sim.runtime.read_turns import READS_AT_ONCE, ReadTurns, read_turns

READERS = 100
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has epoll")


class Reader:
    """Reads what there is when its turn comes, and says so."""

    def __init__(self, own, name, read):
        self.own = own
        self.name = name
        self.read = read

    def turn_came(self):
        self.read.append((self.name, self.own.recv(100)))


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def run(request):
    """Return a function that runs a coroutine to its end on the loop."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@pytest.fixture
def stack():
    with ExitStack() as made:
        yield made


def pair(stack):
    return [stack.enter_context(each) for each in socket.socketpair()]


def turns_of_running_loop(stack):
    return stack.enter_context(closing(ReadTurns(asyncio.get_running_loop())))


def open_files():
    return sorted(Path("/proc/self/fd").iterdir())


async def some_turns():
    for _ in range(5):
        await asyncio.sleep(0)


def test_few_of_many_ready_sockets_are_read_in_one_turn_and_in_order(run, stack):
    async def main():
        turns, read = turns_of_running_loop(stack), []
        for name in range(READERS):
            own, other = pair(stack)
            turns.wait(own.fileno(), Reader(own, name, read))
            other.send(b"x")
        counts = [0]
        while counts[-1] < READERS:
            await asyncio.sleep(0)
            counts.append(len(read))
        assert max(after - before for before, after in pairwise(counts)) == READS_AT_ONCE
        assert read == [(name, b"x") for name in range(READERS)]

    run(main())


def test_reader_is_called_once_until_it_waits_again(run, stack):
    async def main():
        turns, read = turns_of_running_loop(stack), []
        own, other = pair(stack)
        reader = Reader(own, "a", read)
        turns.wait(own.fileno(), reader)
        turns.wait(own.fileno(), reader)
        other.send(b"1")
        await some_turns()
        other.send(b"2")
        await some_turns()
        assert read == [("a", b"1")]
        turns.wait(own.fileno(), reader)
        await some_turns()
        assert read == [("a", b"1"), ("a", b"2")]

    run(main())


def test_end_of_a_client_is_a_turn_too(run, stack):
    async def main():
        turns, read = turns_of_running_loop(stack), []
        own, other = pair(stack)
        turns.wait(own.fileno(), Reader(own, "a", read))
        other.close()
        await some_turns()
        assert read == [("a", b"")]

    run(main())


def test_reader_that_left_gets_no_turn_and_takes_none_from_its_successor(run, stack):
    async def main():
        turns, read = turns_of_running_loop(stack), []
        own, other = pair(stack)
        before, after = Reader(own, "before", read), Reader(own, "after", read)
        turns.wait(own.fileno(), before)
        turns.leave(own.fileno(), before)
        turns.wait(own.fileno(), after)
        turns.leave(own.fileno(), before)
        other.send(b"x")
        await some_turns()
        assert read == [("after", b"x")]

    run(main())


@pytest.mark.parametrize("all_of_them", [False, True])
def test_reader_may_end_the_wait_of_the_next_one_of_its_turn(run, stack, all_of_them):
    async def main():
        problems = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        turns, read = turns_of_running_loop(stack), []
        (first, to_first), (second, to_second) = pair(stack), pair(stack)
        next_one = Reader(second, "second", read)

        class Ending(Reader):
            def turn_came(self):
                super().turn_came()
                if all_of_them:
                    turns.close()
                else:
                    turns.leave(second.fileno(), next_one)

        turns.wait(first.fileno(), Ending(first, "first", read))
        turns.wait(second.fileno(), next_one)
        to_first.send(b"1")
        to_second.send(b"2")
        await some_turns()
        assert (read, problems) == ([("first", b"1")], [])

    run(main())


def test_nobody_gets_a_turn_after_the_end_and_no_file_stays_open(run, stack):
    async def main():
        files = open_files()
        turns, read = turns_of_running_loop(stack), []
        own, other = socket.socketpair()
        reader = Reader(own, "a", read)
        turns.wait(own.fileno(), reader)
        other.send(b"x")
        turns.close()
        turns.wait(own.fileno(), reader)
        turns.leave(own.fileno(), reader)
        await some_turns()
        assert not read
        own.close()
        other.close()
        assert open_files() == files

    run(main())


def test_sockets_of_a_network_in_memory_take_no_turns(run):
    async def main():
        assert read_turns(asyncio.get_running_loop(), object()) is None

    run(main())
