"""A waiting share fetch on its own; the handlers' tests cover it within a broker."""

from collections.abc import Mapping
from random import Random

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.replica import FetchIsolation, FetchParams
from broker_sim.share.partition.acquisition import AcquireLimits
from broker_sim.share.partition.delayed_share_fetch import DelayedShareFetch
from broker_sim.share.partition.share_fetch import ShareFetch


class Partitions(Mapping):
    """An empty mapping that counts calls of `items`."""

    def __init__(self):
        self.item_calls = 0

    def items(self):
        self.item_calls += 1
        return {}.items()

    def __getitem__(self, partition):
        raise KeyError(partition)

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0


def test_fetch_is_tried_once_per_round():
    """It is watched under each of its partitions, and one try item_calls at all of them."""
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
    for manager.waiting_fetches.round, item_calls in ((1, 1), (1, 1), (2, 2), (2, 2), (0, 3), (0, 4), (2, 5)):
        assert not operation.try_complete()
        assert partitions.item_calls == item_calls
