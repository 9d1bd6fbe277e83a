"""A wait until all brokers have applied a change of configuration, which they receive after the response."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim_integration.clients.admin_requests import TOPIC, describe_configs

if TYPE_CHECKING:
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

MARKED = "retention.ms"
FIRST_MARK = 1_000_000


class Publication:
    """Marks in the metadata log: a broker that has read a mark has read all changes before it."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        self._cluster = cluster
        self._topic = cluster.topics.create([cluster.first])
        self._mark = FIRST_MARK

    def wait(self) -> None:
        """Return when every broker has applied all changes whose responses arrived before this call.

        A broker shows a change before it applies it, and reads several changes at once; but when it shows the mark
        of the second round, it has applied everything up to the mark of the first.
        """
        for _ in range(2):
            self._mark += 1
            self._cluster.topics.alter(self._topic, retention_ms=str(self._mark))
            for broker in self._cluster.brokers:
                self._cluster.wait_until(partial(self._shows_mark, broker), "a change is published")

    def _shows_mark(self, broker: int) -> bool:
        asked = (TOPIC, self._topic.name, (MARKED,))
        reply = describe_configs(self._cluster.clients.ask(broker), asked)
        return reply.message.results[0].configs[0].value == str(self._mark)
