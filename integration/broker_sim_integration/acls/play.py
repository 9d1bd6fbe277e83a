"""Play the table on one broker, simulated or real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.errors import ErrorCode
from broker_sim.metadata.acl import Acl, AclOperation, PatternType, Permission, ResourceType
from broker_sim.protocol import messages
from broker_sim_integration.acls.names import GROUP, OTHER_USER, TOPIC, TRANSACTIONAL_ID
from broker_sim_integration.acls.outcome import outcome_of
from broker_sim_integration.acls.requests.streams import set_up_streams_group
from broker_sim_integration.acls.rules import NAMES, RULE_SETS, random_rules
from broker_sim_integration.acls.share_set_up import set_up_share_groups
from broker_sim_integration.acls.situation import situations_of
from broker_sim_integration.acls.table import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim_integration.acls.table_broker import TableBroker

    Row = tuple[str, str, Any]

_CREATE, _DELETE = messages.CreateAclsRequest, messages.DeleteAclsRequest
_EVERYTHING = (ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, Permission.ANY)


def set_up(broker: TableBroker) -> bytes:
    """Create the table's resources (a topic with a record, groups, coordinators, a token); return the topic's id."""
    create = messages.CreateTopicsRequest
    broker.ask_as_admin(create([create.CreatableTopic(TOPIC, 1, 1)], 10_000), 5)
    find = messages.FindCoordinatorRequest
    for key_type, key in ((0, GROUP), (1, TRANSACTIONAL_ID)):
        request = find(key_type=key_type, coordinator_keys=[key])

        def is_found(request: messages.FindCoordinatorRequest = request) -> bool:
            return not broker.ask_as_admin(request, 4).coordinators[0].error_code

        broker.wait_until(is_found)

    def is_written() -> bool:
        answer = broker.ask_as_admin(produce_request((TOPIC, 0)), 9)
        return not answer.responses[0].partition_responses[0].error_code

    broker.wait_until(is_written)
    init = messages.InitProducerIdRequest(TRANSACTIONAL_ID, 60_000, -1, -1)
    broker.wait_until(lambda: not broker.ask_as_admin(init, 4).error_code)
    commit = messages.OffsetCommitRequest
    offset = commit.OffsetCommitRequestTopic(TOPIC, partitions=[commit.OffsetCommitRequestPartition(0, 5)])

    def is_committed() -> bool:
        answer = broker.ask_as_admin(commit(GROUP, -1, "", topics=[offset]), 8)
        return not answer.topics[0].partitions[0].error_code

    broker.wait_until(is_committed)
    kind, _, name = OTHER_USER.partition(":")
    token = messages.CreateDelegationTokenRequest(kind, name)
    broker.wait_until(lambda: not broker.ask_as_admin(token, 3).error_code)
    topic = messages.MetadataRequest.MetadataRequestTopic(name=TOPIC)
    (topic_metadata,) = broker.ask_as_admin(messages.MetadataRequest([topic]), 10).topics
    topic_id = bytes(topic_metadata.topic_id)
    set_up_share_groups(broker, topic_id)
    set_up_streams_group(broker)
    return topic_id


def set_acls(broker: TableBroker, acls: Iterable[Acl]) -> None:
    """Replace all ACLs by these; returns when the broker knows them."""
    bindings = set(acls)
    broker.ask_as_admin(_DELETE([_DELETE.DeleteAclsFilter(*_EVERYTHING)]), 3)
    if bindings:
        creations = [
            _CREATE.AclCreation(
                acl.resource_type,
                acl.resource_name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission,
            )
            for acl in bindings
        ]
        results = broker.ask_as_admin(_CREATE(creations), 3).results
        assert not any(result.error_code for result in results), results
    broker.wait_until(lambda: _known_acls(broker) == bindings)


def _known_acls(broker: TableBroker) -> set[Acl]:
    answer = broker.ask_as_admin(messages.DescribeAclsRequest(*_EVERYTHING), 3)
    assert answer.error_code == ErrorCode.NONE, answer
    return {
        Acl(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            acl.principal,
            acl.host,
            AclOperation(acl.operation),
            Permission(acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    }


def play(broker: TableBroker) -> Iterator[Row]:
    """Yield request, rights and outcome of each row, and of random rules."""
    yield from _play_table(broker)
    yield from _play_rules(broker)


def _play_rules(broker: TableBroker) -> Iterator[Row]:
    """Request the allowed operations on some topics, and an idempotent producer (KIP-679)."""
    create = messages.CreateTopicsRequest
    broker.ask_as_admin(create([create.CreatableTopic(name, 1, 1) for name in NAMES], 10_000), 5)
    all_topics = messages.MetadataRequest(None)
    broker.wait_until(lambda: {topic.name for topic in broker.ask_as_admin(all_topics, 9).topics} >= set(NAMES))
    topic = messages.MetadataRequest.MetadataRequestTopic
    request = messages.MetadataRequest(
        [topic(name=name) for name in NAMES], False, include_topic_authorized_operations=True
    )
    for number in range(RULE_SETS):
        set_acls(broker, random_rules(number, broker.principal, broker.host))
        outcome = outcome_of(broker.ask(request, 9))
        producer = broker.ask(messages.InitProducerIdRequest(None, 60_000), 4)
        outcome["producer"] = ErrorCode(producer.error_code).name
        yield "rules", str(number), outcome


def _play_table(broker: TableBroker) -> Iterator[Row]:
    topic_id = set_up(broker)
    for case in TABLE:
        request = case.make(topic_id)
        for situation in situations_of(case, broker.principal):
            set_acls(broker, situation.acls)
            if case.before is not None:
                broker.ask_as_admin(case.before(topic_id), case.version)
            answer = broker.ask(request, case.version)
            yield case.name, situation.name, outcome_of(answer, has_texts=case.has_texts)
