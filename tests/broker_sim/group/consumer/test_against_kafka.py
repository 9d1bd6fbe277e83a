"""Kafka's own group manager and ours get the same requests, and write and answer the same.

Members are of both protocols, and groups move between them: a group that has become a classic one goes
back with the next member of the new protocol, before it has rebalanced.

Needs Java and Maven; with REQUIRE_REAL_KAFKA set their absence is a failure. Set BROKER_SIM_SEED to
play another run: the seed is in a failure. Of 74 seeds one still
differs, in the order in which the records of two expressions are written (4, without an interval).
"""

import os
import random

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.group.group import GroupClient
from broker_sim.group.records import serde
from broker_sim.protocol import messages
from broker_sim.protocol.codec import decode, encode
from broker_sim.protocol.message import to_dict
from tests.broker_sim.group.kafka_peer import Peer, with_configs

pytestmark = [pytest.mark.real_kafka, pytest.mark.soak(part="kafka_classes")]

HEARTBEAT, DESCRIBE = 68, 69
JOIN, SYNC, BEAT, LEAVE = 11, 14, 12, 13
JOIN_VERSION, SYNC_VERSION, BEAT_VERSION, LEAVE_VERSION = 9, 5, 4, 5
FIRST_SEED, RUNS = 112, 6
STEPS = 120
HOST = "localhost/127.0.0.1"


class BothSides:
    """The simulator and Kafka's manager; each step runs on both and must have the same effects."""

    def __init__(self, bench, peer, make_id):
        self.bench = bench
        self.peer = peer
        self._make_id = make_id
        self._numbers = 0
        self._seen = 0

    def compare(self, theirs, answers=(), *, version=1):
        """Compare the records and responses since the last call."""
        written = []
        for line in theirs:
            if line.startswith("records"):
                pairs = (pair.split(":") for pair in line.split()[1:])
                written += [serde.decode_record(bytes.fromhex(k), bytes.fromhex(v) or None) for k, v in pairs]
        new, self._seen = self.bench.log.records[self._seen :], len(self.bench.log.records)
        for ours, theirs_ in zip(new, written, strict=False):
            assert as_plain(ours.key) == as_plain(theirs_.key)
            assert as_plain(ours.value) == as_plain(theirs_.value), as_plain(ours.key)
        assert len(new) == len(written), "records"
        expected = [line.split()[2] for line in theirs if line.startswith("answer")]
        assert len(answers) == len(expected)
        for answer, text in zip(answers, expected, strict=True):
            assert as_plain(answer) == as_plain(decode(type(answer), version, bytes.fromhex(text)))

    def heartbeat(self, request, version=1):
        response = without_texts(self.bench.send(request, version))
        self.bench.run_later()
        theirs = self.peer.ask("request", HEARTBEAT, version, "client", 1, b"".join(encode(request, version)).hex())
        self.compare(theirs, response, version=version)
        return response[0]

    # -- the classic protocol -------------------------------------------------------------------

    def join(self, request):
        """The member id is fixed, so that neither side draws a random one and a seed always gives the same run."""
        theirs = self._peer_asked(JOIN, JOIN_VERSION, request)
        answers = []
        self.bench.service.join_group(
            request,
            GroupClient("client", HOST, JOIN_VERSION),
            answers.append,
            lambda error: answers.append(messages.JoinGroupResponse(error_code=error.error_code)),
        )
        self.bench.run_later()
        self.compare(theirs, without_names(answers), version=JOIN_VERSION)
        return answers[0]

    def sync(self, request):
        answers = []
        self.bench.service.sync_group(
            request,
            answers.append,
            lambda error: answers.append(messages.SyncGroupResponse(error_code=error.error_code)),
        )
        self.compare(self._peer_asked(SYNC, SYNC_VERSION, request), answers, version=SYNC_VERSION)
        return answers[0]

    def beat(self, request):
        answer = messages.HeartbeatResponse(error_code=self.bench.heart(request))
        self.compare(self._peer_asked(BEAT, BEAT_VERSION, request), [answer], version=BEAT_VERSION)
        return answer

    def leave(self, request):
        answers = []
        self.bench.service.leave_group(
            request.group_id,
            request.members,
            lambda left: answers.append(messages.LeaveGroupResponse(members=left)),
            lambda error: answers.append(messages.LeaveGroupResponse(error_code=error.error_code)),
        )
        theirs = self._peer_asked(LEAVE, LEAVE_VERSION, request)
        self.compare(theirs, answers, version=LEAVE_VERSION)

    def _peer_asked(self, api, version, request):
        body = b"".join(encode(request, version)).hex()
        return self.peer.ask("request", api, version, "client", 1, body)

    # -- others ---------------------------------------------------------------------------------

    @property
    def is_classic(self):
        group = self.bench.shard.groups.get("group")
        return group is not None and group.group_type == "classic" and not group.is_empty

    def describe(self, group_id):
        group = self.bench.shard.groups.get(group_id)
        if group is not None and group.group_type != "consumer":
            return
        request = messages.ConsumerGroupDescribeRequest([group_id])
        theirs = self.peer.ask("request", DESCRIBE, 1, "client", 1, b"".join(encode(request, 1)).hex())
        response = messages.ConsumerGroupDescribeResponse(groups=[self.bench.describe(group_id)])
        self.compare(theirs, [response])

    def set_topic(self, name, partitions):
        topic_id = self.bench.set_topic(name, partitions, self._make_id(name))
        self.compare(self.peer.ask("topic", name, topic_id.hex(), partitions))

    def delete_topic(self, name):
        self.bench.delete_topic(name)
        self.compare(self.peer.ask("delete", name))

    def wait(self, by_ms):
        self.bench.advance(by_ms)
        self.compare(self.peer.ask("wait", by_ms))

    def fail_over(self):
        self.bench.fail_over()
        self.compare(self.peer.ask("load"))


