"""Members of share groups, their leader and the share coordinator in virtual time."""

import pytest

from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.metadata import GROUP_RESOURCE
from broker_sim.metadata.acl import CLUSTER_NAME, WILDCARD, AclOperation, PatternType, Permission, ResourceType
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import parse_header, split_batches
from broker_sim.share.share_state import SharePartitionKey

GROUP = "share"
TOPIC = "topic"
WAIT_MS = 500
VERSION = 2
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
CONFIGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Member:
    """A member with a connection of its own; its epochs go on by themselves."""

    def __init__(self, bench, member_id, group=GROUP, broker=1):
        self._bench = bench
        self._group = group
        self._broker = broker
        self.member_id = member_id
        self.client = bench.cluster.client()
        self.epoch = 0

    def send(self, request, version=VERSION):
        request.group_id, request.member_id = self._group, self.member_id
        request.share_session_epoch = self.epoch
        self.epoch += 1
        return self.client.send(self._broker, request, version)

    def fetch(
        self,
        partitions=None,
        *,
        acknowledges=None,
        forgotten=(),
        version=VERSION,
        topic_id=None,
        max_wait_ms=WAIT_MS,
        **fields,
    ):
        """Send a share fetch; `acknowledges` has (first, last, types...) of each partition."""
        if partitions is None:
            partitions = self._bench.partitions if self.epoch == 0 else ()
        acknowledges = acknowledges or {}
        request = messages.ShareFetchRequest
        request_partitions = [
            request.FetchPartition(
                partition_index=number,
                acknowledgement_batches=[
                    request.AcknowledgementBatch(first, last, list(types))
                    for first, last, *types in acknowledges.get(number, ())
                ],
            )
            for number in dict.fromkeys([*partitions, *acknowledges])
        ]
        topic_id = topic_id or self._bench.topic_id
        limits = {"min_bytes": 1, "max_bytes": 1_000_000, "max_records": 500, "batch_size": 500}
        return self.send(
            request(
                max_wait_ms=max_wait_ms,
                topics=[request.FetchTopic(topic_id, request_partitions)] if request_partitions else [],
                forgotten_topics_data=([request.ForgottenTopic(topic_id, list(forgotten))] if forgotten else []),
                **{**limits, **fields},
            ),
            version,
        )

    def fetched(self, partitions=None, **options):
        """Fetch, wait, and return what was acquired of each partition: (first, last, deliveries)."""
        return acquisitions(self._bench.wait(self.fetch(partitions, **options)))

    def acknowledge(self, acknowledges, *, version=VERSION, topic_id=None, **fields):
        """Send a request that only acknowledges."""
        request = messages.ShareAcknowledgeRequest
        request_partitions = [
            request.AcknowledgePartition(
                number, [request.AcknowledgementBatch(first, last, list(types)) for first, last, *types in batches]
            )
            for number, batches in acknowledges.items()
        ]
        topics = [request.AcknowledgeTopic(topic_id or self._bench.topic_id, request_partitions)]
        return self.send(request(topics=topics if request_partitions else [], **fields), version)

    def acknowledged(self, acknowledges, **options):
        """Acknowledge, wait, and return the error of each partition."""
        pending = self._bench.wait(self.acknowledge(acknowledges, **options))
        return {
            partition.partition_index: partition.error_code
            for topic in pending.response.responses
            for partition in topic.partitions
        }

    def disconnect(self):
        self.client.disconnect(self._broker)


