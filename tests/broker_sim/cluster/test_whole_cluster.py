"""What tests of applications do with a cluster: topics, records, scopes and resets, on every face."""

import asyncio
import socket

import pytest

from broker_sim import (
    ApiError,
    AsyncCluster,
    Cluster,
    ClusterTimeoutError,
    Fault,
    UnknownPartitionError,
    VirtualCluster,
    WrongStateError,
)
from broker_sim.cluster.records import partition_of_key
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.controller.requests import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.headers import RequestHeader, encode_request
from broker_sim.protocol.records import Record, build_batch
from broker_sim.runtime.virtual import VirtualEventLoop

ORDERS = TopicPartition("orders", 0)
TOPICS = ["orders:2:3:min.insync.replicas=2", "other:1"]


@pytest.fixture(params=[Cluster, VirtualCluster])
def cluster(request):
    with request.param(3, topics=TOPICS) as made:
        yield made


def values(cluster, topic="orders"):
    return [record.value for record in cluster.records(topic)]


class TestTopics:
    def test_they_are_there_when_the_cluster_is(self, cluster):
        status = cluster.status()
        assert {topic.name: len(topic.partitions) for topic in status.topics} == {"orders": 2, "other": 1}
        assert status.isr("orders", 1) in {(1, 2, 3), *[status.partition("orders", 1).assignment]}

    def test_topic_that_kafka_refuses_is_refused_at_open(self):
        with pytest.raises(ApiError, match="replication factor"):
            Cluster(1, topics=["orders:1:3"]).open()

    def test_deleted_topic_is_gone_on_every_broker(self, cluster):
        cluster.delete_topic("other")
        assert [topic.name for topic in cluster.status().topics] == ["orders"]
        assert (
            all("other" not in broker.image.topics for broker in cluster.nodes.brokers.values())
            if isinstance(cluster, VirtualCluster)
            else True
        )
        with pytest.raises(UnknownPartitionError, match="topics: orders"):
            cluster.delete_topic("other")


class TestRecords:
    def test_what_is_produced_is_read(self, cluster):
        first = cluster.produce("orders", "a", key="k", partition=1)
        second = cluster.produce("orders", b"b", partition=1)
        third = cluster.produce("orders", None)
        assert [(r.partition, r.offset) for r in (first, second, third)] == [(1, 0), (1, 1), (0, 0)]
        assert cluster.records("orders") == (third, first, second)
        assert (first.key, first.value, third.value) == (b"k", b"a", None)
        assert cluster.high_watermark("orders", 1) == 2

    def test_equal_batches_are_read_as_they_are_each_time(self):
        with VirtualCluster(1, topics=["orders:2", "other"]) as cluster:
            for topic, partition in (("orders", 0), ("orders", 1), ("other", 0)):
                cluster.produce(topic, "a", partition=partition)  # equal bytes in each log
            for _ in range(2):
                found = [(r.topic, r.partition, r.offset) for r in cluster.records("orders")]
                assert found == [("orders", 0, 0), ("orders", 1, 0)]
                assert [r.topic for r in cluster.records("other")] == ["other"]

    def test_records_that_were_read_and_are_deleted_now_are_not_read(self):
        with VirtualCluster(1, topics=["orders"]) as cluster:
            log = cluster.nodes.brokers[1].replica_manager.get_partition(ORDERS).log
            batch = build_batch([Record(b"a"), Record(b"b")])
            answers = []
            cluster.nodes.brokers[1].append_acked(ORDERS, batch, 1_000, answers.append)
            cluster.run_until(lambda: answers)
            assert values(cluster) == [b"a", b"b"]
            log.offsets.maybe_increment_log_start_offset(1)
            assert values(cluster) == [b"b"]

    def test_record_that_is_not_on_all_replicas_cannot_be_read(self):
        with VirtualCluster(2, topics=["orders:1:2"]) as cluster:
            leader, (follower,) = cluster.leader("orders"), cluster.followers("orders")
            cluster.pause(follower)
            pending = cluster.client().send(leader, produce_request(("orders", 0), acks=1), PRODUCE_VERSION)
            cluster.run_until(lambda: pending.done)
            assert values(cluster) == []
            cluster.resume(follower)
            cluster.run_until(lambda: values(cluster) == [b"value"])

    def test_too_few_replicas_raise_the_error_of_a_producer(self):
        with VirtualCluster(3, topics=["orders:1:3:min.insync.replicas=3"]) as cluster:
            follower = cluster.followers("orders")[0]
            cluster.kill(follower)
            cluster.run_until(lambda: follower not in cluster.isr("orders"))
            with pytest.raises(ApiError) as refusal:
                cluster.produce("orders", "a")
            assert refusal.value.error_code.name == "NOT_ENOUGH_REPLICAS"

    def test_paused_leader_does_not_answer(self):
        with VirtualCluster(1, topics=["orders"]) as cluster:
            cluster.pause(1)
            with pytest.raises(ClusterTimeoutError, match="broker 1, the leader of orders-0"):
                cluster.produce("orders", "a")

    def test_wrong_topic_partition_or_type_is_refused(self, cluster):
        with pytest.raises(UnknownPartitionError, match="unknown topic 'x'; topics: orders, other"):
            cluster.produce("x", "a")
        with pytest.raises(UnknownPartitionError, match="no partition 2; it has 0, 1"):
            cluster.produce("orders", "a", partition=2)
        with pytest.raises(TypeError, match="value must be text, bytes or None, not 1"):
            cluster.produce("orders", 1)
        with pytest.raises(UnknownPartitionError):
            cluster.records("x")

    def test_partition_without_a_live_leader_is_told(self):
        with VirtualCluster(1, topics=["orders"]) as cluster:
            cluster.kill(1)
            with pytest.raises(WrongStateError, match="orders-0 has no live leader"):
                cluster.records("orders")

    def test_partition_of_a_key_is_that_of_kafkas_producer(self):
        # The hashes are those of org.apache.kafka.common.utils.UtilsTest.
        hashes = {
            b"21": -973932308,
            b"foobar": -790332482,
            b"a-little-bit-long-string": -985981536,
            b"a-little-bit-longer-string": -1486304829,
            b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
            b"abc": 479470107,
        }
        for key, hashed in hashes.items():
            assert partition_of_key(key, 1_000_003) == (hashed & 0x7FFFFFFF) % 1_000_003


