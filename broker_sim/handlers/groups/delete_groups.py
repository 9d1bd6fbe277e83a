"""DeleteGroups (key 42), versions 0-2; mirrors `KafkaApis.handleDeleteGroupsRequest`.

Behaviour:
* a group without members is deleted with its offsets; others fail with NON_EMPTY_GROUP
* the groups of one partition of `__consumer_offsets` are deleted by one write
* the results are in the order of Kafka's hash map of partitions, not in that of the request
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.offset_metadata import find_group, tombstones_of_group
from broker_sim.handlers.groups.by_partition import groups_by_partition
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.group.records import GroupRecord
    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_delete_groups"]

Result = messages.DeleteGroupsResponse.DeletableGroupResult


def handle_delete_groups(
    request: messages.DeleteGroupsRequest,
    context: RequestContext,
    respond: Callable[[messages.DeleteGroupsResponse], None],
) -> None:
    """Delete each group that can be, and answer once all are committed."""
    names = list(dict.fromkeys(request.groups_names))
    partitions = groups_by_partition(names, context.broker.groups)
    answers: list[list[Result] | None] = [None] * len(partitions)

    def take(index: int, results: list[Result]) -> None:
        answers[index] = results
        whole = [part for part in answers if part is not None]
        if len(whole) == len(answers):
            respond(messages.DeleteGroupsResponse(results=[r for part in whole for r in part]))

    if not partitions:
        respond(messages.DeleteGroupsResponse())
    for index, group_ids in enumerate(partitions):
        _delete(group_ids, context, partial(take, index))


def _delete(
    group_ids: list[str], context: RequestContext, on_results: Callable[[list[Result]], None]
) -> None:
    """Delete groups that are in the same partition."""
    try:
        shard = context.broker.groups.shard_of_any_group(group_ids[0])
    except ApiError as error:
        on_results([Result(group_id, error.error_code) for group_id in group_ids])
        return
    results: list[Result] = []
    records: list[GroupRecord] = []
    for group_id in group_ids:
        try:
            group = find_group(shard, group_id)
            group.validate_delete_group()
        except ApiError as error:
            results.append(Result(group_id, error.error_code))
        else:
            records += tombstones_of_group(shard, group)
            results.append(Result(group_id))

    def done(error_code: ErrorCode) -> None:
        if error_code:
            on_results([Result(group_id, error_code) for group_id in group_ids])
            return
        deleted = [result.group_id for result in results if not result.error_code]
        if deleted:
            shard.log.info("groups_deleted", groups=deleted)
        on_results(results)

    shard.write(records, done)
