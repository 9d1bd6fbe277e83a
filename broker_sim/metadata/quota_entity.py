"""The entity that a client quota is set for; mirrors `org.apache.kafka.common.quota.ClientQuotaEntity`."""

from collections.abc import Mapping
from typing import Final

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Types with their names, sorted by type; the name None stands for the default of its type."""


def quota_entity(names: Mapping[str, str | None]) -> QuotaEntity:
    """Return the entity of these names by type."""
    return tuple(sorted(names.items()))
