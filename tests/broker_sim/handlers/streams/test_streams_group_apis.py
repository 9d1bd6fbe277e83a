"""Claims about streams groups in a cluster of three brokers: their APIs, their topics, and who takes over."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.group.streams.topics.configured_topology import Status
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, Permission, ResourceType
from broker_sim.protocol import messages
from tests.broker_sim.handlers.streams.conftest import CHANGELOG, GROUP, SOURCE, topology

NONE = ErrorCode.NONE
READ, DESCRIBE, CREATE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.CREATE
INVALID = ErrorCode.STREAMS_INVALID_TOPOLOGY
OPERATIONS_NOT_TOLD = -(1 << 31)


def statuses(answer):
    return {Status(each.status_code): each.status_detail for each in answer.status}


def test_internal_topic_is_created_and_tasks_follow(user):
    answer = user.join(topology(cleanup_policy="compact"))
    assert set(statuses(answer)) == {Status.MISSING_INTERNAL_TOPICS}
    user.cluster.advance(1_000)
    assert len(user.topics[CHANGELOG].partitions) == 2
    assert user.topics[CHANGELOG].configs == {"cleanup.policy": "compact"}
    answer = user.beat()
    assert (statuses(answer), user.active) == ({}, {"0": [0, 1]})
    (described,) = user.describe()
    assert (described.error_code, described.group_state) == (NONE, "Stable")
    assert [member.member_id for member in described.members] == ["member"]
    (subtopology,) = described.topology.subtopologies
    assert subtopology.source_topics == [SOURCE]
    assert subtopology.state_changelog_topics[0].partitions == 2


def test_member_is_told_why_a_topic_could_not_be_created(user):
    told = topology(replicas=7)
    first = statuses(user.join(told))[Status.MISSING_INTERNAL_TOPICS]
    user.cluster.advance(500)
    second = statuses(user.beat())[Status.MISSING_INTERNAL_TOPICS]
    failure = second.removeprefix(first)
    assert failure.startswith(f"; Creation failed: {CHANGELOG} (")
    assert "replication" in failure
    # The topic is not tried again for two heartbeat intervals, then the failure is forgotten.
    user.cluster.advance(9_400)
    assert statuses(user.beat())[Status.MISSING_INTERNAL_TOPICS] == second
    user.cluster.advance(200)
    assert statuses(user.beat())[Status.MISSING_INTERNAL_TOPICS] == first


def test_group_goes_on_at_another_coordinator(user):
    user.until_stable()
    (before,) = user.describe()
    lost = user.coordinator()
    user.cluster.kill(lost)
    user.up.remove(lost)
    user.cluster.advance(20_000)
    (after,) = user.describe()
    # The numbers of partitions of internal topics are looked up with the next heartbeat.
    assert [each.state_changelog_topics[0].partitions for each in after.topology.subtopologies] == [0]
    assert after.members == before.members
    answer = user.beat()
    assert (answer.error_code, answer.active_tasks) == (NONE, None)
    assert user.describe() == [before]


def test_groups_are_listed_by_type_and_state(make_user):
    user = make_user(sources=0)
    user.join()

    def listed(states, types):
        return [
            (group.group_id, group.protocol_type, group.group_state, group.group_type)
            for group in user.ask(messages.ListGroupsRequest(states, types), 5).groups
        ]

    row = [(GROUP, "streams", "NotReady", "streams")]
    assert listed([], []) == listed([], ["Streams"]) == row
    assert listed([], ["consumer"]) == []
    # The filter is not the name of the state, as in Kafka.
    assert listed(["NotReady"], []) == []
    assert listed(["not_ready"], []) == row


def test_group_is_deleted_once_it_is_empty(user):
    user.join()
    delete = messages.DeleteGroupsRequest([GROUP])
    assert [row.error_code for row in user.ask(delete, 2).results] == [ErrorCode.NON_EMPTY_GROUP]
    user.beat(member_epoch=-1)
    assert [row.error_code for row in user.ask(delete, 2).results] == [NONE]
    (described,) = user.describe()
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described.error_message == f"Group {GROUP} not found."


@pytest.mark.parametrize("protocols", ["classic,consumer", "classic,consumer,streams"])
def test_protocol_can_be_left_out(make_user, protocols):
    user = make_user(group_coordinator_rebalance_protocols=protocols)
    offered = "streams" in protocols
    assert (user.join().error_code == NONE) is offered
    (described,) = user.describe()
    assert (described.error_code == NONE) is offered
    if not offered:
        assert described.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_feature_can_be_set_back(user):
    assert user.join().error_code == NONE
    user.set_streams_version(0)
    assert user.beat().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert user.describe()[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    user.set_streams_version(1)
    assert user.beat().error_code == NONE


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "__consumer_offsets",
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
        ),
        ("a b", "Topic names a b are not valid topic names."),
    ],
)
@pytest.mark.parametrize("field", ["source_topics", "repartition_sink_topics"])
def test_names_of_topics_are_checked(user, field, name, message):
    told = topology()
    setattr(told.subtopologies[0], field, [name])
    answer = user.join(told)
    assert (answer.error_code, answer.error_message) == (INVALID, message)


@pytest.mark.parametrize(
    ("operation", "kind", "name", "code"),
    [
        (READ, ResourceType.GROUP, GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (DESCRIBE, ResourceType.TOPIC, SOURCE, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (DESCRIBE, ResourceType.TOPIC, CHANGELOG, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_member_needs_rights(guarded, operation, kind, name, code):
    guarded.coordinator()
    guarded.deny(operation, kind, name)
    answer = guarded.join()
    assert (answer.error_code, answer.error_message) == (code, None)


def test_topic_that_may_not_be_created_is_told(guarded):
    guarded.coordinator()
    guarded.rule(Permission.ALLOW, DESCRIBE, ResourceType.TOPIC, CHANGELOG)
    guarded.deny(CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    text = statuses(guarded.join())[Status.MISSING_INTERNAL_TOPICS]
    assert text.endswith(f"; Unauthorized to CREATE on topics {CHANGELOG}.")
    guarded.cluster.advance(1_000)
    assert CHANGELOG not in guarded.topics


def test_right_to_create_the_topic_is_enough(guarded):
    guarded.coordinator()
    guarded.deny(CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    guarded.join()
    guarded.cluster.advance(1_000)
    assert CHANGELOG in guarded.topics


def test_described_group_hides_topics(guarded):
    guarded.join()
    guarded.deny(DESCRIBE, ResourceType.TOPIC, CHANGELOG)
    (described,) = guarded.describe(operations=True)
    assert described.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert described.error_message == ("The described group uses topics that the client is not authorized to describe.")
    assert (described.topology, described.members) == (None, [])
    assert described.authorized_operations == OPERATIONS_NOT_TOLD


def test_describing_a_group_needs_the_right_to(guarded):
    guarded.join()
    assert guarded.describe(operations=True)[0].authorized_operations > 0
    guarded.deny(DESCRIBE, ResourceType.GROUP, GROUP)
    rows = [(row.group_id, row.error_code) for row in guarded.describe("other", GROUP, "")]
    assert rows == [
        (GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("", ErrorCode.INVALID_GROUP_ID),
        ("other", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
