"""Waits for clients and followers: they wake when something changes, and not by looking again and again."""

import asyncio
import threading
from functools import partial

import pytest

from broker_sim import Cluster, ClusterTimeoutError, VirtualCluster
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.protocol import messages
from broker_sim.protocol.records import build_batch
from broker_sim.runtime.virtual import VirtualEventLoop


@pytest.fixture
def cluster():
    with VirtualCluster(3, topics=["orders:1:3"], configs={"replica.lag.time.max.ms": 1_000}) as made:
        yield made


class TestIsr:
    def test_follower_leaves_and_comes_back(self, cluster):
        follower = cluster.followers("orders")[0]
        with cluster.paused(follower):
            status = cluster.wait_for_isr("orders", lacks=follower)
            assert follower not in status.isr
            assert cluster.wait_for_isr("orders", 0, 2).isr == status.isr
        assert len(cluster.wait_for_isr("orders").isr) == 3
        assert cluster.wait_for_isr("orders", has=follower, timeout_s=0)

    def test_timeout_error_contains_the_isr(self, cluster):
        isr = list(cluster.isr("orders"))
        with pytest.raises(ClusterTimeoutError) as late:
            cluster.wait_for_isr("orders", size=2, lacks=9, timeout_s=0.5)
        assert str(late.value) == (f"waited 0.5 s for the ISR of orders-0 (size 2, lacks 9); it is {isr}")


class TestGroup:
    def test_group_becomes_stable_and_loses_its_member_at_the_end_of_its_session(self, user):
        member_id = user.joined().member_id
        user.send(user.sync(member_id, assignments=[(member_id, b"")]), 3, user.leader("g"))
        assert user.cluster.wait_for_group("g").state == "Stable"
        begun_ms = user.cluster.now_ms
        group = user.cluster.wait_for_group("g", "Empty", members=0)
        assert group.members == ()
        assert 9_000 <= user.cluster.now_ms - begun_ms <= 10_001

    def test_commits_end_a_lag(self, user):
        user.cluster.produce("t", "a")
        user.commit("g", {0: 0})
        with pytest.raises(ClusterTimeoutError) as late:
            user.cluster.wait_for_group("g", members=0, lag=0, timeout_s=0.1)
        assert str(late.value) == (
            "waited 0.1 s for group g (members 0, lag 0); it is Empty with 0 members and a lag of 1"
        )
        user.send(user.commit_request("g", {0: 1}), 9, user.leader("g"))
        assert user.cluster.wait_for_group("g", lag=0).committed("t") == 1

    def test_markers_and_aborted_records_are_no_lag_and_those_of_open_transactions_are(self, make_user):
        user = make_user(transaction_partition_verification_enable=False)
        producer = TransactionalProducer(user)
        user.commit("g", {0: 0})
        producer.send()
        producer.end(is_commit=False)
        producer.send()
        producer.end(is_commit=True)
        assert user.cluster.high_watermark("t") == 4
        assert user.cluster.wait_for_group("g", lag=1, timeout_s=0).lag == 4
        with pytest.raises(ClusterTimeoutError, match="a lag of 4"):
            user.cluster.wait_for_group("g", lag=0, timeout_s=0.1)
        user.ask(user.commit_request("g", {0: 3}), 9, user.leader("g"))
        assert user.cluster.wait_for_group("g", lag=0).lag == 1
        producer.send()
        with pytest.raises(ClusterTimeoutError, match="a lag of 2"):
            user.cluster.wait_for_group("g", lag=0, timeout_s=0.1)

    def test_timeout_error_names_the_missing_group(self, cluster):
        with pytest.raises(ClusterTimeoutError, match=r"group g \(state Stable\); it does not exist"):
            cluster.wait_for_group("g", timeout_s=0.1)


