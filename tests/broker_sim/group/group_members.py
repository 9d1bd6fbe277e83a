"""Members of the classic and the consumer protocol for tests of one shard."""

from broker_sim.errors import ErrorCode
from broker_sim.group.group import GroupClient
from broker_sim.protocol import messages

GROUP = "group"
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def raise_error(error):
    raise error


class ClassicMember:
    """A member of the classic protocol; `joined` and `synced` are the last responses, None while the request waits."""

    def __init__(self, bench, *, protocols=(("range", b"me"),), client_id="client", **options):
        self.bench = bench
        self.member_id = ""
        self.client_id = client_id
        self.generation = -1
        self.joined = self.synced = None
        self.answers = 0
        self.options = {
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            **options,
        }
        self.protocols = protocols

    def join(self, version=9, **changes):
        """Send one JoinGroup; `joined` is set to its response."""
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
        request = messages.JoinGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            protocols=[protocol(*each) for each in self.protocols],
            **{**self.options, **changes},
        )
        self.joined = None

        def answer(response):
            self.answers += 1
            self.joined = response
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED or not response.error_code:
                self.member_id = response.member_id
            if not response.error_code:
                self.generation = response.generation_id

        client = GroupClient(self.client_id, "/127.0.0.1", version)

        def fail(error):
            answer(messages.JoinGroupResponse(error_code=error.error_code))

        self.bench.service.join_group(request, client, answer, fail)
        return self

    def enter(self, **changes):
        """Join as clients do: first without a member id, then with the returned one."""
        self.join(**changes)
        if self.joined is not None and self.joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.join(**changes)
        return self

    def sync(self, assignments=None, **changes):
        """Send SyncGroup; raises ApiError. `synced` is set to the response."""
        assignment = messages.SyncGroupRequest.SyncGroupRequestAssignment
        request = messages.SyncGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.options.get("group_instance_id"),
            generation_id=self.generation,
            assignments=[assignment(*each) for each in (assignments or {}).items()],
        )
        for name, value in changes.items():
            setattr(request, name, value)
        self.synced = None

        def answer(response):
            self.synced = response

        self.bench.service.sync_group(request, answer, raise_error)
        return self

    def beat(self, **changes):
        """Send a heartbeat and return its error."""
        request = messages.HeartbeatRequest(
            GROUP, self.generation, self.member_id, self.options.get("group_instance_id")
        )
        for name, value in changes.items():
            setattr(request, name, value)
        return self.bench.heart(request)

    def leave(self):
        """Leave and return the member's error."""
        return self.bench.leave((self.member_id, self.options.get("group_instance_id")))[0]

    @property
    def is_leader(self):
        return self.joined.leader == self.member_id

    @property
    def error(self):
        """The error of the last join response, None while the request waits."""
        return None if self.joined is None else ErrorCode(self.joined.error_code)


class ConsumerMember:
    """A member of the consumer protocol; by default it owns the partitions that it was last assigned."""

    def __init__(self, bench, member_id, topics, options):
        self.bench = bench
        self.member_id = member_id
        self.epoch = 0
        self.owned = {}
        self.answer = None
        self.is_new = True
        self.options = {
            "group_id": GROUP,
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": list(topics) if topics else None,
            **options,
        }

    def join(self, **changes):
        """Join or rejoin; returns the error."""
        self.epoch, self.owned = 0, {}
        return self._send(**{"topic_partitions": [], **self.options, **changes})

    def beat(self, *, owned="unchanged", **changes):
        """Send a heartbeat with the owned partitions; returns the error."""
        if owned != "unchanged":
            self.owned = owned
        partitions = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
        topic_partitions = [partitions(topic, sorted(numbers)) for topic, numbers in self.owned.items()]
        instance_id = self.options.get("instance_id")
        return self._send(
            **{
                "group_id": self.options["group_id"],
                "instance_id": instance_id,
                "topic_partitions": topic_partitions,
                **changes,
            }
        )

    def leave(self, epoch=-1):
        """Leave with the given member epoch; returns the error."""
        self.epoch = epoch
        return self._send(group_id=self.options["group_id"], instance_id=self.options.get("instance_id"))

    def _send(self, **fields):
        version = fields.pop("version", 1)
        request = messages.ConsumerGroupHeartbeatRequest(
            **{"member_id": self.member_id, "member_epoch": self.epoch, **fields}
        )
        self.answers = self.bench.send(request, version)
        if not self.answers:
            return None
        (self.answer,) = self.answers
        if not self.answer.error_code:
            self.member_id = self.answer.member_id
            self.epoch = self.answer.member_epoch
            assignment = self.answer.assignment
            if assignment is not None:
                self.owned = {topic.topic_id: sorted(topic.partitions) for topic in assignment.topic_partitions}
        return ErrorCode(self.answer.error_code)

    @property
    def partitions(self):
        """All owned partitions by topic name."""
        names = self.bench.image.topic_names
        return {names[topic]: numbers for topic, numbers in self.owned.items()}
