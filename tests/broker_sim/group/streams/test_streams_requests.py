"""Tests of the validation of StreamsGroupHeartbeat."""

import pytest

from broker_sim.errors import ErrorCode
from tests.broker_sim.group.streams.members import Request, subtopology


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"instance_id": "i"}, "Static membership is not yet supported."),
        ({"task_offsets": []}, "TaskOffsets are not supported yet."),
        ({"task_end_offsets": []}, "TaskEndOffsets are not supported yet."),
        ({"warmup_tasks": [Request.TaskIds("0", [0])]}, "WarmupTasks are not supported yet."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"active_tasks": None}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby_tasks": [Request.TaskIds("0", [0])]}, "StandbyTasks must be empty when (re-)joining."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        (
            {"member_epoch": 1, "topology": None, "warmup_tasks": None},
            "If one task-type is non-null, all must be non-null.",
        ),
        ({"member_epoch": 1}, "Topology can only be provided when (re-)joining."),
        (
            {"topology": Request.Topology(0, [subtopology("0", source_topic_regex=["x.*"])])},
            "Regular expressions for source topics are not supported yet.",
        ),
    ],
)
def test_invalid_requests_are_rejected(streams, fields, message):
    member = streams.member("a")
    assert member.join(**fields) == ErrorCode.INVALID_REQUEST
    assert member.answer.error_message == message
    assert streams.group is None


def test_changelog_topic_with_partition_count_is_invalid(streams):
    invalid = subtopology("0", "in", state_changelog_topics=[("c", 2, 1, [])])
    member = streams.member("a", invalid)
    assert member.join() == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert member.answer.error_message == (
        "Changelog topic c must have an undefined partition count, but it is set to 2."
    )