class TransactionalProducer:
    """Writes to the first partition of t, without a coordinator."""

    ID, EPOCH = 9, 0

    def __init__(self, user):
        self._user = user
        self._leader = user.cluster.leader("t")
        self._sequence = 0

    def send(self):
        producer = {"producer_id": self.ID, "producer_epoch": self.EPOCH, "is_transactional": True}
        request = produce_request(("t", 0), batch=build_batch([b"x"], base_sequence=self._sequence, **producer))
        request.transactional_id = "id"
        self._sequence += 1
        self._user.ask(request, PRODUCE_VERSION, self._leader)

    def end(self, *, is_commit):
        request = messages.WriteTxnMarkersRequest
        topic = request.WritableTxnMarkerTopic(name="t", partition_indexes=[0])
        marker = request.WritableTxnMarker(
            producer_id=self.ID, producer_epoch=self.EPOCH, transaction_result=is_commit, topics=[topic]
        )
        self._user.ask(request(markers=[marker]), 1, self._leader)


class TestUntil:
    def test_predicate_is_called_only_after_changes(self):
        loop = VirtualEventLoop(1)
        cluster = SimulatedCluster(loop, 3, topics=["orders:1:3"])
        asked = []

        async def main():
            async with cluster:
                follower = cluster.followers("orders")[0]
                cluster.disconnect(follower)
                sending = asyncio.create_task(cluster.produce("orders", "a"))
                begun = len(asked)

                def is_written():
                    asked.append(loop.time())
                    return cluster.high_watermark("orders") == 1

                loop.call_later(5, cluster.reconnect, follower)
                await cluster.wait_until(is_written)
                assert loop.time() == pytest.approx(5, abs=0.6)
                await sending
                assert len(asked) - begun < 200
                turns = len(asked)
                await asyncio.sleep(5)
                assert len(asked) == turns
                assert all(process.on_turn is None for process in cluster.nodes._processes())
                with pytest.raises(ClusterTimeoutError, match="waited 1 s for"):
                    await cluster.wait_until(lambda: False, timeout_s=1)

        loop.run_until_complete(main())
        loop.close()

    def test_request_of_a_client_wakes_at_once(self):
        with VirtualCluster(1, topics=["orders"]) as cluster:
            client, begun_ms = cluster.client(), cluster.now_ms
            client.send(1, produce_request(("orders", 0), acks=1), PRODUCE_VERSION)
            inside = cluster.inside
            cluster.wait_for(inside.wait_until(lambda: inside.high_watermark("orders") == 1))
            assert cluster.now_ms == begun_ms

    def test_virtual_cluster_steps_until_then(self, cluster):
        cluster.wait_until(lambda: cluster.now_ms >= 1_500)
        assert cluster.now_ms == pytest.approx(1_500, abs=500)
        with pytest.raises(ClusterTimeoutError, match=r"<lambda> \(test_waits.py, line \d+\)"):
            cluster.wait_until(lambda: False, timeout_s=0.5)
        with pytest.raises(ClusterTimeoutError, match="built-in function any"):
            cluster.wait_until(partial(any, ()), timeout_s=0.5)

    @pytest.mark.threads
    def test_predicate_of_a_thread_may_call_the_cluster(self):
        with Cluster(1, topics=["orders"]) as cluster:
            threads = []

            def is_written():
                threads.append(threading.current_thread())
                return cluster.high_watermark("orders") == 1

            producing = threading.Timer(0.05, cluster.produce, ("orders", "a"))
            producing.start()
            cluster.wait_until(is_written)
            producing.join()
            assert set(threads) == {threading.current_thread()}
            with pytest.raises(ClusterTimeoutError):
                cluster.wait_until(lambda: False, timeout_s=0.01)


@pytest.mark.parametrize(("partitions", "limit_s"), [(999, 60), (2_000, 80)])
def test_brokers_with_many_partitions_are_waited_for_longer(partitions, limit_s):
    with VirtualCluster(2, topics=[f"many:{partitions}:1"]) as cluster:
        cluster.kill(1)
        cluster.disconnect(1)
        inside = cluster.inside
        with pytest.raises(ClusterTimeoutError, match=f"waited {limit_s} s for broker 1"):
            cluster.wait_for(inside.start(1))
