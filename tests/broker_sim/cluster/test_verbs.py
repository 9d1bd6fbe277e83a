"""The verbs of a cluster on its faces, mostly in virtual time."""

import inspect
from dataclasses import replace

import pytest

from broker_sim import AsyncCluster, Cluster, VirtualCluster
from broker_sim.cluster.status import cluster_status
from broker_sim.cluster.verbs import Verbs
from broker_sim.control.verb import verbs_of
from broker_sim.errors import ApiError, ConfigError, ErrorCode, WrongStateError
from broker_sim.log import DiskOptions
from broker_sim.metadata import GROUP_RESOURCE
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from tests.broker_sim.group_user import GroupUser

SESSION_MS = 9_000
ASSIGNMENT_INTERVAL_MS = 1_000


@pytest.fixture
def cluster():
    made = VirtualCluster(seed=3)
    made.create_topic("orders", 1, 3)
    return made


def test_every_face_has_every_verb_with_the_same_parameters_and_help():
    verbs = verbs_of(Verbs)
    assert {"pause", "start", "roll", "transfer_leadership", "status"} <= verbs.keys()
    for face in (Cluster, AsyncCluster, VirtualCluster):
        assert verbs_of(face) == verbs
        for name in verbs:
            assert inspect.getdoc(getattr(face, name))


def test_same_parameters_make_a_cluster_on_a_thread_and_on_a_loop():
    assert inspect.signature(Cluster) == inspect.signature(AsyncCluster)
    with pytest.raises(TypeError, match="broker_count"):
        Cluster(broker_count=3)


class TestNewPorts:
    def test_brokers_that_were_dead_and_restart_later_stay_on_their_new_ports(self, cluster):
        before = [broker.address for broker in cluster.status().brokers]
        cluster.kill(2)
        cluster.reset(new_ports=True)
        moved = [broker.address for broker in cluster.status().brokers]
        assert set(moved).isdisjoint(before)
        cluster.kill(2)
        cluster.start(2, end_session=True)
        assert [broker.address for broker in cluster.status().brokers] == moved

    def test_connections_of_former_clients_are_cut(self, cluster):
        client = cluster.client()
        answer = client.send(1, messages.ApiVersionsRequest(), 0)
        cluster.run_until(lambda: answer.done)
        assert [(each.broker, each.api) for each in cluster.clients()] == [(1, "ApiVersions")]
        cluster.reset()
        assert len(cluster.clients()) == 1
        cluster.reset(new_ports=True)
        assert cluster.clients() == ()

    def test_fixed_ports_are_refused_before_anything_is_reset(self):
        listeners = {"listeners": "TESTS://127.0.0.1:9092,LASTING://127.0.0.1:9192"}
        protocols = {"listener.security.protocol.map": "TESTS:PLAINTEXT,LASTING:PLAINTEXT"}
        between = {"inter.broker.listener.name": "TESTS"}
        cluster = VirtualCluster(1, configs=listeners | protocols | between)
        cluster.create_topic("orders", 1, 1)
        with pytest.raises(ConfigError, match=r"listener TESTS has the fixed port 9092.*free ports"):
            cluster.reset(new_ports=True, lasting="LASTING")
        with pytest.raises(ConfigError, match="unknown listener 'NONE'; listeners: TESTS, LASTING"):
            cluster.reset(new_ports=True, lasting="NONE")
        with pytest.raises(ConfigError, match="pass new_ports too"):
            cluster.reset(lasting="LASTING")
        assert [topic.name for topic in cluster.status().topics] == ["orders"]


class TestStart:
    def test_start_returns_when_clients_can_connect(self, cluster):
        cluster.kill(2)
        began_ms = cluster.now_ms
        cluster.start(2)
        assert cluster.inside.listeners.is_accepting(2)
        assert cluster.now_ms - began_ms > SESSION_MS / 2, "its old session had to end first"

    def test_start_without_wait_returns_at_once(self, cluster):
        cluster.kill(2)
        began_ms = cluster.now_ms
        cluster.start(2, wait=False)
        assert cluster.now_ms == began_ms
        assert cluster.status().broker(2).state == "running"
        assert not cluster.inside.listeners.is_accepting(2)

    def test_running_broker_is_refused(self, cluster):
        with pytest.raises(WrongStateError, match="broker 1 is running; kill it first"):
            cluster.start(1)

    def test_broker_comes_back_on_another_port(self, cluster):
        before = cluster.status().broker(2).address
        cluster.kill(2)
        cluster.start(2, end_session=True, new_ports=True)
        after = cluster.status().broker(2).address
        assert after != before
        registered = cluster.nodes.controller.image.brokers[2].endpoints[0]
        assert after == f"{registered.host}:{registered.port}"

    def test_new_ports_of_fixed_ones_are_refused(self):
        cluster = VirtualCluster(1, seed=3, listeners="PLAINTEXT://127.0.0.1:9092")
        cluster.kill(1)
        with pytest.raises(ConfigError, match=r"fixed port 9092.*leave out new_ports"):
            cluster.start(1, new_ports=True)
        cluster.start(1, end_session=True)


