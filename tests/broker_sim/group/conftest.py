"""The groups of one shard in virtual time; the test acts as the clients, the log and the replicas."""

import random
from dataclasses import replace

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, SystemTimer, VirtualClock

from broker_sim.config import BrokerConfig
from broker_sim.coordinator.result import Result
from broker_sim.errors import ErrorCode
from broker_sim.group.group import GroupClient
from broker_sim.group.other_brokers import LatestOffset
from broker_sim.group.records import serde
from broker_sim.group.service import GroupCoordinatorService
from broker_sim.metadata import (
    GROUP_RESOURCE,
    MetadataDelta,
    MetadataImage,
    PartitionState,
    TopicState,
    changes_between,
)
from broker_sim.protocol import messages
from broker_sim.protocol.codec import encode
from broker_sim.protocol.release import find_release
from broker_sim.share.share_state import StateOutcome, StateSummary
from tests.broker_sim.broker_contexts import broker_context
from tests.broker_sim.coordinator_log import CoordinatorLog
from tests.broker_sim.group.group_members import GROUP, ClassicMember, ConsumerMember, raise_error

WALL_START_MS = 1_000_000


def new_purgatory(name, clock):
    """Return a purgatory in virtual time."""
    timer = SystemTimer(name, clock, InlineExecutor())
    return DelayedOperationPurgatory(name, timer, reaper_enabled=False)


@pytest.fixture
def make_purgatory():
    """Return a factory of purgatories from a name and a virtual clock."""
    return new_purgatory


INITIAL_DELAY_MS = 3_000
HOST = "localhost/127.0.0.1"


class States:
    """A `Persister` that completes calls at once, with the error of the share partition if `errors` has one."""

    def __init__(self):
        self.states = {}
        self.errors = {}

    def _fails(self, key, on_done, make=StateOutcome):
        if key in self.errors:
            on_done(make(self.errors[key], "why"))
        return key in self.errors

    def initialize_state(self, key, state_epoch, start_offset, on_done):
        if not self._fails(key, on_done):
            self.states[key] = StateSummary(
                state_epoch=state_epoch, start_offset=start_offset, delivery_complete_count=0
            )
            on_done(StateOutcome())

    def delete_state(self, key, on_done):
        if not self._fails(key, on_done):
            self.states.pop(key, None)
            on_done(StateOutcome())

    def read_summary(self, key, leader_epoch, on_done):
        if not self._fails(key, on_done, StateSummary):
            on_done(self.states.get(key, StateSummary()))


def topic_id(number):
    """Return the topic id of a number; ids are random, like Kafka's."""
    return random.Random(number).randbytes(16)