def as_plain(value):
    """Return plain values, with the topics of assignments sorted, because table orders differ."""
    if value is None:
        return None
    plain = to_dict(value)
    sort_topics(plain)
    return plain


def sort_topics(plain):
    if isinstance(plain, dict):
        for value in plain.values():
            sort_topics(value)
    elif isinstance(plain, list):
        for value in plain:
            sort_topics(value)
        if plain and isinstance(plain[0], dict) and "topic_id" in plain[0]:
            plain.sort(key=lambda topic: topic["topic_id"])
        elif plain and all(isinstance(value, (int, str)) for value in plain):
            plain.sort()


def without_texts(answers):
    """Return the compared parts of responses, without error messages."""
    for answer in answers:
        answer.error_message = None
    return answers


def without_names(answers):
    """Return joins with None for an empty protocol name, which the handler chooses."""
    for answer in answers:
        answer.protocol_name = answer.protocol_name or ""
    return answers


class ClassicMembers:
    """Members of the classic protocol in the same group."""

    def __init__(self, sides, rng, names):
        self.sides = sides
        self.rng = rng
        self.names = names
        self.members = {}
        self._made = 0

    def step(self):
        draw = self.rng.random()
        if self.sides.is_classic:
            # Its rebalances are the claims of other tests.
            if self.members:
                self.beat(self.rng.choice(list(self.members)))
        elif draw < 0.3 or not self.members:
            self.join_new()
        elif draw < 0.5:
            self.join_again(self.rng.choice(list(self.members)))
        elif draw < 0.7:
            self.sync(self.rng.choice(list(self.members)))
        elif draw < 0.9:
            self.beat(self.rng.choice(list(self.members)))
        else:
            self.leave()

    def join_new(self):
        if "group" not in self.sides.bench.shard.groups or self.sides.bench.group.is_empty:
            return  # it would found a classic group
        rng = self.rng
        self._made += 1
        member_id = f"classic-{rng.getrandbits(32):08x}-{self._made}"
        member = {
            "instance_id": None,
            "session_timeout_ms": rng.choice([6_000, 45_000]),
            "rebalance_timeout_ms": rng.choice([5_000, 60_000]),
            "topics": self.topics(),
            "owned": {},
        }
        self._join(member_id, member)

    def join_again(self, member_id):
        member = self.members.pop(member_id)
        if self.rng.random() < 0.3:
            member["topics"] = self.topics()
        if self.rng.random() < 0.5:
            member["owned"] = {}
        self._join(member_id, member)

    def topics(self):
        return self.rng.sample([f"topic-{number}" for number in range(5)], self.rng.randrange(4))

    def _join(self, member_id, member):
        subscription = messages.ConsumerProtocolSubscription
        metadata = subscription(
            member["topics"],
            None,
            [subscription.TopicPartition(*owned) for owned in member["owned"].items()],
            -1,
            self.rng.choice([None, "rack"]),
        )
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
        version = self.rng.choice([1, 3])
        encoded = version.to_bytes(2, "big") + b"".join(encode(metadata, version))
        answer = self.sides.join(
            messages.JoinGroupRequest(
                "group",
                member["session_timeout_ms"],
                member["rebalance_timeout_ms"],
                member_id,
                member["instance_id"],
                "consumer",
                [protocol(name, encoded) for name in self.rng.choice(self.names)],
            )
        )
        if not answer.error_code:
            member["generation"] = answer.generation_id
            self.members[answer.member_id] = member

    def sync(self, member_id):
        member = self.members[member_id]
        answer = self.sides.sync(
            messages.SyncGroupRequest(
                "group",
                member["generation"] + (self.rng.random() < 0.05),
                member_id,
                member["instance_id"],
                "consumer",
                self.rng.choice(["range", "range", "sticky"]),
            )
        )
        if not answer.error_code and self.rng.random() < 0.7:
            assigned = bytes(answer.assignment)
            decoded = decode(messages.ConsumerProtocolAssignment, assigned[1], assigned, 2)
            member["owned"] = {of.topic: of.partitions for of in decoded.assigned_partitions}

    def beat(self, member_id):
        member = self.members[member_id]
        answer = self.sides.beat(
            messages.HeartbeatRequest(
                "group", member["generation"] + (self.rng.random() < 0.05), member_id, member["instance_id"]
            )
        )
        if answer.error_code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}:
            del self.members[member_id]

    def leave(self):
        member_id = self.rng.choice([*self.members, "stranger"])
        member = self.members.pop(member_id, {"instance_id": None})
        identity = messages.LeaveGroupRequest.MemberIdentity(member_id, member["instance_id"])
        self.sides.leave(messages.LeaveGroupRequest("group", members=[identity]))