class TestAddedBrokers:
    def test_new_topics_use_it_and_old_partitions_stay(self, cluster):
        assert cluster.add_broker(configs={"broker.rack": "b"}).id == 4
        topic = cluster.create_topic("payments", 1, 4)
        assert sorted(topic.partitions[0].assignment) == [1, 2, 3, 4]
        assert sorted(cluster.status().isr("orders")) == [1, 2, 3]
        assert cluster.nodes.controller.image.brokers[4].rack == "b"

    def test_ids_and_configurations_are_checked_before_anything_is_made(self, cluster):
        for broker_id, configs, reason in (
            (2, {}, "broker 2 exists"),
            (-1, {}, "broker_id must be a number from 0"),
            (9, {"num.partitions": 0}, "num.partitions"),
        ):
            with pytest.raises(ConfigError, match=reason):
                cluster.add_broker(broker_id, configs=configs)
        assert [broker.id for broker in cluster.status().brokers] == [1, 2, 3]
        assert cluster.add_broker(9).id == 9

    def test_it_is_killed_and_started_as_any_other(self, cluster):
        cluster.add_broker(7)
        cluster.create_topic("payments", assignments={0: [7]})
        cluster.produce("payments", "paid")
        cluster.kill(7)
        cluster.start(7, end_session=True)
        assert [record.value for record in cluster.records("payments")] == [b"paid"]

    def test_a_simulated_disk_of_its_own_loses_power(self):
        cluster = VirtualCluster(1, seed=5, disk=DiskOptions())
        cluster.add_broker(2)
        cluster.lose_power(2)
        cluster.restore_power(2)
        assert [broker.state for broker in cluster.status().brokers] == ["running", "running"]


class TestRemovedBrokers:
    def test_it_hands_over_its_leaderships_and_is_forgotten(self, cluster):
        cluster.transfer_leadership("orders", 0, 2)
        cluster.remove_broker(2)
        assert [broker.id for broker in cluster.status().brokers] == [1, 3]
        assert sorted(cluster.nodes.controller.image.brokers) == [1, 3]
        assert cluster.leader("orders") in {1, 3}
        assert sorted(cluster.status().isr("orders")) == [1, 3]
        assert 2 in cluster.partition("orders").assignment, "its replica stays assigned to it, as in Kafka"
        cluster.produce("orders", "paid")
        assert 'broker="2"' not in cluster.metrics()
        assert "broker 2" not in cluster.describe()

    @pytest.mark.parametrize("verb", ["pause", "kill"])
    def test_paused_and_dead_ones_are_removed_too(self, cluster, verb):
        getattr(cluster, verb)(3)
        cluster.remove_broker(3)
        assert sorted(cluster.nodes.controller.image.brokers) == [1, 2]

    def test_one_that_comes_back_is_empty_and_catches_up(self, cluster):
        cluster.produce("orders", "first")
        cluster.remove_broker(2)
        cluster.add_broker(2)
        cluster.wait_until_in_sync()
        assert {each.log_end_offset for each in cluster.partition("orders").replicas} == {1}
        assert [broker.id for broker in cluster.status().brokers] == [1, 2, 3]

    def test_memory_of_its_records_is_free_again(self, cluster):
        used_bytes = cluster.status().memory.used_bytes
        cluster.create_topic("payments", assignments={0: [2]})
        cluster.produce("payments", "paid")
        assert cluster.status().memory.used_bytes > used_bytes
        cluster.remove_broker(2)
        assert cluster.status().memory.used_bytes == used_bytes

    def test_the_last_one_stays(self):
        cluster = VirtualCluster(1, seed=3)
        with pytest.raises(WrongStateError, match="broker 1 is the last broker"):
            cluster.remove_broker(1)

    def test_reset_brings_back_the_brokers_of_the_beginning(self, cluster):
        cluster.remove_broker(1)
        cluster.add_broker(8)
        cluster.kill(8)
        cluster.reset()
        assert [(broker.id, broker.state) for broker in cluster.status().brokers] == [
            (1, "running"),
            (2, "running"),
            (3, "running"),
        ]
        assert sorted(cluster.nodes.controller.image.brokers) == [1, 2, 3]


