"""One share partition in virtual time; the test acts as the members, the log and the share coordinator."""

import pytest
from broker_sim_purgatory import VirtualTimer

from broker_sim.config import BrokerConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import GROUP_RESOURCE, MetadataDelta, MetadataImage
from broker_sim.metadata.feature_names import SHARE_VERSION
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch
from broker_sim.share.partition.acknowledgement import AcknowledgementBatch, ChangeCount
from broker_sim.share.partition.acquisition import AcquireLimits
from broker_sim.share.partition.fetched_records import FetchedRecords
from broker_sim.share.partition.share_partition import SharePartition, SharePartitionEnvironment
from broker_sim.share.settings import ShareGroupSettings
from broker_sim.share.share_state import ReadState, SharePartitionKey, StateOutcome
from tests.broker_sim.share.named_values import Offsets, Standing, Written

GROUP = "share"
TOPIC_ID = b"t" * 16
KEY = SharePartitionKey(GROUP, TOPIC_ID, 0)
LEADER_EPOCH = 3
TOPIC_PARTITION = TopicPartition("topic", 0)
MEMBER = "member"
EARLIEST, LATEST = 7, 100


class Coordinator:
    """A `Persister` that records writes; delays responses while `is_held` and returns `fails_with` as their error."""

    def __init__(self):
        self.read = ReadState(start_offset=0, state_epoch=5)
        self.written = []
        self.fails_with = ErrorCode.NONE
        self.is_held = False
        self._waiting = []

    def read_state(self, key, leader_epoch, on_done):
        assert (key, leader_epoch) == (KEY, LEADER_EPOCH)
        self._answer(lambda: on_done(self.read))

    def write_state(self, key, state, on_done):
        assert key == KEY
        self.written.append(state)
        self._answer(lambda: on_done(StateOutcome(self.fails_with)))

    def _answer(self, answer):
        if self.is_held:
            self._waiting.append(answer)
        else:
            answer()

    def release(self, fails_with=ErrorCode.NONE):
        self.fails_with = fails_with
        self.is_held = False
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer()
        self.fails_with = ErrorCode.NONE


class Bench:
    """A share partition and helpers for the tests; offset ranges are given as `first, last`."""

    queue = None
    share_version = 2

    def __init__(self):
        self.timer = VirtualTimer()
        self.coordinator = Coordinator()
        self.woken = []
        self.on_woken = lambda: 0
        """Called instead of trying the waiting share fetches; returns how many of them were completed."""
        self.configs = {}
        self.offsets_by_time = {-2: EARLIEST, -1: LATEST}
        self.partition = self._new_partition()

    def _new_partition(self):
        environment = SharePartitionEnvironment(
            persister=self.coordinator,
            reader=self,
            settings=ShareGroupSettings(BrokerConfig(), self._image),
            waiting_fetches=self,
            lock_timer=self.timer,
            clock=self.timer.clock,
            dead_letters=self.queue,
        )
        return SharePartition(KEY, TOPIC_PARTITION, LEADER_EPOCH, environment)

    def complete(self, key):
        """Act as the waiting share fetches; see `WaitingShareFetches`."""
        self.woken.append(key)
        return self.on_woken()

    announce = complete

    def _image(self):
        delta = MetadataDelta(MetadataImage(0, "cluster", features={SHARE_VERSION: self.share_version}))
        delta.set_resource_configs(GROUP_RESOURCE, GROUP, self.configs)
        return delta.apply()

    def find_offset(self, topic_partition, leader_epoch, timestamp):
        """Act as the log; see `LogReader`."""
        assert (topic_partition, leader_epoch) == (TOPIC_PARTITION, LEADER_EPOCH)
        return self.offsets_by_time[timestamp]

    def open(self, *batches, start_offset=0):
        """Initialize the share partition with batches that the previous leader has written."""
        self.coordinator.read = ReadState(start_offset=start_offset, state_epoch=5, state_batches=batches)
        assert self.result(self.partition.maybe_initialize) is None
        return self

    @staticmethod
    def result(method, *arguments):
        """Call a method and return the result passed to its callback, or "pending" if there is none yet."""
        answers = []
        method(*arguments, answers.append)
        assert len(answers) < 2
        return answers[0] if answers else "pending"

    def acquire(self, *batches, member=MEMBER, max_records=500, batch_size=500, is_limit=False, at=None):
        """Acquire records of a fetch of batches, each (first, last); return the acquired ranges."""
        fetched = fetched_of(*batches)
        limits = AcquireLimits(member, max_records, batch_size, is_limit)
        fetch_offset = self.partition.records.next_fetch_offset() if at is None else at
        return self.partition.acquire(limits, fetch_offset, fetched)

    def acknowledge(self, first, last, *types, member=MEMBER):
        """Acknowledge one range; return None, the error's code, or "pending"."""
        return self.acknowledge_all(AcknowledgementBatch(first, last, types), member=member)

    def acknowledge_all(self, *batches, member=MEMBER, changes=None):
        """Acknowledge several ranges together."""
        changes = ChangeCount() if changes is None else changes
        return code_of(self.result(self.partition.acknowledge, member, batches, changes))

    def release(self, member=MEMBER):
        return code_of(self.result(self.partition.release_acquired_records, member))

    @property
    def records(self):
        return self.partition.records

    @property
    def offsets(self):
        """Return start, end and next fetch offset."""
        records = self.records
        return Offsets(records.start_offset, records.end_offset, records.next_fetch_offset())

    @property
    def states(self):
        """Return the states of in-flight records by (first, last); of split batches one per record."""
        return {
            place: Standing(state.state.name, state.delivery_count, state.member_id)
            for batch in self.records.batches
            for first, last, state in batch.parts()
            for place in (
                [(first, last)]
                if batch.batch_state is not None
                else [(offset, offset) for offset in range(first, last + 1)]
            )
        }

    def states_at(self, offset):
        """Return the state of one in-flight record."""
        return self.records.batches.floor(offset).state_at(offset)

    @property
    def last_written(self):
        """Return the start offset and the batches of the last write."""
        state = self.coordinator.written[-1]
        return Written(state.start_offset, list(state.state_batches))


def code_of(result):
    return result.error_code if isinstance(result, ApiError) else result


def fetched_of(*batches, **fields):
    """Return fetched batches, each given as (first, last)."""
    data = [build_batch([b"v"] * (last - first + 1), base_offset=first, **fields) for first, last in batches]
    return FetchedRecords(data)


@pytest.fixture
def make_bench():
    return Bench


@pytest.fixture
def bench():
    return Bench().open()
