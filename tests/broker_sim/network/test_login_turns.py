"""Work on logins, shared out among the turns of a loop."""

import pytest

from broker_sim.network.login_turns import PIECES_AT_ONCE, LoginTurns
from broker_sim.runtime.process import Process
from broker_sim.runtime.virtual.run import VirtualScheduler


@pytest.fixture
def scheduler():
    return VirtualScheduler()


@pytest.fixture
def process(scheduler):
    return Process("broker-1", scheduler)


def test_others_get_their_turn_between_pieces_of_many_logins(scheduler, process):
    turns, done = LoginTurns(process), []

    def other():
        done.append("other")
        if len(done) < 30:
            process.call_soon(other)

    process.call_soon(other)
    pieces = list(range(4 * PIECES_AT_ONCE + 1))
    for piece in pieces:
        turns.run(done.append, piece)
    assert done == pieces[:PIECES_AT_ONCE]
    while scheduler.step():
        pass
    assert [each for each in done if each != "other"] == pieces
    between = "".join("." if each == "other" else "x" for each in done).split(".")
    assert max(map(len, between)) == PIECES_AT_ONCE


def test_next_turn_has_room_again(scheduler, process):
    turns, done = LoginTurns(process), []
    for turn in range(3):
        for _ in range(PIECES_AT_ONCE):
            turns.run(done.append, turn)
        assert done.count(turn) == PIECES_AT_ONCE
        assert scheduler.step()
    assert not scheduler.step()


def test_pieces_of_a_killed_broker_are_dropped(scheduler, process):
    turns, done = LoginTurns(process), []
    for piece in range(PIECES_AT_ONCE + 1):
        turns.run(done.append, piece)
    process.kill()
    while scheduler.step():
        pass
    assert len(done) == PIECES_AT_ONCE
