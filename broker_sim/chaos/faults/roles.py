"""Finds the broker that an action names by what it is at that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import FOLLOWER, GROUPS, LEADER, THIRD, TRANSACTIONS
from broker_sim.errors import WrongStateError
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, is_internal_topic
from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker_sim.cluster.nodes.nodes import Nodes

ROLES: Final = (LEADER, FOLLOWER, THIRD, GROUPS, TRANSACTIONS)
COORDINATED: Final = {
    GROUPS: TopicPartition(GROUP_METADATA_TOPIC, 0),
    TRANSACTIONS: TopicPartition(TRANSACTION_STATE_TOPIC, 0),
}
"""The partitions whose leaders are the coordinators, where there is one of each."""
_PLACES: Final = {FOLLOWER: 0, THIRD: 1}


def clients_topics(nodes: Nodes) -> list[str]:
    """Return the topics that are not internal, in the order of their names. Raises WrongStateError without any."""
    topics = sorted(name for name in nodes.controller.image.topics if not is_internal_topic(name))
    if not topics:
        raise WrongStateError("there is no topic yet")
    return topics


def who_is(nodes: Nodes, role: str) -> int:
    """Return the broker that has one of `ROLES`. Raises WrongStateError if there is none."""
    key = COORDINATED.get(role) or TopicPartition(clients_topics(nodes)[0], 0)
    state = nodes.controller.image.partition(key)
    if state is None or not state.has_leader:
        raise WrongStateError(f"{key} has no leader")
    place = _PLACES.get(role)
    if place is None:
        return state.leader
    others = [replica for replica in state.replicas if replica != state.leader]
    if place >= len(others):
        raise WrongStateError(f"{key} has no such replica")
    return others[place]
