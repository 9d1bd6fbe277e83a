"""Tests of combining state batches."""

from random import Random

import pytest

from broker_sim.share.coordinator.state_batches import combine_state_batches
from broker_sim.share.share_state import StateBatch
from tests.broker_sim.share.named_values import ACKNOWLEDGED, ARCHIVED, AVAILABLE, state_batch


@pytest.mark.parametrize(
    ("so_far", "new", "combined"),
    [
        # same state: adjacent, overlapping, one inside the other, with a gap
        ([state_batch(0, 4, ACKNOWLEDGED)], [state_batch(5, 9, ACKNOWLEDGED)], [state_batch(0, 9, ACKNOWLEDGED)]),
        ([state_batch(0, 4, ACKNOWLEDGED)], [state_batch(3, 9, ACKNOWLEDGED)], [state_batch(0, 9, ACKNOWLEDGED)]),
        ([state_batch(0, 9, ACKNOWLEDGED)], [state_batch(3, 5, ACKNOWLEDGED)], [state_batch(0, 9, ACKNOWLEDGED)]),
        (
            [state_batch(0, 4, ACKNOWLEDGED)],
            [state_batch(6, 9, ACKNOWLEDGED)],
            [state_batch(0, 4, ACKNOWLEDGED), state_batch(6, 9, ACKNOWLEDGED)],
        ),
        # different states: adjacent, equal, in the middle, at the start, at the end, beyond it
        (
            [state_batch(0, 4, AVAILABLE)],
            [state_batch(5, 9, ACKNOWLEDGED)],
            [state_batch(0, 4, AVAILABLE), state_batch(5, 9, ACKNOWLEDGED)],
        ),
        ([state_batch(0, 4, AVAILABLE)], [state_batch(0, 4, ACKNOWLEDGED)], [state_batch(0, 4, ACKNOWLEDGED)]),
        (
            [state_batch(0, 9, AVAILABLE)],
            [state_batch(3, 5, ACKNOWLEDGED)],
            [state_batch(0, 2, AVAILABLE), state_batch(3, 5, ACKNOWLEDGED), state_batch(6, 9, AVAILABLE)],
        ),
        (
            [state_batch(0, 9, AVAILABLE)],
            [state_batch(0, 5, ACKNOWLEDGED)],
            [state_batch(0, 5, ACKNOWLEDGED), state_batch(6, 9, AVAILABLE)],
        ),
        (
            [state_batch(0, 9, AVAILABLE)],
            [state_batch(5, 9, AVAILABLE, deliveries=2)],
            [state_batch(0, 4, AVAILABLE), state_batch(5, 9, AVAILABLE, deliveries=2)],
        ),
        (
            [state_batch(0, 5, AVAILABLE)],
            [state_batch(3, 9, AVAILABLE, deliveries=2)],
            [state_batch(0, 2, AVAILABLE), state_batch(3, 9, AVAILABLE, deliveries=2)],
        ),
        # the higher delivery count wins, whichever came first
        (
            [state_batch(0, 5, AVAILABLE, deliveries=2)],
            [state_batch(3, 9, ARCHIVED)],
            [state_batch(0, 5, AVAILABLE, deliveries=2), state_batch(6, 9, ARCHIVED)],
        ),
        (
            [state_batch(3, 5, AVAILABLE, deliveries=2)],
            [state_batch(0, 9, ARCHIVED)],
            [state_batch(0, 2, ARCHIVED), state_batch(3, 5, AVAILABLE, deliveries=2), state_batch(6, 9, ARCHIVED)],
        ),
    ],
)
def test_new_batches_are_combined_with_stored_ones(so_far, new, combined):
    assert list(combine_state_batches(so_far, new, -1)) == combined


def test_offsets_before_the_start_offset_are_dropped():
    batches = [StateBatch(0, 9, ACKNOWLEDGED, 1), StateBatch(10, 19, ARCHIVED, 1)]
    assert combine_state_batches(batches, (), 10) == (batches[1],)
    assert combine_state_batches(batches, (), 9) == (StateBatch(9, 9, ACKNOWLEDGED, 1), batches[1])
    assert combine_state_batches(batches, (), 20) == ()
    assert combine_state_batches(batches, (), -1) == tuple(batches)


@pytest.mark.parametrize("seed", range(30))
def test_highest_delivery_count_and_state_win_at_each_offset(seed):
    rng = Random(seed)

    def some_batches(max_count):
        for _ in range(rng.randrange(max_count)):
            first = rng.randrange(40)
            state = rng.choice((AVAILABLE, ACKNOWLEDGED, ARCHIVED))
            yield StateBatch(first, first + rng.randrange(12), state, rng.randrange(1, 4))

    so_far, new = list(some_batches(8)), list(some_batches(8))
    start_offset = rng.choice((-1, 0, 17))
    best = {}
    for batch in so_far + new:
        for offset in range(max(batch.first_offset, start_offset), batch.last_offset + 1):
            delivery = (batch.delivery_count, batch.delivery_state)
            best[offset] = max(best.get(offset, delivery), delivery)
    deliveries = {}
    for batch in combine_state_batches(so_far, new, start_offset):
        assert batch.first_offset > max(deliveries, default=-1)
        assert batch.last_offset >= batch.first_offset
        for offset in range(batch.first_offset, batch.last_offset + 1):
            deliveries[offset] = (batch.delivery_count, batch.delivery_state)
    assert deliveries == best


def test_completed_batch_is_not_merged_with_a_later_combination():
    # As in Kafka: the first batch was already emitted when the others were combined into one with the same state.
    batches = [
        state_batch(0, 7, AVAILABLE, deliveries=3),
        state_batch(8, 9, AVAILABLE),
        state_batch(8, 10, AVAILABLE, deliveries=3),
    ]
    assert combine_state_batches(batches, (), -1) == (batches[0], batches[2])
