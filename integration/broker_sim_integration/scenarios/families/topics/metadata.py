"""The brokers' metadata of topics and of the cluster. Kafka: KafkaApis, KRaftMetadataCache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.metadata import NO_TOPIC_ID as NO_ID
from broker_sim.protocol import messages
from broker_sim_integration.clients.admin_requests import creatable, create, metadata, pages
from broker_sim_integration.observations import Observation, at_once
from broker_sim_integration.scenarios.helpers.broker_configs import RESTRICTED
from broker_sim_integration.scenarios.helpers.observe import described, seen_in, whole_response
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

UNKNOWN_ID = bytes(range(16))
FORBIDS_CREATION, BY_ID = 4, 12
FROM_CONTROLLERS = 2
PARTITIONS = ("partitions",)
TOPICS = ("topics", "partitions")


@scenario(topology="2 topics of 2 partitions x 3 replicas")
def topics_are_described_by_name_in_every_version(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Whole responses for known, unknown and invalid names, and a repeated one."""
    topic = cluster.topics.create(partitions=2)
    client = cluster.connect(cluster.first)
    makes_none: dict[str, tuple[str, ...]] = {
        "known": (topic.name,),
        "invalid": ("not a name",),
        "twice": (topic.name, topic.name),
        "none": (),
    }
    cases = makes_none | {
        "unknown": (cluster.topics.name("unknown"),),
        "mixed": (cluster.topics.name("unknown"), topic.name, "not a name"),
    }
    for version in range(1, 14):
        for step, names in (cases if version >= FORBIDS_CREATION else makes_none).items():
            reply = metadata(client, *names, version=version)
            yield whole_response(f"{step}, version {version}", cluster, reply, at_once(), unordered=TOPICS)


