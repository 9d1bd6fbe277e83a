"""Offsets of streams groups: members commit and fetch in the epochs of their tasks."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.group.offset_fetch import OffsetQuery
from broker_sim.group.offsets import OffsetCommit, OffsetToCommit
from broker_sim.protocol import messages
from tests.broker_sim.group.streams.members import GROUP

NONE = ErrorCode.NONE
STALE = ErrorCode.STALE_MEMBER_EPOCH
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def moved(streams):
    """Return two members: the first one has had task 0 since epoch 2, and is in epoch 3; the second has task 1."""
    streams.bench.set_topic("in", 2)
    first, second = streams.member("a"), streams.member("b")
    first.join()
    second.join()
    streams.settle(first, second)
    assert (first.epoch, first.active, second.active) == (3, {"0": [0]}, {"0": [1]})
    return streams


def commit(streams, member_id, epoch, *, topic="in", partition=0, version=9):
    """Return the error and the text of a commit."""
    told = []
    offset = OffsetToCommit(topic, bytes(16), partition, 5, -1, None)
    streams.bench.service.offset_commit(
        OffsetCommit(GROUP, member_id, None, epoch, version, [offset]),
        lambda errors: told.extend((error, None) for error in errors),
        lambda error: told.append((error.error_code, error.error_message)),
    )
    streams.bench.run_later()
    return told[0]


@pytest.mark.parametrize(
    ("member_id", "epoch", "options", "code", "text"),
    [
        ("a", 3, {}, NONE, None),
        ("a", 3, {"topic": "other"}, NONE, None),
        ("a", 2, {}, NONE, None),
        ("a", 1, {}, STALE, "Received member epoch 1 is older than assignment epoch 2 for task 0-0."),
        ("a", 4, {}, STALE, "Received member epoch 4 is newer than current member epoch 3."),
        ("a", 2, {"partition": 1}, STALE, "Task 0-1 is not assigned or pending revocation for member."),
        ("a", 2, {"topic": "other"}, STALE, "Topic other is not in the topology."),
        ("c", 3, {}, UNKNOWN, f"Member c is not a member of group {GROUP}."),
        ("", -1, {}, UNKNOWN, f"Member  is not a member of group {GROUP}."),
        (
            "a",
            3,
            {"version": 8},
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the streams group protocol",
        ),
    ],
)
def test_commit_is_checked(moved, member_id, epoch, options, code, text):
    assert commit(moved, member_id, epoch, **options) == (code, text)


def test_tool_may_commit_for_a_group_without_members(moved):
    for member in "ab":
        moved.member(member).leave()
    assert commit(moved, "", -1) == (NONE, None)


def test_task_pending_revocation_can_be_committed(streams):
    streams.bench.set_topic("in", 2)
    first, second = streams.member("a"), streams.member("b")
    first.join()
    second.join()
    first.beat()
    assert (first.epoch, first.active) == (2, {"0": [0]})
    first.beat(owned=({"0": [0, 1]}, {}, {}))
    assert commit(streams, "a", 2, partition=1) == (NONE, None)


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [("a", 3, NONE), (None, -1, NONE), ("a", 2, STALE), ("c", 3, UNKNOWN), (None, 3, ErrorCode.UNKNOWN_SERVER_ERROR)],
)
def test_fetch_is_checked(moved, member_id, epoch, code):
    commit(moved, "a", 3)
    asked = messages.OffsetFetchRequest.OffsetFetchRequestGroup(GROUP, member_id, epoch, None)
    told = []
    query = OffsetQuery(asked, require_stable=False, by_topic_id=False, error_of=lambda *_: NONE)
    moved.bench.service.offset_fetch(
        query, lambda group: told.append(NONE), lambda error: told.append(error.error_code)
    )
    assert told == [code]


def test_offsets_of_topics_in_use_are_kept(moved):
    commit(moved, "a", 3)

    def delete():
        told = []
        moved.bench.service.offset_delete(GROUP, [("in", 0)], told.extend, told.append)
        return told

    assert delete() == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    for member in "ab":
        moved.member(member).leave()
    assert delete() == [NONE]
    assert moved.bench.shard.offsets.get(GROUP, "in", 0) is None
