"""A client of a random run goes on when its answer or its rest says so, and at no other time."""

from itertools import pairwise

import pytest

from broker_sim.chaos.faults.action import Action
from broker_sim.chaos.random_run.clients.client import ANSWER_SLACK_MS, Client
from broker_sim.chaos.random_run.clients.coordinated_client import AgainError, CoordinatedClient
from broker_sim.chaos.random_run.clients.shared_state import SharedState
from broker_sim.chaos.random_run.disturbances import Disturbances
from broker_sim.chaos.random_run.schedule import Schedule
from broker_sim.cluster.virtual.invariants import InvariantViolationError
from broker_sim.cluster.virtual.virtual_cluster import SimulationError, VirtualCluster
from broker_sim.protocol import messages

REST_MS = 10
QUESTION = messages.ApiVersionsRequest("a", "1")


@pytest.fixture
def shared():
    cluster = VirtualCluster(brokers=1)
    return SharedState(cluster, Schedule(seed=1, brokers=1), Disturbances(cluster))


class Asking(Client):
    def __init__(self, shared):
        super().__init__(shared, "asking")
        self.answers = []
        self.steps = []

    async def _live(self):
        while True:
            self.answers.append(await self._send(1, QUESTION, timeout_ms=0))
            self.steps.append(self._shared.cluster.loop.steps)
            await self._rest(REST_MS)


def test_client_goes_on_in_the_step_that_brings_its_answer(shared):
    client = Asking(shared)
    client.start()
    (sent,) = client._client._connections[1]._waiting
    shared.cluster.run_until(lambda: sent.done)
    assert client.answers == [sent]
    assert client.steps == [shared.cluster.loop.steps]
    assert not shared.waiting


def test_client_asks_again_after_each_rest_until_the_run_is_over(shared):
    client = Asking(shared)
    client.start()
    shared.cluster.advance(5 * REST_MS)
    count = len(client.answers)
    assert count >= 5
    shared.running = False
    shared.cluster.advance(20 * REST_MS)
    assert len(client.answers) == count


def test_client_that_begins_anew_leaves_its_rest_and_its_life_behind(shared):
    client = Asking(shared)
    client.start()
    shared.cluster.run_until(lambda: client.answers)
    client.start()
    assert shared.waiting == 1, "it does not rest first"
    shared.cluster.advance(ANSWER_SLACK_MS)
    gaps = [after.sent_ms - one.received_ms for one, after in pairwise(client.answers[1:])]
    assert min(gaps) >= 1, "one life only"


def test_what_a_client_finds_ends_the_run_where_it_is_found(shared):
    class Finding(Asking):
        async def _live(self):
            await super()._send(1, QUESTION, timeout_ms=0)
            raise InvariantViolationError("it-holds", "it does not")

    Finding(shared).start()
    with pytest.raises(SimulationError, match="it does not"):
        shared.cluster.advance(REST_MS)


def test_unanswered_request_breaks_an_invariant_where_nothing_is_wrong(shared):
    client = Asking(shared)
    shared.cluster.pause(1)
    client.start()
    with pytest.raises(SimulationError, match="waits since"):
        shared.cluster.advance(ANSWER_SLACK_MS)


def test_unanswered_request_is_given_up_where_something_is_wrong(shared):
    shared.disturbances.schedule([Action.parse("0 pause broker-1 for=5000")])
    shared.cluster.advance(0)
    client = Asking(shared)
    client.start()
    shared.cluster.advance(ANSWER_SLACK_MS)
    assert [each.disconnected for each in client.answers] == [True]


def test_step_is_repeated_until_it_is_done_with_a_rest_behind_each_attempt(shared):
    times_ms, behind = [], []

    async def step():
        times_ms.append(shared.cluster.now_ms)
        if len(times_ms) < 3:
            raise AgainError
        return "done"

    async def then():
        behind.append(len(times_ms))

    class Stepping(CoordinatedClient):
        async def _live(self):
            behind.append(await self._repeat(step, then))

    Stepping(shared, "stepping", "chance").start()
    shared.cluster.advance(1_000)
    assert behind == [1, 2, 3, "done"]
    assert times_ms == sorted(set(times_ms)), "no attempt without a rest"
