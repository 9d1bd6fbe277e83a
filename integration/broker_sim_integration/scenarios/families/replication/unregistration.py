"""Unregistered brokers. Kafka: ControllerApis, ReplicationControlManager.unregisterBroker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.protocol import messages
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.scenarios.helpers.broker_configs import HEARTBEAT_INTERVAL_MS, QUICK_FENCING
from broker_sim_integration.scenarios.helpers.observe import concluded, described, seen_in
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

UNKNOWN: Final = 4_711
WITH_FENCED: Final = 2
"""First version of DescribeCluster that can list fenced brokers."""
CREATE_VERSION: Final = 7


@scenario(needs={Fault.KILL})
def a_killed_broker_is_unregistered_and_registers_again(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It leaves ISRs and leaderships at once, long before its session ends, and is then neither alive nor fenced.

    No new replica is placed on it, and it cannot be unregistered twice. When it is started, it registers at once.
    """
    first, second, third = cluster.brokers
    led = cluster.topics.create([third, first, second])
    followed = cluster.topics.create([second, third])
    alone = cluster.topics.create([third])
    client = cluster.connect(first)
    for step, broker in (("an unknown broker", UNKNOWN), ("a negative id", -1)):
        yield _answered(step, _unregister(client, broker))
    cluster.faults.kill(third)
    yield _answered("the killed broker", _unregister(client, third), (third, "third"))
    cluster.wait_until.brokers(first, second)
    cluster.wait_until.leader(led, first)
    cluster.wait_until.leader(alone, -1)
    yield _listed("who is left", cluster, client)
    for step, topic in (("led", led), ("followed", followed), ("alone", alone)):
        yield described(f"{step}, without it", cluster, topic)
    yield _answered("once more", _unregister(client, third), (third, "third"))
    for step, replicas in (("a replica on it", [first, third]), ("three replicas", 3)):
        yield _refused_topic(step, cluster, client, replicas, (third, "third"))
    cluster.faults.start(third)
    cluster.wait_until.brokers(first, second, third)
    cluster.wait_until.isr(led, first, second, third)
    cluster.wait_until.isr(followed, second, third)
    cluster.wait_until.leader(alone, third)
    yield _listed("who is there again", cluster, client)
    for step, topic in (("led", led), ("followed", followed), ("alone", alone)):
        yield described(f"{step}, with it again", cluster, topic)


@scenario(configs=QUICK_FENCING, needs={Fault.KILL})
def a_fenced_broker_is_no_longer_listed_once_it_is_unregistered(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Fenced brokers are listed on demand; an unregistered broker is not listed."""
    first, second, third = cluster.brokers
    topic = cluster.topics.create([first, third])
    client = cluster.connect(first)
    cluster.faults.kill(third)
    cluster.wait_until.brokers(first, second)
    yield _listed("fenced", cluster, client)
    yield _answered("unregistered", _unregister(cluster.connect(second), third))
    cluster.wait_until(lambda: third not in _brokers(client), "the broker is gone")
    yield _listed("after that", cluster, client)
    yield described("its partition", cluster, topic)
    cluster.faults.start(third)
    cluster.wait_until.brokers(first, second, third)
    cluster.wait_until.isr(topic, first, third)
    yield described("its partition, with it again", cluster, topic)


@scenario(configs=QUICK_FENCING, needs={Fault.KILL})
def a_running_broker_that_is_unregistered_stays_unknown_until_it_is_started_anew(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """Its heartbeats are rejected, and it does not register again by itself; it also sees itself as gone."""
    first, second, third = cluster.brokers
    topic = cluster.topics.create([third, first, second])
    client, on_it = cluster.connect(first), cluster.connect(third)
    yield _answered("the running broker", _unregister(on_it, third))
    cluster.wait_until.brokers(first, second)
    cluster.wait_until.leader(topic, first)
    cluster.wait_until.leader(topic, first, via=third)
    cluster.wait(3 * HEARTBEAT_INTERVAL_MS)
    yield _listed("some heartbeats later", cluster, client)
    yield _listed("as it sees the cluster", cluster, on_it)
    yield described("led before", cluster, topic)
    cluster.faults.kill(third)
    cluster.faults.start(third)
    cluster.wait_until.brokers(first, second, third)
    cluster.wait_until.isr(topic, first, second, third)
    yield _listed("started anew", cluster, client)
    yield described("led before, with it again", cluster, topic)


def _unregister(client: BrokerClient, broker: int) -> Reply[messages.UnregisterBrokerResponse]:
    request = messages.UnregisterBrokerRequest(broker)
    return client.request(request, 0, messages.UnregisterBrokerResponse)


def _answered(
    step: str, reply: Reply[messages.UnregisterBrokerResponse], named: tuple[int, str] | None = None
) -> Observation:
    """Observe the error code and message, with the role instead of the id of the broker in the message."""
    answer = reply.message
    return seen_in(step, reply, error_code=answer.error_code, text=_text(answer.error_message, named))


def _text(text: str | None, named: tuple[int, str] | None) -> str | None:
    if text is None or named is None:
        return text
    broker, role = named
    return " ".join(role if word.strip(",") == str(broker) else word for word in text.split(" "))


def _brokers(client: BrokerClient) -> dict[int, bool]:
    """Return whether each listed broker is fenced, by broker id."""
    request = messages.DescribeClusterRequest(include_fenced_brokers=True)
    answer = client.request(request, WITH_FENCED, messages.DescribeClusterResponse).message
    return {each.broker_id: each.is_fenced for each in answer.brokers}


def _listed(step: str, cluster: ClusterUnderTest, client: BrokerClient) -> Observation:
    """Observe the listed brokers, and the fenced ones among them."""
    found = _brokers(client)
    fenced = [broker for broker, is_fenced in found.items() if is_fenced]
    return concluded(step, brokers=cluster.brokers.roles(found), fenced=cluster.brokers.roles(fenced))


def _refused_topic(
    step: str, cluster: ClusterUnderTest, client: BrokerClient, replicas: list[int] | int, named: tuple[int, str]
) -> Observation:
    """Observe the error of creating a topic with these replicas, or with this number of replicas."""
    request = messages.CreateTopicsRequest
    assigned = [] if isinstance(replicas, int) else [request.CreatableReplicaAssignment(0, replicas)]
    topic = request.CreatableTopic(
        cluster.topics.name("refused"), -1 if assigned else 1, replicas if isinstance(replicas, int) else -1, assigned
    )
    reply = client.request(request([topic], 5_000), CREATE_VERSION, messages.CreateTopicsResponse)
    (answer,) = reply.message.topics
    return seen_in(step, reply, error_code=answer.error_code, text=_text(answer.error_message, named))