class RandomMembers:
    """Members of one group that send valid and invalid requests."""

    def __init__(self, sides, rng, classic=None):
        self.sides = sides
        self.rng = rng
        self.topics = {}
        self.members = {}
        self.classic = classic
        self._made = 0

    def step(self):
        rng = self.rng
        self.sides.wait(1)  # so that no two timers end at the same time
        if self.classic is not None and rng.random() < 0.35:
            self.classic.step()
            return
        if self.classic is not None and rng.random() < 0.06:
            self.all_leave()  # only classic members are left, if there are any
            return
        draw = rng.random()
        if draw < 0.12 or not self.members:
            self.join()
        elif draw < 0.70:
            self.beat(rng.choice(list(self.members)))
        elif draw < 0.76:
            self.leave(rng.choice(list(self.members)))
        elif draw < 0.84:
            self.sides.wait(rng.choice([1, 10, 500, 1_000, 3_000, 11_000]))
        elif draw < 0.87:
            self.sides.wait(rng.choice([30_000, 45_100, 61_000]))
        elif draw < 0.93:
            self.change_topics()
        elif draw < 0.95:
            self.sides.fail_over()
        else:
            self.sides.describe("group")

    def change_topics(self):
        rng = self.rng
        name = f"topic-{rng.randrange(5)}"
        if name in self.topics and rng.random() < 0.3:
            del self.topics[name]
            self.sides.delete_topic(name)
        else:
            count = self.topics.get(name, 0) + rng.choice([1, 2, 3, 7, 20])
            self.topics[name] = count
            self.sides.set_topic(name, count)

    def subscription(self):
        rng = self.rng
        if rng.random() < 0.25:
            return {
                "subscribed_topic_names": rng.choice([[], [], ["topic-0"]]),
                "subscribed_topic_regex": rng.choice(["topic-[0-2]", "topic-.*", "none", "topic-4"]),
            }
        names = [f"topic-{number}" for number in range(6)]
        count = 3 if rng.random() < 0.7 else rng.randrange(5)
        chosen = names[:count] if rng.random() < 0.6 else rng.sample(names, count)
        return {"subscribed_topic_names": chosen, "subscribed_topic_regex": rng.choice([None, ""])}

    def join(self):
        rng = self.rng
        if self.members and rng.random() < 0.2:
            member_id = rng.choice(list(self.members))
            instance_id = self.members[member_id]["instance_id"]
        else:
            self._made += 1
            member_id = f"{rng.getrandbits(64):016x}-{self._made}"
            instance_id = f"i{rng.randrange(4)}" if rng.random() < 0.3 else None
        request = messages.ConsumerGroupHeartbeatRequest(
            "group",
            member_id,
            0,
            instance_id,
            rng.choice([None, "rack"]),
            rng.choice([5_000, 60_000]),
            server_assignor=rng.choice([None, None, None, "uniform", "range"]),
            topic_partitions=[],
            **self.subscription(),
        )
        answer = self.sides.heartbeat(request)
        if not answer.error_code:
            self.members[member_id] = {
                "epoch": answer.member_epoch,
                "instance_id": instance_id,
                "owned": owned(answer) or {},
            }

    def beat(self, member_id):
        rng = self.rng
        member = self.members[member_id]
        epoch = member["epoch"]
        if rng.random() < 0.05:
            epoch += rng.choice([-1, 1])
        partitions = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
        owned_partitions = [partitions(topic, numbers) for topic, numbers in member["owned"].items()]
        changes = {}
        if rng.random() < 0.1:
            changes = self.subscription()
        if rng.random() < 0.1:
            changes["rebalance_timeout_ms"] = 60_000
        request = messages.ConsumerGroupHeartbeatRequest(
            "group",
            member_id,
            epoch,
            member["instance_id"],
            topic_partitions=rng.choice([owned_partitions, owned_partitions, None]),
            **changes,
        )
        if epoch <= 0:
            return
        answer = self.sides.heartbeat(request)
        if answer.error_code:
            del self.members[member_id]
        else:
            member["epoch"] = answer.member_epoch
            assigned = owned(answer)
            if assigned is not None and rng.random() < 0.8:
                member["owned"] = assigned

    def all_leave(self):
        for member_id, member in self.members.items():
            self.sides.heartbeat(messages.ConsumerGroupHeartbeatRequest("group", member_id, -1, member["instance_id"]))
        self.members.clear()

    def leave(self, member_id):
        rng = self.rng
        member = self.members.pop(member_id)
        if rng.random() < 0.3:
            return  # without a word
        static = member["instance_id"] is not None
        epoch = rng.choice([-1, -2]) if static else -1
        self.sides.heartbeat(messages.ConsumerGroupHeartbeatRequest("group", member_id, epoch, member["instance_id"]))


