"""What a play does with requests that brokers leave unanswered for a while."""

import asyncio

import pytest

from broker_sim.protocol import messages
from integration.fuzz import play as played
from integration.fuzz.sequence import Request, Sequence

SYNC = Request("a", "1", "SyncGroup", 3, {"group_id": "g", "generation_id": 1, "member_id": "m"})


class LoadedBroker:
    """Answers a member only while another question is asked of it, as a broker that has too much to do."""

    def __init__(self):
        self.pending = []
        self.ended = False
        self.is_heard = False

    def send(self, _message, _version):
        self.pending.append(asyncio.get_running_loop().create_future())
        return self.pending[-1]

    async def close(self):
        self.ended = True

    async def prepare(self, *_):
        pass

    async def broker(self, _name):
        return 1

    async def hear(self, _broker, group):
        assert group == "g"
        self.is_heard = True
        self.pending[-1].set_result(messages.SyncGroupResponse())


class Side:
    def broker(self, _number):
        return 1


@pytest.fixture
def broker(monkeypatch):
    loaded = LoadedBroker()

    async def connection(*_):
        return loaded

    monkeypatch.setattr(played, "Lookup", lambda _side: loaded)
    monkeypatch.setattr(played._Player, "_connection", connection)
    monkeypatch.setattr(played._Player, "close", lambda self: loaded.close())
    monkeypatch.setitem(played.PATIENCE_S, "SyncGroup", 0.01)
    return loaded


def test_sync_that_a_loaded_broker_answers_late_is_not_parked(broker):
    sequence = Sequence("groups", 1, (), (SYNC,))
    (outcome,) = asyncio.run(played.play(Side(), sequence, "p")).outcomes
    assert broker.is_heard
    assert outcome.state == "answered"
