"""Every public method of kafka-python's KafkaProducer, KafkaConsumer and KafkaAdminClient."""

import kafka
from calls import WAIT_S, Calls, seen_within
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka import admin as ka
from kafka.structs import OffsetAndMetadata

calls = Calls(KafkaProducer, KafkaConsumer, ka.KafkaAdminClient)
topic, other = calls.topic, f"{calls.topic}-other"
base = {"bootstrap_servers": calls.bootstrap_servers}
WAIT_MS = WAIT_S * 1000
partition = TopicPartition(topic, 0)
fields = getattr(OffsetAndMetadata, "_fields", ("offset", "metadata", "leader_epoch"))
at_start = {partition: OffsetAndMetadata(*(0, "", -1)[: len(fields)])}


def asked(function):
    """Call and tell only that there was no error."""

    def call():
        function()

    return call


admin = ka.KafkaAdminClient(**base)
calls.served(
    "KafkaAdminClient.create_topics",
    asked(lambda: admin.create_topics([ka.NewTopic(name, 1, 3) for name in (topic, other)])),
)
calls.served("KafkaAdminClient.wait_for_topics", asked(lambda: admin.wait_for_topics([topic, other])))
calls.served("KafkaAdminClient.list_topics", lambda: seen_within(WAIT_S, lambda: topic in str(admin.list_topics())))
calls.served("KafkaAdminClient.describe_topics", lambda: len(admin.describe_topics([topic])))
calls.served("KafkaAdminClient.describe_cluster", lambda: len(admin.describe_cluster()["brokers"]))
calls.served("KafkaAdminClient.create_partitions", asked(lambda: admin.create_partitions({topic: ka.NewPartitions(2)})))
resource = ka.ConfigResource(ka.ConfigResourceType.TOPIC, topic, {"retention.ms": "600000"})
named = ka.ConfigResource(ka.ConfigResourceType.TOPIC, topic)
calls.served("KafkaAdminClient.alter_configs", asked(lambda: admin.alter_configs([resource])))
calls.served("KafkaAdminClient.describe_configs", asked(lambda: admin.describe_configs([named])))
calls.served("KafkaAdminClient.reset_configs", asked(lambda: admin.reset_configs([resource])))

# -- the producer -----------------------------------------------------------------------------------

producer = KafkaProducer(**base, acks="all")
calls.served("KafkaProducer.bootstrap_connected", lambda: producer.bootstrap_connected())
calls.served("KafkaProducer.send", lambda: producer.send(topic, b"v", partition=0).get(WAIT_S).offset)
calls.served("KafkaProducer.flush", lambda: producer.flush(WAIT_S))
calls.served("KafkaProducer.metrics", lambda: bool(producer.metrics()))
calls.served("KafkaProducer.partitions_for", lambda: 0 in producer.partitions_for(topic))
calls.leave_out("internal to the client", "KafkaProducer.max_usable_produce_magic")
calls.served("KafkaProducer.close", lambda: producer.close())


if hasattr(KafkaProducer, "init_transactions"):
    # 2.3.3 waits for ever when TxnOffsetCommit has any error, as that of a coordinator that still loads the group.
    ready = KafkaConsumer(**base, group_id=topic)
    ready.commit(at_start)
    ready.close()
    writer = KafkaProducer(**base, transactional_id=topic)
    calls.served("KafkaProducer.init_transactions", lambda: writer.init_transactions())
    calls.served("KafkaProducer.begin_transaction", lambda: writer.begin_transaction())
    calls.served(
        "KafkaProducer.send_offsets_to_transaction", lambda: writer.send_offsets_to_transaction(at_start, topic)
    )
    calls.served("KafkaProducer.commit_transaction", lambda: writer.commit_transaction())
    writer.begin_transaction()
    calls.served("KafkaProducer.abort_transaction", lambda: writer.abort_transaction())
    writer.close()

# -- the consumer -----------------------------------------------------------------------------------

consumer = KafkaConsumer(**base, auto_offset_reset="earliest")
calls.served("KafkaConsumer.bootstrap_connected", lambda: consumer.bootstrap_connected())
calls.leave_out(
    "parts of `poll` and the constructor",
    *("KafkaConsumer.bootstrap", "KafkaConsumer.next_v1", "KafkaConsumer.next_v2"),
)
calls.served("KafkaConsumer.assign", lambda: consumer.assign([partition]))
calls.served("KafkaConsumer.assignment", lambda: len(consumer.assignment()))
calls.served("KafkaConsumer.subscription", lambda: consumer.subscription())


