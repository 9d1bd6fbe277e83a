"""Names in the table of rights, and the resources on which its requests need rights."""

from __future__ import annotations

from typing import Final

from broker_sim.metadata.acl import CLUSTER_NAME, WILDCARD, ResourceType

TOPIC: Final = "acl-topic"
NEW_TOPIC: Final = "acl-new"
GROUP: Final = "acl-group"
SHARE_GROUP: Final = "acl-share"
"""A share group with the member `MEMBER`, which has all partitions of `TOPIC`."""
STATE_GROUP: Final = "acl-share-state"
"""A share group without members; it has state of `TOPIC`."""
STREAMS_GROUP: Final = "acl-streams"
"""A streams group with the member `MEMBER`, which reads `TOPIC`."""
MEMBER: Final = "member"
TRANSACTIONAL_ID: Final = "acl-id"
OTHER_USER: Final = "User:acl-owner"

TOPIC_RESOURCE: Final = (ResourceType.TOPIC, TOPIC)
NEW_RESOURCE: Final = (ResourceType.TOPIC, NEW_TOPIC)
GROUP_RESOURCE: Final = (ResourceType.GROUP, GROUP)
SHARE_RESOURCE: Final = (ResourceType.GROUP, SHARE_GROUP)
STATE_RESOURCE: Final = (ResourceType.GROUP, STATE_GROUP)
STREAMS_RESOURCE: Final = (ResourceType.GROUP, STREAMS_GROUP)
ID_RESOURCE: Final = (ResourceType.TRANSACTIONAL_ID, TRANSACTIONAL_ID)
CLUSTER_RESOURCE: Final = (ResourceType.CLUSTER, CLUSTER_NAME)
TOKENS_RESOURCE: Final = (ResourceType.DELEGATION_TOKEN, WILDCARD)
OTHER_RESOURCE: Final = (ResourceType.USER, OTHER_USER)
