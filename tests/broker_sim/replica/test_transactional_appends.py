"""Appends that wait for the coordinator, with broker 1 alone and a coordinator that the test plays."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch, build_end_txn_marker
from broker_sim.replica import TransactionalAppends, TransactionalProducer, TransactionSupportedOperation

TOPIC = "topic"
DEFAULT, GENERIC, ADDS = TransactionSupportedOperation
NONE, ABORTABLE = ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE
NOT_ENOUGH, CONCURRENT = ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS
UNVERIFIED = ErrorCode.INVALID_TXN_STATE


def key(number):
    return TopicPartition(TOPIC, number)


class Coordinator:
    """Holds the verifications until the test answers them."""

    def __init__(self):
        self.questions = []
        self._on_results = []

    def verify(self, transactional_id, producer_id, epoch, partitions, on_result, *, adds):
        numbers = sorted(partition.partition for partition in partitions)
        self.questions.append((transactional_id, producer_id, epoch, numbers, adds))
        self._on_results.append(on_result)

    def answer(self, **errors):
        """Answer the oldest verification; `p0=code` is the error of partition 0."""
        self._on_results.pop(0)({key(int(name[1:])): code for name, code in errors.items()})


class Setup:
    """Three partitions led by broker 1, without followers."""

    def __init__(self, broker):
        self.broker = broker
        self.partitions = [broker.lead(number, replicas=(1,), isr=(1,)) for number in range(3)]
        self.coordinator = Coordinator()
        self.timers = []
        self.appends = TransactionalAppends(
            broker.manager,
            self.coordinator,
            broker.actions,
            broker.config,
            broker.logs.producers,
            clock=broker.clock,
            call_later=lambda delay_ms, run: self.timers.append((delay_ms, run)),
        )

    def send(self, *numbers, operation=DEFAULT, sequence=0, epoch=0, acks=1, **header):
        """Append to the partitions; the list gets the statuses by number."""
        answers = []
        batch = build_batch(
            [b"v"],
            **{
                "producer_id": 7,
                "producer_epoch": epoch,
                "base_sequence": sequence,
                "is_transactional": True,
                **header,
            },
        )
        self.appends.append(
            {key(number): batch for number in numbers or (0,)},
            "id",
            operation,
            lambda statuses: answers.append({k.partition: s for k, s in statuses.items()}),
            timeout_ms=1_000,
            required_acks=acks,
        )
        return answers

    def codes(self, answers):
        (statuses,) = answers
        return {number: status.error_code for number, status in statuses.items()}

    def end(self, number=0, *, is_commit=True):
        marker = build_end_txn_marker(producer_id=7, producer_epoch=0, is_commit=is_commit, timestamp=0)
        self.partitions[number].log.append_as_leader(marker, 0, "coordinator")

    def ends(self):
        return [partition.log.log_end_offset for partition in self.partitions]


@pytest.fixture
def setup(broker):
    return Setup(broker)


def test_first_batch_waits_for_the_coordinator(setup):
    answers = setup.send(0, 1)
    assert setup.coordinator.questions == [("id", 7, 0, [0, 1], False)]
    assert (answers, setup.ends()) == ([], [0, 0, 0])
    setup.coordinator.answer()
    assert setup.codes(answers) == {0: NONE, 1: NONE}
    assert setup.ends() == [1, 1, 0]


def test_later_batches_of_the_transaction_are_not_verified(setup):
    setup.send(0)
    setup.coordinator.answer()
    assert setup.codes(setup.send(0, sequence=1)) == {0: NONE}
    assert len(setup.coordinator.questions) == 1


def test_only_new_partitions_are_verified(setup):
    setup.send(0)
    setup.coordinator.answer()
    answers = setup.send(0, 2, sequence=1)
    assert setup.coordinator.questions[1][3] == [2]
    assert (answers, setup.ends()) == ([], [1, 0, 0]), "one response answers all partitions"
    setup.coordinator.answer()
    assert setup.codes(answers) == {0: NONE, 2: NONE}


def test_other_partitions_are_appended_beside_a_refused_one(setup):
    answers = setup.send(0, 1)
    setup.coordinator.answer(p1=ErrorCode.INVALID_TXN_STATE, p0=NONE)
    assert setup.codes(answers) == {0: NONE, 1: UNVERIFIED}
    status = answers[0][1]
    assert status.error_message == "Partition was not added to the transaction"
    assert (status.base_offset, status.log_start_offset) == (-1, -1)
    assert setup.ends() == [1, 0, 0]


def test_acks_all_waits_for_the_replicas_after_the_coordinator(make_broker):
    broker = make_broker()
    setup = Setup(broker)
    partition = broker.lead(0)
    answers = setup.send(0, acks=-1)
    setup.coordinator.answer()
    assert (answers, partition.log.log_end_offset) == ([], 1)
    for follower in (2, 3):
        broker.replicate(follower, 1)
    assert setup.codes(answers) == {0: NONE}


@pytest.mark.parametrize(
    "error", ["NETWORK_EXCEPTION", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"]
)
@pytest.mark.parametrize("operation", TransactionSupportedOperation)
def test_unreachable_coordinator_is_returned_as_not_enough_replicas(setup, operation, error):
    answers = setup.send(operation=operation)
    setup.coordinator.answer(p0=ErrorCode[error])
    assert setup.codes(answers) == {0: NOT_ENOUGH}
    assert answers[0][0].error_message == (
        f"Unable to verify the partition has been added to the transaction. Underlying error: {error}"
    )


@pytest.mark.parametrize(
    ("operation", "answer", "error"),
    [
        (DEFAULT, ABORTABLE, UNVERIFIED),
        (GENERIC, ABORTABLE, ABORTABLE),
        (ADDS, ABORTABLE, ABORTABLE),
        (DEFAULT, CONCURRENT, NOT_ENOUGH),
        (GENERIC, CONCURRENT, NOT_ENOUGH),
        (DEFAULT, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_client_gets_an_error_that_it_can_handle(setup, operation, answer, error):
    answers = setup.send(operation=operation)
    setup.coordinator.answer(p0=answer)
    assert setup.codes(answers) == {0: error}
    assert setup.timers == []


def test_producer_of_version_2_lets_the_leader_add_the_partition(setup):
    setup.send(operation=ADDS)
    assert setup.coordinator.questions == [("id", 7, 0, [0], True)]


@pytest.mark.parametrize(("waited_ms", "asks_again"), [(99, True), (100, False), (101, False)])
def test_leader_retries_while_the_previous_transaction_is_ending(setup, waited_ms, asks_again):
    answers = setup.send(operation=ADDS)
    setup.broker.clock.advance(waited_ms)
    setup.coordinator.answer(p0=CONCURRENT)
    if not asks_again:
        assert setup.codes(answers) == {0: CONCURRENT}
        assert setup.timers == []
        return
    ((delay_ms, ask_again),) = setup.timers
    assert (delay_ms, answers) == (20, [])
    ask_again()
    setup.coordinator.answer()
    assert setup.codes(answers) == {0: NONE}


def test_batch_is_refused_if_a_marker_overtakes_the_verification(setup):
    answers = setup.send()
    setup.end(is_commit=False)
    setup.coordinator.answer()
    assert setup.codes(answers) == {0: UNVERIFIED}
    assert setup.ends() == [1, 0, 0]


def test_two_requests_in_flight_are_both_appended_in_the_order_of_their_sequences(setup):
    first, second = setup.send(sequence=0), setup.send(sequence=1)
    setup.coordinator.answer()
    setup.coordinator.answer()
    assert (setup.codes(first), setup.codes(second)) == ({0: NONE}, {0: NONE})
    assert setup.ends() == [2, 0, 0]


def test_second_request_verified_first_is_out_of_order(setup):
    first, second = setup.send(sequence=0), setup.send(sequence=1)
    setup.coordinator._on_results.reverse()
    setup.coordinator.answer()
    assert setup.codes(second) == {0: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
    setup.coordinator.answer()
    assert setup.codes(first) == {0: NONE}


def test_older_epoch_is_refused_without_verification(setup):
    setup.partitions[0].log.append_as_leader(
        build_end_txn_marker(producer_id=7, producer_epoch=5, is_commit=True, timestamp=0), 0, "coordinator"
    )
    answers = setup.send(epoch=4)
    assert setup.codes(answers) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert answers[0][0].log_start_offset == -1
    assert setup.coordinator.questions == []


def test_partition_led_elsewhere_is_not_verified(setup):
    setup.partitions[1].is_leader = False
    answers = setup.send(0, 1)
    assert setup.coordinator.questions[0][3] == [0]
    setup.coordinator.answer()
    assert setup.codes(answers) == {0: NONE, 1: ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_former_leader_appends_nothing_once_verified(setup):
    answers = setup.send()
    setup.partitions[0].is_leader = False
    setup.coordinator.answer()
    assert setup.codes(answers) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_batches_of_two_producers_are_refused_together(setup):
    def batch(producer_id):
        return build_batch([b"v"], producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)

    with pytest.raises(ApiError) as caught:
        setup.appends.append(
            {key(0): batch(1), key(1): batch(2)}, "id", DEFAULT, lambda _: None, timeout_ms=0, required_acks=1
        )
    assert caught.value.error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert setup.ends() == [0, 0, 0]


def test_batch_without_a_producer_is_appended_at_once(setup):
    answers = setup.send(producer_id=-1, epoch=-1, sequence=-1)
    assert setup.codes(answers) == {0: NONE}
    assert setup.coordinator.questions == []


@pytest.mark.parametrize(("operation", "asks"), [(DEFAULT, False), (GENERIC, False), (ADDS, True)])
def test_with_verification_disabled_only_version_2_producers_are_verified(setup, operation, asks):
    setup.broker.logs.producers.transaction_verification_enabled = False
    answers = setup.send(operation=operation)
    assert bool(setup.coordinator.questions) is asks
    assert bool(answers) is not asks


def test_append_after_verification_wakes_a_fetch(setup):
    fetched = setup.broker.fetch(max_wait_ms=60_000)
    setup.send()
    assert fetched == []
    setup.coordinator.answer()
    assert fetched[0][0].size_bytes


def test_group_coordinator_verifies_and_appends_by_itself(setup):
    results = []
    producer = TransactionalProducer("id", 7, 0)
    setup.appends.verify({key(0): 0}, producer, ADDS, lambda *result: results.append(result))
    setup.coordinator.answer()
    ((errors, guards),) = results
    assert errors == {}
    batch = build_batch([b"v"], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    done = []
    setup.broker.manager.append_for_coordinator(
        key(0), batch, lambda _: None, done.append, timeout_ms=1_000, verification_guard=guards[key(0)]
    )
    assert done == [NONE]


@pytest.mark.parametrize(("version", "operation"), [(3, DEFAULT), (10, DEFAULT), (11, GENERIC), (12, ADDS), (13, ADDS)])
def test_produce_version_determines_supported_errors(version, operation):
    assert TransactionSupportedOperation.of_produce(version) is operation


@pytest.mark.parametrize(("version", "operation"), [(0, DEFAULT), (3, DEFAULT), (4, GENERIC), (5, ADDS)])
def test_txn_offset_commit_version_determines_supported_errors(version, operation):
    assert TransactionSupportedOperation.of_txn_offset_commit(version) is operation
