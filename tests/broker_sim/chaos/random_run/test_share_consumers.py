"""Share consumers while brokers die: what is accepted is not delivered again, all else is delivered until the limit.

Brokers are killed, lose their power with all that was not flushed, or hand over what they lead; these lead the
topic, coordinate its state, or both. One at a time: `__share_group_state` keeps its in-sync replicas. The test's id
has the seed of a run.
"""

from collections import Counter
from random import Random

import pytest

from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.log import DiskOptions
from broker_sim.metadata import GROUP_RESOURCE
from broker_sim.protocol import messages

GROUP, TOPIC = "share", "topic"
STATE = "__share_group_state"
PARTITIONS = 2
LIMIT = 3
LOCK_MS = 15_000
SEEDS = 3
SEEDS_OF_THE_SOAK = 6
TICK_MS = 100
CALM_TICKS = 900
ACCEPT, RELEASE, REJECT = 1, 2, 3


class Delivery:
    """What was seen of all records, by partition and offset."""

    def __init__(self):
        self.counts = Counter()
        """How often each was delivered."""
        self.settled_ms = {}
        """When the member heard that a record is accepted or rejected for good."""
        self.doubtful = set()
        """Acknowledged, and the answer was lost."""

    def acquired(self, pending, number, ranges):
        """Take in what was delivered; nothing may be in it that was settled before it was asked for."""
        for one in ranges:
            assert one.delivery_count <= LIMIT
            for offset in range(one.first_offset, one.last_offset + 1):
                settled_ms = self.settled_ms.get((number, offset))
                assert settled_ms is None or settled_ms > pending.sent_ms, (number, offset)
                self.counts[number, offset] += 1


class Member:
    """A member that has one request at a time, to the leader of its partition."""

    def __init__(self, run, name, number):
        self.run = run
        self.name = name
        self.number = number
        self.client = run.cluster.client()
        self.leader = None
        self.epoch = 0
        self.ranges = []
        self.pending = None
        self.acknowledged = []

    def act(self):
        """Take the answer, if there is one, and send the next request."""
        if self.pending is not None:
            if not self.pending.done:
                return
            self.take()
        leader = self.run.leader(self.number)
        if leader is None:
            return
        if leader != self.leader:
            self.leader, self.epoch, self.ranges = leader, 0, []
        if self.ranges and self.run.rng.random() < 0.9:
            self.acknowledge()
        else:
            self.fetch()

    def fetch(self):
        self.ranges = []
        request = messages.ShareFetchRequest
        asked = request.FetchTopic(self.run.topic_id, [request.FetchPartition(self.number)])
        self.send(
            request(
                max_wait_ms=300,
                min_bytes=1,
                max_bytes=1_000_000,
                max_records=self.run.rng.choice((1, 5, 500)),
                batch_size=500,
                topics=[asked],
            )
        )

    def acknowledge(self):
        request = messages.ShareAcknowledgeRequest
        self.acknowledged, self.ranges = self.ranges, []
        batches = [
            request.AcknowledgementBatch(
                one.first_offset,
                one.last_offset,
                [self.run.draw_kind() for _ in range(one.first_offset, one.last_offset + 1)],
            )
            for one in self.acknowledged
        ]
        self.acknowledged = batches
        asked = [request.AcknowledgePartition(self.number, batches)]
        self.send(request(topics=[request.AcknowledgeTopic(self.run.topic_id, asked)]))

    def send(self, request):
        request.group_id, request.member_id = GROUP, self.name
        request.share_session_epoch = self.epoch
        self.epoch += 1
        self.pending = self.client.send(self.leader, request, 2)

    def take(self):
        pending, self.pending = self.pending, None
        batches, self.acknowledged = self.acknowledged, []
        answer = pending.response
        settled = [
            (self.number, offset)
            for batch in batches
            for offset, kind in enumerate(batch.acknowledge_types, batch.first_offset)
            if kind in (ACCEPT, REJECT)
        ]
        if answer is None or answer.error_code:
            self.leader = None
            self.run.delivery.doubtful.update(settled)
            return
        for topic in answer.responses:
            for partition in topic.partitions:
                if partition.error_code:
                    self.leader = None
                elif not batches:
                    self.ranges = partition.acquired_records
                    self.run.delivery.acquired(pending, self.number, self.ranges)
                else:
                    for record in settled:
                        self.run.delivery.settled_ms.setdefault(record, pending.received_ms)


