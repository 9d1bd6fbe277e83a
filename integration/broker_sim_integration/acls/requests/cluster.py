"""Requests about the cluster, its users and its rules."""

from __future__ import annotations

from broker_sim.protocol import messages
from broker_sim_integration.acls.names import CLUSTER_RESOURCE, TOPIC
from broker_sim_integration.acls.situation import GuardedRequest, fixed


def cluster_requests() -> list[GuardedRequest]:
    """Return the requests with the resources on which they need rights."""
    elect, moves = messages.ElectLeadersRequest, messages.AlterPartitionReassignmentsRequest
    listed, quorum = messages.ListPartitionReassignmentsRequest, messages.DescribeQuorumRequest
    scram, acls = messages.AlterUserScramCredentialsRequest, messages.CreateAclsRequest
    deleted, quotas = messages.DeleteAclsRequest, messages.AlterClientQuotasRequest
    quota = quotas.EntryData([quotas.EntityData("user", "nobody")])
    move = moves.ReassignableTopic(TOPIC, [moves.ReassignablePartition(0, None)])
    return [
        fixed("ApiVersions", messages.ApiVersionsRequest("table", "1"), 3, CLUSTER_RESOURCE),
        fixed(
            "DescribeCluster",
            messages.DescribeClusterRequest(include_cluster_authorized_operations=True),
            1,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "DescribeQuorum",
            quorum([quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])]),
            1,
            CLUSTER_RESOURCE,
        ),
        fixed("ElectLeaders", elect(0, [elect.TopicPartitions(TOPIC, [0])], 1_000), 2, CLUSTER_RESOURCE),
        fixed("AlterPartitionReassignments", moves(1_000, True, [move]), 1, CLUSTER_RESOURCE),
        fixed(
            "ListPartitionReassignments",
            listed(1_000, [listed.ListPartitionReassignmentsTopics(TOPIC, [0])]),
            0,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "UpdateFeatures",
            messages.UpdateFeaturesRequest(
                1_000, [messages.UpdateFeaturesRequest.FeatureUpdateKey("no.such.feature", 1)], validate_only=True
            ),
            1,
            CLUSTER_RESOURCE,
        ),
        # An existing broker would be missing in the rows after it.
        fixed("UnregisterBroker", messages.UnregisterBrokerRequest(77), 0, CLUSTER_RESOURCE),
        fixed("UnregisterController", messages.UnregisterControllerRequest(77), 0, CLUSTER_RESOURCE),
        fixed("AddRaftVoter", messages.AddRaftVoterRequest("no cluster"), 0, CLUSTER_RESOURCE),
        fixed("RemoveRaftVoter", messages.RemoveRaftVoterRequest("no cluster"), 0, CLUSTER_RESOURCE),
        fixed("DescribeUserScramCredentials", messages.DescribeUserScramCredentialsRequest([]), 0, CLUSTER_RESOURCE),
        fixed("AlterUserScramCredentials", scram([scram.ScramCredentialDeletion("nobody", 1)]), 0, CLUSTER_RESOURCE),
        fixed("DescribeClientQuotas", messages.DescribeClientQuotasRequest(), 1, CLUSTER_RESOURCE),
        fixed("AlterClientQuotas", quotas([quota], validate_only=True), 1, CLUSTER_RESOURCE),
        fixed("CreateAcls", acls([acls.AclCreation(2, "", 3, "User:nobody", "*", 3, 3)]), 3, CLUSTER_RESOURCE),
        fixed("DescribeAcls", messages.DescribeAclsRequest(2, "acl-none", 3, None, None, 1, 1), 3, CLUSTER_RESOURCE),
        fixed(
            "DeleteAcls", deleted([deleted.DeleteAclsFilter(2, "acl-none", 3, None, None, 1, 1)]), 3, CLUSTER_RESOURCE
        ),
    ]
