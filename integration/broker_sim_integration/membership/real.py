"""The table on real brokers: nodes of Kafka 4.4.0 with one controller as local processes; needs Java and Maven."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from broker_sim.protocol import messages
from broker_sim_integration.case_connection import Connection
from broker_sim_integration.membership.table import CONFIGS, TABLE, play
from broker_sim_integration.reference.clusters.local_node import LocalNodes

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Processes:
    """The machine of local processes."""

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes
        self.address = nodes.address

    async def add(self, broker: int) -> None:
        self._nodes.start(broker)

    async def stop(self, broker: int) -> None:
        self._nodes.stop(broker)

    async def start(self, broker: int, *, new_port: bool = False) -> None:
        self._nodes.start(broker, new_port=new_port)

    async def remove(self, broker: int) -> None:
        self._nodes.stop(broker)
        self._nodes.forget(broker)
        connection = await Connection.open(self.address(1))
        answer = await connection.ask(messages.UnregisterBrokerRequest(broker), 0)
        connection.close()
        assert not answer.error_code, answer


def play_on_real(cases: Sequence[str] = tuple(TABLE)) -> dict[str, list[Any]]:
    """Return the observations of these cases, each on a cluster of its own."""
    outcomes = {}
    for case in cases:
        sys.stderr.write(f"{case}\n")
        with LocalNodes(CONFIGS) as nodes:
            nodes.start(1)
            outcomes[case] = asyncio.run(play(_Processes(nodes), case))
    return outcomes
