"""Listing resources with configurations. Kafka: KafkaApis.handleListConfigResources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages
from broker_sim_integration.clients.admin_requests import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    TOPIC,
    alter,
)
from broker_sim_integration.scenarios.helpers.observe import seen_in
from broker_sim_integration.scenarios.helpers.publication import Publication
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

UNKNOWN_KINDS = (1, 99)


@scenario(topology="1 partition x 1 replica")
def what_may_be_configured_is_listed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Topics, brokers and loggers; groups and client metrics subscriptions only while they have a configuration."""
    topic = cluster.topics.create([cluster.first])
    client = cluster.connect(cluster.first)
    published = Publication(cluster)
    group, metrics = cluster.topics.name("group"), cluster.topics.name("metrics")
    labels = {topic.name: "topic", group: "group", metrics: "metrics"}
    labels |= dict.fromkeys(map(str, cluster.brokers), "broker")
    configured = {(GROUP, group): "consumer.session.timeout.ms", (CLIENT_METRICS, metrics): "interval.ms"}
    kinds = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, *UNKNOWN_KINDS)
    questions: list[tuple[list[int], int]] = [([], 0), ([], 1), *(([kind], 1) for kind in kinds)]
    for step, operation, value in (("set", SET, "50000"), ("deleted", DELETE, None)):
        for resource, key in configured.items():
            alter(client, (*resource, [(key, operation, value)]))
        published.wait()
        for wanted, version in questions:
            request = messages.ListConfigResourcesRequest(wanted)
            reply = client.request(request, version, messages.ListConfigResourcesResponse)
            listed = [
                [resource.resource_type, labels[resource.resource_name]]
                for resource in reply.message.config_resources
                if resource.resource_name in labels
            ]
            yield seen_in(
                f"{step}: {wanted or 'all'}, version {version}",
                reply,
                error_code=reply.message.error_code,
                resources=sorted(listed),
            )
