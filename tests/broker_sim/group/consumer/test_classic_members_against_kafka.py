"""Members of the classic protocol and their offsets, beside Kafka's own managers.

Needs Java and Maven; with REQUIRE_REAL_KAFKA set their absence is a failure.
"""

import os
import random
import uuid

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.group.group import GroupClient
from broker_sim.group.offsets import OffsetCommit, OffsetToCommit
from broker_sim.group.records import serde
from broker_sim.protocol import messages
from broker_sim.protocol.codec import decode, encode
from tests.broker_sim.group.kafka_peer import Peer, with_configs

from .test_against_kafka import STEPS, BothSides, ClassicMembers, RandomMembers

pytestmark = [pytest.mark.real_kafka, pytest.mark.soak(part="kafka_classes")]

JOIN, SYNC, LEAVE, TXN_COMMIT = 11, 14, 13, 28
VERSIONS = {JOIN: 9, SYNC: 5, LEAVE: 5, TXN_COMMIT: 5}
WALL_START_MS = 1_000_000
HOST = "localhost/127.0.0.1"
INITIAL_DELAYS_MS = 6_001
MEMBERS = 14
REPLACED = (3, 9, 0, 3)
FIRST_SEED, RUNS = 300, 5


class KafkaSide:
    """A classic group in Kafka's manager; `written` are its records, `answers` those of joins."""

    def __init__(self, peer):
        self._peer = peer
        self._sent = 0
        self.written = []
        self.answers = {}

    def _ask(self, *words):
        for line in self._peer.ask(*words):
            kind, *rest = line.split()
            if kind == "records":
                pairs = (pair.split(":") for pair in rest)
                self.written += [serde.decode_record(bytes.fromhex(key), bytes.fromhex(value)) for key, value in pairs]
            else:
                self.answers[int(rest[0])] = bytes.fromhex(rest[1])

    def _request(self, api, request):
        self._sent += 1
        body = b"".join(encode(request, VERSIONS[api])).hex()
        self._ask("request", api, VERSIONS[api], "client", self._sent, body)
        return self._sent

    def join(self, request):
        return self._request(JOIN, request)

    def joined(self, number):
        return decode(messages.JoinGroupResponse, VERSIONS[JOIN], self.answers[number])

    def sync(self, request):
        self._request(SYNC, request)

    def leave(self, request):
        self._request(LEAVE, request)

    def wait(self, by_ms):
        self._ask("wait", by_ms)


class OurSide:
    """The same scenario on the simulator's groups."""

    def __init__(self, bench):
        self._bench = bench
        self._client = GroupClient("client", HOST, VERSIONS[JOIN])
        self.answers = {}

    @property
    def written(self):
        return self._bench.log.records

    def join(self, request):
        number = len(self.answers)
        self.answers[number] = None
        self._bench.service.join_group(
            request, self._client, lambda answer: self.answers.update({number: answer}), pytest.fail
        )
        return number

    def joined(self, number):
        return self.answers[number]

    def sync(self, request):
        self._bench.service.sync_group(request, lambda _: None, pytest.fail)

    def leave(self, request):
        self._bench.service.leave_group(request.group_id, request.members, lambda _: None, pytest.fail)

    def wait(self, by_ms):
        self._bench.advance(by_ms)


class StaticMembers:
    """Actions of static members of one group, on both sides."""

    def __init__(self, side, metadata):
        self.side = side
        self._protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol("range", metadata)
        self.ids = {}
        """Current member ids by number; `all_ids` has previous ones, too."""
        self.all_ids = []
        self.generation = 0

    def join(self, number):
        return self.side.join(
            messages.JoinGroupRequest(
                "group", 45_000, 60_000, self.ids.get(number, ""), f"i{number}", "consumer", [self._protocol]
            )
        )

    def complete(self, joins):
        """Collect the join responses and sync, the leader last; return the members in the leader's response."""
        answers = {number: self.side.joined(sent) for number, sent in joins.items()}
        for number, answer in answers.items():
            assert not answer.error_code, answer
            if number not in self.ids:
                self.all_ids.append(answer.member_id)
            self.ids[number] = answer.member_id
            self.generation = answer.generation_id
        (leader,) = [n for n, answer in answers.items() if answer.member_id == answer.leader]
        for number in [*(each for each in answers if each != leader), leader]:
            self.side.sync(messages.SyncGroupRequest("group", self.generation, self.ids[number], f"i{number}"))
        return [each.member_id for each in answers[leader].members]

    def play(self):
        """Return the orders of members in responses, and the leaders."""
        first = self.complete({number: self.join(number) for number in self._arrive()})
        for number in REPLACED:
            del self.ids[number]
            answer = self.side.joined(self.join(number))
            self.ids[number] = answer.member_id
            self.all_ids.append(answer.member_id)
        leader_id = self.side.written[-1].value.leader
        (leader,) = [number for number, member_id in self.ids.items() if member_id == leader_id]
        identity = messages.LeaveGroupRequest.MemberIdentity(self.ids.pop(leader), f"i{leader}")
        self.side.leave(messages.LeaveGroupRequest("group", members=[identity]))
        last = self.complete({number: self.join(number) for number in list(self.ids)})
        stored = [record.value for record in self.side.written]
        orders = [[each.member_id for each in value.members] for value in stored]
        return first, last, orders, [value.leader for value in stored]

    def _arrive(self):
        return range(MEMBERS)


