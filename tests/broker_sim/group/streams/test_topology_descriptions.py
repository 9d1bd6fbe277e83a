"""Tests of topology descriptions, which members send and the coordinator stores in memory (KIP-1331)."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.group.streams.topology_descriptions import JITTER, DescriptionStatus
from broker_sim.protocol import messages
from tests.broker_sim.group.streams.members import GROUP

NONE = ErrorCode.NONE
PLUGIN = {"group_streams_topology_description_plugin_class": "org.example.Kept"}
DELAY_S = 30
Update = messages.StreamsGroupTopologyDescriptionUpdateRequest
Node = Update.TopologyDescriptionNode


def description(*nodes, stores=()):
    nodes = nodes or (
        Node("source", 1, ["in", "in"], successors=["count"]),
        Node("count", 2, stores=["counts"], successors=["sink"]),
        Node("sink", 3, sink_topic="out"),
    )
    return Update.TopologyDescription([Update.TopologyDescriptionSubtopology("0", list(nodes))], list(stores))


@pytest.fixture
def streams(make_newest):
    streams = make_newest(**PLUGIN)
    streams.bench.set_topic("in", 1)
    return streams


def push(streams, topology_description=None, **fields):
    """Send the description; returns the error and its text."""
    outcomes = []
    request = Update(**{"group_id": GROUP, "member_id": "a", "topology_epoch": 0, **fields})
    request.topology_description = topology_description or description()
    streams.service.update_description(
        request, lambda: outcomes.append((NONE, None)), lambda e: outcomes.append((e.error_code, e.error_message))
    )
    streams.bench.run_later()
    (outcome,) = outcomes
    return outcome


def described(streams):
    group = streams.describe(with_description=True)
    return DescriptionStatus(group.topology_description_status), group.topology_description


def test_description_is_requested_stored_and_returned(streams):
    member = streams.member("a")
    member.join()
    assert member.answer.topology_description_required
    assert described(streams) == (DescriptionStatus.NOT_STORED, None)
    assert push(streams) == (NONE, None)
    status, stored = described(streams)
    assert status is DescriptionStatus.AVAILABLE
    source, count, sink = stored.subtopologies[0].nodes
    assert (source.source_topics, source.successors) == (["in"], ["count"])
    assert (count.stores, sink.sink_topic) == (["counts"], "out")
    assert streams.group.descriptions.stored == 0
    assert streams.describe().topology_description_status == DescriptionStatus.NOT_REQUESTED


def test_request_is_repeated_with_doubling_delay(streams):
    member = streams.member("a")
    member.join()
    asked_after_s = []
    for second in range(1, 200):
        streams.bench.advance(1_000)
        member.beat()
        if member.answer.topology_description_required:
            asked_after_s.append(second)
    first, second, *later = asked_after_s
    assert abs(first - DELAY_S) <= DELAY_S * JITTER
    assert abs(second - first - 2 * DELAY_S) <= 2 * DELAY_S * JITTER
    assert len(later) <= 1


def test_next_coordinator_requests_the_description_again(streams):
    member = streams.member("a")
    member.join()
    push(streams)
    streams.bench.fail_over()
    member.beat()
    assert not member.answer.topology_description_required
    streams.service.descriptions.forget(GROUP)  # as at a broker that was not the coordinator
    assert streams.group.descriptions.stored == 0
    assert described(streams)[0] is DescriptionStatus.NOT_STORED
    member.beat()
    assert member.answer.topology_description_required


@pytest.mark.parametrize("version", [0, 1])
def test_clients_of_version_0_get_no_request(streams, version):
    member = streams.member("a")
    member.join(version=version)
    assert member.answer.topology_description_required == (version == 1)


def test_description_is_not_requested_without_plugin(newest):
    newest.bench.set_topic("in", 1)
    member = newest.member("a")
    member.join()
    assert not member.answer.topology_description_required
    no_plugin = "The broker has no streams group topology description plugin configured."
    assert push(newest) == (ErrorCode.UNSUPPORTED_VERSION, no_plugin)
    assert described(newest) == (DescriptionStatus.NOT_STORED, None)


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
        ({"member_id": " "}, ErrorCode.INVALID_REQUEST, "MemberId can't be empty."),
        ({"group_id": "no"}, ErrorCode.GROUP_ID_NOT_FOUND, "Group no not found."),
        ({"member_id": "no"}, ErrorCode.UNKNOWN_MEMBER_ID, "Member no is not a member of group app."),
        (
            {"topology_epoch": 3},
            ErrorCode.INVALID_REQUEST,
            "Topology epoch 3 does not match the group's current topology epoch 0.",
        ),
    ],
)
def test_invalid_description_is_rejected(streams, fields, error, text):
    streams.member("a").join()
    assert push(streams, **fields) == (error, text)
    assert described(streams)[0] is DescriptionStatus.NOT_STORED


def test_unknown_node_types_are_rejected(streams):
    streams.member("a").join()
    invalid = ErrorCode.INVALID_REQUEST
    assert push(streams, description(Node("x", 9))) == (invalid, "Unknown topology node type: 9")
    store = Update.TopologyDescriptionGlobalStore(Node("p", 2), Node("s", 1))
    assert push(streams, description(stores=[store])) == (
        invalid,
        "Global store must be composed of a source and a processor node.",
    )


def test_recreated_group_has_no_description(streams):
    member = streams.member("a")
    member.join()
    push(streams)
    member.leave()
    results = []
    streams.bench.service.delete_groups([GROUP], results.append)
    assert streams.group is None
    member.join()
    assert member.answer.topology_description_required
    assert described(streams)[0] is DescriptionStatus.NOT_STORED
