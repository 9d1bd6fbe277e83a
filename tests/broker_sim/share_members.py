"""A share group and its members in a cluster in virtual time; see the fixture `shares`."""

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.protocol import messages
from tests.broker_sim.share.named_values import acquired

GROUP, TOPIC = "billing", "orders"
BEATS = 10
RECORD_LIMIT = 1
"""The acquire mode in which a fetch acquires no more than `max_records` records."""


class ShareMember:
    """A member with its own connection; it sends requests to broker 1 and waits for each response."""

    def __init__(self, cluster, member_id):
        self.cluster = cluster
        self.member_id = member_id
        self.client = cluster.client()
        self.share_epoch = 0

    def ask(self, request, version):
        pending = self.client.send(1, request, version)
        self.cluster.run_until(lambda: pending.done)
        return pending.response

    def beat(self, epoch):
        names = [TOPIC] if epoch == 0 else None
        request = messages.ShareGroupHeartbeatRequest(GROUP, self.member_id, epoch)
        request.subscribed_topic_names = names
        answer = self.ask(request, 1)
        assert not answer.error_code, answer
        return answer

    def join(self):
        """Join, and send heartbeats until the assignment arrives."""
        answer = self.beat(0)
        for _ in range(BEATS):
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return self
            self.cluster.advance(1_000)  # meanwhile the share coordinator initializes the states
            answer = self.beat(answer.member_epoch)
        raise AssertionError(answer)

    def fetch(self, max_records=10):
        """Fetch from partition 0; return the acquired ranges."""
        request = messages.ShareFetchRequest
        topic_id = self.cluster.nodes.controller.image.topics[TOPIC].topic_id
        topics = [request.FetchTopic(topic_id, [request.FetchPartition(0)])]
        fetch = request(
            GROUP,
            self.member_id,
            self.share_epoch,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1_000_000,
            max_records=max_records,
            batch_size=max_records,
            share_acquire_mode=RECORD_LIMIT,
            topics=[] if self.share_epoch else topics,
        )
        answer = self.ask(fetch, 2)
        assert not answer.error_code, answer
        self.share_epoch += 1
        return [
            acquired(one.first_offset, one.last_offset, one.delivery_count)
            for topic in answer.responses
            for partition in topic.partitions
            for one in partition.acquired_records
        ]

    def acknowledge(self, first_offset, last_offset, kind):
        request = messages.ShareAcknowledgeRequest
        topic_id = self.cluster.nodes.controller.image.topics[TOPIC].topic_id
        batch = request.AcknowledgementBatch(first_offset, last_offset, [kind])
        topics = [request.AcknowledgeTopic(topic_id, [request.AcknowledgePartition(0, [batch])])]
        answer = self.ask(request(GROUP, self.member_id, self.share_epoch, topics=topics), 2)
        assert not answer.error_code, answer
        self.share_epoch += 1


class Shares:
    """A broker with a topic of two partitions, and a share group that starts at the earliest offset."""

    def __init__(self):
        self.cluster = VirtualCluster(1, topics=[f"{TOPIC}:2:1"])
        self.cluster.set_group_configs(GROUP, {"share.auto.offset.reset": "earliest"})
        find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        self.member("nobody").ask(find, 6)
        self.cluster.advance(1_000)  # now the group has a coordinator

    def member(self, member_id):
        """Return a member that has not joined yet."""
        return ShareMember(self.cluster, member_id)

    @property
    def group(self):
        """The status of the group."""
        return self.cluster.group(GROUP)
