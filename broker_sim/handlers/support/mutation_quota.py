"""The quota of a request that creates or deletes partitions; see `ControllerMutationQuotaManager`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.quota import Client

if TYPE_CHECKING:
    from broker_sim.handlers.context import RequestContext
    from broker_sim.quota import ControllerMutationQuota


def mutation_quota(context: RequestContext, strict_since_version: int) -> ControllerMutationQuota:
    """Return the quota; requests of older versions are slowed down, but never refused."""
    return context.broker.controller_quotas.quota_for(
        Client(context.principal.name, context.client_id or ""), is_strict=context.api_version >= strict_since_version
    )