@scenario(topology="1 partition x 3 replicas")
def topics_are_described_by_id_from_version_12(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Known and unknown ids, an id with a name, a wrong name with an id, neither."""
    topic, other = cluster.topics.create(), cluster.topics.create()
    client = cluster.connect(cluster.first)
    cases: dict[str, tuple[bytes | tuple[str, bytes], ...]] = {
        "known": (topic.topic_id,),
        "unknown": (UNKNOWN_ID,),
        "both": ((topic.name, topic.topic_id),),
        "another name": ((cluster.topics.name("other"), topic.topic_id),),
        "no id": (NO_ID,),
        "known and unknown": (UNKNOWN_ID, topic.topic_id),
        "twice": (topic.topic_id, topic.topic_id),
        "one by id, one by name": (topic.topic_id, (other.name, NO_ID)),
    }
    for version in (BY_ID, BY_ID + 1):
        for step, topics in cases.items():
            reply = metadata(client, *topics, version=version)
            yield whole_response(f"{step}, version {version}", cluster, reply, at_once(), unordered=TOPICS)


@scenario(topology="none before")
def metadata_makes_topics_when_allowed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_TOPIC_OR_PARTITION first, then the topic exists; not for invalid names or by id."""
    client = cluster.connect(cluster.first)
    name = cluster.topics.name("auto")
    yield whole_response("not allowed", cluster, metadata(client, name))
    yield whole_response("allowed", cluster, metadata(client, name, auto_create=True))
    cluster.wait_until.known(name)
    found = metadata(client, name)
    (topic,) = found.message.topics
    sizes = [len(partition.replica_nodes) for partition in topic.partitions]
    yield seen_in("then", found, error_code=topic.error_code, sizes=sizes)
    for invalid in ("not a name", ".", "", name.replace(".auto", "_auto")):
        reply = metadata(client, invalid, auto_create=True)
        yield whole_response(f"allowed, {invalid[:12]!r}", cluster, reply)
    reply = metadata(client, UNKNOWN_ID, auto_create=True)
    yield whole_response("allowed, by id", cluster, reply)
    old = cluster.topics.name("old")
    yield whole_response("by version 3, which cannot say", cluster, metadata(client, old, version=3))
    cluster.wait_until.known(old)


@scenario(topology="none before", configs=RESTRICTED)
def metadata_makes_no_topics_when_brokers_forbid_it(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """auto.create.topics.enable=false: unknown topics stay unknown, whatever the request allows."""
    client = cluster.connect(cluster.first)
    name = cluster.topics.name("never")
    for attempt in (1, 2):
        for version in (3, 4, 13):
            reply = metadata(client, name, auto_create=True, version=version)
            yield whole_response(f"attempt {attempt}, version {version}", cluster, reply, at_once())
    yield whole_response("bad name", cluster, metadata(client, "not a name", auto_create=True), at_once())


@scenario(topology="none before")
def all_brokers_agree_about_a_new_topic(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each broker returns the same metadata of a topic that was created through another broker."""
    name = cluster.topics.name("shared")
    assignments = {0: [cluster.first, cluster.third], 1: [cluster.second, cluster.first]}
    reply = create(cluster.connect(cluster.third), creatable(name, assignments=assignments))
    yield whole_response("created", cluster, reply)
    cluster.wait_until.known(name, 2)
    for broker in cluster.brokers:
        reply_of = metadata(cluster.connect(broker), name)
        yield whole_response(f"by {cluster.brokers.role(broker)}", cluster, reply_of, unordered=PARTITIONS)


@scenario(topology="1 partition x 3 replicas")
def authorized_operations_are_told_on_demand(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Without an authorizer all applicable operations, as a bit field; if not requested, the minimum integer."""
    topic = cluster.topics.create()
    client = cluster.connect(cluster.first)
    for version in (8, 10, 13):
        for authorized in (False, True):
            reply = metadata(client, topic.name, authorized=authorized, version=version)
            yield whole_response(f"{authorized}, version {version}", cluster, reply, unordered=PARTITIONS)
    for version in (8, 10):
        asked = messages.MetadataRequest(topics=[])
        asked.include_cluster_authorized_operations = True
        reply = client.request(asked, version, messages.MetadataResponse)
        yield whole_response(f"cluster by metadata, version {version}", cluster, reply)
    for authorized in (False, True):
        request = messages.DescribeClusterRequest(authorized)
        answer = client.request(request, 1, messages.DescribeClusterResponse)
        yield whole_response(f"{authorized}, cluster", cluster, answer)


@scenario(topology="none")
def the_cluster_is_described(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Brokers with their addresses; brokers do not return the endpoints of controllers."""
    client = cluster.connect(cluster.second)
    for version in range(3):
        for kind in (1, FROM_CONTROLLERS, 3) if version else (1,):
            for fenced in (False, True) if version >= 2 else (False,):
                request = messages.DescribeClusterRequest(False, kind, fenced)
                reply = client.request(request, version, messages.DescribeClusterResponse)
                step = f"version {version}, endpoints {kind}, fenced {fenced}"
                yield whole_response(step, cluster, reply, at_once())


@scenario(topology="2 topics of 3 and 2 partitions x 3 replicas")
def partitions_are_described_page_by_page(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A page may end anywhere at its limit, the cursor continues there, topics are sorted by name."""
    first, second = cluster.topics.create(partitions=3), cluster.topics.create(partitions=2)
    client = cluster.connect(cluster.first)
    names = (second.name, first.name)
    for limit in (1, 2, 3, 4, 5, 6, 2000, 0, -1):
        yield whole_response(f"limit {limit}", cluster, pages(client, names, limit), at_once())
    for partition in (0, 1, 2, 3, -1):
        reply = pages(client, names, 2, (first.name, partition))
        yield whole_response(f"from partition {partition} of the first", cluster, reply, at_once())
    reply = pages(client, names, 2, (second.name, 1))
    yield whole_response("from the last", cluster, reply, at_once())
    reply = pages(client, names, 2, (cluster.topics.name("unknown"), 0))
    yield whole_response("from an unknown topic", cluster, reply, at_once())


@scenario(topology="1 partition x 3 replicas")
def unknown_topics_have_pages_too(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown, invalid and repeated names in the pages."""
    topic = cluster.topics.create()
    client = cluster.connect(cluster.first)
    unknown = cluster.topics.name("unknown")
    cases = {
        "unknown": (unknown,),
        "unknown and known": (unknown, topic.name),
        "invalid": ("not a name",),
        "twice": (topic.name, topic.name),
    }
    for step, names in cases.items():
        for limit in (1, 10):
            yield whole_response(f"{step}, limit {limit}", cluster, pages(client, names, limit), at_once())


@scenario(topology="1 partition x 3 replicas")
def a_deleted_topic_is_gone_from_metadata(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It is gone by name and by id; created again it has a new id and starts with leader epoch 0."""
    topic = cluster.topics.create()
    client = cluster.connect(cluster.first)
    yield described("before", cluster, topic)
    cluster.topics.delete(topic)
    cluster.wait_until.unknown(topic.name)
    yield whole_response("by name", cluster, metadata(client, topic.name), at_once())
    yield whole_response("by id", cluster, metadata(client, topic.topic_id), at_once())
    created = create(client, creatable(topic.name, assignments={0: list(cluster.brokers)}))
    cluster.wait_until.known(topic.name)
    again = created.message.topics[0]
    same_id = again.topic_id == topic.topic_id
    yield seen_in("again", created, error_code=again.error_code, same_id=same_id)
    yield described("after", cluster, topic)
    old = metadata(client, topic.topic_id)
    yield seen_in("old id", old, error_code=old.message.topics[0].error_code)
