"""The table on a real broker: one node of Kafka 4.4.0 as a local process; needs Java and Maven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim_integration.dead_letters.table import CONFIGS, TABLE, play
from broker_sim_integration.reference.clusters.local_node import play_on_local_node

if TYPE_CHECKING:
    from collections.abc import Sequence


def play_on_real(cases: Sequence[str] = tuple(TABLE)) -> dict[str, list[Any]]:
    """Return the observations of these cases."""
    return play_on_local_node(play, cases, CONFIGS)
