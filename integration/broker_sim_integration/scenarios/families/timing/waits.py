"""Waits of each length up to their timeouts. Kafka: SystemTimer, TimingWheel.

A wheel has 20 buckets: of 1 ms in the first wheel, then of 20 ms, 400 ms and 8 s. Each of the waits
starts in another wheel, and the longest passes down through all four.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import Append, Position, batch_of
from broker_sim_integration.observations import at_timeout
from broker_sim_integration.scenarios.helpers.broker_configs import LONG_SESSION
from broker_sim_integration.scenarios.helpers.observe import deleted, fetched, produced
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES, lanes_of, side_by_side, turns_of
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Pending
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.helpers.side_by_side import Start, Turn

WAITS_MS: Final = (20, 100, 500, 1500)
WAITS_WITHIN_MS: Final = 3500
LONGEST_MS: Final = 9000
LONGEST_WITHIN_MS: Final = 9600
TOGETHER: Final = 50
TOGETHER_MS: Final = 500


@scenario(topology="1 partition x 1 replica")
def fetches_wait_as_long_as_they_ask(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty fetches of an empty partition for each max_wait_ms: 20, 100, 500, 1500, 9000."""
    topic = cluster.topics.create([cluster.first])
    turns = turns_of((*WAITS_MS, LONGEST_MS), LONGEST_WITHIN_MS)
    for _, turn, reply in side_by_side(cluster, turns, {"fetch": partial(_fetch, topic)}):
        due = at_timeout(turn.wait_ms)
        yield fetched(f"max wait {turn.wait_ms}", reply, due, attempt=turn.attempt)


@scenario(topology="1 partition x 1 replica")
def fifty_fetches_time_out_together(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """They are sent in a row and due within the same few ms; three times."""
    topic = cluster.topics.create([cluster.first])
    clients = [cluster.connect(cluster.first) for _ in range(TOGETHER)]
    for turn in range(3):
        parked = [client.start_fetch(Position(topic), max_wait_ms=TOGETHER_MS) for client in clients]
        for attempt, pending in enumerate(parked, 1 + turn * TOGETHER):
            yield fetched("together", pending.result(), at_timeout(TOGETHER_MS), attempt=attempt)


@scenario(topology="a partition x 3 replicas for each connection", needs={Fault.PAUSE})
def acks_all_and_deletions_wait_for_a_frozen_follower_until_their_timeout(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """Thirty of each for each timeout of 20, 100, 500, 1500 ms; the leader has appended or deleted."""
    yield from _wait_for_a_frozen_follower(cluster, turns_of(WAITS_MS, WAITS_WITHIN_MS))


@scenario(topology="a partition x 3 replicas for each connection", configs=LONG_SESSION, needs={Fault.PAUSE})
def acks_all_and_deletions_wait_nine_seconds_for_a_frozen_follower(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty of each; the follower is not fenced in that time."""
    yield from _wait_for_a_frozen_follower(cluster, turns_of([LONGEST_MS], LONGEST_WITHIN_MS))


def _wait_for_a_frozen_follower(cluster: ClusterUnderTest, turns: list[Turn]) -> Iterator[Observation]:
    grows = cluster.topics.create(partitions=lanes_of(turns), settled=False)
    shrinks = cluster.topics.create(partitions=lanes_of(turns))
    records = batch_of([b"%d" % index for index in range(SAMPLES)])
    filled = [Append(shrinks, partition, records) for partition in range(lanes_of(turns))]
    cluster.clients.ask(cluster.first).start_produce(*filled).result()
    cluster.faults.pause(cluster.third)
    starts: dict[str, Start] = {"acks=all": partial(_produce, grows), "deletion": partial(_delete, shrinks)}
    for name, turn, reply in side_by_side(cluster, turns, starts):
        step, due = f"{name}, timeout {turn.wait_ms}", at_timeout(turn.wait_ms)
        if name == "deletion":
            yield deleted(step, reply, due, attempt=turn.attempt)
        else:
            yield produced(step, reply, due, partition=turn.lane, attempt=turn.attempt)


def _fetch(topic: Topic, client: BrokerClient, turn: Turn) -> Pending[messages.FetchResponse]:
    return client.start_fetch(Position(topic), max_wait_ms=turn.wait_ms)


def _produce(topic: Topic, client: BrokerClient, turn: Turn) -> Pending[messages.ProduceResponse]:
    append = Append(topic, turn.lane, batch_of([b"waits"]))
    return client.start_produce(append, timeout_ms=turn.wait_ms)


def _delete(topic: Topic, client: BrokerClient, turn: Turn) -> Pending[messages.DeleteRecordsResponse]:
    return client.start_delete_records(topic, turn.round, partition=turn.lane, timeout_ms=turn.wait_ms)
