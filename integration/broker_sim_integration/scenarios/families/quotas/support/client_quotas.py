"""Quotas of clients that are set for one scenario and removed afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.scenarios.helpers.publication import Publication

Alter = messages.AlterClientQuotasRequest
Describe = messages.DescribeClientQuotasRequest
ALTER_VERSION = 1


def entry(names: Mapping[str, str | None], **quotas: float | None) -> Alter.EntryData:
    """Return an entry that sets the quotas of an entity (name by type), and removes those that are None."""
    return Alter.EntryData(
        [Alter.EntityData(kind, name) for kind, name in names.items()],
        [Alter.OpData(name, value or 0.0, value is None) for name, value in quotas.items()],
    )


def alter(
    client: BrokerClient, *entries: Alter.EntryData, validate_only: bool = False
) -> Reply[messages.AlterClientQuotasResponse]:
    """Send an AlterClientQuotas request; return the response."""
    request = Alter(list(entries), validate_only)
    return client.request(request, ALTER_VERSION, messages.AlterClientQuotasResponse)


def describe(
    client: BrokerClient, *components: Iterable[Any], strict: bool = False
) -> Reply[messages.DescribeClientQuotasResponse]:
    """Return the quotas of the matching entities; a component is an entity type, a match type, and a name or None."""
    request = Describe([Describe.ComponentData(*each) for each in components], strict)
    return client.request(request, ALTER_VERSION, messages.DescribeClientQuotasResponse)


def forget_all(cluster: ClusterUnderTest, client: BrokerClient) -> None:
    """Remove all quotas, now and at the end of the scenario."""

    def forget() -> None:
        entries = describe(client).message.entries or []
        removals = [
            entry(
                {part.entity_type: part.entity_name for part in each.entity},
                **dict.fromkeys(value.key for value in each.values),
            )
            for each in entries
        ]
        if removals:
            alter(client, *removals)

    forget()
    cluster.on_close(forget)


def limit(
    cluster: ClusterUnderTest, published: Publication, names: Mapping[str, str | None], **quotas: float | None
) -> None:
    """Set quotas; returns when every broker applies them."""
    reply = alter(cluster.clients.ask(cluster.first), entry(names, **quotas))
    assert reply.message.entries[0].error_code == 0, reply.message
    published.wait()
