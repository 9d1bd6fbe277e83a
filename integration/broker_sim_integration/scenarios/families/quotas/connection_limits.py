"""Connections above a limit, which wait as in a backlog. Kafka: ConnectionQuotas, SocketServer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim_integration.clients import admin_requests
from broker_sim_integration.observations import Observation
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import committed
from broker_sim_integration.scenarios.helpers.observe import concluded, seen_in
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Pending, Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

BROKER: Final = 4
SET, DELETE = 0, 1
METADATA_VERSION: Final = 12
CONTROLLER: Final = "CONTROLLER"
"""The listener of the controllers, whose limit the scenarios do not change."""
QUIET_MS: Final = 300
"""Time in ms without a response after which a client counts as waiting; others get responses at once."""


def listeners_of(client: BrokerClient, broker: int) -> list[str]:
    """Return the names of a broker's listeners except the controllers'."""
    asked = (BROKER, str(broker), ("listeners",))
    reply = admin_requests.describe_configs(client, asked)
    value = reply.message.results[0].configs[0].value or ""
    return [each.partition("://")[0] for each in value.split(",") if CONTROLLER not in each]


def limit(client: BrokerClient, broker: int, connections: int | None) -> Reply[Any]:
    """Set max.connections of each listener of the broker, or remove it if None; return the response."""
    operation = DELETE if connections is None else SET
    value = None if connections is None else str(connections)
    changes = [
        (f"listener.name.{name.lower()}.max.connections", operation, value) for name in listeners_of(client, broker)
    ]
    reply = admin_requests.alter(client, (BROKER, str(broker), changes))
    assert reply.message.responses[0].error_code == 0, reply.message
    return reply


@scenario(topology="no topic")
def a_connection_above_the_limit_of_its_listener_waits(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The connection is accepted, but not served until the limit is raised, which takes effect at once.

    Existing connections stay open, even if they are more than the limit allows.
    """
    broker = cluster.second
    kept = cluster.connect(broker)
    limit(kept, broker, 1)
    pending: list[Pending[messages.MetadataResponse]] = []

    def ask(client: BrokerClient) -> Pending[messages.MetadataResponse]:
        request = messages.MetadataRequest(topics=[])
        return client.send(request, METADATA_VERSION, messages.MetadataResponse)

    def waits() -> bool:
        pending.append(ask(cluster.connect(broker)))
        cluster.wait(QUIET_MS)
        return not pending[-1].answered

    cluster.wait_until(waits, "the broker acts on the limit")
    there = ask(kept).result()
    yield seen_in("a connection that is there", there, is_answered=True)
    yield concluded("above the limit", is_answered=pending[-1].answered)
    raised = limit(kept, broker, None)
    reply = pending[-1].result()
    heard = committed()
    yield Observation(
        "raised",
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=after(reply, raised, spread_ms=heard.spread_ms, reason=heard.reason),
    )
