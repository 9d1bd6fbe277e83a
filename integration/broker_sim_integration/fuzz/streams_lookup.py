"""A play's own lookups about streams groups: whether the topics created for a heartbeat exist."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.group.streams.topics.configured_topology import Status
from broker_sim.protocol import messages
from broker_sim_integration.fuzz.lookup import APPLIED_S, PlayError

if TYPE_CHECKING:
    from broker_sim_integration.fuzz.lookup import Lookup

CREATED_S: Final = 2.0
HAS_FAILED: Final = "Creation failed"
"""Part of an error that a broker repeats for two heartbeat intervals; such topics are not awaited again."""


async def settle_streams_group(lookup: Lookup, broker: int, request: Any, answer: Any) -> None:
    """Wait until the internal topics of a group exist: a member gets its response before they are created."""
    missing = [one.status_detail for one in answer.status or () if one.status_code == Status.MISSING_INTERNAL_TOPICS]
    if not missing or any(HAS_FAILED in detail for detail in missing):
        return
    describe = messages.StreamsGroupDescribeRequest([request.group_id])
    (group,) = (await lookup.ask(broker, describe, 0)).groups
    if group.topology is None:
        return
    names = [
        topic.name
        for subtopology in group.topology.subtopologies or ()
        for topic in (*subtopology.state_changelog_topics, *subtopology.repartition_source_topics)
    ]
    for name in names:
        with suppress(PlayError):  # one with an invalid configuration is never created
            await lookup.until(partial(lookup.all_know, name), f"{name} is made", CREATED_S)
    await asyncio.sleep(APPLIED_S)
