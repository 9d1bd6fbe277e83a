"""Tests of the two views of a shard's groups: the newest and the committed one."""

import random

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.group_timeline import GroupTimeline
from broker_sim.group.offset_fetch import OffsetQuery
from broker_sim.group.offsets import OffsetCommit, OffsetToCommit
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol import messages

GROUP = "group"


class Runtime:
    """A log: each write is one record, committed when the replicas have it."""

    def __init__(self):
        self.change_offset = 0
        self.high_watermark = 0


@pytest.fixture
def runtime():
    return Runtime()


@pytest.fixture
def groups(runtime):
    return GroupTimeline(runtime)


def test_committed_view_is_the_view_at_the_high_watermark():
    # The model keeps the whole state of each offset.
    rng = random.Random(5)
    for _ in range(200):
        runtime = Runtime()
        groups = GroupTimeline(runtime)
        history = [{}]
        for number in range(rng.randrange(1, 15)):
            for group_id in rng.sample("abc", rng.randrange(3)):
                if rng.random() < 0.6:
                    groups.put(group_id, f"{group_id} of {number}")
                else:
                    groups.remove(group_id)
            runtime.change_offset += 1
            history.append(dict(groups))
            runtime.high_watermark = rng.randint(runtime.high_watermark, runtime.change_offset)
            committed = history[runtime.high_watermark]
            assert {each: groups.committed(each) for each in "abc" if groups.committed(each)} == committed
            assert sorted(groups.all_committed()) == sorted(committed.values())


def test_reverted_change_restores_both_views(runtime, groups):
    groups.put("a", "old")
    runtime.change_offset = runtime.high_watermark = 1
    groups.put("a", "new")
    groups.revert("a")
    groups.put("b", "new")
    groups.revert("b")
    runtime.change_offset = runtime.high_watermark = 2
    assert dict(groups) == {"a": "old"}
    assert groups.all_committed() == ["old"]


def test_reverted_changes_do_not_accumulate(runtime, groups):
    groups.put("a", "old")
    for _ in range(100):
        groups.put("a", "new")
        groups.put("b", "new")
        groups.revert("a")
        groups.revert("b")
    assert (len(groups._changes), len(groups._changed)) == (1, 1)
    runtime.change_offset = runtime.high_watermark = 1
    assert groups.all_committed() == ["old"]
    assert not groups._changes
    assert not groups._changed


def test_committed_changes_are_dropped(runtime, groups):
    for number in range(100):
        groups.put("a", f"{number}")
        groups.remove("a")
        runtime.change_offset = runtime.high_watermark = number + 1
    assert groups.all_committed() == []
    assert not groups._changes
    assert not groups._changed


# -- in a shard -----------------------------------------------------------------------------------


def raise_error(error):
    raise error


def described(bench):
    return ErrorCode(bench.shard.describe(GROUP, 6).error_code)


def listed(bench):
    return [group.group_id for group in bench.service.list_groups((), ())]


def test_new_classic_group_is_not_found_before_its_record_is_committed(bench):
    bench.log.is_held = True
    bench.member().join()
    assert (described(bench), listed(bench)) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    with pytest.raises(ApiError, match="not found"):
        bench.describe()
    bench.log.release()
    assert (described(bench), listed(bench)) == (ErrorCode.NONE, [GROUP])


def test_new_consumer_group_is_not_found_before_its_records_are_committed(bench):
    bench.set_topic("t", 1)
    bench.log.is_held = True
    bench.consumer("m", "t").join()
    with pytest.raises(ApiError, match="not found"):
        bench.describe()
    bench.log.release()
    assert bench.describe().group_state == "Stable"


def test_deleted_group_is_shown_until_its_tombstone_is_committed(bench):
    bench.member().join()
    bench.log.is_held = True
    responses = []
    bench.service.delete_groups([GROUP], responses.append)
    assert (described(bench), listed(bench)) == (ErrorCode.NONE, [GROUP])
    bench.log.release()
    assert [result.error_code for result in responses[0]] == [ErrorCode.NONE]
    assert (described(bench), listed(bench)) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_loaded_groups_are_visible_once_committed(bench):
    bench.member().join()
    bench.fail_over()
    assert listed(bench) == [GROUP]
    bench.log.is_held = True
    bench.service.delete_groups([GROUP], lambda results: None)
    bench.fail_over()
    assert listed(bench) == [GROUP]
    bench.log.release()
    assert listed(bench) == []


def test_empty_group_is_restored_if_its_successor_cannot_be_written(bench):
    bench.set_topic("t", 1)
    member = bench.consumer("m", "t")
    member.join()
    member.leave()
    bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.member().join()
    assert bench.describe().group_state == "Empty"


def test_offsets_of_deleted_group_are_visible_until_committed(bench):
    commit = OffsetCommit(GROUP, "", None, -1, 8, [OffsetToCommit("t", NO_TOPIC_ID, 0, 5, -1, "")])
    bench.service.offset_commit(commit, lambda errors: None, raise_error)
    bench.run_later()
    bench.log.is_held = True
    bench.service.delete_groups([GROUP], lambda results: None)
    assert offsets(bench) == [5]
    bench.log.release()
    assert offsets(bench) == []


def offsets(bench):
    """Return all offsets of the group, without require_stable."""
    requested_group = messages.OffsetFetchRequest.OffsetFetchRequestGroup(GROUP, topics=None)
    responses = []
    query = OffsetQuery(requested_group, False, False, lambda topic, partition: ErrorCode.NONE)
    bench.service.offset_fetch(query, responses.append, raise_error)
    return [part.committed_offset for topic in responses[0].topics for part in topic.partitions]
