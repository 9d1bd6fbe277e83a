"""Requests about configurations and the directories of logs."""

from __future__ import annotations

from broker_sim.protocol import messages
from broker_sim_integration.acls.names import CLUSTER_RESOURCE, GROUP, GROUP_RESOURCE, TOPIC, TOPIC_RESOURCE
from broker_sim_integration.acls.situation import GuardedRequest, fixed


def configs_requests() -> list[GuardedRequest]:
    """Return the requests with the resources on which they need rights."""
    described, alter = messages.DescribeConfigsRequest, messages.AlterConfigsRequest
    incremental = messages.IncrementalAlterConfigsRequest
    directories = messages.AlterReplicaLogDirsRequest
    moved = directories.AlterReplicaLogDirTopic

    def describe(kind: int, name: str) -> messages.DescribeConfigsRequest:
        keys = ["no.such.key"]
        return described([described.DescribeConfigsResource(kind, name, keys)])

    def replace(kind: int, name: str) -> messages.AlterConfigsRequest:
        return alter([alter.AlterConfigsResource(kind, name)], validate_only=True)

    def change(kind: int, name: str) -> messages.IncrementalAlterConfigsRequest:
        return incremental([incremental.AlterConfigsResource(kind, name)], validate_only=True)

    return [
        fixed(
            "AlterReplicaLogDirs",
            directories([directories.AlterReplicaLogDir("/acl", [moved(TOPIC, [0])])]),
            2,
            CLUSTER_RESOURCE,
        ),
        fixed("DescribeLogDirs", messages.DescribeLogDirsRequest([]), 4, CLUSTER_RESOURCE),
        fixed("DescribeConfigs of a topic", describe(2, TOPIC), 4, TOPIC_RESOURCE),
        fixed("DescribeConfigs of a broker", describe(4, "1"), 4, CLUSTER_RESOURCE),
        fixed("DescribeConfigs of loggers", describe(8, "1"), 4, CLUSTER_RESOURCE),
        fixed("DescribeConfigs of client metrics", describe(16, "m"), 4, CLUSTER_RESOURCE),
        fixed("DescribeConfigs of a group", describe(32, GROUP), 4, GROUP_RESOURCE),
        fixed("AlterConfigs of a topic", replace(2, TOPIC), 2, TOPIC_RESOURCE),
        fixed("AlterConfigs of a broker", replace(4, "1"), 2, CLUSTER_RESOURCE),
        fixed("IncrementalAlterConfigs of a topic", change(2, TOPIC), 1, TOPIC_RESOURCE),
        fixed("IncrementalAlterConfigs of a broker", change(4, "1"), 1, CLUSTER_RESOURCE),
        fixed("IncrementalAlterConfigs of loggers", change(8, "1"), 1, CLUSTER_RESOURCE),
        fixed("IncrementalAlterConfigs of a group", change(32, GROUP), 1, GROUP_RESOURCE),
        fixed("ListConfigResources", messages.ListConfigResourcesRequest([4]), 1, CLUSTER_RESOURCE),
    ]
