import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.data.fetch import handle_fetch
from broker_sim.protocol.messages import FetchRequest


def ask(broker, version, **fields):
    topics = [FetchRequest.FetchTopic(topic="t", partitions=[FetchRequest.FetchPartition(0)])]
    if version >= 13:
        topics = []
    return broker.ask(handle_fetch, FetchRequest(topics=topics, **fields), version)


@pytest.mark.parametrize("version", range(4, 13))
def test_an_unknown_isolation_level_fails_every_partition_by_name(broker, version):
    response = ask(broker, version, isolation_level=2)
    assert response.error_code == (ErrorCode.UNKNOWN_SERVER_ERROR if version >= 7 else 0)
    (topic,) = response.responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", range(13, 19))
def test_an_unknown_isolation_level_fails_the_request_by_id(broker, version):
    response = ask(broker, version, isolation_level=2)
    assert (response.error_code, response.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


@pytest.mark.parametrize("session_id", [0, 77])
def test_a_session_that_nobody_keeps_cannot_go_on(broker, session_id):
    response = ask(broker, 13, session_id=session_id, session_epoch=5)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_a_whole_request_is_answered_without_a_session(broker, session_epoch):
    response = ask(broker, 13, session_epoch=session_epoch)
    assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