class Run:
    """A cluster with a share group, its members and a producer, and what happens to the brokers."""

    def __init__(self, seed, *, loses_power):
        self.rng = Random(seed)
        self.loses_power = loses_power
        self.cluster = VirtualCluster(
            3,
            seed=seed,
            configs={
                "share.coordinator.state.topic.num.partitions": "2",
                "group.share.min.record.lock.duration.ms": str(LOCK_MS),
                "group.share.record.lock.duration.ms": str(LOCK_MS),
                "group.share.delivery.count.limit": str(LIMIT),
                "group.share.assignment.interval.ms": "0",
                "share.coordinator.snapshot.update.records.per.snapshot": "5",
                "share.coordinator.state.topic.prune.interval.ms": "5000",
                "min.insync.replicas": "2",
                "broker.session.timeout.ms": "3000",
            },
            disk=DiskOptions() if loses_power else None,
        )
        self.cluster.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=3)
        self.topic_id = self.image.topics[TOPIC].topic_id
        self.client = self.cluster.client()
        self.delivery = Delivery()
        self.accepts_all = False
        self.produced = set()
        self._producing = {}
        self._begin_group()
        self.members = [Member(self, f"member-{index}", index % PARTITIONS) for index in range(2 * PARTITIONS)]

    @property
    def image(self):
        return self.cluster.nodes.controller.image

    def ask(self, message, version, broker):
        pending = self.client.send(broker, message, version)
        self.cluster.run_until(lambda: pending.done, 60_000)
        return pending.response

    def _begin_group(self):
        """Let the group begin at offset 0 of each partition, without members that send heartbeats."""
        configs = messages.IncrementalAlterConfigsRequest
        change = configs.AlterableConfig("share.auto.offset.reset", 0, "earliest")
        resource = configs.AlterConfigsResource(GROUP_RESOURCE, GROUP, [change])
        self.ask(configs([resource]), 1, 1)
        find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        alter = messages.AlterShareGroupOffsetsRequest
        offsets = [alter.AlterShareGroupOffsetsRequestPartition(number, 0) for number in range(PARTITIONS)]
        asked = alter(GROUP, [alter.AlterShareGroupOffsetsRequestTopic(TOPIC, offsets)])
        for _ in range(60):
            (found,) = self.ask(find, 6, 1).coordinators
            if not found.error_code:
                answer = self.ask(asked, 0, found.node_id)
                if not answer.error_code and not any(row.error_code for row in answer.responses[0].partitions):
                    return
            self.cluster.advance(500)
        raise AssertionError("the group has no state")

    def draw_kind(self):
        if self.accepts_all:
            return ACCEPT
        return self.rng.choices((ACCEPT, RELEASE, REJECT), (6, 3, 1))[0]

    def leader(self, number):
        partition = self.image.topics[TOPIC].partitions[number]
        alive = self.image.alive_broker(partition.leader)
        return None if alive is None else alive.broker_id

    def produce(self, number):
        """Produce a few records, unless the last ones are not answered yet."""
        if number in self._producing:
            pending, count = self._producing[number]
            if not pending.done:
                return
            del self._producing[number]
            if pending.response is not None:
                (answer,) = pending.response.responses[0].partition_responses
                if not answer.error_code:
                    first = answer.base_offset
                    self.produced.update((number, first + index) for index in range(count))
        leader = self.leader(number)
        if leader is not None and not self.accepts_all:
            count = self.rng.randint(1, 4)
            request = produce_request((TOPIC, number), values=[b"v"] * count)
            self._producing[number] = self.client.send(leader, request, PRODUCE_VERSION), count

    def disturb(self, kind):
        """Take the broker down that leads a partition, or let another one lead it; all are in sync after that."""
        topic, number = self.rng.choice([(TOPIC, 0), (TOPIC, 1), (STATE, 0), (STATE, 1)])
        if kind in (TOPIC, STATE):
            topic = kind
        partition = self.image.topics[topic].partitions[number]
        if kind == "transfer":
            others = [one for one in partition.isr if one != partition.leader]
            self.cluster.transfer_leadership(topic, number, self.rng.choice(others))
            return
        broker = partition.leader
        if self.loses_power:
            self.cluster.lose_power(broker)
        else:
            self.cluster.kill(broker)
        self.tick(self.rng.choice((5, 40, 80)))
        self.cluster.start(broker)
        self.wait_for_replicas()

    def wait_for_replicas(self):
        """Let all replicas be in sync again, those of the coordinators' topics too."""

        def are_in_sync():
            topics = self.image.topics.values()
            partitions = [each for topic in topics for each in topic.partitions]
            return all(len(each.isr) == len(each.replicas) for each in partitions)

        for _ in range(600):
            if are_in_sync():
                return
            self.tick(1)
        raise AssertionError("the replicas are not in sync")

    def tick(self, times):
        for _ in range(times):
            for member in self.members:
                member.act()
            for number in range(PARTITIONS):
                if self.rng.random() < 0.2 or number in self._producing:
                    self.produce(number)
            self.cluster.advance(TICK_MS)

    def is_all_settled(self):
        return all(self.is_settled(record) for record in self.produced)

    def is_settled(self, record):
        delivery = self.delivery
        return record in delivery.settled_ms or record in delivery.doubtful or delivery.counts[record] >= LIMIT


def play(seed, *, loses_power=False):
    """Disturb the cluster for a while, then let the members accept what is left."""
    run = Run(seed, loses_power=loses_power)
    kinds = [TOPIC, STATE, "any", "transfer"]
    run.rng.shuffle(kinds)
    for kind in kinds:
        run.tick(run.rng.randint(10, 60))
        run.disturb(kind)
    run.accepts_all = True
    for _ in range(CALM_TICKS):
        if run.is_all_settled():
            break
        run.tick(1)
    return run


@pytest.mark.parametrize(
    "seed",
    [
        *range(SEEDS),
        *(pytest.param(seed, marks=pytest.mark.soak(part="chaos")) for seed in range(SEEDS, SEEDS_OF_THE_SOAK)),
    ],
)
@pytest.mark.parametrize("loses_power", [False, True], ids=["killed", "without power"])
def test_accepted_records_are_delivered_no_more_and_all_others_until_the_limit(seed, loses_power):
    run = play(seed, loses_power=loses_power)
    assert len(run.produced) > 40
    assert sorted(filter(lambda record: not run.is_settled(record), run.produced)) == []
    assert len(run.delivery.settled_ms) > 30
    assert max(run.delivery.counts.values()) > 1
