"""The descriptions of topologies that members push, kept in memory (KIP-1331).

Mirrors `StreamsGroupTopologyDescriptionManager` with a plugin that never fails. A heartbeat asks a member for the
description of the group's topology unless it is there, at most once in a delay that doubles; the member sends it with
StreamsGroupTopologyDescriptionUpdate. Which topology epoch is described stands in the group's record.

Deliberate difference: Kafka has no such plugin of its own. This one is the coordinator's memory, so a description is
lost when another broker becomes the coordinator, and is asked for again; a group expires without waiting for the
plugin.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.request_checks import check_text, invalid_request
from broker_sim.group.streams.topics.configured_topology import Status
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.group.streams.records import DescriptionEpochs

Update = messages.StreamsGroupTopologyDescriptionUpdateRequest
Described = messages.StreamsGroupDescribeResponse

FIRST_DELAY_MS: Final = 30_000
LONGEST_DELAY_MS: Final = 3_600_000
JITTER: Final = 0.2
FIRST_VERSION: Final = 1
"""First version of StreamsGroupHeartbeat whose answers can ask for a description."""


class DescriptionStatus(IntEnum):
    """Whether a described group comes with its description."""

    NOT_REQUESTED = 0
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


class NodeType(IntEnum):
    """The kinds of nodes of a topology."""

    SOURCE = 1
    PROCESSOR = 2
    SINK = 3


class _Request(NamedTuple):
    """The last time that a member was asked for the description of a topology epoch."""

    epoch: int
    attempts: int
    next_ms: float


@dataclass(frozen=True, slots=True)
class DescribedEpochs:
    """The epoch of a group's topology, and those of its descriptions."""

    topology_epoch: int
    descriptions: DescriptionEpochs


class TopologyDescriptions:
    """Keeps the newest description of each group; only where the configuration names a plugin."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._kept: dict[str, tuple[int, Described.TopologyDescription]] = {}
        self._requests: dict[str, _Request] = {}

    @property
    def is_on(self) -> bool:
        """Whether descriptions are kept at all."""
        return self._broker.config.group_streams_topology_description_plugin_class is not None

    def ask_for(
        self, response: messages.StreamsGroupHeartbeatResponse, group_id: str, epochs: DescribedEpochs, version: int
    ) -> None:
        """Ask the member that gets this answer for the description, if it is missing."""
        epoch = epochs.topology_epoch
        is_stale = any(status.status_code == Status.STALE_TOPOLOGY for status in response.status or ())
        if version < FIRST_VERSION or not self.is_on or response.member_epoch < 0 or epoch < 0 or is_stale:
            return
        is_kept = epochs.descriptions.stored == epoch and self._kept_epoch(group_id) == epoch
        if is_kept or epochs.descriptions.failed == epoch:
            return
        now_ms = self._broker.clock.wall_clock_ms()
        last = self._requests.get(group_id)
        if last is not None and last.epoch == epoch and now_ms < last.next_ms:
            return
        attempts = last.attempts + 1 if last is not None and last.epoch == epoch else 0
        delay_ms = min(FIRST_DELAY_MS * 2**attempts, LONGEST_DELAY_MS)
        delay_ms *= self._broker.random.uniform(1 - JITTER, 1 + JITTER)
        self._requests[group_id] = _Request(epoch, attempts, now_ms + delay_ms)
        response.topology_description_required = True

    def check(self, request: Update) -> Described.TopologyDescription:
        """Return the description of a request. Raises `ApiError`: UNSUPPORTED_VERSION, INVALID_REQUEST."""
        if not self.is_on:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION, "The broker has no streams group topology description plugin configured."
            )
        check_text(request.member_id, "MemberId can't be empty.")
        check_text(request.group_id, "GroupId can't be empty.")
        return _description(request.topology_description)

    def keep(self, group_id: str, epoch: int, description: Described.TopologyDescription) -> None:
        """Keep the description of the group's topology of that epoch."""
        self._kept[group_id] = epoch, description
        self._requests.pop(group_id, None)

    def forget(self, group_id: str) -> None:
        """Throw away what is kept of a group that is gone."""
        self._kept.pop(group_id, None)
        self._requests.pop(group_id, None)

    def attach(self, group: Described.DescribedGroup, descriptions: DescriptionEpochs) -> None:
        """Add the description to a described group, if that of its topology is kept."""
        group.topology_description_status = DescriptionStatus.NOT_STORED
        epoch = None if group.topology is None else group.topology.epoch
        if epoch is not None and epoch == descriptions.stored == self._kept_epoch(group.group_id):
            group.topology_description_status = DescriptionStatus.AVAILABLE
            group.topology_description = self._kept[group.group_id][1]

    def _kept_epoch(self, group_id: str) -> int | None:
        return self._kept[group_id][0] if group_id in self._kept else None


def _description(told: Update.TopologyDescription) -> Described.TopologyDescription:
    return Described.TopologyDescription(
        [
            Described.TopologyDescriptionSubtopology(each.subtopology_id, [_node(node) for node in each.nodes])
            for each in told.subtopologies
        ],
        [_global_store(store) for store in told.global_stores],
    )


def _global_store(told: Update.TopologyDescriptionGlobalStore) -> Described.TopologyDescriptionGlobalStore:
    store = Described.TopologyDescriptionGlobalStore(_node(told.source), _node(told.processor))
    if (store.source.node_type, store.processor.node_type) != (NodeType.SOURCE, NodeType.PROCESSOR):
        raise invalid_request("Global store must be composed of a source and a processor node.")
    return store


def _node(told: Update.TopologyDescriptionNode) -> Described.TopologyDescriptionNode:
    """Return the node with what its kind has, each name once."""
    node = Described.TopologyDescriptionNode(told.name, told.node_type, successors=list(dict.fromkeys(told.successors)))
    if told.node_type == NodeType.SOURCE:
        node.source_topics = list(dict.fromkeys(told.source_topics))
    elif told.node_type == NodeType.PROCESSOR:
        node.stores = list(dict.fromkeys(told.stores))
    elif told.node_type == NodeType.SINK:
        node.sink_topic = told.sink_topic
    else:
        raise invalid_request(f"Unknown topology node type: {told.node_type}")
    return node
