"""A share fetch that waits, without a broker; what it does with one is claimed in the handlers' tests."""

from collections.abc import Mapping
from random import Random

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.replica import FetchIsolation, FetchParams
from broker_sim.share.partition.acquisition import AcquireLimits
from broker_sim.share.partition.delayed_share_fetch import DelayedShareFetch
from broker_sim.share.partition.share_fetch import ShareFetch


class Partitions(Mapping):
    """No partitions; counts how often somebody goes over them."""

    def __init__(self):
        self.looks = 0

    def items(self):
        self.looks += 1
        return {}.items()

    def __getitem__(self, partition):
        raise KeyError(partition)

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0


def test_fetch_tries_once_in_a_round():
    """It is watched under each of its partitions; a try for each of them would look at all of them."""
    params = FetchParams(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1_000,
        isolation=FetchIsolation.HIGH_WATERMARK,
        has_client_metadata=False,
        client_id="client",
    )
    fetch = ShareFetch("group", params, AcquireLimits("member", 1, 1), [], lambda _: None)
    partitions = Partitions()
    (broker,) = VirtualCluster(brokers=1, seed=1).nodes.brokers.values()
    manager = broker.share_partitions
    operation = DelayedShareFetch(fetch, partitions, manager.partitions, Random(1))
    for manager.waiting_fetches.round, looks in ((1, 1), (1, 1), (2, 2), (2, 2), (0, 3), (0, 4), (2, 5)):
        assert not operation.try_complete()
        assert partitions.looks == looks
