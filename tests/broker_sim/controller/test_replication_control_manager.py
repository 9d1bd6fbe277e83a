"""Claims about AlterPartition, elections and eligible leader replicas."""

import pytest

from broker_sim.controller import (
    AlterOp,
    ConfigAlteration,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    IsrMember,
    PartitionAlteration,
    Reassignment,
)
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)


class TestAlterPartition:
    def test_leader_shrinks_and_expands_the_isr(self, cluster):
        cluster.create("t", (1, 2, 3))
        result = cluster.alter("t", (1, 2))
        assert result.error_code is ErrorCode.NONE
        assert result.state is cluster.partition("t")
        assert (result.state.isr, result.state.leader_epoch) == ((1, 2), 0)
        assert result.state.partition_epoch == 1
        grown = cluster.alter("t", (1, 2, IsrMember(3, cluster.epochs[3]))).state
        assert (grown.isr, grown.leader_epoch, grown.partition_epoch) == ((1, 2, 3), 0, 2)

    def test_proposal_of_the_current_isr_changes_nothing(self, cluster):
        cluster.create("t", (1, 2))
        before = cluster.image
        assert cluster.alter("t", (1, 2)).error_code is ErrorCode.NONE
        assert cluster.image is before

    @pytest.mark.parametrize(
        ("proposal", "code"),
        [
            ({"isr": (1,), "leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
            ({"isr": (1,), "partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
            ({"isr": (1,), "leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
            ({"isr": (1,), "partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
            ({"isr": (1, 2), "leader": 2}, ErrorCode.INVALID_REQUEST),
            ({"isr": (1, 4)}, ErrorCode.INVALID_REQUEST),
            ({"isr": (1, 1)}, ErrorCode.INVALID_REQUEST),
            ({"isr": ()}, ErrorCode.INVALID_REQUEST),
            ({"isr": (2,)}, ErrorCode.INVALID_REQUEST),
            ({"isr": (1, IsrMember(2, 999))}, ErrorCode.INELIGIBLE_REPLICA),
        ],
    )
    def test_invalid_proposal_is_refused(self, cluster, proposal, code):
        cluster.create("t", (1, 2, 3))
        before = cluster.image
        result = cluster.alter("t", **proposal)
        assert (result.error_code, result.state) == (code, None)
        assert cluster.image is before

    def test_unknown_partition_is_answered_with_its_error(self, cluster):
        topic_id = cluster.create("t", (1,))
        isr = [IsrMember(1)]
        changes = [
            PartitionAlteration(b"x" * 16, 0, leader_epoch=0, partition_epoch=0, new_isr=isr),
            PartitionAlteration(topic_id, 1, leader_epoch=0, partition_epoch=0, new_isr=isr),
        ]
        results = cluster.controller.alter_partition(1, cluster.epochs[1], changes)
        assert [r.error_code for r in results] == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    def test_fenced_broker_may_not_join(self, cluster):
        cluster.create("t", (1, 2, 3))
        cluster.kill(3)
        assert cluster.alter("t", (1, 2, 3)).error_code is ErrorCode.INELIGIBLE_REPLICA

    def test_earlier_incarnation_may_not_join(self, cluster):
        cluster.create("t", (1, 2, 3))
        old = cluster.epochs[3]
        cluster.kill(3)
        cluster.start(3)
        proposal = (1, 2, IsrMember(3, old))
        assert cluster.alter("t", proposal).error_code is ErrorCode.INELIGIBLE_REPLICA
        proposal = (1, 2, IsrMember(3, cluster.epochs[3]))
        assert cluster.alter("t", proposal).state.isr == (1, 2, 3)

    def test_proposal_ends_the_recovery_of_the_leader(self, cluster):
        cluster.create("t", (1,))
        cluster.kill(1)
        cluster.start(1)
        assert cluster.partition("t").recovering
        assert not cluster.alter("t", (1,)).state.recovering


class TestElectLeaders:
    def elect(self, cluster, election_type, partitions):
        outcomes = cluster.controller.elect_leaders(election_type, partitions)
        return [(o.topic, o.partition, o.outcome.error_code) for o in outcomes]

    def test_preferred_replica_leads_again(self, cluster):
        cluster.create("t", (1, 2, 3))
        cluster.kill(1)
        cluster.heartbeat(1)
        cluster.alter("t", (2, 3, 1))
        assert cluster.partition("t").leader == 2
        assert self.elect(cluster, ElectionType.PREFERRED, [T0]) == [("t", 0, ErrorCode.NONE)]
        state = cluster.partition("t")
        assert (state.leader, state.leader_epoch) == (1, 2)

    def test_preferred_replica_must_be_in_sync(self, cluster):
        cluster.create("t", (1, 2, 3))
        cluster.kill(1)
        cluster.heartbeat(1)
        assert self.elect(cluster, ElectionType.PREFERRED, [T0]) == [("t", 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]

    @pytest.mark.parametrize("election_type", list(ElectionType))
    def test_healthy_partition_needs_no_election(self, cluster, election_type):
        cluster.create("t", (1, 2, 3))
        assert self.elect(cluster, election_type, [T0]) == [("t", 0, ErrorCode.ELECTION_NOT_NEEDED)]

    @pytest.mark.parametrize("election_type", list(ElectionType))
    def test_unknown_partition_is_answered_with_its_error(self, cluster, election_type):
        cluster.create("t", (1,))
        unknown = [TopicPartition("t", 1), TopicPartition("x", 0)]
        assert self.elect(cluster, election_type, unknown) == [
            ("t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("x", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]

    def test_unclean_election_takes_a_live_replica(self, cluster):
        cluster.create("t", (1, 2, 3))
        cluster.alter("t", (1,))
        cluster.kill(1)
        assert not cluster.partition("t").has_leader
        assert self.elect(cluster, ElectionType.UNCLEAN, [T0]) == [("t", 0, ErrorCode.NONE)]
        state = cluster.partition("t")
        assert (state.leader, state.isr, state.elr, state.recovering) == (2, (2,), (), True)

    def test_unclean_election_needs_a_live_replica(self, cluster):
        cluster.create("t", (1,))
        cluster.kill(1)
        assert self.elect(cluster, ElectionType.UNCLEAN, [T0]) == [("t", 0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]

    def test_without_partitions_all_that_need_an_election_are_answered(self, cluster):
        cluster.create("t", (1, 2), (2, 1))
        cluster.create("u", (1, 3))
        cluster.kill(1)
        cluster.heartbeat(1)
        cluster.alter("t", (2, 1))
        assert self.elect(cluster, ElectionType.PREFERRED, None) == [
            ("t", 0, ErrorCode.NONE),
            ("u", 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        ]


class TestTransferLeadership:
    def refused(self, cluster, topic_partition, leader):
        before = cluster.image
        with pytest.raises(ApiError) as caught:
            cluster.controller.transfer_leadership(topic_partition, leader)
        assert cluster.image is before
        return caught.value.error_code, str(caught.value)

    def test_in_sync_replica_leads_in_the_next_leader_epoch(self, cluster):
        cluster.create("t", (1, 2, 3))
        before = cluster.partition("t")
        cluster.controller.transfer_leadership(T0, 3)
        after = cluster.partition("t")
        assert (after.leader, after.leader_epoch) == (3, before.leader_epoch + 1)
        assert after.partition_epoch == before.partition_epoch + 1
        assert (after.isr, after.replicas) == (before.isr, before.replicas)

    def test_other_partitions_stay_as_they_are(self, cluster):
        cluster.create("t", (1, 2, 3), (1, 2, 3))
        before = cluster.partition("t", 1)
        cluster.controller.transfer_leadership(T0, 2)
        assert cluster.partition("t", 1) is before

    def test_leader_that_leads_already_changes_nothing(self, cluster):
        cluster.create("t", (1, 2, 3))
        before = cluster.image
        cluster.controller.transfer_leadership(T0, 1)
        assert cluster.image is before

    @pytest.mark.parametrize("unknown", [TopicPartition("t", 1), TopicPartition("x", 0)])
    def test_unknown_partition_is_refused(self, cluster, unknown):
        cluster.create("t", (1,))
        code, text = self.refused(cluster, unknown, 1)
        assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert unknown.topic in text

    def test_broker_without_a_replica_is_refused(self, cluster):
        cluster.create("t", (1, 2))
        assert self.refused(cluster, T0, 3) == (
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            "Broker 3 cannot lead t-0: it is not one of its replicas [1, 2].",
        )

    def test_replica_behind_is_refused(self, cluster):
        cluster.create("t", (1, 2, 3))
        cluster.alter("t", (1, 3))
        assert self.refused(cluster, T0, 2) == (
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            "Broker 2 cannot lead t-0: it is not in its ISR [1, 3].",
        )

    def test_dead_broker_is_refused(self, cluster):
        cluster.create("t", (1, 2, 3))
        cluster.kill(2)
        code, text = self.refused(cluster, T0, 2)
        assert code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        assert "fenced or in controlled shutdown" in text

    def test_dead_last_in_sync_replica_is_refused_without_elr(self, make_cluster):
        cluster = make_cluster(elr=False).start(1, 2)
        cluster.create("t", (1, 2))
        cluster.alter("t", (1,))
        cluster.kill(1)
        assert cluster.partition("t").isr == (1,)
        code, _ = self.refused(cluster, T0, 1)
        assert code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE

    def test_broker_in_controlled_shutdown_is_refused(self, cluster):
        cluster.create("t", (1, 2, 3), (2, 1, 3))
        cluster.heartbeat(2, shutdown=True)
        code, text = self.refused(cluster, T0, 2)
        assert code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        assert "fenced or in controlled shutdown" in text

    def test_preferred_replica_leads_again_at_the_next_balance(self, cluster):
        cluster.create("t", (1, 2, 3))
        cluster.controller.transfer_leadership(T0, 3)
        cluster.pass_time(299_500 - cluster.clock.now_ms(), alive=(1, 2, 3))
        assert cluster.partition("t").leader == 3
        cluster.pass_time(500, alive=(1, 2, 3))
        assert cluster.partition("t").leader == 1


class TestPeriodicElections:
    def test_leadership_returns_to_preferred_replicas_every_300_seconds(self, cluster):
        cluster.create("t", (1, 2, 3))
        cluster.kill(1)
        cluster.heartbeat(1)
        cluster.alter("t", (2, 3, 1))
        cluster.pass_time(299_500 - cluster.clock.now_ms(), alive=(1, 2, 3))
        assert cluster.partition("t").leader == 2
        cluster.pass_time(500, alive=(1, 2, 3))
        assert cluster.partition("t").leader == 1

    def test_leadership_stays_without_auto_leader_rebalance(self, make_cluster):
        cluster = make_cluster({"auto.leader.rebalance.enable": "false"}).start(1, 2)
        cluster.create("t", (1, 2))
        cluster.kill(1)
        cluster.heartbeat(1)
        cluster.alter("t", (2, 1))
        cluster.pass_time(700_000, alive=(1, 2))
        assert cluster.partition("t").leader == 2

    def test_unclean_leader_is_elected_at_once_where_it_is_allowed(self, cluster):
        cluster.create("t", (1, 2, 3), configs={"unclean.leader.election.enable": "true"})
        cluster.alter("t", (1,))
        cluster.kill(1)
        state = cluster.partition("t")
        assert (state.leader, state.isr, state.recovering) == (2, (2,), True)

    def test_unclean_leader_is_elected_at_the_next_check_after_it_is_allowed(self, make_cluster):
        configs = {"unclean.leader.election.interval.ms": "5000"}
        cluster = make_cluster(configs).start(1, 2)
        cluster.create("t", (1, 2))
        cluster.alter("t", (1,))
        cluster.kill(1)
        cluster.pass_time(10_000, alive=(2,))
        assert not cluster.partition("t").has_leader
        topic = ConfigResource(ConfigResourceType.TOPIC, "t")
        allow = ConfigAlteration("unclean.leader.election.enable", AlterOp.SET, "true")
        cluster.controller.incremental_alter_configs([(topic, [allow])])
        next_ms = 5_000 - cluster.clock.now_ms() % 5_000
        cluster.pass_time(next_ms - 1, alive=(2,))
        assert not cluster.partition("t").has_leader
        cluster.pass_time(1, alive=(2,))
        assert cluster.partition("t").leader == 2

    def test_unclean_elections_can_be_allowed_for_the_cluster(self, make_cluster):
        cluster = make_cluster({"unclean.leader.election.enable": "true"}).start(1, 2)
        cluster.create("t", (1, 2))
        cluster.alter("t", (1,))
        cluster.kill(1)
        assert cluster.partition("t").leader == 2


class TestEligibleLeaderReplicas:
    """KIP-966, on in a new cluster of Kafka 4.3."""

    def test_members_that_leave_below_the_minimum_join_the_elr(self, cluster):
        cluster.create("t", (1, 2, 3), configs={"min.insync.replicas": "2"})
        cluster.kill(2)
        assert cluster.partition("t").elr == ()
        cluster.kill(3)
        state = cluster.partition("t")
        assert (state.isr, state.elr) == ((1,), (3,))

    def test_eligible_replica_leads_when_the_isr_is_empty(self, cluster):
        cluster.create("t", (1, 2, 3), configs={"min.insync.replicas": "2"})
        cluster.kill(2)
        cluster.kill(3)
        cluster.kill(1)
        state = cluster.partition("t")
        assert (state.isr, state.elr, state.leader) == ((), (1, 3), -1)
        assert state.last_known_elr == (1,)
        cluster.heartbeat(2)
        assert not cluster.partition("t").has_leader
        cluster.heartbeat(3)
        state = cluster.partition("t")
        assert (state.leader, state.isr, state.elr) == (3, (3,), (1,))
        assert not state.recovering
        assert state.last_known_elr == ()

    def test_elr_is_emptied_when_the_isr_is_large_enough_again(self, cluster):
        cluster.create("t", (1, 2, 3), configs={"min.insync.replicas": "2"})
        cluster.alter("t", (1,))
        assert cluster.partition("t").elr == (2, 3)
        assert cluster.alter("t", (1, 2)).state.elr == ()

    def test_minimum_above_the_replicas_of_partition_0_counts_as_their_number(self, cluster):
        cluster.create("t", (1, 2), (2, 1), configs={"min.insync.replicas": "3"})
        wider = Reassignment("t", 1, (2, 1, 3))
        cluster.controller.alter_partition_reassignments([wider])
        assert cluster.alter("t", (2, 1, 3), number=1).state.isr == (2, 1, 3)
        assert cluster.alter("t", (2, 1), number=1).state.elr == ()
        assert cluster.alter("t", (2,), number=1).state.elr == (1,)

    def test_without_the_feature_the_elr_stays_empty(self, make_cluster):
        cluster = make_cluster(elr=False).start(1, 2)
        cluster.create("t", (1, 2), configs={"min.insync.replicas": "2"})
        cluster.kill(2)
        cluster.kill(1)
        state = cluster.partition("t")
        assert (state.isr, state.elr, state.last_known_elr) == ((1,), (), ())
