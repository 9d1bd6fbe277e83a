"""Tests of the configuration of topologies; orders and messages are those of Kafka's classes."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.streams.topics.configured_topology import Status, endpoint_to_partitions
from broker_sim.group.streams.topics.internal_topic_manager import configure_topics
from broker_sim.group.streams.topology import StreamsTopology
from broker_sim.protocol import messages

from .random_topology import image_of

Request = messages.StreamsGroupHeartbeatRequest
Response = messages.StreamsGroupHeartbeatResponse
HASH = 7


def subtopology(subtopology_id, sources="", *, reads=(), writes="", stores=(), together=()):
    """Return a subtopology; `together` has the places of sources and of repartition topics that are joined."""
    return Request.Subtopology(
        subtopology_id=subtopology_id,
        source_topics=sources.split(),
        state_changelog_topics=[topic(name) for name in stores],
        repartition_sink_topics=writes.split(),
        repartition_source_topics=list(reads),
        copartition_groups=[Request.CopartitionGroup(of[0], [], of[1]) for of in together],
    )


def topic(name, partitions=0, replication_factor=0, **configs):
    topic_configs = [Request.KeyValue(key.replace("_", "."), value) for key, value in configs.items()]
    return Request.TopicInfo(name, partitions, replication_factor, topic_configs)


def topology_of(*subtopologies, epoch=1):
    return StreamsTopology.from_request(Request.Topology(epoch, list(subtopologies)))


def configured(topics, *subtopologies):
    return configure_topics(topology_of(*subtopologies), HASH, image_of(topics))


def partitions(topology):
    """Return the partitions of the internal topics that are to be created, in order."""
    return {name: created.num_partitions for name, created in topology.internal_topics_to_be_created.items()}


def assert_wrong(topology, status, text):
    assert (topology.error.status, str(topology.error)) == (status, text)
    assert not topology.is_ready


COUNT = (subtopology("0", "words", writes="by-word"), subtopology("1", reads=[topic("by-word")], stores=["counts"]))


def test_internal_topics_have_as_many_partitions_as_sources():
    topology = configured({"words": 3}, *COUNT)
    assert partitions(topology) == {"by-word": 3, "counts": 3}
    assert_wrong(
        topology, Status.MISSING_INTERNAL_TOPICS, "Internal topics are missing: " + ", ".join(partitions(topology))
    )


def test_largest_source_topic_decides():
    topology = configured(
        {"small": 1, "large": 4},
        subtopology("0", "large small", writes="r", stores=["s"]),
        subtopology("1", reads=[topic("r")]),
    )
    assert partitions(topology) == {"r": 4, "s": 4}
    assert {name: of.number_of_tasks for name, of in topology.subtopologies.items()} == {"0": 4, "1": 4}


def test_topology_is_ready_when_all_topics_exist():
    topology = configured({"words": 3, "by-word": 3, "counts": 3}, *COUNT)
    assert topology.is_ready
    assert topology.tasks() == {"0": (3, False), "1": (3, True)}
    assert topology.metadata_hash == HASH


def test_created_topic_has_its_configurations_and_the_default_replication():
    topology = configured(
        {"words": 1},
        subtopology("0", "words", writes="a b"),
        subtopology("1", reads=[topic("a", 5, 2, retention_ms="-1"), topic("b")]),
    )
    created = topology.internal_topics_to_be_created
    config = messages.CreateTopicsRequest.CreatableTopicConfig("retention.ms", "-1")
    assert created["a"] == messages.CreateTopicsRequest.CreatableTopic("a", 5, 2, [], [config])
    assert created["b"].replication_factor == -1


def test_message_lists_the_first_three_missing_source_topics():
    assert_wrong(
        configured({"b": 1}, subtopology("0", "e d c b a")),
        Status.MISSING_SOURCE_TOPICS,
        "Source topics a, c, d and 1 additional topics are missing.",
    )


def test_missing_internal_topics_are_in_kafkas_order():
    stores = [f"app-store-{number}-changelog" for number in range(5)]
    topology = configured({"words": 1}, subtopology("0", "words", stores=stores))
    assert_wrong(
        topology,
        Status.MISSING_INTERNAL_TOPICS,
        "Internal topics are missing: app-store-3-changelog, app-store-4-changelog,"
        " app-store-1-changelog and 2 additional topics",
    )


def test_internal_topic_with_wrong_partition_count_is_an_error():
    assert_wrong(
        configured({"words": 3, "by-word": 2}, *COUNT),
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic by-word has different number of partitions: expected 3, found 2",
    )


def test_joined_source_topics_must_have_equal_partition_counts():
    assert_wrong(
        configured({"a": 1, "b": 2}, subtopology("0", "b a", together=[([0, 1], [])])),
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{a=1, b=2}]",
    )


def test_repartition_topic_gets_the_count_of_its_join_partner():
    topology = configured(
        {"a": 2, "b": 5},
        subtopology("0", "b", writes="r"),
        subtopology("1", "a", reads=[topic("r")], together=[([0], [0])]),
    )
    assert partitions(topology) == {"r": 2}


def test_fixed_repartition_topic_must_match_its_join_partner():
    topology = configured({"a": 2}, subtopology("0", "a", reads=[topic("r", 4)], writes="r", together=[([0], [0])]))
    assert_wrong(
        topology,
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Number of partitions [4] of repartition topic [r] doesn't match number of partitions [2] of the source topic.",
    )


def test_joined_repartition_topics_get_the_largest_count():
    topology = configured(
        {"a": 2, "b": 5},
        subtopology("0", "a", writes="r"),
        subtopology("1", "b", writes="s"),
        subtopology("2", reads=[topic("r"), topic("s")], together=[([], [0, 1])]),
    )
    assert set(partitions(topology).items()) == {("r", 5), ("s", 5)}


def test_joined_repartition_topics_get_the_fixed_count():
    topology = configured(
        {"a": 2, "b": 5},
        subtopology("0", "a", writes="r"),
        subtopology("1", "b", writes="s"),
        subtopology("2", reads=[topic("r", 3), topic("s")], together=[([], [0, 1])]),
    )
    assert set(partitions(topology).items()) == {("r", 3), ("s", 3)}


@pytest.mark.parametrize(
    ("subtopologies", "text"),
    [
        (
            [subtopology("0", reads=[topic("r")], writes="r")],
            (
                "Failed to compute number of partitions for all repartition topics."
                " There may be loops in the topology that cannot be resolved."
            ),
        ),
        (
            [subtopology("0", "words", reads=[topic("r")])],
            (
                "Failed to compute number of partitions for all repartition topics, because"
                " a repartition source topic is never used as a sink topic."
            ),
        ),
        ([subtopology("0")], "No source topics found for subtopology 0"),
    ],
)
def test_impossible_topology_is_an_error(subtopologies, text):
    with pytest.raises(ApiError) as caught:
        configured({"words": 1}, *subtopologies)
    assert caught.value.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert caught.value.error_message == text


@pytest.mark.parametrize(
    "subtopologies",
    [
        [subtopology("0", "words"), subtopology("0", "words")],
        [subtopology("0", "words", stores=["s", "s"])],
        [subtopology("0", "words", reads=[topic("r", -1)])],
        [subtopology("0", "words", together=[([1], [])])],
        [subtopology("0", "words", together=[([-1], [])])],
    ],
    ids=["id twice", "topic twice", "negative partitions", "no such place", "negative place"],
)
def test_inconsistent_topology_is_unknown_server_error(subtopologies):
    with pytest.raises(ApiError) as caught:
        configured({"words": 1}, *subtopologies)
    assert caught.value.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_topologies_with_the_same_subtopologies_are_equal():
    assert topology_of(*COUNT) == topology_of(*reversed(COUNT))
    assert topology_of(*COUNT) != topology_of(*COUNT, epoch=2)
    assert topology_of(*COUNT) != topology_of(COUNT[0])


def test_source_topics_map_to_their_subtopologies():
    topology = topology_of(*COUNT)
    assert topology.source_topic_map() == {"words": "0", "by-word": "1"}
    assert set(topology.required_topics()) == {"words", "by-word", "counts"}


def test_description_has_partition_counts_only_when_configured():
    topology = topology_of(*COUNT)
    configured_topology = configured({"words": 3, "by-word": 3, "counts": 3}, *COUNT)
    for described, count in ((topology.describe(), 0), (configured_topology.describe(), 3)):
        assert [each.subtopology_id for each in described.subtopologies] == ["0", "1"]
        (counts,) = described.subtopologies[1].state_changelog_topics
        assert (counts.name, counts.partitions) == ("counts", count)


def test_endpoint_serves_the_source_partitions_of_its_tasks():
    topology = configured({"small": 1, "large": 4}, subtopology("0", "small large"))
    answer = endpoint_to_partitions(
        Response.Endpoint("host", 80),
        {"0": frozenset({0, 3})},
        {"0": frozenset({2})},
        topology.subtopologies,
        image_of({"small": 1, "large": 4}),
    )
    assert answer.user_endpoint == Response.Endpoint("host", 80)
    active = {each.topic: each.partitions for each in answer.active_partitions}
    assert active == {"large": [0, 3], "small": [0]}
    # As in Kafka: there are not fewer partitions than tasks, so nothing is cut off.
    standby = {each.topic: each.partitions for each in answer.standby_partitions}
    assert standby == {"large": [2], "small": [2]}


def test_endpoint_of_unconfigured_topology_is_unknown_server_error():
    with pytest.raises(ApiError, match="UNKNOWN_SERVER_ERROR"):
        endpoint_to_partitions(Response.Endpoint("host", 80), {}, {}, None, image_of({}))
