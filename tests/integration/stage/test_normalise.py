from broker_sim.protocol import messages
from integration.stage.normalise import normalised

PARTS = {7: "anchor", 8: "second", -1: "none"}


def part(broker):
    return PARTS.get(broker, "unknown")


def test_every_field_has_a_path_of_its_own():
    response = messages.DeleteTopicsResponse(
        responses=[messages.DeleteTopicsResponse.DeletableTopicResult("t", error_code=3)]
    )
    plain = normalised(response, part)
    assert plain["responses.0.name"] == "t"
    assert plain["responses.0.error_code"] == 3


def test_an_empty_list_is_a_value():
    assert normalised(messages.DeleteTopicsResponse(), part)["responses"] == []


def test_of_ids_drawn_by_lot_only_whether_they_are_given_is_left():
    given = messages.InitProducerIdResponse(producer_id=4711)
    none = messages.InitProducerIdResponse(producer_id=-1)
    assert normalised(given, part)["producer_id"] == "given"
    assert normalised(none, part)["producer_id"] == "none"


def test_brokers_are_called_by_their_parts():
    partition = messages.MetadataResponse.MetadataResponsePartition(
        leader_id=8, replica_nodes=[7, 8, 9]
    )
    topic = messages.MetadataResponse.MetadataResponseTopic(partitions=[partition])
    plain = normalised(messages.MetadataResponse(topics=[topic]), part)
    assert plain["topics.0.partitions.0.leader_id"] == "second"
    assert plain["topics.0.partitions.0.replica_nodes"] == ["anchor", "second", "unknown"]


def test_a_brokers_configurations_are_those_of_its_part():
    result = messages.DescribeConfigsResponse.DescribeConfigsResult
    response = messages.DescribeConfigsResponse(
        results=[
            result(resource_type=4, resource_name="7"),
            result(resource_type=2, resource_name="7"),
        ]
    )
    plain = normalised(response, part)
    assert plain["results.0.resource_name"] == "anchor"
    assert plain["results.1.resource_name"] == "7"


def test_configurations_are_told_apart_by_name_not_by_place():
    config = messages.CreateTopicsResponse.CreatableTopicConfigs
    response = messages.CreateTopicsResponse(
        topics=[
            messages.CreateTopicsResponse.CreatableTopicResult(
                "t", configs=[config("segment.bytes", "1"), config("retention.ms", "2")]
            )
        ]
    )
    plain = normalised(response, part)
    assert plain["topics.0.configs.segment.bytes.value"] == "1"
    assert plain["topics.0.configs.retention.ms.value"] == "2"


def test_lists_without_an_order_are_sorted_where_the_scenario_says_so():
    result = messages.DeleteTopicsResponse.DeletableTopicResult
    response = messages.DeleteTopicsResponse(responses=[result("b"), result("a")])
    as_it_is = normalised(response, part)
    in_order = normalised(response, part, unordered=["responses"])
    assert as_it_is["responses.0.name"] == "b"
    assert in_order["responses.0.name"] == "a"


def test_long_bytes_are_shown_by_size_and_digest():
    partition = messages.FetchResponse.PartitionData(records=b"x" * 300)
    topic = messages.FetchResponse.FetchableTopicResponse(partitions=[partition])
    records = normalised(messages.FetchResponse(responses=[topic]), part)[
        "responses.0.partitions.0.records"
    ]
    assert records.startswith("300 bytes, sha256 ")