class TestScopes:
    def test_broker_is_paused_for_a_block_also_after_an_error(self, cluster):
        scope = cluster.paused(2)
        with pytest.raises(ZeroDivisionError), scope:
            _ = 1 / (cluster.status().broker(2).state != "paused")
        assert cluster.status().broker(2).state == "running"

    def test_broker_that_is_no_longer_paused_stays_as_it_is(self, cluster):
        with cluster.paused(2):
            cluster.kill(2)
        assert cluster.status().broker(2).state == "dead"

    def test_killed_broker_accepts_clients_after_the_block(self, cluster):
        with cluster.killed(2, end_session=True):
            assert cluster.status().broker(2).state == "dead"
        assert cluster.status().broker(2).state == "running"
        cluster.wait_until_in_sync()
        assert all(len(p.isr) == len(p.assignment) for p in cluster.status().topic("orders").partitions)

    def test_fault_ends_with_its_block(self, cluster):
        with cluster.fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER", topic="orders") as fault:
            assert [one.id for one in cluster.status().faults] == [fault.id]
        assert cluster.status().faults == ()
        with pytest.raises(LookupError, match="unknown broker 9"), cluster.fault(api="Produce", broker=9, delay_ms=1):
            pass

    def test_an_async_cluster_has_them_too(self):
        async def main():
            async with AsyncCluster(2, topics=["orders:1:2"]) as cluster:
                with cluster.paused(1):
                    assert cluster.status().broker(1).state == "paused"
                async with cluster.killed(1, end_session=True):
                    assert cluster.status().broker(1).state == "dead"
                assert cluster.status().broker(1).state == "running"
                with cluster.killed(1, end_session=True):
                    assert cluster.status().broker(1).state == "dead"
                assert cluster.status().broker(1).state == "running"
                with cluster.killed(1):
                    await cluster.start(1, end_session=True)
                async with cluster.paused(1), cluster.fault(api="Fetch", delay_ms=1):
                    assert cluster.status().broker(1).state == "paused"
                await cluster.wait_until_in_sync()
                record = await cluster.produce("orders", "a")
                assert cluster.records("orders") == (record,)

        asyncio.run(main())


class TestSessions:
    def test_restarted_broker_waits_for_its_old_session_unless_that_is_ended(self):
        with VirtualCluster(3) as cluster:
            for end_session, shortest_ms, longest_ms in ((False, 7_000, 12_000), (True, 0, 100)):
                cluster.kill(2)
                killed_ms = cluster.now_ms
                cluster.start(2, end_session=end_session)
                assert shortest_ms <= cluster.now_ms - killed_ms <= longest_ms

    def test_live_broker_keeps_its_session(self, cluster):
        with pytest.raises(WrongStateError, match="kill it first"):
            cluster.start(2, end_session=True)
        assert not cluster.status().broker(2).fenced

    def test_wait_for_replicas_ends_in_time(self):
        with VirtualCluster(2, topics=["orders:1:2"]) as cluster:
            follower = cluster.followers("orders")[0]
            cluster.kill(follower)
            cluster.run_until(lambda: len(cluster.isr("orders")) == 1)
            before_ms = cluster.now_ms
            with pytest.raises(ClusterTimeoutError, match=r"waited 0\.5 s for all replicas"):
                cluster.wait_until_in_sync(0.5)
            assert 500 <= cluster.now_ms - before_ms <= 501


