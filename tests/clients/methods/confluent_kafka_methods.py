"""Every public method of confluent-kafka's Producer, Consumer, ShareConsumer and AdminClient."""

import confluent_kafka
from calls import WAIT_S, Calls, seen_within
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import admin as ck

ShareConsumer = getattr(confluent_kafka, "ShareConsumer", None)
"""Older versions have none."""
calls = Calls(*(each for each in (Producer, Consumer, ShareConsumer, ck.AdminClient) if each is not None))
topic, other = calls.topic, f"{calls.topic}-other"
base = {"bootstrap.servers": calls.bootstrap_servers}
partition = TopicPartition(topic, 0)
start = TopicPartition(topic, 0, 0)

admin = ck.AdminClient(base)
calls.served(
    "AdminClient.create_topics", lambda: admin.create_topics([ck.NewTopic(name, 1, 3) for name in (topic, other)])
)


def described():
    """Wait until the broker that answers knows the topic."""
    return seen_within(WAIT_S, lambda: topic in admin.list_topics(timeout=WAIT_S).topics)


calls.served("AdminClient.list_topics", described)
calls.served(
    "AdminClient.describe_topics",
    lambda: len(admin.describe_topics(TopicCollection([topic]))[topic].result(WAIT_S).partitions),
)
calls.served("AdminClient.describe_cluster", lambda: len(admin.describe_cluster().result(WAIT_S).nodes))
calls.served("AdminClient.cluster_id", lambda: bool(admin.cluster_id(WAIT_S)))
calls.served("AdminClient.create_partitions", lambda: admin.create_partitions([ck.NewPartitions(topic, 2)]))
resource = ck.ConfigResource(ck.ConfigResource.Type.TOPIC, topic)
calls.served(
    "AdminClient.alter_configs",
    lambda: admin.alter_configs(
        [ck.ConfigResource(ck.ConfigResource.Type.TOPIC, topic, set_config={"retention.ms": "7"})]
    ),
)


