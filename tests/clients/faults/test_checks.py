"""The checks of the soak find what they are for."""

from types import SimpleNamespace

import pytest

from .checks import check_acknowledged, check_answered, check_copied, check_ended, check_pairs, used_again


def writer(*acknowledged):
    return SimpleNamespace(name="w", failed=[], acknowledged={0: list(acknowledged)})


def pairs(outcome, *committed):
    return SimpleNamespace(name="p", outcomes={b"p-1": outcome}, committed=list(committed))


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ([(0, b"w-0"), (1, b"v-7"), (2, b"w-1")], None),
        ([(0, b"w-0"), (1, b"w-1")], "not at their offset"),
        ([(0, b"w-0")], "not at their offset"),
        ([(0, b"w-0"), (2, b"w-1"), (3, b"w-1")], "twice"),
        ([(0, b"w-0"), (1, b"w-2"), (2, b"w-1")], "out of order"),
    ],
)
def test_loss_repetition_and_order_of_acknowledged_records(records, found):
    wrong = check_acknowledged(writer((0, b"w-0"), (2, b"w-1")), {0: records})
    assert any(found in line for line in wrong) if found else not wrong


def test_record_of_unknown_offset_may_be_anywhere_but_not_nowhere():
    assert not check_acknowledged(writer((None, b"w-0")), {0: [(5, b"w-0")]})
    assert check_acknowledged(writer((None, b"w-0")), {0: [(5, b"w-1")]})


@pytest.mark.parametrize(
    ("outcome", "shown", "is_wrong"),
    [
        (True, (0, 1), False),
        (True, (0,), True),
        (True, (0, 0), True),
        (False, (), False),
        (False, (0, 1), True),
        (None, (), False),
        (None, (0, 1), False),
        (None, (1,), True),
    ],
)
def test_transactions_are_shown_whole_or_not_at_all(outcome, shown, is_wrong):
    records = {0: [], 1: []}
    for partition in shown:
        records[partition].append((len(records[partition]), b"p-1"))
    assert bool(check_pairs(pairs(outcome), records)) is is_wrong


def test_only_a_record_that_was_taken_for_an_aborted_one_is_excused():
    committed = {0: [(3, b"p-1")], 1: [(8, b"p-2")]}
    uncommitted = {0: [(3, b"p-1")], 1: [(4, b"p-0"), (8, b"p-2")]}
    client = pairs(True, (0, 3, b"p-1"), (1, 4, b"p-1"))
    assert check_pairs(client, committed)
    excused = used_again([client], committed, uncommitted)
    assert excused == {b"p-1"}
    assert not check_pairs(client, committed, excused)
    lost = pairs(True, (0, 3, b"p-1"), (1, 5, b"p-1"))
    assert used_again([lost], committed, uncommitted) == set()


@pytest.mark.parametrize("copy", [[b"b", b"a"], [b"a"], [b"a", b"b", b"b"]])
def test_copy_has_the_same_records_in_the_same_order(copy):
    read = {0: [(0, b"a"), (1, b"b")]}
    assert not check_copied(read, {0: [(5, b"a"), (7, b"b")]})
    assert check_copied(read, {0: list(enumerate(copy))})


def test_open_transactions_and_unanswered_requests():
    status = {
        "transactions": [{"transactional_id": "p", "state": "Ongoing", "coordinator": 1}],
        "producers": [{"topic": "t", "partition": 0, "producer_id": 7, "transaction_start_offset": 3}],
    }
    assert len(check_ended(status)) == 2
    request = {
        "api": "Fetch",
        "api_version": 16,
        "client_id": "reader",
        "broker": 1,
        "received_ms": 10,
        "elapsed_ms": None,
    }
    assert check_answered([request], received_before_ms=11)
    assert not check_answered([request], received_before_ms=10)
    assert not check_answered([request | {"elapsed_ms": 3}], received_before_ms=11)
