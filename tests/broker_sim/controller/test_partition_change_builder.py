"""Claims about the next state of a partition, as PartitionChangeBuilderTest makes them."""

import pytest

from broker_sim.controller.partition_change_builder import Election, PartitionChangeBuilder
from broker_sim.metadata import NO_LEADER, PartitionState

FOO = PartitionState((2, 1, 3), (2, 1, 3), 1, leader_epoch=100, partition_epoch=200)
LEADERLESS = PartitionState((1, 2, 3), (3,), NO_LEADER, leader_epoch=10, partition_epoch=20)


def builder(partition=FOO, *, live=(1, 2, 3), min_isr=1, elr=True, **targets):
    return PartitionChangeBuilder(partition, live.__contains__, min_isr=min_isr, elr_enabled=elr, **targets)


def test_without_targets_nothing_changes():
    assert builder().build() is None


def test_current_leader_stays_if_it_may_lead():
    assert builder(election=Election.ONLINE, target_isr=(1, 2)).build().leader == 1


def test_a_preferred_election_moves_the_leader_to_the_first_replica():
    state = builder(election=Election.PREFERRED).build()
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (2, 101, 201)


def test_a_preferred_election_keeps_the_leader_when_the_first_replica_is_not_in_sync():
    out_of_sync = PartitionState((2, 1, 3), (1, 3), 1, leader_epoch=100, partition_epoch=200)
    assert builder(out_of_sync, election=Election.PREFERRED).build() is None


def test_a_preferred_election_keeps_the_leader_when_the_first_replica_is_dead():
    assert builder(live=(1, 3), election=Election.PREFERRED).build() is None


def test_a_preferred_election_takes_any_in_sync_replica_when_the_leader_cannot_stay():
    assert builder(live=(3,), election=Election.PREFERRED).build().leader == 3


def test_an_isr_change_leaves_the_leader_epoch_alone():
    state = builder(target_isr=(2, 1)).build()
    assert (state.isr, state.leader_epoch, state.partition_epoch) == ((2, 1), 100, 201)


def test_a_leader_that_left_the_isr_is_replaced_by_the_first_in_sync_replica():
    state = builder(target_isr=(2, 3)).build()
    assert (state.leader, state.leader_epoch, state.isr) == (2, 101, (2, 3))


def test_without_elr_the_last_member_stays_in_the_isr_of_a_leaderless_partition():
    alone = PartitionState((1, 2), (1,), 1, leader_epoch=5, partition_epoch=6)
    state = builder(alone, live=(2,), elr=False, target_isr=()).build()
    assert (state.isr, state.leader, state.leader_epoch) == ((1,), NO_LEADER, 6)
    assert (state.elr, state.last_known_elr) == ((), ())


def test_unclean_election_takes_any_live_replica_which_recovers():
    state = builder(LEADERLESS, live=(2,), elr=False, election=Election.UNCLEAN).build()
    assert (state.leader, state.isr, state.recovering) == (2, (2,), True)
    assert (state.leader_epoch, state.partition_epoch) == (11, 21)


@pytest.mark.parametrize("election", [Election.ONLINE, Election.PREFERRED])
def test_other_elections_never_lose_records(election):
    assert builder(LEADERLESS, live=(1, 2), elr=False, election=election).build() is None


def test_an_unclean_election_prefers_an_in_sync_replica():
    state = builder(LEADERLESS, live=(1, 2, 3), elr=False, election=Election.UNCLEAN).build()
    assert (state.leader, state.isr, state.recovering) == (3, (3,), False)


def test_the_leader_may_end_its_recovery_without_a_new_leader_epoch():
    recovering = PartitionState((1, 2), (1,), 1, leader_epoch=5, partition_epoch=6, recovering=True)
    state = builder(recovering, target_recovering=False).build()
    assert (state.recovering, state.leader_epoch, state.partition_epoch) == (False, 5, 7)


