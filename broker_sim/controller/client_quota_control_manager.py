"""The quotas of clients (KIP-546); mirrors `ClientQuotaControlManager` and the definitions of `QuotaConfig`.

Deliberate difference: an ip entity is an address or `localhost`; Kafka accepts any name that DNS
resolves. Error messages are like Kafka's, because clients see them.
"""

from __future__ import annotations

from ipaddress import ip_address
from math import isfinite
from socket import inet_aton
from typing import TYPE_CHECKING, Final

from broker_sim.controller.requests import ClientQuotaAlteration, Outcome
from broker_sim.errors import ErrorCode
from broker_sim.metadata.quota_entity import CLIENT_ID, IP, USER, quota_entity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.metadata import MetadataDelta, MetadataImage
    from broker_sim.metadata.quota_entity import QuotaEntity
    from broker_sim.protocol.release import Release

_LONG: Final = ("LONG", 2**63 - 1)
_INT: Final = ("INT", 2**31 - 1)
_DOUBLE: Final = ("DOUBLE", None)
_USER_AND_CLIENT_QUOTAS: Final = {
    "request_percentage": _DOUBLE,
    "producer_byte_rate": _LONG,
    "consumer_byte_rate": _LONG,
    "controller_mutation_rate": _DOUBLE,
}
"""Quota names in the order of Kafka's hash table of changes, which is their order in the image."""
_IP_QUOTAS: Final = {"connection_creation_rate": _INT}
_TOLERANCE: Final = 1e-6
DEFAULT_NAME: Final = "<default>"
"""Name of a type's default entity in tools and verbs."""
_EMPTY: Final = "Invalid empty client quota entity"


def alter_client_quotas(
    delta: MetadataDelta, alterations: Sequence[ClientQuotaAlteration], release: Release
) -> dict[QuotaEntity, Outcome]:
    """Set and remove quotas, either all of an entity or none; return the outcome of each entity.

    A duplicate entity gets an error, but its first alteration stays in effect.
    """
    outcomes: dict[QuotaEntity, Outcome] = {}
    for entity, operations in alterations:
        names = [name for name, _ in operations]
        if entity in outcomes or len(set(names)) < len(names):
            message = f"Ignoring duplicate entity {_as_text(entity)}"
            outcomes[entity] = Outcome(ErrorCode.INVALID_REQUEST, message)
            continue
        refusal = _reason_against(dict(entity), operations, release)
        if refusal is None:
            before = delta.base.client_quotas.get(entity, {})
            quotas = _changed(before, dict(operations))
            if quotas != before:
                delta.set_client_quotas(entity, quotas)
            outcomes[entity] = Outcome()
        else:
            outcomes[entity] = Outcome(ErrorCode.INVALID_REQUEST, refusal)
    return outcomes


def quotas_to_set(
    image: MetadataImage, names: Mapping[str, str | None], quotas: Mapping[str, float | None]
) -> ClientQuotaAlteration:
    """Return the alteration that leaves an entity with only these quotas; names and quotas of None are left out."""
    entity_names = {kind: name for kind, name in names.items() if name is not None}
    entity = quota_entity({kind: None if name == DEFAULT_NAME else name for kind, name in entity_names.items()})
    current = image.client_quotas.get(entity, {})
    operations = [(name, value) for name, value in quotas.items() if value is not None or name in current]
    return ClientQuotaAlteration(entity, operations)


def _changed(before: Mapping[str, float], changes: Mapping[str, float | None]) -> dict[str, float]:
    """Return the quotas after the change, earlier ones first."""
    names = [*before, *_USER_AND_CLIENT_QUOTAS, *_IP_QUOTAS]
    values = {name: changes.get(name, before.get(name)) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _as_text(entity: QuotaEntity) -> str:
    names = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{names}}})"


def _reason_against(
    names: Mapping[str, str | None], operations: Sequence[tuple[str, float | None]], release: Release
) -> str | None:
    reason = _reason_against_entity(names)
    if reason is not None:
        return reason
    quotas_of_kind = _IP_QUOTAS if IP in names else _USER_AND_CLIENT_QUOTAS
    for name, value in operations:
        if value is not None and (reason := _reason_against_value(quotas_of_kind, name, value, release)):
            return reason
    return None


def _reason_against_entity(names: Mapping[str, str | None]) -> str | None:
    """Mirror `validateEntity` and `configKeysForEntityType`."""
    if not names:
        return _EMPTY
    for kind, name in names.items():
        if kind not in {USER, CLIENT_ID, IP}:
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    ip = names.get(IP)
    if IP in names and len(names) > 1:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    if ip is not None and not _is_address(ip):
        return f"{ip} is not a valid IP or resolvable host."
    return None


def _is_address(text: str) -> bool:
    if text == "localhost":
        return True
    try:
        inet_aton(text)  # like Java, it accepts 127.1
    except OSError:
        pass
    else:
        return True
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _reason_against_value(
    quotas: Mapping[str, tuple[str, int | None]], name: str, value: float, release: Release
) -> str | None:
    """Mirror `validateQuotaKeyValue`."""
    if name not in quotas:
        return f"Invalid configuration key {name}"
    if not isfinite(value) and release.is_at_least("4.4"):
        return f"Quota {name} must be a finite number"
    if value <= 0:
        return f"Quota {name} must be greater than 0"
    type_name, largest = quotas[name]
    if largest is not None and value > float(largest):
        return f"Proposed value for {name} is too large for a{'n' * (type_name == 'INT')} {type_name}."
    if largest is not None and value % 1 > _TOLERANCE:
        return f"{name} cannot be a fractional value."
    return None
