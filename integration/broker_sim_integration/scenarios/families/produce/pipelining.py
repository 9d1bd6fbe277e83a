"""Several requests on one connection. Kafka: SocketServer mutes a channel until the response is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import LATEST, Append, Position, batch_of
from broker_sim_integration.observations import at_once, at_timeout
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.observe import fetched, listed, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.raw_client import Pending
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation


def later(pending: Pending[Any], first: Pending[Any]) -> float:
    """Return how many ms after `first` a request was sent, by which its wait is shorter."""
    return pending.sent_ms - first.sent_ms


@scenario(needs={Fault.PAUSE})
def the_timeouts_of_pipelined_produces_add_up(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Three produces of 600 ms each take 600, 1200 and 1800 ms: each starts after the previous response."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    cluster.faults.pause(cluster.third)
    parked = [leader.start_produce(Append(topic, 0, batch_of([b"%d" % turn])), timeout_ms=600) for turn in (1, 2, 3)]
    for turn, pending in enumerate(parked, 1):
        due = at_timeout(600 * turn - later(pending, parked[0]))
        yield produced(f"produce {turn}", pending.result(), due)


@scenario(needs={Fault.PAUSE})
def another_connection_overtakes_a_parked_one(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A record of another connection gets the offset between two pipelined records."""
    topic = cluster.topics.create()
    first, other = cluster.connect(cluster.first), cluster.connect(cluster.first)
    cluster.faults.pause(cluster.third)
    parked = [first.start_produce(Append(topic, 0, batch_of([b"pipelined"])), timeout_ms=600) for _ in range(2)]
    cluster.wait(200)
    yield produced("other", other.produce(topic, b"other", acks=1), at_once())
    yield produced("first", parked[0].result(), at_timeout(600))
    due = at_timeout(1200 - later(parked[1], parked[0]))
    yield produced("second", parked[1].result(), due)


@scenario(topology="1 partition x 1 replica")
def a_produce_behind_a_parked_fetch_waits_for_it(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Although it would wake the fetch: on the same connection it is served after max_wait_ms."""
    topic = cluster.topics.create([cluster.first])
    connection = cluster.connect(cluster.first)
    fetch = connection.start_fetch(Position(topic), max_wait_ms=700)
    produce = connection.start_produce(Append(topic, 0, batch_of([b"behind"])))
    yield fetched("fetch", fetch.result(), at_timeout(700))
    yield produced("produce", produce.result(), at_timeout(700 - later(produce, fetch)))


@scenario(topology="1 partition x 1 replica")
def acks_0_behind_a_parked_fetch_waits_for_it(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It is appended after the response to the fetch; then the next request is served."""
    topic = cluster.topics.create([cluster.first])
    connection, other = cluster.connect(cluster.first), cluster.connect(cluster.first)
    fetch = connection.start_fetch(Position(topic), max_wait_ms=700)
    connection.produce_unanswered(topic, b"behind")
    behind = connection.start_fetch(Position(topic), max_wait_ms=1000)
    cluster.wait(300)
    yield listed("meanwhile", other.list_offset(topic, LATEST), at_once())
    yield fetched("fetch", fetch.result(), at_timeout(700))
    yield fetched("behind", behind.result(), at_timeout(700 - later(behind, fetch)))


@scenario(topology="1 partition x 1 replica")
def answers_come_in_the_order_of_the_requests(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Twenty pipelined produces get ascending offsets; fetches between them see the records before."""
    topic = cluster.topics.create([cluster.first])
    connection = cluster.connect(cluster.first)
    produces, fetches = [], []
    for turn in range(20):
        append = Append(topic, 0, batch_of([b"%d" % turn]))
        produces.append(connection.start_produce(append, acks=1))
        if turn % 5 == 4:
            fetches.append(connection.start_fetch(Position(topic, offset=turn), max_wait_ms=0))
    for attempt, pending in enumerate(produces, 1):
        yield produced("produce", pending.result(), at_once(), attempt=attempt)
    for attempt, reading in enumerate(fetches, 1):
        yield fetched("fetch", reading.result(), at_once(), attempt=attempt)


@scenario(topology="1 partition x 1 replica")
def a_woken_fetch_lets_the_next_request_in(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The request behind the parked fetch is served as soon as the fetch completes."""
    topic = cluster.topics.create([cluster.first])
    connection, other = cluster.connect(cluster.first), cluster.connect(cluster.first)
    fetch = connection.start_fetch(Position(topic), max_wait_ms=10_000)
    behind = connection.start_produce(Append(topic, 0, batch_of([b"behind"])))
    cluster.wait(300)
    reply = other.produce(topic, b"wakes")
    woken, answered = fetch.result(), behind.result()
    yield fetched("fetch", woken, after(woken, reply))
    yield produced("behind", answered, after(answered, reply))