def values():
    """Return the values of the first records."""
    rows = seen_within(WAIT_S, lambda: consumer.poll(WAIT_MS))
    return [record.value.decode() for records in rows.values() for record in records]


calls.served("KafkaConsumer.poll", values)
calls.served("KafkaConsumer.position", lambda: consumer.position(partition))
calls.served("KafkaConsumer.highwater", lambda: consumer.highwater(partition))
calls.served("KafkaConsumer.seek", lambda: consumer.seek(partition, 0))
calls.served("KafkaConsumer.seek_to_beginning", asked(lambda: consumer.seek_to_beginning(partition)))
calls.served("KafkaConsumer.seek_to_end", asked(lambda: consumer.seek_to_end(partition)))
calls.served("KafkaConsumer.pause", lambda: consumer.pause(partition))
calls.served("KafkaConsumer.paused", lambda: len(consumer.paused()))
calls.served("KafkaConsumer.resume", lambda: consumer.resume(partition))
calls.served("KafkaConsumer.beginning_offsets", lambda: consumer.beginning_offsets([partition])[partition])
calls.served("KafkaConsumer.end_offsets", lambda: consumer.end_offsets([partition])[partition])
calls.served("KafkaConsumer.offsets_for_times", lambda: consumer.offsets_for_times({partition: 0})[partition].offset)
calls.served("KafkaConsumer.partitions_for_topic", lambda: 0 in consumer.partitions_for_topic(topic))
calls.served("KafkaConsumer.topics", lambda: topic in consumer.topics())
calls.served("KafkaConsumer.metrics", lambda: bool(consumer.metrics()))
calls.served("KafkaConsumer.unsubscribe", lambda: consumer.unsubscribe())
calls.served("KafkaConsumer.close", lambda: consumer.close())
grouped = KafkaConsumer(**base, group_id=topic)
grouped.assign([partition])
calls.served("KafkaConsumer.committed", lambda: grouped.committed(partition))
calls.served("KafkaConsumer.commit", lambda: grouped.commit(at_start))


def committed_later():
    """Return what the callback of an asynchronous commit is told; an error is raised."""
    told = []
    grouped.commit_async(at_start, callback=lambda offsets, response: told.append(response))
    seen_within(WAIT_S, lambda: (grouped.poll(100), told)[1])
    if isinstance(told[0], Exception):
        raise told[0]


calls.served("KafkaConsumer.commit_async", committed_later)
calls.served("KafkaConsumer.group_metadata", lambda: bool(grouped.group_metadata()))
calls.served("KafkaConsumer.close", lambda: grouped.close())
subscriber = KafkaConsumer(**base, group_id=f"{topic}-2")
# With 3.0.12, a leader that learns of the topic while it is joining forgets its second assignment.
subscriber.partitions_for_topic(topic)


def joined():
    """Poll as a subscriber until there is an assignment, and return it."""
    subscriber.subscribe([topic])
    seen_within(WAIT_S, lambda: subscriber.poll(100) or subscriber.assignment())
    return sorted(assigned.partition for assigned in subscriber.assignment())


calls.served("KafkaConsumer.subscribe", joined)
calls.served("KafkaConsumer.close", lambda: subscriber.close())

# -- admin, once more -------------------------------------------------------------------------------

served = {
    "delete_records": lambda: admin.delete_records({partition: 1}),
    "elect_leaders": lambda: admin.elect_leaders(0, {topic: [0]}, raise_errors=False),
    "list_partition_offsets": lambda: admin.list_partition_offsets({partition: ka.OffsetSpec.LATEST}),
    "list_partition_reassignments": lambda: admin.list_partition_reassignments(),
    "alter_partition_reassignments": lambda: admin.alter_partition_reassignments({partition: [1, 2, 3]}),
    "describe_topic_partitions": lambda: admin.describe_topic_partitions([topic]),
    "describe_features": lambda: admin.describe_features(),
    "get_broker_version_data": lambda: admin.get_broker_version_data(1),
}
served |= {
    "list_groups": lambda: admin.list_groups(),
    "list_consumer_groups": lambda: admin.list_consumer_groups(),
    "describe_groups": lambda: admin.describe_groups([topic]),
    "describe_consumer_groups": lambda: admin.describe_consumer_groups([topic]),
    "list_group_offsets": lambda: admin.list_group_offsets({topic: [partition]}),
    "list_consumer_group_offsets": lambda: admin.list_consumer_group_offsets(topic),
    "alter_group_offsets": lambda: admin.alter_group_offsets(topic, at_start),
    "reset_group_offsets": lambda: admin.reset_group_offsets(topic, {partition: ka.OffsetSpec.EARLIEST}),
    "delete_group_offsets": lambda: admin.delete_group_offsets(topic, [partition]),
    "delete_groups": lambda: admin.delete_groups([topic]),
    "delete_consumer_groups": lambda: admin.delete_consumer_groups([f"{topic}-2"]),
}
for method, function in served.items():
    calls.served(f"KafkaAdminClient.{method}", asked(function))
