"""A topic whose leader changes when a scenario elects its preferred leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest


def topic_with_displaced_leader(cluster: ClusterUnderTest) -> Topic:
    """Return a topic led by `first` whose preferred leader is `second`, with all replicas in the ISR.

    To get there, `second` is paused until it is fenced, and then resumed; that takes five seconds on a
    cluster with quick fencing.
    """
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    cluster.faults.pause(cluster.second)
    cluster.wait_until.leader(topic, cluster.first)
    cluster.faults.resume(cluster.second)
    cluster.wait_until.brokers(*cluster.brokers)
    cluster.wait_until.isr(topic, *cluster.brokers)
    cluster.topics.settle()
    return topic