class Bench:
    """One shard with its purgatories and topics, and helpers for the tests."""

    def __init__(self, *, as_version=None, **configs):
        self.clock = VirtualClock(wall_start_ms=WALL_START_MS)
        self.log = CoordinatorLog(serde)
        self.image = MetadataImage(version=1, cluster_id="cluster")
        self._later = []
        self.persister = States()
        self.latest = {}
        """The high watermarks that leaders return, by partition."""
        self.pending_work = []
        """Pending long-running work, each with the callback for its result."""
        self.rebalance, self.heartbeat = (new_purgatory(name, self.clock) for name in ("Rebalance", "Heartbeat"))
        purgatories = {"Rebalance": self.rebalance, "Heartbeat": self.heartbeat}
        self.broker = broker_context(
            self,
            config=BrokerConfig.from_mapping(
                {
                    "offsets.topic.num.partitions": "1",
                    **{name.replace("_", "."): str(value) for name, value in configs.items()},
                }
            ),
            clock=self.clock,
            call_later=self._call_later,
            run_beside=self._run_beside,
            purgatory=purgatories.get,
            storage=lambda topic, read_bytes: self.log,
            release=find_release(as_version),
        )
        self.service = GroupCoordinatorService(
            self.broker,
            verify_transaction=lambda *question: question[-1](ErrorCode.NONE, None),
            latest_offsets=self._latest_offsets,
            persister=lambda: self.persister,
        )
        self._lead(epoch=0)

    def _call_later(self, delay_ms, run, *arguments):
        if not delay_ms:
            self._later.append((run, arguments))

    def _latest_offsets(self, keys, on_result):
        on_result({key: self.latest.get(key, LatestOffset(0)) for key in keys})

    def _run_beside(self, work, on_done):
        self.pending_work.append((work, on_done))

    def _lead(self, epoch):
        """Elect this broker in the given leader epoch, and load the partition."""
        self.service.runtime.elected(0, epoch)
        self.run_later()
        self.context = self.service.runtime.get(0)
        self.shard = self.context.shard

    def fail_over(self):
        """Fail over to a new coordinator, which loads the shard's records."""
        self.resign()
        self._later.clear()
        self._lead(self.context.leader_epoch + 1)

    def resign(self):
        """Resign as leader of the partition."""
        self.service.runtime.resigned(0)

    def write(self, records):
        """Write records directly, without an operation."""
        self.context.perform(lambda: Result(records=records))

    @property
    def classic(self):
        return self.shard.classic

    @property
    def consumers(self):
        return self.shard.consumer

    @property
    def group(self):
        return self.shard.groups[GROUP]

    # -- topics ---------------------------------------------------------------------------------

    def set_topic(self, name, partitions, id_number=None):
        """Create a topic or change its number of partitions; returns its id."""
        old = self.image.topics.get(name)
        ident = topic_id(name if id_number is None else id_number)
        if old is not None:
            ident = old.topic_id
        state = PartitionState((1,), (1,), 1, 0, 0)
        delta = MetadataDelta(self.image)
        old_partitions = () if old is None else old.partitions
        delta.set_topic(TopicState(name, ident, (*old_partitions, *[state] * (partitions - len(old_partitions)))))
        self._apply(delta)
        return ident

    def delete_topic(self, name):
        delta = MetadataDelta(self.image)
        delta.remove_topic(name)
        self._apply(delta)

    def configure_group(self, group_id, **configs):
        self.image = replace(
            self.image,
            resource_configs={
                (GROUP_RESOURCE, group_id): {name.replace("_", "."): str(value) for name, value in configs.items()}
            },
        )

    def _apply(self, delta):
        before, self.image = self.image, delta.apply()
        self.shard.on_image(changes_between(before, self.image), self.image)

    # -- members --------------------------------------------------------------------------------

    def send(self, request, version=1, client_id="client"):
        """Send a heartbeat; returns a list to which the response is appended."""
        answers = []

        def fail(error):
            answers.append(
                messages.ConsumerGroupHeartbeatResponse(error_code=error.error_code, error_message=error.error_message)
            )

        client = GroupClient(client_id, HOST, version)
        self.service.consumer_group_heartbeat(request, client, answers.append, fail)
        return answers

    def heart(self, request):
        """Send a heartbeat of the classic protocol; returns its error, or None as long as it waits."""
        errors = []
        self.service.heartbeat(request, errors.append, lambda error: errors.append(error.error_code))
        return errors[0] if errors else None

    def consumer(self, member_id, *topics, **options):
        """Return a new member of the consumer protocol that has not joined yet."""
        return ConsumerMember(self, member_id, topics, options)

    def describe(self, group_id=GROUP):
        return self.consumers.describe(group_id)

    @staticmethod
    def metadata(*topics, version=3, owned=None):
        """Return the subscription metadata of a classic consumer: its topics and owned partitions."""
        subscription = messages.ConsumerProtocolSubscription
        owned_partitions = [subscription.TopicPartition(*each) for each in (owned or {}).items()]
        message = subscription(list(topics), None, owned_partitions, -1, None)
        return version.to_bytes(2, "big") + b"".join(encode(message, version))

    # -- members of the classic protocol --------------------------------------------------------

    @property
    def state(self):
        return self.group.state_name

    def member(self, **options):
        return ClassicMember(self, **options)

    def leave(self, *identities):
        """Remove members, each given by member id and group instance id; return their errors."""
        identity = messages.LeaveGroupRequest.MemberIdentity
        responses = []
        members = [identity(*each) for each in identities]
        self.service.leave_group(GROUP, members, responses.append, raise_error)
        (members_left,) = responses
        return [ErrorCode(each.error_code) for each in members_left]

    def stable(self, count=1, **options):
        """Return the members of a new stable group; the first is the leader."""
        members = [self.member(**options).enter() for _ in range(count)]
        self.advance(INITIAL_DELAY_MS * 2)
        return self.assign(members)

    def stable_static(self, *instance_ids, **options):
        """Return the static members of a new stable group; the first is the leader."""
        members = [self.member(group_instance_id=instance_id, **options).join() for instance_id in instance_ids]
        self.advance(INITIAL_DELAY_MS * 2)
        return self.assign(members)

    def assign(self, members):
        """Sync all members, the leader last; return them, the leader first."""
        members = sorted(members, key=lambda member: not member.is_leader)
        for member in reversed(members):
            member.sync({each.member_id: each.member_id.encode() for each in members})
        assert self.state == "Stable"
        return members

    # -- time -----------------------------------------------------------------------------------

    def run_later(self):
        """Run the callbacks scheduled for the next turn of the event loop."""
        while self._later:
            run, arguments = self._later.pop(0)
            run(*arguments)

    def advance(self, by_ms):
        """Advance the time; operations that expire on the way do so at their time."""
        end_ms = self.clock.now_ms() + by_ms
        while True:
            due = [
                due_ms
                for purgatory in (self.rebalance, self.heartbeat)
                if (due_ms := purgatory.timer.next_expiration_ms()) is not None
            ]
            if not due or min(due) > end_ms:
                break
            self.clock.advance_to(max(min(due), self.clock.now_ms()))
            for purgatory in (self.rebalance, self.heartbeat):
                purgatory.advance_clock(0)
        self.clock.advance_to(end_ms)


@pytest.fixture
def make_bench():
    return Bench


@pytest.fixture
def bench():
    return Bench()
