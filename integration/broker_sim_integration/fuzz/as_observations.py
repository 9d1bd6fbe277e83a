"""A sequence as a scenario plays it: one observation for each action."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from broker_sim_integration.fuzz.normalise import normalised_play
from broker_sim_integration.fuzz.play import play
from broker_sim_integration.fuzz.sequence import Request
from broker_sim_integration.fuzz.side import FuzzedSide
from broker_sim_integration.observations import Observation, untimed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.fuzz.sequence import Sequence


def observe_sequence(cluster: ClusterUnderTest, sequence: Sequence) -> Iterator[Observation]:
    """Play a sequence; yield the outcome of each action."""

    async def verb(name: str, broker: int) -> None:
        await asyncio.to_thread(getattr(cluster.faults, name), broker)

    side = FuzzedSide("cluster", cluster.brokers, verb)
    played = asyncio.run(play(side, sequence, f"fuzz-{secrets.token_hex(4)}"))
    fields = normalised_play(played, sequence, side)
    for index, (action, answer) in enumerate(zip(sequence.actions, fields, strict=True)):
        name = f"{action.api} {action.version}" if isinstance(action, Request) else str(action)
        yield Observation(
            step=f"{index}: {name}", timing=untimed("fuzzing compares outcomes, not times"), fields=answer
        )
