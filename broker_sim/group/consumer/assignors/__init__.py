"""The server-side assignors of the consumer protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.config import assignor_names
from broker_sim.group.consumer.assignors.range_assignor import assign_ranges
from broker_sim.group.consumer.assignors.spec import GroupSpec, MemberSpec
from broker_sim.group.consumer.assignors.uniform import assign_uniformly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.group.modern.assignment import Partitions

__all__ = ["ASSIGNORS", "Assignor", "GroupSpec", "MemberSpec", "offered_assignors"]

if TYPE_CHECKING:
    Assignor = Callable[[GroupSpec], Mapping[str, Partitions]]

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
"""The assignors by Kafka's names; members missing in the result get no partitions."""


def offered_assignors(config: BrokerConfig) -> tuple[str, ...]:
    """Return the names of the configured assignors; the first is the default."""
    return assignor_names("group.consumer.assignors", config.group_consumer_assignors)
