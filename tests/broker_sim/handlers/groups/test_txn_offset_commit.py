"""Claims about TxnOffsetCommit: who may, what it asks first, and what becomes of the offsets."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.api_table import ApiTable
from broker_sim.handlers.context import RequestContext
from broker_sim.handlers.groups.txn_offset_commit import handle_txn_offset_commit
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey

SPEC = ApiTable().get(ApiKey.TXN_OFFSET_COMMIT)
NAMES_TOPICS_BY_ID = 6
VERSIONS = range(SPEC.min_version, SPEC.max_version + 1)
ADDS = 5
COMMIT = messages.TxnOffsetCommitRequest
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


class Producer:
    """A producer with a transactional id, on the same clients as its user."""

    def __init__(self, user, name="id"):
        self.user = user
        self.name = name
        self.coordinator = self._find()
        request = messages.InitProducerIdRequest(name, 60_000)
        user.until(lambda: not self._take(user.ask(request, 5, self.coordinator)))

    def _find(self):
        found = []

        def is_known():
            found[:] = [self.user.find(self.name, key_type=1)]
            return not found[0].error_code

        self.user.until(is_known)
        return found[0].node_id

    def _take(self, answer):
        self.identity = answer.producer_id, answer.producer_epoch
        return answer.error_code

    def add_offsets(self, group_id="g"):
        request = messages.AddOffsetsToTxnRequest(self.name, *self.identity, group_id)
        assert not self.user.ask(request, 4, self.coordinator).error_code

    def request(self, offsets, group_id="g", version=ADDS, member="", generation=-1):
        partitions = [
            COMMIT.TxnOffsetCommitRequestPartition(index, offset, committed_metadata="kept")
            for index, offset in offsets.items()
        ]
        named = {"topic_id": self.user.topic_id()} if version >= NAMES_TOPICS_BY_ID else {"name": "t"}
        topics = [COMMIT.TxnOffsetCommitRequestTopic(**named, partitions=partitions)]
        request = COMMIT(self.name, group_id, *self.identity, topics=topics)
        if version >= 3:
            request.member_id, request.generation_id_or_member_epoch = member, generation
        return request

    def commit(self, offsets, group_id="g", version=ADDS, broker=None, **more):
        """Return the error codes by partition."""
        request = self.request(offsets, group_id, version, **more)
        answer = self.user.ask(request, version, broker or self.user.leader(group_id))
        (topic,) = answer.topics
        return {part.partition_index: part.error_code for part in topic.partitions}

    def end(self, committed=True):
        request = messages.EndTxnRequest(self.name, *self.identity, committed)
        answer = self.user.ask(request, 5, self.coordinator)
        assert not answer.error_code
        self.identity = answer.producer_id, answer.producer_epoch


@pytest.fixture
def producer(user):
    return Producer(user)


@pytest.mark.parametrize("version", VERSIONS)
def test_offset_counts_once_the_transaction_is_committed_in_every_version(user, producer, version):
    user.commit("g", {0: 1})
    producer.add_offsets()
    assert producer.commit({0: 5, 1: 7}, version=version) == {0: 0, 1: 0}
    assert user.fetch("g", [0, 1]) == {("t", 0): 1, ("t", 1): -1}
    producer.end()
    user.until(lambda: user.fetch("g", [0, 1]) == {("t", 0): 5, ("t", 1): 7})


def test_offset_of_aborted_transaction_is_dropped(user, producer):
    user.commit("g", {0: 1})
    producer.commit({0: 5, 1: 7})
    producer.end(committed=False)
    user.until(lambda: user.fetch("g", [0, 1], stable=True) == {("t", 0): 1, ("t", 1): -1})


@pytest.mark.parametrize("partitions", [None, [0, 1]])
def test_who_asks_for_stable_offsets_is_told_of_the_transaction(user, producer, partitions):
    user.commit("g", {0: 1, 1: 2})
    producer.commit({0: 5})
    request = user.fetch_request("g", partitions, version=9, stable=True)
    (group,) = user.ask(request, 9, user.leader("g")).groups
    (topic,) = group.topics
    assert [(p.partition_index, p.committed_offset, p.error_code) for p in topic.partitions] == [
        (0, -1, UNSTABLE),
        (1, 2, 0),
    ]


def test_group_without_offsets_of_its_own_shows_pending_ones_as_unstable_by_name_only(user, producer):
    producer.commit({0: 5})
    assert user.fetch("g", stable=True) == {}
    request = user.fetch_request("g", [0], version=9, stable=True)
    (group,) = user.ask(request, 9, user.leader("g")).groups
    assert group.topics[0].partitions[0].error_code == UNSTABLE


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (0, ErrorCode.INVALID_TXN_STATE),
        (3, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE),
        (5, ErrorCode.NONE),
    ],
)
def test_partition_of_the_group_has_to_be_added_before_version_5(user, producer, version, code):
    assert producer.commit({0: 5}, version=version) == {0: code}
    pending = {} if code else {0: UNSTABLE}
    request = user.fetch_request("g", [0], version=9, stable=True)
    (group,) = user.ask(request, 9, user.leader("g")).groups
    (partition,) = group.topics[0].partitions
    assert partition.error_code == pending.get(0, 0)


def test_transaction_without_verification_is_not_asked_for(make_user):
    user = make_user(transaction_partition_verification_enable="false")
    assert Producer(user).commit({0: 5}, version=4) == {0: 0}


def test_zombie_is_fenced(user, producer):
    producer.commit({0: 1})
    producer.end()
    zombie = Producer.__new__(Producer)
    zombie.user, zombie.name, zombie.coordinator = user, producer.name, producer.coordinator
    zombie.identity = producer.identity[0], producer.identity[1] - 1
    user.until(lambda: user.fetch("g", [0], stable=True) == {("t", 0): 1})
    for version in (4, 5):
        assert zombie.commit({0: 9}, version=version) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}


def test_partitions_that_do_not_exist_fail_by_themselves_and_come_first(user, producer):
    codes = producer.commit({0: 5, 9: 1})
    assert list(codes.items()) == [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, 0)]


def test_request_without_a_valid_partition_asks_nobody(user, producer):
    producer.name = ""
    wrong = user.leader("g") % 3 + 1
    unknown = {9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert producer.commit({9: 1}, broker=wrong) == unknown


def test_group_needs_a_name(producer, user):
    codes = producer.commit({0: 1}, "", broker=user.leader("g"))
    assert codes == {0: ErrorCode.INVALID_GROUP_ID}


def test_other_broker_is_not_the_coordinator(user, producer):
    wrong = user.leader("g") % 3 + 1
    assert producer.commit({0: 1}, broker=wrong) == {0: ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize(
    ("version", "code"), [(0, ErrorCode.COORDINATOR_NOT_AVAILABLE), (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
)
def test_partition_that_is_being_loaded_is_told_by_version(user, producer, version, code):
    producer.commit({0: 1})
    broker = user.cluster.nodes.brokers[user.leader("g")]
    partition = user.partition("g")
    broker.groups.runtime.resigned(partition)
    broker.groups.runtime.elected(partition, 7)
    context = RequestContext(broker, None, ApiKey.TXN_OFFSET_COMMIT, version, "test")
    answers = []
    # The partition has offsets of the transaction already, so nobody has to be asked.
    handle_txn_offset_commit(producer.request({0: 2}, version=version), context, answers.append)
    (answer,) = answers
    assert answer.topics[0].partitions[0].error_code == code


def test_unknown_group_has_no_generation(producer):
    codes = producer.commit({0: 1}, member="m", generation=3)
    assert codes == {0: ErrorCode.ILLEGAL_GENERATION}


def test_member_is_checked_if_one_is_named(user, producer):
    member = user.stable_member()
    assert producer.commit({0: 1}, member=member, generation=1) == {0: 0}
    assert producer.commit({0: 1}) == {0: 0}
    assert producer.commit({0: 1}, member=member, generation=2) == {0: ErrorCode.ILLEGAL_GENERATION}
    assert producer.commit({0: 1}, member="m", generation=1) == {0: ErrorCode.UNKNOWN_MEMBER_ID}


def test_metadata_has_a_limit_and_its_group_is_there_all_the_same(make_user):
    user = make_user(offset_metadata_max_bytes=3)
    assert Producer(user).commit({0: 1}) == {0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    leader = user.cluster.nodes.brokers[user.leader("g")]
    assert list(leader.groups.shard("g").groups) == ["g"]


def test_answer_waits_for_the_replicas(make_user):
    user = make_user(offsets_commit_timeout_ms=2_000)
    producer = Producer(user)
    producer.commit({0: 1})
    for follower in user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g")):
        user.cluster.pause(follower)
    pending = user.send(producer.request({0: 2}), ADDS, user.leader("g"))
    user.cluster.advance(1_900)
    assert not pending.done
    user.cluster.run_until(lambda: pending.done)
    code = pending.response.topics[0].partitions[0].error_code
    assert code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_next_coordinator_has_the_open_transaction(user, producer):
    user.commit("g", {0: 1})
    producer.commit({0: 5})
    old = user.leader("g")
    new = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0]
    user.cluster.transfer_leadership(GROUP_METADATA_TOPIC, user.partition("g"), new)
    user.cluster.advance(10)
    assert user.leader("g") == new != old
    request = user.fetch_request("g", [0], version=9, stable=True)
    (group,) = user.ask(request, 9, new).groups
    assert group.topics[0].partitions[0].error_code == UNSTABLE
    producer.end()
    user.until(lambda: user.fetch("g", [0], stable=True) == {("t", 0): 5})
