"""What brokers tell of topics and of each other. Kafka: KafkaApis, KRaftMetadataCache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages
from integration.clients.admin_requests import creatable, create, metadata, pages
from integration.observations import Observation, at_once
from integration.scenarios.clusters import RESTRICTED
from integration.scenarios.observe import described
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.stage.stage import Stage

UNKNOWN_ID = bytes(range(16))
NO_ID = bytes(16)
FORBIDS_CREATION, BY_ID = 4, 12
FROM_CONTROLLERS = 2
PARTITIONS = ("partitions",)
TOPICS = ("topics", "partitions")


@scenario(topology="2 topics of 2 partitions x 3 replicas")
def topics_are_described_by_name_in_every_version(stage: Stage) -> Iterator[Observation]:
    """Whole responses about known, unknown and invalid names, and one that is asked twice."""
    topic = stage.topic(partitions=2)
    client = stage.connect(stage.anchor)
    makes_none: dict[str, tuple[str, ...]] = {
        "known": (topic.name,),
        "invalid": ("not a name",),
        "twice": (topic.name, topic.name),
        "none": (),
    }
    cases = makes_none | {
        "unknown": (stage.name("unknown"),),
        "mixed": (stage.name("unknown"), topic.name, "not a name"),
    }
    for version in range(1, 14):
        for step, names in (cases if version >= FORBIDS_CREATION else makes_none).items():
            reply = metadata(client, *names, version=version)
            yield stage.whole(f"{step}, version {version}", reply, at_once(), unordered=TOPICS)


@scenario(topology="1 partition x 3 replicas")
def topics_are_described_by_id_from_version_12(stage: Stage) -> Iterator[Observation]:
    """Known and unknown ids, an id beside a name, a wrong name beside an id, neither."""
    topic, other = stage.topic(), stage.topic()
    client = stage.connect(stage.anchor)
    cases: dict[str, tuple[bytes | tuple[str, bytes], ...]] = {
        "known": (topic.topic_id,),
        "unknown": (UNKNOWN_ID,),
        "both": ((topic.name, topic.topic_id),),
        "another name": ((stage.name("other"), topic.topic_id),),
        "no id": (NO_ID,),
        "known and unknown": (UNKNOWN_ID, topic.topic_id),
        "twice": (topic.topic_id, topic.topic_id),
        "one by id, one by name": (topic.topic_id, (other.name, NO_ID)),
    }
    for version in (BY_ID, BY_ID + 1):
        for step, topics in cases.items():
            reply = metadata(client, *topics, version=version)
            yield stage.whole(f"{step}, version {version}", reply, at_once(), unordered=TOPICS)


@scenario(topology="none before")
def metadata_makes_topics_when_allowed(stage: Stage) -> Iterator[Observation]:
    """UNKNOWN_TOPIC_OR_PARTITION first, then the topic is there; not for bad names or by id."""
    client = stage.connect(stage.anchor)
    name = stage.name("auto")
    yield stage.whole("not allowed", metadata(client, name))
    yield stage.whole("allowed", metadata(client, name, auto_create=True))
    stage.until_known(name)
    found = metadata(client, name)
    (topic,) = found.message.topics
    sizes = [len(partition.replica_nodes) for partition in topic.partitions]
    yield Observation("then", error_code=topic.error_code, fields={"sizes": sizes})
    for invalid in ("not a name", ".", "", name.replace(".auto", "_auto")):
        reply = metadata(client, invalid, auto_create=True)
        yield stage.whole(f"allowed, {invalid[:12]!r}", reply)
    reply = metadata(client, UNKNOWN_ID, auto_create=True)
    yield stage.whole("allowed, by id", reply)
    old = stage.name("old")
    yield stage.whole("by version 3, which cannot say", metadata(client, old, version=3))
    stage.until_known(old)


@scenario(topology="none before", configs=RESTRICTED)
def metadata_makes_no_topics_when_brokers_forbid_it(stage: Stage) -> Iterator[Observation]:
    """auto.create.topics.enable=false: unknown stays unknown, whatever the request allows."""
    client = stage.connect(stage.anchor)
    name = stage.name("never")
    for attempt in (1, 2):
        for version in (3, 4, 13):
            reply = metadata(client, name, auto_create=True, version=version)
            yield stage.whole(f"attempt {attempt}, version {version}", reply, at_once())
    yield stage.whole("bad name", metadata(client, "not a name", auto_create=True), at_once())


@scenario(topology="none before")
def all_brokers_agree_about_a_new_topic(stage: Stage) -> Iterator[Observation]:
    """Each broker tells the same of a topic that another one was asked to make."""
    name = stage.name("shared")
    assignments = {0: [stage.anchor, stage.third], 1: [stage.second, stage.anchor]}
    reply = create(stage.connect(stage.third), creatable(name, assignments=assignments))
    yield stage.whole("created", reply)
    stage.until_known(name, 2)
    for broker in stage.brokers:
        reply_of = metadata(stage.connect(broker), name)
        yield stage.whole(f"by {stage.part(broker)}", reply_of, unordered=PARTITIONS)


@scenario(topology="1 partition x 3 replicas")
def authorized_operations_are_told_on_demand(stage: Stage) -> Iterator[Observation]:
    """Without an authorizer all that make sense, as a bit field; else the least number."""
    topic = stage.topic()
    client = stage.connect(stage.anchor)
    for version in (8, 10, 13):
        for authorized in (False, True):
            reply = metadata(client, topic.name, authorized=authorized, version=version)
            yield stage.whole(f"{authorized}, version {version}", reply, unordered=PARTITIONS)
    for version in (8, 10):
        asked = messages.MetadataRequest(topics=[])
        asked.include_cluster_authorized_operations = True
        reply = client.request(asked, version, messages.MetadataResponse)
        yield stage.whole(f"cluster by metadata, version {version}", reply)
    for authorized in (False, True):
        request = messages.DescribeClusterRequest(authorized)
        cluster = client.request(request, 1, messages.DescribeClusterResponse)
        yield stage.whole(f"{authorized}, cluster", cluster)


@scenario(topology="none")
def the_cluster_is_described(stage: Stage) -> Iterator[Observation]:
    """Brokers with their addresses; endpoints of controllers are not to be had from brokers."""
    client = stage.connect(stage.second)
    for version in range(3):
        for kind in (1, FROM_CONTROLLERS, 3) if version else (1,):
            for fenced in (False, True) if version >= 2 else (False,):
                request = messages.DescribeClusterRequest(False, kind, fenced)
                reply = client.request(request, version, messages.DescribeClusterResponse)
                step = f"version {version}, endpoints {kind}, fenced {fenced}"
                yield stage.whole(step, reply, at_once())


@scenario(topology="2 topics of 3 and 2 partitions x 3 replicas")
def partitions_are_described_page_by_page(stage: Stage) -> Iterator[Observation]:
    """The limit cuts anywhere, the cursor says where to go on, topics come sorted by name."""
    first, second = stage.topic(partitions=3), stage.topic(partitions=2)
    client = stage.connect(stage.anchor)
    names = (second.name, first.name)
    for limit in (1, 2, 3, 4, 5, 6, 2000, 0, -1):
        yield stage.whole(f"limit {limit}", pages(client, names, limit), at_once())
    for partition in (0, 1, 2, 3, -1):
        reply = pages(client, names, 2, (first.name, partition))
        yield stage.whole(f"from partition {partition} of the first", reply, at_once())
    reply = pages(client, names, 2, (second.name, 1))
    yield stage.whole("from the last", reply, at_once())
    reply = pages(client, names, 2, (stage.name("unknown"), 0))
    yield stage.whole("from an unknown topic", reply, at_once())


@scenario(topology="1 partition x 3 replicas")
def unknown_topics_have_pages_too(stage: Stage) -> Iterator[Observation]:
    """Unknown, invalid and repeated names among the pages."""
    topic = stage.topic()
    client = stage.connect(stage.anchor)
    unknown = stage.name("unknown")
    cases = {
        "unknown": (unknown,),
        "unknown and known": (unknown, topic.name),
        "invalid": ("not a name",),
        "twice": (topic.name, topic.name),
    }
    for step, names in cases.items():
        for limit in (1, 10):
            yield stage.whole(f"{step}, limit {limit}", pages(client, names, limit), at_once())


@scenario(topology="1 partition x 3 replicas")
def a_deleted_topic_is_gone_from_metadata(stage: Stage) -> Iterator[Observation]:
    """By name and by id; made again it has another id and begins with leader epoch 0."""
    topic = stage.topic()
    client = stage.connect(stage.anchor)
    yield described("before", stage, topic)
    stage.delete(topic)
    stage.until_unknown(topic.name)
    yield stage.whole("by name", metadata(client, topic.name), at_once())
    yield stage.whole("by id", metadata(client, topic.topic_id), at_once())
    created = create(client, creatable(topic.name, assignments={0: list(stage.brokers)}))
    stage.until_known(topic.name)
    again = created.message.topics[0]
    same_id = again.topic_id == topic.topic_id
    yield Observation("again", error_code=again.error_code, fields={"same_id": same_id})
    yield described("after", stage, topic)
    old = metadata(client, topic.topic_id)
    yield Observation("old id", error_code=old.message.topics[0].error_code)