class TestEligibleLeaderReplicas:
    def test_replica_that_leaves_an_isr_below_the_minimum_becomes_eligible(self):
        state = builder(min_isr=3, target_isr=(1, 2)).build()
        assert (state.isr, state.elr) == ((1, 2), (3,))

    def test_replica_that_leaves_a_large_isr_does_not_become_eligible(self):
        assert builder(min_isr=2, target_isr=(1, 2)).build().elr == ()

    def test_elr_is_kept_until_the_isr_is_large_enough(self):
        small = PartitionState((1, 2, 3), (1,), 1, leader_epoch=5, partition_epoch=6, elr=(2, 3))
        grown = builder(small, min_isr=3, target_isr=(1, 2)).build()
        assert (grown.isr, grown.elr) == ((1, 2), (3,))
        full = builder(grown, min_isr=2, target_isr=(1, 2)).build()
        assert (full.isr, full.elr) == ((1, 2), ())

    def test_isr_may_become_empty_and_its_leader_is_remembered(self):
        alone = PartitionState((1, 2), (1,), 1, leader_epoch=5, partition_epoch=6)
        state = builder(alone, live=(2,), target_isr=()).build()
        assert (state.isr, state.elr, state.leader) == ((), (1,), NO_LEADER)
        assert (state.last_known_elr, state.leader_epoch) == ((1,), 6)

    def test_an_eligible_replica_is_elected_cleanly_when_the_isr_is_empty(self):
        lost = PartitionState(
            (1, 2, 3), (), NO_LEADER, leader_epoch=5, partition_epoch=6, elr=(1, 3), last_known_elr=(1,)
        )
        state = builder(lost, live=(2, 3)).build()
        assert (state.leader, state.isr, state.elr) == (3, (3,), (1,))
        assert (state.recovering, state.last_known_elr, state.leader_epoch) == (False, (), 6)

    def test_an_eligible_replica_is_not_elected_while_the_isr_has_a_dead_member(self):
        waiting = PartitionState((1, 2, 3), (1,), NO_LEADER, leader_epoch=5, partition_epoch=6, elr=(2,))
        assert builder(waiting, live=(2, 3), min_isr=2).build() is None

    def test_an_unclean_shutdown_takes_the_replica_out_of_isr_and_elr(self):
        small = PartitionState((1, 2, 3), (1,), 1, leader_epoch=5, partition_epoch=6, elr=(2, 3))
        state = builder(small, min_isr=2, target_isr=(1,), unclean_shutdown_replica=2).build()
        assert (state.isr, state.elr, state.leader_epoch) == ((1,), (3,), 5)

    def test_last_known_leader_is_elected_when_no_replica_is_eligible(self):
        lost = PartitionState((1, 2), (), NO_LEADER, leader_epoch=5, partition_epoch=6, last_known_elr=(1,))
        state = builder(lost).build()
        assert (state.leader, state.isr, state.recovering) == (1, (1,), True)
        assert state.last_known_elr == ()

    def test_last_known_leader_is_not_elected_while_it_is_dead(self):
        lost = PartitionState((1, 2), (), NO_LEADER, leader_epoch=5, partition_epoch=6, last_known_elr=(1,))
        assert builder(lost, live=(2,)).build() is None

    def test_unclean_election_empties_the_elr(self):
        lost = PartitionState(
            (1, 2, 3), (), NO_LEADER, leader_epoch=5, partition_epoch=6, elr=(1,), last_known_elr=(1,)
        )
        state = builder(lost, live=(2,), election=Election.UNCLEAN).build()
        assert (state.leader, state.isr, state.elr, state.recovering) == (2, (2,), (), True)


class TestReassignment:
    MOVING = PartitionState((3, 4, 1, 2), (1, 2), 1, 5, 6, adding_replicas=(3, 4), removing_replicas=(1, 2))

    def test_reassignment_lasts_until_all_new_replicas_are_in_sync(self):
        state = builder(self.MOVING, live=(1, 2, 3, 4), target_isr=(1, 2, 3)).build()
        assert state.is_reassigning
        assert (state.replicas, state.leader, state.leader_epoch) == ((3, 4, 1, 2), 1, 5)

    def test_reassignment_that_ends_replaces_the_old_leader(self):
        state = builder(self.MOVING, live=(1, 2, 3, 4), target_isr=(1, 2, 3, 4)).build()
        assert (state.replicas, state.isr, state.leader) == ((3, 4), (3, 4), 3)
        assert not state.is_reassigning
        assert state.leader_epoch == 6

    def test_removal_of_a_replica_bumps_the_leader_epoch(self):
        shrinking = PartitionState((1, 2, 3), (1, 2, 3), 1, leader_epoch=5, partition_epoch=6, removing_replicas=(3,))
        state = builder(shrinking, target_isr=(1, 2, 3)).build()
        assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((1, 2), (1, 2), 1, 6)

    def test_smaller_replica_set_waits_for_all_of_its_members(self):
        shrinking = PartitionState((1, 2, 3), (1, 3), 1, leader_epoch=5, partition_epoch=6, removing_replicas=(3,))
        assert builder(shrinking).build() is None