def change():
    """Set one configuration."""
    entry = ck.ConfigEntry("retention.ms", "600000", incremental_operation=ck.AlterConfigOpType.SET)
    changed = ck.ConfigResource(ck.ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    return admin.incremental_alter_configs([changed])


calls.served("AdminClient.incremental_alter_configs", change)
calls.served(
    "AdminClient.describe_configs", lambda: len(admin.describe_configs([resource])[resource].result(WAIT_S)) > 20
)
calls.served("AdminClient.poll", lambda: admin.poll(0))
calls.served("AdminClient.set_sasl_credentials", lambda: admin.set_sasl_credentials("u", "p"))

# -- the producer -----------------------------------------------------------------------------------

delivered = []
producer = Producer({**base, "acks": "all"})
calls.served(
    "Producer.produce",
    lambda: producer.produce(
        topic, b"v", partition=0, on_delivery=lambda error, m: delivered.append((error, m.offset()))
    ),
)
calls.served("Producer.flush", lambda: producer.flush(WAIT_S))
calls.served("Producer.poll", lambda: producer.poll(0) or str(delivered))
calls.served("Producer.produce_batch", lambda: producer.produce_batch(topic, [{"value": b"w"}], partition=0))
producer.flush(WAIT_S)
calls.served("Producer.list_topics", lambda: topic in producer.list_topics(topic, WAIT_S).topics)
calls.served("Producer.cluster_id", lambda: bool(producer.cluster_id(WAIT_S)))
calls.served("Producer.purge", lambda: producer.purge())
calls.served("Producer.set_sasl_credentials", lambda: producer.set_sasl_credentials("u", "p"))
calls.served("Producer.close", lambda: producer.close())
member = Consumer({**base, "group.id": topic})
transactional = Producer({**base, "transactional.id": topic})
calls.served("Producer.init_transactions", lambda: transactional.init_transactions(WAIT_S))
calls.served("Producer.begin_transaction", lambda: transactional.begin_transaction())
calls.served(
    "Producer.send_offsets_to_transaction",
    lambda: transactional.send_offsets_to_transaction([start], member.consumer_group_metadata(), WAIT_S),
)
calls.served("Producer.commit_transaction", lambda: transactional.commit_transaction(WAIT_S))
transactional.begin_transaction()
calls.served("Producer.abort_transaction", lambda: transactional.abort_transaction(WAIT_S))

# -- the consumer -----------------------------------------------------------------------------------

calm = {**base, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
consumer = Consumer({**calm, "group.id": topic})
calls.served("Consumer.assign", lambda: consumer.assign([start]))
calls.served("Consumer.assignment", lambda: [p.partition for p in consumer.assignment()])
calls.served("Consumer.poll", lambda: consumer.poll(WAIT_S).value().decode())
calls.served("Consumer.position", lambda: consumer.position([partition])[0].offset)
calls.served("Consumer.seek", lambda: consumer.seek(start))
calls.served("Consumer.consume", lambda: [m.value().decode() for m in consumer.consume(1, WAIT_S)])
calls.served("Consumer.pause", lambda: consumer.pause([partition]))
calls.served("Consumer.resume", lambda: consumer.resume([partition]))
calls.served("Consumer.get_watermark_offsets", lambda: consumer.get_watermark_offsets(partition, WAIT_S)[0])
calls.served(
    "Consumer.offsets_for_times", lambda: consumer.offsets_for_times([TopicPartition(topic, 0, 0)], WAIT_S)[0].offset
)
calls.served("Consumer.list_topics", lambda: topic in consumer.list_topics(topic, WAIT_S).topics)
calls.served("Consumer.cluster_id", lambda: bool(consumer.cluster_id(WAIT_S)))
calls.served("Consumer.memberid", lambda: consumer.memberid() is not None)
calls.served("Consumer.consumer_group_metadata", lambda: bool(consumer.consumer_group_metadata()))
calls.served("Consumer.set_sasl_credentials", lambda: consumer.set_sasl_credentials("u", "p"))
calls.served("Consumer.unassign", lambda: consumer.unassign())
calls.served("Consumer.incremental_assign", lambda: consumer.incremental_assign([start]))
calls.served("Consumer.incremental_unassign", lambda: consumer.incremental_unassign([partition]))
consumer.assign([start])
calls.served("Consumer.commit", lambda: consumer.commit(offsets=[start], asynchronous=False)[0].offset)
calls.served("Consumer.committed", lambda: consumer.committed([partition], WAIT_S)[0].offset)
calls.served("Consumer.close", lambda: consumer.close())

grouped = Consumer({**base, "group.id": f"{topic}-2", "enable.auto.offset.store": False})


def joined():
    """Poll as a subscriber until there is an assignment, and return it."""
    grouped.subscribe([topic])
    seen_within(WAIT_S, lambda: grouped.poll(0.1) or grouped.assignment())
    return sorted(assigned.partition for assigned in grouped.assignment())


calls.served("Consumer.subscribe", joined)
calls.served("Consumer.unsubscribe", lambda: grouped.unsubscribe())
grouped.assign([start])
calls.served("Consumer.store_offsets", lambda: len(grouped.store_offsets(offsets=[start]) or []))
calls.served("Consumer.close", lambda: grouped.close())
committing = Consumer({**base, "group.id": f"{topic}-3"})
committing.assign([start])
committing.poll(1)
calls.served("Consumer.close", lambda: committing.close())

# -- the share consumer -----------------------------------------------------------------------------


def earliest_first(group):
    """Let a share group begin with the first record."""
    entry = ck.ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=ck.AlterConfigOpType.SET)
    resource = ck.ConfigResource(ck.ConfigResource.Type.GROUP, group, incremental_configs=[entry])
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(WAIT_S)


def acquired(sharing):
    """Poll until there are records; return them."""
    found = []
    seen_within(WAIT_S, lambda: found.extend(sharing.poll(0.1)) or found)
    return found


def try_share_consumer():
    """Call all methods of a member."""
    group = f"{topic}-share"
    earliest_first(group)
    sharing = ShareConsumer({**base, "group.id": group, "share.acknowledgement.mode": "explicit"})
    calls.served("ShareConsumer.subscribe", lambda: sharing.subscribe([topic]))
    calls.served("ShareConsumer.subscription", lambda: len(sharing.subscription()))
    records = []
    calls.served("ShareConsumer.poll", lambda: records.extend(acquired(sharing)) or bool(records))
    released, *others = records
    release = confluent_kafka.AcknowledgeType.RELEASE
    calls.served("ShareConsumer.acknowledge", lambda: sharing.acknowledge(released, release))
    for one in others:
        sharing.acknowledge(one)
    calls.served("ShareConsumer.commit_sync", lambda: [str(error) for error in sharing.commit_sync(WAIT_S).values()])
    again = acquired(sharing)
    calls.served(
        "ShareConsumer.acknowledge_offset",
        lambda: [
            sharing.acknowledge_offset(topic, one.partition(), one.offset()) or one.delivery_count() for one in again
        ],
    )
    told = []
    calls.served(
        "ShareConsumer.set_acknowledgement_commit_callback",
        lambda: sharing.set_acknowledgement_commit_callback(lambda *seen: told.append(seen)),
    )
    calls.served("ShareConsumer.commit_async", lambda: sharing.commit_async())
    calls.served("ShareConsumer.set_sasl_credentials", lambda: sharing.set_sasl_credentials("u", "p"))
    calls.served("ShareConsumer.unsubscribe", lambda: sharing.unsubscribe())
    calls.served("ShareConsumer.close", lambda: sharing.close())


if ShareConsumer is not None:
    try_share_consumer()

# -- admin, once more -------------------------------------------------------------------------------


def latest():
    """Return the end offset."""
    asked = {partition: ck.OffsetSpec.latest()}
    futures = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    return futures[partition].result(WAIT_S).offset >= 1


calls.served("AdminClient.list_offsets", latest)
calls.served(
    "AdminClient.delete_records",
    lambda: admin.delete_records([TopicPartition(topic, 0, 1)])[partition].result(WAIT_S).low_watermark,
)
calls.served(
    "AdminClient.elect_leaders",
    lambda: len(admin.elect_leaders(confluent_kafka.ElectionType.PREFERRED, [partition]).result(WAIT_S)),
)
groups = [ConsumerGroupTopicPartitions(topic, [start])]
calls.served("AdminClient.list_groups", lambda: topic in {group.id for group in admin.list_groups(timeout=WAIT_S)})


def consumer_groups():
    """Return the groups; an error of any broker is raised."""
    found = admin.list_consumer_groups().result(WAIT_S)
    if found.errors:
        raise RuntimeError(str(found.errors[0]))
    return topic in {group.group_id for group in found.valid}


calls.served("AdminClient.list_consumer_groups", consumer_groups)
calls.served("AdminClient.describe_consumer_groups", lambda: admin.describe_consumer_groups([topic]))
calls.served("AdminClient.delete_consumer_groups", lambda: admin.delete_consumer_groups([topic]))
calls.served(
    "AdminClient.list_consumer_group_offsets",
    lambda: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic, [partition])]),
)


