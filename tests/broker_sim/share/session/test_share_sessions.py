"""Share sessions: their epochs, which partitions responses contain, and how sessions end."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_partition import TopicIdPartition
from broker_sim.share.session.share_session import ShareSessionKey
from broker_sim.share.session.share_sessions import ShareSessions

KEY = ShareSessionKey("group", "member")
OTHER = ShareSessionKey("group", "other")
FIRST, SECOND, THIRD = (TopicIdPartition(b"t" * 16, number, "topic") for number in range(3))


class Connection:
    def __init__(self):
        self._callbacks = []

    def when_lost(self, callback):
        self._callbacks.append(callback)

    def lose(self):
        assert len(self._callbacks) == 1
        self._callbacks.pop()()


class Answer:
    def __init__(self, *, has_records=False, has_error=False):
        self.has_records = has_records
        self.has_error = has_error


NOTHING = Answer()


class Bench:
    def __init__(self, max_sessions=10):
        self.connection = Connection()
        self.left, self.empty = [], []
        self.sessions = ShareSessions(max_sessions, on_member_leave=self.left.append, on_group_empty=self.empty.append)

    def context(self, epoch, *added, key=KEY, forgotten=(), acknowledges=False, connection=None):
        return self.sessions.new_context(
            key, epoch, added, forgotten, connection or self.connection, has_acknowledgements=acknowledges
        )

    def error(self, method, *arguments, **options):
        with pytest.raises(ApiError) as caught:
            method(*arguments, **options)
        return caught.value.error_code


@pytest.fixture
def bench():
    return Bench()


def in_response(context, **answers):
    return set(context.update({FIRST: answers.get("first", NOTHING)}))


def test_new_session_has_the_requested_partitions(bench):
    context = bench.context(0, FIRST, SECOND)
    assert list(context.partitions) == [FIRST, SECOND]
    assert bench.sessions.get(KEY).epoch == 1
    assert bench.sessions.partition_count == 2
    assert set(context.update({FIRST: NOTHING, SECOND: NOTHING})) == {FIRST, SECOND}


def test_request_adds_and_forgets_partitions_of_the_session(bench):
    bench.context(0, FIRST, SECOND)
    context = bench.context(1, THIRD, SECOND, forgotten=[FIRST])
    assert list(context.partitions) == [SECOND, THIRD]
    assert bench.sessions.get(KEY).epoch == 2
    assert bench.sessions.partition_count == 2


@pytest.mark.parametrize("epoch", [0, 1, -1])
def test_positive_epoch_other_than_the_next_one_is_rejected(bench, epoch):
    bench.context(0, FIRST)
    bench.context(1)
    if epoch > 0:
        code = ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert bench.error(bench.context, epoch) == code
        assert bench.error(bench.sessions.acknowledge_update, KEY, epoch) == code
    else:
        bench.context(epoch)
        assert bench.sessions.get(KEY).epoch == (1 if epoch == 0 else 2)


@pytest.mark.parametrize("epoch", [1, -1])
def test_unknown_session_is_not_found(bench, epoch):
    code = ErrorCode.SHARE_SESSION_NOT_FOUND
    assert bench.error(bench.context, epoch) == code
    assert bench.error(bench.sessions.acknowledge_update, KEY, epoch) == code


def test_first_request_cannot_acknowledge(bench):
    assert bench.error(bench.context, 0, acknowledges=True) == ErrorCode.INVALID_REQUEST
    assert bench.error(bench.sessions.acknowledge_update, KEY, 0) == (ErrorCode.INVALID_SHARE_SESSION_EPOCH)


def test_first_request_with_a_duplicate_partition_fails(bench):
    bench.context(0, FIRST)
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.error(bench.context, 0, FIRST, SECOND, FIRST) == code
    assert bench.sessions.get(KEY) is None


def test_acknowledge_request_increments_the_session_epoch(bench):
    bench.context(0, FIRST)
    bench.sessions.acknowledge_update(KEY, 1)
    assert bench.sessions.get(KEY).epoch == 2
    bench.sessions.acknowledge_update(KEY, -1)
    assert bench.sessions.get(KEY).epoch == 2


def test_epoch_wraps_around_to_1(bench):
    bench.context(0, FIRST)
    bench.sessions.get(KEY).epoch = 2**31 - 1
    bench.context(2**31 - 1)
    assert bench.sessions.get(KEY).epoch == 1


def test_number_of_sessions_is_limited():
    bench = Bench(max_sessions=1)
    bench.context(0, FIRST)
    assert bench.error(bench.context, 0, key=OTHER) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    bench.context(0, FIRST)
    bench.sessions.remove(KEY)
    bench.context(0, key=OTHER)


def test_response_contains_partitions_with_records_and_new_partitions(bench):
    bench.context(0, FIRST, SECOND)
    context = bench.context(1, THIRD)
    answers = {FIRST: NOTHING, SECOND: Answer(has_records=True), THIRD: NOTHING}
    assert set(context.in_response(answers)) == {SECOND, THIRD}
    assert set(context.update(answers)) == {SECOND, THIRD}
    assert list(bench.sessions.get(KEY)) == [FIRST, THIRD, SECOND]
    assert set(bench.context(2).update(answers)) == {SECOND}


def test_partition_is_in_the_response_again_after_an_error(bench):
    bench.context(0, FIRST)
    assert in_response(bench.context(1)) == set()
    assert in_response(bench.context(2), first=Answer(has_error=True)) == {FIRST}
    assert in_response(bench.context(3)) == {FIRST}
    assert in_response(bench.context(4)) == set()


def test_context_knows_when_a_later_request_has_continued_its_session(bench):
    first = bench.context(0, FIRST)
    second = bench.context(1)
    assert not first.has_moved_on
    assert not second.has_moved_on
    bench.context(2)
    assert second.has_moved_on


def test_lost_connection_ends_its_session(bench):
    bench.context(0, FIRST)
    bench.context(0, FIRST, key=OTHER, connection=Connection())
    bench.connection.lose()
    assert bench.left == [KEY]
    assert bench.sessions.get(KEY) is None
    assert bench.sessions.evictions == 1
    assert bench.empty == []


def test_last_lost_connection_empties_the_group(bench):
    bench.context(0, FIRST)
    bench.sessions.remove(KEY)
    assert bench.empty == []
    bench.connection.lose()
    assert (bench.left, bench.empty) == ([], ["group"])
    assert bench.sessions.evictions == 0


def test_new_session_does_not_end_with_the_old_connection(bench):
    bench.context(0, FIRST)
    bench.context(0, FIRST, connection=Connection())
    bench.connection.lose()
    assert bench.sessions.get(KEY) is not None
    assert (bench.left, bench.empty) == ([], [])


def test_new_session_on_the_same_connection_ends_with_it(bench):
    bench.context(0, FIRST)
    bench.context(0, FIRST)
    bench.connection.lose()
    assert bench.left == [KEY]
    assert bench.empty == ["group"]


def test_partitions_of_ended_sessions_are_not_counted(bench):
    bench.context(0, FIRST, SECOND)
    bench.context(0, FIRST, key=OTHER, connection=Connection())
    assert bench.sessions.partition_count == 3
    bench.sessions.remove(KEY)
    assert bench.sessions.partition_count == 1
    bench.context(0, FIRST, SECOND)
    bench.connection.lose()
    assert bench.sessions.partition_count == 1


def test_remove_all_ends_all_sessions(bench):
    bench.context(0, FIRST)
    bench.sessions.remove_all()
    assert (len(bench.sessions), bench.sessions.partition_count) == (0, 0)
    bench.connection.lose()
    assert bench.left == []


def test_ended_sessions_of_an_open_connection_are_not_counted_for_their_groups(bench):
    for number in range(3):
        key = ShareSessionKey(f"group-{number}", "member")
        bench.context(0, FIRST, key=key)
        bench.sessions.remove(key)
    assert not bench.sessions._session_counts
    bench.connection.lose()
    assert bench.empty == ["group-2"]
