"""CreateTopics (key 19), versions 0-7; mirrors `ControllerApis.createTopics`.

Behaviour:
* each topic succeeds or fails alone
* with `validate_only` nothing is created, but the response is the same

Version notes: 4 may leave partition count and replication factor to the broker's defaults (KIP-464), 5 is
flexible and returns both, with the configurations of the new topic (KIP-525), 6 may be throttled (KIP-599),
7 returns topic ids (KIP-516).

Deliberate difference: a returned configuration that comes from a broker configuration in another
unit (`log.retention.hours`) counts as a default, as in DescribeConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.config import BrokerConfigs
from broker_sim.controller import CreatableTopic
from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import is_authorized, unauthorized_names
from broker_sim.handlers.support.forwarding import forward, mutation_quota
from broker_sim.handlers.support.partition_errors import injected_error
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.controller import CreateTopicResult, Outcome
    from broker_sim.handlers.context import BrokerServices, RequestContext

CONFIGS_VERSION = 5
STRICT_QUOTA_VERSION = 6
TopicResult = messages.CreateTopicsResponse.CreatableTopicResult


def handle_create_topics(
    request: messages.CreateTopicsRequest,
    context: RequestContext,
    respond: Callable[[messages.CreateTopicsResponse], None],
) -> None:
    """Create the topics, or only validate the request."""
    injected = {topic.name: injected_error(context, topic.name) for topic in request.topics}
    refused = [TopicResult(name=name, error_code=error) for name, error in injected.items() if error]
    denied = _denied_topics(request, context)
    refused += [
        TopicResult(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message="Authorization failed.")
        for name in denied
        if not injected[name]
    ]
    creatable_topics = [
        _creatable_topic(topic) for topic in request.topics if not injected[topic.name] and topic.name not in denied
    ]
    if not creatable_topics:
        respond(messages.CreateTopicsResponse(topics=refused))
        return
    configs = {topic.name: topic.configs for topic in creatable_topics}
    quota = mutation_quota(context, STRICT_QUOTA_VERSION)

    def answer(results: list[CreateTopicResult]) -> None:
        described = [_topic_result(result) for result in results]
        if context.api_version >= CONFIGS_VERSION:
            for topic, result in zip(described, results, strict=True):
                if result.outcome.ok:
                    _describe_configs(topic, context, configs[topic.name])
        respond(messages.CreateTopicsResponse(quota.throttle_time_ms, topics=described + refused))

    def refuse(outcome: Outcome) -> None:
        failed = [
            TopicResult(name=topic.name, error_code=outcome.error_code, error_message=outcome.error_message)
            for topic in creatable_topics
        ]
        respond(messages.CreateTopicsResponse(topics=failed + refused))

    forward(
        context.broker,
        request.timeout_ms,
        lambda controller: controller.create_topics(creatable_topics, request.validate_only, quota.record),
        answer,
        refuse,
    )


def _denied_topics(request: messages.CreateTopicsRequest, context: RequestContext) -> list[str]:
    """Return the topics that the client may not create; with CREATE on the cluster, none."""
    create, cluster = AclOperation.CREATE, ResourceType.CLUSTER
    if is_authorized(context, create, cluster, CLUSTER_NAME, logs_denial=False):
        return []
    names = [topic.name for topic in request.topics]
    denied = unauthorized_names(context, create, ResourceType.TOPIC, names)
    return [name for name in dict.fromkeys(names) if name in denied]


def _describe_configs(topic: TopicResult, context: RequestContext, configs: Mapping[str, str | None]) -> None:
    """Add the topic's configurations, or the error of a client that may not see them."""
    describe = AclOperation.DESCRIBE_CONFIGS
    if is_authorized(context, describe, ResourceType.TOPIC, topic.name, logs_denial=False):
        topic.configs = _effective_configs(context.broker, configs)
    else:
        topic.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topic.num_partitions = topic.replication_factor = -1


def _creatable_topic(topic: messages.CreateTopicsRequest.CreatableTopic) -> CreatableTopic:
    return CreatableTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assigned.partition_index, assigned.broker_ids) for assigned in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )


def _topic_result(result: CreateTopicResult) -> TopicResult:
    return TopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=result.outcome.error_code,
        error_message=result.outcome.error_message,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
    )


def _effective_configs(
    broker: BrokerServices, topic_configs: Mapping[str, str | None]
) -> list[messages.CreateTopicsResponse.CreatableTopicConfigs]:
    """Return the topic's configurations by name, without the dynamic ones of single brokers.

    As in Kafka, values from the request are returned exactly as written.
    """
    requested_configs = {name: value for name, value in topic_configs.items() if value is not None}
    cluster = broker.image.dynamic_cluster_configs()
    entries = BrokerConfigs(broker.config, cluster, broker={}, is_at_least=broker.release.is_at_least).describe_topic(
        requested_configs
    )
    return [
        messages.CreateTopicsResponse.CreatableTopicConfigs(
            name=entry.name, value=requested_configs.get(entry.name, entry.value), config_source=entry.source
        )
        for entry in sorted(entries, key=lambda entry: entry.name)
    ]
