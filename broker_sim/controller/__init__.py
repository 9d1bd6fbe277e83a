"""The active KRaft controller as a plain object without sockets, threads or timers."""

from broker_sim.controller.controller import (
    DEFAULT_FEATURES,
    ELR_FEATURE,
    Controller,
)
from broker_sim.controller.requests import (
    AlterOp,
    AlterPartitionResult,
    ConfigAlteration,
    ConfigResource,
    ConfigResourceType,
    CreatableTopic,
    CreateTopicResult,
    DeleteTopicResult,
    ElectionType,
    HeartbeatReply,
    IsrMember,
    NewPartitions,
    OngoingReassignment,
    Outcome,
    PartitionAlteration,
    PartitionOutcome,
    ProducerIdsBlock,
    Reassignment,
)
from broker_sim.controller.status import ControllerStatus

__all__ = [
    "DEFAULT_FEATURES",
    "ELR_FEATURE",
    "AlterOp",
    "AlterPartitionResult",
    "ConfigAlteration",
    "ConfigResource",
    "ConfigResourceType",
    "Controller",
    "ControllerStatus",
    "CreatableTopic",
    "CreateTopicResult",
    "DeleteTopicResult",
    "ElectionType",
    "HeartbeatReply",
    "IsrMember",
    "NewPartitions",
    "OngoingReassignment",
    "Outcome",
    "PartitionAlteration",
    "PartitionOutcome",
    "ProducerIdsBlock",
    "Reassignment",
]