calls.leave_out("3.0.12 does not know the API 93 of Kafka 4.4", "KafkaAdminClient.api_versions")
calls.leave_out("raises where no election was needed", "KafkaAdminClient.perform_leader_election")
calls.leave_out(
    "need the members of a group, and a directory of a broker",
    *("KafkaAdminClient.remove_group_members", "KafkaAdminClient.alter_replica_log_dirs"),
)
calls.leave_out(
    "take the requests that the other methods make",
    *("KafkaAdminClient.send_request", "KafkaAdminClient.send_requests"),
)


def acl():
    """Return a rule."""
    return ka.ACL(
        principal="User:u",
        host="*",
        operation=ka.ACLOperation.READ,
        permission_type=ka.ACLPermissionType.ALLOW,
        resource_pattern=ka.ResourcePattern(ka.ResourceType.TOPIC, topic),
    )


def acl_filter():
    """Return what finds it."""
    return ka.ACLFilter(
        principal="User:u",
        host="*",
        operation=ka.ACLOperation.READ,
        permission_type=ka.ACLPermissionType.ALLOW,
        resource_pattern=ka.ResourcePattern(ka.ResourceType.TOPIC, topic),
    )


# Without an authorizer these return SECURITY_DISABLED, and one raises it.
calls.served("KafkaAdminClient.create_acls", lambda: admin.create_acls([acl()]))
calls.served("KafkaAdminClient.delete_acls", lambda: admin.delete_acls([acl_filter()]))
calls.refused("KafkaAdminClient.describe_acls", lambda: admin.describe_acls(acl_filter()))
calls.served("KafkaAdminClient.list_config_resources", lambda: len(admin.list_config_resources(["BROKER"])["broker"]))
# Versions 2 know version 0 of the request only, which Kafka 4 does not serve either.
describe_log_dirs = calls.refused if kafka.__version__.startswith("2.") else calls.served
describe_log_dirs("KafkaAdminClient.describe_log_dirs", lambda: len(admin.describe_log_dirs()))


def altered_credentials():
    """Return the error for the user, None without one."""
    mechanism = ka.ScramMechanism.SCRAM_SHA_512
    upsertion = ka.UserScramCredentialUpsertion(topic, mechanism, "password", iterations=5000)
    return admin.alter_user_scram_credentials([upsertion])[topic]


def described_credentials():
    """Return how the password is kept, once the broker knows of it."""
    seen_within(WAIT_S, lambda: topic in admin.describe_user_scram_credentials())
    infos = admin.describe_user_scram_credentials([topic])[topic]["credential_infos"]
    return [f"{info['mechanism'].name} {info['iterations']}" for info in infos]


calls.served("KafkaAdminClient.alter_user_scram_credentials", altered_credentials)
calls.served("KafkaAdminClient.describe_user_scram_credentials", described_credentials)
served_where_known = getattr(admin, "describe_metadata_quorum", None)
if served_where_known is not None:
    calls.served("KafkaAdminClient.describe_metadata_quorum", asked(served_where_known))
calls.served("KafkaAdminClient.update_features", asked(lambda: admin.update_features({})))
calls.served("KafkaAdminClient.describe_producers", asked(lambda: admin.describe_producers([partition])))
calls.served("KafkaAdminClient.describe_transactions", asked(lambda: admin.describe_transactions([topic])))
calls.served("KafkaAdminClient.list_transactions", asked(lambda: admin.list_transactions()))
calls.served("KafkaAdminClient.find_hanging_transactions", lambda: len(admin.find_hanging_transactions()))
calls.leave_out("ends a hanging transaction", "KafkaAdminClient.abort_transaction")
calls.served("KafkaAdminClient.delete_topics", asked(lambda: admin.delete_topics([topic, other])))
calls.served("KafkaAdminClient.close", lambda: admin.close())
calls.end()
