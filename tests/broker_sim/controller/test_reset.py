"""The controller's reset, which deletes and creates in one step."""

import pytest

from broker_sim.controller import CreatableTopic, FeatureUpdate, UpgradeType
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.acl import Acl, AclOperation, PatternType, Permission, ResourceType

SESSION_MS = 9_000


def test_topics_are_deleted_and_created_in_one_image(cluster):
    old_id = cluster.create("orders", [1, 2, 3])
    cluster.create("more", [1])
    published = len(cluster.images)
    cluster.controller.reset([CreatableTopic("orders", 2, 3), CreatableTopic("other", 1, 1)])
    assert len(cluster.images) == published + 1
    assert {name: len(topic.partitions) for name, topic in cluster.image.topics.items()} == {"orders": 2, "other": 1}
    assert cluster.image.topics["orders"].topic_id != old_id
    assert set(cluster.image.topic_names.values()) == {"orders", "other"}


@pytest.mark.parametrize(
    ("topics", "error_code"),
    [
        (["a", "a"], ErrorCode.TOPIC_ALREADY_EXISTS),
        (["a.b", "a_b"], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (["a", "no such name"], ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
@pytest.mark.parametrize("verb", ["reset", "make_topics"])
def test_nothing_is_done_when_one_topic_is_refused(cluster, verb, topics, error_code):
    cluster.create("orders", [1])
    before = cluster.image
    with pytest.raises(ApiError) as refused:
        getattr(cluster.controller, verb)(CreatableTopic(name, 1, 1) for name in topics)
    assert refused.value.error_code is error_code
    assert cluster.image is before


@pytest.mark.parametrize(
    ("too_many_partitions", "reason"),
    [(10_000, "excessively large batch operation"), (10_001, "Excessively large number of partitions")],
)
def test_each_topic_but_not_all_together_are_bound_as_in_a_request(cluster, too_many_partitions, reason):
    cluster.controller.make_topics([CreatableTopic("a", 6_000, 1), CreatableTopic("b", 9_999, 1)])
    assert sorted(cluster.image.topics) == ["a", "b"]
    with pytest.raises(ApiError, match=reason):
        cluster.controller.make_topics([CreatableTopic("c", too_many_partitions, 1)])


def test_sessions_begin_anew(cluster):
    cluster.pass_time(SESSION_MS - 1_000, alive=[1, 2])
    cluster.controller.reset()
    cluster.pass_time(SESSION_MS - 1_000, alive=[1, 2])
    assert not cluster.image.brokers[3].fenced
    cluster.pass_time(3_000, alive=[1, 2])
    assert cluster.image.brokers[3].fenced


def test_acls_are_deleted(cluster):
    topic, literal = ResourceType.TOPIC, PatternType.LITERAL
    acl = Acl(topic, "t", literal, "User:a", "*", AclOperation.READ, Permission.ALLOW)
    cluster.controller.create_acls([acl])
    cluster.controller.reset()
    assert not cluster.image.acls


def test_features_return_to_their_first_levels(cluster):
    first = cluster.image.features
    cluster.controller.update_features([FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE)])
    assert "group.version" not in cluster.image.features
    cluster.controller.reset()
    assert cluster.image.features == first
