"""Requests that Kafka 4.4 answers in another way than 4.3; all expectations were seen on a running 4.4.0."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.controller.requests import ConfigResourceType
from broker_sim.errors import ConfigError, ErrorCode
from broker_sim.handlers import ApiTable
from broker_sim.protocol import messages
from broker_sim.protocol.codec import decode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import decode_request_header
from broker_sim.protocol.primitives import MAX_ELEMENTS, MAX_TAGGED_FIELDS, varint
from broker_sim.protocol.release import find_release, releases

HEADER = bytes((0, 3, 0, 9, 0, 0, 0, 7, 255, 255))
NO_TOPICS = bytes((0, 0, 0, 0))
MINUS_ONE = bytes((255, 255, 255, 255, 15))
BOTH = pytest.mark.parametrize("release", ["4.3", "4.4"])


def ask(cluster, request, version):
    pending = cluster.client().send(1, request, version)
    cluster.run_until(lambda: pending.done)
    return pending.response


def tagged_fields(count):
    return varint(count) + b"".join(varint(100 + number) + bytes(1) for number in range(count))


@pytest.mark.parametrize("flexible", [False, True])
def test_array_of_more_than_a_million_elements_is_refused(flexible):
    version, element, rest = (5, bytes((1,)), bytes(2)) if flexible else (0, bytes(2), b"")

    def frame(count):
        return (varint(count + 1) if flexible else count.to_bytes(4, "big")) + element * count + rest

    most, too_many = frame(MAX_ELEMENTS), frame(MAX_ELEMENTS + 1)
    assert len(decode(messages.DescribeGroupsRequest, version, most, limited=True).groups) == MAX_ELEMENTS
    assert len(decode(messages.DescribeGroupsRequest, version, too_many).groups) == MAX_ELEMENTS + 1
    with pytest.raises(ProtocolError, match="1000001 elements"):
        decode(messages.DescribeGroupsRequest, version, too_many, limited=True)


@pytest.mark.parametrize("tags", [tagged_fields(MAX_TAGGED_FIELDS + 1), MINUS_ONE])
def test_tagged_fields_that_are_too_many_or_fewer_than_none_are_refused(tags):
    decode(messages.MetadataRequest, 9, NO_TOPICS + tags)
    decode_request_header(HEADER + tags)
    with pytest.raises(ProtocolError):
        decode(messages.MetadataRequest, 9, NO_TOPICS + tags, limited=True)
    with pytest.raises(ProtocolError):
        decode_request_header(HEADER + tags, limited=True)


def test_ten_thousand_tagged_fields_are_read():
    tags = tagged_fields(MAX_TAGGED_FIELDS)
    decode(messages.MetadataRequest, 9, NO_TOPICS + tags, limited=True)
    decode_request_header(HEADER + tags, limited=True)


@BOTH
def test_range_of_hosts_in_an_acl_is_for_4_4(release):
    configs = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    cluster = VirtualCluster(1, topics=[], as_version=release, configs=configs)
    creation = messages.CreateAclsRequest.AclCreation
    hosts = ("10.0.0.0/8", "10.0.0.0/33", "")
    request = messages.CreateAclsRequest([creation(2, "t", 3, "User:x", host, 3, 3) for host in hosts])
    answers = [(each.error_code, each.error_message) for each in ask(cluster, request, 3).results]
    if release == "4.3":
        assert [code for code, _ in answers] == [0, 0, 0]
    else:
        assert answers == [
            (0, ""),
            (ErrorCode.INVALID_REQUEST, "Invalid CIDR notation '10.0.0.0/33': Value [33] not in range [0,32]"),
            (ErrorCode.INVALID_REQUEST, "Host pattern cannot be null or empty"),
        ]


ALTER = messages.IncrementalAlterConfigsRequest
NEW_CONFIGS = (
    (ConfigResourceType.TOPIC, "t", "max.decompressed.message.bytes", "5", ErrorCode.INVALID_CONFIG),
    (ConfigResourceType.GROUP, "g", "streams.assignor.name", "sticky", ErrorCode.INVALID_CONFIG),
    (ConfigResourceType.BROKER, "", "max.decompressed.message.bytes", "5", ErrorCode.INVALID_REQUEST),
)
"""A resource, a configuration of 4.4 with a value, and the answer of 4.3."""


@BOTH
@pytest.mark.parametrize(("kind", "resource", "name", "value", "answer_of_4_3"), NEW_CONFIGS)
def test_configuration_of_4_4_is_unknown_to_4_3(release, kind, resource, name, value, answer_of_4_3):
    cluster = VirtualCluster(1, topics=["t:1:1"], as_version=release)
    config = ALTER.AlterableConfig(name, 0, value)
    (response,) = ask(cluster, ALTER([ALTER.AlterConfigsResource(kind, resource, [config])]), 1).responses
    assert response.error_code == (answer_of_4_3 if release == "4.3" else ErrorCode.NONE)


def test_assignor_of_a_streams_group_is_one_of_the_brokers():
    cluster = VirtualCluster(1, topics=[], as_version="4.4")
    config = ALTER.AlterableConfig("streams.assignor.name", 0, "none")
    request = ALTER([ALTER.AlterConfigsResource(ConfigResourceType.GROUP, "g", [config])])
    text = "streams.assignor.name 'none' is not a registered task assignor. Registered assignors are: [sticky]."
    assert ask(cluster, request, 1).responses[0].error_message == text


@pytest.mark.parametrize(
    ("release", "name", "value", "text"),
    [
        ("4.3", "consumer.session.timeout.ms", "1", "greater than or equal to group.consumer.min.session.timeout.ms"),
        ("4.4", "consumer.session.timeout.ms", "1", "in the range 45000 to 60000 inclusive."),
        ("4.4", "share.delivery.count.limit", "100", "in the range 2 to 10 inclusive."),
        ("4.4", "streams.num.standby.replicas", "30", "less than or equal to 2"),
        ("4.4", "streams.task.offset.interval.ms", "1", "greater than or equal to 15000"),
    ],
)
def test_group_config_limits_are_in_the_message_from_4_4_on(release, name, value, text):
    cluster = VirtualCluster(1, topics=[], as_version=release)
    config = ALTER.AlterableConfig(name, 0, value)
    request = ALTER([ALTER.AlterConfigsResource(ConfigResourceType.GROUP, "g", [config])])
    assert ask(cluster, request, 1).responses[0].error_message == f"{name} must be {text}"


def test_configuration_of_a_newer_release_has_no_effect():
    configs = {"max.decompressed.message.bytes": 1}
    new, old = (
        VirtualCluster(1, as_version=release, configs=configs).nodes.nodes[1].config for release in ("4.4", "4.3")
    )
    assert new.max_decompressed_message_bytes == 1
    assert old.max_decompressed_message_bytes > 1
    with pytest.raises(ConfigError, match=r"max\.decompressed\.message\.bytes"):
        VirtualCluster(1, as_version="4.3", configs={"max.decompressed.message.bytes": "many"})


def test_newest_version_of_every_api_that_4_4_advertises_is_served():
    table = ApiTable(find_release("4.4"), client_metrics=True)
    not_served = {key for key, (_, highest) in releases()["4.4"].apis.items() if table.find(key, highest) is None}
    assert not_served == set()
