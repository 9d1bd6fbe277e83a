"""Which rights share fetches, acknowledgements and states need, and what is told without them.

Which of all rights each API needs is compared with a real Kafka in `tests/integration/acls`.
"""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.protocol import messages
from broker_sim.share.share_state import SharePartitionKey, WrittenState
from broker_sim.share.state_apis import DELETE, INITIALIZE, READ, SUMMARY, WRITE, InitialState, NoArguments, ReaderEpoch
from tests.broker_sim.handlers.share.conftest import GROUP, TOPIC, acquisitions, answers
from tests.broker_sim.share.named_values import acquired

ACCEPT = 1
NONE = ErrorCode.NONE
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
STATE_OF_A_GROUP = {
    INITIALIZE: InitialState(7, 3),
    READ: ReaderEpoch(9),
    WRITE: WrittenState(0, 9, 5, 0, ()),
    SUMMARY: ReaderEpoch(9),
    DELETE: NoArguments(),
}


@pytest.fixture
def bench(guarded_bench):
    return guarded_bench


@pytest.fixture
def member(bench):
    """A member that has the records 0 to 4."""
    member = bench.member()
    bench.produce(5)
    assert member.fetched() == {0: [acquired(0, 4)]}
    return member


def test_group_that_a_member_may_not_read(bench, member):
    bench.deny(AclOperation.READ, ResourceType.GROUP, GROUP)
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    fetched = bench.wait(member.fetch(acknowledges={0: [(0, 4, ACCEPT)]})).response
    assert fetched == messages.ShareFetchResponse(error_code=code)
    acknowledged = bench.wait(member.acknowledge({0: [(0, 4, ACCEPT)]})).response
    assert acknowledged == messages.ShareAcknowledgeResponse(error_code=code)
    assert bench.share_partition().records.start_offset == 0


@pytest.mark.parametrize("operation", [AclOperation.DESCRIBE, AclOperation.DELETE])
def test_member_needs_no_other_right_on_its_group(bench, member, operation):
    bench.deny(operation, ResourceType.GROUP, GROUP)
    assert member.acknowledged({0: [(0, 4, ACCEPT)]}) == {0: NONE}


def test_topic_that_a_member_may_not_read_any_more(bench, member):
    bench.deny(AclOperation.READ, ResourceType.TOPIC, TOPIC)
    assert member.acknowledged({0: [(0, 4, ACCEPT)]}) == {0: DENIED}
    pending = bench.wait(member.fetch(acknowledges={0: [(0, 4, ACCEPT)]}))
    answer = answers(pending)[0]
    assert (answer.error_code, answer.acknowledge_error_code) == (DENIED, DENIED)
    assert bench.share_partition().records.start_offset == 0


def test_session_drops_topics_that_may_no_longer_be_read(bench, member):
    bench.produce(5)
    bench.deny(AclOperation.READ, ResourceType.TOPIC, TOPIC)
    pending = bench.wait(member.fetch())  # It names no partition.
    answer = answers(pending)[0]
    assert (answer.error_code, len(answer.records), answer.acquired_records) == (DENIED, 0, [])


def test_denied_topic_leaves_the_others_to_a_member(bench, member):
    other_id = bench.create_topic("other")
    begun = bench.wait(member.fetch([0], topic_id=other_id, max_wait_ms=100))
    assert not begun.response.error_code
    bench.produce(2, topic="other")
    bench.deny(AclOperation.READ, ResourceType.TOPIC, TOPIC)
    response = bench.wait(member.fetch(acknowledges={0: [(0, 4, ACCEPT)]})).response
    of_topic = {topic.topic_id: topic.partitions[0] for topic in response.responses}
    refused, served = of_topic[bench.topic_id], of_topic[other_id]
    assert (refused.error_code, refused.acknowledge_error_code) == (DENIED, DENIED)
    assert (len(refused.records), refused.acquired_records) == (0, [])
    assert (served.error_code, served.acknowledge_error_code) == (NONE, NONE)
    assert [one.last_offset for one in served.acquired_records] == [1]
    assert member.acknowledged({0: [(0, 1, ACCEPT)]}, topic_id=other_id) == {0: NONE}


