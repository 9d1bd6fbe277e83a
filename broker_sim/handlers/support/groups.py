"""Functions shared by the handlers of several kinds of groups; mirrors `KafkaApis`.

A describe response has first the groups that the client may not describe, in the order of the request, then the
others in the coordinator's order. A group with topics that the client may not describe has only an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.group.group import CONSUMER, STREAMS, GroupClient
from broker_sim.handlers.support.authorization import authorized_operations, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.feature_names import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from typing import TypeVar

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol import messages

    DescribeRequest = (
        messages.ConsumerGroupDescribeRequest
        | messages.ShareGroupDescribeRequest
        | messages.StreamsGroupDescribeRequest
    )
    G = TypeVar(
        "G",
        messages.ConsumerGroupDescribeResponse.DescribedGroup,
        messages.ShareGroupDescribeResponse.DescribedGroup,
        messages.StreamsGroupDescribeResponse.DescribedGroup,
    )

TOPICS_HIDDEN: Final = "The group has described topic(s) that the client is not authorized to describe."


def described_groups(
    context: RequestContext,
    request: DescribeRequest,
    *,
    group_type: type[G],
    is_served: bool,
    describe: Callable[[Sequence[str]], list[G]],
    topics_of: Callable[[G], Iterable[str]],
    hidden_text: str = TOPICS_HIDDEN,
) -> list[G]:
    """Return the described groups of a request.

    `is_served` is whether the broker serves this kind of group. `describe` calls the coordinator.
    """
    group_ids = request.group_ids
    if not is_served:
        return [group_type(ErrorCode.UNSUPPORTED_VERSION, group_id=each) for each in group_ids]
    operation = AclOperation.DESCRIBE
    denied = unauthorized_names(context, operation, ResourceType.GROUP, group_ids)
    refused = [group_type(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=each) for each in group_ids if each in denied]
    groups = describe([each for each in group_ids if each not in denied])
    names = (name for group in groups for name in topics_of(group))
    hidden_names = unauthorized_names(context, operation, ResourceType.TOPIC, names)
    if hidden_names:
        groups = [
            group
            if hidden_names.isdisjoint(topics_of(group))
            else group_type(ErrorCode.TOPIC_AUTHORIZATION_FAILED, hidden_text, group_id=group.group_id)
            for group in groups
        ]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group.group_id)
    return refused + groups


def group_client(context: RequestContext) -> GroupClient:
    """Return the client as DescribeGroups shows it, with its host in Java's notation."""

    def hidden_topics(names: Iterable[str]) -> AbstractSet[str]:
        return unauthorized_names(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)

    return GroupClient(context.client_id or "", f"/{context.connection.ip}", context.api_version, hidden_topics)


def has_consumer_protocol(context: RequestContext) -> bool:
    """Return whether the feature `group.version` is on, and the broker offers the protocol."""
    return _is_offered(context, CONSUMER) and _is_on(context, GROUP_VERSION)


def has_streams_groups(context: RequestContext) -> bool:
    """Return whether the feature `streams.version` is on, and the broker offers the protocol."""
    return _is_offered(context, STREAMS) and _is_on(context, STREAMS_VERSION)


def has_share_groups(context: RequestContext) -> bool:
    """Return whether the feature `share.version` is on; otherwise the share group APIs are refused."""
    return _is_on(context, SHARE_VERSION)


def _is_offered(context: RequestContext, protocol: str) -> bool:
    return protocol in context.broker.config.group_coordinator_rebalance_protocols


def _is_on(context: RequestContext, feature: str) -> bool:
    return context.broker.image.features.get(feature, 0) > 0