def altered():
    """Return the partitions; the error of one is raised."""
    (answer,) = admin.alter_consumer_group_offsets(groups).values()
    for changed in answer.result(WAIT_S).topic_partitions:
        if changed.error:
            raise RuntimeError(str(changed.error))


calls.served("AdminClient.alter_consumer_group_offsets", altered)
binding = (ck.ResourceType.TOPIC, topic, ck.ResourcePatternType.LITERAL, "User:u", "*")
allow = ck.AclBinding(*binding, ck.AclOperation.READ, ck.AclPermissionType.ALLOW)
some = ck.AclBindingFilter(*binding, ck.AclOperation.READ, ck.AclPermissionType.ALLOW)
calls.refused("AdminClient.create_acls", lambda: admin.create_acls([allow]))
# Without an authorizer it hears SECURITY_DISABLED and returns nothing.
calls.served("AdminClient.describe_acls", lambda: admin.describe_acls(some))
calls.refused("AdminClient.delete_acls", lambda: admin.delete_acls([some]))
scram = ck.ScramCredentialInfo(ck.ScramMechanism.SCRAM_SHA_256, 4096)


def credentials_of(user):
    """Return how the password of a user is kept, once the broker knows of it."""
    seen_within(WAIT_S, lambda: user in admin.describe_user_scram_credentials().result(WAIT_S))
    described = admin.describe_user_scram_credentials([user])[user].result(WAIT_S)
    return [f"{info.mechanism.name} {info.iterations}" for info in described.scram_credential_infos]


calls.served(
    "AdminClient.alter_user_scram_credentials",
    lambda: admin.alter_user_scram_credentials([ck.UserScramCredentialUpsertion(topic, scram, b"password", b"salt")]),
)
calls.served("AdminClient.describe_user_scram_credentials", lambda: credentials_of(topic))
calls.served("AdminClient.delete_topics", lambda: admin.delete_topics([topic, other]))
calls.end()
