"""Topology descriptions sent by members, stored in memory (KIP-1331).

Mirrors `StreamsGroupTopologyDescriptionManager` with a plugin that never fails. While the description of the group's
topology is missing, heartbeat responses request it from a member, with a delay that doubles; the member sends it in
StreamsGroupTopologyDescriptionUpdate. The group's record has the topology epoch of the stored description.

Deliberate difference: Kafka does not include a plugin. This one stores descriptions in the coordinator's memory, so
they are requested again when another broker becomes the coordinator; a group expires without waiting for the plugin.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.request_checks import check_text, invalid_request
from broker_sim.group.streams.topics.configured_topology import Status
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.group.streams.records import DescriptionEpochs
    from broker_sim.group.streams.streams_groups import StreamsGroupHeartbeatResult

Update = messages.StreamsGroupTopologyDescriptionUpdateRequest
Described = messages.StreamsGroupDescribeResponse

FIRST_DELAY_MS: Final = 30_000
MAX_DELAY_MS: Final = 3_600_000
JITTER: Final = 0.2
FIRST_VERSION: Final = 1
"""First version of StreamsGroupHeartbeat whose responses can request a description."""


class DescriptionStatus(IntEnum):
    """Status of the topology description in StreamsGroupDescribe."""

    NOT_REQUESTED = 0
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


class NodeType(IntEnum):
    """The types of topology nodes."""

    SOURCE = 1
    PROCESSOR = 2
    SINK = 3


class _Request(NamedTuple):
    """The last request for the description of a topology epoch."""

    epoch: int
    attempts: int
    next_ms: float


class TopologyDescriptions:
    """Stores the newest description of each group, if the configuration names a plugin."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._descriptions: dict[str, tuple[int, Described.TopologyDescription]] = {}
        self._requests: dict[str, _Request] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether descriptions are enabled."""
        return self._broker.config.group_streams_topology_description_plugin_class is not None

    def maybe_request(self, answer: StreamsGroupHeartbeatResult, group_id: str, version: int) -> None:
        """Request the description in this response, if it is missing and no request is too recent."""
        response, epoch, descriptions = answer.response, answer.topology_epoch, answer.descriptions
        is_stale = any(status.status_code == Status.STALE_TOPOLOGY for status in response.status or ())
        if version < FIRST_VERSION or not self.is_enabled or response.member_epoch < 0 or epoch < 0 or is_stale:
            return
        is_stored = descriptions.stored == epoch and self._stored_epoch(group_id) == epoch
        if is_stored or descriptions.failed == epoch:
            return
        now_ms = self._broker.clock.wall_clock_ms()
        last = self._requests.get(group_id)
        if last is not None and last.epoch == epoch and now_ms < last.next_ms:
            return
        attempts = last.attempts + 1 if last is not None and last.epoch == epoch else 0
        delay_ms = min(FIRST_DELAY_MS * 2**attempts, MAX_DELAY_MS)
        delay_ms *= self._broker.random.uniform(1 - JITTER, 1 + JITTER)
        self._requests[group_id] = _Request(epoch, attempts, now_ms + delay_ms)
        response.topology_description_required = True

    def check(self, request: Update) -> Described.TopologyDescription:
        """Return the description in a request. Raises `ApiError`: UNSUPPORTED_VERSION, INVALID_REQUEST."""
        if not self.is_enabled:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION, "The broker has no streams group topology description plugin configured."
            )
        check_text(request.member_id, "MemberId can't be empty.")
        check_text(request.group_id, "GroupId can't be empty.")
        return _description(request.topology_description)

    def store(self, group_id: str, epoch: int, description: Described.TopologyDescription) -> None:
        """Store the description of the group's topology with that epoch."""
        self._descriptions[group_id] = epoch, description
        self._requests.pop(group_id, None)

    def forget(self, group_id: str) -> None:
        """Remove the description of a deleted group."""
        self._descriptions.pop(group_id, None)
        self._requests.pop(group_id, None)

    def attach(self, group: Described.DescribedGroup, descriptions: DescriptionEpochs) -> None:
        """Add the description of the group's current topology to a described group, if it is stored."""
        group.topology_description_status = DescriptionStatus.NOT_STORED
        epoch = None if group.topology is None else group.topology.epoch
        if epoch is not None and epoch == descriptions.stored == self._stored_epoch(group.group_id):
            group.topology_description_status = DescriptionStatus.AVAILABLE
            group.topology_description = self._descriptions[group.group_id][1]

    def _stored_epoch(self, group_id: str) -> int | None:
        return self._descriptions[group_id][0] if group_id in self._descriptions else None


def _description(description: Update.TopologyDescription) -> Described.TopologyDescription:
    return Described.TopologyDescription(
        [
            Described.TopologyDescriptionSubtopology(each.subtopology_id, [_node(node) for node in each.nodes])
            for each in description.subtopologies
        ],
        [_global_store(store) for store in description.global_stores],
    )


def _global_store(description: Update.TopologyDescriptionGlobalStore) -> Described.TopologyDescriptionGlobalStore:
    store = Described.TopologyDescriptionGlobalStore(_node(description.source), _node(description.processor))
    if (store.source.node_type, store.processor.node_type) != (NodeType.SOURCE, NodeType.PROCESSOR):
        raise invalid_request("Global store must be composed of a source and a processor node.")
    return store


def _node(description: Update.TopologyDescriptionNode) -> Described.TopologyDescriptionNode:
    """Return the node with the fields of its type, without duplicate names."""
    node = Described.TopologyDescriptionNode(
        description.name, description.node_type, successors=list(dict.fromkeys(description.successors))
    )
    if description.node_type == NodeType.SOURCE:
        node.source_topics = list(dict.fromkeys(description.source_topics))
    elif description.node_type == NodeType.PROCESSOR:
        node.stores = list(dict.fromkeys(description.stores))
    elif description.node_type == NodeType.SINK:
        node.sink_topic = description.sink_topic
    else:
        raise invalid_request(f"Unknown topology node type: {description.node_type}")
    return node
