import random

import pytest

from broker_sim.log.producer_state_manager import (
    ProducerStateManager,
    ProducerStateManagerConfig,
    UnreplicatedTransactions,
)
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import Record, build_batch, build_end_txn_marker

TRANSACTIONS = 400


class Offset(int):
    """An offset that counts how often it is compared."""

    compared = 0

    def __lt__(self, other):
        Offset.compared += 1
        return int(self) < int(other)

    def __gt__(self, other):
        Offset.compared += 1
        return int(self) > int(other)

    __hash__ = int.__hash__


@pytest.mark.parametrize("seed", range(5))
def test_lowest_first_offset_is_that_of_a_simple_model(seed):
    rng = random.Random(seed)
    transactions, model = UnreplicatedTransactions(), {}
    free = list(range(300))
    rng.shuffle(free)
    for marker in range(300, 600):
        if rng.random() < 0.7:
            first = free.pop()
            model[first] = marker
            transactions.add(first, marker)
        else:
            bound = rng.randrange(marker - 20, marker)
            model = {first: end for first, end in model.items() if end >= bound}
            transactions.forget_below(bound)
        assert transactions.lowest() == min(model, default=None)
        assert len(transactions.markers) == len(model)
    transactions.clear()
    assert (transactions.lowest(), len(transactions.markers)) == (None, 0)


def test_work_for_a_log_of_transactions_grows_with_their_number():
    """A log that is opened after a kill has them all at once, and no high watermark yet."""
    Offset.compared = 0
    state = ProducerStateManager(TopicPartition("topic", 0), ProducerStateManagerConfig())
    batch = build_batch([Record(b"v")], producer_id=7, producer_epoch=0, is_transactional=True)
    marker = build_end_txn_marker(producer_id=7, producer_epoch=0, is_commit=True, timestamp=0)
    for number in range(TRANSACTIONS):
        for offset, written in ((2 * number, batch), (2 * number + 1, marker)):
            state.update(written, parse_header(written), Offset(offset), 0)
    assert state.first_unstable_offset == 0
    assert Offset.compared < 10 * TRANSACTIONS
    state.on_high_watermark_updated(2 * TRANSACTIONS)
    assert state.first_unstable_offset is None
    assert Offset.compared < 30 * TRANSACTIONS
