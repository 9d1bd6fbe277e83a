"""DescribeConfigs (key 32), versions 1-4; mirrors `ConfigHelper.handleDescribeConfigsRequest`.

Behaviour:
* a broker describes topics, itself and the cluster-wide broker configuration, but no other broker; a
  client sends the request to the broker in question
* each resource succeeds or fails alone, but an unknown resource type fails the whole request

Version notes: 1 has sources and synonyms (KIP-226), 3 types and documentation (KIP-569), 4 is
flexible.

Deliberate difference: the loggers are those of the simulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from broker_sim.config import (
    ADVERTISED_LISTENERS,
    LISTENERS,
    BrokerConfigs,
    describe_client_metrics,
    describe_group,
    describe_loggers,
)
from broker_sim.controller import CONTROLLER_ID, ConfigResourceType
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.config_resources import check_config_access, id_named
from broker_sim.metadata.acl import AclOperation
from broker_sim.metadata.topic_name import invalid_topic_name
from broker_sim.protocol import messages
from broker_sim.runtime.sockets import address_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig, ConfigEntry
    from broker_sim.handlers.context import BrokerServices, RequestContext

KNOWN_RESOURCE_TYPES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
"""The default message of INVALID_REQUEST in Kafka."""

Resource = messages.DescribeConfigsRequest.DescribeConfigsResource
Result = messages.DescribeConfigsResponse.DescribeConfigsResult
ConfigResult = messages.DescribeConfigsResponse.DescribeConfigsResourceResult


def handle_describe_configs(
    request: messages.DescribeConfigsRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeConfigsResponse], None],
) -> None:
    """Describe each resource."""
    if any(r.resource_type not in KNOWN_RESOURCE_TYPES for r in request.resources):
        error = ApiError(ErrorCode.INVALID_REQUEST, MALFORMED)
        results = [_failed(resource, error) for resource in request.resources]
    else:
        results = [_describe(context, request, resource) for resource in request.resources]
    respond(messages.DescribeConfigsResponse(results=results))


def _describe(context: RequestContext, request: messages.DescribeConfigsRequest, resource: Resource) -> Result:
    try:
        check_config_access(context, AclOperation.DESCRIBE_CONFIGS, resource)
        node_id = CONTROLLER_ID if context.is_for_controller else context.broker.broker_id
        entries = _entries(context.broker, node_id, resource)
    except ApiError as error:
        return _failed(resource, error)
    return Result(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_config_result(entry, request.include_synonyms, request.include_documentation) for entry in entries],
    )


def _entries(broker: BrokerServices, node_id: int, resource: Resource) -> list[ConfigEntry]:
    """Return the configurations of a resource as that node has them. Raises ApiError if it does not exist."""
    image = broker.image
    name = resource.resource_name
    keys = resource.configuration_keys or None
    type_name = KNOWN_RESOURCE_TYPES[resource.resource_type]
    if type_name == "CLIENT_METRICS":
        if not name:
            _refuse("Client metrics subscription name must not be empty")
        own = image.configs_of_resource(ConfigResourceType.CLIENT_METRICS, name)
        return describe_client_metrics(own, keys)
    if type_name == "BROKER_LOGGER":
        _check_own_id(node_id, name, "Broker id must not be empty")
        return describe_loggers(keys)
    configs = BrokerConfigs(
        broker.config,
        image.dynamic_cluster_configs(),
        image.dynamic_broker_configs(node_id),
        broker.release.is_at_least,
    )
    if type_name == "GROUP":
        if not name:
            _refuse("Group name must not be empty")
        own = image.configs_of_resource(ConfigResourceType.GROUP, name)
        return describe_group(configs, own, keys)
    if resource.resource_type == ConfigResourceType.TOPIC:
        wrong = invalid_topic_name(name)
        if wrong is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
        topic = image.topics.get(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return configs.describe_topic(topic.configs, keys)
    if not name:
        return configs.describe_cluster(keys)
    _check_own_id(node_id, name)
    return configs._replace(static=_with_listeners(broker)).describe_broker(keys)


def _with_listeners(broker: BrokerServices) -> BrokerConfig:
    """Return the broker's configuration with the listener addresses that the cluster has assigned."""
    me = broker.image.brokers.get(broker.broker_id)
    if me is None:
        return broker.config
    originals = broker.config.originals
    addresses = ",".join(f"{each.listener}://{address_text(each.host, each.port)}" for each in me.endpoints)
    own = {} if LISTENERS in originals else {LISTENERS: addresses, ADVERTISED_LISTENERS: addresses}
    return broker.config.with_overrides({**own, **originals, "process.roles": "broker"})


def _refuse(reason: str) -> NoReturn:
    raise ApiError(ErrorCode.INVALID_REQUEST, reason)


def _check_own_id(broker_id: int, name: str, no_name: str = "") -> None:
    """Raise ApiError unless `name` is this broker's id; `no_name` is the message for an empty name."""
    expected = f"{broker_id}" if no_name else f"{broker_id} or empty string,"
    if no_name and not name:
        _refuse(no_name)
    requested_id = id_named(name)
    if requested_id is None:
        _refuse(f"Broker id must be an integer, but it is: {name}")
    if requested_id != broker_id:
        _refuse(f"Unexpected broker id, expected {expected} but received {name}")


def _config_result(entry: ConfigEntry, include_synonyms: bool, include_documentation: bool) -> ConfigResult:
    return ConfigResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            messages.DescribeConfigsResponse.DescribeConfigsSynonym(synonym.name, synonym.value, synonym.source)
            for synonym in (entry.synonyms if include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.documentation if include_documentation else None,
    )


def _failed(resource: Resource, error: ApiError) -> Result:
    return Result(
        error_code=error.error_code,
        error_message=error.error_message or "",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