class TestStop:
    def test_broker_hands_its_leadership_over_before_it_ends(self, cluster):
        leader = cluster.leader("orders")
        cluster.stop(leader)
        assert cluster.status().broker(leader).state == "dead"
        assert cluster.leader("orders") != leader

    def test_killed_broker_leads_until_its_session_ends(self, cluster):
        leader = cluster.leader("orders")
        cluster.kill(leader)
        assert cluster.leader("orders") == leader


class TestRoll:
    def test_all_brokers_are_restarted_and_in_sync(self, cluster):
        before = {broker.id: broker.epoch for broker in cluster.status().brokers}
        cluster.roll()
        after = cluster.status()
        assert all(broker.epoch > before[broker.id] for broker in after.brokers)
        assert [broker.state for broker in after.brokers] == ["running"] * 3
        assert sorted(after.isr("orders")) == [1, 2, 3]

    def test_large_cluster_is_rolled_however_long_that_takes(self):
        cluster = VirtualCluster(brokers=12, seed=3, check_invariants=False)
        cluster.create_topic("orders", 12, 3)
        cluster.roll()
        assert cluster.nodes.is_in_sync
        assert cluster.now_ms > 12 * SESSION_MS

    def test_at_most_one_broker_is_dead_at_a_time(self, cluster):
        away = set()
        cluster.loop.after_step = lambda: away.add(sum(broker.state == "dead" for broker in cluster.status().brokers))
        cluster.roll()
        assert away <= {0, 1}

    def test_paused_broker_is_refused_before_anything_is_stopped(self, cluster):
        cluster.pause(3)
        with pytest.raises(WrongStateError, match="broker 3 is paused, not running"):
            cluster.roll()
        assert [b.state for b in cluster.status().brokers] == ["running", "running", "paused"]


class TestProducedRecords:
    def test_headers_and_timestamp_are_those_given(self, cluster):
        headers = [("trace", "7"), ("trace", None), ("raw", b"\xff")]
        record = cluster.produce("orders", "paid", headers=headers, timestamp_ms=1_234)
        assert record.headers == (("trace", b"7"), ("trace", None), ("raw", b"\xff"))
        assert cluster.records("orders") == (record,)
        assert record.timestamp_ms == 1_234
        assert cluster.produce("orders", "paid", headers={"trace": "7"}).headers == (("trace", b"7"),)
        for arguments in ({"headers": 7}, {"headers": ["a"]}, {"timestamp_ms": "soon"}, {"timestamp_ms": -1}):
            with pytest.raises(ValueError, match=r"headers must be|timestamp_ms must be"):
                cluster.produce("orders", "paid", **arguments)

    def test_records_that_were_read_are_appended_again(self, cluster):
        cluster.produce("orders", b"\xff", key="k", headers={"trace": "7"}, timestamp_ms=5)
        cluster.produce("orders", None, key="k")
        read = cluster.records("orders")
        cluster.create_topic("copies", 1, 3)
        copies = cluster.produce_many("copies", read.to_json()["records"])
        assert [replace(each, topic="orders") for each in copies] == list(read)

    def test_many_records_are_appended_in_few_batches_and_in_their_order(self, cluster):
        cluster.create_topic("payments", 3, 3)
        values = [{"value": {"amount": number}, "key": f"k{number}"} for number in range(300)]
        appended = cluster.produce_many("payments", values)
        assert [each.value for each in appended] == [b'{"amount": %d}' % number for number in range(300)]
        assert sorted(cluster.records("payments"), key=lambda each: each.key) == sorted(
            appended, key=lambda each: each.key
        )
        leader = cluster.nodes.brokers[cluster.leader("payments")]
        log = leader.replica_manager.get_partition(TopicPartition("payments", 0)).log
        assert sum(1 for segment in log.segments for _ in segment.batches_from(0)) == 1

    def test_more_than_a_batch_may_have_are_divided(self, cluster):
        appended = cluster.produce_many("orders", [{"value": "x" * 300_000} for _ in range(7)])
        assert [each.offset for each in appended] == list(range(7))

    def test_a_file_has_one_record_on_each_line(self, cluster, tmp_path):
        path = tmp_path / "records.jsonl"
        path.write_text('{"value": "a", "partition": 0}\n\n{"value": null, "key": "k"}\n')
        assert [(each.key, each.value) for each in cluster.produce_many("orders", path)] == [(None, b"a"), (b"k", None)]

    @pytest.mark.parametrize(
        ("records", "reason"),
        [
            ({"value": "a"}, "records must be a list of objects"),
            (["a"], "record 1 must be an object"),
            ([{"value": "a"}, {"key": "k"}], "record 2 has the fields"),
            ([{"value": "a", "offest": 1}], "record 1 has the fields"),
            ([{"value": "a", "partition": "0"}], "record 1: partition must be a number"),
            ([{"value": "a", "timestamp_ms": 1.5}], "record 1: timestamp_ms must be"),
            ([{"value": {"base64": "?"}}], "record 1: "),
        ],
    )
    def test_nothing_is_appended_where_a_record_is_bad(self, cluster, records, reason):
        with pytest.raises(ValueError, match=reason):
            cluster.produce_many("orders", records)
        assert cluster.records("orders") == ()


