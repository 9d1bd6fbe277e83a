"""The APIs of a broker with an authorizer: some require a permission on the cluster.

Mirrors `AuthHelper.authorizeClusterOperation`. A broker without an authorizer has the table as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import whole_answer
from broker_sim.handlers.support.authorization import is_authorized_on_cluster

if TYPE_CHECKING:
    from broker_sim.handlers import ApiSpec, ApiTable, RequestContext
    from broker_sim.handlers.context import Respond


def guarded_apis(table: ApiTable) -> ApiTable:
    """Return the table with handlers that return CLUSTER_AUTHORIZATION_FAILED to unauthorized clients."""
    return table.changed(lambda spec: _guarded(spec) if spec.cluster_operations else spec)


def _guarded(spec: ApiSpec) -> ApiSpec:
    operations = spec.cluster_operations

    def handle(request: Any, context: RequestContext, respond: Respond) -> None:
        if is_authorized_on_cluster(context, operations):
            spec.handler(request, context, respond)
        else:
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            respond(whole_answer(context.api_key, request, context.api_version, code))

    return spec._replace(place=handle)
