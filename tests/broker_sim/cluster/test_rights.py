"""Claims about `grant`, `revoke` and `denials`, in virtual time."""

import pytest

from broker_sim import VirtualCluster
from broker_sim.cluster.text_forms import parse_acl
from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.errors import WrongStateError
from broker_sim.metadata.acl import Acl, AclOperation, PatternType, Permission, ResourceType
from broker_sim.protocol import messages
from broker_sim.runtime.event_log import EVENT_ATTRIBUTE

GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}
DENIED, NONE = 29, 0


@pytest.fixture
def cluster():
    with VirtualCluster(3, configs=GUARDED) as made:
        made.create_topic("orders", 1, 3)
        made.wait_until_in_sync()
        yield made


def produce(cluster):
    """Return the error of a produce of a client of a PLAINTEXT listener, who is User:ANONYMOUS."""
    leader = cluster.status().topics[0].partitions[0].leader
    pending = cluster.client().send(leader, produce_request(("orders", 0)), PRODUCE_VERSION)
    cluster.run_until(lambda: pending.done)
    return pending.response.responses[0].partition_responses[0].error_code


def test_a_right_is_given_and_taken_away_between_two_requests(cluster):
    assert produce(cluster) == DENIED
    cluster.grant("ANONYMOUS", "write", "topic:ord*")
    assert produce(cluster) == NONE
    cluster.grant("User:ANONYMOUS", "WRITE", "topic:orders", deny=True)
    assert produce(cluster) == DENIED
    cluster.revoke("User:ANONYMOUS", "WRITE", "topic:orders", deny=True)
    assert produce(cluster) == NONE
    cluster.revoke("ANONYMOUS", "WRITE", "topic:ord*")
    assert produce(cluster) == DENIED


def test_what_a_client_was_denied_is_kept_with_the_reason(cluster):
    produce(cluster)
    cluster.grant("ANONYMOUS", "WRITE", "topic:*", deny=True)
    produce(cluster)
    first, second = cluster.denials()
    assert (first.principal, first.client_host) == ("User:ANONYMOUS", "127.0.0.1")
    assert (first.api, first.operation, first.resource_type, first.resource, first.rule) == (
        "Produce",
        "WRITE",
        "TOPIC",
        "orders",
        "DefaultDeny",
    )
    assert second.rule.endswith("operation=WRITE, permissionType=DENY))")
    assert second.time_ms >= first.time_ms
    assert cluster.denials("User:ANONYMOUS") == cluster.denials()
    assert cluster.denials("User:bob") == ()
    assert cluster.denials().to_json()["denials"][0]["rule"] == "DefaultDeny"


def test_reset_takes_rights_and_denials_away(cluster):
    cluster.grant("ANONYMOUS", "WRITE", "topic:orders")
    produce(cluster)
    cluster.reset()
    assert not cluster.nodes.controller.image.acls
    assert cluster.denials() == ()


def test_a_right_that_is_not_there_cannot_be_taken_away(cluster):
    with pytest.raises(LookupError, match="unknown ACL"):
        cluster.revoke("ANONYMOUS", "WRITE", "topic:orders")


def test_without_an_authorizer_there_are_no_rights():
    with VirtualCluster(1) as cluster:
        for verb in (cluster.grant, cluster.revoke):
            with pytest.raises(WrongStateError, match="no authorizer"):
                verb("ANONYMOUS", "WRITE", "topic:orders")
        assert cluster.denials() == ()


@pytest.mark.parametrize("configs", [{"super.users": "admin"}, {"authorizer.class.name": "x.Y"}])
def test_wrong_configuration_of_rights_is_an_error(configs):
    with pytest.raises(ValueError, match=r"principalType:principalName|authorizer\.class\.name"):
        VirtualCluster(1, configs={**GUARDED, **configs})


