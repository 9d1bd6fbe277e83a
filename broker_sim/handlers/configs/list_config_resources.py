"""ListConfigResources (key 74), versions 0-1; mirrors `KafkaApis.handleListConfigResources`.

Behaviour:
* lists topics, the live brokers that have the client's listener, and their loggers; groups and client metrics
  subscriptions are listed only if they have a configuration
* an unknown resource type fails the whole request

Version notes: 0 lists client metrics subscriptions only (KIP-1000), 1 has a list of types, where an empty
list stands for all types (KIP-1142).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller import ConfigResourceType
from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.config_resources import BROKER_LOGGER
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.handlers.context import RequestContext

_TYPES: Final = (
    (ConfigResourceType.CLIENT_METRICS,),
    (
        ConfigResourceType.GROUP,
        ConfigResourceType.CLIENT_METRICS,
        BROKER_LOGGER,
        ConfigResourceType.BROKER,
        ConfigResourceType.TOPIC,
    ),
)
"""Resource types of each version, in the order of Kafka's response."""


def handle_list_config_resources(
    request: messages.ListConfigResourcesRequest,
    context: RequestContext,
    respond: Callable[[messages.ListConfigResourcesResponse], None],
) -> None:
    """List the resources of the requested types."""
    known_types = _TYPES[context.api_version]
    types = request.resource_types or known_types
    if any(each not in known_types for each in types):
        respond(refuse(request, context, ErrorCode.UNSUPPORTED_VERSION))
        return
    resource = messages.ListConfigResourcesResponse.ConfigResource
    respond(
        messages.ListConfigResourcesResponse(
            config_resources=[
                resource(name, kind) for kind in known_types if kind in types for name in _names(context, kind)
            ]
        )
    )


def _names(context: RequestContext, kind: int) -> Iterator[str]:
    image = context.broker.image
    if kind == ConfigResourceType.TOPIC:
        return iter(image.topics)
    if kind in (ConfigResourceType.BROKER, BROKER_LOGGER):
        return (str(broker.broker_id) for broker, _ in image.alive_endpoints(context.listener))
    return (name for (code, name), configs in image.resource_configs.items() if code == kind and configs)
