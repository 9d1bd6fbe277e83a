from broker_sim_integration.scenarios.helpers.normalise import as_first_repeat, normalised

from broker_sim.protocol import messages

ROLES = {7: "first", 8: "second", -1: "none"}


def role(broker):
    return ROLES.get(broker, "unknown")


def test_every_field_has_a_path_of_its_own():
    response = messages.DeleteTopicsResponse(
        responses=[messages.DeleteTopicsResponse.DeletableTopicResult("t", error_code=3)]
    )
    plain = normalised(response, role)
    assert plain["responses.0.name"] == "t"
    assert plain["responses.0.error_code"] == 3


def test_an_empty_list_is_a_value():
    assert normalised(messages.DeleteTopicsResponse(), role)["responses"] == []


def test_random_ids_are_compared_by_presence_only():
    given = messages.InitProducerIdResponse(producer_id=4711)
    none = messages.InitProducerIdResponse(producer_id=-1)
    assert normalised(given, role)["producer_id"] == "given"
    assert normalised(none, role)["producer_id"] == "none"


def test_brokers_are_named_by_their_roles():
    partition = messages.MetadataResponse.MetadataResponsePartition(leader_id=8, replica_nodes=[7, 8, 9])
    topic = messages.MetadataResponse.MetadataResponseTopic(partitions=[partition])
    plain = normalised(messages.MetadataResponse(topics=[topic]), role)
    assert plain["topics.0.partitions.0.leader_id"] == "second"
    assert plain["topics.0.partitions.0.replica_nodes"] == ["first", "second", "unknown"]


def test_configurations_of_a_broker_are_named_by_its_role():
    result = messages.DescribeConfigsResponse.DescribeConfigsResult
    response = messages.DescribeConfigsResponse(
        results=[result(resource_type=4, resource_name="7"), result(resource_type=2, resource_name="7")]
    )
    plain = normalised(response, role)
    assert plain["results.0.resource_name"] == "first"
    assert plain["results.1.resource_name"] == "7"


def test_configurations_have_their_name_in_the_path():
    config = messages.CreateTopicsResponse.CreatableTopicConfigs
    response = messages.CreateTopicsResponse(
        topics=[
            messages.CreateTopicsResponse.CreatableTopicResult(
                "t", configs=[config("segment.bytes", "1"), config("retention.ms", "2")]
            )
        ]
    )
    plain = normalised(response, role)
    assert plain["topics.0.configs.segment.bytes.value"] == "1"
    assert plain["topics.0.configs.retention.ms.value"] == "2"


def test_unordered_lists_of_the_scenario_are_sorted():
    result = messages.DeleteTopicsResponse.DeletableTopicResult
    response = messages.DeleteTopicsResponse(responses=[result("b"), result("a")])
    as_it_is = normalised(response, role)
    in_order = normalised(response, role, unordered=["responses"])
    assert as_it_is["responses.0.name"] == "b"
    assert in_order["responses.0.name"] == "a"


def test_long_bytes_are_shown_by_size_and_digest():
    partition = messages.FetchResponse.PartitionData(records=b"x" * 300)
    topic = messages.FetchResponse.FetchableTopicResponse(partitions=[partition])
    records = normalised(messages.FetchResponse(responses=[topic]), role)["responses.0.partitions.0.records"]
    assert records.startswith("300 bytes, sha256 ")


def test_fetch_sessions_are_compared_by_presence_only():
    given = messages.FetchResponse(session_id=4711)
    assert normalised(given, role)["session_id"] == "given"
    assert normalised(messages.FetchResponse(session_id=0), role)["session_id"] == "none"


def test_topics_of_a_later_repeat_have_the_names_of_the_first():
    seen = {"topics.0.name": "claim.3.1", "words": ["Topic 'claim.3.2' exists.", 3], "n": None}
    assert as_first_repeat(seen, "claim", 3) == {
        "topics.0.name": "claim.1.1",
        "words": ["Topic 'claim.1.2' exists.", 3],
        "n": None,
    }
