"""Claims about registration, heartbeats, sessions and shutdown."""

from contextlib import contextmanager

import pytest

from broker_sim.errors import ApiError, ErrorCode


@contextmanager
def raises(code):
    with pytest.raises(ApiError) as caught:
        yield
    assert caught.value.error_code is code


def test_registered_broker_is_fenced_until_it_has_caught_up(make_cluster):
    cluster = make_cluster()
    epoch = cluster.register(1)
    assert epoch == cluster.image.version
    assert cluster.heartbeat(1, version=epoch - 1).is_fenced
    assert cluster.image.alive_brokers() == []
    assert not cluster.heartbeat(1, version=epoch).is_fenced
    assert [b.broker_id for b in cluster.image.alive_brokers()] == [1]


def test_request_that_changes_something_publishes_one_image(cluster):
    before = len(cluster.images)
    cluster.heartbeat(1)
    assert len(cluster.images) == before
    cluster.create("t", (1, 2), (2, 3), (3, 1))
    cluster.heartbeat(1, shutdown=True)
    assert len(cluster.images) == before + 2
    versions = [image.version for image in cluster.images]
    assert versions == sorted(set(versions))
    assert cluster.images[-1] is cluster.image


def test_old_epoch_and_unknown_broker_are_refused_as_stale(cluster):
    cluster.kill(1)
    old = cluster.epochs[1]
    assert cluster.register(1) > old
    with raises(ErrorCode.STALE_BROKER_EPOCH):
        cluster.heartbeat(1, epoch=old)
    with raises(ErrorCode.STALE_BROKER_EPOCH):
        cluster.heartbeat(9, epoch=1)
    with raises(ErrorCode.STALE_BROKER_EPOCH):
        cluster.controller.alter_partition(1, old, [])
    with raises(ErrorCode.STALE_BROKER_EPOCH):
        cluster.controller.allocate_producer_ids(1, old)


def test_second_incarnation_is_refused_while_session_of_first_lasts(cluster):
    cluster.heartbeat(1)
    cluster.clock.advance(9_000)
    with raises(ErrorCode.DUPLICATE_BROKER_REGISTRATION):
        cluster.register(1)
    cluster.clock.advance(1)
    cluster.register(1)
    assert cluster.image.brokers[1].fenced


def test_controlled_shutdown_does_not_end_the_session(cluster):
    assert cluster.heartbeat(1, shutdown=True).should_shutdown
    with raises(ErrorCode.DUPLICATE_BROKER_REGISTRATION):
        cluster.register(1, clean=True)


def test_same_incarnation_keeps_its_epoch_and_state(cluster):
    epoch = cluster.epochs[1]
    assert cluster.register(1, new_incarnation=False) == epoch
    assert not cluster.image.brokers[1].fenced


def test_new_incarnation_may_change_its_rack(cluster):
    cluster.kill(1)
    cluster.register(1, rack="r")
    assert cluster.image.brokers[1].rack == "r"


