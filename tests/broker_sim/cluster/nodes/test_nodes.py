"""The nodes of a cluster: what each verb does to a broker, and when it is refused."""

import pytest

from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode, UnknownBrokerError, WrongStateError
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.links import CONTROLLER_ID, LinkFault
from broker_sim.runtime.process import ProcessState

KEY = TopicPartition("topic", 0)
HEARTBEAT_INTERVAL_MS = 2_000
SESSION_TIMEOUT_MS = 9_000
FENCED_WITHIN_MS = SESSION_TIMEOUT_MS + HEARTBEAT_INTERVAL_MS
FETCH_BEFORE_EPOCHS = 10
"""A version in which a parked fetch is answered when its leader changes."""


@pytest.fixture
def cluster():
    """Three running brokers, and a partition that broker 1 leads."""
    made = VirtualCluster(seed=5)
    made.create_topic("topic", assignments={0: [1, 2, 3]})
    made.advance(1_000)
    return made


@pytest.fixture
def nodes(cluster):
    return cluster.nodes


def partition(nodes):
    return nodes.controller.image.partition(KEY)


def state(nodes, broker_id):
    return nodes.node(broker_id).state


def unfenced(nodes):
    return {broker.broker_id for broker in nodes.controller.image.alive_brokers()}


def stop(cluster, broker_id):
    """Stop a broker and then close its connections; returns a list that gets the time of its end."""
    stopped_at_ms = []

    def on_stopped():
        stopped_at_ms.append(cluster.now_ms)
        cluster.inside.listeners.close(broker_id)

    cluster.nodes.stop(broker_id, on_stopped)
    return stopped_at_ms


@pytest.mark.parametrize("verb", ["start", "pause", "resume", "stop", "kill", "isolate", "node"])
def test_unknown_broker_is_refused_with_the_known_ones(nodes, verb):
    with pytest.raises(UnknownBrokerError, match="unknown broker 9; brokers: 1, 2, 3"):
        getattr(nodes, verb)(9)


@pytest.mark.parametrize(
    ("prepare", "verb", "reason"),
    [
        ([], "start", "broker 2 is running; kill it first"),
        ([], "resume", "broker 2 is running, not paused"),
        (["pause"], "start", "broker 2 is paused; kill it first"),
        (["pause"], "pause", "broker 2 is paused, not running"),
        (["pause"], "stop", "broker 2 is paused, not running"),
        (["kill"], "pause", "broker 2 is dead, not running"),
        (["kill"], "resume", "broker 2 is dead, not paused"),
        (["kill"], "stop", "broker 2 is dead, not running"),
        (["kill"], "kill", "broker 2 is dead already"),
        (["stop"], "start", "broker 2 is running; kill it first"),
        (["stop"], "stop", "broker 2 is shutting down already"),
    ],
)
def test_verb_in_a_wrong_state_is_refused(nodes, prepare, verb, reason):
    for earlier in prepare:
        getattr(nodes, earlier)(2)
    before = state(nodes, 2)
    with pytest.raises(WrongStateError, match=reason):
        getattr(nodes, verb)(2)
    assert state(nodes, 2) is before


class TestStart:
    def test_killed_broker_is_unfenced_again_after_its_last_session(self, cluster, nodes):
        nodes.kill(3)
        nodes.start(3)
        assert state(nodes, 3) is ProcessState.RUNNING
        cluster.run_until(lambda: 3 not in unfenced(nodes), timeout_ms=FENCED_WITHIN_MS + 1_125)
        cluster.run_until(lambda: 3 in unfenced(nodes), timeout_ms=HEARTBEAT_INTERVAL_MS)

    def test_restarted_broker_has_its_logs(self, cluster, nodes):
        before = nodes.brokers[3].replica_manager.partitions[KEY].log
        nodes.kill(3)
        nodes.start(3)
        cluster.run_until(lambda: nodes.is_ready)
        assert nodes.brokers[3].replica_manager.partitions[KEY].log is before

    def test_restart_ends_the_cut_off_from_clients(self, nodes):
        nodes.node(3).clients_cut_off = True
        nodes.kill(3)
        nodes.start(3)
        assert not nodes.node(3).clients_cut_off


