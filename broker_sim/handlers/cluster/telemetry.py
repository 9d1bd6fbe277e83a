"""GetTelemetrySubscriptions (71) and PushTelemetry (72), version 0 (KIP-714).

Served where `metric.reporters` names a class that is not Kafka's own, as by a real broker with a plugin that takes
clients' metrics; otherwise they are not advertised, and clients push nothing.

Behaviour:
* a client gets an id, and what it is to push by the subscriptions (CLIENT_METRICS resources) that match it
* before the interval is over, both are THROTTLING_QUOTA_EXCEEDED, but the first push after a get, and the last one
* a push of a former subscription is UNKNOWN_SUBSCRIPTION_ID, one above `telemetry.max.bytes` TELEMETRY_TOO_LARGE,
  one that is no OpenTelemetry INVALID_RECORD, and one after the last INVALID_REQUEST
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError
from broker_sim.handlers.telemetry.client_metrics import ACCEPTED_CODECS, PushingClient
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

SubscriptionsResponse = messages.GetTelemetrySubscriptionsResponse
PushResponse = messages.PushTelemetryResponse


def handle_get_telemetry_subscriptions(
    request: messages.GetTelemetrySubscriptionsRequest,
    context: RequestContext,
    respond: Callable[[messages.GetTelemetrySubscriptionsResponse], None],
) -> None:
    """Say which metrics the client is to push, and how often."""
    manager = context.broker.client_metrics
    try:
        instance_id, instance = manager.subscribe(request.client_instance_id, _client(context), context.broker.image)
    except ApiError as error:
        respond(SubscriptionsResponse(error_code=error.error_code))
        return
    respond(
        SubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=list(ACCEPTED_CODECS),
            push_interval_ms=instance.subscription.interval_ms,
            telemetry_max_bytes=manager.max_bytes,
            delta_temporality=True,
            requested_metrics=list(instance.subscription.metrics),
        )
    )


def handle_push_telemetry(
    request: messages.PushTelemetryRequest,
    context: RequestContext,
    respond: Callable[[messages.PushTelemetryResponse], None],
) -> None:
    """Keep the client's metrics."""
    try:
        context.broker.client_metrics.push(
            request.client_instance_id,
            _client(context),
            context.broker.image,
            subscription_id=request.subscription_id,
            terminating=request.terminating,
            compression=request.compression_type,
            payload=bytes(request.metrics or b""),
        )
    except ApiError as error:
        respond(PushResponse(error_code=error.error_code))
        return
    respond(PushResponse())


def _client(context: RequestContext) -> PushingClient:
    connection = context.connection
    return PushingClient(context.client_id, connection.software, connection.peer, connection.when_lost)
