"""Tests of the partitions that a coordinator leads: loaded before they serve requests, dropped at once."""

from types import SimpleNamespace

import pytest

from broker_sim.coordinator.runtime import CoordinatorRuntime
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import MetadataImage, changes_between
from broker_sim.metadata.image import PartitionState, TopicState
from tests.broker_sim.broker_contexts import broker_context

TOPIC = "__some_state"
ME = 1


class Shard:
    def __init__(self, partition, runtime):
        self.partition = partition


class Owner:
    """A coordinator that logs the calls it gets in `calls`; `run` runs the callbacks that are due."""

    def __init__(self, keeps=True):
        self.calls = []
        self.due = []
        self.error = None
        topic = SimpleNamespace(name=TOPIC, default_partitions=50, storage=self, keeps_shards_when_reelected=keeps)
        broker = broker_context(broker_id=ME, call_later=self.call_later)
        self.runtime = CoordinatorRuntime(broker, topic, self)

    def call_later(self, delay_ms, callback, *args):
        assert delay_ms == 0
        self.due.append((callback, args))

    def run(self):
        due, self.due = self.due, []
        for callback, args in due:
            callback(*args)

    def read(self, partition):
        self.calls.append(f"load {partition}")
        if self.error is not None:
            raise self.error
        return ()

    def make_shard(self, partition, runtime):
        return Shard(partition, runtime)

    def loaded(self, context):
        assert self.runtime.get(context.partition) is context
        self.calls.append(f"loaded {context.partition} in {context.leader_epoch}")

    def unloaded(self, context):
        assert not context.is_active
        self.calls.append(f"unloaded {context.partition}")


def error_of(runtime, partition):
    with pytest.raises(ApiError) as refused:
        runtime.get(partition)
    return refused.value.error_code


def test_partition_is_served_once_it_is_loaded():
    owner = Owner()
    assert error_of(owner.runtime, 3) is ErrorCode.NOT_COORDINATOR
    owner.runtime.elected(3, 7)
    assert error_of(owner.runtime, 3) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert owner.runtime.is_loading
    owner.run()
    assert owner.runtime.get(3).leader_epoch == 7
    assert not owner.runtime.is_loading
    owner.runtime.resigned(3)
    assert error_of(owner.runtime, 3) is ErrorCode.NOT_COORDINATOR
    assert owner.calls == ["load 3", "loaded 3 in 7", "unloaded 3"]


def test_partition_lost_before_loading_is_not_loaded():
    owner = Owner()
    owner.runtime.elected(3, 7)
    owner.runtime.resigned(3)
    owner.run()
    assert owner.calls == []
    assert error_of(owner.runtime, 3) is ErrorCode.NOT_COORDINATOR


def test_partition_elected_twice_before_loading_is_loaded_once():
    owner = Owner()
    owner.runtime.elected(3, 7)
    owner.runtime.elected(3, 8)
    owner.run()
    assert owner.calls == ["load 3", "loaded 3 in 8"]


@pytest.mark.parametrize("epoch", [6, 7])
def test_election_in_same_or_earlier_epoch_is_ignored(epoch):
    owner = Owner(keeps=False)
    owner.runtime.elected(3, 7)
    owner.run()
    owner.runtime.elected(3, epoch)
    assert owner.runtime.get(3).leader_epoch == 7


@pytest.mark.parametrize("keeps", [True, False])
def test_reelected_leader_keeps_or_reloads_its_shard(keeps):
    owner = Owner(keeps)
    owner.runtime.elected(3, 7)
    owner.run()
    owner.runtime.elected(3, 8)
    owner.run()
    assert owner.runtime.get(3).leader_epoch == 8
    again = [] if keeps else ["unloaded 3", "load 3", "loaded 3 in 8"]
    assert owner.calls == ["load 3", "loaded 3 in 7", *again]


def test_reload_drops_and_loads_the_partition():
    owner = Owner()
    owner.runtime.elected(3, 7)
    owner.run()
    owner.runtime.reload(3)
    owner.run()
    assert owner.calls == ["load 3", "loaded 3 in 7", "unloaded 3", "load 3", "loaded 3 in 7"]


@pytest.mark.parametrize("error", [ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "offline"), ValueError("no record")])
def test_failed_load_is_retried_in_a_new_epoch(caplog, error):
    owner = Owner()
    owner.error = error
    owner.runtime.elected(3, 7)
    owner.run()
    assert not owner.runtime.is_loading
    assert error_of(owner.runtime, 3) is ErrorCode.NOT_COORDINATOR
    assert "coordinator_load_failed" in caplog.text
    assert str(error) in caplog.text
    owner.error = None
    owner.runtime.elected(3, 7)
    assert owner.due == []
    owner.runtime.elected(3, 8)
    owner.run()
    assert owner.calls == ["load 3", "load 3", "loaded 3 in 8"]


def test_unexpected_load_error_is_raised():
    owner = Owner()
    owner.error = KeyError("a defect")
    owner.runtime.elected(3, 7)
    with pytest.raises(KeyError, match="a defect"):
        owner.run()
    assert not owner.runtime.is_loading
    assert error_of(owner.runtime, 3) is ErrorCode.NOT_COORDINATOR


def test_failed_partition_is_loaded_after_resignation():
    owner = Owner()
    owner.error = ValueError("no record")
    owner.runtime.elected(3, 7)
    owner.run()
    owner.error = None
    owner.runtime.resigned(3)
    owner.runtime.elected(3, 7)
    owner.run()
    assert owner.runtime.get(3).leader_epoch == 7


def image(version, leaders, name=TOPIC):
    parts = tuple(
        PartitionState((1, 2), (1, 2), leader, leader_epoch=version, partition_epoch=version) for leader in leaders
    )
    topics = {name: TopicState(name, b"t" * 16, parts)} if leaders else {}
    return MetadataImage(version, "c", topics=topics)


def test_partitions_are_loaded_and_dropped_as_leaders_change():
    owner = Owner()
    first, second, third = image(1, [1, 2, 1]), image(2, [2, 1, 1]), image(3, [])
    owner.runtime.follow(changes_between(image(0, []), first), first)
    owner.run()
    assert [part.partition for part in owner.runtime.loaded()] == [0, 2]
    owner.runtime.follow(changes_between(first, second), second)
    owner.run()
    assert [part.partition for part in owner.runtime.loaded()] == [1, 2]
    owner.runtime.follow(changes_between(second, third), third)
    assert owner.runtime.loaded() == []


def test_leaders_of_other_topics_are_ignored():
    owner = Owner()
    other = image(1, [1, 1], "other")
    owner.runtime.follow(changes_between(image(0, []), other), other)
    assert not owner.runtime.is_loading


def test_shutdown_does_not_call_the_owner():
    owner = Owner()
    owner.runtime.elected(3, 7)
    owner.runtime.elected(4, 7)
    owner.run()
    owner.runtime.elected(5, 7)
    calls = list(owner.calls)
    owner.runtime.shutdown()
    owner.run()
    assert owner.calls == calls
    assert owner.runtime.loaded() == []


def test_partition_of_key_uses_the_initial_partition_count():
    runtime = Owner().runtime
    before, seen = image(0, []), []
    for version, count in enumerate((0, 3, 4, 0, 4), 1):
        now = image(version, [1] * count)
        runtime.follow(changes_between(before, now), now)
        seen.append(runtime.partition_for("my-group"))
        before = now
    assert seen == [12, 0, 0, 12, 2]