class TestSession:
    def test_silent_broker_is_fenced_at_the_first_check_after_its_session(self, cluster):
        # Checks run every 9000 // 8 = 1125 ms from the start of the controller on.
        cluster.pass_time(8_500)
        cluster.clock.advance_to(9_000)
        cluster.controller.tick()
        assert len(cluster.image.alive_brokers()) == 3
        assert cluster.controller.next_deadline_ms() == 9_000 + 1_125
        cluster.heartbeat(2)
        cluster.heartbeat(3)
        cluster.clock.advance_to(10_124)
        cluster.controller.tick()
        assert len(cluster.image.alive_brokers()) == 3
        cluster.clock.advance_to(10_125)
        cluster.controller.tick()
        assert [b.broker_id for b in cluster.image.alive_brokers()] == [2, 3]

    def test_several_silent_brokers_are_fenced_ten_milliseconds_apart(self, cluster):
        cluster.pass_time(10_000)
        cluster.clock.advance_to(10_125)
        alive = []
        for _ in range(4):
            cluster.controller.tick()
            alive.append(len(cluster.image.alive_brokers()))
            cluster.clock.advance_to(cluster.controller.next_deadline_ms())
        assert alive == [2, 1, 0, 0]
        assert cluster.clock.now_ms() == 10_125 + 30 + 1_125

    def test_process_that_was_held_up_fences_no_broker_with_an_unread_heartbeat(self, cluster):
        cluster.clock.advance_to(1_125 + 9_001)
        cluster.controller.tick()
        assert len(cluster.image.alive_brokers()) == 3
        cluster.heartbeat(1)
        cluster.heartbeat(2)
        cluster.clock.advance_to(cluster.controller.next_deadline_ms())
        cluster.controller.tick()
        assert [b.broker_id for b in cluster.image.alive_brokers()] == [1, 2]

    def test_silent_broker_is_fenced_although_each_check_is_late(self, cluster):
        cluster.clock.advance_to(10_126)
        for _ in range(2):
            cluster.controller.tick()
            cluster.clock.advance_to(cluster.controller.next_deadline_ms() + 1_125)
        assert len(cluster.image.alive_brokers()) == 2

    def test_heartbeats_renew_the_session(self, cluster):
        cluster.pass_time(60_000, alive=(1, 2, 3))
        assert len(cluster.image.alive_brokers()) == 3

    def test_heartbeat_unfences_a_fenced_broker(self, cluster):
        cluster.kill(1)
        assert not cluster.heartbeat(1).is_fenced

    def test_end_of_the_session_of_an_old_incarnation_fences_no_broker(self, cluster):
        cluster.clock.advance(9_001)
        cluster.register(1)
        cluster.heartbeat(1)
        cluster.pass_time(3_000, alive=(1, 2, 3))
        assert 1 in {b.broker_id for b in cluster.image.alive_brokers()}


class TestFencing:
    def test_fenced_broker_leaves_every_isr_and_leads_nothing(self, cluster):
        cluster.create("t", (1, 2, 3), (2, 1, 3))
        cluster.create("u", (3, 2))
        cluster.kill(1)
        first, second = cluster.image.topics["t"].partitions
        third = cluster.partition("u")
        assert (first.leader, first.isr, first.leader_epoch) == (2, (2, 3), 1)
        assert (second.leader, second.isr, second.leader_epoch) == (2, (2, 3), 0)
        assert (second.partition_epoch, third.partition_epoch) == (1, 0)

    def test_last_in_sync_replica_leads_again_when_it_returns(self, make_cluster):
        for elr in (True, False):
            cluster = make_cluster(elr=elr).start(1, 2)
            cluster.create("t", (1, 2))
            cluster.kill(2)
            cluster.kill(1)
            state = cluster.partition("t")
            assert (state.leader, state.isr, state.elr) == ((-1, (), (1,)) if elr else (-1, (1,), ()))
            cluster.heartbeat(2)
            assert not cluster.partition("t").has_leader
            cluster.heartbeat(1)
            state = cluster.partition("t")
            assert (state.leader, state.isr, state.recovering) == (1, (1,), False)
            assert state.leader_epoch == 2


class TestShutdown:
    def test_broker_that_leads_nothing_may_stop_at_once(self, cluster):
        reply = cluster.heartbeat(1, shutdown=True)
        assert (reply.should_shutdown, reply.is_fenced) == (True, True)
        assert cluster.image.brokers[1].fenced

    def test_broker_may_stop_when_all_others_know_the_new_leaders(self, cluster):
        cluster.create("t", (1, 2, 3))
        assert not cluster.heartbeat(1, shutdown=True).should_shutdown
        broker = cluster.image.brokers[1]
        assert (broker.fenced, broker.in_controlled_shutdown) == (False, True)
        state = cluster.partition("t")
        assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 3), 1)
        assert not cluster.heartbeat(1, shutdown=True).should_shutdown
        cluster.heartbeat(2)
        assert not cluster.heartbeat(1, shutdown=True).should_shutdown
        cluster.heartbeat(3)
        assert cluster.heartbeat(1, shutdown=True).should_shutdown

    def test_last_broker_may_stop_at_its_second_heartbeat(self, make_cluster):
        cluster = make_cluster().start(1)
        cluster.create("t", (1,))
        assert not cluster.heartbeat(1, shutdown=True).should_shutdown
        assert not cluster.partition("t").has_leader
        assert cluster.heartbeat(1, shutdown=True).should_shutdown

    def test_broker_in_controlled_shutdown_may_not_join_an_isr(self, cluster):
        cluster.create("t", (2, 1, 3), (1, 2, 3))
        cluster.heartbeat(1, shutdown=True)
        assert cluster.alter("t", (2, 1, 3)).error_code is ErrorCode.INELIGIBLE_REPLICA
        assert cluster.partition("t").isr == (2, 3)

    def test_fenced_broker_may_stop_at_once(self, make_cluster):
        cluster = make_cluster()
        cluster.register(1)
        assert cluster.heartbeat(1, shutdown=True).should_shutdown