@pytest.mark.parametrize(
    ("resource", "resource_type", "name", "pattern_type"),
    [
        ("topic:orders", ResourceType.TOPIC, "orders", PatternType.LITERAL),
        ("Topic:ord*", ResourceType.TOPIC, "ord", PatternType.PREFIXED),
        ("group:*", ResourceType.GROUP, "*", PatternType.LITERAL),
        ("cluster", ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL),
        ("transactional_id:a:b", ResourceType.TRANSACTIONAL_ID, "a:b", PatternType.LITERAL),
        ("user:User:x", ResourceType.USER, "User:x", PatternType.LITERAL),
    ],
)
def test_a_resource_is_a_type_and_a_name(resource, resource_type, name, pattern_type):
    expected = Acl(resource_type, name, pattern_type, "User:a", "*", AclOperation.ALTER_CONFIGS, Permission.ALLOW)
    assert parse_acl("a", "Alter_Configs", resource, "*", deny=False) == expected


@pytest.mark.parametrize("resource", ["orders", "topic:", "any:x", "unknown:x", "", ":x"])
def test_a_resource_without_type_or_name_is_refused(resource):
    with pytest.raises(ValueError, match="'resource' must have a form such as topic:orders"):
        parse_acl("a", "READ", resource, "*", deny=False)


@pytest.mark.parametrize("place", range(4))
def test_half_of_a_surrogate_pair_is_refused(place):
    # It would break every answer to DescribeAcls.
    texts = ["a", "READ", "topic:x", "*"]
    texts[place] += "\ud800"
    with pytest.raises(ValueError, match=r"a lone surrogate|'operation' must be"):
        parse_acl(*texts, deny=False)


@pytest.mark.parametrize("operation", ["any", "unknown", "consume", ""])
def test_unknown_operation_is_rejected(operation):
    with pytest.raises(ValueError, match="'operation' must be one of ALL, READ"):
        parse_acl("a", operation, "topic:x", "*", deny=False)


def test_a_consumer_loses_its_right_in_the_middle_of_a_fetch_session(cluster):
    cluster.grant("ANONYMOUS", "READ", "topic:orders")
    leader = cluster.status().topics[0].partitions[0].leader
    client = cluster.client()

    def fetch(request):
        pending = client.send(leader, request, FETCH_VERSION)
        cluster.run_until(lambda: pending.done)
        return pending.response

    request = fetch_request(("orders", 0), max_wait_ms=0)
    request.session_epoch = 0
    first = fetch(request)
    assert first.session_id
    again = messages.FetchRequest(max_wait_ms=0, min_bytes=0, session_id=first.session_id, session_epoch=1)
    assert fetch(again).responses == []
    cluster.revoke("ANONYMOUS", "READ", "topic:orders")
    again.session_epoch = 2
    assert fetch(again).responses[0].partitions[0].error_code == DENIED
    assert [denial.api for denial in cluster.denials()] == ["Fetch"]


def test_fetched_topic_without_partitions_is_not_counted_as_denied(cluster):
    leader = cluster.status().topics[0].partitions[0].leader
    client = cluster.client()
    request = fetch_request(("orders", 0), max_wait_ms=0)
    for partitions, denied_apis in (([], []), (request.topics[0].partitions, ["Fetch"])):
        request.topics[0].partitions = partitions
        pending = client.send(leader, request, FETCH_VERSION)
        cluster.run_until(lambda pending=pending: pending.done)
        assert [denial.api for denial in cluster.denials()] == denied_apis


def test_resource_left_out_of_a_list_is_not_counted_as_denied(cluster):
    client = cluster.client()
    for request, version in ((messages.MetadataRequest(None), 9), (messages.ListGroupsRequest(), 4)):
        pending = client.send(1, request, version)
        cluster.run_until(lambda pending=pending: pending.done)
        assert not pending.response.error_code
    assert cluster.denials() == ()


def test_rights_that_come_and_go_and_denials_are_logged(cluster, caplog):
    caplog.set_level("INFO", "broker_sim")
    produce(cluster)
    cluster.grant("bob", "READ", "topic:orders")
    cluster.revoke("bob", "READ", "topic:orders")
    events = [getattr(record, EVENT_ATTRIBUTE) for record in caplog.records]
    said = {event["event"]: event for event in events}
    assert list(said) == ["denied", "acl_created", "acl_deleted"]
    assert (said["denied"]["principal"], said["denied"]["resource"]) == ("User:ANONYMOUS", "TOPIC:orders")
    assert "principal=User:bob" in said["acl_created"]["acl"]
