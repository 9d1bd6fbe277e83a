"""Whether the cluster has share groups; mirrors `KafkaApis.isShareGroupProtocolEnabled`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker_sim.handlers.context import RequestContext

__all__ = ["has_share_groups"]

SHARE_VERSION: Final = "share.version"


def has_share_groups(context: RequestContext) -> bool:
    """Return whether the feature `share.version` is on, without which their APIs are refused."""
    return context.broker.image.features.get(SHARE_VERSION, 0) > 0
