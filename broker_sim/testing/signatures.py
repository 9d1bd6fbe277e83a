"""The markers with their arguments and defaults, as `pytest --markers` shows them."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from broker_sim.chaos.settings import Settings
from broker_sim.cluster.arguments import ClusterOptions
from broker_sim.testing import CHAOS_MARKER, KAFKA_MARKER, VIRTUAL_MARKER
from broker_sim.testing.options import VirtualTimeOptions


def _signature(marker: str, kind: type[ClusterOptions]) -> str:
    return f"{marker}({', '.join(f'{each.name}={each.default!r}' for each in fields(kind))})"


SIGNATURES: Final = {
    marker: _signature(marker, kind)
    for marker, kind in ((KAFKA_MARKER, ClusterOptions), (VIRTUAL_MARKER, VirtualTimeOptions), (CHAOS_MARKER, Settings))
}
