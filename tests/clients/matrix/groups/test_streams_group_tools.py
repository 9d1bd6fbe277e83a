"""Kafka's own command line tool for streams groups, on both sides."""

import pytest
from broker_sim_integration.clients.groups import find_coordinator
from broker_sim_integration.clients.raw_client import RawConnection
from broker_sim_integration.cluster_under_test.polling import poll_until

from broker_sim.protocol import messages

GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
PATIENCE_MS = 60_000
TASKS = "ACTIVE: 0:[0,1];"
Request = messages.StreamsGroupHeartbeatRequest


def connected(servers, key):
    """Return a connection to the coordinator of a group."""
    host, port = servers.split(",")[0].rsplit(":", 1)
    with RawConnection(host, int(port)) as any_broker:
        found = None

        def is_found():
            nonlocal found
            found = find_coordinator(any_broker, key).message
            return not found.error_code

        poll_until(is_found, "the group has a coordinator", PATIENCE_MS)
        return RawConnection(found.host, found.port)


class Member:
    """The one member of a streams group."""

    def __init__(self, connection, group, topic):
        self._connection = connection
        self._group = group
        self._topic = topic
        self._epoch = 0
        self._active = []

    def beat(self, **fields):
        """Send a heartbeat; return whether the member has tasks."""
        request = Request(
            self._group,
            "member",
            **{
                "member_epoch": self._epoch,
                "active_tasks": self._active,
                "standby_tasks": [],
                "warmup_tasks": [],
                **fields,
            },
        )
        expected = messages.StreamsGroupHeartbeatResponse
        answer = self._connection.request(request, 0, expected).message
        if answer.error_code:
            return False
        self._epoch = max(0, answer.member_epoch)
        if answer.active_tasks is not None:
            told = answer.active_tasks
            self._active = [Request.TaskIds(each.subtopology_id, each.partitions) for each in told]
        return bool(self._active)

    def join(self):
        topology = Request.Topology(0, [Request.Subtopology("0", [self._topic])])
        told = {"rebalance_timeout_ms": PATIENCE_MS, "topology": topology, "process_id": "process"}

        def has_joined():
            self.beat(**told)
            return self._epoch > 0

        poll_until(has_joined, "the member has joined", PATIENCE_MS)
        poll_until(self.beat, "the member has tasks", PATIENCE_MS)

    def leave(self):
        self.beat(member_epoch=-1)


@pytest.mark.threads
def test_streams_group_is_listed_described_and_deleted(side, tool):
    topic, group = side.names()
    side.create_topic(topic, 2)
    with connected(side.bootstrap_servers, group) as connection:
        member = Member(connection, group, topic)
        member.join()
        assert group in tool(GROUPS, "--list").split()
        assert [group, "Stable"] in [line.split() for line in tool(GROUPS, "--list", "--state").splitlines()]
        state = tool(GROUPS, "--describe", "--group", group, "--state").split()
        assert {"Stable", "1"} <= set(state)
        described = tool(GROUPS, "--describe", "--group", group, "--members", "--verbose")
        assert {"member", "process"} <= set(described.split())
        assert TASKS in described
        member.leave()
        assert "successful" in tool(GROUPS, "--delete", "--group", group)
    assert group not in tool(GROUPS, "--list").split()
