"""Claims about moving replicas (KIP-455)."""

import pytest

from broker_sim.controller import Outcome, Reassignment
from broker_sim.errors import ErrorCode
from broker_sim.metadata import NO_LEADER


@pytest.fixture
def cluster(make_cluster):
    return make_cluster().start(1, 2, 3, 4)


def move(cluster, *replicas, topic="t", number=0, **options):
    target = None if replicas == (None,) else replicas
    (outcome,) = cluster.controller.alter_partition_reassignments([Reassignment(topic, number, target)], **options)
    return outcome.outcome


def test_replicas_move_once_the_new_ones_are_in_sync(cluster):
    cluster.create("t", (1, 2))
    assert move(cluster, 3, 4).ok
    state = cluster.partition("t")
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert (state.leader, state.leader_epoch) == (1, 0)
    cluster.alter("t", (1, 2, 3))
    assert cluster.partition("t").is_reassigning
    assert cluster.alter("t", (1, 2, 3, 4)).error_code is ErrorCode.NEW_LEADER_ELECTED
    state = cluster.partition("t")
    assert (state.replicas, state.isr, state.leader) == ((3, 4), (3, 4), 3)
    assert not state.is_reassigning


def test_replicas_may_become_fewer_than_the_minimum_isr(cluster):
    # Seen on Kafka 4.3.1: the minimum counts the replicas before, so that those removed join the ELR.
    cluster.create("t", (1, 2, 3), configs={"min.insync.replicas": "2"})
    assert move(cluster, 3).ok
    state = cluster.partition("t")
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((3,), (3,), 3, 1)
    assert state.elr == (1, 2)


def test_replica_that_was_removed_cannot_lead_although_it_is_in_the_elr(cluster):
    cluster.create("t", (1, 2, 3), configs={"min.insync.replicas": "2"})
    move(cluster, 3)
    cluster.kill(3)
    state = cluster.partition("t")
    assert (state.replicas, state.isr, state.leader) == ((3,), (), NO_LEADER)


def test_ongoing_reassignments_are_listed(cluster):
    cluster.create("t", (1, 2), (2, 1))
    cluster.create("u", (1,))
    move(cluster, 3, 2, number=1)
    (ongoing,) = cluster.controller.list_partition_reassignments(None)
    assert (ongoing.topic, ongoing.partition, ongoing.replicas) == ("t", 1, (3, 2, 1))
    assert (ongoing.adding_replicas, ongoing.removing_replicas) == ((3,), (1,))
    listed = cluster.controller.list_partition_reassignments
    assert listed({"t": [0], "u": [0], "x": [0]}) == []
    assert listed({"t": [0, 1, 7]}) == [ongoing]


def test_reassignment_can_be_cancelled(cluster):
    cluster.create("t", (1, 2))
    move(cluster, 3, 2)
    cluster.alter("t", (1, 2))
    assert move(cluster, None).ok
    state = cluster.partition("t")
    assert (state.replicas, state.isr, state.is_reassigning) == ((2, 1), (1, 2), False)


def test_smaller_set_in_sync_is_taken_at_once(cluster):
    cluster.create("t", (1, 2, 3))
    assert move(cluster, 1, 2).ok
    state = cluster.partition("t")
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((1, 2), (1, 2), 1, 1)


def test_cancellation_that_loses_records_needs_unclean_elections(cluster):
    for name, allowed in (("t", "false"), ("u", "true")):
        configs = {"unclean.leader.election.enable": allowed}
        cluster.create(name, (1,), configs=configs)
        move(cluster, 2, 3, topic=name)
        cluster.alter(name, (1, 2))
    cluster.kill(1)
    outcome = move(cluster, None)
    assert outcome.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert outcome.error_message.endswith("would require an unclean leader election.")
    assert move(cluster, None, topic="u").ok
    assert cluster.partition("u").replicas == (1,)


@pytest.mark.parametrize(
    ("replicas", "options", "code"),
    [
        ((None,), {}, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ((1, 2), {"topic": "x"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((1, 2), {"number": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, 3), {"allow_replication_factor_change": False}, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_invalid_reassignment_is_refused(cluster, replicas, options, code):
    cluster.create("t", (1, 2))
    before = cluster.image
    assert move(cluster, *replicas, **options).error_code is code
    assert cluster.image is before


def test_reassignment_to_the_current_replicas_changes_nothing(cluster):
    cluster.create("t", (1, 2))
    before = cluster.image
    assert move(cluster, 1, 2) == Outcome()
    assert cluster.image is before