class Bench:
    """One topic led by broker 1, and a share group whose state is there, as its coordinator begins it."""

    def __init__(self, partitions=1, *, start_offset=0, brokers=1, group_configs=None, **configs):
        names = {name.replace("_", "."): value for name, value in configs.items()}
        self.cluster = VirtualCluster(brokers, seed=5, configs={**CONFIGS, **names})
        self.partitions = range(partitions)
        replicas = list(range(1, brokers + 1))
        assignments = dict.fromkeys(self.partitions, replicas)
        self.cluster.create_topic(TOPIC, assignments=assignments)
        self.topic_id = self.broker.image.topics[TOPIC].topic_id
        self.producer = self.cluster.client()
        if group_configs:
            self.configure_group(**group_configs)
        self.begin(GROUP, start_offset)

    @property
    def broker(self):
        return self.cluster.nodes.brokers[1]

    def configure_group(self, group=GROUP, **configs):
        request = messages.IncrementalAlterConfigsRequest
        changes = [request.AlterableConfig(name.replace("_", "."), 0, value) for name, value in configs.items()]
        resource = request.AlterConfigsResource(GROUP_RESOURCE, group, changes)
        pending = self.wait(self.producer.send(1, request(resources=[resource]), 1))
        assert not pending.response.responses[0].error_code
        self.cluster.advance(100)

    def create_topic(self, name):
        """Return the id of a topic of one partition, at whose beginning the group is."""
        self.cluster.create_topic(name)
        topic_id = self.broker.image.topics[name].topic_id
        self.begin(GROUP, 0, topic_id)
        return topic_id

    def begin(self, group, start_offset, topic_id=None):
        """Begin the state of the group's share partitions."""
        begun = []
        for number in self.partitions:
            key = SharePartitionKey(group, topic_id or self.topic_id, number)
            self.broker.persister.initialize_state(key, 1, start_offset, begun.append)
        self.cluster.run_until(lambda: len(begun) == len(self.partitions), 60_000)
        assert not any(outcome.error_code for outcome in begun)

    def member(self, member_id="member", group=GROUP, *, broker=1, opens=True):
        """Return a member; its session is begun, and the share partitions have read their state."""
        member = Member(self, member_id, group, broker)
        if opens:
            self.wait(member.fetch(max_wait_ms=100, min_bytes=1_000_000))
        return member

    def produce(self, count=1, partition=0, *, topic=TOPIC, **options):
        request = produce_request((topic, partition), values=[b"value"] * count, **options)
        self.wait(self.producer.send(1, request, PRODUCE_VERSION))

    def delete_records(self, offset, partition=0):
        request = messages.DeleteRecordsRequest
        topic = request.DeleteRecordsTopic(TOPIC, [request.DeleteRecordsPartition(partition, offset)])
        self.wait(self.producer.send(1, request(topics=[topic], timeout_ms=1_000), 2))

    def limit(self, **quotas):
        """Set quotas of all clients."""
        request = messages.AlterClientQuotasRequest
        entity = [request.EntityData("client-id", None)]
        operations = [request.OpData(name, value) for name, value in quotas.items()]
        alter = request([request.EntryData(entity, operations)])
        pending = self.wait(self.producer.send(1, alter, 1))
        assert not pending.response.entries[0].error_code
        self.cluster.advance(100)

    def rule(self, permission, operation, resource_type, name):
        """Add a rule for everybody; a cluster with an authorizer has it when this returns."""
        create = messages.CreateAclsRequest
        creation = create.AclCreation(resource_type, name, PatternType.LITERAL, "User:*", "*", operation, permission)
        (result,) = self.ask(create([creation]), 3).results
        assert not result.error_code
        self.cluster.advance(100)

    def deny(self, operation, resource_type, name):
        """Forbid it to everybody, whatever else is allowed."""
        self.rule(Permission.DENY, operation, resource_type, name)

    def set_share_version(self, level):
        request = messages.UpdateFeaturesRequest
        update = request.FeatureUpdateKey("share.version", level, upgrade_type=2)
        pending = self.wait(self.producer.send(1, request(feature_updates=[update]), 1))
        assert not pending.response.error_code
        self.cluster.advance(1_000)

    def ask(self, request, version):
        """Send a request that is no member's, and return its response."""
        return self.wait(self.producer.send(1, request, version)).response

    def wait(self, pending, timeout_ms=60_000):
        self.cluster.run_until(lambda: pending.done, timeout_ms)
        return pending

    def share_partition(self, number=0, group=GROUP):
        key = SharePartitionKey(group, self.topic_id, number)
        return self.broker.share_partitions.partitions.get(key)


def answers(pending):
    """Return the answers of a share fetch by partition."""
    return {
        partition.partition_index: partition for topic in pending.response.responses for partition in topic.partitions
    }


def acquisitions(pending):
    """Return what was acquired of each partition: (first, last, deliveries)."""
    assert not pending.response.error_code
    return {
        number: [(one.first_offset, one.last_offset, one.delivery_count) for one in answer.acquired_records]
        for number, answer in answers(pending).items()
        if answer.acquired_records
    }


def batches_of(answer):
    """Return the first and last offsets of the batches in an answer."""
    headers = [parse_header(batch) for batch in split_batches(memoryview(bytes(answer.records)))]
    return [(header.base_offset, header.last_offset) for header in headers]


@pytest.fixture
def make_bench():
    return Bench


@pytest.fixture
def guarded_bench():
    """A cluster with an authorizer, in which everybody may do what no rule forbids."""
    bench = Bench(authorizer_class_name=AUTHORIZER, allow_everyone_if_no_acl_found="true")
    for kind in (ResourceType.CLUSTER, ResourceType.GROUP, ResourceType.TOPIC):
        name = CLUSTER_NAME if kind is ResourceType.CLUSTER else WILDCARD
        bench.rule(Permission.ALLOW, AclOperation.ALL, kind, name)
    return bench


@pytest.fixture
def bench():
    return Bench()
