"""A broker that is started within its old session. Kafka: BrokerServer.startup, BrokerLifecycleManager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.admin import brokers_of
from broker_sim_integration.clients.raw_client import RawConnection
from broker_sim_integration.observations import Observation, at_once, untimed
from broker_sim_integration.scenarios.helpers.observe import concluded, described, listed, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

OUTLASTS_A_START: Final = {"broker.session.timeout.ms": "30000"}
"""A session so long that a killed broker is started again before it is fenced: a JVM may take 15 s to start."""


@scenario(configs=OUTLASTS_A_START, needs={Fault.PAUSE, Fault.KILL}, topology="2 topics of 1 partition x 2 replicas")
def a_broker_started_within_its_old_session_follows_and_serves_nobody(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """It applies metadata before it can register, so a produce with acks=all completes.

    Its own followers do not reach it.
    """
    led = cluster.topics.create([cluster.third, cluster.second])
    followed = cluster.topics.create([cluster.first, cluster.third])
    leader = cluster.connect(cluster.third)
    leader.produce(led, b"kept")
    cluster.faults.pause(cluster.second)
    cluster.faults.kill(cluster.third)
    cluster.faults.start(cluster.third)
    cluster.faults.resume(cluster.second)
    reply = cluster.connect(cluster.first).produce(followed, b"a", timeout_ms=25_000)
    yield produced("acks=all", reply, untimed("a JVM takes seconds to start"))
    yield described("what it follows", cluster, followed)
    yield described("what it leads", cluster, led)
    serves = _serves(cluster, cluster.third)
    yield concluded("not registered", "what has no response has no time", serves=serves)
    cluster.wait_until.leader(led, cluster.second)
    new = cluster.connect(cluster.second)
    yield listed("latest at the new leader", new.list_offset(led), at_once())
    cluster.wait_until.isr(led, cluster.second, cluster.third)
    yield described("registered", cluster, led)


def _serves(cluster: ClusterUnderTest, broker: int) -> bool:
    """Return whether a broker sends responses; a proxy before it may accept a connection that the broker refuses."""
    try:
        with RawConnection(*cluster.brokers.address(broker)) as connection:
            brokers_of(connection)
    except OSError:
        return False
    return True
