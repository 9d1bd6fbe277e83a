"""What members of share groups may read and acknowledge. The rows of integration/acls are checked beside a real Kafka."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata.acl import Acl, AclOperation, PatternType, Permission, ResourceType
from broker_sim.protocol import messages
from tests.broker_sim.handlers.share.conftest import TOPIC, answers

ACCEPT = 1
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def deny(bench, resource_type, name):
    """Forbid everybody to read it."""
    create = messages.CreateAclsRequest
    acl = Acl(
        resource_type, name, PatternType.LITERAL, "User:*", "*", AclOperation.READ, Permission.DENY
    )
    creation = create.AclCreation(
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission,
    )
    pending = bench.wait(bench.producer.send(1, create([creation]), 3))
    assert not pending.response.results[0].error_code
    bench.cluster.advance(1_000)


@pytest.fixture
def bench(make_bench):
    """A cluster in which everybody may do what no rule forbids."""
    return make_bench(authorizer_class_name=AUTHORIZER, allow_everyone_if_no_acl_found="true")


@pytest.fixture
def member(bench):
    """A member that has the records 0 to 4."""
    member = bench.member()
    bench.produce(5)
    assert member.fetched() == {0: [(0, 4, 1)]}
    return member


def test_group_that_a_member_may_not_read(bench, member):
    deny(bench, ResourceType.GROUP, "share")
    for pending in (member.fetch(), member.acknowledge({0: [(0, 4, ACCEPT)]})):
        response = bench.wait(pending).response
        assert response.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_topic_that_a_member_may_not_read_any_more(bench, member):
    deny(bench, ResourceType.TOPIC, TOPIC)
    assert member.acknowledged({0: [(0, 4, ACCEPT)]}) == {0: DENIED}
    pending = bench.wait(member.fetch(acknowledges={0: [(0, 4, ACCEPT)]}))
    answer = answers(pending)[0]
    assert (answer.error_code, answer.acknowledge_error_code) == (DENIED, DENIED)
    assert bench.share_partition().records.start_offset == 0
