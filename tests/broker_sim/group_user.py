"""A client of group coordinators, in a cluster in virtual time."""

from broker_sim.coordinator.runtime import partition_of_hash
from broker_sim.hash_order.hash_codes import java_hash_code
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.protocol import messages

COMMIT = messages.OffsetCommitRequest
FETCH = messages.OffsetFetchRequest
DELETE = messages.OffsetDeleteRequest
PARTITIONS = 5


class GroupUser:
    """Sends group requests and returns their responses."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.client = cluster.client()

    def other(self):
        """Return another client; on one connection a request waits for the responses to earlier ones."""
        return GroupUser(self.cluster)

    # -- coordinators -----------------------------------------------------------------------------

    def create_offsets_topic(self):
        self.until(lambda: not self.find("any").error_code)
        self.cluster.wait_until_in_sync()

    def until(self, condition, timeout_ms=20_000):
        """Advance the time until a condition holds that itself may send requests."""
        end_ms = self.cluster.now_ms + timeout_ms
        while not condition():
            assert self.cluster.now_ms < end_ms, "not reached"
            self.cluster.advance(10)

    def find(self, *group_ids, version=4, key_type=0, broker=1):
        """Return the coordinator of one group, or the coordinators of several."""
        find_request = messages.FindCoordinatorRequest
        if version < 4:
            return self.ask(find_request(group_ids[0], key_type), version, broker)
        request = find_request(key_type=key_type, coordinator_keys=list(group_ids))
        coordinators = self.ask(request, version, broker).coordinators
        return coordinators[0] if len(coordinators) == 1 else coordinators

    @staticmethod
    def partition(group_id):
        return partition_of_hash(java_hash_code(group_id), PARTITIONS)

    def leader(self, group_id):
        image = self.cluster.nodes.controller.image
        return image.topics[GROUP_METADATA_TOPIC].partitions[self.partition(group_id)].leader

    def topic_id(self, name="t"):
        return self.cluster.nodes.controller.image.topics[name].topic_id

    # -- requests ---------------------------------------------------------------------------------

    def send(self, request, version, broker):
        return self.client.send(broker, request, version)

    def ask(self, request, version, broker):
        pending = self.send(request, version, broker)
        self.cluster.run_until(lambda: pending.done)
        assert not pending.disconnected
        return pending.response

    def commit_request(self, group_id, offsets, version=9, member="", generation=-1, metadata=""):
        """Return a commit request for `{partition: offset}` or `{(topic, partition): offset}`."""
        topics = {}
        for key, offset in offsets.items():
            name, index = key if isinstance(key, tuple) else ("t", key)
            topic_key = {"topic_id": self.topic_id(name)} if version >= 10 else {"name": name}
            topic = topics.setdefault(name, COMMIT.OffsetCommitRequestTopic(**topic_key))
            part = COMMIT.OffsetCommitRequestPartition(index, offset, committed_metadata=metadata)
            topic.partitions.append(part)
        return COMMIT(group_id, generation, member, topics=list(topics.values()))

    def commit(self, group_id, offsets, version=9, broker=None, **more):
        """Commit offsets; return the error codes by topic and partition."""
        request = self.commit_request(group_id, offsets, version, **more)
        response = self.ask(request, version, broker or self.leader(group_id))
        return {
            (topic.name or topic.topic_id, part.partition_index): part.error_code
            for topic in response.topics
            for part in topic.partitions
        }

    def fetch_request(self, group_id, partitions=None, version=9, stable=False):
        """Return an offset fetch request for partitions of the topic t, by default for all offsets."""
        if version >= 8:
            topic_key = {"topic_id": self.topic_id()} if version >= 10 else {"name": "t"}
            topics = None
            if partitions is not None:
                topics = [FETCH.OffsetFetchRequestTopics(**topic_key, partition_indexes=partitions)]
            group = FETCH.OffsetFetchRequestGroup(group_id, topics=topics)
            return FETCH(groups=[group], require_stable=stable)
        topics = None
        if partitions is not None:
            topics = [FETCH.OffsetFetchRequestTopic("t", partitions)]
        return FETCH(group_id=group_id, topics=topics, require_stable=stable)

    def fetch(self, group_id, partitions=None, version=9, broker=None, stable=False):
        """Fetch offsets; return them by topic and partition, or the group's error code if it has one."""
        request = self.fetch_request(group_id, partitions, version, stable)
        response = self.ask(request, version, broker or self.leader(group_id))
        return offsets_in(response, version)

    def delete_offsets(self, group_id, partitions, broker=None):
        topics = [
            DELETE.OffsetDeleteRequestTopic("t", [DELETE.OffsetDeleteRequestPartition(index) for index in partitions])
        ]
        return self.ask(DELETE(group_id, topics), 0, broker or self.leader(group_id))

    def delete_groups(self, *group_ids, broker=None, version=2):
        request = messages.DeleteGroupsRequest(list(group_ids))
        response = self.ask(request, version, broker or self.leader(group_ids[0]))
        return {result.group_id: result.error_code for result in response.results}

    def listed(self, version=5, broker=None, **filters):
        """Return the groups of one broker or of all, by id."""
        groups = {}
        for node in [broker] if broker else list(self.cluster.nodes.brokers):
            response = self.ask(messages.ListGroupsRequest(**filters), version, node)
            assert not response.error_code
            groups.update({group.group_id: group for group in response.groups})
        return groups

    # -- members of the group "g" -----------------------------------------------------------------

    @staticmethod
    def join(member_id="", **options):
        """Return a JoinGroup request."""
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol("range", b"me")
        return messages.JoinGroupRequest(
            **{
                "group_id": "g",
                "session_timeout_ms": 10_000,
                "rebalance_timeout_ms": 60_000,
                "member_id": member_id,
                "protocol_type": "consumer",
                "protocols": [protocol],
                **options,
            }
        )

    @staticmethod
    def sync(member_id, generation_id=1, assignments=(), **options):
        """Return a SyncGroup request."""
        assignment = messages.SyncGroupRequest.SyncGroupRequestAssignment
        return messages.SyncGroupRequest(
            **{
                "group_id": "g",
                "generation_id": generation_id,
                "member_id": member_id,
                "assignments": [assignment(*each) for each in assignments],
                **options,
            }
        )

    def joined(self, version=9):
        """Join a new member; return the join response of its first generation."""
        leader = self.leader("g")
        response = self.ask(self.join(), version, leader)
        if version >= 4:
            response = self.ask(self.join(response.member_id), version, leader)
        assert not response.error_code
        return response

    def stable_member(self):
        """Return the id of the only member of a stable group."""
        member_id = self.joined().member_id
        request = self.sync(member_id, assignments=[(member_id, b"all")])
        assert self.ask(request, 3, self.leader("g")).assignment == b"all"
        return member_id

    def another(self):
        """Return a broker that does not coordinate the group."""
        return self.leader("g") % 3 + 1

    def group(self):
        """Return the group at its coordinator."""
        return self.cluster.nodes.brokers[self.leader("g")].groups.shard("g").groups["g"]


def offsets_in(response, version):
    """Return the offsets of the only group, or its error code."""
    group = response.groups[0] if version >= 8 else response
    if group.error_code:
        return group.error_code
    return {
        (topic.name or topic.topic_id, part.partition_index): part.committed_offset
        for topic in group.topics
        for part in topic.partitions
    }
