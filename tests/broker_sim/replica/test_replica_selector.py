"""Claims about reading from a replica in the consumer's rack (KIP-392), as seen on Kafka 4.3.1."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.config import RACK_AWARE_SELECTOR
from broker_sim.errors import ErrorCode
from broker_sim.protocol.messages import FetchRequest
from broker_sim.replica import CommittedIsr


class Racks:
    """Brokers 1 to 3 in racks a, b and b; one topic led by broker 1 with one record."""

    def __init__(self, make_frame_client, selector=RACK_AWARE_SELECTOR):
        configs = {} if selector is None else {"replica.selector.class": selector}
        racks = {1: {"broker.rack": "a"}, 2: {"broker.rack": "b"}, 3: {"broker.rack": "b"}}
        self.cluster = VirtualCluster(3, configs=configs, broker_configs=racks, seed=4)
        self.cluster.create_topic("t", assignments={0: [1, 2, 3]})
        self.cluster.produce("t", "v")
        self.cluster.advance(1_000)
        self._make_client = make_frame_client

    def fetch(self, rack, *, broker=1, offset=0, version=12, wait_ms=0, replica_id=-1):
        """Return the answer for the partition; None while the fetch is parked."""
        client = self._make_client(self.cluster.nodes.brokers[broker].dispatcher.handle_frame)
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            replica_id=replica_id,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=0,
            topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])],
        )
        if version >= 11:
            request.rack_id = rack
        responses = client.send(request, version)
        if not responses:
            return None
        return responses[0].responses[0].partitions[0]


@pytest.fixture
def racks(make_frame_client):
    return Racks(make_frame_client)


def has_records(answer):
    return len(bytes(answer.records or b"")) > 0


@pytest.mark.parametrize("version", [11, 12])
def test_leader_names_a_follower_in_the_rack_and_reads_nothing(racks, version):
    answer = racks.fetch("b", version=version, wait_ms=60_000)
    assert (answer.error_code, answer.preferred_read_replica) == (ErrorCode.NONE, 3)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (1, 1, 0)
    assert not has_records(answer)


def test_leader_does_not_wait_for_records_that_are_read_elsewhere(racks):
    assert racks.fetch("b", offset=1, wait_ms=60_000).preferred_read_replica == 3
    assert racks.fetch("a", offset=1, wait_ms=60_000) is None


@pytest.mark.parametrize("rack", ["", "a", "nowhere"])
def test_leader_serves_its_own_rack_and_racks_without_brokers(racks, rack):
    answer = racks.fetch(rack)
    assert answer.preferred_read_replica == -1
    assert has_records(answer)


def test_version_without_racks_reads_from_the_leader(racks):
    assert has_records(racks.fetch("b", version=10))


@pytest.mark.parametrize("broker", [2, 3])
def test_named_follower_reads_up_to_its_high_watermark(racks, broker):
    answer = racks.fetch("b", broker=broker)
    assert (answer.high_watermark, answer.preferred_read_replica) == (1, -1)
    assert has_records(answer)
    beyond = racks.fetch("b", broker=broker, offset=2)
    assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_offset_that_no_follower_has_is_read_from_the_leader(racks):
    beyond = racks.fetch("b", offset=9)
    assert (beyond.error_code, beyond.preferred_read_replica) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_follower_that_fell_behind_is_not_named(racks):
    racks.cluster.pause(3)
    racks.cluster.run_until(lambda: 3 not in racks.cluster.isr("t"))
    racks.cluster.advance(0)  # the leader learns of it
    assert racks.fetch("b").preferred_read_replica == 2
    racks.cluster.pause(2)
    racks.cluster.run_until(lambda: 2 not in racks.cluster.isr("t"))
    racks.cluster.advance(0)
    assert has_records(racks.fetch("b"))


def test_follower_outside_the_isr_is_not_named_though_it_is_alive(racks):
    (partition,) = racks.cluster.nodes.brokers[1].replica_manager.leader_partitions()
    partition.replica_states.isr_state = CommittedIsr(frozenset({1, 2}))
    assert racks.fetch("b").preferred_read_replica == 2
    partition.replica_states.isr_state = CommittedIsr(frozenset({1}))
    assert has_records(racks.fetch("b"))


def test_the_follower_with_most_records_is_named_first(racks):
    replicas = racks.cluster.nodes.brokers[1].replica_manager.leader_partitions()[0].replica_states
    replicas.followers[3].log_end_offset = 0
    assert racks.fetch("b").preferred_read_replica == 2


def test_fetch_of_a_follower_is_never_redirected(racks):
    answer = racks.fetch("b", replica_id=2)
    assert answer.preferred_read_replica == -1


@pytest.mark.parametrize("selector", [None, "org.apache.kafka.common.replica.LeaderSelector"])
def test_without_the_selector_racks_do_not_matter(make_frame_client, selector):
    assert has_records(Racks(make_frame_client, selector).fetch("b"))


def test_unknown_selector_class_is_refused():
    with pytest.raises(ValueError, match="must be one of Kafka's: org"):
        VirtualCluster(1, configs={"replica.selector.class": "my.Selector"})
