"""The hash code of a quota's entity, after which Kafka orders its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.hash_order.hash_codes import INT_MASK, string_hash

if TYPE_CHECKING:
    from broker_sim.metadata.quota_entity import QuotaEntity

_OF_ONE_VALUE: Final = 31


def entity_hash(entity: QuotaEntity) -> int:
    """Return `ClientQuotaEntity.hashCode` as an unsigned number of 32 bits."""
    pairs = (string_hash(kind) ^ (0 if name is None else string_hash(name)) for kind, name in entity)
    return (_OF_ONE_VALUE + sum(pairs)) & INT_MASK
