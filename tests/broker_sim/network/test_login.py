"""Connections whose clients log in, with a login that only says yes or no."""

from itertools import pairwise

import pytest

from broker_sim.network import Connection
from broker_sim.network.login import ListenerLogin, Login
from broker_sim.network.login_turns import PIECES_AT_ONCE, LoginTurns
from broker_sim.protocol.errors import ProtocolError
from broker_sim.security import LoginFailedError

CLIENTS = 2 * PIECES_AT_ONCE + 1
DELAY_MS = 100
FRAME = (3).to_bytes(4, "big") + b"who"


class Authenticator:
    """Answers every frame, or fails."""

    principal = None

    def __init__(self, failure=None):
        self.failure = failure

    def receive(self, frame):
        if self.failure is not None:
            raise self.failure
        return [bytes(frame)]


@pytest.fixture
def wire(connect):
    return connect()


@pytest.fixture
def log_in(wire):
    """Return a function with which many clients log in at the same time; it returns their transports."""

    def all_at_once(failure=None):
        listener = ListenerLogin(lambda: Authenticator(failure), 1 << 10, DELAY_MS)
        turns, transports = LoginTurns(wire.process), []
        for _ in range(CLIENTS):
            login = Login(wire.process, wire.broker, listener, 1 << 20, turns)
            connection = Connection(wire.process, login, 1 << 10, wire.open.add, wire.open.discard, wire.memory)
            transports.append(type(wire.transport)())
            connection.connection_made(transports[-1])
            connection.data_received(FRAME)
        return transports

    return all_at_once


def run(wire):
    while wire.scheduler.step():
        pass


def test_logins_are_answered_a_few_in_each_turn(wire, log_in):
    transports = log_in()
    assert [each.written for each in transports].count([b"who"]) == PIECES_AT_ONCE
    run(wire)
    assert [each.written for each in transports].count([b"who"]) == CLIENTS


def test_all_are_refused_after_the_delay(wire, log_in):
    transports = log_in(LoginFailedError("who are you", [b"no"]))
    assert not any(each.written or each.closing for each in transports)
    run(wire)
    assert all(each.written == [b"no"] and each.closing for each in transports)
    assert wire.scheduler.clock.now_ms() == DELAY_MS
    assert not wire.scheduler.errors


def test_why_a_login_failed_is_logged_in_a_turn_of_its_own(wire, log_in, caplog):
    log_in(LoginFailedError("who are you", [b"no"]))
    counts = [len(caplog.records)]
    while wire.scheduler.step():
        counts.append(len(caplog.records))
    assert counts[0] == 0
    assert counts[-1] == CLIENTS
    assert max(after - before for before, after in pairwise(counts)) == PIECES_AT_ONCE
    assert "failed authentication: who are you" in caplog.text


@pytest.mark.parametrize("failure", [ProtocolError("no login"), KeyError("a mistake")], ids=repr)
def test_failed_login_closes_the_connection_in_its_turn(wire, log_in, failure):
    transports = log_in(failure)
    assert [each.closing for each in transports].count(True) == PIECES_AT_ONCE
    run(wire)
    assert all(each.closing and not each.written for each in transports)
    is_mistake = isinstance(failure, KeyError)
    assert wire.scheduler.errors == ([failure] * CLIENTS if is_mistake else [])
