"""Claims about replica placement, as StripedReplicaPlacerTest makes them."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_sim.controller.replica_placer import StripedReplicaPlacer, UsableBroker
from broker_sim.errors import ApiError, ErrorCode


def brokers(*racks, fenced=()):
    return [UsableBroker(i, rack, i in fenced) for i, rack in enumerate(racks)]


def place(usable, partitions, factor, seed=0):
    return StripedReplicaPlacer(usable, Random(seed)).place(partitions, factor)


def test_partitions_are_striped_over_the_brokers():
    placed = place(brokers(None, None, None, None), 4, 3)
    assert Counter(replicas[0] for replicas in placed) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert set(Counter(r for replicas in placed for r in replicas).values()) == {3}


def test_replicas_go_to_different_racks_while_there_are_any():
    usable = brokers("a", "a", "b", "b", "c", "c")
    racks = {broker.broker_id: broker.rack for broker in usable}
    for replicas in place(usable, 30, 3):
        assert len({racks[r] for r in replicas}) == 3


def test_fenced_broker_is_never_first_and_is_used_when_others_are_missing():
    usable = brokers(None, None, None, fenced=(1,))
    for replicas in place(usable, 20, 3):
        assert replicas[0] != 1
        assert replicas[2] == 1
    assert all(1 not in replicas for replicas in place(usable, 20, 2))


def test_neighbours_change_after_each_round():
    pairs = set(place(brokers(None, None, None, None), 400, 2))
    assert len(pairs) == 12


def test_placement_depends_on_the_seed_alone():
    usable = brokers("a", "b", "a", "b", None)
    assert place(usable, 50, 3, seed=5) == place(usable, 50, 3, seed=5)
    assert place(usable, 50, 3, seed=5) != place(usable, 50, 3, seed=6)


@pytest.mark.parametrize(
    ("usable", "factor", "text"),
    [
        (brokers(None, None), 0, "the replication factor must be positive"),
        (brokers(None, None, fenced=(0, 1)), 1, "All brokers are currently fenced"),
        ([], 1, "All brokers are currently fenced"),
        (brokers(None, None), 3, "only 2 broker\\(s\\) are registered"),
    ],
)
def test_impossible_placement_is_an_invalid_replication_factor(usable, factor, text):
    with pytest.raises(ApiError, match=text) as error:
        place(usable, 1, factor)
    assert error.value.error_code is ErrorCode.INVALID_REPLICATION_FACTOR


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), max_size=9),
    st.integers(1, 20),
    st.integers(1, 9),
    st.integers(0, 2**32),
)
def test_every_placement_has_distinct_brokers_and_an_unfenced_leader(shape, partitions, factor, seed):
    usable = [UsableBroker(i, rack, fenced) for i, (rack, fenced) in enumerate(shape)]
    unfenced = {b.broker_id for b in usable if not b.fenced}
    if not unfenced or factor > len(usable):
        with pytest.raises(ApiError):
            place(usable, partitions, factor, seed)
        return
    placed = place(usable, partitions, factor, seed)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(replicas) == len(set(replicas)) == factor
        assert replicas[0] in unfenced
