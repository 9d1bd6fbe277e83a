"""Completed operations that remain in watch lists. Kafka: DelayedOperationPurgatory.advanceClock, purgeInterval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.broker_verbs import Reading
from broker_sim_integration.clients.broker_client import Position
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

PURGE_INTERVAL: Final = 1000
"""`fetch.purgatory.purge.interval.requests`."""
TOGETHER: Final = 100
PARKED_AFTER_MS: Final = 100
REAPED_AFTER_MS: Final = 500
"""The reaper checks every 200 ms whether a purge is due."""
FEW: Final = 7
MANY: Final = 14
"""Rounds of `TOGETHER` fetches: together with other watched operations below, or surely above, the interval."""
LONG_MS: Final = 20_000
NO_RESPONSE: Final = "a purge has no response"


@scenario(topology="2 partitions x 1 replica", needs={Reading.PURGES})
def completed_fetches_are_purged_where_nothing_happens(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thousands of fetches wait for two partitions, and only the first one gets records.

    The completed fetches remain in the watch list of the second partition. They are purged when there are
    more than a thousand, and not before.
    """
    topic = cluster.topics.create([cluster.first], partitions=2)
    leader = cluster.connect(cluster.first)
    clients = [cluster.connect(cluster.first) for _ in range(TOGETHER)]
    purged = cluster.purges.counted_of(cluster.first)
    end = 0

    def complete_rounds(count: int, *, until_purged: bool) -> None:
        nonlocal end
        before = purged()
        for _ in range(count):
            positions = Position(topic, 0, offset=end), Position(topic, 1)
            parked = [client.start_fetch(*positions, max_wait_ms=LONG_MS) for client in clients]
            cluster.wait(PARKED_AFTER_MS)
            leader.produce(topic, b"completes them", acks=1)
            end += 1
            for pending in parked:
                pending.result()
            if until_purged and purged() > before:
                return
        cluster.wait(REAPED_AFTER_MS)

    complete_rounds(MANY, until_purged=True)
    first = purged()
    yield concluded("at first", NO_RESPONSE, any_purged=first > 0)
    complete_rounds(FEW, until_purged=False)
    yield concluded("few more", NO_RESPONSE, any_purged=purged() > first)
    complete_rounds(MANY, until_purged=True)
    enough = purged() - first >= PURGE_INTERVAL
    yield concluded("many more", NO_RESPONSE, more_than_the_interval=enough)