class NewMembers(StaticMembers):
    """All members join the first generation."""

    def complete(self, joins):
        if not self.ids:
            self.side.wait(INITIAL_DELAYS_MS)
        return super().complete(joins)


def test_replaced_static_members_are_in_kafkas_order(bench, peer_command):
    """The order is the same in the leader's response and in records, and so is the next leader."""
    metadata = bench.metadata("topic-0")
    with Peer(peer_command, WALL_START_MS) as peer:
        kafkas = NewMembers(KafkaSide(peer), metadata)
        expected = kafkas.play()
    ours = make_ours(bench, kafkas.all_ids, metadata)
    assert ours.play() == expected
    assert len(expected[2]) == 3 + len(REPLACED), "a record of the group, its generations, and each"


def make_ours(bench, member_ids, metadata):
    """Return our side, which draws Kafka's random ids in order."""
    bits = iter([uuid.UUID(each[-36:]).int for each in member_ids])
    bench.broker.random.getrandbits = lambda _count: next(bits)
    return NewMembers(OurSide(bench), metadata)


class CommittingSides(BothSides):
    """Both sides, with transactional offset commits."""

    def commit(self, request):
        """Compare the responses and records of TxnOffsetCommit."""
        answer = messages.TxnOffsetCommitResponse
        (topic,) = request.topics
        (partition,) = topic.partitions
        error_code = self._commit(request, topic.name, partition)
        partition_response = answer.TxnOffsetCommitResponsePartition(partition.partition_index, error_code)
        ours = answer(topics=[answer.TxnOffsetCommitResponseTopic(topic.name, partitions=[partition_response])])
        theirs = self._peer_asked(TXN_COMMIT, VERSIONS[TXN_COMMIT], request)
        self.compare(theirs, [ours], version=VERSIONS[TXN_COMMIT])
        return ErrorCode(error_code)

    def _commit(self, request, topic, partition):
        topic_state = self.bench.image.topics.get(topic)
        offset = OffsetToCommit(
            topic,
            bytes(16) if topic_state is None else topic_state.topic_id,
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata,
        )
        commit = OffsetCommit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            VERSIONS[TXN_COMMIT],
            [offset],
        )
        errors = []
        self.bench.service.txn_offset_commit(
            commit,
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            errors.extend,
            lambda error: errors.append(error.error_code),
        )
        (error_code,) = errors
        return error_code


class CommittingMembers(RandomMembers):
    """Members of both protocols; after each step a classic one commits in a transaction."""

    def __init__(self, sides, rng, classic, seed):
        super().__init__(sides, rng, classic)
        self.commits = random.Random(seed)
        self.seen = set()

    def step(self):
        super().step()
        rng = self.commits
        member_id, instance_id, generation = "", None, -1
        draw = rng.random()
        if draw < 0.8 and self.classic.members:
            member_id = rng.choice(list(self.classic.members))
            member = self.classic.members[member_id]
            generation = member["generation"] + rng.choice([0, 0, 0, -1, -2, 1])
            instance_id = member["instance_id"] if rng.random() < 0.8 else "i0"
        elif draw < 0.9:
            member_id, generation = rng.choice(["stranger", ""]), rng.choice([-1, 0, 3])
        request = messages.TxnOffsetCommitRequest
        offset = request.TxnOffsetCommitRequestPartition(
            rng.randrange(3), rng.randrange(100), committed_metadata="kept"
        )
        topic = request.TxnOffsetCommitRequestTopic(f"topic-{rng.randrange(5)}", partitions=[offset])
        error_code = self.sides.commit(request("id", "group", 1_000, 0, generation, member_id, instance_id, [topic]))
        group = self.sides.bench.shard.groups["group"] if self.is_known else None
        self.seen.add((group and group.group_type, bool(member_id), error_code))

    @property
    def is_known(self):
        return "group" in self.sides.bench.shard.groups


def test_random_transactional_commits_equal_kafkas(make_bench, peer_command):
    """Members are in groups of both protocols, which are migrated."""
    configs = {"group_consumer_assignment_interval_ms": 0, "group_consumer_migration_policy": "bidirectional"}
    chosen = os.environ.get("BROKER_SIM_SEED")
    first, runs = (FIRST_SEED, RUNS) if chosen is None else (int(chosen), 1)
    seen = set()
    for seed in range(first, first + runs):
        rng = random.Random(seed)
        with Peer(peer_command, WALL_START_MS, *with_configs(configs)) as peer:
            sides = CommittingSides(make_bench(as_version="4.3", **configs), peer, lambda _name, r=rng: r.random())
            classic = ClassicMembers(sides, rng, [["range"]])
            members = CommittingMembers(sides, rng, classic, seed)
            for step in range(STEPS):
                try:
                    members.step()
                except AssertionError as error:
                    raise AssertionError(f"seed {seed}, step {step}: {error}") from error
            seen |= members.seen
    if chosen is None:
        for error_code in (ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
            assert ("consumer", True, error_code) in seen
