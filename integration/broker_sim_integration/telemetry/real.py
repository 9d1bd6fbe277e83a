"""The table on a real broker with a plugin: one node of Kafka 4.4.0 as a local process; needs a JDK and Maven."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.reference.clusters.local_node import compile_plugin, play_on_local_node
from broker_sim_integration.telemetry.table import CONFIGS, TABLE, play

if TYPE_CHECKING:
    from collections.abc import Sequence

PLUGIN: Final = Path(__file__).with_name("Telemetry.java")


def play_on_real(cases: Sequence[str] = tuple(TABLE)) -> dict[str, list[Any]]:
    """Return the observations of these cases."""
    with tempfile.TemporaryDirectory() as classes:
        compile_plugin(PLUGIN, Path(classes))
        return play_on_local_node(play, cases, CONFIGS, classes=Path(classes))