class TestRebalance:
    def test_group_has_a_new_epoch_and_a_removed_member_joins_again(self):
        cluster = VirtualCluster(1, seed=3, topics=["orders:1"], configs={"offsets.topic.num.partitions": 5})
        with pytest.raises(LookupError, match="billing"):
            cluster.rebalance("billing")
        user = GroupUser(cluster)
        user.create_offsets_topic()

        def heartbeat(epoch):
            request = messages.ConsumerGroupHeartbeatRequest(
                "billing", "m1", epoch, rebalance_timeout_ms=60_000, subscribed_topic_names=["orders"]
            )
            request.topic_partitions = []
            return user.ask(request, 1, 1)

        epoch = heartbeat(0).member_epoch
        cluster.rebalance("billing")
        cluster.advance(ASSIGNMENT_INTERVAL_MS)
        assert heartbeat(epoch).member_epoch == epoch + 1
        with pytest.raises(LookupError, match="group billing has no member nobody"):
            cluster.rebalance("billing", member_id="nobody")
        cluster.rebalance("billing", member_id="m1")
        assert cluster.group("billing").members == ()
        assert heartbeat(epoch + 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        with pytest.raises(ApiError, match="has no members"):
            cluster.rebalance("billing")
        cluster.pause(1)
        with pytest.raises(WrongStateError, match="broker 1 is paused"):
            cluster.rebalance("billing")


class TestTransferLeadership:
    def test_follower_leads_in_the_next_leader_epoch(self, cluster):
        before = cluster.status().partition("orders")
        to = before.followers[0]
        cluster.transfer_leadership("orders", 0, to)
        after = cluster.status().partition("orders")
        assert (after.leader, after.leader_epoch) == (to, before.leader_epoch + 1)
        assert cluster.nodes.brokers[to].image.topics["orders"].partitions[0].leader == to

    def test_leader_stays_leader_in_its_epoch(self, cluster):
        before = cluster.status().partition("orders")
        cluster.transfer_leadership("orders", 0, before.leader)
        assert cluster.status().partition("orders").leader_epoch == before.leader_epoch

    def test_broker_out_of_the_isr_is_refused(self, cluster):
        to = cluster.followers("orders")[0]
        cluster.kill(to)
        cluster.advance(SESSION_MS + 3_000)
        with pytest.raises(ApiError) as refused:
            cluster.transfer_leadership("orders", 0, to)
        assert str(to) in str(refused.value)

    def test_unknown_topic_is_refused(self, cluster):
        with pytest.raises(ApiError) as refused:
            cluster.transfer_leadership("parcels", 0, 1)
        assert refused.value.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestCreateTopic:
    def test_every_broker_knows_the_topic_when_the_verb_returns(self):
        cluster = VirtualCluster(seed=4, max_latency_ms=20)
        topic = cluster.create_topic("orders", 2, 3)
        assert [partition.partition for partition in topic.partitions] == [0, 1]
        assert all("orders" in broker.image.topics for broker in cluster.nodes.brokers.values())

    def test_work_for_the_answers_does_not_grow_with_the_topics(self, cluster, monkeypatch):
        built = []
        build = cluster_status._partition_status

        def count(nodes, topic_partition):
            built.append(topic_partition)
            return build(nodes, topic_partition)

        monkeypatch.setattr(cluster_status, "_partition_status", count)
        for number in range(5):
            cluster.create_topic(f"t{number}", 2, 1)
        assert len(built) == 10
        cluster.leader("t0")
        cluster.isr("t1")
        with cluster.paused(1):
            pass
        cluster.reset()
        assert len(built) == 12

    def test_brokers_that_the_controller_cannot_reach_are_not_waited_for(self, cluster):
        cluster.pause(2)
        cluster.disconnect(3)
        began_ms = cluster.now_ms
        cluster.create_topic("parcels", assignments={0: [1]})
        assert cluster.now_ms == began_ms


class TestSetGroupConfigs:
    def configs(self, cluster):
        return [
            dict(broker.image.configs_of_resource(GROUP_RESOURCE, "billing"))
            for broker in cluster.nodes.brokers.values()
        ]

    def test_every_broker_knows_them_when_the_verb_returns_and_others_stay(self, cluster):
        cluster.set_group_configs("billing", {"share.auto.offset.reset": "earliest"})
        cluster.set_group_configs("billing", {"share.delivery.count.limit": 3})
        wanted = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "3"}
        assert self.configs(cluster) == [wanted] * len(cluster.nodes.brokers)
        cluster.reset()
        assert self.configs(cluster) == [{}] * len(cluster.nodes.brokers)

    @pytest.mark.parametrize(
        ("group_id", "configs", "reason"),
        [
            ("billing", {"share.delivery.count.limit": 99}, "share.delivery.count.limit"),
            ("billing", {"no.such.config": 1}, "no.such.config"),
            ("", {"share.delivery.count.limit": 3}, "not allowed"),
        ],
    )
    def test_what_kafka_refuses_is_refused_with_its_text(self, cluster, group_id, configs, reason):
        with pytest.raises(ApiError, match=reason):
            cluster.set_group_configs(group_id, configs)
        assert self.configs(cluster)[0] == {}

    def test_nothing_to_set_is_refused(self, cluster):
        with pytest.raises(ValueError, match="pass at least one configuration"):
            cluster.set_group_configs("billing")

    def test_half_of_a_surrogate_pair_is_refused(self, cluster):
        with pytest.raises(ValueError, match="not valid Unicode"):
            cluster.set_group_configs("\ud800", {"share.delivery.count.limit": 3})


