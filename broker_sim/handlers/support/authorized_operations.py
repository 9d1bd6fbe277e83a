"""What a client may do, as bits of `AclOperation`; mirrors `AuthHelper.authorizedOperations`.

Without an authorizer everyone may do everything that makes sense for the resource.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ALL_CLUSTER_OPERATIONS", "ALL_GROUP_OPERATIONS", "ALL_TOPIC_OPERATIONS"]

ALL_TOPIC_OPERATIONS: Final = 0b1101_1111_1000
"""Read, write, create, delete, alter, describe and both config operations."""

ALL_CLUSTER_OPERATIONS: Final = 0b1_1111_1010_0000
"""Create, alter, describe, cluster action, both config operations and idempotent write."""

ALL_GROUP_OPERATIONS: Final = 0b1101_0100_1000
"""Read, delete, describe and both config operations."""
