"""Every invariant of a simulated cluster is noticed when it breaks."""

import pytest

from broker_sim.cluster.virtual.invariants import InvariantChecker, InvariantViolationError
from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch

KEY = TopicPartition("orders", 0)


@pytest.fixture
def cluster():
    """A partition with one record on all three replicas, led by broker 1."""
    made = VirtualCluster(seed=9)
    made.create_topic("orders", assignments={0: [1, 2, 3]})
    pending = made.client().send(1, produce_request(KEY), PRODUCE_VERSION)
    made.run_until(lambda: pending.done)
    made.advance(1_000)
    return made


class Checker(InvariantChecker):
    """Looks at everything at each check: these tests change attributes behind the log's back."""

    def check(self):
        self._images = {}
        super().check()


@pytest.fixture
def checker(cluster):
    """A checker that has seen the cluster once."""
    made = Checker(cluster.nodes)
    made.check()
    return made


@pytest.fixture
def log(cluster):
    """Return a function that returns a broker's log of the partition."""
    return lambda broker_id: cluster.nodes.brokers[broker_id].replica_manager.partitions[KEY].log


def test_sound_cluster_passes_again_and_again(checker):
    checker.check()


def test_high_watermark_beyond_the_log_end_is_noticed(checker, log):
    log(2).offsets.high_watermark = 2
    with pytest.raises(InvariantViolationError, match="offsets out of order on broker 2"):
        checker.check()


def test_last_stable_offset_that_goes_back_on_a_leader_is_noticed(checker, log):
    log(1).producer_state.first_unstable_offset = 0
    with pytest.raises(InvariantViolationError, match="last stable offset of orders-0 went back"):
        checker.check()


def test_high_watermark_that_goes_back_on_a_leader_is_noticed(checker, log):
    log(1).offsets.high_watermark = 0
    with pytest.raises(InvariantViolationError, match="went back from 1 to 0 on its leader 1"):
        checker.check()


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.truncate_to(0),
        lambda log: log.offsets.update_high_watermark(1),
        lambda log: log.offsets.maybe_increment_log_start_offset(1),
        lambda log: log.append_as_follower(build_batch([b"value"], base_offset=1)),
    ],
    ids=["truncate", "high watermark", "log start", "append"],
)
def test_only_partitions_whose_logs_have_changed_are_looked_at_again(cluster, log, change):
    checker = InvariantChecker(cluster.nodes)
    checker.check()
    log(2).offsets.high_watermark = 9
    checker.check()
    log(2).offsets.high_watermark = 1
    change(log(2))
    log(2).offsets.high_watermark = 9
    with pytest.raises(InvariantViolationError, match="orders-0"):
        checker.check()


def test_all_partitions_are_looked_at_again_after_new_metadata(cluster, log):
    checker = InvariantChecker(cluster.nodes)
    checker.check()
    cluster.create_topic("other", partitions=1)
    log(2).offsets.high_watermark = 9
    with pytest.raises(InvariantViolationError, match="offsets out of order on broker 2"):
        checker.check()


def test_high_watermark_may_go_back_on_a_follower(checker, log):
    log(2).offsets.high_watermark = 0
    checker.check()


def test_high_watermark_beyond_the_log_of_an_isr_member_is_noticed(checker, log):
    log(3).offsets.high_watermark = 0
    log(3).truncate_to(0)
    with pytest.raises(InvariantViolationError, match="beyond the log end 0 of broker 3"):
        checker.check()


def test_second_leader_of_an_epoch_is_noticed(cluster, checker):
    cluster.pause(1)
    cluster.run_until(lambda: cluster.leader("orders") == 2)
    cluster.advance(0)
    partitions = [cluster.nodes.brokers[broker_id].replica_manager.partitions[KEY] for broker_id in (1, 2)]
    assert all(partition.is_leader for partition in partitions)
    checker.check()  # the old leader does not know yet, and has an older epoch
    partitions[0].leader_epoch = partitions[1].leader_epoch
    with pytest.raises(InvariantViolationError, match="both lead orders-0 in epoch 1"):
        checker.check()


@pytest.mark.parametrize("unclean", [True, False])
def test_deposed_leader_may_be_ahead_of_its_isr_only_where_elections_may_be_unclean(unclean):
    cluster = VirtualCluster(seed=9)
    configs = {"unclean.leader.election.enable": unclean}
    cluster.create_topic("orders", assignments={0: [1, 2, 3]}, configs=configs)
    pending = cluster.client().send(1, produce_request(KEY), PRODUCE_VERSION)
    cluster.run_until(lambda: pending.done)
    cluster.advance(1_000)
    cluster.pause(1)
    cluster.run_until(lambda: cluster.leader("orders") not in {1, -1})
    checker = Checker(cluster.nodes)
    checker.check()
    shorter = cluster.nodes.brokers[3].replica_manager.partitions[KEY].log
    shorter.offsets.high_watermark = 0
    shorter.truncate_to(0)
    follower = cluster.nodes.brokers[2].replica_manager.partitions[KEY]
    if follower.is_leader:  # what it believes of broker 3 is not looked at here
        follower.log.offsets.high_watermark = 0
        checker = Checker(cluster.nodes)
    if unclean:
        checker.check()
    else:
        with pytest.raises(InvariantViolationError, match="on leader 1 is beyond the log end 0"):
            checker.check()
