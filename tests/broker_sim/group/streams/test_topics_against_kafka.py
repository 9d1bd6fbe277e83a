"""What Kafka's own classes make of a topology and of the topics there are, ours make as well.

That is: numbers of partitions and tasks, topics to be created, texts of errors, descriptions, hashes, the
record, and what an endpoint answers for; in the same order.

Needs Java and Maven; with REQUIRE_REAL_KAFKA set their absence is a failure. Set BROKER_SIM_SEED to run
another seed: the seed is in a failure.
"""

import json
import os
import random
from collections import Counter

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.modern.metadata_hash import TopicHashes
from broker_sim.group.record_messages import StreamsGroupTopologyValue
from broker_sim.group.streams.topics.configured_topology import Status, endpoint_to_partitions
from broker_sim.group.streams.topics.internal_topic_manager import configure_topics
from broker_sim.group.streams.topology import StreamsTopology, topology_record_value
from broker_sim.protocol import messages
from broker_sim.protocol.codec import decode, encode
from broker_sim.protocol.message import to_dict

from .random_topology import RandomTopology, image_of

pytestmark = [pytest.mark.real_kafka, pytest.mark.soak(part="kafka_classes")]

RUNS = 500
ENDPOINT = messages.StreamsGroupHeartbeatResponse.Endpoint("host", 80)


def made_by_kafka(peer, topology, image, tasks):
    told = {
        "request": b"".join(encode(topology.request, 0)).hex(),
        "topics": [[topic.name, topic.topic_id.hex(), len(topic.partitions)] for topic in image.topics.values()],
    }
    if tasks is not None:
        told |= {
            kind: [[name, sorted(numbers)] for name, numbers in of.items()]
            for kind, of in zip(("active", "standby"), tasks, strict=True)
        }
    (line,) = peer.ask("configure", json.dumps(told))
    return {key: readable(key, value) for key, value in json.loads(line).items()}


def readable(key, value):
    """Return a value of Kafka's answer, decoded if it is a message."""
    match key:
        case "record":
            return to_dict(decode(StreamsGroupTopologyValue, 0, bytes.fromhex(value)))
        case "topology" | "configured":
            response = decode(messages.StreamsGroupDescribeResponse, 0, bytes.fromhex(value))
            return to_dict(response.groups[0].topology)
        case "create":
            request = decode(messages.CreateTopicsRequest, 7, bytes.fromhex(value))
            return [to_dict(topic) for topic in request.topics]
        case "endpoint":
            response = decode(messages.StreamsGroupHeartbeatResponse, 0, bytes.fromhex(value))
            return comparable(response.partitions_by_user_endpoint[0])
    return value


def comparable(endpoint):
    """Return plain values; Kafka's order of active subtopologies differs from run to run."""
    plain = to_dict(endpoint)
    plain["active_partitions"].sort(key=str)
    return plain


def made_by_us(topology, image, tasks):
    try:
        return _made(topology.request.topology, image, tasks)
    except ApiError as error:
        return {"error": int(error.error_code), "text": error.error_message}


def _made(told, image, tasks):
    topology = StreamsTopology.from_request(told)
    metadata_hash = TopicHashes().of(topology.required_topics(), image)
    configured = configure_topics(topology, metadata_hash, image)
    made = {
        "record": to_dict(topology_record_value(told)),
        "hash": metadata_hash,
        "required": topology.required_topics(),
        "readers": topology.source_topic_map(),
        "topology": to_dict(topology.describe()),
        "ready": configured.is_ready,
        "create": [to_dict(topic) for topic in configured.internal_topics_to_be_created.values()],
    }
    if configured.error is not None:
        made |= {"status": int(configured.error.status), "status_text": str(configured.error)}
    if configured.subtopologies is not None:
        made["configured"] = to_dict(configured.describe())
        made["subtopologies"] = [
            [name, *of, configured.subtopologies[name].source_topics] for name, of in configured.tasks().items()
        ]
    if tasks is not None:
        made["endpoint"] = comparable(endpoint_to_partitions(ENDPOINT, *tasks, configured.subtopologies, image))
    return made


def some_tasks(rng, topology):
    """Return active and standby tasks of a member, which only sometimes exist."""
    names = [subtopology.subtopology_id for subtopology in topology.request.topology.subtopologies]
    return [
        {
            name: frozenset(rng.sample(range(40), rng.choice([1, 1, 2, 20])))
            for name in rng.sample(sorted(set(names)), rng.randrange(len(set(names)) + 1))
        }
        for _ in range(2)
    ]


def kind_of(made):
    """Return what kind of outcome it is."""
    if "error" in made:
        return ErrorCode(made["error"])
    return Status(made["status"]) if "status" in made else None


def test_random_topologies_are_configured_as_by_kafka(streams_peer):
    """Two times each: with the source topics alone, then with internal topics that may be wrong."""
    chosen = os.environ.get("BROKER_SIM_SEED")
    kinds = Counter()
    for seed in range(RUNS) if chosen is None else [int(chosen)]:
        rng = random.Random(seed)
        topology = RandomTopology(rng)
        created = ()
        for _ in range(2):
            image = image_of(topology.topics(created), rng)
            tasks = some_tasks(rng, topology) if rng.random() < 0.3 else None
            ours = made_by_us(topology, image, tasks)
            assert ours == made_by_kafka(streams_peer, topology, image, tasks), f"seed {seed}"
            kinds[kind_of(ours)] += 1
            created = [
                messages.CreateTopicsRequest.CreatableTopic(topic["name"], topic["num_partitions"])
                for topic in ours.get("create", ())
            ]
    if chosen is None:
        assert kinds.keys() >= {
            None,
            ErrorCode.UNKNOWN_SERVER_ERROR,
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            Status.MISSING_SOURCE_TOPICS,
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            Status.MISSING_INTERNAL_TOPICS,
        }, kinds