class TestReset:
    def test_everything_is_as_it_was_opened(self, cluster):
        opened = cluster.status()
        cluster.produce("orders", "a")
        cluster.create_topic("more", 1, 3)
        cluster.delete_topic("other")
        cluster.inject(Fault(api="Produce", delay_ms=1_000))
        cluster.set_link(1, 2, delay_ms=5)
        cluster.disconnect(3)
        for broker_id in (2, 3):
            cluster.disconnect_clients(broker_id)
        cluster.pause(2)
        cluster.kill(1)
        cluster.reset()
        status = cluster.status()
        assert sorted(topic.name for topic in status.topics) == ["orders", "other"]
        assert (status.faults, status.links) == ((), ())
        assert [(b.state, b.clients_cut_off, b.fenced) for b in status.brokers] == [("running", False, False)] * 3
        assert [b.address for b in status.brokers] == [b.address for b in opened.brokers]
        assert values(cluster) == []
        assert cluster.produce("orders", "b", key="x").offset == 0

    def test_configurations_that_were_set_since_are_gone(self):
        with VirtualCluster(2, configs={"min.insync.replicas": 2}) as cluster:
            before = cluster.nodes.controller.image.broker_configs
            for name, key in (("", "min.insync.replicas"), ("1", "log.retention.ms")):
                resource = ConfigResource(ConfigResourceType.BROKER, name)
                change = ConfigAlteration(key, AlterOp.SET, "1")
                ((_, outcome),) = cluster.nodes.controller.incremental_alter_configs([(resource, [change])])
                assert outcome.ok, outcome
            assert cluster.nodes.controller.image.broker_configs != before
            cluster.reset()
            assert cluster.nodes.controller.image.broker_configs == before

    def test_parked_requests_of_deleted_topics_are_answered(self):
        with VirtualCluster(2, topics=["orders:1:2"]) as cluster:
            leader, (follower,) = cluster.leader("orders"), cluster.followers("orders")
            cluster.disconnect(follower)
            pending = cluster.client().send(leader, produce_request(("orders", 0)), PRODUCE_VERSION)
            cluster.advance(50)
            assert not pending.done
            cluster.reset()
            cluster.run_until(lambda: pending.done, 100)

    def test_living_clients_find_each_topic_as_it_was_opened(self):
        with VirtualCluster(3, topics=TOPICS, max_latency_ms=2) as cluster:
            clients = [cluster.client() for _ in range(3)]
            found = set()

            def poll(client, broker_id, answer=None):
                if answer is not None:
                    found.update((t.name, len(t.partitions)) for t in answer.response.topics)
                request = messages.MetadataRequest(
                    topics=[messages.MetadataRequest.MetadataRequestTopic(name="orders")],
                    allow_auto_topic_creation=True,
                )
                client.send(broker_id, request, 9, lambda pending: poll(client, broker_id, pending))

            for broker_id, client in enumerate(clients, 1):
                poll(client, broker_id)
            for _ in range(5):
                cluster.reset()
                assert len(cluster.status().topic("orders").partitions) == 2
            cluster.run_until(lambda: ("orders", 2) in found)
            assert found == {("orders", 2)}


def test_clients_cannot_connect_before_the_topics_are_there():
    loop = VirtualEventLoop(1)
    cluster = SimulatedCluster(loop, 3, topics=TOPICS)
    found = []

    def look():
        if any(map(cluster.listeners.is_accepting, (1, 2, 3))):
            found.extend(sorted(broker.image.topics) for broker in cluster.nodes.brokers.values())

    loop.after_step = look
    loop.run_until_complete(cluster.open())
    loop.after_step = None
    assert found
    assert all(topics == ["orders", "other"] for topics in found)
    loop.run_until_complete(cluster.close())
    loop.close()


def test_hook_that_calls_the_cluster_gets_an_error_and_does_not_hang(caplog):
    with Cluster(1, topics=["orders"]) as cluster:
        hook = cluster.hook("ApiVersions", lambda _: cluster.leader("orders"))
        with socket.create_connection(cluster.address(1), timeout=60) as client:
            header = RequestHeader(18, 0, 1, "shop")
            client.sendall(b"".join(encode_request(header, messages.ApiVersionsRequest())))
            assert client.recv(1) == b""
        assert hook.hits == 1
    assert "the cluster's own thread" in caplog.text


class TestAddresses:
    def test_they_are_asked_for_when_the_cluster_runs(self):
        cluster = Cluster(1)
        with pytest.raises(WrongStateError, match=r"call open\(\) first"):
            _ = cluster.bootstrap_servers
        with cluster:
            assert cluster.bootstrap_servers == "{}:{}".format(*cluster.address(1))

    def test_address_of_ip_version_6_has_brackets(self):
        for host in ("::1", "[::1]"):
            with Cluster(1, host=host) as cluster:
                assert cluster.bootstrap_servers.startswith("[::1]:")
                assert cluster.status().broker(1).address == cluster.bootstrap_servers


def test_trace_is_written_into_the_path(tmp_path):
    for face in (Cluster, VirtualCluster):
        path = tmp_path / f"{face.__name__}.jsonl"
        with face(2, topics=["orders:1:2"], trace=path) as cluster:
            cluster.produce("orders", "a")
        assert '"purgatory":"Produce"' in path.read_text().replace(" ", "")