def test_denied_topic_comes_before_an_unknown_partition(bench, member):
    bench.deny(AclOperation.READ, ResourceType.TOPIC, TOPIC)
    assert member.acknowledged({9: [(0, 4, ACCEPT)]}) == {9: DENIED}
    pending = bench.wait(member.fetch([9]))
    assert answers(pending)[9].error_code == DENIED


def test_member_needs_to_read_its_topics_only(bench):
    for operation in (AclOperation.WRITE, AclOperation.DESCRIBE):
        bench.deny(operation, ResourceType.TOPIC, TOPIC)
    member = bench.member(opens=False)
    pending = bench.wait(member.fetch(max_wait_ms=100))
    assert acquisitions(pending) == {}
    assert not any(answer.error_code for answer in answers(pending).values())


@pytest.mark.parametrize("api", STATE_OF_A_GROUP, ids=lambda api: api.verb)
def test_share_state_apis_need_cluster_action(bench, api):
    asked = STATE_OF_A_GROUP[api]
    keys = [SharePartitionKey(GROUP, bench.topic_id, number) for number in (0, 1)]
    request = api.request_of(GROUP, [(key, asked) for key in keys])
    request.topics += request.topics
    before = state(bench)
    bench.deny(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    response = bench.ask(request, 0)
    rows = [(topic.topic_id, row) for topic in response.results for row in topic.partitions]
    code, text = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
    row = api.response.PartitionResult
    assert rows == [(bench.topic_id, row(number, error_code=code, error_message=text)) for number in (0, 1, 0, 1)]
    assert state(bench) == before


def state(bench):
    """Return what the share coordinator has of the group's first share partition."""
    summaries = []
    key = SharePartitionKey(GROUP, bench.topic_id, 0)
    bench.broker.persister.read_summary(key, 0, summaries.append)
    bench.cluster.run_until(lambda: summaries, 60_000)
    return summaries[0]


@pytest.mark.parametrize(("epoch", "next_epoch"), [(2, 3), (-1, 2)])
def test_authorizer_fails_on_a_missing_topic(bench, member, epoch, next_epoch):
    """As in Kafka, the whole request fails, and nothing of it is done; the session goes on."""
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    member.epoch = epoch
    acknowledged = bench.wait(member.acknowledge({0: [(0, 4, ACCEPT)]}, topic_id=b"unknown id 16 by"))
    assert acknowledged.response == messages.ShareAcknowledgeResponse(error_code=failed)
    member.epoch = next_epoch
    fetched = bench.wait(member.fetch([0], topic_id=b"unknown id 16 by", max_wait_ms=10_000))
    assert fetched.response == messages.ShareFetchResponse(error_code=failed)
    forgot = bench.wait(member.fetch(forgotten=[0], topic_id=b"unknown id 16 by", max_wait_ms=1))
    assert forgot.response.error_code == NONE
    assert member.acknowledged({0: [(0, 4, ACCEPT)]}) == {0: NONE}


def test_request_with_an_unknown_topic_fetches_and_acknowledges_nothing(bench, member):
    bench.produce(3)
    request = messages.ShareFetchRequest
    batches = [request.AcknowledgementBatch(0, 4, [ACCEPT])]
    topics = [
        request.FetchTopic(bench.topic_id, [request.FetchPartition(0, acknowledgement_batches=batches)]),
        request.FetchTopic(b"unknown id 16 by", [request.FetchPartition(0)]),
    ]
    pending = bench.wait(member.send(request(max_wait_ms=500, max_records=9, topics=topics)))
    assert pending.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    records = bench.share_partition().records
    assert (records.start_offset, records.end_offset) == (0, 4)
