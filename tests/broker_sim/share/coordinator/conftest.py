"""One partition of `__share_group_state` in virtual time; the test acts as the callers, the log and the replicas."""

from random import Random

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import BrokerConfig
from broker_sim.coordinator.context import CoordinatorState
from broker_sim.errors import ErrorCode
from broker_sim.metadata import MetadataImage, PartitionState, TopicState
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.release import find_release
from broker_sim.share.coordinator.records import serde
from broker_sim.share.coordinator.share_coordinator import ShareCoordinator
from broker_sim.share.share_state import SharePartitionKey, WrittenState
from broker_sim.share.state_apis import DELETE, INITIALIZE, READ, SUMMARY, WRITE, InitialState, NoArguments, ReaderEpoch
from tests.broker_sim.broker_contexts import broker_context
from tests.broker_sim.coordinator_log import CoordinatorLog

GROUP = "group"
WALL_START_MS = 1_000_000
TOPIC_ID = Random(1).randbytes(16)
KEY = SharePartitionKey(GROUP, TOPIC_ID, 0)


def image_with(topics, version=1):
    """Return an image with share groups enabled and a topic of two partitions for each topic id."""
    state = PartitionState((1,), (1,), 1, 0, 0)
    return MetadataImage(
        version,
        "cluster",
        topics={
            f"t{number}": TopicState(f"t{number}", topic_id, (state, state)) for number, topic_id in enumerate(topics)
        },
        topic_names={topic_id: f"t{number}" for number, topic_id in enumerate(topics)},
        features={"share.version": 1},
    )


class Log(CoordinatorLog):
    """The `ShareStorage` of one partition, which supports deleting records from its start."""

    def __init__(self):
        super().__init__(serde)
        self.deleted = []

    def read(self, partition):
        """Return the batches that were not deleted."""
        start = max(self.deleted, default=0)
        left = [batch for batch in self.batches if parse_header(batch).last_offset >= start]
        return map(bytes, left)

    def delete_records(self, partition, before_offset, on_done):
        self.deleted.append(before_offset)
        on_done(ErrorCode.NONE)


class Bench:
    """A share coordinator that leads the only partition of its topic."""

    def __init__(self, release=None, **configs):
        self.log = Log()
        self.release = find_release(release)
        self.clock = VirtualClock(wall_start_ms=WALL_START_MS)
        self.image = image_with([TOPIC_ID])
        self._soon = []
        values = {"share.coordinator.state.topic.num.partitions": 1}
        values |= {name.replace("_", "."): value for name, value in configs.items()}
        self.config = BrokerConfig.from_mapping(values)
        self.coordinator = self.new_coordinator()

    def new_coordinator(self):
        """Return a coordinator that has loaded the log."""
        coordinator = ShareCoordinator(
            broker_context(
                self,
                config=self.config,
                release=self.release,
                clock=self.clock,
                call_later=self._call_later,
                storage=lambda topic, read_bytes: self.log,
            )
        )
        coordinator.runtime.elected(0, 1)
        self.turn()
        assert coordinator.runtime.get(0).state is CoordinatorState.ACTIVE
        return coordinator

    def _call_later(self, delay_ms, callback, *args):
        assert delay_ms == 0
        self._soon.append((callback, args))

    def turn(self):
        """Run what is due in the next turn of the event loop."""
        soon, self._soon = self._soon, []
        for callback, args in soon:
            callback(*args)

    @property
    def shard(self):
        return self.coordinator.runtime.get(0).shard

    def ask(self, api, arguments, *, group=GROUP):
        """Send a request; return the response, or None as long as it has not been sent."""
        answers = []
        self.coordinator.serve(api, api.request_of(group, arguments), answers.append)
        self.turn()
        return answers[0] if answers else None

    def _ask_one(self, api, arguments, key):
        response = self.ask(api, [(key, arguments)], group=key.group_id)
        return None if response is None else api.outcomes_of(key.group_id, response)[key]

    def initialize(self, state_epoch=1, start_offset=-1, key=KEY):
        return self._ask_one(INITIALIZE, InitialState(state_epoch, start_offset), key)

    def write(self, *batches, key=KEY, state_epoch=1, leader_epoch=0, start_offset=0, complete=0):
        written = WrittenState(state_epoch, leader_epoch, start_offset, complete, batches)
        return self._ask_one(WRITE, written, key)

    def read(self, leader_epoch=0, key=KEY):
        return self._ask_one(READ, ReaderEpoch(leader_epoch), key)

    def summary(self, key=KEY):
        return self._ask_one(SUMMARY, ReaderEpoch(-1), key)

    def delete(self, key=KEY):
        return self._ask_one(DELETE, NoArguments(), key)


@pytest.fixture
def make_bench():
    """Return a factory of benches; configurations are keyword arguments with `_` for `.`."""
    return Bench


@pytest.fixture
def bench():
    """Return a bench whose coordinator has no share partitions."""
    return Bench()


@pytest.fixture
def key():
    """The share partition that the bench uses by default."""
    return KEY


@pytest.fixture
def make_image():
    """Return a factory of images with topics of the given ids."""
    return image_with
