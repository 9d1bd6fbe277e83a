"""Requests to add and remove voters of a fixed quorum. Kafka: KafkaRaftClient, ControllerApis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim_integration.clients.admin import quorum_leader
from broker_sim_integration.clients.raw_client import ConnectionEndedError
from broker_sim_integration.observations import at_once
from broker_sim_integration.scenarios.helpers.observe import answer_or_end, seen_in
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

Add, Remove = messages.AddRaftVoterRequest, messages.RemoveRaftVoterRequest
UNKNOWN: Final = 4_711
DIRECTORY: Final = bytes(range(16))
NO_DIRECTORY: Final = bytes(16)
OTHER_CLUSTER: Final = "AAAAAAAAAAAAAAAAAAAAAA"
CONTROLLER: Final = [Add.Listener("CONTROLLER", "127.0.0.1", 19_999)]
OTHER: Final = [Add.Listener("OTHER", "127.0.0.1", 19_999), Add.Listener("THIRD", "localhost", 1)]
VERSIONS_OF_ADD: Final = (0, 1)


@scenario(topology="none")
def no_voter_joins_a_fixed_quorum(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Cluster id, voter and endpoint are checked first, in this order; a valid voter is rejected too."""
    cluster_id = _cluster_id(cluster)
    requests = {
        "a valid voter": Add(cluster_id, 30_000, UNKNOWN, DIRECTORY, CONTROLLER),
        "without a cluster id": Add(None, 30_000, UNKNOWN, DIRECTORY, CONTROLLER),
        "of another cluster": Add(OTHER_CLUSTER, 30_000, -1, NO_DIRECTORY, []),
        "an empty cluster id": Add("", 30_000, UNKNOWN, DIRECTORY, CONTROLLER),
        "a negative id": Add(cluster_id, 30_000, -1, DIRECTORY, []),
        "no directory": Add(cluster_id, 30_000, UNKNOWN, NO_DIRECTORY, CONTROLLER),
        "no endpoint": Add(cluster_id, 30_000, UNKNOWN, DIRECTORY, []),
        "endpoints of other listeners": Add(cluster_id, 30_000, UNKNOWN, DIRECTORY, OTHER),
        "a listener in lower case": Add(cluster_id, 30_000, UNKNOWN, DIRECTORY, [Add.Listener("controller", "h", 1)]),
        "no time at all": Add(cluster_id, 0, UNKNOWN, DIRECTORY, CONTROLLER),
        "a negative timeout": Add(cluster_id, -1, UNKNOWN, DIRECTORY, CONTROLLER),
    }
    client = cluster.connect(cluster.second)
    for version in VERSIONS_OF_ADD:
        for step, request in requests.items():
            reply = client.request(request, version, messages.AddRaftVoterResponse)
            yield _answered(f"{step}, version {version}", reply, cluster_id)


@scenario(topology="none")
def no_voter_leaves_a_fixed_quorum(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Cluster id and voter are checked first; a voter of the quorum is rejected too."""
    cluster_id = _cluster_id(cluster)
    client = cluster.connect(cluster.second)
    requests = {
        "a voter": Remove(cluster_id, quorum_leader(client), DIRECTORY),
        "an unknown voter": Remove(cluster_id, UNKNOWN, DIRECTORY),
        "without a cluster id": Remove(None, UNKNOWN, DIRECTORY),
        "of another cluster": Remove(OTHER_CLUSTER, -1, NO_DIRECTORY),
        "a negative id": Remove(cluster_id, -1, DIRECTORY),
        "no directory": Remove(cluster_id, UNKNOWN, NO_DIRECTORY),
    }
    for step, request in requests.items():
        yield _answered(step, client.request(request, 0, messages.RemoveRaftVoterResponse), cluster_id)


@scenario(topology="none")
def the_active_controller_cannot_be_unregistered(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """An unknown controller cannot either; releases before 4.4 close the connection."""
    leader = quorum_leader(cluster.connect(cluster.first))
    for step, controller in (("the active one", leader), ("an unknown one", UNKNOWN), ("a negative id", -1)):
        pending = cluster.connect(cluster.second).send(
            messages.UnregisterControllerRequest(controller), 0, messages.UnregisterControllerResponse
        )
        try:
            yield _answered(step, pending.result())
        except ConnectionEndedError:
            yield answer_or_end(step, pending, at_once())


def _cluster_id(cluster: ClusterUnderTest) -> str:
    client = cluster.connect(cluster.first)
    return client.request(messages.DescribeClusterRequest(), 0, messages.DescribeClusterResponse).message.cluster_id


def _answered(step: str, reply: Reply[Any], cluster_id: str = "") -> Observation:
    """Observe code and text, in which the id of the cluster is replaced."""
    text = reply.message.error_message
    if text and cluster_id:
        text = text.replace(cluster_id, "<cluster id>")
    return seen_in(step, reply, error_code=reply.message.error_code, text=text)