class TestRestart:
    def test_clean_shutdown_keeps_the_broker_in_the_elr(self, cluster):
        cluster.create("t", (1, 2), configs={"min.insync.replicas": "2"})
        cluster.kill(1)
        assert cluster.partition("t").elr == (1,)
        cluster.register(1, clean=True)
        assert cluster.partition("t").elr == (1,)

    def test_unclean_shutdown_takes_the_broker_out_of_the_elr(self, cluster):
        cluster.create("t", (1, 2), configs={"min.insync.replicas": "2"})
        cluster.kill(1)
        cluster.register(1, clean=False)
        assert cluster.partition("t").elr == ()

    def test_only_replica_leads_again_after_a_crash_and_recovers(self, cluster):
        cluster.create("t", (1,))
        cluster.kill(1)
        cluster.register(1, clean=False)
        state = cluster.partition("t")
        assert (state.isr, state.elr, state.last_known_elr) == ((), (), (1,))
        cluster.heartbeat(1)
        state = cluster.partition("t")
        assert (state.leader, state.isr, state.recovering) == (1, (1,), True)


def test_blocks_of_producer_ids_never_overlap(cluster):
    blocks = [cluster.controller.allocate_producer_ids(b, cluster.epochs[b]) for b in (1, 2, 1)]
    assert [(b.first_producer_id, b.size) for b in blocks] == [(0, 1_000), (1_000, 1_000), (2_000, 1_000)]


def test_status_counts_what_the_image_shows(cluster):
    cluster.create("t", (1,), (3,))
    cluster.kill(3)
    cluster.clock.advance(250)
    status = cluster.controller.describe()
    assert (status.active_broker_count, status.fenced_broker_count) == (2, 1)
    assert (status.global_topic_count, status.global_partition_count) == (1, 2)
    assert (status.offline_partition_count, status.preferred_replica_imbalance_count) == (1, 1)
    assert status.time_since_last_heartbeat_ms == {1: 250, 2: 250}


class TestUnregister:
    def test_broker_leaves_isrs_and_leaderships_and_stays_a_replica(self, cluster):
        cluster.create("t", (1, 2), (2, 3))
        before = len(cluster.images)
        cluster.controller.unregister_broker(1)
        assert len(cluster.images) == before + 1
        assert set(cluster.image.brokers) == {2, 3}
        state = cluster.partition("t")
        assert (state.leader, state.isr, state.replicas) == (2, (2,), (1, 2))

    def test_partition_without_another_replica_has_no_leader_until_it_registers(self, cluster):
        cluster.create("t", (1,))
        cluster.controller.unregister_broker(1)
        assert (cluster.partition("t").leader, cluster.partition("t").isr) == (-1, ())
        cluster.register(1, clean=True)
        cluster.heartbeat(1)
        assert cluster.partition("t").leader == 1

    def test_unknown_broker_is_refused_and_changes_nothing(self, cluster):
        before = len(cluster.images)
        with raises(ErrorCode.BROKER_ID_NOT_REGISTERED):
            cluster.controller.unregister_broker(9)
        assert len(cluster.images) == before

    def test_heartbeats_are_refused_and_the_end_of_the_session_changes_nothing(self, cluster):
        cluster.controller.unregister_broker(1)
        with raises(ErrorCode.STALE_BROKER_EPOCH):
            cluster.heartbeat(1)
        version = cluster.image.version
        cluster.pass_time(20_000, alive=(2, 3))
        assert cluster.image.version == version

    def test_broker_registers_under_a_new_epoch_before_its_old_session_has_ended(self, cluster):
        old = cluster.epochs[1]
        cluster.heartbeat(1)
        cluster.controller.unregister_broker(1)
        assert cluster.register(1) > old
        assert cluster.image.brokers[1].fenced
        assert not cluster.heartbeat(1).is_fenced

    def test_unregistered_broker_gets_no_new_replicas(self, cluster):
        cluster.controller.unregister_broker(1)
        cluster.create("t", (2, 3))
        with pytest.raises(AssertionError, match="no such broker is registered"):
            cluster.create("u", (1, 2))
