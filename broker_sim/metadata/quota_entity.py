"""The entity of a client quota; mirrors `org.apache.kafka.common.quota.ClientQuotaEntity`."""

from collections.abc import Mapping
from typing import Final

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Entity types with their names, sorted by type; the name None is the default entity of the type."""


def quota_entity(names: Mapping[str, str | None]) -> QuotaEntity:
    """Return the entity with these names by type."""
    return tuple(sorted(names.items()))
