"""What a play asks about streams groups: whether the topics are there that a heartbeat has made the broker create."""

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
"""A broker says why topics cannot be made for two heartbeat intervals, so it is not waited for them again."""


async def settle_streams_group(lookup: Lookup, broker: int, request: Any, answer: Any) -> None:
    """Return when the internal topics of a group are there: a member is answered before they are made."""
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
        with suppress(PlayError):  # one with a bad configuration is never made
            await lookup.until(partial(lookup.all_know, name), f"{name} is made", CREATED_S)
    await asyncio.sleep(APPLIED_S)
