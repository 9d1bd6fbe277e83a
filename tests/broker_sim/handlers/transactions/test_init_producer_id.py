"""InitProducerId: ids come in blocks from the controller, and a client waits for none of them."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.transactions.init_producer_id import handle_init_producer_id
from broker_sim.protocol import messages

BLOCK_SIZE = 1_000


def ask(broker, version=5, **fields):
    request = messages.InitProducerIdRequest(transactional_id=None, **fields)
    answer = broker.ask(handle_init_producer_id, request, version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_client_retries_until_the_first_block_of_ids_arrives(broker):
    assert ask(broker) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
    assert ask(broker) == (ErrorCode.NONE, 0, 0)
    assert ask(broker) == (ErrorCode.NONE, 1, 0)


def test_next_block_arrives_before_the_last_one_is_used_up(broker):
    ask(broker)
    answers = [ask(broker) for _ in range(2 * BLOCK_SIZE)]
    assert [producer_id for _, producer_id, _ in answers] == list(range(2 * BLOCK_SIZE))


def test_unregistered_broker_retries_its_block_request_after_a_backoff(make_broker):
    broker = make_broker(brokers=(2, 3))
    assert ask(broker)[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.start(1)
    assert ask(broker)[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert ask(broker)[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "within the backoff"
    broker.pass_time(50)
    assert ask(broker)[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert ask(broker) == (ErrorCode.NONE, 0, 0)


@pytest.mark.parametrize("fields", [{"producer_id": 7}, {"producer_epoch": 3}])
def test_producer_id_without_epoch_and_epoch_without_id_are_invalid(broker, fields):
    assert ask(broker, **fields) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_transactional_id_gets_the_next_epoch(txn):
    first = txn.init()
    assert first.error_code == ErrorCode.NONE
    assert first.producer_epoch == 0
    for version in range(6):
        again = txn.init(version=version)
        assert (again.producer_id, again.producer_epoch) == (first.producer_id, version + 1)


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED), (5, ErrorCode.PRODUCER_FENCED)],
)
def test_fenced_producer_gets_the_error_of_its_version(txn, version, error):
    first = txn.init()
    txn.init()
    fenced = txn.init(version=version, producer_id=first.producer_id, producer_epoch=first.producer_epoch)
    assert (fenced.error_code, fenced.producer_id, fenced.producer_epoch) == (error, -1, -1)


def test_producer_continues_in_the_next_epoch(txn):
    first = txn.init()
    told = txn.init(producer_id=first.producer_id, producer_epoch=0)
    assert (told.error_code, told.producer_epoch) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize("timeout_ms", [0, 900_001])
def test_timeout_is_checked(txn, timeout_ms):
    told = txn.init(timeout_ms=timeout_ms)
    assert told.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_empty_transactional_id_is_invalid(txn):
    request = messages.InitProducerIdRequest("", 60_000)
    assert txn.ask(request, 5).error_code == ErrorCode.INVALID_REQUEST


def test_other_brokers_are_not_the_coordinator(txn):
    assert txn.init(broker=txn.another()).error_code == ErrorCode.NOT_COORDINATOR
