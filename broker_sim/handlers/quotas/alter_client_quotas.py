"""AlterClientQuotas (key 49), versions 0-1; mirrors `ControllerApis.handleAlterClientQuotas`.

Behaviour:
* each entity succeeds or fails alone, and with `validate_only` nothing is set
* one result for each entity, in the order of Java's hash tables; if an entity has a type twice, the last
  name counts

Version notes: 1 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.controller import ClientQuotaAlteration, Outcome
from broker_sim.handlers.quotas.describe_client_quotas import entity_hash
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order, table_capacity
from broker_sim.metadata.quota_entity import QuotaEntity, quota_entity
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

Request = messages.AlterClientQuotasRequest
Response = messages.AlterClientQuotasResponse


def handle_alter_client_quotas(
    request: messages.AlterClientQuotasRequest,
    context: RequestContext,
    respond: Callable[[messages.AlterClientQuotasResponse], None],
) -> None:
    """Set and remove quotas of clients."""
    alterations = [_alteration(entry) for entry in request.entries]

    def answer(outcomes: dict[QuotaEntity, Outcome]) -> None:
        in_order = hash_order(outcomes, entity_hash)
        respond(Response(entries=[_entry(entity, outcomes[entity]) for entity in in_order]))

    def refuse(error: ApiError) -> None:
        outcome = Outcome(error.error_code, error.error_message)
        respond(Response(entries=[_entry(entity, outcome) for entity, _ in alterations]))

    context.broker.controller.call(
        lambda controller: controller.alter_client_quotas(alterations, request.validate_only), answer, refuse
    )


def _alteration(entry: Request.EntryData) -> ClientQuotaAlteration:
    entity = quota_entity({part.entity_type: part.entity_name for part in entry.entity})
    operations = [(each.key, None if each.remove else each.value) for each in entry.ops]
    # Of several errors the first is returned, in the order of Kafka's hash table of operations.
    order = hash_order([name for name, _ in operations], string_hash, table_capacity(len(operations)))
    operations.sort(key=lambda operation: order.index(operation[0]))
    return ClientQuotaAlteration(entity, operations)


def _entry(entity: QuotaEntity, outcome: Outcome) -> Response.EntryData:
    names = dict(entity)
    in_order = hash_order(names, string_hash, table_capacity(len(names)))
    return Response.EntryData(
        outcome.error_code, outcome.error_message, [Response.EntityData(kind, names[kind]) for kind in in_order]
    )
