"""GetTelemetrySubscriptions (71) and PushTelemetry (72), version 0 (KIP-714).

Served if `metric.reporters` names a class that is not Kafka's own, as by a real broker with a client telemetry
plugin; otherwise they are not advertised, and clients push nothing.

Behaviour:
* a client gets an id, and the metrics of the subscriptions (CLIENT_METRICS resources) that match it
* a request before the push interval has passed is THROTTLING_QUOTA_EXCEEDED, except the first push after a get and
  the terminating push
* a push with a former subscription id is UNKNOWN_SUBSCRIPTION_ID, one above `telemetry.max.bytes`
  TELEMETRY_TOO_LARGE, one that is larger once unpacked or not OpenTelemetry INVALID_RECORD, and one after the
  terminating push INVALID_REQUEST
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
    """Return the metrics that the client shall push, and the interval."""
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
    """Store the client's metrics."""
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