class TestSetQuotas:
    def quotas(self, cluster):
        return [broker.image.client_quotas for broker in cluster.nodes.brokers.values()]

    def test_every_broker_knows_them_when_the_verb_returns(self, cluster):
        cluster.set_quotas("billing", producer_byte_rate=1000, request_percentage=0.5)
        entity = (("client-id", "billing"),)
        assert self.quotas(cluster) == [{entity: {"producer_byte_rate": 1000, "request_percentage": 0.5}}] * len(
            cluster.nodes.brokers
        )

    def test_what_is_not_named_is_removed(self, cluster):
        cluster.set_quotas("<default>", user="anna", producer_byte_rate=1000)
        cluster.set_quotas("<default>", user="anna", consumer_byte_rate=5)
        entity = (("client-id", None), ("user", "anna"))
        assert self.quotas(cluster)[0] == {entity: {"consumer_byte_rate": 5}}
        cluster.set_quotas("<default>", user="anna")
        assert self.quotas(cluster)[0] == {}

    @pytest.mark.parametrize(
        ("names", "quotas", "reason"),
        [
            ({}, {"producer_byte_rate": 1}, "Invalid empty client quota entity"),
            ({"ip": "1.2.3.4"}, {"producer_byte_rate": 1}, "Invalid configuration key"),
            ({"user": "anna"}, {"producer_byte_rate": 0.5}, "cannot be a fractional value"),
        ],
    )
    def test_what_kafka_refuses_is_refused_with_its_text(self, cluster, names, quotas, reason):
        with pytest.raises(ApiError, match=reason):
            cluster.set_quotas(**names, **quotas)
        assert self.quotas(cluster)[0] == {}

    @pytest.mark.parametrize("name", ["client_id", "user", "ip"])
    def test_half_of_a_surrogate_pair_is_refused(self, cluster, name):
        # It would break every answer to DescribeClientQuotas.
        with pytest.raises(ValueError, match="a lone surrogate"):
            cluster.set_quotas(**{name: "\ud800"}, producer_byte_rate=1)
        assert self.quotas(cluster)[0] == {}