def owned(answer):
    if answer.assignment is None:
        return None
    return {topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions}


def play(make_bench, peer_command, configs, make_members):
    """Run the seeds; a failure names its seed."""
    chosen = os.environ.get("BROKER_SIM_SEED")
    first, runs = (FIRST_SEED, RUNS) if chosen is None else (int(chosen), 1)
    for seed in range(first, first + runs):
        rng = random.Random(seed)
        with Peer(peer_command, 1_000_000, *with_configs(configs)) as peer:
            sides = BothSides(make_bench(as_version="4.3", **configs), peer, lambda _name, r=rng: r.random())
            members = make_members(sides, rng)
            for step in range(STEPS):
                try:
                    members.step()
                except AssertionError as error:
                    raise AssertionError(f"seed {seed}, step {step}: {error}") from error


@pytest.mark.parametrize("interval_ms", [0, 1_000])
def test_random_requests_are_served_as_by_kafka(make_bench, peer_command, interval_ms):
    """All records and responses are equal, except for the order of topics."""
    configs = {"group_consumer_assignment_interval_ms": interval_ms}
    play(make_bench, peer_command, configs, RandomMembers)


@pytest.mark.parametrize("policy", ["bidirectional", "upgrade", "downgrade"])
def test_random_requests_of_both_protocols_are_served_as_by_kafka(make_bench, peer_command, policy):
    """The same for classic members of consumer groups, and for migrated groups."""
    configs = {"group_consumer_assignment_interval_ms": 0, "group_consumer_migration_policy": policy}

    def members(sides, rng):
        return RandomMembers(sides, rng, ClassicMembers(sides, rng, [["range"]]))

    play(make_bench, peer_command, configs, members)
