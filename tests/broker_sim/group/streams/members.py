"""Members of streams groups, in virtual time."""

from broker_sim.errors import ErrorCode
from broker_sim.group.group import GroupClient
from broker_sim.group.streams.topics.configured_topology import Status
from broker_sim.protocol import messages

GROUP = "app"
HOST = "localhost/127.0.0.1"
Request = messages.StreamsGroupHeartbeatRequest


def subtopology(name, *sources, **fields):
    """Return a subtopology with the given source topics and fields."""
    topics = {
        field: [Request.TopicInfo(*topic) for topic in fields.pop(field, ())]
        for field in ("state_changelog_topics", "repartition_source_topics")
    }
    return Request.Subtopology(name, list(sources), **topics, **fields)


def topology(*subtopologies, epoch=0):
    return Request.Topology(epoch, list(subtopologies))


def task_ids(tasks):
    return [Request.TaskIds(name, sorted(numbers)) for name, numbers in tasks.items()]


class StreamsMember:
    """A member of a streams group; by default it owns its last assignment. `answer` is the last response."""

    def __init__(self, streams, member_id, topology_, process, instance_id=None):
        self.streams = streams
        self.member_id = member_id
        self.topology = topology_
        self.process = process
        self.instance_id = instance_id
        self.epoch = 0
        self.owned = ({}, {}, {})
        self.answer = None
        self.to_create = {}

    def join(self, **changes):
        """Join or rejoin; returns the error."""
        self.epoch, self.owned = 0, ({}, {}, {})
        fields = {"rebalance_timeout_ms": 60_000, "topology": self.topology, "process_id": self.process}
        return self.beat(**{**fields, **changes})

    def leave(self, **fields):
        return self.beat(member_epoch=-1, **fields)

    def beat(self, *, owned="unchanged", version=1, host=HOST, **fields):
        """Send a heartbeat with the owned tasks, or without tasks if `owned` is None; returns the error."""
        owned = self.owned if owned == "unchanged" else owned
        active, standby, warmup = (None,) * 3 if owned is None else map(task_ids, owned)
        request = Request(
            **{
                "group_id": GROUP,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "active_tasks": active,
                "standby_tasks": standby,
                "warmup_tasks": warmup,
                "instance_id": self.instance_id,
                **fields,
            }
        )
        self.answer, self.to_create = None, {}
        self.streams.service.heartbeat(request, GroupClient("client", host, version), self._take, self._fail)
        return None if self.answer is None else ErrorCode(self.answer.error_code)

    def _fail(self, error):
        self.answer = messages.StreamsGroupHeartbeatResponse(
            error_code=error.error_code, error_message=error.error_message
        )

    def _take(self, answer):
        self.answer, self.to_create = answer.response, answer.topics_to_create
        self.epoch = self.answer.member_epoch
        if self.answer.active_tasks is not None:
            self.owned = tuple(
                {tasks.subtopology_id: tasks.partitions for tasks in role_tasks}
                for role_tasks in (self.answer.active_tasks, self.answer.standby_tasks, self.answer.warmup_tasks)
            )

    @property
    def active(self):
        return self.owned[0]

    @property
    def standby(self):
        return self.owned[1]

    @property
    def statuses(self):
        """The status details of the last response by status code."""
        return {Status(each.status_code): each.status_detail for each in self.answer.status}


class Streams:
    """The streams groups of a bench."""

    def __init__(self, bench):
        self.bench = bench
        self.service = bench.service.streams

    @property
    def group(self):
        return self.bench.shard.groups.get(GROUP)

    def member(self, member_id, *subtopologies, process=None, epoch=0, instance_id=None):
        member_topology = topology(*(subtopologies or [subtopology("0", "in")]), epoch=epoch)
        return StreamsMember(self, member_id, member_topology, process or f"process-{member_id}", instance_id)

    def settle(self, *members, beats=5):
        """Send several heartbeats per member, enough for them to reconcile."""
        for _ in range(beats):
            for member in members:
                member.beat()

    def describe(self, group_id=GROUP, **options):
        return self.service.describe([group_id], **options)[0]
