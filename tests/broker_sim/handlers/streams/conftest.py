"""A client of three brokers in virtual time, and a member of a streams group."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.metadata.acl import WILDCARD, PatternType, Permission
from broker_sim.protocol import messages

GROUP = "app"
SOURCE, CHANGELOG = "in", "app-store-changelog"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
Heartbeat = messages.StreamsGroupHeartbeatRequest


def topology(*, replicas=1, **configs):
    """Return one subtopology that reads `SOURCE` and keeps its state in `CHANGELOG`."""
    told = [Heartbeat.KeyValue(name.replace("_", "."), text) for name, text in configs.items()]
    changelog = Heartbeat.TopicInfo(CHANGELOG, 0, replicas, told)
    return Heartbeat.Topology(0, [Heartbeat.Subtopology("0", [SOURCE], state_changelog_topics=[changelog])])


class User:
    """A client, and a member that keeps what it is told."""

    def __init__(self, *, sources=2, **configs):
        self.cluster = VirtualCluster(
            seed=4,
            configs={
                "offsets.topic.num.partitions": 3,
                "group.streams.initial.rebalance.delay.ms": 0,
                "group.streams.assignment.interval.ms": 0,
                **{name.replace("_", "."): value for name, value in configs.items()},
            },
        )
        if sources:
            self.cluster.create_topic(SOURCE, partitions=sources)
        self.client = self.cluster.client()
        self.up = [1, 2, 3]
        self._coordinator = None
        self.epoch = 0
        self.active = {}

    @property
    def topics(self):
        return self.cluster.nodes.controller.image.topics

    def ask(self, request, version, broker=None):
        """Ask the group's coordinator, or a broker."""
        pending = self.client.send(broker or self.coordinator(), request, version)
        self.cluster.run_until(lambda: pending.done, 60_000)
        return pending.response

    def coordinator(self):
        """Return the group's coordinator; one that was found is kept while it is up."""
        if self._coordinator in self.up:
            return self._coordinator
        request = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        for _ in range(60):
            found = self.ask(request, 6, self.up[0]).coordinators[0]
            if not found.error_code:
                self._coordinator = found.node_id
                return found.node_id
            self.cluster.advance(500)
        raise AssertionError("no coordinator")

    def join(self, told=None, **fields):
        """Join with that topology; returns the answer."""
        self.epoch, self.active = 0, {}
        return self.beat(topology=told or topology(), rebalance_timeout_ms=60_000, **fields)

    def beat(self, **fields):
        """Send a heartbeat that says what it has; returns the answer."""
        tasks = [Heartbeat.TaskIds(name, numbers) for name, numbers in self.active.items()]
        request = Heartbeat(
            **{
                "group_id": GROUP,
                "member_id": "member",
                "member_epoch": self.epoch,
                "process_id": "process",
                "active_tasks": tasks,
                "standby_tasks": [],
                "warmup_tasks": [],
                **fields,
            }
        )
        answer = self.ask(request, 0)
        if not answer.error_code:
            self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.active = {each.subtopology_id: each.partitions for each in answer.active_tasks}
        return answer

    def until_stable(self):
        """Join and send heartbeats until the member has all tasks."""
        self.join()
        for _ in range(20):
            if self.active == {"0": [0, 1]}:
                return
            self.cluster.advance(1_000)
            self.beat()
        raise AssertionError("not assigned")

    def describe(self, *groups, operations=False):
        request = messages.StreamsGroupDescribeRequest(list(groups or [GROUP]), operations)
        return self.ask(request, 0).groups

    def deny(self, operation, resource_type, name):
        """Forbid it to everybody, and whatever nobody is allowed with that resource."""
        self.rule(Permission.DENY, operation, resource_type, name)

    def rule(self, permission, operation, resource_type, name):
        create = messages.CreateAclsRequest
        creation = create.AclCreation(
            resource_type, name, PatternType.LITERAL, "User:*", WILDCARD, operation, permission
        )
        (result,) = self.ask(create([creation]), 3, 1).results
        assert not result.error_code
        self.cluster.advance(500)

    def set_streams_version(self, level):
        request = messages.UpdateFeaturesRequest
        update = request.FeatureUpdateKey("streams.version", level, upgrade_type=1 if level else 2)
        assert not self.ask(request(feature_updates=[update]), 1, 1).error_code
        self.cluster.advance(1_000)


@pytest.fixture
def user():
    return User()


@pytest.fixture
def make_user():
    return User


@pytest.fixture
def guarded():
    """Return a client of brokers with an authorizer that lets everybody do everything so far."""
    return User(authorizer_class_name=AUTHORIZER, allow_everyone_if_no_acl_found="true")
