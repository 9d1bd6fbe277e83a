"""DescribeClientQuotas (key 48), versions 0-1; mirrors `ClientQuotasImage.describe`.

Behaviour:
* a filter component matches one name of a type, its default, or any name; `strict` leaves out entities
  with further types; a filter without components matches all entities
* entities and quotas come in the order of Java's hash tables

Version notes: 1 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.hash_order.hash_codes import INT_MASK, string_hash
from broker_sim.hash_order.java_order import hash_order, table_capacity
from broker_sim.metadata.quota_entity import CLIENT_ID, IP, USER
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.quota_entity import QuotaEntity

Request = messages.DescribeClientQuotasRequest
Response = messages.DescribeClientQuotasResponse
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
_OF_ONE_VALUE: Final = 31


def handle_describe_client_quotas(
    request: messages.DescribeClientQuotasRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeClientQuotasResponse], None],
) -> None:
    """Describe the quotas that match a filter."""
    try:
        names, types = _filter(request.components)
    except ApiError as error:
        respond(Response(error_code=error.error_code, error_message=str(error), entries=None))
        return
    quotas = context.broker.image.client_quotas
    entries = [
        _entry(entity, quotas[entity])
        for entity in hash_order(quotas, entity_hash, _capacity(len(quotas)))
        if _matches(dict(entity), names, types, strict=request.strict)
    ]
    respond(Response(entries=entries))


def _filter(components: Sequence[Request.ComponentData]) -> tuple[dict[str, str | None], set[str]]:
    """Return the requested names by type, and the types for which any name matches. Raises ApiError."""
    names: dict[str, str | None] = {}
    types: set[str] = set()
    for component in components:
        kind, match_type, match = component.entity_type, component.match_type, component.match
        _check_type(kind, types.union(names))
        if match_type == EXACT:
            if match is None:
                raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            names[kind] = match
        elif match_type in {DEFAULT, SPECIFIED}:
            if match is not None:
                name = "MATCH_TYPE_DEFAULT" if match_type == DEFAULT else "MATCH_TYPE_SPECIFIED"
                raise _invalid(f"Request specified {name}, but also specified a match string.")
            if match_type == DEFAULT:
                names[kind] = None
            else:
                types.add(kind)
        else:
            raise _invalid(f"Unknown match type {match_type}")
    entity_types = types.union(names)
    if IP in entity_types and len(entity_types) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used"
            " with user or clientId filter component."
        )
    return names, types


def _check_type(kind: str, named_before: set[str]) -> None:
    if not kind:
        raise _invalid("Invalid empty entity type.")
    if kind in named_before:
        raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in {IP, USER, CLIENT_ID}:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _matches(
    entity: Mapping[str, str | None], names: Mapping[str, str | None], types: set[str], *, strict: bool
) -> bool:
    if strict and len(entity) != len(names) + len(types):
        return False
    if not types.issubset(entity):
        return False
    return all(kind in entity and entity[kind] == name for kind, name in names.items())


def _entry(entity: QuotaEntity, quotas: Mapping[str, float]) -> Response.EntryData:
    in_order = hash_order(quotas, string_hash, _capacity(len(quotas)))
    return Response.EntryData(
        [Response.EntityData(kind, name) for kind, name in entity],
        [Response.ValueData(name, quotas[name]) for name in in_order],
    )


def _capacity(size: int) -> int:
    """Return the number of buckets of a hash table that was sized before its last entry was added."""
    return table_capacity(size - 1)


def entity_hash(entity: QuotaEntity) -> int:
    """Return `ClientQuotaEntity.hashCode`, which orders Kafka's responses, as an unsigned 32-bit number."""
    pairs = (string_hash(kind) ^ (0 if name is None else string_hash(name)) for kind, name in entity)
    return (_OF_ONE_VALUE + sum(pairs)) & INT_MASK
