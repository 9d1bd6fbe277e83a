"""Regular expressions match only topics that the member may describe, as in Kafka 4.3.1."""

from broker_sim_integration.acls.play import set_acls
from broker_sim_integration.acls.simulated import SimulatedBroker

from broker_sim.metadata.acl import Acl, AclOperation, PatternType, Permission, ResourceType
from broker_sim.protocol import messages

HEARTBEAT = messages.ConsumerGroupHeartbeatRequest
GROUP_READ = (ResourceType.GROUP, "g", AclOperation.READ)
GROUP_DESCRIBE = (ResourceType.GROUP, "g", AclOperation.DESCRIBE)
TOPIC_DESCRIBE = (ResourceType.TOPIC, "rx-a", AclOperation.DESCRIBE)
TOPIC_AUTHORIZATION_FAILED = 29


def allow(broker, *rights):
    literal, anywhere, permission = PatternType.LITERAL, "*", Permission.ALLOW
    set_acls(
        broker,
        [
            Acl(kind, name, literal, broker.principal, anywhere, operation, permission)
            for kind, name, operation in rights
        ],
    )


def assigned_topics(broker):
    """Join with an expression and return the names that the member is assigned."""
    ids = {t.topic_id: t.name for t in broker.cluster.nodes.controller.image.topics.values()}
    joined = broker.ask(
        HEARTBEAT("g", "member", 0, rebalance_timeout_ms=30_000, subscribed_topic_regex="rx-.*", topic_partitions=[]), 1
    )
    names = []

    def is_assigned():
        answer = broker.ask(HEARTBEAT("g", "member", joined.member_epoch), 1)
        if answer.assignment is not None:
            names.extend(ids[topic.topic_id] for topic in answer.assignment.topic_partitions)
        return bool(names)

    broker.wait_until(is_assigned)
    return names


def test_expression_matches_only_describable_topics():
    with SimulatedBroker() as broker:
        for name in ("rx-a", "rx-b"):
            broker.cluster.create_topic(name, 1, 1)
        find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        broker.wait_until(lambda: not broker.ask_as_admin(find, 4).coordinators[0].error_code)
        allow(broker, GROUP_READ, GROUP_DESCRIBE, TOPIC_DESCRIBE)
        assert assigned_topics(broker) == ["rx-a"]
        describe = messages.ConsumerGroupDescribeRequest(["g"])
        assert broker.ask(describe, 1).groups[0].error_code == 0
        # Who may not describe a topic of the group hears nothing of its members.
        allow(broker, GROUP_READ, GROUP_DESCRIBE)
        (hidden,) = broker.ask(describe, 1).groups
        assert (hidden.error_code, hidden.members) == (TOPIC_AUTHORIZATION_FAILED, [])
