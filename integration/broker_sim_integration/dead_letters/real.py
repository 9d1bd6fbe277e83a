"""The table on a real broker: one node of Kafka 4.4.0 as a local process; needs Java and Maven."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from broker_sim_integration.dead_letters.table import CONFIGS, TABLE, play
from broker_sim_integration.reference.clusters.local_node import local_node

if TYPE_CHECKING:
    from collections.abc import Sequence


def play_on_real(cases: Sequence[str] = tuple(TABLE)) -> dict[str, list[Any]]:
    """Return the observations of these cases."""
    outcomes = {}
    with local_node(CONFIGS) as address:
        for case in cases:
            sys.stderr.write(f"{case}\n")
            outcomes[case] = asyncio.run(play(address, case))
    return outcomes
