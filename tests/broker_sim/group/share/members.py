"""Members of share groups, in virtual time."""

from broker_sim.group.group import GroupClient
from broker_sim.protocol import messages
from broker_sim.share.share_state import SharePartitionKey

GROUP = "share"
HOST = "localhost/127.0.0.1"


class ShareMember:
    """A member of a share group; `answer` is the last response, None while the request waits."""

    def __init__(self, shares, member_id, topics):
        self.shares = shares
        self.member_id = member_id
        self.topics = list(topics)
        self.epoch = 0
        self.assigned = {}
        self.answer = None

    def join(self, **changes):
        """Join or rejoin; returns the error."""
        self.epoch, self.assigned = 0, {}
        return self.beat(**{"subscribed_topic_names": self.topics, **changes})

    def leave(self):
        return self.beat(member_epoch=-1)

    def beat(self, **fields):
        """Send a heartbeat; returns the error."""
        request = messages.ShareGroupHeartbeatRequest(
            **{
                "group_id": GROUP,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "subscribed_topic_names": None,
                **fields,
            }
        )
        self.answer = None
        self.shares.service.heartbeat(request, GroupClient("client", HOST, 1), self._take, self._fail)
        return None if self.answer is None else self.answer.error_code

    def _fail(self, error):
        self.answer = messages.ShareGroupHeartbeatResponse(
            error_code=error.error_code, error_message=error.error_message
        )

    def _take(self, answer):
        self.answer = answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = {topic.topic_id: sorted(topic.partitions) for topic in answer.assignment.topic_partitions}


class Shares:
    """The share groups of a bench."""

    def __init__(self, bench):
        self.bench = bench
        self.service = bench.service.shares
        self.states = bench.persister

    @property
    def group(self):
        return self.bench.shard.groups.get(GROUP)

    def member(self, member_id, *topics):
        return ShareMember(self, member_id, topics)

    def settle(self, *members, beats=3):
        """Send several heartbeats per member, enough to initialize share partitions and to receive assignments."""
        for _ in range(beats):
            self.bench.run_later()
            for member in members:
                member.beat()
        self.bench.run_later()

    def describe(self, group_id=GROUP):
        return self.service.describe([group_id])[0]

    @staticmethod
    def key(topic_id, number):
        return SharePartitionKey(GROUP, topic_id, number)

    def offsets(self, *topics, group_id=GROUP):
        """Return the described offsets; topics are (name, partition numbers), by default all topics."""
        request = messages.DescribeShareGroupOffsetsRequest
        request_topics = [request.DescribeShareGroupOffsetsRequestTopic(*topic) for topic in topics]
        responses = []
        self.service.describe_offsets(
            request.DescribeShareGroupOffsetsRequestGroup(group_id, request_topics or None),
            responses.append,
            responses.append,
        )
        return responses[0]

    def alter(self, *topics, group_id=GROUP):
        """Set offsets; topics are (name, {number: offset})."""
        request = messages.AlterShareGroupOffsetsRequest
        request_topics = [
            request.AlterShareGroupOffsetsRequestTopic(
                name, [request.AlterShareGroupOffsetsRequestPartition(*each) for each in offsets.items()]
            )
            for name, offsets in topics
        ]
        responses = []
        self.service.alter_offsets(request(group_id, request_topics), responses.append, responses.append)
        return responses[0]

    def delete(self, *names, group_id=GROUP):
        """Delete the offsets of topics."""
        request = messages.DeleteShareGroupOffsetsRequest
        request_topics = [request.DeleteShareGroupOffsetsRequestTopic(name) for name in names]
        responses = []
        self.service.delete_offsets(request(group_id, request_topics), responses.append, responses.append)
        return responses[0]

    def delete_group(self, *group_ids):
        results = []
        self.bench.service.delete_groups(group_ids or [GROUP], results.extend)
        return {result.group_id: result.error_code for result in results}
