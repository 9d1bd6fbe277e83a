"""A group stays without partitions if its leader's Metadata request in a rebalance gets an error for the topic once.

    python empty_assignment_after_an_error.py 127.0.0.1:9092,...

Needs brokers with `authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer` and
`allow.everyone.if.no.acl.found=true`: the script denies the description of its topic for a moment. The leader then
assigns the topic's 0 partitions. Later refreshes of the metadata list the partitions, but no member joins again.
Chaos with two correct workers found it at seed 494, by LEADER_NOT_AVAILABLE. Seen on one node of Kafka 4.4.0 with
confluent-kafka 2.16.1, 2.13.2 and 2.5.3; it lasted for the 660 s that were looked at.
"""

import sys
from uuid import uuid4

from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

PARTITIONS = 2
LIMIT_S = 60
REFRESH_S = 5


def wait_for_denial(admin, topic):
    """Return when the broker applies the denial."""
    while admin.list_topics(topic, 10).topics[topic].error is None:
        pass


def main(servers):
    """Let a second member join, and deny the description of the topic while both of them rebalance."""
    topic = f"orders-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result()
    rule = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*")
    denial = (*rule, AclOperation.DESCRIBE, AclPermissionType.DENY)
    rebalanced = set()

    def deny(*_):
        if not rebalanced:
            admin.create_acls([AclBinding(*denial)])[AclBinding(*denial)].result()
            wait_for_denial(admin, topic)

    def member(name):
        consumer = Consumer({
            "bootstrap.servers": servers, "group.id": topic, "client.id": name,
            "topic.metadata.refresh.interval.ms": REFRESH_S * 1000,
        })  # fmt: skip
        consumer.subscribe([topic], on_assign=lambda *_: rebalanced.add(name), on_revoke=deny)
        return consumer

    members = [member("first")]
    while not members[0].assignment():
        members[0].poll(0.2)
    rebalanced.clear()  # the next callbacks are those of the second member's join
    members.append(member("second"))
    while len(rebalanced) < len(members):
        for consumer in members:
            consumer.poll(0.1)
    admin.delete_acls([AclBindingFilter(*denial)])[AclBindingFilter(*denial)].result()
    for _ in range(LIMIT_S):
        for consumer in members:
            consumer.poll(1 / len(members))
        if sum(len(consumer.assignment()) for consumer in members) == PARTITIONS:
            print("it is right: the members have all partitions")
            return
    state = admin.describe_consumer_groups([topic])[topic].result().state.name
    partitions = len(admin.list_topics(topic, 10).topics[topic].partitions)
    print(f"WRONG: the group is {state} without partitions for {LIMIT_S} s, the topic has {partitions} partitions")


if __name__ == "__main__":
    main(*sys.argv[1:])