class TestPause:
    def test_paused_broker_is_fenced_and_rejoins_the_isr_when_resumed(self, cluster, nodes):
        nodes.pause(1)
        assert state(nodes, 1) is ProcessState.PAUSED
        cluster.run_until(lambda: 1 not in unfenced(nodes))
        assert (partition(nodes).leader, partition(nodes).isr) == (2, (2, 3))
        nodes.resume(1)
        assert state(nodes, 1) is ProcessState.RUNNING
        cluster.run_until(lambda: set(partition(nodes).isr) == {1, 2, 3})

    def test_paused_broker_answers_when_it_is_resumed(self, cluster, nodes):
        nodes.pause(1)
        pending = cluster.client().send(1, produce_request(("topic", 0)), PRODUCE_VERSION)
        cluster.advance(1_000)
        assert not pending.done
        nodes.resume(1)
        cluster.run_until(lambda: pending.done)
        assert pending.response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


class TestKill:
    def test_killed_broker_stays_leader_until_its_session_ends(self, cluster, nodes):
        nodes.kill(1)
        assert state(nodes, 1) is ProcessState.DEAD
        assert 1 not in nodes.brokers
        cluster.advance(SESSION_TIMEOUT_MS - HEARTBEAT_INTERVAL_MS - 1)
        assert partition(nodes).leader == 1
        cluster.run_until(lambda: partition(nodes).leader == 2)

    def test_restarted_leader_gives_followers_nothing_while_its_old_session_lasts(self, cluster, nodes):
        for follower in (2, 3):
            nodes.pause(follower)
        produced = cluster.client().send(1, produce_request(("topic", 0), acks=1), PRODUCE_VERSION)
        cluster.run_until(lambda: produced.done)
        nodes.kill(1)
        nodes.start(1)
        for follower in (2, 3):
            nodes.resume(follower)
        cluster.advance(SESSION_TIMEOUT_MS - HEARTBEAT_INTERVAL_MS - 1)
        leader = nodes.brokers[1].replica_manager.partitions[KEY]
        assert leader.is_leader
        assert leader.log.log_end_offset == 1
        cluster.run_until(lambda: partition(nodes).leader == 2)
        cluster.run_until(lambda: set(partition(nodes).isr) == {1, 2, 3})
        logs = [node.logs.get(KEY, leader.topic_id) for node in nodes.nodes.values()]
        assert [log.log_end_offset for log in logs] == [0, 0, 0]

    def test_restarted_follower_replicates_while_its_old_session_lasts(self, cluster, nodes):
        nodes.kill(3)
        nodes.start(3)
        produced = cluster.client().send(1, produce_request(("topic", 0)), PRODUCE_VERSION)
        cluster.run_until(lambda: produced.done)
        assert produced.response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert nodes.brokers[3].lifecycle.broker_epoch == -1
        assert partition(nodes).isr == (1, 2, 3)

    @pytest.mark.parametrize("end", ["kill", "stop"])
    def test_calls_to_a_broker_fail_when_its_process_ends(self, cluster, nodes, end):
        failed = []
        nodes.links.call(2, 1, lambda _: None, failed.append, lambda: failed.append("failed"))
        cluster.advance(0)
        if end == "kill":
            nodes.kill(1)
        else:
            stopped_at_ms = stop(cluster, 1)
            cluster.run_until(lambda: stopped_at_ms)
        cluster.advance(0)
        assert failed == ["failed"]

    def test_paused_broker_can_be_killed(self, nodes):
        nodes.pause(1)
        nodes.kill(1)
        assert state(nodes, 1) is ProcessState.DEAD

    def test_kill_ends_a_controlled_shutdown(self, cluster, nodes):
        stopped_at_ms = stop(cluster, 1)
        cluster.advance(10)
        assert stopped_at_ms == []
        nodes.kill(1)
        assert stopped_at_ms == [cluster.now_ms]
        nodes.start(1)
        cluster.run_until(lambda: nodes.is_ready)
        stop(cluster, 1)  # the first one is forgotten


