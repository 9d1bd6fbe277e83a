"""Claims about CreateAcls, DescribeAcls and DeleteAcls, with the answers of Kafka 4.3.1."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.security.acls import handle_create_acls, handle_delete_acls, handle_describe_acls
from broker_sim.metadata.acl import AclOperation, PatternType, Permission, ResourceType
from broker_sim.protocol import messages
from broker_sim.protocol.errors import ProtocolError

CREATE, DELETE, DESCRIBE = (messages.CreateAclsRequest, messages.DeleteAclsRequest, messages.DescribeAclsRequest)
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
LITERAL, PREFIXED, ANY = PatternType.LITERAL, PatternType.PREFIXED, PatternType.ANY
READ, ALL = AclOperation.READ, AclOperation.ALL
ALLOW = Permission.ALLOW
INVALID = ErrorCode.INVALID_REQUEST


@pytest.fixture
def guarded(make_broker):
    return make_broker(GUARDED)


def acl(resource_type=TOPIC, name="t", pattern_type=LITERAL, principal="User:a", operation=READ, permission=ALLOW):
    return CREATE.AclCreation(resource_type, name, pattern_type, principal, "*", operation, permission)


def wanted(resource_type=ResourceType.ANY, name=None, pattern_type=ANY, operation=AclOperation.ANY):
    fields = resource_type, name, pattern_type, None, None, operation, Permission.ANY
    return DELETE.DeleteAclsFilter(*fields)


def create(broker, *acls, version=3):
    response = broker.ask(handle_create_acls, CREATE(list(acls)), version)
    return [(result.error_code, result.error_message) for result in response.results]


def describe(broker, *filters, version=3):
    fields = wanted(*filters)
    names = fields.__slots__
    request = DESCRIBE(*(getattr(fields, name) for name in names))
    response = broker.ask(handle_describe_acls, request, version)
    assert response.error_code == 0
    return [
        (each.resource_type, each.resource_name, each.pattern_type, acl.principal, acl.operation)
        for each in response.resources
        for acl in each.acls
    ]


def test_rules_are_created_described_and_deleted(guarded):
    assert create(guarded, acl(), acl(name="p", pattern_type=PREFIXED), acl(GROUP, "g")) == [(0, "")] * 3
    assert create(guarded, acl(), acl(operation=ALL), version=1) == [(0, "")] * 2
    assert describe(guarded) == [
        (TOPIC, "p", PREFIXED, "User:a", READ),
        (TOPIC, "t", LITERAL, "User:a", ALL),
        (TOPIC, "t", LITERAL, "User:a", READ),
        (GROUP, "g", LITERAL, "User:a", READ),
    ]
    assert describe(guarded, TOPIC, "pq", PatternType.MATCH) == [(TOPIC, "p", PREFIXED, "User:a", READ)]
    filters = [wanted(TOPIC, "t", LITERAL, READ), wanted(TOPIC, "t"), wanted(name="no")]
    response = guarded.ask(handle_delete_acls, DELETE(filters), 3)
    assert [
        (result.error_code, [(acl.resource_name, acl.operation) for acl in result.matching_acls])
        for result in response.filter_results
    ] == [(0, [("t", READ)]), (0, [("t", ALL), ("t", READ)]), (0, [])]
    assert [row[1] for row in describe(guarded)] == ["p", "g"]


def test_each_rule_is_refused_for_itself_with_kafkas_words(guarded):
    no_colon = (
        "Could not parse principal from `alice` (no colon is present separating the principal"
        " type from the principal name)"
    )
    cluster = "The only valid name for the CLUSTER resource is kafka-cluster"
    assert create(
        guarded,
        acl(CLUSTER, "t"),
        acl(CLUSTER, "kafka-cluster"),
        acl(name=""),
        acl(77),
        acl(pattern_type=77),
        acl(operation=77),
        acl(permission=77),
        acl(principal="alice"),
        acl(),
    ) == [
        (INVALID, cluster),
        (0, ""),
        (INVALID, "Invalid empty resource name"),
        (INVALID, "Invalid resourceType UNKNOWN"),
        (INVALID, "Invalid patternType UNKNOWN"),
        (INVALID, "Invalid operation UNKNOWN"),
        (INVALID, "Invalid permissionType UNKNOWN"),
        (INVALID, no_colon),
        (0, ""),
    ]
    assert [row[:2] for row in describe(guarded)] == [(TOPIC, "t"), (CLUSTER, "kafka-cluster")]


@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission"])
def test_a_code_that_is_not_given_closes_the_connection(guarded, field):
    with pytest.raises(ProtocolError, match="code 0 is not allowed"):
        create(guarded, acl(**{field: 0}))
    with pytest.raises(ProtocolError, match="code 0 is not allowed"):
        guarded.ask(handle_delete_acls, DELETE([wanted(resource_type=0)]), 3)
    assert describe(guarded) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": ResourceType.ANY},
        {"pattern_type": ANY},
        {"pattern_type": PatternType.MATCH},
        {"operation": AclOperation.ANY},
        {"permission": Permission.ANY},
    ],
)
def test_a_rule_that_only_a_filter_can_be_fails_the_whole_request(guarded, wrong):
    assert create(guarded, acl(), acl(**wrong)) == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
    assert describe(guarded) == []


def test_an_unknown_code_of_a_filter_is_refused_or_means_nothing(guarded):
    create(guarded, acl())
    filters = [wanted(77), wanted(operation=77)]
    response = guarded.ask(handle_delete_acls, DELETE(filters), 3)
    assert [result.error_message for result in response.filter_results] == [
        "Unknown patternFilter.",
        "Unknown entryFilter.",
    ]
    assert describe(guarded, 77) == []
    assert len(describe(guarded)) == 1


def test_without_an_authorizer_security_is_disabled(broker):
    code = ErrorCode.SECURITY_DISABLED
    assert create(broker, acl(), acl(name="")) == [(code, "No Authorizer is configured.")] * 2
    response = broker.ask(handle_delete_acls, DELETE([wanted()]), 3)
    (result,) = response.filter_results
    assert (result.error_code, result.error_message) == (code, "No Authorizer is configured.")
    request = DESCRIBE(1, None, 1, None, None, 1, 1)
    response = broker.ask(handle_describe_acls, request, 3)
    text = "No Authorizer is configured on the broker"
    assert (response.error_code, response.error_message) == (code, text)