class TestStop:
    """Controlled shutdown; docs/how/decisions.md has what was measured with Kafka 4.3.1."""

    def test_leaderships_move_at_once_and_the_broker_still_serves(self, cluster, nodes):
        stopped_at_ms = stop(cluster, 1)
        cluster.advance(0)
        assert (partition(nodes).leader, partition(nodes).isr) == (2, (2, 3))
        assert partition(nodes).leader_epoch == 1
        assert stopped_at_ms == []
        assert unfenced(nodes) == {1, 2, 3}
        pending = cluster.client().send(1, fetch_request(("topic", 0), max_wait_ms=1), 12)
        cluster.run_until(lambda: pending.done)
        assert not pending.disconnected

    def test_shutdown_ends_when_heartbeats_of_the_others_show_the_new_metadata(self, cluster, nodes):
        began_ms = cluster.now_ms
        stopped_at_ms = stop(cluster, 1)
        cluster.run_until(lambda: stopped_at_ms)
        assert stopped_at_ms == [began_ms + 50 + HEARTBEAT_INTERVAL_MS]
        assert state(nodes, 1) is ProcessState.DEAD
        assert unfenced(nodes) == {2, 3}

    def test_parked_produce_is_answered_when_the_leadership_moves(self, cluster):
        cluster.pause(3)
        pending = cluster.client().send(1, produce_request(("topic", 0)), PRODUCE_VERSION)
        cluster.advance(100)
        assert not pending.done
        stop(cluster, 1)
        cluster.advance(0)
        assert pending.done
        (answer,) = pending.response.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    @pytest.mark.parametrize(
        ("version", "leader_epoch", "error_code"),
        [
            (FETCH_BEFORE_EPOCHS, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (FETCH_VERSION, 0, ErrorCode.FENCED_LEADER_EPOCH),
        ],
    )
    def test_parked_fetch_that_needs_the_leader_is_answered_when_it_moves(
        self, cluster, version, leader_epoch, error_code
    ):
        request = fetch_request(("topic", 0), max_wait_ms=30_000, leader_epoch=leader_epoch)
        pending = cluster.client().send(1, request, version)
        cluster.advance(100)
        stop(cluster, 1)
        cluster.advance(0)
        assert pending.done
        assert pending.response.responses[0].partitions[0].error_code == error_code

    @pytest.mark.parametrize("broker_id", [1, 2])
    def test_parked_fetch_that_a_follower_may_serve_is_disconnected_at_the_end(self, cluster, broker_id):
        request = fetch_request(("topic", 0), max_wait_ms=30_000)
        pending = cluster.client().send(broker_id, request, FETCH_VERSION)
        cluster.advance(100)
        stopped_at_ms = stop(cluster, broker_id)
        cluster.run_until(lambda: pending.done)
        assert pending.disconnected
        assert stopped_at_ms == [cluster.now_ms]

    def test_stopping_broker_does_not_follow_the_new_leader(self, cluster, nodes):
        stop(cluster, 1)
        cluster.advance(0)
        produced = cluster.client().send(2, produce_request(("topic", 0)), PRODUCE_VERSION)
        cluster.run_until(lambda: produced.done)
        cluster.advance(1_000)
        assert nodes.brokers[1].replica_manager.partitions[KEY].log.log_end_offset == 0

    def test_follower_that_stops_leaves_the_isr_and_the_leader_stays(self, cluster, nodes):
        cluster.create_topic("led", assignments={0: [3, 1, 2]})
        stopped_at_ms = stop(cluster, 3)
        cluster.advance(0)
        assert (partition(nodes).leader, partition(nodes).leader_epoch) == (1, 0)
        assert partition(nodes).isr == (1, 2)
        cluster.run_until(lambda: stopped_at_ms)

    def test_broker_without_leaderships_stops_at_once(self, cluster, nodes):
        began_ms = cluster.now_ms
        stopped_at_ms = stop(cluster, 3)
        cluster.advance(0)
        assert stopped_at_ms == [began_ms]
        assert partition(nodes).isr == (1, 2)

    def test_only_replica_loses_its_leader_and_gets_it_back(self, cluster, nodes):
        cluster.create_topic("single", assignments={0: [1]})
        single = TopicPartition("single", 0)
        stopped_at_ms = stop(cluster, 1)
        cluster.advance(0)
        found = nodes.controller.image.partition(single)
        assert (found.leader, found.isr, found.elr, found.leader_epoch) == (-1, (), (1,), 1)
        cluster.run_until(lambda: stopped_at_ms)
        nodes.start(1)
        cluster.run_until(lambda: nodes.is_ready)
        found = nodes.controller.image.partition(single)
        assert (found.leader, found.isr, found.leader_epoch) == (1, (1,), 2)
        assert not found.recovering

    def test_kill_after_a_clean_shutdown_counts_as_unclean(self, cluster, nodes):
        cluster.create_topic("single", assignments={0: [1]})
        stopped_at_ms = stop(cluster, 1)
        cluster.run_until(lambda: stopped_at_ms)
        nodes.start(1)
        cluster.run_until(lambda: nodes.is_ready)
        nodes.kill(1)
        nodes.start(1)
        cluster.run_until(lambda: 1 not in unfenced(nodes))
        cluster.run_until(lambda: nodes.is_ready)
        found = nodes.controller.image.partition(TopicPartition("single", 0))
        assert (found.leader, found.leader_epoch, found.recovering) == (1, 4, True)

    def test_without_controlled_shutdown_broker_leads_until_its_session_ends(self):
        cluster = VirtualCluster(seed=5, configs={"controlled.shutdown.enable": "false"})
        cluster.create_topic("topic", assignments={0: [1, 2, 3]})
        nodes = cluster.nodes
        stopped_at_ms = stop(cluster, 1)
        assert stopped_at_ms == [cluster.now_ms]
        assert state(nodes, 1) is ProcessState.DEAD
        cluster.advance(SESSION_TIMEOUT_MS - HEARTBEAT_INTERVAL_MS - 1)
        assert partition(nodes).leader == 1
        cluster.run_until(lambda: partition(nodes).leader == 2)

    def test_restart_is_refused_until_the_session_ends_and_then_joins_the_isr(self, cluster, nodes):
        stopped_at_ms = stop(cluster, 1)
        cluster.run_until(lambda: stopped_at_ms)
        nodes.start(1)
        cluster.advance(SESSION_TIMEOUT_MS)
        assert nodes.brokers[1].lifecycle.broker_epoch == -1
        cluster.run_until(lambda: 1 in unfenced(nodes), timeout_ms=HEARTBEAT_INTERVAL_MS)
        cluster.run_until(lambda: set(partition(nodes).isr) == {1, 2, 3}, timeout_ms=1_000)
        assert partition(nodes).leader == 2

    @pytest.mark.parametrize(("clean", "kept"), [(True, 1), (False, 0)])
    def test_only_a_clean_shutdown_keeps_a_high_watermark_that_was_not_checkpointed(self, cluster, nodes, clean, kept):
        client = cluster.client()
        produced = client.send(1, produce_request(("topic", 0)), PRODUCE_VERSION)
        cluster.run_until(lambda: produced.done)
        cluster.advance(600)  # the followers hear of it with the answer to their next fetch
        log = nodes.brokers[3].replica_manager.partitions[KEY].log
        assert log.high_watermark == 1
        if clean:
            stop(cluster, 3)
            cluster.advance(0)
        else:
            nodes.kill(3)
        nodes.start(3)
        assert log.high_watermark == kept


class TestIsolate:
    def test_isolated_broker_is_fenced_and_rejoins_the_isr(self, cluster, nodes):
        nodes.isolate(1)
        assert state(nodes, 1) is ProcessState.RUNNING
        cluster.run_until(lambda: partition(nodes).leader == 2)
        nodes.isolate(1, drop=False)
        assert nodes.links.faults == {}
        cluster.run_until(lambda: set(partition(nodes).isr) == {1, 2, 3})

    def test_only_links_of_the_isolated_broker_are_cut(self, nodes):
        nodes.isolate(1)
        assert set(nodes.links.faults) == {
            *((1, other) for other in (2, 3, CONTROLLER_ID)),
            *((other, 1) for other in (2, 3, CONTROLLER_ID)),
        }


class TestIsReady:
    def test_not_ready_before_every_broker_knows_that_all_are_unfenced(self, cluster, nodes):
        nodes.kill(3)
        cluster.run_until(lambda: not nodes.brokers[2].metadata.is_alive(3))
        nodes.links.set_fault(CONTROLLER_ID, 2, LinkFault(drop=True))
        nodes.start(3)
        cluster.advance(0)
        assert nodes.brokers[1].metadata.is_alive(3)
        assert nodes.brokers[3].metadata.is_alive(3)
        assert not nodes.is_ready
        nodes.links.set_fault(CONTROLLER_ID, 2, LinkFault())
        cluster.advance(0)
        assert nodes.is_ready

    def test_dead_brokers_are_ignored(self, nodes):
        nodes.kill(3)
        assert nodes.is_ready


def test_shutdown_kills_all_brokers_and_the_controller(cluster, nodes):
    nodes.pause(2)
    nodes.kill(3)
    stopped_at_ms = stop(cluster, 1)
    nodes.shutdown()
    assert {state(nodes, broker_id) for broker_id in nodes.nodes} == {ProcessState.DEAD}
    assert nodes.brokers == {}
    assert stopped_at_ms == [cluster.now_ms]
    before = nodes.controller.image
    cluster.advance(60_000)
    assert nodes.controller.image is before


def test_halted_nodes_begin_nothing_more(cluster, nodes):
    version = nodes.controller.image.version
    nodes.controller.delete_topics(["topic"])
    nodes.halt()
    cluster.advance(FENCED_WITHIN_MS)
    assert all(broker.image.version == version for broker in nodes.brokers.values())
    nodes.shutdown()
    assert not nodes.brokers
